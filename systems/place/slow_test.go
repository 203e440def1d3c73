package place

import (
	"math"

	"perfsim/components"
	"perfsim/ecs"
)

// slow is the reference simulator: plain loops and maps, straight from the
// rules of docs/model.md, one run at a time. The engine must equal it.
type slow struct {
	m     *components.Module
	rules Rules
	run   components.Run

	timelines map[uint16][]slowEvent
	events    map[uint32]slowEvent
	ready     map[uint32]uint64
	bankNext  map[[2]int]uint64 // core, bank
	psumEnd   map[uint16]uint64
	queues    map[int][]uint64

	last        uint64      // largest end
	collectives []slowEvent // all that share bandwidth
}

type slowEvent struct {
	start, dur, next uint64
	stream, core     int
}

func (e slowEvent) end() uint64 { return e.start + e.dur }

func newSlow(m *components.Module, rules Rules, run components.Run) *slow {
	return &slow{m: m, rules: rules, run: run, timelines: map[uint16][]slowEvent{}, events: map[uint32]slowEvent{},
		ready: map[uint32]uint64{}, bankNext: map[[2]int]uint64{}, psumEnd: map[uint16]uint64{}, queues: map[int][]uint64{}}
}

func (s *slow) dispatch(lane uint16) uint64 {
	t := s.timelines[lane]
	if len(t) == 0 {
		return 0
	}
	return t[len(t)-1].next
}

// place adds one instruction.
func (s *slow) place(i uint32) {
	in := &s.m.Instr
	f, lane := in.Flags.At(int(i)), in.Lane.At(int(i))
	if f&components.FlagLoop != 0 {
		return
	}
	core := lane / components.LanesPerCore
	first := core * components.LanesPerCore

	// inst_ready_time
	ready := uint64(0)
	for _, w := range s.m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		kind := components.KindOfClass(uint8(w >> ecs.ClassShift))
		if kind == components.Anti && s.run == components.RunB {
			continue
		}
		ev := s.events[p]
		pf := in.Flags.At(int(p))
		t := ev.end()
		if pf&components.FlagTrigger != 0 {
			t = ev.start
		}
		if kind == components.Ordered {
			t = ev.next
			collective := f&components.FlagCollective != 0 || lane-first == components.LanePool
			if pf&components.FlagCollective != 0 && collective && s.rules.Inputs {
				t = min(t, s.ready[p])
			}
		}
		ready = max(ready, t)
	}

	// determine_start_time
	start := max(ready, s.dispatch(lane))
	if f&components.FlagBarrier != 0 {
		start = ready
		for _, e := range []components.Engine{components.Activation, components.DVE, components.PE, components.Pool, components.SP} {
			start = max(start, s.dispatch(first+uint16(e)))
		}
	}
	banks := in.Banks.At(int(i))
	chained := s.rules.Banks && f&components.FlagDstPSUM != 0 && banks>>8 == 0
	if chained {
		start = max(start, s.bankNext[[2]int{int(core), -1}])
	}
	for b := 0; b < 8; b++ {
		if s.rules.Banks && banks>>(8+b)&1 != 0 {
			start = max(start, s.bankNext[[2]int{int(core), b}])
		}
	}
	if s.rules.Couplings {
		switch lane - first {
		case 5:
			start = max(start, s.dispatch(first+1))
		case 1:
			start = max(start, s.dispatch(first+5))
		case 2:
			start = max(start, s.psumEnd[first+5], s.psumEnd[first+1])
		}
	}

	s.ready[i] = ready
	dur := uint64(in.Latency.At(int(i)))
	next := uint64(in.Issue.At(int(i)))
	if f&components.FlagCollective != 0 && f&components.FlagLocal == 0 && s.rules.Shares != nil {
		stream := int(lane%components.LanesPerCore) - 8
		if stream < 0 {
			stream = 0
		}
		dur = uint64(float64(dur) / s.rules.Shares[stream])
		if s.rules.ReflowWeight > 0 {
			sum := uint64(0)
			for _, e := range s.collectives {
				if e.stream-1 != stream && e.core == int(core) {
					lo, hi := max(e.start, start), min(e.end(), start+dur)
					sum += hi - min(lo, hi)
				}
			}
			dur += uint64(s.rules.ReflowWeight*float64(sum) + 0.5)
		} else if s.rules.Reflow {
			dur = s.reflow(int(core), stream, start, dur)
		}
		next = dur
		defer func() {
			e := s.events[i]
			e.stream, e.core = stream+1, int(core)
			s.collectives = append(s.collectives, e)
		}()
	}
	if f&components.FlagTrigger != 0 && s.rules.Rings {
		class := int(core)*1000 + queueClass(f, in.Engine.At(int(i)))
		depth := int(s.rules.Queues[class%1000].Depth)
		if q := in.Queue.Get(int(i)); q > 0 && s.m.Queues.Depth.At(int(q-1)) > 0 {
			class, depth = -int(q), int(s.m.Queues.Depth.At(int(q-1)))
		}
		if depth > 0 {
			if q := s.queues[class]; len(q) >= depth {
				start = max(start, q[0])
				s.queues[class] = q[1:]
			}
			leaves := start + TransferIssue(s.m, &s.rules, i)
			if HasTransfer(s.m, i) { // an event of the DMA timeline, placed next
				leaves = max(start, s.dispatch(in.Lane.At(int(i)+1))) + uint64(in.Issue.At(int(i)+1))
			}
			s.queues[class] = append(s.queues[class], leaves)
		}
	}
	e := slowEvent{start: start, dur: dur, next: start + next}
	s.events[i] = e
	s.last = max(s.last, e.end())
	s.timelines[lane] = append(s.timelines[lane], e)
	if dur > 0 && chained {
		s.psumEnd[lane] = e.end()
		s.bankNext[[2]int{int(core), -1}] = e.next
	}
	if dur > 0 && banks != 0 && (s.rules.Banks || s.rules.Couplings) {
		if banks>>8 != 0 {
			s.psumEnd[lane] = e.end()
		}
		for b := 0; b < 8; b++ {
			if (banks>>b|banks>>(8+b))&1 != 0 {
				s.bankNext[[2]int{int(core), b}] = e.next
			}
		}
	}
}

