package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// ref is an array as an operator sees it: a value and the shape it is read
// in. Reshapes, bitcasts and transposes that only matrix products read give
// new references to one value.
type ref struct {
	v     int32
	shape opgraph.ShapeID
	minor int8 // dimension that lies contiguous in memory, -1 for the last
}

// value is an array of a function.
type value struct {
	elems, total int64 // elements, bytes in memory
	dtype        components.DType
	size         int64 // bytes of one element on chip
	double       bool
	konst        bool // a scalar, or a constant that instructions hold themselves
	weight       bool // a parameter or constant: laid out in memory as its first user likes it
	contracted   bool // made with its last dimension on the partitions, see layouts
	param        int32
	out          bool // part of the function's result
	users        []int32
	def          int32 // flat operator, -1 for parameters

	hbm  *region // in device memory, nil where it is not
	base int32   // the value whose device memory this one is part of, -1
	// off and ext are the bytes of base among which it lies; ext is 0 where they
	// are all. Where in them is known at run time only where moves is set.
	off, ext int64
	moves    bool
	slices   []int32 // values whose base it is
	chip     *region // in SBUF, nil where it is not
	free     int64   // elements per partition on chip
	parts    int64   // partitions on chip
	lastOn   int     // last kernel that touched it, for eviction
	turned   int32   // the value with rows and columns exchanged, -1 where nobody has made it
	dead     bool
}

// words is how many engine elements one element is: two for 64-bit and
// complex types.
func (v *value) words() int64 {
	if v.double {
		return 2
	}
	return 1
}

// flat is one operator of a function after fusions and small calls are laid
// out.
type flat struct {
	op    opgraph.OpID
	kind  opgraph.OpKind
	group int32 // fusion it belongs to, 0 for none
	args  []ref
	outs  []ref
	after []int32 // control predecessors, as flat operators
	rows  [2]uint32
	me    int32

	gone   bool       // its work is in the instructions of a later operator
	recipe *recipe    // its instructions where stepsOf has none
	attn   *attention // it is an attention
	fin    *finish    // a product: what is done to its sums as they leave PSUM
}

// fn is one function while it is being lowered.
type fn struct {
	l      *lowerer
	comp   opgraph.CompID
	behind int64 // operators of functions that are known to follow
	values []value
	flats  []flat
	result []ref
	groups int32

	sb       *sbuf
	psum     *region
	bank     int
	kern     int // number of the kernel
	busy     [components.NumEngines]int64
	resident []int32 // values that may be on chip
	flops, vector, helper, columns,
	paramBytes, outBytes, ccBytes, ccs,
	loads, stores, copies, spills int64
	loaded                       map[int32]int64
	scalars                      map[int32]float64 // values of scalar constants
	dramNext, dramLive, dramPeak int64
	cur                          int32 // flat operator being lowered
	lastCtl                      uint32
}

type env map[opgraph.OpID][]ref

// leaves appends the array shapes of s in order.
func (l *lowerer) leaves(s opgraph.ShapeID, dst []opgraph.ShapeID) []opgraph.ShapeID {
	t := &l.g.Shapes
	switch t.Elem(s) {
	case opgraph.ElemTuple, opgraph.ElemBuffer:
		for _, m := range t.Tuple(s) {
			dst = l.leaves(m, dst)
		}
		return dst
	}
	return append(dst, s)
}

func (l *lowerer) numLeaves(s opgraph.ShapeID) int {
	t := &l.g.Shapes
	if e := t.Elem(s); e != opgraph.ElemTuple && e != opgraph.ElemBuffer {
		return 1
	}
	n := 0
	for _, m := range t.Tuple(s) {
		n += l.numLeaves(m)
	}
	return n
}

// part returns the leaves of an operand: of all leaves of the producer those
// that its tuple-index chain leads to.
func (l *lowerer) part(all []ref, s opgraph.ShapeID, path []int64) []ref {
	for _, i := range path {
		elems := l.g.Shapes.Tuple(s)
		if i < 0 || i >= int64(len(elems)) {
			return nil
		}
		lo := 0
		for _, m := range elems[:i] {
			lo += l.numLeaves(m)
		}
		s = elems[i]
		hi := lo + l.numLeaves(s)
		if hi > len(all) {
			return nil
		}
		all = all[lo:hi]
	}
	return all
}

