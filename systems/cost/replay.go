package cost

import (
	"perfsim/components"
	"perfsim/components/machine"
)

// DocumentedTrace is the attribute of modules that were read from a trace of
// the documented simulator: replaying them leaves lanes early by its overlap
// windows.
const DocumentedTrace = "perfsim.documented_trace"

// newReplay returns the cost of the replay model: the durations the input
// brought. An instruction keeps its lane for its whole duration, except where
// the input is a trace of the documented simulator.
func newReplay(m *components.Module, mach *machine.Machine) func(i int) (issue, latency uint64) {
	dur := m.Instr.MeasuredDur.Slice()
	if m.Attribute(DocumentedTrace) == "" {
		return func(i int) (uint64, uint64) { return uint64(dur[i]), uint64(dur[i]) }
	}
	r := newReference(m, mach)
	return func(i int) (uint64, uint64) {
		d := uint64(dur[i])
		return d - r.window(d, m.Instr.Lane.At(i), m.Instr.Flags.At(i)), d
	}
}
