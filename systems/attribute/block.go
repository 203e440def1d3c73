package attribute

import (
	"perfsim/components"
	"perfsim/systems/place"
)

// block is one top-level block of a placed world, seen in one run.
type block struct {
	w     *components.World
	m     *components.Module
	rules place.Rules
	uses  *place.Resources
	run   components.Run
	row   int // of the block table
	first uint32
	end   uint32
	span  uint64 // the makespan
	// repeats are the bodies in it that are placed as often as they run, in
	// program order, each before those inside it.
	repeats []*components.Repeat

	arrive [][2]uint64
	dur    [][2]uint32 // empty where durations are the latencies
	issue  []uint32
	lat    []uint32
	lane   []uint16
	flags  []components.Flags
}

func newBlock(w *components.World, rules place.Rules, run components.Run, row int) *block {
	m := w.Module
	in := &m.Instr
	b := &block{
		w: w, m: m, rules: rules, run: run, row: row, first: m.Blocks.First.At(row), end: m.Blocks.End.At(row), span: w.Blocks[row].LatencyTrips[run],
		arrive: w.Events.Arrive.Slice(), dur: w.Events.Dur.Slice(), issue: in.Issue.Slice(), lat: in.Latency.Slice(),
		lane: in.Lane.Slice(), flags: in.Flags.Slice(),
	}
	b.uses = b.rules.Resources(m)
	for n := row + 1; n < m.Blocks.Len() && m.Blocks.Parent.At(n) != 0; n++ {
		if r := w.Blocks[n].Repeat; r != nil {
			b.repeats = append(b.repeats, r)
		}
	}
	return b
}

// duration returns how long i takes.
func (b *block) duration(i uint32) uint64 {
	if len(b.dur) > 0 {
		return uint64(b.dur[i][b.run])
	}
	return uint64(b.lat[i])
}

// spanOf returns start and end of i.
func (b *block) spanOf(i uint32) (start, end uint64) {
	a, d := b.arrive[i][b.run], b.duration(i)
	if b.flags[i]&components.FlagTrigger != 0 {
		return a, a + d
	}
	return a - d, a
}

// shares reports whether i is a collective whose duration is its share of a
// bandwidth; such a one keeps its lane to its end.
func (b *block) shares(i uint32) bool { return b.rules.Shared(b.m, i) }

// occupancy returns how long i keeps its lane: the issue interval, longer by
// what the duration is longer than the latency.
func (b *block) occupancy(i uint32) uint64 {
	if len(b.dur) == 0 {
		return uint64(b.issue[i])
	}
	d := uint64(b.dur[i][b.run])
	if b.shares(i) {
		return d
	}
	tail := uint64(b.lat[i]) - uint64(min(b.issue[i], b.lat[i]))
	return d - min(d, tail)
}

// preds returns the edges of i that this run honours, as relation words.
func (b *block) preds(i uint32) []uint32 { return b.m.Edges.Preds.Row(int(i)) }

// loop reports whether row i is a loop, which has no event.
func (b *block) loop(i uint32) bool { return b.flags[i]&components.FlagLoop != 0 }

// slotsOf returns the numbering of the module's slots.
func (b *block) slotsOf() place.Slots { return place.Slots(b.m.Lanes.Len()) }