func (f *fn) newValue(s opgraph.ShapeID, def int32) ref {
	t := &f.l.g.Shapes
	d, double := dtypeOf(t.Elem(s))
	v := value{elems: t.Count(s), total: t.Bytes(s), dtype: d, size: int64(d.Size()), double: double, param: -1, base: -1, turned: -1, def: def}
	if double {
		v.size *= 2
	}
	f.values = append(f.values, v)
	return ref{int32(len(f.values) - 1), s, -1}
}

// flatten lays out computation c with its parameters bound.
func (f *fn) flatten(c opgraph.CompID, params [][]ref, group int32, depth int) []ref {
	g, l := f.l.g, f.l
	w := &flattening{fn: f, comp: c, params: params, group: group, depth: depth, e: env{}, at: map[opgraph.OpID]int32{}}
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		switch {
		case w.renames(op):
			l.count(op, Free, "")
		case w.inlines(op):
			l.count(op, Lowered, "")
		default:
			w.append(op)
		}
	}
	return w.e[g.Comps.Root[c]]
}

// flattening is the state of laying out one computation.
type flattening struct {
	*fn
	comp   opgraph.CompID
	params [][]ref
	group  int32 // of the fusion around, 0 for none
	depth  int   // of the calls around
	e      env
	at     map[opgraph.OpID]int32 // flat operators, which control predecessors name
}

// operand returns the arrays of an operand of op.
func (w *flattening) operand(op opgraph.OpID, i int) []ref {
	g := w.l.g
	o := g.Operands(op)[i]
	return w.l.part(w.e[o.Op], g.Ops.Shape[o.Op], g.Path(o.Path))
}

// operands returns the arrays of each operand of op.
func (w *flattening) operands(op opgraph.OpID) [][]ref {
	out := make([][]ref, len(w.l.g.Operands(op)))
	for i := range out {
		out[i] = w.operand(op, i)
	}
	return out
}

// arrays returns the arrays of all operands of op.
func (w *flattening) arrays(op opgraph.OpID) (out []ref) {
	for i := range w.l.g.Operands(op) {
		out = append(out, w.operand(op, i)...)
	}
	return out
}

// renames handles an operator whose value is that of others, or is there
// already, and reports whether op is one.
func (w *flattening) renames(op opgraph.OpID) bool {
	g, l := w.l.g, w.l
	kind, shape := g.Ops.Kind[op], g.Ops.Shape[op]
	var value []ref
	switch kind {
	case opgraph.OpParameter:
		if i := int(g.Ops.Index[op]); i < len(w.params) {
			value = w.params[i]
		}
	case opgraph.OpTuple, opgraph.OpOptBarrier, opgraph.OpDomain, opgraph.OpAsyncUpdate:
		value = w.arrays(op)
	case opgraph.OpCopyDone:
		value = w.operand(op, 0)
		value = value[:min(1, len(value))]
	case opgraph.OpAddDependency:
		value = w.operand(op, 0)
	case opgraph.OpGetTupleElement:
		o := g.Operands(op)[0]
		value = l.part(w.operand(op, 0), g.OperandShape(o), []int64{int64(g.Ops.Index[op])})
	case opgraph.OpBitcast, opgraph.OpReshape, opgraph.OpDynamicReshape:
		r, ok := w.recast(w.arrays(op), shape, kind)
		if !ok {
			return false
		}
		value = r
	case opgraph.OpTranspose:
		args := w.arrays(op)
		if len(args) != 1 || !w.onlyProducts(w.comp, op) {
			return false
		}
		r := args[0]
		r.minor = w.permutedMinor(op, r)
		r.shape = shape
		value = []ref{r}
	case opgraph.OpConstant, opgraph.OpPartitionId, opgraph.OpReplicaId, opgraph.OpAfterAll, opgraph.OpGetDimensionSize:
		w.e[op] = w.constants(op)
		return true
	case opgraph.OpAsyncDone:
		o := g.Operands(op)[0].Op
		for g.Ops.Kind[o] == opgraph.OpAsyncUpdate {
			o = g.Operands(o)[0].Op
		}
		res, ok := l.asyncRefs[asyncKey{w.fn, o}]
		if !ok {
			res = w.tail(w.arrays(op), shape)
		}
		value = res
	case opgraph.OpAllGatherDone, opgraph.OpAllReduceDone, opgraph.OpCollectivePermuteDone, opgraph.OpSendDone, opgraph.OpRecvDone:
		value = w.tail(w.arrays(op), shape)
	default:
		return false
	}
	w.e[op] = w.fit(value, shape)
	return true
}

