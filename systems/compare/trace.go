package compare

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"

	"perfsim/io/format"
)

// WriteTrace writes both timelines as one trace in the format of
// chrome://tracing and Perfetto: a process for each side, a thread for each
// engine, the sides laid over one another as in the report. Instructions that
// overlap on an engine, as pipelined ones do, get threads of their own.
func (r *Report) WriteTrace(ctx context.Context, out io.Writer, a, b *Side) error {
	w := &traceWriter{w: bufio.NewWriterSize(out, 1<<16)}
	w.raw("[\n")
	delta := make([]float64, len(a.Start))
	partner := make([]int, len(b.Start))
	for i := range partner {
		partner[i] = -1
	}
	matched := make([]bool, len(a.Start))
	for _, p := range r.pairs {
		delta[p[0]] = (b.Start[p[1]] - r.offsB) - (a.Start[p[0]] - r.offsetA)
		matched[p[0]] = true
		partner[p[1]] = p[0]
	}
	// Perfetto wants no negative times: the earlier start is zero.
	lo := 0.0
	for i, t := range a.Start {
		if a.has(i) {
			lo = min(lo, t-r.offsetA)
		}
	}
	for i, t := range b.Start {
		if b.has(i) {
			lo = min(lo, t-r.offsB)
		}
	}
	if err := w.side(ctx, a, 1, "A: "+r.NameA, r.offsetA+lo, func(i int) (float64, bool) { return delta[i], matched[i] }); err != nil {
		return err
	}
	err := w.side(ctx, b, 2, "B: "+r.NameB, r.offsB+lo, func(i int) (float64, bool) {
		if partner[i] < 0 {
			return 0, false
		}
		return delta[partner[i]], true
	})
	if err != nil {
		return err
	}
	w.raw("\n]\n")
	if w.err != nil {
		return w.err
	}
	return w.w.Flush()
}

type traceWriter struct {
	w    *bufio.Writer
	buf  []byte
	some bool
	err  error
}

func (w *traceWriter) raw(s string) {
	if w.err == nil {
		_, w.err = w.w.WriteString(s)
	}
}

func (w *traceWriter) event(b []byte) {
	if w.some {
		w.raw(",\n")
	}
	w.some = true
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}

func (w *traceWriter) name(kind, name string, pid, tid int) {
	b := append(w.buf[:0], `{"name":"`...)
	b = append(append(b, kind...), `","ph":"M","pid":`...)
	b = strconv.AppendInt(b, int64(pid), 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), int64(tid), 10)
	b = append(format.AppendJSONString(append(b, `,"args":{"name":`...), name), "}}"...)
	w.buf = b
	w.event(b)
}

// side writes one process. Times are written from origin on, in µs.
func (w *traceWriter) side(ctx context.Context, s *Side, pid int, name string, origin float64, delta func(i int) (float64, bool)) error {
	w.name("process_name", name, pid, 0)
	rows := map[string][]int{}
	for i := range s.Start {
		if s.has(i) {
			e := engine(s.Module, i)
			rows[e] = append(rows[e], i)
		}
	}
	var engines []string
	for e := range rows {
		engines = append(engines, e)
	}
	slices.Sort(engines)
	tid := 0
	for _, e := range engines {
		list := rows[e]
		slices.SortFunc(list, func(x, y int) int { return cmp.Or(cmp.Compare(s.Start[x], s.Start[y]), cmp.Compare(x, y)) })
		var free []float64 // by thread of this engine
		first := tid
		for n, i := range list {
			if n&0xffff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			k := slices.IndexFunc(free, func(t float64) bool { return t <= s.Start[i] })
			if k < 0 {
				k = len(free)
				if k == maxThreads {
					k--
				} else {
					free = append(free, 0)
					thread := e
					if k > 0 {
						thread += " (overlapping " + strconv.Itoa(k) + ")"
					}
					w.name("thread_name", thread, pid, first+k)
				}
			}
			free[k] = s.End[i]
			w.slice(s, i, pid, first+k, origin, delta)
		}
		tid = first + len(free)
	}
	return w.err
}

// maxThreads bounds the threads of one engine.
const maxThreads = 64

func (w *traceWriter) slice(s *Side, i, pid, tid int, origin float64, delta func(i int) (float64, bool)) {
	b := format.AppendJSONString(append(w.buf[:0], `{"name":`...), opcode(s, i))
	b = appendMicro(append(b, `,"ph":"X","ts":`...), s.Start[i]-origin)
	b = appendMicro(append(b, `,"dur":`...), s.End[i]-s.Start[i])
	b = strconv.AppendInt(append(b, `,"pid":`...), int64(pid), 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), int64(tid), 10)
	b = format.AppendJSONString(append(b, `,"args":{"instruction":`...), s.instr(i))
	if d, ok := delta(i); ok {
		b = strconv.AppendFloat(append(b, `,"b_minus_a_ns":`...), d, 'f', 0, 64)
	}
	b = append(b, "}}"...)
	w.buf = b
	w.event(b)
}

// appendMicro appends ns as µs.
func appendMicro(b []byte, ns float64) []byte {
	return strconv.AppendFloat(b, ns/1e3, 'f', 3, 64)
}
