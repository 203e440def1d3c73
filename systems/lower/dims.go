package lower

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

// This file gives sizes to the dynamic dimensions ('?') of a graph: those of
// the entry's parameters from Options.Dims, the others by inference.

// AnyDim is the name in Options.Dims that stands for every unknown dimension.
const AnyDim = "?"

// setDims returns the graph with all dimensions known, or an error that names
// those that are not.
func setDims(g *opgraph.Graph, given map[string]int64) (*opgraph.Graph, error) {
	unknown := false
	for op := range opgraph.OpID(g.NumOps()) {
		if openShape(&g.Shapes, g.Ops.Shape[op]) {
			unknown = true
			break
		}
	}
	if !unknown {
		for _, name := range slices.Sorted(maps.Keys(given)) {
			return nil, fmt.Errorf("--dim %s: the module has no unknown dimensions", name)
		}
		return g, nil
	}
	r := opgraph.NewRewriter(g)
	for c := range opgraph.CompID(g.NumComps()) {
		r.Begin(c)
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			r.Copy(op)
		}
		r.End(c)
	}
	d := &dimSetter{g: r.To, given: given, used: map[string]bool{AnyDim: true}, done: make([]bool, g.NumComps())}
	d.comp(g.Entry, nil)
	d.backward()
	d.done, d.open, d.last = make([]bool, g.NumComps()), nil, true
	d.comp(g.Entry, nil)
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !d.used[name] {
			return nil, fmt.Errorf("--dim %s: no unknown dimension has this name; %s", name, d.names())
		}
	}
	if len(d.open) > 0 {
		return nil, d.missing()
	}
	if err := d.g.Check(); err != nil {
		return nil, fmt.Errorf("with the sizes of --dim: %w", err)
	}
	return broadcasts(d.g), nil
}

// openShape reports whether a shape has an unknown dimension.
func openShape(t *opgraph.ShapeTable, s opgraph.ShapeID) bool {
	return slices.Contains(t.Dims(s), opgraph.DimUnknown) || slices.ContainsFunc(t.Tuple(s), func(m opgraph.ShapeID) bool { return openShape(t, m) })
}

type dimSetter struct {
	g     *opgraph.Graph
	given map[string]int64
	used  map[string]bool // names of Options.Dims that named something
	all   []string        // names of the unknown dimensions of parameters
	open  []openDim
	done  []bool
	last  bool // the pass that names what neither operands nor users give
}

// openDim is a dimension whose size nothing gives.
type openDim struct{ name, shape string }

func (d *dimSetter) names() string {
	if len(d.all) == 0 {
		return "the unknown dimensions are not those of a parameter"
	}
	return "the unknown dimensions are " + strings.Join(d.all[:min(len(d.all), 8)], ", ")
}

func (d *dimSetter) missing() error {
	const most = 6
	var what, flags []string
	for i, o := range d.open {
		if i == most {
			what, flags = append(what, "…"), append(flags, "…")
			break
		}
		text := o.name + " (" + o.shape + ")"
		if !slices.Contains(what, text) {
			what, flags = append(what, text), append(flags, "--dim "+o.name+"=N")
		}
	}
	noun := "a dimension"
	if len(what) > 1 {
		noun = "dimensions"
	}
	return fmt.Errorf("the module has %s without a size: %s; give it with %s, or all with --dim '%s=N'", noun, strings.Join(what, ", "), strings.Join(flags, " "), AnyDim)
}

// comp sets the shapes of a computation whose parameters have the given
// shapes; nil for the entry.
func (d *dimSetter) comp(c opgraph.CompID, params []opgraph.ShapeID) {
	if d.done[c] {
		return
	}
	d.done[c] = true
	g := d.g
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		kind := g.Ops.Kind[op]
		d.callees(op, kind)
		s := g.Ops.Shape[op]
		if !openShape(&g.Shapes, s) {
			continue
		}
		if kind == opgraph.OpParameter {
			if i := int(g.Ops.Index[op]); i < len(params) {
				s = d.merge(s, params[i])
			}
			if params == nil {
				s = d.named(g.OpText(op), s, true)
			}
		} else if s = d.infer(op, kind, s); d.last && openShape(&g.Shapes, s) && !d.openOperand(op) {
			s = d.named(g.OpText(op), s, false)
		}
		g.Ops.Shape[op] = s
	}
}

