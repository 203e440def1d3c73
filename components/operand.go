package components

import "perfsim/ecs"

// OperandRole distinguishes inputs from outputs.
type OperandRole uint8

// The roles.
const (
	RoleIn OperandRole = iota
	RoleOut
	RoleIndirect // index of an indirect access
)

// OperandKind is the kind of an operand.
type OperandKind uint8

// The operand kinds.
const (
	OperandPhysical OperandKind = iota // a physical access pattern
	OperandSymbolic                    // an access pattern over a tensor not yet placed
	OperandRegisterAP
	OperandRegister
	OperandImmediate
	OperandImmediateArray
	OperandSymbolicImmediate
	OperandOther
)

// Operands is the table of access patterns and immediates. The operands of
// instruction i are rows Offsets[i] to Offsets[i+1]; where Offsets is empty
// the module has no operands.
type Operands struct {
	Offsets ecs.Column[uint32] // instructions+1, or none
	Role    ecs.Column[OperandRole]
	Kind    ecs.Column[OperandKind]
	DType   ecs.Column[DType]
	Memory  ecs.Column[Memory]
	Where   ecs.Column[uint32] // row of the location table plus one, 0 where the operand has an address only
	// Address is where the pattern starts, in bytes: per partition for SBUF
	// and PSUM (bank b of PSUM starts at b × 2048), linear in device memory.
	Address ecs.Column[uint64]
	Base    ecs.Column[uint16] // first partition
	// Dims is where the pattern's (step, count) pairs start in the Step and
	// Count columns, NumDims how many there are: slow to fast, the first one
	// the partition dimension, steps in elements.
	Dims    ecs.Column[uint32]
	NumDims ecs.Column[uint8]
	Step    ecs.Column[int64]
	Count   ecs.Column[uint64]
}

func newOperands() Operands {
	return Operands{
		Offsets: ecs.NewColumn[uint32]("operands.offsets"), Role: ecs.NewColumn[OperandRole]("operands.role"),
		Kind: ecs.NewColumn[OperandKind]("operands.kind"), DType: ecs.NewColumn[DType]("operands.dtype"),
		Memory: ecs.NewColumn[Memory]("operands.memory"), Where: ecs.NewColumn[uint32]("operands.where"),
		Address: ecs.NewColumn[uint64]("operands.address"), Base: ecs.NewColumn[uint16]("operands.base"),
		Dims: ecs.NewColumn[uint32]("operands.dims"), NumDims: ecs.NewColumn[uint8]("operands.num_dims"),
		Step: ecs.NewColumn[int64]("operands.step"), Count: ecs.NewColumn[uint64]("operands.count"),
	}
}

// Columns lists all columns.
func (t *Operands) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Offsets, &t.Role, &t.Kind, &t.DType, &t.Memory, &t.Where, &t.Address, &t.Base,
		&t.Dims, &t.NumDims, &t.Step, &t.Count}
}

// Len returns the number of operands.
func (t *Operands) Len() int { return t.Role.Len() }

// AccessPattern is one row with its pattern, for code that is not in a hot loop.
type AccessPattern struct {
	Role    OperandRole
	Kind    OperandKind
	DType   DType
	Memory  Memory
	Where   uint32 // location row plus one
	Address uint64 // bytes
	Base    uint16
	Steps   []int64 // elements, slow to fast; the first pair is the partition dimension
	Counts  []uint64
}

// Add appends an operand to the row being filled; see EndRow.
func (t *Operands) Add(o AccessPattern) {
	t.Role.Append(o.Role)
	t.Kind.Append(o.Kind)
	t.DType.Append(o.DType)
	t.Memory.Append(o.Memory)
	t.Where.Append(o.Where)
	t.Address.Append(o.Address)
	t.Base.Append(o.Base)
	t.Dims.Append(uint32(t.Step.Len()))
	t.NumDims.Append(uint8(len(o.Steps)))
	t.Step.AppendSlice(o.Steps)
	t.Count.AppendSlice(o.Counts)
}

// EndRow closes the operands of the next instruction in program order.
func (t *Operands) EndRow() {
	if t.Offsets.Len() == 0 {
		t.Offsets.Append(0)
	}
	t.Offsets.Append(uint32(t.Role.Len()))
}

// Range returns the operand rows of instruction i.
func (t *Operands) Range(i InstrID) (lo, hi int) {
	off := t.Offsets.Slice()
	if int(i)+1 >= len(off) {
		return 0, 0
	}
	return int(off[i]), int(off[i+1])
}

// At returns operand row r; its slices alias the columns.
func (t *Operands) At(r int) AccessPattern {
	lo := int(t.Dims.At(r))
	hi := lo + int(t.NumDims.At(r))
	return AccessPattern{
		Role: t.Role.At(r), Kind: t.Kind.At(r), DType: t.DType.At(r), Memory: t.Memory.At(r), Where: t.Where.At(r),
		Address: t.Address.At(r), Base: t.Base.At(r), Steps: t.Step.View(lo, hi), Counts: t.Count.View(lo, hi),
	}
}

// Partitions returns the number of partitions of the pattern: the count of
// its first pair.
func (o AccessPattern) Partitions() uint64 {
	if len(o.Counts) == 0 {
		return 0
	}
	return o.Counts[0]
}

// Elems returns the elements per partition: the product of the counts of all
// pairs but the first. It saturates at 2^32-1, far above any memory.
func (o AccessPattern) Elems() uint64 {
	if len(o.Counts) == 0 {
		return 0
	}
	n := uint64(1)
	for _, c := range o.Counts[1:] {
		if c != 0 && n > (1<<32-1)/c {
			return 1<<32 - 1
		}
		n *= c
	}
	return n
}

// Span returns the first byte and the byte behind the last that the pattern
// touches within one partition (within device memory for DRAM).
func (o AccessPattern) Span() (lo, hi uint64) {
	size := int64(o.DType.Size())
	if size == 0 {
		size = 1
	}
	dims := o.Steps
	counts := o.Counts
	if !o.Memory.InDRAM() && len(dims) > 0 {
		dims, counts = dims[1:], counts[1:]
	}
	// Readers refuse patterns beyond maxReach (Module.Check), so that sums fit.
	var back, forward int64
	for i, s := range dims {
		if counts[i] == 0 {
			return o.Address, o.Address
		}
		d := int64(counts[i]-1) * s
		if d < 0 {
			back += d
		} else {
			forward += d
		}
	}
	lo = uint64(max(0, int64(o.Address)+back*size))
	return lo, uint64(int64(o.Address) + forward*size + size)
}
