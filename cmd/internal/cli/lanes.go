package cli

import (
	"cmp"
	"slices"
)

// mostLanes bounds the lanes of one screen; --json has them all, as has
// explain with a larger --top.
const mostLanes = 16

// busiest returns the rows of the n lanes that work most, in the order of the
// lanes; of equals the first.
func busiest(busy []uint64, n int) []int {
	rows := make([]int, len(busy))
	for k := range rows {
		rows[k] = k
	}
	if len(rows) > n {
		slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(busy[b], busy[a]) })
		rows = rows[:n]
		slices.Sort(rows)
	}
	return rows
}
