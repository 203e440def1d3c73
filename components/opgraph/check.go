package opgraph

import "fmt"

// GraphError is a broken invariant of a graph, at an operator or a
// computation. Readers add the file and, from TextLine, the line.
type GraphError struct {
	Op   OpID   // NoOp when the error is about a computation or the module
	Comp CompID // NoComp when the error is about the module
	Msg  string
}

// Error returns the message with the name of the operator.
func (e *GraphError) Error() string { return e.Msg }

func (g *Graph) opErr(op OpID, format string, args ...any) error {
	return &GraphError{Op: op, Comp: g.Ops.Comp[op],
		Msg: fmt.Sprintf("%s %q: ", g.Ops.Kind[op], g.OpText(op)) + fmt.Sprintf(format, args...)}
}

func (g *Graph) compErr(c CompID, format string, args ...any) error {
	return &GraphError{Op: NoOp, Comp: c,
		Msg: fmt.Sprintf("computation %q: ", g.CompText(c)) + fmt.Sprintf(format, args...)}
}

// Check tests the invariants that lowering relies on. After it returned nil:
//   - an entry exists, computations partition the operators, and each has a
//     root inside it; the call graph has no cycle;
//   - operands and control predecessors are in the same computation and come
//     before their user; tuple-index chains stay inside the tuple;
//   - parameters of a computation are numbered 0 … n-1, each once;
//   - every operator has a shape, as many operands and called computations as
//     its opcode needs, and dimension lists inside the rank of the shapes
//     they speak of; contracted and batch dimensions of a dot agree;
//     reshapes keep the number of elements;
//   - a while has one body and one condition with one parameter each, and a
//     scalar predicate as the condition's result.
//
// It does not repeat the whole verifier of XLA: layouts, element types of
// elementwise operands and the like are taken as they are. The error is a
// *GraphError.
func (g *Graph) Check() error {
	if g.open {
		return &GraphError{NoOp, CompID(g.NumComps() - 1), "the last computation is still open"}
	}
	if int(g.Entry) >= g.NumComps() {
		return &GraphError{NoOp, NoComp, "the module has no entry computation"}
	}
	at := OpID(0)
	for c := range CompID(g.NumComps()) {
		first, end, root := g.Comps.First[c], g.Comps.End[c], g.Comps.Root[c]
		if first != at || end < first {
			return g.compErr(c, "operators %d to %d do not follow the computation before", first, end)
		}
		at = end
		if first == end {
			return g.compErr(c, "no instruction")
		}
		if root < first || root >= end {
			return g.compErr(c, "the root is not one of its instructions")
		}
		if err := g.checkParameters(c); err != nil {
			return err
		}
	}
	if int(at) != g.NumOps() {
		return &GraphError{NoOp, NoComp, "operators outside any computation"}
	}
	for op := range OpID(g.NumOps()) {
		if err := g.checkOp(op); err != nil {
			return err
		}
	}
	if err := g.checkCalls(); err != nil {
		return err
	}
	return g.checkAliases()
}

// ParamCount returns the number of parameters of a computation.
func (g *Graph) ParamCount(c CompID) int {
	n := 0
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		if g.Ops.Kind[op] == OpParameter {
			n++
		}
	}
	return n
}

// Params appends the parameters of a computation in the order of their
// numbers to dst.
func (g *Graph) Params(c CompID, dst []OpID) []OpID {
	base := len(dst)
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		if g.Ops.Kind[op] == OpParameter {
			dst = append(dst, NoOp)
		}
	}
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		if i := int(g.Ops.Index[op]); g.Ops.Kind[op] == OpParameter && i >= 0 && base+i < len(dst) {
			dst[base+i] = op
		}
	}
	return dst
}

func (g *Graph) checkParameters(c CompID) error {
	n := g.ParamCount(c)
	var seen []bool
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		if g.Ops.Kind[op] != OpParameter {
			continue
		}
		if seen == nil {
			seen = make([]bool, n)
		}
		i := int(g.Ops.Index[op])
		if i < 0 || i >= n {
			return g.opErr(op, "parameter number %d, but the computation has %d parameters", i, n)
		}
		if seen[i] {
			return g.opErr(op, "parameter number %d occurs twice in the computation", i)
		}
		seen[i] = true
	}
	return nil
}

