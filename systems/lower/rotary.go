package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// mostInRotation bounds the operators of a rotary embedding.
const mostInRotation = 24

// rotation is a concatenate of two halves of the last dimension that are made
// of the halves of one value x: what a rotary embedding is in a graph.
type rotation struct {
	f      *fn
	x      int32 // -1 until a half is met
	halves [2]bool
	half   int64         // elements of a half
	ops    []int32       // all but the root
	piece  map[int32]int // which half an operator makes
	leaves []ref         // x, then what else is read
}

// rotated recognises the halves of a rotary embedding, as x·cos plus x with its
// halves exchanged times sin, and as the concatenate of two sums of products.
// Engines read and write halves of rows in place: nothing is cut, exchanged or
// joined in memory.
func (f *fn) rotated(i int32) bool {
	y := &f.flats[i]
	if len(y.args) != 2 || len(y.outs) != 1 || len(y.after) > 0 || f.values[y.outs[0].v].double {
		return false
	}
	t := &f.l.g.Shapes
	last := int64(t.Rank(y.outs[0].shape) - 1)
	if d := f.l.g.Dims(y.op); last < 0 || len(d) != 1 || d[0] != last {
		return false
	}
	r := rotation{f: f, x: -1, half: f.values[y.args[0].v].elems, piece: map[int32]int{}}
	if f.values[y.args[1].v].elems != r.half || f.values[y.outs[0].v].elems != 2*r.half {
		return false
	}
	if !r.grow(i) || r.x < 0 || !r.halves[0] || !r.halves[1] {
		return false
	}
	root := i
	var by *ref // what a product multiplies the exchanged halves by
	if u := f.values[y.outs[0].v].users; len(u) == 1 && !f.values[y.outs[0].v].out && len(r.leaves) == 1 {
		if m := &f.flats[u[0]]; m.kind == opgraph.OpMultiply && m.recipe == nil && len(m.outs) == 1 && len(m.after) == 0 {
			for n, a := range m.args {
				if o := m.args[1-n]; a.v == y.outs[0].v && o.v != a.v && !f.fixedScalar(o.v) {
					root, by = u[0], &o
				}
			}
		}
	}
	rec := r.recipe(i, by != nil)
	args := r.leaves
	if by != nil {
		r.ops = append(r.ops, i)
		if by.v != args[0].v {
			args = append(args, *by)
		}
	}
	f.absorb(r.ops, root, args)
	x := &f.flats[root]
	x.kind, x.recipe = opgraph.OpMultiply, rec
	return true
}

// grow takes what only the concatenate reads, from its operands back to the
// halves of x. Operators are met after all that read them.
func (r *rotation) grow(root int32) bool {
	f := r.f
	y := &f.flats[root]
	want := map[int32]int{} // operators that may belong, and to which half
	leaf := func(a ref) {
		if a = r.read(a); !f.values[a.v].konst && !slices.ContainsFunc(r.leaves, func(b ref) bool { return b.v == a.v }) {
			r.leaves = append(r.leaves, a)
		}
	}
	var outside []ref
	reach := func(a ref, piece int) {
		d := f.defOf(a.v)
		if d == nil || f.fixedScalar(a.v) {
			outside = append(outside, a)
			return
		}
		if p, ok := want[d.me]; ok && p != piece && d.kind != opgraph.OpSlice {
			piece = p
		}
		want[d.me] = piece
	}
	reach(y.args[0], 0)
	reach(y.args[1], 1)
	for len(want) > 0 {
		if len(r.ops) > mostInRotation {
			return false
		}
		at := int32(-1)
		for k := range want {
			at = max(at, k)
		}
		d, piece := &f.flats[at], want[at]
		delete(want, at)
		v := d.outs[0].v
		mine := !f.values[v].out && len(d.outs) == 1 && len(d.after) == 0 && f.values[v].elems == r.half
		for _, u := range f.values[v].users {
			mine = mine && (u == root || slices.Contains(r.ops, u))
		}
		if n, ok := r.sliceOf(d); mine && ok {
			if r.x < 0 {
				r.x = d.args[0].v
				r.leaves = slices.Insert(r.leaves, 0, d.args[0])
			}
			if r.x == d.args[0].v {
				r.halves[n] = true
				r.ops = append(r.ops, at)
				continue
			}
		}
		if !mine || !d.kind.IsElementwise() || d.recipe != nil || len(d.args) > 2 {
			outside = append(outside, d.outs[0])
			continue
		}
		r.ops, r.piece[at] = append(r.ops, at), piece
		for _, a := range d.args {
			reach(a, piece)
		}
	}
	for _, a := range outside {
		leaf(a)
	}
	return true
}

// read returns what is read in place of an operand: x for its halves, and what
// a broadcast repeats, which an access pattern does.
func (r *rotation) read(a ref) ref {
	d := r.f.defOf(a.v)
	switch {
	case d == nil || len(d.args) != 1 || r.f.fixedScalar(a.v):
	case d.kind == opgraph.OpBroadcast:
		return d.args[0]
	case d.kind == opgraph.OpSlice && slices.Contains(r.ops, d.me):
		return d.args[0]
	}
	return a
}

// sliceOf says which half of the last dimension an operator cuts out.
func (r *rotation) sliceOf(d *flat) (n int, ok bool) {
	g := r.f.l.g
	if d.kind != opgraph.OpSlice || len(d.args) != 1 || d.args[0].minor >= 0 || r.f.values[d.args[0].v].elems != 2*r.half {
		return 0, false
	}
	cut, sizes := g.Ints(d.op, opgraph.AttrSlice), g.Shapes.Dims(d.args[0].shape)
	k := len(sizes) - 1
	if k < 0 || len(cut) != 3*len(sizes) || cut[3*k+2] != 1 || 2*(cut[3*k+1]-cut[3*k]) != sizes[k] {
		return 0, false
	}
	switch cut[3*k] {
	case 0:
		return 0, true
	case sizes[k] / 2:
		return 1, true
	}
	return 0, false
}

// recipe returns the instructions, each over a half: those of the operators in
// between, or where a product follows, that product, which takes a sign along.
func (r *rotation) recipe(root int32, product bool) *recipe {
	f := r.f
	rec := &recipe{}
	add := func(s step, h how) { rec.steps, rec.how = append(rec.steps, s), append(rec.how, h) }
	slices.Sort(r.ops)
	made := map[int32]bool{}
	for _, k := range r.ops {
		d := &f.flats[k]
		piece, ok := r.piece[k]
		if !ok || product && d.kind == opgraph.OpNegate {
			continue
		}
		h := how{half: piece + 1}
		scalarArg, value, known := false, 0.0, false
		for n, a := range d.args {
			src := r.read(a).v
			if at := slices.IndexFunc(r.leaves, func(b ref) bool { return b.v == src }); at >= 0 {
				h.of, h.again = append(h.of, at), true
			} else if f.fixedScalar(src) {
				scalarArg = true
				if n == 1 {
					value, known = f.number(src)
				}
			} else {
				h.twice = !h.again && len(d.args) == 2
			}
		}
		for _, s := range stepsOf(d.kind, scalarArg && len(d.args) == 2, value, known) {
			add(s, h)
		}
		made[d.outs[0].v] = true
	}
	for n, a := range f.flats[root].args {
		switch {
		case product:
			add(tensor("mult"), how{half: n + 1, again: true})
		case !made[a.v]:
			add(on(components.OpcodeTensorCopy, onAny, "copy"), how{half: n + 1, again: true, of: []int{0}})
		}
	}
	return rec
}
