package spmd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// emitter writes one device's share of a planned graph.
type emitter struct {
	*planner
	r      *opgraph.Rewriter
	to     *opgraph.Graph
	plain  map[opgraph.OpID]opgraph.OpID // values cut as planned
	made   map[string]opgraph.OpID       // values made in another cut
	comp   opgraph.CompID
	late   []opgraph.OpID // all-reduces whose function is made at the end
	bodyOf map[opgraph.CompID][]spec
	counts map[opgraph.OpKind]int
	whole  map[string]int // by name, operators that every device does whole though an operand is cut
	uneven bool           // parts are not of one size
}

// local returns the shape of one device's part.
func (e *emitter) local(s opgraph.ShapeID, list []spec) opgraph.ShapeID {
	t := &e.to.Shapes
	if m := t.Tuple(s); t.Elem(s) == opgraph.ElemTuple || t.Elem(s) == opgraph.ElemBuffer {
		shapes := make([]opgraph.ShapeID, len(m))
		at := 0
		for i, x := range append([]opgraph.ShapeID(nil), m...) {
			n := leaves(t, x)
			shapes[i] = e.local(x, list[at:at+n])
			at += n
		}
		if t.Elem(s) == opgraph.ElemBuffer {
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
			e.uneven = e.uneven || dims[d]%n != 0
			dims[d] = (dims[d] + n - 1) / n
		}
	}
	return t.AddArrayLayout(t.Elem(s), dims, t.Layout(s))
}

