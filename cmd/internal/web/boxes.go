package web

import "sort"

// blockOf is the number of events between two sums of busy time.
const blockOf = 64

// prepare sums up what boxes and busy times need.
func (r *Row) prepare() {
	r.busy = make([]uint64, len(r.Start)/blockOf+1)
	sum := uint64(0)
	for i := range r.Start {
		if i%blockOf == 0 {
			r.busy[i/blockOf] = sum
		}
		sum += r.End[i] - r.Start[i]
	}
	if len(r.Start)%blockOf == 0 {
		r.busy[len(r.Start)/blockOf] = sum
	}
}

// before returns the busy time of the events before event i, in ns.
func (r *Row) before(i int) uint64 {
	sum := r.busy[i/blockOf]
	for k := i / blockOf * blockOf; k < i; k++ {
		sum += r.End[k] - r.Start[k]
	}
	return sum
}

// Box is a drawn rectangle: one event, or several that are too small to
// distinguish.
type Box struct {
	Start, End uint64
	ID         uint32 // noID for several
	Kind       uint16
	Cause      uint8
	Critical   bool
	Share      uint8 // of the box that is busy, 255 for all
}

const noID = 1<<32 - 1

// Boxes appends the boxes of a row between t0 and t1 where events shorter
// than grain ns are drawn together. It looks at no more than a few events per
// box, however many there are.
func (r *Row) Boxes(dst []Box, t0, t1, grain uint64) []Box {
	grain = max(grain, 1)
	n := len(r.Start)
	i := r.from(t0)
	if i > 0 && r.End[i-1] == t0 {
		i-- // an event of no length at the edge
	}
	for i < n && r.Start[i] <= t1 {
		if r.End[i]-r.Start[i] >= grain {
			dst = append(dst, r.box(i))
			i++
			continue
		}
		// All that starts within one grain, up to the next event that is large
		// enough to stand alone, is one box.
		edge := r.Start[i] + grain
		j := i + sort.Search(n-i, func(k int) bool { return r.Start[i+k] >= edge })
		if r.End[j-1]-r.Start[j-1] >= grain {
			j-- // the last one reaches far beyond: it stands alone
		}
		if j == i+1 {
			dst = append(dst, r.box(i))
			i++
			continue
		}
		b := r.box(i)
		b.End, b.ID = r.End[j-1], noID
		b.Share = uint8(min(255, (r.before(j)-r.before(i))*255/max(b.End-b.Start, 1)))
		for k := i; k < j && r.Critical != nil && !b.Critical; k++ {
			b.Critical = r.Critical[k]
			if k-i > 64 {
				break // enough looked at: a box of thousands is not distinguished anyway
			}
		}
		dst = append(dst, b)
		i = j
	}
	return dst
}

func (r *Row) box(i int) Box {
	b := Box{Start: r.Start[i], End: r.End[i], ID: r.ID[i], Kind: r.Kind[i], Share: 255}
	if r.Share != nil {
		b.Share = r.Share[i]
	}
	if r.Cause != nil {
		b.Cause = r.Cause[i]
	}
	if r.Critical != nil {
		b.Critical = r.Critical[i]
	}
	return b
}

// from returns the first event that ends after t0.
func (r *Row) from(t0 uint64) int {
	return sort.Search(len(r.Start), func(i int) bool { return r.End[i] > t0 })
}

// between returns the busy time of a row between t0 and t1.
func (r *Row) between(t0, t1 uint64) uint64 {
	i := r.from(t0)
	j := sort.Search(len(r.Start), func(i int) bool { return r.Start[i] >= t1 })
	if j <= i {
		return 0
	}
	sum := r.before(j) - r.before(i)
	if r.Start[i] < t0 {
		sum -= t0 - r.Start[i]
	}
	if r.End[j-1] > t1 {
		sum -= r.End[j-1] - t1
	}
	return sum
}

// load returns the busy time between t0 and t1 with all iterations of loops,
// in ns: within an outermost loop its mean.
func (r *Row) load(t0, t1 uint64) uint64 {
	sum, at := uint64(0), t0
	for k := range r.Loops {
		l := &r.Loops[k]
		if l.Depth > 0 || l.End <= t0 || l.Start >= t1 || l.End == l.Start {
			continue
		}
		lo, hi := max(l.Start, t0), min(l.End, t1)
		if lo > at {
			sum += r.between(at, lo)
		}
		sum += uint64(float64(min(l.Busy, l.End-l.Start)) * float64(hi-lo) / float64(l.End-l.Start))
		at = max(at, hi)
	}
	if at < t1 {
		sum += r.between(at, t1)
	}
	return min(sum, t1-t0)
}
