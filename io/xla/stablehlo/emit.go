package stablehlo

import (
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

// emitter makes a graph of the nodes of one module. Every function and every
// region becomes a computation. HLO computations see only their parameters;
// where a region of StableHLO uses a value from around it, constants are
// repeated inside, and other values are handed in: as more elements of the
// loop state of a while, as the operand of a branch.
type emitter struct {
	*parser
	g       *opgraph.Graph
	funcs   map[string]opgraph.CompID
	late    []lateCall
	scalars map[string]opgraph.CompID // computations of "applies stablehlo.add"
	taken   map[string]int            // computation names in use
	env                               // values of the computation being filled
	scope   *scope
	locs    map[string]location // of aliases
}

type lateCall struct {
	op   opgraph.OpID
	i    int
	name string
	pos  int
}

// module fills the graph with the functions of a module.
func (e *emitter) module(ops []*node, pos int, frontend string) bool {
	e.funcs = map[string]opgraph.CompID{}
	e.scalars = map[string]opgraph.CompID{}
	e.taken = map[string]int{}
	e.locs = map[string]location{}
	e.meshes(ops, frontend)
	var entry, first *node
	for _, n := range ops {
		if n.name == "builtin.module" {
			return e.failAt(n.pos, "a module inside a module is not supported")
		}
		if n.name != "func.func" || len(n.regions) == 0 {
			continue // declarations, meshes and the like
		}
		e.taken[n.symbol] = 1 // no region may take it
		if first == nil {
			first = n
		}
		if n.symbol == "main" || entry == nil && isPublic(n) {
			entry = n
		}
	}
	if first == nil {
		return e.failAt(pos, "the module has no function with a body")
	}
	if entry == nil {
		entry = first
	}
	for _, n := range ops {
		if n.name == "func.func" && len(n.regions) > 0 && !e.function(n, n == entry) {
			return false
		}
	}
	e.g.Entry = e.funcs[entry.symbol]
	for _, l := range e.late {
		c, ok := e.funcs[l.name]
		if !ok {
			return e.failAt(l.pos, "function @%s does not exist or has no body", l.name)
		}
		e.g.SetCall(l.op, l.i, c)
	}
	return true
}

func isPublic(n *node) bool {
	for _, w := range n.words {
		if w == "public" {
			return true
		}
	}
	return false
}

// compName returns a name no other computation of the graph has.
func (e *emitter) compName(name string) string {
	if name == "" {
		name = "function"
	}
	n := e.taken[name]
	e.taken[name] = n + 1
	if n == 0 {
		return name
	}
	return e.compName(name + "." + strconv.Itoa(n))
}

func (e *emitter) function(n *node, entry bool) bool {
	if _, twice := e.funcs[n.symbol]; twice {
		return e.failAt(n.pos, "function @%s is defined twice", n.symbol)
	}
	r := n.regions[0]
	sc := newScope(nil, r)
	if !e.nested(r.ops, sc) {
		return false
	}
	c, ok := e.computation(n.symbol, n.pos, r, sc, nil, false)
	if !ok {
		return false
	}
	e.funcs[n.symbol] = c
	if entry {
		e.arguments(c, r)
		e.results(c, n.outAttrs)
	}
	return true
}

// arguments takes the attributes of the entry's arguments: shardings, and
// which output shares the buffer of which argument.
func (e *emitter) arguments(c opgraph.CompID, r *region) {
	g := e.g
	params := g.Params(c, nil)
	outputs := g.Shapes.Tuple(g.Ops.Shape[g.Comps.Root[c]])
	for i, a := range r.args {
		if a.attrs == "" {
			continue
		}
		e.shardingOf(params[i], a.attrs)
		v, ok := field("<"+a.attrs[1:len(a.attrs)-1]+">", "tf.aliasing_output")
		if !ok {
			continue
		}
		out, _, ok := e.intList(v)
		if !ok || len(out) != 1 || out[0] < 0 || out[0] >= int64(max(len(outputs), 1)) {
			continue // it names an output that is not there: no alias
		}
		alias := opgraph.Alias{Parameter: int32(i)}
		if g.Shapes.IsTuple(g.Ops.Shape[g.Comps.Root[c]]) {
			alias.Output = g.AddPath(out[0])
		}
		g.Aliases = append(g.Aliases, alias)
	}
}

// constantNode reports whether a value can be repeated in another
// computation at no cost: a scalar or splat constant.
func constantNode(n *node) bool {
	return n != nil && n.op == "constant" && n.results == 1 && !strings.Contains(n.denseText(), "[") && !strings.HasPrefix(n.denseText(), "dense_resource") && !strings.HasPrefix(n.denseText(), "sparse")
}

func (n *node) denseText() string {
	if n.dense != "" {
		return n.dense
	}
	a, _ := n.attr("value")
	return a.val
}

// captured returns the values of the regions that come from outside and are
// no constants.
func (e *emitter) captured(regions []*region, sc *scope) ([]ref, bool) {
	var out []ref
	seen := map[value]bool{}
	for _, r := range regions {
		for _, u := range freeValues(r) {
			def, ok := sc.find(u.name)
			if !ok {
				return nil, e.failAt(int(u.pos), "value %%%s is not defined before", e.name(u.name))
			}
			if !constantNode(def) && !seen[value{u.name, u.i}] {
				seen[value{u.name, u.i}] = true
				out = append(out, u)
			}
		}
	}
	return out, true
}

// nested makes the computations of the regions of ops, innermost first.
func (e *emitter) nested(ops []*node, sc *scope) bool {
	for _, n := range ops {
		switch {
		case n.op == "reduce" && n.symbol != "" && len(n.regions) == 0:
			c, ok := e.scalarFunction(n)
			if !ok {
				return false
			}
			n.own().comps = append(n.comps, c)
		case n.op == "while" && len(n.regions) != 2:
			return e.failAt(n.pos, "while has %d regions, want 2", len(n.regions))
		case n.op == "while":
			shared, ok := e.captured(n.regions, sc)
			if !ok {
				return false
			}
			n.own().captures = [][]ref{shared}
			if !e.regionOf(n, 0, sc, "while_cond", shared, false) || !e.regionOf(n, 1, sc, "while_body", shared, true) {
				return false
			}
		default:
			for i, r := range n.regions {
				caps, ok := e.captured([]*region{r}, sc)
				if !ok || !e.handIn(n, r, caps, sc) {
					return false
				}
				n.own().captures = append(n.captures, caps)
				if !e.regionOf(n, i, sc, n.op, caps, false) {
					return false
				}
			}
		}
	}
	return true
}

// isBranch reports whether the regions of an operation take what they use from
// around them as one tuple; a while does too.
func (n *node) isBranch() bool { return n.op == "case" || n.op == "if" }

// isManual reports whether they take it as more arguments.
func (n *node) isManual() bool { return n.op == "manual_computation" || n.op == "named_computation" }

// handIn lets a region of n use values from around it: as more arguments of a
// manual computation, as a tuple of a branch. Other regions have none.
func (e *emitter) handIn(n *node, r *region, caps []ref, sc *scope) bool {
	refuse := func(u ref) bool {
		return e.failAt(int(u.pos), "the region of %s uses %%%s from outside it", n.name, e.name(u.name))
	}
	switch {
	case n.isManual():
		for _, u := range caps {
			s, found := e.shapeOf(u, sc)
			if !found || u.i > 0 {
				return refuse(u)
			}
			r.args = append(r.args, arg{name: u.name, shape: s, pos: int(u.pos)})
		}
	case len(caps) > 0 && !n.isBranch():
		return refuse(caps[0])
	}
	return true
}

// regionOf makes the computation of region i of n; see computation.
func (e *emitter) regionOf(n *node, i int, sc *scope, label string, caps []ref, hand bool) bool {
	r := n.regions[i]
	inner := newScope(sc, r)
	if !e.nested(r.ops, inner) {
		return false
	}
	if n.isManual() {
		caps = nil
	} else if caps == nil && (n.op == "while" || n.isBranch()) {
		caps = []ref{}
	}
	c, ok := e.computation(label, r.pos, r, inner, caps, hand)
	if ok {
		n.own().comps = append(n.comps, c)
	}
	return ok
}

// scalarFunction returns the computation of "applies stablehlo.add".
func (e *emitter) scalarFunction(n *node) (opgraph.CompID, bool) {
	kind, ok := opKind(n.symbol)
	if !ok || len(n.out) != 1 || e.g.Shapes.IsTuple(n.out[0]) {
		return 0, e.failAt(n.pos, "reduce applies %q", n.symbol)
	}
	elem := e.g.Shapes.Elem(n.out[0])
	key := kind.String() + "_" + elem.String()
	if c, ok := e.scalars[key]; ok {
		return c, true
	}
	g := e.g
	s := g.Array(elem)
	c := g.BeginComputation(e.compName("region_" + key))
	x, y := g.AddParameter("lhs", s, 0), g.AddParameter("rhs", s, 1)
	g.AddOp(kind, kind.String(), s, x, y)
	g.EndComputation(opgraph.NoOp)
	e.scalars[key] = c
	return c, true
}

// computation adds the computation of a function or region. caps is nil for
// one parameter an argument; else there is one tuple parameter, of the
// arguments and then the captured values, and hand says that the result ends
// with the captured values too (the body of a while).
func (e *emitter) computation(name string, pos int, r *region, sc *scope, caps []ref, hand bool) (opgraph.CompID, bool) {
	g := e.g
	e.env.reset(len(e.names.text))
	e.scope = sc
	if sc.up != nil { // a region; functions keep their names
		name = e.compName(name)
	}
	c := g.BeginComputation(name)
	line := uint32(e.lineAt(pos))
	g.Comps.TextLine[c] = line
	ok := true
	if caps == nil {
		for i, a := range r.args {
			op := g.AddParameter(e.name(a.name), a.shape, i)
			g.Ops.TextLine[op] = line
			ok = ok && e.define(a.name, a.pos, op)
		}
	} else {
		shapes := make([]opgraph.ShapeID, 0, len(r.args)+len(caps))
		for _, a := range r.args {
			shapes = append(shapes, a.shape)
		}
		for _, u := range caps {
			s, found := e.shapeOf(u, sc)
			if !found {
				g.EndComputation(opgraph.NoOp)
				return c, e.failAt(int(u.pos), "value %%%s#%d is not defined before", e.name(u.name), u.i)
			}
			shapes = append(shapes, s)
		}
		state := g.AddParameter("state", g.Shapes.AddTuple(shapes), 0)
		g.Ops.TextLine[state] = line
		for i, a := range r.args {
			op := g.AddTupleElement(e.name(a.name), state, i)
			g.Ops.TextLine[op] = line
			ok = ok && e.define(a.name, a.pos, op)
		}
		for i, u := range caps {
			op := g.AddTupleElement(e.name(u.name)+"."+strconv.Itoa(int(u.i)), state, len(r.args)+i)
			g.Ops.TextLine[op] = line
			e.env.bindOne(u, op)
		}
	}
	root := opgraph.NoOp
	if ok {
		root, ok = e.block(r, caps, hand)
	}
	g.EndComputation(root)
	return c, ok && e.err == nil
}

// shapeOf returns the shape of a value from its definition.
func (e *emitter) shapeOf(u ref, sc *scope) (opgraph.ShapeID, bool) {
	for ; sc != nil; sc = sc.up {
		n, ok := sc.own(u.name)
		if !ok {
			continue
		}
		if n != nil {
			if i := n.resultIndex(u.name, int(u.i)); i < len(n.out) {
				return n.out[i], true
			}
			return 0, false
		}
		if u.i > 0 {
			return 0, false // an argument is one value
		}
		return sc.argShape(u.name)
	}
	return 0, false
}

// block adds the operations of a region and returns its root.
func (e *emitter) block(r *region, caps []ref, hand bool) (opgraph.OpID, bool) {
	for i, n := range r.ops {
		if n.op == "return" || n.op == "yield" {
			if i != len(r.ops)-1 {
				return 0, e.failAt(r.ops[i+1].pos, "an operation after the return")
			}
			var out []opgraph.OpID
			for _, u := range n.operands {
				v, ok := e.use(u)
				if !ok {
					return 0, false
				}
				out = append(out, v)
			}
			if hand {
				for _, u := range caps {
					v, ok := e.use(u)
					if !ok {
						return 0, false
					}
					out = append(out, v)
				}
			}
			if len(out) == 1 && !hand {
				return out[0], true
			}
			op := e.g.AddTuple("", out...)
			e.place(op, n)
			return op, true
		}
		if !e.op(n) {
			return 0, false
		}
	}
	return 0, e.failAt(r.pos, "a region without a return")
}

// use returns the operator of a value; a constant from outside is repeated.
func (e *emitter) use(u ref) (opgraph.OpID, bool) {
	if v := e.env.value(u); v != opgraph.NoOp {
		return v, true
	}
	if n, ok := e.scope.find(u.name); ok && constantNode(n) && u.i == 0 {
		if own, _ := e.scope.own(u.name); own == nil {
			if !e.op(n) {
				return 0, false
			}
			return e.env.value(u), true
		}
	}
	return 0, e.failAt(int(u.pos), "value %%%s is not defined before", e.name(u.name))
}

// define binds a name to one operator.
func (e *emitter) define(name nameID, pos int, op opgraph.OpID) bool {
	return e.env.define(name, binding{one: op}) || e.failAt(pos, "value %%%s is defined twice", e.name(name))
}

// bind gives the results of n to their names: the operator itself for one
// result, the elements of its tuple for several.
func (e *emitter) bind(n *node, op opgraph.OpID) bool {
	if n.results == 0 {
		return true
	}
	if n.results == 1 {
		return e.define(n.result, n.pos, op)
	}
	return e.bindElements(n, op)
}

func (e *emitter) bindElements(n *node, op opgraph.OpID) bool {
	v := make([]opgraph.OpID, n.results)
	for _, r := range n.resultNames() {
		for i := range r.count {
			name := e.name(r.name)
			if r.count > 1 || r.first == 0 { // the tuple has the first name
				name += "." + strconv.Itoa(i)
			}
			v[r.first+i] = e.g.AddTupleElement(name, op, r.first+i)
			e.place(v[r.first+i], n)
		}
	}
	return e.bindValues(n, v)
}

// bindValues gives one operator a result to the names of n.
func (e *emitter) bindValues(n *node, v []opgraph.OpID) bool {
	for _, r := range n.resultNames() {
		if !e.env.define(r.name, binding{list: v[r.first : r.first+r.count : r.first+r.count]}) {
			return e.failAt(n.pos, "value %%%s is defined twice", e.name(r.name))
		}
	}
	return true
}

// place sets the line and the metadata of an operator.
func (e *emitter) place(op opgraph.OpID, n *node) {
	t := &e.g.Ops
	t.TextLine[op] = uint32(e.lineAt(n.pos))
	if n.loc == "" {
		return
	}
	l := e.resolveLoc(n.loc, 0)
	if l.name != "" {
		t.OpName[op] = e.g.Str(l.name)
	}
	if l.file != "" {
		t.SourceFile[op], t.SourceLine[op] = e.g.Str(l.file), l.line
	}
}

// location is a name and a place in a source file, each "" where not known.
type location struct {
	name, file string
	line       uint32
}

// resolveLoc finds a name and a place in a location: "file":line:col,
// "name"(child), callsite(a at b), fused[a, b], or an alias of one. An alias is
// resolved once, however often others name it, and says nothing to itself.
func (e *emitter) resolveLoc(text string, depth int) (l location) {
	text = strings.TrimSpace(text)
	if depth > maxDepth {
		return l
	}
	if strings.HasPrefix(text, "#") {
		l, seen := e.locs[text]
		if v, ok := e.alias[text]; ok && !seen {
			e.locs[text] = l
			l = e.resolveLoc(v, depth+1)
			e.locs[text] = l
		}
		return l
	}
	if in, ok := strings.CutPrefix(text, "loc("); ok {
		return e.resolveLoc(strings.TrimSuffix(in, ")"), depth+1)
	}
	c := scanner{s: text}
	switch {
	case strings.HasPrefix(text, `"`):
		s, ok := c.quoted()
		if !ok {
			return l
		}
		if rest, is := strings.CutPrefix(text[c.pos:], ":"); is {
			n, _, _ := strings.Cut(rest, ":")
			n, _, _ = strings.Cut(n, " ")
			line, _ := strconv.ParseUint(n, 10, 31) // HLO has no larger ones
			return location{file: s, line: uint32(line)}
		}
		if c.peek() == '(' {
			if in, ok := c.balanced(); ok {
				l = e.resolveLoc(in[1:len(in)-1], depth+1)
			}
		}
		l.name = s
	case strings.HasPrefix(text, "callsite("):
		in := strings.TrimSuffix(strings.TrimPrefix(text, "callsite("), ")")
		if i := strings.Index(in, " at "); i >= 0 {
			in = in[:i]
		}
		return e.resolveLoc(in, depth+1)
	case strings.HasPrefix(text, "fused"):
		if i := strings.IndexByte(text, '['); i >= 0 {
			for _, part := range splitTop(strings.TrimSuffix(text[i+1:], "]")) {
				p := e.resolveLoc(part, depth+1)
				if l.name == "" {
					l.name = p.name
				}
				if l.file == "" {
					l.file, l.line = p.file, p.line
				}
			}
		}
	}
	return l
}
