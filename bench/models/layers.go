package models

import (
	"math"

	"perfsim/components/opgraph"
)

// act is an activation function.
type act uint8

const (
	none act = iota
	relu
	relu6
	hardSwish
	hardSigmoid
	silu
	gelu     // the exact one, by erf
	geluTanh // the tanh approximation
	elu
	sigmoid
	tanh
)

// activate applies an activation function, spelt out in elementwise
// operators as a framework's compiler does.
func (n *net) activate(x val, a act) val {
	switch a {
	case relu:
		return n.scalar(opgraph.OpMaximum, x, 0)
	case relu6:
		return n.scalar(opgraph.OpMinimum, n.scalar(opgraph.OpMaximum, x, 0), 6)
	case hardSigmoid: // relu6(x+3)/6
		y := n.scalar(opgraph.OpAdd, x, 3)
		y = n.scalar(opgraph.OpMinimum, n.scalar(opgraph.OpMaximum, y, 0), 6)
		return n.scalar(opgraph.OpMultiply, y, 1.0/6)
	case hardSwish:
		return n.times(x, n.activate(x, hardSigmoid))
	case sigmoid:
		return n.unary(opgraph.OpLogistic, x)
	case silu:
		return n.times(x, n.unary(opgraph.OpLogistic, x))
	case tanh:
		return n.unary(opgraph.OpTanh, x)
	case gelu: // x/2·(1+erf(x/√2))
		e := n.unary(opgraph.OpErf, n.scalar(opgraph.OpMultiply, x, math.Sqrt2/2))
		return n.times(n.scalar(opgraph.OpMultiply, x, 0.5), n.scalar(opgraph.OpAdd, e, 1))
	case geluTanh: // x/2·(1+tanh(√(2/π)·(x+0.044715x³)))
		c := n.scalar(opgraph.OpMultiply, n.times(n.times(x, x), x), 0.044715)
		t := n.unary(opgraph.OpTanh, n.scalar(opgraph.OpMultiply, n.plus(x, c), math.Sqrt(2/math.Pi)))
		return n.times(n.scalar(opgraph.OpMultiply, x, 0.5), n.scalar(opgraph.OpAdd, t, 1))
	case elu: // max(x,0) + exp(min(x,0)) − 1
		e := n.unary(opgraph.OpExpm1, n.scalar(opgraph.OpMinimum, x, 0))
		return n.plus(n.scalar(opgraph.OpMaximum, x, 0), e)
	}
	return x
}

// convOf says what a two-dimensional convolution is. Zero fields mean:
// stride 1, dilation 1, one group, a square kernel, no padding.
type convOf struct {
	out    int64
	k, kw  int64 // kw 0: as k
	stride int64
	pad    int64 // both sides of both dimensions
	padW   int64 // of the width, where it differs: -1 for none
	same   bool  // TensorFlow's SAME padding: ⌈in/stride⌉ outputs, the odd element behind
	dilate int64
	groups int64
	bias   bool
	bn     bool
	act    act
}

// conv adds a convolution of x [N, C, H, W] with what follows it.
func (n *net) conv(name string, x val, c convOf) val {
	n.in(name, func() {
		kh, kw := c.k, c.kw
		if kw == 0 {
			kw = kh
		}
		stride, dilate, groups := max(c.stride, 1), max(c.dilate, 1), max(c.groups, 1)
		d := n.dims(x)
		padW := c.pad
		if c.padW != 0 {
			padW = max(c.padW, 0)
		}
		pads := [2][2]int64{{c.pad, c.pad}, {padW, padW}}
		if c.same {
			for i, k := range [2]int64{kh, kw} {
				total := max((ceil(d[2+i], stride)-1)*stride+(k-1)*dilate+1-d[2+i], 0)
				pads[i] = [2]int64{total / 2, total - total/2}
			}
		}
		win := []opgraph.WindowDim{
			{Size: kh, Stride: stride, PadLow: pads[0][0], PadHigh: pads[0][1], LHSDilate: 1, RHSDilate: dilate},
			{Size: kw, Stride: stride, PadLow: pads[1][0], PadHigh: pads[1][1], LHSDilate: 1, RHSDilate: dilate},
		}
		out := []int64{d[0], c.out, places(d[2], win[0]), places(d[3], win[1])}
		w := n.weight("weight", c.out, d[1]/groups, kh, kw)
		x = n.convolution(x, w, out, win, groups)
		x = n.after(x, c.bias, c.bn, c.act)
	})
	return x
}

