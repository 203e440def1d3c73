package ecs

import "testing"

// Populating changes no row, at any size and alignment, and ends when told.
func TestPopulateKeepsRows(t *testing.T) {
	for _, n := range []int{0, 1, 511, 512, 513, 5000, 3 << 20} {
		c := NewColumn[uint64]("c")
		rows := c.Scratch(n + 3)[3:]
		for i := range rows {
			rows[i] = uint64(i) + 1
		}
		c.Adopt(rows)
		c.Populate(nil)
		for i := range rows {
			if rows[i] != uint64(i)+1 {
				t.Fatalf("row %d of %d changed to %d", i, n, rows[i])
			}
		}
		stop := make(chan struct{})
		close(stop)
		c.Populate(stop)
	}
}
