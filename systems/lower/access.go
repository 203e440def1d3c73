package lower

import "perfsim/components"

// Every access of an instruction is declared by one call, which makes the
// operand and the byte range that dependencies are found by: they cannot
// differ.

// onChip declares an access to n elements on each of parts partitions from
// byte off of tile t0 of a region on chip, and of the tiles to t1 likewise. No
// more is read than there is.
func (f *fn) onChip(role components.OperandRole, r *region, t0, t1 int, off, n, parts int64, d components.DType) *use {
	e := &f.l.e
	size := int64(max(d.Size(), 1))
	off = max(min(off, r.tileBytes-size), 0)
	n = max(min(n, (r.tileBytes-off)/size), 1)
	lo := r.lo + int64(t0)*r.tileBytes + off
	if role != components.RoleOut && !(t1 == t0+1 && e.acc.reaches(&r.tiles[t0], lo+n*size)) {
		for t := t0; t < t1; t++ {
			if have := e.acc.have(r, t); off < have && have-off < n*size {
				n = max((have-off)/size, 1)
			}
		}
	}
	u := e.use(r, t0, t1, lo, lo+n*size, role == components.RoleOut)
	u.each = true
	if f.l.opt.Operands {
		o := components.AccessPattern{Role: role, DType: d, Memory: r.mem, Where: r.loc, Address: uint64(lo)}
		o.Steps, o.Counts = []int64{n, 1}, []uint64{uint64(parts), uint64(n)}
		if tiles := t1 - t0; tiles > 1 {
			o.Steps, o.Counts = []int64{n, r.tileBytes / size, 1}, []uint64{uint64(parts), uint64(tiles), uint64(n)}
		}
		e.ops = append(e.ops, o)
	}
	return u
}

// reads declares a read on chip, see onChip.
func (f *fn) reads(r *region, t0, t1 int, off, n, parts int64, d components.DType) {
	f.onChip(components.RoleIn, r, t0, t1, off, n, parts, d)
}

// writes declares a write to tile t of a region on chip, see onChip.
func (f *fn) writes(r *region, t int, off, n, parts int64, d components.DType) {
	f.onChip(components.RoleOut, r, t, t+1, off, n, parts, d)
}

// adds declares that the instruction goes on with what one of the same lane
// began to write to tile t: their lane keeps the order.
func (f *fn) adds(r *region, t int, off, n, parts int64, d components.DType) {
	f.onChip(components.RoleOut, r, t, t+1, off, n, parts, d).more = true
}

// part is a piece of device memory.
type part struct {
	r        *region
	lo, hi   int64 // bytes of the region
	stride   int64 // bytes from row to row, 0 where the piece is contiguous
	row      int64 // bytes of a row
	anywhere bool  // where in lo to hi is known at run time only
}

// whole is all of a region.
func whole(r *region) part { return part{r: r, hi: r.bytes} }

// inMem declares an access to device memory; bytes is the traffic where it is
// not all of the part.
func (f *fn) inMem(role components.OperandRole, p part, bytes int64, d components.DType) {
	e := &f.l.e
	r := p.r
	lo := min(max(p.lo, 0), max(r.bytes-1, 0))
	hi := max(min(p.hi, r.bytes), lo+1)
	t0 := int(lo / r.tileBytes)
	t1 := min(int((hi-1)/r.tileBytes)+1, len(r.tiles))
	e.use(r, min(t0, t1-1), t1, r.lo+lo, r.lo+hi, role == components.RoleOut)
	if !f.l.opt.Operands {
		return
	}
	size := int64(max(d.Size(), 1))
	if !p.anywhere {
		bytes = hi - lo
	}
	if bytes%size != 0 || p.stride%size != 0 || p.row%size != 0 {
		d, size = components.Uint8, 1
	}
	o := components.AccessPattern{Role: role, DType: d, Memory: r.mem, Where: r.loc, Address: uint64(r.lo + lo)}
	switch {
	case p.anywhere:
		o.Kind = components.OperandRegisterAP
		fallthrough
	case p.stride == 0 || p.stride == p.row:
		o.Steps, o.Counts = []int64{1}, []uint64{uint64(max(bytes/size, 1))}
	default:
		o.Steps, o.Counts = []int64{p.stride / size, 1}, []uint64{uint64((hi-lo-p.row)/p.stride + 1), uint64(p.row / size)}
	}
	e.ops = append(e.ops, o)
}

// placeOf returns the device memory of a value: bytes off to off+ext of a
// region, which it fills or, as a slice with steps, lies in; anywhere says that
// only the running program knows where.
func (f *fn) placeOf(v int32) (r *region, off, ext int64, anywhere bool) {
	x := &f.values[v]
	if x.hbm != nil || x.base < 0 {
		r = f.ensureHBM(v)
		return r, 0, r.bytes, false
	}
	base := &f.values[x.base]
	r, off, ext, anywhere = f.placeOf(x.base)
	if x.ext > 0 && x.ext < base.total {
		off += mulDiv(x.off, ext, base.total)
		ext = max(mulDiv(x.ext, ext, base.total), 1)
	}
	return r, off, ext, anywhere || x.moves
}

// partOf returns bytes at to at+bytes of a value in device memory.
func (f *fn) partOf(v int32, at, bytes int64) part {
	r, off, ext, anywhere := f.placeOf(v)
	if anywhere {
		return part{r: r, hi: r.bytes, anywhere: true}
	}
	lo, hi := at, at+bytes
	if total := f.values[v].total; ext != total && total > 0 {
		lo, hi = mulDiv(lo, ext, total), mulDiv(hi, ext, total)
	}
	return part{r: r, lo: off + lo, hi: off + hi}
}

// pieceOf returns what share(total, t, n) is of a value.
func (f *fn) pieceOf(v int32, t, n int64) part {
	total := f.values[v].total
	return f.partOf(v, t*(total/max(n, 1)), share(total, t, n))
}
