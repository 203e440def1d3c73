package calibrated

import (
	"context"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
)

// Window is a span in which the PE runs at full rate.
type Window struct{ Start, End float64 }

// Options turn parts of the model off or replace them by measurements: for
// diagnosis and baselines. The zero value is the model.
type Options struct {
	// Phase is when a governor window starts, in ns from the start.
	Phase float64
	// NoGovernor keeps the PE at full rate.
	NoGovernor bool
	// Windows, where not nil, has the measured windows at full rate by core.
	Windows [][]Window
	// Complete, where not nil, has the measured completion of every transfer
	// by instruction row, NaN where there is none.
	Complete []float64
	// NoSync leaves semaphores and dependencies out.
	NoSync bool
	// Documented uses max(64, N) cycles for every data-path instruction and no
	// latencies.
	Documented bool
	// Shift moves the start of every engine, in ns.
	Shift float64
}

// documented is the cost of every data-path instruction in the vendor's
// published rule of thumb.
var documented = machine.CalibratedOp{PerElem: 1, Min: 64}

// sim is one run of the model over one block.
type sim struct {
	p   *program
	opt Options
	run components.Run
	ctx context.Context

	rows // start, duration and when the result is there (of a transfer, its completion)

	why    *reasons // nil where nobody asks
	heldBy uint32   // row, plus one, whose change held or ready saw last

	seqs   []sequence
	sems   []semaphore
	heap   []event
	hole   bool // the first of heap is taken out, and its place free
	count  uint32
	pes    []tensor
	dmas   []dmaEngines
	parked int // sequences waiting for a row to be placed
	// until is when everything that a sequencer took up to a row is done, but
	// for transfers, of which only the trigger counts; nil without barriers.
	until  []float64
	lo     uint32 // row of until[0]
	placed int64
	last   float64         // largest end so far
	freed  int             // waits given up because nothing could end them
	given  map[uint32]bool // rows whose semaphores were given up
}

// sequence is the state of one sequencer.
type sequence struct {
	list    []uint32 // rows, in program order
	pos     int
	pipe    float64 // when the data path is free
	retired float64 // last retirement
	arrived float64 // when the instruction at pos was reached; NaN before that
	waitFor uint32  // plus one: the row it is parked on
	parked  bool    // on a semaphore
	first   bool    // has triggered a transfer
	// ready is when what the instruction at pos depends on was there, where known
	// says that this was found out, and readyBy the row, plus one, that it was.
	ready   float64
	readyBy uint32
	known   bool
	trigger float64 // end of the last trigger
	soft    float64 // last software trigger
	softBy  uint32  // row, plus one
	flight  []float64
	room    []float64 // when each of the last transfers triggered makes room for another one
	done    float64   // end of all taken so far, see sim.until
	// Rows, plus one, behind pipe and retired.
	pipeBy, retiredBy uint32
}

type semaphore struct {
	value int64
	at    float64 // last change
	by    uint32  // row, plus one, that made it
	wait  []uint16
}

type eventKind uint8

const (
	evStep eventKind = iota
	evSem
	evSoft
)

type event struct {
	t     float64
	n     uint32 // order of making, breaks ties
	kind  eventKind
	op    components.SyncOp
	a     uint32 // sequence, semaphore or row
	by    uint32 // row, plus one, that changes the semaphore
	value int64
}

// rows are the results of a run, by row of the module. Blocks write their
// own rows only.
type rows struct {
	start  []float64
	dur    []float32
	arrive []float64
	begin  []float64 // of transfers: when the data starts to move; nil where nobody asks
	done   []bool    // nil where semaphores tell
}

func newRows(p *program) rows {
	n := len(p.kind)
	r := rows{start: make([]float64, n), dur: make([]float32, n), arrive: make([]float64, n)}
	if !p.syncs {
		r.done = make([]bool, n)
	}
	return r
}

// clear forgets rows lo to hi.
func (r *rows) clear(lo, hi uint32) {
	clear(r.start[lo:hi])
	clear(r.dur[lo:hi])
	clear(r.arrive[lo:hi])
}

