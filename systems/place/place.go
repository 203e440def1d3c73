// Package place puts every instruction on its engine's timeline, in program
// order, twice: run A honours all dependencies, run B leaves
// anti-dependencies out. Both come out of one walk over the edges.
//
// For instruction i on lane e:
//
//	start   = max(ready, lane free, shared-resource bounds)
//	free[e] = start + issue interval
//	end     = start + latency
//
// where ready is the largest arrival over its predecessors.
package place

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/systems/cost"
)

// Rules are what a model's placement does beyond lanes and dependencies.
type Rules struct {
	// Banks serialises writers of a PSUM bank behind its last user.
	Banks bool
	// Couplings are those of NeuronCore-v2: DVE and Pool exclude one another,
	// Activation waits for PSUM writers on both (spec §4.6).
	Couplings bool
	// Rings bounds DMA queues by their depth.
	Rings bool
	// Shares is the bandwidth share of each collective stream.
	Shares []float64
	// Reflow stretches a collective that overlaps others (see collective.go).
	Reflow bool
	// Inputs has an ordered edge from a collective to another or to Pool count
	// from when the first one's inputs were there (spec §4.5).
	Inputs bool
	// DMA has the constants of triggered transfers.
	DMA machine.DMACost
	// OverlapDMA is the overlap window of a transfer in ns.
	OverlapDMA uint32
	// Queues are the queue classes of the documented simulator.
	Queues []machine.Queue
}

// ReplayDocumented is the rule set for replaying a trace of the documented
// simulator.
const ReplayDocumented = "replay-documented"

// RulesOf returns the rules of a model on a machine.
func RulesOf(model string, mach *machine.Machine) Rules {
	r := &mach.Reference
	switch model {
	case "reference":
	case ReplayDocumented:
		// The durations of collectives have their shares in them. Queues are not
		// in a trace.
		return Rules{Banks: true, Couplings: r.Couplings, Inputs: true}
	default:
		return Rules{}
	}
	return Rules{Banks: true, Couplings: r.Couplings, Inputs: true, Rings: true, Shares: r.StreamShares, Reflow: r.Reflow == "share",
		DMA: r.DMA, OverlapDMA: r.OverlapDMA, Queues: r.Queues}
}

// Shared tells whether instruction i is a collective whose duration follows
// from its share of a bandwidth.
func (r *Rules) Shared(m *components.Module, i uint32) bool {
	return r.Shares != nil && m.Instr.Flags.At(int(i))&(components.FlagCollective|components.FlagLocal) == components.FlagCollective
}

// ByInputs tells whether an ordered edge from producer p to i counts from when
// the inputs of p were there. The engine that spec §4.5 asks for is taken as
// that of the timeline, as in §4.6.
func (r *Rules) ByInputs(m *components.Module, i, p uint32) bool {
	in := &m.Instr
	return r.Inputs && in.Flags.At(int(p))&components.FlagCollective != 0 &&
		(in.Flags.At(int(i))&components.FlagCollective != 0 || in.Lane.At(int(i))%components.LanesPerCore == components.LanePool)
}

// RulesFor returns the rules by which Run places the world.
func RulesFor(w *components.World) Rules {
	model := w.Config.Model
	if model == cost.Replay && w.Module.Attribute(cost.DocumentedTrace) != "" {
		model = ReplayDocumented
	}
	return RulesOf(model, w.Machine)
}

// Run places all top-level blocks of the world, in parallel, and fills
// Events and Blocks.
func Run(ctx context.Context, w *components.World) error { return RunRules(ctx, w, RulesFor(w)) }

// RunRules is Run with rules of the caller's.
func RunRules(ctx context.Context, w *components.World, rules Rules) error {
	return run(ctx, w, rules, hasFast())
}

// RunPlain is RunRules without assembly: what runs on processors that have
// none, for comparison.
func RunPlain(ctx context.Context, w *components.World, rules Rules) error {
	return run(ctx, w, rules, false)
}

