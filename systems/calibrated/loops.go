package calibrated

import (
	"context"
	"math"

	"perfsim/components"
	"perfsim/ecs"
)

// Loops that count their trips. The simulation takes every body once, because
// sequencers run on past the ends of loops. What further iterations take is
// worked out from that: an instruction starts when its sequencer, the DMA
// engines and what it depends on let it, each as long before it as in the
// iteration that was simulated (see hold), and behind its own last row a
// sequencer goes on with its first. That is repeated until iterations are
// alike; then every sequencer moves on by its own period for the rest. The
// clock of the PE is taken to be up behind the iteration that was simulated.

// Bounds of the work for one loop.
const (
	loopTries = 12    // iterations until they must be alike
	loopAlike = 1e-3  // ns, and as a share of the period: by how much they may differ
	wake      = 200.0 // ns: no dependency takes longer than that to be noticed
)

// looper moves the rows of a placed block to where trip counts put them.
type looper struct {
	s      *sim
	lo     uint32
	once   rows      // as simulated
	start  []float64 // from row lo on
	arrive []float64
	seqs   []position
	dma    []dmaEngines // by core
	edges  bool
	// lane is how long a sequencer needs at least from a row to the next one of
	// its list, by row.
	prev    []uint32 // plus one: the row before on the sequencer
	results []components.BlockResult
	run     components.Run
}

// position is a sequencer on its way.
type position struct {
	row   uint32 // plus one: the last it took
	start float64
}

// trips places block b with loops as often as they run: out is moved.
func (k *block) trips(ctx context.Context, b int) (last float64, err error) {
	s := k.sim
	t := &s.p.m.Blocks
	lo, hi := t.First.At(b), t.End.At(b)
	l := &looper{s: s, lo: lo, once: s.rows, start: make([]float64, hi-lo), arrive: make([]float64, hi-lo), prev: make([]uint32, hi-lo),
		seqs: make([]position, len(s.p.groups)), dma: make([]dmaEngines, len(s.p.cores)), edges: !s.p.syncs && !s.opt.NoSync, results: k.results, run: k.run}
	last1 := make([]uint32, len(s.p.groups))
	for i := lo; i < hi; i++ {
		if s.p.kind[i] != kindLoop {
			g := s.p.group[i]
			l.prev[i-lo] = last1[g]
			last1[g] = i + 1
		}
	}
	for c := range l.dma {
		l.dma[c].free, l.dma[c].writeEnd = math.Inf(-1), math.Inf(-1)
	}
	inner := b + 1
	if err := l.region(ctx, lo, hi, &inner); err != nil {
		return 0, err
	}
	for i := lo; i < hi; i++ {
		if s.p.kind[i] == kindLoop {
			continue
		}
		shift := l.start[i-lo] - s.start[i]
		if s.why != nil {
			s.why.release[i] += l.shiftOf(i, shift)
		}
	}
	for i := lo; i < hi; i++ {
		if s.p.kind[i] == kindLoop {
			continue
		}
		s.start[i], s.arrive[i] = l.start[i-lo], l.arrive[i-lo]
		last = max(last, s.endOf(i))
	}
	return last, nil
}

// shiftOf is by how much what held row i, which starts later by shift, released
// later.
func (l *looper) shiftOf(i uint32, shift float64) float64 {
	by := l.s.why.by[i]
	if by == 0 || by-1 < l.lo {
		return 0
	}
	return min(shift, l.start[by-1-l.lo]-l.once.start[by-1])
}

