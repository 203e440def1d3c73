package place

import (
	"context"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

func TestEngineEqualsSlowSimulator(t *testing.T) {
	t.Parallel()
	modules := proptest.Cases(100_000)
	machines := map[string]*machine.Machine{}
	for _, n := range []string{"trn1", "trn2", "trn3"} {
		m, err := machine.Load(n)
		if err != nil {
			t.Fatal(err)
		}
		machines[n] = m
	}
	weighted := *machines["trn2"]
	weighted.Reference.Reflow, weighted.Reference.ThirdSwitch, weighted.Reference.HBMScale = "weighted", true, 0.5
	machines["trn2 weighted"] = &weighted
	cases := []struct {
		machine string
		model   components.Model
		streams int
	}{{"trn1", cost.Reference, 4}, {"trn2", cost.Reference, 2}, {"trn3", cost.Reference, 3}, {"trn2", cost.Calibrated, 4}, {"trn2 weighted", cost.Reference, 2}}
	for n := range modules {
		r := rand.New(rand.NewPCG(7, uint64(n)))
		c := cases[n%len(cases)]
		m := randmod.Module(r, randmod.Options{Streams: c.streams, Nested: n%2 == 1, Transfers: n%3 == 1})
		w := &components.World{Module: m, Machine: machines[c.machine], Config: components.Config{Model: c.model, Jobs: 1}, Events: components.NewEvents()}
		if err := cost.Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if err := Run(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		for _, run := range []components.Run{components.RunA, components.RunB} {
			s := newSlow(m, RulesOf(c.model, w.Machine), run)
			s.all(0, false)
			for i := range m.Instr.Len() {
				if m.Instr.Flags.At(i)&components.FlagLoop != 0 {
					continue
				}
				start, end := w.Events.Span(m, components.InstrID(i), run)
				want := s.events[uint32(i)]
				if start != want.start || end != want.end() {
					t.Fatalf("module %d (%s, %s), run %d, instruction %d (%s): engine %d to %d, rules %d to %d",
						n, c.machine, c.model, run, i, m.OpcodeName(m.Instr.Opcode.At(i)), start, end, want.start, want.end())
				}
			}
			if got := w.Blocks[0].Latency[run]; got != s.last {
				t.Fatalf("module %d: latency %d, rules %d", n, got, s.last)
			}
		}
	}
}
