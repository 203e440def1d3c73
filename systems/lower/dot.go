package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// side is one operand of a matrix product: rows are the contracted dimension,
// columns the free one.
type side struct {
	v     int32
	cols  int64 // of the whole operand, for one batch
	batch int64
	k     int64
	chip  *region // whole operand on chip
	ring  *region // chunks that are streamed
	panel *region // the columns of one block, all rows
	turns int64   // uses of the ring so far
	turn  bool    // rows and columns are exchanged as it is brought in
	raw   *region // chunks of it that are not turned yet
	raws  int64
}

// dotKernel lowers Batch products of a K×M by a K×N matrix.
//
// The contracted dimension lies on the partitions of both operands. The
// stationary operand is cut into blocks of up to four tiles of statM columns
// that stay on chip while the moving one streams past, movN columns at a time
// and chunkK tiles of K in one transfer. A sum takes one PSUM bank; four
// banks work while the other four are emptied by Activation and DVE in turn.
func (f *fn) dotKernel(i int32, z opgraph.DotSize) {
	x := &f.flats[i]
	if x.attn != nil {
		f.attendKernel(i)
		return
	}
	g := f.l.g
	dd := g.Dot(x.op)
	f.kern++
	if z.Batch == 0 || z.M == 0 || z.N == 0 {
		f.noWork(x)
		return
	}
	if z.K*min(z.M, z.N) <= elementwiseK {
		// A product of vectors element by element: multiplications (and
		// additions) on DVE.
		var steps []streamStep
		for range z.K {
			steps = append(steps, streamStep{op: components.OpcodeTensorTensor, eng: onDVE, fn: "mult", times: 1, flops: z.FLOPs() / z.K})
		}
		f.stream(i, steps, "")
		return
	}
	l, turnL := f.sideOf(x.args[0], dd.LHSContract, f.values[x.args[1].v].param >= 0, true)
	x = &f.flats[i]
	r, turnR := f.sideOf(x.args[1], dd.RHSContract, false, !turnL)
	f.flats[i].args[0].minor, f.flats[i].args[1].minor = -1, -1
	x = &f.flats[i]
	f.product(i, side{v: l, cols: z.M, turn: turnL}, side{v: r, cols: z.N, turn: turnR}, z, x.outs[0].v)
}

// elementwiseK is up to how many terms, counted over the shorter free
// dimension, a product is done element by element.
const elementwiseK = 8

// noWork makes the results of an operator that computes nothing.
func (f *fn) noWork(x *flat) {
	for _, o := range x.outs {
		v := &f.values[o.v]
		mem := f.outMem(o.v)
		if mem == components.MemDRAM {
			mem = components.MemInput // nobody writes it: it is there from the start
		}
		v.hbm = f.hbmRegion(v, mem, 1, f.valueName(o.v))
	}
	f.l.count(x.op, Free, "")
}

// operandOf returns the value that has the contracted dimension on the
// partitions: the operand itself, or a copy with rows and columns exchanged.
func (f *fn) operandOf(a ref, contract []int64) int32 {
	x := &f.values[a.v]
	x.lastOn = f.kern
	if k := f.contractedRow(a, contract); k > 0 && !x.weight {
		return f.turnedCopy(a.v, k)
	}
	return a.v
}

// sideOf returns what a product reads as an operand: the value itself, a copy
// with rows and columns exchanged, or, where that copy would not stay on chip,
// the value with the word that its blocks are turned as they are brought in. In
// a product of two parameters the first is data, which the host does not lay
// out for its reader: with says that this is one.
func (f *fn) sideOf(a ref, contract []int64, with, onTheWay bool) (v int32, turn bool) {
	x := &f.values[a.v]
	x.lastOn = f.kern
	data := with && x.param >= 0 && f.comp == f.l.g.Entry
	k := f.contractedRow(a, contract)
	if k == 0 || x.weight && !data {
		return a.v, false
	}
	rows := max(x.elems/k, 1)
	if onTheWay && x.chip == nil && x.turned < 0 && !x.moves && !x.double && f.l.arr.banks >= 4 && ceilDiv(k, f.l.arr.parts)*rows*x.size > f.l.arr.budget/shareOfSBUF {
		return a.v, true
	}
	return f.turnedCopy(a.v, k), false
}

