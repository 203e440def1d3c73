package lower

import (
	"perfsim/components"
	"perfsim/components/opgraph"
)

// attention is softmax(q·kᵀ)·v as one kernel. A row block is 128 queries of a
// head: its scores are summed up in PSUM, go through softmax on their way to
// SBUF, are turned by the PE and multiplied by the values. They are never in
// device memory.
type attention struct {
	q, k, v ref
	heads   int64 // products of a batch
	m, n    int64 // queries and keys of a head
	d, dv   int64 // elements of a query, of a value
	scores  opgraph.DotSize
	mix     opgraph.DotSize
	before  []finishStep // what is done to the scores before softmax
	first   opgraph.OpID
	masked  bool
	elem    components.DType // of the probabilities
}

// attends recognises that product i mixes values by the softmax of scores that
// another product made, and that nobody else reads what lies between.
func (f *fn) attends(i int32) {
	x := &f.flats[i]
	if len(x.args) != 2 || len(x.outs) != 1 {
		return
	}
	g := f.l.g
	dd := g.Dot(x.op)
	p, v, contract, vContract := x.args[0], x.args[1], dd.LHSContract, dd.RHSContract
	mix := g.DotSize(x.op)
	rows, dv := mix.M, mix.N
	if s := f.probabilities(p.v); s == nil {
		p, v, contract, vContract = v, p, vContract, contract
		rows, dv = mix.N, mix.M
		if f.probabilities(p.v) == nil {
			return
		}
	}
	soft := f.probabilities(p.v)
	rank := g.Shapes.Rank(p.shape)
	if len(contract) != 1 || int(contract[0]) != rank-1 || p.minor >= 0 && int(p.minor) != rank-1 || soft.recipe.row != mix.K {
		return
	}
	a := &attention{v: v, dv: dv, n: mix.K, mix: mix}
	ops := []int32{soft.me}
	// Conversions between softmax and the product.
	for w := p.v; f.values[w].def != soft.me; w = f.defOf(w).args[0].v {
		ops = append(ops, f.values[w].def)
	}
	args := []ref{{}, {}, v}
	// From softmax back to the product that made the scores.
	w := soft.args[0].v
	for {
		d := f.defOf(w)
		if d == nil || len(d.outs) != 1 || len(d.after) > 0 || d.attn != nil || len(ops) > 24 {
			return
		}
		ops = append(ops, d.me)
		if d.kind == opgraph.OpDot {
			a.first = d.op
			a.scores = g.DotSize(d.op)
			a.q, a.k = d.args[0], d.args[1]
			break
		}
		next, ok := f.backToScores(d, a, &args)
		if !ok {
			return
		}
		w = next
	}
	s := a.scores
	a.m, a.d, a.heads = s.M, s.K, s.Batch
	if s.N != a.n || s.Batch*s.M != mix.Batch*rows || s.Batch == 0 || a.m == 0 || a.n < 16 || a.d == 0 || a.d > 4*f.l.arr.parts || dv == 0 || dv > f.l.arr.movN {
		return
	}
	for _, o := range ops { // nobody else reads what lies between
		u := &f.values[f.flats[o].outs[0].v]
		if u.out || len(u.users) != 1 || u.double {
			return
		}
	}
	for _, r := range args[3:] {
		if d := f.values[r.v].def; d >= 0 && (f.flats[d].gone || d >= i) {
			return
		}
	}
	a.elem = components.Float32
	args[0], args[1] = a.q, a.k
	f.absorb(ops, i, args)
	x.attn = a
}

// probabilities returns the operator that makes a value as softmax of rows,
// through conversions.
func (f *fn) probabilities(v int32) *flat {
	d := f.defOf(f.unconverted(v))
	if d == nil || d.recipe == nil || d.recipe.row == 0 {
		return nil
	}
	for _, s := range d.recipe.steps {
		if s.fn == "exp" {
			return d
		}
	}
	return nil
}

