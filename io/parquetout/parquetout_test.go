package parquetout

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/io/csvtable"
	"perfsim/io/internal/tracetable"
)

// timeline makes n instructions over two lanes, each waiting for the one
// before it.
func timeline(n int) *components.Timeline {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(n)
	m.Instr.Source.Resize(n)
	m.Instr.DMABytes.Resize(n)
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	w := &components.World{Module: m, Machine: &machine.Machine{Name: "none"}, Config: components.Config{Model: components.Reference, Loops: components.Once}, Events: components.NewEvents()}
	var edges components.EdgeSet
	a := components.NewAttribution()
	var at uint64
	for i := range n {
		m.Instr.Lane.Set(i, []uint16{components.LaneDMA, components.LaneDVE}[i%2])
		m.Instr.Source.Set(i, m.Symbols.InternString(fmt.Sprintf("k,\"é\".py:%d", i%7)))
		if i%2 == 0 {
			m.Instr.DMABytes.Set(i, uint64(i))
		}
		d := uint32(1 + i%13)
		m.Instr.Issue.Append(d)
		m.Instr.Latency.Append(d)
		at += uint64(d)
		w.Events.Arrive.Append([2]uint64{at, at})
		a.Cause.Append(components.CauseFlow)
		if i == 0 {
			a.Cause.Set(0, components.CauseStart)
			a.Pred.Append(components.NoInstr)
			continue
		}
		a.Pred.Append(components.InstrID(i - 1))
		edges.Add(components.InstrID(i), components.InstrID(i-1), components.Flow)
	}
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	m.Note("code", "a remark", 3)
	w.Blocks = []components.BlockResult{{Latency: [2]uint64{at, at}}}
	t := components.NewTimeline(w, -1, components.Process{Name: "predicted"})
	t.Why, t.Slack, t.Critical = &a, make([]uint64, n), ecs.NewBits(n)
	t.Critical.SetRange(0, uint32(n))
	t.Series = []components.Series{{Name: "busy", Unit: "%", Time: []uint64{0, 10}, Value: []float64{0.1, 0}}}
	t.Metrics = []components.Metric{{Name: "latency_ns", Value: float64(at), Unit: "ns"}}
	return t
}