func (e *emitter) graph() *opgraph.Graph {
	g := e.g
	for c := range opgraph.CompID(g.NumComps()) {
		e.comp = c
		e.plain, e.made = map[opgraph.OpID]opgraph.OpID{}, map[string]opgraph.OpID{}
		e.r.Begin(c)
		in, planned := e.in[c]
		if !planned {
			for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
				e.r.Copy(op)
			}
			e.r.End(c)
			continue
		}
		at := map[opgraph.OpID]int{}
		n := 0
		for _, op := range g.Params(c, nil) {
			at[op] = n
			n += leaves(&g.Shapes, g.Ops.Shape[op])
		}
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			switch kind := g.Ops.Kind[op]; {
			case kind == opgraph.OpParameter:
				k := at[op]
				e.put(op, e.r.CopyAs(op, e.local(g.Ops.Shape[op], in[k:k+leaves(&g.Shapes, g.Ops.Shape[op])]), nil))
			case kind == opgraph.OpTuple || len(e.out[op]) == 1 && e.out[op][0].free:
				// made where it is used
			default:
				e.put(op, e.op(op, kind))
			}
		}
		root := e.value(opgraph.Operand{Op: g.Comps.Root[c]}, e.wanted(c))
		e.to.EndComputation(root)
	}
	if len(e.late) > 0 {
		made := map[opgraph.ElemType]opgraph.CompID{}
		for _, op := range e.late {
			elem := e.to.Shapes.Elem(e.to.Ops.Shape[op])
			c, ok := made[elem]
			if !ok {
				s := e.to.Array(elem)
				c = e.to.BeginComputation("partition_add_" + elem.String())
				a, b := e.to.AddParameter("x", s, 0), e.to.AddParameter("y", s, 1)
				e.to.AddOp(opgraph.OpAdd, "", s, a, b)
				e.to.EndComputation(opgraph.NoOp)
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
func (e *emitter) wanted(c opgraph.CompID) []spec {
	if w, ok := e.bodies()[c]; ok {
		return w
	}
	return whole(e.result[c])
}

// bodies maps the body of each loop to the cut of its state, and each branch
// of a conditional to that of the first.
func (e *emitter) bodies() map[opgraph.CompID][]spec {
	if e.bodyOf == nil {
		e.bodyOf = map[opgraph.CompID][]spec{}
		for op := range opgraph.OpID(e.g.NumOps()) {
			switch e.g.Ops.Kind[op] {
			case opgraph.OpWhile:
				if b := e.g.Called(op, opgraph.RoleBody); e.in[b] != nil {
					e.bodyOf[b] = e.in[b]
				}
			case opgraph.OpConditional:
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

func (e *emitter) put(op, to opgraph.OpID) {
	e.plain[op] = to
	e.r.Put(op, to)
}

// value returns an operand cut as want says, or as planned where want is nil.
func (e *emitter) value(o opgraph.Operand, want []spec) opgraph.OpID {
	g := e.g
	if o.Path != 0 {
		at := e.value(opgraph.Operand{Op: o.Op}, nil)
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
	if g.Ops.Kind[op] == opgraph.OpTuple {
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
	list := make([]opgraph.OpID, len(elems))
	for i, s := range elems {
		x := e.to.AddTupleElement("", e.plain[op], i)
		e.r.Place(x, op)
		list[i] = e.recut(op, x, s, have[i], want[i])
	}
	return e.add(op, opgraph.OpTuple, e.local(g.Ops.Shape[op], want), list...)
}

// key names a value in a cut.
func key(op opgraph.OpID, want []spec) string {
	var b strings.Builder
	fmt.Fprint(&b, op)
	for _, s := range want {
		fmt.Fprint(&b, s.cuts())
	}
	return b.String()
}

func (e *emitter) tuple(op opgraph.OpID, want []spec) opgraph.OpID {
	k := key(op, want)
	if v, ok := e.made[k]; ok {
		return v
	}
	g := e.g
	var list []opgraph.OpID
	at := 0
	for _, o := range g.Operands(op) {
		n := leaves(&g.Shapes, g.OperandShape(o))
		list = append(list, e.value(o, want[at:at+n]))
		at += n
	}
	v := e.to.AddOp(opgraph.OpTuple, g.OpText(op), e.local(g.Ops.Shape[op], want), list...)
	e.r.Place(v, op)
	e.made[k] = v
	e.r.Put(op, v)
	return v
}

// remake makes a free value in a cut.
func (e *emitter) remake(op opgraph.OpID, want spec) opgraph.OpID {
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
	var args []opgraph.Operand
	for i, o := range g.Operands(op) {
		args = append(args, opgraph.Operand{Op: e.value(o, []spec{d.arg(i, g.Shapes.Rank(g.OperandShape(o)))})})
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
func (e *emitter) op(op opgraph.OpID, kind opgraph.OpKind) opgraph.OpID {
	g := e.g
	args := g.Operands(op)
	out := e.out[op]
	operands := func(want func(i int) []spec) []opgraph.Operand {
		list := make([]opgraph.Operand, len(args))
		for i, o := range args {
			list[i].Op = e.value(o, want(i))
		}
		return list
	}
	planned := func(int) []spec { return nil }
	switch kind {
	case opgraph.OpWhile:
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], out), operands(func(int) []spec { return out }))
	case opgraph.OpCall:
		in := e.in[g.Called(op, opgraph.RoleToApply)]
		at := 0
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], out), operands(func(i int) []spec {
			n := leaves(&g.Shapes, g.OperandShape(args[i]))
			at += n
			return in[at-n : at]
		}))
	case opgraph.OpConditional:
		calls := g.Calls(op)
		return e.r.CopyAs(op, e.local(g.Ops.Shape[op], out), operands(func(i int) []spec {
			if i == 0 || i > len(calls) {
				return nil
			}
			return e.in[calls[i-1].Comp]
		}))
	case opgraph.OpGetTupleElement, opgraph.OpOptBarrier, opgraph.OpDomain, opgraph.OpAddDependency, opgraph.OpAfterAll:
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
		return e.r.CopyAs(op, shape, []opgraph.Operand{{Op: v}})
	}
	if m, ok := e.edge(op); ok {
		return e.cross(op, m)
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

// cross hands arrays over the edge of a manual region: each device's part is
// the same inside and outside.
func (e *emitter) cross(op opgraph.OpID, m edge) opgraph.OpID {
	g := e.g
	var list []opgraph.OpID
	for i, s := range arrays(&g.Shapes, g.Ops.Shape[op], nil) {
		v := e.value(g.Operands(op)[i], m.args[i:i+1])
		if shape := e.local(s, m.results[i:i+1]); !e.to.Shapes.SameArray(e.to.Ops.Shape[v], shape) {
			v = e.add(op, opgraph.OpCustomCall, shape, v)
			e.to.SetAttrStr(v, opgraph.AttrCustomCallTarget, "SPMDFullToShardShape")
		}
		list = append(list, v)
	}
	if !g.Shapes.IsTuple(g.Ops.Shape[op]) {
		return list[0]
	}
	return e.add(op, opgraph.OpTuple, e.local(g.Ops.Shape[op], m.results), list...)
}

// doneWhole reports whether d leaves nothing of an operator cut though an
// operand is.
func (e *emitter) doneWhole(op opgraph.OpID, d *decision) bool {
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
func (e *emitter) recutAll(op, v opgraph.OpID, out []spec) opgraph.OpID {
	if len(out) == 1 && !e.g.Shapes.IsTuple(e.g.Ops.Shape[op]) {
		return e.recut(op, v, e.g.Ops.Shape[op], spec{}, out[0])
	}
	return v
}

// sizes corrects the attributes that repeat sizes of dimensions.
func (e *emitter) sizes(op, v opgraph.OpID, kind opgraph.OpKind) {
	t := &e.to.Shapes
	dims := t.Dims(e.to.Ops.Shape[v])
	switch kind {
	case opgraph.OpSlice:
		cut := append([]int64(nil), e.to.Ints(v, opgraph.AttrSlice)...)
		whole := e.g.Shapes.Dims(e.g.Ops.Shape[op])
		for d := range dims {
			if dims[d] != whole[d] && 3*d+2 < len(cut) {
				cut[3*d], cut[3*d+1] = 0, dims[d]
			}
		}
		e.to.SetInts(v, opgraph.AttrSlice, cut...)
	case opgraph.OpDynamicSlice:
		e.to.SetInts(v, opgraph.AttrSliceSizes, dims...)
	case opgraph.OpGather:
		sizes := append([]int64(nil), e.to.Ints(v, opgraph.AttrSliceSizes)...)
		for d, n := range t.Dims(e.to.OperandShape(e.to.Operands(v)[0])) {
			if d < len(sizes) {
				sizes[d] = min(sizes[d], n)
			}
		}
		e.to.SetInts(v, opgraph.AttrSliceSizes, sizes...)
	}
}

// sum completes a result of which every device has a part of the sum: a
// reduce-scatter where the result is wanted cut along the same axes, else an
// all-reduce.
func (e *emitter) sum(op, v opgraph.OpID, over axisSet, have, want spec) (opgraph.OpID, spec) {
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
		v = e.collective(op, opgraph.OpReduceScatter, e.to.Array(e.to.Shapes.Elem(e.to.Ops.Shape[v]), dims...), v, cut, d)
		have.dims[d] |= cut
		over &^= cut
	}
	if over != 0 {
		v = e.collective(op, opgraph.OpAllReduce, e.to.Ops.Shape[v], v, over, -1)
	}
	return v, have
}

func (e *emitter) collective(op opgraph.OpID, kind opgraph.OpKind, shape opgraph.ShapeID, v opgraph.OpID, over axisSet, dim int) opgraph.OpID {
	c := e.add(op, kind, shape, v)
	e.to.SetReplicaGroups(c, e.ax.groups(over))
	e.to.SetInt(c, opgraph.AttrUseGlobalDeviceIDs, 1)
	if dim >= 0 {
		e.to.SetInts(c, opgraph.AttrDimensions, int64(dim))
	}
	if kind == opgraph.OpAllReduce || kind == opgraph.OpReduceScatter {
		e.to.AddCall(c, opgraph.RoleToApply, opgraph.NoComp)
		e.late = append(e.late, c)
	}
	e.counts[kind]++
	return c
}

func (e *emitter) add(op opgraph.OpID, kind opgraph.OpKind, shape opgraph.ShapeID, args ...opgraph.OpID) opgraph.OpID {
	v := e.to.AddOp(kind, "", shape, args...)
	e.r.Place(v, op)
	return v
}

// recut brings an array from one cut to another: all-to-all for axes that
// change dimension, all-gather for those that go, a slice for those that come.
func (e *emitter) recut(op, v opgraph.OpID, global opgraph.ShapeID, have, want spec) opgraph.OpID {
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
	shape := func() opgraph.ShapeID {
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
			x = e.collective(op, opgraph.OpAllToAll, shape(), x, moved, to)
		}
		if gone := now.dims[d] &^ want.at(d); gone != 0 {
			now.dims[d] &^= gone
			x = e.collective(op, opgraph.OpAllGather, shape(), x, gone, d)
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
		x = e.add(op, opgraph.OpSlice, s, x)
		e.to.SetInts(x, opgraph.AttrSlice, cut...)
	}
	e.made[k] = x
	return x
}

func (e *emitter) note(devices int64) string {
	var parts []string
	for _, k := range []opgraph.OpKind{opgraph.OpAllGather, opgraph.OpAllReduce, opgraph.OpReduceScatter, opgraph.OpAllToAll, opgraph.OpCollectivePermute} {
		if n := e.counts[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	text := fmt.Sprintf("one of %d devices, cut by the module's shardings", devices)
	if len(parts) > 0 {
		text += "; inserted " + strings.Join(parts, ", ")
	}
	if e.uneven {
		text += "; where the devices' parts differ, the largest"
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
