package lower

import (
	"context"
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/ecs"
)

// ins is one instruction before it has a row.
type ins struct {
	op     components.Opcode
	eng    components.Engine
	lane   uint16
	flags  components.Flags
	elems  int64
	out    int64
	parts  int64
	dtype  components.DType
	banks  uint16
	fn     ecs.Symbol
	macs   int64
	bytes  int64
	rowLen int64
	queue  uint16
}

type openBlock struct {
	block  int
	first  uint32
	closed [][2]uint32 // rows of loops inside that are closed
	trips  int64
}

// emitter appends instructions and edges to a module in program order.
type emitter struct {
	ctx   context.Context
	m     *components.Module
	opt   *Options
	open  []openBlock
	mult  int64 // product of the trip counts of the open loops
	preds []uint32
	uses  []use
	acc   accesses
	cand  candidates
	safe  uint32  // see settled
	room  uint32  // rows there is room for, see grow
	share float64 // of the graph that is lowered, about
	ops   []components.AccessPattern
	hlo   ecs.Symbol // what the next instructions come from: operator, source line, path
	src   ecs.Symbol
	scope ecs.Symbol
	err   error
	loops int
	named map[ecs.Symbol]int // loops by operator
	texts map[string]ecs.Symbol

	pend   []pending
	pushed int
	// executed counts instructions times the trip counts around them, of the
	// current function.
	executed int64
}

func (e *emitter) sym(s string) ecs.Symbol {
	if v, ok := e.texts[s]; ok {
		return v
	}
	v := e.m.Symbols.InternString(s)
	e.texts[s] = v
	return v
}

// after adds an edge from the instruction being made to row p.
func (e *emitter) after(p uint32, class uint8) {
	if len(e.preds) < 24 {
		for i, w := range e.preds {
			if w&ecs.TargetMask == p {
				if components.StrongerClass(class, uint8(w>>ecs.ClassShift)) {
					e.preds[i] = ecs.Word(class, p)
				}
				return
			}
		}
	}
	e.preds = append(e.preds, ecs.Word(class, p))
}

// add makes the instruction and returns its row.
func (e *emitter) add(in ins) uint32 {
	m := e.m
	row := uint32(m.Instr.Opcode.Len())
	if row%(1<<18) == 0 && e.err == nil {
		e.err = e.ctx.Err()
	}
	if e.err != nil || int(row) >= e.opt.MaxInstructions {
		if e.err == nil {
			e.err = TooManyError{e.opt.MaxInstructions}
		}
		e.preds, e.uses, e.ops = e.preds[:0], e.uses[:0], e.ops[:0]
		return row
	}
	if row == e.room {
		e.grow()
	}
	t := &m.Instr
	t.Opcode.Append(in.op)
	t.Engine.Append(in.eng)
	t.Lane.Append(in.lane)
	t.Flags.Append(in.flags)
	t.Elems.Append(uint32(min(in.elems, 1<<32-1)))
	t.OutElems.Append(uint32(min(in.out, 1<<32-1)))
	t.Parts.Append(uint16(min(in.parts, 1<<16-1)))
	t.DType.Append(in.dtype)
	t.Banks.Append(in.banks)
	t.Source.Append(e.src)
	t.HLO.Append(e.hlo)
	t.Scope.Append(e.scope)
	t.Func.Append(in.fn)
	t.MACs.Append(uint32(min(in.macs, 1<<32-1)))
	t.DMABytes.Append(uint64(in.bytes))
	t.DMARow.Append(uint32(min(in.rowLen, 1<<32-1)))
	t.Queue.Append(in.queue)
	ch, inLoop := channelOf(&in), e.mult > 1
	for i := range e.uses {
		e.depend(&e.uses[i], ch, inLoop)
	}
	e.settle()
	e.edges(row)
	if e.opt.Operands {
		for _, o := range e.ops {
			m.Operands.Add(o)
		}
		m.Operands.EndRow()
		e.ops = e.ops[:0]
	}
	for i := range e.uses {
		e.note(&e.uses[i], row+1, ch, inLoop)
	}
	e.uses = e.uses[:0]
	if in.flags&components.FlagLoop == 0 {
		e.executed = opgraph.AddSize(e.executed, e.mult)
	}
	return row
}