// backward gives the operands of elementwise operators the sizes that the other
// operands have.
func (d *dimSetter) backward() {
	g := d.g
	for op := opgraph.OpID(g.NumOps()); op > 0; {
		op--
		if !g.Ops.Kind[op].IsElementwise() {
			continue
		}
		for _, o := range g.Operands(op) {
			if o.Path == 0 && g.Ops.Kind[o.Op] != opgraph.OpParameter {
				g.Ops.Shape[o.Op] = d.merge(g.Ops.Shape[o.Op], g.Ops.Shape[op])
			}
		}
	}
}

// openOperand reports whether an operand has an open dimension: what follows
// from it is not named as well.
func (d *dimSetter) openOperand(op opgraph.OpID) bool {
	return slices.ContainsFunc(d.g.Operands(op), func(o opgraph.Operand) bool { return openShape(&d.g.Shapes, d.g.OperandShape(o)) })
}

// callees sets the shapes of what an operator calls.
func (d *dimSetter) callees(op opgraph.OpID, kind opgraph.OpKind) {
	g := d.g
	calls := g.Calls(op)
	if len(calls) == 0 {
		return
	}
	var args []opgraph.ShapeID
	for _, o := range g.Operands(op) {
		args = append(args, g.OperandShape(o))
	}
	for i, call := range calls {
		with := args
		switch kind {
		case opgraph.OpFusion, opgraph.OpCall, opgraph.OpAsyncStart, opgraph.OpWhile:
		case opgraph.OpConditional:
			with = args[min(i+1, len(args)):min(i+2, len(args))]
		default:
			with = []opgraph.ShapeID{} // a scalar function
		}
		d.comp(call.Comp, with)
	}
}

// named gives the open dimensions of a shape the sizes stated for their names:
// NAME.I, or NAME where one dimension is open, or AnyDim.
func (d *dimSetter) named(name string, s opgraph.ShapeID, parameter bool) opgraph.ShapeID {
	t := &d.g.Shapes
	if m := t.Tuple(s); len(m) > 0 {
		list := slices.Clone(m)
		for i := range list {
			if openShape(t, list[i]) {
				list[i] = d.named(name+"."+strconv.Itoa(i), list[i], parameter)
			}
		}
		if t.Elem(s) == opgraph.ElemBuffer {
			return t.AddBuffer(list[0])
		}
		return t.AddTuple(list)
	}
	dims := slices.Clone(t.Dims(s))
	text := d.g.ShapeText(s)
	open := 0
	for _, n := range dims {
		if n == opgraph.DimUnknown {
			open++
		}
	}
	for i, n := range dims {
		if n != opgraph.DimUnknown {
			continue
		}
		full := name + "." + strconv.Itoa(i)
		if parameter && !d.last {
			d.all = append(d.all, full)
		}
		keys := []string{full, AnyDim}
		if open == 1 {
			keys = []string{full, name, AnyDim}
		}
		found := false
		for _, k := range keys {
			if v, ok := d.given[k]; ok {
				dims[i], d.used[k], found = v, true, true
				break
			}
		}
		if !found {
			d.open = append(d.open, openDim{full, text})
		}
	}
	return d.with(s, dims)
}

// with returns the shape with other dimensions.
func (d *dimSetter) with(s opgraph.ShapeID, dims []int64) opgraph.ShapeID {
	t := &d.g.Shapes
	l := t.Layout(s)
	for i, n := range dims {
		if n != opgraph.DimUnknown && t.Dims(s)[i] == opgraph.DimUnknown {
			l.Dynamic &^= 1 << i
		}
	}
	return t.AddArrayLayout(t.Elem(s), dims, l)
}

