package attribute

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
)

// LaneTime is the use of one lane's time, in counted ns. The fields but
// Instructions add up to the counted makespan.
type LaneTime struct {
	Lane         uint16
	Instructions uint64 // on the lane, loop bodies as often as counted
	Issue        uint64
	Stretch      uint64
	Finish       uint64
	Control      uint64
	Idle         [components.NumCauses]uint64
}

// Busy is the time in which the lane has work.
func (t *LaneTime) Busy() uint64 { return t.Issue + t.Stretch + t.Finish + t.Control }

// Work is Busy without what only the sequencer does.
func (t *LaneTime) Work() uint64 { return t.Issue + t.Stretch + t.Finish }

// Waiting is the time in which the lane is idle between two instructions.
func (t *LaneTime) Waiting() uint64 {
	var sum uint64
	for c, v := range t.Idle {
		if c < int(components.NumEventCauses) {
			sum += v
		}
	}
	return sum
}

// Sum is everything: the counted makespan.
func (t *LaneTime) Sum() uint64 {
	return t.Busy() + t.Waiting() + t.Idle[components.CauseNotStarted] + t.Idle[components.CauseDrained]
}

func (t *LaneTime) add(o *LaneTime, times uint64) {
	t.Instructions += o.Instructions * times
	t.Issue += o.Issue * times
	t.Stretch += o.Stretch * times
	t.Finish += o.Finish * times
	t.Control += o.Control * times
	for c := range t.Idle {
		t.Idle[c] += o.Idle[c] * times
	}
}

// Stall is a wait that repeats: instructions of one opcode and place on one
// lane, held by the same cause through the same kind of instruction.
type Stall struct {
	Lane       uint16
	Cause      components.Cause
	Opcode     components.Opcode
	Where      ecs.Symbol // source line, else HLO name, else none
	Held       bool       // Holder and HolderLane say who held
	Holder     components.Opcode
	HolderLane uint16
}

// StallSum is the sum of a stall.
type StallSum struct {
	Stall
	Time    uint64 // counted ns in which the lane was idle
	Count   uint64 // how often
	Longest uint64 // ns
	Example components.InstrID
}

// LaneReport is the time of all lanes and their waits.
type LaneReport struct {
	Span   uint64 // the counted makespan: what every lane's time adds up to
	Lanes  []LaneTime
	Stalls []StallSum // by time, longest first
}

// Options say what is counted.
type Options struct {
	// Trips counts loop bodies as often as they run.
	Trips bool
	// Window, where not nil, restricts to a part of the time of each block.
	Window *Window
	// Block, where not negative, restricts to one top-level block.
	Block int
}

// blocks returns the top-level blocks that o asks for and how often each
// counts.
func (o Options) blocks(m *components.Module) (rows []int, times []uint64) {
	for _, row := range m.TopBlocks() {
		if o.Block >= 0 && row != o.Block {
			continue
		}
		rows = append(rows, row)
		runs := uint64(1)
		if o.Block < 0 {
			runs = m.Functions.Runs.At(int(m.Blocks.Function.At(row)))
		}
		times = append(times, runs)
	}
	return rows, times
}

// Lanes accounts for the time of every lane.
func Lanes(ctx context.Context, w *components.World, rules place.Rules, a *components.Attribution, o Options) (*LaneReport, error) {
	m := w.Module
	rows, times := o.blocks(m)
	r := &LaneReport{Lanes: make([]LaneTime, m.Lanes.Len())}
	for l := range r.Lanes {
		r.Lanes[l].Lane = uint16(l)
	}
	stalls := map[Stall]*StallSum{}
	// Some blocks at a time: each has the time of all lanes.
	for lo := 0; lo < len(rows); lo += blocksAtOnce {
		hi := min(lo+blocksAtOnce, len(rows))
		parts, err := walkLanes(ctx, w, rules, a, o, rows[lo:hi])
		if err != nil {
			return nil, err
		}
		for n, p := range parts {
			r.merge(p, times[lo+n], stalls)
		}
	}
	for _, s := range stalls {
		r.Stalls = append(r.Stalls, *s)
	}
	slices.SortFunc(r.Stalls, func(a, b StallSum) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Example, b.Example),
			cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Holder, b.Holder), cmp.Compare(a.HolderLane, b.HolderLane), cmp.Compare(a.Where, b.Where))
	})
	return r, nil
}

// blocksAtOnce is how many blocks are walked before they are added up.
const blocksAtOnce = 256

