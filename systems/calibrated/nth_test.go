package calibrated

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// nth is what sorting and indexing gives, on lists with many equal numbers too.
func TestNth(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(64, 64))
	for range 2000 {
		list := make([]float64, 1+rnd.IntN(60))
		distinct := 1 + rnd.IntN(80)
		for k := range list {
			list[k] = float64(rnd.IntN(distinct))
		}
		sorted := slices.Sorted(slices.Values(list))
		for n := range list {
			if got := nth(slices.Clone(list), n); got != sorted[n] {
				t.Fatalf("place %d of %v: %v, want %v", n, list, got, sorted[n])
			}
		}
	}
}
