package calibrated

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
)

// slow is the model for modules that are synchronised by their dependencies,
// written down from the rules of the package's documentation: no queue of
// events, no parking; every step looks at the next row of every sequencer and
// at all rows before it, and takes the one that can go first. What the machine
// description gives (constants, costs of operations, bytes and rows of a
// transfer) is read as the engine reads it, how an instruction is treated is
// what the generator drew.
type slow struct {
	m       *components.Module
	mach    *machine.Machine
	c       *Constants
	nominal *cost.Nominal
	labels  []label
	anti    bool // anti-dependencies count: run A
	phase   float64
	lo, hi  int // rows of the block

	left    map[sequencerID][]int     // rows not taken yet
	reached map[sequencerID]float64   // when the next of them is reached
	events  map[int]*slowEvent        // rows taken
	pipe    map[sequencerID]float64   // data path free
	retired map[sequencerID]float64   // last result
	trigger map[sequencerID][]float64 // ends of hardware triggers
	room    map[sequencerID][]float64 // when each transfer makes room for another
	soft    map[sequencerID][]float64 // software triggers
	pes     map[uint16]*slowPE
	dmas    map[uint16]*slowDMA

	// choices says which of several transfers that reach the DMA engines at the
	// same moment goes first, which the rules leave open; ways is how many there
	// were to choose from.
	choices, ways []int
}

// label is how the model treats a row.
type label struct {
	what string // data, control, drain, load, stream, matmul, hw, sw, collective, barrier, nothing or loop
	on   sequencerID
	// class names the row in the constants of gaps and durations.
	class string
}

// sequencerID is an engine of a core, or a lane without an engine.
type sequencerID struct {
	core   uint16
	engine components.Engine
	lane   uint16
}

type slowEvent struct {
	start, end, there float64 // there: the result may be used
	passed            float64 // what a barrier behind it waits for
	served            bool    // false for a software transfer still being described
}

type slowPE struct {
	start, end, weights float64 // of the last matmul; when the last weights are there
	transposed          bool
	credit, creditAt    float64         // what the array may still stream faster than the slow clock, in cycles
	use                 map[int]float64 // ns at full rate by window
	window              int             // latest looked at
	looked              bool
}

type slowDMA struct {
	free, writeEnd float64
	write          bool // the last one
	batch          map[sequencerID]float64
	short          map[sequencerID]float64 // end of the last read of short rows
}

func never() float64 { return math.Inf(-1) }

func get(m map[sequencerID]float64, k sequencerID) float64 {
	if v, ok := m[k]; ok {
		return v
	}
	return never()
}

// simulate places all rows.
func (s *slow) simulate() {
	s.left, s.reached, s.events = map[sequencerID][]int{}, map[sequencerID]float64{}, map[int]*slowEvent{}
	s.pipe, s.retired = map[sequencerID]float64{}, map[sequencerID]float64{}
	s.trigger, s.room, s.soft = map[sequencerID][]float64{}, map[sequencerID][]float64{}, map[sequencerID][]float64{}
	s.pes, s.dmas = map[uint16]*slowPE{}, map[uint16]*slowDMA{}
	s.ways = nil
	for i := s.lo; i < s.hi; i++ {
		l := s.labels[i]
		if l.what != "loop" {
			s.left[l.on] = append(s.left[l.on], i)
		}
		if s.pes[l.on.core] == nil {
			s.pes[l.on.core] = &slowPE{start: never(), end: never(), weights: never(), creditAt: -1e12, use: map[int]float64{}}
			s.dmas[l.on.core] = &slowDMA{free: never(), writeEnd: never(), batch: map[sequencerID]float64{}, short: map[sequencerID]float64{}}
		}
	}
	for {
		first := math.Inf(1)
		var rows []int // those that go at first, in program order
		consider := func(i int, at float64) {
			if at < first {
				first, rows = at, rows[:0]
			}
			if at == first {
				rows = append(rows, i)
			}
		}
		for _, left := range s.left {
			if len(left) > 0 {
				if at, ok := s.canGo(left[0]); ok {
					consider(left[0], at)
				}
			}
		}
		for i, e := range s.events {
			if !e.served {
				consider(i, e.start)
			}
		}
		if len(rows) == 0 {
			break
		}
		slices.Sort(rows)
		// The order of what shares nothing is of no consequence.
		pick := slices.IndexFunc(rows, func(i int) bool {
			return s.labels[i].what != "hw" && s.labels[i].what != "static" && s.events[i] == nil
		})
		if pick < 0 {
			pick = 0
			if core := s.labels[rows[0]].on.core; len(rows) > 1 {
				rows = slices.DeleteFunc(rows, func(i int) bool { return s.labels[i].on.core != core })
			}
			if len(rows) > 1 {
				if n := len(s.ways); n < len(s.choices) {
					pick = s.choices[n]
				}
				s.ways = append(s.ways, len(rows))
			}
		}
		i := rows[pick]
		if e := s.events[i]; e != nil {
			_, e.there = s.serve(i, e.start)
			e.end, e.served = e.there, true
			continue
		}
		s.take(i)
	}
}

