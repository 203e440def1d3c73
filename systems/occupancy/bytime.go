package occupancy

import (
	"cmp"
	"slices"
)

// timed is something at a time in ns.
type timed[T any] struct {
	at uint64
	v  T
}

// digit is how many bits of the time one pass of sortByTime sorts by.
const digit = 11

// sortByTime sorts a list by time, of equal times in the order of the list. A
// module has as many changes as accesses; distributing them by the digits of
// their times (LSD radix sort) is several times as fast as comparing them.
func sortByTime[T any](list []timed[T]) {
	if len(list) < 1<<digit {
		slices.SortStableFunc(list, func(a, b timed[T]) int { return cmp.Compare(a.at, b.at) })
		return
	}
	most := uint64(0)
	for i := range list {
		most = max(most, list[i].at)
	}
	from, to := list, make([]timed[T], len(list))
	for shift := 0; shift < 64 && most>>shift > 0; shift += digit {
		var ends [1 << digit]int
		for i := range from {
			ends[from[i].at>>shift&(1<<digit-1)]++
		}
		sum := 0
		for d, n := range ends {
			ends[d] = sum
			sum += n
		}
		for i := range from {
			d := from[i].at >> shift & (1<<digit - 1)
			to[ends[d]] = from[i]
			ends[d]++
		}
		from, to = to, from
	}
	if &from[0] != &list[0] {
		copy(list, from)
	}
}
