package countertrack

import (
	"cmp"
	"slices"
	"sort"

	"perfsim/components"
)

// loop is a loop of a simulated process that is placed as often as it runs.
// Events are those of its last iteration; earlier ones lie between start and
// last.
type loop struct {
	first, end         uint32 // rows of the body
	parent             int    // the loop around, -1 for none
	trips              uint64
	start, last, until uint64 // ns: of the first iteration, of the last one and its end
	lanes              map[uint16]uint64
}

// findLoops lists the loops of process p, outer before inner.
func findLoops(t *components.Timeline, p int) []loop {
	if t.Processes[p].Measured {
		return nil
	}
	var out []loop
	m, w, run := t.World.Module, t.World, t.Processes[p].Run
	for k, b := range t.Blocks {
		outer := len(out)
		for n := b + 1; n < m.Blocks.Len() && m.Blocks.Parent.At(n) != 0; n++ {
			r := w.Blocks[n].Repeat
			if r == nil || r.First == r.End {
				continue
			}
			x := loop{first: r.First, end: r.End, parent: -1, trips: r.Trips, start: ^uint64(0), last: ^uint64(0), lanes: map[uint16]uint64{}}
			for o := len(out) - 1; o >= outer && x.parent < 0; o-- {
				if out[o].end >= x.end && out[o].first <= x.first {
					x.parent = o
				}
			}
			for _, l := range r.Lanes {
				x.lanes[l.Lane] = l.Start[run] + t.Offset[k]
				x.start = min(x.start, x.lanes[l.Lane])
			}
			for i := r.First; i < r.End; i++ {
				if t.Has(p, components.InstrID(i)) {
					s, e := t.Span(p, components.InstrID(i))
					x.last, x.until = min(x.last, s), max(x.until, e)
				}
			}
			out = append(out, x)
		}
		// An iteration begins where its first inner loop does.
		for i := len(out) - 1; i >= outer; i-- {
			if p := out[i].parent; p >= 0 {
				out[p].last = min(out[p].last, out[i].start)
			}
		}
	}
	return out
}

// innermost returns the loop that row i is in, -1 for none.
func (c *counters) innermost(i components.InstrID) int {
	k := sort.Search(len(c.loops), func(k int) bool { return c.loops[k].first > uint32(i) }) - 1
	for k >= 0 && c.loops[k].end <= uint32(i) {
		k = c.loops[k].parent
	}
	return k
}

// earlier calls f with what the earlier iterations of the loops around row i
// add to an amount of its last execution, evenly over their time on the lane.
func (c *counters) earlier(i components.InstrID, amount float64, f func(from, to uint64, amount float64)) {
	lane := c.t.World.Module.Instr.Lane.At(int(i))
	for k := c.innermost(i); k >= 0; k = c.loops[k].parent {
		l := &c.loops[k]
		if from, ok := l.lanes[lane]; ok {
			f(from, max(l.last, from+1), amount*float64(l.trips-1))
		}
		amount *= float64(l.trips)
	}
}

// once returns what one execution of row i adds to the busy time of its lane, in
// ns: of the first process what the tables of run count, where successive
// iterations share what they cover together; of others the time drawn.
func (c *counters) once(i components.InstrID, drawn float64) float64 {
	if c.p > 0 || len(c.t.RowBusy) == 0 || c.t.Executions == nil {
		return drawn
	}
	return float64(c.t.RowBusy[i]) / float64(max(c.t.Executions.At(i), 1))
}

// change is by how many cells more are live from a time on.
type change struct {
	at uint64
	by int
}

// fillLoops raises the samples of earlier iterations to the most that the last
// one holds: events show that one only.
func (c *counters) fillLoops(counts []int, changes []change) {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	held := make([]int, len(changes)) // after each change
	now := 0
	for k, x := range changes {
		now += x.by
		held[k] = now
	}
	for k := range c.loops {
		l := &c.loops[k]
		most := 0
		for i := sort.Search(len(changes), func(i int) bool { return changes[i].at >= l.last }); i < len(changes) && changes[i].at < l.until; i++ {
			if i+1 == len(changes) || changes[i+1].at > changes[i].at { // all changes of one time
				most = max(most, held[i])
			}
		}
		for n := int(l.start / c.width); n < len(counts) && uint64(n)*c.width < l.last; n++ {
			counts[n] = max(counts[n], most)
		}
	}
}
