package stablehlo

import (
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

// This file reads the parts of Shardy (the sdy dialect) that say where data
// lies: meshes, shardings, and manual computations, whose regions have local
// shapes. Shardings become frontend attributes, in the spelling of XLA's own
// export: xla.sdy.meshes of the module, xla.sdy.sharding of an operator.

// mesh reads "sdy.mesh @name = <["x"=4]>".
func (p *parser) mesh(n *node) bool {
	if !p.expect("@", "after "+n.name) {
		return false
	}
	n.own().symbol = p.symbol()
	if p.accept("=") && p.peek() == '<' {
		text, ok := p.balanced()
		n.own().dense = text
		return ok
	}
	return p.err == nil
}

// manual reads "<"name">(%a) in_shardings=[…] out_shardings=[…] manual_axes={…}
// (%b: T) {ops} : (T) -> U".
func (p *parser) manual(n *node) bool {
	if p.peek() == '<' { // the name of a named_computation
		if _, ok := p.balanced(); !ok {
			return false
		}
	}
	if !p.expect("(", "after "+n.name) {
		return false
	}
	for !p.accept(")") {
		r, ok := p.use()
		if !ok {
			return false
		}
		n.operands = p.refs.add(n.operands, r)
		if !p.accept(",") && p.peek() != ')' {
			return p.fail("expected \",\" or \")\" after an operand, found %s", p.found())
		}
	}
	for p.more() && isLetter(p.s[p.pos]) {
		if !p.clause(n) {
			return false
		}
	}
	var args []arg
	if p.accept("(") {
		var ok bool
		if args, ok = p.arguments(); !ok {
			return false
		}
	}
	r, ok := p.region()
	if !ok {
		return false
	}
	r.args = append(args, r.args...)
	n.own().regions = append(n.regions, r)
	if !p.expect(":", "before the types of "+n.name) || !p.signature(n) {
		return false
	}
	n.loc = p.location()
	return p.err == nil
}

// manualCall adds a manual computation: a call of its region, with the
// conversions between global and local shapes that XLA puts around it. They
// move nothing.
func (e *emitter) manualCall(n *node) bool {
	g := e.g
	in, out := e.shardingList(n, "in_shardings"), e.shardingList(n, "out_shardings")
	named := n.op == "named_computation" // has global shapes
	params := g.Params(n.comps[0], nil)
	var args []opgraph.OpID
	for i, u := range append(append([]ref(nil), n.operands...), n.captures[0]...) {
		v, ok := e.use(u)
		if !ok {
			return false
		}
		if i >= len(params) {
			return e.failAt(n.pos, "%s has %d operands and a region of %d arguments", n.name, len(n.operands), len(params)-len(n.captures[0]))
		}
		if want := g.Ops.Shape[params[i]]; i < len(n.operands) && !g.Shapes.SameArray(g.Ops.Shape[v], want) {
			v = e.convertShape(n, "SPMDFullToShardShape", want, e.sharded(n, v, in, i), `{manual}`, "")
		} else if named && i < len(n.operands) {
			v = e.sharded(n, v, in, i)
		}
		args = append(args, v)
	}
	if len(args) != len(params) {
		return e.failAt(n.pos, "%s has %d operands and a region of %d arguments", n.name, len(args), len(params))
	}
	root := g.Comps.Root[n.comps[0]]
	call := g.AddOp(opgraph.OpCall, e.name(n.result), g.Ops.Shape[root], args...)
	e.place(call, n)
	g.AddCall(call, opgraph.RoleToApply, n.comps[0])
	results := []opgraph.OpID{call}
	if g.Shapes.IsTuple(g.Ops.Shape[call]) {
		results = results[:0]
		for i := range g.Shapes.Tuple(g.Ops.Shape[call]) {
			r := g.AddTupleElement("", call, i)
			e.place(r, n)
			results = append(results, r)
		}
	}
	if len(results) != len(n.out) {
		return e.failAt(n.pos, "%s has %d result types, its region returns %d values", n.name, len(n.out), len(results))
	}
	for i, r := range results {
		if !g.Shapes.SameArray(g.Ops.Shape[r], n.out[i]) {
			text := ""
			if i < len(out) {
				text = out[i]
			}
			results[i] = e.convertShape(n, "SPMDShardToFullShape", n.out[i], r, "", text)
		} else if named {
			results[i] = e.sharded(n, r, out, i)
		}
	}
	if n.results == 0 {
		return true
	}
	return e.bindValues(n, results)
}

// sharded marks v with the i-th sharding of a list.
func (e *emitter) sharded(n *node, v opgraph.OpID, list []string, i int) opgraph.OpID {
	if i >= len(list) {
		return v
	}
	return e.convertShape(n, "Sharding", e.g.Ops.Shape[v], v, "", list[i])
}

func (e *emitter) convertShape(n *node, target string, shape opgraph.ShapeID, v opgraph.OpID, sharding, sdy string) opgraph.OpID {
	op := e.g.AddOp(opgraph.OpCustomCall, "", shape, v)
	e.place(op, n)
	e.g.SetAttrStr(op, opgraph.AttrCustomCallTarget, target)
	if sharding != "" {
		e.g.SetAttrStr(op, opgraph.AttrSharding, sharding)
	}
	if sdy != "" {
		e.setSdy(op, "#sdy.sharding"+sdy)
	}
	return op
}

// shardingList splits "[<@mesh, [{"x"}]>, <…>]".
func (e *emitter) shardingList(n *node, key string) []string {
	a, ok := n.attr(key)
	if !ok {
		return nil
	}
	text := strings.TrimPrefix(e.resolve(a.val), "#sdy.sharding_per_value")
	text = strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">"))
	list := splitTop(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	for i, s := range list {
		list[i] = strings.TrimPrefix(s, "#sdy.sharding")
	}
	return list
}

