package catapult

import (
	"bufio"
	"context"
	"io"
	"math"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
)

// ObjectOptions say what to leave out of the object form.
type ObjectOptions struct {
	NoFlows bool
	// About is written as otherData, in order.
	About [][2]string
	// Progress, where not nil, is called with the events written.
	Progress func(events int64)
}

// ObjectStats count what was written.
type ObjectStats struct {
	Slices, Flows, Counters int64
	// Unshown counts dependencies that no arrow can show: an end without any
	// length, or a consumer that starts before its producer.
	Unshown int64
}

// WriteObject writes a timeline in the object form of the Chrome format,
// which tools other than the viewers read too: {"traceEvents":[…]} with times in
// µs to three decimals, so that they are exact to the ns; a process per run,
// a thread per lane, complete events, a flow per dependency, counters. A
// process is p+1 and a thread its lane plus one, because viewers merge thread
// 0 of a process into its main thread.
func WriteObject(ctx context.Context, out io.Writer, t *components.Timeline, o ObjectOptions) (ObjectStats, error) {
	w := &object{t: t, m: t.World.Module, opt: o, out: bufio.NewWriterSize(out, 1<<18)}
	if !o.NoFlows {
		w.drawn = make([]uint64, w.m.Instr.Len())
		w.starts, w.finishes = makePoints('s', w.m.Lanes.Len()), makePoints('f', w.m.Lanes.Len())
	}
	if err := w.all(ctx); err != nil {
		return w.stats, err
	}
	return w.stats, w.out.Flush()
}

type object struct {
	t     *components.Timeline
	m     *components.Module
	opt   ObjectOptions
	out   *bufio.Writer
	buf   []byte
	name  []byte
	stats ObjectStats
	// drawn is how long the events of the first process are drawn.
	drawn            []uint64
	starts, finishes points // of arrows
	events           int64
	any              bool
}

