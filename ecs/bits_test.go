package ecs

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

func TestBitsEqualAMap(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "n")
		b, want := NewBits(n), map[uint32]bool{}
		for range rapid.IntRange(0, 6).Draw(t, "ranges") {
			lo := uint32(rapid.IntRange(0, n).Draw(t, "lo"))
			hi := uint32(rapid.IntRange(0, n).Draw(t, "hi"))
			b.SetRange(lo, hi)
			for i := lo; i < hi; i++ {
				want[i] = true
			}
		}
		for _, i := range rapid.SliceOfN(rapid.Uint32Range(0, uint32(n-1)), 0, 5).Draw(t, "rows") {
			b.Set(i)
			want[i] = true
		}
		if b.Len() != len(want) {
			t.Fatalf("%d rows, want %d", b.Len(), len(want))
		}
		for i := range uint32(n) {
			if b.Has(i) != want[i] {
				t.Fatalf("row %d: %v", i, b.Has(i))
			}
		}
		s := b.Frozen()
		if s.Len() != len(want) || !slices.Equal(s.Bits(n), b) {
			t.Fatal("frozen set differs")
		}
	})
}
