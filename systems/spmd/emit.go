package spmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perfsim/components"
)

// emitter writes one device's share of a planned graph.
type emitter struct {
	*planner
	r      *components.Rewriter
	to     *components.Graph
	plain  map[components.OpID]components.OpID // values cut as planned
	made   map[string]components.OpID          // values made in another cut
	comp   components.CompID
	late   []components.OpID // all-reduces whose function is made at the end
	bodyOf map[components.CompID][]spec
	counts map[components.OpKind]int
	whole  map[string]int // by name, operators that every device does whole though an operand is cut
}

// local returns the shape of one device's part.
func (e *emitter) local(s components.ShapeID, list []spec) components.ShapeID {
	t := &e.to.Shapes
	if m := t.Tuple(s); t.Elem(s) == components.ElemTuple || t.Elem(s) == components.ElemBuffer {
		shapes := make([]components.ShapeID, len(m))
		at := 0
		for i, x := range append([]components.ShapeID(nil), m...) {
			n := leaves(t, x)
			shapes[i] = e.local(x, list[at:at+n])
			at += n
		}
		if t.Elem(s) == components.ElemBuffer {
			return t.AddBuffer(shapes[0])
		}
		return t.AddTuple(shapes)
	}
	if list[0].used() == 0 {
		return s
	}
	dims := append([]int64(nil), t.Dims(s)...)
	for d := range dims {
		if n := e.ax.size(list[0].at(d)); n > 1 {
			dims[d] = (dims[d] + n - 1) / n
		}
	}
	return t.AddArrayLayout(t.Elem(s), dims, t.Layout(s))
}

func (e *emitter) graph() *components.Graph {
	g := e.g
	for c := range components.CompID(g.NumComps()) {
		e.comp = c
		e.plain, e.made = map[components.OpID]components.OpID{}, map[string]components.OpID{}
		e.r.Begin(c)
		in, planned := e.in[c]
		if !planned {
			for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
				e.r.Copy(op)
			}
			e.r.End(c)
			continue
		}
		at := map[components.OpID]int{}
		n := 0
		for _, op := range g.Params(c, nil) {
			at[op] = n
			n += leaves(&g.Shapes, g.Ops.Shape[op])
		}
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			switch kind := g.Ops.Kind[op]; {
			case kind == components.OpParameter:
				k := at[op]
				e.put(op, e.r.CopyAs(op, e.local(g.Ops.Shape[op], in[k:k+leaves(&g.Shapes, g.Ops.Shape[op])]), nil))
			case kind == components.OpTuple || len(e.out[op]) == 1 && e.out[op][0].free:
				// made where it is used
			default:
				e.put(op, e.op(op, kind))
			}
		}
		root := e.value(components.Operand{Op: g.Comps.Root[c]}, e.wanted(c))
		e.to.EndComputation(root)
	}
	if len(e.late) > 0 {
		made := map[components.ElemType]components.CompID{}
		for _, op := range e.late {
			elem := e.to.Shapes.Elem(e.to.Ops.Shape[op])
			c, ok := made[elem]
			if !ok {
				s := e.to.Array(elem)
				c = e.to.BeginComputation("partition_add_" + elem.String())
				a, b := e.to.AddParameter("x", s, 0), e.to.AddParameter("y", s, 1)
				e.to.AddOp(components.OpAdd, "", s, a, b)
				e.to.EndComputation(components.NoOp)
				made[elem] = c
			}
			e.to.SetCall(op, 0, c)
		}
	}
	e.to.Partitions = max(e.to.Partitions, e.ax.devices)
	return e.to
}

// wanted returns the cut of a computation's result: that of the state for the
// body of a loop.
func (e *emitter) wanted(c components.CompID) []spec {
	if w, ok := e.bodies()[c]; ok {
		return w
	}
	return whole(e.result[c])
}

// bodies maps the body of each loop to the cut of its state, and each branch
// of a conditional to that of the first.
func (e *emitter) bodies() map[components.CompID][]spec {
	if e.bodyOf == nil {
		e.bodyOf = map[components.CompID][]spec{}
		for op := range components.OpID(e.g.NumOps()) {
			switch e.g.Ops.Kind[op] {
			case components.OpWhile:
				if b := e.g.Called(op, components.RoleBody); e.in[b] != nil {
					e.bodyOf[b] = e.in[b]
				}
			case components.OpConditional:
				for _, call := range e.g.Calls(op) {
					if e.out[op] != nil {
						e.bodyOf[call.Comp] = e.out[op]
					}
				}
			}
		}
	}
	return e.bodyOf
}