// region walks rows first to end once.
func (l *looper) region(ctx context.Context, first, end uint32, next *int) error {
	t := &l.s.p.m.Blocks
	for i := first; i < end; {
		if l.s.p.kind[i] != kindLoop {
			l.row(i)
			i++
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		l.start[i-l.lo], l.arrive[i-l.lo] = 0, 0
		i++
		for *next < t.Len() && t.Parent.At(*next) == i {
			b := *next
			*next++
			if err := l.repeat(ctx, b, next); err != nil {
				return err
			}
			i = t.End.At(b)
		}
	}
	return nil
}

// hold is how long a row may start behind what it waits for, having waited
// for it: what lies further back did not hold it.
func hold(gap float64) float64 { return min(max(gap, 0), wake) }

// occupancy is how long row i keeps its sequencer or data path at least.
func (l *looper) occupancy(i uint32) float64 {
	p := l.s.p
	switch p.kind[i] {
	case kindData:
		issue, _, _ := l.s.dataCost(i)
		return issue
	case kindOther:
		issue, _ := p.nominal.Rest(int(i))
		return issue
	case kindHW:
		c := p.c
		dur := c.Engine[p.groups[p.group[i]].engine].TriggerHW
		if p.transferOf(i).many {
			dur += c.DMA.TriggerMany
		}
		return max(dur, c.DMA.Interval)
	case kindStatic:
		return p.c.DMA.StaticTrigger
	case kindSW:
		return max(p.c.DMA.SWDispatch, p.c.DMA.SWInterval)
	case kindLoad, kindStream, kindMatmul:
		// The simulated iteration may have run before the clock was up. Too few
		// rows of the array in use never get it up.
		if issue := float64(p.m.Instr.Issue.Get(int(i))); issue > 0 {
			if gov := &p.c.Gov; p.kind[i] != kindLoad && Share(p.m, i)*gov.Slow < gov.Threshold {
				issue /= gov.Slow
			}
			return issue
		}
	}
	in := &p.m.Instr
	lat := in.Latency.Get(int(i))
	return max(float64(l.once.dur[i])-float64(lat-min(in.Issue.Get(int(i)), lat)), 0)
}

// row places row i.
func (l *looper) row(i uint32) {
	s, p := l.s, l.s.p
	o := l.once.start[i]
	g := p.group[i]
	at := math.Inf(-1)
	bound := false // a dependency held it when it was simulated
	if l.edges {
		for _, w := range p.m.Edges.Preds.Row(int(i)) {
			q := w & ecs.TargetMask
			if uint8(w>>ecs.ClassShift) == components.ClassAnti && s.run == components.RunB {
				break
			}
			gap := o - l.once.arrive[q]
			if gap < 0 {
				continue // the model let it go before that
			}
			bound = bound || gap <= wake
			at = max(at, l.arrive[q-l.lo]+hold(gap))
		}
	}
	if p.kind[i] == kindBarrier {
		for n := range l.seqs {
			if x := &l.seqs[n]; x.row > 0 && p.groups[n].core == p.groups[g].core && uint16(n) != g {
				// It waits for what they have taken to be done.
				wait := float64(l.once.dur[x.row-1])
				if gap := o - l.once.start[x.row-1]; gap >= 0 {
					wait = min(wait, gap)
				}
				at = max(at, x.start+wait)
			}
		}
		bound = true
	}
	if x := &l.seqs[g]; x.row > 0 {
		var least float64
		if x.row == l.prev[i-l.lo] {
			if least = o - l.once.start[x.row-1]; bound && least > 0 {
				least = min(least, l.occupancy(x.row-1))
			}
		} else {
			least = l.occupancy(x.row - 1)
		}
		at = max(at, x.start+least)
	}
	if l.prev[i-l.lo] == 0 && l.seqs[g].row == 0 || math.IsInf(at, -1) {
		at = max(at, o)
	}
	at = max(at, o)
	l.start[i-l.lo] = at
	l.seqs[g] = position{i + 1, at}
	there := at + l.once.arrive[i] - o
	if p.kind[i].transfers() {
		d, e := &p.c.DMA, &l.dma[p.groups[g].unit]
		_, complete := e.serve(d, at, p.transferOf(i), int(g))
		if at > o {
			there = complete
		} else {
			e.free = max(e.free, there-d.Complete) // as it was simulated
		}
	}
	l.arrive[i-l.lo] = there
}

// repeat places the body of block row b as often as it runs.
func (l *looper) repeat(ctx context.Context, b int, next *int) error {
	t := &l.s.p.m.Blocks
	first, end, trips, inside := t.First.At(b), t.End.At(b), max(t.Trip.At(b), 1), *next
	if trips == 1 || first == end {
		return l.region(ctx, first, end, next)
	}
	rep, uses := l.begin(b)
	look := func() []float64 {
		v := make([]float64, 0, len(uses)+len(l.dma))
		for _, g := range uses {
			v = append(v, l.seqs[g].start)
		}
		for c := range l.dma {
			v = append(v, max(l.dma[c].free, 0))
		}
		return v
	}
	var history [][]float64
	var done uint64
	for done < trips && done < loopTries {
		*next = inside
		if err := l.region(ctx, first, end, next); err != nil {
			return err
		}
		if done++; done == 1 {
			for n := range rep.Lanes {
				rep.Lanes[n].Start[l.run] = l.firstStart(b, rep.Lanes[n].First)
			}
		}
		history = append(history, look())
		if n := len(history); n > 2 && alike(history[n-3], history[n-2], history[n-1]) {
			break
		}
	}
	n := len(history) - 1
	period := make([]float64, len(l.seqs))
	far := float64(trips - done)
	if n > 0 {
		for k, g := range uses {
			period[g] = history[n][k] - history[n-1][k]
			l.seqs[g].start += far * period[g]
		}
		for c := range l.dma {
			d := far * (history[n][len(uses)+c] - history[n-1][len(uses)+c])
			l.dma[c].free += d
			l.dma[c].writeEnd += d
			for q := range l.dma[c].batch {
				l.dma[c].batch[q] += d
			}
		}
	}
	kinds, group := l.s.p.kind, l.s.p.group
	if far > 0 {
		for i := first; i < end; i++ {
			if kinds[i] != kindLoop {
				l.start[i-l.lo] += far * period[group[i]]
				l.arrive[i-l.lo] += far * period[group[i]]
			}
		}
		if l.results != nil {
			lanes := make([]float64, l.s.p.m.Lanes.Len())
			for _, x := range rep.Lanes {
				lanes[x.Lane] = far * period[group[x.First]]
			}
			components.Later(l.s.p.m, l.results, b, l.run, func(lane uint16) uint64 { return whole(lanes[lane]) })
		}
	}
	for n := range rep.Lanes {
		x := &rep.Lanes[n]
		leave := l.start[x.Last-l.lo] + l.occupancy(x.Last)
		from := l.firstStart(b, x.First)
		x.Leave[l.run] = whole(leave)
		x.Tail[l.run] = whole(l.start[x.Last-l.lo]+float64(l.once.dur[x.Last])) - min(whole(l.start[x.Last-l.lo]+float64(l.once.dur[x.Last])), x.Leave[l.run])
		x.Enter[l.run] = min(from, whole(leave-period[group[x.First]]))
		x.Shift[l.run] = from - min(from, x.Start[l.run])
	}
	if l.results != nil {
		l.results[b].LatencyTrips[l.run] = rep.Interval()[l.run]
	}
	return nil
}

// alike reports whether what moves from a to b moves as much from b to c.
func alike(a, b, c []float64) bool {
	for i := range a {
		x, y := b[i]-a[i], c[i]-b[i]
		if math.Abs(x-y) > loopAlike*(1+math.Abs(y)) { // false where both are no numbers
			return false
		}
	}
	return true
}

// begin starts the record of what the loop of block row b does, and lists the
// sequencers that its body uses.
func (l *looper) begin(b int) (*components.Repeat, []uint16) {
	t := &l.s.p.m.Blocks
	first, end := t.First.At(b), t.End.At(b)
	var scratch components.BlockResult
	r := &scratch
	if l.results != nil {
		r = &l.results[b]
	}
	if r.Repeat == nil || r.Repeat.First != first {
		r.Repeat = &components.Repeat{First: first, End: end, Trips: t.Trip.At(b)}
	}
	rep := r.Repeat
	lanes := l.s.p.m.Instr.Lane.Slice()
	at := map[uint16]int{}
	for n := range rep.Lanes {
		at[rep.Lanes[n].Lane] = n
	}
	used := make([]bool, len(l.seqs))
	var uses []uint16
	for i := first; i < end; i++ {
		if l.s.p.kind[i] == kindLoop {
			continue
		}
		if g := l.s.p.group[i]; !used[g] {
			used[g] = true
			uses = append(uses, g)
		}
		n, ok := at[lanes[i]]
		if !ok {
			n = len(rep.Lanes)
			at[lanes[i]] = n
			x := components.RepeatLane{Lane: lanes[i], First: i}
			rep.Lanes = append(rep.Lanes, x)
		}
		rep.Lanes[n].Last = i
	}
	for n := range rep.Lanes {
		x := &rep.Lanes[n]
		x.Before[l.run] = 0
		if p := &l.seqs[l.s.p.group[x.First]]; p.row > 0 {
			x.Before[l.run] = whole(p.start + l.occupancy(p.row-1))
		}
	}
	return rep, uses
}

// firstStart is when row i, the first on its lane in the body of block row b,
// starts in the iteration placed last.
func (l *looper) firstStart(b int, i uint32) uint64 {
	start := whole(l.start[i-l.lo])
	if l.results == nil {
		return start
	}
	return components.FirstStart(l.s.p.m, l.results, b, i, l.run, start)
}
