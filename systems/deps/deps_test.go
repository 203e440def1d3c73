package deps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
)

// builder of small modules for tests.
type sketch struct {
	m    *components.Module
	rows int
}

func newSketch() *sketch {
	m := components.NewModule("t", "test")
	m.AddCoreLanes(0)
	m.Functions.Add(m.Symbols.InternString("f"), 0)
	return &sketch{m: m}
}

func (s *sketch) location(mem components.Memory, addr, bytes uint64, parts, base uint16, bank int16, alias uint32) uint32 {
	t := &s.m.Locations
	t.Name.Append(s.m.Symbols.InternString(fmt.Sprintf("l%d", t.Len())))
	t.Tensor.Append(0)
	t.Memory.Append(mem)
	t.Addr.Append(addr)
	t.Bytes.Append(bytes)
	t.Parts.Append(parts)
	t.Base.Append(base)
	t.Bank.Append(bank)
	t.Alias.Append(alias)
	t.Kind.Append(7)
	return uint32(t.Len())
}

func (s *sketch) instr(op components.Opcode, flags components.Flags, ops ...components.AccessPattern) {
	t := &s.m.Instr
	i := int(t.Grow(1))
	t.Opcode.Set(i, op)
	t.Engine.Set(i, components.PE)
	t.Lane.Set(i, components.LanePE)
	t.Flags.Set(i, flags)
	for _, o := range ops {
		s.m.Operands.Add(o)
	}
	s.m.Operands.EndRow()
	s.rows++
}

// block adds a block over rows first to now; loops are blocks of their loop row.
func (s *sketch) finish(t interface{ Fatal(...any) }) *components.Module {
	m := s.m
	if m.Blocks.Len() == 0 {
		m.Blocks.Add(m.Symbols.InternString("b"), 0, 0, 0, 1)
		m.Blocks.End.Set(0, uint32(s.rows))
	}
	m.Functions.EndBlock.Set(0, uint32(m.Blocks.Len()))
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	return m
}

// pattern is a physical pattern of one-byte elements.
func pattern(role components.OperandRole, mem components.Memory, where uint32, base uint16, parts uint64, addr, n uint64) components.AccessPattern {
	return components.AccessPattern{Role: role, Kind: components.OperandPhysical, DType: components.Uint8, Memory: mem, Where: where, Base: base, Address: addr,
		Steps: []int64{1 << 20, 1}, Counts: []uint64{parts, n}}
}

// found edges of a module: placement and others together, and the carried.
func edgesOf(m *components.Module) (edges, carried map[[2]uint32]components.EdgeKind) {
	edges, carried = map[[2]uint32]components.EdgeKind{}, map[[2]uint32]components.EdgeKind{}
	for i := range m.Edges.Preds.Rows() {
		for _, w := range m.Edges.Preds.Row(i) {
			edges[[2]uint32{uint32(i), w & ecs.TargetMask}] = components.KindOfClass(uint8(w >> ecs.ClassShift))
		}
	}
	o := &m.Edges.Other
	for e := range o.Len() {
		key := [2]uint32{o.From.At(e), o.To.At(e)}
		if o.Scope.At(e) == components.ScopeCarried {
			carried[key] = o.Kind.At(e)
		} else {
			edges[key] = o.Kind.At(e)
		}
	}
	return edges, carried
}

func diffEdges(got, want map[[2]uint32]components.EdgeKind) string {
	var keys [][2]uint32
	for k := range want {
		keys = append(keys, k)
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		if got[k] != want[k] {
			return fmt.Sprintf("%d on %d: %s, reference %s", k[0], k[1], got[k], want[k])
		}
	}
	return ""
}

// Rebuild is both passes in one walk: it fills in all dependencies of the
// functions that opt picks, replacing what they have.
func Rebuild(ctx context.Context, m *components.Module, opt Options) (Report, error) {
	b := builder{m: m, opt: opt, flow: true, anti: true, fresh: true}
	return b.run(ctx)
}

