package ecs

import "math/bits"

// Bits is a dense set of rows under construction: one bit each.
type Bits []uint64

// NewBits returns an empty set for rows below n.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Set adds row i.
func (b Bits) Set(i uint32) { b[i>>6] |= 1 << (i & 63) }

// Has reports whether row i is in the set.
func (b Bits) Has(i uint32) bool { return b[i>>6]>>(i&63)&1 != 0 }

// SetRange adds rows lo to hi (hi excluded).
func (b Bits) SetRange(lo, hi uint32) {
	if lo >= hi {
		return
	}
	first, last := lo>>6, (hi-1)>>6
	head, tail := ^uint64(0)<<(lo&63), ^uint64(0)>>(63-(hi-1)&63)
	if first == last {
		b[first] |= head & tail
		return
	}
	b[first] |= head
	for w := first + 1; w < last; w++ {
		b[w] = ^uint64(0)
	}
	b[last] |= tail
}

// Len returns the number of rows in the set.
func (b Bits) Len() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// Frozen returns the set in its compressed, immutable form.
func (b Bits) Frozen() Set { return setOfDense(b) }

// Bits returns the set as bits for rows below n.
func (s Set) Bits(n int) Bits {
	b := NewBits(n)
	for batch := range s.Batches() {
		for _, i := range batch {
			b.Set(i)
		}
	}
	return b
}
