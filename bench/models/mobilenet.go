package models

import (
	"fmt"

	"perfsim/components/opgraph"
)

// divisible rounds a channel count to a multiple of 8, not more than a tenth
// below what it was (the rule of the MobileNet papers' code).
func divisible(c float64) int64 {
	v := max(int64(c+4)/8*8, 8)
	if float64(v) < 0.9*c {
		v += 8
	}
	return v
}

// image feeds a batch of square images.
func (n *net) image(size int64) val { return n.feed("image", n.elem, n.batch, 3, size, size) }

// classify is the head of a classifier: mean over places, linear layer.
func (n *net) classify(x val, classes int64) val {
	return n.linear("classifier", n.mean(x), classes, true)
}

// mobileNetV1: Howard et al., arXiv:1704.04861, table 1, with TensorFlow's
// padding and background class.
func mobileNetV1(n *net, size int64, alpha float64) val {
	x := n.conv("stem", n.image(size), convOf{out: divisible(32 * alpha), k: 3, stride: 2, same: true, bn: true, act: relu6})
	for i, b := range [][2]int64{{64, 1}, {128, 2}, {128, 1}, {256, 2}, {256, 1}, {512, 2}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}} {
		n.in(fmt.Sprintf("block%d", i+1), func() {
			x = n.conv("depthwise", x, convOf{out: n.dim(x, 1), k: 3, stride: b[1], same: true, groups: n.dim(x, 1), bn: true, act: relu6})
			x = n.conv("pointwise", x, convOf{out: divisible(float64(b[0]) * alpha), k: 1, bn: true, act: relu6})
		})
	}
	return n.classify(x, 1001)
}

// mobileNetV2: Sandler et al., arXiv:1801.04381, table 2. tf takes
// TensorFlow's padding and background class.
func mobileNetV2(n *net, size int64, alpha float64, tf bool) val {
	conv := func(name string, x val, c convOf) val {
		c.bn, c.same = true, tf
		if !tf {
			c.pad = c.k / 2
		}
		return n.conv(name, x, c)
	}
	x := conv("stem", n.image(size), convOf{out: divisible(32 * alpha), k: 3, stride: 2, act: relu6})
	block := 0
	for _, s := range [][4]int64{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		expand, out := s[0], divisible(float64(s[1])*alpha)
		for i := range s[2] {
			stride := int64(1)
			if i == 0 {
				stride = s[3]
			}
			block++
			n.in(fmt.Sprintf("block%d", block), func() {
				in := n.dim(x, 1)
				y := x
				if expand > 1 {
					y = conv("expand", y, convOf{out: in * expand, k: 1, act: relu6})
				}
				y = conv("depthwise", y, convOf{out: in * expand, k: 3, stride: stride, groups: in * expand, act: relu6})
				y = conv("project", y, convOf{out: out, k: 1})
				if stride == 1 && in == out {
					y = n.plus(x, y)
				}
				x = y
			})
		}
	}
	x = conv("head", x, convOf{out: max(divisible(1280*alpha), 1280), k: 1, act: relu6})
	if tf {
		return n.classify(x, 1001)
	}
	return n.classify(x, 1000)
}

// v3Block is one row of tables 1 and 2 of arXiv:1905.02244.
type v3Block struct {
	k, expand, out int64
	se             bool
	act            act
	stride         int64
}

var v3Large = []v3Block{
	{3, 16, 16, false, relu, 1}, {3, 64, 24, false, relu, 2}, {3, 72, 24, false, relu, 1}, {5, 72, 40, true, relu, 2},
	{5, 120, 40, true, relu, 1}, {5, 120, 40, true, relu, 1}, {3, 240, 80, false, hardSwish, 2}, {3, 200, 80, false, hardSwish, 1},
	{3, 184, 80, false, hardSwish, 1}, {3, 184, 80, false, hardSwish, 1}, {3, 480, 112, true, hardSwish, 1}, {3, 672, 112, true, hardSwish, 1},
	{5, 672, 160, true, hardSwish, 2}, {5, 960, 160, true, hardSwish, 1}, {5, 960, 160, true, hardSwish, 1},
}

var v3Small = []v3Block{
	{3, 16, 16, true, relu, 2}, {3, 72, 24, false, relu, 2}, {3, 88, 24, false, relu, 1}, {5, 96, 40, true, hardSwish, 2},
	{5, 240, 40, true, hardSwish, 1}, {5, 240, 40, true, hardSwish, 1}, {5, 120, 48, true, hardSwish, 1}, {5, 144, 48, true, hardSwish, 1},
	{5, 288, 96, true, hardSwish, 2}, {5, 576, 96, true, hardSwish, 1}, {5, 576, 96, true, hardSwish, 1},
}

// mobileNetV3: Howard et al., arXiv:1905.02244.
func mobileNetV3(n *net, blocks []v3Block, last, hidden int64) val {
	x := n.conv("stem", n.image(224), convOf{out: 16, k: 3, stride: 2, pad: 1, bn: true, act: hardSwish})
	for i, b := range blocks {
		n.in(fmt.Sprintf("block%d", i+1), func() {
			in := n.dim(x, 1)
			y := x
			if b.expand != in {
				y = n.conv("expand", y, convOf{out: b.expand, k: 1, bn: true, act: b.act})
			}
			y = n.conv("depthwise", y, convOf{out: b.expand, k: b.k, stride: b.stride, pad: b.k / 2, groups: b.expand, bn: true, act: b.act})
			if b.se {
				y = n.squeezeExcite(y, divisible(float64(b.expand)/4))
			}
			y = n.conv("project", y, convOf{out: b.out, k: 1, bn: true})
			if b.stride == 1 && in == b.out {
				y = n.plus(x, y)
			}
			x = y
		})
	}
	x = n.conv("head", x, convOf{out: last, k: 1, bn: true, act: hardSwish})
	y := n.activate(n.linear("hidden", n.mean(x), hidden, true), hardSwish)
	return n.linear("classifier", y, 1000, true)
}

// squeezeExcite scales every channel by a gate computed from its mean.
func (n *net) squeezeExcite(x val, mid int64) val {
	n.in("se", func() {
		c := n.dim(x, 1)
		s := n.activate(n.linear("reduce", n.mean(x), mid, true), relu)
		s = n.activate(n.linear("expand", s, c, true), hardSigmoid)
		x = n.binary(opgraph.OpMultiply, x, n.bcast(s, n.dims(x), 0, 1))
	})
	return x
}