func rebuild(t interface{ Fatal(...any) }, m *components.Module, opt Options) Report {
	opt.All = true
	r, err := Rebuild(context.Background(), m, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	in  = components.RoleIn
	out = components.RoleOut
	sb  = components.MemSBUF
	ps  = components.MemPSUM
)

func TestKinds(t *testing.T) {
	flow, anti, output := components.Flow, components.Anti, components.Output
	tt := components.OpcodeTensorTensor
	type edge = map[[2]uint32]components.EdgeKind
	for name, c := range map[string]struct {
		build func(s *sketch)
		want  edge
	}{
		"write, read, write": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
		}, edge{{1, 0}: flow, {2, 0}: output, {2, 1}: anti}},
		"in place: flow wins over output": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 0, 8), pattern(out, sb, 0, 0, 4, 0, 8))
		}, edge{{1, 0}: flow}},
		"read twice, then in place": {func(s *sketch) {
			s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 4, 8))
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 6, 1), pattern(in, sb, 0, 0, 4, 6, 1))
		}, edge{{2, 0}: anti, {2, 1}: anti}},
		"other bytes, other partitions": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 8, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 4, 4, 0, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 3, 1, 7, 1))
		}, edge{{3, 0}: flow}},
		"two writers of what is read": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 4, 8))
			s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 0, 12))
		}, edge{{1, 0}: output, {2, 0}: flow, {2, 1}: flow}},
		"SBUF and PSUM are apart": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, ps, 0, 0, 4, 0, 8))
		}, edge{}},
		"a pattern over two PSUM banks": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, ps, 0, 0, 4, 2040, 16))
			s.instr(tt, 0, pattern(in, ps, 0, 0, 4, 2050, 2))
			s.instr(tt, 0, pattern(in, ps, 0, 0, 4, 2040, 1))
		}, edge{{1, 0}: flow, {2, 0}: flow}},
		"accumulation: flow to the matmul before, output where a group starts": {func(s *sketch) {
			s.instr(components.OpcodeMatmult, components.FlagAccStart, pattern(out, ps, 0, 0, 4, 0, 8))
			s.instr(components.OpcodeMatmult, 0, pattern(out, ps, 0, 0, 4, 0, 8))
			s.instr(components.OpcodeMatmult, components.FlagAccStart, pattern(out, ps, 0, 0, 4, 0, 8))
		}, edge{{1, 0}: flow, {2, 1}: output}},
		"nearest prior only for a matmul": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, ps, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, ps, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(in, ps, 0, 0, 4, 0, 8))
			s.instr(tt, 0, pattern(out, ps, 0, 0, 4, 8, 8))
			s.instr(components.OpcodeMatmult, 0, pattern(out, ps, 0, 0, 4, 0, 16))
		}, edge{{1, 0}: flow, {2, 0}: flow, {4, 2}: anti, {4, 3}: output}},
		"aliases overlap wherever they are, other tensors do not": {func(s *sketch) {
			a := s.location(components.MemDRAM, 0, 100, 1, 0, 0, 1)
			b := s.location(components.MemDRAM, 1<<20, 100, 1, 0, 0, 1)
			c := s.location(components.MemInput, 0, 100, 1, 0, 0, 0)
			d := s.location(components.MemInput, 0, 100, 1, 0, 0, 0)
			s.instr(components.OpcodeDMACopy, 0, pattern(out, components.MemDRAM, a, 0, 1, 0, 10))
			s.instr(components.OpcodeDMACopy, 0, pattern(in, components.MemDRAM, b, 0, 1, 1<<20+50, 10))
			s.instr(components.OpcodeDMACopy, 0, pattern(out, components.MemInput, c, 0, 1, 0, 10))
			s.instr(components.OpcodeDMACopy, 0, pattern(in, components.MemInput, d, 0, 1, 0, 10))
		}, edge{{1, 0}: flow}},
		"bins of device memory": {func(s *sketch) {
			a := s.location(components.MemDRAM, 0, 1000, 1, 0, 0, 0)
			s.instr(components.OpcodeDMACopy, 0, pattern(out, components.MemDRAM, a, 0, 1, 0, 10))
			s.instr(components.OpcodeDMACopy, 0, pattern(in, components.MemDRAM, a, 0, 1, 60, 3))
			s.instr(components.OpcodeDMACopy, 0, pattern(in, components.MemDRAM, a, 0, 1, 64, 3))
		}, edge{{1, 0}: flow}},
		"ReadVarAddr reads no contents": {func(s *sketch) {
			s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
			s.instr(components.OpcodeReadVarAddr, 0, pattern(in, sb, 0, 0, 4, 0, 8))
		}, edge{}},
		"a tensor that is not placed is read as a whole": {func(s *sketch) {
			a := s.location(sb, 16, 32, 4, 0, 0, 0)
			s.instr(tt, 0, pattern(out, sb, a, 0, 4, 40, 1))
			o := pattern(in, 0, a, 0, 4, 0, 1)
			o.Kind = components.OperandSymbolic
			s.instr(tt, 0, o)
		}, edge{{1, 0}: flow}},
		"registers make flow edges only": {func(s *sketch) {
			a := s.location(components.MemRegister, 0, 0, 0, 0, 0, 0)
			reg := func(role components.OperandRole) components.AccessPattern {
				return components.AccessPattern{Role: role, Kind: components.OperandRegister, Where: a, Memory: components.MemRegister}
			}
			s.instr(components.OpcodeRegisterMove, 0, reg(out))
			s.instr(components.OpcodeRegisterAlu, 0, reg(in))
			s.instr(components.OpcodeRegisterMove, 0, reg(out))
		}, edge{{1, 0}: flow}},
		"random states and accumulators": {func(s *sketch) {
			s.instr(components.OpcodeSetRandState, 0)
			s.instr(components.OpcodeActivation, 0)
			s.instr(components.OpcodeSetRandState, 0)
			s.instr(components.OpcodeActivationReadAccumulator, 0)
		}, edge{{2, 0}: flow, {3, 1}: flow}},
		"a strided partition pair": {func(s *sketch) {
			a := s.location(sb, 0, 64, 128, 0, 0, 0)
			o := pattern(out, sb, a, 2, 3, 0, 4)
			o.Steps[0] = 128 // two partitions of 64 bytes
			s.instr(tt, 0, o)
			s.instr(tt, 0, pattern(in, sb, 0, 6, 1, 0, 1))
			s.instr(tt, 0, pattern(in, sb, 0, 7, 1, 0, 1))
		}, edge{{1, 0}: flow}},
	} {
		s := newSketch()
		c.build(s)
		m := s.finish(t)
		rebuild(t, m, Default())
		got, _ := edgesOf(m)
		if d := diffEdges(got, c.want); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestCarried(t *testing.T) {
	s := newSketch()
	tt := components.OpcodeTensorTensor
	s.instr(components.OpcodeLoop, components.FlagLoop)       // 0
	s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))           // 1: load
	s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 0, 8))            // 2: use
	s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 100, 8))          // 3: reads what 4 of the iteration before made
	s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 100, 8))         // 4
	s.m.Blocks.Add(s.m.Symbols.InternString("b"), 0, 0, 0, 1) // around
	s.m.Blocks.End.Set(0, 5)
	s.m.Blocks.Add(s.m.Symbols.InternString("body"), 0, 1, 1, 9)
	s.m.Blocks.End.Set(1, 5)
	m := s.finish(t)
	r := rebuild(t, m, Default())
	edges, carried := edgesOf(m)
	if d := diffEdges(edges, map[[2]uint32]components.EdgeKind{{2, 1}: components.Flow, {4, 3}: components.Anti}); d != "" {
		t.Error(d)
	}
	if d := diffEdges(carried, map[[2]uint32]components.EdgeKind{{1, 2}: components.Anti, {3, 4}: components.Flow}); d != "" {
		t.Errorf("carried: %s", d)
	}
	if r.Carried != 2 || r.Inserted() != 4 || r.Accesses != 4 {
		t.Errorf("%+v", r)
	}
}

