package lower

import "perfsim/components"

// convKernel lowers a convolution as an implicit matrix product: for each
// kernel tap the output features (stationary) times the input features of the
// positions that the tap meets (moving), summed over taps in PSUM. Pairs of
// position and tap that meet padding have no term, neither in the graph's
// FLOPs nor here. Where the input has few features several taps share the
// partitions. A depthwise convolution runs on DVE, channels on partitions.
func (f *fn) convKernel(i int32, c components.ConvSize) {
	x := &f.flats[i]
	g := f.l.g
	groups := max(g.IntOr(x.op, components.AttrFeatureGroups, 1), 1)
	pairs := components.MulSize(c.Batch, c.Pairs)
	if pairs == 0 || c.In == 0 || c.Out == 0 || len(x.args) < 2 {
		f.noWork(x)
		return
	}
	f.values[x.args[0].v].lastOn, f.values[x.args[1].v].lastOn = f.kern, f.kern
	if c.Out%groups != 0 {
		groups = 1
	}
	if m := c.Out / groups; groups > 1 && m*c.In <= 8 {
		f.depthwise(i, c, pairs)
		return
	}
	a := f.l.arr
	e := &f.l.e
	in, ker, out := x.args[0].v, x.args[1].v, x.outs[0].v
	f.ensureHBM(in)
	f.ensureHBM(ker)
	y := &f.values[out]
	y.hbm = f.hbmRegion(y, f.outMem(out), 64, f.valueName(out))
	m := c.Out / groups
	fold := max(min(a.parts/c.In, pairs), 1) // taps that share the partitions
	if c.In >= a.parts {
		fold = 1
	}
	outCols := max(y.elems/max(c.Out, 1), 1)
	cols := pairs / fold // moving columns of fold·In rows, and a last one with the rest
	tiles := max(min(ceilDiv(outCols, a.movN), cols), 1)
	kr := fold * c.In
	kt := ceilDiv(kr, a.parts)
	nin, nout := f.values[in], f.values[out]
	b := f.l.opt.Buffers
	perIn := max(ceilDiv(mulDiv(nin.total, 1, tiles), a.parts), nin.size)
	inRing := f.must(b, min(perIn, a.tile*2))
	kerBytes := max(min(ceilDiv(f.values[ker].total, a.parts), a.budget/shareOfSBUF), 4)
	kerR := f.must(1, kerBytes)
	outRing := f.must(b+1, a.movN*nout.size)
	f.load(ker, f.partOf(ker, 0, f.values[ker].total), kerR, 0, f.values[ker].total, a.parts, max(ceilDiv(f.values[ker].elems, a.parts), 1))
	mt := ceilDiv(m, a.statM)
	work := groups * mt
	// Every output tile of every block of output features: cols/tiles moving
	// columns, summed over taps.
	one := func(mi, width int64, last bool) func(t int64) {
		return func(t int64) {
			n := cols / tiles
			if last {
				n = cols - (tiles-1)*(cols/tiles)
			}
			step := mi*tiles + t
			s := int(step) % len(inRing.tiles)
			f.load(in, f.pieceOf(in, t, tiles), inRing, s, share(nin.total, t, tiles), a.parts, max(perIn/max(nin.size, 1), 1))
			bank := f.nextBank()
			first := true
			mul := func(rows, n int64, stop bool) {
				for k := range ceilDiv(rows, a.parts) {
					kk := min(a.parts, rows-k*a.parts)
					f.reads(kerR, 0, 1, 0, width, kk, f.values[ker].dtype)
					f.reads(inRing, s, s+1, 0, n, kk, nin.dtype)
					f.bankOut(first, bank, 0, n, width)
					f.matmul(kk, width, n, nin.dtype, first, stop && k == ceilDiv(rows, a.parts)-1, 0, bank)
					first = false
					f.flops = components.AddSize(f.flops, components.MulSize(2*kk*width*n, e.mult))
				}
			}
			rest := pairs - cols*fold
			full := n / a.movN
			tail := n % a.movN
			e.loopAlike(full, func(k int64) { mul(kr, a.movN, false) })
			if tail > 0 {
				mul(kr, tail, rest == 0 || !last)
			}
			if last && rest > 0 {
				mul(rest*c.In, 1, true)
			}
			o := int(step) % len(outRing.tiles)
			oc := min(a.movN, max(outCols/tiles, 1))
			f.evictBank(bank, outRing, o, oc, width, nout.dtype, "copy")
			block := share(nout.total, mi, work)
			bytes := share(block, t, tiles)
			to := f.partOf(out, mi*(nout.total/work)+t*(block/tiles), bytes)
			e.later(b, func() { f.store(out, outRing, int64(o), int64(o+1), to, bytes, width, oc, 0) })
		}
	}
	for gi, gn := range cuts(m, a.statM) {
		// Groups and blocks of output features alike are one loop.
		n := groups * gn.n
		alike := func(k int64) {
			body := one(gi*groups+k, gn.w, false)
			e.loop(tiles-1, body)
			one(gi*groups+k, gn.w, true)(tiles - 1)
			e.drain()
		}
		e.loopAlike(n, alike)
	}
	e.drain()
	for _, r := range []*region{inRing, kerR, outRing} {
		f.sb.release(r)
	}
	_ = kt
	f.l.count(x.op, Lowered, "")
}

// depthwise lowers a convolution of few features a group on DVE: a multiply
// and add for each term, channels on the partitions.
func (f *fn) depthwise(i int32, c components.ConvSize, pairs int64) {
	x := &f.flats[i]
	a := f.l.arr
	e := &f.l.e
	in, ker, out := x.args[0].v, x.args[1].v, x.outs[0].v
	f.ensureHBM(in)
	f.ensureHBM(ker)
	y := &f.values[out]
	y.hbm = f.hbmRegion(y, f.outMem(out), 64, f.valueName(out))
	terms := components.MulSize(pairs, c.In) // a channel
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
				parts: parts, dtype: nin.dtype, fn: e.sym("mult_add")})
			f.flops = components.AddSize(f.flops, components.MulSize(2*width*parts, e.mult))
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
