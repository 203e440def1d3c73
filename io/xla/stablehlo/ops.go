package stablehlo

import (
	"strings"

	"perfsim/components/opgraph"
)

// opKind maps the name of an operation of StableHLO, MHLO or CHLO to an
// opcode of HLO: mostly by replacing '_' with '-'.
func opKind(name string) (opgraph.OpKind, bool) {
	dialect, op, ok := strings.Cut(name, ".")
	if !ok {
		return 0, false
	}
	switch dialect {
	case "stablehlo", "mhlo", "chlo":
	case "arith", "math":
		k, ok := elementwise[name]
		return k, ok
	default:
		return 0, false
	}
	switch op {
	case "after_all", "create_token":
		return opgraph.OpAfterAll, true
	case "broadcast_in_dim":
		return opgraph.OpBroadcast, true
	case "case", "if":
		return opgraph.OpConditional, true
	case "composite":
		return opgraph.OpCall, true
	case "dot_general":
		return opgraph.OpDot, true
	case "optimization_barrier":
		return opgraph.OpOptBarrier, true
	case "uniform_quantize", "uniform_dequantize":
		// Scale, zero point and conversion of an element: one instruction does
		// two operations with constants and converts its result.
		return opgraph.OpConvert, true
	case "top_k":
		return opgraph.OpTopK, true
	case "square":
		return opgraph.OpMultiply, dialect == "chlo"
	case "return", "fusion", "async_start", "async_update", "async_done":
		return 0, false
	}
	if dialect == "chlo" {
		op = strings.TrimPrefix(op, "broadcast_")
	}
	return opgraph.ParseOpKind(strings.ReplaceAll(op, "_", "-"))
}

// op adds one operation to the computation being filled.
func (e *emitter) op(n *node) bool {
	g := e.g
	if n.results > 0 && len(n.out) != int(n.results) && n.foreign {
		return e.failAt(n.pos, "%s", notRead(n.name))
	}
	if n.results > 0 && len(n.out) != int(n.results) {
		return e.failAt(n.pos, "%s has %d results and %d result types", n.name, n.results, len(n.out))
	}
	switch n.op {
	case "constant":
		return e.constant(n)
	case "while":
		return e.while(n)
	case "manual_computation", "named_computation":
		if n.dialect != "sdy" {
			break
		}
		if len(n.comps) != 1 {
			return e.failAt(n.pos, "%s has %d regions, want 1", n.name, len(n.comps))
		}
		return e.manualCall(n)
	case "case", "if":
		if len(n.regions) > 0 {
			return e.branches(n)
		}
	}
	args := make([]opgraph.OpID, 0, 8)
	for _, u := range n.operands {
		v, ok := e.use(u)
		if !ok {
			return false
		}
		args = append(args, v)
	}
	var shape opgraph.ShapeID
	if len(n.out) == 1 {
		shape = n.out[0]
	} else {
		shape = g.Shapes.AddTuple(n.out)
	}
	kind, known := n.kind, n.known
	name := e.name(n.result)
	switch n.name {
	case "func.call":
		kind, known = opgraph.OpCall, true
	case "sdy.sharding_group":
		return true // it says that values are sharded alike
	case "sdy.propagation_barrier":
		kind, known = opgraph.OpOptBarrier, true
	case "sdy.sharding_constraint", "sdy.reshard", "sdy.all_gather", "sdy.all_slice", "sdy.all_reduce", "sdy.all_to_all",
		"sdy.collective_permute", "sdy.reduce_scatter", "sdy.sharded_to_unreduced", "sdy.replicated_to_unreduced":
		// Shardy's collectives have global shapes; what they move follows from
		// the sharding of their result.
		kind, known = opgraph.OpCustomCall, true
	case "chlo.square":
		if len(args) == 1 {
			args = append(args, args[0])
		}
	case "arith.cmpf", "arith.cmpi": // the type is that of the operands
		if len(n.out) == 1 && len(n.in) == 0 {
			shape = g.Array(opgraph.ElemPred, g.Shapes.Dims(n.out[0])...)
		}
	}
	if known && n.dialect == "chlo" && strings.HasPrefix(n.op, "broadcast_") {
		return e.broadcasting(n, kind, args, shape)
	}
	switch kind {
	case opgraph.OpSend:
		return e.send(n, args)
	case opgraph.OpRecv:
		return e.recv(n, args)
	case opgraph.OpBroadcast:
		if n.op == "broadcast_in_dim" {
			return e.broadcast(n, args, shape)
		}
	case opgraph.OpOptBarrier: // HLO's takes one value, a tuple of several
		if len(args) > 1 {
			t := g.AddTuple("", args...)
			e.place(t, n)
			args = []opgraph.OpID{t}
		}
	case opgraph.OpOutfeed:
		if len(args) != 2 && len(args) > 0 {
			data := g.AddTuple("", args[:len(args)-1]...)
			e.place(data, n)
			args = []opgraph.OpID{data, args[len(args)-1]}
		}
	}
	op := g.AddOp(kind, name, shape, args...)
	e.place(op, n)
	if !known {
		g.SetAttrStr(op, opgraph.AttrOpcode, n.name)
		if n.op == "dynamic_broadcast_in_dim" && !e.setInts(n, op, opgraph.AttrDimensions, "broadcast_dimensions", "dims") {
			return false
		}
	}
	for i, c := range n.comps {
		role := opgraph.RoleToApply
		if kind == opgraph.OpSelectAndScatter {
			role = [2]opgraph.CallRole{opgraph.RoleSelect, opgraph.RoleScatter}[min(i, 1)]
		}
		g.AddCall(op, role, c)
	}
	if !e.attributes(n, op) {
		return false
	}
	return e.bind(n, op)
}

