package spmd

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"perfsim/components/opgraph"
)

// planner decides how every array of a graph is cut.
type planner struct {
	g      *opgraph.Graph
	ax     axes
	ann    map[opgraph.OpID][]spec // stated, one a leaf
	out    [][]spec                // by operator, one a leaf
	in     map[opgraph.CompID][]spec
	result map[opgraph.CompID][]spec
	meshes map[string]mesh
}

// leaves returns the number of arrays (and tokens) of a shape.
func leaves(t *opgraph.ShapeTable, s opgraph.ShapeID) int {
	if e := t.Elem(s); e != opgraph.ElemTuple && e != opgraph.ElemBuffer {
		return 1
	}
	n := 0
	for _, m := range t.Tuple(s) {
		n += leaves(t, m)
	}
	return n
}

// arrays appends the array shapes of a shape in order.
func arrays(t *opgraph.ShapeTable, s opgraph.ShapeID, dst []opgraph.ShapeID) []opgraph.ShapeID {
	if e := t.Elem(s); e != opgraph.ElemTuple && e != opgraph.ElemBuffer {
		return append(dst, s)
	}
	for _, m := range t.Tuple(s) {
		dst = arrays(t, m, dst)
	}
	return dst
}

var unspecified = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`unspecified_dims=\[([\d,]*)\]`) })

// annotations reads the shardings of every operator.
func (p *planner) annotations() error {
	g := p.g
	for op := range opgraph.OpID(g.NumOps()) {
		var list []spec
		var err error
		if text := g.AttrStr(op, opgraph.AttrSharding); text != "" {
			list, err = p.ax.parseHLO(text)
		}
		if text := sdyText(g.AttrStr(op, opgraph.AttrFrontend), "sharding"); err == nil && text != "" {
			var other []spec
			if other, err = p.ax.parseSdy(text, p.meshes); list == nil {
				list = other
			}
		}
		if err != nil {
			return err
		}
		if list == nil {
			continue
		}
		shapes := arrays(&g.Shapes, g.Ops.Shape[op], nil)
		for len(list) == 1 && len(list) < len(shapes) {
			list = slices.Repeat(list, len(shapes))
		}
		if len(list) != len(shapes) {
			continue
		}
		for i, s := range list {
			for d, cut := range s.dims {
				if cut != 0 && d >= g.Shapes.Rank(shapes[i]) {
					list[i] = spec{}
					break
				}
			}
		}
		if m := unspecified().FindStringSubmatch(g.AttrStr(op, opgraph.AttrBackendConfig)); m != nil && target(g, op) == "Sharding" {
			open, _ := numbers(m[1])
			for _, d := range open {
				list[0].open |= 1 << min(d, 63)
			}
		}
		p.ann[op] = list
	}
	return nil
}

// backward states for an operator what its one user, a sharding constraint or
// an elementwise operator, states for the same array.
func (p *planner) backward() {
	g := p.g
	users := make([]uint8, g.NumOps())
	for op := range opgraph.OpID(g.NumOps()) {
		for _, o := range g.Operands(op) {
			users[o.Op] = min(users[o.Op]+1, 2)
		}
	}
	for op := opgraph.OpID(g.NumOps()); op > 0; {
		op--
		ann, ok := p.ann[op]
		if !ok || len(ann) != 1 || ann[0].used() == 0 || !(g.Ops.Kind[op].IsElementwise() || target(g, op) == "Sharding") {
			continue
		}
		for _, o := range g.Operands(op) {
			if _, has := p.ann[o.Op]; !has && o.Path == 0 && users[o.Op] == 1 && g.Shapes.SameDims(g.Ops.Shape[o.Op], g.Ops.Shape[op]) && !g.Shapes.IsTuple(g.Ops.Shape[o.Op]) {
				if k := g.Ops.Kind[o.Op]; k != opgraph.OpGetTupleElement && (k != opgraph.OpCustomCall || target(g, o.Op) == "Sharding") {
					p.ann[o.Op] = ann
				}
			}
		}
	}
}

// Shardy's marks of the edges of a manual region, in XLA's export of it.
const (
	globalToLocal = "xla.sdy.GlobalToLocalShape"
	localToGlobal = "xla.sdy.LocalToGlobalShape"
)

