package folded

import (
	"bytes"
	"context"
	"testing"

	"perfsim/components"
)

// Three instructions of DVE: two of one scope, whose parts become frames, and
// one that has a source line only. The second waits 10 ns, which is no busy
// time; the function runs three times.
func TestWrite(t *testing.T) {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	f := m.Functions.Add(0, 0)
	m.Functions.Runs.Set(f, 3)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, 3)
	m.Functions.EndBlock.Set(f, 1)
	m.Instr.Grow(3)
	m.Instr.Scope.Resize(3)
	m.Instr.Source.Resize(3)
	w := &components.World{Module: m, Events: components.NewEvents()}
	for i, end := range []uint64{20, 60, 100} {
		m.Instr.Lane.Set(i, components.LaneDVE)
		m.Instr.Opcode.Set(i, components.OpcodeTensorCopy)
		d := []uint32{20, 30, 40}[i]
		m.Instr.Issue.Append(d)
		m.Instr.Latency.Append(d)
		w.Events.Arrive.Append([2]uint64{end, end})
	}
	m.Instr.Scope.Set(0, m.Symbols.InternString("layer;0/f(a/b)/add"))
	m.Instr.Scope.Set(1, m.Symbols.InternString("layer;0/f(a/b)/add"))
	m.Instr.Source.Set(2, m.Symbols.InternString("dir/k.py:3"))
	w.Blocks = []components.BlockResult{{Latency: [2]uint64{100, 100}}}
	tl := components.NewTimeline(w, -1, components.Process{Name: "predicted"})
	tl.Executions = components.NewExecutions(m, components.Once)
	var out bytes.Buffer
	if err := Write(context.Background(), &out, tl); err != nil {
		t.Fatal(err)
	}
	want := "predicted;DVE;dir/k.py:3;TensorCopy 120\npredicted;DVE;layer:0;f(a/b);add;TensorCopy 150\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
