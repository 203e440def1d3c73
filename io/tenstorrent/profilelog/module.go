package profilelog

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/zonelog"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/timeline"
)

// Importer reads a device log as a program that ran: every processor is a
// lane and the time that each zone had for itself is an instruction, so that
// queries, pictures, exports and what-ifs work on logs as on simulations.
var Importer = format.Importer{
	Name:   "ttprof",
	Sniff:  Sniff,
	Module: readModule,
}

// Sniff reports whether a text starts as device logs do: a clock line or a
// column header.
func Sniff(head []byte) bool {
	for range 3 {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		line = bytes.TrimRight(line, "\r")
		if len(bytes.TrimSpace(line)) > 0 {
			if isHeader(line) {
				return true
			}
			// A line that begins like one but goes on differently is not.
			if !isInfo(line) || parseInfo(string(line)).bad != "" && !bytes.Contains(line, []byte("CHIP_FREQ")) {
				return false
			}
			return true
		}
		head = rest
	}
	return false
}

func readModule(ctx context.Context, src *format.Source, opt format.Options) (*components.Module, error) {
	l, err := Read(ctx, src, Options{Name: src.Name, Workers: opt.Jobs})
	if err != nil {
		return nil, err
	}
	name := path.Base(src.Name)
	for _, suffix := range []string{".gz", ".zst", ".csv"} {
		name = strings.TrimSuffix(name, suffix)
	}
	m, err := Module(ctx, name, l)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.Name, err)
	}
	return m, nil
}

// Module makes a module of a log.
//
// Zones of a processor nest; an instruction is the stretch in which its zone
// was the innermost one, so a zone with others inside becomes several. Zones
// are grouped by launch. Time in which no zone was open becomes waiting. Clocks
// of devices have nothing to do with each other: each device starts at 0, and
// so does, after a gap, each session.
func Module(ctx context.Context, name string, l *zonelog.DeviceLog) (*components.Module, error) {
	if l.Zones.Len() == 0 {
		for _, d := range l.Diags.All() {
			if d.Code == DiagEmptyFile || d.Code == DiagNoRows {
				return nil, fmt.Errorf("%s: %s", d.Code, d.Detail)
			}
		}
		return nil, fmt.Errorf("no zone of the log has a start and an end")
	}
	x := &moduleMaker{l: l, b: timeline.New(name, "ttprof"), opcode: make([]components.Opcode, len(l.Keys)), zone: make([]ecs.Symbol, len(l.Keys)), run: make([]ecs.Symbol, len(l.Runs))}
	m := x.b.M
	for k := range l.Keys {
		text := l.ZoneName(uint32(k))
		x.zone[k], x.opcode[k] = m.Symbols.InternString(text), m.Opcode(text)
	}
	for r := range l.Runs {
		x.run[r] = m.Symbols.InternString(launchName(&l.Runs[r]))
	}
	if err := x.origins(); err != nil {
		return nil, err
	}
	x.b.Rows = make([]timeline.Row, 0, l.Zones.Len())
	for _, lane := range x.order() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if l.Zones.LaneOff[lane] < l.Zones.LaneOff[lane+1] {
			if err := x.lane(lane); err != nil {
				return nil, err
			}
		}
	}
	s := &l.Sessions[0]
	x.attribute("ttprof.version", s.Version)
	x.attribute("ttprof.arch", s.Arch)
	x.attribute("ttprof.mhz", fmt.Sprintf("%g", s.FreqMHz))
	if n := l.Rows() - 2*l.Zones.Len() - len(l.UnmatchedStart) - len(l.UnmatchedEnd); n > 0 {
		m.Note("zone-markers", "markers that are not zones (data, events, totals, counters): not part of the program; 'perfsim profile' has them", n)
	}
	if x.devices > 1 {
		m.Note("device-clocks", "devices, whose clocks cannot be compared: each starts at 0", x.devices)
	}
	if x.noClock {
		m.Note("no-clock", "sessions without a clock: a cycle counts as a nanosecond", 1)
	}
	for _, d := range l.Diags.All() {
		text := d.Detail
		if d.Line > 0 {
			text = fmt.Sprintf("line %d: %s", d.Line, text)
		}
		m.Note(d.Code, d.Code+": "+text, int(min(d.Count, math.MaxInt32)))
	}
	return x.b.Measured()
}

type moduleMaker struct {
	l       *zonelog.DeviceLog
	b       *timeline.Builder
	opcode  []components.Opcode // by key
	zone    []ecs.Symbol        // by key
	run     []ecs.Symbol        // by run
	start   map[deviceSession]deviceTime
	devices int
	noClock bool
}

func (x *moduleMaker) attribute(key, value string) {
	m := x.b.M
	m.Attributes = append(m.Attributes, components.Attribute{Key: key, Value: value})
}

type deviceSession struct {
	device  int32
	session uint32
}

// deviceTime is where a device's cycles of a session begin, and at which
// nanosecond.
type deviceTime struct{ first, last, at uint64 }

