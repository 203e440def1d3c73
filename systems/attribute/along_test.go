package attribute

import (
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/ecs/proptest"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
)

// Where takers serve a world, the classes that they add up along its paths are
// those of the binding of all instructions and the report of the paths.
func TestAlongIsReport(t *testing.T) {
	machines := loadAll(t)
	served := 0
	for k := range proptest.Cases(2_000) {
		c := cases[k%len(cases)]
		m := randmod.Module(rand.New(rand.NewPCG(15, uint64(k))), randmod.Options{Streams: c.streams, Blocks: true, NoCollectives: true, Nested: true})
		flags := m.Instr.Flags.Slice()
		for i := range flags {
			flags[i] &^= components.FlagTrigger | components.FlagCollective
		}
		w, rules := placed(t, m, machines[c.machine], c.model, components.Once)
		takers := NewTakers(m, rules)
		for run := range components.Run(2) {
			if !takers.serves(w, rules, run) {
				continue
			}
			served++
			a := bind(t, w, rules, run)
			paths, err := CriticalPath(ctx, w, rules, a, Options{Block: -1})
			if err != nil {
				t.Fatal(err)
			}
			want := Report(m, paths)
			var got [NumClasses]uint64
			rows, times := Options{Block: -1}.blocks(m)
			for n, row := range rows {
				takers.sum(&got, newBlock(w, rules, run, row), times[n])
			}
			if got != want.Classes {
				t.Fatalf("module %d on %s, run %d: got %v\nwant %v", k, c.machine, run, got, want.Classes)
			}
		}
	}
	if served == 0 {
		t.Error("takers served no world")
	}
}

// Triggers and collectives have owners that depend on times.
func TestTakersRefuse(t *testing.T) {
	m := components.NewModule("m", "")
	m.AddCoreLanes(0)
	m.Instr.Grow(2)
	if NewTakers(m, place.Rules{}) == nil {
		t.Error("plain rows have no takers")
	}
	m.Instr.Flags.Set(1, components.FlagTrigger)
	if NewTakers(m, place.Rules{}) != nil {
		t.Error("triggers have takers")
	}
}