// newSim prepares a run over rows lo to hi.
func newSim(ctx context.Context, p *program, opt Options, run components.Run, out rows, lo, hi uint32) *sim {
	s := &sim{p: p, opt: opt, run: run, ctx: ctx, rows: out}
	if out.done != nil {
		clear(out.done[lo:hi])
	}
	inf := math.Inf(-1)
	s.seqs = make([]sequence, len(p.groups))
	for g := range s.seqs {
		s.seqs[g] = sequence{arrived: math.NaN(), pipe: inf, retired: inf, trigger: inf, soft: inf, done: inf}
	}
	if slices.Contains(p.kind[lo:hi], kindBarrier) {
		s.until, s.lo = make([]float64, hi-lo), lo
	}
	s.sems = make([]semaphore, p.sems)
	s.pes = make([]tensor, len(p.cores))
	s.dmas = make([]dmaEngines, len(p.cores))
	for c, core := range p.cores {
		pe := &s.pes[c]
		pe.free, pe.last, pe.loaded, pe.burstT = inf, inf, inf, -1e12
		pe.gov = governor{c: &p.c.Gov, phase: opt.Phase, off: opt.NoGovernor || opt.Documented, keep: run == components.RunA}
		if opt.Windows != nil && int(core) < len(opt.Windows) {
			pe.gov.fixed = opt.Windows[core]
			if pe.gov.fixed == nil {
				pe.gov.fixed = []Window{}
			}
		}
		s.dmas[c].free, s.dmas[c].writeEnd = inf, inf
	}
	return s
}

// place places rows lo to hi but for loops themselves.
func (s *sim) place(lo, hi uint32) error {
	for i := lo; i < hi; i++ {
		if s.p.kind[i] == kindLoop {
			if s.done != nil {
				s.done[i] = true
			}
			continue
		}
		q := &s.seqs[s.p.group[i]]
		q.list = append(q.list, i)
	}
	for g := range s.seqs {
		q := &s.seqs[g]
		if len(q.list) == 0 {
			continue
		}
		t := 0.0
		if s.preamble(q.list[0]) {
			t = s.p.c.Engine[s.p.groups[g].engine].Start + s.opt.Shift
		}
		s.push(event{t: t, kind: evStep, a: uint32(g)})
	}
	for {
		for len(s.heap) > 0 {
			e := s.heap[0]
			s.hole = true
			switch e.kind {
			case evStep:
				s.step(e.t, int(e.a))
			case evSem:
				s.change(e.t, e.a, e.op, e.value, e.by)
			case evSoft:
				s.trigger(e.t, e.a)
			}
			if s.hole { // nothing was pushed
				last := len(s.heap) - 1
				s.heap[0] = s.heap[last]
				s.heap, s.hole = s.heap[:last], false
				s.down()
			}
			if s.placed++; s.placed&0xffff == 0 {
				if err := s.ctx.Err(); err != nil {
					return err
				}
			}
		}
		if !s.unlock() {
			return nil
		}
	}
}

// preamble tells whether a sequencer's first instruction is the runtime's.
func (s *sim) preamble(row uint32) bool {
	pc := s.p.m.Instr.CompilerPC.Slice()
	return len(pc) > 0 && pc[row] == 0
}

// unlock lets the first sequencer that still waits go on: nothing in the
// module will ever end its wait (a truncated or inconsistent program).
func (s *sim) unlock() bool {
	best := -1
	for g := range s.seqs {
		q := &s.seqs[g]
		if q.pos < len(q.list) && (best < 0 || q.list[q.pos] < s.seqs[best].list[s.seqs[best].pos]) {
			best = g
		}
	}
	if best < 0 {
		return false
	}
	q := &s.seqs[best]
	s.freed++
	if q.waitFor > 0 {
		s.done[q.waitFor-1] = true
		q.waitFor = 0
		s.parked--
	}
	if q.parked {
		q.parked = false
		if s.given == nil {
			s.given = map[uint32]bool{}
		}
		s.given[q.list[q.pos]] = true
	}
	s.push(event{t: max(s.last, 0), kind: evStep, a: uint32(best)})
	return true
}

