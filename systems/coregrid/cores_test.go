package coregrid

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"perfsim/bench/models"
	"perfsim/components/machine/grid"
	"perfsim/ecs/proptest"
	"perfsim/systems/floorplan"
)

func load(t testing.TB, name string) *grid.Machine {
	t.Helper()
	m, err := grid.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func model(t testing.TB, name, format, fidelity string) Model {
	t.Helper()
	m, err := NewModel(load(t, name), format, "", fidelity)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func work(t testing.TB, p models.Phase) []Op {
	t.Helper()
	ops, err := Work(p.Graph, p.WeightSet())
	if err != nil {
		t.Fatal(err)
	}
	return ops
}

// Every multiply-accumulate and operator of every model arrives on
// the grid; rectangles lie within it and do not overlap (by the analysis of
// netlists, which knows nothing of the balancer); epochs hold every operator
// once, in order; the simulation is as fast as the bottlenecks say, not
// faster than the roofline.
func TestEveryModelOnGrayskull(t *testing.T) {
	m := model(t, "grayskull", "Fp16_b", "HiFi3")
	peak, err := m.Mach.TFLOPS("Fp16_b", "HiFi3")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range models.Families() {
		for _, c := range f.Configs {
			x, err := models.Build(f.Name, c, models.Options{Batch: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range x.Phases {
				ops := work(t, p)
				var macs int64
				for i := range ops {
					macs += ops[i].MACs
				}
				if want := models.MACs(p.Graph); macs != want {
					t.Errorf("%s %s %s: %d MACs on the grid, %d in the graph", f.Name, c, p.Name, macs, want)
				}
				const inputs = 3
				plan, err := Balance(context.Background(), m, ops, inputs)
				if err != nil {
					t.Fatal(err)
				}
				next := 0
				for _, e := range plan.Epochs {
					for _, o := range e.Ops {
						if o.Op != next {
							t.Fatalf("%s %s %s: operator %d is placed where %d is next", f.Name, c, p.Name, o.Op, next)
						}
						next++
					}
				}
				if next != len(ops) {
					t.Errorf("%s %s %s: %d of %d operators placed", f.Name, c, p.Name, next, len(ops))
				}
				rep := floorplan.Analyze(plan.Netlist("n", "HiFi3"), plan.Grid())
				used := plan.CoresUsed()
				for i, e := range rep.Epochs {
					for _, chip := range e.Chips {
						if chip.Overlap > 0 || chip.OutOfGrid > 0 {
							t.Errorf("%s %s epoch %d: overlap %d, out of grid %d", f.Name, c, i, chip.Overlap, chip.OutOfGrid)
						}
					}
					if e.Cores != used[i] {
						t.Errorf("%s %s epoch %d: the analysis counts %d cores, the plan %d", f.Name, c, i, e.Cores, used[i])
					}
				}
				if len(rep.Epochs) != len(used) || math.Abs(rep.Mean-plan.Utilization()) > 1e-9 {
					t.Errorf("%s %s: %d epochs and utilization %v, the plan has %d and %v", f.Name, c, len(rep.Epochs), rep.Mean, len(used), plan.Utilization())
				}
				r, err := plan.Simulate(context.Background(), p.Name)
				if err != nil {
					t.Fatal(err)
				}
				least := 2 * float64(inputs) * float64(macs) / peak / 1e3 // ns at the peak
				if float64(r.LatencyNS) < least {
					t.Errorf("%s %s %s: %d ns, faster than the peak allows (%.0f)", f.Name, c, p.Name, r.LatencyNS, least)
				}
				bound := 0.0
				for _, e := range plan.Epochs {
					bound += e.Prologue + float64(inputs)*e.Bottleneck
				}
				if got := float64(r.LatencyNS); got < bound*0.999 {
					t.Errorf("%s %s %s: %.0f ns, below the bottlenecks' %.0f", f.Name, c, p.Name, got, bound)
				}
			}
		}
	}
}

// One tile product of 32 by 32 by 32 takes 32768 multiply-accumulates: on
// Grayskull 32 cycles a pass, 96 at HiFi3. Worked out by hand.
func TestCyclesByHand(t *testing.T) {
	m := model(t, "grayskull", "Fp16_b", "HiFi3")
	op := Op{Kind: "matmul", Batch: 1, M: 128, K: 64, N: 96, MACs: 128 * 64 * 96, In: 128 * 64, Window: 128 * 64, Out: 128 * 96, Weights: 64 * 96}
	for _, c := range []struct {
		r, c int
		want float64
	}{
		{1, 1, 4*3*2*96 + 1000}, // 4 by 3 tiles of results, 2 deep
		{2, 1, 2*3*2*96 + 1000},
		{4, 3, 1*1*2*96 + 1000},
		{3, 1, 2*3*2*96 + 1000}, // 4 rows of tiles on 3 cores: two rounds
	} {
		if got := m.Cycles(&op, c.r, c.c); got != c.want {
			t.Errorf("%d by %d cores: %v cycles, want %v", c.r, c.c, got, c.want)
		}
	}
	// The 16-bit operands of a copy of 1000 tiles on one core: 2 bytes over 64
	// bytes a cycle.
	copyOp := Op{Kind: "splice", In: 1024000, Window: 1024000, Out: 1024000}
	if got, want := m.Cycles(&copyOp, 1, 1), 1024000*2.0/64+1000; got != want {
		t.Errorf("copy: %v cycles, want %v", got, want)
	}
	// 32 depthwise channels of 3x3: nine diagonal blocks deep, and two gathers a
	// tap and tile of rows.
	dw := Op{Kind: "depthwise", Batch: 32, M: 64, K: 9, N: 1, MACs: 64 * 9 * 32, In: 64 * 32, Window: 64 * 9 * 32, Out: 64 * 32, Weights: 288}
	if got, want := m.Cycles(&dw, 1, 1), float64(2*9*96+2*2*9*96+1000); got != want {
		t.Errorf("depthwise: %v cycles, want %v", got, want)
	}
}

// Formats and fidelities change rates and bytes as documented, and never the
// other way.
func TestFormatsAndFidelities(t *testing.T) {
	x, err := models.Build("resnet", "resnet50", models.Options{Batch: 1})
	if err != nil {
		t.Fatal(err)
	}
	ops := work(t, x.Phases[0])
	last := 0.0
	for _, fid := range []string{"LoFi", "HiFi2", "HiFi3", "HiFi4"} {
		m := model(t, "wormhole_b0", "Fp16_b", fid)
		sum, half := 0.0, model(t, "wormhole_b0", "Bfp8_b", fid)
		for i := range ops {
			a, b := m.Cycles(&ops[i], 1, 1), half.Cycles(&ops[i], 1, 1)
			if b > a {
				t.Errorf("%s at %s: slower in a smaller format (%v, %v)", ops[i].Name, fid, a, b)
			}
			sum += a
		}
		if sum <= last {
			t.Errorf("%s is not slower than the fidelity below it", fid)
		}
		last = sum
	}
}

// chain is a plan of one epoch with operators in a row.
func chain(m Model, inputs int, ns ...float64) *Plan {
	p := &Plan{Model: m, Inputs: inputs, Epochs: []Epoch{{}}}
	for i, t := range ns {
		o := Op{Name: string(rune('a' + i)), Kind: "nop"}
		if i > 0 {
			o.Inputs = []Edge{{From: i - 1}}
		}
		p.Ops = append(p.Ops, o)
		p.Epochs[0].Ops = append(p.Epochs[0].Ops, Placed{Op: i, R: 1, C: 1, NS: t})
	}
	p.Ops[len(ns)-1].Result = true
	return p
}

// A pipeline takes the sum of its steps and then the slowest step for every
// further input.
func TestPipelineByHand(t *testing.T) {
	m := model(t, "grayskull", "Fp16_b", "HiFi3")
	for _, c := range []struct {
		inputs int
		ns     []float64
		want   uint64
	}{{1, []float64{100, 300, 50}, 450}, {5, []float64{100, 300, 50}, 450 + 4*300}, {10, []float64{7}, 70}} {
		r, err := chain(m, c.inputs, c.ns...).Simulate(context.Background(), "p")
		if err != nil || r.LatencyNS != c.want {
			t.Errorf("%d inputs through %v: %d ns (%v), want %d", c.inputs, c.ns, r.LatencyNS, err, c.want)
		}
	}
}

// The module gives what plain loops with bounded buffers give, for random
// graphs of operators.
func TestPipelineAgainstLoops(t *testing.T) {
	m := model(t, "grayskull", "Fp16_b", "HiFi3")
	proptest.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(rt, "operators")
		inputs := rapid.IntRange(1, 8).Draw(rt, "inputs")
		var ns []float64
		for range n {
			ns = append(ns, float64(rapid.IntRange(1, 500).Draw(rt, "ns")))
		}
		p := chain(m, inputs, ns...)
		for i := range p.Ops {
			p.Ops[i].Inputs = nil
			for j := range i {
				if rapid.Bool().Draw(rt, "edge") {
					p.Ops[i].Inputs = append(p.Ops[i].Inputs, Edge{From: j})
				}
			}
		}
		r, err := p.Simulate(context.Background(), "p")
		if err != nil {
			rt.Fatal(err)
		}
		depth := make([]int, n)
		for i, o := range p.Ops {
			for _, e := range o.Inputs {
				depth[i] = max(depth[i], depth[e.From]+1)
			}
		}
		end := make([][]float64, n)
		var last float64
		for i := range end {
			end[i] = make([]float64, inputs)
		}
		for s := range inputs {
			for i, o := range p.Ops {
				start := 0.0
				if s > 0 {
					start = end[i][s-1]
				}
				for _, e := range o.Inputs {
					start = max(start, end[e.From][s])
				}
				for k, reader := range p.Ops {
					for _, e := range reader.Inputs {
						if ahead := buffers + depth[k] - depth[i] - 1; e.From == i && s >= ahead {
							start = max(start, end[k][s-ahead])
						}
					}
				}
				end[i][s] = start + ns[i]
				last = max(last, end[i][s])
			}
		}
		if float64(r.LatencyNS) != last {
			rt.Fatalf("%d ns, plain loops give %v", r.LatencyNS, last)
		}
	})
}

// The GPU's kernels of one normalised convolution, as an eager framework runs
// them: the convolution, the normalisation, the activation.
func TestEagerKernels(t *testing.T) {
	x, err := models.Build("resnet", "resnet18", models.Options{Batch: 4})
	if err != nil {
		t.Fatal(err)
	}
	ops := work(t, x.Phases[0])
	if n := len(ops[0].Kernels); n != 3 {
		t.Fatalf("the stem is %d kernels: %+v", n, ops[0].Kernels)
	}
	places := int64(4 * 64 * 112 * 112)
	if k := ops[0].Kernels[0]; !k.Product || k.Read != 4*3*224*224+64*3*49 || k.Write != places {
		t.Errorf("convolution %+v", k)
	}
	if k := ops[0].Kernels[1]; k.Product || k.Read != places+2*64 || k.Write != places {
		t.Errorf("normalisation %+v", k)
	}
	if k := ops[0].Kernels[2]; k.Read != places || k.Write != places {
		t.Errorf("activation %+v", k)
	}
	m := model(t, "rtx3090", "Fp16", "HiFi3")
	// 2 × 12.8 MB at 936 GB/s and the launch.
	if got, want := m.KernelTime(&ops[0], &ops[0].Kernels[2]), float64(2*places)*2/936+2500; math.Abs(got-want) > 1 {
		t.Errorf("activation: %v ns, want %v", got, want)
	}
	r, err := SimulateKernels(context.Background(), m, ops, "resnet18")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i := range ops {
		for k := range ops[i].Kernels {
			sum += math.Ceil(m.KernelTime(&ops[i], &ops[i].Kernels[k]))
		}
	}
	if float64(r.LatencyNS) != sum {
		t.Errorf("%d ns, the kernels sum to %v", r.LatencyNS, sum)
	}
}

func TestStylesAreNotMixed(t *testing.T) {
	ops := []Op{{Kind: "nop", Out: 1}}
	if _, err := Balance(context.Background(), model(t, "rtx3090", "Fp16", ""), ops, 1); err == nil {
		t.Error("a kernel machine was given a placement")
	}
	if _, err := SimulateKernels(context.Background(), model(t, "grayskull", "Fp16", "LoFi"), ops, "x"); err == nil {
		t.Error("a grid was given kernels")
	}
	if _, err := NewModel(load(t, "rtx3090"), "Bfp8_b", "", ""); err == nil {
		t.Error("the GPU has no block formats")
	}
	long := []Op{{Kind: "nop", Kernels: []Kernel{{Read: 1 << 50}}}}
	if _, err := SimulateKernels(context.Background(), model(t, "rtx3090", "Fp16", ""), long, "x"); err == nil {
		t.Error("a kernel of hours was cut short")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Balance(ctx, model(t, "grayskull", "Fp16", "LoFi"), ops, 1); err == nil {
		t.Error("cancellation was not heeded")
	}
}
