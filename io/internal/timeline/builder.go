package timeline

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
)

// Row is one piece of work.
type Row struct {
	Start, End uint64     // ns from any origin; of listed rows only the difference counts
	Name       ecs.Symbol // 0 for none
	Op         ecs.Symbol // the operator or block it belongs to: column HLO
	Scope      ecs.Symbol // the operators and annotations around it: column Scope
	Ref        uint64     // the input's own id
	Bytes      uint64     // moved or communicated
	Work       uint64     // arithmetic operations, of rows whose duration follows from them
	Guess      uint64     // of listed rows: the duration by which to order, where not 0
	Opcode     components.Opcode
	Lane       uint16
	Engine     components.Engine
	Flags      components.Flags
	DType      components.DType
}

// Builder collects rows and dependencies in any order.
type Builder struct {
	M    *components.Module
	Rows []Row
	Deps Dependencies
}

// Dependencies are pairs of rows, numbered in the order in which they came.
type Dependencies struct {
	consumer, producer []uint32
	kind               []components.EdgeKind
}

// Len returns how many there are.
func (d *Dependencies) Len() int { return len(d.kind) }

// At returns dependency x.
func (d *Dependencies) At(x int) (consumer, producer uint32, kind components.EdgeKind) {
	return d.consumer[x], d.producer[x], d.kind[x]
}

// Set replaces the rows of dependency x.
func (d *Dependencies) Set(x, consumer, producer int) {
	d.consumer[x], d.producer[x] = uint32(consumer), uint32(producer)
}

// New returns a builder of a module.
func New(name, format string) *Builder {
	return &Builder{M: components.NewModule(name, format)}
}

// Add appends a row and returns its number.
func (b *Builder) Add(r Row) int {
	if len(b.Rows) == cap(b.Rows) { // rows are large: copy them less often
		b.Rows = slices.Grow(b.Rows, max(len(b.Rows), 256))
	}
	b.Rows = append(b.Rows, r)
	return len(b.Rows) - 1
}

// Depend records that row consumer depends on row producer.
func (b *Builder) Depend(consumer, producer int, kind components.EdgeKind) {
	d := &b.Deps
	d.consumer = append(d.consumer, uint32(consumer))
	d.producer = append(d.producer, uint32(producer))
	d.kind = append(d.kind, kind)
}

// Room fails where so many more rows and dependencies would pass the memory
// limit of ctx. A reader that reserves room asks first.
func Room(ctx context.Context, rows, deps int) error {
	const rowSize, dep = 80, 9 // bytes
	return format.Reserve(ctx, uint64(rows)*rowSize+uint64(deps)*dep, fmt.Sprintf("a schedule of %s operations", humanize.Comma(int64(rows))))
}

// Reserve makes room for as many rows and dependencies in all.
func (b *Builder) Reserve(rows, deps int) {
	grow := func(have, want int) int { return max(want-have, 0) }
	b.Rows = slices.Grow(b.Rows, grow(len(b.Rows), rows))
	d := &b.Deps
	n := grow(d.Len(), deps)
	d.consumer, d.producer, d.kind = slices.Grow(d.consumer, n), slices.Grow(d.producer, n), slices.Grow(d.kind, n)
}

// Lane adds a lane for a thread, stream or rank.
func (b *Builder) Lane(name string) (uint16, error) {
	if b.M.Lanes.Len() >= math.MaxUint16 {
		return 0, fmt.Errorf("more than %d threads and streams", math.MaxUint16)
	}
	return b.M.Lanes.Add(b.M.Symbols.InternString(name), components.Unassigned, components.LaneThread, 0), nil
}

// preds returns the edge numbers of every consumer in CSR form.
func (b *Builder) preds() (off, edges []uint32) {
	off = make([]uint32, len(b.Rows)+1)
	for _, c := range b.Deps.consumer {
		off[c+1]++
	}
	for i := range b.Rows {
		off[i+1] += off[i]
	}
	edges = make([]uint32, len(b.Deps.consumer))
	at := append([]uint32(nil), off...)
	for e, c := range b.Deps.consumer {
		edges[at[c]] = uint32(e)
		at[c]++
	}
	return off, edges
}

