package whatif

import (
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
	"perfsim/systems/scenario"
)

// The clock of an engine changes the costs of what the clock drives, and of
// nothing else: transfers, whose descriptors a machine of trn2's kind counts in
// cycles, keep theirs.
func TestAClockDrivesWhatItNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"trn1", "trn2", "trn3"} {
		for seed := range uint64(5) {
			base := world(t, seed, "trn2", cost.Reference)
			mach, err := machine.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			base.Machine = mach
			costs := func(text string) []uint32 {
				p := &plan{base: base, w: scenario.Fork(base)}
				p.w.Machine = clone(mach)
				a, err := Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.apply(a.Values[0]); err != nil {
					t.Fatal(err)
				}
				scenario.OwnCosts(p.w, false)
				if err := engine.Cost(ctx, p.w); err != nil {
					t.Fatal(err)
				}
				return p.w.Module.Instr.Latency.Slice()
			}
			m := base.Module
			was := costs("pe.clock=1x")
			for _, c := range []struct {
				clock  string
				named  string
				engine components.Engine
			}{{"pe", "pe", components.PE}, {"act", "activation", components.Activation}, {"dve", "dve", components.DVE}, {"pool", "pool", components.Pool}} {
				now := costs(c.clock + ".clock=2x")
				driven := 0
				for i := range now {
					formula, ok := mach.Reference.Costs[m.OpcodeName(m.Instr.Opcode.At(i))]
					if !ok {
						formula = mach.Reference.Default
					}
					drives := (formula.Form == "affine" || formula.Form == "matmul") &&
						(formula.Clock == c.named || formula.Clock == "" && m.Instr.Engine.At(i) == c.engine)
					switch {
					case drives && now[i] > was[i]/2:
						t.Fatalf("%s, %d, %s.clock=2x: %s takes %d, %d before", name, seed, c.clock, m.OpcodeName(m.Instr.Opcode.At(i)), now[i], was[i])
					case !drives && now[i] != was[i]:
						t.Fatalf("%s, %d, %s.clock=2x: %s of %s takes %d, %d before", name, seed, c.clock, m.OpcodeName(m.Instr.Opcode.At(i)), m.LaneName(m.Instr.Lane.At(i)), now[i], was[i])
					}
					if drives && was[i] > 0 {
						driven++
					}
				}
				if driven == 0 {
					t.Errorf("%s, %d: %s.clock drives nothing", name, seed, c.clock)
				}
			}
		}
	}
}
