package place

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

// place runs the placement with or without the assembly.
func placed(t *testing.T, m *components.Module, rules Rules, fast bool) *components.World {
	t.Helper()
	w := &components.World{Module: m, Config: components.Config{Model: cost.Reference, Jobs: 1}, Events: components.NewEvents()}
	if err := run(context.Background(), w, rules, nil, fast); err != nil {
		t.Fatal(err)
	}
	return w
}

func sameTimes(t *testing.T, name string, m *components.Module, rules Rules) {
	t.Helper()
	a, b := placed(t, m, rules, true), placed(t, m, rules, false)
	for i := range m.Instr.Len() {
		if x, y := a.Events.Arrive.At(i), b.Events.Arrive.At(i); x != y {
			t.Fatalf("%s: instruction %d of %d: assembly %v, Go %v", name, i, m.Instr.Len(), x, y)
		}
	}
	if !slices.Equal(a.Events.Dur.Slice(), b.Events.Dur.Slice()) {
		t.Fatalf("%s: durations differ", name)
	}
	if !slices.Equal(a.Blocks, b.Blocks) {
		t.Fatalf("%s: blocks: assembly %v, Go %v", name, a.Blocks, b.Blocks)
	}
}

// The assembly and the Go code give the same times, on modules with every
// rule and of sizes around those of a block.
func TestAssemblyEqualsGo(t *testing.T) {
	if !hasFast() {
		t.Skip("no assembly for this machine")
	}
	for seed := range uint64(300) {
		mach, err := machine.Load([]string{"trn1", "trn2"}[seed%2])
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, seed))
		m := randmod.Module(r, randmod.Options{Streams: 2, Most: 3 * blockRows, Blocks: true, Nested: true, Transfers: seed%3 == 1})
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}}
		if err := cost.Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		sameTimes(t, "every rule", m, RulesOf(cost.Reference, mach))
		sameTimes(t, "lanes and edges", m, Rules{})
	}
}

// plainModule has rows of the plain path only, with up to twelve edges, banks
// and latencies of zero and of the largest there are.
func plainModule(r *rand.Rand, n int) *components.Module {
	m := components.NewModule("plain", "test")
	m.AddCoreLanes(0)
	m.AddCoreLanes(1)
	m.Instr.Grow(n)
	issue, latency := m.Instr.Issue.Resize(n), m.Instr.Latency.Resize(n)
	for i := range n {
		m.Instr.Lane.Set(i, uint16(r.IntN(m.Lanes.Len())))
		if r.IntN(3) == 0 {
			m.Instr.Banks.Set(i, uint16(r.Uint32()&r.Uint32()))
		}
		switch r.IntN(8) {
		case 0:
			issue[i], latency[i] = 0, 0
		case 1:
			issue[i], latency[i] = 1<<32-1, 1<<32-1
		default:
			latency[i] = r.Uint32N(1000)
			issue[i] = r.Uint32N(latency[i] + 1)
		}
		var row []uint32
		for range min(r.IntN(13), i) {
			to := r.Uint32N(uint32(i))
			if !slices.ContainsFunc(row, func(w uint32) bool { return w&ecs.TargetMask == to }) {
				row = append(row, ecs.Word(uint8(r.IntN(4)), to))
			}
		}
		m.Edges.Preds.AppendRow(row)
	}
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	return m
}

func TestPlainPathEqualsGo(t *testing.T) {
	if !hasFast() {
		t.Skip("no assembly for this machine")
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(4, seed))
		m := plainModule(r, 1+r.IntN(4*blockRows))
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		sameTimes(t, "with banks", m, Rules{Banks: true})
		sameTimes(t, "with coupled engines", m, Rules{Banks: true, Couplings: true})
		sameTimes(t, "without banks", m, Rules{})
	}
}

// At the sizes where times are asked for ahead, the times are those of a loop
// that knows lanes and edges only.
func TestLargeModules(t *testing.T) {
	m := plainModule(rand.New(rand.NewPCG(6, 1)), 1<<16+300)
	arrive := make([]pair, m.Instr.Len())
	free := make([]pair, m.Lanes.Len())
	for i := range arrive {
		start := free[m.Instr.Lane.At(i)]
		for _, w := range m.Edges.Preds.Row(i) {
			p := arrive[w&ecs.TargetMask]
			switch uint8(w >> ecs.ClassShift) {
			case components.ClassAnti:
				start[0] = max(start[0], p[0])
				continue
			case components.ClassOrdered:
				early := uint64(m.Instr.Latency.At(int(w&ecs.TargetMask)) - m.Instr.Issue.At(int(w&ecs.TargetMask)))
				p = pair{p[0] - early, p[1] - early}
			}
			start = maxPair(start, p)
		}
		is, lat := uint64(m.Instr.Issue.At(i)), uint64(m.Instr.Latency.At(i))
		free[m.Instr.Lane.At(i)] = pair{start[0] + is, start[1] + is}
		arrive[i] = pair{start[0] + lat, start[1] + lat}
	}
	for _, fast := range []bool{true, false} {
		w := placed(t, m, Rules{}, fast && hasFast())
		if got := w.Events.Arrive.Slice(); !slices.Equal(got, arrive) {
			i := 0
			for got[i] == arrive[i] {
				i++
			}
			t.Fatalf("fast %v: instruction %d: %v, want %v", fast, i, got[i], arrive[i])
		}
	}
}
