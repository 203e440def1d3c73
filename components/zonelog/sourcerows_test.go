package zonelog

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

// TestSourceRows: whatever the order, every marker keeps its row, in at most a
// number a marker.
func TestSourceRows(t *testing.T) {
	t.Parallel()
	proptest.Check(t, func(r *rapid.T) {
		var rows []uint32
		for range rapid.IntRange(0, 8).Draw(r, "runs") {
			at := rapid.Uint32Range(0, 1000).Draw(r, "at")
			for k := range rapid.Uint32Range(1, 9).Draw(r, "length") {
				rows = append(rows, at+k)
			}
		}
		want := slices.Clone(rows)
		s, keeps := NewSourceRows(rows)
		if !keeps {
			clear(rows)
		}
		if s.Len() != len(want) || len(s.all)+2*len(s.runs) > len(want) {
			r.Fatalf("%d of %d rows in %d and %d", s.Len(), len(want), len(s.all), len(s.runs))
		}
		for m, row := range want {
			if s.At(m) != row {
				r.Fatalf("marker %d is from row %d, want %d of %v", m, s.At(m), row, want)
			}
		}
	})
}
