package nki

import (
	"cmp"
	"slices"

	"perfsim/components"
)

const (
	bankBytes = 2048
	psumBytes = 8 * bankBytes
	sbufAlign = 64
)

// hole is free memory of a partition, free since row `since`.
type hole struct {
	lo, hi int64
	since  int32
}

// space gives out memory of one kind on one core. Memory that was never used
// goes first, so that as many copies of a tile are alive as fit; then the
// hole that fits best, among equals the one that has been free longest.
type space struct {
	size  int64
	align int64
	holes []hole // by address, never adjacent with equal since
	top   int64  // never used from here on
	peak  int64
	over  int64 // next address behind the end for what does not fit
	taken [][2]int64
}

func newSpace(size, align int64) *space { return &space{size: size, align: align, over: size} }

// take returns the address of n bytes; ok tells that they fit.
func (s *space) take(n int64) (at int64, ok bool) {
	n = (n + s.align - 1) / s.align * s.align
	if s.top+n <= s.size {
		at = s.top
		s.top += n
		s.peak = max(s.peak, s.top)
		return at, true
	}
	best := -1
	for i, h := range s.holes {
		if h.hi-h.lo < n {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		b := s.holes[best]
		if c := cmp.Or(cmp.Compare(h.hi-h.lo, b.hi-b.lo), cmp.Compare(h.since, b.since)); c < 0 {
			best = i
		}
	}
	if best < 0 {
		// A hole at the end may reach into what was never used.
		if k := len(s.holes); k > 0 && s.holes[k-1].hi == s.top && s.size-s.holes[k-1].lo >= n {
			at = s.holes[k-1].lo
			s.holes = s.holes[:k-1]
			s.top = at + n
			s.peak = max(s.peak, s.top)
			return at, true
		}
		at = s.over
		s.over += n
		return at, false
	}
	h := &s.holes[best]
	at = h.lo
	if h.lo += n; h.lo == h.hi {
		s.holes = slices.Delete(s.holes, best, best+1)
	}
	return at, true
}

// give returns memory.
func (s *space) give(at, n int64, now int32) {
	n = (n + s.align - 1) / s.align * s.align
	if at >= s.size {
		return
	}
	i, _ := slices.BinarySearchFunc(s.holes, at, func(h hole, at int64) int { return cmp.Compare(h.lo, at) })
	h := hole{at, at + n, now}
	if i < len(s.holes) && s.holes[i].lo == h.hi {
		h.hi, h.since = s.holes[i].hi, max(h.since, s.holes[i].since)
		s.holes = slices.Delete(s.holes, i, i+1)
	}
	if i > 0 && s.holes[i-1].hi == h.lo {
		s.holes[i-1].hi, s.holes[i-1].since = h.hi, max(h.since, s.holes[i-1].since)
		return
	}
	s.holes = slices.Insert(s.holes, i, h)
}

// usage is what allocation found.
type usage struct {
	sbufPeak, psumPeak int64
	spilled            int   // tiles that did not fit
	spillBytes         int64 // of them, in all partitions
	fixed              int
}

// allocate gives every tile an address.
func (x *expander) allocate() usage {
	var u usage
	cores := 1
	byFirst := make([]uint32, 0, len(x.tiles))
	byLast := make([]uint32, 0, len(x.tiles))
	dram := int64(0)
	for i := range x.tiles {
		t := &x.tiles[i]
		cores = max(cores, int(t.core)+1)
		switch {
		case t.mem.InDRAM():
			t.addr = dram
			dram += (t.bytes + 4095) / 4096 * 4096
		case t.first < 0:
		default:
			byFirst = append(byFirst, uint32(i))
			byLast = append(byLast, uint32(i))
		}
	}
	slices.SortStableFunc(byFirst, func(a, b uint32) int { return cmp.Compare(x.tiles[a].first, x.tiles[b].first) })
	slices.SortStableFunc(byLast, func(a, b uint32) int { return cmp.Compare(x.tiles[a].last, x.tiles[b].last) })
	sb, ps := make([]*space, cores), make([]*space, cores)
	for c := range cores {
		sb[c], ps[c] = newSpace(x.opt.SBUF, sbufAlign), newSpace(psumBytes, bankBytes)
	}
	for i := range x.tiles { // what the kernel places itself is not given out
		if t := &x.tiles[i]; t.fixed && t.mem == components.MemSBUF {
			s := sb[t.core]
			s.top = max(s.top, min(t.addr+t.bytes, s.size))
			s.peak = max(s.peak, s.top)
			u.fixed++
		} else if t.fixed {
			u.fixed++
		}
	}
	k := 0
	for _, id := range byFirst {
		t := &x.tiles[id]
		for k < len(byLast) && x.tiles[byLast[k]].last < t.first {
			o := &x.tiles[byLast[k]]
			k++
			if !o.fixed {
				x.spaceOf(o, sb, ps).give(o.addr, o.bytes, o.last)
			}
		}
		if t.fixed {
			continue
		}
		at, ok := x.spaceOf(t, sb, ps).take(t.bytes)
		t.addr = at
		if !ok && t.mem == components.MemSBUF {
			u.spilled++
			u.spillBytes += t.bytes * int64(t.parts)
		}
		if !ok && t.mem == components.MemPSUM {
			// More than eight live tiles: the compiler shares banks.
			t.addr = at % psumBytes
		}
	}
	for c := range cores {
		u.sbufPeak = max(u.sbufPeak, sb[c].peak)
		u.psumPeak = max(u.psumPeak, ps[c].peak)
	}
	return u
}

func (x *expander) spaceOf(t *tile, sb, ps []*space) *space {
	if t.mem == components.MemPSUM {
		return ps[t.core]
	}
	return sb[t.core]
}
