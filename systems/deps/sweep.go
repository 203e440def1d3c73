package deps

import (
	"context"
	"fmt"
	"slices"

	"perfsim/components"
)

// region is a space with its strips of partitions.
type region struct {
	bounds []uint32 // strip k holds partitions bounds[k] to bounds[k+1]
	strips []*strip
	coords []uint64 // positions that matter, where there are more bytes than is cheap
	n      int
	last   lastWrites
}

// direct is the number of positions, over all strips, up to which a position
// is its byte in SBUF and PSUM. A space of device memory has at most
// directEach positions per access, so that memory is linear in the accesses
// however many spaces there are. Above, positions are numbered.
const (
	direct     = 1 << 21
	directEach = 64
)

// These bound the cells that a walk visits, the edges it records and the
// positions it holds, beyond the first freeWork of each. What one
// access meets depends on the accesses before it, so both can grow with the
// square of the input. Compiled modules have about 3 edges and 10 cells per
// access.
const (
	maxCells = 4096 // per access
	maxEdges = 256  // per access
	maxSpots = 512  // positions of strips per access, 8 bytes each
	freeWork = 1 << 23
)

// sweep walks over the accesses of one function in program order.
type sweep struct {
	c       *collector
	regions []region
	nodes   []reader
	spare   []reader
	moved   []uint32
	full    int    // number of nodes at which unused ones are dropped
	first   uint32 // first row of the function
	rows    uint32 // rows of the module

	flow, anti bool // which kinds to record

	cells, recorded, spots int // visited, recorded and allocated so far

	row     uint32
	matmul  bool
	adds    bool   // the current matmul adds to what is there
	carried bool   // in the second walk over a loop
	loop    uint32 // first row of that loop's bodies

	register          bool   // the current space is a register
	psum              bool   // it is a PSUM bank
	nearOut, nearAnti uint64 // of a matmul in the current space: key, 0 for none
	edges             []found
	at                []uint32 // by row: index in edges plus one of this row's edge to it
	sink              func(from uint32, edges []found)
}

// found is one dependency of the current row.
type found struct {
	to   uint32
	kind components.EdgeKind
}

// newSweep prepares the walk over rows first to end, in which the outermost
// loops have the given rows.
func newSweep(c *collector, first, end uint32, outer []loopRange) *sweep {
	s := &sweep{c: c, first: first, nodes: make([]reader, 1), full: c.opt.readers, at: make([]uint32, end-first)}
	s.regions = make([]region, len(c.spaces))
	bounds := c.bounds()
	top := make([]uint64, len(c.spaces))
	for i := range c.list {
		a := &c.list[i]
		top[a.space] = max(top[a.space], a.hi)
	}
	most := make([]uint64, len(c.spaces))
	for i := range c.list {
		most[c.list[i].space] += directEach
	}
	for k, sp := range c.spaces {
		if sp.kind == spaceSBUF || sp.kind == spacePSUM {
			most[k] = direct
		}
	}
	ends := make([][]uint64, len(c.spaces))
	for i := range c.list {
		if a := &c.list[i]; top[a.space] > most[a.space]/uint64(len(bounds[a.space])) {
			ends[a.space] = append(ends[a.space], a.lo, a.hi)
		}
	}
	for k := range s.regions {
		r := &s.regions[k]
		r.bounds = bounds[k]
		r.n = int(top[k])
		if e := ends[k]; len(e) > 0 {
			slices.Sort(e)
			r.coords = slices.Compact(e)
			r.n = len(r.coords)
		}
		r.strips = make([]*strip, max(len(r.bounds)-1, 0))
		r.last = make(lastWrites, r.n>>6+1)
	}
	k := 0
	for i := range c.list {
		a := &c.list[i]
		if !a.write || a.lo == a.hi {
			continue
		}
		// A write in a loop comes again until the loop ends.
		row := a.row
		for k < len(outer) && outer[k].end <= row {
			k++
		}
		if k < len(outer) && outer[k].first <= row {
			row = outer[k].end - 1
		}
		r := &s.regions[a.space]
		r.last.note(row, r.position(a.lo), r.position(a.hi))
	}
	return s
}

// position turns a byte into a position of the region.
func (r *region) position(b uint64) int {
	if r.coords == nil {
		return int(b)
	}
	i, _ := slices.BinarySearch(r.coords, b)
	return i
}

// walk handles rows lo to hi.
func (s *sweep) walk(ctx context.Context, lo, hi uint32) error {
	for i := lo; i < hi; i++ {
		if i&0x3ff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		a, b := s.c.first[i-s.first], s.c.first[i-s.first+1]
		if a < b {
			s.instruction(i, s.c.list[a:b])
		}
		n, free := len(s.c.list), s.c.opt.free
		if s.cells > free+maxCells*n || s.recorded > free+maxEdges*n || s.spots > free+maxSpots*n {
			return fmt.Errorf("rebuilding dependencies stopped at instruction %s: %d pieces of memory met, %d dependencies found, %d positions held for %d accesses (limits per access: %d, %d, %d)",
				s.c.m.InstrName(components.InstrID(i)), s.cells, s.recorded, s.spots, n, maxCells, maxEdges, maxSpots)
		}
	}
	return nil
}

