package lower

import (
	"slices"

	"perfsim/components"
)

// mapOp is one operator of a pass over tiles.
type mapOp struct {
	x      *flat
	elems  int64 // elements it computes or reads, the larger
	once   bool  // small: computed before the loop
	rows   bool  // a reduce over rows: needs a sum over partitions at the end
	full   bool
	slot   int // temporary of its result, -1 where the result is a view
	temp   *region
	acc    *region
	steps  []step
	out    []int32
	keep   *region // its result's own room on chip
	ring   *region // rotating tiles of a result that goes to device memory
	saved  bool
	double int64
	tile   int64
	few    int64 // elements of a divisor that has one a row, 0 for none
}

// source is where an operator of a pass finds an operand.
type source struct {
	konst  bool
	in     int // index of the pass's input plus one
	op     int // index of the operator plus one
	region *region
}

// mapInput is an array that a pass reads.
type mapInput struct {
	v     int32
	once  bool // loaded whole before the loop
	chip  *region
	ring  *region
	fresh bool // loaded tile by tile into room that stays
	tile  int64
}

// pass is a kernel that goes once over the tiles of an iteration space.
type pass struct {
	f      *fn
	ops    []mapOp
	in     []mapInput
	src    map[int32]source
	space  int64 // elements
	parts  int64
	free   int64 // elements per partition of the space
	f0     int64 // of one tile
	n      int64 // tiles
	temps  []*region
	scrap  []*region // what is given back at the end
	at     int64     // tile being made
	double bool
}

// mapKernel lowers a run of mappable operators as one pass.
func (f *fn) mapKernel(list []int32) {
	f.kern++
	p := &pass{f: f, src: map[int32]source{}}
	inside := map[int32]int{}
	for n, i := range list {
		x := &f.flats[i]
		o := mapOp{x: x, slot: -1}
		for _, r := range x.outs {
			o.elems = max(o.elems, f.values[r.v].elems)
			o.out = append(o.out, r.v)
			inside[r.v] = n
		}
		if x.kind == components.OpReduce {
			for _, a := range x.args {
				o.elems = max(o.elems, f.values[a.v].elems)
			}
		}
		p.ops = append(p.ops, o)
		p.space = max(p.space, o.elems)
	}
	p.makeRoom(list)
	p.findInputs()
	p.layout()
	p.classify()
	if p.space == 0 {
		p.empty()
		return
	}
	p.sizes(inside)
	p.run()
	for _, r := range p.scrap {
		f.sb.release(r)
	}
	f.cur = list[len(list)-1]
	for i := range p.ops {
		f.forget(p.ops[i].x.args)
		f.forget(p.ops[i].x.outs)
		f.l.count(p.ops[i].x.op, Lowered, "")
	}
	for _, i := range p.in {
		f.forgetValue(i.v)
	}
}

// empty makes results without elements.
func (p *pass) empty() {
	for i := range p.ops {
		for _, v := range p.ops[i].out {
			x := &p.f.values[v]
			x.hbm = p.f.hbmRegion(x, p.f.outMem(v), 1, p.f.valueName(v))
		}
		p.f.l.count(p.ops[i].x.op, Free, "")
	}
}

func (f *fn) outMem(v int32) components.Memory {
	if f.values[v].out && f.comp == f.l.g.Entry {
		return components.MemOutput
	}
	return components.MemDRAM
}

// makeRoom takes operands off the chip, the largest first, where they would
// leave the pass less than half of SBUF.
func (p *pass) makeRoom(list []int32) {
	f := p.f
	var on []int32
	var sum int64
	for _, i := range list {
		for _, a := range f.flats[i].args {
			if x := &f.values[a.v]; x.chip != nil && !slices.Contains(on, a.v) {
				on = append(on, a.v)
				sum += x.chip.bytes
			}
		}
	}
	slices.SortFunc(on, func(a, b int32) int { return int(f.values[b].chip.bytes - f.values[a].chip.bytes) })
	for _, v := range on {
		if sum <= f.l.arr.budget/2 {
			return
		}
		sum -= f.values[v].chip.bytes
		f.leave(v)
	}
}

