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
	"slices"
	"sync"
	"unsafe"

	"perfsim/components"
	"perfsim/ecs"
)

// Run places all top-level blocks of the world, in parallel, and fills
// Events and Blocks.
func Run(ctx context.Context, w *components.World) error { return RunRules(ctx, w, RulesFor(w)) }

// RunRules is Run with rules of the caller's.
func RunRules(ctx context.Context, w *components.World, rules Rules) error {
	return run(ctx, w, rules, nil, hasFast())
}

// Again is RunRules for a copy of the placed world from: a top-level block, of
// rows first to end, for which touched is false keeps the events that it has in
// from. Its costs, dependencies and rules must be the same in both.
func Again(ctx context.Context, w *components.World, rules Rules, from *components.World, touched func(first, end int) bool) error {
	return run(ctx, w, rules, &earlier{from, touched}, hasFast())
}

// earlier is a placement of which a part is kept.
type earlier struct {
	w       *components.World
	touched func(first, end int) bool
}

// keeps takes over the events and the results of top-level block b of w, with
// the loops in it, and reports whether it did.
func (e *earlier) keeps(w *components.World, b int) bool {
	if e == nil {
		return false
	}
	t := &w.Module.Blocks
	first, end := int(t.First.At(b)), int(t.End.At(b))
	if e.touched(first, end) || e.w.Events.Dur.Len() != w.Events.Dur.Len() {
		return false
	}
	copy(w.Events.Arrive.View(first, end), e.w.Events.Arrive.View(first, end))
	if w.Events.Dur.Len() > 0 {
		copy(w.Events.Dur.View(first, end), e.w.Events.Dur.View(first, end))
	}
	w.Blocks[b] = e.w.Blocks[b]
	for n := b + 1; n < t.Len() && t.Parent.At(n) != 0; n++ {
		w.Blocks[n] = e.w.Blocks[n]
	}
	return true
}

// RunPlain is RunRules without assembly: what runs on processors that have
// none, for comparison.
func RunPlain(ctx context.Context, w *components.World, rules Rules) error {
	return run(ctx, w, rules, nil, false)
}