// merge fills the open dimensions of s from a shape of the same structure.
func (d *dimSetter) merge(s, from opgraph.ShapeID) opgraph.ShapeID {
	t := &d.g.Shapes
	if a, b := t.Tuple(s), t.Tuple(from); len(a) > 0 {
		if len(a) != len(b) {
			return s
		}
		list := slices.Clone(a)
		for i := range list {
			list[i] = d.merge(list[i], t.Tuple(from)[i])
		}
		if t.Elem(s) == opgraph.ElemBuffer {
			return t.AddBuffer(list[0])
		}
		return t.AddTuple(list)
	}
	a, b := slices.Clone(t.Dims(s)), t.Dims(from)
	if len(a) != len(b) || !slices.Contains(a, opgraph.DimUnknown) {
		return s
	}
	for i := range a {
		if a[i] == opgraph.DimUnknown {
			a[i] = b[i]
		}
	}
	return d.with(s, a)
}

// infer fills the open dimensions of an operator's shape from its operands.
func (d *dimSetter) infer(op opgraph.OpID, kind opgraph.OpKind, s opgraph.ShapeID) opgraph.ShapeID {
	g, t := d.g, &d.g.Shapes
	args := g.Operands(op)
	arg := func(i int) []int64 { return t.Dims(g.OperandShape(args[i])) }
	switch {
	case len(args) == 0 || t.IsTuple(s) && kind != opgraph.OpTuple && kind != opgraph.OpWhile && kind != opgraph.OpCall && kind != opgraph.OpConditional:
	case kind == opgraph.OpBroadcast || kind == opgraph.OpUnknown && strings.HasSuffix(g.AttrStr(op, opgraph.AttrOpcode), "dynamic_broadcast_in_dim"):
		dims := slices.Clone(t.Dims(s))
		from := arg(0)
		for i, at := range g.Dims(op) {
			if i < len(from) && at < int64(len(dims)) && dims[at] == opgraph.DimUnknown && from[i] != 1 {
				dims[at] = from[i]
			}
		}
		if len(args) > 1 {
			for i := range dims {
				if dims[i] == opgraph.DimUnknown {
					if v, ok := d.element(args[1], i, 0); ok && v >= 0 {
						dims[i] = v
					}
				}
			}
		}
		return d.with(s, dims)
	case kind == opgraph.OpReshape || kind == opgraph.OpDynamicReshape || kind == opgraph.OpBitcast:
		dims := slices.Clone(t.Dims(s))
		if len(args) > 1 {
			for i := range dims {
				if v, ok := d.element(args[1], i, 0); ok && v >= 0 && dims[i] == opgraph.DimUnknown {
					dims[i] = v
				}
			}
		}
		known, at := int64(1), -1
		for i, n := range dims {
			if n != opgraph.DimUnknown {
				known = opgraph.MulSize(known, n)
			} else if at >= 0 {
				return d.with(s, dims) // two: nothing distinguishes them
			} else {
				at = i
			}
		}
		if all := t.Count(g.OperandShape(args[0])); at >= 0 && known > 0 && !slices.Contains(arg(0), opgraph.DimUnknown) && all%known == 0 {
			dims[at] = all / known
		}
		return d.with(s, dims)
	case kind.IsElementwise():
		for i := range args {
			s = d.merge(s, g.OperandShape(args[i]))
		}
		return s
	}
	g.Ops.Shape[op] = 0
	err := g.Infer(op)
	got := g.Ops.Shape[op]
	g.Ops.Shape[op] = s
	if err != nil {
		return s
	}
	return d.merge(s, got)
}