// run is RunRules; assembly tells whether it may be used.
func run(ctx context.Context, w *components.World, rules Rules, assembly bool) error {
	m := w.Module
	// fast is what the plain path works in, used again for the next block.
	var fast *sync.Pool
	if assembly {
		fast = &sync.Pool{New: func() any { return newPadded(m.Instr.Len()) }}
	}
	w.Placement++
	// One row more than there are instructions: its times stay zero, and padding
	// points to it.
	arrive := w.Events.Arrive.Scratch(m.Instr.Len() + 1)
	arrive[m.Instr.Len()] = pair{}
	w.Events.Arrive.Scratch(m.Instr.Len())
	if rules.Shares != nil && hasCollectives(m) {
		w.Events.Dur.Scratch(m.Instr.Len())
	} else {
		w.Events.Dur.Drop()
	}
	if w.Config.Jobs > 1 && m.Instr.Len() >= populateFrom {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { w.Events.Arrive.Populate(stop); close(done) }()
		defer func() { close(stop); <-done }()
	}
	w.Blocks = make([]components.BlockResult, m.Blocks.Len())
	for b := range w.Blocks {
		w.Blocks[b].Block = b
	}
	blocks := m.TopBlocks()
	place := func(ctx context.Context, b int) error {
		if err := newKernel(w, rules, arrive, fast).block(ctx, b); err != nil || w.Config.Loops != "trips" || !components.Repeats(m, b) {
			return err
		}
		return newKernel(w, rules, arrive, fast).trips(ctx, b)
	}
	if len(blocks) == 1 || w.Config.Jobs <= 1 {
		for _, b := range blocks {
			if err := place(ctx, b); err != nil {
				return err
			}
		}
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.Config.Jobs)
	for _, b := range blocks {
		g.Go(func() error { return place(ctx, b) })
	}
	return g.Wait()
}

// populateFrom is how many rows make it worth having a second core fetch the
// memory of the events.
const populateFrom = 1 << 18

func hasCollectives(m *components.Module) bool {
	return slices.ContainsFunc(m.Instr.Flags.Slice(), func(f components.Flags) bool { return f&components.FlagCollective != 0 })
}

// pair holds a time of run A and one of run B, in ns.
type pair = [2]uint64

func maxPair(a, b pair) pair { return pair{max(a[0], b[0]), max(a[1], b[1])} }

// kernel is the state of one walk over one top-level block.
type kernel struct {
	w     *components.World
	m     *components.Module
	rules Rules

	free []pair // per lane: next dispatch
	last pair   // largest end so far
	// loop is not nil where bodies are placed as often as they run.
	loop *looper

	banks     []pair // per core and bank: next dispatch of the last user
	psumWrite []pair // per lane: end of the last PSUM writer
	rings     map[uint16]*ring
	coll      *collectives
	inputs    map[uint32]pair // by collective: when its inputs were there

	// For the plain path, nil where it cannot be taken.
	blk    *sync.Pool // of *block
	arrive []pair     // with the zero row
	bankOf []uint32   // by lane
	// allBanks is banks with what lies before.
	allBanks []pair
	couple   [][2]uint32 // by lane, nil where engines are not coupled
}

const numBanks = 8

// bankFirst is how many times lie before those of banks, for the assembly: it
// has rows without a bank use the first and wait for the second, which stays
// zero.
const bankFirst = 2

func newKernel(w *components.World, rules Rules, arrive []pair, fast *sync.Pool) *kernel {
	lanes := w.Module.Lanes.Len()
	k := &kernel{w: w, m: w.Module, rules: rules}
	// Behind the two times of every lane one that stays zero, and a place that
	// nobody reads: the assembly needs no branch then.
	times := make([]pair, 2*lanes+2)
	k.free, k.psumWrite = times[:lanes], times[lanes:2*lanes]
	cores := lanes/components.LanesPerCore + 1
	k.allBanks = make([]pair, bankFirst+cores*numBanks)
	k.banks = k.allBanks[bankFirst:]
	if fast != nil && (rules.Banks || !rules.Couplings) && k.m.Edges.Preds.Rows() == k.m.Instr.Len() && k.m.Edges.Preds.Len() > 0 {
		k.arrive, k.blk = arrive, fast
		k.bankOf = make([]uint32, lanes)
		for l := range k.bankOf {
			k.bankOf[l] = uint32(bankFirst+l/components.LanesPerCore*numBanks) * pairSize
		}
		if rules.Couplings {
			k.couple = couples(lanes)
		}
	}
	return k
}

const pairSize = uint32(unsafe.Sizeof(pair{}))

// couples is coupled by lane: where the times are that a lane waits for, in
// bytes from free on.
func couples(lanes int) [][2]uint32 {
	at := func(n int) uint32 { return uint32(n) * pairSize }
	psumWrite, none := at(lanes), at(2*lanes)
	out := make([][2]uint32, lanes)
	for l := range out {
		core := l - l%components.LanesPerCore
		dve, pool := at(core+int(components.LaneDVE)), at(core+int(components.LanePool))
		out[l] = [2]uint32{none, none}
		if core+components.LanesPerCore > lanes {
			continue // no core
		}
		switch uint16(l - core) {
		case components.LaneDVE:
			out[l][0] = pool
		case components.LanePool:
			out[l][0] = dve
		case components.LaneActivation:
			out[l] = [2]uint32{psumWrite + dve, psumWrite + pool}
		}
	}
	return out
}

