package lower

import (
	"perfsim/components"
	"perfsim/components/opgraph"
)

// results decides where each result that leaves the pass goes.
func (p *pass) results() {
	f := p.f
	b := f.l.opt.Buffers
	for i := range p.ops {
		o := &p.ops[i]
		if !p.escapes(i) {
			continue
		}
		if len(o.steps) == 0 { // a view of something: copied
			o.steps = []step{on(components.OpcodeTensorCopy, onAny, "copy")}
			if len(o.x.args) == 0 || p.src[o.x.args[0].v].konst {
				o.steps = []step{on(components.OpcodeMemset, onDVE, "memset")}
			}
			o.once = false // its readers in the pass still look through it
		}
		if o.acc != nil {
			continue // it leaves behind the loop
		}
		v := o.out[0]
		x := &f.values[v]
		if o.once {
			p.finalRoom(o)
			continue
		}
		o.tile = max(mulDiv(p.f0, x.elems, p.space)*x.size, x.size)
		if x.elems == p.space {
			o.tile = p.f0 * x.size
		}
		o.ring = f.must(b+1, o.tile)
		for _, w := range o.out[1:] { // further results of a variadic reduce
			y := &f.values[w]
			y.hbm, y.base, y.dead = nil, v, true
		}
	}
	p.stay()
}

// stay gives results and operands that are read again a home on chip where
// there is room; the others keep their rotating tiles.
func (p *pass) stay() {
	f := p.f
	last := f.index(p.ops[len(p.ops)-1].x)
	saved := f.cur
	f.cur = last
	for i := range p.ops {
		o := &p.ops[i]
		if o.ring == nil {
			continue
		}
		v := o.out[0]
		x := &f.values[v]
		x.parts, x.free = p.parts, max(ceilDiv(p.free*x.elems, p.space), 1)
		if o.keep = f.keep(v, int(p.n), o.tile); o.keep != nil {
			f.sb.release(o.ring)
			o.ring = nil
		} else {
			p.scrap = append(p.scrap, o.ring)
		}
		if o.keep == nil || f.needsHBM(v) || len(o.out) > 1 {
			x.hbm = f.hbmRegion(x, f.outMem(v), p.n, f.valueName(v))
			o.saved = true
		}
	}
	for i := range p.in {
		in := &p.in[i]
		if in.ring == nil {
			continue
		}
		f.ensureHBM(in.v)
		if r := f.keep(in.v, int(p.n), in.tile); r != nil {
			x := &f.values[in.v]
			x.parts, x.free = p.parts, max(ceilDiv(p.free*x.elems, p.space), 1)
			f.sb.release(in.ring)
			in.ring, in.chip, in.fresh = nil, r, true
		} else {
			p.scrap = append(p.scrap, in.ring)
		}
	}
	f.cur = saved
}

// finalRoom gives a small result a home of its own.
func (p *pass) finalRoom(o *mapOp) {
	f := p.f
	v := o.out[0]
	x := &f.values[v]
	x.parts, x.free = min(f.l.arr.parts, max(x.elems, 1)), max(ceilDiv(x.elems, f.l.arr.parts), 1)
	saved := f.cur
	f.cur = f.index(p.ops[len(p.ops)-1].x)
	if r := f.keep(v, 1, max(x.free*x.size, 4)); r != nil {
		o.temp = r
	}
	f.cur = saved
	if o.temp == nil {
		o.temp = f.must(1, max(x.free*x.size, 4))
		p.scrap = append(p.scrap, o.temp)
	}
	if x.chip == nil || f.needsHBM(v) {
		x.hbm = f.hbmRegion(x, f.outMem(v), 1, f.valueName(v))
		o.saved = true
	}
	for _, w := range o.out[1:] {
		f.values[w].base, f.values[w].dead = v, true
	}
}

// save stores tile t of a result that goes to device memory.
func (p *pass) save(i int, t int64, once bool) {
	f := p.f
	o := &p.ops[i]
	if !o.saved || len(o.steps) == 0 || o.acc != nil {
		return
	}
	v := o.out[0]
	x := &f.values[v]
	r, k := p.place(o, t)
	if once {
		f.store(v, r, 0, 1, whole(x.hbm), x.total, x.parts, x.free, 0)
		return
	}
	bytes := p.bytesOf(v, t)
	elems := max(mulDiv(p.width(t), x.elems, p.space), 1)
	to := p.partOf(v, t)
	f.l.e.later(f.l.opt.Buffers, func() { f.store(v, r, int64(k), int64(k+1), to, bytes, p.parts, elems, 0) })
}

// overPartitions ends a reduce over rows: the partial sums of the partitions
// are added by a product with ones on the PE.
func (p *pass) overPartitions(i int) {
	f := p.f
	o := &p.ops[i]
	if o.acc == nil {
		return
	}
	f.name(o.x.op)
	e := &f.l.e
	v := o.out[0]
	x := &f.values[v]
	cols := max(x.elems, 1)
	acc := o.acc
	o.acc = nil
	m := f.l.arr.statM
	perBank := f.l.arr.movN
	groups := ceilDiv(cols, m*perBank) // a group fills one bank
	var to *region
	if groups == 1 {
		p.finalRoom(o)
		to = o.temp
	} else {
		x.parts, x.free = f.l.arr.parts, ceilDiv(cols, f.l.arr.parts)
		x.hbm = f.hbmRegion(x, f.outMem(v), groups, f.valueName(v))
		for _, w := range o.out[1:] {
			f.values[w].base, f.values[w].dead = v, true
		}
		to = f.must(f.l.opt.Buffers+1, perBank*max(x.size, 4))
		p.scrap = append(p.scrap, to)
	}
	e.loop(groups, func(t int64) {
		n := m * perBank
		if t == groups-1 {
			n = cols - (groups-1)*n
		}
		blocks := ceilDiv(n, m)
		bank := f.nextBank()
		// One product a block of columns; a long row of them is a loop.
		e.loop(blocks, func(j int64) {
			mm := m
			if j == blocks-1 {
				mm = n - (blocks-1)*m
			}
			f.reads(acc, 0, 1, 0, min(mm, p.f0), p.parts, components.Float32)
			f.bankOut(j == 0, bank, j%perBank*4, 1, mm)
			f.matmul(p.parts, mm, 1, components.Float32, true, true, components.FlagHelper, bank)
			f.helper = opgraph.AddSize(f.helper, opgraph.MulSize(2*p.parts*mm, e.mult))
		})
		k := int(t) % len(to.tiles)
		f.evictBank(bank, to, k, blocks, min(m, n), x.dtype, "copy")
		if groups > 1 {
			out := f.pieceOf(v, t, groups)
			e.later(f.l.opt.Buffers, func() { f.store(v, to, int64(k), int64(k+1), out, out.hi-out.lo, m, blocks, 0) })
		}
	})
	e.drain()
	if groups == 1 && o.saved {
		f.store(v, to, 0, 1, whole(x.hbm), x.total, x.parts, x.free, 0)
	}
}
