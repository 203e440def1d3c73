package whatif

import (
	"maps"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/systems/cost"
)

// candidates names the parameters that may matter: clocks and rates, and of
// the current model the constants and the opcodes that the module has.
func candidates(w *components.World) []string {
	m := w.Module
	if w.Config.Model == cost.Replay {
		return opcodes(m, func(string) bool { return true })
	}
	out := []string{"pe.clock", "act.clock", "dve.clock", "pool.clock", "sp.clock", "dma.rate"}
	if w.Config.Model == cost.Calibrated {
		c := &w.Machine.Calibrated
		out = append(out, slices.Sorted(maps.Keys(c.Constants))...)
		known := map[string]bool{}
		for key := range c.Ops {
			name, _, _ := strings.Cut(key, " ")
			known[name] = true
		}
		return append(out, opcodes(m, func(name string) bool {
			for e := range components.NumEngines {
				if known[e.String()+"."+cost.CalibratedOpName(name)] {
					return true
				}
			}
			return false
		})...)
	}
	out = append(out, "reference.overlap_compute_ns", "reference.overlap_dma_ns", "reference.dma.read_init_ns", "reference.dma.dge_none_cycles",
		"reference.dma.dge_sw_cycles", "reference.dma.dge_hw_cycles")
	return append(out, opcodes(m, func(string) bool { return true })...)
}

// opcodes returns latency.NAME for the opcodes of the module that f takes.
func opcodes(m *components.Module, f func(name string) bool) []string {
	used := make([]bool, m.NumOpcodes())
	for _, op := range m.Instr.Opcode.Slice() {
		used[op] = true
	}
	var out []string
	for op, u := range used {
		if name := m.OpcodeName(components.Opcode(op)); u && f(name) {
			out = append(out, "latency."+name)
		}
	}
	return out
}
