package lower_test

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/opgraph"
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
func predict(t testing.TB, m *components.Module, mach *machine.Machine, model components.Model) [2]uint64 {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Events: components.NewEvents(), Config: components.Config{Model: model, Jobs: 2, Loops: components.Trips}}
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

// lowered lowers a graph and holds the result to what the graph asks for.
func lowered(t testing.TB, g *opgraph.Graph, mach *machine.Machine, opt lower.Options) *lower.Result {
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

// matmul is the graph of one product of two parameters.
func matmul(m, k, n int64, e opgraph.ElemType) *opgraph.Graph {
	g := opgraph.NewGraph("matmul")
	g.Entry = g.BeginComputation("main")
	a := g.AddParameter("a", g.Array(e, m, k), 0)
	b := g.AddParameter("b", g.Array(e, k, n), 1)
	d := g.AddOp(opgraph.OpDot, "dot", g.Array(e, m, n), a, b)
	g.SetDot(d, opgraph.DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
	g.EndComputation(d)
	return g
}

// layer is a product followed by GELU in its tanh form.
func layer(m, k, n int64, e opgraph.ElemType) *opgraph.Graph {
	g := opgraph.NewGraph("layer")
	s := g.Array(e, m, n)
	g.Entry = g.BeginComputation("main")
	a := g.AddParameter("a", g.Array(e, m, k), 0)
	b := g.AddParameter("b", g.Array(e, k, n), 1)
	d := g.AddOp(opgraph.OpDot, "dot", s, a, b)
	g.SetDot(d, opgraph.DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
	c := g.AddOp(opgraph.OpConstant, "c", g.Array(e))
	g.SetFloat(c, 0.044715)
	cs := g.AddOp(opgraph.OpBroadcast, "cs", s, c)
	x2 := g.AddOp(opgraph.OpMultiply, "x2", s, d, d)
	x3 := g.AddOp(opgraph.OpMultiply, "x3", s, x2, d)
	u := g.AddOp(opgraph.OpMultiply, "u", s, x3, cs)
	v := g.AddOp(opgraph.OpAdd, "v", s, u, d)
	th := g.AddOp(opgraph.OpTanh, "th", s, v)
	w := g.AddOp(opgraph.OpAdd, "w", s, th, cs)
	y := g.AddOp(opgraph.OpMultiply, "y", s, w, d)
	g.EndComputation(y)
	return g
}

// attention is softmax(q·kᵀ)·v of one head.
func attention(s, d int64, e opgraph.ElemType) *opgraph.Graph {
	g := opgraph.NewGraph("attention")
	row, sq, one := g.Array(e, s, d), g.Array(e, s, s), g.Array(e, s)
	scalar := g.Array(e)
	fold := func(name string, k opgraph.OpKind) opgraph.CompID {
		c := g.BeginComputation(name)
		x, y := g.AddParameter(name+".x", scalar, 0), g.AddParameter(name+".y", scalar, 1)
		g.EndComputation(g.AddOp(k, name+".r", scalar, x, y))
		return c
	}
	mx, ad := fold("max", opgraph.OpMaximum), fold("add", opgraph.OpAdd)
	g.Entry = g.BeginComputation("main")
	q, k, v := g.AddParameter("q", row, 0), g.AddParameter("k", row, 1), g.AddParameter("v", row, 2)
	sc := g.AddOp(opgraph.OpDot, "scores", sq, q, k)
	g.SetDot(sc, opgraph.DotDims{LHSContract: []int64{1}, RHSContract: []int64{1}})
	z := g.AddOp(opgraph.OpConstant, "z", scalar)
	reduce := func(name string, x opgraph.OpID, c opgraph.CompID) opgraph.OpID {
		r := g.AddOp(opgraph.OpReduce, name, one, x, z)
		g.SetInts(r, opgraph.AttrDimensions, 1)
		g.AddCall(r, opgraph.RoleToApply, c)
		b := g.AddOp(opgraph.OpBroadcast, name+".b", sq, r)
		g.SetInts(b, opgraph.AttrDimensions, 0)
		return b
	}
	sub := g.AddOp(opgraph.OpSubtract, "sub", sq, sc, reduce("rowmax", sc, mx))
	ex := g.AddOp(opgraph.OpExp, "exp", sq, sub)
	p := g.AddOp(opgraph.OpDivide, "p", sq, ex, reduce("rowsum", ex, ad))
	o := g.AddOp(opgraph.OpDot, "out", row, p, v)
	g.SetDot(o, opgraph.DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
	g.EndComputation(o)
	return g
}

// Both models predict products of a whole machine near what hand-written
// kernels take.
func TestPlausible(t *testing.T) {
	const bf16, f32 = opgraph.ElemBF16, opgraph.ElemF32
	for _, c := range []struct {
		name, mach string
		g          *opgraph.Graph
		measured   float64 // µs
	}{
		{"matmul 4096×4096×4096 bf16", "trn2", matmul(4096, 4096, 4096, bf16), 1801},
		{"matmul 4096×8192×8192 bf16", "trn1", matmul(4096, 8192, 8192, bf16), 6970},
	} {
		mach := loadMachine(t, c.mach)
		opt := lower.DefaultOptions()
		opt.Compress = false
		res := lowered(t, c.g, mach, opt)
		ref, cal := predict(t, res.Module, mach, cost.Reference), predict(t, res.Module, mach, cost.Calibrated)
		t.Logf("| %s | %s | %.1f | %.1f | %.2f | %.1f | %.2f |", c.name, c.mach, c.measured, float64(ref[0])/1e3, float64(ref[0])/1e3/c.measured, float64(cal[0])/1e3, float64(cal[0])/1e3/c.measured)
		if r := float64(cal[0]) / 1e3 / c.measured; r < 0.8 || r > 1.25 {
			t.Errorf("%s: %.1f µs predicted, %.1f measured", c.name, float64(cal[0])/1e3, c.measured)
		}
	}
}

// Keeping long tile loops as loops changes the prediction little.
func TestCompressionError(t *testing.T) {
	for _, c := range []struct {
		name string
		g    *opgraph.Graph
	}{
		{"matmul 4096×4096×4096", matmul(4096, 4096, 4096, opgraph.ElemBF16)},
		{"layer 2048×2048×8192", layer(2048, 2048, 8192, opgraph.ElemF32)},
		{"attention 4096", attention(4096, 128, opgraph.ElemBF16)},
	} {
		mach := loadMachine(t, "trn2")
		for _, model := range []components.Model{cost.Reference, cost.Calibrated} {
			opt := lower.DefaultOptions()
			kept := lowered(t, c.g, mach, opt)
			a := predict(t, kept.Module, mach, model)[0]
			opt.Compress = false
			out := lowered(t, c.g, mach, opt)
			b := predict(t, out.Module, mach, model)[0]
			off := 100 * (float64(a) - float64(b)) / float64(b)
			t.Logf("| %s | %s | %d | %.1f | %d | %.1f | %+.1f %% |", c.name, model, out.Module.Instr.Len(), float64(b)/1e3, kept.Module.Instr.Len(), float64(a)/1e3, off)
			if off < -15 || off > 15 {
				t.Errorf("%s, %s: %.1f %% off", c.name, model, off)
			}
			if kept.Report.Executed != out.Report.Executed {
				t.Errorf("%s: %d instructions executed with loops, %d without", c.name, kept.Report.Executed, out.Report.Executed)
			}
		}
	}
}
