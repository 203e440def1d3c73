package lower

import (
	"perfsim/components"
	"perfsim/components/opgraph"
)

// convKernel lowers a convolution as an implicit matrix product: for each
// kernel tap the output features (stationary) times the input features of the
// positions that the tap meets (moving), summed over taps in PSUM. Pairs of
// position and tap that meet padding have no term, neither in the graph's
// FLOPs nor here. Where the input has few features several taps share the
// partitions. A depthwise convolution runs on DVE, channels on partitions.
func (f *fn) convKernel(i int32, c opgraph.ConvSize) {
	x := &f.flats[i]
	g := f.l.g
	groups := max(g.IntOr(x.op, opgraph.AttrFeatureGroups, 1), 1)
	pairs := opgraph.MulSize(c.Batch, c.Pairs)
	if pairs == 0 || c.In == 0 || c.Out == 0 || len(x.args) < 2 {
		f.noWork(x)
		return
	}
	f.values[x.args[0].v].lastOn, f.values[x.args[1].v].lastOn = f.kern, f.kern
	if c.Out%groups != 0 {
		groups = 1
	}
	if fewAGroup(c, groups) {
		f.depthwise(i, c, pairs)
		return
	}
	x = &f.flats[i]
	p := conv{f: f, x: x, c: c, groups: groups, pairs: pairs}
	p.kernel(i)
}

// fewAGroup reports whether a convolution has so few features a group that its
// products would leave the array nearly empty.
func fewAGroup(c opgraph.ConvSize, groups int64) bool {
	return groups > 1 && c.Out%groups == 0 && c.Out/groups*c.In <= 8
}

func (f *fn) isDepthwise(i int32) bool {
	x := &f.flats[i]
	c, ok := f.l.g.ConvSize(x.op)
	return ok && fewAGroup(c, max(f.l.g.IntOr(x.op, opgraph.AttrFeatureGroups, 1), 1))
}

// conv is a convolution being emitted.
type conv struct {
	f      *fn
	x      *flat
	c      opgraph.ConvSize
	groups int64
	pairs  int64

	in, ker, out int32
	fold         int64 // taps that share the partitions
	cols         int64 // moving columns of fold·In rows; a last one has the rest
	tiles        int64 // of output positions
	width        int64 // positions of a tile
	mt, work     int64 // blocks of output features of a group, and of all
	m            int64 // output features of a group
	spread       int64 // bytes of the input with a copy for each of these taps
	inRing       *region
	inChip       *region
	weights      *region // of all blocks, or of a few that take turns
	keep, ring   *region // results
	saved        bool
	loaded       int64 // blocks of weights loaded so far
	done         int64 // result tiles so far
	leave        leaving
	scrap        []*region
}

// kernel emits a convolution. Weights that fit in a quarter of SBUF stay for the
// whole kernel, and each tile of positions passes all blocks of output
// features; else the blocks pass one after another.
func (p *conv) kernel(i int32) {
	f, c := p.f, p.c
	a := f.l.arr
	e := &f.l.e
	x := p.x
	p.in, p.ker, p.out = x.args[0].v, x.args[1].v, x.outs[0].v
	f.ensureHBM(p.ker)
	f.name(x.op)
	p.m = c.Out / p.groups
	p.fold = 1
	if c.In < a.parts {
		p.fold = max(min(a.parts/c.In, p.pairs), 1)
	}
	p.cols = p.pairs / p.fold
	outCols := max(f.values[p.out].elems/max(c.Out, 1), 1)
	p.tiles = max(min(ceilDiv(outCols, a.movN), p.cols), 1)
	p.width = min(a.movN, ceilDiv(outCols, p.tiles))
	p.mt = ceilDiv(p.m, a.statM)
	p.work = p.groups * p.mt
	p.rooms()
	p.leave = leaving{f: f, fin: x.fin, out: p.out, perPart: true, width: p.width}
	p.leave.bring()
	all := len(p.weights.tiles) >= int(p.work)
	if all {
		e.loop(p.work, func(w int64) { p.loadWeights(w) })
		e.each(p.tiles, 1, p.work*(p.cols/p.tiles/a.movN+3), func(t int64) {
			if p.inRing != nil {
				p.loadInput(t, t)
			}
			p.blocks(func(w, width int64) { p.tile(w, width, t, t) })
		})
	} else {
		p.blocks(func(w, width int64) {
			p.loadWeights(w)
			e.each(p.tiles, 1, p.cols/p.tiles/a.movN+4, func(t int64) {
				step := w*p.tiles + t
				if p.inRing != nil {
					p.loadInput(t, step)
				}
				p.tile(w, width, t, step)
			})
			e.drain()
		})
	}
	e.drain()
	p.leave.release()
	for _, r := range append(p.scrap, p.inRing, p.weights, p.ring) {
		if r != nil {
			f.sb.release(r)
		}
	}
	f.l.count(x.op, Lowered, "")
	f.forget(x.args)
	f.forgetValue(p.out)
}

