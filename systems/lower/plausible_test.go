package lower_test

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
	"perfsim/systems/lower"
	"perfsim/systems/place"
)

func loadMachine(t testing.TB, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// predict places a module and returns its latency in ns, both runs.
func predict(t testing.TB, m *components.Module, mach *machine.Machine, model string) [2]uint64 {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Events: components.NewEvents(), Config: components.Config{Model: model, Jobs: 2, Loops: "trips"}}
	ctx := context.Background()
	if err := cost.Fill(ctx, w); err != nil {
		t.Fatal(err)
	}
	run := place.Run
	if model == cost.Calibrated {
		run = calibrated.Run
	}
	if err := run(ctx, w); err != nil {
		t.Fatal(err)
	}
	return [2]uint64{w.Latency(components.RunA), w.Latency(components.RunB)}
}

// matmul is the graph of one product of two parameters.
func matmul(m, k, n int64, e components.ElemType) *components.Graph {
	g := components.NewGraph("matmul")
	c := g.BeginComputation("main")
	a := g.AddParameter("a", g.Array(e, m, k), 0)
	b := g.AddParameter("b", g.Array(e, k, n), 1)
	d := g.AddOp(components.OpDot, "dot", g.Array(e, m, n), a, b)
	g.SetDot(d, components.DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
	g.EndComputation(d)
	g.Entry = c
	return g
}

func lowered(t testing.TB, g *components.Graph, mach *machine.Machine, opt lower.Options) *lower.Result {
	t.Helper()
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	res, err := lower.Lower(context.Background(), g, mach, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Report.Conserved(); err != nil {
		t.Fatal(err)
	}
	return res
}

// The table of docs/lowering.md.
func TestPlausible(t *testing.T) {
	for _, c := range []struct {
		name, mach string
		g          *components.Graph
		measured   float64 // µs
	}{
		{"4096³ bf16", "trn2", matmul(4096, 4096, 4096, components.ElemBF16), 1801},
		{"4096×8192×8192 bf16", "trn1", matmul(4096, 8192, 8192, components.ElemBF16), 6970},
	} {
		mach := loadMachine(t, c.mach)
		for _, compress := range []bool{true, false} {
			opt := lower.DefaultOptions()
			opt.Compress = compress
			res := lowered(t, c.g, mach, opt)
			for _, model := range []string{cost.Reference, cost.Calibrated} {
				l := predict(t, res.Module, mach, model)
				t.Logf("%s %s compress %v %s: %.1f µs, without anti %.1f, measured %.1f, ratio %.2f, %d instructions, loads %d MB", c.name, c.mach, compress, model,
					float64(l[0])/1e3, float64(l[1])/1e3, c.measured, float64(l[0])/1e3/c.measured, res.Module.Instr.Len(), res.Report.LoadBytes>>20)
			}
		}
	}
}