func (p *pass) findInputs() {
	f := p.f
	for i := range p.ops {
		for _, a := range p.ops[i].x.args {
			if _, ok := p.src[a.v]; ok {
				continue
			}
			x := &f.values[a.v]
			switch {
			case x.konst:
				p.src[a.v] = source{konst: true}
			default:
				x.lastOn = f.kern
				p.in = append(p.in, mapInput{v: a.v, chip: x.chip})
				p.src[a.v] = source{in: len(p.in)}
			}
		}
		o := &p.ops[i]
		s := source{op: i + 1}
		if view(o.x.kind) && len(o.x.args) > 0 {
			s = p.src[o.x.args[0].v]
		}
		for _, v := range o.out {
			p.src[v] = s
		}
	}
}

// layout chooses the partitions of the space: those of an operand that is on
// chip with as many elements, else all.
func (p *pass) layout() {
	p.parts = min(p.f.l.arr.parts, max(p.space, 1))
	p.free = ceilDiv(max(p.space, 1), p.parts)
	for _, in := range p.in {
		if x := &p.f.values[in.v]; x.chip != nil && x.elems == p.space && x.parts > 0 {
			p.parts, p.free = x.parts, x.free
			break
		}
	}
}

// classify tells what each operator is to the pass.
func (p *pass) classify() {
	f := p.f
	room := f.l.arr.budget / 4
	for i := range p.in {
		x := &f.values[p.in[i].v]
		if x.chip == nil && x.elems*2 <= p.space && x.total <= min(replicated, room) {
			p.in[i].once = true
			room -= (x.total + align) / align * align
		}
	}
	for i := range p.ops {
		o := &p.ops[i]
		k := o.x.kind
		args := o.x.args
		scalarArg, value, known := false, 0.0, false
		for n, a := range args {
			s := p.src[a.v]
			if s.konst || f.values[a.v].elems == 1 {
				scalarArg = true
				if n == 1 && s.konst {
					value, known = f.constant(a.v)
				}
			}
		}
		o.double = 1
		if len(o.out) > 0 && f.values[o.out[0]].double {
			o.double = 2
		}
		small := o.elems*8 <= p.space && o.elems <= p.parts*1024
		allOnce := true
		for _, a := range args {
			s := p.src[a.v]
			switch {
			case s.konst:
			case s.in > 0:
				in := &p.in[s.in-1]
				allOnce = allOnce && (in.once || in.chip != nil)
			case s.op > 0:
				allOnce = allOnce && p.ops[s.op-1].once
			}
		}
		o.once = small && allOnce
		switch {
		case k == components.OpReduce:
			p.reduction(o)
		case view(k):
			if len(args) == 0 || p.src[args[0].v].konst {
				o.steps = nil
			}
		default:
			o.steps = stepsOf(k, scalarArg && len(args) == 2, value, known)
			p.perRow(o)
		}
	}
}

// perRow takes a binary operator one of whose operands is one value a row for
// the form with a scalar a partition, which reads one tensor instead of two;
// the reciprocal of a divisor is then taken of the row's value only.
func (p *pass) perRow(o *mapOp) {
	f := p.f
	g := f.l.g
	if len(o.x.args) != 2 || len(o.steps) == 0 {
		return
	}
	for n, a := range o.x.args {
		def := f.values[a.v].def
		if def < 0 || f.flats[def].kind != components.OpBroadcast || p.src[a.v].konst {
			continue
		}
		b := &f.flats[def]
		last := int64(g.Shapes.Rank(b.outs[0].shape) - 1)
		if slices.Contains(g.Dims(b.op), last) || len(b.args) == 0 {
			continue
		}
		for k := range o.steps {
			if o.steps[k].op == components.OpcodeTensorTensor {
				o.steps[k].op = components.OpcodeTensorScalarPtr
			}
		}
		if n == 1 {
			o.few = max(f.values[b.args[0].v].elems, 1)
		}
		return
	}
}

// constant returns the value of a scalar constant, where it is known.
func (f *fn) constant(v int32) (float64, bool) {
	c, ok := f.scalars[v]
	return c, ok
}

