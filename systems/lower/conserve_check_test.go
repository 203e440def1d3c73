package lower_test

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
	lane  uint16
	deps  []uint32
	ops   []access
	anti  []uint32
	out   []uint32
	queue uint16
	loop  bool // the rows up to the next one with end are the body of a loop
	end   bool
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
		for kind, list := range map[components.EdgeKind][]uint32{components.Flow: r.deps, components.Anti: r.anti, components.Output: r.out} {
			for _, d := range list {
				edges.Add(components.InstrID(i), components.InstrID(d), kind)
			}
		}
		m.Instr.Queue.Append(r.queue)
		if r.loop {
			m.Instr.Flags.Set(i, components.FlagLoop)
		}
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(b, uint32(len(rows)))
	for i, r := range rows {
		if !r.loop {
			continue
		}
		l := m.Blocks.Add(m.Symbols.InternString("l"), uint32(f), uint32(i+1), components.InstrID(i+1), 9)
		for j := i + 1; j < len(rows) && !rows[j].end; j++ {
			m.Blocks.End.Set(l, uint32(j+1))
		}
	}
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
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
			{lane: dma, deps: []uint32{1}, ops: []access{{true, 2, sb, 0, 64}}},
			{lane: dve, deps: []uint32{2}, ops: []access{{false, 2, sb, 0, 64}}},
		}},
		{"ordered through another instruction", "", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
			{lane: dve, deps: []uint32{1}},
			{lane: dma, deps: []uint32{2}, ops: []access{{true, 2, sb, 0, 64}}},
		}},
		{"used before its load", "nobody has defined", []row{
			{lane: pe, ops: []access{{false, 1, sb, 0, 64}}},
		}},
		{"only partly loaded", "nobody has defined", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 32}}},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
		}},
		{"two live tiles overlap", "now hold b", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: dma, ops: []access{{true, 2, sb, 32, 64}}},
			{lane: pe, deps: []uint32{0, 1}, ops: []access{{false, 1, sb, 0, 64}}},
		}},
		{"no dependency on the load", "without a dependency", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: pe, ops: []access{{false, 1, sb, 0, 64}}},
		}},
		{"overwritten while it is read", "is read by", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
			{lane: dma, ops: []access{{true, 2, sb, 0, 64}}},
		}},
		{"two transfers of one queue", "", []row{
			{lane: dma, queue: 1, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: dma, queue: 1, ops: []access{{true, 1, sb, 0, 64}}},
		}},
		{"two transfers of different queues", "was written by", []row{
			{lane: dma, queue: 1, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: dma, queue: 2, ops: []access{{true, 1, sb, 0, 64}}},
		}},
		{"stores of different bytes, and a reader of both", "", []row{
			{lane: dma, queue: 1, ops: []access{{true, 3, dram, 0, 64}}},
			{lane: dma, queue: 2, ops: []access{{true, 3, dram, 8192, 64}}},
			{lane: dma, queue: 3, deps: []uint32{0}, ops: []access{{false, 3, dram, 0, 64}, {true, 1, sb, 0, 64}}},
		}},
		{"a reader that waits for one of two stores", "was written by", []row{
			{lane: dma, queue: 1, ops: []access{{true, 3, dram, 0, 64}}},
			{lane: dma, queue: 2, ops: []access{{true, 3, dram, 191, 64}}},
			{lane: dma, queue: 3, deps: []uint32{0}, ops: []access{{false, 3, dram, 0, 128}, {true, 1, sb, 0, 64}}},
		}},
		{"Output edge between different bytes", "touches other bytes", []row{
			{lane: dma, queue: 1, ops: []access{{true, 1, sb, 0, 64}}},
			{lane: dma, queue: 1, out: []uint32{0}, ops: []access{{true, 1, sb, 64, 64}}},
		}},
		{"Anti edge between different bytes", "touches other bytes", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 128}}},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
			{lane: dma, anti: []uint32{1}, ops: []access{{true, 1, sb, 64, 64}}},
		}},
		{"Output and Anti edges that are needed", "", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 128}}},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
			{lane: dve, anti: []uint32{1}, out: []uint32{0}, ops: []access{{true, 1, sb, 63, 64}}},
		}},
		{"a loop reads what was written before it", "", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{loop: true, lane: pe},
			{lane: pe, deps: []uint32{0}, ops: []access{{false, 1, sb, 0, 64}}},
		}},
		{"a loop reads what was written before it, without a dependency", "without a dependency", []row{
			{lane: dma, ops: []access{{true, 1, sb, 0, 64}}},
			{loop: true, lane: pe},
			{lane: pe, ops: []access{{false, 1, sb, 0, 64}}},
		}},
		{"a loop stores, its reader depends on it", "", []row{
			{loop: true, lane: dve},
			{lane: dma, queue: 1, ops: []access{{true, 3, dram, 0, 64}}},
			{lane: dma, queue: 2, deps: []uint32{1}, ops: []access{{false, 3, dram, 512, 64}}, end: true},
		}},
		{"a loop stores, its reader does not depend on it", "was written in a loop", []row{
			{loop: true, lane: dve},
			{lane: dma, queue: 1, ops: []access{{true, 3, dram, 0, 64}}},
			{lane: dma, queue: 2, ops: []access{{false, 3, dram, 512, 64}}, end: true},
		}},
		{"what a later iteration reads", "reads in a loop", []row{
			{lane: dma, queue: 1, ops: []access{{true, 3, dram, 0, 64}}},
			{lane: dma, queue: 3, ops: []access{{true, 3, dram, 512, 64}}},
			{loop: true, lane: dve},
			{lane: dma, queue: 2, deps: []uint32{0}, ops: []access{{false, 3, dram, 0, 64}}},
		}},
		{"device memory read before it is stored", "nobody has defined", []row{
			{lane: dma, ops: []access{{false, 3, dram, 0, 64}, {true, 1, sb, 0, 64}}},
		}},
	} {
		m := build(t, c.rows)
		r, err := checkModule(m)
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
