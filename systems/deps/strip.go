package deps

import "math/bits"

// bitset is a set of positions with fast neighbours: a bit for each position,
// a bit for each word of those, and so on.
type bitset struct {
	levels [][]uint64
	n      int
}

func (s *bitset) init(n int) {
	s.n = n
	s.levels = s.levels[:0]
	for {
		n = (n + 63) / 64
		s.levels = append(s.levels, make([]uint64, n))
		if n <= 1 {
			return
		}
	}
}

func (s *bitset) has(i int) bool { return s.levels[0][i>>6]>>(i&63)&1 == 1 }

func (s *bitset) set(i int) {
	for _, l := range s.levels {
		w := &l[i>>6]
		old := *w
		*w |= 1 << (i & 63)
		if old != 0 {
			return
		}
		i >>= 6
	}
}

func (s *bitset) clear(i int) {
	for _, l := range s.levels {
		w := &l[i>>6]
		if *w &^= 1 << (i & 63); *w != 0 {
			return
		}
		i >>= 6
	}
}

// floor returns the largest member that is at most i; there must be one.
func (s *bitset) floor(i int) int {
	for k, l := range s.levels {
		if w := l[i>>6] & (2<<(i&63) - 1); w != 0 {
			at := i&^63 + 63 - bits.LeadingZeros64(w)
			for k--; k >= 0; k-- {
				at = at<<6 + 63 - bits.LeadingZeros64(s.levels[k][at])
			}
			return at
		}
		if i>>6 == 0 {
			break
		}
		i = i>>6 - 1
	}
	return -1
}

// above returns the smallest member larger than i, or n.
func (s *bitset) above(i int) int {
	i++
	for k, l := range s.levels {
		if i>>6 >= len(l) {
			return s.n
		}
		if w := l[i>>6] >> (i & 63); w != 0 {
			at := i + bits.TrailingZeros64(w)
			for k--; k >= 0; k-- {
				at = at<<6 + bits.TrailingZeros64(s.levels[k][at])
			}
			return at
		}
		i = i>>6 + 1
	}
	return s.n
}

// strip is a line of memory cut into cells that were accessed alike: each has
// a last writer and the readers since. A cell is known by its first position.
type strip struct {
	starts bitset
	writer []uint32 // row plus one, 0 for none
	head   []uint32 // first node of the readers, 0 for none
}

func newStrip(n int) *strip {
	s := &strip{writer: make([]uint32, n), head: make([]uint32, n)}
	s.starts.init(n)
	s.starts.set(0)
	return s
}

// cut makes a cell begin at position i.
func (s *strip) cut(i int) {
	if i >= s.starts.n || s.starts.has(i) {
		return
	}
	at := s.starts.floor(i)
	s.writer[i], s.head[i] = s.writer[at], s.head[at]
	s.starts.set(i)
}

// reader is a node of a list of readers. Lists are never changed, only
// extended at the front, so that the two halves of a cell can share one.
type reader struct{ row, next uint32 }

// read calls flow with the last writer of every cell from lo to hi and
// enters row as a reader, but not in cells that no later write touches. It
// returns the number of cells.
func (s *strip) read(row uint32, lo, hi int, nodes *[]reader, last lastWrites, flow func(writer uint32)) (cells int) {
	s.cut(lo)
	s.cut(hi)
	next := lo
	for c := lo; c < hi; c = next {
		cells++
		next = s.starts.above(c)
		if w := s.writer[c]; w != 0 {
			flow(w - 1)
		}
		if last.before(row, c, min(next, hi)) {
			continue
		}
		h := s.head[c]
		if h == 0 || (*nodes)[h].row != row {
			*nodes = append(*nodes, reader{row, h})
			s.head[c] = uint32(len(*nodes) - 1)
		}
	}
	return cells
}

// write calls output with the last writer of every cell from lo to hi and
// anti with its readers since, and makes row the last writer. It returns the
// number of cells and readers.
func (s *strip) write(row uint32, lo, hi int, nodes []reader, output, anti func(row uint32)) (cells int) {
	s.cut(lo)
	s.cut(hi)
	for c := lo; c < hi; {
		cells++
		if w := s.writer[c]; w != 0 {
			output(w - 1)
		}
		for h := s.head[c]; h != 0; h = nodes[h].next {
			anti(nodes[h].row)
			cells++
		}
		next := s.starts.above(c)
		if c != lo {
			s.starts.clear(c)
		}
		c = next
	}
	s.writer[lo], s.head[lo] = row+1, 0
	return cells
}

// lastWrites has, for groups of 64 positions, the row behind the last write of
// any of them.
type lastWrites []uint32

func (l lastWrites) note(row uint32, lo, hi int) {
	for g := lo >> 6; g <= (hi-1)>>6; g++ {
		l[g] = max(l[g], row+1)
	}
}

// before reports whether all writes of positions lo to hi come before row. It
// may say no where it is so.
func (l lastWrites) before(row uint32, lo, hi int) bool {
	if hi-lo > 1024 {
		return false
	}
	for g := lo >> 6; g <= (hi-1)>>6; g++ {
		if l[g] > row {
			return false
		}
	}
	return true
}
