package components

import (
	"cmp"
	"slices"
	"sort"

	"perfsim/ecs"
)

// Process is one way in which the instructions of a module ran: in the runs
// of a simulation, or on the machine.
type Process struct {
	Name     string
	Run      Run
	Measured bool
}

// Series is a counter over time: its value holds until the next time.
type Series struct {
	Name    string
	Unit    string
	Process int
	Time    []uint64 // ns on the common axis, ascending
	Value   []float64
}

// Metric is a figure of the whole simulation.
type Metric struct {
	Name  string
	Value float64
	Unit  string
}

// Timeline is the input of exporters: the events of one or more processes on
// one time axis, with what is known about them. Top-level blocks follow one
// another, each as long as its longer run.
type Timeline struct {
	World     *World
	Processes []Process
	// Blocks are the top-level blocks shown, Offset where each starts, in ns.
	Blocks []int
	Offset []uint64
	// Why, Slack and Critical are of run A; they may be absent.
	Why      *Attribution
	Slack    []uint64
	Critical ecs.Bits
	// Executions and RowBusy are of process 0: how often every row executes, and
	// what its executions add to the busy time of its lane, in ns. They may be
	// absent.
	Executions *Executions
	RowBusy    []uint64
	Series     []Series
	Metrics    []Metric
}

// NewTimeline lays out the top-level blocks of a placed world: all, or the one
// in row block where that is not negative.
func NewTimeline(w *World, block int, processes ...Process) *Timeline {
	t := &Timeline{World: w, Processes: processes}
	var at uint64
	for _, b := range w.Module.TopBlocks() {
		if block >= 0 && b != block {
			continue
		}
		t.Blocks = append(t.Blocks, b)
		t.Offset = append(t.Offset, at)
		at = ecs.AddSat(at, max(w.Blocks[b].Extent(RunA), w.Blocks[b].Extent(RunB)))
	}
	return t
}

// Span returns start and end of instruction i in process p, in ns on the
// common axis. Measured times are those of the input.
func (t *Timeline) Span(p int, i InstrID) (start, end uint64) {
	m := t.World.Module
	if t.Processes[p].Measured {
		s := m.Instr.MeasuredStart.At(int(i))
		return s, s + uint64(m.Instr.MeasuredDur.At(int(i)))
	}
	start, end = t.World.Events.Span(m, i, t.Processes[p].Run)
	off := t.Offset[0]
	if len(t.Blocks) > 1 {
		off = t.Offset[t.Block(i)]
	}
	return start + off, end + off
}

// Block returns the index in Blocks of the block that holds instruction i.
func (t *Timeline) Block(i InstrID) int {
	first := &t.World.Module.Blocks.First
	return sort.Search(len(t.Blocks), func(k int) bool { return first.At(t.Blocks[k]) > uint32(i) }) - 1
}

// Has reports whether instruction i has an event in process p.
func (t *Timeline) Has(p int, i InstrID) bool {
	f := t.World.Module.Instr.Flags.At(int(i))
	return f&FlagLoop == 0 && (!t.Processes[p].Measured || f&FlagMeasured != 0)
}

// End returns when the last event of all processes ends.
func (t *Timeline) End() uint64 {
	var end uint64
	t.Each(func(i InstrID) {
		for p := range t.Processes {
			if t.Has(p, i) {
				_, e := t.Span(p, i)
				end = max(end, e)
			}
		}
	})
	return end
}

// Each calls f with the instructions of the blocks shown, in program order.
func (t *Timeline) Each(f func(i InstrID)) {
	for _, b := range t.Blocks {
		for i := t.World.Module.Blocks.First.At(b); i < t.World.Module.Blocks.End.At(b); i++ {
			f(InstrID(i))
		}
	}
}

// Lanes returns the instructions of process p by lane, each lane in the order
// of starts, the shorter first at equal starts (a longer one would be drawn
// with no length) and the earlier in program order among equals.
func (t *Timeline) Lanes(p int) [][]InstrID {
	m := t.World.Module
	lane := m.Instr.Lane.Slice()
	count := make([]int, m.Lanes.Len())
	n := 0
	t.Each(func(i InstrID) {
		if t.Has(p, i) {
			count[lane[i]]++
			n++
		}
	})
	all := make([]InstrID, n)
	out := make([][]InstrID, len(count))
	at := 0
	for l, c := range count {
		out[l] = all[at : at : at+c]
		at += c
	}
	t.Each(func(i InstrID) {
		if t.Has(p, i) {
			out[lane[i]] = append(out[lane[i]], i)
		}
	})
	for _, rows := range out {
		order := func(a, b InstrID) int {
			as, ae := t.Span(p, a)
			bs, be := t.Span(p, b)
			return cmp.Or(cmp.Compare(as, bs), cmp.Compare(ae, be), cmp.Compare(a, b))
		}
		if !slices.IsSortedFunc(rows, order) {
			slices.SortFunc(rows, order)
		}
	}
	return out
}

