package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
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
	konst bool
	in    int // index of the pass's input plus one
	op    int // index of the operator plus one
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
	f     *fn
	ops   []mapOp
	in    []mapInput
	src   map[int32]source
	space int64 // elements
	parts int64
	free  int64 // elements per partition of the space
	f0    int64 // of one tile
	n     int64 // tiles
	temps []*region
	scrap []*region // what is given back at the end
	at    int64     // tile being made
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
		if x.kind == opgraph.OpReduce {
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
// leave the pass less than half of SBUF, unless it has no end.
func (p *pass) makeRoom(list []int32) {
	f := p.f
	if f.sb.infinite {
		return
	}
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
		if o.x.kind.Is(opgraph.TraitView) && len(o.x.args) > 0 {
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

// classify decides the role of each operator in the pass.
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
		case o.x.recipe != nil:
			o.steps = o.x.recipe.steps
		case k == opgraph.OpReduce:
			p.reduction(o)
		case k.Is(opgraph.TraitView):
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
		if def < 0 || f.flats[def].kind != opgraph.OpBroadcast || p.src[a.v].konst {
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
	o.steps = []step{on(components.OpcodeTensorReduce, onDVE, "reduce")}
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
		if o := &p.ops[i]; o.x.kind == opgraph.OpReduce && (o.rows || o.full) {
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
			f.load(in.v, f.partOf(in.v, 0, x.total), r, 0, x.total, parts, x.elems)
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
		if o.acc == nil && o.x.kind == opgraph.OpReduce && (o.rows || o.full) {
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
// single tile always fits, as the tiles were cut for half of SBUF. What is
// smaller leaves a tile's room for what the kernel asks for next.
func (f *fn) must(n int, tile int64) *region {
	if r := f.alloc(n, tile); r != nil {
		return r
	}
	for n--; n > 1; n-- {
		if f.sb.fits(int64(n)*alignTile(tile) + f.l.arr.tile) {
			return f.alloc(n, tile)
		}
	}
	if r := f.alloc(1, tile); r != nil {
		return r
	}
	if f.l.e.err == nil {
		f.l.e.err = noRoomError{tile}
	}
	return &region{mem: components.MemSBUF, tileBytes: tile, tiles: make([]tileState, 1)}
}

type noRoomError struct{ bytes int64 }

func (e noRoomError) Error() string {
	return "SBUF has no room for a tile of " + itoa(int(e.bytes)) + " bytes per partition; --buffers may be too many"
}

// escapes reports whether a result of operator i is read outside the pass.
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
	// Flats of a pass are neighbours, so that their order decides.
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
		if len(o.steps) == 0 || o.x.kind == opgraph.OpReduce && (o.rows || o.full) {
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
