package ecs

import (
	"cmp"
	"slices"
)

// Interval is the time from its first to its second number.
type Interval [2]uint64

// UnionLength returns the length of the union of intervals, which it sorts.
func UnionLength(list []Interval) uint64 {
	slices.SortFunc(list, func(a, b Interval) int { return cmp.Compare(a[0], b[0]) })
	var sum, until uint64
	for _, x := range list {
		if from := max(x[0], until); x[1] > from {
			sum += x[1] - from
			until = x[1]
		}
	}
	return sum
}