// grow makes room for twice the rows, and where there are many for as many as
// there will be if the rest of the graph is like what is lowered of it: columns
// that grow copy what they have, and room that nobody touches costs nothing.
func (e *emitter) grow() {
	have := max(int(e.room), 1)
	n := max(2*have, 1<<10)
	if have >= 1<<19 && e.share > 0 {
		n = max(n, int(min(float64(have)/e.share*1.25, float64(32*have))))
	}
	n = min(n, max(e.opt.MaxInstructions, have+1))
	more := float64(n) / float64(have) * 1.1
	words, others := int(float64(e.m.Edges.Preds.Len())*more), int(float64(e.m.Edges.Other.Len())*more)
	e.room = uint32(n)
	t := &e.m.Instr
	t.Opcode.Reserve(n)
	t.Engine.Reserve(n)
	t.Lane.Reserve(n)
	t.Flags.Reserve(n)
	t.Elems.Reserve(n)
	t.OutElems.Reserve(n)
	t.Parts.Reserve(n)
	t.DType.Reserve(n)
	t.Banks.Reserve(n)
	t.Source.Reserve(n)
	t.HLO.Reserve(n)
	t.Scope.Reserve(n)
	t.Func.Reserve(n)
	t.MACs.Reserve(n)
	t.DMABytes.Reserve(n)
	t.DMARow.Reserve(n)
	t.Queue.Reserve(n)
	e.m.Edges.Preds.Reserve(n, words)
	o := &e.m.Edges.Other
	o.From.Reserve(others)
	o.To.Reserve(others)
	o.Kind.Reserve(others)
	o.Scope.Reserve(others)
	o.Distance.Reserve(others)
}

// edges writes the collected predecessors of row: those of its own block to
// the placement relation, the others around it.
func (e *emitter) edges(row uint32) {
	m := e.m
	if len(e.preds) >= 24 {
		e.dedupe()
	}
	b := &e.open[len(e.open)-1]
	kept := e.preds[:0]
	for _, w := range e.preds {
		p := w & ecs.TargetMask
		k := components.KindOfClass(uint8(w >> ecs.ClassShift))
		m.Edges.Declared[k]++
		if p < e.safe && (p < b.first || b.inLoop(p)) {
			m.Edges.Other.Add(components.InstrID(row), components.InstrID(p), k, components.ScopeRegion, 0)
			continue
		}
		kept = append(kept, w)
	}
	m.Edges.Preds.AppendRow(kept)
	e.preds = e.preds[:0]
}

func (e *emitter) dedupe() {
	slices.SortFunc(e.preds, func(a, b uint32) int {
		if x, y := a&ecs.TargetMask, b&ecs.TargetMask; x != y {
			return int(x) - int(y)
		}
		if components.StrongerClass(uint8(a>>ecs.ClassShift), uint8(b>>ecs.ClassShift)) {
			return -1
		}
		return 1
	})
	e.preds = slices.CompactFunc(e.preds, func(a, b uint32) bool { return a&ecs.TargetMask == b&ecs.TargetMask })
}

