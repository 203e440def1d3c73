package lower

import (
	"slices"

	"perfsim/components/opgraph"
)

// defOf returns the flat operator that makes a value, nil for parameters,
// constants and what another operator's instructions make.
func (f *fn) defOf(v int32) *flat {
	d := f.values[v].def
	if d < 0 || f.flats[d].gone {
		return nil
	}
	return &f.flats[d]
}

// number returns the scalar constant that all elements of a value are.
func (f *fn) number(v int32) (float64, bool) {
	for {
		if x, ok := f.scalars[v]; ok {
			return x, true
		}
		d := f.defOf(v)
		if d == nil || len(d.args) != 1 || d.kind != opgraph.OpBroadcast && d.kind != opgraph.OpConvert {
			return 0, false
		}
		v = d.args[0].v
	}
}

// fixedScalar reports whether all elements of a value are one constant, be its
// value known or not.
func (f *fn) fixedScalar(v int32) bool {
	for {
		x := &f.values[v]
		if x.konst {
			return true
		}
		d := f.defOf(v)
		if d == nil || len(d.args) != 1 || d.kind != opgraph.OpBroadcast && d.kind != opgraph.OpConvert {
			return false
		}
		v = d.args[0].v
	}
}

// unconverted looks through conversions of a value's element type.
func (f *fn) unconverted(v int32) int32 {
	for {
		d := f.defOf(v)
		if d == nil || d.kind != opgraph.OpConvert || f.fixedScalar(v) {
			return v
		}
		v = d.args[0].v
	}
}

// ofRows returns what a value repeats along its last dimension: one value a
// row.
func (f *fn) ofRows(v int32) (ref, bool) {
	d := f.defOf(f.unconverted(v))
	if d == nil || d.kind != opgraph.OpBroadcast || len(d.args) != 1 || f.fixedScalar(v) {
		return ref{}, false
	}
	last := int64(f.l.g.Shapes.Rank(d.outs[0].shape) - 1)
	dims := f.l.g.Dims(d.op)
	if slices.Contains(dims, last) {
		from := f.l.g.Shapes.Dims(d.args[0].shape)
		if at := slices.Index(dims, last); at >= len(from) || from[at] != 1 {
			return ref{}, false
		}
	}
	return d.args[0], true
}

// ofColumns returns the vector that a value repeats for every row.
func (f *fn) ofColumns(v int32) (ref, bool) {
	return f.repeatedAlong(v, int64(f.l.g.Shapes.Rank(f.shapeOf(v))-1))
}

// shapeOf returns the shape that a value is made in.
func (f *fn) shapeOf(v int32) opgraph.ShapeID {
	if d := f.defOf(v); d != nil && len(d.outs) > 0 {
		return d.outs[0].shape
	}
	return 0
}

// repeatedAlong returns the vector that a value repeats for every element of
// dimension d.
func (f *fn) repeatedAlong(v int32, d int64) (ref, bool) {
	x := f.defOf(v)
	if x == nil || x.kind != opgraph.OpBroadcast || len(x.args) != 1 || f.fixedScalar(v) {
		return ref{}, false
	}
	dims := f.l.g.Shapes.Dims(x.outs[0].shape)
	if d < 0 || d >= int64(len(dims)) || f.values[x.args[0].v].elems != dims[d] || !slices.Contains(f.l.g.Dims(x.op), d) {
		return ref{}, false
	}
	return x.args[0], true
}

// cone has the operators between a value x and one that is computed of it
// alone: elementwise operators with constants and with values of x's own rows.
type cone struct {
	f       *fn
	x       int32
	rows    bool  // reductions of a row, and values a row, may be in it
	row     int64 // elements of a row, 0 before a reduction is met
	ops     []int32
	reduces int
	kinds   [opgraph.NumOpKinds]int32
}

// most bounds the operators of a cone.
const mostInCone = 128

func (c *cone) met(d *flat) bool { return slices.Contains(c.ops, d.me) }