// backToScores takes one operator between scores and softmax into an
// attention, and returns which operand leads on to the scores.
func (f *fn) backToScores(d *flat, a *attention, args *[]ref) (int32, bool) {
	g := f.l.g
	if d.kind == opgraph.OpTranspose {
		perm := g.Dims(d.op)
		n := len(perm)
		return d.args[0].v, n > 0 && perm[n-1] == int64(n-1) && d.args[0].minor < 0
	}
	if !d.kind.IsElementwise() {
		return 0, false
	}
	to := int32(-1)
	s := finishStep{with: -1}
	known, value, isKnown := false, 0.0, false
	for n, r := range d.args {
		switch {
		case f.fixedScalar(r.v):
			known = true
			if n == 1 {
				value, isKnown = f.number(r.v)
			}
		case to < 0 && f.leadsToDot(r.v, 12):
			to = r.v
		case s.with < 0:
			s.with = r.v
			if d := f.defOf(r.v); d != nil && d.kind == opgraph.OpBroadcast && len(d.args) == 1 { // read through its pattern
				s.with = d.args[0].v
			}
			a.masked = true
			*args = append(*args, ref{s.with, r.shape, -1})
		default:
			return 0, false
		}
	}
	if to < 0 {
		return 0, false
	}
	steps := stepsOf(d.kind, known && len(d.args) == 2, value, isKnown)
	if d.recipe != nil {
		steps = d.recipe.steps
	}
	fin := finish{}
	for n, st := range steps {
		t := finishStep{step: st, with: -1}
		if n == 0 {
			t.with = s.with
		}
		fin.add(t)
	}
	a.before = append(fin.steps, a.before...)
	return to, true
}

// leadsToDot reports whether a value is made of a product by elementwise
// operators and transposes.
func (f *fn) leadsToDot(v int32, depth int) bool {
	d := f.defOf(v)
	switch {
	case d == nil || depth == 0:
		return false
	case d.kind == opgraph.OpDot:
		return true
	case d.kind != opgraph.OpTranspose && !d.kind.IsElementwise():
		return false
	}
	for _, a := range d.args {
		if !f.fixedScalar(a.v) && f.values[a.v].elems == f.values[v].elems && f.leadsToDot(a.v, depth-1) {
			return true
		}
	}
	return false
}

// attend is an attention being emitted.
type attend struct {
	*attention
	f          *fn
	op         opgraph.OpID
	out        int32
	parts      int64 // queries of a row block
	blocks     int64 // row blocks of a head
	group      int64 // heads whose scores share a bank
	width      int64 // score columns of a bank
	nb         int64 // banks of scores, of a chunk of keys
	chunks     int64 // of keys
	qt, kt, vt *region
	prob       *region // probabilities, by tile of a bank's columns
	turned     *region
	stat       *region // maxima, sums, reciprocals
	acc        *region // results that are summed up over chunks
	ring       *region
	keep       *region
	masks      map[int32]*region
	mask       *region
	saved      bool
	loads      int64
	qv, kv     int32   // queries and keys, the long way
	run        *region // maximum and sum so far, of a row block's chunks
	now, next  *unit   // under way
	made       int64   // units, and row blocks, so far
	madeBlocks int64
}

