package birjson

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/jsonscan"
)

// merger puts parsed batches into the module, in input order. It alone
// touches the module while the input is read.
type merger struct {
	m     *components.Module
	w     *worker // of the only goroutine, where there is one
	known map[string]components.Opcode
	in    interner
	size  func() int64 // bytes of input, 0 where not known

	rows   uint32 // rows filled; those of open loops below it are filled later
	sized  bool
	queues map[ecs.Symbol]uint16
	unread []components.Note

	// The open function.
	fn       int
	firstRow uint32
	table    nameTable // names of its instructions
	oddNames bool      // some are called I-<number> but are not that row
	unnamed  []uint32  // rows of open loops, whose names come behind their bodies
	hasDeps  bool
	fns      []*functionState
	segments []segment // of the whole module: where the innermost block changes
	pending  []pendingDep

	word     []uint32 // of the row being made
	others   []otherEdge
	carried  []otherEdge
	declared [components.NumEdgeKinds]uint64
	forward  bool // some depend on a later row
	// forwardAt has the places of the first rows that do: a cycle has one.
	forwardAt map[uint32]jsonscan.Place

	opRows   uint64
	late     []latePlace
	triggers []trigger
	calls    []uint32 // rows of calls
	trips    []loopTrip
	dmas     []dmaEntry
	aliases  aliasSets
}

// functionState is kept of a function to the end.
type functionState struct {
	view    *locationView
	alias   []aliasRef
	firstAt uint32 // first location row
	hasDeps bool
	ops     bool
	instrs  int
}

type segment struct{ row, block uint32 }

type pendingDep struct {
	from     uint32
	kind     components.EdgeKind
	carried  bool
	distance int32
	name     []byte
	at       jsonscan.Place
}

type otherEdge struct {
	from, to uint32
	kind     components.EdgeKind
	scope    components.EdgeScope
	distance int32
}

type latePlace struct {
	fn        int
	row       uint32
	op        uint32
	name, set []byte
	owner     []byte
	offset    int64
	given     givenSet
	at        jsonscan.Place
}

type trigger struct {
	row  uint32
	refs []ecs.Symbol
}

type loopTrip struct {
	row  uint32
	trip uint64
}

type dmaEntry struct {
	name ecs.Symbol
	dmaBlock
}

type aliasRef struct {
	loc  uint32 // row of the location table
	name []byte
	at   jsonscan.Place
}

func newMerger(m *components.Module) *merger {
	g := &merger{m: m, known: make(map[string]components.Opcode, int(components.NumOpcodes)), queues: map[ecs.Symbol]uint16{}}
	for op := range components.NumOpcodes {
		g.known[components.OpcodeName(op)] = op
	}
	g.in = interner{syms: m.Symbols, known: map[string]ecs.Symbol{}}
	g.table.nameOf = func(row uint32) []byte { return m.Symbols.Bytes(m.Instr.Name.At(int(row))) }
	return g
}

// view returns the locations of the open function as they are now.
func (g *merger) view() *locationView {
	if len(g.fns) == 0 {
		return nil
	}
	return g.fns[g.fn].view
}

// merge adds the items of b. The first error in input order is returned.
func (g *merger) merge(b *batch) error {
	o := &b.out
	ni, na, nd := 0, 0, 0
	for i := range b.items {
		it := &b.items[i]
		var err error
		switch it.kind {
		case itemFunction:
			g.begin()
		case itemEnd:
			err = g.end()
		case itemAlloc:
			err = g.allocation(o, &o.allocs[na])
			na++
		case itemDMABlock:
			err = g.dma(o, &o.dmas[nd])
			nd++
		case itemInstr:
			err = g.instr(o, &o.instrs[ni])
			ni++
		}
		if err != nil {
			if _, ok := errors.AsType[*jsonscan.Error](err); ok {
				return err
			}
			return &jsonscan.Error{At: it.at, Err: err}
		}
	}
	for _, u := range o.unread {
		g.note(u.code, string(o.bytes(u.what)), u.count)
	}
	if b.err != nil {
		return b.err
	}
	if !g.sized && ni > 0 {
		g.reserve(b, ni)
	}
	return nil
}