// target returns the target of a custom call; "" for other operators, and for
// the partitioner's marks where they have not one array. Shardy's other marks
// in XLA's export are constraints.
func target(g *opgraph.Graph, op opgraph.OpID) string {
	if g.Ops.Kind[op] != opgraph.OpCustomCall {
		return ""
	}
	t := g.AttrStr(op, opgraph.AttrCustomCallTarget)
	if strings.HasPrefix(t, "xla.sdy.") && t != globalToLocal && t != localToGlobal {
		t = "Sharding"
	}
	switch t {
	case "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape":
		args := g.Operands(op)
		if len(args) != 1 || g.Shapes.Rank(g.OperandShape(args[0])) != g.Shapes.Rank(g.Ops.Shape[op]) || g.Shapes.IsTuple(g.OperandShape(args[0])) || g.Shapes.IsTuple(g.Ops.Shape[op]) {
			return ""
		}
		if t == "Sharding" && !g.Shapes.SameDims(g.OperandShape(args[0]), g.Ops.Shape[op]) {
			return ""
		}
	}
	return t
}

// operand returns the specs of an operand.
func (p *planner) operand(o opgraph.Operand) []spec {
	list, s := p.out[o.Op], p.g.Ops.Shape[o.Op]
	for _, i := range p.g.Path(o.Path) {
		list, s = part(&p.g.Shapes, list, s, int(i))
	}
	return list
}

// part returns the leaves of element i of a tuple.
func part(t *opgraph.ShapeTable, list []spec, s opgraph.ShapeID, i int) ([]spec, opgraph.ShapeID) {
	at := 0
	for k, m := range t.Tuple(s) {
		n := leaves(t, m)
		if k == i {
			return list[at : at+n], m
		}
		at += n
	}
	return nil, 0
}

var errDeep = errors.New("its computations are nested too deep")

// comp plans a computation whose parameters are cut as in says, one spec a
// leaf of all parameters.
func (p *planner) comp(c opgraph.CompID, in []spec, depth int) error {
	if depth > 64 {
		return errDeep
	}
	g := p.g
	for i := range in {
		in[i].free = false // values do not move into another computation
	}
	p.in[c] = in
	at := map[opgraph.OpID]int{}
	n := 0
	for _, op := range g.Params(c, nil) {
		at[op] = n
		n += leaves(&g.Shapes, g.Ops.Shape[op])
	}
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		var list []spec
		if g.Ops.Kind[op] == opgraph.OpParameter {
			list = in[at[op] : at[op]+leaves(&g.Shapes, g.Ops.Shape[op])]
		} else {
			var err error
			if list, err = p.op(op, depth); err != nil {
				return err
			}
		}
		p.out[op] = list
	}
	p.result[c] = p.out[g.Comps.Root[c]]
	return nil
}

// op returns how the results of an operator are cut.
func (p *planner) op(op opgraph.OpID, depth int) ([]spec, error) {
	g := p.g
	args := g.Operands(op)
	var all []spec
	for _, o := range args {
		all = append(all, p.operand(o)...)
	}
	n := leaves(&g.Shapes, g.Ops.Shape[op])
	kind := g.Ops.Kind[op]
	switch kind {
	case opgraph.OpTuple, opgraph.OpOptBarrier, opgraph.OpDomain:
		if ann := p.ann[op]; kind == opgraph.OpTuple && op == g.Comps.Root[g.Entry] && len(ann) == n {
			return ann, nil // what the module returns
		}
		return all, nil
	case opgraph.OpAddDependency:
		return p.operand(args[0]), nil
	case opgraph.OpGetTupleElement:
		list, _ := part(&g.Shapes, p.operand(args[0]), g.OperandShape(args[0]), int(g.Ops.Index[op]))
		return list, nil
	case opgraph.OpWhile:
		return p.while(op, slices.Clone(all), depth)
	case opgraph.OpCall:
		c := g.Called(op, opgraph.RoleToApply)
		if in, ok := p.in[c]; ok && len(in) == len(all) {
			all = in // called before: its operands are cut as then
		}
		if err := p.comp(c, slices.Clone(all), depth+1); err != nil {
			return nil, err
		}
		return whole(p.result[c]), nil
	case opgraph.OpConditional:
		var list []spec
		for i, call := range g.Calls(op) {
			if i+1 < len(args) {
				if err := p.comp(call.Comp, slices.Clone(p.operand(args[i+1])), depth+1); err != nil {
					return nil, err
				}
			}
			if list == nil {
				list = whole(p.result[call.Comp])
			}
		}
		return list, nil
	}
	if ann, ok := p.ann[op]; ok && (target(g, op) == "SPMDShardToFullShape" || target(g, op) == "SPMDFullToShardShape") {
		return ann, nil
	}
	if ann, ok := p.ann[op]; ok && len(ann) == n {
		if n == 1 && ann[0].open != 0 {
			return []spec{p.opened(op, ann[0])}, nil
		}
		return ann, nil
	}
	if m, ok := p.edge(op); ok {
		return m.results, nil
	}
	if n == 1 && p.makesFree(op, kind, all) {
		return []spec{{free: true}}, nil
	}
	d := p.decide(op)
	if !d.known {
		return make([]spec, n), nil
	}
	return slices.Repeat([]spec{d.out()}, n), nil
}

