package attribute

import (
	"perfsim/ecs"
	"slices"
	"sort"
)

// Window restricts what is counted to a part of a block's time, in ns.
type Window struct{ From, To uint64 }

// scale turns times of a block into counted time: what lies between two
// instants weighs one; outside the window and behind the makespan nothing
// weighs anything.
type scale struct {
	at     []uint64 // ascending; piece k runs from at[k] to at[k+1]
	weight []uint64
	sum    []uint64 // counted time up to at[k]
	last   int      // piece of the last look-up: times mostly ascend
}

// newScale returns the scale of a block.
func newScale(b *block, win *Window) *scale {
	s := &scale{at: []uint64{0}, weight: []uint64{1}}
	if win == nil {
		win = &Window{0, b.span}
	}
	s.clip(Window{min(win.From, b.span), min(win.To, b.span)})
	s.sum = make([]uint64, len(s.at))
	for k := 1; k < len(s.at); k++ {
		s.sum[k] = ecs.AddSat(s.sum[k-1], ecs.MulSat(s.at[k]-s.at[k-1], s.weight[k-1]))
	}
	return s
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
	return ecs.AddSat(s.sum[k], ecs.MulSat(t-s.at[k], s.weight[k]))
}

// between returns the counted time from a to b, 0 where b is not later.
func (s *scale) between(a, b uint64) uint64 {
	if b <= a {
		return 0
	}
	return s.until(b) - s.until(a)
}