// inLoop reports whether row p of the block lies in a closed loop.
func (b *openBlock) inLoop(p uint32) bool {
	lo, hi := 0, len(b.closed)
	for lo < hi {
		mid := (lo + hi) / 2
		if b.closed[mid][1] <= p {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(b.closed) && b.closed[lo][0] <= p
}

// begin opens the only top-level block of a function.
func (e *emitter) begin(name string, function int) {
	first := uint32(e.m.Instr.Opcode.Len())
	b := e.m.Blocks.Add(e.sym(name), uint32(function), 0, components.InstrID(first), 1)
	e.open = append(e.open[:0], openBlock{block: b, first: first, trips: 1})
	e.mult, e.executed = 1, 0
	e.acc.reset()
	e.settled()
}

func (e *emitter) finish() {
	e.m.Blocks.End.Set(e.open[0].block, uint32(e.m.Instr.Opcode.Len()))
}

// loop calls body for 0 to n-1. All iterations but the last must be alike.
// Where there are many, it writes out the first few, keeps the middle as a
// loop and writes out the rest: the first fill the pipeline, so that an
// iteration of the loop takes what it takes in the steady state, and the last
// give the users of the result something to wait for.
func (e *emitter) loop(n int64, body func(i int64)) { e.loopTail(n, 1, body) }

// loopTail is loop for iterations that are alike but for the last tail ones.
func (e *emitter) loopTail(n, tail int64, body func(i int64)) {
	warm, step := 2*int64(e.opt.Buffers), 4*int64(e.opt.Buffers)
	trips := (n - warm - tail) / step
	if !e.opt.Compress || n <= int64(e.opt.Unroll) || trips < 2 {
		for i := int64(0); i < n && e.err == nil; i++ {
			body(i)
		}
		return
	}
	e.keep(trips, func() {
		for i := range warm {
			body(i)
		}
	}, func() {
		for i := warm; i < warm+step && e.err == nil; i++ {
			body(i)
		}
	})
	for i := warm + trips*step; i < n && e.err == nil; i++ {
		body(i)
	}
}

// keep writes out first and keeps body as a loop of trips iterations. What is
// held back must be alike inside the loop, and as much at its end as at its
// start: then what runs in an iteration is an iteration's share.
func (e *emitter) keep(trips int64, first, body func()) {
	before := e.pushed
	first()
	for len(e.pend) > 0 && e.pend[0].number < before {
		e.pop()
	}
	e.openLoop(trips)
	held := len(e.pend)
	body()
	for len(e.pend) > held {
		e.pop()
	}
	e.closeLoop()
}

func (e *emitter) openLoop(trips int64) {
	e.loops++
	row := e.add(ins{op: components.OpcodeLoop, eng: components.All, lane: components.LaneUnassigned, flags: components.FlagLoop, dtype: components.Float32})
	parent := &e.open[len(e.open)-1]
	name := e.loopName()
	b := e.m.Blocks.Add(name, e.m.Blocks.Function.At(parent.block), row+1, components.InstrID(row+1), uint64(trips))
	e.open = append(e.open, openBlock{block: b, first: row + 1, trips: trips})
	e.mult = opgraph.MulSize(e.mult, trips)
	e.settled()
}

// loopName names a loop by the operator that it is a part of; its second and
// further loops get #2, #3 and so on.
func (e *emitter) loopName() ecs.Symbol {
	if e.named == nil {
		e.named = map[ecs.Symbol]int{}
	}
	e.named[e.hlo]++
	if n := e.named[e.hlo]; n > 1 {
		return e.sym(e.m.Symbols.String(e.hlo) + "#" + itoa(n))
	}
	return e.hlo
}

func (e *emitter) closeLoop() {
	b := e.open[len(e.open)-1]
	e.open = e.open[:len(e.open)-1]
	end := uint32(e.m.Instr.Opcode.Len())
	e.m.Blocks.End.Set(b.block, end)
	outer := &e.open[len(e.open)-1]
	outer.closed = append(outer.closed, [2]uint32{b.first - 1, end})
	e.mult = 1
	for _, o := range e.open {
		e.mult = opgraph.MulSize(e.mult, o.trips)
	}
	e.settled()
}

// pending is a store that has not been emitted yet: stores are held back a
// few tiles so that the in-order DMA lane does not wait for a result while the
// next tiles could be loaded.
type pending struct {
	emit            func()
	hlo, src, scope ecs.Symbol
	number          int
}

// later emits a store when more than depth are held back.
func (e *emitter) later(depth int, emit func()) {
	e.pend = append(e.pend, pending{emit, e.hlo, e.src, e.scope, e.pushed})
	e.pushed++
	for len(e.pend) > depth {
		e.pop()
	}
}

func (e *emitter) pop() {
	p := e.pend[0]
	e.pend = e.pend[1:]
	hlo, src, scope := e.hlo, e.src, e.scope
	e.hlo, e.src, e.scope = p.hlo, p.src, p.scope
	p.emit()
	e.hlo, e.src, e.scope = hlo, src, scope
}

// drain emits all stores that are held back.
func (e *emitter) drain() {
	for len(e.pend) > 0 {
		e.pop()
	}
	e.pend = nil
}

// each is loopTail for iterations of about rows instructions: where these are
// many, one that is written out before the loop fills the pipeline.
func (e *emitter) each(n, tail, rows int64, body func(t int64)) {
	switch {
	case !e.opt.Compress || n <= 3+tail:
		for t := int64(0); t < n && e.err == nil; t++ {
			body(t)
		}
	case rows < 64:
		e.loopTail(n, tail, body)
	default:
		e.keep(n-1-tail, func() { body(0) }, func() { body(1) })
		for t := n - tail; t < n; t++ {
			body(t)
		}
	}
}

// loopAlike is loop for iterations that are alike to the last one.
func (e *emitter) loopAlike(n int64, body func(i int64)) {
	if n > 0 {
		e.loop(n, body)
	}
}
