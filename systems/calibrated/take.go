package calibrated

import (
	"math"

	"perfsim/components"
)

// taken is an instruction that its sequencer takes.
type taken struct {
	q       *sequence
	g       int // the sequencer
	i       uint32
	arrived float64 // when it was reached
	at      float64 // when what it waits for was there
}

// ready is when the instruction may start, whose engine needs so long to wake.
func (x *taken) ready(wake float64) float64 { return max(x.arrived, x.at+wake) }

func (s *sim) data(x *taken) {
	q, k := x.q, x.q.k
	ready := x.ready(k.Wake)
	issue, latency, spacing := s.dataCost(x.i)
	start := max(ready, q.pipe)
	s.because(x, k.Wake, bound{q.pipe, q.pipeBy}, bound{})
	q.pipe = start + issue
	retired := max(start+latency, q.retired+spacing)
	q.retired = max(q.retired, retired)
	q.pipeBy, q.retiredBy = x.i+1, x.i+1
	s.finish(x.g, x.i, start, retired, retired+k.Retire, ready+k.Dispatch)
}

// product places what loads weights or streams, or both.
func (s *sim) product(x *taken, kind kind) {
	q, k, c := x.q, x.q.k, &s.p.c.PE
	pe := q.pe
	ready := x.ready(k.Wake)
	var start, end float64
	switch kind {
	case kindLoad:
		s.because(x, k.Wake, bound{pe.last + c.AfterStream, pe.lastBy}, bound{})
		start, end = s.load(pe, x.i, ready)
		pe.loadedBy = x.i + 1
		q.retired, q.retiredBy = max(q.retired, end), x.i+1
		s.finish(x.g, x.i, start, end, end+k.Retire, ready+k.Dispatch)
		return
	case kindStream:
		ready = x.ready(c.WakeStream)
		s.because(x, c.WakeStream, bound{pe.free, pe.lastBy}, bound{pe.loaded, pe.loadedBy})
		start, end = s.matmulCost(pe, x.i, ready)
	case kindMatmul:
		s.because(x, k.Wake, bound{pe.last + c.AfterStream, pe.lastBy}, bound{})
		start = math.Inf(1)
		for range s.p.products[s.p.shape[x.i]].passes {
			b, _ := s.load(pe, x.i, ready)
			start = min(start, b)
			_, end = s.matmulCost(pe, x.i, ready)
		}
		pe.loadedBy = x.i + 1
	}
	pe.lastBy = x.i + 1
	end = max(end, q.retired)
	q.retired, q.retiredBy = end, x.i+1
	s.finish(x.g, x.i, start, end, end+k.Retire, ready+k.Dispatch)
}

func (s *sim) static(x *taken) {
	k := x.q.k
	s.because(x, k.WakeControl, bound{}, bound{})
	ready := x.ready(k.WakeControl)
	end := ready + s.p.c.DMA.StaticTrigger
	_, complete := s.transfer(x.g, x.i, ready, s.p.transferOf(x.i))
	s.finishTransfer(x.g, x.i, ready, end, complete, s.next(x.g, x.i, end))
}

func (s *sim) drain(x *taken) {
	k := x.q.k
	s.because(x, k.WakeControl, bound{}, bound{})
	ready := x.ready(k.WakeControl)
	end := ready + s.control(x.g, x.i)
	if x.q.retired > ready {
		end = max(end, x.q.retired+k.Drain)
	}
	s.finish(x.g, x.i, ready, end, end+k.Retire, s.next(x.g, x.i, end))
}

func (s *sim) barrier(x *taken) {
	var others bound
	for o := range s.seqs {
		if h, ok := s.lastBefore(o, x.i); ok && s.p.groups[o].core == s.p.groups[x.g].core && o != x.g {
			if t := s.until[h-s.lo]; t > others.at {
				others = bound{t, h + 1}
			}
		}
	}
	ready := max(x.ready(0), others.at)
	s.because(x, 0, others, bound{})
	s.finish(x.g, x.i, ready, ready, ready, ready)
}

// other places what is on a lane of its own: collectives.
func (s *sim) other(x *taken) {
	q := x.q
	issue, latency := s.p.nominal.Rest(int(x.i))
	start := max(x.arrived, x.at, q.pipe)
	s.because(x, 0, bound{q.pipe, q.pipeBy}, bound{})
	q.pipe, q.retired = start+issue, max(q.retired, start+latency)
	q.pipeBy, q.retiredBy = x.i+1, x.i+1
	s.finish(x.g, x.i, start, start+latency, start+latency, start)
}

// sequenced places what the sequencer executes itself; chain tells a step of
// the runtime's barrier.
func (s *sim) sequenced(x *taken, chain bool) {
	k := x.q.k
	ready, end := x.arrived, 0.0
	if chain {
		end = max(ready+k.Chain, x.at+k.Hop)
		free := *x
		free.at = math.Inf(-1)
		s.because(&free, 0, bound{}, bound{})
	} else {
		s.because(x, k.WakeControl, bound{}, bound{})
		ready = x.ready(k.WakeControl)
		end = ready + s.control(x.g, x.i)
	}
	s.finish(x.g, x.i, ready, end, end+k.Retire, s.next(x.g, x.i, end))
}

