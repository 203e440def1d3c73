package check

import (
	"strings"
	"testing"

	"perfsim/components"
)

// access is one operand of a hand-made instruction.
type access struct {
	out   bool
	where uint32 // location plus one
	mem   components.Memory
	addr  uint64
	n     uint64 // bytes
}

type row struct {
	lane uint16
	deps []uint32
	ops  []access
}

func build(t *testing.T, rows []row) *components.Module {
	t.Helper()
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(len(rows))
	for _, n := range []string{"a", "b", "c"} {
		s := m.Symbols.InternString(n)
		l := &m.Locations
		l.Name.Append(s)
		l.Tensor.Append(s)
		l.Memory.Append(components.MemSBUF)
		l.Addr.Append(0)
		l.Bytes.Append(1 << 20)
		l.Parts.Append(128)
		l.Base.Append(0)
		l.Bank.Append(-1)
		l.Alias.Append(0)
		l.Kind.Append(0)
	}
	var edges components.EdgeSet
	for i, r := range rows {
		m.Instr.Lane.Set(i, r.lane)
		m.Instr.Engine.Set(i, components.Engine(r.lane))
		for _, a := range r.ops {
			role := components.RoleIn
			if a.out {
				role = components.RoleOut
			}
			m.Operands.Add(components.AccessPattern{Role: role, DType: components.Uint8, Memory: a.mem, Where: a.where, Address: a.addr,
				Steps: []int64{1, 1}, Counts: []uint64{128, a.n}})
		}
		m.Operands.EndRow()
		for _, d := range r.deps {
			edges.Add(components.InstrID(i), components.InstrID(d), components.Flow)
		}
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(b, uint32(len(rows)))
	if err := m.Link(&edges); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFindings(t *testing.T) {
	const dma, pe, dve = components.LaneDMA, components.LanePE, components.LaneDVE
	const sb, dram = components.MemSBUF, components.MemDRAM
	for _, c := range []struct {
		name, want string
		rows       []row
	}{
		{"load, use, reuse in order", "", []row{
			{dma, nil, []access{{true, 1, sb, 0, 64}}},
			{pe, []uint32{0}, []access{{false, 1, sb, 0, 64}}},
			{dma, []uint32{1}, []access{{true, 2, sb, 0, 64}}},
			{dve, []uint32{2}, []access{{false, 2, sb, 0, 64}}},
		}},
		{"ordered through another instruction", "", []row{
			{dma, nil, []access{{true, 1, sb, 0, 64}}},
			{pe, []uint32{0}, []access{{false, 1, sb, 0, 64}}},
			{dve, []uint32{1}, nil},
			{dma, []uint32{2}, []access{{true, 2, sb, 0, 64}}},
		}},
		{"used before its load", "nobody has defined", []row{
			{pe, nil, []access{{false, 1, sb, 0, 64}}},
		}},
		{"only partly loaded", "nobody has defined", []row{
			{dma, nil, []access{{true, 1, sb, 0, 32}}},
			{pe, []uint32{0}, []access{{false, 1, sb, 0, 64}}},
		}},
		{"two live tiles overlap", "now hold b", []row{
			{dma, nil, []access{{true, 1, sb, 0, 64}}},
			{dma, nil, []access{{true, 2, sb, 32, 64}}},
			{pe, []uint32{0, 1}, []access{{false, 1, sb, 0, 64}}},
		}},
		{"no dependency on the load", "without a dependency", []row{
			{dma, nil, []access{{true, 1, sb, 0, 64}}},
			{pe, nil, []access{{false, 1, sb, 0, 64}}},
		}},
		{"overwritten while it is read", "is read by", []row{
			{dma, nil, []access{{true, 1, sb, 0, 64}}},
			{pe, []uint32{0}, []access{{false, 1, sb, 0, 64}}},
			{dma, nil, []access{{true, 2, sb, 0, 64}}},
		}},
		{"device memory read before it is stored", "before anything is stored", []row{
			{dma, nil, []access{{false, 3, dram, 0, 64}, {true, 1, sb, 0, 64}}},
		}},
	} {
		m := build(t, c.rows)
		r, err := Module(m)
		if err != nil {
			t.Fatal(err)
		}
		err = r.Err(m)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
