package kineto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perfsim/ecs"
)

// This file distinguishes work from events that only describe it: lanes that
// repeat others, annotations, and slices inside others.

// opsLane is the lane of the operators in a device's process of a JAX or
// TensorFlow trace.
const opsLane = "XLA Ops"

// isSummary reports whether a lane of a process that has opsLane or streams
// repeats the work of its other lanes in larger pieces.
func isSummary(name string) bool {
	switch strings.ToLower(name) {
	case "steps", "xla modules", "xla traceme", "tensorflow name scope", "tensorflow ops", "framework name scope", "framework ops",
		"source", "source code", "hlo modules", "launch stats", "xla async ops summary":
		return true
	}
	return false
}

// isDeviceLane reports whether a lane holds the work of a device in such a
// trace: its operators, or a stream.
func isDeviceLane(name string) bool {
	return strings.EqualFold(name, opsLane) || name == "XLA Async Ops" || isStream(name)
}

// isStream reports whether a lane is a stream of a GPU: beside streams the
// operators are one more view of what runs on them.
func isStream(name string) bool { return strings.HasPrefix(name, "Stream #") }

// isAnnotation reports whether a slice is a range that a user or a framework
// marked: it is no work by itself.
func isAnnotation(cat []byte, name []byte) bool {
	switch string(cat) {
	case "user_annotation", "gpu_user_annotation", "cpu_instant_event":
		return true
	}
	return strings.HasPrefix(string(name), "ProfilerStep#") || strings.HasPrefix(string(name), "ProfilerStep*")
}

// summaries marks the lanes that repeat others. Their slices and the slices
// of annotations are taken from the events, counted and named in a note.
func (t *trace) summaries() {
	device, streams := map[string]bool{}, map[string]bool{} // processes with a lane of work, with streams
	for i := range t.threads {
		if th := &t.threads[i]; isDeviceLane(th.name) {
			device[th.pid] = true
			streams[th.pid] = streams[th.pid] || isStream(th.name)
		}
	}
	var names []string
	lanes := make([]bool, len(t.threads))
	for i := range t.threads {
		th := &t.threads[i]
		if lanes[i] = device[th.pid] && isSummary(th.name) || streams[th.pid] && th.name == opsLane; lanes[i] && !slices.Contains(names, th.name) {
			names = append(names, th.name)
		}
	}
	if len(names) == 0 {
		return
	}
	n := len(t.events)
	t.events = slices.DeleteFunc(t.events, func(e event) bool { return lanes[e.thread] })
	t.begins = slices.DeleteFunc(t.begins, func(m mark) bool { return lanes[m.thread] })
	t.note("summary-lane", "slices of lanes that repeat the work of others ("+strings.Join(names, ", ")+"): not work of their own", n-len(t.events))
}

// takeAnnotations moves the slices of annotations, and of Python functions
// where a thread has operators, out of the work.
func (p *plainTrace) takeAnnotations() []event {
	ops := make([]bool, len(p.trace.threads))
	for i := range p.all {
		if e := &p.all[i]; e.cat == catOp {
			ops[e.thread] = true
		}
	}
	var out []event
	python := 0
	p.all = slices.DeleteFunc(p.all, func(e event) bool {
		if e.cat == catRange || e.cat == catPython && ops[e.thread] {
			if e.cat == catPython {
				python++
			}
			out = append(out, e)
			return true
		}
		return false
	})
	p.note("annotation", "annotations: ranges around work, not work of their own", len(out)-python)
	p.note("python", "Python functions around operators: host time, not work of their own", python)
	return out
}

// hostTime adds to the outermost slices of each thread what annotations cover
// and no slice does: the host's own time, named by the annotation.
func (p *plainTrace) hostTime(ranges []event) {
	if len(ranges) == 0 {
		return
	}
	slices.SortStableFunc(ranges, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	host := p.b.M.Symbols.InternString(opHost)
	for lo := 0; lo < len(ranges); {
		thread := ranges[lo].thread
		l := p.threads[thread]
		if len(l) == 0 { // a lane of annotations alone
			for lo < len(ranges) && ranges[lo].thread == thread {
				lo++
			}
			continue
		}
		var gaps []slice
		at, k := ranges[lo].start, 0
		for ; lo < len(ranges) && ranges[lo].thread == thread; lo++ {
			r := &ranges[lo]
			at = max(at, r.start)
			for at < r.end {
				for k < len(l) && l[k].end <= at {
					k++
				}
				end := r.end
				if k < len(l) {
					if l[k].start <= at {
						at = l[k].end
						continue
					}
					end = min(end, l[k].start)
				}
				gaps = append(gaps, slice{start: at, end: end, name: host, op: r.name})
				at = end
			}
		}
		l = append(l, gaps...)
		slices.SortStableFunc(l, func(a, b slice) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
		p.threads[thread] = l
	}
}

// selfTimes cuts the slices of a lane of device operators so that every moment
// belongs to the innermost one: a loop and the operators of its body are there
// side by side, each with its own time.
func (p *plainTrace) selfTimes(list []event) (out []slice, nested int) {
	type open struct {
		e  *event
		at int64 // up to where its own time is taken
	}
	var stack []open
	take := func(o *open, to int64) {
		if to > o.at || o.e.start == o.e.end {
			out = append(out, slice{start: o.at, end: max(to, o.at), name: o.e.name, op: o.e.op, scope: o.e.scope, more: o.at > o.e.start})
			o.at = to
		}
	}
	closeTo := func(at int64) {
		for len(stack) > 0 && stack[len(stack)-1].e.end <= at {
			top := &stack[len(stack)-1]
			end := top.e.end
			take(top, end)
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				stack[len(stack)-1].at = max(stack[len(stack)-1].at, end)
			}
		}
	}
	for i := range list {
		e := &list[i]
		closeTo(e.start)
		if n := len(stack); n > 0 {
			nested++
			top := &stack[n-1]
			if e.start > top.at {
				take(top, e.start)
			}
			if e.end > top.e.end { // not nested: it runs over the end of the one around it
				e.end = top.e.end
			}
		}
		stack = append(stack, open{e, e.start})
	}
	closeTo(1<<63 - 1)
	slices.SortStableFunc(out, func(a, b slice) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	return out, nested
}

// overrun is the slice of an in-order stream that runs over most later ones.
type overrun struct {
	name       ecs.Symbol
	thread     uint32
	start, end int64
	over       int
}

// noteOverruns names the worst of the slices that run over later ones of their
// stream.
func (d *deviceTrace) noteOverruns() {
	var worst overrun
	for i := range d.devs {
		x := &d.devs[i]
		n := 0
		for k := i + 1; k < len(d.devs) && d.devs[k].ev.thread == x.ev.thread && d.devs[k].ev.start < x.ev.end && n < 1000; k++ {
			if d.decimal || x.ev.end-d.devs[k].ev.start > rounding {
				n++
			}
		}
		if n > worst.over {
			worst = overrun{x.ev.name, x.ev.thread, x.ev.start, x.ev.end, n}
		}
	}
	if worst.over == 0 {
		return
	}
	name := d.b.M.Symbols.String(worst.name)
	if r := []rune(name); len(r) > 80 {
		name = string(r[:80]) + "…"
	}
	d.note("overrun", fmt.Sprintf("%s on stream %s runs %.3f µs from %.3f µs on, over %d later ones of its stream: its duration is suspect", name,
		d.threads[worst.thread].tid, float64(worst.end-worst.start)/1000, float64(worst.start-d.origin)/1000, worst.over), 1)
}