// longest is the most that one instruction may last, in ns; longer work becomes
// several instructions in a row.
const longest = math.MaxUint32

// mostSplit bounds how many instructions long work may become, so that memory
// follows from the size of the input and not from its times: 78 hours, and more
// in inputs of many rows.
func (b *Builder) mostSplit() int { return 1<<16 + 16*len(b.Rows) }

// emitter fills the instruction table in program order.
type emitter struct {
	b     *Builder
	edges components.EdgeSet
	last  []uint32 // per row: its last instruction
	split int
	err   error
	// Whether any row has an operation, a scope, or moves bytes: a column that
	// would be zero everywhere is absent.
	ops, scopes, bytes, work bool
}

func newEmitter(b *Builder) *emitter {
	e := &emitter{b: b, last: make([]uint32, len(b.Rows))}
	for i := range b.Rows {
		e.ops = e.ops || b.Rows[i].Op != 0
		e.scopes = e.scopes || b.Rows[i].Scope != 0
		e.bytes = e.bytes || b.Rows[i].Bytes != 0
		e.work = e.work || b.Rows[i].Work != 0
	}
	return e
}

// reserve makes room for n instructions.
func (e *emitter) reserve(n int) {
	in := &e.b.M.Instr
	in.Opcode.Reserve(n)
	in.Engine.Reserve(n)
	in.Lane.Reserve(n)
	in.Flags.Reserve(n)
	in.Name.Reserve(n)
	in.Ref.Reserve(n)
	in.DType.Reserve(n)
	in.MeasuredDur.Reserve(n)
	if e.ops {
		in.HLO.Reserve(n)
	}
	if e.scopes {
		in.Scope.Reserve(n)
	}
	if e.bytes {
		in.DMABytes.Reserve(n)
	}
	if e.work {
		in.Work.Reserve(n)
	}
}

// emit appends one row as instructions and returns the first of them.
func (e *emitter) emit(r *Row, start uint64, measured bool) (first, last components.InstrID) {
	in := &e.b.M.Instr
	first = components.InstrID(in.Opcode.Len())
	left := r.End - r.Start
	if e.split+int(left/longest) > e.b.mostSplit() {
		e.err = fmt.Errorf("%q lasts %d ns, or what lies before it: so long a time is taken for an error",
			e.b.M.Symbols.String(r.Name), left)
		left = 0
	}
	for {
		part := min(left, longest)
		last = components.InstrID(in.Opcode.Len())
		in.Opcode.Append(r.Opcode)
		in.Engine.Append(r.Engine)
		in.Lane.Append(r.Lane)
		flags := r.Flags
		if last > first {
			flags |= components.FlagContinued
		}
		if measured {
			flags |= components.FlagMeasured
			in.MeasuredStart.Append(start)
		}
		in.Flags.Append(flags)
		in.Name.Append(r.Name)
		if e.ops {
			in.HLO.Append(r.Op)
		}
		if e.scopes {
			in.Scope.Append(r.Scope)
		}
		in.Ref.Append(r.Ref)
		if e.bytes {
			in.DMABytes.Append(r.Bytes)
		}
		if e.work {
			in.Work.Append(r.Work)
		}
		in.DType.Append(r.DType)
		in.MeasuredDur.Append(uint32(part))
		start += part
		if left -= part; left == 0 {
			return first, last
		}
		e.split++
	}
}

// finish completes the tables that do not depend on the kind of trace.
func (e *emitter) finish() (*components.Module, error) {
	if e.err != nil {
		return nil, e.err
	}
	m := e.b.M
	in := &m.Instr
	n := in.Opcode.Len()
	in.Elems.Resize(n)
	in.Parts.Resize(n)
	in.Banks.Resize(n)
	f := m.Functions.Add(m.Symbols.InternString("trace"), 0)
	m.Blocks.Add(m.Symbols.InternString("Block1"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	if e.split > 0 {
		m.Note("long-event", "work of more than 4.29 s, which one instruction cannot last, became several instructions in a row, of which explain counts the first", e.split)
	}
	if n == 0 {
		return nil, fmt.Errorf("nothing in the input takes part in the simulation")
	}
	if err := m.Link(&e.edges); err != nil {
		return nil, err
	}
	return m, m.Check()
}
