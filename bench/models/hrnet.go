package models

import "fmt"

// hrNet: Wang et al., arXiv:1908.07919, in the classification variants of
// pytorchcv (hrnet_w18_small_v2 and hrnetv2_w18 to w64). width is the channel
// count of the highest resolution.
func hrNet(n *net, width int64, initUnits int, modules [3]int) val {
	x := n.cbr("stem1", n.image(224), 64, 3, 2)
	x = n.cbr("stem2", x, 64, 3, 2)
	for i := range initUnits {
		x = n.residual(fmt.Sprintf("init/unit%d", i+1), x, 256, 1, true)
	}
	branches := []val{x}
	for s := range 3 {
		branches = n.hrStage(fmt.Sprintf("stage%d", s+1), branches, s+2, width, modules[s], max(2, initUnits))
	}
	var y val
	for i, b := range branches {
		name := fmt.Sprintf("head/block%d", i+1)
		z := n.residual(name, b, int64(128)<<i, 1, true)
		if i > 0 {
			d := n.conv(fmt.Sprintf("head/down%d", i), y, convOf{out: int64(128) << i, k: 3, stride: 2, pad: 1, bias: true, bn: true, act: relu})
			z = n.plus(z, d)
		}
		y = z
	}
	y = n.conv("head/final", y, convOf{out: 2048, k: 1, bias: true, bn: true, act: relu})
	return n.classify(y, 1000)
}

// hrStage brings the branches to the next number of resolutions and runs
// modules of parallel units with exchange between all resolutions.
func (n *net) hrStage(name string, x []val, branches int, width int64, modules, units int) []val {
	n.in(name, func() {
		last := x[len(x)-1]
		next := make([]val, branches)
		for i := range branches {
			w := width << i
			switch {
			case i >= len(x):
				next[i] = n.cbr(fmt.Sprintf("transition%d", i+1), last, w, 3, 2)
			case n.dim(x[i], 1) != w:
				next[i] = n.cbr(fmt.Sprintf("transition%d", i+1), last, w, 3, 1)
			default:
				next[i] = x[i]
			}
		}
		x = next
		for m := range modules {
			n.in(fmt.Sprintf("module%d", m+1), func() { x = n.hrModule(x, width, units) })
		}
	})
	return x
}

func (n *net) hrModule(x []val, width int64, units int) []val {
	y := make([]val, len(x))
	for i := range x {
		y[i] = x[i]
		for u := range units {
			y[i] = n.residual(fmt.Sprintf("branch%d/unit%d", i+1, u+1), y[i], width<<i, 1, false)
		}
	}
	out := make([]val, len(y))
	for i := range y {
		sum := val(-1)
		for j := range y {
			z := y[j]
			name := fmt.Sprintf("fuse%d/from%d", i+1, j+1)
			switch {
			case j > i:
				z = n.conv(name, z, convOf{out: width << i, k: 1, bn: true})
				z = n.upsample(z, int64(1)<<(j-i))
			case j < i:
				for k := range i - j {
					c := convOf{out: width << j, k: 3, stride: 2, pad: 1, bn: true, act: relu}
					if k == i-j-1 {
						c.out, c.act = width<<i, none
					}
					z = n.conv(fmt.Sprintf("%s/down%d", name, k+1), z, c)
				}
			}
			if sum < 0 {
				sum = z
			} else {
				sum = n.plus(sum, z)
			}
		}
		out[i] = n.activate(sum, relu)
	}
	return out
}
