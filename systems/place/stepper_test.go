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

// Stepping in program order is placing; and what Earliest foretells happens.
func TestStepperIsPlacement(t *testing.T) {
	mach, err := machine.Load("trn1")
	if err != nil {
		t.Fatal(err)
	}
	for n := range proptest.Cases(20_000) {
		m := randmod.Module(rand.New(rand.NewPCG(11, uint64(n))), randmod.Options{Streams: 4, Nested: true, NoCollectives: n%2 == 0, Transfers: n%3 == 0})
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}, Events: components.NewEvents()}
		if err := cost.Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if err := Run(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		x := &components.World{Module: m, Machine: mach, Config: w.Config, Events: components.NewEvents()}
		rules := RulesFor(w)
		Prepare(x, rules)
		for _, b := range m.TopBlocks() {
			s := NewStepper(x, rules)
			for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
				flags := m.Instr.Flags.At(int(i))
				early := uint64(0)
				plain := flags&components.FlagLoop == 0
				if plain {
					early = s.Earliest(i)
				}
				if err := s.Place(i); err != nil {
					t.Fatal(err)
				}
				start, _ := x.Events.Span(m, components.InstrID(i), components.RunA)
				if plain && start != early {
					t.Fatalf("module %d: %s was to start at %d, starts at %d", n, m.InstrName(components.InstrID(i)), early, start)
				}
			}
			for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
				if a, b := w.Events.Arrive.At(int(i)), x.Events.Arrive.At(int(i)); a != b {
					t.Fatalf("module %d, row %d: placed %v, stepped %v", n, i, a, b)
				}
			}
			if end := s.k.last[components.RunA]; end != w.Blocks[b].Latency[components.RunA] {
				t.Fatalf("module %d: latency %d, stepped %d", n, w.Blocks[b].Latency[components.RunA], end)
			}
		}
	}
}
