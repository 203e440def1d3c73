package lower

import (
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// dep is the state of one piece of memory: who wrote it last and who has read
// it since. Of the readers on one lane only the last is kept: a lane retires
// its instructions in program order. Rows are stored plus one.
type dep struct {
	w uint32
	r [numSlots]uint32
	n uint32 // bytes per partition that were written; kept for operands only
}

// The slots of dep.r, by lane.
const (
	slotPool = iota
	slotACT
	slotPE
	slotDMA
	slotDVE
	slotCC // the four streams and the control instructions
	numSlots
)

func slotOf(lane uint16) int {
	switch lane {
	case components.LanePool:
		return slotPool
	case components.LaneActivation:
		return slotACT
	case components.LanePE:
		return slotPE
	case components.LaneDMA:
		return slotDMA
	case components.LaneDVE:
		return slotDVE
	}
	return slotCC
}

// ghost is what is left of a buffer whose room was given to another: the rows
// the new owner must come after.
type ghost struct {
	lo, hi int64
	w, r   [numSlots]uint32 // last writer and reader by lane, plus one
}

// region is a piece of SBUF, PSUM or device memory in equal tiles.
type region struct {
	mem       components.Memory
	lo, bytes int64 // per partition on chip, linear in device memory
	tileBytes int64
	tiles     []dep
	inherit   []ghost
	lastW     uint32 // last writer of any tile, plus one
	looped    bool   // written in a loop whose iterations are not all written out
	loc       uint32 // row of the location table plus one
	refs      int    // values that hold this device memory
}

// span returns the tiles that hold part lo to hi of total.
func (r *region) span(lo, hi, total int64) (t0, t1 int) {
	n := int64(len(r.tiles))
	if total <= 0 || n == 1 {
		return 0, len(r.tiles)
	}
	t0 = int(min(mulDiv(lo, n, total), n-1))
	t1 = int(min(mulDiv(hi, n, total)+1, n))
	if t1-1 > t0 && mulDiv(hi, n, total)*total == hi*n { // hi lies on a border
		t1--
	}
	return t0, max(t1, t0+1)
}

// use is one access of the instruction being made.
type use struct {
	r     *region
	t0    int
	t1    int
	write bool
	more  bool
	n     uint32
}

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
	ops   []components.AccessPattern
	hlo   ecs.Symbol
	src   ecs.Symbol
	err   error
	loops int
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

// read says that the instruction being made reads tiles t0 to t1 of r.
func (e *emitter) read(r *region, t0, t1 int) {
	for t := t0; t < t1; t++ {
		w := r.tiles[t].w
		if w == 0 && r.looped {
			w = r.lastW
		}
		if w != 0 {
			e.after(w-1, components.ClassFlow)
		}
	}
	e.uses = append(e.uses, use{r: r, t0: t0, t1: t1})
}

// write says that it overwrites tiles t0 to t1 of r.
func (e *emitter) write(r *region, t0, t1 int) {
	for t := t0; t < t1; t++ {
		d := &r.tiles[t]
		if d.w == 0 && len(r.inherit) > 0 {
			lo, hi := r.lo+int64(t)*r.tileBytes, r.lo+int64(t+1)*r.tileBytes
			for i := range r.inherit {
				g := &r.inherit[i]
				if g.lo >= hi || g.hi <= lo {
					continue
				}
				for s := range g.w {
					if g.w[s] != 0 {
						e.after(g.w[s]-1, components.ClassOutput)
					}
					if g.r[s] != 0 {
						e.after(g.r[s]-1, components.ClassAnti)
					}
				}
			}
		}
		if d.w != 0 {
			e.after(d.w-1, components.ClassOutput)
		}
		for _, p := range d.r {
			if p != 0 {
				e.after(p-1, components.ClassAnti)
			}
		}
	}
	e.uses = append(e.uses, use{r: r, t0: t0, t1: t1, write: true})
}

// more says that it adds to tile t of r, which an instruction of the same lane
// wrote just before: their lane keeps the order.
func (e *emitter) more(r *region, t int) {
	e.uses = append(e.uses, use{r: r, t0: t, t1: t + 1, write: true, more: true})
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
	t.Func.Append(in.fn)
	t.DMABytes.Append(uint64(in.bytes))
	t.DMARow.Append(uint32(min(in.rowLen, 1<<32-1)))
	t.Queue.Append(in.queue)
	e.edges(row)
	if e.opt.Operands {
		for _, o := range e.ops {
			m.Operands.Add(o)
		}
		m.Operands.EndRow()
		e.ops = e.ops[:0]
	}
	s := slotOf(in.lane)
	inLoop := e.mult > 1
	for _, u := range e.uses {
		tiles := u.r.tiles[u.t0:u.t1]
		if u.write {
			for i := range tiles {
				n := u.n
				if u.more {
					n = max(n, tiles[i].n)
				}
				tiles[i] = dep{w: row + 1, n: n}
			}
			u.r.lastW = row + 1
			u.r.looped = u.r.looped || inLoop
		} else {
			for i := range tiles {
				tiles[i].r[s] = row + 1
			}
		}
	}
	e.uses = e.uses[:0]
	if in.flags&components.FlagLoop == 0 {
		e.executed = components.AddSize(e.executed, e.mult)
	}
	return row
}

// edges writes the collected predecessors of row: those of its own block to
// the placement relation, the others beside it.
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
		if p < b.first || b.inLoop(p) {
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

// inLoop tells whether row p of the block lies in a closed loop.
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
}

func (e *emitter) finish() {
	e.m.Blocks.End.Set(e.open[0].block, uint32(e.m.Instr.Opcode.Len()))
}

// loop calls body for 0 to n-1. All iterations but the last must be alike.
// Where there are many, it writes out the first few, keeps the middle as a
// loop and writes out the rest: the first fill the pipeline, so that an
// iteration of the loop takes what it takes in the steady state, and the last
// give the users of the result something to wait for.
func (e *emitter) loop(n int64, body func(i int64)) {
	warm, step := 2*int64(e.opt.Buffers), 4*int64(e.opt.Buffers)
	trips := (n - warm - 1) / step
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
	name := e.sym("loop." + itoa(e.loops))
	b := e.m.Blocks.Add(name, e.m.Blocks.Function.At(parent.block), row+1, components.InstrID(row+1), uint64(trips))
	e.open = append(e.open, openBlock{block: b, first: row + 1, trips: trips})
	e.mult = components.MulSize(e.mult, trips)
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
		e.mult = components.MulSize(e.mult, o.trips)
	}
}

// pending is a store that has not been emitted yet: stores are held back a
// few tiles so that the in-order DMA lane does not wait for a result while the
// next tiles could be loaded.
type pending struct {
	emit     func()
	hlo, src ecs.Symbol
	number   int
}

// later emits a store when more than depth are held back.
func (e *emitter) later(depth int, emit func()) {
	e.pend = append(e.pend, pending{emit, e.hlo, e.src, e.pushed})
	e.pushed++
	for len(e.pend) > depth {
		e.pop()
	}
}

func (e *emitter) pop() {
	p := e.pend[0]
	e.pend = e.pend[1:]
	hlo, src := e.hlo, e.src
	e.hlo, e.src = p.hlo, p.src
	p.emit()
	e.hlo, e.src = hlo, src
}

// drain emits all stores that are held back.
func (e *emitter) drain() {
	for len(e.pend) > 0 {
		e.pop()
	}
	e.pend = nil
}

// loopAlike is loop for iterations that are alike to the last one.
func (e *emitter) loopAlike(n int64, body func(i int64)) {
	if n > 0 {
		e.loop(n, body)
	}
}