// note counts a remark; how many different ones there may be is bounded.
func (g *merger) note(code, what string, n int) {
	what = clip(what)
	for i := range g.unread {
		if g.unread[i].Code == code && g.unread[i].Text == what {
			g.unread[i].Count += n
			return
		}
	}
	if len(g.unread) < 200 {
		g.unread = append(g.unread, components.Note{Code: code, Text: what, Count: n})
	}
}

// reserve makes room for as many rows as the rest of the input will have if
// it goes on like the first batch, so that the columns need not grow by
// copying.
func (g *merger) reserve(b *batch, rows int) {
	g.sized = true
	size := g.size()
	if size <= 0 || b.size == 0 || rows < batchItems/8 {
		return
	}
	n := int(float64(size) / float64(b.size) * float64(rows) * 1.03)
	n = min(n, ecs.MaxRows-1)
	t := &g.m.Instr
	t.Opcode.Reserve(n)
	t.Engine.Reserve(n)
	t.Lane.Reserve(n)
	t.Flags.Reserve(n)
	t.Elems.Reserve(n)
	t.Parts.Reserve(n)
	t.DType.Reserve(n)
	t.Banks.Reserve(n)
	edges := float64(g.m.Edges.Preds.Len()) / float64(rows) * float64(n)
	g.m.Edges.Preds.Reserve(n, int(edges))
}

func (g *merger) begin() {
	g.fn = len(g.fns)
	g.fns = append(g.fns, &functionState{firstAt: uint32(g.m.Locations.Len())})
	g.firstRow = g.rows
	g.table.reset()
	g.oddNames = false
	g.unnamed = g.unnamed[:0]
	g.hasDeps = false
}

// end closes the open function: names that come after their first use are
// known now.
func (g *merger) end() error {
	f := g.fns[g.fn]
	f.hasDeps = g.hasDeps
	for i := range g.pending {
		p := &g.pending[i]
		to, ok := g.lookup(p.name, hashName(p.name))
		if !ok {
			return &jsonscan.Error{At: p.at, Err: fmt.Errorf("instruction %s depends on %q, which is not in the function",
				g.m.InstrName(components.InstrID(p.from)), clip(string(p.name)))}
		}
		if p.carried {
			g.carried = append(g.carried, otherEdge{p.from, to, p.kind, components.ScopeCarried, p.distance})
			continue
		}
		if to > p.from {
			g.pointsForward(p.from, p.at)
		}
		g.others = append(g.others, otherEdge{from: p.from, to: to, kind: p.kind, scope: g.scope(p.from, to)})
	}
	g.pending = g.pending[:0]
	return nil
}

// mostForward is how many rows that depend on later ones keep their places.
const mostForward = 1 << 12

func (g *merger) pointsForward(row uint32, at jsonscan.Place) {
	g.forward = true
	if g.forwardAt == nil {
		g.forwardAt = map[uint32]jsonscan.Place{}
	}
	if len(g.forwardAt) < mostForward {
		g.forwardAt[row] = at
	}
}

// scope says why an edge is outside the placement relation; it must be.
func (g *merger) scope(from, to uint32) components.EdgeScope {
	flags := g.m.Instr.Flags.Slice()
	switch {
	case (flags[from]|flags[to])&components.FlagLoop != 0:
		return components.ScopeLoop
	case g.region(from) != g.region(to):
		return components.ScopeRegion
	default:
		return components.ScopeLater
	}
}

// region returns the innermost block of a row.
func (g *merger) region(row uint32) uint32 {
	s := g.segments
	if row >= s[len(s)-1].row {
		return s[len(s)-1].block
	}
	i, ok := slices.BinarySearchFunc(s, row, func(s segment, row uint32) int { return cmp.Compare(s.row, row) })
	if !ok {
		i--
	}
	return s[i].block
}

