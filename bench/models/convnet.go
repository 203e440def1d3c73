package models

import (
	"fmt"

	"perfsim/components/opgraph"
)

// cbr is a convolution with batch normalisation and ReLU, padded to keep the
// size at stride 1.
func (n *net) cbr(name string, x val, out, k, stride int64) val {
	return n.conv(name, x, convOf{out: out, k: k, stride: stride, pad: k / 2, bn: true, act: relu})
}

// residual is a ResNet unit of two 3×3 convolutions, or with bottleneck of
// 1×1, 3×3, 1×1; the stride is in the (first) 3×3.
func (n *net) residual(name string, x val, out, stride int64, bottleneck bool) val {
	n.in(name, func() {
		id, y := x, x
		if n.dim(x, 1) != out || stride != 1 {
			id = n.conv("identity", x, convOf{out: out, k: 1, stride: stride, bn: true})
		}
		if bottleneck {
			y = n.cbr("conv1", y, out/4, 1, 1)
			y = n.cbr("conv2", y, out/4, 3, stride)
			y = n.conv("conv3", y, convOf{out: out, k: 1, bn: true})
		} else {
			y = n.cbr("conv1", y, out, 3, stride)
			y = n.conv("conv2", y, convOf{out: out, k: 3, pad: 1, bn: true})
		}
		x = n.activate(n.plus(y, id), relu)
	})
	return x
}

// resNet: He et al., arXiv:1512.03385, table 1.
func resNet(n *net, layers []int, bottleneck bool) val {
	x := n.conv("stem", n.image(224), convOf{out: 64, k: 7, stride: 2, pad: 3, bn: true, act: relu})
	x = n.pool(x, true, 3, 2, 1, false)
	width := int64(64)
	if bottleneck {
		width = 256
	}
	for s, count := range layers {
		for i := range count {
			stride := int64(1)
			if s > 0 && i == 0 {
				stride = 2
			}
			x = n.residual(fmt.Sprintf("stage%d/unit%d", s+1, i+1), x, width<<s, stride, bottleneck)
		}
	}
	return n.classify(x, 1000)
}

// voVNet: Lee et al., arXiv:1904.09730, table 1.
func voVNet(n *net, layers []int, slim bool) val {
	out, branch := []int64{256, 512, 768, 1024}, []int64{128, 160, 192, 224}
	x := n.cbr("stem1", n.image(224), 64, 3, 2)
	x = n.cbr("stem2", x, 64, 3, 1)
	x = n.cbr("stem3", x, 128, 3, 2)
	for s, count := range layers {
		o, b := out[s], branch[s]
		if slim {
			o, b = o/2, b/2
		}
		for i := range count {
			n.in(fmt.Sprintf("stage%d/unit%d", s+1, i+1), func() {
				if s > 0 && i == 0 {
					x = n.pool(x, true, 3, 2, 0, true)
				}
				all, y := []val{x}, x
				for j := range 5 {
					y = n.cbr(fmt.Sprintf("branch%d", j+1), y, b, 3, 1)
					all = append(all, y)
				}
				y = n.cbr("concat", n.concat(1, all...), o, 1, 1)
				if i > 0 {
					y = n.plus(y, x)
				}
				x = y
			})
		}
	}
	return n.classify(x, 1000)
}

// voVNetV2: Lee and Park, arXiv:1911.06667, in the variants of timm
// (ese_vovnet19b_dw, 39b, 99b): effective squeeze-excitation, residuals, and
// for 19b depthwise convolutions.
func voVNetV2(n *net, layers []int, perBlock int, depthwise bool) val {
	out, mid := []int64{256, 512, 768, 1024}, []int64{128, 160, 192, 224}
	sep := func(name string, x val, o, stride int64) val {
		if !depthwise {
			return n.cbr(name, x, o, 3, stride)
		}
		n.in(name, func() {
			x = n.conv("dw", x, convOf{out: n.dim(x, 1), k: 3, stride: stride, pad: 1, groups: n.dim(x, 1)})
			x = n.cbr("pw", x, o, 1, 1)
		})
		return x
	}
	stem := int64(128)
	if depthwise {
		stem = 64
	}
	x := n.cbr("stem1", n.image(224), 64, 3, 2)
	x = sep("stem2", x, 64, 1)
	x = sep("stem3", x, stem, 2)
	for s, count := range layers {
		for i := range count {
			n.in(fmt.Sprintf("stage%d/block%d", s+1, i+1), func() {
				if s > 0 && i == 0 {
					x = n.pool(x, true, 3, 2, 0, true)
				}
				all, y := []val{x}, x
				if depthwise && n.dim(x, 1) != mid[s] {
					y = n.cbr("reduce", y, mid[s], 1, 1)
				}
				for j := range perBlock {
					y = sep(fmt.Sprintf("conv%d", j+1), y, mid[s], 1)
					all = append(all, y)
				}
				y = n.cbr("concat", n.concat(1, all...), out[s], 1, 1)
				if i == count-1 { // the last block of a stage only
					gate := n.activate(n.linear("ese", n.mean(y), out[s], true), hardSigmoid)
					y = n.times(y, n.bcast(gate, n.dims(y), 0, 1))
				}
				if i > 0 {
					y = n.plus(y, x)
				}
				x = y
			})
		}
	}
	return n.classify(x, 1000)
}