// blocks calls each for all blocks of output features: w is the block, width
// its features. Full blocks of all groups come first, then the ragged ones.
func (p *conv) blocks(each func(w, width int64)) {
	for g0, n := range cuts(p.m, p.f.l.arr.statM) {
		p.f.l.e.loopAlike(p.groups*n.n, func(k int64) { each(g0*p.groups+k, n.w) })
	}
}

// rooms gives operands and results their place on chip.
func (p *conv) rooms() {
	f := p.f
	a := f.l.arr
	b := f.l.opt.Buffers
	nin, nker := f.values[p.in], f.values[p.ker]
	per := max(ceilDiv(nin.total, a.parts), nin.size)
	switch {
	case p.fold > 1:
		// Each of the taps that share the partitions has the input shifted to
		// its place: so many copies, or the elements that are used where these
		// are fewer.
		p.spread = min(opgraph.MulSize(nin.total, p.fold), opgraph.MulSize(p.pairs, p.c.In*nin.size))
		if nin.chip == nil {
			f.ensureHBM(p.in)
		}
		p.inRing = f.must(b, min(max(ceilDiv(p.spread/p.tiles, a.parts), nin.size), a.tile*2))
	case nin.chip != nil:
		p.inChip = nin.chip
	case per <= a.budget/shareOfSBUF:
		f.ensureHBM(p.in)
		n := max(min(p.tiles, 16), 1)
		tile := ceilDiv(per, n)
		r := f.keep(p.in, int(n), tile)
		if r == nil {
			r = f.must(int(n), tile)
			p.scrap = append(p.scrap, r)
		} else {
			v := &f.values[p.in]
			v.parts, v.free = a.parts, max(ceilDiv(v.elems, a.parts), 1)
		}
		p.inChip = r
		n = int64(len(r.tiles))
		f.l.e.loop(n, func(t int64) {
			f.load(p.in, f.pieceOf(p.in, t, n), r, int(t), share(nin.total, t, n), a.parts, max(min(r.tileBytes, ceilDiv(per, n))/nin.size, 1))
		})
	default:
		f.ensureHBM(p.in)
		p.inRing = f.must(b, min(max(ceilDiv(nin.total/p.tiles, a.parts), nin.size), a.tile*2))
	}
	block := max(min(ceilDiv(ceilDiv(nker.total, p.work), a.parts), a.budget/8), 4)
	n := p.work
	if p.work > 256 || n*((block+align-1)/align*align) > a.budget/shareOfSBUF {
		n = int64(b)
	}
	p.weights = f.must(int(n), block)
	y := &f.values[p.out]
	out := p.tiles * p.work
	tile := p.width * y.size
	y.parts, y.free, y.lastOn = min(a.parts, p.m), out*p.width, f.kern
	if out < 1<<16 {
		p.keep = f.keep(p.out, int(out), tile)
	}
	y = &f.values[p.out]
	if p.keep == nil || f.needsHBM(p.out) {
		y.hbm = f.hbmRegion(y, f.outMem(p.out), 64, f.valueName(p.out))
		p.saved = true
		if p.keep == nil {
			p.ring = f.must(b+1, tile)
		}
	}
}

