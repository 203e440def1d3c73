package timeline

import (
	"cmp"
	"math/bits"
	"slices"
)

// byStart returns the rows by start, then end, then number. Starts are sorted
// digit by digit, from the lowest: rows are many, and their starts differ in few
// digits. Every pass keeps the order of equal digits.
func byStart(rows []Row) []uint32 {
	const digit = 11 // bits; the counts stay in the first cache
	type key struct {
		start uint64
		row   uint32
	}
	if len(rows) == 0 {
		return nil
	}
	first, last := rows[0].Start, rows[0].Start
	for i := range rows {
		first, last = min(first, rows[i].Start), max(last, rows[i].Start)
	}
	keys, other := make([]key, len(rows)), make([]key, len(rows))
	for i := range rows {
		keys[i] = key{rows[i].Start - first, uint32(i)}
	}
	for shift := 0; shift < bits.Len64(last-first); shift += digit {
		var at [1 << digit]uint32
		for i := range keys {
			at[keys[i].start>>shift&(1<<digit-1)]++
		}
		sum := uint32(0)
		for d, n := range at {
			at[d] = sum
			sum += n
		}
		for _, k := range keys {
			d := k.start >> shift & (1<<digit - 1)
			other[at[d]] = k
			at[d]++
		}
		keys, other = other, keys
	}
	order := make([]uint32, len(rows))
	for i, k := range keys {
		order[i] = k.row
	}
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && keys[hi].start == keys[lo].start {
			hi++
		}
		if hi > lo+1 {
			slices.SortStableFunc(order[lo:hi], func(x, y uint32) int { return cmp.Compare(rows[x].End, rows[y].End) })
		}
		lo = hi
	}
	return order
}
