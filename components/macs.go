package components

// FillMACs works the column MACs out from the access patterns of a module that
// has none: an input of K partitions, an output of M partitions with N elements
// in each are K·M·N multiply-adds. Without access patterns it does nothing.
func (m *Module) FillMACs() {
	if m.Instr.MACs.Len() > 0 || m.Operands.Len() == 0 {
		return
	}
	products := m.Products()
	var macs []uint32
	for i, op := range m.Instr.Opcode.Slice() {
		if !products[op] {
			continue
		}
		if macs == nil {
			macs = m.Instr.MACs.Resize(m.Instr.Len())
		}
		lo, hi := m.Operands.Range(InstrID(i))
		for r := lo; r < hi; r++ {
			if m.Operands.Role.At(r) == RoleOut && m.Operands.NumDims.At(r) > 0 {
				o := m.Operands.At(r)
				macs[i] = uint32(min(uint64(m.Instr.Parts.At(i))*min(o.Partitions(), 1<<16)*min(o.Elems(), 1<<31), 1<<32-1))
				break
			}
		}
	}
}

// Products returns, by opcode, whether an instruction is a product on the PE.
func (m *Module) Products() []bool {
	out := make([]bool, m.NumOpcodes())
	for op := range out {
		out[op] = Opcode(op).IsMatmul() || m.OpcodeName(Opcode(op)) == "MATMUL"
	}
	return out
}
