package lower

import (
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// single lowers an operator that is not part of a pass over tiles.
func (f *fn) single(i int32) {
	x := &f.flats[i]
	f.name(x.op)
	f.kern++
	g := f.l.g
	first := f.meter()
	switch k := x.kind; k {
	case opgraph.OpDot, opgraph.OpRaggedDot, opgraph.OpScaledDot:
		f.dotKernel(i, g.DotSize(x.op))
	case opgraph.OpConvolution:
		c, _ := g.ConvSize(x.op)
		f.convKernel(i, c)
	case opgraph.OpCustomCall:
		f.customCall(i)
	case opgraph.OpSlice, opgraph.OpDynamicSlice:
		f.cutOut(i)
	case opgraph.OpDynamicUpdateSlice:
		f.update(i)
	case opgraph.OpCopy, opgraph.OpCopyStart, opgraph.OpPad, opgraph.OpConcatenate, opgraph.OpReverse, opgraph.OpReshape, opgraph.OpBitcast,
		opgraph.OpDynamicReshape, opgraph.OpSetDimensionSize:
		f.move(i, 0)
	case opgraph.OpTranspose:
		f.transpose(i)
	case opgraph.OpGather:
		f.gather(i)
	case opgraph.OpScatter:
		f.scatter(i)
	case opgraph.OpSort:
		f.sortKernel(i)
	case opgraph.OpTopK:
		f.topK(i, g.IntOr(x.op, opgraph.AttrTopK, 8))
	case opgraph.OpReduceWindow, opgraph.OpSelectAndScatter:
		f.window(i)
	case opgraph.OpRngBitGenerator, opgraph.OpRngGetAndUpdateState:
		f.stream(i, []streamStep{{op: components.OpcodeRng, eng: onPool, fn: "rng", times: 1}}, "")
	case opgraph.OpBatchNormInference, opgraph.OpBatchNormTraining, opgraph.OpBatchNormGrad:
		f.batchNorm(i)
	case opgraph.OpWhile, opgraph.OpCall, opgraph.OpConditional:
		f.call(i)
	case opgraph.OpSend, opgraph.OpRecv, opgraph.OpInfeed, opgraph.OpOutfeed:
		f.host(i)
	case opgraph.OpCholesky, opgraph.OpTriangularSolve, opgraph.OpFFT:
		f.linear(i)
	default:
		switch {
		case k.IsCollective():
			f.collective(i)
		case len(x.outs) == 0 || k.IsFree():
			f.noWork(x)
		default:
			f.stream(i, []streamStep{{op: components.OpcodeTensorCopy, eng: onDVE, fn: "copy", times: 1}}, "a copy of its operands' elements")
		}
	}
	x = &f.flats[i]
	f.measure(i, first)
	f.forget(x.args)
	f.forget(x.outs)
}

// argsInHBM brings the operands to device memory.
func (f *fn) argsInHBM(args []ref) {
	for _, a := range args {
		if x := &f.values[a.v]; !x.konst {
			x.lastOn = f.kern
			f.ensureHBM(a.v)
		}
	}
}

// fresh gives every result of x device memory of its own.
func (f *fn) fresh(x *flat) {
	for _, o := range x.outs {
		if v := &f.values[o.v]; v.hbm == nil && v.base < 0 && v.def == x.me {
			v.hbm = f.hbmRegion(v, f.outMem(o.v), ceilDiv(v.total, copyBytes), f.valueName(o.v))
		}
	}
}

// copyHBM emits the transfer of one part of device memory to another, which
// belongs to value to.
func (f *fn) copyHBM(to int32, src, dst part, bytes int64, op components.Opcode, flags components.Flags) {
	if bytes <= 0 {
		return
	}
	e := &f.l.e
	x := &f.values[to]
	elems := ceilDiv(bytes, max(x.size, 1))
	parts := min(f.l.arr.parts, elems)
	f.inMem(components.RoleIn, src, bytes, x.dtype)
	f.inMem(components.RoleOut, dst, bytes, x.dtype)
	e.add(ins{op: op, eng: components.DMA, lane: components.LaneDMA, flags: components.FlagSrcDRAM | components.FlagDstDRAM | flags, elems: ceilDiv(elems, parts), parts: parts,
		dtype: x.dtype, bytes: bytes, rowLen: ceilDiv(bytes, parts), queue: f.l.turn()})
	f.copies = opgraph.AddSize(f.copies, opgraph.MulSize(bytes, e.mult))
}

// move lowers operators that put their operands' elements somewhere else:
// transfers within device memory.
func (f *fn) move(i int32, flags components.Flags) {
	x := &f.flats[i]
	if len(x.outs) == 0 || f.values[x.outs[0].v].total == 0 {
		f.noWork(x)
		return
	}
	f.argsInHBM(x.args)
	f.fresh(x)
	out := x.outs[0].v
	total := f.values[out].total
	var at int64
	args := x.args
	switch x.kind {
	case opgraph.OpPad, opgraph.OpSetDimensionSize:
		args = args[:1]
	case opgraph.OpConcatenate:
	default:
		args = args[:min(1, len(args))]
	}
	for _, a := range args {
		bytes := min(f.values[a.v].total, total-at)
		f.copyAll(a.v, out, at, bytes, false, flags)
		at += bytes
	}
	if rest := total - at; rest > 0 { // the padding
		f.fill(out, at, rest)
	}
	f.l.count(x.op, Lowered, "")
}

// copyAll copies the first bytes of a value to where another lies from byte at
// on; anywhere says that only the running program knows where that is.
func (f *fn) copyAll(from, to int32, at, bytes int64, anywhere bool, flags components.Flags) {
	n := max(ceilDiv(bytes, copyBytes), 1)
	f.l.e.loop(n, func(t int64) {
		b := share(bytes, t, n)
		lo := t * (bytes / n)
		dst := f.partOf(to, at+lo, b)
		if anywhere {
			dst = whole(dst.r)
			dst.anywhere = true
		}
		f.copyHBM(to, f.partOf(from, lo, b), dst, b, components.OpcodeDMACopy, flags)
	})
}

// fill writes a constant to a part of a value in device memory.
func (f *fn) fill(to int32, at, bytes int64) {
	x := &f.values[to]
	elems := max(min(f.l.arr.tile, ceilDiv(bytes, f.l.arr.parts))/max(x.size, 1), 1)
	r := f.must(1, elems*x.size)
	e := &f.l.e
	f.writes(r, 0, 0, elems, f.l.arr.parts, x.dtype)
	e.add(ins{op: components.OpcodeMemset, eng: components.DVE, lane: components.LaneDVE, flags: components.FlagZeroConst, elems: elems, out: elems, parts: f.l.arr.parts, dtype: x.dtype})
	per := elems * x.size * f.l.arr.parts
	n := ceilDiv(bytes, per)
	e.loop(n, func(t int64) {
		b := min(per, bytes-t*per)
		f.store(to, r, 0, 1, f.partOf(to, at+t*per, b), b, f.l.arr.parts, elems, 0)
	})
	f.sb.release(r)
}

// cutOut lowers slices: where the operand is in device memory, a slice is an
// access pattern of its users; a dynamic one reads its start first.
func (f *fn) cutOut(i int32) {
	x := &f.flats[i]
	if len(x.args) == 0 || f.values[x.outs[0].v].total == 0 {
		f.noWork(x)
		return
	}
	f.argsInHBM(x.args[:1])
	out := &f.values[x.outs[0].v]
	if out.out { // a result of its own
		f.move(i, 0)
		return
	}
	base := x.args[0].v
	out.base = base
	if x.kind == opgraph.OpDynamicSlice {
		out.moves = true
	} else {
		out.off, out.ext = f.cutSpan(x)
	}
	f.values[base].slices = append(f.values[base].slices, x.outs[0].v)
	shared(f.hbmOf(base))
	if x.kind == opgraph.OpDynamicSlice {
		e := &f.l.e
		for _, a := range x.args[1:] {
			if r := f.hbmOf(a.v); r != nil {
				f.inMem(components.RoleIn, f.partOf(a.v, 0, f.values[a.v].total), f.values[a.v].total, f.values[a.v].dtype)
			} else if c := f.values[a.v].chip; c != nil {
				f.reads(c, 0, 1, 0, 1, 1, f.values[a.v].dtype)
			}
		}
		e.add(ins{op: components.OpcodeTensorLoad, eng: components.SP, lane: components.LaneSP, flags: components.FlagSequencer, elems: 1, parts: 1, dtype: components.Int32})
		f.l.count(x.op, Lowered, "")
		return
	}
	f.l.count(x.op, Free, "")
}

// cutSpan returns the bytes of the operand of a slice among which the slice
// lies, from its first to its last element; 0 bytes where that is not known.
func (f *fn) cutSpan(x *flat) (off, ext int64) {
	g := f.l.g
	base := &f.values[x.args[0].v]
	dims := g.Shapes.Dims(x.args[0].shape)
	cut := g.Ints(x.op, opgraph.AttrSlice)
	if len(cut) != 3*len(dims) || base.elems <= 0 {
		return 0, 0
	}
	first, last := int64(0), int64(0)
	for i, n := range dims {
		lo, hi, step := cut[3*i], cut[3*i+1], max(cut[3*i+2], 1)
		if lo < 0 || hi <= lo || hi > n {
			return 0, 0
		}
		first = first*n + lo
		last = last*n + lo + (hi-lo-1)/step*step
	}
	off = mulDiv(first, base.total, base.elems)
	return off, max(mulDiv(last+1, base.total, base.elems)-off, 1)
}

// update lowers a dynamic-update-slice in place where its operand is not read
// again: only the update moves.
func (f *fn) update(i int32) {
	x := &f.flats[i]
	to := x.args[0].v
	f.argsInHBM(x.args[:2])
	if !f.inPlace(to) || f.hbmOf(to) == nil || f.values[to].konst || f.values[x.outs[0].v].out {
		f.fresh(x)
		out := x.outs[0].v
		f.copyAll(to, out, 0, f.values[out].total, false, 0)
		f.values[out].hbm.epoch = uint32(f.l.e.m.Instr.Opcode.Len())
	} else {
		out := &f.values[x.outs[0].v]
		if v := &f.values[to]; v.hbm != nil && v.param < 0 {
			out.hbm = f.handOn(v.hbm)
		} else {
			out.hbm = f.aliasOf(f.hbmOf(to))
		}
	}
	out := x.outs[0].v
	f.copyAll(x.args[1].v, out, 0, f.values[x.args[1].v].total, true, components.FlagSWDGE)
	f.l.count(x.op, Lowered, "")
}

// handOn gives the device memory of a value to one that overwrites it.
func (f *fn) handOn(r *region) *region {
	r.epoch = uint32(f.l.e.m.Instr.Opcode.Len())
	return shared(r)
}

// aliasOf returns a region over the device memory of another one that may be
// written: the buffer of a parameter that is updated in place.
func (f *fn) aliasOf(r *region) *region {
	c := *r
	c.mem = components.MemDRAM
	c.tiles = make([]tileState, len(r.tiles))
	acc := &f.l.e.acc
	for t := range r.tiles {
		c.tiles[t] = tileState{top: r.tiles[t].top, wtop: r.tiles[t].wtop, nw: r.tiles[t].nw}
		for i := r.tiles[t].w; i != 0; i = acc.at(i).next {
			x := *acc.at(i)
			x.next = c.tiles[t].w
			c.tiles[t].w = acc.get(x)
		}
		for i := r.tiles[t].r; i != 0; i = acc.at(i).next {
			x := *acc.at(i)
			x.next = c.tiles[t].r
			c.tiles[t].r = acc.get(x)
		}
	}
	c.loops = slices.Clone(r.loops)
	c.epoch, c.quiet = uint32(f.l.e.m.Instr.Opcode.Len()), false
	return &c
}

// transpose lowers a transpose: rows that only change place are a transfer,
// others go through the PE.
func (f *fn) transpose(i int32) {
	x := &f.flats[i]
	g := f.l.g
	out := x.outs[0]
	if f.values[out.v].total == 0 {
		f.noWork(x)
		return
	}
	dims := g.Shapes.Dims(out.shape)
	perm := g.Dims(x.op)
	last := int64(len(dims) - 1)
	minor := f.permutedMinor(x.op, x.args[0])
	if last < 0 || int64(minor) == last || len(perm) == 0 || f.values[x.args[0].v].weight || dims[last] == 1 {
		f.move(i, 0)
		return
	}
	k := int64(1)
	if minor >= 0 {
		k = max(dims[minor], 1)
	}
	if k <= 1 || k >= f.values[out.v].elems {
		f.move(i, 0)
		return
	}
	if k < narrow || dims[last] < narrow {
		// Blocks on the PE would be nearly empty: both dimensions lie side by
		// side in a partition and change places in a copy with strides.
		f.stream(i, []streamStep{{op: components.OpcodeTensorCopy, eng: onDVE, fn: "copy", times: 1, flags: components.FlagStrided}}, "")
		return
	}
	a := x.args[0].v
	f.values[a].lastOn = f.kern
	t := f.turnedCopy(a, k)
	// The result is the turned copy under its own name.
	f.values[a].turned = -1
	y, o := &f.values[t], &f.values[out.v]
	o.hbm, o.chip, o.parts, o.free, o.lastOn = y.hbm, y.chip, y.parts, y.free, f.kern
	y.chip, y.hbm = nil, nil
	if o.chip != nil {
		f.resident = append(f.resident, out.v)
		if f.needsHBM(out.v) {
			f.saveValue(out.v, 0)
		}
	} else if o.out && o.hbm != nil && f.comp == g.Entry {
		o.hbm.mem = components.MemOutput
	}
	f.l.count(x.op, Lowered, "")
}

// narrow is the width below which a transpose does not go through the PE.
const narrow = 32

// streamStep is an instruction of a streaming kernel, which takes times the
// elements of a tile.
type streamStep struct {
	op    components.Opcode
	eng   components.Engine
	fn    string
	times int64
	flops int64 // of a product that is done elementwise: of the whole operator
	flags components.Flags
}

// stream lowers an operator as a loop over tiles of its largest array: load
// the operands, do the steps, store the results.
func (f *fn) stream(i int32, steps []streamStep, estimate string) {
	x := &f.flats[i]
	var space, esz int64 = 0, 1
	for _, list := range [][]ref{x.args, x.outs} {
		for _, r := range list {
			v := &f.values[r.v]
			space, esz = max(space, v.elems), max(esz, v.size)
		}
	}
	if space == 0 || len(x.outs) == 0 {
		f.noWork(x)
		return
	}
	f.argsInHBM(x.args)
	f.fresh(x)
	parts := min(f.l.arr.parts, space)
	free := ceilDiv(space, parts)
	w := min(free, max(f.l.arr.tile/esz, 1))
	arrays := int64(len(x.args)+len(x.outs)) + 1
	for w > 16 && arrays*int64(f.l.opt.Buffers+1)*w*esz > f.l.arr.budget/2 {
		w /= 2
	}
	n := ceilDiv(free, w)
	b := f.l.opt.Buffers
	ins0 := make([]*region, len(x.args))
	for k, a := range x.args {
		if !f.values[a.v].konst && f.values[a.v].total > 0 {
			ins0[k] = f.must(b, max(mulDiv(w, f.values[a.v].elems, space)+1, 1)*f.values[a.v].size)
		}
	}
	outs := make([]*region, len(x.outs))
	for k, o := range x.outs {
		if v := &f.values[o.v]; v.def == x.me && v.total > 0 && v.hbm != nil {
			outs[k] = f.must(b+1, max(mulDiv(w, v.elems, space)+1, 1)*v.size)
		}
	}
	work := f.must(b, w*max(esz, 4))
	e := &f.l.e
	e.loop(n, func(t int64) {
		width := w
		if t == n-1 {
			width = free - (n-1)*w
		}
		for k, a := range x.args {
			if ins0[k] != nil {
				v := &f.values[a.v]
				f.load(a.v, f.pieceOf(a.v, t, n), ins0[k], int(t)%len(ins0[k].tiles), share(v.total, t, n), parts, max(mulDiv(width, v.elems, space), 1))
			}
		}
		d := f.values[x.outs[0].v].dtype
		k := int(t) % len(work.tiles)
		for s, st := range steps {
			reads := 0
			if s == 0 {
				for m := range x.args {
					if r := ins0[m]; r != nil {
						at := int(t) % len(r.tiles)
						f.reads(r, at, at+1, 0, max(mulDiv(width, f.values[x.args[m].v].elems, space), 1), parts, f.values[x.args[m].v].dtype)
						reads++
					}
				}
			} else {
				f.reads(work, k, k+1, 0, width, parts, d)
			}
			flags := st.flags
			if reads > 1 {
				flags |= components.FlagTwoInputs
			}
			macs := int64(0)
			if st.flops > 0 {
				macs = share(st.flops/2, t, n)
				n := opgraph.MulSize(2*macs, e.mult)
				f.flops, f.vector = opgraph.AddSize(f.flops, n), opgraph.AddSize(f.vector, n)
			}
			if estimate != "" {
				flags |= components.FlagEstimated
			}
			f.writes(work, k, 0, width, parts, d)
			lane := uint16(st.eng)
			f.busy[st.eng] += width * st.times
			e.add(ins{op: st.op, eng: st.eng, lane: lane, flags: flags, elems: opgraph.MulSize(width, st.times), out: width, parts: parts, macs: macs, dtype: d, fn: e.sym(st.fn)})
		}
		for m, o := range x.outs {
			r := outs[m]
			if r == nil {
				continue
			}
			v := &f.values[o.v]
			at := int(t) % len(r.tiles)
			el := max(mulDiv(width, v.elems, space), 1)
			f.reads(work, k, k+1, 0, el, parts, d)
			f.writes(r, at, 0, el, parts, v.dtype)
			eng := f.pick(components.Unassigned, el)
			op := components.OpcodeTensorCopy
			if eng == components.Activation {
				op = components.OpcodeActivation
			}
			f.busy[eng] += el
			e.add(ins{op: op, eng: eng, lane: uint16(eng), elems: el, out: el, parts: parts, dtype: v.dtype, fn: e.sym("copy")})
			bytes := share(v.total, t, n)
			to := f.pieceOf(o.v, t, n)
			e.later(b, func() { f.store(o.v, r, int64(at), int64(at+1), to, bytes, parts, el, 0) })
		}
	})
	e.drain()
	for _, list := range [][]*region{ins0, outs, {work}} {
		for _, r := range list {
			if r != nil {
				f.sb.release(r)
			}
		}
	}
	if estimate != "" {
		f.l.count(x.op, Estimated, estimate)
		return
	}
	f.l.count(x.op, Lowered, "")
}

// gather lowers a gather as indirect transfers, one descriptor a row that is
// gathered; Pool makes the descriptors.
func (f *fn) gather(i int32) { f.indirect(i, f.flats[i].outs[0].v, components.OpcodeIndirectLoad) }

// indirect emits indirect transfers of the bytes of value moved, 128 rows at a
// time.
func (f *fn) indirect(i int32, moved int32, op components.Opcode) {
	x := &f.flats[i]
	v := &f.values[moved]
	if v.total == 0 {
		f.noWork(x)
		return
	}
	f.argsInHBM(x.args)
	f.fresh(x)
	rows := int64(1)
	if len(x.args) > 1 { // one row an index vector
		t := &f.l.g.Shapes
		dims := t.Dims(x.args[1].shape)
		iv := int(f.l.g.IntOr(x.op, opgraph.AttrIndexVectorDim, int64(len(dims)-1)))
		for d, n := range dims {
			if d != iv && n > 0 {
				rows = opgraph.MulSize(rows, n)
			}
		}
	}
	rows = max(min(rows, v.elems), 1)
	per := f.l.arr.parts
	n := ceilDiv(rows, per)
	e := &f.l.e
	idx := x.args[min(1, len(x.args)-1)].v
	src := x.args[0].v
	if op != components.OpcodeIndirectLoad {
		src = moved
	}
	out := x.outs[0].v
	e.loop(n, func(t int64) {
		bytes := share(v.total, t, n)
		r := min(per, rows)
		if t == n-1 {
			r = rows - (n-1)*per
		}
		el := max(ceilDiv(bytes, max(v.size, 1))/max(r, 1), 1)
		from, at, to := f.pieceOf(src, t, n), f.pieceOf(idx, t, n), f.pieceOf(out, t, n)
		if op == components.OpcodeIndirectLoad {
			from = part{r: from.r, hi: from.r.bytes, anywhere: true}
		} else {
			to = part{r: to.r, hi: to.r.bytes, anywhere: true}
		}
		f.inMem(components.RoleIn, from, bytes, v.dtype)
		f.inMem(components.RoleIndirect, at, 0, f.values[idx].dtype)
		f.inMem(components.RoleOut, to, bytes, v.dtype)
		e.add(ins{op: op, eng: components.Pool, lane: components.LaneDMA, flags: components.FlagSrcDRAM | components.FlagDstDRAM | components.FlagSWDGE, elems: el, parts: r,
			dtype: v.dtype, bytes: bytes, rowLen: el * v.size, queue: f.l.queue("qGpSimdDynamic", components.Pool)})
		f.copies = opgraph.AddSize(f.copies, opgraph.MulSize(bytes, e.mult))
	})
	f.l.count(x.op, Lowered, "")
}

// scatter lowers a scatter: the operand is copied unless nobody reads it
// again, then the updates are stored indirectly, added where the function
// adds.
func (f *fn) scatter(i int32) {
	x := &f.flats[i]
	n := (len(x.args) - 1) / 2
	if n < 1 || len(x.outs) < n {
		f.stream(i, []streamStep{{op: components.OpcodeTensorCopy, eng: onPool, fn: "copy", times: 1}}, "a copy of its operands' elements")
		return
	}
	f.argsInHBM(x.args)
	for k := range n {
		to, out := x.args[k].v, x.outs[k].v
		total := f.values[out].total
		if !f.inPlace(to) || f.values[to].konst || f.values[out].out || f.values[to].hbm == nil || f.values[to].param >= 0 {
			f.values[out].hbm = f.hbmRegion(&f.values[out], f.outMem(out), ceilDiv(total, copyBytes), f.valueName(out))
			if total > 0 {
				f.copyAll(to, out, 0, total, false, 0)
			}
			f.values[out].hbm.epoch = uint32(f.l.e.m.Instr.Opcode.Len())
		} else {
			f.values[out].hbm = f.handOn(f.values[to].hbm)
		}
	}
	op := components.OpcodeIndirectSave
	for _, c := range f.l.g.Calls(x.op) {
		if c.Role == opgraph.RoleToApply && f.l.g.Ops.Kind[f.l.g.Comps.Root[c.Comp]] == opgraph.OpAdd {
			op = components.OpcodeIndirectSaveAccumulate
		}
	}
	idx := x.args[n].v
	saved := *x
	for k := range n {
		y := saved
		y.args = []ref{saved.args[k], {idx, saved.args[n].shape, -1}}
		y.outs = saved.outs[k : k+1]
		f.flats[i] = y
		f.indirect(i, saved.args[n+1+k].v, op)
	}
	f.flats[i] = saved
	f.l.count(x.op, Lowered, "")
}

// sortKernel lowers a sort as the passes of a bitonic network on Pool: with
// n the sorted length, log2(n)·(log2(n)+1)/2 passes of one comparison and two
// selections over all elements. Ours.
func (f *fn) sortKernel(i int32) {
	x := &f.flats[i]
	n := int64(2)
	if d := f.l.g.Dims(x.op); len(d) > 0 && len(x.args) > 0 {
		if dims := f.l.g.Shapes.Dims(x.args[0].shape); int(d[0]) < len(dims) {
			n = max(dims[d[0]], 1)
		}
	}
	lg := log2(n)
	passes := max(lg*(lg+1)/2, 1)
	f.stream(i, []streamStep{{op: components.OpcodeCustomOp, eng: onPool, fn: "sort", times: 3 * passes}}, "")
}

// topK lowers a top-k as rounds of the eight largest (Max, MaxIndex and
// MatchReplace on DVE).
func (f *fn) topK(i int32, k int64) {
	rounds := max(ceilDiv(max(k, 1), 8), 1)
	f.stream(i, []streamStep{{op: components.OpcodeMax, eng: onDVE, fn: "max8", times: rounds}, {op: components.OpcodeMaxIndex, eng: onDVE, fn: "max_index8", times: rounds}, {op: components.OpcodeMatchReplace, eng: onDVE, fn: "match_replace8", times: rounds}}, "")
}

// window lowers reduce-window and select-and-scatter: as many elements as the
// window has for each result.
func (f *fn) window(i int32) {
	x := &f.flats[i]
	taps := int64(1)
	for _, w := range f.l.g.Window(x.op, nil) {
		taps = opgraph.MulSize(taps, max(w.Size, 1))
	}
	steps := []streamStep{{op: components.OpcodePool, eng: onPool, fn: "pool", times: 1}}
	// The window slides over the results, of which there may be fewer.
	var in, out int64 = 1, 1
	if len(x.args) > 0 {
		in = max(f.values[x.args[0].v].elems, 1)
	}
	if len(x.outs) > 0 {
		out = max(f.values[x.outs[0].v].elems, 1)
	}
	if lg := log2(taps); taps > 64 && x.kind == opgraph.OpReduceWindow {
		taps = lg // a long window is a scan: one pass a doubling
	}
	steps[0].times = max(mulDiv(out, taps, max(in, out)), 1)
	f.stream(i, steps, "")
}

func (f *fn) batchNorm(i int32) {
	f.stream(i, []streamStep{{op: components.OpcodeBNStats, eng: onDVE, fn: "bn_stats", times: 1}, {op: components.OpcodeTensorScalar, eng: onDVE, fn: "mult_add", times: 1}, {op: components.OpcodeActivation, eng: onACT, fn: "rsqrt", times: 1}}, "")
}

// linear estimates what has no engine instruction: its usual operation count
// spread over the lanes of DVE.
func (f *fn) linear(i int32) {
	x := &f.flats[i]
	n := int64(2)
	if len(x.args) > 0 {
		if dims := f.l.g.Shapes.Dims(x.args[0].shape); len(dims) > 0 {
			n = max(dims[len(dims)-1], 1)
		}
	}
	switch x.kind {
	case opgraph.OpFFT:
		f.stream(i, []streamStep{{op: components.OpcodeTensorTensor, eng: onDVE, fn: "fft", times: 5 * max(log2(n), 1)}}, "5·log2(n) operations an element on DVE")
	default:
		f.stream(i, []streamStep{{op: components.OpcodeTensorTensor, eng: onDVE, fn: x.kind.String(), times: max(n/3, 1)}}, "n/3 operations an element on DVE")
	}
}

// customCall lowers the custom-calls that carry dimension numbers as products
// and convolutions, knows a few by name and estimates the rest.
func (f *fn) customCall(i int32) {
	x := &f.flats[i]
	g := f.l.g
	target := g.AttrStr(x.op, opgraph.AttrCustomCallTarget)
	if c, ok := g.ConvSize(x.op); ok && len(x.args) >= 2 && len(x.outs) > 0 {
		f.convKernel(i, c)
		f.rest(i)
		return
	}
	if g.Has(x.op, opgraph.AttrLHSContract) && len(x.args) >= 2 && len(x.outs) > 0 {
		f.dotKernel(i, g.DotSize(x.op))
		f.rest(i)
		return
	}
	switch {
	case target == "TopK":
		k := int64(8)
		if len(x.outs) > 0 {
			if dims := g.Shapes.Dims(x.outs[0].shape); len(dims) > 0 {
				k = max(dims[len(dims)-1], 1)
			}
		}
		f.topK(i, k)
	case strings.Contains(target, "Sharding") || target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape" || strings.HasPrefix(target, "xla.sdy") ||
		target == "AllocateBuffer" || target == "MoveToHost" || target == "MoveToDevice" || strings.HasPrefix(target, "annotate_device_placement"):
		if len(x.args) == len(x.outs) {
			for k, o := range x.outs {
				f.hand(x.args[k].v, o.v)
			}
			f.l.count(x.op, Free, "")
			return
		}
		f.noWork(x)
	default:
		f.stream(i, []streamStep{{op: components.OpcodeCustomOp, eng: onPool, fn: target, times: 1}}, "custom-call "+target+": its operands and results pass through Pool once")
	}
}

// hand makes value to stand for the device memory of value from, or for a
// device's part of it.
func (f *fn) hand(from, to int32) {
	if !f.values[from].konst {
		shared(f.ensureHBM(from))
		x := &f.values[to]
		x.base, x.moves = from, x.total != f.values[from].total
		f.values[from].slices = append(f.values[from].slices, to)
		return
	}
	f.values[to].konst = true
}

// rest gives the results of a custom-call beyond the first (workspace) memory.
func (f *fn) rest(i int32) { f.fresh(&f.flats[i]) }