// attendKernel lowers an attention.
//
// Scores of up to as many keys as PSUM has columns are there at once: their
// maximum is taken as a whole, as hand-written kernels do. More keys come in
// chunks of half of PSUM, with the running maximum and sum of online softmax.
func (f *fn) attendKernel(i int32) {
	x := &f.flats[i]
	p := attend{attention: x.attn, f: f, op: x.op, out: x.outs[0].v}
	arr := f.l.arr
	f.kern++
	q := f.operandOf(p.q, f.l.g.Dot(p.first).LHSContract)
	k := f.operandOf(p.k, f.l.g.Dot(p.first).RHSContract)
	x = &f.flats[i]
	for _, a := range x.args {
		f.values[a.v].lastOn = f.kern
	}
	f.values[q].lastOn, f.values[k].lastOn = f.kern, f.kern
	f.name(x.op)
	p.parts = min(arr.parts, p.m)
	p.blocks = ceilDiv(p.m, p.parts)
	p.group = 1
	if p.n < arr.movN && p.blocks == 1 {
		p.group = max(min(arr.movN/p.n, p.heads, arr.movN/max(p.dv, 1)), 1)
	}
	p.width = min(p.n*p.group, arr.movN)
	banks := int64(len(f.psum.tiles))
	p.nb, p.chunks = ceilDiv(p.n*p.group, p.width), 1
	if p.nb > banks {
		p.nb = max((banks-1)/3, 1)
		p.chunks = ceilDiv(p.n, p.nb*p.width)
	}
	p.qv, p.kv = q, k
	p.rooms(q, k)
	groups := ceilDiv(p.heads, p.group)
	e := &f.l.e
	rows := 32 * p.nb * p.chunks
	e.each(groups, 2, rows*p.blocks, func(gi int64) {
		e.each(p.blocks, 2, rows, func(t int64) {
			for c := int64(0); c < p.chunks && e.err == nil; c++ {
				p.unit(gi, t, c)
			}
		})
	})
	e.drain()
	f.l.count(p.first, Lowered, "")
	f.l.count(x.op, Lowered, "")
	for _, r := range []*region{p.qt, p.kt, p.vt, p.prob, p.turned, p.stat, p.acc, p.run, p.ring, p.mask} {
		if r != nil {
			f.sb.release(r)
		}
	}
	f.forget(x.args)
	f.forgetValue(q)
	f.forgetValue(k)
	f.forgetValue(p.out)
}

// rooms gives everything that the kernel holds its place on chip.
func (p *attend) rooms(q, k int32) {
	f := p.f
	arr := f.l.arr
	b := f.l.opt.Buffers
	size := func(v int32) int64 { return max(f.values[v].size, 1) }
	dt := ceilDiv(p.d, arr.parts)
	need := func(v int32, tile int64) *region {
		if f.values[v].chip != nil {
			return nil
		}
		n := b
		for n > 1 && int64(n)*tile > arr.budget/6 {
			n--
		}
		return f.must(n, tile)
	}
	keys := min(p.n, p.nb*p.width) // of a chunk
	p.qt = need(q, p.group*dt*min(p.m, 16*p.parts)*size(q))
	p.kt = need(k, p.group*dt*min(keys*p.chunks, 8192)*size(k))
	p.vt = need(p.v.v, p.group*ceilDiv(min(keys*p.chunks, 8192), arr.parts)*p.dv*size(p.v.v))
	tiles := p.nb
	p.prob = f.must(int(min(tiles*int64(b+1), 2*int64(len(f.psum.tiles)))), p.width*int64(p.elem.Size()))
	p.turned = f.must(int(min(max(tiles, 2)*int64(b), 2*int64(len(f.psum.tiles)))), p.width*int64(p.elem.Size()))
	p.stat = f.must(3*b, (2*max(p.nb, p.group)+8*p.group)*4)
	if p.chunks > 1 {
		p.acc, p.run = f.must(b, p.dv*4), f.must(b, 8)
	}
	p.masks = map[int32]*region{}
	for _, s := range p.before {
		if s.with >= 0 && f.values[s.with].chip == nil && p.mask == nil {
			p.mask = f.must(2*b, p.width*4)
		}
	}
	x := &f.values[p.out]
	n := ceilDiv(p.heads, p.group) * p.blocks
	tile := p.group * p.dv * x.size
	x.parts, x.free = p.parts, n*p.group*p.dv
	x.lastOn = f.kern
	if n < 1<<20 {
		p.keep = f.keep(p.out, int(n), tile)
	}
	if p.keep == nil || f.needsHBM(p.out) {
		x.hbm = f.hbmRegion(x, f.outMem(p.out), n, f.valueName(p.out))
		p.saved = true
		if p.keep == nil {
			p.ring = f.must(b+1, tile)
		}
	}
}

// wholeQ reports whether the queries of all row blocks of a group come at once.
func (p *attend) wholeQ() bool { return p.m*p.group <= 16*p.parts }

