package gen

import (
	"fmt"

	"perfsim/components"
)

// operands places buffers in SBUF, PSUM and device memory and gives every
// instruction patterns over them. Buffers are used in turn with some
// repetition, as a compiler's allocator does, so that accesses conflict with
// near ones mostly.
func (g *generator) operands() {
	m, o := g.m, &g.opt
	loc := &m.Locations
	add := func(name string, mem components.Memory, kind uint8, addr, bytes uint64, bank int16) uint32 {
		loc.Name.Append(m.Symbols.InternString(name))
		loc.Tensor.Append(m.Symbols.InternString(name + "_set"))
		loc.Memory.Append(mem)
		loc.Addr.Append(addr)
		loc.Bytes.Append(bytes)
		parts := uint16(128)
		if mem.InDRAM() {
			parts = 1
		}
		loc.Parts.Append(parts)
		loc.Base.Append(0)
		loc.Bank.Append(bank)
		loc.Alias.Append(0)
		loc.Kind.Append(kind)
		return uint32(loc.Len())
	}
	const (
		internal = 7
		input    = 0
		output   = 3
		pitch    = 4096 // bytes of a buffer in one partition: 2048 elements of two bytes
	)
	first := uint32(loc.Len()) + 1
	for b := range o.Buffers {
		// Buffers past the end of SBUF start over: more of them are alive than
		// fit, so that they overlap as reused memory does.
		add(fmt.Sprintf("sb%d", b), components.MemSBUF, internal, uint64(b%48)*pitch, pitch, 0)
	}
	bank := uint32(loc.Len()) + 1
	for b := range 8 {
		add(fmt.Sprintf("psum%d", b), components.MemPSUM, internal, 0, 2048, int16(b))
	}
	const dramBytes = 128 * pitch
	dram := uint32(loc.Len()) + 1
	for b := range 16 {
		add(fmt.Sprintf("dram%d", b), components.MemDRAM, internal, uint64(b)*dramBytes, dramBytes, 0)
	}
	in := add("x", components.MemInput, input, 0, dramBytes, 0)
	out := add("y", components.MemOutput, output, 0, dramBytes, 0)

	t := &m.Instr
	ops := &m.Operands
	n := o.Instructions
	ops.Offsets.Reserve(n + 1)
	isLoop := make(map[uint32]bool, len(g.loops))
	for _, l := range g.loops {
		isLoop[l] = true
	}
	for i := range n {
		if isLoop[uint32(i)] {
			ops.EndRow()
			continue
		}
		r := g.row(uint32(i))
		dtype := t.DType.At(i)
		size := uint64(dtype.Size())
		elems := uint64(t.Elems.At(i))
		sbuf := func(role components.OperandRole, back uint64) {
			// The window of buffers in use moves with program order.
			b := (uint64(i)/8 + r.below(back)) % uint64(o.Buffers)
			room := pitch/size - min(elems, pitch/size)
			at := uint64(0)
			if room > 0 {
				at = r.below(room + 1)
			}
			ops.Add(components.AccessPattern{Role: role, Kind: components.OperandPhysical, DType: dtype, Memory: components.MemSBUF, Where: first + uint32(b),
				Address: loc.Addr.At(int(first)-1+int(b)) + at*size, Steps: []int64{int64(pitch / size), 1}, Counts: []uint64{128, min(elems, pitch/size)}})
		}
		psum := func(role components.OperandRole) {
			b := r.below(8)
			banks := uint16(1) << b
			if role == components.RoleOut {
				banks <<= 8
			}
			t.Banks.Set(i, banks)
			ops.Add(components.AccessPattern{Role: role, Kind: components.OperandPhysical, DType: components.Float32, Memory: components.MemPSUM, Where: bank + uint32(b),
				Address: b * 2048, Steps: []int64{512, 1}, Counts: []uint64{128, min(elems, 512)}})
		}
		device := func(role components.OperandRole, where uint32) {
			step := int64(min(elems, pitch/size))
			room := uint64(dramBytes)/size - uint64(step)*128
			at := r.below(room + 1)
			l := int(where) - 1
			ops.Add(components.AccessPattern{Role: role, Kind: components.OperandPhysical, DType: dtype, Memory: loc.Memory.At(l), Where: where,
				Address: loc.Addr.At(l) + at*size, Steps: []int64{step, 1}, Counts: []uint64{128, uint64(step)}})
		}
		switch op := t.Opcode.At(i); {
		case op.IsMatmul():
			sbuf(components.RoleIn, 16)
			sbuf(components.RoleIn, 16)
			psum(components.RoleOut)
		case op == components.OpcodeLoad:
			device(components.RoleIn, in)
			sbuf(components.RoleOut, 4)
		case op == components.OpcodeSave:
			sbuf(components.RoleIn, 16)
			device(components.RoleOut, out)
		case op.IsDMA() || op.IsCollective():
			d := dram + uint32(r.below(16))
			if r.next()&1 == 0 {
				device(components.RoleIn, d)
				sbuf(components.RoleOut, 4)
			} else {
				sbuf(components.RoleIn, 16)
				device(components.RoleOut, d)
			}
		case t.Flags.At(i)&components.FlagSrcPSUM != 0:
			psum(components.RoleIn)
			sbuf(components.RoleOut, 4)
		default:
			sbuf(components.RoleIn, 16)
			if t.Flags.At(i)&components.FlagTwoInputs != 0 {
				sbuf(components.RoleIn, 16)
			}
			sbuf(components.RoleOut, 4)
		}
		ops.EndRow()
	}
	m.Attributes = append(m.Attributes, components.Attribute{Key: components.AttributeNoDependencies, Value: m.FunctionName(0)})
}
