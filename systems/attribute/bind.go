package attribute

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// Bind finds the binding constraint of every instruction in one run of a
// placed world. rules are those that placed it. Where the model told what held
// the instructions that is the answer.
func Bind(ctx context.Context, w *components.World, rules place.Rules, run components.Run) (*components.Attribution, error) {
	if a := w.Why[run]; a != nil {
		return a, nil // the model knows
	}
	m := w.Module
	a := components.NewAttribution()
	a.Run = run
	a.Cause.Resize(m.Instr.Len())
	a.Pred.Resize(m.Instr.Len())
	tops := m.TopBlocks()
	gaps := make([][]gap, len(tops))
	others := make([][]components.Other, len(tops))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, w.Config.Jobs))
	for n, row := range tops {
		g.Go(func() error {
			b := newBinder(newBlock(w, rules, run, row), &a)
			err := b.walk(ctx)
			gaps[n], others[n] = b.gaps, b.others
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	a.Others = slices.Concat(others...)
	for _, list := range gaps {
		if len(list) > 0 && a.Gap.Len() == 0 {
			a.Gap.Resize(m.Instr.Len())
		}
		for _, x := range list {
			a.Gap.Set(int(x.row), x.ns)
		}
	}
	return &a, nil
}

// gap is the time by which a row starts behind its binding constraint.
type gap struct {
	row uint32
	ns  uint64
}

// hold is a resource as the walk sees it: when it is free and who had it.
type hold struct {
	at uint64
	by components.InstrID
}

// binder repeats the walk of the placement with the owners of all resources.
type binder struct {
	*block
	a      *components.Attribution
	gaps   []gap
	others []components.Other

	free  []hold // by lane
	banks []hold // by core and bank: next dispatch of the last user
	psum  []hold // by lane: end of the last writer of PSUM
	rings map[uint16][]hold
	// ready is when the inputs of a collective were there, and what brought
	// the last.
	ready map[uint32]hold

	// The instruction being looked at: its start, the latest constraint that
	// is not later, and the latest of its dependencies.
	start uint64
	best  hold
	cause components.Cause
}

func newBinder(b *block, a *components.Attribution) *binder {
	lanes := b.m.Lanes.Len()
	return &binder{block: b, a: a, free: make([]hold, lanes), psum: make([]hold, lanes), banks: make([]hold, bankSlots(b.m)),
		rings: map[uint16][]hold{}, ready: map[uint32]hold{}}
}

// consider takes a constraint that lets go at time at. One that is later than
// the start did not hold the instruction: the model has another rule there.
func (b *binder) consider(h hold, cause components.Cause) {
	if h.at > b.best.at && h.at <= b.start {
		b.best, b.cause = h, cause
	}
}

// cancelEvery is how many rows are walked between two looks at the context.
const cancelEvery = 1 << 20

func (b *binder) walk(ctx context.Context) error {
	causes, preds := b.a.Cause.Slice(), b.a.Pred.Slice()
	repeats := b.repeats
	for i := b.first; i < b.end; i++ {
		for len(repeats) > 0 && repeats[0].First == i {
			b.again(repeats[0])
			repeats = repeats[1:]
		}
		if i%cancelEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if b.loop(i) {
			preds[i] = components.NoInstr
			continue
		}
		start, end := b.spanOf(i)
		b.start, b.best, b.cause = start, hold{by: components.NoInstr}, components.CauseStart
		l := b.lane[i]
		if b.flags[i]&components.FlagBarrier == 0 {
			b.consider(b.free[l], components.CauseLane)
		}
		anti := b.dependencies(i)
		if b.rulesApply(i) {
			b.resources(i)
		}
		other := components.Other{Instr: components.InstrID(i), Pred: b.best.by, At: b.best.at}
		b.consider(anti, components.CauseAnti)
		if b.cause == components.CauseAnti {
			b.others = append(b.others, other)
		}
		causes[i], preds[i] = b.cause, b.best.by
		if b.best.at < start {
			b.gaps = append(b.gaps, gap{i, start - b.best.at})
			if b.cause == components.CauseStart {
				causes[i] = components.CauseModel
			}
		}
		b.take(i, start, end)
	}
	return nil
}

// again sets the owners of what a body uses to its own instructions, those of
// the iteration before the last.
func (b *binder) again(r *components.Repeat) {
	psum := map[uint16]components.InstrID{}
	slots := map[uint32]components.InstrID{}
	triggers := map[uint16][]components.InstrID{}
	for i := r.First; i < r.End; i++ {
		if b.loop(i) {
			continue
		}
		if b.ringed(i) {
			key, _ := place.RingOf(b.m, &b.rules, i)
			triggers[key] = append(triggers[key], components.InstrID(i))
		}
		mask := b.block.banks[i]
		if mask == 0 || b.lat[i] == 0 {
			continue
		}
		for k := range banksPerCore {
			if (mask>>k|mask>>(banksPerCore+k))&1 != 0 {
				slots[uint32(bankSlot(b.lane[i], k))] = components.InstrID(i)
			}
		}
		if mask>>banksPerCore != 0 {
			psum[b.lane[i]] = components.InstrID(i)
		}
	}
	for _, l := range r.Lanes {
		b.free[l.Lane] = hold{l.Enter[b.run], components.InstrID(l.Last)}
		if by, ok := psum[l.Lane]; ok {
			b.psum[l.Lane] = hold{l.PSUM[b.run], by}
		}
	}
	for _, s := range r.Banks {
		if by, ok := slots[s.Slot]; ok {
			b.banks[s.Slot] = hold{s.Enter[b.run], by}
		}
	}
	for _, ring := range r.Rings {
		by := triggers[ring.Key]
		if len(by) == 0 {
			continue
		}
		fly := ring.Flying[b.run]
		q := make([]hold, len(fly))
		for n := range fly {
			q[len(q)-1-n] = hold{fly[len(fly)-1-n], by[len(by)-1-n%len(by)]}
		}
		b.rings[ring.Key] = q
	}
}

// rulesApply tells whether any rule beyond lanes and dependencies may hold i.
func (b *binder) rulesApply(i uint32) bool {
	return b.block.banks[i] != 0 || b.rules.Couplings || b.flags[i]&(components.FlagTrigger|components.FlagBarrier) != 0
}

// dependencies considers the edges of i and returns the latest
// anti-dependency, which comes last in rank.
func (b *binder) dependencies(i uint32) (anti hold) {
	anti.by = components.NoInstr
	latest := hold{by: components.NoInstr}
	for _, w := range b.preds(i) {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		h := hold{b.arrive[p][b.run], components.InstrID(p)}
		switch class {
		case components.ClassAnti:
			if b.run == components.RunB {
				continue
			}
			if h.at > anti.at && h.at <= b.start {
				anti = h
			}
		case components.ClassOrdered:
			h = b.ordered(i, p)
			b.consider(h, components.CauseOrdered)
		default:
			b.consider(h, components.CauseOfKind(components.KindOfClass(class)))
		}
		if h.at > latest.at {
			latest = h
		}
	}
	if b.flags[i]&components.FlagCollective != 0 {
		b.ready[i] = latest
	}
	return anti
}

// ordered is when an ordered edge from p lets i start. Behind a collective
// that may be when its inputs were there; then what brought them holds i.
func (b *binder) ordered(i, p uint32) hold {
	start, end := b.spanOf(p)
	switch {
	case b.flags[p]&components.FlagTrigger != 0 || b.shares(p) && !b.byInputs(i, p):
		return hold{end, components.InstrID(p)}
	case b.byInputs(i, p):
		return b.ready[p]
	}
	return hold{start + b.occupancy(p), components.InstrID(p)}
}

// byInputs tells whether an ordered edge from a collective p to i counts from
// when the collective's inputs were there.
func (b *block) byInputs(i, p uint32) bool { return b.rules.ByInputs(b.m, i, p) }

// resources considers the PSUM banks, couplings, rings and barriers.
func (b *binder) resources(i uint32) {
	l := b.lane[i]
	if mask := b.block.banks[i]; b.rules.Banks && mask>>banksPerCore != 0 {
		for k := range banksPerCore {
			if mask>>(banksPerCore+k)&1 != 0 {
				b.consider(b.banks[bankSlot(l, k)], components.CauseBank)
			}
		}
	}
	first := core(l)
	if b.rules.Couplings {
		switch l - first {
		case components.LaneDVE:
			b.consider(b.free[first+components.LanePool], components.CauseCoupling)
		case components.LanePool:
			b.consider(b.free[first+components.LaneDVE], components.CauseCoupling)
		case components.LaneActivation:
			b.consider(b.psum[first+components.LaneDVE], components.CauseCoupling)
			b.consider(b.psum[first+components.LanePool], components.CauseCoupling)
		}
	}
	if b.ringed(i) {
		key, depth := place.RingOf(b.m, &b.rules, i)
		if q := b.rings[key]; depth > 0 && len(q) >= depth {
			b.consider(q[0], components.CauseRing)
		}
	}
	if b.flags[i]&components.FlagBarrier != 0 {
		for _, e := range barrierLanes {
			if int(first+e) < len(b.free) {
				b.consider(b.free[first+e], components.CauseBarrier)
			}
		}
	}
}

// ringed tells whether i takes an entry of a DMA ring.
func (b *block) ringed(i uint32) bool {
	return b.rules.Rings && b.flags[i]&components.FlagTrigger != 0 && !b.shares(i)
}

// take records what i holds from now on.
func (b *binder) take(i uint32, start, end uint64) {
	id := components.InstrID(i)
	next := start + b.occupancy(i)
	b.free[b.lane[i]] = hold{next, id}
	if b.ringed(i) {
		if key, depth := place.RingOf(b.m, &b.rules, i); depth > 0 {
			q := b.rings[key]
			if len(q) >= depth {
				q = q[1:]
			}
			b.rings[key] = append(q, hold{start + place.TransferIssue(b.m, &b.rules, i), id})
		}
	}
	mask := b.block.banks[i]
	if mask == 0 || b.lat[i] == 0 {
		return
	}
	for k := range banksPerCore {
		if (mask>>k|mask>>(banksPerCore+k))&1 != 0 {
			b.banks[bankSlot(b.lane[i], k)] = hold{next, id}
		}
	}
	if mask>>banksPerCore != 0 {
		b.psum[b.lane[i]] = hold{end, id}
	}
}