// block places a top-level block and the loops in it, bodies once.
func (k *kernel) block(ctx context.Context, b int) error {
	t := &k.m.Blocks
	first, end := t.First.At(b), t.End.At(b)
	// The blocks of loops inside, in program order: rows b+1 … as long as
	// they lie within.
	inner := b + 1
	if err := k.region(ctx, first, end, &inner); err != nil {
		return err
	}
	r := &k.w.Blocks[b]
	r.Latency, r.LatencyTrips = k.last, k.last
	return nil
}

// region places rows first to end, descending into the loops among them.
// next is the block row that the next loop's first body has.
func (k *kernel) region(ctx context.Context, first, end uint32, next *int) error {
	t := &k.m.Blocks
	for i := first; i < end; {
		// Up to the loop whose bodies come next; one without a body takes no time
		// and is passed over by the walk.
		stop := end
		if *next < t.Len() {
			if p := t.Parent.At(*next); p > i && p <= end {
				stop = p - 1
			}
		}
		if err := k.walk(ctx, i, stop); err != nil {
			return err
		}
		if stop == end {
			return nil
		}
		k.noEvent(stop)
		// The bodies of the loop at row stop follow it.
		i = stop + 1
		for *next < t.Len() && t.Parent.At(*next) == stop+1 {
			b := *next
			*next++
			before, r := k.last, &k.w.Blocks[b]
			if k.loop != nil {
				if err := k.repeat(ctx, b, next); err != nil {
					return err
				}
				if r.Repeat == nil {
					r.LatencyTrips = pair{k.last[0] - before[0], k.last[1] - before[1]}
				}
			} else {
				if err := k.region(ctx, t.First.At(b), t.End.At(b), next); err != nil {
					return err
				}
				r.Latency = pair{k.last[0] - before[0], k.last[1] - before[1]}
				r.LatencyTrips = r.Latency
			}
			i = t.End.At(b)
		}
	}
	return nil
}

// noEvent gives a loop, which is not placed itself, a time that constrains
// nothing.
func (k *kernel) noEvent(i uint32) {
	k.w.Events.Arrive.Set(int(i), pair{})
	if k.w.Events.Dur.Len() > 0 {
		k.w.Events.Dur.Set(int(i), [2]uint32{})
	}
}

// cancelEvery is how many rows are placed between two looks at the context.
const cancelEvery = 1 << 20

// walk places rows lo to hi, which hold no bodies of loops.
func (k *kernel) walk(ctx context.Context, lo, hi uint32) error {
	for ; lo < hi; lo += cancelEvery {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := k.some(lo, min(lo+cancelEvery, hi)); err != nil {
			return err
		}
		if k.w.Config.Progress != nil {
			k.w.Config.Progress(int64(min(lo+cancelEvery, hi)), int64(k.m.Instr.Len()))
		}
	}
	return nil
}

// some places rows lo to hi the fastest way there is.
func (k *kernel) some(lo, hi uint32) error {
	if k.blk != nil {
		return k.fast(lo, hi)
	}
	n := k.m.Instr.Len()
	if n < prefetchFrom || k.m.Edges.Preds.Rows() != n {
		return k.rows(lo, hi)
	}
	// The times that a block needs are asked for before it is placed.
	off, words, arrive := k.m.Edges.Preds.Offsets(), k.m.Edges.Preds.Words(), k.w.Events.Arrive.Slice()
	for lo < hi {
		end := min(lo+blockRows, hi)
		if edges := words[off[lo]:off[end]]; len(edges) > 0 {
			prefetchTimes(&edges[0], len(edges), &arrive[0])
		}
		if err := k.rows(lo, end); err != nil {
			return err
		}
		lo = end
	}
	return nil
}

// special are the flags that make an instruction leave the plain path.
const special = components.FlagTrigger | components.FlagCollective | components.FlagBarrier | components.FlagLoop

