package deps

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Options say what to rebuild.
type Options struct {
	// All takes every function, and Rebuild and BuildFlow drop the
	// dependencies that it has; otherwise those are taken that the module
	// marks as having none (components.AttributeNoDependencies).
	All bool
	// Bin is the size of a bin of device memory in bytes: accesses to one bin
	// conflict. How many bins the compiler has is not published; 64 bytes,
	// the alignment of its tensors, distinguishes all tensors.
	Bin uint64
	// Registers makes Flow edges from writes to reads of registers.
	Registers bool
	// Log takes the documented lines; may be nil.
	Log func(string)

	free       int  // work allowed whatever the number of accesses
	readers    int  // readers kept before those that nobody needs are dropped
	accumulate bool // the module marks the starts of accumulation groups
}

// Default are the options of the passes.
func Default() Options { return Options{Bin: 64, Registers: true} }

// Report is the result of a pass.
type Report struct {
	Functions int // rebuilt
	Accesses  int // to memory, pieces in PSUM banks counted each
	// Edges counts what was inserted by kind, a pair once; Carried those of
	// them that go to the iteration before.
	Edges   [components.NumEdgeKinds]uint64
	Carried uint64
	// Blind counts operands of which it is not known where they are.
	Blind int
}

// Inserted is the number of edges of all kinds.
func (r *Report) Inserted() uint64 {
	n := uint64(0)
	for _, e := range r.Edges {
		n += e
	}
	return n
}

// BuildFlow is the pass build_fdeps: it adds the Flow edges.
func BuildFlow(ctx context.Context, m *components.Module, opt Options) (Report, error) {
	b := builder{m: m, opt: opt, flow: true, fresh: opt.All}
	if opt.Log != nil {
		opt.Log("Start build fdeps. Invocation: " + m.Name)
	}
	r, err := b.run(ctx)
	if err == nil && opt.Log != nil {
		opt.Log(fmt.Sprintf("Build fdeps inserted %d edges", r.Inserted()))
		opt.Log("Done build fdeps")
	}
	return r, err
}

// AnalyzeAnti is the pass anti_dependency_analyzer: it adds the Anti and
// Output edges, and takes the mark of components.AttributeNoDependencies away.
func AnalyzeAnti(ctx context.Context, m *components.Module, opt Options) (Report, error) {
	b := builder{m: m, opt: opt, anti: true}
	return b.run(ctx)
}

type builder struct {
	m          *components.Module
	opt        Options
	flow, anti bool
	fresh      bool // drop the edges that the functions have

	set     components.EdgeSet
	carried []carriedEdge
	report  Report
}

type carriedEdge struct {
	from, to uint32
	kind     components.EdgeKind
}

func (b *builder) run(ctx context.Context) (Report, error) {
	m := b.m
	if m.Operands.Offsets.Len() == 0 {
		return b.report, nil
	}
	for i, op := range m.Instr.Opcode.Slice() {
		if op.IsMatmul() && m.Instr.Flags.At(i)&components.FlagAccStart != 0 {
			b.opt.accumulate = true
			break
		}
	}
	var picked []int
	for f := range m.Functions.Len() {
		if b.opt.All || b.absent(f) {
			picked = append(picked, f)
		}
	}
	if len(picked) == 0 {
		return b.report, nil
	}
	if b.opt.free == 0 {
		b.opt.free = freeWork
	}
	if b.opt.readers == 0 {
		b.opt.readers = minReaders
	}
	inside := make([]bool, m.Functions.Len())
	for _, f := range picked {
		inside[f] = true
		if err := b.function(ctx, f); err != nil {
			return b.report, err
		}
	}
	b.report.Functions = len(picked)
	declared := b.keep(inside)
	b.addCarried()
	if err := m.Link(&b.set); err != nil {
		return b.report, err
	}
	for k, n := range b.report.Edges {
		declared[k] += n
	}
	m.Edges.Declared = declared
	if b.anti {
		m.Attributes = slices.DeleteFunc(m.Attributes, func(a components.Attribute) bool { return a.Key == components.AttributeNoDependencies })
	}
	return b.report, nil
}

func (b *builder) absent(f int) bool {
	name := b.m.FunctionName(f)
	for _, a := range b.m.Attributes {
		if a.Key == components.AttributeNoDependencies && a.Value == name {
			return true
		}
	}
	return false
}