// bring loads what the heads of a group have of queries, keys and values,
// where it is not on chip.
func (p *attend) bring(gi, heads int64) {
	f := p.f
	groups := ceilDiv(p.heads, p.group)
	one := func(op opgraph.OpID, v int32, r *region, rows, cols int64) {
		if r == nil {
			return
		}
		f.name(op)
		x := &f.values[v]
		parts := f.l.arr.parts
		f.load(v, f.pieceOf(v, gi, groups), r, int(gi)%len(r.tiles), share(x.total, gi, groups), min(parts, rows), min(r.tileBytes/x.size, ceilDiv(rows, parts)*cols*heads))
	}
	one(p.first, p.kv, p.kt, p.d, p.n)
	if p.wholeQ() {
		one(p.first, p.qv, p.qt, p.d, p.m)
	}
	one(p.op, p.v.v, p.vt, p.n, p.dv)
}

// from returns n elements of an operand: of its tile that was loaded for turn
// t, from byte off on, or of part at to at+n of all that is on chip.
func (p *attend) from(v int32, r *region, t, off, at, all, n int64) spot {
	f := p.f
	x := &f.values[v]
	if r != nil {
		off = max(min(off, r.tileBytes-x.size), 0)
		return spot{r, int(t) % len(r.tiles), off, min(n, max((r.tileBytes-off)/x.size, 1)), x.dtype}
	}
	t0, _ := x.chip.span(at, at+1, max(all, 1))
	return spot{x.chip, t0, 0, n, x.dtype}
}

// unit is a row block of the heads of a group with a chunk of the keys.
type unit struct {
	gi, t, c    int64
	heads, rows int64
	keys, cols  int64 // of a head; score columns of all heads
	at          int64 // row blocks of the graph before it
	step        int64 // units made before it: where it keeps what it makes
	slot        int64 // the same of row blocks
	banks       []int
	src, probs  []spot
	turned      []spot
}

// unitOf makes a unit that has no instructions yet, nil behind the last one.
func (p *attend) unitOf(gi, t, c int64) *unit {
	if c == p.chunks {
		t, c = t+1, 0
	}
	if t == p.blocks {
		gi, t = gi+1, 0
	}
	if gi >= ceilDiv(p.heads, p.group) {
		return nil
	}
	u := &unit{gi: gi, t: t, c: c, at: gi*p.blocks + t, step: p.made}
	p.made++
	if c == 0 {
		p.madeBlocks++
	}
	u.slot = p.madeBlocks
	u.heads = min(p.group, p.heads-gi*p.group)
	u.rows = min(p.parts, p.m-t*p.parts)
	u.keys = min(p.n-c*p.nb*p.width, p.nb*p.width)
	if p.group > 1 {
		u.keys = p.n
	}
	u.cols = u.keys * u.heads
	return u
}

// unit emits a unit. Where PSUM has room, the engines work on more than one at
// a time: the PE makes the scores of the next unit, or of the next but one,
// while this one is in softmax.
func (p *attend) unit(gi, t, c int64) {
	switch p.atOnce() {
	case 1:
		u := p.unitOf(gi, t, c)
		p.start(u)
		p.exponents(u)
		u.turned = p.turnAll(u)
		p.results(u)
	case 2:
		if p.now == nil {
			p.now = p.unitOf(gi, t, c)
			p.start(p.now)
		}
		p.now.is(p, gi, t, c)
		if p.next = p.after(p.now); p.next != nil {
			p.start(p.next)
		}
		p.exponents(p.now)
		p.now.turned = p.turnAll(p.now)
		p.results(p.now)
		p.now, p.next = p.next, nil
	default:
		p.unitOfThree(gi, t, c)
	}
}

// start emits the scores of a unit and their maxima.
func (p *attend) start(u *unit) {
	p.products(u)
	p.maxima(u)
}

