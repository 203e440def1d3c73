package lower

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perfsim/components/opgraph"
)

// This file replaces the custom-calls whose meaning is public by the operators
// that they stand for, before anything is laid out: they then fuse with their
// neighbours and are counted like them. The attention kernels of the GPU stack
// are in attention.go.

// expansion says how a custom-call is replaced.
type expansion func(x *expander, op opgraph.OpID) (opgraph.OpID, bool)

// expansionOf returns the expansion of a custom-call target, nil for none.
func expansionOf(target string) expansion {
	if isAttention(target) {
		return (*expander).attention
	}
	name, neuron := strings.CutPrefix(target, "AwsNeuron")
	if strings.Contains(target, "BoundaryMarker") || neuron && strings.Contains(name, "Marker") {
		return (*expander).marker
	}
	if !neuron {
		return nil
	}
	name = strings.TrimSuffix(name, "Forward")
	switch strings.ToLower(name) {
	case "transferwithstaticring", "identity":
		return (*expander).marker
	case "softmax":
		return (*expander).softmaxCall
	case "softmaxbackward":
		return (*expander).softmaxBackward
	case "rmsnorm":
		return (*expander).rmsNorm
	case "rmsnormbackward":
		return (*expander).rmsNormBackward
	case "layernorm":
		return (*expander).layerNorm
	case "topk":
		return (*expander).topK
	case "argmax", "argmin":
		return (*expander).argMax
	case "dropout":
		return (*expander).dropout
	}
	base, backward := strings.CutSuffix(name, "Backward")
	switch base {
	case "Gelu", "GeluApprxTanh", "GeluApprxSigmoid", "Silu", "Erf", "Sigmoid", "Softplus", "Mish", "Swish", "Tanh", "Exp":
		if backward {
			return (*expander).activationBackward
		}
		return (*expander).activation
	}
	return nil
}

// expander rewrites a graph.
type expander struct {
	r    *opgraph.Rewriter
	g    *opgraph.Graph // r.To
	late []lateFunction
	done []expanded
}

// expanded is a custom-call that was replaced, for the notes.
type expanded struct{ target, as string }

// lateFunction is a reduce whose scalar function is made at the end.
type lateFunction struct {
	op   opgraph.OpID
	kind opgraph.OpKind
	elem opgraph.ElemType
}

// expand returns the graph with the known custom-calls replaced, and what was;
// the graph itself where there are none.
func expand(g *opgraph.Graph) (*opgraph.Graph, []expanded) {
	known := func(op opgraph.OpID) expansion {
		if g.Ops.Kind[op] != opgraph.OpCustomCall || len(g.Operands(op)) == 0 {
			return nil
		}
		return expansionOf(g.AttrStr(op, opgraph.AttrCustomCallTarget))
	}
	found := false
	for op := range opgraph.OpID(g.NumOps()) {
		if known(op) != nil {
			found = true
			break
		}
	}
	if !found {
		return g, nil
	}
	r := opgraph.NewRewriter(g)
	x := &expander{r: r, g: r.To}
	for c := range opgraph.CompID(g.NumComps()) {
		r.Begin(c)
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			if how := known(op); how != nil {
				if to, ok := how(x, op); ok {
					r.Put(op, to)
					continue
				}
			}
			r.Copy(op)
		}
		r.End(c)
	}
	x.functions()
	return r.To, x.done
}

// functions adds the scalar functions of the reduces.
func (x *expander) functions() {
	type key struct {
		kind opgraph.OpKind
		elem opgraph.ElemType
	}
	made := map[key]opgraph.CompID{}
	for _, l := range x.late {
		k := key{l.kind, l.elem}
		c, ok := made[k]
		if !ok {
			s := x.g.Array(l.elem)
			c = x.g.BeginComputation("expanded_" + l.kind.String() + "_" + l.elem.String())
			a, b := x.g.AddParameter("x", s, 0), x.g.AddParameter("y", s, 1)
			x.g.AddOp(l.kind, "", s, a, b)
			x.g.EndComputation(opgraph.NoOp)
			made[k] = c
		}
		x.g.SetCall(l.op, 0, c)
	}
}

// arg returns operand i of a custom-call as an operator of the new graph.
func (x *expander) arg(op opgraph.OpID, i int) opgraph.OpID {
	o := x.r.Operands(op)[i]
	at := o.Op
	for _, k := range x.g.Path(o.Path) {
		at = x.g.AddTupleElement("", at, int(k))
		x.r.Place(at, op)
	}
	return at
}

