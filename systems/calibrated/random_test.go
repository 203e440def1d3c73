package calibrated

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/bench/self/gen"
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/internal/randmod"
)

func randomModule(r *rapid.T) (*components.Module, randmod.Options) {
	o := randmod.Options{Streams: 2, Most: 60, Blocks: rapid.Bool().Draw(r, "blocks"), Nested: rapid.Bool().Draw(r, "nested")}
	return randmod.Module(rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 1)), o), o
}

// TestRandomModules checks what has to hold of any timeline: every row is
// placed, sequencers take their rows in program order, a row starts behind
// everything whose result it needs, and a block lasts until its last end.
func TestRandomModules(t *testing.T) {
	mach, c := trn2(t)
	proptest.Check(t, func(r *rapid.T) {
		m, _ := randomModule(r)
		phase := rapid.Float64Range(0, 5000).Draw(r, "phase")
		p := newProgram(m, mach, c)
		pred, err := predictWith(ctx, m, mach, c, Options{Phase: phase})
		if err != nil {
			r.Fatal(err)
		}
		last := make(map[uint16]float64)
		owner := make(map[uint16]uint32)
		for _, b := range m.TopBlocks() {
			clear(last)
			for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
				start := pred.Start[i]
				if !(start >= 0) || !(pred.Dur[i] >= 0) || pred.Complete[i] < start {
					r.Fatalf("row %d starts at %v, takes %v, is there at %v", i, start, pred.Dur[i], pred.Complete[i])
				}
				if p.kind[i] == kindLoop {
					continue
				}
				// Software descriptors are made behind the sequencer's back, and
				// weights load ahead of the matmul before them.
				g := p.group[i]
				if k := p.kind[i]; k != kindSW && k != kindLoad && k != kindMatmul {
					if start < last[g]-1e-6 {
						r.Fatalf("row %d starts at %v, row %d before it on its sequencer at %v", i, start, owner[g], last[g])
					}
					last[g], owner[g] = start, i
				}
				if p.kind[i] == kindBarrier {
					for q := m.Blocks.First.At(b); q < i; q++ {
						if p.kind[q] == kindLoop || p.kind[q] == kindHW || p.kind[q] == kindSW || p.groups[p.group[q]].lane > 0 {
							continue // transfers and collectives go on, a loop is none of its rows
						}
						if end := pred.Start[q] + float64(pred.Dur[q]); p.groups[p.group[q]].core == p.groups[g].core && p.group[q] != g && start < end-0.01 {
							r.Fatalf("barrier %d starts at %v, row %d before it ends at %v", i, start, q, end)
						}
					}
				}
				for _, w := range m.Edges.Preds.Row(int(i)) {
					q, class := w&ecs.TargetMask, uint8(w>>ecs.ClassShift)
					if p.group[q] == g && p.groups[g].engine == components.PE {
						continue // adds up in order
					}
					if p.group[q] == g && (class == components.ClassAnti || class == components.ClassOrdered) && p.kind[q] != kindHW && p.kind[q] != kindSW {
						continue // in order, see TestEdges
					}
					if start < pred.Complete[q]-1e-6 {
						r.Fatalf("row %d (%s) starts at %v, its predecessor %d (%s, class %d) is there at %v", i, m.OpcodeName(m.Instr.Opcode.At(int(i))), start,
							q, m.OpcodeName(m.Instr.Opcode.At(int(q))), class, pred.Complete[q])
					}
				}
			}
		}
	})
}

// TestSameForAnyJobs runs modules with several blocks on one worker and on
// four.
func TestSameForAnyJobs(t *testing.T) {
	mach, _ := trn2(t)
	proptest.Check(t, func(r *rapid.T) {
		m, _ := randomModule(r)
		var runs [2]*components.World
		for k, jobs := range []int{1, 4} {
			runs[k] = &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Calibrated, Jobs: jobs}, Events: components.NewEvents()}
			if err := Run(ctx, runs[k]); err != nil {
				r.Fatal(err)
			}
		}
		if !slices.Equal(runs[0].Blocks, runs[1].Blocks) {
			r.Fatalf("blocks %v, then %v", runs[0].Blocks, runs[1].Blocks)
		}
		for i := range m.Instr.Len() {
			for _, run := range []components.Run{components.RunA, components.RunB} {
				a, b := runs[0].Events.Span(m, components.InstrID(i), run)
				x, y := runs[1].Events.Span(m, components.InstrID(i), run)
				if a != x || b != y {
					r.Fatalf("row %d of run %d: %d to %d, then %d to %d", i, run, a, b, x, y)
				}
			}
		}
	})
}

// TestTrips counts a loop's body as often as it runs: the block's latency with
// trip counts is the one without plus the body's for every other trip.
func TestTrips(t *testing.T) {
	mach, _ := trn2(t)
	m := components.NewModule("loop", "test")
	lanes := m.AddCoreLanes(0)
	n := 4 // before, the loop, its body, behind
	m.Instr.Grow(n)
	m.Instr.OutElems.Resize(n)
	for i := range n {
		m.Instr.Opcode.Set(i, m.Opcode("COPY"))
		m.Instr.Engine.Set(i, components.DVE)
		m.Instr.Lane.Set(i, lanes+uint16(components.DVE))
		m.Instr.Elems.Set(i, 512)
		m.Instr.OutElems.Set(i, 512)
		m.Instr.Parts.Set(i, 128)
		m.Instr.DType.Set(i, components.Float32)
	}
	m.Instr.Opcode.Set(1, components.OpcodeLoop)
	m.Instr.Flags.Set(1, components.FlagLoop)
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(b, 4)
	body := m.Blocks.Add(m.Symbols.InternString("body"), uint32(f), 2, 2, 10)
	m.Blocks.End.Set(body, 3)
	m.Functions.EndBlock.Set(f, 2)
	if err := m.Link(&components.EdgeSet{}); err != nil {
		t.Fatal(err)
	}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Calibrated, Jobs: 1, Loops: components.Trips}, Events: components.NewEvents()}
	if err := Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	top, in := w.Blocks[b], w.Blocks[body]
	if in.Latency[0] == 0 {
		t.Fatal("the body takes no time")
	}
	if got, want := top.LatencyTrips[0]-top.Latency[0], 9*in.Latency[0]; got+9 < want || got > want+9 {
		t.Errorf("ten trips add %d ns, want nine times %d", got, in.Latency[0])
	}
}

// BenchmarkRun places a module of half a million instructions, both runs. The
// goal is a million instructions a second; custom metric instr/s.
func BenchmarkRun(b *testing.B) {
	mach, _ := trn2(b)
	opt := gen.Default(500_000)
	opt.Jobs = 1
	m, err := gen.Module(ctx, opt)
	if err != nil {
		b.Fatal(err)
	}
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Calibrated, Jobs: 1}, Events: components.NewEvents()}
	b.ReportAllocs()
	for b.Loop() {
		if err := Run(ctx, w); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(m.Instr.Len())*float64(b.N)/b.Elapsed().Seconds(), "instr/s")
}