// element evaluates element i of a shape that the program computes: sizes of
// dimensions, constants, and what is made of them.
func (d *dimSetter) element(o opgraph.Operand, i, depth int) (int64, bool) {
	g := d.g
	if o.Path != 0 || depth > 32 {
		return 0, false
	}
	op := o.Op
	args := g.Operands(op)
	of := func(k int) (int64, bool) { return d.element(args[k], i, depth+1) }
	switch g.Ops.Kind[op] {
	case opgraph.OpConstant:
		if v, ok := g.Int(op, opgraph.AttrConstInt); ok {
			return v, true
		}
		return 0, false
	case opgraph.OpGetDimensionSize:
		if dims := g.Dims(op); len(dims) == 1 && len(args) > 0 {
			if from := g.Shapes.Dims(g.OperandShape(args[0])); dims[0] >= 0 && dims[0] < int64(len(from)) && from[dims[0]] != opgraph.DimUnknown {
				return from[dims[0]], true
			}
		}
	case opgraph.OpUnknown:
		if len(args) == 1 && strings.HasSuffix(g.AttrStr(op, opgraph.AttrOpcode), "shape_of") {
			if from := g.Shapes.Dims(g.OperandShape(args[0])); i < len(from) && from[i] != opgraph.DimUnknown {
				return from[i], true
			}
		}
	case opgraph.OpConvert, opgraph.OpReshape, opgraph.OpCopy, opgraph.OpBroadcast, opgraph.OpBitcast:
		return of(0)
	case opgraph.OpConcatenate:
		for _, a := range args {
			n := int(max(g.Shapes.Count(g.OperandShape(a)), 0))
			if i < n {
				return d.element(a, i, depth+1)
			}
			i -= n
		}
	case opgraph.OpMultiply, opgraph.OpAdd, opgraph.OpSubtract, opgraph.OpDivide, opgraph.OpMaximum:
		a, ok1 := of(0)
		b, ok2 := of(1)
		if !ok1 || !ok2 {
			return 0, false
		}
		switch g.Ops.Kind[op] {
		case opgraph.OpMultiply:
			return opgraph.MulSize(max(a, 0), max(b, 0)), true
		case opgraph.OpAdd:
			return a + b, true
		case opgraph.OpSubtract:
			return a - b, true
		case opgraph.OpMaximum:
			return max(a, b), true
		}
		if b != 0 {
			return a / b, true
		}
	}
	return 0, false
}

// broadcasts makes plain broadcasts of those whose size the program computes:
// it is known by now.
func broadcasts(g *opgraph.Graph) *opgraph.Graph {
	dynamic := func(op opgraph.OpID) bool {
		return g.Ops.Kind[op] == opgraph.OpUnknown && len(g.Operands(op)) == 2 && strings.HasSuffix(g.AttrStr(op, opgraph.AttrOpcode), "dynamic_broadcast_in_dim")
	}
	if !slices.ContainsFunc(allOps(g), dynamic) {
		return g
	}
	r := opgraph.NewRewriter(g)
	for c := range opgraph.CompID(g.NumComps()) {
		r.Begin(c)
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			if !dynamic(op) {
				r.Copy(op)
				continue
			}
			to := r.To
			src := r.Operands(op)[0]
			out, from := g.Shapes.Dims(g.Ops.Shape[op]), slices.Clone(to.Shapes.Dims(to.OperandShape(src)))
			var kept, size []int64
			for i, d := range g.Dims(op) {
				if i < len(from) && d < int64(len(out)) && from[i] == out[d] {
					kept, size = append(kept, d), append(size, from[i])
				}
			}
			if len(kept) != len(from) { // dimensions of size 1 that are stretched
				flat := to.AddOpOperands(opgraph.OpReshape, to.Str(to.OpText(src.Op)+".flat"), to.Array(to.Shapes.Elem(to.OperandShape(src)), size...), []opgraph.Operand{src})
				r.Place(flat, op)
				src = opgraph.Operand{Op: flat}
			}
			b := to.AddOpOperands(opgraph.OpBroadcast, g.Ops.Name[op], g.Ops.Shape[op], []opgraph.Operand{src})
			to.SetInts(b, opgraph.AttrDimensions, kept...)
			r.Place(b, op)
			r.Put(op, b)
		}
		r.End(c)
	}
	return r.To
}

func allOps(g *opgraph.Graph) []opgraph.OpID {
	list := make([]opgraph.OpID, g.NumOps())
	for i := range list {
		list[i] = opgraph.OpID(i)
	}
	return list
}
