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

// operator is the key by which a rule is found.
type operator struct {
	g    *opgraph.Graph
	op   opgraph.OpID
	kind opgraph.OpKind
	out  []int64 // dimensions of the result, of the first one of several
}

// dims returns the dimensions of operand i, nil where there is none.
func (o *operator) dims(i int) []int64 {
	args := o.g.Operands(o.op)
	if i >= len(args) {
		return nil
	}
	return o.g.Shapes.Dims(o.g.OperandShape(args[i]))
}

func contains(list []int64, d int) bool { return slices.Contains(list, int64(d)) }

// ruleOf returns the rule of an operator of the whole module. known is false
// where the operator must be done whole by every device.
func ruleOf(g *opgraph.Graph, op opgraph.OpID) (r rule, known bool) {
	r.n = len(g.Operands(op))
	kind := g.Ops.Kind[op]
	s := g.Ops.Shape[op]
	if m := g.Shapes.Tuple(s); len(m) > 0 {
		s = m[0]
	}
	o := &operator{g, op, kind, g.Shapes.Dims(s)}
	if kind.IsElementwise() || target(g, op) == "Sharding" {
		for d := range o.out {
			r.each(g, op, len(o.out), d, d)
		}
		return r, true
	}
	known = true
	switch kind {
	case opgraph.OpBroadcast:
		r.broadcast(o)
	case opgraph.OpIota, opgraph.OpConstant, opgraph.OpRng:
		for d := range o.out {
			r.add(d, false) // values may differ from device to device, the work does not
		}
	case opgraph.OpTranspose:
		r.transpose(o)
	case opgraph.OpReshape, opgraph.OpBitcast:
		r.reshape(o)
	case opgraph.OpDot:
		known = r.dot(o)
	case opgraph.OpConvolution:
		known = r.convolution(o)
	case opgraph.OpReduce:
		r.reduce(o)
	case opgraph.OpSlice, opgraph.OpDynamicSlice, opgraph.OpPad, opgraph.OpReverse:
		r.slice(o)
	case opgraph.OpConcatenate, opgraph.OpSort:
		r.others(o)
	case opgraph.OpDynamicUpdateSlice:
		r.update(o)
	case opgraph.OpTopK:
		r.topK(o)
	case opgraph.OpReduceWindow, opgraph.OpSelectAndScatter:
		r.slide(o)
	case opgraph.OpGather:
		r.gather(g, op, o.dims(0), o.dims(1), len(o.out))
	case opgraph.OpScatter:
		r.scatter(g, op, o.dims(0), o.dims(1))
	case opgraph.OpCustomCall:
		if known = target(g, op) == "TopK" && r.n == 1; known {
			r.topK(o)
		}
	case opgraph.OpCholesky, opgraph.OpTriangularSolve, opgraph.OpFFT:
		r.linear(o)
	default:
		known = false
	}
	return r, known
}

// broadcast: dimensions that the operand has whole go along with it, new ones are free.
func (r *rule) broadcast(o *operator) {
	from := o.dims(0)
	at := o.g.Dims(o.op)
	for d := range o.out {
		a := slices.Index(at, int64(d))
		if a >= 0 && (a >= len(from) || from[a] != o.out[d]) {
			continue
		}
		r.add(d, false, a)
	}
}

// transpose: each dimension of the result is one of the operand.
func (r *rule) transpose(o *operator) {
	for d, a := range o.g.Dims(o.op) {
		r.add(d, false, int(a))
	}
}

// reshape: dimensions that stay as they are go along.
func (r *rule) reshape(o *operator) {
	for _, p := range sameDims(o.dims(0), o.out) {
		r.add(p[1], false, p[0])
	}
}

