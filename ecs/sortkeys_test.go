package ecs

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// The order is that of a stable sort by comparing, for few and many, near and
// far keys.
func TestSortByKey(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []uint64{0, 1, 7, 1 << 11, 1<<22 + 5, 1<<64 - 1} {
		for _, n := range []int{0, 1, 100, 1<<11 - 1, 1 << 11, 10_000} {
			list := make([]Keyed[int], n)
			for i := range list {
				list[i] = Keyed[int]{r.Uint64() % max(most, 1), i}
			}
			if n > 0 {
				list[n/2].Key = most
			}
			want := slices.Clone(list)
			slices.SortStableFunc(want, func(a, b Keyed[int]) int { return cmp.Compare(a.Key, b.Key) })
			if SortByKey(list); !slices.Equal(list, want) {
				t.Errorf("%d keys up to %d are not in order", n, most)
			}
		}
	}
}
