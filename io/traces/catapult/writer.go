package catapult

import (
	"cmp"
	"context"
	"io"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/ordered"
)

// Write writes the trace of one top-level block in run r: the documented bare
// array. graph adds the arguments of the second trace family: a flow arrow for
// every honoured dependency, and the dependencies the run left out marked as
// such.
//
// Times are the simulated ns, which viewers show as µs; dur is the whole
// duration of an instruction, as documented.
//
// Up to jobs goroutines render; the bytes do not depend on how many.
func Write(ctx context.Context, out io.Writer, w *components.World, block int, r components.Run, graph bool, jobs int) error {
	return Style{}.Write(ctx, out, w, block, r, graph, jobs)
}

// Style says where a trace leaves the documented form. The zero value does
// not leave it.
type Style struct {
	// Barriers gives barriers, which the simulator keeps on a twelfth timeline
	// of their own, a thread of their own. Without it they are on thread 0 with
	// the argument "engine":"ALL", because the documented trace has eleven
	// threads.
	Barriers bool
	// Cut ends the dur of an event where the next event of its thread starts
	// and puts the whole duration into the argument latency_ns: viewers drop
	// events that overlap partially.
	Cut bool
}

// Write is the function of that name in this style.
func (s Style) Write(ctx context.Context, out io.Writer, w *components.World, block int, r components.Run, graph bool, jobs int) error {
	t := newTracer(w, r, graph, s)
	return t.block(ctx, out, block, jobs)
}

// tracer has the state for rendering the events of a block; it is read by
// several goroutines at once.
type tracer struct {
	w     *components.World
	m     *components.Module
	run   components.Run
	graph bool
	style Style
	tids  []int
	// thread has, by lane, the lane on whose thread its events are drawn: the
	// lane itself but for barriers.
	thread []uint16
	text   *fragments
	// Columns that every record asks for.
	arrive  [][2]uint64
	durs    [][2]uint32 // nil where durations are latencies
	latency []uint32
	flags   []components.Flags
	lane    []uint16
	opcode  []components.Opcode
	banks   []uint16
	names   []ecs.Symbol // nil where all are implicit
	refs    []uint64     // nil where ids are rows
	offsets []uint32
	words   []uint32
	roles   []components.OperandRole
	dims    []uint32
	numDims []uint8
	steps   []int64
	counts  []uint64
	first   uint32 // row of the block
	// seen has when the result of each row of the block is visible, and the
	// row's lane in the lowest laneBits: what is asked of a predecessor costs
	// one look at one place. It is nil where a time does not fit.
	seen []uint64
	// leaves has the last ns of what is drawn of each row of the block; kept
	// only for the arrows of the graph.
	leaves []uint64
	// verbatim says that the module was read from a trace and keeps the
	// arguments about operands as they were.
	verbatim bool
	// bare says that nothing is known of any instruction but its opcode, name
	// and dependencies.
	bare bool
}

