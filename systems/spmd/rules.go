package spmd

import (
	"slices"

	"perfsim/components/opgraph"
)

// factor is one index of an operator's computation and the dimensions that it
// runs over: -1 where an operand or the result does not have it.
type factor struct {
	args []int // dimension of each operand
	out  int   // dimension of the results
	sum  bool  // the results are sums over it: cut, every device has a part of the sum
	// window is 1 more than the dimension of the operator's window that slides
	// along it: cut, a device needs a halo of its neighbours' parts. 0: none.
	window int
}

// rule describes how an operator with array operands and results can be cut.
// What no factor mentions must be whole on every device.
type rule struct {
	factors []factor
	n       int // operands
}

func (r *rule) add(out int, sum bool, args ...int) {
	f := factor{args: make([]int, r.n), out: out, sum: sum}
	for i := range f.args {
		f.args[i] = -1
		if i < len(args) {
			f.args[i] = args[i]
		}
	}
	r.factors = append(r.factors, f)
}

// each adds a factor with dimension a of each operand that has the rank.
func (r *rule) each(g *opgraph.Graph, op opgraph.OpID, rank, a, out int) {
	list := make([]int, r.n)
	for i, o := range g.Operands(op) {
		list[i] = -1
		if g.Shapes.Rank(g.OperandShape(o)) == rank {
			list[i] = a
		}
	}
	r.add(out, false, list...)
}

// ruleOf returns the rule of an operator of the whole module. known is false
// where the operator must be done whole by every device.
func ruleOf(g *opgraph.Graph, op opgraph.OpID) (r rule, known bool) {
	args := g.Operands(op)
	r.n = len(args)
	kind := g.Ops.Kind[op]
	dims := func(i int) []int64 {
		if i >= len(args) {
			return nil
		}
		return g.Shapes.Dims(g.OperandShape(args[i]))
	}
	s := g.Ops.Shape[op]
	if m := g.Shapes.Tuple(s); len(m) > 0 {
		s = m[0]
	}
	out := g.Shapes.Dims(s)
	has := func(list []int64, d int) bool { return slices.Contains(list, int64(d)) }
	switch {
	case kind.IsElementwise(), kind == opgraph.OpCustomCall && r.n == 1 && slices.Equal(dims(0), out) && g.AttrStr(op, opgraph.AttrCustomCallTarget) == "Sharding":
		for d := range out {
			r.each(g, op, len(out), d, d)
		}
		return r, true
	}
	switch kind {
	case opgraph.OpBroadcast:
		from := dims(0)
		at := g.Dims(op)
		for d := range out {
			a := slices.Index(at, int64(d))
			if a >= 0 && (a >= len(from) || from[a] != out[d]) {
				continue
			}
			r.add(d, false, a)
		}
	case opgraph.OpIota, opgraph.OpConstant, opgraph.OpRng:
		for d := range out {
			if kind != opgraph.OpIota || int64(d) != g.IntOr(op, opgraph.AttrIotaDimension, -1) {
				r.add(d, false)
			} else {
				r.add(d, false) // the values differ from device to device, the work does not
			}
		}
	case opgraph.OpTranspose:
		for d, a := range g.Dims(op) {
			r.add(d, false, int(a))
		}
	case opgraph.OpReshape, opgraph.OpBitcast:
		for _, p := range sameDims(dims(0), out) {
			r.add(p[1], false, p[0])
		}
	case opgraph.OpDot:
		d := g.Dot(op)
		l, rr := dims(0), dims(1)
		if len(l) == 0 && len(rr) == 0 || r.n != 2 {
			return r, r.n == 2
		}
		at := 0
		for i := range d.LHSBatch {
			r.add(at, false, int(d.LHSBatch[i]), int(d.RHSBatch[i]))
			at++
		}
		for i := range l {
			if !has(d.LHSBatch, i) && !has(d.LHSContract, i) {
				r.add(at, false, i, -1)
				at++
			}
		}
		for i := range rr {
			if !has(d.RHSBatch, i) && !has(d.RHSContract, i) {
				r.add(at, false, -1, i)
				at++
			}
		}
		for i := range d.LHSContract {
			r.add(-1, true, int(d.LHSContract[i]), int(d.RHSContract[i]))
		}
	case opgraph.OpConvolution:
		d, ok := g.ConvDims(op)
		if !ok || g.IntOr(op, opgraph.AttrBatchGroups, 1) != 1 {
			return r, false
		}
		r.add(int(d.OutputBatch), false, int(d.InputBatch), -1)
		if g.IntOr(op, opgraph.AttrFeatureGroups, 1) == 1 {
			r.add(int(d.OutputFeature), false, -1, int(d.KernelOutput))
			r.add(-1, true, int(d.InputFeature), int(d.KernelInput))
		}
		for k := range g.Window(op, nil) {
			if k < len(d.InputSpatial) && k < len(d.OutputSpatial) {
				r.add(int(d.OutputSpatial[k]), false, int(d.InputSpatial[k]), -1)
				r.factors[len(r.factors)-1].window = k + 1
			}
		}
	case opgraph.OpReduce:
		n := r.n / 2
		at := 0
		for i := range dims(0) {
			list := make([]int, r.n)
			for k := range list {
				list[k] = -1
				if k < n {
					list[k] = i
				}
			}
			if has(g.Dims(op), i) {
				r.add(-1, true, list...)
			} else {
				r.add(at, false, list...)
				at++
			}
		}
	case opgraph.OpSlice, opgraph.OpDynamicSlice, opgraph.OpPad, opgraph.OpReverse:
		for d := range out {
			if d < len(dims(0)) && dims(0)[d] == out[d] && !(kind == opgraph.OpReverse && has(g.Dims(op), d)) {
				r.add(d, false, d)
			}
		}
	case opgraph.OpConcatenate:
		for d := range out {
			if !has(g.Dims(op), d) {
				r.each(g, op, len(out), d, d)
			}
		}
	case opgraph.OpDynamicUpdateSlice:
		for d := range out {
			if u := dims(1); d < len(u) && u[d] == out[d] {
				r.add(d, false, d, d)
			}
		}
	case opgraph.OpSort:
		for d := range out {
			if !has(g.Dims(op), d) {
				r.each(g, op, len(out), d, d)
			}
		}
	case opgraph.OpTopK:
		for d := range len(out) - 1 {
			r.add(d, false, d)
		}
	case opgraph.OpReduceWindow, opgraph.OpSelectAndScatter:
		for d, w := range g.Window(op, nil) {
			plain := w.Size == 1 && w.Stride == 1 && w.PadLow == 0 && w.PadHigh == 0
			if d >= len(dims(0)) || !plain && kind == opgraph.OpSelectAndScatter {
				continue
			}
			r.each(g, op, len(dims(0)), d, d)
			if !plain {
				r.factors[len(r.factors)-1].window = d + 1
			}
		}
	case opgraph.OpGather:
		r.gather(g, op, dims(0), dims(1), len(out))
	case opgraph.OpScatter:
		r.scatter(g, op, dims(0), dims(1))
	case opgraph.OpCholesky, opgraph.OpTriangularSolve, opgraph.OpFFT:
		inner := 2
		if kind == opgraph.OpFFT {
			inner = max(len(g.Ints(op, opgraph.AttrFFTLength)), 1)
		}
		for d := range max(len(out)-inner, 0) {
			r.each(g, op, len(out), d, d)
		}
	case opgraph.OpBatchNormTraining, opgraph.OpBatchNormInference, opgraph.OpBatchNormGrad:
		return r, false
	default:
		return r, false
	}
	return r, true
}