// unitOfThree emits the results of a unit, what lies between scores and results
// of the next one, and the scores of the one behind that.
func (p *attend) unitOfThree(gi, t, c int64) {
	if p.now == nil {
		p.now = p.unitOf(gi, t, c)
		p.start(p.now)
		p.exponents(p.now)
		p.now.turned = p.turnAll(p.now)
		if p.next = p.after(p.now); p.next != nil {
			p.start(p.next)
		}
	}
	p.now.is(p, gi, t, c) // behind a loop that is kept these are others
	if p.next != nil {
		p.next.is(p, gi, t, c+1)
	}
	var then *unit
	if p.next != nil {
		if then = p.after(p.next); then != nil {
			p.products(then)
		}
		p.exponents(p.next)
		if then != nil {
			p.maxima(then)
		}
	}
	p.results(p.now)
	if p.next != nil {
		p.next.turned = p.turnAll(p.next)
	}
	p.now, p.next = p.next, then
}

// atOnce returns how many units are under way at a time. Beside their scores
// PSUM holds turned probabilities and results: two sets of them for three
// units.
func (p *attend) atOnce() int {
	switch banks := int64(len(p.f.psum.tiles)); {
	case 5*p.nb+1 <= banks:
		return 3
	case 3*p.nb+1 <= banks:
		return 2
	}
	return 1
}

// is makes a unit stand for another one of the same work.
func (u *unit) is(p *attend, gi, t, c int64) {
	if c == p.chunks {
		t, c = t+1, 0
	}
	if t == p.blocks {
		gi, t = gi+1, 0
	}
	u.gi, u.t, u.c, u.at = gi, t, c, gi*p.blocks+t
}

func (p *attend) after(u *unit) *unit { return p.unitOf(u.gi, u.t, u.c+1) }

// statOf returns n of the values a row that a unit keeps, from the at-th on.
func (p *attend) statOf(u *unit, at, n int64) spot {
	return spot{p.stat, int(u.step) % len(p.stat.tiles), at * 4, n, components.Float32}
}

// products emits the products that make the scores of a unit.
func (p *attend) products(u *unit) {
	f := p.f
	arr := f.l.arr
	if u.t == 0 && u.c == 0 {
		p.bring(u.gi, u.heads)
	}
	f.name(p.first)
	qr := u.gi
	if p.qt != nil && !p.wholeQ() {
		qr = u.at
		if u.c == 0 { // queries of many blocks come block by block
			x := &f.values[p.qv]
			n := ceilDiv(p.heads, p.group) * p.blocks
			f.load(p.qv, f.pieceOf(p.qv, u.at, n), p.qt, int(qr)%len(p.qt.tiles), share(x.total, u.at, n), min(arr.parts, p.d), ceilDiv(p.d, arr.parts)*u.rows*u.heads)
		}
	}
	nb := ceilDiv(u.cols, p.width)
	for j := range nb {
		bank := f.nextBank()
		w := min(p.width, u.cols-j*p.width)
		u.banks = append(u.banks, bank)
		p.score(u, j, w, bank, qr)
	}
}

// maxima emits what is done to the scores before softmax, and their maxima.
func (p *attend) maxima(u *unit) {
	f := p.f
	f.name(p.first)
	for j := range int64(len(u.banks)) {
		w := min(p.width, u.cols-j*p.width)
		src := p.prepare(u, j, w)
		u.src = append(u.src, src)
		at, n := j, int64(1)
		if p.group > 1 {
			at, n = 0, u.heads
		}
		f.vec(onDVE, components.OpcodeTensorReduce, "max", w, u.rows, p.statOf(u, at, n), src)
	}
}

