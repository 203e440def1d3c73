package hlo

import (
	"fmt"
	"slices"

	"perfsim/components/opgraph"
)

// diffOptions says what two graphs may differ in and still be equal.
type diffOptions struct {
	Layouts  bool                      // layouts, tiles and memory spaces of shapes are not compared
	Metadata bool                      // op_name, source place and stack frames are not compared
	Skip     func(opgraph.OpAttr) bool // attributes that are not compared; nil compares all
	SkipOp   func(a opgraph.OpID) bool // operators of a whose attributes are not compared
}

// graphDiff returns what is the first difference between two graphs, "" when
// they are equal: the same computations and operators in the same order with
// the same names, shapes, operands, order edges, called computations and
// attributes. An empty list is equal to an absent one, and replica groups {}
// to none. Derived trip counts and lines of the files the graphs came from are not compared.
func graphDiff(a, b *opgraph.Graph, opt diffOptions) string {
	d := differ{a: a, b: b, opt: opt, shapes: map[[2]opgraph.ShapeID]bool{}}
	return d.module()
}

type differ struct {
	a, b   *opgraph.Graph
	opt    diffOptions
	shapes map[[2]opgraph.ShapeID]bool
}

func (d *differ) module() string {
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
	for c := range opgraph.CompID(a.NumComps()) {
		if a.CompText(c) != b.CompText(c) || a.Comps.First[c] != b.Comps.First[c] || a.Comps.End[c] != b.Comps.End[c] ||
			a.Comps.Root[c] != b.Comps.Root[c] || a.Text(a.Comps.Thread[c]) != b.Text(b.Comps.Thread[c]) {
			return fmt.Sprintf("computations %q and %q (number %d): name, extent, root or thread differ", a.CompText(c), b.CompText(c), c)
		}
	}
	for op := range opgraph.OpID(a.NumOps()) {
		if s := d.op(op); s != "" {
			return fmt.Sprintf("operator %d, %q in %q: %s", op, a.OpText(op), a.CompText(a.Ops.Comp[op]), s)
		}
	}
	return ""
}

func (d *differ) op(op opgraph.OpID) string {
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
	case !slices.EqualFunc(a.Operands(op), b.Operands(op), func(x, y opgraph.Operand) bool { return x.Op == y.Op && d.samePath(x.Path, y.Path) }):
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
	for key := opgraph.AttrNone + 1; key < opgraph.NumOpAttrs; key++ {
		if key == opgraph.AttrTripDerived || d.opt.Skip != nil && d.opt.Skip(key) {
			continue // derived from the rest
		}
		if s := d.attr(op, key); s != "" {
			return s
		}
	}
	return ""
}

func (d *differ) attr(op opgraph.OpID, key opgraph.OpAttr) string {
	a, b := d.a, d.b
	switch {
	case key == opgraph.AttrRaw:
		x, y := raws(a, op), raws(b, op)
		if !slices.Equal(x, y) {
			return fmt.Sprintf("attributes %q and %q", x, y)
		}
	case key == opgraph.AttrReplicaGroups:
		x, y := a.Ints(op, key), b.Ints(op, key)
		if ra, _ := a.ReplicaGroups(op); ra.Form == opgraph.GroupsAll {
			x = nil
		}
		if rb, _ := b.ReplicaGroups(op); rb.Form == opgraph.GroupsAll {
			y = nil
		}
		if !slices.Equal(x, y) {
			return fmt.Sprintf("replica groups %v and %v", x, y)
		}
	case key == opgraph.AttrOutputAliasing:
		x, y := a.Ints(op, key), b.Ints(op, key)
		same := len(x) == len(y)
		for i := 0; same && i+2 < len(x); i += 3 {
			same = d.samePath(opgraph.PathID(x[i]), opgraph.PathID(y[i])) && x[i+1] == y[i+1] && d.samePath(opgraph.PathID(x[i+2]), opgraph.PathID(y[i+2]))
		}
		if !same {
			return fmt.Sprintf("output aliasing %v and %v", x, y)
		}
	case key < opgraph.AttrChannelID:
		if x, y := a.Ints(op, key), b.Ints(op, key); !slices.Equal(x, y) {
			return fmt.Sprintf("attribute %v is %v and %v", key, x, y)
		}
	case key < opgraph.AttrCustomCallTarget:
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
func raws(g *opgraph.Graph, op opgraph.OpID) (out []string) {
	g.Attrs(op, func(key opgraph.OpAttr, raw opgraph.RawAttr) bool {
		if key == opgraph.AttrRaw {
			out = append(out, g.Text(raw.Key)+"="+g.Text(raw.Value))
		}
		return true
	})
	slices.Sort(out)
	return out
}

func (d *differ) samePath(x, y opgraph.PathID) bool { return slices.Equal(d.a.Path(x), d.b.Path(y)) }

func (d *differ) sameShape(x, y opgraph.ShapeID) bool {
	key := [2]opgraph.ShapeID{x, y}
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