// edge is how the arrays that enter or leave a manual region are cut, before
// and behind it.
type edge struct{ args, results []spec }

// edge reads Shardy's mark of the edge of a manual region. ok is false where op
// is none. The manual axes, along which shapes are local inside, cut nothing
// there.
func (p *planner) edge(op opgraph.OpID) (m edge, ok bool) {
	g := p.g
	t := target(g, op)
	attr, global := "in_shardings", func(i int) opgraph.ShapeID { return g.OperandShape(g.Operands(op)[i]) }
	local := arrays(&g.Shapes, g.Ops.Shape[op], nil)
	switch t {
	case globalToLocal:
	case localToGlobal:
		shapes := local
		attr, global = "out_shardings", func(i int) opgraph.ShapeID { return shapes[i] }
		local = nil
		for _, o := range g.Operands(op) {
			local = append(local, g.OperandShape(o))
		}
	default:
		return m, false
	}
	results := 1
	if g.Shapes.IsTuple(g.Ops.Shape[op]) {
		results = len(g.Shapes.Tuple(g.Ops.Shape[op]))
	}
	if len(g.Operands(op)) != results || len(arrays(&g.Shapes, g.Ops.Shape[op], nil)) != results {
		return m, false
	}
	cuts, err := p.ax.parseSdy(sdyText(g.AttrStr(op, opgraph.AttrFrontend), attr), p.meshes)
	if err != nil || len(cuts) != len(local) {
		return m, false
	}
	inside := make([]spec, len(cuts))
	for i, c := range cuts {
		whole, part := g.Shapes.Dims(global(i)), g.Shapes.Dims(local[i])
		if len(whole) != len(part) || g.Shapes.IsTuple(global(i)) || g.Shapes.IsTuple(local[i]) || len(c.dims) > len(part) {
			return m, false
		}
		inside[i].dims = make([]axisSet, len(part))
		for d := range c.dims {
			if part[d] == whole[d] {
				inside[i].dims[d] = c.dims[d]
			}
		}
	}
	if t == localToGlobal {
		return edge{inside, cuts}, true
	}
	return edge{cuts, inside}, true
}

// opened cuts the open dimensions of a stated sharding along with the operands.
func (p *planner) opened(op opgraph.OpID, stated spec) spec {
	d := p.decide(op)
	if !d.known {
		return stated
	}
	s := spec{dims: slices.Clone(stated.dims)}
	for i, cut := range d.out().dims {
		if i < len(s.dims) && stated.open>>i&1 != 0 {
			s.dims[i] |= cut &^ stated.used()
		}
	}
	return s
}

// whole makes free values plain ones.
func whole(list []spec) []spec {
	list = slices.Clone(list)
	for i := range list {
		list[i].free = false
	}
	return list
}

