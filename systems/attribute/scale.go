package attribute

import (
	"math/bits"
	"slices"
	"sort"
)

// Window restricts what is counted to a part of a block's time, in ns.
type Window struct{ From, To uint64 }

// scale turns times of a block into counted time: what lies between two
// instants weighs one, or as often as the loop runs whose body moved the end
// of the block then; outside the window and behind the makespan nothing
// weighs anything.
type scale struct {
	at     []uint64 // ascending; piece k runs from at[k] to at[k+1]
	weight []uint64
	sum    []uint64 // counted time up to at[k]
	last   int      // piece of the last look-up: times mostly ascend
}

// newScale returns the scale of a block. trips tells that loop bodies weigh
// their trip counts.
func newScale(b *block, trips bool, win *Window) *scale {
	s := &scale{at: []uint64{0}, weight: []uint64{1}}
	if trips {
		s.loops(b)
	}
	if win == nil {
		win = &Window{0, b.span}
	}
	s.clip(Window{min(win.From, b.span), min(win.To, b.span)})
	s.sum = make([]uint64, len(s.at))
	for k := 1; k < len(s.at); k++ {
		s.sum[k] = addSat(s.sum[k-1], mulSat(s.at[k]-s.at[k-1], s.weight[k-1]))
	}
	return s
}

// loops sets the weights by the blocks of loops: the stretch from the end of
// everything before a body to the end of everything up to its last row.
func (s *scale) loops(b *block) {
	type body struct {
		end    uint32
		weight uint64 // around it
	}
	// The bodies inside a block follow it in the block table, in program
	// order, and nest; a stack of those open tells where the walk is.
	t := &b.m.Blocks
	var open []body
	next := b.row + 1
	weight, frontier := uint64(1), uint64(0)
	for i := b.first; i < b.end; i++ {
		for len(open) > 0 && open[len(open)-1].end <= i {
			weight = open[len(open)-1].weight
			open = open[:len(open)-1]
			s.from(frontier, weight)
		}
		for next < t.Len() && t.First.At(next) == i && t.Parent.At(next) != 0 {
			if end := t.End.At(next); end > i {
				open = append(open, body{end, weight})
				weight = mulSat(weight, max(t.Trip.At(next), 1))
				s.from(frontier, weight)
			}
			next++
		}
		if !b.loop(i) {
			_, end := b.spanOf(i)
			frontier = max(frontier, end)
		}
	}
}

// from sets the weight from t on, which is not before the last such time.
func (s *scale) from(t, weight uint64) {
	if n := len(s.at) - 1; s.at[n] == t {
		s.weight[n] = weight
		return
	}
	s.at = append(s.at, t)
	s.weight = append(s.weight, weight)
}

// split makes sure that a piece starts at t and returns it.
func (s *scale) split(t uint64) int {
	k, found := slices.BinarySearch(s.at, t)
	if !found {
		s.at = slices.Insert(s.at, k, t)
		s.weight = slices.Insert(s.weight, k, s.weight[k-1])
	}
	return k
}

func (s *scale) clip(w Window) {
	w.To = max(w.To, w.From)
	lo := s.split(w.From)
	hi := s.split(w.To)
	for k := range s.weight {
		if k < lo || k >= hi {
			s.weight[k] = 0
		}
	}
}

// until returns the counted time from 0 to t.
func (s *scale) until(t uint64) uint64 {
	k := s.last
	if s.at[k] > t || (k+1 < len(s.at) && s.at[k+1] <= t) {
		k = sort.Search(len(s.at), func(k int) bool { return s.at[k] > t }) - 1
		s.last = k
	}
	return addSat(s.sum[k], mulSat(t-s.at[k], s.weight[k]))
}

// between returns the counted time from a to b, 0 where b is not later.
func (s *scale) between(a, b uint64) uint64 {
	if b <= a {
		return 0
	}
	return s.until(b) - s.until(a)
}

// addSat and mulSat saturate, as the placement does.
func addSat(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return never
	}
	return sum
}

func mulSat(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return never
	}
	return lo
}
