package lower

import "perfsim/components"

// spot is n elements on each partition, from byte off of tile t of a region on
// chip on.
type spot struct {
	r     *region
	t     int
	off   int64
	n     int64
	dtype components.DType
}

// bank returns n 32-bit sums of a PSUM bank from column col on.
func (f *fn) bankSpot(bank int, col, n int64) spot {
	return spot{f.psum, bank, col * 4, n, components.Float32}
}

// vec emits an instruction of a data-path engine that reads srcs and writes dst
// on each of parts partitions. It takes the time of elems elements; the type
// is that of the first source. Unassigned picks the engine that has less to do.
func (f *fn) vec(eng components.Engine, op components.Opcode, name string, elems, parts int64, dst spot, srcs ...spot) {
	e := &f.l.e
	eng = f.pick(eng, elems)
	var flags components.Flags
	d := dst.dtype
	inPSUM := func(s spot) bool { return s.r.mem == components.MemPSUM }
	var banks uint16
	for i, s := range srcs {
		f.reads(s.r, s.t, s.t+1, s.off, s.n, parts, s.dtype)
		switch {
		case i == 0:
			d = s.dtype
			if inPSUM(s) {
				flags |= components.FlagSrcPSUM
			}
		case i == 1:
			flags |= components.FlagTwoInputs
			if inPSUM(s) {
				flags |= components.FlagSrc2PSUM
			}
		default:
			flags |= components.FlagThreeInputs
		}
		if inPSUM(s) {
			banks |= f.bankMask(s.t)
		}
	}
	if op == components.OpcodeTensorScalarPtr { // its second operand is one value a partition
		flags &^= components.FlagTwoInputs
	}
	f.writes(dst.r, dst.t, dst.off, dst.n, parts, dst.dtype)
	if inPSUM(dst) {
		flags |= components.FlagDstPSUM
		banks |= f.bankMask(dst.t) << 8
	}
	if d.Size() != dst.dtype.Size() {
		flags |= components.FlagMixedTypes
	}
	f.busy[eng] += elems
	e.add(ins{op: op, eng: eng, lane: uint16(eng), flags: flags, elems: elems, out: dst.n, parts: parts, dtype: d, banks: banks, fn: e.sym(name)})
}