// after adds bias, normalisation and activation of a layer.
func (n *net) after(x val, bias, bn bool, a act) val {
	if bias {
		x = n.perChannel(opgraph.OpAdd, x, n.weight("bias", n.dim(x, 1)), 1)
	}
	if bn {
		x = n.norm(x)
	}
	return n.activate(x, a)
}

// norm is a batch normalisation at inference: scale and shift per channel.
func (n *net) norm(x val) val {
	n.in("bn", func() {
		x = n.perChannel(opgraph.OpMultiply, x, n.weight("scale", n.dim(x, 1)), 1)
		x = n.perChannel(opgraph.OpAdd, x, n.weight("shift", n.dim(x, 1)), 1)
	})
	return x
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// places returns how many places a window has on n elements.
func places(n int64, w opgraph.WindowDim) int64 {
	return ((n-1)*w.LHSDilate+1+w.PadLow+w.PadHigh-((w.Size-1)*w.RHSDilate+1))/w.Stride + 1
}

func (n *net) convolution(x, w val, out []int64, win []opgraph.WindowDim, groups int64) val {
	return n.add(node{kind: opgraph.OpConvolution, dims: out, in: []val{x, w},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) {
			g.SetWindow(op, win)
			g.SetConvDims(op, opgraph.ConvDims{InputBatch: 0, InputFeature: 1, KernelOutput: 0, KernelInput: 1, OutputBatch: 0, OutputFeature: 1,
				InputSpatial: []int64{2, 3}[:len(win)], KernelSpatial: []int64{2, 3}[:len(win)], OutputSpatial: []int64{2, 3}[:len(win)]})
			if groups > 1 {
				g.SetInt(op, opgraph.AttrFeatureGroups, groups)
			}
		}})
}

// upConv is a transposed convolution with kernel and stride k (it tiles).
func (n *net) upConv(name string, x val, out, k int64) val {
	n.in(name, func() {
		d := n.dims(x)
		dim := opgraph.WindowDim{Size: k, Stride: 1, PadLow: k - 1, PadHigh: k - 1, LHSDilate: k, RHSDilate: 1}
		w := n.weight("weight", out, d[1], k, k)
		x = n.convolution(x, w, []int64{d[0], out, d[2] * k, d[3] * k}, []opgraph.WindowDim{dim, dim}, 1)
		x = n.after(x, true, false, none)
	})
	return x
}

// conv1d is a convolution of x [N, C, L] with kernel k.
func (n *net) conv1d(name string, x val, out, k, stride, pad int64, a act) val {
	n.in(name, func() {
		d := n.dims(x)
		win := []opgraph.WindowDim{{Size: k, Stride: stride, PadLow: pad, PadHigh: pad, LHSDilate: 1, RHSDilate: 1}}
		w := n.weight("weight", out, d[1], k)
		x = n.convolution(x, w, []int64{d[0], out, places(d[2], win[0])}, win, 1)
		x = n.after(x, true, false, a)
	})
	return x
}

// pool is a window reduction over the two last dimensions. ceilMode keeps a
// last window that is only partly on the input.
func (n *net) pool(x val, max bool, k, stride, pad int64, ceilMode bool) val {
	d := n.dims(x)
	win := make([]opgraph.WindowDim, 4)
	out := append([]int64(nil), d...)
	for i := range win {
		win[i] = opgraph.WindowDim{Size: 1, Stride: 1, LHSDilate: 1, RHSDilate: 1}
		if i < 2 {
			continue
		}
		win[i].Size, win[i].Stride, win[i].PadLow, win[i].PadHigh = k, stride, pad, pad
		if rest := (d[i] + 2*pad - k) % stride; ceilMode && rest != 0 {
			win[i].PadHigh += stride - rest
		}
		out[i] = places(d[i], win[i])
	}
	fold := opgraph.OpAdd
	if max {
		fold = opgraph.OpMaximum
	}
	y := n.add(node{kind: opgraph.OpReduceWindow, dims: out, in: []val{x, n.identity(fold)}, region: fold,
		attrs: func(g *opgraph.Graph, op opgraph.OpID) { g.SetWindow(op, win) }})
	if !max {
		y = n.scalar(opgraph.OpMultiply, y, 1/float64(k*k))
	}
	return y
}