// contractedRow returns how many elements an operand has in a row, where a
// product contracts that dimension and the operand is not transposed; else 0.
func (f *fn) contractedRow(a ref, contract []int64) int64 {
	x := &f.values[a.v]
	if x.konst || x.contracted || len(contract) == 0 {
		return 0
	}
	dims := f.l.g.Shapes.Dims(a.shape)
	if !slices.Contains(contract, f.minorOf(a)) {
		return 0
	}
	k := int64(1)
	for _, d := range contract {
		if d < int64(len(dims)) && dims[d] > 0 {
			k *= dims[d]
		}
	}
	if k >= x.elems || k <= 1 {
		return 0 // a vector lies as it is wanted
	}
	return k
}

// turnedCopy returns a copy of v, whose rows have k elements, with rows and
// columns exchanged: 128×128 blocks go through the PE into PSUM, four blocks
// at a time from there to SBUF.
func (f *fn) turnedCopy(v int32, k int64) int32 {
	if t := f.values[v].turned; t >= 0 && f.values[t].free > 0 {
		f.values[t].lastOn = f.kern
		return t
	}
	a := f.l.arr
	src := f.values[v]
	out := f.newValueLike(v)
	rows := max(src.elems/k, 1)
	y := &f.values[out]
	y.users = src.users
	y.lastOn = f.kern
	f.values[v].turned = out
	y.parts, y.free = min(k, a.parts), ceilDiv(k, a.parts)*rows

	perGroup := max(min(a.bankBytes/max(src.size, 4)/a.parts, 8), 1) // blocks that one bank takes
	across := ceilDiv(rows, a.parts)
	down := ceilDiv(k, a.parts)
	groups := ceilDiv(down, perGroup)
	n := across * groups
	var in *region
	if src.chip == nil {
		in = f.must(f.l.opt.Buffers, perGroup*a.parts*src.size)
	}
	tile := perGroup * a.parts * src.size
	var home *region
	if n*tile <= a.budget/shareOfSBUF {
		if home = f.alloc(int(n), tile); home != nil {
			f.values[out].chip = home
			f.resident = append(f.resident, out)
		}
	}
	var ring *region
	if home == nil {
		ring = f.must(f.l.opt.Buffers+1, tile)
		y = &f.values[out]
		y.hbm = f.hbmRegion(y, components.MemDRAM, n, f.valueName(v)+".turned")
	}
	e := &f.l.e
	f.l.e.loop(n, func(t int64) {
		parts := a.parts
		cols := perGroup * a.parts
		if t == n-1 {
			parts = rows - (across-1)*a.parts
			cols = k - (groups-1)*perGroup*a.parts
		}
		blocks := ceilDiv(cols, a.parts)
		if in != nil {
			f.load(v, f.pieceOf(v, t, n), in, int(t)%len(in.tiles), share(src.total, t, n), parts, cols)
		}
		bank := f.nextBank()
		for b := range blocks {
			m := min(a.parts, cols-b*a.parts)
			if in != nil {
				s := int(t) % len(in.tiles)
				f.reads(in, s, s+1, b*a.parts*src.size, m, parts, src.dtype)
			} else {
				t0, t1 := src.chip.span(t, t+1, n)
				f.reads(src.chip, t0, t1, 0, m, parts, src.dtype)
			}
			f.bankOut(b == 0, bank, b*parts*4, parts, m)
			f.matmul(parts, m, parts, src.dtype, true, true, components.FlagTranspose, bank)
			f.helper = opgraph.AddSize(f.helper, opgraph.MulSize(2*parts*parts*m, e.mult))
		}
		to, slot := home, int(t)
		if to == nil {
			to, slot = ring, int(t)%len(ring.tiles)
		}
		f.evictBank(bank, to, slot, blocks*parts, min(a.parts, cols), src.dtype, "copy")
		if ring != nil {
			f.l.e.later(f.l.opt.Buffers, func() {
				f.store(out, ring, int64(slot), int64(slot+1), f.pieceOf(out, t, n), share(src.total, t, n), min(a.parts, k), blocks*parts, 0)
			})
		}
	})
	f.l.e.drain()
	if in != nil {
		f.sb.release(in)
	}
	if ring != nil {
		f.sb.release(ring)
	}
	return out
}