func (w *object) all(ctx context.Context) error {
	b := append(w.buf, `{"displayTimeUnit":"ns","otherData":{`...)
	for k, a := range w.opt.About {
		if k > 0 {
			b = append(b, ',')
		}
		b = format.AppendJSONString(b, a[0])
		b = append(b, ':')
		b = format.AppendJSONString(b, a[1])
	}
	w.buf = append(b, `},"traceEvents":[`...)
	w.metadata()
	for _, s := range w.t.Series {
		for k := range s.Time {
			w.counter(&s, k)
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	err := w.t.Merge(func(e *components.TimelineEvent) error {
		if w.events++; w.events&0xfff == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if w.opt.Progress != nil {
				w.opt.Progress(w.events)
			}
		}
		w.event(e)
		return w.flush()
	})
	if err != nil {
		return err
	}
	w.buf = append(w.buf, "\n]}\n"...)
	_, err = w.out.Write(w.buf)
	return err
}

func (w *object) flush() error {
	if len(w.buf) < 1<<15 {
		return nil
	}
	_, err := w.out.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}

// next begins another element.
func (w *object) next() []byte {
	if w.any {
		return append(w.buf, ",\n"...)
	}
	w.any = true
	return append(w.buf, '\n')
}

func (w *object) metadata() {
	meta := func(kind string, p int, tid int, arg string, text string, number int) {
		b := append(w.next(), `{"name":"`...)
		b = append(b, kind...)
		b = append(b, `","ph":"M","pid":`...)
		b = strconv.AppendInt(b, int64(p)+1, 10)
		b = append(b, `,"tid":`...)
		b = strconv.AppendInt(b, int64(tid), 10)
		b = append(b, `,"args":{"`...)
		b = append(b, arg...)
		b = append(b, `":`...)
		if text != "" {
			b = format.AppendJSONString(b, text)
		} else {
			b = strconv.AppendInt(b, int64(number), 10)
		}
		w.buf = append(b, "}}"...)
	}
	for p, proc := range w.t.Processes {
		first := true
		for l, rows := range w.t.Lanes(p) {
			if len(rows) == 0 {
				continue
			}
			if first {
				meta("process_name", p, l+1, "name", proc.Name, 0)
				meta("process_sort_index", p, l+1, "sort_index", "", p)
				first = false
			}
			meta("thread_name", p, l+1, "name", w.m.LaneName(uint16(l)), 0)
			meta("thread_sort_index", p, l+1, "sort_index", "", l)
		}
	}
}

// appendMicros appends ns as µs to three decimals.
func appendMicros(b []byte, ns uint64) []byte {
	b = appendUint(b, ns/1000)
	r := threes[ns%1000]
	return append(b, '.', byte(r), byte(r>>8), byte(r>>16))
}

func (w *object) event(e *components.TimelineEvent) {
	i := int(e.Instr)
	in := &w.m.Instr
	b := append(w.next(), `{"name":"`...)
	b = format.AppendJSONText(b, w.m.Label(e.Instr))
	b = append(b, `","cat":"`...)
	b = append(b, w.m.Category(e.Instr)...)
	b = append(b, `","ph":"X","ts":`...)
	b = appendMicros(b, e.Start)
	b = append(b, `,"dur":`...)
	b = appendMicros(b, e.Dur)
	b = append(b, `,"pid":`...)
	b = appendUint(b, uint64(e.Process)+1)
	b = append(b, `,"tid":`...)
	b = appendUint(b, uint64(e.Lane)+1)
	b = append(b, `,"args":{"id":`...)
	b = appendUint(b, uint64(w.t.ID(e.Process, e.Instr)))
	b = append(b, `,"instruction":"`...)
	w.name = w.m.AppendInstrName(w.name[:0], e.Instr)
	b = append(format.AppendJSONText(b, w.name), '"')
	for _, x := range []struct {
		name string
		s    ecs.Symbol
	}{{"source", in.Source.Get(i)}, {"hlo_name", in.HLO.Get(i)}, {"scope", in.Scope.Get(i)}} {
		if x.s != 0 {
			b = append(append(append(b, `,"`...), x.name...), `":`...)
			b = format.AppendJSONString(b, w.m.Symbols.Bytes(x.s))
		}
	}
	number := func(name string, v uint64) {
		b = append(append(append(b, `,"`...), name...), `":`...)
		b = appendUint(b, min(v, maxExact))
	}
	if e.Full != e.Dur {
		number("latency_ns", e.Full)
	}
	if v := in.DMABytes.Get(i); v > 0 {
		number("bytes", v)
	}
	p := w.t.Processes[e.Process]
	if why := w.t.Why; why != nil && !p.Measured && p.Run == why.Run {
		b = append(append(append(b, `,"cause":"`...), why.Cause.At(i).String()...), '"')
		if by := why.Pred.At(i); by != components.NoInstr {
			number("held_by", uint64(by))
		}
		if w.t.Slack != nil {
			number("slack_ns", w.t.Slack[i])
		}
		if w.t.Critical != nil && w.t.Critical.Has(uint32(i)) {
			b = append(b, `,"critical":true`...)
		}
	}
	w.buf = append(b, "}}"...)
	w.stats.Slices++
	if e.Process == 0 && w.drawn != nil {
		w.drawn[i] = e.Dur
		w.incoming(e)
	}
}

// incoming draws the dependencies of an event: from the last ns of what is
// drawn of the producer, or the consumer's start where that is earlier.
func (w *object) incoming(e *components.TimelineEvent) {
	off := w.m.Edges.Preds.Offsets()[e.Instr]
	for k, word := range w.m.Edges.Preds.Row(int(e.Instr)) {
		from, class := components.InstrID(word&ecs.TargetMask), uint8(word>>ecs.ClassShift)
		if class == components.ClassAnti && w.t.Processes[0].Run == components.RunB || !w.t.Has(0, from) {
			continue
		}
		at, _ := w.t.Span(0, from)
		if at > e.Start || w.drawn[from] == 0 || e.Dur == 0 {
			w.stats.Unshown++
			continue
		}
		id := uint64(off) + uint64(k) + 1
		w.point(&w.starts, class, id, min(at+w.drawn[from]-1, e.Start), w.m.Instr.Lane.At(int(from)))
		w.point(&w.finishes, class, id, e.Start, e.Lane)
		w.stats.Flows++
	}
}

// points are the texts of one end of all arrows: by class what stands before the
// number, by lane what stands behind the time.
type points struct {
	class [components.NumClasses]string
	lane  []string
}

func makePoints(ph byte, lanes int) points {
	var p points
	for c := range p.class {
		p.class[c] = `{"name":"` + components.KindOfClass(uint8(c)).String() + `","cat":"dep","ph":"` + string(ph) + `","id":`
	}
	for l := range lanes {
		tail := `,"pid":1,"tid":` + strconv.Itoa(l+1)
		if ph == 'f' {
			tail += `,"bp":"e"`
		}
		p.lane = append(p.lane, tail+"}")
	}
	return p
}

func (w *object) point(p *points, class uint8, id, ts uint64, lane uint16) {
	b := append(w.next(), p.class[class]...)
	b = append(appendUint(b, id), `,"ts":`...)
	w.buf = append(appendMicros(b, ts), p.lane[lane]...)
}

func (w *object) counter(s *components.Series, k int) {
	v := s.Value[k]
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return // no JSON number
	}
	b := append(w.next(), `{"name":`...)
	b = format.AppendJSONString(b, s.Name)
	b = append(b, `,"ph":"C","ts":`...)
	b = appendMicros(b, s.Time[k])
	b = append(b, `,"pid":`...)
	b = strconv.AppendInt(b, int64(s.Process)+1, 10)
	b = append(b, `,"args":{`...)
	b = format.AppendJSONString(b, s.Unit)
	b = append(b, ':')
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	w.buf = append(b, "}}"...)
	w.stats.Counters++
}
