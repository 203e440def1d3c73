package opgraph

import (
	"fmt"
	"slices"
)

// GraphDiffOptions says what two graphs may differ in and still be equal.
type GraphDiffOptions struct {
	Layouts  bool              // layouts, tiles and memory spaces of shapes are not compared
	Metadata bool              // op_name, source place and stack frames are not compared
	Skip     func(OpAttr) bool // attributes that are not compared; nil compares all
	SkipOp   func(a OpID) bool // operators of a whose attributes are not compared
}

// GraphDiff returns what is the first difference between two graphs, "" when
// they are equal: the same computations and operators in the same order with
// the same names, shapes, operands, order edges, called computations and
// attributes. An empty list is equal to an absent one, and replica groups {}
// to none. Derived trip counts and lines of the files the graphs came from are not compared.
func GraphDiff(a, b *Graph, opt GraphDiffOptions) string {
	d := graphDiff{a: a, b: b, opt: opt, shapes: map[[2]ShapeID]bool{}}
	return d.module()
}

type graphDiff struct {
	a, b   *Graph
	opt    GraphDiffOptions
	shapes map[[2]ShapeID]bool
}

func (d *graphDiff) module() string {
	a, b := d.a, d.b
	switch {
	case a.Text(a.Name) != b.Text(b.Name):
		return fmt.Sprintf("module names %q and %q", a.Text(a.Name), b.Text(b.Name))
	case a.NumComps() != b.NumComps():
		return fmt.Sprintf("%d and %d computations", a.NumComps(), b.NumComps())
	case a.NumOps() != b.NumOps():
		return fmt.Sprintf("%d and %d operators", a.NumOps(), b.NumOps())
	case a.Entry != b.Entry:
		return fmt.Sprintf("entries %d and %d", a.Entry, b.Entry)
	case a.IsScheduled != b.IsScheduled:
		return fmt.Sprintf("is_scheduled %v and %v", a.IsScheduled, b.IsScheduled)
	case len(a.Aliases) != len(b.Aliases):
		return fmt.Sprintf("%d and %d aliases", len(a.Aliases), len(b.Aliases))
	}
	for i, x := range a.Aliases {
		y := b.Aliases[i]
		if x.Parameter != y.Parameter || x.Must != y.Must || !d.samePath(x.Output, y.Output) || !d.samePath(x.Param, y.Param) {
			return fmt.Sprintf("alias %d differs", i)
		}
	}
	for c := range CompID(a.NumComps()) {
		if a.CompText(c) != b.CompText(c) || a.Comps.First[c] != b.Comps.First[c] || a.Comps.End[c] != b.Comps.End[c] ||
			a.Comps.Root[c] != b.Comps.Root[c] || a.Text(a.Comps.Thread[c]) != b.Text(b.Comps.Thread[c]) {
			return fmt.Sprintf("computations %q and %q (number %d): name, extent, root or thread differ", a.CompText(c), b.CompText(c), c)
		}
	}
	for op := range OpID(a.NumOps()) {
		if s := d.op(op); s != "" {
			return fmt.Sprintf("operator %d, %q in %q: %s", op, a.OpText(op), a.CompText(a.Ops.Comp[op]), s)
		}
	}
	return ""
}

