package kineto

import (
	"strings"

	"perfsim/components"
	"perfsim/ecs"
)

// scopes finds the annotations, modules and operators that are open at a time
// on a thread. It is asked in the order of threads and times.
type scopes struct {
	t     *trace
	list  []*event // by thread and start
	next  int
	open  []*event
	last  ecs.Symbol // the scope of open
	fresh bool       // open changed since
	parts []string
}

// moduleSlice begins the names of the Python functions that are modules.
const moduleSlice = "nn.Module: "

func newScopes(t *trace) *scopes {
	s := &scopes{t: t}
	for i := range t.events {
		switch e := &t.events[i]; e.cat {
		case catOp, catRange:
			s.list = append(s.list, e)
		case catPython:
			if strings.HasPrefix(t.b.M.Symbols.String(e.name), moduleSlice) {
				s.list = append(s.list, e)
			}
		}
	}
	sortSlices(s.list)
	return s
}

// at returns the scope of a thread at a time, 0 for none.
func (s *scopes) at(thread uint32, at int64) ecs.Symbol {
	if len(s.open) > 0 && s.open[0].thread != thread {
		s.open, s.fresh = s.open[:0], true
	}
	for ; s.next < len(s.list) && s.list[s.next].thread < thread; s.next++ {
	}
	for ; s.next < len(s.list) && s.list[s.next].thread == thread && s.list[s.next].start <= at; s.next++ {
		s.pop(s.list[s.next].start)
		s.open, s.fresh = append(s.open, s.list[s.next]), true
	}
	s.pop(at)
	if s.fresh {
		s.fresh = false
		s.parts = s.parts[:0]
		for _, e := range s.open[max(0, len(s.open)-deepest):] {
			s.parts = append(s.parts, strings.TrimPrefix(s.t.b.M.Symbols.String(e.name), moduleSlice))
		}
		if s.last = 0; len(s.parts) > 0 {
			s.last = s.t.b.M.Symbols.InternString(components.JoinScope(s.parts...))
		}
	}
	return s.last
}

func (s *scopes) pop(at int64) {
	n := len(s.open)
	s.open = popEnded(s.open, at)
	s.fresh = s.fresh || len(s.open) != n
}
