// Package randmod makes small random modules that use every rule of the
// placement, for the tests of the systems.
package randmod

import (
	"math/rand/v2"

	"perfsim/components"
	"perfsim/systems/transfer"
)

// Options say what a module may have.
type Options struct {
	// Streams is the number of collective streams of the machine, at least 1.
	Streams int
	// Most is the largest number of instructions of a block; 40 where it is 0.
	Most int
	// Blocks allows several top-level blocks and functions that run several
	// times; without it there is one of each.
	Blocks bool
	// Nested allows loops within loops.
	Nested bool
	// Trips is the largest trip count of a loop; 5 where it is 0.
	Trips int
	// NoCollectives leaves collectives out: what shares bandwidth depends on
	// the time at which it runs.
	NoCollectives bool
	// Transfers gives the transfers of triggers rows of their own.
	Transfers bool
}

// kinds are the instructions that a module draws from.
var kinds = []struct {
	op     components.Opcode
	engine components.Engine
}{{components.OpcodeTensorTensor, components.DVE}, {components.OpcodeActivation, components.Activation},
	{components.OpcodeMatmult, components.PE}, {components.OpcodeMemset, components.DVE}, {components.OpcodeDMACopy, components.SP},
	{components.OpcodeIota, components.Pool}, {components.OpcodeDrain, components.SP}, {components.OpcodeDMATrigger, components.SP},
	{components.OpcodeCollectiveCompute, components.Pool}, {components.OpcodeAllEngineBarrier, components.All}}

// Module makes a module with several lanes and cores, PSUM banks, triggers,
// collectives, barriers, loops and all edge kinds.
func Module(r *rand.Rand, o Options) *components.Module {
	m := components.NewModule("random", "test")
	cores := 1 + r.IntN(2)
	for c := range cores {
		m.AddCoreLanes(uint16(c))
	}
	m.Queues.Name.Append(m.Symbols.InternString("q0"))
	m.Queues.Engine.Append(components.SP)
	m.Queues.Depth.Append(uint32(r.IntN(3)))
	blocks := 1
	if o.Blocks {
		blocks = 1 + r.IntN(3)
	}
	var edges components.EdgeSet
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	for b := range blocks {
		if b > 0 && r.IntN(2) == 0 {
			m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
			f = m.Functions.Add(m.Symbols.InternString("g"), m.Blocks.Len())
			m.Functions.Runs.Set(f, uint64(1+r.IntN(4)))
		}
		block(r, o, m, &edges, uint32(f), cores)
	}
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	if o.Transfers {
		var err error
		if m, err = transfer.Expand(m); err != nil {
			panic(err)
		}
	}
	if err := m.Check(); err != nil {
		panic(err)
	}
	return m
}

// block adds one top-level block.
func block(r *rand.Rand, o Options, m *components.Module, edges *components.EdgeSet, function uint32, cores int) {
	most := o.Most
	if most == 0 {
		most = 40
	}
	n := 1 + r.IntN(most)
	first := int(m.Instr.Grow(n))
	m.Instr.Queue.Resize(first + n)
	m.Instr.OutElems.Resize(first + n)
	for i := first; i < first+n; i++ {
		instruction(r, o, m, i, cores)
		// In every third block some writes are to PSUM banks that are not known.
		if in := &m.Instr; n%3 == 0 && i%3 == 0 && in.Engine.At(i) != components.All && in.Lane.At(i)%components.LanesPerCore < components.LaneDMA {
			in.Flags.Set(i, in.Flags.At(i)|components.FlagDstPSUM)
		}
	}
	b := m.Blocks.Add(m.Symbols.InternString("b"), function, 0, components.InstrID(first), 1)
	m.Blocks.End.Set(b, uint32(first+n))
	if n > 6 && r.IntN(2) == 0 {
		loop(r, o, m, function, first+1, first+n)
	}
	for i := first + 1; i < first+n; i++ {
		for range r.IntN(4) {
			edges.Add(components.InstrID(i), components.InstrID(first+r.IntN(i-first)), components.EdgeKind(1+r.IntN(4)))
		}
	}
}

// loop makes one of rows lo to hi (hi excluded) a loop with a body among
// those behind it.
func loop(r *rand.Rand, o Options, m *components.Module, function uint32, lo, hi int) {
	if hi-lo < 4 {
		return
	}
	at := lo + r.IntN(hi-lo-3)
	in := &m.Instr
	in.Opcode.Set(at, components.OpcodeLoop)
	in.Flags.Set(at, components.FlagLoop)
	in.Banks.Set(at, 0)
	trips := o.Trips
	if trips == 0 {
		trips = 5
	}
	body := m.Blocks.Add(m.Symbols.InternString("body"), function, uint32(at+1), components.InstrID(at+1), uint64(1+r.IntN(trips)))
	end := at + 2 + r.IntN(hi-at-2)
	m.Blocks.End.Set(body, uint32(end))
	if o.Nested && r.IntN(2) == 0 {
		loop(r, o, m, function, at+1, end)
	}
}

func instruction(r *rand.Rand, o Options, m *components.Module, i, cores int) {
	in := &m.Instr
	kind := kinds[r.IntN(len(kinds))]
	if o.NoCollectives && kind.op == components.OpcodeCollectiveCompute {
		kind = kinds[0]
	}
	op, e := kind.op, kind.engine
	core := uint16(r.IntN(cores)) * components.LanesPerCore
	lane := core + uint16(e)
	flags := components.Flags(0)
	switch op {
	case components.OpcodeDMACopy:
		lane = core + components.LaneDMA
		flags = []components.Flags{0, components.FlagHWDGE, components.FlagSWDGE}[r.IntN(3)]
	case components.OpcodeDMATrigger:
		flags = components.FlagTrigger | []components.Flags{0, components.FlagHWDGE, components.FlagSWDGE, components.FlagTranspose}[r.IntN(4)]
		if r.IntN(3) == 0 {
			e = components.Pool
			lane = core + components.LanePool
		}
		in.Queue.Set(i, uint16(r.IntN(2)))
	case components.OpcodeCollectiveCompute:
		flags = components.FlagCollective
		lane = core + components.LaneCC0 + uint16(r.IntN(max(o.Streams, 1)))
		if r.IntN(5) == 0 {
			flags |= components.FlagLocal
			lane = core + components.LaneDMA
		}
	case components.OpcodeAllEngineBarrier:
		flags = components.FlagBarrier
	}
	if (e == components.PE || e == components.DVE || e == components.Activation || e == components.Pool && op == components.OpcodeIota) && r.IntN(2) == 0 {
		a, b, c := r.IntN(1<<16), r.IntN(1<<16), r.IntN(1<<16)
		in.Banks.Set(i, uint16(a&b&c)) // each bit one time in eight
	}
	in.Opcode.Set(i, op)
	in.Engine.Set(i, e)
	in.Lane.Set(i, lane)
	in.Flags.Set(i, flags)
	in.Elems.Set(i, uint32(1+r.IntN(2048)))
	in.Parts.Set(i, uint16(1+r.IntN(128)))
	in.DType.Set(i, components.DType(r.IntN(int(components.NumDTypes))))
}