// constants returns the arrays of an operator without work, whose values the
// kernel has as numbers where the graph says them.
func (w *flattening) constants(op opgraph.OpID) (outs []ref) {
	g := w.l.g
	for _, s := range w.l.leaves(g.Ops.Shape[op], nil) {
		r := w.newValue(s, -1)
		v := &w.values[r.v]
		v.weight = true
		v.konst = v.elems <= 1 || g.Ops.Kind[op] != opgraph.OpConstant
		if n, ok := g.Int(op, opgraph.AttrConstInt); ok {
			w.scalars[r.v] = float64(n)
		} else if x, ok := g.Float(op); ok {
			w.scalars[r.v] = x
		}
		outs = append(outs, r)
	}
	return outs
}

// inlines lays out the computation that op calls in its place, where it does,
// and reports whether it did.
func (w *flattening) inlines(op opgraph.OpID) bool {
	g, l := w.l.g, w.l
	if w.depth >= maxDepth {
		return false
	}
	kind, shape := g.Ops.Kind[op], g.Ops.Shape[op]
	callee, group := opgraph.NoComp, w.group
	switch kind {
	case opgraph.OpFusion:
		callee = g.Called(op, opgraph.RoleCalls)
		if w.groups++; group == 0 {
			group = w.groups
		}
	case opgraph.OpAsyncStart:
		if callee = g.Called(op, opgraph.RoleCalls); callee == opgraph.NoComp {
			return false
		}
	case opgraph.OpCall:
		if callee = g.Called(op, opgraph.RoleToApply); !l.small(callee) {
			return false
		}
	default:
		return false
	}
	n := len(w.flats)
	value := w.flatten(callee, w.operands(op), group, w.depth+1)
	if kind != opgraph.OpAsyncStart {
		w.e[op] = w.fit(value, shape)
		w.control(w.comp, op, n, w.at)
		return true
	}
	w.control(w.comp, op, n, w.at)
	// The value of an async-start is (operands, results, …).
	w.e[op] = w.fit(append(w.arrays(op), value...), shape)
	w.async(op, value)
	return true
}

// append adds an operator with work.
func (w *flattening) append(op opgraph.OpID) {
	me := int32(len(w.flats))
	x := flat{op: op, kind: w.l.g.Ops.Kind[op], group: w.group, args: w.arrays(op), me: me}
	for _, s := range w.l.leaves(w.l.g.Ops.Shape[op], nil) {
		x.outs = append(x.outs, w.newValue(s, me))
	}
	w.aliasOuts(&x)
	for _, p := range w.l.g.Control(op) {
		if q, ok := w.at[p]; ok {
			x.after = append(x.after, q)
		}
	}
	w.flats = append(w.flats, x)
	w.at[op] = me
	w.e[op] = x.outs
}

// fit makes refs the arrays of a shape: what is missing (the context of an
// asynchronous operator) or of another size gets a value of its own.
func (f *fn) fit(refs []ref, shape opgraph.ShapeID) []ref {
	want := f.l.leaves(shape, nil)
	t := &f.l.g.Shapes
	same := len(refs) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = t.Bytes(want[i]) == t.Bytes(refs[i].shape)
	}
	if same {
		return refs
	}
	out := make([]ref, len(want))
	for i, s := range want {
		if i < len(refs) && t.Bytes(refs[i].shape) == t.Bytes(s) {
			out[i] = refs[i]
			continue
		}
		out[i] = f.newValue(s, -1)
		f.values[out[i].v].konst = true
	}
	return out
}

// maxDepth bounds how deep fusions and calls are laid out in one another.
const maxDepth = 64

// control gives the control predecessors of a laid-out operator to its first
// flat operator and makes its last one stand for it.
func (f *fn) control(c opgraph.CompID, op opgraph.OpID, first int, at map[opgraph.OpID]int32) {
	if len(f.flats) == first {
		return
	}
	for _, p := range f.l.g.Control(op) {
		if q, ok := at[p]; ok {
			f.flats[first].after = append(f.flats[first].after, q)
		}
	}
	at[op] = int32(len(f.flats) - 1)
}

type asyncKey struct {
	f  *fn
	op opgraph.OpID
}

func (f *fn) async(op opgraph.OpID, res []ref) { f.l.asyncRefs[asyncKey{f, op}] = res }

