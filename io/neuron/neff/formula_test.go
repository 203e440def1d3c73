package neff

import (
	"testing"

	"perfsim/components"
)

func TestFormula(t *testing.T) {
	for want, n := range map[string]DebugName{
		"debug_info_pttf":            {LayerFramework, components.Unassigned, NoCounter, ""},
		"debug_info_hlo.dbg":         {LayerHLO, components.Unassigned, NoCounter, "dbg"},
		"debug_info_backendPE.dbg":   {LayerBackend, components.PE, NoCounter, "dbg"},
		"debug_info_asmActivation12": {LayerASM, components.Activation, 12, ""},
	} {
		if got := n.Formula(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
