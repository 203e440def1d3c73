package opgraph

// Infer works out the shape of an operator whose shape is 0 from its operands
// and attributes and sets it. It makes the result shape optional in HLO text
// and for model builders. It fails where no rule gives the shape (parameter,
// constant, iota, reshape, broadcast, convert, custom-call, …); the error is a
// *GraphError.
func (g *Graph) Infer(op OpID) error {
	if g.Ops.Shape[op] != 0 {
		return nil
	}
	for _, o := range g.Operands(op) {
		if g.OperandShape(o) == 0 {
			return g.opErr(op, "operand %q has no element %v", g.OpText(o.Op), g.Path(o.Path))
		}
	}
	for _, c := range g.Calls(op) {
		if int(c.Comp) >= g.NumComps() || g.Comps.Root[c.Comp] == NoOp {
			return g.opErr(op, "it names a computation that is not complete")
		}
	}
	if err := g.checkArity(op); err != nil {
		return err
	}
	s, err := g.infer(op)
	if err != nil {
		return err
	}
	if s == 0 {
		return g.opErr(op, "its shape must be stated: it does not follow from the operands")
	}
	g.Ops.Shape[op] = s
	return nil
}

func (g *Graph) infer(op OpID) (ShapeID, error) {
	t := &g.Shapes
	k := g.Ops.Kind[op]
	n := len(g.Operands(op))
	switch k {
	case OpConvert, OpBitcast, OpBitcastConvert, OpReshape, OpDynamicReshape, OpBroadcast, OpIota,
		OpCustomCall, OpConstant, OpParameter, OpInfeed, OpRecv, OpRng, OpRngBitGenerator, OpRngGetAndUpdateState,
		OpStochasticConvert, OpUnknown, OpDomain, OpAllGatherStart, OpScan, OpMulhi:
		return 0, nil
	case OpAfterAll, OpOutfeed, OpSendDone:
		return t.AddArray(ElemToken, nil), nil
	case OpPartitionId, OpReplicaId:
		return t.AddArray(ElemU32, nil), nil
	case OpGetDimensionSize:
		return t.AddArray(ElemS32, nil), nil
	case OpCompare, OpIsFinite:
		return g.retype(g.widest(op), ElemPred), nil
	case OpReal, OpImag, OpAbs:
		return g.retype(g.arg(op, 0), realPart(t.Elem(g.arg(op, 0)))), nil
	case OpComplex:
		e := ElemC64
		if t.Elem(g.arg(op, 0)) == ElemF64 {
			e = ElemC128
		}
		return g.retype(g.arg(op, 0), e), nil
	case OpSelect:
		return g.arg(op, 1), nil
	case OpClamp:
		return g.arg(op, 1), nil
	case OpTuple:
		m := make([]ShapeID, n)
		for i := range m {
			m[i] = g.arg(op, i)
		}
		return t.AddTuple(m), nil
	case OpGetTupleElement:
		if m, i := t.Tuple(g.arg(op, 0)), int(g.Ops.Index[op]); i >= 0 && i < len(m) {
			return m[i], nil
		}
		return 0, g.opErr(op, "index=%d is outside %s", g.Ops.Index[op], g.ShapeText(g.arg(op, 0)))
	case OpWhile, OpOptBarrier, OpAllReduceDone, OpCholesky, OpReverse, OpTriangularSolve:
		return g.arg(op, n-1), nil
	case OpAddDependency, OpDynamicUpdateSlice, OpSetDimensionSize, OpShuffle, OpCollectivePermute:
		return g.arg(op, 0), nil
	case OpAllReduce, OpAllReduceStart, OpCollectiveBroadcast, OpSort:
		if n == 1 {
			return g.arg(op, 0), nil
		}
		m := make([]ShapeID, n)
		for i := range m {
			m[i] = g.arg(op, i)
		}
		return t.AddTuple(m), nil
	case OpScatter:
		if n == 3 {
			return g.arg(op, 0), nil
		}
		m := make([]ShapeID, n/2)
		for i := range m {
			m[i] = g.arg(op, i)
		}
		return t.AddTuple(m), nil
	case OpCall, OpFusion, OpConditional, OpMap:
		calls := g.Calls(op)
		root := g.Comps.Root[calls[0].Comp]
		if k == OpMap {
			return g.retype(g.arg(op, 0), t.Elem(g.Ops.Shape[root])), nil
		}
		return g.Ops.Shape[root], nil
	case OpAsyncStart:
		m := make([]ShapeID, n)
		for i := range m {
			m[i] = g.arg(op, i)
		}
		root := g.Comps.Root[g.Called(op, RoleCalls)]
		return t.AddTuple([]ShapeID{t.AddTuple(m), g.Ops.Shape[root]}), nil
	case OpAsyncUpdate:
		return g.arg(op, 0), nil
	case OpAsyncDone, OpAllGatherDone, OpCollectivePermuteDone:
		if m := t.Tuple(g.arg(op, 0)); len(m) >= 2 {
			return m[1], nil
		}
		return 0, g.opErr(op, "operand %s is no (operands, results, …) tuple", g.ShapeText(g.arg(op, 0)))
	case OpCopyStart:
		x := g.arg(op, 0)
		return t.AddTuple([]ShapeID{x, x, t.AddArray(ElemU32, nil)}), nil
	case OpCopyDone, OpRecvDone:
		m := t.Tuple(g.arg(op, 0))
		if len(m) < 2 {
			return 0, g.opErr(op, "operand %s is no start tuple", g.ShapeText(g.arg(op, 0)))
		}
		if k == OpRecvDone {
			return t.AddTuple([]ShapeID{m[0], t.AddArray(ElemToken, nil)}), nil
		}
		return m[0], nil
	case OpSend:
		return t.AddTuple([]ShapeID{g.arg(op, 0), t.AddArray(ElemU32, nil), t.AddArray(ElemToken, nil)}), nil
	case OpTranspose, OpReduce, OpSlice, OpDynamicSlice, OpPad, OpConcatenate, OpDot, OpConvolution,
		OpReduceWindow, OpSelectAndScatter, OpAllGather, OpReduceScatter, OpGather, OpTopK, OpRaggedDot, OpScaledDot:
		return g.inferDims(op)
	}
	if k.Is(traitUnary | traitBinary) {
		return g.widest(op), nil
	}
	return 0, nil
}

