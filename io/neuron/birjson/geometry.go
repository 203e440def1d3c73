package birjson

import (
	"math"

	"perfsim/components"
)

const (
	bankBytes = 2048 // of a PSUM bank in one partition
	numBanks  = 8
)

// geometry is what the cost and placement rules want to know of the operands
// of an instruction (docs/birjson.md). It follows from the opcode and the operands.
type geometry struct {
	elems    uint32
	parts    uint16
	dtype    components.DType
	outElems uint32
	banks    uint16
	flags    components.Flags
	dmaBytes uint64
	dmaRow   uint32
}

// operandFlags are the flags that follow from the operands.
const operandFlags = components.FlagSrcPSUM | components.FlagSrcDRAM | components.FlagTwoInputs | components.FlagSrc2PSUM |
	components.FlagThreeInputs | components.FlagDstPSUM | components.FlagDstDRAM | components.FlagMixedTypes | components.FlagStrided

// isPattern tells whether the operand is an access pattern over a tensor.
func isPattern(o *components.AccessPattern) bool {
	return o.Kind <= components.OperandRegisterAP && len(o.Counts) > 0
}

// derive works the geometry out.
func derive(op components.Opcode, ops []components.AccessPattern) geometry {
	g := geometry{dtype: components.NoDType}
	var in, out [3]*components.AccessPattern
	nIn, nOut := 0, 0
	physical := false
	for i := range ops {
		physical = physical || ops[i].Kind == components.OperandPhysical && len(ops[i].Counts) > 0
	}
	for i := range ops {
		o := &ops[i]
		if !isPattern(o) {
			continue
		}
		if o.Memory == components.MemPSUM {
			g.banks |= banksOf(o)
		}
		// NEP is the maximum over the physical patterns (docs/model.md, section 3); where an
		// instruction has none, its other patterns stand in.
		if o.Kind == components.OperandPhysical || !physical {
			g.elems = max(g.elems, uint32(min(o.Elems(), math.MaxUint32)))
		}
		if n := len(o.Counts); n > 1 && o.Counts[n-1] > 1 && o.Steps[n-1] != 1 {
			g.flags |= components.FlagStrided
		}
		switch o.Role {
		case components.RoleIn:
			if nIn < len(in) {
				in[nIn] = o
				nIn++
			}
		case components.RoleOut:
			if nOut < len(out) {
				out[nOut] = o
				nOut++
			}
		}
	}
	if nOut > 0 {
		o := out[0]
		g.outElems = uint32(min(o.Elems(), math.MaxUint32))
		g.parts = uint16(min(o.Partitions(), math.MaxUint16))
		g.dtype = o.DType
		switch {
		case o.Memory == components.MemPSUM:
			g.flags |= components.FlagDstPSUM
		case o.Memory.InDRAM():
			g.flags |= components.FlagDstDRAM
		}
	}
	if nIn > 0 {
		a := in[0]
		g.parts = uint16(min(a.Partitions(), math.MaxUint16))
		g.dtype = a.DType
		switch {
		case a.Memory == components.MemPSUM:
			g.flags |= components.FlagSrcPSUM
		case a.Memory.InDRAM():
			g.flags |= components.FlagSrcDRAM
		}
		if nOut > 0 && a.DType != out[0].DType {
			g.flags |= components.FlagMixedTypes
		}
	}
	if nIn > 1 {
		g.flags |= components.FlagTwoInputs
		if in[1].Memory == components.MemPSUM {
			g.flags |= components.FlagSrc2PSUM
		}
	}
	if nIn > 2 {
		g.flags |= components.FlagThreeInputs
	}
	if op.IsDMA() || op.IsCollective() || isDescriptor(op) {
		switch {
		case nOut > 0:
			g.dmaBytes = totalBytes(out[0])
		case nIn > 0:
			g.dmaBytes = totalBytes(in[0])
		}
		if !op.IsCollective() {
			g.dmaRow = math.MaxUint32
			if nOut > 0 {
				g.dmaRow = min(g.dmaRow, runBytes(out[0]))
			}
			if nIn > 0 {
				g.dmaRow = min(g.dmaRow, runBytes(in[0]))
			}
			if nOut+nIn == 0 {
				g.dmaRow = 0
			}
		}
	}
	return g
}

func isDescriptor(op components.Opcode) bool {
	return op >= components.OpcodeDMADescriptor && op <= components.OpcodeDMADescriptorReplicate
}

// banksOf returns the PSUM banks that a pattern touches, in the byte of its
// role. Banks that do not exist are left out.
func banksOf(o *components.AccessPattern) uint16 {
	lo, hi := o.Span()
	if lo >= hi || lo >= numBanks*bankBytes {
		return 0
	}
	var mask uint16
	for b := lo / bankBytes; b <= min((hi-1)/bankBytes, numBanks-1); b++ {
		mask |= 1 << b
	}
	if o.Role == components.RoleOut {
		mask <<= 8
	}
	return mask
}

// totalBytes is what the pattern covers in all partitions.
func totalBytes(o *components.AccessPattern) uint64 {
	n := uint64(max(o.DType.Size(), 1))
	for _, c := range o.Counts {
		if c != 0 && n > math.MaxUint64/c {
			return math.MaxUint64
		}
		n *= c
	}
	return n
}

// runBytes is the length of the contiguous runs of a pattern: on chip within
// a partition, in device memory over all dimensions.
func runBytes(o *components.AccessPattern) uint32 {
	first := 1
	if o.Memory.InDRAM() {
		first = 0
	}
	run := uint64(1)
	for i := len(o.Counts) - 1; i >= first; i-- {
		if o.Counts[i] <= 1 {
			continue
		}
		if o.Steps[i] != int64(run) {
			break
		}
		run *= o.Counts[i]
	}
	return uint32(min(run*uint64(max(o.DType.Size(), 1)), math.MaxUint32))
}