func (d *graphDiff) op(op OpID) string {
	a, b := d.a, d.b
	switch {
	case a.Ops.Kind[op] != b.Ops.Kind[op]:
		return fmt.Sprintf("opcodes %v and %v", a.Ops.Kind[op], b.Ops.Kind[op])
	case a.OpText(op) != b.OpText(op):
		return fmt.Sprintf("names %q and %q", a.OpText(op), b.OpText(op))
	case a.Ops.Index[op] != b.Ops.Index[op]:
		return fmt.Sprintf("index %d and %d", a.Ops.Index[op], b.Ops.Index[op])
	case !d.sameShape(a.Ops.Shape[op], b.Ops.Shape[op]):
		return fmt.Sprintf("shapes %s and %s", a.ShapeText(a.Ops.Shape[op]), b.ShapeText(b.Ops.Shape[op]))
	case !slices.EqualFunc(a.Operands(op), b.Operands(op), func(x, y Operand) bool { return x.Op == y.Op && d.samePath(x.Path, y.Path) }):
		return fmt.Sprintf("operands %v and %v", a.Operands(op), b.Operands(op))
	case !slices.Equal(slices.Sorted(slices.Values(a.Control(op))), slices.Sorted(slices.Values(b.Control(op)))):
		return fmt.Sprintf("control predecessors %v and %v", a.Control(op), b.Control(op))
	case !slices.Equal(a.Calls(op), b.Calls(op)):
		return fmt.Sprintf("called computations %v and %v", a.Calls(op), b.Calls(op))
	}
	if !d.opt.Metadata {
		fa, la := a.Source(op)
		fb, lb := b.Source(op)
		if a.Text(a.Ops.OpName[op]) != b.Text(b.Ops.OpName[op]) || fa != fb || la != lb {
			return fmt.Sprintf("metadata %q %s:%d and %q %s:%d", a.Text(a.Ops.OpName[op]), fa, la, b.Text(b.Ops.OpName[op]), fb, lb)
		}
	}
	if d.opt.SkipOp != nil && d.opt.SkipOp(op) {
		return ""
	}
	for key := AttrNone + 1; key < NumOpAttrs; key++ {
		if key == AttrTripDerived || d.opt.Skip != nil && d.opt.Skip(key) {
			continue // derived from the rest
		}
		if s := d.attr(op, key); s != "" {
			return s
		}
	}
	return ""
}

func (d *graphDiff) attr(op OpID, key OpAttr) string {
	a, b := d.a, d.b
	switch {
	case key == AttrRaw:
		x, y := a.raws(op), b.raws(op)
		if !slices.Equal(x, y) {
			return fmt.Sprintf("attributes %q and %q", x, y)
		}
	case key == AttrReplicaGroups:
		x, y := a.Ints(op, key), b.Ints(op, key)
		if ra, _ := a.ReplicaGroups(op); ra.Form == GroupsAll {
			x = nil
		}
		if rb, _ := b.ReplicaGroups(op); rb.Form == GroupsAll {
			y = nil
		}
		if !slices.Equal(x, y) {
			return fmt.Sprintf("replica groups %v and %v", x, y)
		}
	case key == AttrOutputAliasing:
		x, y := a.Ints(op, key), b.Ints(op, key)
		same := len(x) == len(y)
		for i := 0; same && i+2 < len(x); i += 3 {
			same = d.samePath(PathID(x[i]), PathID(y[i])) && x[i+1] == y[i+1] && d.samePath(PathID(x[i+2]), PathID(y[i+2]))
		}
		if !same {
			return fmt.Sprintf("output aliasing %v and %v", x, y)
		}
	case key.form() == formInts:
		if x, y := a.Ints(op, key), b.Ints(op, key); !slices.Equal(x, y) {
			return fmt.Sprintf("attribute %v is %v and %v", key, x, y)
		}
	case key.form() == formInt:
		x, okx := a.Int(op, key)
		y, oky := b.Int(op, key)
		if x != y || okx != oky {
			return fmt.Sprintf("attribute %v is %d (%v) and %d (%v)", key, x, okx, y, oky)
		}
	default:
		if x, y := a.AttrStr(op, key), b.AttrStr(op, key); x != y {
			return fmt.Sprintf("attribute %v is %q and %q", key, x, y)
		}
	}
	return ""
}

// raws lists the attributes kept by name as name and text, sorted.
func (g *Graph) raws(op OpID) (out []string) {
	for i := g.Ops.attrs[op]; i != 0; i = g.attr[i-1].next {
		if r := g.attr[i-1]; r.key == AttrRaw {
			out = append(out, g.strs.text[r.a]+"="+g.strs.text[r.b])
		}
	}
	slices.Sort(out)
	return out
}

func (d *graphDiff) samePath(x, y PathID) bool { return slices.Equal(d.a.Path(x), d.b.Path(y)) }

func (d *graphDiff) sameShape(x, y ShapeID) bool {
	key := [2]ShapeID{x, y}
	if same, ok := d.shapes[key]; ok {
		return same
	}
	ta, tb := &d.a.Shapes, &d.b.Shapes
	la, lb := ta.Layout(x), tb.Layout(y)
	if d.opt.Layouts {
		la.Layout, la.HasText, lb.Layout, lb.HasText = "", false, "", false
	}
	same := ta.Elem(x) == tb.Elem(y) && slices.Equal(ta.Dims(x), tb.Dims(y)) && la == lb &&
		slices.EqualFunc(ta.Tuple(x), tb.Tuple(y), d.sameShape)
	d.shapes[key] = same
	return same
}
