package place

import (
	"context"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

// What Variants tells is the latency of a module that was changed.
func TestVariantsAreChangedModules(t *testing.T) {
	ctx := context.Background()
	all := map[string]*machine.Machine{}
	for _, name := range []string{"trn1", "trn2"} {
		mach, err := machine.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = mach
	}
	different := 0
	for n := range proptest.Cases(3_000) {
		mach := all[[]string{"trn1", "trn2"}[n%2]]
		r := rand.New(rand.NewPCG(21, uint64(n)))
		m := randmod.Module(r, randmod.Options{Streams: 2, Most: 100, Blocks: true, Nested: true, NoCollectives: true})
		flags := m.Instr.Flags.Slice()
		for i := range flags {
			flags[i] &^= components.FlagTrigger | components.FlagCollective
		}
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1 + n%2}, Events: components.NewEvents()}
		if err := cost.Fill(ctx, w); err != nil {
			t.Fatal(err)
		}
		rules := RulesFor(w)
		if err := RunRules(ctx, w, rules); err != nil {
			t.Fatal(err)
		}
		if !hasVariants(w) {
			t.Fatal("no variants of a module without triggers and collectives")
		}
		list := make([]Variant, r.IntN(11))
		for k := range list {
			few, most := r.IntN(16), r.IntN(16)
			list[k].Drop = uint8(few & most) // a quarter of the classes
			list[k].Least = r.Uint32N(3)
			if r.IntN(3) > 0 {
				list[k].Pick = everyThird(k)
			}
		}
		got, err := variantsOf(ctx, w, rules, list, hasFast() && n%4 < 2)
		if err != nil {
			t.Fatal(err)
		}
		base := latencyOf(t, w, rules, Variant{})
		for k, v := range list {
			want := latencyOf(t, w, rules, v)
			if got[k] != want {
				t.Fatalf("module %d, variant %d (%+v): %d, the changed module takes %d", n, k, v, got[k], want)
			}
			if want != base {
				different++
			}
		}
	}
	if different == 0 {
		t.Error("no variant changed anything")
	}
}

func everyThird(k int) func(int, []uint8, uint8) {
	return func(lo int, hit []uint8, bit uint8) {
		for n := range hit {
			if (lo+n)%3 == k%3 {
				hit[n] |= bit
			}
		}
	}
}

// latencyOf places a copy of w that is changed as v says.
func latencyOf(t *testing.T, w *components.World, rules Rules, v Variant) uint64 {
	t.Helper()
	m := *w.Module
	c := *w
	c.Module, c.Events, c.Blocks = &m, components.NewEvents(), nil
	n := m.Instr.Len()
	hit := make([]uint8, n)
	if v.Pick != nil {
		v.Pick(0, hit, 1)
	}
	m.Instr.Issue, m.Instr.Latency = ecs.NewColumn[uint32]("issue"), ecs.NewColumn[uint32]("latency")
	for i := range n {
		issue, latency := w.Module.Instr.Issue.At(i), w.Module.Instr.Latency.At(i)
		if hit[i] != 0 {
			issue, latency = 0, min(latency, v.Least)
		}
		m.Instr.Issue.Append(issue)
		m.Instr.Latency.Append(latency)
	}
	m.Edges.Preds = ecs.NewRelation("edges")
	for i := range n {
		var row []uint32
		for _, word := range w.Module.Edges.Preds.Row(i) {
			if v.Drop>>(word>>ecs.ClassShift)&1 == 0 {
				row = append(row, word)
			}
		}
		m.Edges.Preds.AppendRow(row)
	}
	if err := RunRules(context.Background(), &c, rules); err != nil {
		t.Fatal(err)
	}
	return c.Latency(components.RunA)
}

// Triggers, collectives, loops that count their trips and times that are
// too long have none.
func TestVariantsRefuse(t *testing.T) {
	for _, change := range []func(*components.World){
		func(w *components.World) { w.Module.Instr.Flags.Set(1, components.FlagTrigger) },
		func(w *components.World) { w.Module.Instr.Flags.Set(1, components.FlagCollective) },
		func(w *components.World) { w.Module.Instr.Issue.Set(1, 7); w.Module.Instr.Latency.Set(1, 6) },
		func(w *components.World) { w.Module.Instr.Latency.Set(1, 1<<28) },
		func(w *components.World) { w.Blocks[0].Latency[components.RunA] = 15 << 28 },
		func(w *components.World) { w.Config.Model = components.Calibrated },
	} {
		m := components.NewModule("m", "")
		m.AddCoreLanes(0)
		f := m.Functions.Add(0, 0)
		m.Blocks.Add(0, uint32(f), 0, 0, 1)
		m.Instr.Grow(2)
		m.Instr.Issue.Resize(2)
		m.Instr.Latency.Resize(2)
		w := &components.World{Module: m, Blocks: make([]components.BlockResult, 1)}
		if !hasVariants(w) {
			t.Error("plain rows have no variants")
		}
		change(w)
		if hasVariants(w) {
			t.Errorf("%+v has variants", w.Config)
		}
	}
}

// Times that do not fit are told, not wrapped.
func TestVariantsTooLong(t *testing.T) {
	m := components.NewModule("m", "")
	m.AddCoreLanes(0)
	f := m.Functions.Add(0, 0)
	b := m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Instr.Grow(20)
	m.Blocks.End.Set(b, 20)
	for i := range m.Instr.Issue.Resize(20) {
		m.Instr.Issue.Set(i, 1<<28-1)
	}
	m.Instr.Latency.AppendSlice(m.Instr.Issue.Slice())
	w := &components.World{Module: m}
	if ns, err := variantsOf(context.Background(), w, Rules{}, make([]Variant, 1), false); ns != nil || err != nil {
		t.Errorf("twenty times 2^28 ns: %v, %v", ns, err)
	}
}