// change applies a semaphore operation and wakes who waits for it.
func (s *sim) change(t float64, id uint32, op components.SyncOp, value int64, by uint32) {
	x := &s.sems[id]
	switch op {
	case components.SetInc:
		x.value += value
	case components.SetDec:
		x.value -= value
	case components.SetTo:
		x.value = value
	}
	x.at, x.by = t, by
	wait := x.wait
	x.wait = x.wait[:0]
	for _, g := range wait {
		s.seqs[g].parked = false
		s.push(event{t: t, kind: evStep, a: uint32(g)})
	}
}

// held returns when the last of the instruction's semaphores got its value
// (-Inf for none), whether it waits for a step of the runtime's barrier, and
// the semaphore that is not there yet, negative where all are.
func (s *sim) held(i uint32) (at float64, chain bool, missing int) {
	at = math.Inf(-1)
	if !s.p.syncs || s.opt.NoSync || s.given[i] {
		return at, false, -1
	}
	t := &s.p.m.Syncs
	off, op, space := t.Offsets.Slice(), t.Op.Slice(), t.Space.Slice()
	wait := s.p.wait[s.run]
	for w := off[i]; w < off[i+1]; w++ {
		if !op[w].IsWait() || wait[w] == noWait {
			continue
		}
		chain = chain || space[w] == '$'
		x := &s.sems[s.p.sem[w]]
		if op[w] == components.WaitGE && x.value < wait[w] || op[w] == components.WaitEQ && x.value != wait[w] {
			return at, chain, int(s.p.sem[w])
		}
		if x.at > at {
			at, s.heldBy = x.at, x.by
		}
	}
	return at, chain, -1
}

// ready returns when the dependencies of instruction i are there for its
// sequencer (-Inf for none), and the row that is not placed yet plus one.
func (s *sim) ready(i uint32, g int) (at float64, missing uint32) {
	at = math.Inf(-1)
	if s.opt.NoSync {
		return at, 0
	}
	p := s.p
	tensor := p.groups[g].engine == components.PE
	for _, w := range p.m.Edges.Preds.Row(int(i)) {
		q, class := w&ecs.TargetMask, uint8(w>>ecs.ClassShift)
		if class == components.ClassAnti && s.run == components.RunB {
			break // the last class of a row
		}
		if !s.done[q] {
			return at, q + 1
		}
		// An engine works in order: on one engine only results that are read
		// or overwritten by the data path have to be waited for, and the PE
		// adds up in order.
		if (class == components.ClassAnti || class == components.ClassOrdered || tensor) && int(p.group[q]) == g && !p.kind[q].transfers() {
			continue
		}
		if s.arrive[q] > at {
			at, s.heldBy = s.arrive[q], q+1
		}
	}
	return at, 0
}

// lastBefore returns the last row of sequencer o that is before row i in
// program order, and whether there is one.
func (s *sim) lastBefore(o int, i uint32) (uint32, bool) {
	list := s.seqs[o].list
	k, _ := slices.BinarySearch(list, i)
	if k == 0 {
		return 0, false
	}
	return list[k-1], true
}

// unplaced returns a row, plus one, that barrier i of sequencer g has to wait
// for: one before it on another sequencer of its core that has not passed yet.
func (s *sim) unplaced(i uint32, g int) uint32 {
	for o := range s.seqs {
		if o == g || s.p.groups[o].core != s.p.groups[g].core {
			continue
		}
		q := &s.seqs[o]
		if h, ok := s.lastBefore(o, i); ok && q.pos < len(q.list) && q.list[q.pos] <= h {
			return h + 1
		}
	}
	return 0
}

// raise schedules the semaphore changes of instruction i at t.
func (s *sim) raise(i uint32, t float64) {
	if !s.p.syncs {
		return
	}
	x := &s.p.m.Syncs
	off, op, value := x.Offsets.Slice(), x.Op.Slice(), x.Value.Slice()
	for w := off[i]; w < off[i+1]; w++ {
		if !op[w].IsWait() {
			s.push(event{t: t, kind: evSem, op: op[w], a: s.p.sem[w], by: i + 1, value: value[w]})
		}
	}
}