func (g *Graph) checkOp(op OpID) error {
	first := g.Comps.First[g.Ops.Comp[op]]
	for _, o := range g.Operands(op) {
		if o.Op < first || o.Op >= op {
			return g.opErr(op, "an operand does not come before it in the same computation")
		}
		if int(o.Path) > len(g.paths) || g.OperandShape(o) == 0 {
			return g.opErr(op, "operand %q has no element %v", g.OpText(o.Op), g.Path(o.Path))
		}
	}
	for _, p := range g.Control(op) {
		if p < first || p >= op {
			return g.opErr(op, "a control predecessor does not come before it in the same computation")
		}
	}
	for _, c := range g.Calls(op) {
		if int(c.Comp) >= g.NumComps() {
			return g.opErr(op, "it names a computation that does not exist")
		}
	}
	s := g.Ops.Shape[op]
	if s == 0 || int(s) >= g.Shapes.Len() {
		return g.opErr(op, "no shape")
	}
	if err := g.checkArity(op); err != nil {
		return err
	}
	return g.checkDims(op)
}

// Arity returns the number of operands an opcode takes, -1 where it varies.
func (k OpKind) Arity() int {
	switch k {
	case OpConstant, OpIota, OpParameter, OpPartitionId, OpReplicaId, OpRngGetAndUpdateState:
		return 0
	case OpAllGatherDone, OpAllReduceDone, OpAsyncDone, OpBitcast, OpBitcastConvert, OpBroadcast,
		OpCholesky, OpCollectivePermuteDone, OpCopyDone, OpCopyStart, OpDomain, OpFFT,
		OpGetDimensionSize, OpGetTupleElement, OpInfeed, OpOptBarrier, OpRecv, OpRecvDone,
		OpReshape, OpReverse, OpRngBitGenerator, OpSendDone, OpShuffle, OpSlice, OpTopK, OpTranspose, OpWhile:
		return 1
	case OpAddDependency, OpGather, OpOutfeed, OpPad, OpSend, OpSetDimensionSize, OpTriangularSolve:
		return 2
	case OpBatchNormTraining, OpClamp, OpRaggedDot, OpSelect, OpSelectAndScatter:
		return 3
	case OpBatchNormGrad, OpBatchNormInference:
		return 5
	case OpRaggedAllToAll:
		return 6
	}
	switch {
	case k.Is(traitUnary):
		return 1
	case k.Is(traitBinary):
		return 2
	}
	return -1
}

func (g *Graph) checkArity(op OpID) error {
	k, n := g.Ops.Kind[op], len(g.Operands(op))
	if want := k.Arity(); want >= 0 && n != want {
		return g.opErr(op, "%d operands, want %d", n, want)
	}
	need := 0
	switch k {
	case OpDynamicSlice, OpAllReduce, OpAllReduceStart, OpAllGather, OpAllGatherStart, OpReduceScatter,
		OpConcatenate, OpCollectivePermute, OpCollectivePermuteStart, OpConditional, OpSort, OpMap:
		need = 1
	case OpDynamicUpdateSlice, OpConvolution, OpDot, OpReduce, OpReduceWindow, OpScaledDot:
		// Sparse dots and convolutions have more.
		need = 2
	case OpScatter:
		need = 3
	}
	if n < need {
		return g.opErr(op, "%d operands, want at least %d", n, need)
	}
	count := func(role CallRole) int {
		c := 0
		for _, call := range g.Calls(op) {
			if call.Role == role {
				c++
			}
		}
		return c
	}
	switch k {
	case OpWhile:
		if count(RoleBody) != 1 || count(RoleCondition) != 1 {
			return g.opErr(op, "a while needs one body= and one condition=")
		}
	case OpConditional:
		b := count(RoleBranch)
		if b == 0 || n != b+1 {
			return g.opErr(op, "%d branches for %d operands, want one operand a branch after the selector", b, n)
		}
	case OpFusion, OpAsyncStart:
		if count(RoleCalls) != 1 {
			return g.opErr(op, "it needs one computation, calls=")
		}
	case OpCall, OpReduce, OpReduceWindow, OpMap, OpAllReduce, OpAllReduceStart, OpReduceScatter, OpSort:
		if count(RoleToApply) != 1 {
			return g.opErr(op, "it needs one computation, to_apply=")
		}
	case OpSelectAndScatter:
		if count(RoleSelect) != 1 || count(RoleScatter) != 1 {
			return g.opErr(op, "it needs select= and scatter=")
		}
	}
	if (k == OpAsyncDone || k == OpAsyncUpdate) && n >= 1 {
		// The start may be behind copies, tuples or the state of a loop.
		if s := g.arg(op, 0); len(g.Shapes.Tuple(s)) < 2 {
			return g.opErr(op, "operand %s is no (operands, results, …) tuple of an async-start", g.ShapeText(s))
		}
	}
	return nil
}