// lookup finds an instruction of the open function by name.
func (g *merger) lookup(name []byte, hash uint64) (uint32, bool) {
	if g.table.used > 0 {
		if row, ok := g.table.find(name, hash); ok {
			return row, true
		}
	}
	if row, ok := implicitRow(name); ok && row >= g.firstRow && row < g.rows && g.m.Instr.Name.Get(int(row)) == 0 &&
		!slices.Contains(g.unnamed, row) {
		return row, true
	}
	return 0, false
}

// pad adds empty rows up to row: those of loops whose own text comes behind
// their blocks.
func (g *merger) pad(row uint32) {
	t := &g.m.Instr
	for ; g.rows < row; g.rows++ {
		g.unnamed = append(g.unnamed, g.rows)
		t.Opcode.Append(components.OpcodeLoop)
		t.Engine.Append(components.Unassigned)
		t.Lane.Append(0)
		t.Flags.Append(components.FlagLoop)
		t.Elems.Append(0)
		t.Parts.Append(0)
		t.DType.Append(components.NoDType)
		t.Banks.Append(0)
		g.m.Edges.Preds.AppendRow(nil)
		if g.m.Operands.Offsets.Len() > 0 {
			g.m.Operands.EndRow()
		}
		if g.m.Syncs.Offsets.Len() > 0 {
			g.m.Syncs.EndRow()
		}
	}
}

// lazy sets row of an optional column, which comes into being with the first
// value other than zero.
func lazy[T ecs.Fixed](c *ecs.Column[T], row uint32, v T) {
	var zero T
	if v != zero || c.Len() > 0 {
		always(c, row, v)
	}
}

// always sets row of an optional column; rows before it that were not set
// hold zero.
func always[T ecs.Fixed](c *ecs.Column[T], row uint32, v T) {
	var zero T
	n := c.Len()
	switch {
	case int(row) < n:
		c.Set(int(row), v)
	case int(row) == n:
		c.Append(v)
	default:
		for range int(row) - n {
			c.Append(zero)
		}
		c.Append(v)
	}
}

// instr adds one instruction.
func (g *merger) instr(o *parsed, in *instr) error {
	m := g.m
	t := &m.Instr
	op := in.opcode
	if !in.unknown.empty() {
		op = m.Opcode(string(o.bytes(in.unknown)))
	}
	g.pad(in.row)
	late := in.row < g.rows // a loop
	if !late {
		if n := len(g.segments); n == 0 || g.segments[n-1].block != in.block {
			g.segments = append(g.segments, segment{in.row, in.block})
		}
		t.Opcode.Append(op)
		t.Engine.Append(in.engine)
		t.Lane.Append(in.lane)
		t.Flags.Append(in.flags)
		t.Elems.Append(in.elems)
		t.Parts.Append(in.parts)
		t.DType.Append(in.dtype)
		t.Banks.Append(in.banks)
		g.rows++
	} else {
		i := int(in.row)
		t.Opcode.Set(i, op)
		t.Engine.Set(i, in.engine)
		t.Lane.Set(i, in.lane)
		t.Flags.Set(i, in.flags)
		t.Elems.Set(i, in.elems)
		t.Parts.Set(i, in.parts)
		t.DType.Set(i, in.dtype)
		t.Banks.Set(i, in.banks)
	}
	f := g.fns[g.fn]
	f.instrs++
	if in.flags&components.FlagLoop != 0 {
		g.trips = append(g.trips, loopTrip{in.row, in.trip})
	}
	lazy(&t.OutElems, in.row, in.outElems)
	lazy(&t.DMABytes, in.row, in.dmaBytes)
	lazy(&t.DMARow, in.row, in.dmaRow)
	if in.hasRef || t.Ref.Len() > 0 {
		always(&t.Ref, in.row, in.ref)
	}
	lazy(&t.PC, in.row, in.pc)
	lazy(&t.CompilerPC, in.row, in.compilerPC)
	if in.measured || t.MeasuredStart.Len() > 0 {
		always(&t.MeasuredStart, in.row, in.mstart)
	}
	if in.measured || in.timed || t.MeasuredDur.Len() > 0 {
		always(&t.MeasuredDur, in.row, in.mdur)
	}
	lazy(&t.MeasuredWait, in.row, in.wait)
	lazy(&t.MACs, in.row, in.macs)
	lazy(&t.Work, in.row, in.work)
	if err := g.texts(o, in); err != nil {
		return err
	}
	if err := g.name(o, in); err != nil {
		return err
	}
	if err := g.edges(o, in, late); err != nil {
		return err
	}
	if !late {
		if err := g.rowsOf(o, in); err != nil {
			return err
		}
	}
	if in.opcode == components.OpcodeCall {
		g.calls = append(g.calls, in.row)
	}
	if in.refs.lo < in.refs.hi {
		tr := trigger{row: in.row}
		for _, r := range o.refs[in.refs.lo:in.refs.hi] {
			s, err := g.in.intern(o.bytes(r))
			if err != nil {
				return err
			}
			tr.refs = append(tr.refs, s)
		}
		g.triggers = append(g.triggers, tr)
	}
	return nil
}

