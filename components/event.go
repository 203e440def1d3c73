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

// BlockResult is what the simulation of one top-level block gave.
type BlockResult struct {
	Block   int
	Latency [2]uint64 // ns, by run: the end of the last event, loop bodies placed once
	// LatencyTrips is Latency with every loop body counted as often as its
	// trip count says, in ns.
	LatencyTrips [2]uint64
}
