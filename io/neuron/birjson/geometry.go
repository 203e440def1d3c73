package birjson

import "perfsim/components"

// geometry is components.Geometry in the field names of a parsed instruction,
// which embeds it.
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

const bankBytes = 2048 // bytes of a PSUM bank in one partition

const operandFlags = components.OperandFlags

// derive works the geometry of an instruction out.
func derive(op components.Opcode, ops []components.AccessPattern) geometry {
	g := components.GeometryOf(op, ops)
	return geometry{g.Elems, g.Parts, g.DType, g.OutElems, g.Banks, g.Flags, g.DMABytes, g.DMARow}
}

func isDescriptor(op components.Opcode) bool { return op.IsDescriptor() }