func (e *emitter) put(op, to components.OpID) {
	e.plain[op] = to
	e.r.Put(op, to)
}

// value returns an operand cut as want says, or as planned where want is nil.
func (e *emitter) value(o components.Operand, want []spec) components.OpID {
	g := e.g
	if o.Path != 0 {
		at := e.value(components.Operand{Op: o.Op}, nil)
		list, s := whole(e.out[o.Op]), g.Ops.Shape[o.Op]
		for _, i := range g.Path(o.Path) {
			list, s = part(&g.Shapes, list, s, int(i))
			at = e.to.AddTupleElement("", at, int(i))
			e.r.Place(at, o.Op)
		}
		if want != nil && len(list) == 1 && len(want) == 1 {
			return e.recut(o.Op, at, s, list[0], want[0])
		}
		return at
	}
	op := o.Op
	have := e.out[op]
	if want == nil {
		want = whole(have)
	}
	if g.Ops.Kind[op] == components.OpTuple {
		return e.tuple(op, want)
	}
	if len(have) == 1 && !g.Shapes.IsTuple(g.Ops.Shape[op]) {
		if have[0].free {
			return e.remake(op, want[0])
		}
		return e.recut(op, e.plain[op], g.Ops.Shape[op], have[0], want[0])
	}
	same := len(have) == len(want)
	for i := 0; same && i < len(have); i++ {
		same = have[i].equal(want[i])
	}
	elems := g.Shapes.Tuple(g.Ops.Shape[op])
	if same || len(elems) != len(have) || len(have) != len(want) {
		return e.plain[op]
	}
	list := make([]components.OpID, len(elems))
	for i, s := range elems {
		x := e.to.AddTupleElement("", e.plain[op], i)
		e.r.Place(x, op)
		list[i] = e.recut(op, x, s, have[i], want[i])
	}
	return e.add(op, components.OpTuple, e.local(g.Ops.Shape[op], want), list...)
}

// key names a value in a cut.
func key(op components.OpID, want []spec) string {
	var b strings.Builder
	fmt.Fprint(&b, op)
	for _, s := range want {
		fmt.Fprint(&b, s.cuts())
	}
	return b.String()
}

func (e *emitter) tuple(op components.OpID, want []spec) components.OpID {
	k := key(op, want)
	if v, ok := e.made[k]; ok {
		return v
	}
	g := e.g
	var list []components.OpID
	at := 0
	for _, o := range g.Operands(op) {
		n := leaves(&g.Shapes, g.OperandShape(o))
		list = append(list, e.value(o, want[at:at+n]))
		at += n
	}
	v := e.to.AddOp(components.OpTuple, g.OpText(op), e.local(g.Ops.Shape[op], want), list...)
	e.r.Place(v, op)
	e.made[k] = v
	e.r.Put(op, v)
	return v
}

// remake makes a free value in a cut.
func (e *emitter) remake(op components.OpID, want spec) components.OpID {
	want.free = false
	k := key(op, []spec{want})
	if v, ok := e.made[k]; ok {
		return v
	}
	g := e.g
	r, _ := ruleOf(g, op)
	d := decision{rule: r, cuts: make([]axisSet, len(r.factors)), rank: len(want.dims)}
	for i, f := range r.factors {
		if f.out >= 0 {
			d.cuts[i] = want.at(f.out)
		}
	}
	var args []components.Operand
	for i, o := range g.Operands(op) {
		args = append(args, components.Operand{Op: e.value(o, []spec{d.arg(i, g.Shapes.Rank(g.OperandShape(o)))})})
	}
	got := d.out()
	if len(got.dims) == 0 && want.used() != 0 { // it cannot be made so: cut afterwards
		got = spec{}
	}
	v := e.r.CopyAs(op, e.local(g.Ops.Shape[op], []spec{got}), args)
	v = e.recut(op, v, g.Ops.Shape[op], got, want)
	e.made[k] = v
	e.r.Put(op, v)
	return v
}

