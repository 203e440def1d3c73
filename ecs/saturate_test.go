package ecs

import "testing"

func TestSaturate(t *testing.T) {
	const most = ^uint64(0)
	for _, c := range []struct{ a, b, sum, product uint64 }{
		{0, 0, 0, 0}, {2, 3, 5, 6}, {most, 0, most, 0}, {most, 1, most, most}, {most - 1, 1, most, most - 1},
		{1 << 63, 2, 1<<63 + 2, most}, {1 << 32, 1<<32 - 1, 1<<33 - 1, most - (1<<32 - 1)}, {1 << 63, 1 << 63, most, most},
	} {
		if s, p := AddSat(c.a, c.b), MulSat(c.a, c.b); s != c.sum || p != c.product {
			t.Errorf("%d, %d: sum %d, want %d; product %d, want %d", c.a, c.b, s, c.sum, p, c.product)
		}
	}
}
