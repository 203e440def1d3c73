package attribute

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// Slack returns for every instruction by how many ns its start could slip,
// everything else following by the rules, before its block ends later.
//
// Lanes stay in program order: an instruction that slips delays the ones
// behind it on its lane, the next users of its PSUM banks, coupled engines
// and full rings, and all of that counts. So the slack is exact in the
// reference model, for one instruction at a time: two instructions on one
// path share theirs. Durations are taken as they are. Where they depend on
// the time (collectives that share bandwidth, a clock governor) or where a
// model starts instructions otherwise than lanes and dependencies say (the
// calibrated one), it is an estimate; what held an instruction is then taken
// to go on holding it as long. Of a loop that is placed as often as it runs it
// is the last iteration that slips; what is before the loop follows from the
// first.
func Slack(ctx context.Context, w *components.World, rules place.Rules, a *components.Attribution) ([]uint64, error) {
	late := make([]uint64, w.Module.Instr.Len())
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	for _, row := range w.Module.TopBlocks() {
		g.Go(func() error {
			s := newSlacker(newBlock(w, rules, a.Run, row), a, late)
			return s.walk(ctx)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return late, nil
}

const never = ^uint64(0)

// slacker walks a block backwards. For every resource it keeps the latest time
// at which the instructions that wait for its present owner need it.
type slacker struct {
	*block
	a    *components.Attribution
	late []uint64 // latest start; turned into slack as the walk passes

	slots []uint64 // by place.Slot
	rings map[uint16][]uint64
	// ready is the latest time at which the inputs of a collective are needed
	// by ordered edges.
	ready map[uint32]uint64
}

func newSlacker(b *block, a *components.Attribution, late []uint64) *slacker {
	s := &slacker{block: b, a: a, late: late, slots: nevers(b.slotsOf().Len()), rings: map[uint16][]uint64{}, ready: map[uint32]uint64{}}
	for i := b.first; i < b.end; i++ {
		late[i] = never
	}
	return s
}

func nevers(n int) []uint64 {
	out := make([]uint64, n)
	for i := range out {
		out[i] = never
	}
	return out
}

// less returns t - d, or 0.
func less(t, d uint64) uint64 {
	if t == never {
		return never
	}
	return t - min(t, d)
}

func (s *slacker) walk(ctx context.Context) error {
	order := s.order()
	for n := s.end - s.first; n > 0; {
		n--
		i := s.first + n
		if order != nil {
			i = order[n]
		}
		if n%cancelEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if s.loop(i) {
			s.late[i] = 0
			continue
		}
		start, end := s.spanOf(i)
		dur := end - start
		late := min(s.late[i], less(s.span, dur))
		late = s.released(i, late, dur)
		late = max(late, start)
		s.needs(i, late)
		s.late[i] = late - start
		s.outward(i)
	}
	return nil
}

// outward moves what a body that repeats needs from what is before it to the
// time of its first iteration, where i is the first of the body on its lane.
func (s *slacker) outward(i uint32) {
	for n := s.around(i, components.NoInstr, false); n >= 0 && s.repeats[n].First <= i; n-- {
		r := s.repeats[n]
		if i >= r.End {
			continue
		}
		most := uint64(0)
		for _, l := range r.Lanes {
			most = max(most, l.Shift[s.run])
			if l.First == i {
				for _, slot := range [...]place.Slot{s.slotsOf().Lane(l.Lane), s.slotsOf().PSUM(l.Lane)} {
					s.slots[slot] = less(s.slots[slot], l.Shift[s.run])
				}
			}
		}
		if r.First != i {
			continue
		}
		for _, b := range r.Banks {
			slot := s.slotsOf().BankAt(int(b.Slot))
			s.slots[slot] = less(s.slots[slot], most)
		}
		for _, q := range r.Rings {
			for k := range s.rings[q.Key] {
				s.rings[q.Key][k] = less(s.rings[q.Key][k], most)
			}
		}
	}
}

// order returns the rows in the order of their starts where the model has an
// order of its own; nil stands for program order.
func (s *slacker) order() []uint32 {
	if s.a.Visible.Len() == 0 {
		return nil
	}
	out := make([]uint32, 0, s.end-s.first)
	for i := s.first; i < s.end; i++ {
		out = append(out, i)
	}
	slices.SortFunc(out, func(x, y uint32) int {
		a, _ := s.spanOf(x)
		b, _ := s.spanOf(y)
		return cmp.Or(cmp.Compare(a, b), cmp.Compare(x, y))
	})
	return out
}

// need records that p has to release at time t, w after its start. Rows that
// the walk has passed, because they start later, keep their slack.
func (s *slacker) need(i, p uint32, t, w uint64) {
	if s.a.Visible.Len() > 0 {
		from, _ := s.spanOf(i)
		at, _ := s.spanOf(p)
		if at > from || at == from && p > i {
			return
		}
	}
	s.late[p] = min(s.late[p], less(t, w))
}

// result is how long behind its start what waits for p may go on.
func (s *slacker) result(p uint32) uint64 {
	switch {
	case s.a.Visible.Len() > 0:
		start, _ := s.spanOf(p)
		return s.a.Visible.At(int(p)) - start
	case s.flags[p]&components.FlagTrigger != 0:
		return 0
	}
	return s.duration(p)
}

// released bounds the latest start of i by those that wait for what it holds,
// and forgets them: an earlier owner does not hold them.
func (s *slacker) released(i uint32, late, dur uint64) uint64 {
	occ := s.occupancy(i)
	for _, t := range s.uses.Takes(i) {
		held := occ
		if t.AtEnd {
			held = dur
		}
		late = min(late, less(s.slots[t.Slot], held))
		s.slots[t.Slot] = never
	}
	if s.flags[i]&components.FlagTransfer != 0 {
		if key, depth := s.rules.Ring(s.m, i-1); depth > 0 && len(s.rings[key]) >= depth {
			late = min(late, less(s.rings[key][0], occ))
		}
	}
	if key, depth := s.rules.Ring(s.m, i); depth > 0 {
		q := s.rings[key]
		if len(q) >= depth {
			if !place.HasTransfer(s.m, i) { // else the row of the transfer waits
				late = min(late, less(q[0], place.TransferIssue(s.m, &s.rules, i)))
			}
			q = q[1:]
		}
		start, _ := s.spanOf(i)
		s.rings[key] = append(q, max(late, start))
	}
	return late
}

// needs records until when i needs what it waits for.
func (s *slacker) needs(i uint32, late uint64) {
	inputs := late
	if s.flags[i]&components.FlagCollective != 0 {
		if r, ok := s.ready[i]; ok {
			inputs = min(inputs, r)
		}
	}
	for _, w := range s.preds(i) {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		switch {
		case class == components.ClassAnti && s.run == components.RunB:
		case class == components.ClassOrdered:
			s.needOrdered(i, p, inputs)
		default:
			s.need(i, p, inputs, s.result(p))
		}
	}
	if s.a.Visible.Len() > 0 || s.a.Gap.Len() > 0 && s.a.Gap.At(int(i)) > 0 {
		if p := s.a.Pred.At(int(i)); p != components.NoInstr {
			start, _ := s.spanOf(i)
			before, _ := s.spanOf(uint32(p))
			s.need(i, uint32(p), late, start-min(start, before))
		}
	}
	for _, w := range s.uses.Waits(i) {
		s.slots[w.Slot] = min(s.slots[w.Slot], late)
	}
}

// needOrdered records that i waits for p in order: for when p leaves its
// lane, or behind a collective for when its inputs are there.
func (s *slacker) needOrdered(i, p uint32, late uint64) {
	switch s.rules.Ordered(s.m, i, p) {
	case place.AtInputs:
		if r, ok := s.ready[p]; !ok || late < r {
			s.ready[p] = late
		}
	case place.AtEnd:
		s.need(i, p, late, s.duration(p))
	default:
		s.need(i, p, late, s.occupancy(p))
	}
}
