package ecs

import (
	"cmp"
	"slices"
)

// Keyed is a value and what it is sorted by, mostly a time in ns.
type Keyed[T any] struct {
	Key uint64
	V   T
}

// digit is how many bits of the key one pass of SortByKey sorts by; the counts
// of a pass stay in the first-level cache.
const digit = 11

// SortByKey sorts a list by key, values of equal keys in the order of the list.
// Distributing them by the digits of their keys (LSD radix sort) is several
// times as fast as comparing them.
func SortByKey[T any](list []Keyed[T]) {
	if len(list) < 1<<digit {
		slices.SortStableFunc(list, func(a, b Keyed[T]) int { return cmp.Compare(a.Key, b.Key) })
		return
	}
	most := uint64(0)
	for i := range list {
		most = max(most, list[i].Key)
	}
	from, to := list, make([]Keyed[T], len(list))
	for shift := 0; shift < 64 && most>>shift > 0; shift += digit {
		var ends [1 << digit]int
		for i := range from {
			ends[from[i].Key>>shift&(1<<digit-1)]++
		}
		sum := 0
		for d, n := range ends {
			ends[d] = sum
			sum += n
		}
		for i := range from {
			d := from[i].Key >> shift & (1<<digit - 1)
			to[ends[d]] = from[i]
			ends[d]++
		}
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}