func (p *conv) loadWeights(w int64) {
	f := p.f
	x := &f.values[p.ker]
	slot := int(w) % len(p.weights.tiles)
	if int64(len(p.weights.tiles)) < p.work {
		slot = int(p.loaded) % len(p.weights.tiles)
		p.loaded++
	}
	f.load(p.ker, f.pieceOf(p.ker, w, p.work), p.weights, slot, share(x.total, w, p.work), f.l.arr.parts, max(p.weights.tileBytes/max(x.size, 1), 1))
}

func (p *conv) loadInput(t, step int64) {
	f := p.f
	x := &f.values[p.in]
	if p.spread > 0 {
		p.loadSpread(t, step)
		return
	}
	f.load(p.in, f.pieceOf(p.in, t, p.tiles), p.inRing, int(step)%len(p.inRing.tiles), share(x.total, t, p.tiles), f.l.arr.parts, max(p.inRing.tileBytes/max(x.size, 1), 1))
}

// loadSpread brings the input of a tile to the partitions of all taps that share
// them, from device memory or from where it is on chip.
func (p *conv) loadSpread(t, step int64) {
	f := p.f
	x := &f.values[p.in]
	slot := int(step) % len(p.inRing.tiles)
	bytes := share(p.spread, t, p.tiles)
	parts := min(f.l.arr.parts, p.fold*p.c.In)
	elems := max(min(p.inRing.tileBytes, ceilDiv(bytes, parts))/max(x.size, 1), 1)
	if x.chip == nil {
		f.load(p.in, f.pieceOf(p.in, t, p.tiles), p.inRing, slot, bytes, parts, elems)
		return
	}
	t0, t1 := x.chip.span(t, t+1, p.tiles)
	f.reads(x.chip, t0, t1, 0, elems, parts, x.dtype)
	f.writes(p.inRing, slot, 0, elems, parts, x.dtype)
	f.l.e.add(ins{op: components.OpcodeDMACopy, eng: components.DMA, lane: components.LaneDMA, elems: elems, parts: parts, dtype: x.dtype, bytes: bytes,
		rowLen: max(ceilDiv(bytes, parts), 1), queue: f.l.turn()})
}

// tile emits the products of one block of output features and one tile of
// positions, summed up over taps and input features, and what follows them.
func (p *conv) tile(w, width, t, step int64) {
	f := p.f
	a := f.l.arr
	e := &f.l.e
	n := p.cols / p.tiles
	last := t == p.tiles-1
	if last {
		n = p.cols - (p.tiles-1)*n
	}
	slot := int(w) % len(p.weights.tiles)
	if int64(len(p.weights.tiles)) < p.work {
		slot = int(p.loaded-1) % len(p.weights.tiles)
	}
	kd, id := f.values[p.ker].dtype, f.values[p.in].dtype
	bank := f.nextBank()
	first := true
	mul := func(rows, n int64, stop bool) {
		for k := range ceilDiv(rows, a.parts) {
			kk := min(a.parts, rows-k*a.parts)
			f.reads(p.weights, slot, slot+1, 0, width, kk, kd)
			if p.inChip != nil {
				t0, t1 := p.inChip.span(t, t+1, p.tiles)
				f.reads(p.inChip, t0, t1, 0, n, kk, id)
			} else {
				s := int(step) % len(p.inRing.tiles)
				f.reads(p.inRing, s, s+1, 0, n, kk, id)
			}
			f.bankOut(first, bank, 0, n, width)
			f.matmul(kk, width, n, id, first, stop && k == ceilDiv(rows, a.parts)-1, 0, bank)
			first = false
			f.flops = opgraph.AddSize(f.flops, opgraph.MulSize(2*kk*width*n, e.mult))
		}
	}
	kr := p.fold * p.c.In
	rest := p.pairs - p.cols*p.fold
	full, tail := n/a.movN, n%a.movN
	e.loopAlike(full, func(int64) { mul(kr, a.movN, false) })
	if tail > 0 {
		mul(kr, tail, rest == 0 || !last)
	}
	if last && rest > 0 {
		mul(rest*p.c.In, 1, true)
	}
	x := &f.values[p.out]
	to, at := p.keep, int(w*p.tiles+t)
	if to == nil {
		to, at = p.ring, int(p.done)%len(p.ring.tiles)
	}
	p.done++
	total := p.tiles * p.work * p.width * a.statM
	p.leave.emit(bank, to, at, 0, width, p.width, (w*p.tiles+t)*p.width*a.statM, total)
	if p.saved {
		block := share(x.total, w, p.work)
		bytes := share(block, t, p.tiles)
		part := f.partOf(p.out, w*(x.total/p.work)+t*(block/p.tiles), bytes)
		e.later(f.l.opt.Buffers, func() { f.store(p.out, to, int64(at), int64(at+1), part, bytes, width, p.width, 0) })
	}
}

