package catapult

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/ecs/golden"
	"perfsim/io/format"
)

// sample is a small placed world by hand: a DMA of 1656 ns that feeds a DVE
// instruction of 585 ns, a matmul that writes PSUM bank 1 and two
// instructions with awkward names.
func sample() *components.World {
	m := components.NewModule("sample", "test")
	m.AddCoreLanes(0)
	names := []string{"I-0", "I-1", "mm \"quoted\"", "bad \xff\x00 bytes", "barrier"}
	m.Instr.Grow(len(names))
	in := &m.Instr
	in.Name.Resize(len(names))
	in.Source.Resize(len(names))
	for i, n := range names {
		in.Name.Set(i, m.Symbols.InternString(n))
		in.DType.Set(i, components.BFloat16)
	}
	in.Source.Set(0, m.Symbols.InternString("k.py:12"))
	for i, x := range []struct {
		op    components.Opcode
		e     components.Engine
		lane  uint16
		issue uint32
		lat   uint32
		end   [2]uint64
	}{
		{components.OpcodeDMACopy, components.SP, components.LaneDMA, 356, 1656, [2]uint64{1656, 1656}},
		{components.OpcodeTensorScalar, components.DVE, components.LaneDVE, 485, 585, [2]uint64{2241, 2241}},
		{components.OpcodeMatmult, components.PE, components.LanePE, 280, 380, [2]uint64{2621, 380}},
		{components.OpcodeTensorCopy, components.DVE, components.LaneDVE, 485, 585, [2]uint64{2726, 2726}},
		{components.OpcodeAllEngineBarrier, components.All, components.LaneBarrier, 0, 0, [2]uint64{2626, 2626}},
	} {
		in.Opcode.Set(i, x.op)
		in.Engine.Set(i, x.e)
		in.Lane.Set(i, x.lane)
		in.Issue.AppendSlice([]uint32{x.issue})
		in.Latency.AppendSlice([]uint32{x.lat})
		_ = i
	}
	in.Banks.Set(2, 2<<8)
	in.Flags.Set(4, components.FlagBarrier)
	x := m.Symbols.InternString("x")
	m.Locations.Name.Append(x)
	m.Locations.Tensor.Append(x)
	m.Locations.Memory.Append(components.MemDRAM)
	m.Locations.Addr.Append(4096)
	m.Operands.Add(components.AccessPattern{Role: components.RoleIn, DType: components.BFloat16, Memory: components.MemDRAM, Where: 1, Address: 4160,
		Steps: []int64{512, 1}, Counts: []uint64{128, 512}})
	m.Operands.Add(components.AccessPattern{Role: components.RoleOut, DType: components.BFloat16, Memory: components.MemSBUF, Address: 64,
		Steps: []int64{512, 1}, Counts: []uint64{128, 512}})
	for range names {
		m.Operands.EndRow()
	}
	f := m.Functions.Add(m.Symbols.InternString("sg0000"), 0)
	m.Blocks.Add(m.Symbols.InternString("Block1"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(len(names)))
	m.Functions.EndBlock.Set(f, 1)
	var e components.EdgeSet
	e.Add(1, 0, components.Flow)
	e.Add(2, 1, components.Anti)
	e.Add(3, 1, components.Ordered)
	e.Add(4, 3, components.Ordered)
	if err := m.Link(&e); err != nil {
		panic(err)
	}
	w := &components.World{Module: m, Events: components.NewEvents()}
	for _, end := range [][2]uint64{{1656, 1656}, {2241, 2241}, {2621, 380}, {2726, 2726}, {2626, 2626}} {
		w.Events.Arrive.Append(end)
	}
	return w
}

func write(t *testing.T, w *components.World, r components.Run, graph bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(context.Background(), &b, w, 0, r, graph, 1); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file  string
		run   components.Run
		graph bool
	}{{"run_a.json", components.RunA, false}, {"run_b_graph.json", components.RunB, true}} {
		got := write(t, sample(), c.run, c.graph)
		golden.Check(t, filepath.Join("testdata", c.file), got)
	}
}

