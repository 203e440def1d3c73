package kineto

import (
	"cmp"
	"slices"
	"sort"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/timeline"
)

// slice is an outermost slice of a thread and the times at which it is cut.
type slice struct {
	start, end int64
	name, op   ecs.Symbol
	scope      ecs.Symbol
	more       bool // it goes on after slices inside it
	cuts       []int64
	first      int // row of its first piece
	pieces     int
}

// plain makes every thread a lane and its outermost slices the instructions;
// flows become dependencies.
func (t *trace) plain() error {
	p := &plainTrace{trace: t}
	p.pair()
	ranges := p.takeAnnotations()
	if len(p.all) == 0 { // nothing but annotations: they are all there is
		p.all, ranges = ranges, nil
	}
	if len(p.all) == 0 {
		return errNoSlices
	}
	p.outermost()
	p.hostTime(ranges)
	p.bind()
	return p.rows()
}

type plainTrace struct {
	*trace
	all     []event   // every slice
	threads [][]slice // by thread, by start
	arrows  []arrow
}

// arrow is a step of a flow between two slices.
type arrow struct {
	fromThread, toThread uint32
	from, to             int // slices
	out, in              int64
}

// pair joins begins and ends and takes them together with the complete
// events.
func (p *plainTrace) pair() {
	p.all = p.events
	marks := p.begins
	slices.SortStableFunc(marks, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
	var open []mark
	unclosed, unopened := 0, 0
	for i, m := range marks {
		if i > 0 && marks[i-1].thread != m.thread {
			unclosed += len(open)
			open = open[:0]
		}
		switch {
		case m.ph == 'B':
			open = append(open, m)
		case len(open) == 0:
			unopened++
		default:
			b := open[len(open)-1]
			open = open[:len(open)-1]
			name := b.name
			if name == 0 {
				name = m.name
			}
			p.all = append(p.all, event{start: b.at, end: m.at, name: name, cat: b.cat, thread: m.thread})
		}
	}
	unclosed += len(open)
	p.note("unclosed-slice", "begin events without an end: left out", unclosed)
	p.note("unopened-slice", "end events without a begin: left out", unopened)
}

// inOrder returns slices by thread and start, outer ones before inner ones.
func inOrder(all []event) []event {
	order := make([]*event, len(all))
	for i := range all {
		order[i] = &all[i]
	}
	sortSlices(order)
	sorted := make([]event, len(all))
	for i, e := range order {
		sorted[i] = *e
	}
	return sorted
}

// outermost keeps the slices that lie in no other of their thread. One that
// begins inside another and ends after it is cut to the part after it.
func (p *plainTrace) outermost() {
	p.all = inOrder(p.all)
	p.threads = make([][]slice, len(p.trace.threads))
	nested, overlapping, self := 0, 0, 0
	for i := 0; i < len(p.all); i++ {
		e := &p.all[i]
		if p.trace.threads[e.thread].name == opsLane {
			n := i
			for n < len(p.all) && p.all[n].thread == e.thread {
				n++
			}
			list, inside := p.selfTimes(p.all[i:n])
			p.threads[e.thread] = list
			self += inside
			i = n - 1
			continue
		}
		l := p.threads[e.thread]
		start := e.start
		if n := len(l); n > 0 && l[n-1].end > start || n > 0 && l[n-1].end == start && l[n-1].start == start && e.end == start {
			if e.end <= l[n-1].end {
				nested++
				continue
			}
			start = l[n-1].end
			overlapping++
		}
		p.threads[e.thread] = append(l, slice{start: start, end: e.end, name: e.name, op: e.op, scope: e.scope})
	}
	p.note("nested-slice", "slices inside others of their thread: part of the outermost one", nested)
	p.note("self-time", "operators inside others of their lane: each has its own time, the one around it the rest", self)
	p.note("overlap", "slices that begin inside another of their thread and end after it: cut to the part after it", overlapping)
}

// at returns the slice of a thread that is open at a time, the later one
// where two touch; with next it may also be the first one to begin after.
func (p *plainTrace) at(thread uint32, at int64, next bool) int {
	l := p.threads[thread]
	n := sort.Search(len(l), func(i int) bool { return l[i].start > at }) - 1
	if n >= 0 && l[n].end >= at {
		return n
	}
	if next && n+1 < len(l) {
		return n + 1
	}
	return -1
}

// bind makes arrows of the points of flows.
func (p *plainTrace) bind() {
	flows := p.flows
	slices.SortStableFunc(flows, func(a, b mark) int {
		return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.at, b.at), cmp.Compare(a.seq, b.seq))
	})
	unbound, unmatched := 0, 0
	for lo := 0; lo < len(flows); {
		hi := lo
		for hi < len(flows) && flows[hi].flow == flows[lo].flow {
			hi++
		}
		last := -1 // the point the next one hangs on
		matched := false
		for i := lo; i < hi; i++ {
			f := &flows[i]
			if last >= 0 && f.ph != 's' && f.ph != 'o' {
				if p.arrow(&flows[last], f) {
					matched = true
				} else {
					unbound++
				}
			}
			switch f.ph {
			case 's', 't', 'o':
				last = i
			}
		}
		if !matched {
			unmatched++
		}
		lo = hi
	}
	p.note("unbound-flow", "steps of flows that begin or end outside any slice, stay in one, or go back in time: left out", unbound)
	p.note("unmatched-flow", "flows of which nothing became a dependency", unmatched)
}

