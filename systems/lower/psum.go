package lower

import (
	"perfsim/components"
	"perfsim/components/opgraph"
)

// initPSUM makes the accumulation banks; a machine without PSUM accumulates in
// tiles of SBUF.
func (f *fn) initPSUM() {
	a := f.l.arr
	n := a.banks
	if n > 0 {
		f.psum = &region{mem: components.MemPSUM, bytes: int64(n) * a.bankBytes, tileBytes: a.bankBytes, tiles: make([]tileState, n)}
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

// bankOut declares that the product being made writes n columns on each of
// parts partitions from byte off of a bank on, starting a sum or going on.
func (f *fn) bankOut(start bool, bank int, off, n, parts int64) {
	if start {
		f.writes(f.psum, bank, off, n, parts, components.Float32)
	} else {
		f.adds(f.psum, bank, off, n, parts, components.Float32)
	}
}

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
	if flags&components.FlagTranspose == 0 {
		f.columns = opgraph.AddSize(f.columns, opgraph.MulSize(n, f.l.e.mult))
	}
	return f.l.e.add(ins{op: components.OpcodeMatmult, eng: components.PE, lane: components.LanePE, flags: flags | components.FlagTwoInputs, elems: max(m, n), out: n, parts: k,
		macs: opgraph.MulSize(opgraph.MulSize(k, m), n), dtype: d, banks: f.bankMask(bank) << 8})
}

// evictBank copies n columns of a bank to tile t of a region on chip, by
// Activation or DVE.
func (f *fn) evictBank(bank int, to *region, t int, n, parts int64, d components.DType, fn string) {
	f.vec(components.Unassigned, components.OpcodeTensorCopy, fn, n, parts, spot{to, t, 0, n, d}, f.bankSpot(bank, 0, n))
}
