package cost

import (
	"math"

	"perfsim/components"
	"perfsim/components/machine"
)

// DocumentedTrace is the attribute of modules that were read from a trace of
// the documented simulator: replaying them leaves lanes early by its overlap
// windows.
const DocumentedTrace = "perfsim.documented_trace"

// Foreign reports whether a module was read from an execution trace of other
// machines: it has durations and dependencies, and nothing that the models of
// this project's machines could cost.
func Foreign(m *components.Module) bool {
	switch m.Format {
	case "kineto", "chakra", "goal", "ttprof", "xplane":
		return true
	}
	return false
}

// ReplaysByDefault reports whether replay is the model of a module for which
// none was chosen: one read from a trace.
func ReplaysByDefault(m *components.Module) bool {
	return m.HasDurations() && (Foreign(m) || m.Attribute(DocumentedTrace) != "")
}

// asRecorded reports whether the replay model gives rows lo to hi what
// newReplay does for one with a recorded duration and no overlap window: that
// duration, for their lane and their result.
func asRecorded(m *components.Module, lo, hi int) bool {
	if m.Attribute(DocumentedTrace) != "" {
		return false
	}
	var any components.Flags
	for _, f := range m.Instr.Flags.View(lo, hi) {
		any |= f
	}
	return !any.Has(components.FlagEstimated)
}

// newReplay returns the cost of the replay model: the durations the input
// brought. An instruction keeps its lane for its whole duration, except where
// the input is a trace of the documented simulator.
func newReplay(m *components.Module, mach *machine.Machine) func(i int) (issue, latency uint64) {
	dur := m.Instr.MeasuredDur.Slice()
	r := newReference(m, mach)
	if m.Attribute(DocumentedTrace) == "" {
		// What the input has no duration of takes what the machine needs: a
		// communication for as many bytes, work by the roofline.
		return func(i int) (uint64, uint64) {
			d := uint64(dur[i])
			if in := &m.Instr; in.Flags.At(i).Has(components.FlagEstimated) {
				switch c := &r.costs[in.Opcode.At(i)]; {
				case c.Form == "collective" && in.DMABytes.Get(i) > 0:
					d = r.latency(i, c)
				case in.Work.Get(i) > 0 || in.DMABytes.Get(i) > 0:
					d = roofline(mach, in.Work.Get(i), in.DMABytes.Get(i), in.DType.At(i))
				}
			}
			return d, d
		}
	}
	return func(i int) (uint64, uint64) {
		d := uint64(dur[i])
		return d - r.window(d, m.Instr.Lane.At(i), m.Instr.Flags.At(i)), d
	}
}

// roofline is the least time in ns of that many arithmetic operations over that
// many bytes of device memory: operations at two a cycle on each element of the
// 128 x 128 array, a quarter of that for operands of 4 bytes and more, bytes at
// the core's share of the memory's rate. At least 1 ns.
func roofline(mach *machine.Machine, work, bytes uint64, d components.DType) uint64 {
	perNs := 2 * 128 * 128 * float64(mach.Clock.PEArray) / 100
	if d != components.NoDType && d.Size() >= 4 {
		perNs /= 4
	}
	ns := float64(work) / max(perNs, 1)
	if rate := mach.Memory.HBMRate; rate > 0 {
		ns = max(ns, float64(bytes)/rate)
	}
	return uint64(min(max(math.Round(ns), 1), math.MaxUint32))
}