func file2(t *testing.T, files []File, name string) []byte {
	t.Helper()
	f, err := find(files, name)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := f.Write(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func read[R any](t *testing.T, b []byte) ([]R, *parquet.File) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parquet.Read[R](bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return rows, f
}

func TestParquetReadsBack(t *testing.T) {
	const n = 150_000 // two row groups
	tl := timeline(n)
	files, err := Files(tl, Perfetto, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	b := file2(t, files, "slice")
	rows, f := read[tracetable.Slice](t, b)
	if len(rows) != n || len(f.RowGroups()) != 2 {
		t.Fatalf("%d rows in %d groups", len(rows), len(f.RowGroups()))
	}
	for _, kv := range []struct{ k, v string }{{"schema_version", "2"}, {"tool_version", "1.2.3"}, {"time_unit", "ns"}, {"model", "reference"}} {
		if v, _ := f.Lookup(kv.k); v != kv.v {
			t.Errorf("%s is %q", kv.k, v)
		}
	}
	for i, r := range rows {
		start, end := tl.Span(0, components.InstrID(i))
		bad := r.ID != int64(i) || r.TS != int64(start) || r.LatencyNS != int64(end-start) || r.EndTS != r.TS+r.Dur || r.Cause == "" || r.IsCritical == nil || !*r.IsCritical ||
			r.Source != fmt.Sprintf("k,\"é\".py:%d", i%7) || r.Block != "b" || r.ParentID != nil
		bad = bad || (r.Bytes != nil) != (i%2 == 0 && i > 0) || r.Bytes != nil && *r.Bytes != int64(i)
		bad = bad || (r.HeldBy != nil) != (i > 0) || r.HeldBy != nil && *r.HeldBy != int64(i-1)
		if bad {
			t.Fatalf("row %d is %+v", i, r)
		}
	}
	deps, _ := read[tracetable.Dependency](t, file2(t, files, "dependency"))
	if len(deps) != n-1 || deps[5].SliceOut != 5 || deps[5].SliceIn != 6 || deps[5].DependencyType != "raw" || deps[5].GapNS != 0 || !deps[5].IsBinding || !deps[5].IsCritical {
		t.Errorf("%d dependencies, the sixth %+v", len(deps), deps[5])
	}
	tracks, _ := read[tracetable.Track](t, file2(t, files, "track"))
	if len(tracks) != 2 || tracks[0].ThreadName != "DMA" || tracks[0].Kind != "dma" || tracks[0].SliceCount != n/2 {
		t.Errorf("tracks %+v", tracks)
	}
	counters, _ := read[tracetable.Counter](t, file2(t, files, "counter"))
	if len(counters) != 2 || counters[0].Value != 0.1 {
		t.Errorf("counters %+v", counters)
	}
	warnings, _ := read[tracetable.Warning](t, file2(t, files, "warning"))
	if len(warnings) != 1 || warnings[0].Count != 3 {
		t.Errorf("warnings %+v", warnings)
	}
	schema, _ := read[tracetable.Field](t, file2(t, files, "schema_fields"))
	if len(schema) < 50 || schema[0].Name != "id" || schema[0].Table != "slice" || schema[0].Type != "INT64" {
		t.Errorf("%d fields, the first %+v", len(schema), schema[0])
	}
	if again := file2(t, files, "slice"); !bytes.Equal(b, again) {
		t.Error("the second time gives other bytes")
	}
}

func TestNeuronNames(t *testing.T) {
	tl := timeline(1000)
	files, err := Files(tl, Neuron, "1")
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := read[tracetable.Instruction](t, file2(t, files, "Instruction"))
	if len(rows) != 1000 || rows[1].Engine != "Vector" || rows[0].Engine != "DMA" || rows[7].DurationNS != rows[7].EndTS-rows[7].StartTS {
		t.Errorf("%d rows, %+v", len(rows), rows[1])
	}
	flows, _ := read[tracetable.Flow](t, file2(t, files, "Flow"))
	if len(flows) != 999 || flows[0].DependencyType != "FLOW_DEPENDENCE" {
		t.Errorf("%d flows, %+v", len(flows), flows[0])
	}
	about, _ := read[tracetable.Metadata](t, file2(t, files, "Metadata"))
	found := false
	for _, x := range about {
		found = found || x.Key == "is_simulation" && x.Value == "true"
	}
	if !found {
		t.Error("the file does not say that it is a simulation")
	}
	if _, err := Files(tl, "other", "1"); err == nil {
		t.Error("names that are none")
	}
}

// The CSV tables hold what the Parquet tables hold.
func TestCSVEqualsParquet(t *testing.T) {
	tl := timeline(5000)
	files, err := Files(tl, Perfetto, "1")
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := read[tracetable.Slice](t, file2(t, files, "slice"))
	for _, f := range csvtable.Files(tl, false) {
		var out bytes.Buffer
		if err := f.Write(context.Background(), &out); err != nil {
			t.Fatal(err)
		}
		got, err := csv.NewReader(&out).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", f.Table, err)
		}
		if f.Table != "slice" {
			continue
		}
		column := map[string]int{}
		for k, name := range got[0] {
			column[name] = k
		}
		if len(got) != len(rows)+1 || len(column) != len(tracetable.Columns[tracetable.Slice]("slice")) {
			t.Fatalf("%d lines, %d columns", len(got), len(column))
		}
		for i, r := range rows {
			line := got[i+1]
			held := ""
			if r.HeldBy != nil {
				held = strconv.FormatInt(*r.HeldBy, 10)
			}
			if line[column["ts"]] != strconv.FormatInt(r.TS, 10) || line[column["source"]] != r.Source || line[column["held_by"]] != held || line[column["is_critical"]] != "true" {
				t.Fatalf("line %d is %q, row %+v", i+1, line, r)
			}
		}
	}
}

// Columns whose value is not known are null, not empty or zero: this timeline
// has no queues, operands, geometry or types, sources only in run A's rows are
// those of the input, and a measured process has no cause, slack or issue time.
func TestUnknownIsNull(t *testing.T) {
	tl := timeline(10)
	tl.Processes = append(tl.Processes, components.Process{Name: "measured", Measured: true})
	m := tl.World.Module
	m.Instr.Source.Set(3, 0)
	for i := range 10 {
		m.Instr.MeasuredStart.Append(uint64(100 * i))
		m.Instr.MeasuredDur.Append(50)
		m.Instr.Flags.Set(i, components.FlagMeasured)
	}
	files, err := Files(tl, Perfetto, "1")
	if err != nil {
		t.Fatal(err)
	}
	b := file2(t, files, "slice")
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	nulls := map[string]int64{}
	for k, c := range f.RowGroups()[0].ColumnChunks() {
		index, err := c.ColumnIndex()
		if err != nil {
			t.Fatal(err)
		}
		for page := range index.NumPages() {
			nulls[f.Schema().Columns()[k][0]] += index.NullCount(page)
		}
	}
	// 20 rows, 10 of each process; row 3 has no source in both; of run A's rows
	// the first is held by nothing; rows 0, 1, 3, 5, 7 and 9 move no bytes.
	for name, want := range map[string]int64{"queue": 20, "operands": 20, "elements": 20, "partitions": 20, "hlo_name": 20, "parent_id": 20,
		"source": 2, "issue_ns": 10, "cause": 10, "slack_ns": 10, "is_critical": 10, "held_by": 11, "bytes": 12, "ts": 0, "executions": 0} {
		if nulls[name] != want {
			t.Errorf("%s is null in %d of 20 rows, want %d", name, nulls[name], want)
		}
	}
}

// The keys that docs/export.md lists point to rows that exist.
func TestForeignKeys(t *testing.T) {
	files, err := Files(timeline(1000), Perfetto, "1")
	if err != nil {
		t.Fatal(err)
	}
	slices, _ := read[tracetable.Slice](t, file2(t, files, "slice"))
	tracks, _ := read[tracetable.Track](t, file2(t, files, "track"))
	deps, _ := read[tracetable.Dependency](t, file2(t, files, "dependency"))
	track, slice := map[int32]tracetable.Track{}, map[int64]bool{}
	for _, r := range tracks {
		track[r.TrackID] = r
	}
	for _, r := range slices {
		slice[r.ID] = true
	}
	if len(track) != len(tracks) || len(slice) != len(slices) {
		t.Fatal("a primary key occurs twice")
	}
	for _, r := range slices {
		if x, ok := track[r.TrackID]; !ok || x.PID != r.PID || x.TID != r.TID || x.ThreadName != r.Engine {
			t.Fatalf("slice %d is on track %d: %+v", r.ID, r.TrackID, x)
		}
		if r.HeldBy != nil && !slice[*r.HeldBy] {
			t.Fatalf("slice %d is held by %d, which is no slice", r.ID, *r.HeldBy)
		}
	}
	for _, d := range deps {
		if !slice[d.SliceOut] || !slice[d.SliceIn] {
			t.Fatalf("dependency %+v of slices that are not there", d)
		}
	}
}

// find returns the table called name.
func find(files []File, name string) (File, error) {
	for _, f := range files {
		if f.Table == name {
			return f, nil
		}
	}
	return File{}, fmt.Errorf("no table is called %q", name)
}