// inRank checks that v are dimensions of a shape of the given rank, each
// once at most.
func (g *Graph) inRank(op OpID, what string, v []int64, rank int) error {
	var seen uint64
	for _, d := range v {
		if d < 0 || d >= int64(rank) {
			return g.opErr(op, "%s dimension %d is outside rank %d", what, d, rank)
		}
		if d < 64 {
			if seen>>d&1 != 0 {
				return g.opErr(op, "%s dimension %d occurs twice", what, d)
			}
			seen |= 1 << d
		}
	}
	return nil
}

// arg returns the shape of operand i.
func (g *Graph) arg(op OpID, i int) ShapeID { return g.OperandShape(g.Operands(op)[i]) }

func (g *Graph) checkDims(op OpID) error {
	t := &g.Shapes
	s := g.Ops.Shape[op]
	dims := g.Dims(op)
	switch k := g.Ops.Kind[op]; k {
	case OpBroadcast:
		src := g.arg(op, 0)
		if len(dims) != t.Rank(src) {
			return g.opErr(op, "%d dimensions for an operand of rank %d", len(dims), t.Rank(src))
		}
		if err := g.inRank(op, "result", dims, t.Rank(s)); err != nil {
			return err
		}
		for i, d := range dims {
			if a, b := t.Dims(src)[i], t.Dims(s)[d]; a != b && a != DimUnknown && b != DimUnknown {
				return g.opErr(op, "operand dimension %d has size %d, result dimension %d has %d", i, a, d, b)
			}
		}
	case OpReshape:
		src := g.arg(op, 0)
		if t.Count(src) != t.Count(s) && !hasUnknown(t.Dims(src)) && !hasUnknown(t.Dims(s)) && t.Elem(s).IsArray() {
			return g.opErr(op, "operand %s has %d elements, result %s has %d", g.ShapeText(src), t.Count(src), g.ShapeText(s), t.Count(s))
		}
	case OpTranspose:
		src := g.arg(op, 0)
		if len(dims) != t.Rank(src) || t.Rank(s) != t.Rank(src) {
			return g.opErr(op, "dimensions=%v is no permutation of an operand of rank %d", dims, t.Rank(src))
		}
		return g.inRank(op, "operand", dims, t.Rank(src))
	case OpReduce:
		return g.inRank(op, "operand", dims, t.Rank(g.arg(op, 0)))
	case OpReverse:
		return g.inRank(op, "operand", dims, t.Rank(s))
	case OpConcatenate, OpSort:
		if k == OpConcatenate && len(dims) != 1 || len(dims) > 1 {
			return g.opErr(op, "dimensions=%v, want one dimension", dims)
		}
		return g.inRank(op, "operand", dims, max(t.Rank(g.arg(op, 0)), 1))
	case OpAllGather, OpAllGatherStart, OpReduceScatter:
		if len(dims) != 1 {
			return g.opErr(op, "dimensions=%v, want one dimension", dims)
		}
		return g.inRank(op, "operand", dims, t.Rank(g.arg(op, 0)))
	case OpSlice:
		v := g.Ints(op, AttrSlice)
		src := g.arg(op, 0)
		if len(v) != 3*t.Rank(src) {
			return g.opErr(op, "slice= has %d ranges for rank %d", len(v)/3, t.Rank(src))
		}
		for i, d := range t.Dims(src) {
			lo, hi, st := v[3*i], v[3*i+1], v[3*i+2]
			if lo < 0 || hi < lo || st <= 0 || d != DimUnknown && hi > d {
				return g.opErr(op, "slice [%d:%d:%d] is outside dimension %d of size %d", lo, hi, st, i, d)
			}
		}
	case OpPad:
		if v := g.Ints(op, AttrPadding); len(v) != 3*t.Rank(g.arg(op, 0)) {
			return g.opErr(op, "padding= has %d dimensions for rank %d", len(v)/3, t.Rank(g.arg(op, 0)))
		}
	case OpIota:
		d := g.IntOr(op, AttrIotaDimension, -1)
		if d < 0 || d >= int64(t.Rank(s)) {
			return g.opErr(op, "iota_dimension=%d is outside rank %d", d, t.Rank(s))
		}
	case OpDynamicSlice:
		if v := g.Ints(op, AttrSliceSizes); len(v) != t.Rank(g.arg(op, 0)) {
			return g.opErr(op, "dynamic_slice_sizes has %d sizes for rank %d", len(v), t.Rank(g.arg(op, 0)))
		}
	case OpGetTupleElement:
		src := t.Tuple(g.arg(op, 0))
		if i := int(g.Ops.Index[op]); !t.IsTuple(g.arg(op, 0)) || i < 0 || i >= len(src) {
			return g.opErr(op, "index=%d is outside %s", i, g.ShapeText(g.arg(op, 0)))
		}
	case OpTuple:
		if !t.IsTuple(s) || len(t.Tuple(s)) != len(g.Operands(op)) {
			return g.opErr(op, "shape %s for %d operands", g.ShapeText(s), len(g.Operands(op)))
		}
	case OpDot, OpRaggedDot, OpScaledDot:
		return g.checkDot(op)
	case OpConvolution:
		return g.checkConv(op)
	}
	return nil
}

