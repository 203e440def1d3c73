package attribute

import (
	"context"
	"unsafe"

	"perfsim/components"
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

// serves tells whether the takers are those of a world under its rules.
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

// same tells whether two columns lie in the same memory.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// along binds the instructions of a path, and no others, from the last to the
// first.
type along struct {
	*binder
	t    *Takers
	next []uint32 // by slot: behind the last taker before the row asked for
}

// bind finds what held row i, which starts at start: cause, best and so on have
// it then. It considers what binder.constraints does, in the same order, up to
// the first that releases at the start: nothing later replaces it. Rows are
// asked for in falling order.
func (p *along) bind(i uint32, start uint64) {
	p.start, p.best, p.cause = start, hold{by: components.NoInstr}, components.CauseStart
	waits := p.uses.Waits(i)
	p.resources(i, waits, components.CauseLane, components.CauseLane)
	if p.best.at == start {
		return
	}
	anti := p.dependencies(i)
	if p.best.at == start {
		return
	}
	p.resources(i, waits, components.CauseBank, components.CauseBarrier)
	p.consider(anti, components.CauseAnti)
	if p.cause == components.CauseStart && p.best.at < start {
		p.cause = components.CauseModel
	}
}

// resources considers the slots that i waits for by the causes from to to.
func (p *along) resources(i uint32, waits []place.Wait, from, to components.Cause) {
	for _, w := range waits {
		if w.Cause >= from && w.Cause <= to {
			p.consider(p.owner(w.Slot, i), w.Cause)
		}
	}
}

// sum adds the critical path of a block to a report, without its patterns and
// places. It is CriticalPath and Report for worlds that takers serve.
func (t *Takers) sum(r *PathReport, b *block, times uint64) {
	p := &Path{Block: b.row, Times: times, b: b, scale: newScale(b, nil)}
	last, latest := components.NoInstr, uint64(0)
	for i, at := range b.arrive[b.first:b.end] {
		if at[b.run] > latest {
			last, latest = components.InstrID(b.first)+components.InstrID(i), at[b.run]
		}
	}
	for i := b.first; last == components.NoInstr && i < b.end; i++ { // nothing takes time
		if !b.loop(i) {
			last = components.InstrID(i)
		}
	}
	p.Tail = b.span - min(b.span, latest)
	if last == components.NoInstr {
		p.Lead, p.Tail = b.span, 0
		r.ends(b.m, p)
		return
	}
	x := &along{newBinder(b, nil), t, append([]uint32(nil), t.off[1:]...)}
	i, until, via, gap := uint32(last), latest, components.CauseStart, uint64(0)
	for {
		start, _ := b.spanOf(i)
		s := p.counted(step{Instr: components.InstrID(i), From: start, Until: until, Via: via, Gap: gap, Trips: 1, Own: until - start})
		r.step(b.m, p, s, components.CauseModel) // a trigger's transfer makes another cause, and there are none
		x.bind(i, start)
		if x.best.by == components.NoInstr {
			p.Lead, p.Steps = start, []components.InstrID{components.InstrID(i), last}
			break
		}
		via, until = x.cause, x.best.at
		gap = start - until
		i = uint32(x.best.by)
	}
	r.ends(b.m, p)
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
	r := &PathReport{Lanes: make([]uint64, w.Module.Lanes.Len()), Opcodes: make([]uint64, w.Module.NumOpcodes())}
	if takers.serves(w, rules, run) {
		rows, times := o.blocks(w.Module)
		for n, row := range rows {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			takers.sum(r, newBlock(w, rules, run, row), times[n])
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
			p.Visit(func(s Step) { r.step(w.Module, p, s, p.GapCause(n)); n++ })
		}
	}
	bound, _ := r.Bound()
	return bound, nil
}
