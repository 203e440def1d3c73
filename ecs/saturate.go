package ecs

import "math/bits"

// AddSat returns a + b, or the largest number where that overflows: an absurd
// trip count gives the largest time, not a small wrong one.
func AddSat(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}

// MulSat returns a × b, or the largest number where that overflows.
func MulSat(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi != 0 {
		return ^uint64(0)
	}
	return lo
}

// MulDiv returns a × b / c, rounded down, without overflow on the way: at most
// a, so b counts as c where it is more.
func MulDiv(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, min(b, c))
	if hi >= c {
		return a
	}
	q, _ := bits.Div64(hi, lo, c)
	return q
}
