package timeline

import (
	"cmp"
	"slices"

	"perfsim/ecs"
)

// byStart returns the rows by start, then end, then number.
func byStart(rows []Row) []uint32 {
	order := make([]uint32, len(rows))
	if len(rows) == 0 {
		return order
	}
	first := rows[0].Start // from which keys count: they have fewer digits
	for i := range rows {
		first = min(first, rows[i].Start)
	}
	keys := make([]ecs.Keyed[uint32], len(rows))
	for i := range rows {
		keys[i] = ecs.Keyed[uint32]{Key: rows[i].Start - first, V: uint32(i)}
	}
	ecs.SortByKey(keys)
	for lo := 0; lo < len(keys); {
		hi := lo
		for ; hi < len(keys) && keys[hi].Key == keys[lo].Key; hi++ {
			order[hi] = keys[hi].V
		}
		if hi > lo+1 {
			slices.SortStableFunc(order[lo:hi], func(x, y uint32) int { return cmp.Compare(rows[x].End, rows[y].End) })
		}
		lo = hi
	}
	return order
}