// add appends an operator with the metadata of the custom-call.
func (x *expander) add(from opgraph.OpID, kind opgraph.OpKind, shape opgraph.ShapeID, args ...opgraph.OpID) opgraph.OpID {
	op := x.g.AddOp(kind, "", shape, args...)
	x.r.Place(op, from)
	return op
}

// named is add for the operator that gives the custom-call's value.
func (x *expander) named(from opgraph.OpID, kind opgraph.OpKind, args ...opgraph.OpID) opgraph.OpID {
	op := x.g.AddOp(kind, x.r.From.OpText(from), x.r.From.Ops.Shape[from], args...)
	x.r.Place(op, from)
	return op
}

func (x *expander) note(op opgraph.OpID, as string) {
	x.done = append(x.done, expanded{x.r.From.AttrStr(op, opgraph.AttrCustomCallTarget), as})
}

// array returns the array shape with the element type of s and other
// dimensions.
func (x *expander) array(s opgraph.ShapeID, dims []int64) opgraph.ShapeID {
	return x.g.Array(x.g.Shapes.Elem(s), dims...)
}

// reduce reduces dimension dim of a with kind, from the value zero.
func (x *expander) reduce(from opgraph.OpID, kind opgraph.OpKind, a opgraph.OpID, dims ...int64) opgraph.OpID {
	s := x.g.Ops.Shape[a]
	var left []int64
	for i, n := range x.g.Shapes.Dims(s) {
		if !slices.Contains(dims, int64(i)) {
			left = append(left, n)
		}
	}
	zero := x.add(from, opgraph.OpConstant, x.array(s, nil))
	x.g.SetFloat(zero, 0)
	op := x.add(from, opgraph.OpReduce, x.array(s, left), a, zero)
	x.g.SetInts(op, opgraph.AttrDimensions, dims...)
	x.late = append(x.late, lateFunction{op, kind, x.g.Shapes.Elem(s)})
	x.g.AddCall(op, opgraph.RoleToApply, opgraph.NoComp)
	return op
}

// spread broadcasts a to the shape, over the dimensions that it does not have.
func (x *expander) spread(from opgraph.OpID, a opgraph.OpID, shape opgraph.ShapeID, over ...int64) opgraph.OpID {
	var dims []int64
	for i := range x.g.Shapes.Rank(shape) {
		if !slices.Contains(over, int64(i)) {
			dims = append(dims, int64(i))
		}
	}
	op := x.add(from, opgraph.OpBroadcast, x.array(x.g.Ops.Shape[a], x.g.Shapes.Dims(shape)), a)
	x.g.SetInts(op, opgraph.AttrDimensions, dims...)
	return op
}

// marker hands its operands on: it is a hint to the compiler about them.
func (x *expander) marker(op opgraph.OpID) (opgraph.OpID, bool) {
	g := x.r.From
	args := g.Operands(op)
	switch s := g.Ops.Shape[op]; {
	case len(args) == 1 && g.Shapes.Bytes(g.OperandShape(args[0])) == g.Shapes.Bytes(s):
		return x.named(op, opgraph.OpOptBarrier, x.arg(op, 0)), true
	case g.Shapes.IsTuple(s) && len(g.Shapes.Tuple(s)) == len(args):
		list := make([]opgraph.OpID, len(args))
		for i := range args {
			list[i] = x.arg(op, i)
		}
		return x.named(op, opgraph.OpTuple, list...), true
	}
	return 0, false
}

// same reports whether the first n operands have the dimensions of the result.
func (x *expander) same(op opgraph.OpID, n int) bool {
	g := x.r.From
	args := g.Operands(op)
	if len(args) < n || g.Shapes.IsTuple(g.Ops.Shape[op]) {
		return false
	}
	for _, a := range args[:n] {
		if !g.Shapes.SameDims(g.OperandShape(a), g.Ops.Shape[op]) {
			return false
		}
	}
	return true
}

// activation is one activation function.
func (x *expander) activation(op opgraph.OpID) (opgraph.OpID, bool) {
	if !x.same(op, 1) {
		return 0, false
	}
	x.note(op, "one activation function")
	return x.named(op, opgraph.OpTanh, x.arg(op, 0)), true
}

// activationBackward is the derivative of an activation function, one function
// itself, times the gradient.
func (x *expander) activationBackward(op opgraph.OpID) (opgraph.OpID, bool) {
	if !x.same(op, 2) {
		return 0, false
	}
	x.note(op, "one activation function and a product")
	d := x.add(op, opgraph.OpTanh, x.r.From.Ops.Shape[op], x.arg(op, 1))
	return x.named(op, opgraph.OpMultiply, x.arg(op, 0), d), true
}

