package attribute

import (
	"perfsim/ecs"
	"sort"
)

// tripRange says how often the rows from first on run in one run of their
// block.
type tripRange struct {
	first uint32
	trips uint64
}

// tripRanges returns how often the rows of a block run, as ranges in row
// order, or nil where all run once.
func tripRanges(b *block) []tripRange {
	t := &b.m.Blocks
	type body struct {
		end   uint32
		trips uint64 // around it
	}
	var open []body
	out := []tripRange{{b.first, 1}}
	trips := uint64(1)
	set := func(i uint32) {
		if n := len(out) - 1; out[n].first == i {
			out[n].trips = trips
			return
		}
		out = append(out, tripRange{i, trips})
	}
	closeAt := func(limit uint32) {
		for len(open) > 0 && open[len(open)-1].end <= limit {
			x := open[len(open)-1]
			open = open[:len(open)-1]
			trips = x.trips
			set(x.end)
		}
	}
	for row := b.row + 1; row < t.Len() && t.Parent.At(row) != 0 && t.First.At(row) < b.end; row++ {
		first, end := t.First.At(row), t.End.At(row)
		if first == end {
			continue
		}
		closeAt(first)
		open = append(open, body{end, trips})
		trips = ecs.MulSat(trips, max(t.Trip.At(row), 1))
		set(first)
	}
	closeAt(b.end)
	if len(out) == 1 && out[0].trips == 1 {
		return nil
	}
	return out
}

// tripsOf returns how often row i runs in one run of its block.
func (w *laneWalk) tripsOf(i uint32) uint64 { return tripsAt(w.trips, &w.tripAt, i) }

func tripsAt(ranges []tripRange, at *int, i uint32) uint64 {
	k := *at
	if ranges[k].first > i || k+1 < len(ranges) && ranges[k+1].first <= i {
		k = sort.Search(len(ranges), func(k int) bool { return ranges[k].first > i }) - 1
		*at = k
	}
	return ranges[k].trips
}