// longestNS bounds what a log may span: a day. The counters of devices wrap
// before that; only a wrong clock or damaged times get there.
const longestNS = 86_400e9

// origins finds where every device starts.
func (x *moduleMaker) origins() error {
	l := x.l
	x.start = map[deviceSession]deviceTime{}
	devices := map[int32]bool{}
	for lane := range l.Lanes {
		d := l.Lanes[lane].Device
		for z := l.Zones.LaneOff[lane]; z < l.Zones.LaneOff[lane+1]; z++ {
			row, end := l.Zones.Begin[z], l.Zones.End[z]
			k := deviceSession{d, l.Runs[l.Run[row]].Session}
			t, ok := x.start[k]
			if !ok || l.Time[row] < t.first {
				t.first = l.Time[row]
			}
			t.last = max(t.last, l.Time[end])
			x.start[k] = t
			devices[d] = true
		}
	}
	x.devices = len(devices)
	sorted := slices.Sorted(maps.Keys(devices)) // of several errors the first device's is reported
	var at uint64
	for s := range l.Sessions {
		x.noClock = x.noClock || l.Sessions[s].FreqMHz <= 0
		next := at
		for _, d := range sorted {
			k := deviceSession{d, uint32(s)}
			if t, ok := x.start[k]; ok {
				t.at = at
				x.start[k] = t
				mhz := l.Sessions[s].FreqMHz
				if span := float64(at) + float64(t.last-t.first)*1000/cmp.Or(mhz, 1000); !(span <= longestNS) {
					return fmt.Errorf("device %d: %d cycles at %g MHz are more than a day: a clock or times are wrong", d, t.last-t.first, mhz)
				}
				next = max(next, at+nanos(t.last-t.first, mhz)+1_000_000)
			}
		}
		at = next
	}
	return nil
}

// nanos turns cycles into the nearest nanosecond; without a clock a cycle is
// one.
func nanos(cycles uint64, mhz float64) uint64 {
	if mhz <= 0 {
		return cycles
	}
	return uint64(float64(cycles)*1000/mhz + 0.5)
}

// order returns the processors by device, core and name.
func (x *moduleMaker) order() []int {
	order := make([]int, len(x.l.Lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &x.l.Lanes[i], &x.l.Lanes[j]
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X), cmp.Compare(a.Risc, b.Risc))
	})
	return order
}

// lane adds the instructions of a processor.
func (x *moduleMaker) lane(lane int) error {
	l, z := x.l, &x.l.Zones
	ln := &l.Lanes[lane]
	name := fmt.Sprintf("%d,%d %s", ln.X, ln.Y, ln.Risc)
	if x.devices > 1 {
		name = fmt.Sprintf("device %d %s", ln.Device, name)
	}
	id, err := x.b.Lane(name)
	if err != nil {
		return err
	}
	engine := components.DMA // the processors that move data
	if strings.HasPrefix(ln.Risc, "TRISC") {
		engine = components.PE
	}
	type open struct {
		zone uint32
		rows int // pieces so far
	}
	var stack []open
	var cur uint64 // cycles
	piece := func(to uint64, last bool) {
		o := &stack[len(stack)-1]
		if to <= cur && !(last && o.rows == 0) { // a zone of no length stays visible
			return
		}
		o.rows++
		begin := z.Begin[o.zone]
		run := l.Run[begin]
		s := l.Runs[run].Session
		t := x.start[deviceSession{ln.Device, s}]
		mhz := l.Sessions[s].FreqMHz
		key := l.Key(int(o.zone))
		x.b.Add(timeline.Row{Start: t.at + nanos(cur-t.first, mhz), End: t.at + nanos(max(to, cur)-t.first, mhz), Name: x.zone[key], Op: x.run[run],
			Ref: l.Line(int(begin)), Opcode: x.opcode[key], Lane: id, Engine: engine})
		cur = max(to, cur)
	}
	pop := func() {
		piece(l.Time[z.End[stack[len(stack)-1].zone]], true)
		stack = stack[:len(stack)-1]
	}
	for i := z.LaneOff[lane]; i < z.LaneOff[lane+1]; i++ {
		for len(stack) > 0 && stack[len(stack)-1].zone != z.Parent[i] {
			pop()
		}
		at := l.Time[z.Begin[i]]
		if len(stack) > 0 {
			piece(at, false)
		}
		cur = at
		stack = append(stack, open{zone: i})
	}
	for len(stack) > 0 {
		pop()
	}
	return nil
}

// launchName names a launch.
func launchName(r *zonelog.LogRun) string {
	var parts []string
	add := func(what string, v int64) {
		if v >= 0 {
			parts = append(parts, fmt.Sprintf("%s %d", what, v))
		}
	}
	add("host id", r.HostID)
	add("run", r.RunID)
	add("trace", r.TraceID)
	add("replay", r.TraceCounter)
	if len(parts) == 0 {
		return "launch"
	}
	return strings.Join(parts, " ")
}
