// Package perfetto writes timelines in Perfetto's protobuf trace format: a
// process per run, a thread per lane, a slice per event with nanosecond
// times, a flow per dependency and a counter track per counter. The file
// opens in ui.perfetto.dev and in trace_processor.
package perfetto

import (
	"bufio"
	"context"
	"io"
	"iter"
	"math"
	"strings"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components"
	"perfsim/ecs"
)

// Field numbers of Perfetto's trace protobufs.
const (
	tracePacket = 1

	packetTimestamp   = 8
	packetSequence    = 10
	packetTrackEvent  = 11
	packetInterned    = 12
	packetFlags       = 13
	packetDescriptor  = 60
	flagStateCleared  = 1
	flagNeedsState    = 2
	descriptorUUID    = 1
	descriptorName    = 2
	descriptorProcess = 3
	descriptorThread  = 4
	descriptorParent  = 5
	descriptorCounter = 8
	descriptorOrder   = 11 // of the children; 3 is explicit
	descriptorRank    = 12
	processPID        = 1
	processName       = 6
	threadPID         = 1
	threadTID         = 2
	threadName        = 5
	counterUnitName   = 6

	eventCategoryIID = 3
	eventAnnotation  = 4
	eventType        = 9
	eventTrack       = 11
	eventNameIID     = 10
	eventDouble      = 44
	eventFlows       = 47
	eventFlowsEnd    = 48
	typeBegin        = 1
	typeEnd          = 2
	typeCounter      = 4

	internedCategories  = 1
	internedNames       = 2
	internedAnnotations = 3
	internedStrings     = 29

	annotationNameIID   = 1
	annotationUint      = 3
	annotationString    = 6
	annotationStringIID = 17
)

// Options say what to leave out.
type Options struct {
	NoFlows bool
	// Progress, where not nil, is called with the events written.
	Progress func(events int64)
}

// Stats count what was written.
type Stats struct {
	Slices, Flows, Counters int64
	// Unordered counts dependencies whose consumer starts before its producer,
	// which no flow can show: orders behind a collective count from when its
	// inputs were there.
	Unordered int64
}

// Write writes a timeline.
func Write(ctx context.Context, out io.Writer, t *components.Timeline, o Options) (Stats, error) {
	w := &writer{t: t, m: t.World.Module, opt: o, out: bufio.NewWriterSize(out, 1<<18), interned: map[interning]uint64{}, ctx: ctx}
	w.open.Less = end.before
	if err := w.all(); err != nil {
		return w.stats, err
	}
	return w.stats, w.out.Flush()
}

// interning is a text in one of the interned tables.
type interning struct {
	table protowire.Number
	text  string
}

type writer struct {
	ctx   context.Context
	t     *components.Timeline
	m     *components.Module
	opt   Options
	out   *bufio.Writer
	stats Stats

	interned map[interning]uint64
	recent   [256]recentText
	fresh    []byte // interned entries not yet written
	packet   []byte
	body     []byte
	part     []byte
	name     []byte
	open     ecs.Heap[end]
	begun    bool

	// The edges by producer: those of instruction i are
	// outEdge[outAt[i]:outAt[i+1]], each a flow id.
	outAt, outEdge []uint32
	flows          []uint64 // a bit for every edge that a flow shows
	written        int64
}

// ends are the slices that are open, the first to end first.
type end struct {
	at    uint64
	track uint64
	seq   int64
}

func (e end) before(o end) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// Track numbers: process p is p+1, its lane l and counters follow above.
func processTrack(p int) uint64        { return uint64(p) + 1 }
func laneTrack(p int, l uint16) uint64 { return uint64(p+1)<<32 | uint64(l) + 1 }
func counterTrack(p int, k int) uint64 { return uint64(p+1)<<32 | 1<<24 | uint64(k) }
func threadID(p int, l uint16) uint64  { return uint64(p)<<16 + uint64(l) + 1 }

// text is s as Perfetto takes it: UTF-8 without zeros.
func text(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && s[i]-1 < utf8.RuneSelf-1
	}
	if plain {
		return s
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", string(utf8.RuneError)), string(utf8.RuneError))
}
func appendUint(b []byte, n protowire.Number, v uint64) []byte {
	if n < 16 && v < 1<<14 { // most are: a byte for the tag, one or two for the number
		if tag := byte(n<<3 | protowire.Number(protowire.VarintType)); v < 1<<7 {
			return append(b, tag, byte(v))
		} else {
			return append(b, tag, byte(v)|1<<7, byte(v>>7))
		}
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
}
func appendBytes(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}
func appendString(b []byte, n protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), text(v))
}