// walkLanes accounts for the lanes of some blocks.
func walkLanes(ctx context.Context, w *components.World, rules place.Rules, a *components.Attribution, o Options, rows []int) ([]*laneWalk, error) {
	parts := make([]*laneWalk, len(rows))
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	for n, row := range rows {
		g.Go(func() error {
			b := newBlock(w, rules, a.Run, row)
			parts[n] = newLaneWalk(b, a, newScale(b, o.Window), o.Trips)
			return parts[n].walk(ctx)
		})
	}
	return parts, g.Wait()
}

// merge adds a block that runs so many times.
func (r *LaneReport) merge(p *laneWalk, times uint64, stalls map[Stall]*StallSum) {
	r.Span += p.scale.between(0, p.span) * times
	for l := range p.lanes {
		r.Lanes[l].add(&p.lanes[l], times)
	}
	for key, s := range p.stalls {
		t := stalls[key]
		if t == nil {
			t = &StallSum{Stall: key, Example: s.Example}
			stalls[key] = t
		}
		t.Time += s.Time * times
		t.Count += s.Count * times
		if s.Longest > t.Longest || s.Longest == t.Longest && s.Example < t.Example {
			t.Longest, t.Example = s.Longest, s.Example
		}
	}
}

// cursor is how far a lane's time is accounted for.
type cursor struct {
	at      uint64 // everything before is accounted for
	leave   uint64 // until then an instruction keeps the lane
	end     uint64 // until then a result is outstanding
	stretch uint64 // of the instruction that keeps the lane
	started bool
	// The instructions behind leave and end are the sequencer's own.
	leaveControl, endControl bool
}

// laneWalk accounts for the lanes of one block.
type laneWalk struct {
	*block
	a      *components.Attribution
	scale  *scale
	trips  []tripRange
	tripAt int

	lanes   []LaneTime
	cursors []cursor
	stalls  map[Stall]*StallSum

	// Where bodies repeat (see repeat.go): whole is lanes without a window,
	// open the bodies that the walk is in, waits those of the bodies.
	whole []LaneTime
	open  []openBody
	waits []wait
}

func newLaneWalk(b *block, a *components.Attribution, s *scale, trips bool) *laneWalk {
	w := &laneWalk{block: b, a: a, scale: s, lanes: make([]LaneTime, b.m.Lanes.Len()), cursors: make([]cursor, b.m.Lanes.Len()),
		stalls: map[Stall]*StallSum{}}
	if trips {
		w.trips = tripRanges(b)
	}
	w.whole = make([]LaneTime, len(w.lanes))
	return w
}

func (w *laneWalk) walk(ctx context.Context) error {
	shuffled := w.outOfOrder()
	rows := make([][]uint32, len(shuffled))
	sorted := func(l uint16) {
		r := rows[l]
		slices.SortStableFunc(r, func(x, y uint32) int {
			a, _ := w.spanOf(x)
			b, _ := w.spanOf(y)
			return cmp.Compare(a, b)
		})
		for _, i := range r {
			w.event(i)
		}
		rows[l] = r[:0]
	}
	repeats := w.repeats
	for i := w.first; i < w.end; i++ {
		if i%cancelEvery == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		for len(repeats) > 0 && repeats[0].First == i {
			w.enter(repeats[0], sorted)
			repeats = repeats[1:]
		}
		if !w.loop(i) {
			if l := w.lane[i]; shuffled[l] {
				rows[l] = append(rows[l], i)
			} else {
				w.event(i)
			}
		}
		for len(w.open) > 0 && w.open[len(w.open)-1].repeat.End == i+1 {
			w.leave(sorted)
		}
	}
	for l := range rows {
		sorted(uint16(l))
	}
	for l := range w.cursors {
		c, t := &w.cursors[l], &w.lanes[l]
		if !c.started {
			t.Idle[components.CauseNotStarted] = w.scale.between(0, w.span)
			continue
		}
		w.busy(uint16(l), c, w.span)
		t.Idle[components.CauseDrained] += w.scale.between(c.at, w.span)
	}
	return nil
}

// outOfOrder reports for every lane whether its instructions start in another
// order than that of the program: barriers may, and models may let them.
func (w *laneWalk) outOfOrder() []bool {
	last := make([]uint64, w.m.Lanes.Len())
	out := make([]bool, len(last))
	for i := w.first; i < w.end; i++ {
		if w.loop(i) {
			continue
		}
		s, _ := w.spanOf(i)
		if l := w.lane[i]; s < last[l] {
			out[l] = true
		} else {
			last[l] = s
		}
	}
	return out
}

