package deps

import (
	"context"
	"maps"
	"os"
	"testing"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
)

// The dependencies of the example modules, which their author worked out
// independently, come out of their access patterns.
func TestExamples(t *testing.T) {
	for _, name := range []string{"tiled_matmul", "attention", "loop", "collective"} {
		b, err := os.ReadFile("../../examples/" + name + ".bir.json")
		if err != nil {
			t.Fatal(err)
		}
		src, err := format.FromBytes(name, b)
		if err != nil {
			t.Fatal(err)
		}
		m, err := birjson.Read(context.Background(), src, format.Options{Jobs: 1})
		if err != nil {
			t.Fatal(err)
		}
		want, wantCarried := edgesOf(m)
		rebuild(t, m, Default())
		got, carried := edgesOf(m)
		// The examples leave out what follows from other edges, and order
		// matmuls on all readers; the documented rule keeps the nearest.
		maps.DeleteFunc(want, func(e [2]uint32, k components.EdgeKind) bool {
			return m.Instr.Opcode.At(int(e[0])).IsMatmul() && k != components.Flow && got[e] == 0
		})
		if d := diffEdges(got, want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := diffEdges(carried, wantCarried); d != "" {
			t.Errorf("%s: carried: %s", name, d)
		}
		t.Logf("%s: %d edges, %d carried", name, len(got), len(carried))
	}
}
