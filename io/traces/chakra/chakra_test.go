package chakra

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/readtest"
)

func readText(text string) (*components.Module, error) { return readtest.Text(read, "x", text) }

// list writes the instructions: lane, opcode, name, duration, and producers
// by name with the first letter of the kind.
func list(m *components.Module) string {
	var b strings.Builder
	for i := range m.Instr.Len() {
		fmt.Fprintf(&b, "%s | %s %s | %d |", m.LaneName(m.Instr.Lane.At(i)), m.OpcodeName(m.Instr.Opcode.At(i)), m.InstrName(components.InstrID(i)), m.Instr.MeasuredDur.At(i))
		for _, w := range m.Edges.Preds.Row(i) {
			fmt.Fprintf(&b, " %c:%s", components.KindOfClass(uint8(w >> ecs.ClassShift)).String()[0], m.InstrName(components.InstrID(w&ecs.TargetMask)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// message appends fields to a length-delimited message.
func message(to []byte, fields ...[]byte) []byte {
	var b []byte
	for _, f := range fields {
		b = append(b, f...)
	}
	return append(protowire.AppendVarint(to, uint64(len(b))), b...)
}

func number64(num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.VarintType), v)
}

func text(num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), s)
}

func attr(name string, value []byte) []byte {
	return text(10, string(append(text(1, name), value...)))
}

// sample is a trace with what real ones have: unsorted ids, a forward
// reference, packed and single ids, numbers of several types, an attribute
// without a value, a missing control dependency.
func sample() []byte {
	b := message(nil, text(1, "0.0.4"), text(2, string(append(text(1, "schema"), text(29, "s")...))))
	packed := protowire.AppendVarint(protowire.AppendVarint(nil, 1), 3)
	b = message(b, number64(1, 7), text(2, "aten::add(1)"), number64(3, 4), text(5, string(packed)), number64(4, 99), number64(7, 5), attr("is_cpu_op", number64(7, 1)))
	b = message(b, number64(1, 3), text(2, "send"), number64(3, 5), number64(5, 1), attr("comm_size", number64(9, 1000)), attr("outputs", nil))
	b = message(b, number64(1, 1), text(2, "mm"), number64(3, 4), attr("op_type", text(29, "M")), attr("is_cpu_op", number64(27, 0)))
	b = message(b, text(2, "coll"), number64(3, 7), number64(5, 7), number64(4, 3), attr("comm_type", number64(9, 5)), attr("comm_size", number64(13, 64)), number64(7, 2))
	return b
}

func TestWire(t *testing.T) {
	m, err := readText(string(sample()))
	if err != nil {
		t.Fatal(err)
	}
	const want = `compute | COMP M mm | 1 |
comm | CollectiveSend send | 1 | F:mm
cpu | aten::add aten::add(1) | 5000 | F:mm F:send
comm | CollectiveCompute coll | 2000 | F:aten::add(1) O:send
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if readtest.Codes(m) != "unresolved-control-dependency=1 no-durations=1 estimated-communication=1" {
		t.Errorf("notes %v", m.Notes)
	}
	if !strings.HasSuffix(m.Notes[0].Text, "the first: node 7 at byte 22 depends on node 99") {
		t.Errorf("note %q", m.Notes[0].Text)
	}
	if m.Instr.DMABytes.At(1) != 1000 || !m.Instr.Flags.At(1).Has(components.FlagEstimated|components.FlagCollective) || m.Instr.Flags.At(3).Has(components.FlagEstimated) {
		t.Error("bytes or flags of the communications")
	}
	if m.Symbols.String(m.Instr.HLO.At(3)) != "BROADCAST" || m.HasMeasurement() || !m.HasDurations() {
		t.Error("collective's kind, or measured times")
	}
	if m.Attribute("trace.version") != "0.0.4" || m.Attribute("trace.schema") != "s" {
		t.Errorf("attributes %v", m.Attributes)
	}
}

func TestFeederJSON(t *testing.T) {
	m, err := readText(`{"workload_graph":[
{"Id":2,"Name":"a::b(1)","NodeType":4,"runtime":3,"data_deps":[1],"ctrlDeps":[1],"is_cpu_op":true},
{"Id":1,"Name":"k","NodeType":4,"runtime":null,"data_deps":[],"is_cpu_op":false}]}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = "compute | COMP k | 1 |\ncpu | a::b a::b(1) | 3000 | F:k\n"
	if got := list(m); got != want || readtest.Codes(m) != "no-durations=1" {
		t.Errorf("got\n%s%s\nwant\n%s", got, readtest.Codes(m), want)
	}
}

// By hand: b reads what a made; c changes it in place after b read it; v is a
// view of it; d reads the view, so it depends on v and on c; p calls a
// communication that changes the storage, after v and d read it.
func TestHostTrace(t *testing.T) {
	op := func(id, parent int, name, in, out string) string {
		return fmt.Sprintf(`{"id":%d,"name":%q,"ctrl_deps":%d,"inputs":{"values":[%s]},"outputs":{"values":[%s]},"attrs":[{"name":"tid","value":4}]}`, id, name, parent, in, out)
	}
	const x, view = `[10,20,0,8,4,"cpu"]`, `[11,20,0,4,4,"cpu"]`
	m, err := readText(`{"schema":"1.1.1","nodes":[` + strings.Join([]string{
		op(1, 1, "[pytorch|x|process]", "", ""), op(3, 1, "b", "[1,["+x+"]]", ""), op(2, 1, "a", `"<None>"`, x), op(4, 1, "c", x+",2", x),
		op(5, 1, "v", x, view), op(6, 1, "d", view, ""), op(7, 1, "p", view, ""), op(8, 7, "nccl:all_reduce", x, x)}, ",") + `],"pid":5}`)
	if err != nil {
		t.Fatal(err)
	}
	const want = `thread 4 | thread [pytorch|x|process] | 0 |
thread 4 | a a | 1 | O:[pytorch|x|process]
thread 4 | b b | 1 | F:a O:[pytorch|x|process]
thread 4 | c c | 1 | F:a O:[pytorch|x|process] A:b
thread 4 | v v | 0 | F:c O:[pytorch|x|process]
thread 4 | d d | 1 | F:c F:v O:[pytorch|x|process]
thread 4 | p p | 0 | O:[pytorch|x|process]
comm | CollectiveCompute nccl:all_reduce | 1 | F:c O:p A:v A:d
`
	if got := list(m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if last := m.Instr.Len() - 1; m.Instr.DMABytes.At(last) != 64 { // an all-reduce sends its 32 bytes twice
		t.Errorf("the collective has %d bytes", m.Instr.DMABytes.At(last))
	}
	if m.Attribute("trace.schema") != "1.1.1" || m.Attribute("trace.pid") != "5" {
		t.Errorf("attributes %v", m.Attributes)
	}
}

// Lists of tensors as long as an element may be take no more than their length.
func TestManyTensors(t *testing.T) {
	const n = 100_000
	list := func(id, storage int) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `[%d,%d,0,1,1,"c"]`, id+i, storage+i)
		}
		return b.String()
	}
	// The second node reads what the first made, and puts out views of it.
	in := `{"schema":"1","nodes":[{"id":1,"name":"a","parent":1,"outputs":[` + list(0, 0) + `]},{"id":2,"name":"b","parent":2,"inputs":[` + list(0, 0) +
		`],"outputs":[` + list(n, 0) + `]}]}`
	start := time.Now()
	m, err := readText(in)
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Edges.Counts(); c[components.Flow] != 1 || c[components.Anti]+c[components.Output] != 0 {
		t.Errorf("edges %v", c)
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

// A control dependency that closes a cycle is left out before one of data.
func TestCycle(t *testing.T) {
	m, err := readText(`{"workload_graph":[{"Id":1,"Name":"a","NodeType":4,"ctrl_deps":[2]},{"Id":2,"Name":"b","NodeType":4,"data_deps":[1]},{"Id":3,"Name":"c","NodeType":4,"ctrl_deps":[2]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Edges.Counts(); got[components.Flow] != 1 || got[components.Ordered] != 1 || !strings.Contains(readtest.Codes(m), "control-cycle=1") {
		t.Errorf("edges %v, notes %v", got, m.Notes)
	}
}

func TestBad(t *testing.T) {
	good := sample()
	wire := func(fields ...[]byte) string { return string(message(message(nil, text(1, "v")), fields...)) }
	for _, c := range []struct{ in, err string }{
		{"\x03\x0a\x01v", "x: the trace has no nodes"},
		{string(good[:len(good)-1]), "x: byte 144: message 4 of 44 bytes: unexpected EOF"},
		{string(good) + "\xff", "x: byte 189: the length of message 5: unexpected EOF"},
		{string(good) + "\xff\xff\xff\xff\x7f", "x: byte 189: message 5 has 34359738367 bytes"},
		{wire(number64(1, 4), number64(3, 9)), "x: byte 4: message 1: node 4 has type 9"},
		{wire(number64(1, 4), number64(3, 4), number64(7, 1<<62)), "x: byte 4: message 1: node 4 lasts"},
		{wire(number64(1, 4), text(5, "\xff")), "x: byte 4: message 1: broken protobuf"},
		{`{"workload_graph":[{"Name":"a"}]}`, "x: byte 19: Id is missing"},
		{`{"workload_graph":[{"Id":1.5}]}`, "x: byte 19: Id: 1.5 is not a whole"},
		{`{"workload_graph":[{"Id":1,"data_deps":[-2]}]}`, "x: byte 19: data_deps: -2 is not"},
		{`{"workload_graph":[7]}`, "x: byte 19: a node is an object"},
		{`{"workload_graph":[]}`, "x: the trace has no nodes"},
		{`{"workload_graph":[{"Id":1}`, "x: byte 27: the input ends inside the array"},
		{`{"schema":"1","nodes":[{"id":-1}]}`, "x: byte 23: id: -1 is not"},
		{`hello`, "x: neither a Chakra trace"},
	} {
		m, err := readText(c.in)
		if err == nil {
			t.Errorf("%.60q: no error, %s", c.in, readtest.Codes(m))
		} else if !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%.60q: error %v, want %s", c.in, err, c.err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(sample())
	f.Add([]byte(`{"workload_graph":[{"Id":1,"NodeType":7,"comm_type":"ALL_GATHER","data_deps":[2],"ctrl_deps":[2]},{"Id":2,"data_deps":[1]},{"Id":2},{"Id":3,"data_deps":[3]},7]}`))
	f.Add([]byte(`{"workload_graph":[{"Id":1,"Name":"a","NodeType":7,"comm_size":5,"data_deps":[2]},{"Id":2}]}`))
	f.Add([]byte(`{"schema":"1","nodes":[{"id":1,"name":"a","parent":1,"inputs":[[1,2,0,4,4,"c"]],"outputs":[[1,2,0,4,4,"c"]]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := readText(string(b))
		if err == nil && m.Instr.Len() == 0 {
			t.Error("an empty module")
		}
	})
}