// keep takes the edges there are into the set, but for those that are
// replaced, and returns how many the input declared. The edge tables are
// empty afterwards.
func (b *builder) keep(inside []bool) [components.NumEdgeKinds]uint64 {
	m := b.m
	declared := m.Edges.Declared
	dropped := make([]bool, m.Instr.Len())
	if b.fresh {
		for blk := range m.Blocks.Len() {
			if inside[m.Blocks.Function.At(blk)] {
				for i := m.Blocks.First.At(blk); i < m.Blocks.End.At(blk); i++ {
					dropped[i] = true
				}
			}
		}
	}
	drop := func(k components.EdgeKind) { declared[k] -= min(declared[k], 1) }
	for i := range m.Edges.Preds.Rows() {
		for _, w := range m.Edges.Preds.Row(i) {
			kind := components.KindOfClass(uint8(w >> ecs.ClassShift))
			if dropped[i] {
				drop(kind)
				continue
			}
			b.set.Add(components.InstrID(i), components.InstrID(w&ecs.TargetMask), kind)
		}
	}
	o := &m.Edges.Other
	for e := range o.Len() {
		from, to := components.InstrID(o.From.At(e)), components.InstrID(o.To.At(e))
		switch {
		case dropped[from]:
			drop(o.Kind.At(e))
		case o.Scope.At(e) == components.ScopeCarried:
			b.set.AddCarried(from, to, o.Kind.At(e), o.Distance.At(e))
		default:
			b.set.Add(from, to, o.Kind.At(e))
		}
	}
	for _, c := range []ecs.AnyColumn{&o.From, &o.To, &o.Kind, &o.Scope, &o.Distance} {
		c.Reset()
	}
	return declared
}

// addCarried adds the loop-carried edges, each pair once: loops in loops meet
// them again.
func (b *builder) addCarried() {
	slices.SortFunc(b.carried, func(x, y carriedEdge) int {
		return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.to, y.to), -cmp.Compare(x.kind, y.kind))
	})
	b.carried = slices.CompactFunc(b.carried, func(x, y carriedEdge) bool { return x.from == y.from && x.to == y.to })
	for _, c := range b.carried {
		b.set.AddCarried(components.InstrID(c.from), components.InstrID(c.to), c.kind, 1)
		b.report.Edges[c.kind]++
		b.report.Carried++
	}
}

// loopRange is the rows of all bodies of one loop.
type loopRange struct{ first, end uint32 }

// function rebuilds one function.
func (b *builder) function(ctx context.Context, f int) error {
	m := b.m
	first, end := uint32(0), uint32(0)
	var loops []loopRange
	at := map[uint32]int{}
	for blk := int(m.Functions.FirstBlock.At(f)); blk < int(m.Functions.EndBlock.At(f)); blk++ {
		lo, hi := m.Blocks.First.At(blk), m.Blocks.End.At(blk)
		if blk == int(m.Functions.FirstBlock.At(f)) {
			first, end = lo, hi
		}
		first, end = min(first, lo), max(end, hi)
		p := m.Blocks.Parent.At(blk)
		if p == 0 || lo == hi {
			continue
		}
		if k, ok := at[p]; ok {
			loops[k].end = max(loops[k].end, hi)
		} else {
			at[p] = len(loops)
			loops = append(loops, loopRange{lo, hi})
		}
	}
	if first == end {
		return nil
	}
	// A loop is walked a second time when its last row is done, inner ones
	// before the one around them.
	slices.SortFunc(loops, func(x, y loopRange) int { return cmp.Or(cmp.Compare(x.end, y.end), -cmp.Compare(x.first, y.first)) })

	c := &collector{m: m, opt: &b.opt}
	c.collect(first, end)
	b.report.Accesses += len(c.list)
	b.report.Blind += c.blind
	var outer []loopRange
	for _, l := range slices.Backward(loops) {
		if n := len(outer); n == 0 || l.end <= outer[n-1].first {
			outer = append(outer, l)
		}
	}
	slices.Reverse(outer)
	s := newSweep(c, first, end, outer)
	s.rows = uint32(m.Instr.Len())
	s.flow, s.anti = b.flow, b.anti
	s.sink = func(from uint32, edges []found) {
		for _, e := range edges {
			if s.carried {
				b.carried = append(b.carried, carriedEdge{from, e.to, e.kind})
				continue
			}
			b.set.Add(components.InstrID(from), components.InstrID(e.to), e.kind)
			b.report.Edges[e.kind]++
		}
	}
	row := first
	for _, l := range loops {
		if err := s.walk(ctx, row, l.end); err != nil {
			return err
		}
		row = max(row, l.end)
		s.carried, s.loop = true, l.first
		err := s.walk(ctx, l.first, l.end)
		s.carried = false
		if err != nil {
			return err
		}
	}
	if err := s.walk(ctx, row, end); err != nil {
		return err
	}
	if b.flow {
		b.structural(first, end)
	}
	return nil
}

// structural adds the Flow edges that no access pattern shows: the chain of
// random states of each engine, and the read of an accumulator, which follows
// the last instruction that fills it.
func (b *builder) structural(first, end uint32) {
	in := &b.m.Instr
	var seeded, fills [components.NumEngines]uint32 // row plus one
	for i := first; i < end; i++ {
		op, e := in.Opcode.At(int(i)), in.Engine.At(int(i))
		depend := func(on uint32) {
			if on > 0 {
				b.set.Add(components.InstrID(i), components.InstrID(on-1), components.Flow)
				b.report.Edges[components.Flow]++
			}
		}
		switch op {
		case components.OpcodeSetRandState:
			depend(seeded[e])
			seeded[e] = i + 1
		case components.OpcodeActivation, components.OpcodeExponential, components.OpcodeTensorTensor:
			fills[e] = i + 1
		case components.OpcodeReadActivationAccumulator, components.OpcodeActivationReadAccumulator, components.OpcodeDveReadAccumulator:
			depend(fills[e])
		}
	}
}
