package lower

import (
	"slices"

	"perfsim/components"
)

// seg is a part of SBUF: free or owned, with what its last owner left behind.
type seg struct {
	lo, hi int64
	free   bool
	left   []ghost
}

// sbuf gives out SBUF by bytes per partition, first fit.
type sbuf struct {
	size     int64
	infinite bool
	segs     []seg
	used     int64
	peak     int64
	top      int64 // of an infinite one
	lane     func(row uint32) uint16
}

// align is the granularity of SBUF addresses in bytes: ours.
const align = 64

func newSBUF(size int64, infinite bool, lane func(row uint32) uint16) *sbuf {
	return &sbuf{size: size, infinite: infinite, lane: lane, segs: []seg{{0, size, true, nil}}}
}

// alloc returns a region of n tiles of tileBytes, or nil where there is no room.
func (s *sbuf) alloc(n int, tileBytes int64) *region {
	tileBytes = (tileBytes + align - 1) / align * align
	bytes := int64(n) * tileBytes
	r := &region{mem: components.MemSBUF, bytes: bytes, tileBytes: tileBytes, tiles: make([]dep, n)}
	if s.infinite {
		r.lo = s.top
		s.top += bytes
		s.note(bytes)
		return r
	}
	for i := range s.segs {
		g := &s.segs[i]
		if !g.free || g.hi-g.lo < bytes {
			continue
		}
		r.lo = g.lo
		for _, x := range g.left {
			if x.lo < r.lo+bytes {
				r.inherit = append(r.inherit, x)
			}
		}
		rest := seg{lo: g.lo + bytes, hi: g.hi, free: true}
		for _, x := range g.left {
			if x.hi > rest.lo {
				x.lo = max(x.lo, rest.lo)
				rest.left = append(rest.left, x)
			}
		}
		*g = seg{lo: g.lo, hi: g.lo + bytes}
		if rest.lo < rest.hi {
			s.segs = slices.Insert(s.segs, i+1, rest)
		}
		s.note(bytes)
		return r
	}
	return nil
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
		return
	}
	g := ghost{lo: r.lo, hi: r.lo + r.bytes}
	for i := range r.tiles {
		d := &r.tiles[i]
		if d.w != 0 {
			k := slotOf(s.lane(d.w - 1))
			g.w[k] = max(g.w[k], d.w)
		}
		for k := range d.r {
			g.r[k] = max(g.r[k], d.r[k])
		}
	}
	left := []ghost{g}
	if slices.ContainsFunc(r.tiles, func(d dep) bool { return d.w == 0 }) {
		left = append(left, r.inherit...)
	}
	i := slices.IndexFunc(s.segs, func(x seg) bool { return x.lo == r.lo && !x.free })
	s.segs[i].free, s.segs[i].left = true, left
	// Join the free neighbours.
	if i+1 < len(s.segs) && s.segs[i+1].free {
		s.segs[i].hi = s.segs[i+1].hi
		s.segs[i].left = joinGhosts(append(s.segs[i].left, s.segs[i+1].left...))
		s.segs = slices.Delete(s.segs, i+1, i+2)
	}
	if i > 0 && s.segs[i-1].free {
		s.segs[i-1].hi = s.segs[i].hi
		s.segs[i-1].left = joinGhosts(append(s.segs[i-1].left, s.segs[i].left...))
		s.segs = slices.Delete(s.segs, i, i+1)
	}
	r.bytes = 0
}

// mostGhosts bounds what a free piece remembers: beyond it one ghost stands
// for all, so that a new owner may wait for more than it must.
const mostGhosts = 24

func joinGhosts(g []ghost) []ghost {
	if len(g) <= mostGhosts {
		return g
	}
	all := g[0]
	for _, x := range g[1:] {
		all.lo, all.hi = min(all.lo, x.lo), max(all.hi, x.hi)
		for k := range x.w {
			all.w[k], all.r[k] = max(all.w[k], x.w[k]), max(all.r[k], x.r[k])
		}
	}
	return append(g[:0], all)
}