func (c *cone) take(d *flat) bool {
	if len(c.ops) >= mostInCone || len(d.outs) != 1 || len(d.after) > 0 {
		return false
	}
	c.ops = append(c.ops, d.me)
	c.kinds[d.kind]++
	return true
}

// whole reports whether v, as large as x, is made of x alone.
func (c *cone) whole(v int32) bool {
	if v == c.x {
		return true
	}
	f := c.f
	d := f.defOf(v)
	if d == nil || f.values[v].elems != f.values[c.x].elems {
		return false
	}
	if c.met(d) {
		return true
	}
	if r, ok := f.ofRows(v); ok {
		return c.rows && c.take(d) && c.perRow(r.v)
	}
	if !d.kind.IsElementwise() || d.recipe != nil || !c.take(d) {
		return false
	}
	for _, a := range d.args {
		if !f.fixedScalar(a.v) && !c.whole(a.v) {
			return false
		}
	}
	return true
}

// perRow reports whether v, one value a row, is made of x's rows.
func (c *cone) perRow(v int32) bool {
	f := c.f
	if f.fixedScalar(v) {
		return true
	}
	d := f.defOf(v)
	switch {
	case d == nil || f.values[v].elems*2 > f.values[c.x].elems:
		return false
	case c.met(d):
		return true
	case !c.take(d):
		return false
	case d.kind == opgraph.OpReduce:
		if len(d.args) != 2 || !f.fixedScalar(d.args[1].v) || f.values[d.args[0].v].elems != f.values[c.x].elems || d.args[0].minor >= 0 {
			return false
		}
		row, ok := f.reducedRow(d)
		if !ok || c.row != 0 && c.row != row {
			return false
		}
		c.row = row
		c.reduces++
		return c.whole(d.args[0].v)
	case d.kind == opgraph.OpBroadcast:
		return len(d.args) == 1 && f.values[d.args[0].v].elems == f.values[v].elems && c.perRow(d.args[0].v)
	case !d.kind.IsElementwise():
		return false
	}
	for _, a := range d.args {
		if !c.perRow(a.v) {
			return false
		}
	}
	return true
}

// reducedRow returns how many elements a reduce makes one of, where they are
// the last dimensions.
func (f *fn) reducedRow(d *flat) (int64, bool) {
	sizes := f.l.g.Shapes.Dims(d.args[0].shape)
	dims := f.l.g.Dims(d.op)
	n := int64(1)
	for _, k := range dims {
		if k < int64(len(sizes)-len(dims)) || k >= int64(len(sizes)) {
			return 0, false
		}
		n *= sizes[k]
	}
	return n, n > 1
}

// closed reports whether nobody but the cone and the operator it ends in reads
// what the cone makes.
func (c *cone) closed(root int32) bool {
	for _, i := range c.ops {
		if i == root {
			continue
		}
		v := &c.f.values[c.f.flats[i].outs[0].v]
		if v.out {
			return false
		}
		for _, u := range v.users {
			if u != root && !slices.Contains(c.ops, u) {
				return false
			}
		}
	}
	return true
}

// absorb makes operator root do the work of the others: it reads args now.
func (f *fn) absorb(ops []int32, root int32, args []ref) {
	leave := func(i int32) {
		for _, a := range f.flats[i].args {
			u := &f.values[a.v].users
			if at, ok := slices.BinarySearch(*u, i); ok {
				*u = slices.Delete(*u, at, at+1)
			}
		}
	}
	for _, i := range ops {
		leave(i)
		if i != root {
			f.flats[i].gone = true
			f.l.count(f.flats[i].op, Lowered, "")
		}
	}
	if !slices.Contains(ops, root) {
		leave(root)
	}
	f.flats[root].args = args
	for _, a := range args {
		u := &f.values[a.v].users
		if at, ok := slices.BinarySearch(*u, root); !ok {
			*u = slices.Insert(*u, at, root)
		}
	}
}