// exponents emits the exponentials of a unit's scores and their sums.
func (p *attend) exponents(u *unit) {
	f := p.f
	g := p.group
	f.name(p.op)
	nb := int64(len(u.banks))
	stat := func(at, n int64) spot { return p.statOf(u, at, n) }
	maxAt := 2 * max(p.nb, g)
	// The maximum of all, negated; with chunks the running one.
	switch {
	case g > 1:
	case nb > 1 || p.chunks > 1:
		f.vec(onDVE, components.OpcodeTensorReduce, "max", nb, u.rows, stat(maxAt, 1), stat(0, nb))
	default:
		f.vec(onDVE, components.OpcodeTensorScalar, "mult", 1, u.rows, stat(maxAt, 1), stat(0, 1))
	}
	run := func(at int64) spot { // what the chunks of a row block share
		return spot{p.run, int(u.slot) % len(p.run.tiles), at * 4, 1, components.Float32}
	}
	if p.chunks > 1 {
		if u.c > 0 { // what was summed up shrinks by exp(old maximum − new)
			f.vec(onDVE, components.OpcodeTensorTensor, "max", 1, u.rows, stat(maxAt+1, 1), stat(maxAt, 1), run(0))
			f.vec(onACT, components.OpcodeActivation, "exp", 1, u.rows, stat(maxAt+2, 1), run(0), stat(maxAt+1, 1))
			f.vec(onDVE, components.OpcodeTensorCopy, "copy", 1, u.rows, run(0), stat(maxAt+1, 1))
		} else {
			f.vec(onDVE, components.OpcodeTensorCopy, "copy", 1, u.rows, run(0), stat(maxAt, 1))
		}
	}
	for j := range nb {
		s := u.src[j]
		to := spot{p.prob, int(u.step*p.nb+j) % len(p.prob.tiles), 0, s.n, p.elem}
		u.probs = append(u.probs, to)
		at, n := max(p.nb, g)+j, int64(1)
		if g > 1 { // heads side by side: each has its own maximum
			f.vec(onDVE, components.OpcodeTensorTensor, "subtract", s.n, u.rows, to, s, stat(0, u.heads))
			f.vec(onACT, components.OpcodeActivation, "exp", s.n, u.rows, to, to)
			at, n = g, u.heads
		} else {
			f.vec(onACT, components.OpcodeActivation, "exp", s.n, u.rows, to, s, stat(maxAt, 1))
		}
		f.vec(onDVE, components.OpcodeTensorReduce, "add", s.n, u.rows, stat(at, n), to)
	}
	sums := stat(max(p.nb, g), nb)
	switch {
	case g > 1:
		f.vec(onDVE, components.OpcodeReciprocal, "reciprocal", u.heads, u.rows, stat(maxAt+8, u.heads), stat(g, u.heads))
	case p.chunks > 1:
		f.vec(onDVE, components.OpcodeTensorReduce, "add", nb, u.rows, stat(maxAt+4, 1), sums)
		if u.c > 0 {
			f.vec(onDVE, components.OpcodeTensorScalarPtr, "mult_add", 1, u.rows, run(1), run(1), stat(maxAt+2, 1), stat(maxAt+4, 1))
		} else {
			f.vec(onDVE, components.OpcodeTensorCopy, "copy", 1, u.rows, run(1), stat(maxAt+4, 1))
		}
		if u.c == p.chunks-1 {
			f.vec(onDVE, components.OpcodeReciprocal, "reciprocal", 1, u.rows, stat(maxAt+7, 1), run(1))
		}
	default:
		if nb > 1 {
			f.vec(onDVE, components.OpcodeTensorReduce, "add", nb, u.rows, stat(maxAt+4, 1), sums)
			sums = stat(maxAt+4, 1)
		}
		f.vec(onDVE, components.OpcodeReciprocal, "reciprocal", 1, u.rows, stat(maxAt+7, 1), sums)
	}
}

