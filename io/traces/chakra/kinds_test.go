package chakra

import (
	"strings"
	"testing"

	"perfsim/components"
)

// Of a cycle of control dependencies one is left out: a serial chain of 5, 6
// and 7 µs is left.
func TestOneEdgeOfACycle(t *testing.T) {
	m, err := readText(`{"workload_graph":[
{"Id":1,"Name":"a","NodeType":4,"runtime":5,"ctrlDeps":[3],"is_cpu_op":true},
{"Id":2,"Name":"b","NodeType":4,"runtime":6,"ctrlDeps":[1],"is_cpu_op":false},
{"Id":3,"Name":"c","NodeType":4,"runtime":7,"ctrlDeps":[2],"is_cpu_op":true}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := list(m), "cpu | COMP a | 5000 |\ncompute | COMP b | 6000 | O:a\ncpu | COMP c | 7000 | O:b\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if c := m.Edges.Counts()[components.Ordered]; c != 2 {
		t.Errorf("%d control dependencies, want 2", c)
	}
}

// An all-reduce sends twice what a reduce-scatter sends, a barrier nothing.
func TestSentBytes(t *testing.T) {
	for kind, want := range map[uint64]uint64{0: 2000, 2: 1000, 6: 1000, 7: 1000, 9: 0, 99: 1000} {
		if got := numbered(kind).sent(1000); got != want {
			t.Errorf("kind %d: %d bytes, want %d", kind, got, want)
		}
	}
}

// Without durations the headline says that the latency means nothing.
func TestNoDurations(t *testing.T) {
	m, err := readText(`{"workload_graph":[{"Id":1,"Name":"a","NodeType":4},{"Id":2,"Name":"b","NodeType":4,"data_deps":[1]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Notes[0]; !n.Headline() || !strings.HasPrefix(n.Text, "no node has a duration") {
		t.Errorf("note %v", n)
	}
}

// What cannot be placed is left out and named, the rest stays.
func TestLeftOut(t *testing.T) {
	head := `{"workload_graph":[{"Id":1,"Name":"a","NodeType":4,"runtime":1},`
	self := message(message(nil, text(1, "v")), number64(1, 4), number64(3, 4), number64(5, 4))
	for _, c := range []struct{ name, in, list, note string }{
		{"a cycle of data", head + `{"Id":2,"Name":"b","NodeType":4,"runtime":2,"data_deps":[3]},{"Id":3,"Name":"c","NodeType":4,"runtime":3,"data_deps":[2]}]}`,
			"compute | COMP a | 1000 |\ncompute | COMP b | 2000 |\ncompute | COMP c | 3000 | F:b\n",
			"data dependencies that close a cycle: left out; the first: node 2 (byte 64) on node 3 (byte 125) of the dependency cycle: node 3 (byte 125) -> node 2 (byte 64) -> node 3"},
		{"a pair joined twice", head + `{"Id":2,"Name":"b","NodeType":4,"runtime":2,"data_deps":[1,3],"ctrl_deps":[3]},{"Id":3,"Name":"c","NodeType":4,"runtime":3,"data_deps":[2],"ctrl_deps":[2]}]}`,
			"compute | COMP a | 1000 |\ncompute | COMP b | 2000 | F:a\ncompute | COMP c | 3000 | F:b\n",
			"data dependencies that close a cycle: left out; the first: node 2 (byte 64) on node 3 (byte 143) of the dependency cycle: node 3 (byte 143) -> node 2 (byte 64) -> node 3"},
		{"an id twice", head + `{"Id":1,"Name":"b","NodeType":4,"runtime":2},{"Id":2,"Name":"c","NodeType":4,"runtime":3,"data_deps":[1]}]}`,
			"compute | COMP a | 1000 |\ncompute | COMP c | 3000 | F:a\n",
			"nodes with an id that an earlier one has: left out; the first: node id 1 at byte 64 was at byte 19 already"},
		{"an element that is no node", head + `{"Name":"b"},{"Id":2,"Name":"c","NodeType":4,"runtime":3}]}`,
			"compute | COMP a | 1000 |\ncompute | COMP c | 3000 |\n", "nodes that could not be read: left out; the first: byte 64: Id is missing"},
		{"a node that depends on itself", string(self), "compute | COMP I-0 | 1 |\n", "data dependencies of nodes on themselves: left out; the first: node 4 at byte 4"},
	} {
		m, err := readText(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		found := false
		for _, n := range m.Notes {
			found = found || n.Text == c.note
		}
		if got := list(m); got != c.list || !found {
			t.Errorf("%s: got\n%swant\n%s%v\nwant %s", c.name, got, c.list, m.Notes, c.note)
		}
	}
}

// The kind of a collective may be a number, a name, or stand in the name of the
// operator or the kernel.
func TestCollectiveKinds(t *testing.T) {
	for in, want := range map[string]collective{
		"ALL_REDUCE": allReduce, "allreduce": allReduce, "nccl:_all_gather_base": allGather, "ncclDevKernel_ReduceScatter_Sum_f32": reduceScatter,
		"REDUCE_SCATTER_BLOCK": reduceScatterBlock, "Reduce": reduce, "c10d::alltoall_base_": allToAll, "broadcast": broadcast, "barrier": barrier,
		"gather": gather, "send": 0,
	} {
		if got := collectiveOf(in); got != want {
			t.Errorf("%s: %v, want %v", in, got, want)
		}
	}
	m, err := readText(`{"workload_graph":[{"Id":1,"Name":"x","NodeType":7,"comm_size":1000},{"Id":2,"Name":"x","NodeType":7,"comm_type":"ALL_REDUCE","comm_size":1000},{"Id":3,"Name":"ncclKernel_AllReduce","NodeType":7,"comm_size":1000},{"Id":4,"Name":"y","NodeType":7,"comm_type":42,"comm_size":1000}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint64{1000, 2000, 2000, 1000} {
		if got := m.Instr.DMABytes.At(i); uint64(got) != want {
			t.Errorf("node %d: %d bytes, want %d", i+1, got, want)
		}
	}
	if n := m.Notes[0]; n.Code != "unknown-collective" || n.Count != 2 {
		t.Errorf("note %v", n)
	}
}