// Both passes one after the other give what Rebuild gives.
func TestPasses(t *testing.T) {
	build := func() *components.Module {
		s := newSketch()
		tt := components.OpcodeTensorTensor
		s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
		s.instr(tt, 0, pattern(in, sb, 0, 0, 4, 0, 8), pattern(out, sb, 0, 0, 4, 0, 4))
		s.instr(components.OpcodeMatmult, components.FlagAccStart, pattern(out, ps, 0, 0, 4, 0, 8))
		s.instr(components.OpcodeMatmult, 0, pattern(out, ps, 0, 0, 4, 0, 8), pattern(in, sb, 0, 0, 4, 0, 8))
		s.instr(tt, 0, pattern(out, sb, 0, 0, 4, 0, 8))
		m := s.finish(t)
		m.Attributes = []components.Attribute{{Key: components.AttributeNoDependencies, Value: "f"}, {Key: "x", Value: "y"}}
		return m
	}
	one, two := build(), build()
	if _, err := Rebuild(context.Background(), one, Default()); err != nil {
		t.Fatal(err)
	}
	var log []string
	opt := Default()
	opt.Log = func(s string) { log = append(log, s) }
	f, err := BuildFlow(context.Background(), two, opt)
	if err != nil {
		t.Fatal(err)
	}
	if two.Attribute(components.AttributeNoDependencies) == "" {
		t.Fatal("build_fdeps takes the mark away that anti_dependency_analyzer goes by")
	}
	a, err := AnalyzeAnti(context.Background(), two, opt)
	if err != nil {
		t.Fatal(err)
	}
	e1, _ := edgesOf(one)
	e2, _ := edgesOf(two)
	if d := diffEdges(e2, e1); d != "" {
		t.Error(d)
	}
	if f.Edges[components.Flow] != f.Inserted() || a.Edges[components.Flow] != 0 || f.Inserted() == 0 || a.Inserted() == 0 {
		t.Errorf("build_fdeps %v, anti_dependency_analyzer %v", f.Edges, a.Edges)
	}
	if want := []string{"Start build fdeps. Invocation: t", fmt.Sprintf("Build fdeps inserted %d edges", f.Inserted()), "Done build fdeps"}; !slices.Equal(log, want) {
		t.Errorf("log %q", log)
	}
	if len(two.Attributes) != 1 || two.Attribute("x") != "y" {
		t.Errorf("attributes %v", two.Attributes)
	}
}

