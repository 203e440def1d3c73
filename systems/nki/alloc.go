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

// hole is free memory of a partition, last used by row `since`.
type hole struct {
	lo, hi int64
	since  int32
}

// space gives out memory of one kind on one core, so that as many copies of a
// tile are alive as fit: what has been free longest goes first, never used
// memory before all. Where tiles do not fit that way, best-fit takes the
// smallest run of free memory and goes by age only within it.
type space struct {
	size    int64
	align   int64
	bestFit bool
	holes   []hole // by address; neighbours of different age stay apart
	peak    int64
	over    int64 // next address behind the end, for what does not fit
}

func newSpace(size, align int64, bestFit bool) *space {
	return &space{size: size, align: align, bestFit: bestFit, holes: []hole{{0, size, -1}}, over: size}
}

func (s *space) round(n int64) int64 { return max((n+s.align-1)/s.align, 1) * s.align }

// take returns the address of n bytes; ok reports that they fit.
func (s *space) take(n int64) (at int64, ok bool) {
	n = s.round(n)
	best := -1
	var bestRun int64
	var bestAge int32
	for lo := 0; lo < len(s.holes); {
		hi := lo + 1
		for hi < len(s.holes) && s.holes[hi].lo == s.holes[hi-1].hi {
			hi++
		}
		run := s.holes[hi-1].hi - s.holes[lo].lo
		if run >= n && !(s.bestFit && best >= 0 && run > bestRun) {
			for i := lo; i < hi && s.holes[hi-1].hi-s.holes[i].lo >= n; i++ {
				age := s.holes[i].since
				for k := i + 1; k < hi && s.holes[k].lo < s.holes[i].lo+n; k++ {
					age = max(age, s.holes[k].since)
				}
				if best < 0 || s.bestFit && run < bestRun || age < bestAge {
					best, bestRun, bestAge = i, run, age
				}
			}
		}
		lo = hi
	}
	if best < 0 {
		at = s.over
		s.over += n
		return at, false
	}
	at = s.holes[best].lo
	s.cut(best, at+n)
	s.peak = max(s.peak, at+n)
	return at, true
}

// cut takes the memory from the start of hole i up to `to` away.
func (s *space) cut(i int, to int64) {
	k := i
	for k < len(s.holes) && s.holes[k].hi <= to {
		k++
	}
	if k < len(s.holes) && s.holes[k].lo < to {
		s.holes[k].lo = to
	}
	s.holes = slices.Delete(s.holes, i, k)
}

// reserve takes away what lies between lo and hi.
func (s *space) reserve(lo, hi int64) {
	s.peak = max(s.peak, min(hi, s.size))
	var kept []hole
	for _, h := range s.holes {
		if h.lo < min(h.hi, lo) {
			kept = append(kept, hole{h.lo, min(h.hi, lo), h.since})
		}
		if max(h.lo, hi) < h.hi {
			kept = append(kept, hole{max(h.lo, hi), h.hi, h.since})
		}
	}
	s.holes = kept
}

// give returns memory that row now used last.
func (s *space) give(at, n int64, now int32) {
	if at >= s.size {
		return
	}
	i, _ := slices.BinarySearchFunc(s.holes, at, func(h hole, at int64) int { return cmp.Compare(h.lo, at) })
	s.holes = slices.Insert(s.holes, i, hole{at, at + s.round(n), now})
}

// usage is the result of allocation.
type usage struct {
	sbufPeak, psumPeak int64
	spilled            int   // tiles that did not fit
	spillBytes         int64 // of them, in all partitions
	fixed              int
	moved              spilling
}

// allocate gives every tile an address: by age, and by best fit where that
// spills less.
func (x *expander) allocate() usage {
	u := x.place(false)
	if u.spilled == 0 {
		return u
	}
	if v := x.place(true); v.spillBytes < u.spillBytes {
		return v
	}
	return x.place(false)
}

func (x *expander) place(bestFit bool) usage {
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
		sb[c], ps[c] = newSpace(x.opt.SBUF, sbufAlign, bestFit), newSpace(psumBytes, bankBytes, false)
	}
	for i := range x.tiles { // what the kernel places itself is not given out
		if t := &x.tiles[i]; t.fixed && t.mem == components.MemSBUF {
			sb[t.core].reserve(t.addr, t.addr+t.bytes)
			u.fixed++
		} else if t.fixed {
			ps[t.core].reserve(t.addr/bankBytes*bankBytes, (t.addr+t.bytes+bankBytes-1)/bankBytes*bankBytes)
			u.fixed++
		}
	}
	shared := map[int32]int64{} // address of tensors with one buffer
	k := 0
	for _, id := range byFirst {
		t := &x.tiles[id]
		for k < len(byLast) && x.tiles[byLast[k]].last < t.first {
			o := &x.tiles[byLast[k]]
			k++
			if !o.fixed && !(o.tensor >= 0 && x.single[o.tensor]) {
				x.spaceOf(o, sb, ps).give(o.addr, o.bytes, o.last)
			}
		}
		if t.fixed {
			continue
		}
		one := t.tensor >= 0 && x.single[t.tensor]
		if at, ok := shared[t.tensor]; one && ok {
			t.addr = at
			continue
		}
		at, ok := x.spaceOf(t, sb, ps).take(t.bytes)
		t.addr = at
		if one {
			shared[t.tensor] = at
		}
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