// busy accounts for the current work up to time t.
func (w *laneWalk) busy(l uint16, c *cursor, until uint64) {
	t, v := &w.lanes[l], &w.whole[l]
	if stop := min(c.leave, until); stop > c.at {
		x, y := w.scale.between(c.at, stop), stop-c.at
		if c.leaveControl {
			t.Control += x
			v.Control += y
			x, y = 0, 0
		}
		// The excess of an instruction's duration is the end of it.
		from := max(c.at, c.leave-min(c.leave, c.stretch))
		s := min(x, w.scale.between(from, stop))
		t.Issue += x - s
		t.Stretch += s
		s = min(y, stop-min(from, stop))
		v.Issue += y - s
		v.Stretch += s
		c.at = stop
	}
	if stop := min(c.end, until); stop > c.at {
		x, y := w.scale.between(c.at, stop), stop-c.at
		if c.endControl {
			t.Control += x
			v.Control += y
		} else {
			t.Finish += x
			v.Finish += y
		}
		c.at = stop
	}
}

// event accounts for the time up to the start of i and takes up its work.
func (w *laneWalk) event(i uint32) {
	l := w.lane[i]
	c, t := &w.cursors[l], &w.lanes[l]
	start, end := w.spanOf(i)
	if w.a.Visible.Len() > 0 && w.m.Lanes.Engine.At(int(l)) == components.DMA {
		end = max(end, w.a.Visible.At(int(i))) // the transfer behind the trigger
	}
	weight := uint64(1)
	if w.trips != nil {
		weight = w.tripsOf(i)
	}
	if !w.flags[i].Has(components.FlagContinued) { // else it is part of one that is counted
		t.Instructions += weight
	}
	if !c.started {
		c.started = true
		t.Idle[components.CauseNotStarted] += w.scale.between(0, start)
		c.at = start
	}
	w.busy(l, c, start)
	if start > c.at {
		w.idle(t, i, c.at, start, weight)
		c.at = start
	}
	occ := w.occupancy(i)
	control := w.flags[i]&components.FlagSequencer != 0
	if start+occ > c.leave {
		c.leave, c.leaveControl = start+occ, control
		c.stretch = 0
		if d := w.duration(i); d > uint64(w.lat[i]) {
			c.stretch = min(d-uint64(w.lat[i]), occ)
		}
	}
	if end > c.end {
		c.end, c.endControl = end, control
	}
}

// idle accounts for a wait of i: up to where its binding constraint released
// that is the cause, behind it the model.
func (w *laneWalk) idle(t *LaneTime, i uint32, from, start, weight uint64) {
	released := start
	if w.a.Gap.Len() > 0 {
		released = start - w.a.Gap.At(int(i))
	}
	released = max(released, from)
	cause := w.a.Cause.At(int(i))
	if p := w.a.Pred.At(int(i)); cause == components.CauseLane && w.lane[p] == w.lane[i] {
		// The lane is idle: the model takes time from one instruction to the
		// next.
		cause = components.CauseModel
	}
	w.waited(t, i, cause, from, released, weight)
	w.waited(t, i, w.a.GapCause(w.m, components.InstrID(i)), released, start, weight)
}

// waited enters a wait of i.
func (w *laneWalk) waited(t *LaneTime, i uint32, cause components.Cause, from, to, weight uint64) {
	if to <= from {
		return
	}
	if len(w.open) > 0 {
		w.waits = append(w.waits, wait{i, cause, to - from})
	}
	if x := w.scale.between(from, to); x > 0 {
		t.Idle[cause] += x
		w.stall(i, cause, x, to-from, weight)
	}
}

func (w *laneWalk) stall(i uint32, cause components.Cause, counted, ns, weight uint64) {
	key := Stall{Lane: w.lane[i], Cause: cause, Opcode: w.m.Instr.Opcode.At(int(i)), Where: Where(w.m, components.InstrID(i))}
	if p := w.a.Pred.At(int(i)); p != components.NoInstr {
		key.Held, key.Holder, key.HolderLane = true, w.m.Instr.Opcode.At(int(p)), w.lane[p]
	}
	s := w.stalls[key]
	if s == nil {
		s = &StallSum{Stall: key, Example: components.InstrID(i)}
		w.stalls[key] = s
	}
	s.Time += counted
	s.Count += weight
	if ns > s.Longest {
		s.Longest, s.Example = ns, components.InstrID(i)
	}
}

// Where returns the place in the user's program that instruction i comes
// from: its source line, else the name of its HLO instruction, else none.
func Where(m *components.Module, i components.InstrID) ecs.Symbol {
	if s := m.Instr.Source.Get(int(i)); s != 0 {
		return s
	}
	return m.Instr.HLO.Get(int(i))
}
