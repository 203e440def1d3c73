package calibrated

import "perfsim/components"

// queue has the events to come in order of time, and of making where times are
// equal. It is a heap; mostly a sequencer goes on, so that the first event
// made for another takes its place, and the heap is gone through once.
type queue struct {
	heap  []event
	hole  bool // the first of heap is dealt with, and its place free
	count uint32
	// What events stand for that are no steps of sequencers, and free places there.
	changes []change
	free    []uint32
}

// event is when something happens: a step of a sequencer, or from the number of
// sequencers on a change.
type event struct {
	t  float64
	n  uint32 // order of making, breaks ties
	of uint32
}

// change is that of a semaphore or, where trigger is set, the start of row of's
// transfer.
type change struct {
	value   int64
	of      uint32 // semaphore or row
	by      uint32 // row, plus one, that changes the semaphore
	op      components.SyncOp
	trigger bool
}

// first returns the next event, which is taken out by next unless something is
// pushed before, and whether there is one.
func (q *queue) first() (event, bool) {
	if len(q.heap) == 0 {
		return event{}, false
	}
	q.hole = true
	return q.heap[0], true
}

// next ends with the event that first returned.
func (q *queue) next() {
	if !q.hole {
		return
	}
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap, q.hole = q.heap[:last], false
	if last > 0 {
		q.down(e)
	}
}

// keep adds an event of a change, whose numbers begin behind those of the
// sequencers.
func (q *queue) keep(t float64, sequencers uint32, c change) {
	at := uint32(len(q.changes))
	if n := len(q.free); n > 0 {
		at, q.free = q.free[n-1], q.free[:n-1]
		q.changes[at] = c
	} else {
		q.changes = append(q.changes, c)
	}
	q.push(t, sequencers+at)
}

// take returns a change that is due.
func (q *queue) take(at uint32) change {
	q.free = append(q.free, at)
	return q.changes[at]
}

// push adds an event.
func (q *queue) push(t float64, of uint32) {
	q.count++
	e := event{t, q.count, of}
	if q.hole {
		q.hole = false
		q.down(e)
		return
	}
	q.heap = append(q.heap, e)
	h, i := q.heap, len(q.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if !before(&e, &h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

// down puts an event in the first place of the heap, and then where it belongs.
func (q *queue) down(e event) {
	h, i := q.heap, 0
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && before(&h[c+1], &h[c]) {
			c++
		}
		if !before(&h[c], &e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
}

func before(a, b *event) bool { return a.t < b.t || a.t == b.t && a.n < b.n }
