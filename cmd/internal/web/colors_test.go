package web

import (
	"slices"
	"testing"
)

// The commonest kind has the first colour; what no engine computes has the
// last, however common it is.
func TestColors(t *testing.T) {
	d := &Dataset{Kinds: []string{"WAIT", "COPY", "MATMUL", "NEVER"}, Quiet: []bool{true, false, false, false},
		Sections: []Section{{Rows: []Row{{Kind: []uint16{0, 0, 0, 0, 1}, Start: make([]uint64, 5), End: make([]uint64, 5)},
			{Kind: []uint16{2, 2, 1, 2}, Start: make([]uint64, 4), End: make([]uint64, 4)}}}}}
	if got, want := colors(d, count(d)), []int{3, 1, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("ranks of the kinds %v, want %v", got, want)
	}
}
