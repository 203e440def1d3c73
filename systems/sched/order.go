package sched

import (
	"perfsim/components"
	"perfsim/ecs"
)

// topological returns an order of the rows in which no instruction comes
// before a producer of its segment, as near to program order as that allows,
// and which blocks needed it. It is nil where program order is such already.
func topological(m *components.Module) (order []uint32, later []bool) {
	later = make([]bool, m.Blocks.Len())
	o := &m.Edges.Other
	extra := map[uint32][]uint32{} // consumer: producers behind it
	for e := range o.Len() {
		if o.Scope.At(e) == components.ScopeLater {
			from := o.From.At(e)
			extra[from] = append(extra[from], o.To.At(e))
		}
	}
	if len(extra) == 0 {
		return nil, later
	}
	order = identity(m.Instr.Len())
	region := regions(m)
	for _, b := range m.TopBlocks() {
		for _, s := range cut(m, region, m.Blocks.First.At(b), m.Blocks.End.At(b)) {
			if sortSegment(m, s, extra, order) {
				later[b] = true
			}
		}
	}
	return order, later
}

// sortSegment puts producers before consumers: Kahn's algorithm, the first in
// program order among those that may come.
func sortSegment(m *components.Module, s segment, extra map[uint32][]uint32, order []uint32) bool {
	n := int(s.hi - s.lo)
	needed := false
	for i := s.lo; i < s.hi && !needed; i++ {
		for _, p := range extra[i] {
			needed = needed || p < s.hi
		}
	}
	if !needed {
		return false
	}
	left := make([]int32, n)
	after := make([][]int32, n)
	add := func(i, p uint32) {
		if p >= s.lo && p < s.hi {
			left[i-s.lo]++
			after[p-s.lo] = append(after[p-s.lo], int32(i-s.lo))
		}
	}
	for i := s.lo; i < s.hi; i++ {
		for _, w := range m.Edges.Preds.Row(int(i)) {
			add(i, w&ecs.TargetMask)
		}
		for _, p := range extra[i] {
			add(i, p)
		}
	}
	h := ecs.Heap[int32]{Less: func(a, b int32) bool { return a < b }}
	for i := range n {
		if left[i] == 0 {
			h.Push(int32(i))
		}
	}
	for at := s.lo; h.Len() > 0; at++ {
		i := h.Pop()
		order[at] = s.lo + uint32(i)
		for _, j := range after[i] {
			if left[j]--; left[j] == 0 {
				h.Push(j)
			}
		}
	}
	return true
}

// bounds returns the two lower bounds of a top-level block: the longest chain
// of dependencies, lanes and memory left aside, and the largest sum of issue
// intervals of one lane.
func bounds(m *components.Module, b int) (path, busy uint64) {
	in := &m.Instr
	lo, hi := m.Blocks.First.At(b), m.Blocks.End.At(b)
	end := make([]uint64, hi-lo) // when consumers may use the result
	sum := make([]uint64, m.Lanes.Len())
	for i := lo; i < hi; i++ {
		flags := in.Flags.At(int(i))
		if flags&components.FlagLoop != 0 {
			continue
		}
		start := uint64(0)
		for _, w := range m.Edges.Preds.Row(int(i)) {
			p := w & ecs.TargetMask
			t := end[p-lo]
			if uint8(w>>ecs.ClassShift) == components.ClassOrdered {
				// An ordered edge waits for the producer's dispatch only, and by a
				// collective for less.
				f := in.Flags.At(int(p))
				switch {
				case f&components.FlagCollective != 0:
					continue
				case f&components.FlagTrigger != 0:
					t += uint64(in.Latency.At(int(p)))
				default:
					t -= uint64(in.Latency.At(int(p)) - in.Issue.At(int(p)))
				}
			}
			start = max(start, t)
		}
		e := start + uint64(in.Latency.At(int(i)))
		path = max(path, e)
		end[i-lo] = e
		if flags&components.FlagTrigger != 0 {
			end[i-lo] = start
		}
		sum[in.Lane.At(int(i))] += uint64(in.Issue.At(int(i)))
	}
	for _, s := range sum {
		busy = max(busy, s)
	}
	return path, busy
}