// tail returns the leaves of a done half: the last ones of the start half
// that fit the shape, which stand behind the operands.
func (f *fn) tail(args []ref, shape opgraph.ShapeID) []ref {
	want := f.l.leaves(shape, nil)
	for lo := 0; lo+len(want) <= len(args); lo++ {
		// The results come after the operands: prefer the last place that fits.
		at := len(args) - len(want) - lo
		ok := true
		for i, s := range want {
			ok = ok && f.l.g.Shapes.SameArray(args[at+i].shape, s)
		}
		if ok {
			return args[at : at+len(want)]
		}
	}
	var out []ref
	for _, s := range want {
		r := f.newValue(s, -1)
		f.values[r.v].konst = true
		out = append(out, r)
	}
	return out
}

// recast gives args another shape without moving anything.
func (f *fn) recast(args []ref, shape opgraph.ShapeID, kind opgraph.OpKind) ([]ref, bool) {
	t := &f.l.g.Shapes
	if len(args) != 1 || t.IsTuple(shape) || t.Bytes(args[0].shape) != t.Bytes(shape) {
		return nil, false
	}
	r := args[0]
	// A transposed view keeps its contiguous dimension only where that
	// dimension is still there; else it counts as laid out for its reader.
	if r.minor >= 0 {
		n := t.Dims(r.shape)[r.minor]
		r.minor = -1
		for i, d := range t.Dims(shape) {
			if d == n {
				r.minor = int8(i)
				break
			}
		}
	}
	if kind == opgraph.OpBitcast && r.minor < 0 {
		if mm := t.MinorToMajor(shape, nil); len(mm) > 0 && int(mm[0]) != len(mm)-1 {
			r.minor = int8(mm[0])
		}
	}
	r.shape = shape
	return []ref{r}, true
}

func (f *fn) permutedMinor(op opgraph.OpID, r ref) int8 {
	perm := f.l.g.Dims(op)
	from := int64(r.minor)
	if from < 0 {
		from = int64(len(perm) - 1)
		if mm := f.l.g.Shapes.MinorToMajor(r.shape, nil); len(mm) > 0 {
			from = mm[0]
		}
	}
	return int8(slices.Index(perm, from))
}

// onlyProducts reports whether every user of a transpose is a matrix product,
// perhaps behind reshapes and bitcasts: the product reads it through its access
// patterns.
func (f *fn) onlyProducts(c opgraph.CompID, op opgraph.OpID) bool {
	g := f.l.g
	if g.Comps.Root[c] == op {
		return false
	}
	users := f.l.usersOf(c)
	list := users[op-g.Comps.First[c]]
	if len(list) == 0 {
		return false
	}
	for _, u := range list {
		switch g.Ops.Kind[u] {
		case opgraph.OpDot:
		case opgraph.OpReshape, opgraph.OpBitcast:
			if !f.onlyProducts(c, u) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// aliasOuts makes the results of operators that work in place part of their
// operand.
func (f *fn) aliasOuts(x *flat) {
	switch x.kind {
	case opgraph.OpCopyStart, opgraph.OpAllGatherStart, opgraph.OpCollectivePermuteStart:
		// (destination, source, context) and (operands, results, …): the operand
		// is handed on.
		t := &f.l.g.Shapes
		switch {
		case x.kind == opgraph.OpCopyStart && len(x.outs) >= 2 && len(x.args) >= 1:
			x.outs[1] = ref{x.args[0].v, x.outs[1].shape, -1}
		case len(x.outs) >= 2*len(x.args):
			for i, a := range x.args {
				if t.SameArray(a.shape, x.outs[i].shape) {
					x.outs[i] = ref{a.v, x.outs[i].shape, -1}
				}
			}
		}
		for i := range x.outs {
			if v := &f.values[x.outs[i].v]; v.def == int32(len(f.flats)) && v.total <= 8 {
				v.konst = true // a context word
			}
		}
	}
}

// countUsers fills the list of users of every value.
func (f *fn) countUsers() {
	for i := range f.flats {
		if f.flats[i].gone {
			continue
		}
		for _, a := range f.flats[i].args {
			v := &f.values[a.v]
			if n := len(v.users); n == 0 || v.users[n-1] != int32(i) {
				v.users = append(v.users, int32(i))
			}
		}
	}
	for _, r := range f.result {
		f.values[r.v].out = true
	}
}