// reduction finds out over what a reduce goes: the elements of a row, the
// rows, or both.
func (p *pass) reduction(o *mapOp) {
	f := p.f
	if len(o.x.args) == 0 {
		return
	}
	in := o.x.args[0].shape
	rank := f.l.g.Shapes.Rank(in)
	dims := f.l.g.Dims(o.x.op)
	minor := rank - 1
	if m := o.x.args[0].minor; m >= 0 {
		minor = int(m)
	}
	inMinor, others := false, false
	sizes := f.l.g.Shapes.Dims(in)
	for _, d := range dims {
		if int(d) == minor {
			inMinor = true
		} else if int(d) < len(sizes) && sizes[d] > 1 {
			others = true
		}
	}
	o.full = inMinor && others
	o.rows = others
	if inMinor && others {
		// Only the last dimensions, one after the other, are still one row.
		keep := int64(1)
		for i, n := range sizes {
			if !slices.Contains(dims, int64(i)) && n > 0 {
				keep *= n
			}
		}
		trailing := true
		for _, d := range dims {
			trailing = trailing && int(d) >= rank-len(dims)
		}
		if trailing && keep >= p.parts {
			o.rows, o.full = false, false
		}
	}
	o.steps = []step{{components.OpcodeTensorReduce, onDVE, "reduce"}}
	if others && !inMinor && len(o.x.outs) > 0 && f.values[o.x.outs[0].v].elems >= 32*f.l.arr.parts {
		// Enough columns to lie on the partitions themselves: rows are added
		// one to the other and nothing crosses partitions.
		o.rows, o.full = false, false
		o.steps = []step{tensor("add")}
	}
	if o.rows && !o.full {
		o.steps = []step{tensor("add")}
	}
}

// sizes chooses the tile and gives every array its room.
func (p *pass) sizes(inside map[int32]int) {
	f := p.f
	b := int64(f.l.opt.Buffers)
	// Bytes per element of the space that a tile needs.
	var per int64
	esMax := int64(1)
	for i := range p.in {
		in := &p.in[i]
		x := &f.values[in.v]
		esMax = max(esMax, x.size)
		if in.chip == nil && !in.once {
			per += b * max(mulDiv(x.size, x.elems, p.space), 1)
		}
	}
	live := p.assignSlots(inside)
	for i := range p.ops {
		for _, v := range p.ops[i].out {
			esMax = max(esMax, f.values[v].size)
		}
	}
	outs := 0
	for i := range p.ops {
		if p.escapes(i) {
			outs++
		}
		if o := &p.ops[i]; o.x.kind == components.OpReduce && (o.rows || o.full) {
			per += 4
		}
	}
	per += int64(live)*b*esMax + int64(outs)*(b+1)*esMax
	per = max(per, 1)
	p.f0 = min(p.free, max(f.l.arr.tile/esMax, 1))
	budget := f.l.arr.budget / 2
	for p.f0 > 1 && per*p.f0 > budget {
		p.f0 /= 2
	}
	if p.f0 >= 64 && p.f0 < p.free {
		p.f0 -= p.f0 % 16
	}
	p.f0 = max(p.f0, 1)
	p.n = ceilDiv(p.free, p.f0)
	// Room: inputs, temporaries, then results.
	for i := range p.in {
		in := &p.in[i]
		x := &f.values[in.v]
		switch {
		case in.chip != nil:
		case in.once:
			parts := f.l.arr.parts
			r := f.must(1, max(x.total, 1))
			in.chip = r
			f.load(in.v, r, 0, 0, 1, x.total, parts, x.elems)
			p.scrap = append(p.scrap, r)
		default:
			in.tile = max(mulDiv(x.elems, p.f0, p.space)*x.size, x.size)
			if x.elems == p.space {
				in.tile = p.f0 * x.size
			}
			in.ring = f.must(int(b), in.tile)
		}
	}
	slotTile := p.f0 * esMax
	for range live {
		r := f.must(int(b), slotTile)
		p.temps = append(p.temps, r)
		p.scrap = append(p.scrap, r)
	}
	for i := range p.ops {
		o := &p.ops[i]
		if o.acc == nil && o.x.kind == components.OpReduce && (o.rows || o.full) {
			o.acc = f.must(1, max(p.f0*4, 4))
			p.scrap = append(p.scrap, o.acc)
		}
		if o.once && len(o.out) > 0 && o.slot >= 0 {
			x := &f.values[o.out[0]]
			o.temp = f.must(1, max(ceilDiv(x.total, f.l.arr.parts), 4))
			p.scrap = append(p.scrap, o.temp)
		}
	}
}

