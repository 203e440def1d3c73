package whatif

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"perfsim/components"
	"perfsim/components/machine"
)

// A number set in place gives the machine that the description changed as
// YAML gives, or the same error.
func TestNumberIsTheYAML(t *testing.T) {
	for _, name := range []string{"reference.overlap_compute_ns", "reference.dma.read_init_ns", "reference.dma.dge_sw_cycles", "reference.dma.div",
		"clock.pe", "memory.hbm_bytes_per_ns", "memory.hbm_bytes", "arch", "reference.dma", "reference.costs.Matmult.base", "nosuch"} {
		for _, s := range []Setting{{Factor: true, Value: 1.05, Text: "1.05x"}, {Factor: true, Value: 0.333, Text: "0.333x"}, {Value: 17, Text: "17"}, {Value: 17.5, Text: "17.5"}, {Value: -3, Text: "-3"}, {Value: 0, Text: "0"}} {
			s.Name, s.Number = name, true
			var machines [2]*machine.Machine
			var errs [2]string
			for k, set := range []func(*plan, Setting) error{(*plan).field, (*plan).fieldYAML} {
				m, err := machine.Load("trn2")
				if err != nil {
					t.Fatal(err)
				}
				p := &plan{w: &components.World{Machine: m}}
				if err := set(p, s); err != nil {
					errs[k] = err.Error()
					continue
				}
				machines[k] = p.w.Machine
			}
			if d := cmp.Diff(machines[1], machines[0]); d != "" || errs[0] != errs[1] {
				t.Errorf("%s=%s: errors %q and %q, machines\n%s", name, s.Text, errs[0], errs[1], d)
			}
		}
	}
}
