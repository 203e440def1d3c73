package timeline

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

// The order is that of a sort by comparison.
func TestByStart(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]uint64{0, 3, 5000, 1 << 40, math.MaxUint64}).Draw(t, "most")
		rows := make([]Row, rapid.IntRange(0, 60).Draw(t, "rows"))
		want := make([]uint32, len(rows))
		for i := range rows {
			rows[i] = Row{Start: rapid.Uint64Range(most/3, most).Draw(t, "start"), End: rapid.Uint64Range(0, 2).Draw(t, "end")}
			want[i] = uint32(i)
		}
		slices.SortFunc(want, func(x, y uint32) int {
			return cmp.Or(cmp.Compare(rows[x].Start, rows[y].Start), cmp.Compare(rows[x].End, rows[y].End), cmp.Compare(x, y))
		})
		if got := byStart(rows); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}