// must returns room, smaller than asked for where the machine has none: a
// single tile always fits, as the tiles were cut for half of SBUF.
func (f *fn) must(n int, tile int64) *region {
	if r := f.alloc(n, tile); r != nil {
		return r
	}
	for n > 1 {
		n--
		if r := f.alloc(n, tile); r != nil {
			return r
		}
	}
	if f.l.e.err == nil {
		f.l.e.err = noRoomError{tile}
	}
	return &region{mem: components.MemSBUF, tileBytes: tile, tiles: make([]dep, 1)}
}

type noRoomError struct{ bytes int64 }

func (e noRoomError) Error() string {
	return "SBUF has no room for a tile of " + itoa(int(e.bytes)) + " bytes per partition; --buffers may be too many"
}

// escapes tells whether a result of operator i is read outside the pass.
func (p *pass) escapes(i int) bool {
	f := p.f
	for _, v := range p.ops[i].out {
		x := &f.values[v]
		if x.out {
			return true
		}
		if n := len(x.users); n > 0 && !p.holds(x.users[n-1]) {
			return true
		}
	}
	return false
}

func (p *pass) holds(flatIndex int32) bool {
	x := &p.f.flats[flatIndex]
	first := p.ops[0].x
	last := p.ops[len(p.ops)-1].x
	// Flats of a pass are neighbours, so that their order tells.
	return p.f.index(x) >= p.f.index(first) && p.f.index(x) <= p.f.index(last)
}

// assignSlots gives results that live only inside the pass a temporary each,
// reused when their last reader is done, and returns how many there are.
func (p *pass) assignSlots(inside map[int32]int) int {
	last := make([]int, len(p.ops))
	for i := range p.ops {
		last[i] = i
	}
	for i := range p.ops {
		for _, a := range p.ops[i].x.args {
			if s := p.src[a.v]; s.op > 0 {
				last[s.op-1] = i
			}
		}
	}
	var free []int
	n := 0
	expire := make([][]int, len(p.ops)+1)
	for i := range p.ops {
		o := &p.ops[i]
		if len(o.steps) == 0 || o.x.kind == components.OpReduce && (o.rows || o.full) {
			continue
		}
		if o.once {
			o.slot = 0
			continue
		}
		if len(free) == 0 {
			free = append(free, n)
			n++
		}
		o.slot = free[len(free)-1]
		free = free[:len(free)-1]
		expire[last[i]] = append(expire[last[i]], o.slot)
		// A result lives through its last reader: the slot is free behind it.
		for j := i; j <= i; j++ {
			free = append(free, expire[j]...)
			expire[j] = nil
		}
	}
	return n
}

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
	f.load(in.v, to, slot, t, p.n, p.bytesOf(in.v, t), p.parts, elems)
}

// readArg says that the instruction being made reads operand a in tile t.
func (p *pass) readArg(a ref, t int64, once bool, elems int64) bool {
	f := p.f
	e := &f.l.e
	s := p.src[a.v]
	d := f.values[a.v].dtype
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
			e.read(r, k, k+1)
			f.operand(components.RoleIn, r, int64(k)*r.tileBytes, elems, p.parts, d)
		case once || len(r.tiles) == 1:
			e.read(r, 0, min(len(r.tiles), 8))
			f.operand(components.RoleIn, r, 0, elems, p.parts, d)
		default:
			t0, t1 := int(t), int(t)+1
			if !in.fresh {
				t0, t1 = r.span(t*p.f0, t*p.f0+p.width(t), p.free)
			}
			e.read(r, t0, t1)
			f.operand(components.RoleIn, r, int64(t0)*r.tileBytes, elems, p.parts, d)
		}
	case s.op > 0:
		o := &p.ops[s.op-1]
		r, k := p.place(o, t)
		if r == nil {
			return false
		}
		e.read(r, k, k+1)
		f.operand(components.RoleIn, r, int64(k)*r.tileBytes, elems, p.parts, d)
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
	a := (f.busy[slotACT] + cycles) * int64(c.DVE)
	d := (f.busy[slotDVE] + cycles) * int64(c.Activation)
	if a <= d {
		return components.Activation
	}
	return components.DVE
}

