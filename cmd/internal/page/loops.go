package page

import (
	"cmp"
	"slices"

	"perfsim/cmd/internal/web"
	"perfsim/components"
)

// blockLoop is a loop of the block that is placed as often as it runs.
type blockLoop struct {
	repeat *components.Repeat
	depth  int
	info   web.LoopInfo
}

// mostLoops bounds the loops that are drawn: the longest ones are.
const mostLoops = 4000

// findLoops finds the loops inside the block that repeat, outer before inner.
func (v *viewer) findLoops() {
	t := &v.m.Blocks
	var open []uint32 // ends of the loops around
	for n := v.block + 1; n < t.Len() && t.Parent.At(n) != 0; n++ {
		r := v.w.Blocks[n].Repeat
		if r == nil {
			continue
		}
		for len(open) > 0 && open[len(open)-1] <= r.First {
			open = open[:len(open)-1]
		}
		l := blockLoop{repeat: r, depth: len(open), info: web.LoopInfo{Name: v.m.BlockName(n), Trips: r.Trips, Start: ^uint64(0)}}
		for i := r.First; i < r.End; i++ {
			if !v.loop(i) {
				start, end := v.w.Events.Span(v.m, components.InstrID(i), components.RunA)
				l.info.Start, l.info.End = min(l.info.Start, start), max(l.info.End, end)
			}
		}
		open = append(open, r.End)
		if l.info.Start < l.info.End {
			v.loops = append(v.loops, l)
		}
	}
	// The last iteration begins where its first inner loop does, whose events are
	// those of that loop's last iteration.
	for n := range v.loops {
		for _, lane := range v.inner(n) {
			v.loops[n].info.Start = min(v.loops[n].info.Start, lane.Start[components.RunA])
		}
	}
	if len(v.loops) > mostLoops {
		slices.SortStableFunc(v.loops, func(a, b blockLoop) int { return cmp.Compare(b.length(), a.length()) })
		v.loopsLeft = len(v.loops) - mostLoops
		v.loops = v.loops[:mostLoops]
		slices.SortFunc(v.loops, func(a, b blockLoop) int { return cmp.Compare(a.repeat.First, b.repeat.First) })
	}
}

// inner returns the lanes of the loops inside loop n; their times are of its last
// iteration.
func (v *viewer) inner(n int) (lanes []components.RepeatLane) {
	for k := n + 1; k < len(v.loops) && v.loops[k].repeat.First < v.loops[n].repeat.End; k++ {
		lanes = append(lanes, v.loops[k].repeat.Lanes...)
	}
	return lanes
}

// length returns about how long all iterations take, in ns.
func (l *blockLoop) length() uint64 { return (l.info.End - l.info.Start) * l.repeat.Trips }

// addLoops gives rows the loops that their lanes have a part in. A loop's part
// reaches from its first start to the end of its last event; its busy time is
// that of all its iterations, mean over those of the loops around it.
func (v *viewer) addLoops(rows []web.Row, run components.Run) {
	if len(v.loops) == 0 {
		return
	}
	busy := v.p.rowBusy()
	type part struct {
		last, end, busy uint64
		byKind          map[components.Opcode]uint64
	}
	for n := range v.loops {
		l := &v.loops[n]
		parts := map[uint16]*part{}
		around := max(v.p.times.At(components.InstrID(l.repeat.First))/l.repeat.Trips, 1)
		for i := l.repeat.First; i < l.repeat.End; i++ {
			if v.loop(i) {
				continue
			}
			lane := v.m.Instr.Lane.At(int(i))
			x := parts[lane]
			if x == nil {
				x = &part{last: ^uint64(0), byKind: map[components.Opcode]uint64{}}
				parts[lane] = x
			}
			start, end := v.w.Events.Span(v.m, components.InstrID(i), run)
			x.last, x.end = min(x.last, start), max(x.end, end)
			x.busy += busy[i]
			x.byKind[v.m.Instr.Opcode.At(int(i))] += busy[i]
		}
		for _, lane := range v.inner(n) {
			if x := parts[lane.Lane]; x != nil {
				x.last = min(x.last, lane.Start[run])
			}
		}
		for _, lane := range l.repeat.Lanes {
			x := parts[lane.Lane]
			if x == nil || v.rowOf[lane.Lane] < 0 {
				continue
			}
			var kind components.Opcode
			for op, ns := range x.byKind {
				if most := x.byKind[kind]; ns > most || ns == most && op < kind {
					kind = op
				}
			}
			row := &rows[v.rowOf[lane.Lane]]
			start := min(lane.Start[run], x.last)
			row.Loops = append(row.Loops, web.Loop{Loop: n, Start: start, Last: x.last, End: x.end, Busy: min(x.busy/around, x.end-start), Kind: uint16(kind), Depth: l.depth})
		}
	}
}
