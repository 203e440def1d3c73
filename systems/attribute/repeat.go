package attribute

import (
	"perfsim/components"
	"perfsim/ecs"
)

// Loops that are placed as often as they run have the events of their last
// iteration only. On every lane the time before it, back to what the lane did
// before the loop, is that of the other iterations: what keeps the lane busy
// does so in each of them as long as in the last, and the rest of the time is
// idle for the causes for which it is in the last, in their proportion.

// openBody is a body that the walk over the lanes is in.
type openBody struct {
	repeat *components.Repeat
	lanes  []openLane
	waits  int // how many there were before
}

// openLane is one of its lanes.
type openLane struct {
	from    uint64   // everything before is accounted for
	hidden  uint64   // the time of the iterations before the last
	counted uint64   // of it
	before  LaneTime // without a window
}

// wait is an idle time in a body, without a window.
type wait struct {
	row   uint32
	cause components.Cause
	ns    uint64
}

// enter takes up the last iteration of a body.
func (w *laneWalk) enter(r *components.Repeat, sorted func(uint16)) {
	o := openBody{repeat: r, lanes: make([]openLane, len(r.Lanes)), waits: len(w.waits)}
	for n, l := range r.Lanes {
		sorted(l.Lane)
		c := &w.cursors[l.Lane]
		at := l.Enter[w.run]
		// What is outstanding of before is so until the first iteration starts.
		w.busy(l.Lane, c, min(at, l.Start[w.run]))
		from := c.at
		if !c.started {
			from = min(l.Start[w.run], at)
			w.lanes[l.Lane].Idle[components.CauseNotStarted] += w.scale.between(0, from)
			c.at = from
		}
		at = max(at, from)
		o.lanes[n] = openLane{from: from, hidden: at - from, counted: w.scale.between(from, at)}
		if last := l.Last; at > from {
			// The iteration before the last ends as the last one does.
			control := w.flags[last]&components.FlagSequencer != 0
			*c = cursor{at: at, leave: at, end: at + l.Tail[w.run], leaveControl: control, endControl: control}
		}
		c.started = true
		c.at = at
		o.lanes[n].before = w.whole[l.Lane]
	}
	w.open = append(w.open, o)
}

// leave shares out the time of the iterations before the last of the
// innermost open body.
func (w *laneWalk) leave(sorted func(uint16)) {
	o := w.open[len(w.open)-1]
	for n, l := range o.repeat.Lanes {
		sorted(l.Lane)
		c := &w.cursors[l.Lane]
		w.busy(l.Lane, c, c.leave)
		w.share(o.repeat, &o.lanes[n], l, w.waits[o.waits:])
	}
	w.open = w.open[:len(w.open)-1]
	if len(w.open) == 0 {
		w.waits = w.waits[:0]
	}
}

// share shares out what is hidden on one lane.
func (w *laneWalk) share(r *components.Repeat, o *openLane, l components.RepeatLane, waits []wait) {
	if o.hidden == 0 {
		return
	}
	v, t := &w.whole[l.Lane], &w.lanes[l.Lane]
	busy := [4]uint64{v.Issue - o.before.Issue, v.Stretch - o.before.Stretch, v.Control - o.before.Control, v.Finish - o.before.Finish}
	// In the order of their claim: what keeps the lane comes before what is only
	// outstanding.
	left := o.hidden
	for k := range busy {
		busy[k] = min(ecs.MulSat(busy[k], r.Trips-1), left)
		left -= busy[k]
	}
	d := divider{whole: o.hidden, counted: o.counted}
	for k, to := range [4][2]*uint64{{&v.Issue, &t.Issue}, {&v.Stretch, &t.Stretch}, {&v.Control, &t.Control}, {&v.Finish, &t.Finish}} {
		*to[0] += busy[k]
		*to[1] += d.part(busy[k])
	}
	if left == 0 {
		return
	}
	var sum uint64
	for k := range waits {
		if w.lane[waits[k].row] == l.Lane {
			sum = ecs.AddSat(sum, waits[k].ns)
		}
	}
	if sum == 0 {
		// It never waits in the last iteration: before the first it did.
		cause := w.a.Cause.At(int(l.First))
		if p := w.a.Pred.At(int(l.First)); p == components.NoInstr || cause == components.CauseLane {
			cause = components.CauseModel
		}
		w.add(t, l.First, cause, d.part(left))
		return
	}
	e := divider{whole: sum, counted: left}
	for k := range waits {
		if x := &waits[k]; w.lane[x.row] == l.Lane {
			ns := e.part(x.ns)
			x.ns += ns
			w.add(t, x.row, x.cause, d.part(ns))
		}
	}
}

// add enters an idle time of iterations before the last.
func (w *laneWalk) add(t *LaneTime, row uint32, cause components.Cause, counted uint64) {
	if counted == 0 {
		return
	}
	t.Idle[cause] += counted
	w.stall(row, cause, counted, 0, 0)
}

// divider shares counted out in proportion to parts of whole, so that the
// shares of all parts add up to it.
type divider struct {
	whole, counted uint64
	seen, given    uint64
}

func (d *divider) part(x uint64) uint64 {
	d.seen += x
	to := ecs.MulDiv(d.counted, d.seen, d.whole)
	p := to - d.given
	d.given = to
	return p
}
