package sched

import (
	"context"
	"fmt"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// Policy is how the program order is made.
type Policy int

// The documented policies.
const (
	Keep      Policy = iota // leave the order
	Separate                // loads first, then greedy
	Greedy                  // by height
	TimeAware               // by time, with the placement engine
)

// Options say how to schedule.
type Options struct {
	Policy Policy
	// Always takes the new order of a block even where it is slower than the
	// one it replaces. By default such a block stays as it is.
	Always bool
	// Before is the latency of every block row in the order that there is, in
	// ns; nil where it is not known yet.
	Before []uint64
	// Log takes the documented lines; may be nil.
	Log func(string)
}

// Block is the result of scheduling one top-level block, in ns of run A with
// loop bodies placed once.
type Block struct {
	Block         int
	Before, After uint64
	// Path is the longest chain of dependencies, Busy the largest sum of issue
	// intervals on one lane: no order can be faster than either.
	Path, Busy uint64
	// Kept says that the old order stays, Later that it had dependencies on
	// instructions later in the order, which the placement had to skip; the
	// new order has none.
	Kept, Later bool
}

// Bound is the larger of the lower bounds.
func (b *Block) Bound() uint64 { return max(b.Path, b.Busy) }

// inferentia2 is the architecture level from which on the time-aware
// scheduler exists.
const inferentia2 = 20

// Run is the pass post_sched: it gives w a module in a new program order. The
// costs of w's module must be filled in; its events are void afterwards.
func Run(ctx context.Context, w *components.World, opt Options) ([]Block, error) {
	say := func(s string) {
		if opt.Log != nil {
			opt.Log(s)
		}
	}
	if opt.Policy < Keep || opt.Policy > TimeAware {
		return nil, fmt.Errorf("scheduling policy %d: there are %d to %d", opt.Policy, Keep, TimeAware)
	}
	if w.Machine != nil && w.Machine.Arch < inferentia2 && opt.Policy > Greedy {
		say(fmt.Sprintf("policy %d incompatible with Inf1", opt.Policy))
		opt.Policy = Greedy
	}
	if w.Module.Syncs.Op.Len() > 0 && opt.Policy != Keep {
		// What a semaphore is waited to reach counts instructions in their order.
		w.Module.Note("order-fixed", "the module has semaphore waits, which hold for its program order only: it is not scheduled", 1)
		say("semaphores are allocated: program order is kept")
		opt.Policy = Keep
	}
	say("Start PosT ScheD")
	if opt.Policy == TimeAware {
		say("Time-aware hwm post-sched")
	}
	blocks, order, err := schedule(ctx, w, opt)
	if err != nil {
		return nil, err
	}
	if order != nil {
		if w.Module, err = permute(w.Module, order); err != nil {
			return nil, err
		}
	}
	total := uint64(0)
	for i := range blocks {
		total += blocks[i].After
	}
	say(fmt.Sprintf("Time-aware simulation time: %d", total))
	say("Done  PosT ScheD")
	return blocks, nil
}

// schedule finds the new order: order[i] is the row that comes at place i;
// nil where nothing moves.
func schedule(ctx context.Context, w *components.World, opt Options) ([]Block, []uint32, error) {
	old := w.Module
	before := opt.Before
	if before == nil {
		var err error
		if before, err = latencies(ctx, w, old); err != nil {
			return nil, nil, err
		}
	}
	top := old.TopBlocks()
	blocks := make([]Block, len(top))
	for i, b := range top {
		blocks[i] = Block{Block: b, Before: before[b], After: before[b], Kept: true}
		blocks[i].Path, blocks[i].Busy = bounds(old, b)
	}
	if opt.Policy == Keep {
		return blocks, nil, nil
	}
	// First an order in which every producer is before its consumers.
	m := old
	seed, later := topological(old)
	var err error
	if seed != nil {
		if m, err = permute(old, seed); err != nil {
			return nil, nil, err
		}
	}
	order := identity(m.Instr.Len())
	scratch := &components.World{Module: m, Machine: w.Machine, Config: w.Config, Events: components.NewEvents()}
	rules := place.RulesFor(w)
	place.Prepare(scratch, rules)
	region := regions(m)
	g, gctx := ecs.NewGroup(ctx, w.Config.Jobs)
	for _, b := range top {
		g.Go(func() error { return block(gctx, scratch, rules, region, b, opt, order) })
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	next, err := permute(m, order)
	if err != nil {
		return nil, nil, err
	}
	after, err := latencies(ctx, w, next)
	if err != nil {
		return nil, nil, err
	}
	if seed != nil {
		for i, r := range order {
			order[i] = seed[r]
		}
	}
	for i := range blocks {
		b := &blocks[i]
		b.Later = later[b.Block]
		if b.Later {
			b.Path, b.Busy = bounds(m, b.Block)
		}
		if after[b.Block] < b.Before || opt.Always || b.Later {
			b.After, b.Kept = after[b.Block], false
			continue
		}
		for r := old.Blocks.First.At(b.Block); r < old.Blocks.End.At(b.Block); r++ {
			order[r] = r
		}
	}
	return blocks, order, nil
}

func identity(n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	return order
}

// latencies places module m and returns the latency of every block, run A.
func latencies(ctx context.Context, w *components.World, m *components.Module) ([]uint64, error) {
	x := &components.World{Module: m, Machine: w.Machine, Config: w.Config, Events: components.NewEvents()}
	x.Config.Progress = nil
	if err := place.RunRules(ctx, x, place.RulesFor(w)); err != nil {
		return nil, err
	}
	out := make([]uint64, len(x.Blocks))
	for i, b := range x.Blocks {
		out[i] = b.Latency[components.RunA]
	}
	return out, nil
}

// block schedules one top-level block: order of its rows.
func block(ctx context.Context, w *components.World, rules place.Rules, region []uint32, b int, opt Options, order []uint32) error {
	m := w.Module
	lo, hi := m.Blocks.First.At(b), m.Blocks.End.At(b)
	t := timeAware{step: place.NewStepper(w, rules), lanes: make([]*lane, m.Lanes.Len())}
	for _, s := range cut(m, region, lo, hi) {
		if s.hi-s.lo == 1 {
			if opt.Policy == TimeAware {
				if err := t.step.Place(s.lo); err != nil {
					return err
				}
			}
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		g := makeGraph(m, s)
		var rows []uint32
		var err error
		switch opt.Policy {
		case TimeAware:
			t.g = g
			rows, err = t.run(ctx)
		default:
			rows = greedy(g, opt.Policy == Separate)
		}
		if err != nil {
			return err
		}
		copy(order[s.lo:s.hi], rows)
	}
	return nil
}

// regions returns the innermost block of every row.
func regions(m *components.Module) []uint32 {
	out := make([]uint32, m.Instr.Len())
	for b := range m.Blocks.Len() { // inner blocks come later, so theirs wins
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			out[i] = uint32(b)
		}
	}
	return out
}
