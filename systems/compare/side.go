package compare

import (
	"slices"

	"perfsim/components"
	"perfsim/systems/summary"
	"perfsim/systems/work"
)

// Side is one timeline: when every instruction of a module starts and ends,
// in ns.
type Side struct {
	Name   string
	Module *components.Module
	Start  []float64
	End    []float64
	// Latency is the time of the whole side in ns, loops and runs counted; 0
	// where that is from the first start to the last end.
	Latency uint64
	// Busy is the busy time by lane in ns (systems/summary); nil where nobody
	// asks for it.
	Busy []uint64
	// Work is the computation and traffic of the side, Rates the same by
	// its time; nil where nobody asks for it.
	Work  *work.Figures
	Rates *work.Rates

	times  *components.Executions
	placed []bool // nil where all are
}

// weight is how often row i executes.
func (s *Side) weight(i int) float64 {
	if s.times == nil {
		return 1
	}
	return float64(s.times.At(components.InstrID(i)))
}

// Measured is the timeline the input brought. The module must have measured
// times; rows without any, where others have some, are left out.
func Measured(m *components.Module) *Side {
	n := m.Instr.Len()
	s := &Side{Name: "measured", Module: m, Start: make([]float64, n), End: make([]float64, n), Busy: summary.MeasuredBusy(m)}
	for i, t := range m.Instr.MeasuredStart.Slice() {
		s.Start[i] = float64(t)
		s.End[i] = float64(t) + float64(m.Instr.MeasuredDur.At(i))
	}
	flags := m.Instr.Flags.Slice()
	measured := func(f components.Flags) bool { return f&components.FlagMeasured != 0 }
	if slices.ContainsFunc(flags, measured) {
		for i, f := range flags {
			if !measured(f) {
				s.leave(i)
			}
		}
	}
	return s
}

// FromTimes is a timeline of given starts and durations by row, in ns.
func FromTimes(m *components.Module, name string, start []float64, dur []float32) *Side {
	s := &Side{Name: name, Module: m, Start: start, End: make([]float64, len(start))}
	for i, t := range start {
		s.End[i] = t + float64(dur[i])
	}
	s.skipLoops()
	return s
}

// Predicted is the timeline of one run of a placed world: the top-level
// blocks one after the other, loop bodies once. busy is the busy time by lane.
func Predicted(w *components.World, name string, run components.Run, busy []uint64) *Side {
	m := w.Module
	n := m.Instr.Len()
	s := &Side{Name: name, Module: m, Start: make([]float64, n), End: make([]float64, n), Latency: w.Latency(run), Busy: busy,
		times: components.NewExecutions(m, w.Config.Loops)}
	latency := make(map[int]float64, len(w.Blocks))
	for _, r := range w.Blocks {
		latency[r.Block] = float64(r.Extent(run))
	}
	at := 0.0
	for _, b := range m.TopBlocks() {
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			start, end := w.Events.Span(m, components.InstrID(i), run)
			s.Start[i], s.End[i] = at+float64(start), at+float64(end)
		}
		at += latency[b]
	}
	s.skipLoops()
	return s
}

func (s *Side) skipLoops() {
	for i, f := range s.Module.Instr.Flags.Slice() {
		if f&components.FlagLoop != 0 {
			s.leave(i)
		}
	}
}

// leave takes row i out of the timeline.
func (s *Side) leave(i int) {
	if s.placed == nil {
		s.placed = slices.Repeat([]bool{true}, len(s.Start))
	}
	s.placed[i] = false
}

func (s *Side) has(i int) bool { return s.placed == nil || s.placed[i] }

// Kernel reports whether row i is the kernel's own work: an instruction of the
// compiler, but for the mode switch that opens every engine's program. In
// modules that do not distinguish the compiler's instructions from the
// runtime's it is every row.
func Kernel(m *components.Module, i int) bool {
	if m.Instr.CompilerPC.Len() == 0 {
		return true
	}
	return m.Instr.CompilerPC.At(i) > 0 && m.OpcodeName(m.Instr.Opcode.At(i)) != "SET_ORDERING_MODE"
}

// span returns the first start and last end of the rows that pick takes; ok
// is false where there are none.
func (s *Side) span(pick func(i int) bool) (lo, hi float64, ok bool) {
	for i := range s.Start {
		if !s.has(i) || !pick(i) {
			continue
		}
		if !ok {
			lo, hi, ok = s.Start[i], s.End[i], true
			continue
		}
		lo, hi = min(lo, s.Start[i]), max(hi, s.End[i])
	}
	return lo, hi, ok
}

// engine is the name under which row i's engine is reported: that of the
// sequencer that issues it, with the core in front but for the first.
func engine(m *components.Module, i int) string {
	e := m.Instr.Engine.At(i)
	lane := m.Instr.Lane.At(i)
	name := e.String()
	if e == components.Unassigned {
		name = m.LaneName(lane)
	}
	if int(lane) < m.Lanes.Len() {
		if c := m.Lanes.Core.At(int(lane)); c > 0 {
			return "nc" + string(appendUint(nil, uint64(c))) + "." + name
		}
	}
	return name
}
