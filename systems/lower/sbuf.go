package lower

import (
	"cmp"
	"math"
	"slices"

	"perfsim/components"
)

// seg is a part of SBUF: free or owned. What its last owners left behind is a
// list of accesses, with as many entries as n says.
type seg struct {
	lo, hi int64
	free   bool
	left   int32
	last   int32 // end of the list
	n      int
	most   int // see join
}

// sbuf gives out SBUF by bytes per partition, next fit.
type sbuf struct {
	size     int64
	infinite bool
	segs     []seg
	used     int64
	peak     int64
	top      int64 // of an infinite one
	next     int64 // behind what was given out last
	acc      *accesses
}

// align is the granularity of SBUF addresses in bytes: ours.
const align = 64

func newSBUF(size int64, infinite bool, acc *accesses) *sbuf {
	return &sbuf{size: size, infinite: infinite, acc: acc, segs: []seg{{hi: size, free: true}}}
}

// alloc returns a region of n tiles of tileBytes, or nil where there is no room.
func (s *sbuf) alloc(n int, tileBytes int64) *region {
	tileBytes = alignTile(tileBytes)
	bytes := int64(n) * tileBytes
	r := &region{mem: components.MemSBUF, bytes: bytes, tileBytes: tileBytes}
	if s.infinite {
		r.lo, r.tiles = s.top, make([]tileState, n)
		s.top += bytes
		s.note(bytes)
		return r
	}
	for i := range s.search(bytes) {
		g := &s.segs[i]
		r.lo, r.tiles = g.lo, make([]tileState, n)
		rest := seg{lo: g.lo + bytes, hi: g.hi, free: true, most: g.most}
		s.inherit(g.left, r, &rest)
		*g = seg{lo: g.lo, hi: g.lo + bytes}
		if rest.lo < rest.hi {
			s.segs = slices.Insert(s.segs, i+1, rest)
		}
		s.note(bytes)
		s.next = r.lo + bytes
		return r
	}
	return nil
}

// alignTile rounds the size of a tile up to the granularity of addresses.
func alignTile(bytes int64) int64 { return (bytes + align - 1) / align * align }

// fits reports whether there is room for a region of so many bytes.
func (s *sbuf) fits(bytes int64) bool {
	for range s.search(bytes) {
		return true
	}
	return s.infinite
}

// search yields the free piece that holds bytes, the first one behind what was
// given out last and then from the start on: room that was free for longest is
// taken, so that loads need not wait for who used it last.
func (s *sbuf) search(bytes int64) func(func(int) bool) {
	return func(yield func(int) bool) {
		from, _ := slices.BinarySearchFunc(s.segs, s.next, func(g seg, at int64) int { return cmp.Compare(g.lo, at) })
		for n := range len(s.segs) {
			i := (from + n) % len(s.segs)
			if g := &s.segs[i]; g.free && g.hi-g.lo >= bytes {
				yield(i)
				return
			}
		}
	}
}

// inherit gives what is left in a free piece to the tiles of its new owner and
// to the rest of the piece.
func (s *sbuf) inherit(left int32, r *region, rest *seg) {
	for i := left; i != 0; {
		x := *s.acc.at(i)
		next := x.next
		if x.lo < rest.lo && bytesIn(r) > 0 {
			end := min(x.hi, rest.lo)
			for t := int((x.lo - r.lo) / r.tileBytes); t < len(r.tiles) && r.lo+int64(t)*r.tileBytes < end; t++ {
				y := x
				y.lo, y.hi = r.clip(t, x.lo, end)
				s.acc.inherit(&r.tiles[t], y)
			}
		}
		if x.hi > rest.lo {
			y := s.acc.at(i)
			y.lo = max(x.lo, rest.lo)
			rest.push(s.acc, i)
		} else {
			s.acc.put(i)
		}
		i = next
	}
}

func bytesIn(r *region) int64 { return int64(len(r.tiles)) * r.tileBytes }

// push adds an access to what is left in a free piece.
func (g *seg) push(p *accesses, i int32) {
	p.at(i).next = g.left
	if g.left == 0 {
		g.last = i
	}
	g.left = i
	g.n++
}

// join takes the free piece behind g into it.
func (g *seg) join(p *accesses, b *seg) {
	g.hi = b.hi
	if b.left == 0 {
		return
	}
	if g.left == 0 {
		g.left = b.left
	} else {
		p.at(g.last).next = b.left
	}
	g.last = b.last
	g.most = max(g.most, b.most, manyLeft)
	if g.n += b.n; g.n <= g.most {
		return
	}
	if p.outline(&g.left) > mostLeft {
		p.joinNear(&g.left)
	}
	g.n = 0
	for i := g.left; i != 0; i = p.at(i).next {
		g.last = i
		g.n++
	}
	g.most = max(2*g.n, manyLeft)
}

func (s *sbuf) note(bytes int64) {
	s.used += bytes
	s.peak = max(s.peak, s.used)
}

// release gives the room of r back; who used it is kept for the next owner.
func (s *sbuf) release(r *region) {
	if r.mem != components.MemSBUF || r.bytes == 0 {
		return
	}
	s.used -= r.bytes
	if s.infinite {
		for t := range r.tiles {
			s.acc.overwrite(&r.tiles[t].w, 0, math.MaxInt64)
			s.acc.overwrite(&r.tiles[t].r, 0, math.MaxInt64)
		}
		r.bytes = 0
		return
	}
	i := slices.IndexFunc(s.segs, func(x seg) bool { return x.lo == r.lo && !x.free })
	g := &s.segs[i]
	g.free = true
	for t := range r.tiles {
		for _, list := range []int32{r.tiles[t].w, r.tiles[t].r} {
			for k := list; k != 0; {
				x := s.acc.at(k)
				next := x.next
				x.old = true
				g.push(s.acc, k)
				k = next
			}
		}
		r.tiles[t] = tileState{}
	}
	// Join the free neighbours.
	if i+1 < len(s.segs) && s.segs[i+1].free {
		s.segs[i].join(s.acc, &s.segs[i+1])
		s.segs = slices.Delete(s.segs, i+1, i+2)
	}
	if i > 0 && s.segs[i-1].free {
		s.segs[i-1].join(s.acc, &s.segs[i])
		s.segs = slices.Delete(s.segs, i, i+1)
	}
	r.bytes = 0
}