func hasUnknown(dims []int64) bool {
	for _, d := range dims {
		if d == DimUnknown {
			return true
		}
	}
	return false
}

func (g *Graph) checkDot(op OpID) error {
	t := &g.Shapes
	d := g.Dot(op)
	l, r := g.arg(op, 0), g.arg(op, 1)
	if !t.Elem(l).IsArray() || !t.Elem(r).IsArray() {
		return g.opErr(op, "operands %s and %s, want arrays", g.ShapeText(l), g.ShapeText(r))
	}
	for _, p := range []struct {
		what string
		dims []int64
		rank int
	}{{"lhs contracting", d.LHSContract, t.Rank(l)}, {"rhs contracting", d.RHSContract, t.Rank(r)},
		{"lhs batch", d.LHSBatch, t.Rank(l)}, {"rhs batch", d.RHSBatch, t.Rank(r)}} {
		if err := g.inRank(op, p.what, p.dims, p.rank); err != nil {
			return err
		}
	}
	if len(d.LHSContract) != len(d.RHSContract) || len(d.LHSBatch) != len(d.RHSBatch) {
		return g.opErr(op, "%d lhs and %d rhs contracting, %d lhs and %d rhs batch dimensions",
			len(d.LHSContract), len(d.RHSContract), len(d.LHSBatch), len(d.RHSBatch))
	}
	same := func(a, b []int64, what string) error {
		for i := range a {
			if x, y := t.Dims(l)[a[i]], t.Dims(r)[b[i]]; x != y && x != DimUnknown && y != DimUnknown {
				return g.opErr(op, "%s dimensions differ: lhs %d has size %d, rhs %d has %d", what, a[i], x, b[i], y)
			}
		}
		return nil
	}
	if err := same(d.LHSContract, d.RHSContract, "contracting"); err != nil {
		return err
	}
	return same(d.LHSBatch, d.RHSBatch, "batch")
}