func (f *fn) newValueLike(v int32) int32 {
	x := f.values[v]
	x.users, x.hbm, x.chip, x.base, x.turned, x.param, x.out = nil, nil, nil, -1, -1, -1, false
	f.values = append(f.values, x)
	return int32(len(f.values) - 1)
}

// product emits the loops of a matrix product of values sv and mv.
func (f *fn) product(i int32, l, r side, z opgraph.DotSize, out int32) {
	a := f.l.arr
	x := &f.flats[i]
	f.name(x.op)
	s, m := l, r
	lv, rv := l.v, r.v
	s.batch, s.k, m.batch, m.k = z.Batch, z.K, z.Batch, z.K
	// The operand with fewer instructions moves; one that is turned stays, so
	// that it is turned once.
	swapped := r.turn || !l.turn && ceilDiv(z.N, a.statM)*ceilDiv(z.M, a.movN) < ceilDiv(z.M, a.statM)*ceilDiv(z.N, a.movN)
	if swapped {
		s, m = m, s
	}
	kt := ceilDiv(z.K, a.parts)
	p := prod{f: f, s: &s, m: &m, kt: kt, z: z, out: out, dtype: f.values[lv].dtype}
	if f.values[rv].dtype.Size() > p.dtype.Size() {
		p.dtype = f.values[rv].dtype
	}
	for _, o := range []*side{&s, &m} {
		o.chip = f.values[o.v].chip
		f.values[o.v].lastOn = f.kern
	}
	half := max(len(f.psum.tiles)/2, 1)
	sizeS, sizeM := f.values[s.v].size, f.values[m.v].size
	p.bm = min(a.statM*int64(half), ceilDiv(s.cols, a.statM)*a.statM)
	// The block of the stationary operand stays: at most half of SBUF.
	for s.chip == nil && p.bm > a.statM && kt*p.bm*sizeS > a.budget*2/5 {
		p.bm -= a.statM
	}
	// So do the results of a block until they are stored.
	nw, sizeOut := min(a.movN, m.cols), f.values[out].size
	for p.bm > a.statM && (ceilDiv(p.bm, a.statM)*int64(f.l.opt.Buffers)+1)*nw*sizeOut > a.budget/6 {
		p.bm -= a.statM
	}
	blocks := ceilDiv(s.cols, p.bm) * z.Batch
	p.kc = min(kt, chunkK)
	for p.kc > 1 && (p.kc*min(a.movN, m.cols)*sizeM > 2*a.tile || p.kc*p.bm*sizeS > a.budget/8) {
		p.kc--
	}
	chunks := ceilDiv(kt, p.kc)
	stream := kt*p.bm*sizeS > a.budget*2/5
	if s.turn {
		s.raw = f.must(f.l.opt.Buffers, p.kc*p.bm*sizeS)
	}
	if s.chip == nil {
		if stream {
			s.ring = f.must(2*f.l.opt.Buffers, p.kc*p.bm*sizeS)
		} else {
			n := int64(1)
			if blocks > 1 && 2*kt*p.bm*sizeS <= a.budget*2/5 {
				n = 2
			}
			s.panel = f.must(int(n*chunks), p.kc*p.bm*sizeS)
		}
	}
	if m.chip == nil {
		whole := m.batch * kt * m.cols * sizeM
		if ceilDiv(s.cols, p.bm) > 1 && whole <= a.budget/shareOfSBUF {
			p.fetch(&m) // read again for every block: it stays
		} else {
			w := min(a.movN, m.cols)
			n := int(max(min(int64(2*f.l.opt.Buffers), a.budget/4/max(p.kc*w*sizeM, 1)), 2))
			if int64(n) < chunks+1 && (chunks+1)*p.kc*w*sizeM <= a.budget/8 {
				n = int(chunks + 1)
			}
			m.ring = f.must(n, p.kc*w*sizeM)
		}
	}
	p.results()
	p.leave = leaving{f: f, fin: x.fin, out: out, perPart: swapped, width: p.nw}
	p.leave.bring()
	// Full blocks of columns, then the ragged one.
	for b0, bw := range cuts(s.cols, p.bm) {
		p.blocks(b0*p.bm, bw.n, bw.w)
	}
	f.l.e.drain()
	for _, r := range []*region{s.ring, s.panel, s.raw, m.ring, p.ring, p.scrap} {
		if r != nil {
			f.sb.release(r)
		}
	}
	p.leave.release()
	f.forget(x.args)
	for _, v := range []int32{lv, rv} {
		f.forgetValue(v)
	}
	f.forgetValue(out)
	f.l.count(x.op, Lowered, "")
}