// The documented schema: a bare array, eleven thread names in this order, and
// all documented arguments.
func TestDocumentedSchema(t *testing.T) {
	text := write(t, sample(), components.RunA, false)
	if !bytes.HasPrefix(text, []byte("[\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"0. Unassigned\"}},\n")) ||
		!bytes.HasSuffix(text, []byte("]\n")) {
		t.Errorf("the frame is not the documented one:\n%.200s", text)
	}
	var events []map[string]any
	if err := json.Unmarshal(text, &events); err != nil {
		t.Fatal(err)
	}
	want := []string{"0. Unassigned", "4. POOL", "7. ACT", "5. PE", "1. DMA", "6. DVE", "3. SP", "2.0 CCStream0", "2.1 CCStream1",
		"2.2 CCStream2", "2.3 CCStream3"}
	args := []string{"bir_id", "bir_name", "opcode", "nki_source_location", "input_shapes", "output_shapes", "input_access_patterns",
		"output_access_patterns", "inst_dump", "deps"}
	var threads []string
	slices := 0
	for _, e := range events {
		switch e["ph"] {
		case "M":
			if e["tid"] != float64(len(threads)) {
				t.Errorf("thread %v is not %d", e, len(threads))
			}
			threads = append(threads, e["args"].(map[string]any)["name"].(string))
		case "X":
			slices++
			for _, a := range args {
				if _, ok := e["args"].(map[string]any)[a]; !ok {
					t.Errorf("%v has no argument %s", e["name"], a)
				}
			}
		}
	}
	if strings.Join(threads, "|") != strings.Join(want, "|") || slices != 5 {
		t.Errorf("%d slices, threads %q", slices, threads)
	}
}

// A kernel's name is an opcode of the module and may have any length.
func TestLongOpcodes(t *testing.T) {
	for _, n := range []int{600, 636, 700, 5000, 70_000} {
		for _, bare := range []bool{false, true} {
			w := sample()
			name := strings.Repeat("k", n)
			w.Module.Instr.Opcode.Set(1, w.Module.Opcode(name))
			if bare {
				w.Module.Instr.Source.Drop()
				for _, c := range w.Module.Operands.Columns() {
					c.Drop()
				}
			}
			text := write(t, w, components.RunA, false)
			var events []map[string]any
			if err := json.Unmarshal(text, &events); err != nil || !bytes.Contains(text, []byte(`"opcode":"`+name+`"`)) {
				t.Errorf("%d letters, bare %v: %v", n, bare, err)
			}
		}
	}
}

// In the style for viewers slices of one thread are disjoint: the first
// TensorScalar ends for the lane when the second starts.
func TestSlicesDoNotOverlap(t *testing.T) {
	var events []struct {
		Ph           string
		Ts, Dur, Tid uint64
	}
	var text bytes.Buffer
	if err := (Style{Cut: true}).Write(context.Background(), &text, sample(), 0, components.RunA, false, 1); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text.Bytes(), &events); err != nil {
		t.Fatal(err)
	}
	end := map[uint64]uint64{}
	for _, e := range events {
		if e.Ph != "X" {
			continue
		}
		if e.Ts < end[e.Tid] {
			t.Errorf("a slice of thread %d starts at %d, before %d", e.Tid, e.Ts, end[e.Tid])
		}
		end[e.Tid] = e.Ts + e.Dur
	}
}