// dot: batch and free dimensions of both sides; what is contracted gives parts of sums.
func (r *rule) dot(o *operator) bool {
	d := o.g.Dot(o.op)
	l, rr := o.dims(0), o.dims(1)
	if len(l) == 0 && len(rr) == 0 || r.n != 2 {
		return r.n == 2
	}
	at := 0
	for i := range d.LHSBatch {
		r.add(at, false, int(d.LHSBatch[i]), int(d.RHSBatch[i]))
		at++
	}
	for i := range l {
		if !contains(d.LHSBatch, i) && !contains(d.LHSContract, i) {
			r.add(at, false, i, -1)
			at++
		}
	}
	for i := range rr {
		if !contains(d.RHSBatch, i) && !contains(d.RHSContract, i) {
			r.add(at, false, -1, i)
			at++
		}
	}
	for i := range d.LHSContract {
		r.add(-1, true, int(d.LHSContract[i]), int(d.RHSContract[i]))
	}
	return true
}

// convolution: batch, features and the windows that slide; input features give parts of sums.
func (r *rule) convolution(o *operator) bool {
	d, ok := o.g.ConvDims(o.op)
	if !ok || o.g.IntOr(o.op, opgraph.AttrBatchGroups, 1) != 1 {
		return false
	}
	r.add(int(d.OutputBatch), false, int(d.InputBatch), -1)
	if o.g.IntOr(o.op, opgraph.AttrFeatureGroups, 1) == 1 {
		r.add(int(d.OutputFeature), false, -1, int(d.KernelOutput))
		r.add(-1, true, int(d.InputFeature), int(d.KernelInput))
	}
	for k := range o.g.Window(o.op, nil) {
		if k < len(d.InputSpatial) && k < len(d.OutputSpatial) {
			r.add(int(d.OutputSpatial[k]), false, int(d.InputSpatial[k]), -1)
			r.factors[len(r.factors)-1].window = k + 1
		}
	}
	return true
}

// reduce: dimensions that stay; reduced ones give parts of sums.
func (r *rule) reduce(o *operator) {
	n := r.n / 2
	at := 0
	for i := range o.dims(0) {
		list := make([]int, r.n)
		for k := range list {
			list[k] = -1
			if k < n {
				list[k] = i
			}
		}
		if contains(o.g.Dims(o.op), i) {
			r.add(-1, true, list...)
		} else {
			r.add(at, false, list...)
			at++
		}
	}
}

// slice: dimensions that are taken whole go along.
func (r *rule) slice(o *operator) {
	for d := range o.out {
		if d < len(o.dims(0)) && o.dims(0)[d] == o.out[d] && !(o.kind == opgraph.OpReverse && contains(o.g.Dims(o.op), d)) {
			r.add(d, false, d)
		}
	}
}

// others: dimensions that a concatenation or a sort does not run along.
func (r *rule) others(o *operator) {
	for d := range o.out {
		if !contains(o.g.Dims(o.op), d) {
			r.each(o.g, o.op, len(o.out), d, d)
		}
	}
}

// update: dimensions that the update covers whole.
func (r *rule) update(o *operator) {
	for d := range o.out {
		if u := o.dims(1); d < len(u) && u[d] == o.out[d] {
			r.add(d, false, d, d)
		}
	}
}

// topK: all dimensions but the last, which is looked through.
func (r *rule) topK(o *operator) {
	for d := range len(o.out) - 1 {
		r.add(d, false, d)
	}
}

// slide: dimensions over which no window slides, and for reductions those over which one does.
func (r *rule) slide(o *operator) {
	for d, w := range o.g.Window(o.op, nil) {
		plain := w.Size == 1 && w.Stride == 1 && w.PadLow == 0 && w.PadHigh == 0
		if d >= len(o.dims(0)) || !plain && o.kind == opgraph.OpSelectAndScatter {
			continue
		}
		r.each(o.g, o.op, len(o.dims(0)), d, d)
		if !plain {
			r.factors[len(r.factors)-1].window = d + 1
		}
	}
}

// linear: all dimensions but the inner ones, which are solved or transformed whole.
func (r *rule) linear(o *operator) {
	inner := 2
	if o.kind == opgraph.OpFFT {
		inner = max(len(o.g.Ints(o.op, opgraph.AttrFFTLength)), 1)
	}
	for d := range max(len(o.out)-inner, 0) {
		r.each(o.g, o.op, len(o.out), d, d)
	}
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