// setSdy keeps a sharding of Shardy as XLA's export of it does.
func (e *emitter) setSdy(op opgraph.OpID, text string) {
	e.g.SetAttrStr(op, opgraph.AttrFrontend, "{xla.sdy.sharding="+strconv.Quote(text)+"}")
}

// setFrontend keeps the shardings of Shardy that were exported as frontend
// attributes: {xla.sdy.sharding = "…"}; of the edges of a manual computation,
// {xla.sdy.in_shardings = "…"}.
func (e *emitter) setFrontend(op opgraph.OpID, dict string) {
	var list []string
	for _, key := range []string{"xla.sdy.sharding", "xla.sdy.in_shardings", "xla.sdy.out_shardings"} {
		if v, ok := inDict(dict, key); ok {
			list = append(list, key+"="+strconv.Quote(unescape(strings.Trim(v, `"`))))
		}
	}
	if list != nil {
		e.g.SetAttrStr(op, opgraph.AttrFrontend, "{"+strings.Join(list, ",")+"}")
	}
}

// inDict returns the value of a key of "{key = value, …}".
func inDict(dict, key string) (string, bool) {
	dict = strings.TrimSpace(dict)
	return field("<"+strings.TrimSuffix(strings.TrimPrefix(dict, "{"), "}")+">", key)
}

// shardingOf gives op the sharding that the attributes of an argument or a
// result state.
func (e *emitter) shardingOf(op opgraph.OpID, dict string) {
	if v, ok := inDict(dict, "mhlo.sharding"); ok {
		e.g.SetAttrStr(op, opgraph.AttrSharding, unescape(strings.Trim(v, `"`)))
	}
	if v, ok := inDict(dict, "sdy.sharding"); ok {
		e.setSdy(op, e.resolve(v))
	} else if v, ok := inDict(dict, "mhlo.frontend_attributes"); ok {
		e.setFrontend(op, e.resolve(v))
	}
}

// results gives the operators that make the entry's results the shardings that
// its signature states, where they state none of their own, and the root those
// of all.
func (e *emitter) results(c opgraph.CompID, attrs []string) {
	g := e.g
	root := g.Comps.Root[c]
	list := []opgraph.Operand{{Op: root}}
	if g.Ops.Kind[root] == opgraph.OpTuple {
		list = g.Operands(root)
	}
	if len(list) != len(attrs) {
		return
	}
	for i, o := range list {
		if o.Path != 0 || g.Ops.Kind[o.Op] == opgraph.OpParameter || g.Shapes.IsTuple(g.Ops.Shape[o.Op]) ||
			g.AttrStr(o.Op, opgraph.AttrSharding) != "" || g.AttrStr(o.Op, opgraph.AttrFrontend) != "" {
			continue
		}
		e.shardingOf(o.Op, attrs[i])
	}
	if g.Ops.Kind[root] != opgraph.OpTuple {
		return
	}
	var hlo, sdy []string
	for _, a := range attrs {
		if v, ok := inDict(a, "mhlo.sharding"); ok {
			hlo = append(hlo, unescape(strings.Trim(v, `"`)))
		}
		if v, ok := inDict(a, "sdy.sharding"); ok {
			sdy = append(sdy, strings.TrimPrefix(e.resolve(v), "#sdy.sharding"))
		}
	}
	if len(hlo) == len(list) {
		g.SetAttrStr(root, opgraph.AttrSharding, "{"+strings.Join(hlo, ", ")+"}")
	}
	if len(sdy) == len(list) {
		e.setSdy(root, "#sdy.sharding_per_value<["+strings.Join(sdy, ", ")+"]>")
	}
}

// meshes keeps the meshes of a module; stated is its dictionary of frontend
// attributes.
func (e *emitter) meshes(ops []*node, stated string) {
	var list []string
	if v, ok := inDict(stated, "xla.sdy.meshes"); ok {
		text := unescape(strings.Trim(v, `"`))
		list = splitTop(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"))
	}
	for _, n := range ops {
		if n.op != "mesh" {
			continue
		}
		text, name := n.dense, n.symbol
		if a, ok := n.attr("mesh"); ok { // the generic form
			text = strings.TrimPrefix(e.resolve(a.val), "#sdy.mesh")
		}
		if text != "" && name != "" {
			list = append(list, name+" = #sdy.mesh"+text)
		}
	}
	if len(list) > 0 {
		value := "{xla.sdy.meshes=" + strconv.Quote("{"+strings.Join(list, ", ")+"}") + "}"
		e.g.ModuleAttrs = append(e.g.ModuleAttrs, opgraph.RawAttr{Key: e.g.Str("frontend_attributes"), Value: e.g.Str(value)})
	}
}
