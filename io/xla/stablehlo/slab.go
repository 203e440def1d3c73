package stablehlo

import "perfsim/components/opgraph"

// slab holds many short lists in few pieces of memory.
type slab[T any] struct{ chunk []T }

// slabLen is the elements of one piece at most, firstLen those of the first.
const firstLen, slabLen = 32, 1024

// add appends v to a list, in place where the list is the last of the slab.
func (s *slab[T]) add(list []T, v T) []T {
	n := len(list)
	if used := len(s.chunk); n > 0 && n <= used && used < cap(s.chunk) && &s.chunk[used-n] == &list[0] {
		s.chunk = append(s.chunk, v)
		return s.chunk[used-n : used+1 : used+1]
	}
	if cap(s.chunk)-len(s.chunk) < n+1 {
		s.chunk = make([]T, 0, max(min(2*cap(s.chunk), slabLen), firstLen, 2*n))
	}
	at := len(s.chunk)
	s.chunk = append(append(s.chunk, list...), v)
	return s.chunk[at : at+n+1 : at+n+1]
}

// take keeps a copy of a list.
func (s *slab[T]) take(list []T) []T {
	if cap(s.chunk)-len(s.chunk) < len(list) {
		s.chunk = make([]T, 0, max(slabLen, len(list)))
	}
	at := len(s.chunk)
	s.chunk = append(s.chunk, list...)
	return s.chunk[at:len(s.chunk):len(s.chunk)]
}

// slabs are the memory of a parser's nodes.
type slabs struct {
	nodes  slab[node]
	refs   slab[ref]
	attrs  slab[attr]
	texts  slab[string]
	shapes slab[opgraph.ShapeID]
	ints   slab[int64]
}

// node returns an empty node.
func (s *slabs) node() *node { return &s.nodes.add(nil, node{rare: &nothing})[0] }