// dimension returns the dimension that the configuration of a custom-call
// names, the last one where it names none.
func (x *expander) dimension(op opgraph.OpID) int64 {
	g := x.r.From
	rank := int64(g.Shapes.Rank(g.OperandShape(g.Operands(op)[0])))
	d, err := strconv.ParseInt(strings.Trim(g.AttrStr(op, opgraph.AttrBackendConfig), `"' `), 10, 32)
	if err != nil || d < -rank || d >= rank {
		return rank - 1
	}
	if d < 0 {
		d += rank
	}
	return d
}

func (x *expander) softmaxCall(op opgraph.OpID) (opgraph.OpID, bool) {
	if !x.same(op, 1) || x.r.From.Shapes.Rank(x.r.From.Ops.Shape[op]) == 0 {
		return 0, false
	}
	x.note(op, "softmax")
	e, sum := x.exponents(op, x.arg(op, 0), x.dimension(op))
	return x.named(op, opgraph.OpDivide, e, sum), true
}

// exponents returns exp(a - max a) and its sum, spread over dimension dim.
func (x *expander) exponents(op, a opgraph.OpID, dim int64) (e, sum opgraph.OpID) {
	s := x.g.Ops.Shape[a]
	most := x.spread(op, x.reduce(op, opgraph.OpMaximum, a, dim), s, dim)
	e = x.add(op, opgraph.OpExp, s, x.add(op, opgraph.OpSubtract, s, a, most))
	return e, x.spread(op, x.reduce(op, opgraph.OpAdd, e, dim), s, dim)
}

// softmaxBackward is (grad - sum(grad·y))·y.
func (x *expander) softmaxBackward(op opgraph.OpID) (opgraph.OpID, bool) {
	if !x.same(op, 2) || x.r.From.Shapes.Rank(x.r.From.Ops.Shape[op]) == 0 {
		return 0, false
	}
	x.note(op, "the gradient of softmax")
	grad, y := x.arg(op, 0), x.arg(op, 1)
	return x.named(op, opgraph.OpMultiply, x.softmaxGradient(op, grad, y, x.dimension(op)), y), true
}

// softmaxGradient is grad - sum(grad·y).
func (x *expander) softmaxGradient(op, grad, y opgraph.OpID, dim int64) opgraph.OpID {
	s := x.g.Ops.Shape[y]
	p := x.add(op, opgraph.OpMultiply, s, grad, y)
	return x.add(op, opgraph.OpSubtract, s, grad, x.spread(op, x.reduce(op, opgraph.OpAdd, p, dim), s, dim))
}

// rmsNorm is x·rsqrt(sum x²), times the weight where there is one.
func (x *expander) rmsNorm(op opgraph.OpID) (opgraph.OpID, bool) {
	if !x.same(op, 1) || x.r.From.Shapes.Rank(x.r.From.Ops.Shape[op]) == 0 {
		return 0, false
	}
	dim := x.dimension(op)
	vectors, ok := x.vectors(op, dim)
	if !ok || len(vectors) > 1 {
		return 0, false
	}
	x.note(op, "RMS normalisation")
	a := x.arg(op, 0)
	if len(vectors) == 0 {
		return x.named(op, opgraph.OpMultiply, a, x.rootMean(op, a, dim)), true
	}
	s := x.r.From.Ops.Shape[op]
	y := x.add(op, opgraph.OpMultiply, s, a, x.rootMean(op, a, dim))
	return x.named(op, opgraph.OpMultiply, y, x.along(op, vectors[0], s, dim)), true
}

// layerNorm is (x - mean)·rsqrt(variance), times the weight and plus the bias
// where there are those.
func (x *expander) layerNorm(op opgraph.OpID) (opgraph.OpID, bool) {
	g := x.r.From
	if !x.same(op, 1) || g.Shapes.Rank(g.Ops.Shape[op]) == 0 {
		return 0, false
	}
	dim := x.dimension(op)
	vectors, ok := x.vectors(op, dim)
	if !ok || len(vectors) > 2 {
		return 0, false
	}
	x.note(op, "layer normalisation")
	a, s := x.arg(op, 0), g.Ops.Shape[op]
	d := x.add(op, opgraph.OpSubtract, s, a, x.spread(op, x.reduce(op, opgraph.OpAdd, a, dim), s, dim))
	y := x.add(op, opgraph.OpMultiply, s, d, x.rootMean(op, d, dim))
	for i, v := range vectors {
		kind := [2]opgraph.OpKind{opgraph.OpMultiply, opgraph.OpAdd}[i]
		y = x.add(op, kind, s, y, x.along(op, v, s, dim))
	}
	return x.results(op, y), true
}