// depthwise lowers a convolution of few features a group on DVE: a multiply
// and add for each term, channels on the partitions.
func (f *fn) depthwise(i int32, c opgraph.ConvSize, pairs int64) {
	x := &f.flats[i]
	a := f.l.arr
	e := &f.l.e
	in, ker, out := x.args[0].v, x.args[1].v, x.outs[0].v
	f.ensureHBM(in)
	f.ensureHBM(ker)
	y := &f.values[out]
	y.hbm = f.hbmRegion(y, f.outMem(out), 64, f.valueName(out))
	terms := opgraph.MulSize(pairs, c.In) // a channel
	w := max(a.tile/4, 1)
	b := f.l.opt.Buffers
	kerR := f.must(1, max(min(ceilDiv(f.values[ker].total, a.parts), a.budget/shareOfSBUF), 4))
	inRing, acc := f.must(b, w*4), f.must(b+1, w*4)
	f.load(ker, f.partOf(ker, 0, f.values[ker].total), kerR, 0, f.values[ker].total, a.parts, max(ceilDiv(f.values[ker].elems, a.parts), 1))
	blocks := ceilDiv(c.Out, a.parts)
	n := ceilDiv(terms, w)
	nin, nout := f.values[in], f.values[out]
	each := func(blk, parts int64) {
		e.loop(n, func(t int64) {
			width := w
			if t == n-1 {
				width = terms - (n-1)*w
			}
			s, o := int(t)%len(inRing.tiles), int(t)%len(acc.tiles)
			block := share(nin.total, blk, blocks)
			f.load(in, f.partOf(in, blk*(nin.total/blocks)+t*(block/n), share(block, t, n)), inRing, s, share(block, t, n), parts, max(ceilDiv(mulDiv(nin.elems, 1, blocks)/n, parts), 1))
			f.reads(inRing, s, s+1, 0, width, parts, components.Float32)
			f.reads(kerR, 0, 1, 0, 1, parts, components.Float32)
			f.writes(acc, o, 0, width, parts, components.Float32)
			f.busy[components.DVE] += width
			e.add(ins{op: components.OpcodeTensorScalarPtr, eng: components.DVE, lane: components.LaneDVE, flags: components.FlagScalarTT | components.FlagTwoInputs, elems: width, out: width,
				parts: parts, macs: width * parts, dtype: nin.dtype, fn: e.sym("mult_add")})
			f.flops = opgraph.AddSize(f.flops, opgraph.MulSize(2*width*parts, e.mult))
			block = share(nout.total, blk, blocks)
			bytes := share(block, t, n)
			to := f.partOf(out, blk*(nout.total/blocks)+t*(block/n), bytes)
			e.later(b, func() {
				f.store(out, acc, int64(o), int64(o+1), to, bytes, parts, max(ceilDiv(bytes, parts*max(nout.size, 1)), 1), 0)
			})
		})
		e.drain()
	}
	for b0, cu := range cuts(c.Out, a.parts) {
		e.loopAlike(cu.n, func(k int64) { each(b0+k, cu.w) })
	}
	for _, r := range []*region{kerR, inRing, acc} {
		f.sb.release(r)
	}
	f.l.count(x.op, Lowered, "")
}