// cut is n pieces of width w.
type cut struct{ n, w int64 }

// cuts yields full pieces of a length and the ragged rest, with the number of
// pieces before them.
func cuts(total, width int64) func(func(int64, cut) bool) {
	return func(yield func(int64, cut) bool) {
		full := total / width
		if full > 0 && !yield(0, cut{full, width}) {
			return
		}
		if rest := total % width; rest > 0 {
			yield(full, cut{1, rest})
		}
	}
}

// prod is a matrix product being emitted.
type prod struct {
	f      *fn
	s, m   *side
	kt, kc int64 // tiles of the contracted dimension, and of one transfer
	bm     int64 // columns of a stationary block
	z      opgraph.DotSize
	out    int32
	dtype  components.DType
	keep   *region // the result on chip
	ring   *region // or its rotating tiles
	saved  bool
	scrap  *region
	tiles  int64 // result tiles made
	panels int64
	nw     int64
	mt, nt int64
	depth  int // stores held back
	leave  leaving
	sums   []int // banks that are summing up
}

// fetch brings the whole moving operand on chip.
func (p *prod) fetch(o *side) {
	f := p.f
	x := &f.values[o.v]
	n := o.batch * ceilDiv(p.kt, p.kc)
	tile := p.kc * o.cols * x.size
	r := f.must(int(n), tile)
	if int64(len(r.tiles)) < n {
		n = int64(len(r.tiles))
	}
	v := o.v
	f.l.e.loop(n, func(t int64) {
		f.load(v, f.pieceOf(v, t, n), r, int(t), share(f.values[v].total, t, n), min(f.l.arr.parts, o.k), p.kc*o.cols)
	})
	o.chip = r
	if f.usedLater(o.v) {
		x.chip, x.parts, x.free = r, min(f.l.arr.parts, o.k), p.kt*o.cols*o.batch
		f.resident = append(f.resident, o.v)
	} else {
		p.scrap = r
	}
}

// results decides where the result goes.
func (p *prod) results() {
	f := p.f
	a := f.l.arr
	x := &f.values[p.out]
	p.nw = min(a.movN, p.m.cols)
	p.depth = f.l.opt.Buffers
	p.mt, p.nt = ceilDiv(p.s.cols, a.statM), ceilDiv(p.m.cols, p.nw)
	n := p.z.Batch * p.mt * p.nt
	tile := p.nw * x.size
	x.parts, x.free = min(a.statM, p.s.cols), n*p.nw
	x.lastOn = f.kern
	if n < 1<<24 {
		p.keep = f.keep(p.out, int(n), tile)
	}
	if p.keep == nil || f.needsHBM(p.out) {
		x.hbm = f.hbmRegion(x, f.outMem(p.out), n, f.valueName(p.out))
		p.saved = true
		if p.keep == nil {
			p.ring = f.must(int(ceilDiv(p.bm, a.statM))*f.l.opt.Buffers+1, tile)
			p.depth = len(p.ring.tiles) - 1
		}
	}
}

// blocks emits n stationary blocks of width w for every batch, the first of
// which starts at column at.
func (p *prod) blocks(at, n, w int64) {
	f := p.f
	e := &f.l.e
	total := n * p.z.Batch
	e.each(total, 1, ceilDiv(p.m.cols, p.nw)*p.kt*ceilDiv(p.bm, f.l.arr.statM), func(t int64) {
		b, c := t/n, at+t%n*p.bm
		base := 0
		if p.s.panel != nil {
			chunks := int(ceilDiv(p.kt, p.kc))
			base = int(p.panels) % (len(p.s.panel.tiles) / chunks) * chunks
			p.panels++
			for q := range int64(chunks) {
				p.loadChunk(p.s, p.s.panel, base+int(q), b, q, c, w)
			}
		}
		for n0, nw := range cuts(p.m.cols, p.nw) {
			e.loop(nw.n, func(j int64) { p.tile(b, c, w, (n0+j)*p.nw, nw.w, base) })
		}
	})
}

