package catapult

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/ordered"
)

// Write writes the trace of one top-level block in run r: the documented
// bare array. graph adds what the second trace family has: a flow arrow for
// every honoured dependency, and the dependencies the run left out marked as
// such.
//
// Times are the simulated ns, which viewers show as µs. On one thread events
// never overlap partially: an instruction that leaves its lane before its
// result is visible is drawn as long as it keeps the lane, and its full
// duration stands in the argument latency_ns.
//
// Up to jobs goroutines render; the bytes do not depend on how many.
func Write(ctx context.Context, out io.Writer, w *components.World, block int, r components.Run, graph bool, jobs int) error {
	return newTracer(w, r, graph).block(ctx, out, block, jobs)
}

// tracer is what rendering the events of a block needs; it is read by several
// goroutines at once.
type tracer struct {
	w     *components.World
	m     *components.Module
	run   components.Run
	graph bool
	tids  []int
	// Columns that every record asks for.
	arrive  [][2]uint64
	durs    [][2]uint32 // nil where durations are latencies
	latency []uint32
	flags   []components.Flags
	lane    []uint16
	roles   []components.OperandRole
	dims    []uint32
	numDims []uint8
	steps   []int64
	counts  []uint64
	// What the text of a lane or opcode is, made once.
	laneText, opcodeText [][]byte
	// depText has, by lane and class, what stands between the id of a
	// predecessor on another lane and its end.
	depText [][components.NumClasses][]byte
	// bareText has by opcode what stands between the name and the dependencies
	// of an instruction of which no more is known.
	bareText [][]byte
	// shown is how long each event of the block is drawn, in ns; kept only for
	// the arrows of the graph.
	shown []uint64
	first uint32
	// verbatim tells that the module was read from a trace and keeps the
	// arguments about operands as they were.
	verbatim bool
	// bare tells that nothing is known of any instruction but its opcode, name
	// and dependencies.
	bare bool
}

func newTracer(w *components.World, r components.Run, graph bool) *tracer {
	m := w.Module
	t := &tracer{w: w, m: m, run: r, graph: graph, tids: laneTids(m), arrive: w.Events.Arrive.Slice(), latency: m.Instr.Latency.Slice(),
		flags: m.Instr.Flags.Slice(), lane: m.Instr.Lane.Slice(), verbatim: m.Attribute(documentedTrace) != ""}
	o := &m.Operands
	t.roles, t.dims, t.numDims, t.steps, t.counts = o.Role.Slice(), o.Dims.Slice(), o.NumDims.Slice(), o.Step.Slice(), o.Count.Slice()
	if w.Events.Dur.Len() > 0 {
		t.durs = w.Events.Dur.Slice()
	}
	for l, tid := range t.tids {
		b := append([]byte(nil), `,"pid":0,"tid":`...)
		b = strconv.AppendInt(b, int64(tid), 10)
		t.laneText = append(t.laneText, append(b, `,"args":{"bir_id":`...))
		var deps [components.NumClasses][]byte
		for c := range deps {
			b = append([]byte(nil), `,"engine":"Engine`...)
			b = strconv.AppendInt(b, int64(l), 10)
			b = append(b, '"')
			deps[c] = append(b, edgeText[c]...)
		}
		t.depText = append(t.depText, deps)
	}
	for op := range m.NumOpcodes() {
		b := append([]byte(nil), `","opcode":`...)
		b = format.AppendJSONString(b, m.OpcodeName(components.Opcode(op)))
		b = append(b, `,"nki_source_location":`...)
		t.opcodeText = append(t.opcodeText, b)
		b = append(bytes.Clone(b), `"","input_shapes":"","output_shapes":"","input_access_patterns":"","output_access_patterns":"","inst_dump":"`...)
		b = format.AppendJSONText(b, m.OpcodeName(components.Opcode(op)))
		t.bareText = append(t.bareText, append(b, '"'))
	}
	t.bare = !t.verbatim && m.Instr.Source.Len() == 0 && m.Operands.Len() == 0 && m.Instr.Func.Len() == 0 && m.Instr.Text.Len() == 0
	return t
}

// span returns start and end of row i, as Events.Span does.
func (t *tracer) span(i uint32) (start, end uint64) {
	at := t.arrive[i][t.run]
	dur := uint64(t.latency[i])
	if t.durs != nil {
		dur = uint64(t.durs[i][t.run])
	}
	if t.flags[i]&components.FlagTrigger != 0 {
		return at, at + dur
	}
	return at - dur, at
}

// pieceRows is how many records are rendered at a time: about 100 KB.
const pieceRows = 256

// piece is rows from to to of a lane, or of the block for arrows.
type piece struct{ lane, from, to int }

