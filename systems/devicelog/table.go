package devicelog

import (
	"bufio"
	"context"
	"io"
	"iter"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"perfsim/components/zonelog"
	"perfsim/io/csvtable"
)

// tableBatch is how many rows a table hands on before it uses the memory of
// their optional values again.
const tableBatch = 1024

// zoneRow is a row of the table of zones; null is what a log does not have.
type zoneRow struct {
	Device       int32    `parquet:"device"`
	X            int32    `parquet:"core_x"`
	Y            int32    `parquet:"core_y"`
	Processor    string   `parquet:"processor,dict"`
	Zone         string   `parquet:"zone,dict"`
	File         string   `parquet:"file,dict"`
	Line         int32    `parquet:"line"`
	Depth        int32    `parquet:"depth"`
	RunID        *int64   `parquet:"run_id,optional"`
	HostID       *int64   `parquet:"run_host_id,optional"`
	TraceID      *int64   `parquet:"trace_id,optional"`
	TraceCounter *int64   `parquet:"trace_id_counter,optional"`
	Session      int32    `parquet:"session"`
	Start        int64    `parquet:"start_cycle,delta"`
	Duration     int64    `parquet:"duration_cycles"`
	DurationNS   *float64 `parquet:"duration_ns,optional"`
	LogLine      int64    `parquet:"log_line"`
}

// WriteZones writes every zone, by processor and start, as CSV or Parquet.
func WriteZones(ctx context.Context, w io.Writer, l *zonelog.DeviceLog, asParquet bool) error {
	about := []parquet.WriterOption{parquet.KeyValueMetadata("table", "zone")}
	if len(l.Sessions) > 0 {
		about = append(about, parquet.KeyValueMetadata("log_version", l.Sessions[0].Version), parquet.KeyValueMetadata("arch", l.Sessions[0].Arch))
	}
	return writeTable(ctx, w, asParquet, about, zoneRows(l))
}

func zoneRows(l *zonelog.DeviceLog) iter.Seq[zoneRow] {
	return func(yield func(zoneRow) bool) {
		var ids [tableBatch][4]int64
		var ns [tableBatch]float64
		n := 0
		for lane := range l.Lanes {
			ln := &l.Lanes[lane]
			for z := int(l.Zones.LaneOff[lane]); z < int(l.Zones.LaneOff[lane+1]); z++ {
				mark := l.Zones.Begin[z]
				k, r := &l.Keys[l.Key(z)], &l.Runs[l.Run[mark]]
				row := zoneRow{Device: ln.Device, X: ln.X, Y: ln.Y, Processor: ln.Risc, Zone: l.ZoneName(l.Key(z)), File: k.File, Line: int32(k.Line),
					Depth: int32(l.Zones.Depth[z]), Session: int32(r.Session), Start: int64(l.Start(z)), Duration: int64(l.Dur(z)), LogLine: int64(l.Line(int(mark)))}
				ids[n] = [4]int64{r.RunID, r.HostID, r.TraceID, r.TraceCounter}
				for i, p := range []**int64{&row.RunID, &row.HostID, &row.TraceID, &row.TraceCounter} {
					if ids[n][i] >= 0 {
						*p = &ids[n][i]
					}
				}
				if f := l.Freq(l.Run[mark]); f > 0 {
					ns[n] = nanoseconds(float64(l.Dur(z)), f)
					row.DurationNS = &ns[n]
				}
				if !yield(row) {
					return
				}
				n = (n + 1) % tableBatch
			}
		}
	}
}

// writeTable writes rows as CSV or, in pages of version 1 and row groups of
// 131,072 rows, as Parquet. The parquet tags of the fields name the columns.
func writeTable[R any](ctx context.Context, w io.Writer, asParquet bool, about []parquet.WriterOption, rows iter.Seq[R]) error {
	write, end := csvWriter[R](w)
	if asParquet {
		p := parquet.NewGenericWriter[R](w, append(about, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(1<<17),
			parquet.DataPageVersion(1), parquet.CreatedBy("perfsim", "", ""))...)
		write, end = func(list []R) error { _, err := p.Write(list); return err }, p.Close
	}
	batch := make([]R, 0, tableBatch)
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := write(batch)
		batch = batch[:0]
		return err
	}
	for r := range rows {
		if batch = append(batch, r); len(batch) == tableBatch {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return end()
}

// csvWriter writes rows as CSV with a header: nanoseconds, which are optional,
// with three decimals.
func csvWriter[R any](w io.Writer) (write func([]R) error, end func() error) {
	out := bufio.NewWriterSize(w, 256<<10)
	t := reflect.TypeFor[R]()
	var b []byte
	for k := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(k).Tag.Get("parquet"), ",")
		b = append(append(b, name...), ',')
	}
	write = func(rows []R) error {
		for i := range rows {
			v := reflect.ValueOf(&rows[i]).Elem()
			for k := range v.NumField() {
				switch x := v.Field(k); x.Kind() {
				case reflect.String:
					b = csvText(b, x.String())
				case reflect.Int32, reflect.Int64:
					b = strconv.AppendInt(b, x.Int(), 10)
				case reflect.Float64:
					b = strconv.AppendFloat(b, x.Float(), 'f', -1, 64)
				default:
					if e := x.Elem(); e.Kind() == reflect.Float64 {
						b = strconv.AppendFloat(b, e.Float(), 'f', 3, 64)
					} else {
						b = append(b, csvtable.Text(x)...)
					}
				}
				b = append(b, ',')
			}
			b[len(b)-1] = '\n'
			if _, err := out.Write(b); err != nil {
				return err
			}
			b = b[:0]
		}
		return nil
	}
	b[len(b)-1] = '\n'
	out.Write(b) // an error stays until Flush
	b = b[:0]
	return write, out.Flush
}

// csvText appends a cell, quoted where it has to be.
func csvText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}
