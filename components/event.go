package components

import "perfsim/ecs"

// Run selects one of the two placements: A honours all edges, B leaves
// anti-dependencies out.
type Run int

// The runs.
const (
	RunA Run = iota
	RunB
)

// Events are the placements of the instructions, both runs side by side so
// that one gather brings both.
type Events struct {
	// Arrive is when consumers may use the result of an instruction, in ns
	// from the start of its block, for run A and run B: its end, except that a
	// DMA trigger's consumers wait for its start only.
	Arrive ecs.Column[[2]uint64]
	// Dur is the duration of each instruction in each run, in ns. It is absent
	// where the duration is the instruction's latency, the same in both runs;
	// models in which it depends on the state of the machine fill it.
	Dur ecs.Column[[2]uint32]
}

// NewEvents returns an empty table.
func NewEvents() Events {
	return Events{Arrive: ecs.NewColumn[[2]uint64]("events.arrive"), Dur: ecs.NewColumn[[2]uint32]("events.dur")}
}

// Duration returns how long instruction i takes in run r, in ns.
func (e *Events) Duration(m *Module, i InstrID, r Run) uint64 {
	if e.Dur.Len() > 0 {
		return uint64(e.Dur.At(int(i))[r])
	}
	return uint64(m.Instr.Latency.At(int(i)))
}

// Span returns start and end of instruction i in run r, in ns from the start
// of its block.
func (e *Events) Span(m *Module, i InstrID, r Run) (start, end uint64) {
	arrive := e.Arrive.At(int(i))[r]
	dur := e.Duration(m, i, r)
	if m.Instr.Flags.At(int(i))&FlagTrigger != 0 {
		return arrive, arrive + dur
	}
	return arrive - dur, arrive
}

// BlockResult is the result of one top-level block.
type BlockResult struct {
	Block   int
	Latency [2]uint64 // ns, by run: the end of the last event, loop bodies placed once
	// LatencyTrips is Latency with every loop body placed as often as its trip
	// count says, in ns; of a body, what one of its iterations takes. It is
	// Latency where Config.Loops does not ask for trips.
	LatencyTrips [2]uint64
	// Repeat describes the iterations of a loop's body where they are
	// placed; nil elsewhere. Events has the last of them.
	Repeat *Repeat
}

// Extent returns where the events of the block end in run r, in ns.
func (b *BlockResult) Extent(r Run) uint64 { return max(b.Latency[r], b.LatencyTrips[r]) }

// Repeat has, of a body that is placed as often as it runs, what its events do
// not show, which are those of the last iteration: times are by run, in ns from
// the start of the top-level block. Of a loop within a loop it describes the
// last iteration of the outer one.
type Repeat struct {
	First, End uint32 // rows of the body
	Trips      uint64 // at least 2
	Lanes      []RepeatLane
	Banks      []RepeatBank
	Rings      []RepeatRing
}

// Repeats reports whether the loops inside top-level block b have one that runs
// more than once.
func Repeats(m *Module, b int) bool {
	t := &m.Blocks
	for n := b + 1; n < t.Len() && t.Parent.At(n) != 0; n++ {
		if t.Trip.At(n) > 1 {
			return true
		}
	}
	return false
}

// FirstStart returns when the first row of a lane in the body of block row b
// starts in the iteration that has been placed last, given the start that its
// event has: where it lies in a loop inside that repeats the event is that of
// the last iteration of that.
func FirstStart(m *Module, blocks []BlockResult, b int, row uint32, run Run, event uint64) uint64 {
	t := &m.Blocks
	end := t.End.At(b)
	for n := b + 1; n < t.Len() && t.Parent.At(n) != 0 && t.First.At(n) < end; n++ {
		r := blocks[n].Repeat
		if r == nil || row < r.First || row >= r.End {
			continue
		}
		for _, l := range r.Lanes {
			if l.First == row {
				return l.Start[run]
			}
		}
		return event
	}
	return event
}

// Later moves what is recorded of the loops inside the body of block row b on
// in one run, on every lane by the time that by returns.
func Later(m *Module, blocks []BlockResult, b int, run Run, by func(lane uint16) uint64) {
	t := &m.Blocks
	end := t.End.At(b)
	for n := b + 1; n < t.Len() && t.Parent.At(n) != 0 && t.First.At(n) < end; n++ {
		r := blocks[n].Repeat
		if r == nil {
			continue
		}
		for k := range r.Lanes {
			l := &r.Lanes[k]
			d := by(l.Lane)
			for _, x := range []*[2]uint64{&l.Before, &l.Start, &l.Enter, &l.PSUM, &l.Leave} {
				x[run] += d
			}
		}
	}
}

// Interval returns how long an iteration takes in the steady state, in ns by
// run: what its slowest lane moves on by from one to the next, rounded up.
func (r *Repeat) Interval() (ns [2]uint64) {
	for _, l := range r.Lanes {
		for x, d := range l.Shift {
			ns[x] = max(ns[x], d/(r.Trips-1)+min(d%(r.Trips-1), 1))
		}
	}
	return ns
}

// RepeatLane is a lane that the body uses.
type RepeatLane struct {
	Lane        uint16
	First, Last uint32    // its first and last row in the body
	Before      [2]uint64 // when it is free for the first iteration
	Start       [2]uint64 // of First in the first iteration
	Enter       [2]uint64 // when it is free for the last iteration
	Shift       [2]uint64 // by how much First is later in the last iteration than in the first
	PSUM        [2]uint64 // end of its last PSUM writer before the last iteration
	Leave       [2]uint64 // when it is free behind the last iteration
	Tail        [2]uint64 // by how much the end of Last is later
}

// RepeatBank is a PSUM bank, by its number over all cores.
type RepeatBank struct {
	Slot  uint32
	Enter [2]uint64 // when it is free for the last iteration
}

// RepeatRing is a DMA queue, with the ends of the transfers in flight when the
// last iteration starts, oldest first.
type RepeatRing struct {
	Key    uint16
	Flying [2][]uint64
}