// broadcast adds broadcast_in_dim.
func (e *emitter) broadcast(n *node, args []opgraph.OpID, shape opgraph.ShapeID) bool {
	dims, _, _, ok := e.ints(n, "broadcast_dimensions", "dims")
	if !ok {
		return false
	}
	if len(args) != 1 {
		return e.failAt(n.pos, "%s has %d operands, want 1", n.name, len(args))
	}
	op, ok := e.stretch(n, e.name(n.result), args[0], dims, shape)
	return ok && e.bind(n, op)
}

// stretch adds a broadcast of src to a shape; dims says where its dimensions
// go. Dimensions of size 1 that are stretched are taken away by a reshape
// first: HLO's broadcast only adds dimensions.
func (e *emitter) stretch(n *node, name string, src opgraph.OpID, dims []int64, shape opgraph.ShapeID) (opgraph.OpID, bool) {
	g := e.g
	from, to := g.Shapes.Dims(g.Ops.Shape[src]), g.Shapes.Dims(shape)
	if len(dims) != len(from) {
		return 0, e.failAt(n.pos, "%s names %d dimensions for an operand of rank %d", n.name, len(dims), len(from))
	}
	var kept, size []int64
	for i, d := range dims {
		if d < 0 || d >= int64(len(to)) {
			return 0, e.failAt(n.pos, "%s: dimension %d is outside rank %d", n.name, d, len(to))
		}
		if from[i] == 1 && to[d] != 1 {
			continue
		}
		kept, size = append(kept, d), append(size, from[i])
	}
	if len(kept) != len(dims) {
		src = g.AddOp(opgraph.OpReshape, "", g.Array(g.Shapes.Elem(g.Ops.Shape[src]), size...), src)
		e.place(src, n)
	}
	op := g.AddOp(opgraph.OpBroadcast, name, shape, src)
	g.SetInts(op, opgraph.AttrDimensions, kept...)
	e.place(op, n)
	return op, true
}

// constant adds a constant. A splat is a scalar and its broadcast: there is
// no array of equal values to be loaded.
func (e *emitter) constant(n *node) bool {
	g := e.g
	text := e.resolve(n.denseText())
	if len(n.out) != 1 {
		return e.failAt(n.pos, "constant with %d types", len(n.out))
	}
	shape := n.out[0]
	elem := g.Shapes.Elem(shape)
	body := text
	if strings.HasPrefix(text, "dense<") {
		c := scanner{s: text, pos: len("dense")}
		in, ok := c.balanced()
		if !ok {
			return e.failAt(n.pos, "dense value is not closed")
		}
		body = strings.TrimSpace(in[1 : len(in)-1])
	} else if strings.HasPrefix(text, "dense_resource<") || strings.HasPrefix(text, "sparse<") {
		body = ""
	} else {
		body, _, _ = strings.Cut(text, ":")
		body = strings.TrimSpace(body)
	}
	scalar := g.Shapes.Rank(shape) == 0
	splat := body != "" && body[0] != '[' && body[0] != '"' && body[0] != '('
	if scalar || !splat {
		op := g.AddOp(opgraph.OpConstant, e.name(n.result), shape)
		e.place(op, n)
		if scalar && body != "" && body[0] != '"' && body[0] != '(' && !scalarValue(g, op, elem, strings.Trim(body, "[]")) {
			return e.failAt(n.pos, "constant %q is no value of %s", clip(body), g.ShapeText(shape))
		}
		return e.bind(n, op)
	}
	one := g.AddOp(opgraph.OpConstant, e.name(n.result)+".value", g.Array(elem))
	e.place(one, n)
	if !scalarValue(g, one, elem, body) {
		return e.failAt(n.pos, "constant %q is no value of %s", clip(body), g.ShapeText(shape))
	}
	op := g.AddOp(opgraph.OpBroadcast, e.name(n.result), shape, one)
	g.SetInts(op, opgraph.AttrDimensions)
	e.place(op, n)
	return e.bind(n, op)
}