// dependencies returns when all that row i needs is there, and false while
// that is not known.
func (s *slow) dependencies(i int) (at float64, ok bool) {
	at = never()
	for _, w := range s.m.Edges.Preds.Row(i) {
		q, kind := int(w&ecs.TargetMask), components.KindOfClass(uint8(w>>ecs.ClassShift))
		if kind == components.Anti && !s.anti {
			continue
		}
		e := s.events[q]
		if e == nil || !e.served {
			return 0, false
		}
		transfer := s.labels[q].what == "hw" || s.labels[q].what == "sw" || s.labels[q].what == "static"
		inOrder := kind == components.Anti || kind == components.Ordered || s.labels[i].on.engine == components.PE
		if s.labels[q].on == s.labels[i].on && inOrder && !transfer {
			continue
		}
		at = max(at, e.there)
	}
	return at, true
}

// canGo returns when the sequencer of row i, its next, can take it, and
// false while that is not known.
func (s *slow) canGo(i int) (float64, bool) {
	at, ok := s.dependencies(i)
	if !ok {
		return 0, false
	}
	at = max(at, s.reached[s.labels[i].on])
	if s.labels[i].what == "barrier" {
		for q := s.lo; q < i; q++ {
			if a, b := s.labels[q], s.labels[i]; a.what != "loop" && a.on.core == b.on.core && a.on != b.on {
				e := s.events[q]
				if e == nil {
					return 0, false
				}
				at = max(at, e.passed)
			}
		}
	}
	return at, true
}