// control is the duration of a control instruction.
func (s *sim) control(g int, i uint32) float64 {
	e, op := s.p.groups[g].engine, s.p.m.Instr.Opcode.At(int(i))
	if s.p.isWide(i) {
		return s.p.c.Engine[e].LoadWide
	}
	return s.p.control[e][op]
}

// dataCost is the cost of a data-path instruction.
func (s *sim) dataCost(i uint32) (issue, latency, spacing float64) {
	if s.opt.Documented {
		k := documented
		issue, _, _ = s.p.nominal.Evaluate(&k, int(i))
		return issue, issue, 0
	}
	c := &s.p.costs[s.p.shape[i]]
	return c.issue, c.latency, c.spacing
}

func (s *sim) matmulCost(pe *tensor, i uint32, ready float64) (start, end float64) {
	if !s.opt.Documented {
		return s.matmul(pe, i, ready)
	}
	start = max(ready, pe.free)
	end = start + max(64, s.p.products[s.p.shape[i]].cycles)*s.p.cycle
	pe.last, pe.free = start, end
	return start, end
}

// next is when the sequencer takes the instruction behind i, which it
// executed itself until end.
func (s *sim) next(g int, i uint32, end float64) float64 {
	q := &s.seqs[g]
	if q.pos+1 >= len(q.list) {
		return end
	}
	return end + s.p.gapAfter(s.p.groups[g].engine, i, q.list[q.pos+1])
}

// hardware places a trigger of a transfer with hardware descriptors.
func (s *sim) hardware(x *taken) {
	q, i, k, d := x.q, x.i, x.q.k, &s.p.c.DMA
	s.because(x, k.WakeControl, bound{}, bound{})
	ready := x.ready(k.WakeControl)
	moved := s.p.transferOf(i)
	dur := k.TriggerHW
	if moved.many {
		dur += d.TriggerMany
	}
	if !q.first {
		q.first = true
		dur += d.TriggerFirst
	}
	end := max(ready+dur, q.trigger+d.Interval)
	// A queue takes so many transfers; the trigger of the next has to wait until
	// one leaves it: a write when it starts, a read when the writes before it are
	// nearly done, because reads do not pass them.
	if depth := int(d.QueueDepth); depth > 0 && len(q.room) >= depth {
		end = max(end, q.room[len(q.room)-depth])
	}
	q.trigger = end
	room := math.Inf(-1)
	if d.ReadLead > 0 {
		room = s.dmas[s.p.groups[x.g].unit].writeEnd - d.ReadLead
	}
	begin, complete := s.transfer(x.g, i, ready, moved)
	if !moved.Read {
		room = begin + d.QueueLag
	}
	q.room = append(q.room, room)
	if n := len(q.room); n > 64 {
		q.room = append(q.room[:0], q.room[n-32:]...)
	}
	s.finishTransfer(x.g, i, ready, end, complete, s.next(x.g, i, end))
}

// software places a trigger of a transfer whose descriptors the GpSimd makes:
// it shows when they are made, and the sequencer does not wait for that.
func (s *sim) software(x *taken) {
	q, i, k, d := x.q, x.i, x.q.k, &s.p.c.DMA
	s.because(x, k.Wake, bound{q.soft + d.SWInterval, q.softBy}, bound{})
	q.softBy = i + 1
	ready := x.ready(k.Wake)
	t := max(ready+d.SWGenerate, q.soft+d.SWInterval)
	q.soft = t + s.p.indirectHold(i)
	n := 0
	for _, f := range q.flight {
		if f > t-d.SWFlight {
			q.flight[n] = f
			n++
		}
	}
	q.flight = append(q.flight[:n], t)
	end := t + d.SWTrigger + float64(n)*d.SWTriggerStep
	s.start[i], s.dur[i] = t, float32(end-t)
	s.queue.keep(t, uint32(len(s.seqs)), change{trigger: true, of: i})
	s.passed(x.g, i, ready+d.SWDispatch)
	s.later(ready+d.SWDispatch, x.g)
}

// indirectHold is how much longer than usual the next software trigger waits
// behind transfer i. That addresses from memory are resolved one transfer after
// another, generation and data in turn, is an assumption: the machine
// description says how much of it holds (dma.indirect_hold_share).
func (p *program) indirectHold(i uint32) float64 {
	switch p.m.Instr.Opcode.At(int(i)) {
	case components.OpcodeIndirectLoad, components.OpcodeIndirectSave:
		d := &p.c.DMA
		return d.IndirectHold * (max(0, d.SWGenerate-d.SWInterval) + p.transferOf(i).stream)
	}
	return 0
}

// trigger starts the transfer of a software trigger.
func (s *sim) trigger(t float64, i uint32) {
	g := int(s.p.group[i])
	_, complete := s.transfer(g, i, t, s.p.transferOf(i))
	s.completed(i, t, t+float64(s.dur[i]), complete)
}
