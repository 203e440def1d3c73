package page

import (
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// successors is the edge relation of one block the other way round.
type successors struct {
	first uint32
	off   []uint32
	to    []uint32
}

func newSuccessors(m *components.Module, first, end uint32) *successors {
	s := &successors{first: first, off: make([]uint32, end-first+1)}
	for i := first; i < end; i++ {
		for _, w := range m.Edges.Preds.Row(int(i)) {
			s.off[w&ecs.TargetMask-first+1]++
		}
	}
	for i := range end - first {
		s.off[i+1] += s.off[i]
	}
	s.to = make([]uint32, s.off[end-first])
	next := slices.Clone(s.off)
	for i := first; i < end; i++ {
		for _, w := range m.Edges.Preds.Row(int(i)) {
			p := w&ecs.TargetMask - first
			s.to[next[p]] = i
			next[p]++
		}
	}
	return s
}

// of returns the instructions that depend on i.
func (s *successors) of(i uint32) []uint32 { return s.to[s.off[i-s.first]:s.off[i-s.first+1]] }