func (t *tracer) block(ctx context.Context, out io.Writer, b, jobs int) error {
	first, end := t.m.Blocks.First.At(b), t.m.Blocks.End.At(b)
	t.first = first
	lanes := t.byLane(first, end)
	if t.graph {
		t.shown = make([]uint64, end-first)
		for _, rows := range lanes {
			for n, i := range rows {
				_, _, t.shown[i-first] = t.drawn(rows, n)
			}
		}
	}
	if _, err := out.Write(t.threads(lanes)); err != nil {
		return err
	}
	var pieces []piece
	for l, rows := range lanes {
		for from := 0; from < len(rows); from += pieceRows {
			pieces = append(pieces, piece{l, from, min(from+pieceRows, len(rows))})
		}
	}
	events := len(pieces)
	if t.graph {
		for from := int(first); from < int(end); from += pieceRows {
			pieces = append(pieces, piece{0, from, min(from+pieceRows, int(end))})
		}
	}
	err := ordered.Write(ctx, out, jobs, len(pieces), func(n int, buf []byte) []byte {
		p := pieces[n]
		if n >= events {
			for i := p.from; i < p.to; i++ {
				buf = t.arrows(buf, uint32(i))
			}
			return buf
		}
		rows := lanes[p.lane]
		for i := p.from; i < p.to; i++ {
			start, end, dur := t.drawn(rows, i)
			buf = t.event(buf, rows[i], start, end, dur)
		}
		return buf
	})
	if err != nil {
		return err
	}
	_, err = out.Write([]byte("]\n"))
	return err
}

// drawn returns start and end of the n-th event of a lane and how long it is
// drawn: not beyond the next one's start.
func (t *tracer) drawn(rows []uint32, n int) (start, end, dur uint64) {
	start, end = t.span(rows[n])
	until := end
	if n+1 < len(rows) {
		next, _ := t.span(rows[n+1])
		until = min(end, next)
	}
	return start, end, until - start
}

// threads returns the head of the trace: the documented thread names and
// those of the lanes beyond that have events.
func (t *tracer) threads(lanes [][]uint32) []byte {
	b := append([]byte(nil), "[\n"...)
	for tid, name := range documentedLanes {
		if tid > 0 {
			b = append(b, ",\n"...)
		}
		b = appendThread(b, tid, name)
	}
	b = append(b, '\n')
	for l, rows := range lanes {
		if t.tids[l] >= len(documentedLanes) && len(rows) > 0 {
			b = append(b, ',')
			b = appendThread(b, t.tids[l], laneTitle(t.m, l))
			b = append(b, '\n')
		}
	}
	return b
}

// byLane sorts the placed rows of a block by lane, in the order in which
// they are on it.
func (t *tracer) byLane(first, end uint32) [][]uint32 {
	lane, flags := t.m.Instr.Lane.Slice(), t.m.Instr.Flags.Slice()
	count := make([]int, t.m.Lanes.Len())
	for i := first; i < end; i++ {
		if flags[i]&components.FlagLoop == 0 {
			count[lane[i]]++
		}
	}
	all := make([]uint32, 0, end-first)
	out := make([][]uint32, len(count))
	for l, n := range count {
		out[l] = all[len(all) : len(all) : len(all)+n]
		all = all[:len(all)+n]
	}
	for i := first; i < end; i++ {
		if flags[i]&components.FlagLoop == 0 {
			out[lane[i]] = append(out[lane[i]], i)
		}
	}
	for _, rows := range out {
		t.sortByStart(rows)
	}
	return out
}

// sortByStart sorts the rows of a lane by start, the longer first at equal
// starts. In-order lanes are sorted already, save for equal starts.
func (t *tracer) sortByStart(rows []uint32) {
	start := func(i uint32) uint64 { s, _ := t.span(i); return s }
	sorted := true
	for n := 1; n < len(rows) && sorted; n++ {
		sorted = start(rows[n-1]) <= start(rows[n])
	}
	if !sorted {
		slices.SortStableFunc(rows, func(a, b uint32) int {
			if x, y := start(a), start(b); x != y {
				if x < y {
					return -1
				}
				return 1
			}
			return 0
		})
	}
}

// maxExact is the largest integer that JSON readers with floating-point
// numbers keep exactly; larger ids are written as strings.
const maxExact = 1 << 53

func (t *tracer) appendID(b []byte, i uint32) []byte {
	id := uint64(i)
	if t.m.Instr.Ref.Len() > 0 {
		id = t.m.Instr.Ref.At(int(i))
	}
	if id > maxExact {
		b = append(b, '"')
		b = appendUint(b, id)
		return append(b, '"')
	}
	return appendUint(b, id)
}