// makesFree reports whether each device can make its part of the result alone.
func (p *planner) makesFree(op opgraph.OpID, kind opgraph.OpKind, args []spec) bool {
	g := p.g
	if g.Shapes.IsTuple(g.Ops.Shape[op]) {
		return false
	}
	switch kind {
	case opgraph.OpConstant, opgraph.OpIota:
		return true
	case opgraph.OpBroadcast:
		return g.Shapes.Rank(g.OperandShape(g.Operands(op)[0])) == 0 || args[0].free
	case opgraph.OpReshape:
		return args[0].free
	}
	if !kind.IsElementwise() || len(args) == 0 || kind == opgraph.OpMap {
		return false
	}
	for i, a := range args {
		if !a.free && g.Shapes.Rank(g.OperandShape(g.Operands(op)[i])) > 0 {
			return false
		}
	}
	return true
}

// while plans the body and the condition of a loop until the state is cut
// alike before and after.
func (p *planner) while(op opgraph.OpID, state []spec, depth int) ([]spec, error) {
	g := p.g
	body := g.Called(op, opgraph.RoleBody)
	for i, a := range p.ann[op] {
		if i < len(state) && state[i].used() == 0 {
			state[i].dims = a.dims
		}
	}
	for range 4 {
		if err := p.comp(body, slices.Clone(state), depth+1); err != nil {
			return nil, err
		}
		same := true
		for i, r := range p.result[body] {
			if i < len(state) && !r.free && !r.equal(state[i]) && state[i].used() == 0 {
				state[i], same = r, false
			}
		}
		if same {
			break
		}
	}
	state = whole(state)
	if err := p.comp(body, slices.Clone(state), depth+1); err != nil {
		return nil, err
	}
	return state, p.comp(g.Called(op, opgraph.RoleCondition), slices.Clone(state), depth+1)
}

// decision is how one operator is cut.
type decision struct {
	known bool
	rule  rule
	cuts  []axisSet // of each factor
	rank  int       // of the result
}

// out returns the cut of the result, sums complete.
func (d *decision) out() spec {
	s := spec{dims: make([]axisSet, d.rank)}
	for k, f := range d.rule.factors {
		if f.out >= 0 && f.out < d.rank {
			s.dims[f.out] |= d.cuts[k]
		}
	}
	return s
}

// arg returns the cut that operand i must have.
func (d *decision) arg(i, rank int) spec {
	s := spec{dims: make([]axisSet, rank)}
	for k, f := range d.rule.factors {
		if a := f.args[i]; a >= 0 && a < rank {
			s.dims[a] |= d.cuts[k]
		}
	}
	return s
}

// sums returns the axes over which the results are parts of a sum.
func (d *decision) sums() (s axisSet) {
	for k, f := range d.rule.factors {
		if f.sum {
			s |= d.cuts[k]
		}
	}
	return s
}

// decide chooses the cuts of an operator from those of its operands and, where
// one is stated, of its result: sums on which all operands agree first, then
// the stated result, then the operands by size, then the other sums. An axis
// cuts one factor.
func (p *planner) decide(op opgraph.OpID) decision {
	g := p.g
	args := g.Operands(op)
	r, known := ruleOf(g, op)
	first := arrays(&g.Shapes, g.Ops.Shape[op], nil)
	d := decision{known: known, rule: r, rank: 0}
	if len(first) > 0 {
		d.rank = g.Shapes.Rank(first[0])
	}
	if !known {
		return d
	}
	specs := make([]spec, len(args))
	order := make([]int, len(args))
	for i, o := range args {
		if s := p.operand(o); len(s) == 1 {
			specs[i] = s[0]
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(min(max(g.Shapes.Bytes(g.OperandShape(args[b]))-g.Shapes.Bytes(g.OperandShape(args[a])), -1), 1))
	})
	d.cuts = make([]axisSet, len(r.factors))
	var used axisSet
	take := func(k int, cut axisSet) {
		cut &^= used
		f := &r.factors[k]
		for cut != 0 && !p.divides(op, f, d.cuts[k]|cut) {
			cut &= cut - 1
		}
		d.cuts[k] |= cut
		used |= cut
	}
	many := len(first) > 1
	for k, f := range r.factors {
		if !f.sum || many {
			continue
		}
		both := ^axisSet(0)
		for i, a := range f.args {
			if a >= 0 && !specs[i].free {
				both &= specs[i].at(a)
			}
		}
		if both != ^axisSet(0) {
			take(k, both)
		}
	}
	if ann, ok := p.ann[op]; ok && len(ann) > 0 {
		for k, f := range r.factors {
			if f.out >= 0 {
				take(k, ann[0].at(f.out))
			}
		}
	}
	for _, sums := range []bool{false, true} {
		for _, i := range order {
			for k, f := range r.factors {
				if a := f.args[i]; a >= 0 && f.sum == sums && !(sums && many) {
					take(k, specs[i].at(a))
				}
			}
		}
	}
	return d
}

