package compare

import (
	"fmt"
	"math"

	"perfsim/components"
)

func (s *Side) instr(i int) string { return s.Module.InstrName(components.InstrID(i)) }

// reasons finds where a difference comes from: a start that differs as much
// as the end of what the instruction waited for is followed to that, until the
// difference arises.
type reasons struct {
	a, b             *Side
	r                *Report
	pairA, pairB     []int // by row: its pair plus one
	beforeA, beforeB []int // by row: the row before it on its engine plus one
}

func newReasons(a, b *Side, r *Report) *reasons {
	w := &reasons{a: a, b: b, r: r, pairA: make([]int, len(a.Start)), pairB: make([]int, len(b.Start)), beforeA: a.before(), beforeB: b.before()}
	for k, p := range r.pairs {
		w.pairA[p[0]], w.pairB[p[1]] = k+1, k+1
	}
	return w
}

// before returns by row the row before it on its engine plus one.
func (s *Side) before() []int {
	out := make([]int, len(s.Start))
	last := map[[2]uint16]int{}
	m := s.Module
	for i := range s.Start {
		if !s.has(i) {
			continue
		}
		k := [2]uint16{uint16(m.Instr.Engine.At(i)), m.Lanes.Core.At(int(m.Instr.Lane.At(i)))}
		if m.Instr.Engine.At(i) == components.Unassigned {
			k[1] = m.Instr.Lane.At(i)
		}
		out[i] = last[k]
		last[k] = i + 1
	}
	return out
}

// waited returns what row i waited for last: the producer that ended last, or
// the row before it on its engine where that ended later; -1 where neither is
// there.
func (s *Side) waited(i, before int) int {
	q, _ := s.producer([]int{i})
	p := before - 1
	switch {
	case p < 0:
		return q
	case q < 0:
		return p
	case s.openTransfer(q) && s.Start[i]-s.End[p] > signalling:
		return q
	case s.openTransfer(q) || s.End[p] > s.End[q]:
		return p
	}
	return q
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

// mostSteps bounds the walk to the origin of a difference.
const mostSteps = 100_000

// start says why the start of a pair differs.
func (w *reasons) start(pair int) string {
	from := pair
	for range mostSteps {
		d := w.delta(pair)
		p := w.r.pairs[pair]
		qa, qb := w.a.waited(p[0], w.beforeA[p[0]]), w.b.waited(p[1], w.beforeB[p[1]])
		if math.Abs(d) < 1 || qa < 0 || qb < 0 || w.pairA[qa] == 0 || w.pairA[qa] != w.pairB[qb] || qa >= p[0] {
			break
		}
		k := w.pairA[qa] - 1
		near := func(e float64) bool { return math.Abs(d-e) <= max(25, 0.1*math.Abs(d)) }
		if !near(w.delta(k)) && !near(w.endDelta(k)) {
			break
		}
		pair = k
		if math.Abs(w.delta(k)) < math.Abs(d)/2 {
			// It started much as on the other side and lasted otherwise.
			return fmt.Sprintf("%s takes %s: %s", w.at(pair), longer(w.endDelta(pair)-w.delta(pair)), w.duration(pair))
		}
	}
	text := w.origin(pair)
	if pair != from {
		return "since " + w.at(pair) + ": " + text
	}
	return text
}

// at names an instruction of A and when it starts.
func (w *reasons) at(pair int) string {
	i := w.r.pairs[pair][0]
	return fmt.Sprintf("%s at %.2f µs", w.a.instr(i), (w.a.Start[i]-w.r.offsetA)/1e3)
}

// origin names the difference of a pair whose start differs by itself.
func (w *reasons) origin(pair int) string {
	p := w.r.pairs[pair]
	qa, qb := w.a.waited(p[0], w.beforeA[p[0]]), w.b.waited(p[1], w.beforeB[p[1]])
	switch {
	case qa < 0 && qb < 0:
		return "it waits for nothing that the inputs have"
	case qa < 0:
		return "it waits for " + w.what(w.b, qb, w.pairB[qb]) + " in B, for nothing in A"
	case qb < 0:
		return "it waits for " + w.what(w.a, qa, w.pairA[qa]) + " in A, for nothing in B"
	case w.pairA[qa] == 0 || w.pairA[qa] != w.pairB[qb]:
		return "it waits for " + w.what(w.a, qa, w.pairA[qa]) + " in A, for " + w.what(w.b, qb, w.pairB[qb]) + " in B"
	}
	k := w.pairA[qa] - 1
	d := w.delta(pair)
	switch {
	case w.a.openTransfer(qa):
		return fmt.Sprintf("the transfer of %s takes %s", w.a.instr(qa), longer(d-w.delta(k)))
	case w.a.Module.Instr.Engine.At(p[0]) == components.PE && w.clocked(k):
		return "the PE runs at another clock rate"
	}
	return fmt.Sprintf("%s passes between the end of %s and it", longer(d-w.endDelta(k)), w.a.instr(qa))
}

// what names an instruction of one side and says whether the other has it.
func (w *reasons) what(s *Side, i, pair int) string {
	text := fmt.Sprintf("%s %s %s", engine(s.Module, i), opcode(s, i), s.instr(i))
	switch {
	case pair > 0:
	case s == w.a:
		text += " (removed)"
	default:
		text += " (added)"
	}
	return text
}

// duration says why the duration of a pair differs.
func (w *reasons) duration(pair int) string {
	p := w.r.pairs[pair]
	i := p[0]
	m := w.a.Module
	switch {
	case shape(m, i) != shape(w.b.Module, p[1]):
		return fmt.Sprintf("it works on %s in A, on %s in B", orNone(shape(m, i)), orNone(shape(w.b.Module, p[1])))
	case m.Instr.Engine.At(i) == components.PE && w.clocked(pair):
		return "the PE runs at another clock rate"
	case w.a.openTransfer(i):
		return "the DMA queue is full on one side only"
	case m.Instr.Flags.At(i)&components.FlagSequencer != 0:
		return "it waits on one side longer than on the other"
	}
	return "cost of the operation"
}

func orNone(s string) string {
	if s == "" {
		return "nothing known"
	}
	return s
}

// clocked reports whether the durations of a pair differ as two clock rates do.
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