// gather: whole slices of the operand go along with the result, rows of
// indices with its batch. Where the operand is cut along what is looked up,
// each device finds its own rows and the results are added up.
func (r *rule) gather(g *opgraph.Graph, op opgraph.OpID, from, indices []int64, rank int) {
	offset, collapsed, sizes := g.Ints(op, opgraph.AttrOffsetDims), g.Ints(op, opgraph.AttrCollapsedDims), g.Ints(op, opgraph.AttrSliceSizes)
	ivd := g.IntOr(op, opgraph.AttrIndexVectorDim, -1)
	var batch []int
	for d := range rank {
		if !slices.Contains(offset, int64(d)) {
			batch = append(batch, d)
		}
	}
	at := 0
	for d := range from {
		if slices.Contains(collapsed, int64(d)) || slices.Contains(g.Ints(op, opgraph.AttrOperandBatching), int64(d)) {
			if slices.Contains(g.Ints(op, opgraph.AttrIndexMap), int64(d)) {
				r.add(-1, true, d, -1)
			}
			continue
		}
		if at < len(offset) && d < len(sizes) && sizes[d] == from[d] {
			r.add(int(offset[at]), false, d, -1)
		}
		at++
	}
	at = 0
	for d := range indices {
		if int64(d) == ivd {
			continue
		}
		if at < len(batch) {
			r.add(batch[at], false, -1, d)
		}
		at++
	}
}

// scatter: whole windows of the updates go along with the result; where the
// updates are cut, each device adds its own and the results are added up.
func (r *rule) scatter(g *opgraph.Graph, op opgraph.OpID, to, indices []int64) {
	n := (r.n - 1) / 2
	if n != 1 {
		return
	}
	window, inserted := g.Ints(op, opgraph.AttrOffsetDims), g.Ints(op, opgraph.AttrCollapsedDims)
	updates := g.Shapes.Dims(g.OperandShape(g.Operands(op)[2]))
	at := 0
	for d := range to {
		if slices.Contains(inserted, int64(d)) || slices.Contains(g.Ints(op, opgraph.AttrOperandBatching), int64(d)) {
			continue
		}
		if at < len(window) && window[at] < int64(len(updates)) && updates[window[at]] == to[d] {
			r.add(d, false, d, -1, int(window[at]))
		}
		at++
	}
	ivd := g.IntOr(op, opgraph.AttrIndexVectorDim, -1)
	var batch []int
	for d := range updates {
		if !slices.Contains(window, int64(d)) {
			batch = append(batch, d)
		}
	}
	at = 0
	for d := range indices {
		if int64(d) == ivd {
			continue
		}
		if at < len(batch) {
			r.add(-1, true, -1, d, batch[at])
		}
		at++
	}
}

// sameDims pairs the dimensions of a reshape along which a cut of one is a cut
// of the other: the first dimension of each run of equal size.
func sameDims(a, b []int64) (pairs [][2]int) {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if a[i] == 1 && b[j] != 1 {
			i++
			continue
		}
		if b[j] == 1 && a[i] != 1 {
			j++
			continue
		}
		pairs = append(pairs, [2]int{i, j})
		x, y := a[i], b[j]
		i, j = i+1, j+1
		for x != y {
			switch {
			case x < y && i < len(a):
				x = opgraph.MulSize(x, a[i])
				i++
			case x > y && j < len(b):
				y = opgraph.MulSize(y, b[j])
				j++
			default:
				return pairs
			}
		}
	}
	return pairs
}
