package place

import (
	"context"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Loops that count their trips. Where Config.Loops is "trips" the body of a
// loop is placed again and again, on from where it left lanes, banks and
// queues, as if it were written out, until its iterations are alike: every lane
// then moves on by the same time from one iteration (or from one group of a few
// iterations) to the next as it did before. The iterations between are leapt
// over, all that the body uses moves on by as many of its own periods, and the
// last iterations are placed again. They show whether the period still holds
// behind the leap; where it does not, a lane caught up with another one on the
// way, and the leap was too wide. The events of a body are those of its last
// iteration.

// maxPeriod is how many iterations may make a period: lanes that hand work to
// each other crosswise take turns.
const maxPeriod = 4

// farthest is the largest time that is placed; 2^62 ns are 146 years.
const farthest = 1 << 62

// looper is the state of a walk that counts trips, in addition to the kernel.
type looper struct {
	// budget bounds how many rows are placed again: loops within loops within
	// loops take the power of their depth. Where it is spent an iteration stands
	// for all that follow.
	budget int64
	mark   []uint32 // by lane: its place in the list of a body being looked at
	uses   map[int]*use
	// beyond says that a run went beyond farthest.
	beyond [2]bool
}

// trips is block with loops as often as they run.
func (k *kernel) trips(ctx context.Context, b int) error {
	t := &k.m.Blocks
	first, end := t.First.At(b), t.End.At(b)
	k.loop = &looper{budget: 32*int64(end-first) + 1<<20, mark: make([]uint32, len(k.free)), uses: map[int]*use{}}
	inner := b + 1
	if err := k.region(ctx, first, end, &inner); err != nil {
		return err
	}
	r := &k.w.Blocks[b]
	r.LatencyTrips = k.last
	for x, far := range k.loop.beyond {
		if far {
			r.LatencyTrips[x] = math.MaxUint64
		}
	}
	return nil
}

// use has the resources that the rows of a body use.
type use struct {
	lanes []laneUse
	slots []int    // PSUM banks
	rings []uint16 // keys
	// depths is how many transfers of each ring are looked at, size how many
	// times in all.
	depths []int
	size   int
	// pushes is how many transfers an iteration triggers, by ring.
	pushes []int
	// streams says that there are collectives which share bandwidth.
	streams bool
}

type laneUse struct {
	lane        uint16
	first, last uint32 // rows
}

// use lists what the body of block row b uses.
func (k *kernel) use(b int) *use {
	if u := k.loop.uses[b]; u != nil {
		return u
	}
	u := &use{}
	k.loop.uses[b] = u
	in := &k.m.Instr
	first, end := k.m.Blocks.First.At(b), k.m.Blocks.End.At(b)
	lanes, flags, mark := in.Lane.View(int(first), int(end)), in.Flags.View(int(first), int(end)), k.loop.mark
	chained := false
	for n, l := range lanes {
		f := flags[n]
		if f&components.FlagLoop != 0 {
			continue
		}
		i := first + uint32(n)
		// A mark of another body points at another lane or behind the list.
		if p := mark[l]; int(p) < len(u.lanes) && u.lanes[p].lane == l {
			u.lanes[p].last = i
		} else {
			mark[l] = uint32(len(u.lanes))
			u.lanes = append(u.lanes, laneUse{l, i, i})
		}
		u.streams = u.streams || k.rules.Shared(k.m, i)
		chained = chained || Chained(f, in.Banks.At(int(i)))
		if key, depth := k.rules.Ring(k.m, i); depth > 0 && !slices.Contains(u.rings, key) {
			u.rings = append(u.rings, key)
			u.depths = append(u.depths, min(depth, ringLook))
			u.size += min(depth, ringLook)
		}
	}
	u.pushes = make([]int, len(u.rings))
	if k.rules.Banks || k.rules.Couplings {
		var seen []uint16
		for _, l := range u.lanes {
			if c := l.lane / components.LanesPerCore; !slices.Contains(seen, c) {
				seen = append(seen, c)
				for n := range numBanks {
					u.slots = append(u.slots, int(c)*numBanks+n)
				}
				if chained {
					u.slots = append(u.slots, k.resources.slots.ChainAt(int(c)))
				}
			}
		}
	}
	u.size += 2*len(u.lanes) + len(u.slots)
	return u
}

// look returns the times of what a body uses: of each lane when it is free
// and the end of its last PSUM writer, of each bank, and of each ring the
// transfers in flight, the youngest first and zeros where it has room.
func (k *kernel) look(u *use) []pair {
	v := make([]pair, 0, u.size)
	for _, l := range u.lanes {
		v = append(v, k.free[l.lane], k.psumWrite[l.lane])
	}
	for _, s := range u.slots {
		v = append(v, k.banks[s])
	}
	for n, key := range u.rings {
		r := k.rings[key]
		for j := range u.depths[n] {
			var t pair
			if r != nil {
				for x, f := range r.flying {
					if j < len(f) {
						t[x] = f[len(f)-1-j]
					}
				}
			}
			v = append(v, t)
		}
	}
	return v
}

// ringLook is how many of the transfers in flight are looked at.
const ringLook = 256

// state is all that placing a body changes but events.
type state struct {
	times  []pair
	last   pair
	rings  [][2][]uint64
	pushed []int
	coll   *collectives
}

func (k *kernel) save(u *use) state {
	s := state{times: k.look(u), last: k.last, rings: k.flying(u)}
	for _, key := range u.rings {
		s.pushed = append(s.pushed, k.pushed(key))
	}
	if u.streams && k.coll != nil {
		s.coll = k.coll.clone()
	}
	return s
}

// flying returns copies of the transfers in flight.
func (k *kernel) flying(u *use) [][2][]uint64 {
	var out [][2][]uint64
	for _, key := range u.rings {
		var f [2][]uint64
		if r := k.rings[key]; r != nil {
			f = [2][]uint64{slices.Clone(r.flying[0]), slices.Clone(r.flying[1])}
		}
		out = append(out, f)
	}
	return out
}

// pushed is how many transfers have entered a ring so far.
func (k *kernel) pushed(key uint16) int {
	if r := k.rings[key]; r != nil {
		return r.pushed
	}
	return 0
}

// restoreTimes undoes what happened since a look, rings excepted.
func (k *kernel) restoreTimes(u *use, v []pair) {
	for _, l := range u.lanes {
		k.free[l.lane], k.psumWrite[l.lane] = v[0], v[1]
		v = v[2:]
	}
	for n, slot := range u.slots {
		k.banks[slot] = v[n]
	}
}

func (k *kernel) restore(u *use, s *state) {
	k.restoreTimes(u, s.times)
	for n, key := range u.rings {
		if r := k.rings[key]; r != nil {
			r.flying, r.pushed = s.rings[n], s.pushed[n]
		}
	}
	k.last = s.last
	if s.coll != nil {
		k.coll = s.coll
	}
}

// leap moves all that the body uses on by n times from what look gave before
// to what it gives now, c iterations later.
func (k *kernel) leap(u *use, before, now []pair, n, c uint64) {
	ahead := func(at int) (t, d pair) {
		for x := range t {
			d[x] = ecs.MulSat(now[at][x]-min(now[at][x], before[at][x]), n)
			if t[x] = ecs.AddSat(now[at][x], d[x]); t[x] > farthest {
				k.loop.beyond[x] = true
				t[x], d[x] = farthest, farthest-min(now[at][x], farthest)
			}
		}
		return t, d
	}
	for j, l := range u.lanes {
		var d pair
		k.free[l.lane], d = ahead(2 * j)
		k.psumWrite[l.lane], _ = ahead(2*j + 1)
		if u.streams && k.coll != nil {
			k.coll.shift(l.lane, before[2*j], d)
		}
	}
	at := 2 * len(u.lanes)
	for j, s := range u.slots {
		k.banks[s], _ = ahead(at + j)
	}
	at += len(u.slots)
	for ringNo, key := range u.rings {
		if r := k.rings[key]; r != nil {
			made := u.pushes[ringNo] * int(c)
			for x := range r.flying {
				r.flying[x] = ringAfter(r.flying[x], r.depth, made, n, func(j int) uint64 {
					if j >= u.depths[ringNo] || before[at+j][x] == 0 {
						j = 0
					}
					return now[at+j][x] - before[at+j][x]
				})
			}
			r.pushed += made * int(min(n, 1<<32))
		}
		at += u.depths[ringNo]
	}
}

// ringAfter returns the transfers in flight n periods later: in each, made
// were triggered, the one after which j more were triggered in the period
// step(j) later than in the period before.
func ringAfter(flying []uint64, depth, made int, n uint64, step func(j int) uint64) []uint64 {
	made = min(made, len(flying))
	if made == 0 {
		return flying
	}
	var out []uint64 // youngest first
	for j := 0; len(out) < depth; j++ {
		back := uint64(j / made)
		if back < n {
			out = append(out, min(ecs.AddSat(flying[len(flying)-1-j%made], ecs.MulSat(step(j%made), n-back)), farthest))
			continue
		}
		at := len(flying) - 1 - (j - int(n)*made) // triggered before the leap
		if at < 0 {
			break
		}
		out = append(out, flying[at])
	}
	slices.Reverse(out)
	return out
}

// alike reports whether from a to b all times move on by as much as from c to
// d. A place in a ring that was free at a is no time.
func alike(a, b, c, d []pair, rings int) bool {
	for i := range a {
		for x := range a[i] {
			if b[i][x]-a[i][x] != d[i][x]-c[i][x] && (i < rings || a[i][x] != 0) {
				return false
			}
		}
	}
	return true
}

// period returns how many iterations make a period at the end of a history of
// looks, one an iteration, 0 where none shows.
func (u *use) period(history [][]pair) int {
	last := len(history) - 1
	for c := 1; c <= maxPeriod && 2*c <= last; c++ {
		if alike(history[last-2*c], history[last-c], history[last-c], history[last], 2*len(u.lanes)+len(u.slots)) {
			return c
		}
	}
	return 0
}

// repeat places the body of block row b as often as it runs. next is the block
// row behind b, and afterwards the one behind those in the body.
func (k *kernel) repeat(ctx context.Context, b int, next *int) error {
	t := &k.m.Blocks
	first, end, trips, inside := t.First.At(b), t.End.At(b), max(t.Trip.At(b), 1), *next
	once := func() error {
		*next = inside
		k.loop.budget -= int64(end - first)
		return k.region(ctx, first, end, next)
	}
	if trips == 1 || first == end {
		return once()
	}
	u := k.use(b)
	rep := k.begin(b, u)
	before := make([]int, len(u.rings))
	for j, key := range u.rings {
		before[j] = k.pushed(key)
	}
	history := [][]pair{k.look(u)}
	done := uint64(0)
	iterate := func() error {
		if done+1 == trips {
			k.enter(rep, u)
		}
		if err := once(); err != nil {
			return err
		}
		if done++; done == 1 {
			k.first(b, rep, u)
			for j, key := range u.rings {
				u.pushes[j] = k.pushed(key) - before[j]
			}
		}
		return nil
	}
	change := uint64(0) // the iteration by which a period that held is known to end
	for done < trips {
		if err := iterate(); err != nil {
			return err
		}
		history = append(history, k.look(u))
		last := len(history) - 1
		if k.loop.budget < 0 && done < trips {
			k.rush(b, rep, u, history[last-1], history[last], trips-done)
			break
		}
		c := u.period(history)
		if c == 0 || trips-done < 2*uint64(c) || !k.settled(u, done) {
			continue
		}
		left := trips - done
		if change > done {
			left = min(left, change-done)
		}
		for n := left/uint64(c) - 1; n > 0 && left >= uint64(c); n /= 2 {
			held, err := k.try(u, history[last-c], history[last], n, c, &done, iterate, &history)
			if err != nil {
				return err
			}
			if held {
				break
			}
			change = done + (n+1)*uint64(c)
		}
	}
	k.close(b, rep, u)
	k.w.Blocks[b].LatencyTrips = rep.Interval()
	return nil
}

// shareTrips is how many iterations of a body with collectives are placed in
// any case: what they take of the bandwidth depends on what runs in parallel with them.
const shareTrips = 64

// settled reports whether nothing from before the loop shows any more, behind
// so many iterations, but in the times that look gives: the transfers in flight
// are the loop's own.
func (k *kernel) settled(u *use, done uint64) bool {
	if u.streams && done < shareTrips {
		return false
	}
	for j, key := range u.rings {
		if r := k.rings[key]; r != nil && ecs.MulSat(uint64(u.pushes[j]), done) < uint64(len(r.flying[0])) && u.pushes[j] > 0 {
			return false
		}
	}
	return true
}

// try leaps n periods of c iterations on, places c more and reports whether
// they took what the period does; where not, all is as before.
func (k *kernel) try(u *use, before, now []pair, n uint64, c int, done *uint64, iterate func() error, history *[][]pair) (held bool, err error) {
	old, was, far := k.save(u), *done, k.loop.beyond
	k.leap(u, before, now, n, uint64(c))
	*done += n * uint64(c)
	seen := [][]pair{k.look(u)}
	for range c {
		if err := iterate(); err != nil {
			return false, err
		}
		seen = append(seen, k.look(u))
	}
	if k.loop.beyond != far || k.loop.budget < 0 || alike(before, now, seen[0], seen[c], 2*len(u.lanes)+len(u.slots)) {
		*history = seen
		return true, nil
	}
	k.restore(u, &old)
	*done = was
	return false, nil
}

// rush takes the iteration from before to now for all others: it moves the
// body's events, with what the body uses, left iterations on.
func (k *kernel) rush(b int, rep *components.Repeat, u *use, before, now []pair, left uint64) {
	k.leap(u, before, now, left-1, 1)
	k.enter(rep, u)
	k.restoreTimes(u, now)
	k.leap(u, before, now, left, 1)
	by := make(map[uint16]pair, len(u.lanes))
	for j, l := range u.lanes {
		t := k.free[l.lane]
		by[l.lane] = pair{t[0] - min(t[0], now[2*j][0]), t[1] - min(t[1], now[2*j][1])}
	}
	for x := range components.Run(2) {
		components.Later(k.m, k.w.Blocks, b, x, func(lane uint16) uint64 { return by[lane][x] })
	}
	in := &k.m.Instr
	arrive := k.w.Events.Arrive.Slice()
	for i := rep.First; i < rep.End; i++ {
		f := in.Flags.At(int(i))
		if f&components.FlagLoop != 0 {
			continue
		}
		d := by[in.Lane.At(int(i))]
		if t, ok := k.inputs[i]; ok {
			k.inputs[i] = pair{t[0] + d[0], t[1] + d[1]}
		}
		for x := range d {
			arrive[i][x] += d[x]
			_, end := k.w.Events.Span(k.m, components.InstrID(i), components.Run(x))
			k.last[x] = max(k.last[x], end)
		}
	}
}

// begin starts the record of what the loop of block row b does.
func (k *kernel) begin(b int, u *use) *components.Repeat {
	r := &k.w.Blocks[b]
	if r.Repeat == nil {
		r.Repeat = &components.Repeat{First: k.m.Blocks.First.At(b), End: k.m.Blocks.End.At(b), Trips: k.m.Blocks.Trip.At(b),
			Lanes: make([]components.RepeatLane, len(u.lanes)), Banks: make([]components.RepeatBank, len(u.slots)), Rings: make([]components.RepeatRing, len(u.rings))}
	}
	rep := r.Repeat
	for j, l := range u.lanes {
		rep.Lanes[j] = components.RepeatLane{Lane: l.lane, First: l.first, Last: l.last, Before: k.free[l.lane]}
	}
	return rep
}

// first records the first iteration.
func (k *kernel) first(b int, rep *components.Repeat, u *use) {
	for j, l := range u.lanes {
		for x := range rep.Lanes[j].Start {
			rep.Lanes[j].Start[x] = k.firstStart(b, l.first, components.Run(x))
		}
	}
}

// enter records how the last iteration finds what it uses.
func (k *kernel) enter(rep *components.Repeat, u *use) {
	for j, l := range u.lanes {
		rep.Lanes[j].Enter, rep.Lanes[j].PSUM = k.free[l.lane], k.psumWrite[l.lane]
	}
	for j, s := range u.slots {
		rep.Banks[j] = components.RepeatBank{Slot: uint32(s), Enter: k.banks[s]}
	}
	for j, f := range k.flying(u) {
		rep.Rings[j] = components.RepeatRing{Key: u.rings[j], Flying: f}
	}
}

// close records how the last iteration leaves its lanes, and by how much it is
// later than the first.
func (k *kernel) close(b int, rep *components.Repeat, u *use) {
	for j, l := range u.lanes {
		for x := range rep.Lanes[j].Shift {
			start := k.firstStart(b, l.first, components.Run(x))
			_, end := k.w.Events.Span(k.m, components.InstrID(l.last), components.Run(x))
			r := &rep.Lanes[j]
			r.Shift[x] = start - min(start, r.Start[x])
			r.Leave[x] = k.free[l.lane][x]
			r.Tail[x] = end - min(end, r.Leave[x])
		}
	}
}

// firstStart is when row i, the first on its lane in the body of block row b,
// starts in the iteration placed last.
func (k *kernel) firstStart(b int, i uint32, run components.Run) uint64 {
	start, _ := k.w.Events.Span(k.m, components.InstrID(i), run)
	return components.FirstStart(k.m, k.w.Blocks, b, i, run, start)
}
