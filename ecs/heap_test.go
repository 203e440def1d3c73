package ecs_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs"
	"perfsim/ecs/proptest"
)

func TestHeap(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		h := ecs.Heap[int32]{Less: func(a, b int32) bool { return a < b }}
		var want []int32
		for i := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "do") {
			case 0:
				if h.Len() > 0 {
					if got := h.Pop(); got != slices.Min(want) {
						rt.Fatalf("%d instead of %d", got, slices.Min(want))
					}
					k := slices.Index(want, slices.Min(want))
					want = slices.Delete(want, k, k+1)
				}
			case 1:
				if h.Len() > 0 {
					k := rapid.IntRange(0, h.Len()-1).Draw(rt, "at")
					x := h.Items[k]
					h.Delete(k)
					k = slices.Index(want, x)
					want = slices.Delete(want, k, k+1)
				}
			default:
				x := int32(rapid.IntRange(0, 99).Draw(rt, "x")*100 + i)
				h.Push(x)
				want = append(want, x)
			}
		}
		slices.Sort(want)
		for _, w := range want {
			if got := h.Pop(); got != w {
				rt.Fatalf("%d instead of %d", got, w)
			}
		}
	})
}
