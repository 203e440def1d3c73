package timeline

import (
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/ecs"
)

// CycleError is a cycle among the dependencies of rows.
type CycleError struct{ Rows []int } // each depends on the next, the last on the first

func (e *CycleError) Error() string {
	return fmt.Sprintf("dependency cycle through %d nodes", len(e.Rows))
}

// Listed makes the module of rows that have durations and no starts. Program
// order is that of a list scheduler: a row is ready when the rows it depends
// on have ended, and a free lane takes its ready row with the lowest number.
// It fails with a *CycleError where that never ends.
func (b *Builder) Listed() (*components.Module, error) {
	n := len(b.Rows)
	waits := make([]uint32, n)
	for _, c := range b.Deps.consumer {
		waits[c]++
	}
	off := make([]uint32, n+1)
	for _, p := range b.Deps.producer {
		off[p+1]++
	}
	for i := range n {
		off[i+1] += off[i]
	}
	consumers := make([]uint32, len(b.Deps.producer))
	at := append([]uint32(nil), off...)
	for x, p := range b.Deps.producer {
		consumers[at[p]] = b.Deps.consumer[x]
		at[p]++
	}

	lanes := make([]uint16, n) // close together, rows lie far apart
	for i := range lanes {
		lanes[i] = b.Rows[i].Lane
	}
	ready := make([]queue, b.M.Lanes.Len()) // rows
	busy := make([]bool, len(ready))
	var running queue // by their ends
	order := make([]uint32, 0, n)
	var now uint64
	issue := func(l uint16) {
		if busy[l] || len(ready[l]) == 0 {
			return
		}
		i := ready[l].pop().row
		busy[l] = true
		order = append(order, i)
		dur := b.Rows[i].End - b.Rows[i].Start
		if g := b.Rows[i].Guess; g > 0 {
			dur = g
		}
		running.push(queued{now + min(dur, math.MaxUint64-now), i})
	}
	for i := range n {
		if waits[i] == 0 {
			ready[lanes[i]].push(queued{0, uint32(i)})
		}
	}
	for l := range ready {
		issue(uint16(l))
	}
	touched := []uint16{}
	for len(running) > 0 {
		now = running[0].at
		touched = touched[:0]
		for len(running) > 0 && running[0].at == now {
			i := running.pop().row
			busy[lanes[i]] = false
			touched = append(touched, lanes[i])
			for _, c := range consumers[off[i]:off[i+1]] {
				if waits[c]--; waits[c] == 0 {
					ready[lanes[c]].push(queued{0, c})
					touched = append(touched, lanes[c])
				}
			}
		}
		for _, l := range touched {
			issue(l)
		}
	}
	if len(order) < n {
		return nil, &CycleError{b.cycle(waits)}
	}

	e := newEmitter(b)
	e.reserve(n)
	for _, i := range order {
		_, last := e.emit(&b.Rows[i], 0, false)
		e.last[i] = uint32(last)
	}
	if e.split > 0 {
		e.dependSplit(b)
	} else {
		e.depend(b)
	}
	return e.finish()
}

// depend hands the dependencies over where every row is one instruction: their
// numbers are replaced in place.
func (e *emitter) depend(b *Builder) {
	var declared [components.NumEdgeKinds]uint64
	d := &b.Deps
	for x, c := range d.consumer {
		declared[d.kind[x]]++
		d.consumer[x] = e.last[c]
		d.producer[x] = ecs.Word(d.kind[x].Class(), e.last[d.producer[x]])
	}
	e.edges.Take(d.consumer, d.producer, declared)
	b.Deps, b.Rows = Dependencies{}, nil
}

// dependSplit adds the dependencies where a row may be several instructions:
// the first of them depends on others, others on the last.
func (e *emitter) dependSplit(b *Builder) {
	first := make([]uint32, len(b.Rows))
	for i, last := range e.last {
		first[i] = last
		if d := b.Rows[i].End - b.Rows[i].Start; d > 0 {
			first[i] -= uint32((d - 1) / longest)
		}
	}
	for x := range b.Deps.Len() {
		consumer, producer, kind := b.Deps.At(x)
		e.edges.Add(components.InstrID(first[consumer]), components.InstrID(e.last[producer]), kind)
	}
}

// cycle returns the rows of a cycle among those that still wait for others.
func (b *Builder) cycle(waits []uint32) []int {
	off, edges := b.preds()
	// Going back from a row that waits leads to another one, so a walk of as
	// many steps as there are rows has entered a cycle.
	back := func(i int) int {
		for _, x := range edges[off[i]:off[i+1]] {
			if p := int(b.Deps.producer[x]); waits[p] > 0 {
				return p
			}
		}
		return i
	}
	at := 0
	for waits[at] == 0 {
		at++
	}
	for range b.Rows {
		at = back(at)
	}
	out := []int{at}
	for i := back(at); i != at; i = back(i) {
		out = append(out, i)
	}
	return out
}

// queued is a row and the time, if any, by which it is ordered first.
type queued struct {
	at  uint64
	row uint32
}

func (a queued) before(b queued) bool { return a.at < b.at || a.at == b.at && a.row < b.row }

// queue is a binary heap whose first element is the least.
type queue []queued

func (q *queue) push(x queued) {
	h := append(*q, x)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
	*q = h
}

func (q *queue) pop() queued {
	h := *q
	least, n := h[0], len(h)-1
	x := h[n]
	h = h[:n]
	i := 0
	for 2*i+1 < n {
		down := 2*i + 1
		if down+1 < n && h[down+1].before(h[down]) {
			down++
		}
		if !h[down].before(x) {
			break
		}
		h[i] = h[down]
		i = down
	}
	if n > 0 {
		h[i] = x
	}
	*q = h
	return least
}
