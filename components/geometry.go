package components

import "math"

const (
	bankBytes = 2048 // bytes of a PSUM bank in one partition
	numBanks  = 8
)

// Geometry holds the columns of an instruction that follow from its opcode and
// operands (docs/birjson.md); the cost and placement rules read them.
type Geometry struct {
	Elems    uint32
	Parts    uint16
	DType    DType
	OutElems uint32
	Banks    uint16
	Flags    Flags
	DMABytes uint64
	DMARow   uint32
}

// OperandFlags are the flags that follow from the operands.
const OperandFlags = FlagSrcPSUM | FlagSrcDRAM | FlagTwoInputs | FlagSrc2PSUM |
	FlagThreeInputs | FlagDstPSUM | FlagDstDRAM | FlagMixedTypes | FlagStrided

// isPattern reports whether the operand is an access pattern over a tensor.
func isPattern(o *AccessPattern) bool {
	return o.Kind <= OperandRegisterAP && len(o.Counts) > 0
}

// GeometryOf derives the geometry of an instruction.
func GeometryOf(op Opcode, ops []AccessPattern) Geometry {
	g := Geometry{DType: NoDType}
	var in, out [3]*AccessPattern
	nIn, nOut := 0, 0
	physical := false
	for i := range ops {
		physical = physical || ops[i].Kind == OperandPhysical && len(ops[i].Counts) > 0
	}
	for i := range ops {
		o := &ops[i]
		if !isPattern(o) {
			continue
		}
		if o.Memory == MemPSUM {
			g.Banks |= banksOf(o)
		}
		// NEP is the maximum over the physical patterns (docs/model.md, section 3); where an
		// instruction has none, its other patterns stand in.
		if o.Kind == OperandPhysical || !physical {
			g.Elems = max(g.Elems, uint32(min(o.Elems(), math.MaxUint32)))
		}
		if n := len(o.Counts); n > 1 && o.Counts[n-1] > 1 && o.Steps[n-1] != 1 {
			g.Flags |= FlagStrided
		}
		switch o.Role {
		case RoleIn:
			if nIn < len(in) {
				in[nIn] = o
				nIn++
			}
		case RoleOut:
			if nOut < len(out) {
				out[nOut] = o
				nOut++
			}
		}
	}
	if nOut > 0 {
		o := out[0]
		g.OutElems = uint32(min(o.Elems(), math.MaxUint32))
		g.Parts = uint16(min(o.Partitions(), math.MaxUint16))
		g.DType = o.DType
		switch {
		case o.Memory == MemPSUM:
			g.Flags |= FlagDstPSUM
		case o.Memory.InDRAM():
			g.Flags |= FlagDstDRAM
		}
	}
	if nIn > 0 {
		a := in[0]
		g.Parts = uint16(min(a.Partitions(), math.MaxUint16))
		g.DType = a.DType
		switch {
		case a.Memory == MemPSUM:
			g.Flags |= FlagSrcPSUM
		case a.Memory.InDRAM():
			g.Flags |= FlagSrcDRAM
		}
		if nOut > 0 && a.DType != out[0].DType {
			g.Flags |= FlagMixedTypes
		}
	}
	if nIn > 1 {
		g.Flags |= FlagTwoInputs
		if in[1].Memory == MemPSUM {
			g.Flags |= FlagSrc2PSUM
		}
	}
	if nIn > 2 {
		g.Flags |= FlagThreeInputs
	}
	if op.IsDMA() || op.IsCollective() || op.IsDescriptor() {
		switch {
		case nOut > 0:
			g.DMABytes = totalBytes(out[0])
		case nIn > 0:
			g.DMABytes = totalBytes(in[0])
		}
		if !op.IsCollective() {
			g.DMARow = math.MaxUint32
			if nOut > 0 {
				g.DMARow = min(g.DMARow, runBytes(out[0]))
			}
			if nIn > 0 {
				g.DMARow = min(g.DMARow, runBytes(in[0]))
			}
			if nOut+nIn == 0 {
				g.DMARow = 0
			}
		}
	}
	return g
}

// IsDescriptor reports whether the opcode is a DMA descriptor of a queue.
func (op Opcode) IsDescriptor() bool {
	return op >= OpcodeDMADescriptor && op <= OpcodeDMADescriptorReplicate
}

// banksOf returns the PSUM banks that a pattern touches, in the byte of its
// role. Banks that do not exist are left out.
func banksOf(o *AccessPattern) uint16 {
	lo, hi := o.Span()
	if lo >= hi || lo >= numBanks*bankBytes {
		return 0
	}
	var mask uint16
	for b := lo / bankBytes; b <= min((hi-1)/bankBytes, numBanks-1); b++ {
		mask |= 1 << b
	}
	if o.Role == RoleOut {
		mask <<= 8
	}
	return mask
}

// totalBytes is the size that the pattern covers in all partitions.
func totalBytes(o *AccessPattern) uint64 {
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
func runBytes(o *AccessPattern) uint32 {
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