// uNet: Buda et al., the brain segmentation network (32 first features, batch
// normalisation, transposed convolutions).
func uNet(n *net, size int64) val {
	block := func(name string, x val, f int64) val {
		return n.cbr(name+"/conv2", n.cbr(name+"/conv1", x, f, 3, 1), f, 3, 1)
	}
	x := n.image(size)
	var skip []val
	f := int64(32)
	for i := range 4 {
		x = block(fmt.Sprintf("encoder%d", i+1), x, f)
		skip = append(skip, x)
		x = n.pool(x, true, 2, 2, 0, false)
		f *= 2
	}
	x = block("bottleneck", x, f)
	for i := 3; i >= 0; i-- {
		f /= 2
		x = n.upConv(fmt.Sprintf("upconv%d", i+1), x, f, 2)
		x = block(fmt.Sprintf("decoder%d", i+1), n.concat(1, x, skip[i]), f)
	}
	return n.activate(n.conv("out", x, convOf{out: 1, k: 1, bias: true}), sigmoid)
}

// yoloV5: the s model of Ultralytics YOLOv5 6.x (depth 0.33, width 0.5) with
// the decoding of its boxes.
func yoloV5(n *net, size int64) []val {
	conv := func(name string, x val, out, k, stride int64) val {
		pad := k / 2
		if k == 6 {
			pad = 2
		}
		return n.conv(name, x, convOf{out: out, k: k, stride: stride, pad: pad, bn: true, act: silu})
	}
	c3 := func(name string, x val, out int64, count int, shortcut bool) val {
		n.in(name, func() {
			a := conv("cv1", x, out/2, 1, 1)
			for i := range count {
				b := conv(fmt.Sprintf("m%d/cv1", i), a, out/2, 1, 1)
				b = conv(fmt.Sprintf("m%d/cv2", i), b, out/2, 3, 1)
				if shortcut {
					b = n.plus(a, b)
				}
				a = b
			}
			x = conv("cv3", n.concat(1, a, conv("cv2", x, out/2, 1, 1)), out, 1, 1)
		})
		return x
	}
	x := conv("0", n.image(size), 32, 6, 2)
	x = c3("2", conv("1", x, 64, 3, 2), 64, 1, true)
	p3 := c3("4", conv("3", x, 128, 3, 2), 128, 2, true)
	p4 := c3("6", conv("5", p3, 256, 3, 2), 256, 3, true)
	x = c3("8", conv("7", p4, 512, 3, 2), 512, 1, true)
	x = conv("9/cv1", x, 256, 1, 1)
	pools := []val{x}
	for range 3 {
		pools = append(pools, n.pool(pools[len(pools)-1], true, 5, 1, 2, false))
	}
	x = conv("9/cv2", n.concat(1, pools...), 512, 1, 1)
	p5 := conv("10", x, 256, 1, 1)
	x = c3("13", n.concat(1, n.upsample(p5, 2), p4), 256, 1, false)
	q4 := conv("14", x, 128, 1, 1)
	o3 := c3("17", n.concat(1, n.upsample(q4, 2), p3), 128, 1, false)
	o4 := c3("20", n.concat(1, conv("18", o3, 128, 3, 2), q4), 256, 1, false)
	o5 := c3("23", n.concat(1, conv("21", o4, 256, 3, 2), p5), 512, 1, false)
	var flat []val
	for i, o := range []val{o3, o4, o5} {
		n.in(fmt.Sprintf("24/m%d", i), func() {
			y := n.conv("conv", o, convOf{out: 255, k: 1, bias: true})
			d := append([]int64(nil), n.dims(y)...)
			y = n.transpose(n.reshape(y, d[0], 3, 85, d[2], d[3]), 0, 1, 3, 4, 2)
			y = n.activate(y, sigmoid)
			lead := []int64{d[0], 3, d[2], d[3]}
			xy := n.scalar(opgraph.OpMultiply, n.slice(y, 4, 0, 2), 2)
			grid := n.feed(fmt.Sprintf("grid%d", i), n.elem, d[2], d[3], 2)
			xy = n.scalar(opgraph.OpMultiply, n.plus(xy, n.bcast(grid, append(lead, 2), 2, 3, 4)), float64(int64(8)<<i))
			wh := n.scalar(opgraph.OpMultiply, n.slice(y, 4, 2, 4), 2)
			anchors := n.feed(fmt.Sprintf("anchors%d", i), n.elem, 3, 2)
			wh = n.times(n.times(wh, wh), n.bcast(anchors, append(lead, 2), 1, 4))
			y = n.concat(4, xy, wh, n.slice(y, 4, 4, 85))
			flat = append(flat, n.reshape(y, d[0], 3*d[2]*d[3], 85))
		})
	}
	return []val{n.concat(1, flat...)}
}

