package attribute

import (
	"context"
	"unsafe"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// Takers lists the instructions that take each slot, in program order. With it
// the owner of a slot before an instruction is found without a walk over all
// instructions before, so that a critical path costs what it is long. It holds
// for all worlds with the instructions of the module and its rules, whatever
// they cost.
type Takers struct {
	rules place.Rules
	lanes []uint16 // the columns that it was made from
	banks []uint16
	flags []components.Flags
	off   []uint32 // by slot
	rows  []uint32
	atEnd []bool // by slot: it is free when its owner ends
}

// NewTakers returns the takers of a module, nil where the owners of what its
// instructions wait for depend on times: rings and the inputs of collectives.
func NewTakers(m *components.Module, rules place.Rules) *Takers {
	var any components.Flags
	flags := m.Instr.Flags.Slice()
	for _, f := range flags {
		any |= f
	}
	if any&(components.FlagTrigger|components.FlagCollective) != 0 {
		return nil
	}
	uses := rules.Resources(m)
	n := place.Slots(m.Lanes.Len()).Len()
	t := &Takers{rules: rules, lanes: m.Instr.Lane.Slice(), banks: m.Instr.Banks.Slice(), flags: flags, off: make([]uint32, n+1), atEnd: make([]bool, n)}
	visit := func(f func(i uint32, x place.Take)) {
		for i := range flags {
			if flags[i]&components.FlagLoop == 0 {
				for _, x := range uses.MayTake(uint32(i)) {
					f(uint32(i), x)
				}
			}
		}
	}
	visit(func(_ uint32, x place.Take) { t.off[x.Slot+1]++; t.atEnd[x.Slot] = x.AtEnd })
	for k := range n {
		t.off[k+1] += t.off[k]
	}
	t.rows = make([]uint32, t.off[n])
	next := append([]uint32(nil), t.off[:n]...)
	visit(func(i uint32, x place.Take) { t.rows[next[x.Slot]] = i; next[x.Slot]++ })
	return t
}

// serves reports whether the takers are those of a world under its rules.
func (t *Takers) serves(w *components.World, rules place.Rules, run components.Run) bool {
	in := &w.Module.Instr
	if t == nil || w.Why[run] != nil || rules.Banks != t.rules.Banks ||
		!same(in.Lane.Slice(), t.lanes) || !same(in.Banks.Slice(), t.banks) || !same(in.Flags.Slice(), t.flags) {
		return false
	}
	for b := range w.Blocks {
		if w.Blocks[b].Repeat != nil {
			return false
		}
	}
	return true
}

// same reports whether two columns lie in the same memory.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// along binds the instructions of a path, and no others, from the last to the
// first.
type along struct {
	*binder
	t    *Takers
	next []uint32 // by slot: behind the last taker before the row asked for
	kind []Class  // by lane: what its steps are where nothing else makes them another class
}

// bind finds what held row i, which starts at start: cause and best have it
// then. Rows are asked for in falling order.
func (p *along) bind(i uint32, start uint64) {
	if p.exact(i, start) {
		return
	}
	waits := p.uses.Waits(i)
	p.start, p.best, p.cause = start, hold{by: components.NoInstr}, components.CauseStart
	p.resources(i, waits, true)
	anti := p.dependencies(i)
	p.resources(i, waits, false)
	p.consider(anti, components.CauseAnti)
	if p.cause == components.CauseStart && p.best.at < start {
		p.cause = components.CauseModel
	}
}

// resources considers the slots that i waits for, as binder.resources does.
func (p *along) resources(i uint32, waits []place.Wait, lane bool) {
	for _, w := range waits {
		if lane == (w.Cause == components.CauseLane) {
			p.consider(p.owner(w.Slot, i), w.Cause)
		}
	}
}

// exact is bind for a row with a constraint that releases right at its start,
// and reports whether there is one. Of several it is the first in the order of
// binder.constraints: what comes later does not replace it.
func (p *along) exact(i uint32, start uint64) bool {
	found := func(by components.InstrID, cause components.Cause) bool {
		p.best, p.cause = hold{start, by}, cause
		return true
	}
	if start == 0 {
		return found(components.NoInstr, components.CauseStart)
	}
	if p.flags[i]&components.FlagBarrier == 0 {
		if h := p.owner(place.Slot(p.lane[i]), i); h.at == start {
			return found(h.by, components.CauseLane)
		}
	}
	anti := components.NoInstr
	for _, w := range p.preds(i) {
		j, class := w&ecs.TargetMask, uint8(w>>ecs.ClassShift)
		at := p.arrive[j][p.run]
		if class == components.ClassOrdered {
			at = p.ordered(i, j).at
		}
		switch {
		case at != start:
		case class != components.ClassAnti:
			return found(components.InstrID(j), components.CauseOfKind(components.KindOfClass(class)))
		case anti == components.NoInstr && p.run == components.RunA:
			anti = components.InstrID(j)
		}
	}
	for _, w := range p.uses.Waits(i) {
		if w.Cause == components.CauseLane {
			continue
		}
		if h := p.owner(w.Slot, i); h.at == start {
			return found(h.by, w.Cause)
		}
	}
	return anti != components.NoInstr && found(anti, components.CauseAnti)
}

// sum adds the critical path of a block to the classes of its time. It is
// CriticalPath and the classes of Report for worlds that takers serve.
func (t *Takers) sum(sum *[NumClasses]uint64, b *block, times uint64) {
	last, latest := b.latest()
	if last == components.NoInstr {
		sum[ClassSync] += b.span * times
		return
	}
	sum[ClassSync] += (b.span - min(b.span, latest)) * times // behind the last step
	x := &along{newBinder(b, nil), t, append([]uint32(nil), t.off[1:]...), laneClasses(b.m)}
	i, until, via := uint32(last), latest, components.CauseStart
	for {
		start, _ := b.spanOf(i)
		class := x.class(i, via)
		own := until - start
		if class == ClassCompute && via != components.CauseLane {
			// Beyond its issue interval an engine only waits for its own pipeline.
			work := min(b.occupancy(i), own)
			sum[ClassLatency] += (own - work) * times
			own = work
		}
		sum[class] += own * times
		x.bind(i, start)
		if x.best.by == components.NoInstr {
			sum[x.or(i, ClassSync)] += start * times // before the first step
			return
		}
		via, until = x.cause, x.best.at
		i = uint32(x.best.by)
		sum[x.or(i, ClassSync)] += (start - until) * times // a delay of the model
	}
}

// latest returns the row that arrives last, the first of several, and when;
// where nothing takes time the first row that is no loop, NoInstr for none.
func (b *block) latest() (last components.InstrID, at uint64) {
	last = components.NoInstr
	// Mostly one arrives at the end of the block: a search that compares with it
	// is foreseen, one that looks for ever later rows is not.
	for i := b.first; b.span > 0 && i < b.end; i++ {
		if b.arrive[i][b.run] == b.span {
			return components.InstrID(i), b.span
		}
	}
	for i := b.first; i < b.end; i++ {
		if t := b.arrive[i][b.run]; t > at || last == components.NoInstr && !b.loop(i) {
			last, at = components.InstrID(i), t
		}
	}
	return last, at
}

// or is the class of time beside row i: c but for what the runtime put there.
func (p *along) or(i uint32, c Class) Class {
	if ofRuntime(p.m, components.InstrID(i)) {
		return ClassRuntime
	}
	return c
}

// class is stepClass of a step of row i that lets the next one go by via, for
// modules that takers serve.
func (p *along) class(i uint32, via components.Cause) Class {
	class := p.kind[p.lane[i]]
	switch {
	case ofRuntime(p.m, components.InstrID(i)):
		return ClassRuntime
	case via == components.CauseAnti:
		return ClassAnti
	case class == ClassComm, class == ClassMemory:
	case via == components.CauseBarrier, via == components.CauseOrdered, p.flags[i]&(components.FlagBarrier|components.FlagSequencer) != 0:
		return ClassSync
	}
	return class
}

// laneClasses returns the class of the steps of every lane that have neither
// special flags nor a special cause.
func laneClasses(m *components.Module) []Class {
	out := make([]Class, m.Lanes.Len())
	for l := range out {
		switch kind := m.Lanes.Kind.At(l); {
		case kind == components.LaneStream:
			out[l] = ClassComm
		case kind == components.LaneDMAQueue, kind == components.LaneEngine && m.Lanes.Engine.At(l) == components.DMA:
			out[l] = ClassMemory
		case kind == components.LaneThread && OfHost(m, uint16(l)):
			out[l] = ClassHost
		}
	}
	return out
}

// owner returns who had a slot before row i, and when it released.
func (p *along) owner(s place.Slot, i uint32) hold {
	at := p.next[s]
	for at > p.t.off[s] && p.t.rows[at-1] >= i {
		at--
	}
	p.next[s] = at
	for ; at > p.t.off[s]; at-- {
		j := p.t.rows[at-1]
		if j < p.first {
			break
		}
		if int(s) >= p.m.Lanes.Len() && p.lat[j] == 0 {
			continue // without a latency it uses no bank
		}
		start, end := p.spanOf(j)
		if p.t.atEnd[s] {
			return hold{end, components.InstrID(j)}
		}
		return hold{start + p.occupancy(j), components.InstrID(j)}
	}
	return hold{}
}

// Bound returns what bounds one run of a placed world: the class that most of
// its critical paths belongs to, as a report of them has it. takers spares it
// the look at instructions that are on no path; nil for none.
func Bound(ctx context.Context, w *components.World, rules place.Rules, run components.Run, takers *Takers) (Class, error) {
	o := Options{Block: -1, Trips: w.Config.Loops == components.Trips}
	r := &PathReport{}
	if takers.serves(w, rules, run) {
		rows, times := o.blocks(w.Module)
		for n, row := range rows {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			takers.sum(&r.Classes, newBlock(w, rules, run, row), times[n])
		}
	} else {
		a, err := Bind(ctx, w, rules, run)
		if err != nil {
			return 0, err
		}
		paths, err := CriticalPath(ctx, w, rules, a, o)
		if err != nil {
			return 0, err
		}
		for _, p := range paths {
			r.ends(w.Module, p)
			n := 0
			p.Visit(func(s Step) { classify(&r.Classes, w.Module, p, s, p.GapCause(n)); n++ })
		}
	}
	bound, _ := r.Bound()
	return bound, nil
}
