package sched

import (
	"context"
	"math/bits"
	"slices"

	"perfsim/ecs"
	"perfsim/systems/place"
)

// lane is the queue of one engine: units that are ready some time, and those
// that are ready when the engine is next free.
type lane struct {
	pending ecs.Heap[int32] // by ready time
	avail   ecs.Heap[int32] // by priority
	banks   uint16
	// The unit that would go next and when it would start.
	best  int32
	start uint64
	fresh bool
}

// look is how many of the best candidates are compared when the best cannot
// start at once.
const look = 8

// timeAware is policy 3 for one segment. The stepper has placed everything
// before it.
type timeAware struct {
	g      *graph
	step   *place.Stepper
	lanes  []*lane
	active []uint16
}

// run schedules all units and returns the rows in their new order.
func (t *timeAware) run(ctx context.Context) ([]uint32, error) {
	g := t.g
	g.heights(g.latencyOf, 1<<62)
	out := make([]uint32, 0, len(g.members))
	for u := range g.units {
		if g.units[u].left == 0 {
			t.enter(int32(u))
		}
	}
	for steps := 0; len(out) < len(g.members); steps++ {
		if steps&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		l := t.pick()
		q := t.lanes[l]
		u := q.best
		t.remove(q, u)
		for _, r := range g.of(u) {
			if err := t.step.Place(r); err != nil {
				return nil, err
			}
			out = append(out, r)
			if b := g.m.Instr.Banks.At(int(r)) >> 8; b != 0 {
				q.banks = b
			}
		}
		q.fresh = false
		for _, v := range g.after(u) {
			if g.units[v].left--; g.units[v].left == 0 {
				t.enter(v)
			}
		}
	}
	return out, nil
}

// enter puts a unit whose producers are all placed into its lane's queue.
func (t *timeAware) enter(u int32) {
	x := &t.g.units[u]
	x.ready = t.step.Ready(t.g.of(u)[0])
	q := t.lanes[x.lane]
	if q == nil {
		q = &lane{}
		q.pending.Less = func(a, b int32) bool {
			x, y := &t.g.units[a], &t.g.units[b]
			if x.ready != y.ready {
				return x.ready < y.ready
			}
			return a < b
		}
		q.avail.Less = func(a, b int32) bool {
			x, y := &t.g.units[a], &t.g.units[b]
			if x.height != y.height {
				return x.height > y.height
			}
			return a < b
		}
		t.lanes[x.lane] = q
		t.active = append(t.active, x.lane)
	}
	q.pending.Push(u)
	if !q.fresh || x.ready <= q.start {
		q.fresh = false
	}
}

// pick returns the lane whose next unit starts first. Starts only move back
// as other lanes go on, so the first is looked at again before it is taken.
func (t *timeAware) pick() uint16 {
	for {
		found := false
		var best uint16
		for _, l := range t.active {
			q := t.lanes[l]
			if q.pending.Len()+q.avail.Len() == 0 {
				continue
			}
			if !q.fresh {
				t.choose(l, q)
			}
			if !found || t.before(q, t.lanes[best]) {
				best, found = l, true
			}
		}
		q := t.lanes[best]
		if s := t.step.Earliest(t.g.of(q.best)[0]); s == q.start {
			return best
		}
		t.choose(best, q)
		// Where the choice is the same with the same start now, it is taken the
		// next time round.
	}
}

// before reports whether the next unit of a goes before that of b.
func (t *timeAware) before(a, b *lane) bool {
	if a.start != b.start {
		return a.start < b.start
	}
	x, y := &t.g.units[a.best], &t.g.units[b.best]
	if x.height != y.height {
		return x.height > y.height
	}
	return a.best < b.best
}

// choose finds the unit that goes next on a lane.
func (t *timeAware) choose(l uint16, q *lane) {
	q.fresh = true
	at := t.step.Free(l)
	if q.avail.Len() == 0 {
		at = max(at, t.g.units[q.pending.Top()].ready)
	}
	for {
		for q.pending.Len() > 0 && t.g.units[q.pending.Top()].ready <= at {
			q.avail.Push(q.pending.Pop())
		}
		q.best, q.start = t.among(q, at)
		if q.pending.Len() == 0 || t.g.units[q.pending.Top()].ready > q.start {
			break
		}
		at = q.start // meanwhile others get ready: they count too
	}
	t.wait(q)
}

// wait leaves the engine idle for a unit that gets ready while the chosen one
// would run, where that ends earlier: of the two orders, the one with the
// smaller end of both chains is taken.
func (t *timeAware) wait(q *lane) {
	c := &t.g.units[q.best]
	next := q.start + t.issueOf(q.best)
	best, start := q.best, q.start
	least := uint64(1<<64 - 1)
	for k := 0; k < q.pending.Len() && k < 2*look-1; k++ {
		p := q.pending.Items[k]
		x := &t.g.units[p]
		if x.ready >= next || x.height <= c.height {
			continue
		}
		s := t.step.Earliest(t.g.of(p)[0])
		first := max(q.start+c.height, max(next, s)+x.height)
		other := max(s+x.height, s+t.issueOf(p)+c.height)
		if other < first && (other < least || other == least && p < best) {
			best, start, least = p, s, other
		}
	}
	q.best, q.start = best, start
}

// issueOf is how long a unit keeps its engine.
func (t *timeAware) issueOf(u int32) uint64 {
	sum := uint64(0)
	for _, r := range t.g.of(u) {
		sum += uint64(t.g.m.Instr.Issue.At(int(r)))
	}
	return sum
}

// among compares the best candidates of a lane that is free at time at.
func (t *timeAware) among(q *lane, at uint64) (int32, uint64) {
	var popped [look]int32
	n := 0
	best, start := int32(-1), uint64(0)
	var skipped = -1
	for n < look && q.avail.Len() > 0 {
		u := q.avail.Pop()
		popped[n] = u
		n++
		first := t.g.of(u)[0]
		if !t.step.QueueReady(first, at) {
			if skipped < 0 {
				skipped = n - 1
			}
			continue
		}
		s := t.step.Earliest(first)
		switch {
		case best < 0 || s < start && start > at:
			best, start = u, s
		case t.g.units[u].height == t.g.units[best].height && s <= max(start, at) && t.switches(q, u) < t.switches(q, best):
			best, start = u, s
		}
		// Nothing of less height can be better than one that starts at once,
		// except that it stays in its bank.
		if start <= at && (q.avail.Len() == 0 || t.g.units[q.avail.Top()].height < t.g.units[best].height) {
			break
		}
	}
	if best < 0 { // no candidate may start: the best one starts nevertheless
		best = popped[max(skipped, 0)]
		start = t.step.Earliest(t.g.of(best)[0])
	}
	for _, u := range popped[:n] {
		q.avail.Push(u)
	}
	return best, start
}

// switches counts the PSUM banks that unit u writes and the lane does not hold.
func (t *timeAware) switches(q *lane, u int32) int {
	b := t.g.m.Instr.Banks.At(int(t.g.of(u)[0])) >> 8
	return bits.OnesCount16(b &^ q.banks)
}

// remove takes the unit from the lane's queue: it is among the first of those
// that are ready, or one that the lane waits for.
func (t *timeAware) remove(q *lane, u int32) {
	var popped [look]int32
	n := 0
	found := false
	for n < look && q.avail.Len() > 0 && !found {
		popped[n] = q.avail.Pop()
		found = popped[n] == u
		n++
	}
	for _, x := range popped[:n] {
		if x != u {
			q.avail.Push(x)
		}
	}
	if !found {
		q.pending.Delete(slices.Index(q.pending.Items, u))
	}
}