func (g *Graph) checkConv(op OpID) error {
	t := &g.Shapes
	d, ok := g.ConvDims(op)
	if !ok {
		return g.opErr(op, "no dim_labels=")
	}
	s, l, r := g.Ops.Shape[op], g.arg(op, 0), g.arg(op, 1)
	n := len(d.InputSpatial) + 2
	if t.Rank(l) != n || t.Rank(r) != n || t.Rank(s) != n {
		return g.opErr(op, "dim_labels of rank %d for %s, %s and %s", n, g.ShapeText(l), g.ShapeText(r), g.ShapeText(s))
	}
	for _, p := range []struct {
		what string
		dims []int64
	}{{"input", append([]int64{d.InputBatch, d.InputFeature}, d.InputSpatial...)},
		{"kernel", append([]int64{d.KernelInput, d.KernelOutput}, d.KernelSpatial...)},
		{"output", append([]int64{d.OutputBatch, d.OutputFeature}, d.OutputSpatial...)}} {
		if err := g.inRank(op, p.what, p.dims, n); err != nil {
			return err
		}
	}
	w := g.Window(op, nil)
	if len(w) != 0 && len(w) != len(d.InputSpatial) {
		return g.opErr(op, "window of rank %d for %d spatial dimensions", len(w), len(d.InputSpatial))
	}
	for i, dim := range w {
		if k := t.Dims(r)[d.KernelSpatial[i]]; dim.Size != k && k != DimUnknown {
			return g.opErr(op, "window dimension %d has size %d, the kernel has %d", i, dim.Size, k)
		}
		if dim.Stride <= 0 || dim.LHSDilate <= 0 || dim.RHSDilate <= 0 {
			return g.opErr(op, "window dimension %d: stride and dilation must be positive", i)
		}
	}
	return nil
}

// checkCalls refuses recursion and whiles whose parts do not fit.
func (g *Graph) checkCalls() error {
	w := newCallWalk(g)
	for c := range CompID(g.NumComps()) {
		if by, to, recursion := w.from(c); recursion {
			return g.opErr(by, "it calls computation %q, which calls it: recursion", g.CompText(to))
		}
	}
	for op := range OpID(g.NumOps()) {
		if g.Ops.Kind[op] == OpWhile {
			if err := g.checkWhile(op); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *Graph) checkWhile(op OpID) error {
	t := &g.Shapes
	for _, role := range []CallRole{RoleCondition, RoleBody} {
		c := g.Called(op, role)
		if n := g.ParamCount(c); n != 1 {
			return g.opErr(op, "computation %q has %d parameters, want 1", g.CompText(c), n)
		}
	}
	cond := g.Called(op, RoleCondition)
	root := g.Comps.Root[cond]
	if s := g.Ops.Shape[root]; t.Elem(s) != ElemPred || t.Count(s) != 1 {
		return g.opErr(op, "condition %q gives %s, want pred[]", g.CompText(cond), g.ShapeText(s))
	}
	return nil
}

func (g *Graph) checkAliases() error {
	root := g.Ops.Shape[g.Comps.Root[g.Entry]]
	params := g.Params(g.Entry, nil)
	inside := func(s ShapeID, p PathID) bool {
		for _, i := range g.Path(p) {
			m := g.Shapes.Tuple(s)
			if i < 0 || i >= int64(len(m)) {
				return false
			}
			s = m[i]
		}
		return true
	}
	for _, a := range g.Aliases {
		if !inside(root, a.Output) {
			return &GraphError{NoOp, NoComp, fmt.Sprintf("input_output_alias: the output has no element %v", g.Path(a.Output))}
		}
		if a.Parameter < 0 || int(a.Parameter) >= len(params) {
			return &GraphError{NoOp, NoComp, fmt.Sprintf("input_output_alias: parameter %d of %d", a.Parameter, len(params))}
		}
		if !inside(g.Ops.Shape[params[a.Parameter]], a.Param) {
			return &GraphError{NoOp, NoComp, fmt.Sprintf("input_output_alias: parameter %d has no element %v", a.Parameter, g.Path(a.Param))}
		}
	}
	return nil
}