// vectors returns the operands behind the first that are vectors along
// dimension dim of it; scalars (an epsilon) are left out. ok is false where
// there are others.
func (x *expander) vectors(op opgraph.OpID, dim int64) (list []opgraph.OpID, ok bool) {
	g := x.r.From
	for i, o := range g.Operands(op)[1:] {
		switch v := g.OperandShape(o); {
		case g.Shapes.IsTuple(v):
			return nil, false
		case g.Shapes.Rank(v) == 0:
		case g.Shapes.Rank(v) == 1 && g.Shapes.Dims(v)[0] == g.Shapes.Dims(g.Ops.Shape[op])[dim]:
			list = append(list, x.arg(op, i+1))
		default:
			return nil, false
		}
	}
	return list, true
}

// topK gives the largest values along the last dimension, and their places.
func (x *expander) topK(op opgraph.OpID) (opgraph.OpID, bool) {
	g := x.r.From
	s := g.Ops.Shape[op]
	m := g.Shapes.Tuple(s)
	if len(m) != 2 || g.Shapes.IsTuple(m[0]) || g.Shapes.Rank(m[0]) == 0 || !g.Shapes.SameDims(m[0], m[1]) ||
		g.Shapes.Rank(g.OperandShape(g.Operands(op)[0])) != g.Shapes.Rank(m[0]) {
		return 0, false
	}
	x.note(op, "the largest values and their places")
	d := g.Shapes.Dims(m[0])
	top := x.named(op, opgraph.OpTopK, x.arg(op, 0))
	x.g.SetInt(top, opgraph.AttrTopK, d[len(d)-1])
	return top, true
}

// argMax is the place of the largest value along a dimension.
func (x *expander) argMax(op opgraph.OpID) (opgraph.OpID, bool) {
	g := x.r.From
	in := g.OperandShape(g.Operands(op)[0])
	if g.Shapes.IsTuple(in) || g.Shapes.Rank(in) == 0 || g.Shapes.IsTuple(g.Ops.Shape[op]) {
		return 0, false
	}
	dim := x.dimension(op)
	left := slices.Clone(g.Shapes.Dims(in))
	left[dim] = 1
	place := x.g.Array(opgraph.ElemS32, left...)
	if x.g.Shapes.Count(place) != g.Shapes.Count(g.Ops.Shape[op]) {
		return 0, false
	}
	x.note(op, "the place of the largest value")
	top := x.add(op, opgraph.OpTopK, x.g.Shapes.AddTuple([]opgraph.ShapeID{x.array(in, left), place}), x.arg(op, 0))
	x.g.SetInt(top, opgraph.AttrTopK, 1)
	at := x.g.AddTupleElement("", top, 1)
	x.r.Place(at, op)
	return x.shaped(op, at, g.Ops.Shape[op]), true
}

// dropout makes random numbers, compares them and selects.
func (x *expander) dropout(op opgraph.OpID) (opgraph.OpID, bool) {
	g := x.r.From
	s := g.Ops.Shape[op]
	if m := g.Shapes.Tuple(s); len(m) > 0 {
		s = m[0]
	}
	if in := g.OperandShape(g.Operands(op)[0]); g.Shapes.IsTuple(in) || g.Shapes.IsTuple(s) || !g.Shapes.SameDims(in, s) {
		return 0, false
	}
	x.note(op, "random numbers, a comparison and a selection")
	scalar := func(v float64) opgraph.OpID {
		c := x.add(op, opgraph.OpConstant, x.array(s, nil))
		x.g.SetFloat(c, v)
		return c
	}
	zero := scalar(0)
	all := x.add(op, opgraph.OpBroadcast, s, zero)
	x.g.SetInts(all, opgraph.AttrDimensions)
	keep := x.add(op, opgraph.OpCompare, x.g.Array(opgraph.ElemPred, g.Shapes.Dims(s)...), x.add(op, opgraph.OpRng, s, zero, scalar(1)), all)
	return x.results(op, x.add(op, opgraph.OpSelect, s, keep, x.arg(op, 0), all), keep), true
}