// divides reports whether all dimensions of a factor can be cut so. Dimensions
// of one size need not be multiples of the parts: the partitioner pads the last
// part. Where a reshape splits or merges dimensions, all parts must be equal.
func (p *planner) divides(op opgraph.OpID, f *factor, cut axisSet) bool {
	g := p.g
	n := p.ax.size(cut)
	if f.window != 0 {
		for i, o := range g.Operands(op) {
			if a := f.args[i]; a >= 0 {
				if _, ok := haloOf(g.Window(op, nil)[f.window-1], g.Shapes.Dims(g.OperandShape(o))[a], g.Shapes.Dims(p.first(op))[f.out], n); !ok {
					return false
				}
			}
		}
	}
	var sizes []int64
	for i, o := range g.Operands(op) {
		if a := f.args[i]; a >= 0 {
			dims := g.Shapes.Dims(g.OperandShape(o))
			if a >= len(dims) {
				return false
			}
			sizes = append(sizes, dims[a])
		}
	}
	if f.out >= 0 {
		for _, s := range arrays(&g.Shapes, g.Ops.Shape[op], nil) {
			dims := g.Shapes.Dims(s)
			if f.out >= len(dims) {
				return false
			}
			sizes = append(sizes, dims[f.out])
		}
	}
	for _, size := range sizes {
		if size != sizes[0] {
			return !slices.ContainsFunc(sizes, func(x int64) bool { return x%n != 0 })
		}
	}
	return true
}

// pending reports whether the shapes of a graph are those of all devices: it
// has shardings, and neither the marks of XLA's partitioner nor collectives of
// its devices outside a manual region, which only local shapes have.
func pending(g *opgraph.Graph) bool {
	if g.IsScheduled || g.Entry == opgraph.NoComp || strings.Contains(g.CompText(g.Entry), "_spmd") {
		return false
	}
	cut, manual, joined := false, false, false
	for _, c := range g.BottomUp() {
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			text := g.AttrStr(op, opgraph.AttrSharding)
			cut = cut || strings.Contains(text, "devices=") || strings.Contains(text, "mesh[") || strings.Contains(g.AttrStr(op, opgraph.AttrFrontend), "xla.sdy.sharding")
			manual = manual || strings.Contains(text, "manual") || target(g, op) == "SPMDFullToShardShape"
			joined = joined || g.Ops.Kind[op].IsCollective() && g.IntOr(op, opgraph.AttrUseGlobalDeviceIDs, 0) != 0
		}
	}
	return cut && (manual || !joined)
}

// plan cuts the entry.
func newPlan(g *opgraph.Graph) (*planner, error) {
	p := &planner{g: g, ann: map[opgraph.OpID][]spec{}, in: map[opgraph.CompID][]spec{}, result: map[opgraph.CompID][]spec{}, meshes: meshes(g)}
	p.out = make([][]spec, g.NumOps())
	p.ax.devices = max(g.Partitions, 1)
	if err := p.annotations(); err != nil {
		return p, err
	}
	p.backward()
	var in []spec
	for _, op := range g.Params(g.Entry, nil) {
		list, ok := p.ann[op]
		if n := leaves(&g.Shapes, g.Ops.Shape[op]); !ok || len(list) != n {
			list = make([]spec, n)
		}
		in = append(in, list...)
	}
	if err := p.comp(g.Entry, in, 0); err != nil {
		return p, err
	}
	for _, list := range p.out {
		for _, s := range list {
			if s.used() != 0 {
				return p, nil
			}
		}
	}
	return p, fmt.Errorf("its shardings cut nothing")
}
