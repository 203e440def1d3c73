package cost

import "testing"

// Worked by hand: bytes on the wire and steps for b bytes put in.
func TestCollectiveAlgorithm(t *testing.T) {
	for _, c := range []struct {
		kind  string
		n     int64
		bytes float64
		wire  float64
		steps int64
	}{
		{"all-reduce", 8, 1000, 1750, 2},                   // mesh, two phases
		{"all-reduce", 8, 2 << 20, 3.5 * (1 << 20), 6},     // recursive doubling: 2·log2 8
		{"all-reduce", 8, 64 << 20, 112 * (1 << 20), 14},   // ring: 2·7
		{"all-gather", 4, 64 << 20, 3 * 64 * (1 << 20), 3}, // ring
		{"reduce-scatter", 4, 100, 75, 1},
		{"all-to-all", 16, 160 << 20, 150 * (1 << 20), 1},
		{"collective-permute", 2, 10, 10, 1},
		{"all-reduce", 1, 10, 0, 0}, // alone
	} {
		wire, steps := algorithm(c.kind, c.n)(c.bytes)
		if wire != c.wire || steps != c.steps {
			t.Errorf("%s of %d devices, %v bytes: %v on the wire in %d steps, want %v in %d", c.kind, c.n, c.bytes, wire, steps, c.wire, c.steps)
		}
	}
	if algorithm("add", 8) != nil {
		t.Error("an operation that is no collective has an algorithm")
	}
}