// widest returns the first operand shape that is not a scalar, or the first.
func (g *Graph) widest(op OpID) ShapeID {
	for i := range g.Operands(op) {
		if s := g.arg(op, i); g.Shapes.Rank(s) > 0 {
			return s
		}
	}
	return g.arg(op, 0)
}

// retype returns the array shape s with another element type; the layout
// goes along, tiles and memory space included.
func (g *Graph) retype(s ShapeID, e ElemType) ShapeID {
	t := &g.Shapes
	if t.Elem(s) == e {
		return s
	}
	return t.AddArrayLayout(e, append([]int64(nil), t.Dims(s)...), t.Layout(s))
}

func realPart(e ElemType) ElemType {
	switch e {
	case ElemC64:
		return ElemF32
	case ElemC128:
		return ElemF64
	}
	return e
}

// inferDims handles the operators whose result has dimensions of its own.
func (g *Graph) inferDims(op OpID) (ShapeID, error) {
	t := &g.Shapes
	dims := g.Dims(op)
	src := g.arg(op, 0)
	x := append([]int64(nil), t.Dims(src)...)
	array := func(d []int64) (ShapeID, error) { return t.AddArray(t.Elem(src), d), nil }
	k := g.Ops.Kind[op]
	switch k {
	case OpTranspose, OpReduce, OpConcatenate, OpAllGather, OpReduceScatter:
		if err := g.inRank(op, "operand", dims, len(x)); err != nil {
			return 0, err
		}
	}
	switch k {
	case OpTranspose:
		if len(dims) != len(x) {
			return 0, g.opErr(op, "dimensions=%v is no permutation of rank %d", dims, len(x))
		}
		out := make([]int64, len(x))
		for i, d := range dims {
			out[i] = x[d]
		}
		return array(out)
	case OpReduce:
		var out []int64
		for i, d := range x {
			if !hasDim(dims, i) {
				out = append(out, d)
			}
		}
		return g.reduced(op, out), nil
	case OpSlice:
		v := g.Ints(op, AttrSlice)
		if len(v) != 3*len(x) {
			return 0, g.opErr(op, "slice= has %d ranges for rank %d", len(v)/3, len(x))
		}
		for i := range x {
			lo, hi, st := v[3*i], v[3*i+1], v[3*i+2]
			if lo < 0 || hi < lo || st <= 0 {
				return 0, g.opErr(op, "slice [%d:%d:%d]", lo, hi, st)
			}
			x[i] = (hi - lo + st - 1) / st
		}
		return array(x)
	case OpDynamicSlice:
		return array(append([]int64(nil), g.Ints(op, AttrSliceSizes)...))
	case OpPad:
		v := g.Ints(op, AttrPadding)
		if len(v) != 3*len(x) {
			return 0, g.opErr(op, "padding= has %d dimensions for rank %d", len(v)/3, len(x))
		}
		for i := range x {
			x[i] += v[3*i] + v[3*i+1] + max(x[i]-1, 0)*v[3*i+2]
			if x[i] < 0 {
				return 0, g.opErr(op, "padding makes dimension %d negative", i)
			}
		}
		return array(x)
	case OpConcatenate:
		return g.inferConcatenate(op)
	case OpAllGather, OpReduceScatter:
		return 0, nil // the group size is not always known here
	case OpDot:
		return g.inferDot(op)
	case OpConvolution:
		return g.inferConv(op)
	case OpReduceWindow:
		w := g.Window(op, nil)
		if len(w) != len(x) {
			return 0, g.opErr(op, "window of rank %d for rank %d", len(w), len(x))
		}
		for i := range x {
			x[i] = windowed(x[i], w[i])
		}
		return g.reduced(op, x), nil
	case OpSelectAndScatter:
		return src, nil
	case OpGather:
		return g.inferGather(op)
	}
	return 0, nil
}