// emit makes the instructions of operator i in tile t.
func (p *pass) emit(i int, t int64, once bool) {
	f := p.f
	e := &f.l.e
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
	d := f.values[o.out[0]].dtype
	whole := elems
	for n, s := range o.steps {
		to, k := p.place(o, t)
		elems := whole
		if s.op == components.OpcodeReciprocal && o.few > 0 && o.few < o.elems {
			elems = max(mulDiv(whole, o.few, o.elems), 1)
		}
		in := 0
		var flags components.Flags
		dt := d
		if n == 0 {
			for _, a := range o.x.args {
				if p.readArg(a, t, once, elems) {
					in++
					if in == 1 {
						dt = f.values[a.v].dtype
					}
				}
			}
		} else {
			e.read(to, k, k+1)
			f.operand(components.RoleIn, to, int64(k)*to.tileBytes, elems, p.parts, d)
			in = 1
			if s.op == components.OpcodeTensorTensor || s.op == components.OpcodeTensorScalarPtr {
				for _, a := range o.x.args[:min(len(o.x.args), 1)] {
					if p.readArg(a, t, once, elems) {
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
			e.read(to, k, k+1)
			f.operand(components.RoleIn, to, 0, min(elems, p.f0), p.parts, dOut)
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
		if op == components.OpcodeTensorCopy && eng == components.Activation {
			op = components.OpcodeActivation
		}
		e.write(to, k, k+1)
		f.operand(components.RoleOut, to, int64(k)*to.tileBytes, p.outElems(o, elems, t), p.parts, dOut)
		lane := uint16(eng)
		f.busy[slotOf(lane)] += elems
		e.add(ins{op: op, eng: eng, lane: lane, flags: flags, elems: elems, out: p.outElems(o, elems, t), parts: p.parts, dtype: dt, fn: e.sym(s.fn)})
	}
}

// outElems is how many elements per partition an operator writes in a tile.
func (p *pass) outElems(o *mapOp, elems, t int64) int64 {
	if o.x.kind == components.OpReduce && !o.rows && !o.full {
		return max(mulDiv(elems, p.f.values[o.out[0]].elems, max(o.elems, 1)), 1)
	}
	if o.full {
		return 1
	}
	return elems
}

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
			o.steps = []step{{components.OpcodeTensorCopy, onAny, "copy"}}
			if len(o.x.args) == 0 || p.src[o.x.args[0].v].konst {
				o.steps = []step{{components.OpcodeMemset, onDVE, "memset"}}
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
		f.store(v, r, 0, 1, 0, 1, x.total, x.parts, x.free, 0)
		return
	}
	bytes := p.bytesOf(v, t)
	elems := max(mulDiv(p.width(t), x.elems, p.space), 1)
	n := p.n
	f.l.e.later(f.l.opt.Buffers, func() { f.store(v, r, int64(k), int64(k+1), t, n, bytes, p.parts, elems, 0) })
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
	groups := ceilDiv(cols, m*perBank) // a group is what one bank takes
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
			e.read(acc, 0, 1)
			if j == 0 {
				f.bankWrite(bank)
			} else {
				e.more(f.psum, bank)
			}
			f.operand(components.RoleIn, acc, 0, min(mm, p.f0), p.parts, components.Float32)
			f.operand(components.RoleOut, f.psum, int64(bank)*f.psum.tileBytes+j%perBank*4, 1, mm, components.Float32)
			f.matmul(p.parts, mm, 1, components.Float32, true, true, 0, bank)
			f.helper = components.AddSize(f.helper, components.MulSize(2*p.parts*mm, e.mult))
		})
		k := int(t) % len(to.tiles)
		f.evictBank(bank, to, k, blocks, min(m, n), x.dtype, "copy")
		if groups > 1 {
			bytes := share(x.total, t, groups)
			e.later(f.l.opt.Buffers, func() { f.store(v, to, int64(k), int64(k+1), t, groups, bytes, m, blocks, 0) })
		}
	})
	e.drain()
	if groups == 1 && o.saved {
		f.store(v, to, 0, 1, 0, 1, x.total, x.parts, x.free, 0)
	}
}