// rows places rows lo to hi by all rules.
func (k *kernel) rows(lo, hi uint32) error {
	in := &k.m.Instr
	n := int(hi - lo)
	off, words := k.m.Edges.Preds.Offsets(), k.m.Edges.Preds.Words()
	if len(off) > 0 {
		off = off[lo : hi+1]
	} else {
		off = make([]uint32, n+1) // no instruction has edges
	}
	arrive := k.w.Events.Arrive.Slice()
	issue, latency := in.Issue.View(int(lo), int(hi)), in.Latency.View(int(lo), int(hi))
	lane, flags, banks := in.Lane.View(int(lo), int(hi)), in.Flags.View(int(lo), int(hi)), in.Banks.View(int(lo), int(hi))
	var dur [][2]uint32
	if k.w.Events.Dur.Len() > 0 {
		dur = k.w.Events.Dur.View(int(lo), int(hi))
	}
	// Equal lengths spare the loop its bounds checks.
	latency, lane, flags, banks, off = latency[:n], lane[:n], flags[:n], banks[:n], off[:n+1]
	couplings := k.rules.Couplings
	useBanks := k.rules.Banks || couplings
	lastA, lastB := k.last[0], k.last[1]
	for r := range issue[:n] {
		// Times of run A and run B, in variables of their own: the compiler
		// keeps arrays in memory.
		var a, b uint64
		for _, w := range words[off[r]:off[r+1]] {
			class := w >> ecs.ClassShift
			if class == uint32(components.ClassOrdered) {
				t := k.ordered(lo+uint32(r), w&ecs.TargetMask)
				a, b = max(a, t[0]), max(b, t[1])
				continue
			}
			t := &arrive[w&ecs.TargetMask]
			a = max(a, t[0])
			b = max(b, t[1]&notAnti(class))
		}
		i := lo + uint32(r)
		if flags[r]&special != 0 {
			k.last = pair{lastA, lastB}
			if err := k.special(i, pair{a, b}); err != nil {
				return err
			}
			lastA, lastB = k.last[0], k.last[1]
			continue
		}
		l := lane[r]
		f := &k.free[l]
		a, b = max(a, f[0]), max(b, f[1])
		mask := banks[r]
		if useBanks && mask != 0 && k.rules.Banks {
			t := k.banksFree(l, mask)
			a, b = max(a, t[0]), max(b, t[1])
		}
		if couplings {
			t := k.coupled(l)
			a, b = max(a, t[0]), max(b, t[1])
		}
		is, lat := uint64(issue[r]), uint64(latency[r])
		f[0], f[1] = a+is, b+is
		t := &arrive[i]
		t[0], t[1] = a+lat, b+lat
		if dur != nil {
			dur[r] = [2]uint32{latency[r], latency[r]}
		}
		lastA, lastB = max(lastA, a+lat), max(lastB, b+lat)
		if useBanks && mask != 0 && lat > 0 {
			k.useBanks(l, mask, pair{a + is, b + is}, pair{a + lat, b + lat})
		}
	}
	k.last = pair{lastA, lastB}
	return nil
}

// ready is when all producers of row i let it start.
func (k *kernel) ready(i uint32) pair {
	var t pair
	for _, w := range k.m.Edges.Preds.Row(int(i)) {
		p, class := w&ecs.TargetMask, w>>ecs.ClassShift
		if class == uint32(components.ClassOrdered) {
			t = maxPair(t, k.ordered(i, p))
			continue
		}
		a := k.w.Events.Arrive.At(int(p))
		t = maxPair(t, pair{a[0], a[1] & notAnti(class)})
	}
	return t
}

// notAnti is 0 for anti-dependencies, which run B leaves out, and all ones
// for the classes before; a branch would be hard to foresee.
func notAnti(class uint32) uint64 { return uint64((class+1)>>2) - 1 }

// The class of anti-dependencies is the last of four, as notAnti has it.
const _ = -uint(components.ClassAnti ^ 3)

// ordered is when an ordered edge from i to its producer p lets i start: the
// producer's next dispatch, or when its inputs were there (spec §4.5).
func (k *kernel) ordered(i, p uint32) pair {
	in := &k.m.Instr
	a := k.w.Events.Arrive.At(int(p))
	switch {
	case in.Flags.At(int(p))&components.FlagTrigger != 0:
		lat := uint64(in.Latency.At(int(p)))
		return pair{a[0] + lat, a[1] + lat}
	case k.rules.ByInputs(k.m, i, p):
		return k.inputs[p] // never after its start
	case k.rules.Shared(k.m, p):
		return a // its next dispatch is its end
	}
	// The lane is left (latency - issue) before the end.
	early := uint64(in.Latency.At(int(p)) - in.Issue.At(int(p)))
	return pair{a[0] - early, a[1] - early}
}

// coreOf returns the first lane of the core that lane l belongs to.
func coreOf(l uint16) uint16 { return l / components.LanesPerCore * components.LanesPerCore }