// texts adds the columns that hold text.
func (g *merger) texts(o *parsed, in *instr) error {
	t := &g.m.Instr
	for _, c := range [...]struct {
		col *ecs.Column[ecs.Symbol]
		s   span
	}{{&t.Source, in.source}, {&t.HLO, in.hlo}, {&t.Scope, in.scope}, {&t.Func, in.fn}, {&t.Text, in.text}} {
		if c.s.empty() && c.col.Len() == 0 {
			continue
		}
		sym, err := g.in.intern(o.bytes(c.s))
		if err != nil {
			return err
		}
		lazy(c.col, in.row, sym)
	}
	if in.queue.empty() && t.Queue.Len() == 0 {
		return nil
	}
	q, err := g.queue(o.bytes(in.queue), in.engine)
	if err == nil {
		lazy(&t.Queue, in.row, q)
	}
	return err
}

// queue returns the row plus one of the queue with the given name.
func (g *merger) queue(name []byte, engine components.Engine) (uint16, error) {
	sym, err := g.in.intern(name)
	if sym == 0 || err != nil {
		return 0, err
	}
	q, ok := g.queues[sym]
	if !ok {
		t := &g.m.Queues
		if t.Len() >= math.MaxUint16-1 {
			return 0, fmt.Errorf("more than %d DMA queues", t.Len())
		}
		t.Name.Append(sym)
		t.Engine.Append(engine)
		t.Depth.Append(0)
		q = uint16(t.Len())
		g.queues[sym] = q
	}
	return q, nil
}

// name enters the instruction's name, which must be new in the function.
func (g *merger) name(o *parsed, in *instr) error {
	if i := slices.Index(g.unnamed, in.row); i >= 0 {
		g.unnamed = slices.Delete(g.unnamed, i, i+1)
	}
	name := o.bytes(in.name)
	if len(name) == 0 {
		lazy(&g.m.Instr.Name, in.row, 0)
		return nil
	}
	twice := func() error { return fmt.Errorf("two instructions of one function are called %s", clip(string(name))) }
	n, numbered := implicitRow(name)
	if numbered && n == in.row {
		if g.oddNames {
			if _, ok := g.table.find(name, in.hash); ok {
				return twice()
			}
		}
		lazy(&g.m.Instr.Name, in.row, 0)
		return nil
	}
	if _, ok := g.lookup(name, in.hash); ok {
		return twice()
	}
	g.oddNames = g.oddNames || numbered
	sym, err := g.in.unique(name)
	if err != nil {
		return err
	}
	lazy(&g.m.Instr.Name, in.row, sym)
	g.table.add(in.row, in.hash)
	return nil
}