// step lets sequencer g take its next instruction at t, or parks it.
func (s *sim) step(t float64, g int) {
	q := &s.seqs[g]
	if q.pos >= len(q.list) {
		return
	}
	p := s.p
	i := q.list[q.pos]
	if math.IsNaN(q.arrived) {
		q.arrived = t
	}
	var at float64
	var chain bool
	s.heldBy = 0
	if p.syncs {
		var missing int
		if at, chain, missing = s.held(i); missing >= 0 {
			q.parked = true
			s.sems[missing].wait = append(s.sems[missing].wait, uint16(g))
			return
		}
	} else {
		if q.known {
			at, s.heldBy, q.known = q.ready, q.readyBy, false
		} else {
			var missing uint32
			at, missing = s.ready(i, g)
			if missing == 0 && p.kind[i] == kindBarrier {
				missing = s.unplaced(i, g)
			}
			if missing > 0 {
				q.waitFor = missing
				s.parked++
				return
			}
		}
		if at > t { // transfers must be taken in the order of time
			// All producers are placed, and but for rows that were given up that is final.
			q.ready, q.readyBy, q.known = at, s.heldBy, s.freed == 0
			s.push(event{t: at, kind: evStep, a: uint32(g)})
			return
		}
	}
	arrived := q.arrived
	q.arrived = math.NaN()
	e := p.groups[g].engine
	core := p.groups[g].core
	k := &p.c.Engine[e]
	switch p.kind[i] {
	case kindData:
		ready := max(arrived, at+k.Wake)
		issue, latency, spacing := s.dataCost(i)
		start := max(ready, q.pipe)
		s.because(g, i, arrived, at, k.Wake, bound{q.pipe, q.pipeBy}, bound{})
		q.pipe = start + issue
		retired := max(start+latency, q.retired+spacing)
		q.retired = max(q.retired, retired)
		q.pipeBy, q.retiredBy = i+1, i+1
		s.finish(g, i, start, retired, retired+k.Retire, ready+k.Dispatch)
	case kindLoad:
		ready := max(arrived, at+k.Wake)
		pe := &s.pes[p.groups[g].unit]
		s.because(g, i, arrived, at, k.Wake, bound{pe.last + p.c.PE.AfterStream, pe.lastBy}, bound{})
		start, end := s.load(pe, i, ready)
		pe.loadedBy = i + 1
		q.retired, q.retiredBy = max(q.retired, end), i+1
		s.finish(g, i, start, end, end+k.Retire, ready+k.Dispatch)
	case kindStream:
		ready := max(arrived, at+p.c.PE.WakeStream)
		pe := &s.pes[p.groups[g].unit]
		s.because(g, i, arrived, at, p.c.PE.WakeStream, bound{pe.free, pe.lastBy}, bound{pe.loaded, pe.loadedBy})
		start, end := s.matmulCost(pe, i, ready)
		pe.lastBy = i + 1
		end = max(end, q.retired)
		q.retired, q.retiredBy = end, i+1
		s.finish(g, i, start, end, end+k.Retire, ready+k.Dispatch)
	case kindMatmul:
		ready := max(arrived, at+k.Wake)
		start, end := math.Inf(1), 0.0
		_, passes := p.nominal.Columns(int(i))
		pe := &s.pes[p.groups[g].unit]
		s.because(g, i, arrived, at, k.Wake, bound{pe.last + p.c.PE.AfterStream, pe.lastBy}, bound{})
		for range passes {
			b, _ := s.load(pe, i, ready)
			start = min(start, b)
			_, end = s.matmulCost(pe, i, ready)
		}
		pe.lastBy, pe.loadedBy = i+1, i+1
		end = max(end, q.retired)
		q.retired, q.retiredBy = end, i+1
		s.finish(g, i, start, end, end+k.Retire, ready+k.Dispatch)
	case kindHW:
		s.because(g, i, arrived, at, k.WakeControl, bound{}, bound{})
		s.hardware(g, i, max(arrived, at+k.WakeControl))
	case kindSW:
		s.because(g, i, arrived, at, k.Wake, bound{q.soft + p.c.DMA.SWInterval, q.softBy}, bound{})
		q.softBy = i + 1
		s.software(g, i, max(arrived, at+k.Wake))
	case kindStatic:
		s.because(g, i, arrived, at, k.WakeControl, bound{}, bound{})
		ready := max(arrived, at+k.WakeControl)
		end := ready + p.c.DMA.StaticTrigger
		_, complete := s.transfer(g, i, ready, p.transferOf(i))
		s.finishTransfer(g, i, ready, end, complete, s.next(g, i, end))
	case kindDrain:
		s.because(g, i, arrived, at, k.WakeControl, bound{}, bound{})
		ready := max(arrived, at+k.WakeControl)
		end := ready + s.control(e, i)
		if q.retired > ready {
			end = max(end, q.retired+k.Drain)
		}
		s.finish(g, i, ready, end, end+k.Retire, s.next(g, i, end))
	case kindBarrier:
		ready := max(arrived, at)
		var others bound
		for o := range s.seqs {
			if h, ok := s.lastBefore(o, i); ok && p.groups[o].core == core && o != g {
				if t := s.until[h-s.lo]; t > others.at {
					others = bound{t, h + 1}
				}
			}
		}
		ready = max(ready, others.at)
		s.because(g, i, arrived, at, 0, others, bound{})
		s.finish(g, i, ready, ready, ready, ready)
	case kindOther:
		issue, latency := p.nominal.Rest(int(i))
		start := max(arrived, at, q.pipe)
		s.because(g, i, arrived, at, 0, bound{q.pipe, q.pipeBy}, bound{})
		q.pipe, q.retired = start+issue, max(q.retired, start+latency)
		q.pipeBy, q.retiredBy = i+1, i+1
		s.finish(g, i, start, start+latency, start+latency, start)
	case kindNone:
		s.because(g, i, arrived, at, 0, bound{}, bound{})
		ready := max(arrived, at)
		s.finish(g, i, ready, ready, ready, ready)
	default:
		ready, end := arrived, 0.0
		if chain {
			end = max(ready+k.Chain, at+k.Hop)
			s.because(g, i, arrived, math.Inf(-1), 0, bound{}, bound{})
		} else {
			s.because(g, i, arrived, at, k.WakeControl, bound{}, bound{})
			ready = max(arrived, at+k.WakeControl)
			end = ready + s.control(e, i)
		}
		s.finish(g, i, ready, end, end+k.Retire, s.next(g, i, end))
	}
}

