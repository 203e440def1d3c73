package kineto

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/timeline"
)

// rounding is by how much neighbours overlap in traces whose times are whole
// microseconds.
const rounding = int64(1000)

// dev is one event of a device, row of the builder with the same number.
type dev struct {
	ev         *event
	start, end int64
	call       int32 // the call that launched it, -1 for none
	launched   int64 // start of that call, else its own
}

// call is one call of the runtime or driver that launches or waits.
type call struct {
	ev         *event
	start, end int64
	devs       []int32
	blocking   bool
	sync       *event // CUPTI's record of what it waits for, nil for none
	named      ecs.Symbol
	scope      ecs.Symbol // annotations, modules and operators around it
	outer      int64      // start of the outermost slice open at its start
	open       bool
}

// device makes the work of devices the instructions: one lane a stream, and
// one for each host thread that launches work or waits for it.
func (t *trace) device() error {
	d := &deviceTrace{trace: t, byCorr: map[uint64]int32{}, engines: map[ecs.Symbol]components.Engine{}}
	d.origin = t.events[0].start
	for i := range t.events {
		d.origin = min(d.origin, t.events[i].start)
	}
	if err := d.streams(); err != nil {
		return err
	}
	d.noteOverruns()
	d.calls()
	d.join()
	d.index()
	if err := d.hosts(); err != nil {
		return err
	}
	d.streamWaits()
	if len(t.begins) > 0 {
		t.note("begin-end", "begin and end events beside those of devices: not used", len(t.begins))
	}
	return nil
}

// deviceTrace is the state of building from device events.
type deviceTrace struct {
	*trace
	origin int64
	devs   []dev
	list   []call
	byCorr map[uint64]int32 // calls by correlation
	// engines are those of kernels, by name.
	engines map[ecs.Symbol]components.Engine
	// byEnd and byLaunch hold the device events of a process and stream (-1 for
	// all streams) in the order of their ends and of their launches.
	byEnd, byLaunch map[streamKey][]int32
}

type streamKey struct {
	pid    string
	stream int32
}

// row makes the row of a piece of work.
func (d *deviceTrace) row(name ecs.Symbol, opcode string, lane uint16, start, end int64) timeline.Row {
	return timeline.Row{Start: uint64(start - d.origin), End: uint64(end - d.origin), Name: name,
		Opcode: d.b.M.Opcode(opcode), Lane: lane}
}

// streams puts the device events on lanes, rows 0 on. Events of one stream
// that overlap by no more than rounding are trimmed; others go to further
// lanes of the stream.
func (d *deviceTrace) streams() error {
	t := d.trace
	for i := range t.events {
		if e := &t.events[i]; e.cat == catDevice {
			d.devs = append(d.devs, dev{ev: e, start: e.start, end: e.end, call: -1, launched: e.start})
		}
	}
	slices.SortStableFunc(d.devs, func(a, b dev) int {
		return cmp.Or(cmp.Compare(a.ev.thread, b.ev.thread), cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end))
	})
	used := map[uint32]bool{}
	for i := range d.devs {
		used[d.devs[i].ev.thread] = true
	}
	several := t.severalProcesses(func(n uint32) bool { return used[n] })
	type open struct {
		lane uint16
		end  int64
	}
	var lanes []open
	opcodes := t.opcodes()
	trimmed, spilled := 0, 0
	for i := range d.devs {
		x := &d.devs[i]
		if i == 0 || d.devs[i-1].ev.thread != x.ev.thread {
			lanes = lanes[:0]
		}
		at := slices.IndexFunc(lanes, func(o open) bool {
			return o.end <= x.start || !t.decimal && o.end-x.start <= rounding && o.end <= x.end
		})
		if at < 0 {
			suffix := ""
			if len(lanes) > 0 {
				suffix = " overlap " + strconv.Itoa(len(lanes))
			}
			l, err := t.lane(x.ev.thread, several, "stream", suffix)
			if err != nil {
				return err
			}
			at = len(lanes)
			lanes = append(lanes, open{l, x.start})
		}
		if at > 0 {
			spilled++
		}
		if o := &lanes[at]; o.end > x.start {
			x.start = o.end
			trimmed++
		}
		lanes[at].end = x.end
		r := d.row(x.ev.name, opcodes[x.ev.name], lanes[at].lane, x.start, x.end)
		r.Engine, r.Ref, r.Bytes, r.Op = d.engineOf(x.ev), x.ev.corr, x.ev.bytes, x.ev.op
		r.Scope = x.ev.scope
		if x.ev.collective {
			r.Flags |= components.FlagCollective
		}
		t.b.Add(r)
	}
	t.note("trimmed", "device events that begin up to 1 µs before the one before them on their stream ends, as whole microseconds are rounded: begin at its end", trimmed)
	t.note("overlap", "device events that overlap others of their stream: put on further lanes of the stream", spilled)
	return nil
}

// calls collects the outermost calls of every host thread, in the order of
// threads and starts. A call inside another (a driver's inside a runtime's) is
// taken for it.
func (d *deviceTrace) calls() {
	t := d.trace
	var all []*event
	for i := range t.events {
		if e := &t.events[i]; e.cat == catCall {
			all = append(all, e)
		}
	}
	sortSlices(all)
	for _, e := range all {
		last := len(d.list) - 1
		start := e.start
		if last >= 0 && d.list[last].ev.thread == e.thread && d.list[last].end > start {
			if e.end <= d.list[last].end {
				d.correlate(e.corr, last)
				continue
			}
			start = d.list[last].end
		}
		d.list = append(d.list, call{ev: e, start: start, end: e.end,
			blocking: bytes.Contains(t.b.M.Symbols.Bytes(e.name), []byte("Synchronize"))})
		d.correlate(e.corr, last+1)
	}
	for i := range t.events {
		if e := &t.events[i]; e.cat == catSync && e.corr != 0 {
			if c, ok := d.byCorr[e.corr]; ok {
				d.list[c].sync = e
			}
		}
	}
}

