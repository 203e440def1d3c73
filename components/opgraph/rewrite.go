package opgraph

import (
	"maps"
	"slices"
)

// Rewriter copies a graph operator by operator, so that a pass can put others
// in the place of some. Computations keep their ids; strings, shapes and
// paths of From are valid in To.
//
//	r := opgraph.NewRewriter(g)
//	for c := range opgraph.CompID(g.NumComps()) {
//		r.Begin(c)
//		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
//			r.Copy(op) // or operators of To, and r.Put(op, last)
//		}
//		r.End(c)
//	}
type Rewriter struct {
	From, To *Graph
	at       []OpID // of To, by operator of From
}

// NewRewriter returns a rewriter whose To has no operators yet.
func NewRewriter(g *Graph) *Rewriter {
	to := *g
	to.Ops, to.Comps = OpTable{}, CompTable{}
	to.operands, to.control, to.calls, to.attr = nil, nil, nil, nil
	// Pools only grow: without spare room, growing copies them.
	to.ints, to.paths = slices.Clip(g.ints), slices.Clip(g.paths)
	to.pathKey = maps.Clone(g.pathKey)
	to.strs.text, to.strs.slots = slices.Clip(g.strs.text), slices.Clone(g.strs.slots)
	to.Shapes = g.Shapes.clone()
	to.Aliases, to.ModuleAttrs = slices.Clone(g.Aliases), slices.Clone(g.ModuleAttrs)
	to.Reserve(g.NumOps())
	at := make([]OpID, g.NumOps())
	for i := range at {
		at[i] = NoOp
	}
	return &Rewriter{From: g, To: &to, at: at}
}

func (t *ShapeTable) clone() ShapeTable {
	return ShapeTable{
		elem: slices.Clip(t.elem), dims: slices.Clip(t.dims), dyn: slices.Clip(t.dyn), elems: slices.Clip(t.elems), bytes: slices.Clip(t.bytes),
		tuple: slices.Clip(t.tuple), space: slices.Clip(t.space), pool: slices.Clip(t.pool), member: slices.Clip(t.member), key: maps.Clone(t.key),
	}
}

// Begin starts computation c of From. Computations come in the order of their
// ids.
func (r *Rewriter) Begin(c CompID) {
	n := r.To.BeginComputation(r.From.CompText(c))
	r.To.Comps.Thread[n], r.To.Comps.TextLine[n] = r.From.Comps.Thread[c], r.From.Comps.TextLine[c]
}

// End closes computation c.
func (r *Rewriter) End(c CompID) { r.To.EndComputation(r.at[r.From.Comps.Root[c]]) }

// At returns what stands in To for an operator of From, NoOp where nothing
// does yet.
func (r *Rewriter) At(op OpID) OpID { return r.at[op] }

// Put makes an operator of To stand for one of From: with its value, so the
// shapes of both have the same structure.
func (r *Rewriter) Put(from, to OpID) { r.at[from] = to }

// Operands returns the operands of an operator of From as operands of To.
func (r *Rewriter) Operands(op OpID) []Operand {
	list := slices.Clone(r.From.Operands(op))
	for i := range list {
		list[i].Op = r.at[list[i].Op]
	}
	return list
}

// Copy copies an operator with its attributes, calls and control
// predecessors.
func (r *Rewriter) Copy(op OpID) OpID {
	n := r.CopyAs(op, r.From.Ops.Shape[op], r.Operands(op))
	r.at[op] = n
	return n
}

// CopyAs is Copy with another shape and other operands. It does not Put.
func (r *Rewriter) CopyAs(op OpID, shape ShapeID, operands []Operand) OpID {
	g, to := r.From, r.To
	n := to.AddOpOperands(g.Ops.Kind[op], g.Ops.Name[op], shape, operands)
	to.Ops.Index[n] = g.Ops.Index[op]
	r.Place(n, op)
	for _, p := range g.Control(op) {
		if q := r.at[p]; q != NoOp {
			to.AddControl(n, q)
		}
	}
	for _, c := range g.Calls(op) {
		to.AddCall(n, c.Role, c.Comp)
	}
	for i := g.Ops.attrs[op]; i != 0; i = g.attr[i-1].next {
		row := g.attr[i-1]
		to.putAttr(n, row.key, row.a, row.b)
	}
	return n
}

// Place gives an operator of To the metadata of one of From.
func (r *Rewriter) Place(to, from OpID) {
	t, f := &r.To.Ops, &r.From.Ops
	t.OpName[to], t.SourceFile[to], t.SourceLine[to] = f.OpName[from], f.SourceFile[from], f.SourceLine[from]
	t.Frame[to], t.TextLine[to] = f.Frame[from], f.TextLine[from]
}
