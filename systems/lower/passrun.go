package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// run emits the loop.
func (p *pass) run() {
	f := p.f
	p.results()
	for i := range p.ops {
		if p.ops[i].once {
			p.emit(i, 0, true)
			p.save(i, 0, true)
		}
	}
	f.l.e.loop(p.n, func(t int64) {
		p.at = t
		for n := range p.in {
			p.loadTile(n, t)
		}
		for i := range p.ops {
			if !p.ops[i].once {
				p.emit(i, t, false)
				p.save(i, t, false)
			}
		}
	})
	f.l.e.drain()
	for i := range p.ops {
		p.overPartitions(i)
	}
}

// width returns the elements per partition of tile t.
func (p *pass) width(t int64) int64 {
	if t == p.n-1 {
		return p.free - (p.n-1)*p.f0
	}
	return p.f0
}

// share cuts total into n parts that are equal but for the last.
func share(total, t, n int64) int64 {
	if t == n-1 {
		return total - (n-1)*(total/n)
	}
	return total / n
}

// bytesOf returns the bytes of tile t of an array with total bytes.
func (p *pass) bytesOf(v int32, t int64) int64 {
	x := &p.f.values[v]
	if x.elems == p.space && x.size*x.elems == x.total {
		per := p.f0 * p.parts * x.size
		if t < p.n-1 && per*(p.n-1) <= x.total {
			return per
		}
		if per*(p.n-1) <= x.total {
			return x.total - per*(p.n-1)
		}
	}
	return share(x.total, t, p.n)
}

// partOf returns the device memory of tile t of an array.
func (p *pass) partOf(v int32, t int64) part {
	x := &p.f.values[v]
	at := t * (x.total / p.n)
	if x.elems == p.space && x.size*x.elems == x.total {
		if per := p.f0 * p.parts * x.size; per*(p.n-1) <= x.total {
			at = t * per
		}
	}
	return p.f.partOf(v, at, p.bytesOf(v, t))
}

func (p *pass) loadTile(n int, t int64) {
	in := &p.in[n]
	if in.ring == nil && !in.fresh {
		return
	}
	f := p.f
	x := &f.values[in.v]
	to, slot := in.ring, int(t)
	if to == nil {
		to = in.chip
	} else {
		slot %= len(to.tiles)
	}
	elems := max(mulDiv(p.width(t), x.elems, p.space), 1)
	f.load(in.v, p.partOf(in.v, t), to, slot, p.bytesOf(in.v, t), p.parts, elems)
}

// readArg says that the instruction being made reads elems elements of operand
// a in tile t, from element from of the tile on.
func (p *pass) readArg(a ref, t int64, once bool, from, elems int64) bool {
	f := p.f
	s := p.src[a.v]
	d := f.values[a.v].dtype
	off := from * int64(max(d.Size(), 1))
	switch {
	case s.konst:
		return false
	case s.in > 0:
		in := &p.in[s.in-1]
		r := in.chip
		switch {
		case in.ring != nil:
			r = in.ring
			if once {
				return false
			}
			k := int(t) % len(r.tiles)
			f.reads(r, k, k+1, off, elems, p.parts, d)
		case once || len(r.tiles) == 1:
			f.reads(r, 0, min(len(r.tiles), 8), 0, elems, p.parts, d)
		default:
			t0, t1 := int(t), int(t)+1
			if !in.fresh {
				t0, t1 = r.span(t*p.f0, t*p.f0+p.width(t), p.free)
			}
			f.reads(r, t0, t1, off, elems, p.parts, d)
		}
	case s.op > 0:
		o := &p.ops[s.op-1]
		r, k := p.place(o, t)
		if r == nil {
			return false
		}
		f.reads(r, k, k+1, off, elems, p.parts, d)
	}
	return true
}

// place returns where the result of an operator is in tile t.
func (p *pass) place(o *mapOp, t int64) (*region, int) {
	switch {
	case o.acc != nil:
		return o.acc, 0
	case o.once:
		return o.temp, 0
	case o.keep != nil:
		return o.keep, int(t) % len(o.keep.tiles)
	case o.ring != nil:
		return o.ring, int(t) % len(o.ring.tiles)
	case o.slot >= 0:
		r := p.temps[o.slot]
		return r, int(t) % len(r.tiles)
	}
	return nil, 0
}