// The sweep finds what the quadratic reference finds, on random modules with
// all memories, loops in loops, strided and partial accesses.
func TestEqualsReference(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		n := func(label string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(rt, label) }
		s := newSketch()
		var dram []uint32
		for k := range 4 {
			mem := components.MemDRAM
			if k == 3 {
				mem = components.MemInput
			}
			dram = append(dram, s.location(mem, uint64(k)*40, 64, 1, 0, 0, uint32(n("alias", 0, 1))))
		}
		placed := s.location(sb, 4, 20, 3, 1, 0, 0)
		reg := s.location(components.MemRegister, 0, 0, 0, 0, 0, 0)
		operand := func(role components.OperandRole) components.AccessPattern {
			switch n("memory", 0, 9) {
			case 0, 1, 2:
				return pattern(role, ps, 0, uint16(n("base", 0, 3)), uint64(n("parts", 1, 3)), uint64(n("addr", 2040, 2055)), uint64(n("bytes", 0, 9)))
			case 3:
				w := rapid.SampledFrom(dram).Draw(rt, "tensor")
				l := int(w) - 1
				return pattern(role, s.m.Locations.Memory.At(l), w, 0, 1, s.m.Locations.Addr.At(l)+uint64(n("addr", 0, 50)), uint64(n("bytes", 1, 40)))
			case 4:
				return components.AccessPattern{Role: role, Kind: components.OperandRegister, Where: reg, Memory: components.MemRegister}
			case 5:
				o := pattern(role, 0, placed, 0, 1, 0, 1)
				o.Kind = components.OperandSymbolic
				return o
			}
			return pattern(role, sb, 0, uint16(n("base", 0, 3)), uint64(n("parts", 1, 4)), uint64(n("addr", 0, 24)), uint64(n("bytes", 0, 12)))
		}
		var rows func(depth, most int)
		var blocks func(parent uint32, depth, most int)
		rows = func(depth, most int) {
			for range n("rows", 1, most) {
				if depth < 3 && n("loop", 0, 6) == 6 {
					s.instr(components.OpcodeLoop, components.FlagLoop)
					loop := uint32(s.rows)
					for range n("bodies", 1, 2) {
						blocks(loop, depth+1, 5)
					}
					continue
				}
				op := rapid.SampledFrom([]components.Opcode{components.OpcodeTensorTensor, components.OpcodeMatmult, components.OpcodeMatmult, components.OpcodeDMACopy,
					components.OpcodeReadVarAddr}).Draw(rt, "opcode")
				var flags components.Flags
				if op.IsMatmul() && n("start", 0, 2) == 0 {
					flags = components.FlagAccStart
				}
				var ops []components.AccessPattern
				for range n("ins", 0, 2) {
					ops = append(ops, operand(in))
				}
				for range n("outs", 0, 2) {
					ops = append(ops, operand(out))
				}
				s.instr(op, flags, ops...)
			}
		}
		blocks = func(parent uint32, depth, most int) {
			b := s.m.Blocks.Add(s.m.Symbols.InternString("b"), 0, parent, components.InstrID(s.rows), 3)
			rows(depth, most)
			s.m.Blocks.End.Set(b, uint32(s.rows))
		}
		for range n("blocks", 1, 2) {
			blocks(0, 0, 14)
		}
		m := s.finish(rt)
		opt := Default()
		opt.Bin = uint64(n("bin", 1, 3)) * 8
		opt.readers = n("readers", 1, 40)
		rebuild(rt, m, opt)
		if err := m.Check(); err != nil {
			rt.Fatal(err)
		}

		c := &collector{m: m, opt: &opt}
		c.collect(0, uint32(s.rows))
		ref := &slow{m: m, list: c.list, space: c.spaces}
		accumulate := false
		for i, op := range m.Instr.Opcode.Slice() {
			accumulate = accumulate || op.IsMatmul() && m.Instr.Flags.At(i)&components.FlagAccStart != 0
		}
		byLoop := map[uint32]*loopRange{}
		for b := range m.Blocks.Len() {
			if p := m.Blocks.Parent.At(b); p > 0 {
				if l := byLoop[p]; l != nil {
					l.end = m.Blocks.End.At(b)
				} else {
					byLoop[p] = &loopRange{m.Blocks.First.At(b), m.Blocks.End.At(b)}
				}
			}
		}
		var loops []loopRange
		for _, k := range slices.Sorted(maps.Keys(byLoop)) {
			loops = append(loops, *byLoop[k])
		}
		ref.run(accumulate, loops)
		edges, carried := edgesOf(m)
		if d := diffEdges(edges, ref.edges); d != "" {
			rt.Fatal(d)
		}
		if d := diffEdges(carried, ref.carried); d != "" {
			rt.Fatalf("carried: %s", d)
		}
	})
}
