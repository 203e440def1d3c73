package devicelog

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"

	"perfsim/components/datadir"
	"perfsim/components/zonelog"
	"perfsim/io/tenstorrent/profilelog"
)

// The Parquet tables have the rows of the CSV files, column by column.
func TestParquetIsCSV(t *testing.T) {
	var logs []*zonelog.DeviceLog
	for _, f := range []string{"tenstorrent-metal__lfs/09ef5bc6/logs/profile_log_device_large.csv.gz", "tenstorrent__ttnn-visualizer/scripts/fixtures/smoke-performance-report/profile_log_device.csv"} {
		l, err := profilelog.ReadFile(context.Background(), datadir.Path(t, "tenstorrent", f), profilelog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, l)
	}
	var b bytes.Buffer
	if _, _, err := profilelog.Generate(&b, profilelog.GenOptions{Rows: 8000, Seed: 3, LoseEnds: 50}); err != nil {
		t.Fatal(err)
	}
	l, err := profilelog.Read(context.Background(), &b, profilelog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	logs = append(logs, l, logOf(t, "0/BRISC/1/f(a,b)/s/10/1027", "0/BRISC/1/f(a,b)/e/30/1027"))
	for _, l := range logs {
		var text, table bytes.Buffer
		if err := WriteZones(context.Background(), &text, l, false); err != nil {
			t.Fatal(err)
		}
		if err := WriteZones(context.Background(), &table, l, true); err != nil {
			t.Fatal(err)
		}
		compareTable[zoneRow](t, text.Bytes(), table.Bytes())
		for _, by := range []By{ByZone, ByZone | ByRisc | ByCore | ByLaunchID} {
			p, err := New(context.Background(), "x", l, Options{By: by})
			if err != nil {
				t.Fatal(err)
			}
			text.Reset()
			table.Reset()
			if err := WriteZoneStats(context.Background(), &text, p.Stats, false); err != nil {
				t.Fatal(err)
			}
			if err := WriteZoneStats(context.Background(), &table, p.Stats, true); err != nil {
				t.Fatal(err)
			}
			compareTable[statRow](t, text.Bytes(), table.Bytes())
		}
	}
}

// compareTable reads both and compares cells; numbers with decimals may be
// rounded in the text.
func compareTable[R any](t *testing.T, text, table []byte) {
	t.Helper()
	want, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(table), int64(len(table)))
	if err != nil {
		t.Fatal(err)
	}
	if int(f.NumRows()) != len(want)-1 {
		t.Fatalf("%d rows, %d in the text", f.NumRows(), len(want)-1)
	}
	for i, c := range f.Schema().Columns() {
		if c[0] != want[0][i] {
			t.Fatalf("column %d is %q, %q in the text", i, c[0], want[0][i])
		}
	}
	r := parquet.NewReader(bytes.NewReader(table), parquet.SchemaOf(new(R)))
	defer r.Close()
	row := make([]parquet.Row, 1)
	for i := 1; i < len(want); i++ {
		if n, err := r.ReadRows(row); n != 1 {
			t.Fatal(err)
		}
		for j, v := range row[0] {
			got := ""
			if !v.IsNull() {
				got = fmt.Sprint(v)
			}
			if got == want[i][j] {
				continue
			}
			a, errA := strconv.ParseFloat(got, 64)
			b, errB := strconv.ParseFloat(want[i][j], 64)
			if errA != nil || errB != nil || math.Abs(a-b) > 0.0005001 {
				t.Fatalf("row %d, %s: %q, %q in the text", i, want[0][j], got, want[i][j])
			}
		}
	}
}