// run is RunRules; assembly reports whether it may be used, kept what of an
// earlier placement stays.
func run(ctx context.Context, w *components.World, rules Rules, kept *earlier, assembly bool) error {
	m := w.Module
	var fast *sync.Pool
	if assembly {
		fast = plainPath(m)
	}
	w.Placement++
	arrive := room(w, rules)
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
		if kept.keeps(w, b) {
			return nil
		}
		if err := newKernel(w, rules, arrive, fast).block(ctx, b); err != nil || w.Config.Loops != components.Trips || !components.Repeats(m, b) {
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
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	for _, b := range blocks {
		g.Go(func() error { return place(ctx, b) })
	}
	return g.Wait()
}

// room makes room for the events of w. It returns the arrivals and one more,
// which stays zero: padding points to it.
func room(w *components.World, rules Rules) []pair {
	n := w.Module.Instr.Len()
	arrive := w.Events.Arrive.Scratch(n + 1)
	arrive[n] = pair{}
	w.Events.Arrive.Scratch(n)
	if rules.Shares != nil && hasCollectives(w.Module) {
		w.Events.Dur.Scratch(n)
	} else {
		w.Events.Dur.Drop()
	}
	return arrive
}

// plainPath returns what the plain path works in, used again for the next block.
func plainPath(m *components.Module) *sync.Pool {
	return &sync.Pool{New: func() any { return newPadded(m.Instr.Len()) }}
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

	times []pair // of the slots of lanes and of their PSUM writes
	free  []pair // of the slots of lanes: next dispatch
	last  pair   // largest end so far
	// loop is not nil where bodies are placed as often as they run.
	loop *looper

	banks     []pair // of the slots of PSUM banks
	psumWrite []pair // of the slots of PSUM writes
	resources *Resources
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

// bankFirst is how many times lie before those of banks, for the assembly: it
// has rows without a bank use the first and wait for the second, which stays
// zero.
const bankFirst = 2

func newKernel(w *components.World, rules Rules, arrive []pair, fast *sync.Pool) *kernel {
	lanes := w.Module.Lanes.Len()
	k := &kernel{w: w, m: w.Module, rules: rules}
	k.resources = k.rules.Resources(w.Module)
	// Behind the two times of every lane one that stays zero, and a place that
	// nobody reads: the assembly needs no branch then.
	k.times = make([]pair, 2*lanes+2)
	k.free, k.psumWrite = k.times[:lanes], k.times[lanes:2*lanes]
	k.allBanks = make([]pair, bankFirst+Slots(lanes).Banks())
	k.banks = k.allBanks[bankFirst:]
	k.usePlain(arrive, fast)
	return k
}

// usePlain has the kernel take the plain path through the rows that its module
// has now, where it can be taken.
func (k *kernel) usePlain(arrive []pair, fast *sync.Pool) {
	k.arrive, k.blk = nil, nil
	if fast == nil || !k.rules.Banks && k.rules.Couplings || k.m.Edges.Preds.Rows() != k.m.Instr.Len() || k.m.Edges.Preds.Len() == 0 {
		return
	}
	k.arrive, k.blk = arrive, fast
	if k.bankOf != nil {
		return
	}
	lanes := len(k.free)
	k.bankOf = make([]uint32, lanes)
	for l := range k.bankOf {
		k.bankOf[l] = uint32(bankFirst+l/components.LanesPerCore*numBanks) * pairSize
	}
	if k.rules.Couplings {
		k.couple = couples(lanes)
	}
}

const pairSize = uint32(unsafe.Sizeof(pair{}))

// couples returns, by lane, the slots that the coupling rule has it wait for,
// in bytes from free on, for the assembly.
func couples(lanes int) [][2]uint32 {
	none := uint32(2*lanes) * pairSize // stays zero
	rules, out := Rules{Couplings: true}, make([][2]uint32, lanes)
	for l := range out {
		out[l] = [2]uint32{none, none}
		s := site{slots: Slots(lanes), lane: uint16(l), first: coreOf(uint16(l))}
		for n, w := range waitCoupled(&rules, &s, nil) {
			out[l][n] = uint32(w.Slot) * pairSize
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
		more := couplings || useBanks && (banks[r] != 0 || Chained(flags[r], 0))
		if more {
			t := k.engineFree(i)
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
		if more {
			k.take(i, pair{a + is, b + is}, pair{a + lat, b + lat})
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

// ordered returns when an ordered edge from producer p lets i start.
func (k *kernel) ordered(i, p uint32) pair {
	in := &k.m.Instr
	a := k.w.Events.Arrive.At(int(p))
	switch k.rules.Ordered(k.m, i, p) {
	case AtInputs:
		return k.inputs[p] // never after its start
	case AtEnd:
		if in.Flags.At(int(p))&components.FlagTrigger != 0 { // its arrival is its start
			lat := uint64(in.Latency.At(int(p)))
			return pair{a[0] + lat, a[1] + lat}
		}
		return a
	}
	early := uint64(in.Latency.At(int(p)) - in.Issue.At(int(p)))
	return pair{a[0] - early, a[1] - early}
}

// at returns the times at which a slot is free.
func (k *kernel) at(s Slot) *pair {
	if banks := 2 * len(k.free); int(s) >= banks {
		return &k.banks[int(s)-banks]
	}
	return &k.times[s]
}

// engineFree returns when all slots for which row i waits are free.
func (k *kernel) engineFree(i uint32) pair {
	var t pair
	for _, w := range k.resources.Waits(i) {
		t = maxPair(t, *k.at(w.Slot))
	}
	return t
}

// take records when the slots that row i takes are free again.
func (k *kernel) take(i uint32, next, end pair) {
	for _, t := range k.resources.Takes(i) {
		if t.AtEnd {
			*k.at(t.Slot) = end
		} else {
			*k.at(t.Slot) = next
		}
	}
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
	start := maxPair(ready, k.engineFree(i))
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
		start = k.ring(i).push(start, func(t pair) pair { return k.dispatched(i, t) })
	}
	var next, end pair
	for x := range start {
		next[x], end[x] = start[x]+issues[x], start[x]+durs[x]
	}
	k.take(i, next, end)
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
	return nil
}
