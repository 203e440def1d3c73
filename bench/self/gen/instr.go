package gen

import "perfsim/components"

// kind is a kind of instruction of the mix.
type kind struct {
	engine  components.Engine
	lane    uint16
	opcodes [4]components.Opcode
	flags   [4]components.Flags // that go with the opcode
}

const (
	kindPE = iota
	kindActivation
	kindDVE
	kindPool
	kindDMA
	kindCollective
)

var kinds = [6]kind{
	kindPE: {components.PE, components.LanePE,
		[4]components.Opcode{components.OpcodeMatmult, components.OpcodeMatmult, components.OpcodeMatmult, components.OpcodeMatmult},
		[4]components.Flags{components.FlagTwoInputs, components.FlagTwoInputs, components.FlagTwoInputs, components.FlagTwoInputs | components.FlagTranspose}},
	kindActivation: {components.Activation, components.LaneActivation,
		[4]components.Opcode{components.OpcodeActivation, components.OpcodeActivation, components.OpcodeActivation, components.OpcodeTensorCopy}, [4]components.Flags{}},
	kindDVE: {components.DVE, components.LaneDVE,
		[4]components.Opcode{components.OpcodeTensorTensor, components.OpcodeTensorScalar, components.OpcodeTensorReduce, components.OpcodeTensorCopy},
		[4]components.Flags{components.FlagTwoInputs, 0, 0, 0}},
	kindPool: {components.Pool, components.LanePool,
		[4]components.Opcode{components.OpcodeMemset, components.OpcodeIota, components.OpcodeTensorCopy, components.OpcodeTensorScalar}, [4]components.Flags{}},
	kindDMA: {components.SP, components.LaneDMA,
		[4]components.Opcode{components.OpcodeDMACopy, components.OpcodeLoad, components.OpcodeSave, components.OpcodeDMACopy},
		[4]components.Flags{components.FlagHWDGE, components.FlagSrcDRAM, components.FlagDstDRAM, components.FlagHWDGE}},
	kindCollective: {components.Pool, components.LaneCC0,
		[4]components.Opcode{components.OpcodeCollectiveCompute, components.OpcodeCollectiveCompute, components.OpcodeCollectiveCompute, components.OpcodeCollectiveCompute},
		[4]components.Flags{components.FlagCollective, components.FlagCollective, components.FlagCollective, components.FlagCollective}},
}

// sizes are the elements per partition that instructions have.
var sizes = [8]uint32{64, 128, 128, 256, 512, 512, 512, 2048}

// kindOf draws the kind of a row from the first word of its second sequence.
func (g *generator) kindOf(x uint64) int {
	k := 0
	for k < len(kinds)-1 && x >= g.kinds[k] {
		k++
	}
	return k
}

// fill draws the columns of rows lo to hi.
func (g *generator) fill(lo, hi uint32) {
	t := &g.m.Instr
	n := int(hi - lo)
	from, to := int(lo-g.m.Base), int(hi-g.m.Base)
	// Equal lengths let the compiler leave out the bounds checks.
	opcode, engine, lane := t.Opcode.View(from, to)[:n], t.Engine.View(from, to)[:n], t.Lane.View(from, to)[:n]
	flags, elems, parts := t.Flags.View(from, to)[:n], t.Elems.View(from, to)[:n], t.Parts.View(from, to)[:n]
	dtype, banks := t.DType.View(from, to)[:n], t.Banks.View(from, to)[:n]
	for j := range opcode {
		// The complement keeps these words apart from those of producers.
		r := g.row(^(lo + uint32(j)))
		k := g.kindOf(r.next())
		x := r.next()
		v := x & 3
		x >>= 2
		opcode[j] = kinds[k].opcodes[v]
		engine[j] = kinds[k].engine
		f := kinds[k].flags[v]
		elems[j] = sizes[x&7]
		x >>= 3
		parts[j] = 128
		dtype[j] = components.BFloat16
		if x&3 == 0 {
			dtype[j] = components.Float32
		}
		x >>= 2
		l := kinds[k].lane
		bank := uint16(1) << (x & 7)
		x >>= 3
		banks[j] = 0
		switch k {
		case kindPE:
			elems[j] = min(elems[j], 512)
			banks[j] = bank << 8
			f |= components.FlagDstPSUM
			if x&3 == 0 {
				f |= components.FlagAccStart
			}
		case kindActivation, kindDVE:
			if r.next() < g.psum {
				banks[j] = bank
				f |= components.FlagSrcPSUM
				elems[j] = min(elems[j], 512)
			}
		case kindCollective:
			l += uint16(x & 1)
		}
		lane[j] = l
		flags[j] = f
	}
}