// take places row i.
func (s *slow) take(i int) {
	l := s.labels[i]
	g := l.on
	k := &s.c.Engine[g.engine]
	pe := s.pes[g.core]
	reached := s.reached[g]
	at, _ := s.dependencies(i)
	e := &slowEvent{served: true}
	s.left[g] = s.left[g][1:]
	var next float64
	result := func(start, end float64) { // of a data path
		e.start, e.end, e.there = start, end, end+k.Retire
		s.retired[g] = max(get(s.retired, g), end)
	}
	switch l.what {
	case "data":
		ready := max(reached, at+k.Wake)
		var issue, latency, spacing float64
		if op := s.nominal.Op(i); op != nil {
			issue, latency, spacing = s.nominal.Evaluate(op, i)
		} else {
			issue, latency = s.nominal.Rest(i)
		}
		start := max(ready, get(s.pipe, g))
		s.pipe[g] = start + issue
		result(start, max(start+latency, get(s.retired, g)+spacing))
		next = ready + k.Dispatch
	case "load":
		ready := max(reached, at+k.Wake)
		start, shown := s.weights(pe, i, ready)
		result(start, start+shown)
		next = ready + k.Dispatch
	case "stream":
		ready := max(reached, at+s.c.PE.WakeStream)
		start, end := s.columns(pe, i, ready)
		result(start, max(end, get(s.retired, g)))
		next = ready + k.Dispatch
	case "matmul":
		ready := max(reached, at+k.Wake)
		start, _ := s.weights(pe, i, ready)
		_, end := s.columns(pe, i, ready)
		if d := s.m.Instr.DType.At(i); d.Size() == 4 && d != components.Float32R && s.m.Instr.Flags.At(i)&components.FlagTranspose == 0 {
			again, _ := s.weights(pe, i, ready) // 32-bit operands take two passes
			start = min(start, again)
			_, end = s.columns(pe, i, ready)
		}
		result(start, max(end, get(s.retired, g)))
		next = ready + k.Dispatch
	case "control", "drain":
		e.start = max(reached, at+k.WakeControl)
		e.end = e.start + s.constant(g.engine, l.class, k.Chain)
		if r := get(s.retired, g); l.what == "drain" && r > e.start {
			e.end = max(e.end, r+k.Drain)
		}
		e.there = e.end + k.Retire
		next = e.end + s.gap(i)
	case "hw":
		e.start = max(reached, at+k.WakeControl)
		end := s.hardware(i, e)
		e.passed = end
		next = end + s.gap(i)
	case "static":
		e.start = max(reached, at+k.WakeControl)
		e.passed = e.start + s.c.DMA.StaticTrigger
		_, e.there = s.serve(i, e.start)
		e.end = e.there
		next = e.passed + s.gap(i)
	case "sw":
		ready := max(reached, at+k.Wake)
		d := &s.c.DMA
		e.start = ready + d.SWGenerate
		if done := s.soft[g]; len(done) > 0 {
			e.start = max(e.start, done[len(done)-1]+d.SWInterval)
		}
		// Nothing of a transfer by index overlaps with the next one's generation.
		hold := 0.0
		if op := s.m.Instr.Opcode.At(i); op == components.OpcodeIndirectLoad || op == components.OpcodeIndirectSave {
			t, _ := TransferOf(s.m, uint32(i))
			hold = max(0, d.SWGenerate-d.SWInterval) + d.of(t).stream
		}
		s.soft[g] = append(s.soft[g], e.start+hold)
		e.served = false
		e.passed = ready + d.SWDispatch
		next = e.passed
	case "collective":
		issue, latency := s.nominal.Rest(i)
		e.start = max(reached, at, get(s.pipe, g))
		e.end = e.start + latency
		e.there = e.end
		s.pipe[g] = e.start + issue
		next = e.start
	case "barrier":
		s.left[g] = append([]int{i}, s.left[g]...)
		e.start, _ = s.canGo(i)
		s.left[g] = s.left[g][1:]
		e.end, e.there, next = e.start, e.start, e.start
	default: // nothing
		e.start = max(reached, at)
		e.end, e.there, next = e.start, e.start, e.start
	}
	if l.what != "hw" && l.what != "sw" && l.what != "static" {
		e.passed = max(e.end, e.there)
	}
	s.events[i] = e
	s.reached[g] = next
}

func (s *slow) constant(e components.Engine, what string, otherwise float64) float64 {
	if v, ok := s.mach.Calibrated.Constants["seq."+e.String()+"."+what+"_ns"]; ok {
		return v.Value
	}
	return otherwise
}

// gap is the time from the end of row i, which its sequencer executed itself,
// to the next.
func (s *slow) gap(i int) float64 {
	g := s.labels[i].on
	if len(s.left[g]) == 0 {
		return 0
	}
	after := s.labels[s.left[g][0]].class
	if after == WideLoad {
		after = "TENSOR_LOAD"
	}
	return s.constant(g.engine, "gap."+s.labels[i].class+"."+after, s.c.Engine[g.engine].Gap)
}

// full reports whether the PE's clock is at full rate at t, and when the window
// ends: full rate if the window before was used enough. What was decided last
// holds for a load that starts before.
func (s *slow) full(pe *slowPE, t float64) (full bool, until float64) {
	w := s.c.Gov.Window
	k := int(math.Floor((t-s.phase)/w + 1e-9))
	if !pe.looked || k > pe.window {
		pe.window, pe.looked = k, true
	}
	return pe.use[pe.window-1] >= s.c.Gov.Threshold*w, s.phase + float64(pe.window+1)*w
}

