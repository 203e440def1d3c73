package ecs_test

import (
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"testing"

	"pgregory.net/rapid"
)

// Overlapping, nested, touching, empty and unordered intervals: [2,9) and
// [20,24) are covered.
func TestUnionLength(t *testing.T) {
	if got := ecs.UnionLength([]ecs.Interval{{20, 24}, {2, 5}, {4, 9}, {6, 7}, {21, 21}, {24, 24}, {30, 29}}); got != 7+4 {
		t.Errorf("%d, want 11", got)
	}
	if got := ecs.UnionLength(nil); got != 0 {
		t.Errorf("%d of none", got)
	}
}

func TestUnionCountsTicks(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		var iv []ecs.Interval
		var on [200]bool
		for range rapid.IntRange(0, 8).Draw(rt, "n") {
			a := rapid.IntRange(0, 199).Draw(rt, "a")
			b := rapid.IntRange(a, 199).Draw(rt, "b")
			iv = append(iv, ecs.Interval{uint64(a), uint64(b)})
			for i := a; i < b; i++ {
				on[i] = true
			}
		}
		want := uint64(0)
		for _, x := range on {
			if x {
				want++
			}
		}
		if got := ecs.UnionLength(iv); got != want {
			rt.Fatalf("%v: %d, want %d", iv, got, want)
		}
	})
}
