package models

import "fmt"

// inceptionV4: Szegedy et al., arXiv:1602.07261, figures 3 to 9.
func inceptionV4(n *net, size int64) val {
	type step struct{ out, kh, kw, stride, pad, padW int64 }
	sq := func(out, k int64) step { // keeps the size
		return step{out, k, k, 1, k / 2, 0}
	}
	row := func(out, k int64) step { return step{out, 1, k, 1, 0, k / 2} }
	col := func(out, k int64) step { return step{out, k, 1, 1, k / 2, -1} }
	valid := func(out, stride int64) step { return step{out, 3, 3, stride, 0, 0} }
	chain := func(name string, x val, steps ...step) val {
		for i, s := range steps {
			x = n.conv(fmt.Sprintf("%s/conv%d", name, i+1), x, convOf{out: s.out, k: s.kh, kw: s.kw, stride: s.stride, pad: s.pad, padW: s.padW, bn: true, act: relu})
		}
		return x
	}
	maxPool := func(x val) val { return n.pool(x, true, 3, 2, 0, false) }
	avgPool := func(x val) val { return n.pool(x, false, 3, 1, 1, false) }

	x := chain("stem", n.image(size), valid(32, 2), valid(32, 1), sq(64, 3))
	x = n.concat(1, maxPool(x), chain("mixed3a", x, valid(96, 2)))
	x = n.concat(1, chain("mixed4a/b0", x, sq(64, 1), valid(96, 1)),
		chain("mixed4a/b1", x, sq(64, 1), row(64, 7), col(64, 7), valid(96, 1)))
	x = n.concat(1, chain("mixed5a", x, valid(192, 2)), maxPool(x))
	for i := range 4 {
		n.in(fmt.Sprintf("a%d", i+1), func() {
			x = n.concat(1, chain("b0", x, sq(96, 1)), chain("b1", x, sq(64, 1), sq(96, 3)),
				chain("b2", x, sq(64, 1), sq(96, 3), sq(96, 3)), chain("b3", avgPool(x), sq(96, 1)))
		})
	}
	x = n.concat(1, chain("ra/b0", x, valid(384, 2)), chain("ra/b1", x, sq(192, 1), sq(224, 3), valid(256, 2)), maxPool(x))
	for i := range 7 {
		n.in(fmt.Sprintf("b%d", i+1), func() {
			x = n.concat(1, chain("b0", x, sq(384, 1)), chain("b1", x, sq(192, 1), row(224, 7), col(256, 7)),
				chain("b2", x, sq(192, 1), col(192, 7), row(224, 7), col(224, 7), row(256, 7)), chain("b3", avgPool(x), sq(128, 1)))
		})
	}
	x = n.concat(1, chain("rb/b0", x, sq(192, 1), valid(192, 2)),
		chain("rb/b1", x, sq(256, 1), row(256, 7), col(320, 7), valid(320, 2)), maxPool(x))
	for i := range 3 {
		n.in(fmt.Sprintf("c%d", i+1), func() {
			b1 := chain("b1", x, sq(384, 1))
			b2 := chain("b2", x, sq(384, 1), col(448, 3), row(512, 3))
			x = n.concat(1, chain("b0", x, sq(256, 1)), chain("b1/row", b1, row(256, 3)), chain("b1/col", b1, col(256, 3)),
				chain("b2/row", b2, row(256, 3)), chain("b2/col", b2, col(256, 3)), chain("b3", avgPool(x), sq(256, 1)))
		})
	}
	return n.classify(x, 1000)
}