func (d *deviceTrace) correlate(corr uint64, call int) {
	if _, ok := d.byCorr[corr]; corr != 0 && !ok {
		d.byCorr[corr] = int32(call)
	}
}

// sortSlices sorts by thread and start, outer slices before inner ones. Most
// traces have the slices of a thread in order already.
func sortSlices(s []*event) {
	var ends []int // by thread
	for _, e := range s {
		for int(e.thread) >= len(ends) {
			ends = append(ends, 0)
		}
		ends[e.thread]++
	}
	at := 0
	for i, n := range ends {
		ends[i] = at
		at += n
	}
	old := slices.Clone(s)
	for _, e := range old {
		s[ends[e.thread]] = e
		ends[e.thread]++
	}
	at = 0
	for _, end := range ends {
		slices.SortStableFunc(s[at:end], func(a, b *event) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
		})
		at = end
	}
}

// join finds the call behind every device event: by correlation, else by the
// flow that ends at it.
func (d *deviceTrace) join() {
	t := d.trace
	type spot struct {
		thread uint32
		at     int64
	}
	ends, starts := map[spot]uint32{}, map[uint32]spot{}
	for i := range t.flows {
		switch f := &t.flows[i]; {
		case t.flowCat[f.flow] != "ac2g":
		case f.ph == 'f':
			ends[spot{f.thread, f.at}] = f.flow
		case f.ph == 's':
			starts[f.flow] = spot{f.thread, f.at}
		}
	}
	orphans := 0
	for i := range d.devs {
		x := &d.devs[i]
		c, ok := d.byCorr[x.ev.corr]
		if !ok || x.ev.corr == 0 {
			c = -1
			if f, ok := ends[spot{x.ev.thread, x.ev.start}]; ok {
				if s, ok := starts[f]; ok {
					c = d.callAt(s.thread, s.at)
				}
			}
		}
		if c < 0 {
			orphans++
			continue
		}
		x.call, x.launched = c, d.list[c].start
		d.list[c].devs = append(d.list[c].devs, int32(i))
	}
	t.note("no-launch", "device events whose launching call the trace does not have", orphans)
}

// callAt returns the call open on a thread at a time, -1 for none.
func (d *deviceTrace) callAt(thread uint32, at int64) int32 {
	n := sort.Search(len(d.list), func(i int) bool {
		c := &d.list[i]
		return c.ev.thread > thread || c.ev.thread == thread && c.start > at
	}) - 1
	if n < 0 || d.list[n].ev.thread != thread || d.list[n].end < at {
		return -1
	}
	return int32(n)
}

// index sorts the device events by process, stream, end and launch.
func (d *deviceTrace) index() {
	d.byEnd, d.byLaunch = map[streamKey][]int32{}, map[streamKey][]int32{}
	for i := range d.devs {
		x := &d.devs[i]
		if x.call < 0 {
			continue
		}
		pid := d.threads[d.list[x.call].ev.thread].pid
		for _, stream := range []int32{x.ev.stream, -1} {
			k := streamKey{pid, stream}
			d.byEnd[k] = append(d.byEnd[k], int32(i))
			if stream >= 0 {
				d.byLaunch[k] = append(d.byLaunch[k], int32(i))
			}
		}
	}
	for _, l := range d.byEnd {
		slices.SortStableFunc(l, func(a, b int32) int { return cmp.Compare(d.devs[a].end, d.devs[b].end) })
	}
	for _, l := range d.byLaunch {
		slices.SortStableFunc(l, func(a, b int32) int { return cmp.Compare(d.devs[a].launched, d.devs[b].launched) })
	}
}

// lastEnded returns the device event of a list by end that ended last before
// a time, -1 for none.
func (d *deviceTrace) lastEnded(k streamKey, before int64) int32 {
	l := d.byEnd[k]
	n := sort.Search(len(l), func(i int) bool { return d.devs[l[i]].end > before })
	if n == 0 {
		return -1
	}
	return l[n-1]
}

// lastLaunched returns the device event of a stream that was launched last
// before a time, and the first launched after it; -1 for none.
func (d *deviceTrace) lastLaunched(k streamKey, at int64) (last, next int32) {
	l := d.byLaunch[k]
	n := sort.Search(len(l), func(i int) bool { return d.devs[l[i]].launched >= at })
	last, next = -1, -1
	if n > 0 {
		last = l[n-1]
	}
	if n < len(l) {
		next = l[n]
	}
	return last, next
}

// streamWaits adds the dependencies of cudaStreamWaitEvent: the next work of
// the waiting stream depends on what the other stream had been given when the
// event was recorded.
func (d *deviceTrace) streamWaits() {
	unresolved := 0
	for i := range d.events {
		e := &d.events[i]
		if e.cat != catSync || e.stream < 0 || e.waitStream < 0 || e.stream == e.waitStream {
			continue
		}
		wait, ok := d.byCorr[e.corr]
		record, ok2 := d.byCorr[e.record]
		if !ok || !ok2 {
			unresolved++
			continue
		}
		pid := d.threads[d.list[wait].ev.thread].pid
		from, _ := d.lastLaunched(streamKey{pid, e.waitStream}, d.list[record].start)
		_, to := d.lastLaunched(streamKey{pid, e.stream}, d.list[wait].start)
		if from < 0 || to < 0 {
			continue // nothing to wait for, or nothing that waits
		}
		d.b.Depend(int(to), int(from), components.Flow)
	}
	d.note("unresolved-wait", "waits of one stream for another whose calls the trace does not have", unresolved)
}
