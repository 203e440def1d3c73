package zonerecorder

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/components/zonelog"
	"perfsim/ecs"
	"perfsim/io/tenstorrent/profilelog"
)

// LogOptions says how a simulation is recorded.
type LogOptions struct {
	// Push has processors push a full buffer and go on, as dispatch cores do;
	// otherwise what does not fit the buffer of a launch is lost, as on
	// compute cores.
	Push bool
	// ClockMHz is the clock of the log; 0 means 1000, a cycle a nanosecond.
	ClockMHz float64
	// Version is that of the log, V5 to V11; "" is V11.
	Version string
}

// LogReport says what the recorder kept.
type LogReport struct {
	Launches   int
	Zones      uint64 // instructions that were to be recorded
	Kept       uint64
	Lost       uint64 // had no room in a marker buffer
	DRAMFull   int    // lanes whose DRAM buffer was full
	Collisions int    // zones that share an id with another
}

// WriteLog records run A of a placed world with the profiler's buffers and
// writes the device log that the host would: each lane is a processor with a
// marker buffer of its own, each top-level block a launch, each instruction a
// zone named after its opcode. So one sees what a real profile would have
// lost.
func WriteLog(ctx context.Context, w *components.World, out io.Writer, o LogOptions) (LogReport, error) {
	m := w.Module
	var rep LogReport
	mhz := o.ClockMHz
	if mhz <= 0 {
		mhz = 1000
	}
	cycles := func(ns uint64) uint64 { return uint64(float64(ns)*mhz/1000 + 0.5) }
	type lane struct {
		name   string
		core   processor
		fw     uint16
		kernel uint16
		used   bool
	}
	texts := []string{quickPushText}
	zone := func(name string, line int) uint16 {
		text := fmt.Sprintf("%s,%s,%d,KERNEL_PROFILER", clean(name), clean(m.Name), line)
		texts = append(texts, text)
		return zonelog.ZoneHash16(text)
	}
	lanes := make([]lane, m.Lanes.Len())
	for l := range lanes {
		x := &lanes[l]
		x.name = clean(m.LaneName(uint16(l)))
		x.core.flat = uint32(l) & 0xFF
		x.fw, x.kernel = zone(x.name+"-FW", 0), zone(x.name+"-KERNEL", 1)
	}
	// A zone is an opcode at a place of the source; where the module has no
	// places it is in the module, at a line of its own.
	type spot struct {
		op     components.Opcode
		source ecs.Symbol
	}
	zones := map[spot]uint16{}
	zoneOf := func(i components.InstrID) uint16 {
		at := spot{m.Instr.Opcode.At(int(i)), m.Instr.Source.Get(int(i))}
		id, ok := zones[at]
		if ok {
			return id
		}
		name := m.OpcodeName(at.op)
		file, line := splitSource(m.Symbols.String(at.source))
		if file == "" {
			id = zone(name, 10+int(at.op))
		} else {
			text := fmt.Sprintf("%s,%s,%d,KERNEL_PROFILER", clean(name), clean(file), line)
			texts = append(texts, text)
			id = zonelog.ZoneHash16(text)
		}
		zones[at] = id
		return id
	}
	base := uint64(1_000_000) // counters do not start at 0
	for k, b := range m.TopBlocks() {
		if err := ctx.Err(); err != nil {
			return rep, err
		}
		rep.Launches++
		first, end := m.Blocks.First.At(b), m.Blocks.End.At(b)
		latency := w.Blocks[b].Extent(components.RunA)
		// The instructions of each lane in program order; a lane's next start
		// ends the zone before it, because zones of a processor nest.
		rows := make([][]components.InstrID, len(lanes))
		for i := first; i < end; i++ {
			if m.Instr.Flags.At(int(i))&components.FlagLoop == 0 {
				l := m.Instr.Lane.At(int(i))
				rows[l] = append(rows[l], components.InstrID(i))
			}
		}
		for l := range lanes {
			if len(rows[l]) == 0 {
				continue
			}
			x := &lanes[l]
			x.used = true
			r := &x.core
			r.hostID = uint32(k+1) << 10
			from, _ := w.Events.Span(m, rows[l][0], components.RunA)
			r.BeginFW(x.fw, cycles(base+from))
			r.BeginKernel(x.kernel, cycles(base+from))
			last := from
			for n, i := range rows[l] {
				start, stop := w.Events.Span(m, i, components.RunA)
				start = max(start, last)
				if n+1 < len(rows[l]) {
					if next, _ := w.Events.Span(m, rows[l][n+1], components.RunA); next < stop {
						stop = next
					}
				}
				stop = max(stop, start)
				id := zoneOf(i)
				rep.Zones++
				s := r.Open(id, cycles(base+start), o.Push)
				if s.marked {
					rep.Kept++
				}
				r.Close(s, cycles(base+stop))
				last = stop
			}
			r.EndKernel(x.kernel, cycles(base+last))
			r.EndFW(x.fw, cycles(base+last))
		}
		base += latency + 1000
	}
	src, err := profilelog.NewSources(texts...)
	if err != nil {
		return rep, err
	}
	rep.Collisions = len(src.Collisions)
	version := o.Version
	if version == "" {
		version = "V11"
	}
	// Up to V6 the id of an end is that of its start + 65536.
	typed := version != "V5" && version != "V6"
	lw, err := profilelog.NewWriter(out, version, "perfsim-"+clean(m.Arch), mhz, len(lanes))
	if err != nil {
		return rep, err
	}
	for l := range lanes {
		x := &lanes[l]
		if !x.used {
			continue
		}
		rep.Lost += x.core.lostScopes
		if x.core.dropped {
			rep.DRAMFull++
		}
		runs, bad := profilelog.DecodeRaw(x.core.dram, layout)
		if len(bad) > 0 {
			return rep, fmt.Errorf("lane %s: word %d: %s", x.name, bad[0].Word, bad[0].Reason)
		}
		for i := 0; i+1 < len(runs); i++ { // pushes repeat the guaranteed slots
			if runs[i].HostID == runs[i+1].HostID {
				runs[i].Markers = customOnly(runs[i].Markers)
			}
		}
		ln := func(*profilelog.RawRun) zonelog.ZoneLane {
			return zonelog.ZoneLane{X: int32(m.Lanes.Core.At(l)), Y: 0, Risc: x.name}
		}
		if err := writeSorted(runs, src, typed, ln, lw); err != nil {
			return rep, err
		}
	}
	return rep, lw.Flush()
}