// weights loads row i's weights behind the start of the last matmul.
func (s *slow) weights(pe *slowPE, i int, ready float64) (start, shown float64) {
	d, transposed := s.m.Instr.DType.At(i), s.m.Instr.Flags.At(i)&components.FlagTranspose != 0
	operand := 2
	if d.Size() <= 2 || d == components.Float32R {
		operand = 0
	} else if transposed {
		operand = 1
	}
	start = max(ready, pe.start+s.c.PE.AfterStream)
	clock := 1
	if full, _ := s.full(pe, start); full {
		clock = 0
	}
	pe.weights, pe.transposed = start+s.c.PE.FirstLoad[operand][clock], transposed
	if operand > 0 && clock == 1 && start >= pe.end { // uses the burst up
		pe.credit, pe.creditAt = 0, pe.weights
	}
	return start, s.c.PE.Load[operand][clock]
}

// columns streams a matmul's moving tensor and returns its start and when its
// result is there.
func (s *slow) columns(pe *slowPE, i int, ready float64) (start, end float64) {
	c := &s.c.PE
	cycle, slow := 100/float64(s.mach.Clock.PEArray), s.c.Gov.Slow
	start = max(ready, pe.end, pe.weights)
	atFull, _ := s.full(pe, start)
	left, _ := s.nominal.Columns(i)
	rows := min(float64(s.m.Instr.Parts.At(i)), 128) // of the array
	most := c.Burst * (1 - slow)
	pe.credit = min(most, pe.credit+max(0, start-pe.creditAt)/cycle*(1-slow))
	t := start
	for left > 1e-9 {
		full, until := s.full(pe, t)
		n, rate := left, 1.0
		switch {
		case full:
			pe.credit = most
		case pe.credit > 1e-9:
			n = min(n, pe.credit/(1-slow))
		default:
			rate = slow
		}
		n = min(n, (until-t)/cycle*rate)
		if !full && rate == 1 {
			pe.credit -= n * (1 - slow)
		}
		pe.use[pe.window] += n * cycle * rows / 128
		if n <= 1e-9 { // nothing left of the window
			t = until
			continue
		}
		t += n * cycle / rate
		left -= n
	}
	pe.creditAt = t
	switch {
	case atFull && pe.transposed:
		t += c.FixedT * cycle
	case atFull:
		t += c.Fixed * cycle
	}
	pe.start, pe.end = start, t
	fill := c.FillCycles * cycle
	if full, _ := s.full(pe, t); !full {
		fill /= slow
	}
	return start, t + c.FillNs + fill
}

// hardware triggers transfer i at e.start, fills e and returns when the
// sequencer is through.
func (s *slow) hardware(i int, e *slowEvent) (end float64) {
	g := s.labels[i].on
	d := &s.c.DMA
	x, _ := TransferOf(s.m, uint32(i))
	triggers, room := s.trigger[g], s.room[g]
	end = e.start + s.c.Engine[g.engine].TriggerHW
	if x.Rows() > d.ManyRows {
		end += d.TriggerMany
	}
	if len(triggers) == 0 {
		end += d.TriggerFirst
	} else {
		end = max(end, triggers[len(triggers)-1]+d.Interval)
	}
	if depth := int(d.QueueDepth); depth > 0 && len(room) >= depth {
		end = max(end, room[len(room)-depth])
	}
	leaves := never()
	if x.Read && d.ReadLead > 0 {
		leaves = s.dmas[g.core].writeEnd - d.ReadLead
	}
	begin, complete := s.serve(i, e.start)
	if !x.Read {
		leaves = begin + d.QueueLag
	}
	s.trigger[g], s.room[g] = append(triggers, end), append(room, leaves)
	e.end, e.there = complete, complete
	return end
}

