package attribute

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

func TestFold(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []Fold
	}{
		{"", nil},
		{"a", []Fold{{0, 1, 1}}},
		{"aaaa", []Fold{{0, 1, 4}}},
		{"xabababy", []Fold{{0, 1, 1}, {1, 2, 3}, {7, 1, 1}}},
		{"abcabcab", []Fold{{0, 3, 2}, {6, 1, 1}, {7, 1, 1}}},
		{"aabaab", []Fold{{0, 3, 2}}},
	} {
		var ids []uint32
		for _, r := range c.in {
			ids = append(ids, uint32(r))
		}
		if got := fold(ids); !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.in, got, c.want)
		}
	}
}

// Folds tile the steps, and what they call repetitions repeats.
func TestFoldsTile(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.Uint32Range(0, 3)).Draw(t, "ids")
		at := 0
		for _, f := range fold(ids) {
			if f.First != at || f.Period < 1 || f.Repeats < 1 {
				t.Fatalf("fold %v at %d", f, at)
			}
			for k := range f.Period * f.Repeats {
				if ids[at+k] != ids[at+k%f.Period] {
					t.Fatalf("fold %v does not repeat", f)
				}
			}
			at += f.Period * f.Repeats
		}
		if at != len(ids) {
			t.Fatalf("folds cover %d of %d", at, len(ids))
		}
	})
}