// writeSorted writes the launches of a processor in time order, as the host
// does from V10 on.
func writeSorted(runs []profilelog.RawRun, src *profilelog.Sources, typed bool, lane func(*profilelog.RawRun) zonelog.ZoneLane, w *profilelog.Writer) error {
	var rows []profilelog.Row
	err := profilelog.RawRows(runs, layout, src, typed, lane, func(r *profilelog.Row) error {
		rows = append(rows, *r)
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b profilelog.Row) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(outerFirst(&a), outerFirst(&b)))
	})
	for i := range rows {
		if err := w.Write(&rows[i]); err != nil {
			return err
		}
	}
	return nil
}

// outerFirst orders markers of one time so that zones nest.
func outerFirst(r *profilelog.Row) int {
	rank := 0
	switch {
	case strings.HasSuffix(r.Name, "-FW"):
		rank = 2
	case strings.HasSuffix(r.Name, "-KERNEL"):
		rank = 1
	}
	if r.Type == zonelog.MarkerEnd {
		return rank
	}
	return -rank
}

// splitSource takes the file and the line of a place "file:line"; the file is
// "" where there is none.
func splitSource(s string) (file string, line int) {
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return s, 0
	}
	line, err := strconv.Atoi(s[at+1:])
	if err != nil || line < 0 {
		return s, 0
	}
	return s[:at], line
}

// clean makes a name that a log line can hold.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ',' || r == '\n' || r == '\r' || r == '\'' {
			return '_'
		}
		return r
	}, s)
	if s == "" {
		return "unnamed"
	}
	return s
}

// customOnly drops the guaranteed markers, which every push repeats.
func customOnly(m []profilelog.RawMarker) []profilelog.RawMarker {
	for len(m) > 0 && m[0].Slot != profilelog.SlotCustom {
		m = m[1:]
	}
	return m
}
