package catapult

import (
	"bufio"
	"context"
	"io"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
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
func Write(ctx context.Context, out io.Writer, w *components.World, block int, r components.Run, graph bool) error {
	t := &tracer{w: w, m: w.Module, run: r, graph: graph, out: bufio.NewWriterSize(out, 1<<16)}
	t.tids = laneTids(w.Module)
	t.verbatim = w.Module.Attribute(documentedTrace) != ""
	return t.block(ctx, block)
}

type tracer struct {
	w     *components.World
	m     *components.Module
	run   components.Run
	graph bool
	out   *bufio.Writer
	tids  []int
	buf   []byte
	// shown is how long each event of the block is drawn; kept only for the
	// arrows of the graph.
	shown []uint64
	first uint32
	// verbatim tells that the module was read from a trace and keeps the
	// arguments about operands as they were.
	verbatim bool
}

func (t *tracer) block(ctx context.Context, b int) error {
	first, end := t.m.Blocks.First.At(b), t.m.Blocks.End.At(b)
	t.first = first
	lanes := t.byLane(first, end)
	t.buf = append(t.buf[:0], "[\n"...)
	for tid, name := range documentedLanes {
		if tid > 0 {
			t.buf = append(t.buf, ",\n"...)
		}
		t.buf = appendThread(t.buf, tid, name)
	}
	t.buf = append(t.buf, '\n')
	for l, rows := range lanes {
		if t.tids[l] >= len(documentedLanes) && len(rows) > 0 {
			t.buf = append(t.buf, ',')
			t.buf = appendThread(t.buf, t.tids[l], laneTitle(t.m, l))
			t.buf = append(t.buf, '\n')
		}
	}
	if t.graph {
		t.shown = make([]uint64, end-first)
	}
	written := 0
	for _, rows := range lanes {
		for n, i := range rows {
			start, stop := t.w.Events.Span(t.m, components.InstrID(i), t.run)
			dur := stop - start
			if n+1 < len(rows) {
				next, _ := t.w.Events.Span(t.m, components.InstrID(rows[n+1]), t.run)
				dur = min(dur, next-start)
			}
			t.event(i, start, dur, stop-start)
			if t.graph {
				t.shown[i-first] = dur
			}
			if written++; written&0xfff == 0 {
				if err := ctx.Err(); err != nil {
					return err
				}
			}
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	if t.graph {
		for i := first; i < end; i++ {
			t.arrows(i)
			if err := t.flush(); err != nil {
				return err
			}
		}
	}
	t.buf = append(t.buf, "]\n"...)
	if _, err := t.out.Write(t.buf); err != nil {
		return err
	}
	return t.out.Flush()
}

// flush hands the buffer on when it has grown.
func (t *tracer) flush() error {
	if len(t.buf) < 1<<15 {
		return nil
	}
	_, err := t.out.Write(t.buf)
	t.buf = t.buf[:0]
	return err
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
	start := func(i uint32) uint64 { s, _ := t.w.Events.Span(t.m, components.InstrID(i), t.run); return s }
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

func (t *tracer) appendID(i uint32) {
	id := uint64(i)
	if t.m.Instr.Ref.Len() > 0 {
		id = t.m.Instr.Ref.At(int(i))
	}
	if id > maxExact {
		t.buf = append(t.buf, '"')
		t.buf = strconv.AppendUint(t.buf, id, 10)
		t.buf = append(t.buf, '"')
		return
	}
	t.buf = strconv.AppendUint(t.buf, id, 10)
}

// event appends one complete event; dur is what is drawn, full the duration.
func (t *tracer) event(i uint32, start, dur, full uint64) {
	m := t.m
	in := &m.Instr
	b := append(t.buf, `,{"name":"`...)
	nameAt := len(b)
	b = t.appendName(b, i)
	nameEnd := len(b)
	b = append(b, `","ph":"X","ts":`...)
	b = strconv.AppendUint(b, start, 10)
	b = append(b, `,"dur":`...)
	b = strconv.AppendUint(b, dur, 10)
	b = append(b, `,"pid":0,"tid":`...)
	b = strconv.AppendInt(b, int64(t.tids[in.Lane.At(int(i))]), 10)
	b = append(b, `,"args":{"bir_id":`...)
	t.buf = b
	t.appendID(i)
	b = append(t.buf, `,"bir_name":"`...)
	b = append(b, b[nameAt:nameEnd]...)
	b = append(b, `","opcode":`...)
	b = format.AppendJSONString(b, m.OpcodeName(in.Opcode.At(int(i))))
	b = append(b, `,"nki_source_location":`...)
	b = format.AppendJSONString(b, m.Symbols.Bytes(in.Source.Get(int(i))))
	b = t.appendOperands(b, i)
	if dur != full {
		b = append(b, `,"latency_ns":`...)
		b = strconv.AppendUint(b, full, 10)
	}
	if banks := in.Banks.At(int(i)); banks != 0 {
		b = append(b, `,"psum_banks":[`...)
		b = strconv.AppendUint(b, uint64(banks&0xff), 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, uint64(banks>>8), 10)
		b = append(b, ']')
	}
	b = append(b, `,"deps":[`...)
	t.buf = b
	t.deps(i)
	t.buf = append(t.buf, "]}}\n"...)
}

// appendName appends the escaped name without quotes.
func (t *tracer) appendName(b []byte, i uint32) []byte {
	if s := t.m.Instr.Name.Get(int(i)); s != 0 {
		return format.AppendJSONText(b, t.m.Symbols.Bytes(s))
	}
	return t.m.AppendInstrName(b, components.InstrID(i))
}

// deps appends one element per predecessor that has an event: its id, for
// cross-engine ones the engine, and the documented two fragments.
func (t *tracer) deps(i uint32) {
	in := &t.m.Instr
	lane := in.Lane.At(int(i))
	first := true
	for _, w := range t.m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		if !first {
			t.buf = append(t.buf, ',')
		}
		first = false
		t.buf = append(t.buf, `{"bir_id":`...)
		t.appendID(p)
		if pl := in.Lane.At(int(p)); pl != lane {
			t.buf = append(t.buf, `,"engine":"Engine`...)
			t.buf = strconv.AppendUint(t.buf, uint64(pl), 10)
			t.buf = append(t.buf, '"')
		}
		t.buf = append(t.buf, `,"edge_type":"`...)
		t.buf = append(t.buf, components.KindOfClass(class).String()...)
		t.buf = append(t.buf, `","end_time":`...)
		_, end := t.w.Events.Span(t.m, components.InstrID(p), t.run)
		t.buf = strconv.AppendUint(t.buf, end, 10)
		if t.graph && class == components.ClassAnti && t.run == components.RunB {
			t.buf = append(t.buf, `,"honoured":false`...)
		}
		t.buf = append(t.buf, '}')
	}
}

// arrows appends a flow arrow for every honoured dependency of i: it starts
// in the last ns of what is drawn of the producer and ends at the consumer's
// start.
func (t *tracer) arrows(i uint32) {
	in := &t.m.Instr
	if in.Flags.At(int(i))&components.FlagLoop != 0 {
		return
	}
	off := t.m.Edges.Preds.Offsets()[i]
	to, _ := t.w.Events.Span(t.m, components.InstrID(i), t.run)
	for n, w := range t.m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		class := uint8(w >> ecs.ClassShift)
		if class == components.ClassAnti && t.run == components.RunB {
			continue
		}
		from, _ := t.w.Events.Span(t.m, components.InstrID(p), t.run)
		if shown := t.shown[p-t.first]; shown > 0 {
			from += shown - 1
		}
		from = min(from, to)
		kind := components.KindOfClass(class).String()
		id := uint64(off) + uint64(n)
		t.arrow('s', kind, id, from, in.Lane.At(int(p)))
		t.arrow('f', kind, id, to, in.Lane.At(int(i)))
	}
}

func (t *tracer) arrow(ph byte, kind string, id, ts uint64, lane uint16) {
	b := append(t.buf, `,{"name":"`...)
	b = append(b, kind...)
	b = append(b, `","cat":"dep","ph":"`...)
	b = append(b, ph)
	b = append(b, `","id":`...)
	b = strconv.AppendUint(b, id, 10)
	b = append(b, `,"ts":`...)
	b = strconv.AppendUint(b, ts, 10)
	b = append(b, `,"pid":0,"tid":`...)
	b = strconv.AppendInt(b, int64(t.tids[lane]), 10)
	if ph == 'f' {
		b = append(b, `,"bp":"e"`...)
	}
	t.buf = append(b, "}\n"...)
}