// serve moves the data of transfer i, triggered at t.
func (s *slow) serve(i int, t float64) (begin, complete float64) {
	g := s.labels[i].on
	e, d := s.dmas[g.core], &s.c.DMA
	x, _ := TransferOf(s.m, uint32(i))
	many := x.Rows() > d.ManyRows
	piece, row := x.Row, d.Row
	arrive := t
	switch {
	case x.Static:
		arrive += d.SWStartWrite
		if x.Read {
			arrive += d.SWStartRead - d.SWStartWrite
		}
	case x.Soft && x.Read:
		piece = min(max(piece, d.SWReadRow), x.Bytes)
		arrive += d.SWStartRead
	case x.Soft:
		row = d.Chunk
		arrive += d.SWStartWrite
	default:
		from := d.StartWrite
		if x.Read {
			from = d.StartRead
		}
		if many {
			from += d.StartMany
		}
		arrive += from
	}
	stream := max(1, x.Bytes/piece) * (row + piece/d.Rate) / d.Engines
	if x.Transposed && x.OnChip {
		stream = x.Bytes / (d.Rate * d.TransposeOnChip) / d.Engines
	} else if x.Transposed {
		stream = x.Bytes / (d.Rate * d.Transpose) / d.Engines
	}
	short := x.Read && piece < d.SmallRow
	var extra float64
	if x.Static {
		extra = 0
	} else if !x.Read {
		extra = d.WriteIdle * stream
		if e.write && arrive < e.free {
			extra = d.WriteQueued * stream
		}
	} else {
		opened, ok := e.batch[g]
		same := ok && arrive <= opened+d.Batch
		if !same {
			e.batch[g] = arrive
		}
		switch {
		case short:
			extra = d.ReadSmall
		case e.write && arrive < e.free:
			extra = d.Turnaround
		case same || e.free-arrive > d.Backlog:
			extra = d.ReadBatched
		default:
			extra = d.ReadRestart
		}
	}
	begin = max(arrive+d.Skew, e.free)
	if short && !x.Static {
		begin = max(begin, e.short[g])
	}
	end := begin + stream + extra + d.End
	e.free, e.write = end, !x.Read
	if short && !x.Static {
		e.free, e.short[g] = begin+stream, end
	}
	if !x.Read {
		e.writeEnd = end
	}
	return begin, end + d.Complete
}

// drawn are the instructions that modules of the test are made of.
var drawn = []struct {
	op     string
	engine components.Engine
	what   string
	class  string
}{
	{"TensorTensor", components.DVE, "data", "data"}, {"TENSOR_REDUCE", components.DVE, "data", "data"}, {"COPY", components.Activation, "data", "data"},
	{"Activation", components.Activation, "data", "data"}, {"Iota", components.Pool, "data", "data"}, {"Unknown", components.DVE, "data", "data"},
	{"LDWEIGHTS", components.PE, "load", "data"}, {"MATMUL", components.PE, "stream", "data"}, {"Matmult", components.PE, "matmul", "data"},
	{"Matmult", components.PE, "matmul", "data"}, {"NOTIFY", components.Activation, "control", "NOTIFY"}, {"NoOp", components.DVE, "control", "NOP"},
	{"WRITE", components.PE, "control", "WRITE"}, {"TensorLoad", components.SP, "control", "TENSOR_LOAD"}, {"TENSOR_LOAD", components.PE, "control", "TENSOR_LOAD"},
	{"EVENT_SEMAPHORE", components.PE, "control", "EVENT_SEMAPHORE"}, {"DRAIN", components.PE, "drain", "DRAIN"}, {"Drain", components.DVE, "drain", "DRAIN"},
	{"DMACopy", components.SP, "hw", "DMA"}, {"Load", components.Activation, "hw", "DMA"}, {"DMA_DIRECT2D", components.SP, "hw", "DMA"},
	{"DMACopy", components.PE, "static", "DMA"}, {"DMATrigger", components.SP, "static", "DMA"}, {"DMATrigger", components.Pool, "sw", "DMA"}, {"Save", components.Pool, "sw", "DMA"}, {"CollectiveCompute", components.Pool, "collective", "data"},
	{"AllEngineBarrier", components.All, "barrier", "data"}, {"Terminator", components.SP, "nothing", "data"},
}