func (w *writer) all() error {
	if err := w.tracks(); err != nil {
		return err
	}
	if !w.opt.NoFlows {
		w.edges()
	}
	counters := w.counters()
	err := w.t.Merge(func(e *components.TimelineEvent) error {
		if w.written++; w.written&0xfff == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if w.opt.Progress != nil {
				w.opt.Progress(w.written)
			}
		}
		if err := w.until(e.Start, counters); err != nil {
			return err
		}
		return w.slice(e)
	})
	if err != nil {
		return err
	}
	return w.until(math.MaxUint64, counters)
}

// until writes what ends, and the counters that change, up to time t.
func (w *writer) until(t uint64, c *samples) error {
	for {
		switch {
		case w.open.Len() > 0 && w.open.Top().at <= t && (c.done() || w.open.Top().at <= c.time()):
			e := w.open.Pop()
			w.body = appendUint(appendUint(w.body[:0], eventType, typeEnd), eventTrack, e.track)
			if err := w.event(e.at); err != nil {
				return err
			}
		case !c.done() && c.time() <= t:
			track, v, at := c.next()
			w.body = appendUint(appendUint(w.body[:0], eventType, typeCounter), eventTrack, track)
			w.body = protowire.AppendFixed64(protowire.AppendTag(w.body, eventDouble, protowire.Fixed64Type), math.Float64bits(v))
			w.stats.Counters++
			if err := w.event(at); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// send writes a packet whose body stands in w.packet.
func (w *writer) send() error {
	head := protowire.AppendVarint(protowire.AppendTag(w.part[:0], tracePacket, protowire.BytesType), uint64(len(w.packet)))
	w.part = head
	if _, err := w.out.Write(head); err != nil {
		return err
	}
	_, err := w.out.Write(w.packet)
	return err
}

// sequence is the id of the one sequence of packets.
const sequence = 1

// event writes the track event in w.body at time t, with the texts that are
// new.
func (w *writer) event(t uint64) error {
	b := appendUint(w.packet[:0], packetTimestamp, t)
	b = appendUint(b, packetSequence, sequence)
	flags := uint64(flagNeedsState)
	if !w.begun {
		flags |= flagStateCleared
		w.begun = true
	}
	b = appendUint(b, packetFlags, flags)
	if len(w.fresh) > 0 {
		b = appendBytes(b, packetInterned, w.fresh)
		w.fresh = w.fresh[:0]
	}
	w.packet = appendBytes(b, packetTrackEvent, w.body)
	return w.send()
}

// descriptor writes the track descriptor in w.body.
func (w *writer) descriptor() error {
	b := appendUint(w.packet[:0], packetSequence, sequence)
	w.packet = appendBytes(b, packetDescriptor, w.body)
	return w.send()
}

// recentText is a text that was asked for a short while ago. An event asks for
// some ten, mostly those of the event before.
type recentText struct {
	interning
	id uint64
}

// intern returns the number of a text in one of the interned tables.
func (w *writer) intern(table protowire.Number, s string) uint64 {
	key := interning{table, s}
	at := 13*int(table) + len(s)
	if s != "" {
		at += 7*int(s[0]) + 31*int(s[len(s)-1])
	}
	r := &w.recent[at%len(w.recent)]
	if r.id > 0 && r.interning == key {
		return r.id
	}
	id, ok := w.interned[key]
	if !ok {
		id = uint64(len(w.interned)) + 1
		w.interned[key] = id
		entry := appendString(appendUint(nil, 1, id), 2, s)
		w.fresh = appendBytes(w.fresh, table, entry)
	}
	*r = recentText{key, id}
	return id
}

// explicit is the order of children that goes by their rank.
const explicit = 3

// tracks describes the processes and lanes that have events.
func (w *writer) tracks() error {
	for p, proc := range w.t.Processes {
		sub := appendString(appendUint(nil, processPID, uint64(p)+1), processName, proc.Name)
		w.body = appendBytes(appendUint(w.body[:0], descriptorUUID, processTrack(p)), descriptorProcess, sub)
		w.body = appendUint(w.body, descriptorOrder, explicit)
		if err := w.descriptor(); err != nil {
			return err
		}
		for l, rows := range w.t.Lanes(p) {
			if len(rows) == 0 {
				continue
			}
			sub := appendUint(appendUint(nil, threadPID, uint64(p)+1), threadTID, threadID(p, uint16(l)))
			sub = appendString(sub, threadName, w.m.LaneName(uint16(l)))
			b := appendUint(appendUint(w.body[:0], descriptorUUID, laneTrack(p, uint16(l))), descriptorParent, processTrack(p))
			b = appendBytes(b, descriptorThread, sub)
			w.body = appendUint(b, descriptorRank, uint64(l))
			if err := w.descriptor(); err != nil {
				return err
			}
		}
	}
	for k, s := range w.t.Series {
		b := appendUint(appendUint(w.body[:0], descriptorUUID, counterTrack(s.Process, k)), descriptorParent, processTrack(s.Process))
		b = appendString(b, descriptorName, s.Name)
		b = appendBytes(b, descriptorCounter, appendString(nil, counterUnitName, s.Unit))
		w.body = appendUint(b, descriptorRank, uint64(1<<16+k))
		if err := w.descriptor(); err != nil {
			return err
		}
	}
	return nil
}

// producers calls f with the dependencies of instruction i in the first process:
// producer, edge, and whether a flow can show it.
func (w *writer) producers(i components.InstrID, f func(from components.InstrID, edge uint32, ordered bool)) {
	if !w.t.Has(0, i) || len(w.m.Edges.Preds.Row(int(i))) == 0 {
		return
	}
	off := w.m.Edges.Preds.Offsets()[i]
	to, _ := w.t.Span(0, i)
	for k, word := range w.m.Edges.Preds.Row(int(i)) {
		from, class := components.InstrID(word&ecs.TargetMask), uint8(word>>ecs.ClassShift)
		if class == components.ClassAnti && w.t.Processes[0].Run == components.RunB || !w.t.Has(0, from) {
			continue
		}
		at, _ := w.t.Span(0, from)
		f(from, off+uint32(k), at <= to)
	}
}

// edges sorts the dependencies of the first process by producer.
func (w *writer) edges() {
	n := w.m.Instr.Len()
	w.outAt = make([]uint32, n+1)
	w.flows = make([]uint64, (w.m.Edges.Preds.Len()+63)/64)
	w.t.Each(func(i components.InstrID) {
		w.producers(i, func(from components.InstrID, edge uint32, ordered bool) {
			if ordered {
				w.outAt[from+1]++
				w.flows[edge/64] |= 1 << (edge % 64)
			} else {
				w.stats.Unordered++
			}
		})
	})
	for i := range n {
		w.outAt[i+1] += w.outAt[i]
	}
	w.outEdge = make([]uint32, w.outAt[n])
	next := make([]uint32, n)
	copy(next, w.outAt)
	words := w.m.Edges.Preds.Words()
	w.t.Each(func(i components.InstrID) {
		for edge := range w.incoming(i) {
			from := words[edge] & ecs.TargetMask
			w.outEdge[next[from]] = edge
			next[from]++
		}
	})
}

// incoming are the dependencies of instruction i that flows show.
func (w *writer) incoming(i components.InstrID) iter.Seq[uint32] {
	off := w.m.Edges.Preds.Offsets()
	return func(yield func(edge uint32) bool) {
		if int(i)+1 >= len(off) {
			return
		}
		for edge := off[i]; edge < off[i+1]; edge++ {
			if w.flows[edge/64]>>(edge%64)&1 != 0 && !yield(edge) {
				return
			}
		}
	}
}

// slice opens the slice of an event.
func (w *writer) slice(e *components.TimelineEvent) error {
	i := int(e.Instr)
	in := &w.m.Instr
	track := laneTrack(e.Process, e.Lane)
	b := appendUint(appendUint(w.body[:0], eventType, typeBegin), eventTrack, track)
	b = appendUint(b, eventCategoryIID, w.intern(internedCategories, w.m.Category(e.Instr)))
	b = appendUint(b, eventNameIID, w.intern(internedNames, w.m.Label(e.Instr)))
	w.name = w.m.AppendInstrName(w.name[:0], e.Instr)
	b = w.text(b, "instruction", unsafe.String(unsafe.SliceData(w.name), len(w.name)))
	b = w.number(b, "row", uint64(i))
	if s := in.Source.Get(i); s != 0 {
		b = w.word(b, "source", w.m.Symbols.String(s))
	}
	if s := in.HLO.Get(i); s != 0 {
		b = w.word(b, "hlo_name", w.m.Symbols.String(s))
	}
	if s := in.Scope.Get(i); s != 0 {
		b = w.word(b, "scope", w.m.Symbols.String(s))
	}
	if e.Full != e.Dur {
		b = w.number(b, "latency_ns", e.Full)
	}
	if v := in.DMABytes.Get(i); v > 0 {
		b = w.number(b, "bytes", v)
	}
	p := w.t.Processes[e.Process]
	if why := w.t.Why; why != nil && !p.Measured && p.Run == why.Run {
		b = w.word(b, "cause", why.Cause.At(i).String())
		if w.t.Slack != nil {
			b = w.number(b, "slack_ns", w.t.Slack[i])
		}
		if w.t.Critical != nil && w.t.Critical.Has(uint32(i)) {
			b = w.word(b, "critical", "yes")
		}
	}
	if e.Process == 0 && w.outAt != nil {
		for _, edge := range w.outEdge[w.outAt[i]:w.outAt[i+1]] {
			b = protowire.AppendFixed64(protowire.AppendTag(b, eventFlows, protowire.Fixed64Type), flowID(edge))
		}
		for edge := range w.incoming(e.Instr) {
			w.stats.Flows++
			b = protowire.AppendFixed64(protowire.AppendTag(b, eventFlowsEnd, protowire.Fixed64Type), flowID(edge))
		}
	}
	w.body = b
	w.stats.Slices++
	if err := w.event(e.Start); err != nil {
		return err
	}
	if e.Dur == 0 {
		w.body = appendUint(appendUint(w.body[:0], eventType, typeEnd), eventTrack, track)
		return w.event(e.Start)
	}
	w.open.Push(end{e.Start + e.Dur, track, w.written})
	return nil
}

func flowID(edge uint32) uint64 { return uint64(edge) + 1 }

func (w *writer) number(b []byte, name string, v uint64) []byte {
	a := appendUint(appendUint(w.part[:0], annotationNameIID, w.intern(internedAnnotations, name)), annotationUint, v)
	w.part = a
	return appendBytes(b, eventAnnotation, a)
}

// text annotates with a string that few events share.
func (w *writer) text(b []byte, name, v string) []byte {
	a := appendUint(w.part[:0], annotationNameIID, w.intern(internedAnnotations, name))
	a = appendString(a, annotationString, v)
	w.part = a
	return appendBytes(b, eventAnnotation, a)
}

// word annotates with a string that many events share.
func (w *writer) word(b []byte, name, v string) []byte {
	a := appendUint(w.part[:0], annotationNameIID, w.intern(internedAnnotations, name))
	a = appendUint(a, annotationStringIID, w.intern(internedStrings, v))
	w.part = a
	return appendBytes(b, eventAnnotation, a)
}

// samples walks the values of all series in the order of time.
type samples struct {
	series []components.Series
	at     []int
	first  int // series with the earliest next value, -1 for none
}

func (w *writer) counters() *samples {
	s := &samples{series: w.t.Series, at: make([]int, len(w.t.Series))}
	s.find()
	return s
}

func (s *samples) find() {
	s.first = -1
	for k, x := range s.series {
		if s.at[k] < len(x.Time) && (s.first < 0 || x.Time[s.at[k]] < s.time()) {
			s.first = k
		}
	}
}

func (s *samples) done() bool   { return s.first < 0 }
func (s *samples) time() uint64 { return s.series[s.first].Time[s.at[s.first]] }

func (s *samples) next() (track uint64, v float64, at uint64) {
	x := &s.series[s.first]
	k := s.at[s.first]
	track, v, at = counterTrack(x.Process, s.first), x.Value[k], x.Time[k]
	s.at[s.first]++
	s.find()
	return track, v, at
}
