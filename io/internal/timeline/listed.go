package timeline

import (
	"container/heap"
	"fmt"
	"math"

	"perfsim/components"
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
	for _, c := range b.consumer {
		waits[c]++
	}
	off := make([]uint32, n+1)
	for _, p := range b.producer {
		off[p+1]++
	}
	for i := range n {
		off[i+1] += off[i]
	}
	consumers := make([]uint32, len(b.producer))
	at := append([]uint32(nil), off...)
	for x, p := range b.producer {
		consumers[at[p]] = b.consumer[x]
		at[p]++
	}

	ready := make([]rowHeap, b.M.Lanes.Len())
	busy := make([]bool, len(ready))
	var running endHeap
	order := make([]uint32, 0, n)
	var now uint64
	issue := func(l uint16) {
		if busy[l] || len(ready[l]) == 0 {
			return
		}
		i := heap.Pop(&ready[l]).(uint32)
		busy[l] = true
		order = append(order, i)
		dur := b.Rows[i].End - b.Rows[i].Start
		if g := b.Rows[i].Guess; g > 0 {
			dur = g
		}
		heap.Push(&running, ending{now + min(dur, math.MaxUint64-now), i})
	}
	for i := range n {
		if waits[i] == 0 {
			heap.Push(&ready[b.Rows[i].Lane], uint32(i))
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
			i := heap.Pop(&running).(ending).row
			busy[b.Rows[i].Lane] = false
			touched = append(touched, b.Rows[i].Lane)
			for _, c := range consumers[off[i]:off[i+1]] {
				if waits[c]--; waits[c] == 0 {
					heap.Push(&ready[b.Rows[c].Lane], c)
					touched = append(touched, b.Rows[c].Lane)
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
	offP, edges := b.preds()
	for _, i := range order {
		first, last := e.emit(&b.Rows[i], 0, false)
		for _, x := range edges[offP[i]:offP[i+1]] {
			e.edges.Add(first, components.InstrID(e.last[b.producer[x]]), b.kind[x])
		}
		e.last[i] = uint32(last)
	}
	return e.finish()
}

// cycle returns the rows of a cycle among those that still wait for others.
func (b *Builder) cycle(waits []uint32) []int {
	off, edges := b.preds()
	// Going back from a row that waits leads to another one, so a walk of as
	// many steps as there are rows has entered a cycle.
	back := func(i int) int {
		for _, x := range edges[off[i]:off[i+1]] {
			if p := int(b.producer[x]); waits[p] > 0 {
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

type rowHeap []uint32

func (h rowHeap) Len() int           { return len(h) }
func (h rowHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h rowHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *rowHeap) Push(x any)        { *h = append(*h, x.(uint32)) }
func (h *rowHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

type ending struct {
	at  uint64
	row uint32
}

type endHeap []ending

func (h endHeap) Len() int { return len(h) }
func (h endHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].row < h[j].row
}
func (h endHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)   { *h = append(*h, x.(ending)) }
func (h *endHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