// draw makes a module of some blocks, which may have a loop each, and says how
// the model treats every row.
func draw(r *rand.Rand, blocks int) (*components.Module, []label) {
	m := components.NewModule("random", "test")
	cores := 1 + r.IntN(2)
	for c := range cores {
		m.AddCoreLanes(uint16(c))
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	var edges components.EdgeSet
	var labels []label
	for range blocks {
		labels = append(labels, drawBlock(r, m, &edges, uint32(f), cores)...)
	}
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	if err := m.Check(); err != nil {
		panic(err)
	}
	return m, labels
}

func drawBlock(r *rand.Rand, m *components.Module, edges *components.EdgeSet, function uint32, cores int) []label {
	n := 1 + r.IntN(40)
	in := &m.Instr
	lo := int(in.Grow(n))
	hi := lo + n
	in.OutElems.Resize(hi)
	in.DMABytes.Resize(hi)
	in.DMARow.Resize(hi)
	labels := make([]label, n)
	transfers := r.IntN(3) // some blocks have more of them
	for i := lo; i < hi; i++ {
		k := drawn[r.IntN(len(drawn))]
		for range transfers {
			if k.class != "DMA" {
				k = drawn[r.IntN(len(drawn))]
			}
		}
		core := uint16(r.IntN(cores))
		on := sequencerID{core: core, engine: k.engine}
		lane := core*components.LanesPerCore + uint16(k.engine)
		var flags components.Flags
		for _, f := range []components.Flags{components.FlagTranspose, components.FlagSrcPSUM, components.FlagStrided, components.FlagDstDRAM} {
			if r.IntN(3) == 0 {
				flags |= f
			}
		}
		in.Elems.Set(i, uint32(1+r.IntN(1024)))
		switch k.what {
		case "hw", "sw", "static":
			switch k.what {
			case "hw":
				flags |= components.FlagHWDGE
			case "static":
				flags |= components.FlagStaticDMA
			}
			if k.op == "DMATrigger" {
				flags |= components.FlagTrigger
			} else {
				lane = core*components.LanesPerCore + components.LaneDMA
			}
			row := 1 << (5 + r.IntN(8))
			in.DMARow.Set(i, uint32(row))
			in.DMABytes.Set(i, uint64(row*(1+r.IntN(200))))
		case "collective":
			flags |= components.FlagCollective
			lane = core*components.LanesPerCore + components.LaneCC0 + uint16(r.IntN(2))
			on.lane = lane
		case "barrier":
			flags |= components.FlagBarrier
			on.engine = components.SP
		case "control":
			if r.IntN(2) == 0 {
				in.Elems.Set(i, 1)
			} else if k.class == "TENSOR_LOAD" {
				k.class = WideLoad
				in.Elems.Set(i, uint32(2+r.IntN(8)))
			}
		}
		in.Opcode.Set(i, m.Opcode(k.op))
		in.Engine.Set(i, k.engine)
		in.Lane.Set(i, lane)
		in.Flags.Set(i, flags)
		in.OutElems.Set(i, uint32(r.IntN(1024)))
		in.Parts.Set(i, uint16(1+r.IntN(128)))
		in.DType.Set(i, components.DType(r.IntN(int(components.NumDTypes))))
		labels[i-lo] = label{k.what, on, k.class}
	}
	b := m.Blocks.Add(m.Symbols.InternString("b"), function, 0, components.InstrID(lo), 1)
	m.Blocks.End.Set(b, uint32(hi))
	if n > 4 && r.IntN(3) == 0 {
		at := lo + r.IntN(n-2)
		in.Opcode.Set(at, components.OpcodeLoop)
		in.Flags.Set(at, components.FlagLoop)
		labels[at-lo].what = "loop"
		body := m.Blocks.Add(m.Symbols.InternString("body"), function, uint32(at+1), components.InstrID(at+1), uint64(1+r.IntN(5)))
		m.Blocks.End.Set(body, uint32(at+2+r.IntN(hi-at-2)))
	}
	for i := lo + 1; i < hi; i++ {
		for range r.IntN(3) {
			edges.Add(components.InstrID(i), components.InstrID(lo+r.IntN(i-lo)), components.EdgeKind(1+r.IntN(4)))
		}
	}
	return labels
}

// differs describes the first event in which the engine and the slow
// simulator differ, empty where they agree. Durations are kept in 32 bits.
func (s *slow) differs(out rows) string {
	same := func(a, b, size float64) bool { return math.Abs(a-b) <= 1e-6+2e-7*size }
	last := 0.0
	for i := s.lo; i < s.hi; i++ {
		l := s.labels[i]
		if l.what == "loop" { // shows at the end of all before it
			if !same(out.start[i], last, last) || out.dur[i] != 0 {
				return fmt.Sprintf("loop %d: engine %v, rules %v", i, out.start[i], last)
			}
			continue
		}
		e := s.events[i]
		if e == nil {
			return fmt.Sprintf("row %d is not placed by the rules", i)
		}
		last = max(last, e.end)
		if end := out.start[i] + float64(out.dur[i]); !same(out.start[i], e.start, 0) || !same(end, e.end, e.end-e.start) || !same(out.arrive[i], e.there, 0) {
			return fmt.Sprintf("row %d (%s, %v): engine %v to %v, there at %v; rules %v to %v, there at %v", i, l.what, l.on, out.start[i], end, out.arrive[i], e.start, e.end, e.there)
		}
	}
	return ""
}

// agree simulates with every order of transfers that the rules leave open
// until one gives the engine's timeline. It returns the first difference
// where none does, and how many orders it tried.
func (s *slow) agree(out rows) (difference string, tried int) {
	s.choices = nil
	for {
		s.simulate()
		d := s.differs(out)
		if tried++; d == "" {
			return "", tried
		}
		if difference == "" {
			difference = d
		}
		next := slices.Clone(s.choices) // count up, the last one first
		for len(next) < len(s.ways) {
			next = append(next, 0)
		}
		next = next[:len(s.ways)]
		for len(next) > 0 && next[len(next)-1]+1 == s.ways[len(next)-1] {
			next = next[:len(next)-1]
		}
		if len(next) == 0 || tried == 5000 {
			return difference, tried
		}
		next[len(next)-1]++
		s.choices = next
	}
}

// TestEngineEqualsSlowSimulator compares every start, end and result of both
// runs over 100,000 random programs in the long form. Ten of them at a time are the blocks of
// one module, which are placed each on its own: looking up the machine's
// constants takes longer than placing a block. Not in the programs: semaphores,
// the preamble of the runtime, transfers that convert types; the phase of the
// governor is drawn, not looked for.
func TestEngineEqualsSlowSimulator(t *testing.T) {
	const blocks = 10
	t.Parallel()
	modules := proptest.Cases(100_000) / blocks
	var machines []*machine.Machine
	var constants []*Constants
	for _, n := range []string{"trn1", "trn2", "trn3"} {
		m, err := machine.Load(n)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Load(m)
		if err != nil {
			t.Fatal(err)
		}
		machines, constants = append(machines, m), append(constants, c)
	}
	for n := range modules {
		r := rand.New(rand.NewPCG(11, uint64(n)))
		m, labels := draw(r, blocks)
		mach, c := machines[n%len(machines)], constants[n%len(machines)]
		p := newProgram(m, mach, c)
		phase := r.Float64() * c.Gov.Window
		for _, run := range []components.Run{components.RunA, components.RunB} {
			out := newRows(p)
			for _, b := range m.TopBlocks() {
				lo, hi := m.Blocks.First.At(b), m.Blocks.End.At(b)
				blk := block{sim: newSim(ctx, p, Options{Phase: phase}, run, out, lo, hi)}
				if err := blk.place(b); err != nil {
					t.Fatal(err)
				}
				s := &slow{m: m, mach: mach, c: c, nominal: p.nominal, labels: labels, anti: run == components.RunA, phase: phase, lo: int(lo), hi: int(hi)}
				if d, tried := s.agree(out); d != "" {
					t.Fatalf("module %d on %s, rows %d to %d, run %d, %d orders: %s", n, mach.Name, lo, hi, run, tried, d)
				}
			}
		}
	}
}
