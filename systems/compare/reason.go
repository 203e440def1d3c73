package compare

import (
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/ecs"
)

func (s *Side) instr(i int) string { return s.Module.InstrName(components.InstrID(i)) }

// reasons finds where a difference comes from: a start that differs as much
// as what the instruction waited for is followed to that, until the
// difference arises.
type reasons struct {
	a, b   *Side
	r      *Report
	pairOf []int // by row of A, plus one
	before []int // by row of A: the row before it on its engine plus one
}

func newReasons(a, b *Side, r *Report) *reasons {
	w := &reasons{a: a, b: b, r: r, pairOf: make([]int, len(a.Start)), before: make([]int, len(a.Start))}
	for k, p := range r.pairs {
		w.pairOf[p[0]] = k + 1
	}
	last := map[[2]uint16]int{}
	m := a.Module
	for i := range a.Start {
		if !a.has(i) {
			continue
		}
		k := [2]uint16{uint16(m.Instr.Engine.At(i)), m.Lanes.Core.At(int(m.Instr.Lane.At(i)))}
		w.before[i] = last[k]
		last[k] = i + 1
	}
	return w
}

func (w *reasons) delta(pair int) float64 {
	p := w.r.pairs[pair]
	return (w.b.Start[p[1]] - w.r.offsB) - (w.a.Start[p[0]] - w.r.offsetA)
}

// endDelta is the difference of the ends.
func (w *reasons) endDelta(pair int) float64 {
	p := w.r.pairs[pair]
	return (w.b.End[p[1]] - w.r.offsB) - (w.a.End[p[0]] - w.r.offsetA)
}

func (w *reasons) isDMA(i int) bool {
	m := w.a.Module
	return m.Instr.Flags.At(i)&(components.FlagHWDGE|components.FlagSWDGE) != 0
}

// mostSteps bounds the walk to the origin of a difference.
const mostSteps = 100_000

// start tells why the start of a pair differs.
func (w *reasons) start(pair int) string {
	from := pair
	for range mostSteps {
		d := w.delta(pair)
		if math.Abs(d) < 1 {
			break
		}
		i := w.r.pairs[pair][0]
		best, bestOff, byEnd := -1, math.Inf(1), false
		try := func(q int) {
			k := w.pairOf[q]
			if k == 0 || q == i {
				return
			}
			for n, e := range []float64{w.delta(k - 1), w.endDelta(k - 1)} {
				if off := math.Abs(d - e); off < bestOff {
					best, bestOff, byEnd = k-1, off, n == 1
				}
			}
		}
		if q := w.before[i]; q > 0 {
			try(q - 1)
		}
		for _, x := range w.a.Module.Edges.Preds.Row(i) {
			q := int(x & ecs.TargetMask)
			try(q)
		}
		if best < 0 || bestOff > max(25, 0.1*math.Abs(d)) || w.r.pairs[best][0] >= i {
			break
		}
		pair = best
		if byEnd && math.Abs(w.delta(pair)) < math.Abs(d)/2 {
			// It started much as on the other side and lasted otherwise.
			i := w.r.pairs[pair][0]
			return fmt.Sprintf("%s at %.2f µs takes %s: %s", w.a.instr(i), (w.a.Start[i]-w.r.offsetA)/1e3, longer(w.endDelta(pair)-w.delta(pair)), w.duration(pair))
		}
	}
	text := w.origin(pair)
	if pair != from {
		i := w.r.pairs[pair][0]
		return fmt.Sprintf("since %s at %.2f µs: %s", w.a.instr(i), (w.a.Start[i]-w.r.offsetA)/1e3, text)
	}
	return text
}

// origin tells what is different about a pair whose start differs by itself.
func (w *reasons) origin(pair int) string {
	i := w.r.pairs[pair][0]
	d := w.delta(pair)
	m := w.a.Module
	for _, x := range m.Edges.Preds.Row(i) {
		q := int(x & ecs.TargetMask)
		if k := w.pairOf[q]; k > 0 && w.isDMA(q) && math.Abs(d-w.delta(k-1)) > 25 {
			return fmt.Sprintf("the transfer of %s takes %s", w.a.instr(q), longer(d-w.delta(k-1)))
		}
	}
	if q := w.before[i]; q > 0 {
		if k := w.pairOf[q-1]; k > 0 {
			if m.Instr.Engine.At(i) == components.PE && w.clocked(k-1) {
				return "the PE runs at another clock rate"
			}
			return fmt.Sprintf("it starts %s after %s on its engine", longer(d-w.endDelta(k-1)), w.a.instr(q-1))
		}
	}
	return fmt.Sprintf("it starts %s", longer(d))
}

// duration tells why the duration of a pair differs.
func (w *reasons) duration(pair int) string {
	i := w.r.pairs[pair][0]
	m := w.a.Module
	switch {
	case m.Instr.Engine.At(i) == components.PE && w.clocked(pair):
		return "the PE runs at another clock rate"
	case w.isDMA(i):
		return "the DMA queue is full on one side only"
	case m.Instr.Flags.At(i)&components.FlagSequencer != 0:
		return "it waits on one side longer than on the other"
	}
	return "cost of the operation"
}

// clocked tells whether the durations of a pair differ as two clock rates do.
func (w *reasons) clocked(pair int) bool {
	p := w.r.pairs[pair]
	a, b := w.a.End[p[0]]-w.a.Start[p[0]], w.b.End[p[1]]-w.b.Start[p[1]]
	return a > 0 && b > 0 && (b/a > 1.2 || a/b > 1.2)
}

func longer(ns float64) string {
	if ns < 0 {
		return fmt.Sprintf("%.0f ns less", -ns)
	}
	return fmt.Sprintf("%.0f ns more", ns)
}