// reduced returns the shape of a reduction with result dimensions d: a tuple
// where several arrays are reduced at once.
func (g *Graph) reduced(op OpID, d []int64) ShapeID {
	t := &g.Shapes
	m := make([]ShapeID, max(len(g.Operands(op))/2, 1))
	for i := range m {
		m[i] = t.AddArray(t.Elem(g.arg(op, i)), d)
	}
	if len(m) == 1 {
		return m[0]
	}
	return t.AddTuple(m)
}

func (g *Graph) inferDot(op OpID) (ShapeID, error) {
	if err := g.checkDot(op); err != nil {
		return 0, err
	}
	t := &g.Shapes
	d := g.Dot(op)
	x := t.Dims(g.arg(op, 0))
	var out []int64
	for _, b := range d.LHSBatch {
		out = append(out, x[b])
	}
	for i, n := range x {
		if !hasDim(d.LHSBatch, i) && !hasDim(d.LHSContract, i) {
			out = append(out, n)
		}
	}
	for i, n := range t.Dims(g.arg(op, 1)) {
		if !hasDim(d.RHSBatch, i) && !hasDim(d.RHSContract, i) {
			out = append(out, n)
		}
	}
	return t.AddArray(t.Elem(g.arg(op, 0)), out), nil
}

func (g *Graph) inferConcatenate(op OpID) (ShapeID, error) {
	t := &g.Shapes
	dims := g.Dims(op)
	if len(dims) != 1 {
		return 0, g.opErr(op, "dimensions=%v, want one", dims)
	}
	x := append([]int64(nil), t.Dims(g.arg(op, 0))...)
	for i := 1; i < len(g.Operands(op)); i++ {
		y := t.Dims(g.arg(op, i))
		if len(y) != len(x) {
			return 0, g.opErr(op, "operands of rank %d and %d", len(x), len(y))
		}
		x[dims[0]] = AddSize(x[dims[0]], y[dims[0]])
	}
	return t.AddArray(t.Elem(g.arg(op, 0)), x), nil
}

