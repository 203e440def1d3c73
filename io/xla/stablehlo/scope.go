package stablehlo

import (
	"perfsim/components/opgraph"
)

// scope says what is visible in a region: the results of its operations and
// its arguments, then what is visible around it.
type scope struct {
	up   *scope
	r    *region
	args []arg
	defs map[nameID]*node // nil for an argument; made when first asked
}

func newScope(up *scope, r *region) *scope { return &scope{up: up, r: r, args: r.args} }

// own returns what defines a name in the region itself, nil for an argument.
func (s *scope) own(name nameID) (*node, bool) {
	if s.defs == nil {
		s.defs = make(map[nameID]*node, len(s.r.ops)+len(s.args))
		for _, a := range s.args {
			s.defs[a.name] = nil
		}
		for _, n := range s.r.ops {
			for _, r := range n.names {
				s.defs[r.name] = n
			}
			if n.names == nil && n.result != 0 {
				s.defs[n.result] = n
			}
		}
	}
	n, ok := s.defs[name]
	return n, ok
}

func (s *scope) find(name nameID) (*node, bool) {
	for ; s != nil; s = s.up {
		if n, ok := s.own(name); ok {
			return n, true
		}
	}
	return nil, false
}

// argShape returns the shape of an argument.
func (s *scope) argShape(name nameID) (opgraph.ShapeID, bool) {
	for _, a := range s.args {
		if a.name == name {
			return a.shape, true
		}
	}
	return 0, false
}

// value names one result of an operation, or an argument.
type value struct {
	name nameID
	i    int32
}

// freeValues returns what a region uses and does not define, in order of use.
func freeValues(r *region) []ref {
	if r.done {
		return r.free
	}
	inside := newScope(nil, r)
	seen := map[value]bool{}
	add := func(u ref) {
		if _, ok := inside.own(u.name); ok || seen[value{u.name, u.i}] {
			return
		}
		seen[value{u.name, u.i}] = true
		r.free = append(r.free, u)
	}
	for _, n := range r.ops {
		for _, u := range n.operands {
			add(u)
		}
		for _, inner := range n.regions {
			for _, u := range freeValues(inner) {
				add(u)
			}
		}
	}
	r.done = true
	return r.free
}