func newTracer(w *components.World, r components.Run, graph bool, style Style) *tracer {
	m := w.Module
	in, o := &m.Instr, &m.Operands
	t := &tracer{w: w, m: m, run: r, graph: graph, style: style, arrive: w.Events.Arrive.Slice(), latency: in.Latency.Slice(),
		flags: in.Flags.Slice(), lane: in.Lane.Slice(), opcode: in.Opcode.Slice(), banks: in.Banks.Slice(),
		offsets: m.Edges.Preds.Offsets(), words: m.Edges.Preds.Words(), verbatim: m.Attribute(documentedTrace) != ""}
	t.roles, t.dims, t.numDims, t.steps, t.counts = o.Role.Slice(), o.Dims.Slice(), o.NumDims.Slice(), o.Step.Slice(), o.Count.Slice()
	if w.Events.Dur.Len() > 0 {
		t.durs = w.Events.Dur.Slice()
	}
	if in.Name.Len() > 0 {
		t.names = in.Name.Slice()
	}
	if in.Ref.Len() > 0 {
		t.refs = in.Ref.Slice()
	}
	t.tids, t.thread = threads(m, style.Barriers)
	t.text = makeFragments(m, t.tids)
	t.bare = !t.verbatim && in.Source.Len() == 0 && o.Len() == 0 && in.Func.Len() == 0 && in.Text.Len() == 0
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

// laneBits is how many bits of tracer.seen are the lane.
const laneBits = 16

// pieceRows is how many records are rendered at a time: about 100 KB.
const pieceRows = 256

// rowBytes is room for most records, so that the buffers of pieces need not
// grow.
const rowBytes = 640

// piece is rows from to to of a lane, or of the block for arrows.
type piece struct{ lane, from, to int }

func (t *tracer) block(ctx context.Context, out io.Writer, b, jobs int) error {
	first, end := t.m.Blocks.First.At(b), t.m.Blocks.End.At(b)
	lanes := t.lay(first, end)
	if t.graph {
		t.leave(lanes, end)
	}
	if _, err := out.Write(t.head(lanes)); err != nil {
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
		return t.events(buf, lanes[p.lane], p.from, p.to)
	})
	if err != nil {
		return err
	}
	_, err = out.Write([]byte("]\n"))
	return err
}

// head returns the head of the trace: the documented thread names and those of
// the lanes beyond that have events.
func (t *tracer) head(lanes [][]uint32) []byte {
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

// lay sorts the placed rows of a block by lane, in the order in which they are
// on it, and fills seen.
func (t *tracer) lay(first, end uint32) [][]uint32 {
	t.first = first
	lane, flags := t.lane[first:end], t.flags[first:end]
	count := make([]int, t.m.Lanes.Len())
	for k, l := range lane {
		if flags[k]&components.FlagLoop == 0 {
			count[t.thread[l]]++
		}
	}
	// Columns, because large ones ask for huge pages.
	rows, seen := ecs.NewColumn[uint32]("rows"), ecs.NewColumn[uint64]("seen")
	all := rows.Resize(int(end - first))
	t.seen = seen.Resize(int(end - first))
	out := make([][]uint32, len(count))
	for l, n := range count {
		out[l], all = all[:0:n], all[n:]
	}
	latest := make([]uint64, len(count))
	unsorted := make([]bool, len(count))
	wide := uint64(0)
	for k, l := range lane {
		i := first + uint32(k)
		start, at := t.span(i)
		wide |= at
		t.seen[k] = at<<laneBits | uint64(l)
		if flags[k]&components.FlagLoop != 0 {
			continue
		}
		on := t.thread[l]
		out[on] = append(out[on], i)
		if start < latest[on] {
			unsorted[on] = true
		}
		latest[on] = start
	}
	if wide>>(64-laneBits) != 0 {
		t.seen = nil
	}
	for l, rows := range out {
		if unsorted[l] {
			t.sortByStart(rows)
		}
	}
	return out
}

// sortByStart sorts the rows of a lane by start and then by row. In-order
// lanes are sorted already.
func (t *tracer) sortByStart(rows []uint32) {
	slices.SortStableFunc(rows, func(a, b uint32) int {
		x, _ := t.span(a)
		y, _ := t.span(b)
		return cmp.Compare(x, y)
	})
}

// leave fills leaves.
func (t *tracer) leave(lanes [][]uint32, end uint32) {
	c := ecs.NewColumn[uint64]("leaves")
	t.leaves = c.Resize(int(end - t.first))
	for k := range t.leaves {
		t.leaves[k], _ = t.span(t.first + uint32(k)) // of loops, which are not drawn
	}
	for _, rows := range lanes {
		next := uint64(math.MaxUint64)
		for _, i := range slices.Backward(rows) {
			start, end := t.span(i)
			if shown := t.drawn(start, end, next); shown > 0 {
				t.leaves[i-t.first] = start + shown - 1
			}
			next = start
		}
	}
}

// drawn is the dur of an event from start to end whose successor on its thread
// starts at next.
func (t *tracer) drawn(start, end, next uint64) uint64 {
	if t.style.Cut {
		return min(end, next) - start
	}
	return end - start
}