// arrow adds the step between two points and cuts the slices where they are
// inside: the producer unless the consumer begins after it, the consumer
// unless the point is at its start.
func (p *plainTrace) arrow(s, f *mark) bool {
	a := arrow{fromThread: s.thread, toThread: f.thread, from: p.at(s.thread, s.at, false), to: p.at(f.thread, f.at, f.ph == 'f' && !f.inside)}
	if a.from < 0 || a.to < 0 || a.fromThread == a.toThread && a.from == a.to {
		return false
	}
	from, to := &p.threads[a.fromThread][a.from], &p.threads[a.toThread][a.to]
	if a.in = max(f.at, to.start); a.in < s.at {
		return false // back in time
	}
	if a.in > to.start {
		to.cuts = append(to.cuts, a.in)
	}
	if a.out = from.end; a.in < from.end {
		a.out = s.at
		from.cuts = append(from.cuts, a.out)
	}
	p.arrows = append(p.arrows, a)
	return true
}

// rows adds lanes, pieces and dependencies.
func (p *plainTrace) rows() error {
	b := p.b
	origin := int64(0)
	first := true
	for _, l := range p.threads {
		if len(l) > 0 && (first || l[0].start < origin) {
			origin, first = l[0].start, false
		}
	}
	several := p.severalProcesses(func(n uint32) bool { return len(p.threads[n]) > 0 })
	opcodes := map[ecs.Symbol]components.Opcode{}
	cut := 0
	for n, l := range p.threads {
		if len(l) == 0 {
			continue
		}
		lane, err := p.lane(uint32(n), several, "thread", "")
		if err != nil {
			return err
		}
		for i := range l {
			s := &l[i]
			slices.Sort(s.cuts)
			s.cuts = slices.Compact(s.cuts)
			op, ok := opcodes[s.name]
			if !ok {
				op = b.M.Opcode(b.M.Symbols.String(s.name))
				opcodes[s.name] = op
			}
			s.first = len(b.Rows)
			from := s.start
			flags := components.Flags(0)
			if s.more {
				flags = components.FlagContinued
			}
			for _, c := range append(s.cuts, s.end) {
				b.Add(timeline.Row{Start: uint64(from - origin), End: uint64(c - origin), Name: s.name, Op: s.op, Scope: s.scope, Opcode: op, Lane: lane, Flags: flags})
				from, flags = c, components.FlagContinued
			}
			s.pieces = len(b.Rows) - s.first
			cut += s.pieces - 1
		}
	}
	for _, a := range p.arrows {
		from, to := &p.threads[a.fromThread][a.from], &p.threads[a.toThread][a.to]
		b.Depend(to.pieceFrom(a.in), from.pieceTo(a.out), components.Flow)
	}
	p.note("cut-slice", "cuts of slices where a flow leaves or enters them in the middle: each adds an instruction of the same name", cut)
	return nil
}

// pieceTo returns the row of the last piece that ends by the given time.
func (s *slice) pieceTo(at int64) int {
	if at >= s.end {
		return s.first + s.pieces - 1
	}
	n, found := slices.BinarySearch(s.cuts, at)
	if !found {
		n--
	}
	return s.first + max(n, 0)
}

// pieceFrom returns the row of the first piece that begins at the given time
// or later.
func (s *slice) pieceFrom(at int64) int {
	if at <= s.start {
		return s.first
	}
	n, _ := slices.BinarySearch(s.cuts, at)
	return s.first + min(n+1, s.pieces-1)
}