// results emits the product of a unit's probabilities and values and what
// becomes of it.
func (p *attend) results(u *unit) {
	f := p.f
	maxAt := 2 * max(p.nb, p.group)
	to, at := p.keep, int(u.at)
	if to == nil {
		to, at = p.ring, int(u.slot)%len(p.ring.tiles)
	}
	x := &f.values[p.out]
	n := u.heads * p.dv
	dst := spot{to, at, 0, n, x.dtype}
	bank := f.nextBank()
	p.mixValues(u, bank)
	mixed := f.bankSpot(bank, 0, n)
	switch {
	case p.group > 1:
		f.vec(onDVE, components.OpcodeTensorTensor, "mult", n, u.rows, dst, mixed, p.statOf(u, maxAt+8, u.heads))
	case p.chunks == 1:
		f.vec(onDVE, components.OpcodeTensorScalarPtr, "mult", n, u.rows, dst, mixed, p.statOf(u, maxAt+7, 1))
	default:
		sum := spot{p.acc, int(u.slot) % len(p.acc.tiles), 0, n, components.Float32}
		if u.c == 0 {
			f.vec(onAny, components.OpcodeTensorCopy, "copy", n, u.rows, sum, mixed)
		} else {
			f.vec(onDVE, components.OpcodeTensorTensor, "mult_add", n, u.rows, sum, sum, mixed)
		}
		if u.c == p.chunks-1 {
			f.vec(onDVE, components.OpcodeTensorScalarPtr, "mult", n, u.rows, dst, sum, p.statOf(u, maxAt+7, 1))
		}
	}
	if p.saved && u.c == p.chunks-1 {
		v := p.out
		pieces := ceilDiv(p.heads, p.group) * p.blocks
		part, bytes := f.pieceOf(v, u.at, pieces), share(x.total, u.at, pieces)
		rows := u.rows
		f.l.e.later(f.l.opt.Buffers, func() { f.store(v, to, int64(at), int64(at+1), part, bytes, rows, n, 0) })
	}
}

// score emits the product of queries and keys for one bank of scores.
func (p *attend) score(u *unit, j, w int64, bank int, qr int64) {
	f := p.f
	gi, heads, t, rows, c, q, k := u.gi, u.heads, u.t, u.rows, u.c, p.qv, p.kv
	arr := f.l.arr
	e := &f.l.e
	d := f.values[q].dtype
	if kd := f.values[k].dtype; kd.Size() > d.Size() {
		d = kd
	}
	dt := ceilDiv(p.d, arr.parts)
	per := int64(1) // products of this bank
	if p.group > 1 {
		per = heads
	}
	for h := range per {
		n := w / per
		for i := range dt {
			kr := min(arr.parts, p.d-i*arr.parts)
			head := gi*p.group + h
			col := (c*p.nb + j) * p.width
			qoff := (h*dt + i) * min(p.m, 16*p.parts)
			if p.blocks > 1 && p.wholeQ() {
				qoff += t * p.parts
			}
			qs := p.from(q, p.qt, qr, qoff*f.values[q].size, (head*p.m+t*p.parts)*p.d, p.heads*p.m*p.d, rows)
			ks := p.from(k, p.kt, gi, ((h*dt+i)*min(p.n, 8192)+col*b2i(p.group == 1))*f.values[k].size, (head*p.n+col*b2i(p.group == 1))*p.d, p.heads*p.n*p.d, n)
			f.reads(qs.r, qs.t, qs.t+1, qs.off, qs.n, kr, qs.dtype)
			f.reads(ks.r, ks.t, ks.t+1, ks.off, ks.n, kr, ks.dtype)
			f.bankOut(h == 0 && i == 0, bank, h*n*4, n, rows)
			f.matmul(kr, rows, n, d, i == 0, i == dt-1, 0, bank)
			f.flops = opgraph.AddSize(f.flops, opgraph.MulSize(2*kr*rows*n, e.mult))
		}
	}
}

// prepare does what the graph does to scores before softmax: scale, mask, cap.
func (p *attend) prepare(u *unit, j, w int64) spot {
	f := p.f
	gi, t, c, rows, bank := u.gi, u.t, u.c, u.rows, u.banks[j]
	src := f.bankSpot(bank, 0, w)
	for n, s := range p.before {
		if n == 0 && len(p.before) == 1 && s.with < 0 && s.op == components.OpcodeTensorScalar && s.fn == "mult" && p.group == 1 {
			return src // the scale of the activation
		}
		dst := f.bankSpot(bank, 0, w) // in place
		if s.with < 0 {
			f.vec(s.eng, s.op, s.fn, w, rows, dst, src)
			continue
		}
		x := &f.values[s.with]
		var second spot
		if x.chip != nil {
			all := p.heads * p.blocks * p.nb * p.chunks
			i := ((gi*p.group*p.blocks+t)*p.chunks+c)*p.nb + j
			t0, _ := x.chip.span(mulDiv(i, x.elems, all), mulDiv(i, x.elems, all)+1, max(x.elems, 1))
			second = spot{x.chip, t0, 0, min(w, max(x.elems/p.parts, 1)), x.dtype}
		} else {
			f.ensureHBM(s.with)
			slot := int(p.loads) % len(p.mask.tiles)
			p.loads++
			bytes := min(x.total, rows*w*x.size)
			at := mulDiv(min(t, max(p.blocks-1, 0)), max(x.total-bytes, 0), max(p.blocks, 1))
			f.load(s.with, f.partOf(s.with, at, bytes), p.mask, slot, bytes, rows, w)
			second = spot{p.mask, slot, 0, w, x.dtype}
		}
		op := s.op
		if op == components.OpcodeTensorScalarPtr {
			op = components.OpcodeTensorTensor
		}
		f.vec(onDVE, op, s.fn, w, rows, dst, src, second)
	}
	return src
}