// event appends the complete event from start to end, drawn for dur ns.
func (t *tracer) event(b []byte, i uint32, start, end, dur uint64) []byte {
	m := t.m
	in := &m.Instr
	b = append(b, `,{"name":"`...)
	nameAt := len(b)
	b = t.appendName(b, i)
	nameEnd := len(b)
	b = append(b, `","ph":"X","ts":`...)
	b = appendUint(b, start)
	b = append(b, `,"dur":`...)
	b = appendUint(b, dur)
	b = append(b, t.laneText[t.lane[i]]...)
	b = t.appendID(b, i)
	b = append(b, `,"bir_name":"`...)
	b = append(b, b[nameAt:nameEnd]...)
	if t.bare {
		b = append(b, t.bareText[in.Opcode.At(int(i))]...)
	} else {
		b = append(b, t.opcodeText[in.Opcode.At(int(i))]...)
		b = format.AppendJSONString(b, m.Symbols.Bytes(in.Source.Get(int(i))))
		b = t.appendOperands(b, i)
	}
	if end-start != dur {
		b = append(b, `,"latency_ns":`...)
		b = appendUint(b, end-start)
	}
	if banks := in.Banks.At(int(i)); banks != 0 {
		b = append(b, `,"psum_banks":[`...)
		b = appendUint(b, uint64(banks&0xff))
		b = append(b, ',')
		b = appendUint(b, uint64(banks>>8))
		b = append(b, ']')
	}
	b = append(b, `,"deps":[`...)
	b = t.deps(b, i)
	return append(b, "]}}\n"...)
}

// appendName appends the escaped name without quotes.
func (t *tracer) appendName(b []byte, i uint32) []byte {
	if s := t.m.Instr.Name.Get(int(i)); s != 0 {
		return format.AppendJSONText(b, t.m.Symbols.Bytes(s))
	}
	b = append(b, "I-"...) // what Module.InstrName says
	return appendUint(b, uint64(i))
}

// edgeText has the two documented fragments of a dependency, by class.
var edgeText = [components.NumClasses]string{
	components.ClassFlow:    `,"edge_type":"Flow","end_time":`,
	components.ClassOutput:  `,"edge_type":"Output","end_time":`,
	components.ClassOrdered: `,"edge_type":"Ordered","end_time":`,
	components.ClassAnti:    `,"edge_type":"Anti","end_time":`,
}

// deps appends one element per predecessor that has an event: its id, for
// cross-engine ones the engine, and the documented two fragments.
func (t *tracer) deps(b []byte, i uint32) []byte {
	lane := t.lane[i]
	for n, w := range t.m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		if n > 0 {
			b = append(b, `,{"bir_id":`...)
		} else {
			b = append(b, `{"bir_id":`...)
		}
		b = t.appendID(b, p)
		if pl := t.lane[p]; pl != lane {
			b = append(b, t.depText[pl][class]...)
		} else {
			b = append(b, edgeText[class]...)
		}
		_, end := t.span(p)
		b = appendUint(b, end)
		if t.graph && class == components.ClassAnti && t.run == components.RunB {
			b = append(b, `,"honoured":false`...)
		}
		b = append(b, '}')
	}
	return b
}

// arrows appends a flow arrow for every honoured dependency of i: it starts
// in the last ns of what is drawn of the producer and ends at the consumer's
// start.
func (t *tracer) arrows(b []byte, i uint32) []byte {
	if t.flags[i]&components.FlagLoop != 0 {
		return b
	}
	row := t.m.Edges.Preds.Row(int(i))
	if len(row) == 0 {
		return b
	}
	off := t.m.Edges.Preds.Offsets()[i]
	to, _ := t.span(i)
	for n, w := range row {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		if class == components.ClassAnti && t.run == components.RunB {
			continue
		}
		from, _ := t.span(p)
		if shown := t.shown[p-t.first]; shown > 0 {
			from += shown - 1
		}
		from = min(from, to)
		id := uint64(off) + uint64(n)
		b = t.arrow(b, startText[class], id, from, t.lane[p])
		b = append(b, "}\n"...)
		b = t.arrow(b, finishText[class], id, to, t.lane[i])
		b = append(b, ",\"bp\":\"e\"}\n"...)
	}
	return b
}

// startText and finishText begin the two records of an arrow, by class.
var (
	startText  = arrowTexts("s")
	finishText = arrowTexts("f")
)

func arrowTexts(ph string) (t [components.NumClasses]string) {
	for c := range t {
		t[c] = `,{"name":"` + components.KindOfClass(uint8(c)).String() + `","cat":"dep","ph":"` + ph + `","id":`
	}
	return t
}

func (t *tracer) arrow(b []byte, text string, id, ts uint64, lane uint16) []byte {
	b = append(b, text...)
	b = appendUint(b, id)
	b = append(b, `,"ts":`...)
	b = appendUint(b, ts)
	b = append(b, `,"pid":0,"tid":`...)
	return appendUint(b, uint64(t.tids[lane]))
}