// openPose: Osokin, arXiv:1811.12004, on MobileNet; the variants of pytorchcv
// (lwopenpose2d and 3d for CMU Panoptic) with 19 keypoints.
func openPose(n *net, size int64, threeD bool) val {
	const heat, paf = 19, 38
	plain := func(name string, x val, out, k int64) val {
		return n.conv(name, x, convOf{out: out, k: k, pad: k / 2, bias: true, act: relu})
	}
	bend := func(name string, x val, mid, out int64) val {
		return n.conv(name+"/conv2", plain(name+"/conv1", x, mid, 1), convOf{out: out, k: 1, bias: true})
	}
	refine := func(name string, x val, out int64) val {
		x = plain(name+"/pre", x, out, 1)
		y := n.conv(name+"/block1", x, convOf{out: out, k: 3, pad: 1, bias: true, bn: true, act: relu})
		y = n.conv(name+"/block2", y, convOf{out: out, k: 3, pad: 2, dilate: 2, bias: true, bn: true, act: relu})
		return n.plus(x, y)
	}
	x := n.cbr("stem", n.image(size), 32, 3, 2)
	unit := 0
	for s, stage := range [][]int64{{64}, {128, 128}, {256, 256, 512, 512, 512, 512, 512, 512}} {
		for j, out := range stage {
			stride, dilate := int64(1), int64(1)
			if j == 0 && s > 0 {
				stride = 2
			}
			if s == 2 && j == 3 {
				dilate = 2
			}
			unit++
			n.in(fmt.Sprintf("unit%d", unit), func() {
				x = n.conv("dw", x, convOf{out: n.dim(x, 1), k: 3, stride: stride, pad: dilate, dilate: dilate, groups: n.dim(x, 1), bn: true, act: relu})
				x = n.cbr("pw", x, out, 1, 1)
			})
		}
	}
	x = plain("final/pre", x, 128, 1)
	y := x
	for i := range 3 {
		n.in(fmt.Sprintf("final/block%d", i+1), func() {
			y = n.conv("dw", y, convOf{out: 128, k: 3, pad: 1, groups: 128, act: elu})
			y = n.conv("pw", y, convOf{out: 128, k: 1, act: elu})
		})
	}
	x = plain("final/post", n.plus(x, y), 128, 3)

	y = x
	for i := range 3 {
		y = plain(fmt.Sprintf("init/block%d", i+1), y, 128, 3)
	}
	y = n.concat(1, x, bend("init/heatmap", y, 512, heat), bend("init/paf", y, 512, paf))
	x = n.slice(y, 1, 0, 128)
	for i := range 5 {
		y = refine(fmt.Sprintf("refine%d", i+1), y, 128)
	}
	maps := []val{bend("heatmap", y, 128, heat), bend("paf", y, 128, paf)}
	if !threeD {
		return n.concat(1, maps...)
	}
	y = n.concat(1, x, maps[0], maps[1])
	for i := range 5 {
		n.in(fmt.Sprintf("3d/unit%d", i+1), func() {
			id, in := y, n.dim(y, 1)
			if in != 128 {
				id = n.conv("identity", y, convOf{out: 128, k: 1, bias: true, bn: true})
			}
			z := n.conv("conv1", y, convOf{out: in / 2, k: 1, bias: true, bn: true, act: relu})
			z = n.conv("conv2", z, convOf{out: in / 2, k: 3, pad: 1, bias: true, bn: true, act: relu})
			z = n.conv("conv3", z, convOf{out: 128, k: 1, bias: true, bn: true})
			y = n.plus(z, id)
		})
	}
	y = refine("3d/refine1", y, 128)
	y = refine("3d/refine2", y, 128)
	return n.concat(1, maps[0], maps[1], bend("3d/features", y, 128, heat+paf))
}
