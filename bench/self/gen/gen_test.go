package gen

import (
	"context"
	"math"
	"testing"

	"perfsim/components"
	"perfsim/ecs"
)

func module(t testing.TB, o Options) *components.Module {
	t.Helper()
	m, err := Module(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestShares(t *testing.T) {
	o := Default(400_000)
	m := module(t, o)
	n := float64(m.Edges.Preds.Len())
	if got := n / 400_000; math.Abs(got-o.FanIn) > 0.02 {
		t.Errorf("%.3f dependencies each, not %.1f", got, o.FanIn)
	}
	by := m.Edges.Counts()
	if by != m.Edges.Declared {
		t.Errorf("declared %v, counted %v", m.Edges.Declared, by)
	}
	for k, want := range map[components.EdgeKind]float64{components.Anti: o.Anti, components.Output: o.Output, components.Ordered: o.Ordered} {
		if got := float64(by[k]) / n; math.Abs(got-want) > 0.005 {
			t.Errorf("%s: share %.4f, not %.2f", k, got, want)
		}
	}
	near, sum := 0, 0.0
	far := 0
	for i := range m.Instr.Len() {
		for _, w := range m.Edges.Preds.Row(i) {
			if d := i - int(w&ecs.TargetMask); d < 500 {
				near++
				sum += float64(d)
			} else {
				far++
			}
		}
	}
	if got := sum / float64(near); math.Abs(got-o.Locality) > 0.15*o.Locality {
		t.Errorf("near producers are %.1f rows away, not %.0f", got, o.Locality)
	}
	if got := float64(far) / n; math.Abs(got-o.Far) > 0.002 {
		t.Errorf("share of far producers %.4f, not %.2f", got, o.Far)
	}
	engines := map[components.Engine]float64{}
	for _, e := range m.Instr.Engine.Slice() {
		engines[e]++
	}
	if got := engines[components.PE] / 400_000; math.Abs(got-0.40) > 0.005 {
		t.Errorf("share of the tensor engine %.4f", got)
	}
}

// The module does not depend on the number of goroutines, but on the seed.
func TestSameOnAnyCores(t *testing.T) {
	o := Default(200_000)
	o.Loops, o.Blocks, o.Nested = 5, 3, true
	a := module(t, o)
	o.Jobs = 3
	b := module(t, o)
	for i, c := range a.Columns() {
		if string(c.Raw()) != string(b.Columns()[i].Raw()) {
			t.Errorf("column %s differs", c.Name())
		}
	}
	o.Seed++
	c := module(t, o)
	if string(a.Edges.Preds.Columns()[1].Raw()) == string(c.Edges.Preds.Columns()[1].Raw()) {
		t.Error("another seed gives the same dependencies")
	}
}

func TestLoops(t *testing.T) {
	o := Default(1000)
	o.Blocks, o.Loops, o.Body, o.Trips, o.Nested = 2, 3, 10, 7, true
	m := module(t, o)
	if m.Blocks.Len() != 2*(1+3*2) {
		t.Fatalf("%d blocks", m.Blocks.Len())
	}
	loops := 0
	for _, f := range m.Instr.Flags.Slice() {
		if f&components.FlagLoop != 0 {
			loops++
		}
	}
	if loops != 12 {
		t.Errorf("%d loops, not 12", loops)
	}
	if m.Blocks.Trip.At(1) != 7 || m.Blocks.Parent.At(1) == 0 {
		t.Errorf("body: %d trips of the loop at %d", m.Blocks.Trip.At(1), m.Blocks.Parent.At(1))
	}
}

func TestBadOptions(t *testing.T) {
	for name, change := range map[string]func(o *Options){
		"none": func(o *Options) { o.Instructions = 0 }, "too many": func(o *Options) { o.Instructions = 1 << 31 },
		"share": func(o *Options) { o.Anti = 1.5 }, "shares": func(o *Options) { o.Anti, o.Output = 0.7, 0.7 }, "nan": func(o *Options) { o.Far = math.NaN() },
		"mix": func(o *Options) { o.Mix = Mix{} }, "negative": func(o *Options) { o.Mix.PE = -1 }, "fan-in": func(o *Options) { o.FanIn = 1e9 },
		"loops": func(o *Options) { o.Loops = 100 }, "blocks": func(o *Options) { o.Blocks = 2000 },
	} {
		o := Default(1000)
		change(&o)
		if _, err := Module(context.Background(), o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestOne(t *testing.T) {
	if m := module(t, Default(1)); m.Instr.Len() != 1 || m.Edges.Preds.Len() != 0 {
		t.Errorf("%d instructions, %d edges", m.Instr.Len(), m.Edges.Preds.Len())
	}
	o := Default(5000)
	o.Operands = true
	m := module(t, o)
	if m.Operands.Len() < 10_000 || m.Edges.Preds.Len() != 0 {
		t.Errorf("%d operands, %d edges", m.Operands.Len(), m.Edges.Preds.Len())
	}
}

func BenchmarkModule(b *testing.B) {
	const n = 2_000_000
	for _, jobs := range []int{1, 2} {
		b.Run([]string{"", "one", "two"}[jobs], func(b *testing.B) {
			o := Default(n)
			o.Jobs = jobs
			for b.Loop() {
				if _, err := Module(b.Context(), o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Minstr/s")
		})
	}
}