func readBack(t *testing.T, text []byte) *components.Module {
	t.Helper()
	src, err := format.FromBytes("trace.json", text)
	if err != nil {
		t.Fatal(err)
	}
	if !Importer.Sniff(src.Head()) {
		t.Error("our own trace is not recognised")
	}
	m, err := Importer.Module(context.Background(), src, format.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Write, read, write again: the same bytes.
func TestRoundTrip(t *testing.T) {
	text := write(t, sample(), components.RunA, false)
	m := readBack(t, text)
	if m.Instr.Len() != 5 || m.Edges.Preds.Len() != 4 {
		t.Fatalf("%d instructions and %d edges came back", m.Instr.Len(), m.Edges.Preds.Len())
	}
	w := &components.World{Module: m, Events: components.NewEvents()}
	for i := range m.Instr.Len() {
		m.Instr.Latency.Append(m.Instr.MeasuredDur.At(i))
		end := m.Instr.MeasuredStart.At(i) + uint64(m.Instr.MeasuredDur.At(i))
		w.Events.Arrive.Append([2]uint64{end, end})
	}
	if again := write(t, w, components.RunA, false); !bytes.Equal(again, text) {
		t.Errorf("written again it differs:\n%s\nfirst:\n%s", again, text)
	}
}

// A trace of the documented compiler has no producer ids: lane and end time
// tell the producer.
func TestReadForeignTrace(t *testing.T) {
	const text = `[
{"name":"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"0. Unassigned"}},
{"name":"thread_name","ph":"M","pid":0,"tid":5,"args":{"name":"6. DVE"}}
,{"name":"I-0","ph":"X","ts":0,"dur":1656,"pid":0,"tid":4,"args":{"bir_id":"17","bir_name":"I-0","opcode":"DMACopy","deps":[]}}
,{"name":"I-1","ph":"X","ts":1656,"dur":585,"pid":0,"tid":5,"args":{"bir_id":18,"opcode":"TensorScalar","extra":null,"deps":[{"engine":"Engine4","edge_type":"Flow","end_time":1656},{"edge_type":"Anti","end_time":7}]}}
]`
	m := readBack(t, []byte(text))
	if m.Instr.Len() != 2 || m.Edges.Preds.Len() != 1 || m.Instr.Ref.At(0) != 17 {
		t.Errorf("%d instructions, %d edges, first id %d", m.Instr.Len(), m.Edges.Preds.Len(), m.Instr.Ref.At(0))
	}
	if !slices.ContainsFunc(m.Notes, func(n components.Note) bool { return n.Code == "unknown-producer" && n.Count == 1 }) {
		t.Errorf("notes %v", m.Notes)
	}
}

func TestReadErrors(t *testing.T) {
	ev := func(s string) string {
		return `[{"name":"thread_name","ph":"M","tid":0,"args":{"name":"0. Unassigned"}},` + s + `]`
	}
	for _, c := range []struct{ in, want string }{
		{`[`, "byte 1"},
		{`[]`, "no complete events"},
		{ev(`{"ph":"X","name":"a","ts":-1,"dur":1,"tid":1,"args":{"bir_id":1}}`), "ts"},
		{ev(`{"ph":"X","name":"a","ts":1.5,"dur":1,"tid":1,"args":{"bir_id":1}}`), "ts"},
		{ev(`{"ph":"X","name":"a","ts":1,"tid":1,"args":{"bir_id":1}}`), "dur is missing"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":NaN,"tid":1,"args":{"bir_id":1}}`), "dur"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":99999,"args":{"bir_id":1}}`), "tid"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":50,"args":{"bir_id":1}}`), "thread 50 has no name"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":1,"args":{}}`), "bir_id"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":1,"args":{"bir_id":1,"deps":[{"bir_id":9,"edge_type":"Flow"}]}}`), "bir_id 9"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":1,"args":{"bir_id":1,"deps":[{"bir_id":1,"edge_type":"Magic"}]}}`), "Magic"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":1,"args":{"bir_id":1}},{"ph":"X","name":"b","ts":1,"dur":1,"tid":1,"args":{"bir_id":1}}`), "was at byte"},
		{ev(`{"ph":"X","name":"a","ts":1,"dur":1,"tid":1,"args":{"bir_id":1,"deps":[{"bir_id":2,"edge_type":"Flow"}]}},{"ph":"X","name":"b","ts":1,"dur":1,"tid":1,"args":{"bir_id":2,"deps":[{"bir_id":1,"edge_type":"Flow"}]}}`), "depends on itself"},
		{ev(`7`), "an event is an object"},
	} {
		src, err := format.FromBytes("trace.json", []byte(c.in))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Importer.Module(context.Background(), src, format.Options{Jobs: 1})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "trace.json") {
			t.Errorf("%.120s: error %v, want %q", c.in, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := Write(context.Background(), &b, sample(), 0, components.RunA, false, 1); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`[{"name":"thread_name","ph":"M","tid":0,"args":{"name":"0. Unassigned"}},{"ph":"X","ts":1,"dur":1,"tid":1,"args":{"bir_id":1}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		src, err := format.FromBytes("f", text)
		if err != nil {
			return
		}
		m, err := Importer.Module(context.Background(), src, format.Options{Jobs: 1})
		if err == nil && m.Check() != nil {
			t.Error("a module that does not pass its own check came back")
		}
	})
}