// mean averages x [N, C, H, W] over its places, giving [N, C].
func (n *net) mean(x val) val {
	d := n.dims(x)
	return n.scalar(opgraph.OpMultiply, n.reduce(opgraph.OpAdd, x, 2, 3), 1/float64(d[2]*d[3]))
}

// upsample repeats every element of the last two dimensions f times (nearest
// neighbour).
func (n *net) upsample(x val, f int64) val {
	d := n.dims(x)
	y := n.bcast(x, []int64{d[0], d[1], d[2], f, d[3], f}, 0, 1, 2, 4)
	return n.reshape(y, d[0], d[1], d[2]*f, d[3]*f)
}

// linear multiplies the last dimension of x by a weight [out, in].
func (n *net) linear(name string, x val, out int64, bias bool) val {
	n.in(name, func() {
		x = n.matmulT(x, n.weight("weight", out, n.dim(x, -1)))
		if bias {
			x = n.perChannel(opgraph.OpAdd, x, n.weight("bias", out), int64(len(n.dims(x))-1))
		}
	})
	return x
}

// matmulT contracts the last dimension of x with the second of w [out, in].
func (n *net) matmulT(x, w val) val {
	d := append([]int64(nil), n.dims(x)...)
	last := int64(len(d) - 1)
	d[last] = n.dim(w, 0)
	return n.add(node{kind: opgraph.OpDot, dims: d, in: []val{x, w},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) {
			g.SetDot(op, opgraph.DotDims{LHSContract: []int64{last}, RHSContract: []int64{1}})
		}})
}

// dot is a general product with batch dimensions; the result has the batch
// dimensions, then those left of a, then those left of b.
func (n *net) dot(a, b val, dd opgraph.DotDims) val {
	var out []int64
	for _, i := range dd.LHSBatch {
		out = append(out, n.dims(a)[i])
	}
	for i, x := range n.dims(a) {
		if !has(dd.LHSBatch, int64(i)) && !has(dd.LHSContract, int64(i)) {
			out = append(out, x)
		}
	}
	for i, x := range n.dims(b) {
		if !has(dd.RHSBatch, int64(i)) && !has(dd.RHSContract, int64(i)) {
			out = append(out, x)
		}
	}
	return n.add(node{kind: opgraph.OpDot, dims: out, in: []val{a, b},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) { g.SetDot(op, dd) }})
}

// layerNorm normalises the last dimension: (x−μ)/√(σ²+ε)·γ+β.
func (n *net) layerNorm(name string, x val) val {
	n.in(name, func() {
		x = n.normalise(x, true, 1e-5)
		last := int64(len(n.dims(x)) - 1)
		x = n.perChannel(opgraph.OpMultiply, x, n.weight("gamma", n.dim(x, -1)), last)
		x = n.perChannel(opgraph.OpAdd, x, n.weight("beta", n.dim(x, -1)), last)
	})
	return x
}

// rmsNorm scales the last dimension by its root mean square: x/√(x²+ε)·γ.
func (n *net) rmsNorm(name string, x val) val {
	n.in(name, func() {
		x = n.normalise(x, false, 1e-6)
		x = n.perChannel(opgraph.OpMultiply, x, n.weight("gamma", n.dim(x, -1)), int64(len(n.dims(x))-1))
	})
	return x
}

// normalise divides the last dimension by its deviation; with centre the
// mean is taken off before.
func (n *net) normalise(x val, centre bool, eps float64) val {
	d := n.dims(x)
	last := int64(len(d) - 1)
	lead := make([]int64, last)
	for i := range lead {
		lead[i] = int64(i)
	}
	inv := 1 / float64(d[last])
	if centre {
		mean := n.scalar(opgraph.OpMultiply, n.reduce(opgraph.OpAdd, x, last), inv)
		x = n.binary(opgraph.OpSubtract, x, n.bcast(mean, d, lead...))
	}
	v := n.scalar(opgraph.OpMultiply, n.reduce(opgraph.OpAdd, n.times(x, x), last), inv)
	r := n.unary(opgraph.OpRsqrt, n.scalar(opgraph.OpAdd, v, eps))
	return n.times(x, n.bcast(r, d, lead...))
}

