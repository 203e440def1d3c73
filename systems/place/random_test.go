package place

import (
	"context"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
)

// randomModule makes a small module that uses every rule: several lanes and
// cores, PSUM banks, triggers, collectives, barriers, loops and all edge
// kinds.
func randomModule(r *rand.Rand, streams int) *components.Module {
	m := components.NewModule("random", "test")
	cores := 1 + r.IntN(2)
	for c := range cores {
		m.AddCoreLanes(uint16(c))
	}
	m.Queues.Name.Append(m.Symbols.InternString("q0"))
	m.Queues.Engine.Append(components.SP)
	m.Queues.Depth.Append(uint32(r.IntN(3)))
	n := 1 + r.IntN(40)
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	m.Instr.Grow(n)
	m.Instr.Queue.Resize(n)
	m.Instr.OutElems.Resize(n)
	in := &m.Instr
	ops := []components.Opcode{components.OpcodeTensorTensor, components.OpcodeActivation, components.OpcodeMatmult, components.OpcodeMemset,
		components.OpcodeDMACopy, components.OpcodeIota, components.OpcodeDrain, components.OpcodeDMATrigger, components.OpcodeCollectiveCompute,
		components.OpcodeAllEngineBarrier}
	engines := []components.Engine{components.DVE, components.Activation, components.PE, components.DVE, components.SP,
		components.Pool, components.SP, components.SP, components.Pool, components.All}
	for i := range n {
		k := r.IntN(len(ops))
		op, e := ops[k], engines[k]
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
			lane = core + components.LaneCC0 + uint16(r.IntN(streams))
		case components.OpcodeAllEngineBarrier:
			flags = components.FlagBarrier
		}
		if (e == components.PE || e == components.DVE || e == components.Activation) && r.IntN(2) == 0 {
			in.Banks.Set(i, uint16(r.IntN(1<<16))&uint16(r.IntN(1<<16))&uint16(r.IntN(1<<16)))
		}
		in.Opcode.Set(i, op)
		in.Engine.Set(i, e)
		in.Lane.Set(i, lane)
		in.Flags.Set(i, flags)
		in.Elems.Set(i, uint32(1+r.IntN(2048)))
		in.Parts.Set(i, uint16(1+r.IntN(128)))
		in.DType.Set(i, components.DType(r.IntN(int(components.NumDTypes))))
	}
	// One top-level block, with a loop in it where there is room.
	m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	if n > 6 && r.IntN(2) == 0 {
		at := 1 + r.IntN(n-4)
		in.Opcode.Set(at, components.OpcodeLoop)
		in.Flags.Set(at, components.FlagLoop)
		in.Banks.Set(at, 0)
		b := m.Blocks.Add(m.Symbols.InternString("body"), uint32(f), uint32(at+1), components.InstrID(at+1), uint64(1+r.IntN(5)))
		m.Blocks.End.Set(b, uint32(at+2+r.IntN(n-at-2)))
	}
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	var edges components.EdgeSet
	for i := 1; i < n; i++ {
		for range r.IntN(4) {
			edges.Add(components.InstrID(i), components.InstrID(r.IntN(i)), components.EdgeKind(1+r.IntN(4)))
		}
	}
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	if err := m.Check(); err != nil {
		panic(err)
	}
	return m
}

func TestEngineEqualsSlowSimulator(t *testing.T) {
	modules := 100_000
	if testing.Short() {
		modules = 2_000
	}
	machines := map[string]*machine.Machine{}
	for _, n := range []string{"trn1", "trn2", "trn3"} {
		m, err := machine.Load(n)
		if err != nil {
			t.Fatal(err)
		}
		machines[n] = m
	}
	cases := []struct {
		machine, model string
		streams        int
	}{{"trn1", cost.Reference, 4}, {"trn2", cost.Reference, 2}, {"trn3", cost.Reference, 3}, {"trn2", cost.Calibrated, 4}}
	for n := range modules {
		r := rand.New(rand.NewPCG(7, uint64(n)))
		c := cases[n%len(cases)]
		m := randomModule(r, c.streams)
		w := &components.World{Module: m, Machine: machines[c.machine], Config: components.Config{Model: c.model, Jobs: 1}, Events: components.NewEvents()}
		if err := cost.Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if err := Run(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		for _, run := range []components.Run{components.RunA, components.RunB} {
			s := newSlow(m, RulesOf(c.model, w.Machine), run)
			for i := range m.Instr.Len() {
				s.place(uint32(i))
			}
			for i := range m.Instr.Len() {
				if m.Instr.Flags.At(i)&components.FlagLoop != 0 {
					continue
				}
				start, end := w.Events.Span(m, components.InstrID(i), run)
				want := s.events[uint32(i)]
				if start != want.start || end != want.end() {
					t.Fatalf("module %d (%s, %s), run %d, instruction %d (%s): engine %d to %d, rules %d to %d",
						n, c.machine, c.model, run, i, m.OpcodeName(m.Instr.Opcode.At(i)), start, end, want.start, want.end())
				}
			}
			if got := w.Blocks[0].Latency[run]; got != s.latency() {
				t.Fatalf("module %d: latency %d, rules %d", n, got, s.latency())
			}
		}
	}
}