// op emits an operator and completes its sums.
func (e *emitter) op(op components.OpID, kind components.OpKind) components.OpID {
	g := e.g
	args := g.Operands(op)
	out := e.out[op]
	operands := func(want func(i int) []spec) []components.Operand {
		list := make([]components.Operand, len(args))
		for i, o := range args {
			list[i].Op = e.value(o, want(i))
		}
		return list
	}
	planned := func(int) []spec { return nil }
	switch kind {
	case components.OpWhile:
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], out), operands(func(int) []spec { return out }))
	case components.OpCall:
		in := e.in[g.Called(op, components.RoleToApply)]
		at := 0
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], out), operands(func(i int) []spec {
			n := leaves(&g.Shapes, g.OperandShape(args[i]))
			at += n
			return in[at-n : at]
		}))
	case components.OpConditional:
		calls := g.Calls(op)
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], out), operands(func(i int) []spec {
			if i == 0 || i > len(calls) {
				return nil
			}
			return e.in[calls[i-1].Comp]
		}))
	case components.OpGetTupleElement, components.OpOptBarrier, components.OpDomain, components.OpAddDependency, components.OpAfterAll:
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], whole(out)), operands(planned))
	}
	switch target(g, op) {
	case "Sharding":
		return e.value(args[0], out)
	case "SPMDFullToShardShape", "SPMDShardToFullShape":
		v := e.value(args[0], nil)
		shape := e.local(g.Ops.Shape[op], out)
		if e.to.Shapes.SameArray(e.to.Ops.Shape[v], shape) {
			return v
		}
		return e.r.CopyAs(op, shape, []components.Operand{{Op: v}})
	}
	d := e.decide(op)
	if e.doneWhole(op, &d) {
		name := kind.String()
		if t := target(g, op); t != "" {
			name = t
		}
		e.whole[name]++
	}
	if !d.known {
		return e.recutAll(op, e.r.CopyAs(op, g.Ops.Shape[op], operands(func(i int) []spec {
			return make([]spec, leaves(&g.Shapes, g.OperandShape(args[i])))
		})), out)
	}
	list := operands(func(i int) []spec {
		if n := leaves(&g.Shapes, g.OperandShape(args[i])); n != 1 {
			return make([]spec, n)
		}
		return []spec{d.arg(i, g.Shapes.Rank(g.OperandShape(args[i])))}
	})
	natural := d.out()
	n := len(out)
	specs := make([]spec, n)
	for i := range specs {
		specs[i] = natural
	}
	window := e.halos(op, &d, list)
	v := e.r.CopyAs(op, e.local(g.Ops.Shape[op], specs), list)
	if window != nil {
		e.to.SetWindow(v, window)
	}
	e.sizes(op, v, kind)
	if n != 1 || g.Shapes.IsTuple(g.Ops.Shape[op]) {
		return v
	}
	v, natural = e.sum(op, v, d.sums(), natural, out[0])
	return e.recut(op, v, g.Ops.Shape[op], natural, out[0])
}

// doneWhole reports whether d leaves nothing of an operator cut though an
// operand is.
func (e *emitter) doneWhole(op components.OpID, d *decision) bool {
	for _, cut := range d.cuts {
		if cut != 0 {
			return false
		}
	}
	for _, o := range e.g.Operands(op) {
		for _, s := range e.operand(o) {
			if !s.free && s.used() != 0 {
				return true
			}
		}
	}
	return false
}

// recutAll cuts the results of an operator that every device has done whole.
func (e *emitter) recutAll(op, v components.OpID, out []spec) components.OpID {
	if len(out) == 1 && !e.g.Shapes.IsTuple(e.g.Ops.Shape[op]) {
		return e.recut(op, v, e.g.Ops.Shape[op], spec{}, out[0])
	}
	return v
}

// sizes corrects the attributes that repeat sizes of dimensions.
func (e *emitter) sizes(op, v components.OpID, kind components.OpKind) {
	t := &e.to.Shapes
	dims := t.Dims(e.to.Ops.Shape[v])
	switch kind {
	case components.OpSlice:
		cut := append([]int64(nil), e.to.Ints(v, components.AttrSlice)...)
		whole := e.g.Shapes.Dims(e.g.Ops.Shape[op])
		for d := range dims {
			if dims[d] != whole[d] && 3*d+2 < len(cut) {
				cut[3*d], cut[3*d+1] = 0, dims[d]
			}
		}
		e.to.SetInts(v, components.AttrSlice, cut...)
	case components.OpDynamicSlice:
		e.to.SetInts(v, components.AttrSliceSizes, dims...)
	case components.OpGather:
		sizes := append([]int64(nil), e.to.Ints(v, components.AttrSliceSizes)...)
		for d, n := range t.Dims(e.to.OperandShape(e.to.Operands(v)[0])) {
			if d < len(sizes) {
				sizes[d] = min(sizes[d], n)
			}
		}
		e.to.SetInts(v, components.AttrSliceSizes, sizes...)
	}
}

