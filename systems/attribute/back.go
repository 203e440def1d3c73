package attribute

import (
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// entries returns for every body that repeats, and every lane that it uses,
// the last instruction on the lane before the body, NoInstr where there is
// none.
func entries(b *block) [][]components.InstrID {
	if len(b.repeats) == 0 {
		return nil
	}
	last := make([]components.InstrID, b.m.Lanes.Len())
	for l := range last {
		last[l] = components.NoInstr
	}
	out := make([][]components.InstrID, 0, len(b.repeats))
	for i := b.first; i < b.end; i++ {
		for n := len(out); n < len(b.repeats) && b.repeats[n].First == i; n++ {
			var at []components.InstrID
			for _, l := range b.repeats[n].Lanes {
				at = append(at, last[l.Lane])
			}
			out = append(out, at)
		}
		if !b.loop(i) {
			last[b.lane[i]] = components.InstrID(i)
		}
	}
	return out
}

// around returns the innermost repeated body that row i lies in and that q
// lies in too (both) or does not. It is -1 where there is none.
func (b *block) around(i uint32, q components.InstrID, both bool) int {
	// Those that start at i or before, the innermost last.
	n, _ := slices.BinarySearchFunc(b.repeats, i+1, func(r *components.Repeat, i uint32) int {
		if r.First < i {
			return -1
		}
		return 1
	})
	for n--; n >= 0; n-- {
		r := b.repeats[n]
		if i >= r.End {
			// It may lie in one around this one, or in none.
			continue
		}
		in := q != components.NoInstr && r.First <= uint32(q) && uint32(q) < r.End
		if in == both {
			return n
		}
		if in {
			return -1 // so do those around
		}
	}
	return -1
}

// back adds the steps from row i, which is released at until, back to the first,
// the last first, and returns what is before it.
func (p *Path) back(i uint32, until uint64) (lead uint64) {
	via, gap := components.CauseStart, uint64(0)
	for {
		start, _ := p.b.spanOf(i)
		p.steps = append(p.steps, step{Instr: components.InstrID(i), From: start, Until: until, Via: via, Gap: gap, Trips: 1, Own: until - start})
		q := p.a.Pred.At(int(i))
		if n := p.crosses(i, q); n >= 0 {
			for {
				var lane uint16
				lane, q, until = p.entry(n, i, start)
				p.hidden(p.b.repeats[n], p.turn(n, i), until, start)
				// Before the first iteration may have been the iteration before of a
				// loop around.
				m := p.outside(n)
				if m < 0 || q != components.NoInstr && uint32(q) >= p.b.repeats[m].First {
					break
				}
				if k := laneOf(p.b.repeats[m], lane); k >= 0 {
					i = p.b.repeats[m].Lanes[k].Last
				}
				n, start = m, until
			}
			if q == components.NoInstr {
				return until
			}
			via, gap = components.CauseLane, 0
			i = uint32(q)
			continue
		}
		// A model that records causes does so in the first iteration.
		var hidden uint64
		for n := p.around(i, q); n >= 0 && p.b.w.Why[p.b.run] != nil; n = p.outer(n, q) {
			r := p.b.repeats[n]
			shift := uint64(0)
			if k := laneOf(r, p.b.lane[i]); k >= 0 {
				shift = min(r.Lanes[k].Shift[p.b.run], start-hidden)
			}
			p.hidden(r, p.seen(r), start-hidden-shift, start-hidden)
			hidden += shift
		}
		if q == components.NoInstr {
			return start - hidden
		}
		via, gap = p.a.Cause.At(int(i)), 0
		if p.a.Gap.Len() > 0 {
			gap = p.a.Gap.At(int(i))
		}
		start -= hidden
		until = start - min(start, less(gap, hidden))
		if from, _ := p.b.spanOf(uint32(q)); hidden > 0 && from > until {
			until = min(from, start)
		}
		gap = start - until
		i = uint32(q)
	}
}

// around returns the innermost repeated body that i lies in and q does not.
func (p *Path) around(i uint32, q components.InstrID) int {
	if len(p.b.repeats) == 0 {
		return -1
	}
	return p.b.around(i, q, false)
}

// outer returns the innermost repeated body around body n that q does not lie
// in.
func (p *Path) outer(n int, q components.InstrID) int {
	n = p.outside(n)
	if n >= 0 && q != components.NoInstr && p.b.repeats[n].First <= uint32(q) && uint32(q) < p.b.repeats[n].End {
		return -1
	}
	return n
}

// seen returns the steps in body r that the path came by.
func (p *Path) seen(r *components.Repeat) []part {
	k := len(p.steps)
	for k > 0 && r.First <= uint32(p.steps[k-1].Instr) && uint32(p.steps[k-1].Instr) < r.End {
		k--
	}
	var out []part
	for _, s := range p.steps[k:] {
		out = append(out, part{row: uint32(s.Instr), own: s.Own, times: s.Trips, via: s.Via})
	}
	return out
}

// crosses returns the repeated body in which row i was held by q in the
// iteration before, -1 where it was not.
func (p *Path) crosses(i uint32, q components.InstrID) int {
	if len(p.b.repeats) == 0 || q == components.NoInstr || uint32(q) < i || p.b.w.Why[p.b.run] != nil {
		return -1
	}
	return p.b.around(i, q, true)
}

// outside returns the innermost repeated body around body n, -1 for none.
func (p *Path) outside(n int) int {
	r := p.b.repeats[n]
	for n--; n >= 0; n-- {
		if p.b.repeats[n].End >= r.End {
			return n
		}
	}
	return -1
}

// laneOf returns the place of a lane in what the body uses, -1 for none.
func laneOf(r *components.Repeat, lane uint16) int {
	for k, l := range r.Lanes {
		if l.Lane == lane {
			return k
		}
	}
	return -1
}

// entry returns what was before the first iteration of body n, as far as the
// path that reaches row i is concerned, the lane and when it released: what kept
// the lane of i or, where its first iteration waited for another lane that
// started at once, that lane.
func (p *Path) entry(n int, i uint32, start uint64) (lane uint16, q components.InstrID, at uint64) {
	r := p.b.repeats[n]
	own := max(laneOf(r, p.b.lane[i]), 0)
	best, limit := -1, r.Lanes[own].Start[p.b.run]
	for k, l := range r.Lanes {
		t := l.Before[p.b.run]
		if t > limit || l.Start[p.b.run] != t || t > start {
			continue
		}
		if best < 0 || t > r.Lanes[best].Before[p.b.run] || k == own && t == limit {
			best = k
		}
	}
	if best < 0 {
		best = own
	}
	lane, at, q = r.Lanes[best].Lane, min(r.Lanes[best].Before[p.b.run], start), p.entries[n][best]
	if q != components.NoInstr {
		if from, _ := p.b.spanOf(uint32(q)); from > at {
			q = components.NoInstr
		}
	}
	if q == components.NoInstr && p.outside(n) < 0 {
		at = 0
	}
	return lane, q, at
}

// part is a row's part in an iteration of a body: it takes own ns, so many
// times.
type part struct {
	row   uint32
	own   uint64
	times uint64
	via   components.Cause
	// weight is the time of it in all: own, times over.
	weight uint64
}

// turn returns the chain of constraints, the last first, by which an iteration
// of body n follows from the one before, as it ends in what holds row i: the
// steps between two instructions that are held from the iteration before.
func (p *Path) turn(n int, i uint32) []part {
	r := p.b.repeats[n]
	var chain []part
	at := map[uint32]int{} // rows that are held from the iteration before: where the chain goes on
	again := func() (k int, ok bool) {
		if k, ok = at[i]; !ok {
			at[i] = len(chain)
		}
		return k, ok
	}
	for {
		q := p.a.Pred.At(int(i))
		if q == components.NoInstr || uint32(q) < r.First || uint32(q) >= r.End {
			return chain // held from outside the loop
		}
		cause := p.a.Cause.At(int(i))
		start, _ := p.b.spanOf(i)
		m := p.crosses(i, q)
		switch {
		case m < 0:
			from, _ := p.b.spanOf(uint32(q))
			chain = append(chain, part{row: uint32(q), own: start - min(start, from), times: 1, via: cause})
			i = uint32(q)
			continue
		case m == n:
			if k, ok := again(); ok {
				return chain[k:]
			}
			chain = append(chain, part{row: uint32(q), own: p.holds(uint32(q), cause), times: 1, via: cause})
			i = uint32(q)
			continue
		}
		// A loop inside: as often as it runs, then on with what was before it, in
		// this iteration or the one before.
		for _, x := range p.turn(m, i) {
			x.times = ecs.MulSat(x.times, p.b.repeats[m].Trips-1)
			chain = append(chain, x)
		}
		lane, before, until := p.entry(m, i, start)
		if before != components.NoInstr && uint32(before) >= r.First {
			from, _ := p.b.spanOf(uint32(before))
			chain = append(chain, part{row: uint32(before), own: until - min(until, from), times: 1, via: components.CauseLane})
			i = uint32(before)
			continue
		}
		k := laneOf(r, lane)
		if k, ok := again(); ok {
			return chain[k:]
		}
		if k < 0 {
			return chain
		}
		i = r.Lanes[k].Last
		chain = append(chain, part{row: i, own: p.b.occupancy(i), times: 1, via: components.CauseLane})
	}
}

// holds is how long row q holds what cause says.
func (p *Path) holds(q uint32, cause components.Cause) uint64 {
	switch cause {
	case components.CauseRing:
		if p.b.flags[q]&components.FlagTrigger != 0 {
			return place.TransferIssue(p.b.m, &p.b.rules, q)
		}
	case components.CauseCoupling:
		if p.b.m.Instr.Banks.At(int(q)) != 0 {
			return p.b.duration(q)
		}
	}
	return p.b.occupancy(q)
}

// hidden adds what the iterations before the last of body r take, from from to
// to, as the steps of a turn, the last first.
func (p *Path) hidden(r *components.Repeat, turn []part, from, to uint64) {
	if from >= to || len(turn) == 0 {
		// Nothing is known of them: they are the step's before which they are.
		if s := &p.steps[len(p.steps)-1]; from < to {
			s.From = from
		}
		return
	}
	// Rows that come several times make one step, in the order of their first.
	var parts []part
	seen := map[uint32]int{}
	var sum uint64
	for _, x := range turn {
		x.own = max(x.own, 1)
		x.weight = ecs.MulSat(x.own, x.times)
		sum = ecs.AddSat(sum, x.weight)
		if k, ok := seen[x.row]; ok {
			parts[k].times = ecs.AddSat(parts[k].times, x.times)
			parts[k].weight = ecs.AddSat(parts[k].weight, x.weight)
			continue
		}
		seen[x.row] = len(parts)
		parts = append(parts, x)
	}
	d := divider{whole: sum, counted: to - from}
	for _, x := range parts {
		t := d.part(x.weight)
		p.steps = append(p.steps, step{Instr: components.InstrID(x.row), From: to - t, Until: to, Via: x.via, Own: x.own, Trips: ecs.MulSat(x.times, r.Trips-1)})
		to -= t
	}
}
