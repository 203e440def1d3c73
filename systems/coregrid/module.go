package coregrid

import (
	"context"
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/systems/place"
)

// Result is a simulated batch.
type Result struct {
	World     *components.World
	LatencyNS uint64 // of one batch of Inputs
	EpochNS   []uint64
}

// mostInstructions bounds a module: operators times inputs.
const mostInstructions = 20_000_000

// Simulate makes a module of the plan (a block an epoch, a lane an operator,
// an instruction an operator and input) and places it: an operator starts an
// input when all of the input is there and it is done with the one before,
// and runs no further ahead of its readers than its buffers hold.
func (p *Plan) Simulate(ctx context.Context, name string) (*Result, error) {
	m := components.NewModule(name, "cores")
	m.Arch = p.Model.Mach.Name
	total := 0
	for _, e := range p.Epochs {
		total += 1 + p.Inputs*(len(e.Ops)+2)
	}
	if total > mostInstructions {
		return nil, fmt.Errorf("%d operators and inputs, more than %d: take a smaller microbatch", total, mostInstructions)
	}
	var edges components.EdgeSet
	b := newBuilder(m, total)
	b.edges, b.p = &edges, p
	f := m.Functions.Add(m.Symbols.InternString(name), 0)
	b.read = m.Lanes.Add(m.Symbols.InternString("DRAM read"), components.DMA, components.LaneDMAQueue, 0)
	b.write = m.Lanes.Add(m.Symbols.InternString("DRAM write"), components.DMA, components.LaneDMAQueue, 0)
	for i := range p.Epochs {
		b.epoch(i, uint32(f))
	}
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	if b.err != nil {
		return nil, b.err
	}
	return run(ctx, m, &edges)
}

func run(ctx context.Context, m *components.Module, edges *components.EdgeSet) (*Result, error) {
	if err := m.Link(edges); err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	w := &components.World{Module: m, Events: components.NewEvents(), Config: components.Config{Model: components.Cores, Jobs: 1, Loops: components.Once}}
	if err := place.RunRules(ctx, w, place.Rules{}); err != nil {
		return nil, err
	}
	r := &Result{World: w, LatencyNS: w.Latency(components.RunA)}
	for _, x := range w.Blocks {
		r.EpochNS = append(r.EpochNS, x.Latency[components.RunA])
	}
	return r, nil
}

type moduleBuilder struct {
	m           *components.Module
	next        components.InstrID
	edges       *components.EdgeSet
	p           *Plan
	read, write uint16
	err         error
}

// newBuilder makes room for n instructions.
func newBuilder(m *components.Module, n int) moduleBuilder {
	m.Instr.Grow(n)
	m.Instr.Issue.Resize(n)
	m.Instr.Latency.Resize(n)
	return moduleBuilder{m: m}
}

// clampNS rounds up; what the tables cannot hold is remembered as an error.
func (b *moduleBuilder) clampNS(ns float64) uint32 {
	if ns > math.MaxUint32 && b.err == nil {
		b.err = fmt.Errorf("an operator takes %.3g s for one input, more than the %.3g s that fit: take a smaller microbatch", ns/1e9, math.MaxUint32/1e9)
	}
	return uint32(min(math.Ceil(ns), math.MaxUint32))
}

// instr fills the next instruction.
func (b *moduleBuilder) instr(op components.Opcode, e components.Engine, lane uint16, issue, latency float64) components.InstrID {
	in, i := &b.m.Instr, b.next
	b.next++
	in.Opcode.Set(int(i), op)
	in.Engine.Set(int(i), e)
	in.Lane.Set(int(i), lane)
	in.Parts.Set(int(i), 1)
	in.Elems.Set(int(i), 1)
	in.Issue.Set(int(i), b.clampNS(issue))
	in.Latency.Set(int(i), b.clampNS(latency))
	return i
}

// buffers is how many inputs fit between two neighbouring operators: double
// buffering. A reader further down gets as many more as there are operators
// between, as the vendor's compiler does for forks that join.
const buffers = 2

func (b *moduleBuilder) epoch(n int, function uint32) {
	e, m := &b.p.Epochs[n], b.m
	rate := b.p.Model.Mach.Memory.DRAMRate()
	first := b.next
	block := m.Blocks.Add(m.Symbols.InternString(epochName(n)), function, 0, first, 1)
	// Programs and weights come first.
	prologue := b.instr(m.Opcode("load_epoch"), components.DMA, b.read, e.Prologue, e.Prologue)
	lanes := make([]uint16, len(e.Ops))
	codes := make([]components.Opcode, len(e.Ops))
	at := map[int]int{} // operator to its place in the epoch
	depth := make([]int, len(e.Ops))
	for k, p := range e.Ops {
		o := &b.p.Ops[p.Op]
		lanes[k] = m.Lanes.Add(m.Symbols.InternString(o.Name), components.Unassigned, components.LaneOperator, 0)
		codes[k] = m.Opcode(o.Kind)
		at[p.Op] = k
		for _, x := range o.Inputs {
			if from, ok := at[x.From]; ok {
				depth[k] = max(depth[k], depth[from]+1)
			}
		}
	}
	var leaves []int // whose results leave the epoch
	for k, p := range e.Ops {
		if b.writes(p.Op, at) {
			leaves = append(leaves, k)
		}
	}
	// rows[k][s] is operator k's instruction for input s.
	rows := make([][]components.InstrID, len(e.Ops))
	for s := range b.p.Inputs {
		// The memory is taken for what is read and what is written of an input.
		read := b.instr(m.Opcode("read_queue"), components.DMA, b.read, (e.Read+e.Write)/rate, e.Read/rate)
		if s == 0 {
			b.edges.Add(read, prologue, components.Flow)
		}
		for k, p := range e.Ops {
			o := &b.p.Ops[p.Op]
			i := b.instr(codes[k], components.Unassigned, lanes[k], p.NS, p.NS)
			rows[k] = append(rows[k], i)
			fed := p.Streamed || o.Feeds > 0 || len(o.Inputs) == 0
			for _, x := range o.Inputs {
				from, ok := at[x.From]
				if !ok {
					fed = true
					continue
				}
				b.edges.Add(i, rows[from][s], components.Flow)
				ahead := buffers + depth[k] - depth[from] - 1
				if s >= ahead {
					b.edges.Add(rows[from][s], rows[k][s-ahead], components.Anti)
				}
			}
			if fed {
				b.edges.Add(i, read, components.Flow)
			}
		}
		write := b.instr(m.Opcode("write_queue"), components.DMA, b.write, 0, e.Write/rate)
		for _, k := range leaves {
			b.edges.Add(write, rows[k][s], components.Flow)
		}
	}
	m.Blocks.End.Set(block, uint32(b.next))
}

// writes reports whether an operator's result leaves its epoch.
func (b *moduleBuilder) writes(op int, at map[int]int) bool {
	if b.p.Ops[op].Result {
		return true
	}
	read := false
	for i := range b.p.Ops {
		for _, x := range b.p.Ops[i].Inputs {
			if x.From == op {
				read = true
				if _, ok := at[i]; !ok {
					return true
				}
			}
		}
	}
	return !read
}

// epochName is the name of a graph as the vendor's netlists have it.
func epochName(n int) string { return fmt.Sprintf("fwd_0_%d_temporal_epoch_%d", n, n) }