// rows returns the rows of tile k of the contracted dimension.
func (p *prod) rows(k int64) int64 {
	return min(p.f.l.arr.parts, p.s.k-k*p.f.l.arr.parts)
}

// loadChunk loads chunk q of the rows, columns c to c+w, of batch b of an
// operand.
func (p *prod) loadChunk(o *side, to *region, slot int, b, q, c, w int64) {
	f := p.f
	a := f.l.arr
	k0 := q * p.kc * a.parts
	rows := min(p.kc*a.parts, o.k-k0)
	size := f.values[o.v].size
	kk := ceilDiv(rows, a.parts)
	if o.turn {
		p.turnChunk(o, to, slot, p.rowsOf(o, b, k0, rows, c, w), rows, w)
		return
	}
	f.load(o.v, p.block(o, b*o.k+k0, rows, c, w), to, slot, rows*w*size, min(a.parts, rows), kk*w)
}

// rowsOf returns elements k0 to k0+rows of the rows c to c+w of an operand that
// lies in device memory with the contracted dimension contiguous.
func (p *prod) rowsOf(o *side, b, k0, rows, c, w int64) part {
	f := p.f
	x := &f.values[o.v]
	at := (b*o.cols+c)*o.k + k0
	n := (w-1)*o.k + rows
	if all := opgraph.MulSize(opgraph.MulSize(o.batch*o.k, o.cols), x.size); all != x.total || x.ext > 0 || x.moves {
		lo, hi := mulDiv(at*x.size, x.total, all), mulDiv((at+n)*x.size, x.total, all)
		return f.partOf(o.v, lo, max(hi-lo, 1))
	}
	to := f.partOf(o.v, at*x.size, n*x.size)
	if rows < o.k && w > 1 {
		to.stride, to.row = o.k*x.size, rows*x.size
	}
	return to
}

// turnChunk loads w rows of the operand, of each the rows elements that the
// product contracts, and turns them: the PE turns blocks of 128×128 into a
// bank, which leaves PSUM in one copy.
func (p *prod) turnChunk(o *side, to *region, slot int, from part, rows, w int64) {
	f := p.f
	a := f.l.arr
	x := &f.values[o.v]
	d, size := x.dtype, x.size
	raw := int(o.raws) % len(o.raw.tiles)
	o.raws++
	across := ceilDiv(w, a.parts)
	f.load(o.v, from, o.raw, raw, rows*w*size, min(a.parts, w), across*rows)
	perBank := max(a.bankBytes/4/a.parts, 1)
	for k := range ceilDiv(rows, a.parts) {
		kr := min(a.parts, rows-k*a.parts)
		for j0 := int64(0); j0 < across; j0 += perBank {
			bank := f.nextBank()
			for slices.Contains(p.sums, bank) { // half of them at most
				bank = f.nextBank()
			}
			cols := min(perBank*a.parts, w-j0*a.parts)
			for j := j0; j < min(j0+perBank, across); j++ {
				n := min(a.parts, w-j*a.parts)
				f.reads(o.raw, raw, raw+1, (j*rows+k*a.parts)*size, kr, n, d)
				f.bankOut(j == j0, bank, (j-j0)*a.parts*4, n, kr)
				f.matmul(n, kr, n, d, true, true, components.FlagTranspose, bank)
				f.helper = opgraph.AddSize(f.helper, opgraph.MulSize(2*kr*n*n, f.l.e.mult))
			}
			f.vec(components.Unassigned, components.OpcodeTensorCopy, "copy", cols, kr, spot{to, slot, (k*w + j0*a.parts) * size, cols, d}, f.bankSpot(bank, 0, cols))
		}
	}
}

// block returns columns c to c+w of the rows from row on of an operand in
// device memory. Where what wrote it laid it out in tiles, its bytes lie among
// those of the same rows.
func (p *prod) block(o *side, row, rows, c, w int64) part {
	f := p.f
	x := &f.values[o.v]
	if all := opgraph.MulSize(opgraph.MulSize(o.batch*o.k, o.cols), x.size); all != x.total || x.ext > 0 || x.moves {
		// Another element size in memory, or a slice: the share of all bytes.
		n := o.batch * o.k
		lo, hi := mulDiv(row, x.total, n), mulDiv(row+rows, x.total, n)
		return f.partOf(o.v, lo, max(hi-lo, 1))
	}
	lo := (row*o.cols + c) * x.size
	to := f.partOf(o.v, lo, ((rows-1)*o.cols+w)*x.size)
	to.stride, to.row = o.cols*x.size, w*x.size
	if rows == 1 || w == o.cols {
		to.stride = 0
	}
	return to
}