// sum completes a result of which every device has a part of the sum: a
// reduce-scatter where the result is wanted cut along the same axes, else an
// all-reduce.
func (e *emitter) sum(op, v components.OpID, over axisSet, have, want spec) (components.OpID, spec) {
	if over == 0 {
		return v, have
	}
	have = spec{dims: append([]axisSet(nil), have.dims...)}
	for d := range have.dims {
		cut := want.at(d) & over
		n := e.ax.size(cut)
		dims := append([]int64(nil), e.to.Shapes.Dims(e.to.Ops.Shape[v])...)
		if cut == 0 || dims[d]%n != 0 {
			continue
		}
		dims[d] /= n
		v = e.collective(op, components.OpReduceScatter, e.to.Array(e.to.Shapes.Elem(e.to.Ops.Shape[v]), dims...), v, cut, d)
		have.dims[d] |= cut
		over &^= cut
	}
	if over != 0 {
		v = e.collective(op, components.OpAllReduce, e.to.Ops.Shape[v], v, over, -1)
	}
	return v, have
}

func (e *emitter) collective(op components.OpID, kind components.OpKind, shape components.ShapeID, v components.OpID, over axisSet, dim int) components.OpID {
	c := e.add(op, kind, shape, v)
	e.to.SetReplicaGroups(c, e.ax.groups(over))
	e.to.SetInt(c, components.AttrUseGlobalDeviceIDs, 1)
	if dim >= 0 {
		e.to.SetInts(c, components.AttrDimensions, int64(dim))
	}
	if kind == components.OpAllReduce || kind == components.OpReduceScatter {
		e.to.AddCall(c, components.RoleToApply, components.NoComp)
		e.late = append(e.late, c)
	}
	e.counts[kind]++
	return c
}

func (e *emitter) add(op components.OpID, kind components.OpKind, shape components.ShapeID, args ...components.OpID) components.OpID {
	v := e.to.AddOp(kind, "", shape, args...)
	e.r.Place(v, op)
	return v
}

// recut brings an array from one cut to another: all-to-all for axes that
// change dimension, all-gather for those that go, a slice for those that come.
func (e *emitter) recut(op, v components.OpID, global components.ShapeID, have, want spec) components.OpID {
	if have.equal(want) {
		return v
	}
	k := fmt.Sprint(v, want.cuts())
	if x, ok := e.made[k]; ok {
		return x
	}
	t := &e.to.Shapes
	elem := t.Elem(global)
	rank := t.Rank(global)
	now := spec{dims: make([]axisSet, rank)}
	for d := range rank {
		now.dims[d] = have.at(d)
	}
	shape := func() components.ShapeID {
		dims := append([]int64(nil), t.Dims(global)...)
		for d := range dims {
			n := e.ax.size(now.dims[d])
			dims[d] = (dims[d] + n - 1) / n
		}
		return e.to.Array(elem, dims...)
	}
	x := v
	for d := range rank {
		for to := range rank {
			moved := now.dims[d] &^ want.at(d) & want.at(to) &^ now.dims[to]
			if moved == 0 || d == to {
				continue
			}
			now.dims[d] &^= moved
			now.dims[to] |= moved
			x = e.collective(op, components.OpAllToAll, shape(), x, moved, to)
		}
		if gone := now.dims[d] &^ want.at(d); gone != 0 {
			now.dims[d] &^= gone
			x = e.collective(op, components.OpAllGather, shape(), x, gone, d)
		}
	}
	if !now.equal(want) {
		from := append([]int64(nil), t.Dims(e.to.Ops.Shape[x])...)
		for d := range rank {
			now.dims[d] = want.at(d)
		}
		s := shape()
		var cut []int64
		for d := range from {
			cut = append(cut, 0, min(t.Dims(s)[d], from[d]), 1)
		}
		x = e.add(op, components.OpSlice, s, x)
		e.to.SetInts(x, components.AttrSlice, cut...)
	}
	e.made[k] = x
	return x
}

func (e *emitter) note(devices int64) string {
	var parts []string
	for _, k := range []components.OpKind{components.OpAllGather, components.OpAllReduce, components.OpReduceScatter, components.OpAllToAll, components.OpCollectivePermute} {
		if n := e.counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	text := fmt.Sprintf("one of %d devices, cut by the module's shardings", devices)
	if len(parts) > 0 {
		text += "; inserted " + strings.Join(parts, ", ")
	}
	parts = nil
	for _, name := range slices.Sorted(maps.Keys(e.whole)) {
		parts = append(parts, fmt.Sprintf("%s ×%d", name, e.whole[name]))
	}
	if len(parts) > 0 {
		text += "; every device does the whole of " + strings.Join(parts, ", ") + ": there is no rule to cut them so"
	}
	return text
}