// while adds a loop over a tuple: the loop values, then what the regions use
// from outside.
func (e *emitter) while(n *node) bool {
	g := e.g
	var args []opgraph.OpID
	for _, u := range append(append([]ref(nil), n.operands...), n.captures[0]...) {
		v, ok := e.use(u)
		if !ok {
			return false
		}
		args = append(args, v)
	}
	if len(n.out) != len(n.operands) || n.results != 0 && int(n.results) != len(n.out) {
		return e.failAt(n.pos, "while of %d values has %d types and %d results", len(n.operands), len(n.out), n.results)
	}
	state := g.AddTuple("", args...)
	e.place(state, n)
	op := g.AddOp(opgraph.OpWhile, e.name(n.result), g.Ops.Shape[state], state)
	e.place(op, n)
	g.AddCall(op, opgraph.RoleCondition, n.comps[0])
	g.AddCall(op, opgraph.RoleBody, n.comps[1])
	if n.results == 0 {
		return true
	}
	return e.bindElements(n, op)
}

// branches adds a conditional: each branch takes the tuple of what it uses
// from outside.
func (e *emitter) branches(n *node) bool {
	g := e.g
	if len(n.operands) != 1 {
		return e.failAt(n.pos, "%s has %d operands, want 1", n.name, len(n.operands))
	}
	sel, ok := e.use(n.operands[0])
	if !ok {
		return false
	}
	args := []opgraph.OpID{sel}
	for _, caps := range n.captures {
		var elems []opgraph.OpID
		for _, u := range caps {
			v, ok := e.use(u)
			if !ok {
				return false
			}
			elems = append(elems, v)
		}
		t := g.AddTuple("", elems...)
		e.place(t, n)
		args = append(args, t)
	}
	var shape opgraph.ShapeID
	if len(n.out) == 1 {
		shape = n.out[0]
	} else {
		shape = g.Shapes.AddTuple(n.out)
	}
	op := g.AddOp(opgraph.OpConditional, e.name(n.result), shape, args...)
	e.place(op, n)
	for _, c := range n.comps {
		g.AddCall(op, opgraph.RoleBranch, c)
	}
	return e.bind(n, op)
}

// send adds send and send-done: StableHLO has one operation for both.
func (e *emitter) send(n *node, args []opgraph.OpID) bool {
	g := e.g
	if len(args) == 0 {
		return e.failAt(n.pos, "send without operands")
	}
	token := args[len(args)-1]
	data := args[0]
	if len(args) != 2 {
		data = g.AddTuple("", args[:len(args)-1]...)
		e.place(data, n)
	}
	tok := g.Array(opgraph.ElemToken)
	shape := g.Shapes.AddTuple([]opgraph.ShapeID{g.Ops.Shape[data], g.Array(opgraph.ElemU32), tok})
	op := g.AddOp(opgraph.OpSend, "", shape, data, token)
	e.place(op, n)
	if !e.attributes(n, op) {
		return false
	}
	done := g.AddOp(opgraph.OpSendDone, e.name(n.result), tok, op)
	e.place(done, n)
	return e.bind(n, done)
}

// recv likewise; the results are the data and a token.
func (e *emitter) recv(n *node, args []opgraph.OpID) bool {
	g := e.g
	if len(args) != 1 || len(n.out) < 1 {
		return e.failAt(n.pos, "recv with %d operands and %d results", len(args), len(n.out))
	}
	data := n.out[0]
	if len(n.out) != 2 {
		data = g.Shapes.AddTuple(n.out[:len(n.out)-1])
	}
	tok := g.Array(opgraph.ElemToken)
	op := g.AddOp(opgraph.OpRecv, "", g.Shapes.AddTuple([]opgraph.ShapeID{data, g.Array(opgraph.ElemU32), tok}), args[0])
	e.place(op, n)
	if !e.attributes(n, op) {
		return false
	}
	done := g.AddOp(opgraph.OpRecvDone, "", g.Shapes.AddTuple([]opgraph.ShapeID{data, tok}), op)
	e.place(done, n)
	if n.results == 0 {
		return true
	}
	v := make([]opgraph.OpID, n.results)
	for i := range v {
		switch {
		case i == len(v)-1:
			v[i] = g.AddTupleElement("", done, 1)
		case n.results == 2:
			v[i] = g.AddTupleElement("", done, 0)
		default:
			t := g.AddTupleElement("", done, 0)
			e.place(t, n)
			v[i] = g.AddTupleElement("", t, i)
		}
		e.place(v[i], n)
	}
	return e.bindValues(n, v)
}