// edges adds the instruction's dependencies. Producers that are known
// already and in the same block go straight into the placement relation.
func (g *merger) edges(o *parsed, in *instr, late bool) error {
	g.hasDeps = g.hasDeps || in.hasDeps
	row := g.word[:0]
	loop := in.flags&components.FlagLoop != 0
	for i := in.deps.lo; i < in.deps.hi; i++ {
		d := &o.deps[i]
		g.declared[d.kind]++
		name := o.bytes(d.name)
		to, ok := g.lookup(name, d.hash)
		if !ok {
			g.pending = append(g.pending, pendingDep{in.row, d.kind, d.carried, d.distance, slices.Clone(name), in.at})
			continue
		}
		switch {
		case d.carried:
			g.carried = append(g.carried, otherEdge{in.row, to, d.kind, components.ScopeCarried, d.distance})
		case to == in.row:
			return fmt.Errorf("instruction %s depends on itself", clip(string(name)))
		case to > in.row:
			g.pointsForward(in.row, in.at)
			fallthrough
		case loop, g.m.Instr.Flags.At(int(to))&components.FlagLoop != 0, g.region(to) != g.region(in.row):
			g.others = append(g.others, otherEdge{from: in.row, to: to, kind: d.kind, scope: g.scope(in.row, to)})
		default:
			row = append(row, ecs.Word(d.kind.Class(), to))
		}
	}
	g.word = row
	if g.m.Edges.Preds.Len()+len(row) > math.MaxUint32 {
		return errors.New("more than 2^32 dependencies")
	}
	if !late {
		g.m.Edges.Preds.AppendRow(strongest(row))
	}
	return nil
}

// strongest leaves one word of each target: that of the larger kind.
func strongest(row []uint32) []uint32 {
	if len(row) < 2 {
		return row
	}
	slices.SortFunc(row, func(a, b uint32) int { return cmp.Compare(a&ecs.TargetMask, b&ecs.TargetMask) })
	n := 1
	for _, w := range row[1:] {
		if w&ecs.TargetMask != row[n-1]&ecs.TargetMask {
			row[n] = w
			n++
		} else if components.StrongerClass(uint8(w>>ecs.ClassShift), uint8(row[n-1]>>ecs.ClassShift)) {
			row[n-1] = w
		}
	}
	return row[:n]
}

// rowsOf adds the operands and semaphore operations.
func (g *merger) rowsOf(o *parsed, in *instr) error {
	m := g.m
	if in.ops.lo < in.ops.hi || m.Operands.Offsets.Len() > 0 {
		for m.Operands.Offsets.Len() <= int(in.row) {
			m.Operands.Offsets.Append(0)
		}
		if g.opRows += uint64(in.ops.hi - in.ops.lo); g.opRows > math.MaxUint32 {
			return errors.New("more than 2^32 operands")
		}
		g.fns[g.fn].ops = true
		base := uint32(m.Operands.Len())
		for _, op := range o.ops[in.ops.lo:in.ops.hi] {
			m.Operands.Add(op)
		}
		if m.Operands.Step.Len() > math.MaxUint32 {
			return errors.New("more than 2^32 dimensions of operands")
		}
		m.Operands.EndRow()
		for _, l := range o.late[in.late.lo:in.late.hi] {
			g.late = append(g.late, latePlace{g.fn, in.row, base + l.op - in.ops.lo, slices.Clone(o.bytes(l.name)),
				slices.Clone(o.bytes(l.set)), slices.Clone(o.bytes(l.owner)), l.offset, in.given, in.at})
		}
	}
	if in.syncs.lo < in.syncs.hi || m.Syncs.Offsets.Len() > 0 {
		for m.Syncs.Offsets.Len() <= int(in.row) {
			m.Syncs.Offsets.Append(0)
		}
		for _, s := range o.syncs[in.syncs.lo:in.syncs.hi] {
			owner, err := g.in.intern(o.bytes(s.owner))
			if err != nil {
				return err
			}
			m.Syncs.Add(s.op, s.space, s.id, s.value, owner)
		}
		m.Syncs.EndRow()
	}
	return nil
}