// reflow advances from one change of the set of running collectives to the
// next, looking at all events each time.
func (s *slow) reflow(core, stream int, start, work uint64) uint64 {
	left := float64(work)
	t := start
	for left > 0 {
		sum := s.rules.Shares[stream]
		until := uint64(math.MaxUint64)
		for _, e := range s.collectives {
			if e.stream-1 == stream || e.core != core {
				continue
			}
			if e.start <= t && t < e.end() {
				sum += s.rules.Shares[e.stream-1]
				until = min(until, e.end())
			} else if e.start > t && e.dur > 0 {
				until = min(until, e.start)
			}
		}
		slow := max(sum, 1)
		if need := left * slow; until == math.MaxUint64 || need <= float64(until-t) {
			return t + uint64(need+0.5) - start
		}
		left -= float64(until-t) / slow
		t = until
	}
	return t - start
}

// all adds the rows of block b, those of loops once or as often as they run.
func (s *slow) all(b int, trips bool) {
	t := &s.m.Blocks
	for i := t.First.At(b); i < t.End.At(b); i++ {
		if s.m.Instr.Flags.At(int(i))&components.FlagLoop == 0 {
			s.place(i)
			continue
		}
		for body := range t.Len() {
			if t.Parent.At(body) != i+1 {
				continue
			}
			times := uint64(1)
			if trips {
				times = max(t.Trip.At(body), 1)
			}
			for range times {
				s.all(body, trips)
			}
			i = max(i, t.End.At(body)-1)
		}
	}
}