// banksFree is when all banks that mask writes are free.
func (k *kernel) banksFree(l uint16, mask uint16) pair {
	var t pair
	at := int(l/components.LanesPerCore) * numBanks
	for w := uint(mask >> 8); w != 0; w &= w - 1 {
		t = maxPair(t, k.banks[at+bits.TrailingZeros(w)])
	}
	return t
}

// useBanks records the banks an instruction read or wrote.
func (k *kernel) useBanks(l uint16, mask uint16, next, end pair) {
	at := int(l/components.LanesPerCore) * numBanks
	for u := uint(mask|mask>>8) & 0xff; u != 0; u &= u - 1 {
		k.banks[at+bits.TrailingZeros(u)] = next
	}
	if mask>>8 != 0 {
		k.psumWrite[l] = end
	}
}

// coupled is the bound of the engine couplings of NeuronCore-v2.
func (k *kernel) coupled(l uint16) pair {
	core := coreOf(l)
	switch l - core {
	case components.LaneDVE:
		return k.free[core+components.LanePool]
	case components.LanePool:
		return k.free[core+components.LaneDVE]
	case components.LaneActivation:
		return maxPair(k.psumWrite[core+components.LaneDVE], k.psumWrite[core+components.LanePool])
	}
	return pair{}
}

// engineFree is when the lane of row i, the PSUM banks it writes and the
// engines coupled to its own let it start (spec §4.6).
func (k *kernel) engineFree(i uint32) pair {
	in := &k.m.Instr
	l, mask := in.Lane.At(int(i)), in.Banks.At(int(i))
	var t pair
	if in.Flags.At(int(i))&components.FlagBarrier == 0 {
		t = k.free[l]
	} else { // which waits for the five data-path lanes, not for its own
		core := coreOf(l)
		for _, e := range []uint16{components.LaneActivation, components.LaneDVE, components.LanePE, components.LanePool, components.LaneSP} {
			if int(core+e) < len(k.free) {
				t = maxPair(t, k.free[core+e])
			}
		}
	}
	if k.rules.Banks && mask != 0 {
		t = maxPair(t, k.banksFree(l, mask))
	}
	if k.rules.Couplings {
		t = maxPair(t, k.coupled(l))
	}
	return t
}

// special places triggers, collectives and barriers, and passes loops over.
func (k *kernel) special(i uint32, ready pair) error {
	in := &k.m.Instr
	flags, l := in.Flags.At(int(i)), in.Lane.At(int(i))
	if flags&components.FlagLoop != 0 {
		k.noEvent(i)
		return nil
	}
	is, lat := uint64(in.Issue.At(int(i))), uint64(in.Latency.At(int(i)))
	start, mask := maxPair(ready, k.engineFree(i)), in.Banks.At(int(i))
	if k.rules.Inputs && flags&components.FlagCollective != 0 {
		if k.inputs == nil {
			k.inputs = map[uint32]pair{}
		}
		k.inputs[i] = ready
	}
	durs := pair{lat, lat}
	issues := pair{is, is}
	switch {
	case k.rules.Shared(k.m, i):
		if k.coll == nil {
			k.coll = newCollectives(k.rules)
		}
		var err error
		if durs, err = k.coll.place(k.m, i, l, start, lat); err != nil {
			return err
		}
		issues = durs
	case flags&components.FlagTrigger != 0 && k.rules.Rings:
		start = k.ring(i).push(start, TransferIssue(k.m, &k.rules, i))
	}
	var next, end pair
	for x := range start {
		next[x], end[x] = start[x]+issues[x], start[x]+durs[x]
	}
	k.free[l] = next
	if flags&components.FlagTrigger != 0 {
		k.w.Events.Arrive.Set(int(i), start)
	} else {
		k.w.Events.Arrive.Set(int(i), end)
	}
	if k.w.Events.Dur.Len() > 0 {
		var d [2]uint32
		for x := range d {
			if durs[x] > 1<<32-1 {
				return fmt.Errorf("collective %s takes %d ns, more than one instruction can have", k.m.InstrName(components.InstrID(i)), durs[x])
			}
			d[x] = uint32(durs[x])
		}
		k.w.Events.Dur.Set(int(i), d)
	}
	k.last = maxPair(k.last, end)
	if mask != 0 && lat > 0 {
		k.useBanks(l, mask, next, end)
	}
	return nil
}

// satAdd and satMul saturate, so that an absurd trip count gives the largest
// time and not a small wrong one.
func satAdd(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

func satMul(a, b uint64) uint64 {
	if a != 0 && b > ^uint64(0)/a {
		return ^uint64(0)
	}
	return a * b
}