// groupNorm normalises x [N, C, H, W] in 32 groups of channels.
func (n *net) groupNorm(name string, x val, a act) val {
	const groups = 32
	n.in(name, func() {
		d := append([]int64(nil), n.dims(x)...)
		y := n.normalise(n.reshape(x, d[0], groups, d[1]/groups*d[2]*d[3]), true, 1e-5)
		x = n.reshape(y, d...)
		x = n.perChannel(opgraph.OpMultiply, x, n.weight("gamma", d[1]), 1)
		x = n.perChannel(opgraph.OpAdd, x, n.weight("beta", d[1]), 1)
		x = n.activate(x, a)
	})
	return x
}

// softmax normalises the last dimension with the maximum taken off.
func (n *net) softmax(x val) val {
	d := n.dims(x)
	last := int64(len(d) - 1)
	lead := make([]int64, last)
	for i := range lead {
		lead[i] = int64(i)
	}
	m := n.reduce(opgraph.OpMaximum, x, last)
	e := n.unary(opgraph.OpExp, n.binary(opgraph.OpSubtract, x, n.bcast(m, d, lead...)))
	s := n.reduce(opgraph.OpAdd, e, last)
	return n.binary(opgraph.OpDivide, e, n.bcast(s, d, lead...))
}

// embed looks the ids [N, S] up in a table [vocab, width], giving [N, S,
// width].
func (n *net) embed(table, ids val) val {
	d := n.dims(ids)
	width := n.dim(table, 1)
	out := append(append([]int64(nil), d...), width)
	return n.add(node{kind: opgraph.OpGather, dims: out, in: []val{table, ids},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) {
			g.SetInts(op, opgraph.AttrOffsetDims, int64(len(d)))
			g.SetInts(op, opgraph.AttrCollapsedDims, 0)
			g.SetInts(op, opgraph.AttrIndexMap, 0)
			g.SetInt(op, opgraph.AttrIndexVectorDim, int64(len(d)))
			g.SetInts(op, opgraph.AttrSliceSizes, 1, width)
		}})
}

// attention is scaled dot-product attention of q [N, Sq, H·d], k and v
// [N, Sk, G·d] with H query heads of G key-value heads (1 or H). scale 0
// leaves the products as they are. bias, where not negative, is added to the
// scores: [H, Sq, Sk] or [N, Sk].
func (n *net) attention(q, k, v val, heads, kvHeads int64, scale float64, bias val) val {
	dq, sk := append([]int64(nil), n.dims(q)...), n.dim(k, 1)
	d := dq[2] / heads
	q = n.reshape(q, dq[0], dq[1], heads, d)
	var s, o val
	if kvHeads == heads {
		k, v = n.reshape(k, dq[0], sk, heads, d), n.reshape(v, dq[0], sk, heads, d)
		s = n.dot(q, k, opgraph.DotDims{LHSBatch: []int64{0, 2}, RHSBatch: []int64{0, 2}, LHSContract: []int64{3}, RHSContract: []int64{3}})
	} else { // one key-value head for all: the heads are rows
		s = n.dot(q, k, opgraph.DotDims{LHSBatch: []int64{0}, RHSBatch: []int64{0}, LHSContract: []int64{3}, RHSContract: []int64{2}})
		s = n.transpose(s, 0, 2, 1, 3)
	}
	if scale != 0 {
		s = n.scalar(opgraph.OpMultiply, s, scale)
	}
	if bias >= 0 {
		switch b := n.dims(bias); len(b) {
		case 3:
			s = n.plus(s, n.bcast(bias, n.dims(s), 1, 2, 3))
		default:
			s = n.plus(s, n.bcast(bias, n.dims(s), 0, 3))
		}
	}
	p := n.softmax(s)
	if kvHeads == heads {
		o = n.dot(p, v, opgraph.DotDims{LHSBatch: []int64{0, 1}, RHSBatch: []int64{0, 2}, LHSContract: []int64{3}, RHSContract: []int64{1}})
	} else {
		o = n.dot(p, v, opgraph.DotDims{LHSBatch: []int64{0}, RHSBatch: []int64{0}, LHSContract: []int64{3}, RHSContract: []int64{1}})
	}
	return n.reshape(n.transpose(o, 0, 2, 1, 3), dq...)
}