// instruction handles the accesses of one row.
func (s *sweep) instruction(i uint32, list []access) {
	s.row = i
	in := &s.c.m.Instr
	s.matmul = in.Opcode.At(int(i)).IsMatmul()
	s.adds = s.matmul && s.c.opt.accumulate && in.Flags.At(int(i))&components.FlagAccStart == 0
	s.edges = s.edges[:0]
	for k := range list {
		a := &list[k]
		r := &s.regions[a.space]
		lo, hi := r.position(a.lo), r.position(a.hi)
		s.nearOut, s.nearAnti = 0, 0
		kind := s.c.spaces[a.space].kind
		s.register, s.psum = kind == spaceRegister, kind == spacePSUM
		from, _ := slices.BinarySearch(r.bounds, a.p0)
		for p := from; p < len(r.strips) && r.bounds[p] < a.p1; p++ {
			t := r.strips[p]
			if t == nil {
				t = newStrip(r.n + 1)
				s.spots += r.n + 1
				r.strips[p] = t
			}
			if a.write {
				s.cells += t.write(i, lo, hi, s.nodes, s.output, s.readerOf)
			} else {
				s.cells += t.read(i, lo, hi, &s.nodes, r.last, s.flowFrom)
			}
		}
		if s.matmul && a.write && !s.register {
			s.nearest()
		}
	}
	if len(s.nodes) > s.full {
		s.collectReaders()
	}
	if len(s.edges) > 0 {
		s.recorded += len(s.edges)
		s.sink(i, s.edges)
		for _, e := range s.edges {
			s.at[e.to-s.first] = 0
		}
	}
}

func (s *sweep) flowFrom(w uint32) {
	if s.flow {
		s.record(w, components.Flow)
	}
}

// output meets the last writer of a piece that is overwritten.
func (s *sweep) output(w uint32) {
	if w == s.row {
		return // another output of this instruction, or itself an iteration before
	}
	if s.matmul {
		s.nearOut = max(s.nearOut, s.key(w))
		return
	}
	if s.anti && !s.register {
		s.record(w, components.Output)
	}
}

// readerOf meets a reader of a piece that is overwritten.
func (s *sweep) readerOf(r uint32) {
	if r == s.row {
		return
	}
	if s.matmul {
		s.nearAnti = max(s.nearAnti, s.key(r))
		return
	}
	if s.anti && !s.register {
		s.record(r, components.Anti)
	}
}

// key orders the accesses that a matmul meets by time. In the second walk over
// a loop, rows of the loop that come before the current one belong to the
// current iteration and are later than all others.
func (s *sweep) key(row uint32) uint64 {
	if s.carried && row >= s.loop && row < s.row {
		return uint64(row) + 1 + uint64(s.rows)
	}
	return uint64(row) + 1
}

// nearest records what the nearest-prior rule leaves of the accesses that a
// matmul met.
func (s *sweep) nearest() {
	if k := s.nearOut; k > 0 {
		w := uint32((k - 1) % uint64(s.rows))
		switch {
		case s.flow && s.adds && s.psum && s.c.m.Instr.Opcode.At(int(w)).IsMatmul():
			s.record(w, components.Flow)
		case s.anti:
			s.record(w, components.Output)
		}
	}
	if k := s.nearAnti; k > 0 && s.anti {
		s.record(uint32((k-1)%uint64(s.rows)), components.Anti)
	}
}

// record notes that the current row depends on row to. In the second walk over
// a loop only what is later in program order is new: it is of the iteration
// before.
func (s *sweep) record(to uint32, kind components.EdgeKind) {
	if to == s.row || s.carried && to < s.row {
		return
	}
	if k := s.at[to-s.first]; k > 0 {
		e := &s.edges[k-1]
		e.kind = max(e.kind, kind)
		return
	}
	s.edges = append(s.edges, found{to, kind})
	s.at[to-s.first] = uint32(len(s.edges))
}

// collectReaders drops the readers that writes have covered. Lists that share
// their ends go on doing so.
func (s *sweep) collectReaders() {
	s.moved = slices.Grow(s.moved[:0], len(s.nodes))[:len(s.nodes)]
	clear(s.moved)
	fresh := append(s.spare[:0], reader{})
	var path []uint32
	for k := range s.regions {
		for _, t := range s.regions[k].strips {
			if t == nil {
				continue
			}
			for c := 0; c < t.starts.n; c = t.starts.above(c) {
				path = path[:0]
				h := t.head[c]
				for ; h != 0 && s.moved[h] == 0; h = s.nodes[h].next {
					path = append(path, h)
				}
				next := uint32(0)
				if h != 0 {
					next = s.moved[h]
				}
				for _, h := range slices.Backward(path) {
					fresh = append(fresh, reader{s.nodes[h].row, next})
					next = uint32(len(fresh) - 1)
					s.moved[h] = next
				}
				t.head[c] = next
			}
		}
	}
	s.nodes, s.spare = fresh, s.nodes
	s.full = max(s.c.opt.readers, 2*len(s.nodes))
}

// minReaders is the number of readers below which dropping some is not worth
// the walk.
const minReaders = 1 << 20