// control is the duration of a control instruction.
func (s *sim) control(e components.Engine, i uint32) float64 {
	op := s.p.m.Instr.Opcode.At(int(i))
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
	cycles, _ := s.p.nominal.Columns(int(i))
	start = max(ready, pe.free)
	end = start + max(64, cycles)*s.p.cycle
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
func (s *sim) hardware(g int, i uint32, ready float64) {
	q := &s.seqs[g]
	c := s.p.c
	d := &c.DMA
	x := s.p.transferOf(i)
	dur := c.Engine[s.p.groups[g].engine].TriggerHW
	if x.many {
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
		room = s.dmas[s.p.groups[g].unit].writeEnd - d.ReadLead
	}
	begin, complete := s.transfer(g, i, ready, x)
	if !x.Read {
		room = begin + d.QueueLag
	}
	q.room = append(q.room, room)
	if n := len(q.room); n > 64 {
		q.room = append(q.room[:0], q.room[n-32:]...)
	}
	s.finishTransfer(g, i, ready, end, complete, s.next(g, i, end))
}

// software places a trigger of a transfer whose descriptors the GpSimd makes:
// it shows when they are made, and the sequencer does not wait for that.
func (s *sim) software(g int, i uint32, ready float64) {
	q := &s.seqs[g]
	d := &s.p.c.DMA
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
	s.push(event{t: t, kind: evSoft, a: i, value: int64(g)})
	s.passed(g, i, ready+d.SWDispatch)
	s.push(event{t: ready + d.SWDispatch, kind: evStep, a: uint32(g)})
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

func (s *sim) transfer(g int, i uint32, t float64, x *transfer) (begin, complete float64) {
	begin, complete = s.dmas[s.p.groups[g].unit].serve(&s.p.c.DMA, t, x, g)
	if s.opt.Complete != nil && !math.IsNaN(s.opt.Complete[i]) {
		complete = s.opt.Complete[i]
	}
	if s.begin != nil {
		s.begin[i] = begin
	}
	return begin, complete
}

// completed records a transfer.
func (s *sim) completed(i uint32, start, end, complete float64) {
	if !s.p.syncs {
		end = complete
	}
	s.start[i], s.dur[i] = start, float32(end-start)
	s.last = max(s.last, end, complete)
	s.arrive[i] = complete
	s.raise(i, complete)
	s.settle(i, complete)
}

func (s *sim) finishTransfer(g int, i uint32, start, end, complete, next float64) {
	s.passed(g, i, end)
	s.completed(i, start, end, complete)
	s.push(event{t: next, kind: evStep, a: uint32(g)})
}

// endOf is when row i is over, of a transfer its data and its trigger.
func (s *sim) endOf(i uint32) float64 {
	end := s.start[i] + float64(s.dur[i])
	if s.p.kind[i].transfers() {
		end = max(end, s.arrive[i])
	}
	return end
}

// passed moves sequencer g on from instruction i, which keeps it until t. It
// wakes the barriers of its core that are parked on i: they do not wait for
// its transfer, and what follows them has to be taken in the order of time. A
// barrier of another core is parked on what it depends on, and does not wait
// for what else g has taken.
func (s *sim) passed(g int, i uint32, t float64) {
	q := &s.seqs[g]
	q.pos++
	if s.until == nil {
		return
	}
	q.done = max(q.done, t)
	s.until[i-s.lo] = q.done
	if s.parked == 0 {
		return
	}
	for o := range s.seqs {
		if b := &s.seqs[o]; b.waitFor == i+1 && s.p.groups[o].core == s.p.groups[g].core && s.p.kind[b.list[b.pos]] == kindBarrier {
			b.waitFor = 0
			s.parked--
			s.push(event{t: max(q.done, b.arrived), kind: evStep, a: uint32(o)})
		}
	}
}

// finish records instruction i: start, end, when its result may be used
// elsewhere and when its sequencer goes on.
func (s *sim) finish(g int, i uint32, start, end, visible, next float64) {
	s.start[i], s.dur[i] = start, float32(end-start)
	s.arrive[i] = visible
	s.last = max(s.last, end)
	s.raise(i, visible)
	s.passed(g, i, max(end, visible))
	s.push(event{t: next, kind: evStep, a: uint32(g)})
	s.settle(i, visible)
}

// settle wakes the sequencers that are parked on row i.
func (s *sim) settle(i uint32, visible float64) {
	if s.done == nil {
		return
	}
	s.done[i] = true
	if s.parked == 0 {
		return
	}
	for g := range s.seqs {
		if q := &s.seqs[g]; q.waitFor == i+1 {
			q.waitFor = 0
			s.parked--
			s.push(event{t: max(visible, q.arrived), kind: evStep, a: uint32(g)})
		}
	}
}

// push adds an event. The first takes the place of the one that is being dealt
// with: mostly a sequencer goes on, and the heap is gone through once.
func (s *sim) push(e event) {
	s.count++
	e.n = s.count
	if s.hole {
		s.heap[0], s.hole = e, false
		s.down()
		return
	}
	h := append(s.heap, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !before(&e, &h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	s.heap = h
}

// down moves the first event of the heap to where it belongs.
func (s *sim) down() {
	h := s.heap
	if len(h) == 0 {
		return
	}
	e, i := h[0], 0
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
