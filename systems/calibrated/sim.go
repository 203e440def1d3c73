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
	queue  queue
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
	k       *EngineConstants
	pe      *tensor // of its core
	tensor  bool    // is the PE's
	pos     int
	pipe    float64 // when the data path is free
	retired float64 // last retirement
	arrived float64 // when the instruction at pos was reached; NaN before that
	waitFor uint32  // plus one: the row it is parked on
	parked  bool    // on a semaphore
	first   bool    // has triggered a transfer
	// ready is when the first seen of what the instruction at pos depends on are
	// there, and readyBy the row, plus one, that is last. known says that those
	// are all.
	ready   float64
	readyBy uint32
	seen    uint32
	known   bool
	// preds is what the instruction at pos depends on, nil with semaphores, and
	// last its last one: reading that early has the rest there when it is asked.
	preds   []uint32
	last    uint32
	trigger float64 // end of the last trigger
	soft    float64 // last software trigger
	softBy  uint32  // row, plus one
	flight  []float64
	room    []float64 // when each of the last transfers triggered makes room for another one
	done    float64   // end of all taken so far, see sim.until
	// Rows, plus one, behind pipe and retired.
	pipeBy, retiredBy uint32
}

// forget forgets what was found out about the instruction at pos.
func (q *sequence) forget() {
	q.ready, q.readyBy, q.seen, q.known = math.Inf(-1), 0, 0, false
}

type semaphore struct {
	value int64
	at    float64 // last change
	by    uint32  // row, plus one, that made it
	wait  []uint16
}

// rows are the results of a run, by row of the module. Blocks write their
// own rows only.
type rows struct {
	start  []float64
	dur    []float32
	arrive []float64 // NaN before the row is placed
	begin  []float64 // of transfers: when the data starts to move; nil where nobody asks
}

