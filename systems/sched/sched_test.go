package sched

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

func load(t testing.TB, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// costed returns a world over m with costs and no placement.
func costed(t testing.TB, m *components.Module, mach *machine.Machine, jobs int) *components.World {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: jobs}, Events: components.NewEvents()}
	if err := cost.Fill(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// dag is a random program: operations with their producers on random lanes,
// least to two each at most near operations back, in an order that respects
// them.
func dag(r *rand.Rand, n, near, least int) *components.Module {
	m := components.NewModule("dag", "test")
	m.AddCoreLanes(0)
	m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Blocks.Add(m.Symbols.InternString("b"), 0, 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(0, 1)
	in := &m.Instr
	in.Grow(n)
	var set components.EdgeSet
	engines := []components.Engine{components.PE, components.Activation, components.DVE, components.Pool}
	for i := range n {
		e := engines[r.IntN(len(engines))]
		in.Opcode.Set(i, components.OpcodeTensorScalar)
		in.Engine.Set(i, e)
		in.Lane.Set(i, uint16(e))
		in.Elems.Set(i, uint32(64+r.IntN(1024)))
		in.Parts.Set(i, 128)
		in.DType.Set(i, components.BFloat16)
		for range least + r.IntN(3-least) {
			if lo := max(0, i-near); i > lo {
				set.Add(components.InstrID(i), components.InstrID(lo+r.IntN(i-lo)), components.EdgeKind(2+r.IntN(3)))
			}
		}
	}
	if err := m.Link(&set); err != nil {
		panic(err)
	}
	return m
}

// checkOrder reports whether next is m in another order that keeps every
// dependency, block and name.
func checkOrder(m, next *components.Module) error {
	if err := next.Check(); err != nil {
		return err
	}
	at := map[string]int{}
	for i := range next.Instr.Len() {
		at[next.InstrName(components.InstrID(i))] = i
	}
	if len(at) != m.Instr.Len() {
		return fmt.Errorf("%d names for %d instructions", len(at), m.Instr.Len())
	}
	a, b := regions(m), regions(next)
	edge := func(from, to int, later bool) error {
		x, y := at[m.InstrName(components.InstrID(from))], at[m.InstrName(components.InstrID(to))]
		if y >= x && !later {
			return fmt.Errorf("%s depends on %s, which comes behind it now", m.InstrName(components.InstrID(from)), m.InstrName(components.InstrID(to)))
		}
		return nil
	}
	for i := range m.Instr.Len() {
		j, ok := at[m.InstrName(components.InstrID(i))]
		if !ok {
			return fmt.Errorf("%s is lost", m.InstrName(components.InstrID(i)))
		}
		if a[i] != b[j] || m.Instr.Opcode.At(i) != next.Instr.Opcode.At(j) || m.Instr.Elems.At(i) != next.Instr.Elems.At(j) || m.Instr.Latency.At(i) != next.Instr.Latency.At(j) {
			return fmt.Errorf("%s is in block %d and was in %d, or its columns changed", m.InstrName(components.InstrID(i)), b[j], a[i])
		}
		for _, w := range m.Edges.Preds.Row(i) {
			if err := edge(i, int(w&ecs.TargetMask), false); err != nil {
				return err
			}
		}
	}
	if m.Edges.Preds.Len()+m.Edges.Other.Len() != next.Edges.Preds.Len()+next.Edges.Other.Len() {
		return fmt.Errorf("%d and %d edges, %d and %d before", next.Edges.Preds.Len(), next.Edges.Other.Len(), m.Edges.Preds.Len(), m.Edges.Other.Len())
	}
	return nil
}

// On random modules with every rule of the placement all policies keep the
// dependencies, and the result is never slower.
func TestValid(t *testing.T) {
	mach := load(t, "trn2")
	faster := 0
	modules := proptest.Cases(10_000)
	for n := range modules {
		m := randmod.Module(rand.New(rand.NewPCG(5, uint64(n))), randmod.Options{Streams: 2, Nested: true, Blocks: n%2 == 0, Most: 80})
		for _, p := range []Policy{Keep, Separate, Greedy, TimeAware} {
			w := costed(t, m, mach, 1+n%2)
			blocks, err := Run(context.Background(), w, Options{Policy: p})
			if err != nil {
				t.Fatalf("module %d, policy %d: %v", n, p, err)
			}
			if err := checkOrder(m, w.Module); err != nil {
				t.Fatalf("module %d, policy %d: %v", n, p, err)
			}
			now, err := latencies(context.Background(), w, w.Module)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range blocks {
				if now[b.Block] != b.After || b.After > b.Before || b.Kept && b.After != b.Before || p == Keep && !b.Kept {
					t.Fatalf("module %d, policy %d: %+v, placed %d", n, p, b, now[b.Block])
				}
				if b.After < b.Bound() {
					t.Fatalf("module %d, policy %d: %d is below the bound %d", n, p, b.After, b.Bound())
				}
				if b.After < b.Before && p == TimeAware {
					faster++
				}
			}
		}
	}
	if faster < modules/5 {
		t.Errorf("only %d blocks of %d modules got faster", faster, modules)
	}
}

// The order does not depend on the number of goroutines.
func TestSameOnAnyCores(t *testing.T) {
	mach := load(t, "trn2")
	for n := range 60 {
		m := randmod.Module(rand.New(rand.NewPCG(8, uint64(n))), randmod.Options{Streams: 2, Blocks: true, Most: 120})
		var names [2][]string
		for j := range names {
			w := costed(t, m, mach, 1+3*j)
			if _, err := Run(context.Background(), w, Options{Policy: TimeAware, Always: true}); err != nil {
				t.Fatal(err)
			}
			for i := range w.Module.Instr.Len() {
				names[j] = append(names[j], w.Module.InstrName(components.InstrID(i)))
			}
		}
		if !slices.Equal(names[0], names[1]) {
			t.Fatalf("module %d: another order on four goroutines", n)
		}
	}
}

// Two chains one after the other, on the same two engines: side by side they
// take half the time, and every policy finds that.
func TestChainsSideBySide(t *testing.T) {
	m := components.NewModule("chains", "test")
	m.AddCoreLanes(0)
	m.Functions.Add(m.Symbols.InternString("f"), 0)
	const links = 20
	n := 2 * links
	m.Blocks.Add(m.Symbols.InternString("b"), 0, 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(0, 1)
	in := &m.Instr
	in.Grow(n)
	var set components.EdgeSet
	for i := range n {
		e := components.PE
		if i%2 == 1 {
			e = components.DVE
		}
		if i >= links { // the second chain begins on the other engine
			e = components.PE + components.DVE - e
		}
		in.Opcode.Set(i, components.OpcodeTensorScalar)
		in.Engine.Set(i, e)
		in.Lane.Set(i, uint16(e))
		in.Elems.Set(i, 500)
		in.Parts.Set(i, 1)
		in.DType.Set(i, components.BFloat16)
		if i%links > 0 {
			set.Add(components.InstrID(i), components.InstrID(i-1), components.Flow)
		}
	}
	if err := m.Link(&set); err != nil {
		t.Fatal(err)
	}
	w := costed(t, m, load(t, "trn2"), 1)
	for i := range n { // the same on both engines
		in.Latency.Set(i, 100)
		in.Issue.Set(i, 100)
	}
	for _, p := range []Policy{Separate, Greedy, TimeAware} {
		w.Module = m
		blocks, err := Run(context.Background(), w, Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		// In program order the second chain begins where the first has ended.
		if b := blocks[0]; b.Before != 2*links*100 || b.After != links*100 || b.Path != links*100 || b.Busy != links*100 {
			t.Errorf("policy %d: %+v", p, b)
		}
	}
}

// A producer behind its consumer in program order is put before it.
func TestLaterProducers(t *testing.T) {
	m := components.NewModule("later", "test")
	m.AddCoreLanes(0)
	m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Blocks.Add(m.Symbols.InternString("b"), 0, 0, 0, 1)
	m.Blocks.End.Set(0, 3)
	m.Functions.EndBlock.Set(0, 1)
	in := &m.Instr
	in.Grow(3)
	for i, e := range []components.Engine{components.PE, components.DVE, components.Pool} {
		in.Opcode.Set(i, components.OpcodeTensorScalar)
		in.Engine.Set(i, e)
		in.Lane.Set(i, uint16(e))
		in.Elems.Set(i, 100)
	}
	var set components.EdgeSet
	set.Add(0, 2, components.Flow)
	set.Add(2, 1, components.Anti)
	if err := m.Link(&set); err != nil {
		t.Fatal(err)
	}
	for _, p := range []Policy{Separate, Greedy, TimeAware} {
		w := costed(t, m, load(t, "trn2"), 1)
		blocks, err := Run(context.Background(), w, Options{Policy: p})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for i := range 3 {
			names = append(names, w.Module.InstrName(components.InstrID(i)))
		}
		if want := []string{"I-1", "I-2", "I-0"}; !slices.Equal(names, want) || w.Module.Edges.Preds.Len() != 2 || w.Module.Edges.Other.Len() != 0 {
			t.Errorf("policy %d: %v, %d edges placed, %d not", p, names, w.Module.Edges.Preds.Len(), w.Module.Edges.Other.Len())
		}
		if !blocks[0].Later || blocks[0].Kept || blocks[0].After <= blocks[0].Before {
			t.Errorf("policy %d: %+v", p, blocks[0])
		}
	}
}

// Accumulation groups stay together on their engine, in their order.
func TestGroups(t *testing.T) {
	mach := load(t, "trn2")
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(3, seed))
		m := dag(r, 120, 25, 0)
		in := &m.Instr
		// Every matmul writes a bank; groups of one to four begin with a start.
		var want [][]string
		var cur []string
		left := 0
		bank := uint16(0)
		for i := range m.Instr.Len() {
			if in.Engine.At(i) != components.PE {
				continue
			}
			in.Opcode.Set(i, components.OpcodeMatmult)
			if left == 0 {
				left = 1 + r.IntN(4)
				bank = 1 << (8 + r.IntN(8))
				in.Flags.Set(i, components.FlagAccStart)
				if len(cur) > 0 {
					want = append(want, cur)
				}
				cur = nil
			}
			left--
			in.Banks.Set(i, bank)
			cur = append(cur, m.InstrName(components.InstrID(i)))
			if left == 0 {
				in.Flags.Set(i, in.Flags.At(i)|components.FlagAccStop)
			}
		}
		for _, p := range []Policy{Greedy, TimeAware} {
			w := costed(t, m, mach, 1)
			if _, err := Run(context.Background(), w, Options{Policy: p, Always: true}); err != nil {
				t.Fatal(err)
			}
			if err := checkOrder(m, w.Module); err != nil {
				t.Fatalf("seed %d, policy %d: %v", seed, p, err)
			}
			var pe []string
			for i := range w.Module.Instr.Len() {
				if w.Module.Instr.Engine.At(i) == components.PE {
					pe = append(pe, w.Module.InstrName(components.InstrID(i)))
				}
			}
			split := groups(m, segment{0, uint32(m.Instr.Len())})
			for _, g := range want {
				if len(g) < 2 {
					continue
				}
				// Groups that depend on themselves through something else cannot stay.
				whole := false
				for _, rows := range split {
					whole = whole || len(rows) == len(g) && m.InstrName(components.InstrID(rows[0])) == g[0]
				}
				at := slices.Index(pe, g[0])
				if whole && !slices.Equal(pe[at:at+len(g)], g) {
					t.Fatalf("seed %d, policy %d: group %v became %v", seed, p, g, pe[at:at+len(g)])
				}
			}
		}
	}
}

func TestDowngradeAndLog(t *testing.T) {
	m := dag(rand.New(rand.NewPCG(1, 1)), 30, 5, 0)
	w := costed(t, m, load(t, "trn2"), 1)
	old := *w.Machine
	old.Arch = 10
	w.Machine = &old
	var log []string
	if _, err := Run(context.Background(), w, Options{Policy: TimeAware, Log: func(s string) { log = append(log, s) }}); err != nil {
		t.Fatal(err)
	}
	if len(log) != 4 || log[0] != "policy 3 incompatible with Inf1" || log[1] != "Start PosT ScheD" || log[3] != "Done  PosT ScheD" {
		t.Errorf("log %q", log)
	}
	// A module with semaphores keeps its order.
	for range m.Instr.Len() {
		m.Syncs.EndRow()
	}
	m.Syncs.Add(components.WaitGE, 'S', 1, 1, 0)
	m.Syncs.Offsets.Set(m.Instr.Len(), 1)
	w.Module = m
	blocks, err := Run(context.Background(), w, Options{Policy: Greedy})
	if err != nil || !blocks[0].Kept || w.Module != m || m.Notes[0].Code != "order-fixed" {
		t.Errorf("%+v, %v, notes %v", blocks, err, m.Notes)
	}
	if _, err := Run(context.Background(), w, Options{Policy: 7}); err == nil {
		t.Error("policy 7 was taken")
	}
}

// BenchmarkDAG schedules random programs and prints how far each policy is
// from the lower bounds, in the mean over the programs: the critical path, and
// the larger of that and the busiest lane.
func BenchmarkDAG(b *testing.B) {
	mach := load(b, "trn2")
	for _, c := range []struct{ n, near, least int }{{1000, 6, 1}, {1000, 10, 0}, {1000, 200, 0}, {20_000, 50, 0}} {
		for _, p := range []Policy{Keep, Separate, Greedy, TimeAware} {
			b.Run(fmt.Sprintf("n=%d/near=%d/least=%d/policy=%d", c.n, c.near, c.least, p), func(b *testing.B) {
				var path, bound, gain float64
				count := 0
				for b.Loop() {
					b.StopTimer()
					m := dag(rand.New(rand.NewPCG(2, uint64(count))), c.n, c.near, c.least)
					w := costed(b, m, mach, 1)
					b.StartTimer()
					blocks, err := Run(context.Background(), w, Options{Policy: p, Always: true})
					if err != nil {
						b.Fatal(err)
					}
					x := blocks[0]
					path += float64(x.After) / float64(x.Path)
					bound += float64(x.After) / float64(x.Bound())
					gain += float64(x.Before) / float64(x.After)
					count++
				}
				b.ReportMetric(path/float64(count), "x-critical-path")
				b.ReportMetric(bound/float64(count), "x-lower-bound")
				b.ReportMetric(gain/float64(count), "x-faster")
				b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(c.n), "ns/instr")
			})
		}
	}
}