// windowed returns the number of places of a window over n elements.
func windowed(n int64, w WindowDim) int64 {
	if w.Stride <= 0 || w.Size <= 0 || w.LHSDilate <= 0 || w.RHSDilate <= 0 {
		return 0
	}
	base := n
	if n > 0 {
		base = AddSize(MulSize(n-1, w.LHSDilate), 1)
	}
	if base >= MaxSize/2 {
		return base
	}
	base += w.PadLow + w.PadHigh
	size := AddSize(MulSize(w.Size-1, w.RHSDilate), 1)
	if base < size {
		return 0
	}
	return (base-size)/w.Stride + 1
}

func (g *Graph) inferConv(op OpID) (ShapeID, error) {
	t := &g.Shapes
	d, ok := g.ConvDims(op)
	in, ker := t.Dims(g.arg(op, 0)), t.Dims(g.arg(op, 1))
	n := len(d.InputSpatial) + 2
	w := g.Window(op, nil)
	if !ok || len(in) != n || len(ker) != n || len(w) != 0 && len(w) != n-2 {
		return 0, g.opErr(op, "dim_labels= and window= do not fit operands of rank %d and %d", len(in), len(ker))
	}
	out := make([]int64, n)
	set := func(at, v int64) bool {
		if at < 0 || at >= int64(n) {
			return false
		}
		out[at] = v
		return true
	}
	dim := func(v []int64, at int64) int64 {
		if at < 0 || at >= int64(n) {
			return 0
		}
		return v[at]
	}
	ok = set(d.OutputBatch, dim(in, d.InputBatch)/max(g.IntOr(op, AttrBatchGroups, 1), 1)) &&
		set(d.OutputFeature, dim(ker, d.KernelOutput))
	for i := range d.InputSpatial {
		wd := WindowDim{Size: dim(ker, d.KernelSpatial[i]), Stride: 1, LHSDilate: 1, RHSDilate: 1}
		if len(w) > 0 {
			wd = w[i]
		}
		ok = ok && set(d.OutputSpatial[i], windowed(dim(in, d.InputSpatial[i]), wd))
	}
	if !ok {
		return 0, g.opErr(op, "dim_labels= names a dimension outside rank %d", n)
	}
	return t.AddArray(t.Elem(g.arg(op, 0)), out), nil
}

// inferGather follows the definition of gather: the batch dimensions are
// those of the indices without index_vector_dim; the offset dimensions are
// the slice sizes without collapsed and batching ones, placed at offset_dims.
func (g *Graph) inferGather(op OpID) (ShapeID, error) {
	t := &g.Shapes
	sizes := g.Ints(op, AttrSliceSizes)
	collapsed := g.Ints(op, AttrCollapsedDims)
	batching := g.Ints(op, AttrOperandBatching)
	offset := g.Ints(op, AttrOffsetDims)
	ivd := g.IntOr(op, AttrIndexVectorDim, -1)
	var batch, window []int64
	for i, d := range t.Dims(g.arg(op, 1)) {
		if int64(i) != ivd {
			batch = append(batch, d)
		}
	}
	for i, s := range sizes {
		if !hasDim(collapsed, i) && !hasDim(batching, i) {
			window = append(window, s)
		}
	}
	if len(window) != len(offset) || len(sizes) != t.Rank(g.arg(op, 0)) {
		return 0, g.opErr(op, "slice_sizes=%v does not fit offset_dims=%v", sizes, offset)
	}
	out := make([]int64, 0, len(batch)+len(window))
	for i := range len(batch) + len(window) {
		switch {
		case hasDim(offset, i) && len(window) > 0:
			out, window = append(out, window[0]), window[1:]
		case len(batch) > 0:
			out, batch = append(out, batch[0]), batch[1:]
		default:
			return 0, g.opErr(op, "offset_dims=%v does not fit the indices", offset)
		}
	}
	return t.AddArray(t.Elem(g.arg(op, 0)), out), nil
}
