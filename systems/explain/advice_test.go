package explain

import (
	"slices"
	"testing"

	"perfsim/ecs"
)

// The rows that are left out keep one element; those that have none, and all
// others, stay as they are, and so does the column that was given.
func TestLeastOf(t *testing.T) {
	c := ecs.NewColumn[uint32]("elems")
	for _, v := range []uint32{512, 0, 7, 64} {
		c.Append(v)
	}
	got := leastOf(c, func(i int) bool { return i != 2 })
	if want := []uint32{1, 0, 7, 1}; !slices.Equal(got.Slice(), want) || got.Name() != "elems" {
		t.Errorf("%s %v, want %v", got.Name(), got.Slice(), want)
	}
	if want := []uint32{512, 0, 7, 64}; !slices.Equal(c.Slice(), want) {
		t.Errorf("the column became %v", c.Slice())
	}
}