func newRows(p *program) rows {
	n := len(p.kind)
	return rows{start: make([]float64, n), dur: make([]float32, n), arrive: make([]float64, n)}
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
	inf := math.Inf(-1)
	s.seqs = make([]sequence, len(p.groups))
	s.pes = make([]tensor, len(p.cores))
	for g, x := range p.groups {
		s.seqs[g] = sequence{list: p.rowsOf(g, lo, hi), k: &p.c.Engine[x.engine], pe: &s.pes[x.unit], tensor: x.engine == components.PE,
			arrived: math.NaN(), ready: inf, pipe: inf, retired: inf, trigger: inf, soft: inf, done: inf}
	}
	if slices.Contains(p.kind[lo:hi], kindBarrier) {
		s.until, s.lo = make([]float64, hi-lo), lo
	}
	s.sems = make([]semaphore, p.sems)
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
	kinds := s.p.kind
	for i := lo; i < hi; i++ {
		if kinds[i] != kindLoop {
			s.arrive[i] = math.NaN()
		}
	}
	for g := range s.seqs {
		q := &s.seqs[g]
		if len(q.list) == 0 {
			continue
		}
		s.look(q)
		t := 0.0
		if s.preamble(q.list[0]) {
			t = s.p.c.Engine[s.p.groups[g].engine].Start + s.opt.Shift
		}
		s.later(t, g)
	}
	for {
		for e, ok := s.queue.first(); ok; e, ok = s.queue.first() {
			if int(e.of) < len(s.seqs) {
				s.step(e.t, int(e.of))
			} else {
				s.deal(e.t, s.queue.take(e.of-uint32(len(s.seqs))))
			}
			s.queue.next()
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

// later has sequencer g take its next step at t.
func (s *sim) later(t float64, g int) { s.queue.push(t, uint32(g)) }

// deal does what is no step of a sequencer.
func (s *sim) deal(t float64, c change) {
	if c.trigger {
		s.trigger(t, c.of)
		return
	}
	s.change(t, c)
}

// preamble reports whether a sequencer's first instruction is the runtime's.
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
		s.arrive[q.waitFor-1] = 0
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
	s.later(max(s.last, 0), best)
	return true
}

// change applies a semaphore operation and wakes who waits for it.
func (s *sim) change(t float64, c change) {
	x := &s.sems[c.of]
	switch c.op {
	case components.SetInc:
		x.value += c.value
	case components.SetDec:
		x.value -= c.value
	case components.SetTo:
		x.value = c.value
	}
	x.at, x.by = t, c.by
	wait := x.wait
	x.wait = x.wait[:0]
	for _, g := range wait {
		s.seqs[g].parked = false
		s.later(t, int(g))
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

// ready finds out when the dependencies of instruction i are there for its
// sequencer (-Inf for none), and returns the row, plus one, that is not placed
// yet. It goes on behind the dependencies that were there when it was asked
// before: what is placed stays, but for rows that were given up.
func (s *sim) ready(q *sequence, g int) (missing uint32) {
	if s.opt.NoSync {
		return 0
	}
	if s.freed > 0 {
		q.forget()
	}
	arrive := s.arrive
	preds := q.preds[q.seen:]
	ready, by := q.ready, q.readyBy
	for k, w := range preds {
		r, class := w&ecs.TargetMask, uint8(w>>ecs.ClassShift)
		if class == components.ClassAnti && s.run == components.RunB {
			break // the last class of a row
		}
		at := arrive[r]
		if at > ready && !s.inOrder(q, g, r, class) {
			ready, by = at, r+1
		} else if at != at {
			q.ready, q.readyBy, q.seen = ready, by, q.seen+uint32(k)
			return r + 1
		}
	}
	q.ready, q.readyBy, q.seen = ready, by, q.seen+uint32(len(preds))
	return 0
}

// look looks up what the instruction depends on to which q has come.
func (s *sim) look(q *sequence) {
	if s.p.syncs || q.pos >= len(q.list) {
		return
	}
	if q.preds = s.p.m.Edges.Preds.Row(int(q.list[q.pos])); len(q.preds) > 0 {
		q.last = q.preds[len(q.preds)-1]
	}
}

// inOrder reports whether sequencer g need not wait for its own row r. An
// engine works in order: on one engine only results that are read or
// overwritten by the data path have to be waited for, and the PE adds up in
// order.
func (s *sim) inOrder(q *sequence, g int, r uint32, class uint8) bool {
	return int(s.p.group[r]) == g && (class == components.ClassAnti || class == components.ClassOrdered || q.tensor) && !s.p.kind[r].transfers()
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
			s.queue.keep(t, uint32(len(s.seqs)), change{op: op[w], of: s.p.sem[w], by: i + 1, value: value[w]})
		}
	}
}

// step lets sequencer g take its next instruction at t, or parks it.
func (s *sim) step(t float64, g int) {
	q := &s.seqs[g]
	if q.pos >= len(q.list) {
		return
	}
	i := q.list[q.pos]
	if math.IsNaN(q.arrived) {
		q.arrived = t
	}
	at, chain, ok := s.released(q, i, g, t)
	if !ok {
		return
	}
	x := taken{q: q, g: g, i: i, arrived: q.arrived, at: at}
	q.arrived = math.NaN()
	q.forget()
	switch kind := s.p.kind[i]; kind {
	case kindData:
		s.data(&x)
	case kindLoad, kindStream, kindMatmul:
		s.product(&x, kind)
	case kindHW:
		s.hardware(&x)
	case kindSW:
		s.software(&x)
	case kindStatic:
		s.static(&x)
	case kindDrain:
		s.drain(&x)
	case kindBarrier:
		s.barrier(&x)
	case kindOther:
		s.other(&x)
	case kindNone:
		s.because(&x, 0, bound{}, bound{})
		ready := x.ready(0)
		s.finish(g, i, ready, ready, ready, ready)
	default:
		s.sequenced(&x, chain)
	}
}

// released returns when the last of what instruction i waits for was there
// (-Inf for nothing), and whether it waits for a step of the runtime's barrier.
// Where that is not there yet at t, the sequencer is parked or comes again.
func (s *sim) released(q *sequence, i uint32, g int, t float64) (at float64, chain, ok bool) {
	s.heldBy = 0
	if s.p.syncs {
		at, chain, missing := s.held(i)
		if missing >= 0 {
			q.parked = true
			s.sems[missing].wait = append(s.sems[missing].wait, uint16(g))
		}
		return at, chain, missing < 0
	}
	if !q.known {
		missing := s.ready(q, g)
		if missing == 0 && s.p.kind[i] == kindBarrier {
			missing = s.unplaced(i, g)
		}
		if missing > 0 {
			q.waitFor = missing
			s.parked++
			s.arrive[missing-1] = awaited
			return 0, false, false
		}
	}
	q.known = false
	if q.ready > t { // transfers must be taken in the order of time
		// All producers are placed, and but for rows that were given up that is final.
		q.known = s.freed == 0
		s.later(q.ready, g)
		return 0, false, false
	}
	s.heldBy = q.readyBy
	return q.ready, false, true
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
	s.raise(i, complete)
	s.settle(i, complete)
}

func (s *sim) finishTransfer(g int, i uint32, start, end, complete, next float64) {
	s.passed(g, i, end)
	s.completed(i, start, end, complete)
	s.later(next, g)
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
// wakes the barriers of its core that are parked on i: they do not wait for its
// transfer, and instructions behind them have to be taken in the order of time.
// A barrier of another core is parked on its predecessors, and does not wait
// for other instructions that g has taken.
func (s *sim) passed(g int, i uint32, t float64) {
	q := &s.seqs[g]
	q.pos++
	s.look(q)
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
			s.later(max(q.done, b.arrived), o)
		}
	}
}

// finish records instruction i: start, end, when its result may be used
// elsewhere and when its sequencer goes on.
func (s *sim) finish(g int, i uint32, start, end, visible, next float64) {
	s.start[i], s.dur[i] = start, float32(end-start)
	s.last = max(s.last, end)
	if s.p.syncs {
		s.raise(i, visible)
	}
	s.passed(g, i, max(end, visible))
	s.later(next, g)
	s.settle(i, visible)
}

// settle records when the result of row i is there, and wakes the sequencers
// that are parked on it.
func (s *sim) settle(i uint32, visible float64) {
	waits := math.Float64bits(s.arrive[i]) == math.Float64bits(awaited) || s.freed > 0
	s.arrive[i] = visible
	if !waits || s.parked == 0 {
		return
	}
	for g := range s.seqs {
		if q := &s.seqs[g]; q.waitFor == i+1 {
			q.waitFor = 0
			s.parked--
			s.later(max(visible, q.arrived), g)
		}
	}
}

// awaited marks, in place of when its result is there, a row that is not placed
// yet and that a sequencer is parked on.
var awaited = math.Float64frombits(0x7ff8_0000_0000_a3a1)
