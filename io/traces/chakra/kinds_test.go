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
		if got := sentBytes(kind, 1000); got != want {
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