// turnAll turns the probabilities so that the keys lie on the partitions: four
// blocks share a bank and leave it in one copy.
func (p *attend) turnAll(u *unit) []spot {
	f := p.f
	probs, cols, rows, step := u.probs, u.cols, u.rows, u.step
	arr := f.l.arr
	e := &f.l.e
	turned := make([]spot, 0, len(probs))
	for j, s := range probs {
		n := min(p.width, cols-int64(j)*p.width)
		bank := f.nextBank()
		blocks := ceilDiv(n, min(arr.parts, p.n))
		per := min(n, ceilDiv(n, blocks))
		for b := range blocks {
			w := min(per, n-b*per)
			f.reads(s.r, s.t, s.t+1, s.off+b*per*int64(s.dtype.Size()), w, rows, s.dtype)
			f.bankOut(b == 0, bank, b*rows*4, rows, w)
			f.matmul(rows, w, rows, s.dtype, true, true, components.FlagTranspose, bank)
			f.helper = opgraph.AddSize(f.helper, opgraph.MulSize(2*rows*rows*w, e.mult))
		}
		to := spot{p.turned, int(step*p.nb+int64(j)) % len(p.turned.tiles), 0, blocks * rows, s.dtype}
		f.vec(onAny, components.OpcodeTensorCopy, "copy", blocks*rows, min(per, arr.parts), to, f.bankSpot(bank, 0, blocks*rows))
		turned = append(turned, to)
	}
	return turned
}

// mixValues emits the product of the turned probabilities and the values.
func (p *attend) mixValues(u *unit, bank int) {
	f := p.f
	gi, heads, rows, c, keys, turned := u.gi, u.heads, u.rows, u.c, u.keys, u.turned
	arr := f.l.arr
	e := &f.l.e
	d := p.elem
	if vd := f.values[p.v.v].dtype; vd.Size() > d.Size() {
		d = vd
	}
	v := p.v.v
	kr := min(arr.parts, p.n)
	for h := range heads {
		tiles := ceilDiv(keys, kr)
		for i := range tiles {
			n := min(kr, keys-i*kr)
			col := h*keys*b2i(p.group > 1) + i*kr
			s := turned[min(col/p.width, int64(len(turned))-1)]
			block := col % p.width / kr
			f.reads(s.r, s.t, s.t+1, block*rows*int64(s.dtype.Size()), rows, n, s.dtype)
			row := c*p.nb*p.width + i*kr
			head := gi*p.group + h
			vs := p.from(v, p.vt, gi, (h*ceilDiv(min(p.n, 8192), arr.parts)+row/kr)*p.dv*f.values[v].size, (head*p.n+row)*p.dv, p.heads*p.n*p.dv, p.dv)
			f.reads(vs.r, vs.t, vs.t+1, vs.off, vs.n, n, vs.dtype)
			f.bankOut(h == 0 && i == 0, bank, h*p.dv*4, p.dv, rows)
			f.matmul(n, rows, p.dv, d, i == 0, i == tiles-1, 0, bank)
			f.flops = opgraph.AddSize(f.flops, opgraph.MulSize(2*n*rows*p.dv, e.mult))
		}
	}
}
