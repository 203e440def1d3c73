package explain

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
	"perfsim/systems/whatif"
)

// worths predicts what the advice is worth: the latency without what it is
// about. Advice that the model cannot leave out has no worth. What is worth most
// comes first.
func (x *Analysis) worths(ctx context.Context, list []Lint) error {
	if !x.whole() {
		return nil
	}
	base := x.World.Latency(components.RunA)
	for k := range list {
		l := &list[k]
		if l.Try == "" && l.change == nil && l.less == nil {
			continue
		}
		var least uint64
		switch {
		case l.less != nil:
			least = l.less.ns // tried with the causes
		case l.Try != "":
			a, err := whatif.Parse(l.Try)
			if err != nil {
				return err
			}
			r, err := whatif.Sweep(ctx, x.World, x.Engine, [][]whatif.Setting{a.Values}, nil)
			if err != nil {
				continue // the machine lacks the constant
			}
			least = r.Points[0].NS
		default:
			c := scenario.Fork(x.World)
			l.change(c)
			if l.refill {
				scenario.OwnCosts(c, false)
				if err := x.Engine.Cost(ctx, c); err != nil {
					return err
				}
			}
			if err := x.Engine.Place(ctx, c); err != nil {
				return err
			}
			least = c.Latency(components.RunA)
		}
		worth := base - min(base, least)
		l.Worth, l.WorthShare = &worth, new(share(worth, base))
	}
	slices.SortStableFunc(list, func(a, b Lint) int { return cmp.Compare(b.worth(), a.worth()) })
	return nil
}

// worth orders advice: 0 where nothing is known.
func (l *Lint) worth() uint64 {
	if l.Worth == nil {
		return 0
	}
	return *l.Worth
}

// without has the advice be worth what the rows that pick chooses take. A model
// that times work by itself is given rows of one element and one byte: what they
// cost at least.
func (x *Analysis) without(l *Lint, pick func(i int) bool) *Lint {
	if !x.timesWork() {
		l.less = &trial{less: place.Variant{Pick: func(lo int, hit []uint8, bit uint8) {
			for n := range hit {
				if pick(lo + n) {
					hit[n] |= bit
				}
			}
		}}}
		return l
	}
	l.refill = true
	l.change = func(c *components.World) {
		in := &c.Module.Instr
		in.Elems = leastOf(in.Elems, pick)
		if in.OutElems.Len() > 0 {
			in.OutElems = leastOf(in.OutElems, pick)
		}
		if in.DMABytes.Len() > 0 {
			in.DMABytes = leastOf(in.DMABytes, pick)
		}
	}
	return l
}

// leastOf returns a copy of a column with 1 in the rows that pick chooses.
func leastOf[T uint16 | uint32 | uint64](c ecs.Column[T], pick func(i int) bool) ecs.Column[T] {
	out := ecs.NewColumn[T](c.Name())
	values := c.Slice()
	for i := range out.Resize(len(values)) {
		v := values[i]
		if v > 1 && pick(i) {
			v = 1
		}
		out.Set(i, v)
	}
	return out
}

// longRows makes the rows of short DMA transfers as long as those that cost no
// more than their bytes.
func (x *Analysis) longRows() func(c *components.World) {
	rows := x.World.Module.Instr.DMARow.Slice()
	return func(c *components.World) {
		col := ecs.NewColumn[uint32](c.Module.Instr.DMARow.Name())
		for i, row := range col.Resize(len(rows)) {
			if row = rows[i]; row > 0 {
				row = max(row, shortRow)
			}
			col.Set(i, row)
		}
		c.Module.Instr.DMARow = col
	}
}

// withoutFalse leaves out the dependencies whose ends touch no common memory;
// nil where the model follows semaphores.
func (x *Analysis) withoutFalse() func(c *components.World) {
	if x.semaphores() {
		return nil
	}
	m := x.World.Module
	return func(c *components.World) {
		scenario.Without(c, func(consumer uint32, _ int, word uint32) bool {
			class := uint8(word >> ecs.ClassShift)
			return isFalse(m, components.InstrID(word&ecs.TargetMask), components.InstrID(consumer), components.CauseOfKind(components.KindOfClass(class)))
		})
	}
}