// operandAt says that a matmul reads columns c to c+w of tile k of a side.
// In a ring or panel the columns start off columns into the block's width.
func (p *prod) operandAt(o *side, r *region, slot int, b, k, c, w, off, width int64) {
	f := p.f
	d := f.values[o.v].dtype
	n := w * f.values[o.v].words()
	if r != nil {
		f.reads(r, slot, slot+1, (k%p.kc*width+off)*f.values[o.v].size, n, p.rows(k), d)
		return
	}
	row := b*p.kt + k
	t0, t1 := o.chip.span(row*o.cols+c, row*o.cols+c+w, o.batch*p.kt*o.cols)
	f.reads(o.chip, t0, t1, 0, n, p.rows(k), d)
}

// tile emits the result tiles of one stationary block and nw moving columns.
func (p *prod) tile(b, c, w, n0, nw int64, base int) {
	f := p.f
	e := &f.l.e
	a := f.l.arr
	var banks [16]int
	mt := ceilDiv(w, a.statM)
	for j := range mt {
		banks[j] = f.nextBank()
	}
	p.sums = banks[:mt]
	for q := range ceilDiv(p.kt, p.kc) {
		if e.err != nil {
			return
		}
		slotM, slotS := 0, base+int(q)
		if p.m.ring != nil {
			slotM = int(p.m.turns) % len(p.m.ring.tiles)
			p.m.turns++
			p.loadChunk(p.m, p.m.ring, slotM, b, q, n0, nw)
		}
		if p.s.ring != nil {
			slotS = int(p.s.turns) % len(p.s.ring.tiles)
			p.s.turns++
			p.loadChunk(p.s, p.s.ring, slotS, b, q, c, w)
		}
		sr := p.s.panel
		if p.s.ring != nil {
			sr = p.s.ring
		}
		for j := range mt {
			mw := min(a.statM, w-j*a.statM)
			for k := q * p.kc; k < min((q+1)*p.kc, p.kt); k++ {
				p.operandAt(p.s, sr, slotS, b, k, c+j*a.statM, mw, j*a.statM, w)
				p.operandAt(p.m, p.m.ring, slotM, b, k, n0, nw, 0, nw)
				f.bankOut(k == 0, banks[j], 0, nw, mw)
				f.matmul(p.rows(k), mw, nw, p.dtype, k == 0, k == p.kt-1, 0, banks[j])
				f.flops = opgraph.AddSize(f.flops, opgraph.MulSize(2*p.rows(k)*mw*nw, e.mult))
			}
		}
	}
	p.sums = nil
	for j := range mt {
		p.finish(b, c+j*a.statM, n0, min(a.statM, w-j*a.statM), nw, banks[j])
	}
}

// finish takes a finished sum, mw stationary columns from c on by nw moving
// ones from n0 on, from its bank to the result. In device memory a result lies
// tile after tile: all moving columns of 128 stationary ones, then the next.
func (p *prod) finish(b, c, n0, mw, nw int64, bank int) {
	f := p.f
	x := &f.values[p.out]
	idx := (b*p.mt+c/f.l.arr.statM)*p.nt + n0/p.nw
	to, slot := p.keep, int(idx)
	if to == nil {
		to, slot = p.ring, int(p.tiles)%len(p.ring.tiles)
		p.tiles++
	}
	at, all := (b*p.s.cols+c)*p.m.cols+n0*mw, p.z.Batch*p.s.cols*p.m.cols
	p.leave.emit(bank, to, slot, n0, mw, nw, at, all)
	if p.saved {
		v := p.out
		bytes := mw * nw * x.size
		out := f.partOf(v, at*x.size, bytes)
		if all*x.size != x.total { // another element size in memory
			lo, hi := mulDiv(at, x.total, all), mulDiv(at+mw*nw, x.total, all)
			out = f.partOf(v, lo, max(hi-lo, 1))
		}
		f.l.e.later(p.depth, func() { f.store(v, to, int64(slot), int64(slot+1), out, bytes, mw, nw, 0) })
	}
}
