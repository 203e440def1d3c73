package lower

import "perfsim/components"

// initPSUM makes the accumulation banks; a machine without PSUM accumulates in
// tiles of SBUF.
func (f *fn) initPSUM() {
	a := f.l.arr
	n := a.banks
	if n > 0 {
		f.psum = &region{mem: components.MemPSUM, bytes: int64(n) * a.bankBytes, tileBytes: a.bankBytes, tiles: make([]dep, n)}
		f.location(f.psum, "psum", a.parts)
		return
	}
	f.psum = f.must(softBanks, a.bankBytes)
}

// nextBank takes the banks in turn.
func (f *fn) nextBank() int {
	b := f.bank
	f.bank = (f.bank + 1) % len(f.psum.tiles)
	return b
}

// bankWrite says that the instruction being made starts a sum in a bank.
func (f *fn) bankWrite(bank int) { f.l.e.write(f.psum, bank, bank+1) }

func (f *fn) bankMask(bank int) uint16 {
	if f.psum.mem != components.MemPSUM || bank > 7 {
		return 0
	}
	return 1 << bank
}

// matmul emits a product of a stationary k×m by a moving k×n tensor.
func (f *fn) matmul(k, m, n int64, d components.DType, start, stop bool, flags components.Flags, bank int) uint32 {
	if start {
		flags |= components.FlagAccStart
	}
	if stop {
		flags |= components.FlagAccStop
	}
	if f.psum.mem == components.MemPSUM {
		flags |= components.FlagDstPSUM
	}
	return f.l.e.add(ins{op: components.OpcodeMatmult, eng: components.PE, lane: components.LanePE, flags: flags | components.FlagTwoInputs, elems: max(m, n), out: n, parts: k,
		dtype: d, banks: f.bankMask(bank) << 8})
}

// evictBank copies n columns of a bank to tile t of a region on chip, by
// Activation or DVE.
func (f *fn) evictBank(bank int, to *region, t int, n, parts int64, d components.DType, fn string) {
	e := &f.l.e
	eng := f.pick(components.Unassigned, n)
	op := components.OpcodeTensorCopy
	if eng == components.Activation {
		op = components.OpcodeActivation
	}
	e.read(f.psum, bank, bank+1)
	e.write(to, t, t+1)
	f.operand(components.RoleIn, f.psum, int64(bank)*f.psum.tileBytes, n, parts, components.Float32)
	f.operand(components.RoleOut, to, int64(t)*to.tileBytes, n, parts, d)
	f.busy[slotOf(uint16(eng))] += n
	var flags components.Flags
	if f.psum.mem == components.MemPSUM {
		flags = components.FlagSrcPSUM
	}
	if d.Size() != 4 {
		flags |= components.FlagMixedTypes
	}
	e.add(ins{op: op, eng: eng, lane: uint16(eng), flags: flags, elems: n, out: n, parts: parts, dtype: components.Float32, banks: f.bankMask(bank), fn: e.sym(fn)})
}
