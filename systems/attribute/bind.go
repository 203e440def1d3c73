package attribute

import (
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// Bind finds the binding constraint of every instruction in one run of a
// placed world. rules are those that placed it. Where the model recorded what held
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
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
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

	slots []hold // by place.Slot
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
	return &binder{block: b, a: a, slots: make([]hold, b.slotsOf().Len()), rings: map[uint16][]hold{}, ready: map[uint32]hold{}}
}

// consider takes a constraint that releases at time at. One that is later than
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
		other := b.constraints(i, start, b.uses.Waits(i))
		if b.cause == components.CauseAnti {
			b.others = append(b.others, other)
		}
		causes[i], preds[i] = b.cause, b.best.by
		if b.best.at < start {
			b.gaps = append(b.gaps, gap{i, start - b.best.at})
		}
		b.take(i, start, end)
	}
	return nil
}

// constraints considers all that may have held i, which starts at start, and
// returns the latest of them that is no anti-dependency.
func (b *binder) constraints(i uint32, start uint64, waits []place.Wait) components.Other {
	b.start, b.best, b.cause = start, hold{by: components.NoInstr}, components.CauseStart
	b.resources(waits, true)
	anti := b.dependencies(i)
	b.resources(waits, false)
	if key, depth := b.rules.Ring(b.m, i); depth > 0 && len(b.rings[key]) >= depth {
		b.consider(b.rings[key][0], components.CauseRing)
	}
	other := components.Other{Instr: components.InstrID(i), Pred: b.best.by, At: b.best.at}
	b.consider(anti, components.CauseAnti)
	if b.cause == components.CauseStart && b.best.at < start {
		b.cause = components.CauseModel
	}
	return other
}

// again sets the owners of what a body uses to its own instructions, those of
// the iteration before the last.
func (b *binder) again(r *components.Repeat) {
	owners := map[place.Slot]components.InstrID{}
	triggers := map[uint16][]components.InstrID{}
	for i := r.First; i < r.End; i++ {
		if b.loop(i) {
			continue
		}
		if key, depth := b.rules.Ring(b.m, i); depth > 0 {
			triggers[key] = append(triggers[key], b.transferOf(i))
		}
		for _, t := range b.uses.Takes(i) {
			owners[t.Slot] = components.InstrID(i)
		}
	}
	hand := func(slot place.Slot, at uint64) {
		if by, ok := owners[slot]; ok {
			b.slots[slot] = hold{at, by}
		}
	}
	for _, l := range r.Lanes {
		hand(b.slotsOf().Lane(l.Lane), l.Enter[b.run])
		hand(b.slotsOf().PSUM(l.Lane), l.PSUM[b.run])
	}
	for _, s := range r.Banks {
		hand(b.slotsOf().BankAt(int(s.Slot)), s.Enter[b.run])
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

// resources considers the slots that an instruction waits for: its lane's, which
// comes before its dependencies, or all others, which come behind them.
func (b *binder) resources(waits []place.Wait, lane bool) {
	for _, w := range waits {
		if lane == (w.Cause == components.CauseLane) {
			b.consider(b.slots[w.Slot], w.Cause)
		}
	}
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

// ordered returns when an ordered edge from p lets i start. Behind a
// collective that may be when its inputs had arrived; then what brought them
// holds i.
func (b *binder) ordered(i, p uint32) hold {
	start, end := b.spanOf(p)
	switch b.rules.Ordered(b.m, i, p) {
	case place.AtInputs:
		return b.ready[p]
	case place.AtEnd:
		return hold{end, components.InstrID(p)}
	}
	return hold{start + b.occupancy(p), components.InstrID(p)}
}

// dispatched is when the transfer of trigger i, which starts at start, leaves
// its ring.
func (b *block) dispatched(i uint32, start uint64) uint64 {
	if !place.HasTransfer(b.m, i) {
		return start + place.TransferIssue(b.m, &b.rules, i)
	}
	at, _ := b.spanOf(i + 1)
	return at + b.occupancy(i+1)
}

// transferOf is the row that stands for the transfer of trigger i: its own, or
// the trigger's where it has none.
func (b *block) transferOf(i uint32) components.InstrID {
	if place.HasTransfer(b.m, i) {
		i++
	}
	return components.InstrID(i)
}

// take records the slots and the ring entry that i holds from now on.
func (b *binder) take(i uint32, start, end uint64) {
	id := components.InstrID(i)
	next := start + b.occupancy(i)
	if key, depth := b.rules.Ring(b.m, i); depth > 0 {
		q := b.rings[key]
		if len(q) >= depth {
			q = q[1:]
		}
		b.rings[key] = append(q, hold{b.dispatched(i, start), b.transferOf(i)})
	}
	for _, t := range b.uses.Takes(i) {
		at := next
		if t.AtEnd {
			at = end
		}
		b.slots[t.Slot] = hold{at, id}
	}
}