// Drawn returns how long row k of a lane of process p is drawn: to its end or
// to the start of the next on the lane, so that events of a lane never
// overlap. An instruction leaves its lane before its result is there.
func (t *Timeline) Drawn(p int, rows []InstrID, k int) (start, dur, full uint64) {
	start, end := t.Span(p, rows[k])
	full = end - start
	dur = full
	if k+1 < len(rows) {
		next, _ := t.Span(p, rows[k+1])
		dur = min(dur, next-start)
	}
	return start, dur, full
}

// ID returns the number of the event of instruction i in process p, unique
// over all processes: the row, with the process above bit 40.
func (t *Timeline) ID(p int, i InstrID) int64 { return int64(p)<<40 | int64(i) }

// TrackName names a lane of a process the way viewers list it.
func (t *Timeline) TrackName(l uint16) string { return t.World.Module.LaneName(l) }

// Weight returns how often instruction i executes.
func (t *Timeline) Weight(i InstrID) uint64 {
	if t.Executions == nil {
		return 1
	}
	return t.Executions.At(i)
}

// Busy returns what all executions of the instruction of an event add to the
// busy time of its lane, in ns. waits has the opcodes that wait for semaphores,
// which add nothing (Module.WaitOpcodes).
func (t *Timeline) Busy(e *TimelineEvent, waits []bool) uint64 {
	switch {
	case waits[t.World.Module.Instr.Opcode.At(int(e.Instr))]:
		return 0
	case e.Process == 0 && t.RowBusy != nil:
		return t.RowBusy[e.Instr]
	}
	return ecs.MulSat(e.Dur, t.Weight(e.Instr))
}

// Label is the name of an instruction's slice in a viewer: its opcode, so that
// viewers sum and colour by opcode; the name of the instruction where it has
// no opcode.
func (m *Module) Label(i InstrID) string {
	if op := m.OpcodeName(m.Instr.Opcode.At(int(i))); op != "" {
		return op
	}
	return m.InstrName(i)
}

// Category sorts an instruction for viewers.
func (m *Module) Category(i InstrID) string {
	f := m.Instr.Flags.At(int(i))
	lane := int(m.Instr.Lane.At(int(i)))
	switch {
	case f&FlagCollective != 0 || m.Lanes.Kind.At(lane) == LaneStream:
		return "collective"
	case f&FlagTrigger != 0 || m.Lanes.Engine.At(lane) == DMA || m.Lanes.Kind.At(lane) == LaneDMAQueue:
		return "dma"
	case f&(FlagSequencer|FlagBarrier) != 0:
		return "control"
	}
	return "compute"
}

// Dependency is one edge as exporters write it.
type Dependency struct {
	Edge     uint32 // id
	From, To InstrID
	Kind     EdgeKind
	// Gap is the time from when the producer released to the consumer's start;
	// negative where the placement did not honour the edge.
	Gap      int64
	Binding  bool // it held the consumer
	Critical bool // and both are on the critical path
}

// Dependencies calls f with the dependencies between the instructions shown,
// as process p has them, in the order of the consumers. It stops at the first
// error of f.
func (t *Timeline) Dependencies(p int, f func(*Dependency) error) error {
	m := t.World.Module
	off := m.Edges.Preds.Offsets()
	why := t.Why
	if t.Processes[p].Measured || why != nil && why.Run != t.Processes[p].Run {
		why = nil
	}
	for _, b := range t.Blocks {
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			if !t.Has(p, InstrID(i)) {
				continue
			}
			for k, w := range m.Edges.Preds.Row(int(i)) {
				from, class := InstrID(w&ecs.TargetMask), uint8(w>>ecs.ClassShift)
				if class == ClassAnti && t.Processes[p].Run == RunB || !t.Has(p, from) {
					continue
				}
				d := Dependency{Edge: off[i] + uint32(k), From: from, To: InstrID(i), Kind: KindOfClass(class)}
				start, _ := t.Span(p, d.To)
				d.Gap = int64(start) - int64(t.release(p, from, class, why))
				if why != nil {
					d.Binding = why.Pred.At(int(i)) == from && why.Cause.At(int(i)) == CauseOfKind(d.Kind)
					d.Critical = d.Binding && t.Critical != nil && t.Critical.Has(i) && t.Critical.Has(uint32(from))
				}
				if err := f(&d); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// release is when producer i releases consumers by edges of a class.
func (t *Timeline) release(p int, i InstrID, class uint8, why *Attribution) uint64 {
	m := t.World.Module
	start, end := t.Span(p, i)
	trigger := m.Instr.Flags.At(int(i))&FlagTrigger != 0
	switch {
	case t.Processes[p].Measured:
		return end
	case class == ClassOrdered:
		if trigger {
			return end
		}
		return start + min(uint64(m.Instr.Issue.At(int(i))), end-start)
	case why != nil && why.Visible.Len() > 0:
		at, _ := t.World.Events.Span(m, i, why.Run)
		return start + why.Visible.At(int(i)) - at
	case trigger:
		return start
	}
	return end
}