// pick returns the less busy of Activation and DVE for what both can do.
func (f *fn) pick(eng components.Engine, cycles int64) components.Engine {
	if eng != components.Unassigned {
		return eng
	}
	c := f.l.mach.Clock
	a := (f.busy[components.Activation] + cycles) * int64(c.DVE)
	d := (f.busy[components.DVE] + cycles) * int64(c.Activation)
	if a <= d {
		return components.Activation
	}
	return components.DVE
}

// emit makes the instructions of operator i in tile t.
func (p *pass) emit(i int, t int64, once bool) {
	f := p.f
	o := &p.ops[i]
	if len(o.steps) == 0 {
		return
	}
	f.name(o.x.op)
	elems := max(mulDiv(p.width(t), o.elems, p.space), 1)
	if once {
		elems = max(ceilDiv(o.elems, p.parts), 1)
	}
	elems *= o.double
	for n, s := range o.steps {
		h, row := how{again: n == 0}, int64(0)
		if r := o.x.recipe; r != nil {
			row = r.row
			if len(r.how) > 0 {
				h = r.how[n]
				h.again = h.again || n == 0
			}
		}
		w := elems
		switch {
		case h.few:
			w = max(ceilDiv(elems, max(row, 1)), 1)
		case s.op == components.OpcodeReciprocal && o.few > 0 && o.few < o.elems:
			w = max(mulDiv(elems, o.few, o.elems), 1)
		}
		if h.half > 0 {
			w = max(w/2, 1)
			p.step(o, s, h, t, once, int64(h.half-1)*(elems-w), w)
			continue
		}
		if !h.each || row == 0 || row >= w {
			p.step(o, s, h, t, once, 0, w)
			continue
		}
		for from := int64(0); from < w; from += row {
			p.step(o, s, h, t, once, from, min(row, w-from))
		}
	}
}

// step makes one instruction of an operator, over elems elements of tile t from
// element from on.
func (p *pass) step(o *mapOp, s step, h how, t int64, once bool, from, elems int64) {
	f := p.f
	e := &f.l.e
	d := f.values[o.out[0]].dtype
	to, k := p.place(o, t)
	off := from * int64(max(d.Size(), 1))
	in := 0
	var flags components.Flags
	dt := d
	if h.again {
		for n, a := range o.x.args {
			if h.of != nil && !slices.Contains(h.of, n) {
				continue
			}
			at := from
			if h.half > 0 { // the other half of a row, or all of what is as large as a half
				at = 0
				if h.half == 1 && f.values[a.v].elems == o.elems {
					at = elems
				}
			}
			if p.readArg(a, t, once, at, elems) {
				in++
				if in == 1 {
					dt = f.values[a.v].dtype
				}
			}
		}
	} else {
		f.reads(to, k, k+1, off, elems, p.parts, d)
		in = 1
		if h.twice {
			f.reads(to, k, k+1, off, elems, p.parts, d)
			in = 2
		}
		if o.x.recipe == nil && (s.op == components.OpcodeTensorTensor || s.op == components.OpcodeTensorScalarPtr) {
			for _, a := range o.x.args[:min(len(o.x.args), 1)] {
				if p.readArg(a, t, once, from, elems) {
					in++
				}
			}
		}
	}
	acc := o.acc != nil
	dOut := d
	if acc {
		dOut = components.Float32
	}
	if acc && t > 0 {
		f.reads(to, k, k+1, 0, min(elems, p.f0), p.parts, dOut)
		in++
	}
	if in >= 2 && s.op != components.OpcodeTensorScalarPtr {
		flags |= components.FlagTwoInputs
	}
	if in >= 3 {
		flags |= components.FlagThreeInputs
	}
	if dt.Size() != d.Size() {
		flags |= components.FlagMixedTypes
	}
	op := s.op
	if op == components.OpcodeTensorTensor && in < 2 {
		op = components.OpcodeTensorScalar
	}
	eng := f.pick(s.eng, elems)
	out := p.outElems(o, elems, t)
	f.writes(to, k, off, out, p.parts, dOut)
	f.busy[eng] += elems
	e.add(ins{op: op, eng: eng, lane: uint16(eng), flags: flags, elems: elems, out: out, parts: p.parts, dtype: dt, fn: e.sym(s.fn)})
}

// outElems is how many elements per partition an operator writes in a tile.
func (p *pass) outElems(o *mapOp, elems, t int64) int64 {
	if o.x.kind == opgraph.OpReduce && !o.rows && !o.full {
		return max(mulDiv(elems, p.f.values[o.out[0]].elems, max(o.elems, 1)), 1)
	}
	if o.full {
		return 1
	}
	return elems
}
