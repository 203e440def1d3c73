package occupancy

import (
	"cmp"
	"slices"

	"perfsim/components"
)

// mostPieces bounds the pieces into which tensors that overlap are cut.
const mostPieces = 1 << 22

// union returns lives that add up to the union of the address ranges held:
// tensors that share addresses are cut where they overlap, and each piece is
// held once at a time. Tensors that have no address yet share none.
func union(m *components.Module, list []life) []life {
	type span struct {
		lo, hi uint64
		life   life
	}
	var spans []span
	out := make([]life, 0, len(list))
	for _, l := range list {
		lo := m.Locations.Addr.Get(int(l.where) - 1)
		if lo == 0 {
			out = append(out, l) // not placed, or the first: nothing else is there but what is not placed
			continue
		}
		spans = append(spans, span{lo, lo + l.bytes, l})
	}
	slices.SortStableFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	apart := true
	var cuts []uint64
	top := uint64(0)
	for _, s := range spans {
		apart = apart && s.lo >= top
		top = max(top, s.hi)
		cuts = append(cuts, s.lo, s.hi)
	}
	if apart {
		return append([]life(nil), list...)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	pieces := make([][]life, len(cuts))
	n := 0
	for _, s := range spans {
		k, _ := slices.BinarySearch(cuts, s.lo)
		for ; k+1 < len(cuts) && cuts[k] < s.hi; k++ {
			if n++; n > mostPieces {
				return append([]life(nil), list...)
			}
			pieces[k] = append(pieces[k], life{from: s.life.from, to: s.life.to, bytes: cuts[k+1] - cuts[k]})
		}
	}
	for _, p := range pieces {
		slices.SortFunc(p, func(a, b life) int { return cmp.Compare(a.from, b.from) })
		for k := 0; k < len(p); {
			l := p[k]
			for k++; k < len(p) && p[k].from <= l.to; k++ {
				l.to = max(l.to, p[k].to)
			}
			out = append(out, l)
		}
	}
	return out
}
