package web

import (
	"slices"
	"testing"
)

// The commonest kind has the first colour; what no engine computes has the
// last, however common it is.
func TestColors(t *testing.T) {
	d := &Dataset{Kinds: []string{"WAIT", "COPY", "MATMUL", "NEVER"}, Quiet: []bool{true, false, false, false},
		Sections: []Section{{Rows: []Row{{Kind: []uint16{0, 0, 0, 0, 1}}, {Kind: []uint16{2, 2, 1, 2}}}}}}
	if got, want := colors(d), []int{3, 1, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("ranks of the kinds %v, want %v", got, want)
	}
}