// rootMean is rsqrt(sum a²) over dimension dim, spread over it.
func (x *expander) rootMean(op, a opgraph.OpID, dim int64) opgraph.OpID {
	s := x.g.Ops.Shape[a]
	sum := x.reduce(op, opgraph.OpAdd, x.add(op, opgraph.OpMultiply, s, a, a), dim)
	return x.spread(op, x.add(op, opgraph.OpRsqrt, x.g.Ops.Shape[sum], sum), s, dim)
}

// along broadcasts a vector along dimension dim of a shape.
func (x *expander) along(op, v opgraph.OpID, shape opgraph.ShapeID, dim int64) opgraph.OpID {
	b := x.add(op, opgraph.OpBroadcast, x.array(x.g.Ops.Shape[v], x.g.Shapes.Dims(shape)), v)
	x.g.SetInts(b, opgraph.AttrDimensions, dim)
	return b
}

// rmsNormBackward gives the gradients of the input and, where the result is a
// pair, of the weight; its operands are the gradient, the input and the weight.
func (x *expander) rmsNormBackward(op opgraph.OpID) (opgraph.OpID, bool) {
	g := x.r.From
	args := g.Operands(op)
	if len(args) < 3 {
		return 0, false
	}
	s, w := g.OperandShape(args[0]), g.OperandShape(args[2])
	rank := g.Shapes.Rank(s)
	dim := x.dimension(op)
	if rank == 0 || !g.Shapes.SameDims(s, g.OperandShape(args[1])) || g.Shapes.Rank(w) != 1 || g.Shapes.Dims(w)[0] != g.Shapes.Dims(s)[dim] {
		return 0, false
	}
	x.note(op, "the gradient of RMS normalisation")
	grad, in := x.arg(op, 0), x.arg(op, 1)
	root := x.rootMean(op, in, dim)
	y := x.add(op, opgraph.OpMultiply, s, in, root)
	t := x.add(op, opgraph.OpMultiply, s, grad, x.along(op, x.arg(op, 2), s, dim))
	dx := x.add(op, opgraph.OpMultiply, s, x.softmaxGradient(op, t, y, dim), root)
	var others []int64
	for i := range int64(rank) {
		if i != dim {
			others = append(others, i)
		}
	}
	dw := x.reduce(op, opgraph.OpAdd, x.add(op, opgraph.OpMultiply, s, grad, y), others...)
	return x.results(op, dx, dw), true
}

// results makes the value of a custom-call: each of list where an array of the
// result has its size, in order; other results are buffers without work.
func (x *expander) results(op opgraph.OpID, list ...opgraph.OpID) opgraph.OpID {
	g := x.r.From
	s := g.Ops.Shape[op]
	take := func(want opgraph.ShapeID) opgraph.OpID {
		for i, v := range list {
			if v == opgraph.NoOp || x.g.Shapes.Count(x.g.Ops.Shape[v]) != g.Shapes.Count(want) || g.Shapes.IsTuple(want) {
				continue
			}
			list[i] = opgraph.NoOp
			return x.shaped(op, v, want)
		}
		b := x.add(op, opgraph.OpCustomCall, want)
		x.g.SetAttrStr(b, opgraph.AttrCustomCallTarget, "AllocateBuffer")
		return b
	}
	if !g.Shapes.IsTuple(s) {
		return take(s)
	}
	var elems []opgraph.OpID
	for _, want := range g.Shapes.Tuple(s) {
		elems = append(elems, take(want))
	}
	return x.named(op, opgraph.OpTuple, elems...)
}

// shaped gives v the shape: a conversion where the element types differ, a
// reshape where the dimensions do.
func (x *expander) shaped(op, v opgraph.OpID, want opgraph.ShapeID) opgraph.OpID {
	t := &x.g.Shapes
	if s := x.g.Ops.Shape[v]; t.Elem(s) != t.Elem(want) {
		v = x.add(op, opgraph.OpConvert, x.g.Array(t.Elem(want), t.Dims(s)...), v)
	}
	if !t.SameDims(x.g.Ops.Shape[v], want) {
		v = x.add(op, opgraph.OpReshape, want, v)
	}
	return v
}

// batchDims is the second batch dimension of the queries in the configuration of
// a cuDNN attention.
var batchDims = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"bmm1_dot_dimension_numbers":\{[^}]*"lhs_batch_dimensions":\["?0"?,\s*"?([12])"?\]`)
})

// intermediateShape is the shape of the scores in the configuration of a cuDNN
// attention: batch, heads, queries, keys.
var intermediateShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"intermediate_tensor_shape"[^\]]*"dimensions":\["?(\d+)"?,\s*"?(\d+)"?,\s*"?(\d+)"?,\s*"?(\d+)"?\]`)
})
