package compare

import (
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

// lcs is the length of the longest common subsequence, by the table that
// defines it.
func lcs(a, b []int32) int {
	t := make([][]int, len(a)+1)
	for i := range t {
		t[i] = make([]int, len(b)+1)
	}
	for i, x := range a {
		for j, y := range b {
			if x == y {
				t[i+1][j+1] = t[i][j] + 1
			} else {
				t[i+1][j+1] = max(t[i][j+1], t[i+1][j])
			}
		}
	}
	return t[len(a)][len(b)]
}

func pairsOf(t interface{ Fatalf(string, ...any) }, a, b []int32) int {
	n, li, lj := 0, -1, -1
	align(a, b, func(i, j int) {
		if i <= li || j <= lj || a[i] != b[j] {
			t.Fatalf("%v and %v: pair %d, %d after %d, %d", a, b, i, j, li, lj)
		}
		n, li, lj = n+1, i, j
	})
	return n
}

// TestAlignIsLongest holds the alignment of short sequences to the longest
// common subsequence.
func TestAlignIsLongest(t *testing.T) {
	t.Parallel()
	proptest.Check(t, func(r *rapid.T) {
		keys := rapid.Int32Range(0, rapid.Int32Range(0, 6).Draw(r, "kinds"))
		a, b := rapid.SliceOfN(keys, 0, 40).Draw(r, "a"), rapid.SliceOfN(keys, 0, 40).Draw(r, "b")
		if n, want := pairsOf(r, a, b), lcs(a, b); n != want {
			r.Fatalf("%v and %v: %d pairs, the longest common subsequence has %d", a, b, n, want)
		}
	})
}

// TestAlignLong: past the bound of edits pairs stay in order, and what lies
// between large insertions is found.
func TestAlignLong(t *testing.T) {
	t.Parallel()
	var a, b []int32
	for i := range int32(3000) {
		a = append(a, i%7+1_000_000, i)
		b = append(b, i)
		for k := range i % 3 {
			b = append(b, 2_000_000+k)
		}
	}
	if n := pairsOf(t, a, b); n != 3000 {
		t.Errorf("%d pairs, want 3000", n)
	}
	// No unique key: a repeated pattern with 2000 keys put in.
	a, b = a[:0], b[:0]
	for i := range int32(4000) {
		a, b = append(a, i%5), append(b, i%5)
		if i == 2000 {
			for range 2000 {
				b = append(b, 9)
			}
		}
	}
	if n := pairsOf(t, a, b); n != 4000 {
		t.Errorf("%d pairs, want 4000", n)
	}
}
