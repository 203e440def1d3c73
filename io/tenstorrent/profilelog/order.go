package profilelog

import (
	"context"
	"fmt"
	"slices"

	"perfsim/components/zonelog"
	"perfsim/ecs"
)

// halfRange is half of the range of the device counter. Times of one launch
// that lie further apart, and launches that step back further, mean that the
// counter wrapped between them.
const halfRange = 1 << (zonelog.MarkerTimeBits - 1)

// finish turns rows in file order into lanes in time order and pairs them.
func (b *builder) finish(ctx context.Context) error {
	l := b.log
	n := len(l.Time)
	if len(l.Sessions) > 0 && n == 0 {
		l.Diags.Add(DiagNoRows, 1, b.lines, "no usable row behind the header")
	}
	if n > 0 && !b.opt.KeepSwapped {
		b.unswap()
	}
	b.splitSessions()
	b.unwrap()
	if err := ctx.Err(); err != nil {
		return err
	}
	spare := b.sortLanes()
	if err := ctx.Err(); err != nil {
		return err
	}
	pair(l, spare)
	b.check()
	return nil
}

// unswap undoes a migration fault of golden logs of 2024-03: the header says
// time, stat value and the rows hold stat value, time. A start or an end
// never has data, so a log whose times are all zero while its zone markers
// carry data has the two exchanged.
func (b *builder) unswap() {
	l := b.log
	if len(l.Data) != len(l.Time) {
		return
	}
	for _, t := range l.Time {
		if t != 0 {
			return
		}
	}
	first, zones := -1, 0
	for i, v := range l.Data {
		if t := l.Defs[l.Def[i]].Type; v != 0 && (t == zonelog.MarkerStart || t == zonelog.MarkerEnd) {
			zones++
			if first < 0 {
				first = i
			}
		}
	}
	if first < 0 {
		return
	}
	l.Diags.Add(diagSwapped, uint64(len(l.Time)), l.LineOfRow(0),
		"every time is 0 and zone markers carry a stat value: the two columns are exchanged; undone")
	l.Time, l.Data = l.Data, nil
}

// splitSessions finds sessions that were appended without a header: on a
// lane, the launch counter and the time both step back, or all of a part of
// the file lies before, or repeats, the part above it.
func (b *builder) splitSessions() {
	l := b.log
	if len(l.Time) == 0 {
		return
	}
	type state struct {
		run  uint32
		time uint64 // latest time of the lane in this session
		high int64  // highest launch number of the lane in this session
		seen bool
	}
	id := func(r uint32) int64 {
		if h := l.Runs[r].HostID; h >= 0 {
			return h
		}
		return l.Runs[r].RunID
	}
	lanes := make([]state, len(l.Lanes))
	var cuts []uint32
	session := l.Runs[l.Run[0]].Session
	for i, run := range l.Run {
		s := &lanes[b.lane[i]]
		t := l.Time[i]
		if s.seen && run == s.run {
			s.time = max(s.time, t)
			continue
		}
		if cur := l.Runs[run].Session; cur != session {
			session = cur
			clear(lanes)
		}
		v := id(run)
		// A wrap steps back by more than half the range while launches go on.
		if s.seen && v < s.high && t < s.time && s.time-t < halfRange {
			cuts = append(cuts, uint32(i))
			clear(lanes)
		}
		if !s.seen {
			s.high = v
			s.time = t
		}
		s.run, s.seen = run, true
		s.high = max(s.high, v)
		s.time = max(s.time, t)
	}
	why := "launch numbers and times both step back: a later session was appended without a header"
	if len(cuts) == 0 || !b.launchesRepeat(cuts) {
		var repeats bool
		if cuts, repeats = b.blocks(); len(cuts) == 0 {
			return
		}
		why = "every launch starts again at an earlier time: a later session was appended without a header"
		if repeats {
			why = "what lies above is there again, to the cycle: the file holds a session more than once"
		}
	}
	l.Diags.Add(diagHeaderRepeated, uint64(len(cuts)), l.LineOfRow(cuts[0]), why)
	for k, from := range cuts {
		to := uint32(len(l.Run))
		if k+1 < len(cuts) {
			to = cuts[k+1]
		}
		s := l.Sessions[l.Runs[l.Run[from]].Session]
		old := l.Runs[l.Run[from]].Session
		s.FromRow, s.Line = from, l.LineOfRow(from)
		l.Sessions = append(l.Sessions, s)
		moved := map[uint32]uint32{}
		for i := from; i < to; i++ {
			r := l.Run[i]
			if l.Runs[r].Session != old {
				break // the next headed session
			}
			m, ok := moved[r]
			if !ok {
				m = uint32(len(l.Runs))
				run := l.Runs[r]
				run.Session = uint32(len(l.Sessions) - 1)
				l.Runs = append(l.Runs, run)
				moved[r] = m
			}
			l.Run[i] = m
		}
	}
}

// blocks cuts the file where a lane comes back, behind rows of others, with a
// time below or at its first. The cuts stand if at each of them all lanes on
// both sides agree: the later part ends before the earlier one starts and
// numbered launches are there twice (the counter was reset), or it starts at
// the same cycles (the session is there twice). Rows in another order do
// neither.
func (b *builder) blocks() (cuts []uint32, repeats bool) {
	l := b.log
	// A part of the file and what its lanes say of it and the part before.
	type partInfo struct {
		from        uint32
		below, same bool
		shared      int
		cut         bool // begun without a header
	}
	type laneInfo struct {
		part   int    // 1 + number of the lane's latest part, 0 for none
		def    uint32 // of its first row there
		first  uint64 // time of that row
		lo, hi uint64
		prev   struct { // the same of the part before
			there     bool
			def       uint32
			first, lo uint64
		}
	}
	lanes := make([]laneInfo, len(l.Lanes))
	parts := []partInfo{{}}
	settle := func(s *laneInfo) {
		if !s.prev.there {
			return
		}
		s.prev.there = false
		p := &parts[s.part-1]
		p.shared++
		p.below = p.below && s.hi < s.prev.lo && s.prev.lo-s.hi < halfRange
		p.same = p.same && s.first == s.prev.first && s.def == s.prev.def
	}
	session, prevLane := l.Runs[l.Run[0]].Session, uint32(1<<32-1)
	for i, run := range l.Run {
		if cur := l.Runs[run].Session; cur != session {
			for k := range lanes {
				settle(&lanes[k])
			}
			clear(lanes)
			session, prevLane = cur, 1<<32-1
			parts = append(parts, partInfo{from: uint32(i)})
		}
		lane, t := b.lane[i], l.Time[i]
		s := &lanes[lane]
		if s.part == len(parts) && lane != prevLane && (t < s.lo || t == s.first && l.Def[i] == s.def) {
			parts = append(parts, partInfo{from: uint32(i), below: true, same: true, cut: true})
		}
		if s.part != len(parts) {
			settle(s)
			if s.part != 0 {
				s.prev.there, s.prev.def, s.prev.first, s.prev.lo = true, s.def, s.first, s.lo
			}
			s.part, s.def, s.first, s.lo, s.hi = len(parts), l.Def[i], t, t, t
		}
		s.lo, s.hi = min(s.lo, t), max(s.hi, t)
		prevLane = lane
	}
	for k := range lanes {
		settle(&lanes[k])
	}
	repeats = true
	for _, p := range parts {
		switch {
		case !p.cut:
			continue
		case p.shared == 0 || !p.same && !p.below:
			return nil, false
		}
		repeats = repeats && p.same
		cuts = append(cuts, p.from)
	}
	if !repeats && !b.numberedLaunchesRepeat(cuts) {
		return nil, false
	}
	return cuts, repeats
}

// numberedLaunchesRepeat is launchesRepeat for logs whose launches have
// numbers: without, a later launch is not distinguished from the same one.
func (b *builder) numberedLaunchesRepeat(cuts []uint32) bool {
	for _, r := range b.log.Runs {
		if r.HostID <= 0 && r.RunID <= 0 {
			return false
		}
	}
	return b.launchesRepeat(cuts)
}

// launchesRepeat reports whether some launch of some lane starts its firmware
// on both sides of a cut. Rows that are merely shuffled step back as well, but
// each of their launches starts once.
func (b *builder) launchesRepeat(cuts []uint32) bool {
	l := b.log
	fw := make([]bool, len(l.Defs))
	for i := range l.Defs {
		fw[i] = l.Defs[i].Type == zonelog.MarkerStart && hasSuffix(l.Keys[l.Defs[i].Key].Name, "-FW")
	}
	first := map[uint64]int{} // lane and launch -> part of the file
	part := 0
	for i, d := range l.Def {
		for part < len(cuts) && uint32(i) >= cuts[part] {
			part++
		}
		if !fw[d] {
			continue
		}
		k := uint64(b.lane[i])<<32 | uint64(l.Run[i])
		if at, ok := first[k]; !ok {
			first[k] = part
		} else if at != part {
			return true
		}
	}
	return false
}

// unwrap adds 2^44 to times behind a wrap of the counter. Only devices whose
// times span more than half the range and fit 44 bits can have wrapped.
func (b *builder) unwrap() {
	l := b.log
	type devSession struct {
		dev     int32
		session uint32
	}
	type span struct{ lo, hi uint64 }
	devs := map[devSession]*span{}
	laneDev := make([]int32, len(l.Lanes))
	for i := range l.Lanes {
		laneDev[i] = l.Lanes[i].Device
	}
	// One look at the extremes: logs without a wrap stop here.
	var lastKey devSession
	var last *span
	for i, t := range l.Time {
		k := devSession{laneDev[b.lane[i]], l.Runs[l.Run[i]].Session}
		if last == nil || k != lastKey {
			last = devs[k]
			if last == nil {
				last = &span{t, t}
				devs[k] = last
			}
			lastKey = k
		}
		if t < last.lo {
			last.lo = t
		} else if t > last.hi {
			last.hi = t
		}
	}
	suspects := map[devSession]bool{}
	for k, s := range devs {
		if s.hi < 1<<zonelog.MarkerTimeBits && s.hi-s.lo > halfRange {
			suspects[k] = true
		}
	}
	if len(suspects) == 0 {
		return
	}
	type group struct {
		devSession
		run         uint32
		first       uint32 // row
		lo, hi      uint64
		used        [64]uint64 // 4096 slices of the range that hold a time
		cross       uint64     // times below it lie behind the wrap, 0 for none
		start, base uint64
	}
	type groupKey struct {
		dev int32
		run uint32
	}
	groups := map[groupKey]*group{}
	var inOrder []*group
	of := func(i int) *group {
		k := groupKey{laneDev[b.lane[i]], l.Run[i]}
		g := groups[k]
		if g == nil {
			ds := devSession{k.dev, l.Runs[k.run].Session}
			if !suspects[ds] {
				return nil
			}
			g = &group{devSession: ds, run: k.run, first: uint32(i), lo: l.Time[i], hi: l.Time[i]}
			groups[k] = g
			inOrder = append(inOrder, g)
		}
		return g
	}
	for i, t := range l.Time {
		if g := of(i); g != nil {
			g.lo, g.hi = min(g.lo, t), max(g.hi, t)
			s := t >> (zonelog.MarkerTimeBits - 12)
			g.used[s/64] |= 1 << (s % 64)
		}
	}
	state := map[devSession]*group{}
	for _, g := range inOrder {
		g.start = g.lo
		if g.hi-g.lo > halfRange {
			if gapEnd, ok := longGap(&g.used); ok {
				g.cross = gapEnd << (zonelog.MarkerTimeBits - 12)
				g.start = g.cross
			}
		}
		if prev := state[g.devSession]; prev != nil {
			g.base = prev.base
			if prev.start > g.start && prev.start-g.start > halfRange {
				g.base += 1 << zonelog.MarkerTimeBits
				l.Diags.Add(DiagTimerWrap, 1, l.LineOfRow(g.first), "the counter restarted between two launches; 2^44 added")
			}
		}
		if g.cross != 0 {
			l.Diags.Add(DiagTimerWrap, 1, l.LineOfRow(g.first), "the counter restarted inside a launch; 2^44 added")
		}
		state[g.devSession] = g
	}
	for i, t := range l.Time {
		if g := of(i); g != nil {
			t += g.base
			if g.cross != 0 && l.Time[i] < g.cross {
				t += 1 << zonelog.MarkerTimeBits
			}
			l.Time[i] = t
		}
	}
}

// longGap finds a run of unused slices at least half the range long and
// returns the slice behind it.
func longGap(used *[64]uint64) (uint64, bool) {
	free, best, end := 0, 0, 0
	for s := range 4096 {
		if used[s/64]>>(s%64)&1 == 0 {
			free++
			continue
		}
		if free > best {
			best, end = free, s
		}
		free = 0
	}
	return uint64(end), best >= 2047 && end > best
}

// sortLanes orders the rows by lane and by time. It returns the memory of the
// lane column, which the offsets of the lanes replace.
func (b *builder) sortLanes() []uint32 {
	l := b.log
	n := len(l.Time)
	l.LaneOff = make([]uint32, len(l.Lanes)+1)
	for _, v := range b.lane {
		l.LaneOff[v+1]++
	}
	for i := range l.Lanes {
		l.LaneOff[i+1] += l.LaneOff[i]
	}
	// Source rows take the place of the lane column.
	order := make([]uint32, n)
	next := append([]uint32(nil), l.LaneOff[:len(l.Lanes)]...)
	for i, v := range b.lane {
		order[next[v]] = uint32(i)
		next[v]++
	}
	spare := b.lane
	b.lane = nil
	// Within a lane: session, then time, then file order.
	oneSession := len(l.Sessions) < 2
	firstBad := make([]uint32, len(l.Lanes))
	ecs.Parallel(len(l.Lanes), func(lane int) {
		rows := order[l.LaneOff[lane]:l.LaneOff[lane+1]]
		sorted := true
		for i := 1; i < len(rows); i++ {
			if l.Time[rows[i]] < l.Time[rows[i-1]] &&
				(oneSession || l.Runs[l.Run[rows[i]]].Session <= l.Runs[l.Run[rows[i-1]]].Session) {
				sorted = false
				firstBad[lane] = rows[i] + 1
				break
			}
		}
		if sorted {
			return
		}
		slices.SortFunc(rows, func(a, c uint32) int {
			if !oneSession {
				if sa, sc := l.Runs[l.Run[a]].Session, l.Runs[l.Run[c]].Session; sa != sc {
					return int(sa) - int(sc)
				}
			}
			ta, tc := l.Time[a], l.Time[c]
			switch {
			case ta < tc:
				return -1
			case ta > tc:
				return 1
			}
			return int(int64(a) - int64(c))
		})
	})
	lanes, line := uint64(0), uint64(0)
	for _, r := range firstBad {
		if r != 0 {
			lanes++
			if at := l.LineOfRow(r - 1); line == 0 || at < line {
				line = at
			}
		}
	}
	if lanes > 0 && b.ordered() {
		l.Diags.Add(diagOutOfOrder, lanes, line, fmt.Sprintf("%d of %d lanes are not in time order; sorted", lanes, len(l.Lanes)))
	}
	b.moveMeta(order)
	permute(order, l)
	l.Src, _ = zonelog.NewSourceRows(order)
	return spare
}

// ordered reports whether the version writes markers in time order: V10 on.
// Before, the four guaranteed markers come first in each launch.
func (b *builder) ordered() bool {
	for _, s := range b.log.Sessions {
		switch s.Version {
		case "V10", "V11", "V12":
			return true
		}
	}
	return false
}

// moveMeta renumbers the rows that have meta data.
func (b *builder) moveMeta(order []uint32) {
	l := b.log
	if len(l.MetaRow) == 0 {
		return
	}
	old, text := l.MetaRow, l.MetaText
	l.MetaRow = make([]uint32, 0, len(old))
	l.MetaText = make([]uint32, 0, len(old))
	for i, src := range order {
		if k, ok := slices.BinarySearch(old, src); ok {
			l.MetaRow = append(l.MetaRow, uint32(i))
			l.MetaText = append(l.MetaText, text[k])
		}
	}
}

// permute moves row order[i] to place i in every column, without a second
// copy of the columns: cycle by cycle, with one bit a row.
func permute(order []uint32, l *zonelog.DeviceLog) {
	n := len(order)
	done := make([]uint64, (n+63)/64)
	data := l.Data
	for i := 0; i < n; i++ {
		if i%64 == 0 && done[i/64] == ^uint64(0) {
			i += 63
			continue
		}
		if done[i/64]>>(i%64)&1 == 1 || order[i] == uint32(i) {
			continue
		}
		t, d, r := l.Time[i], l.Def[i], l.Run[i]
		var v uint64
		if data != nil {
			v = data[i]
		}
		at := uint32(i)
		for {
			done[at/64] |= 1 << (at % 64)
			from := order[at]
			if from == uint32(i) {
				break
			}
			l.Time[at], l.Def[at], l.Run[at] = l.Time[from], l.Def[from], l.Run[from]
			if data != nil {
				data[at] = data[from]
			}
			at = from
		}
		l.Time[at], l.Def[at], l.Run[at] = t, d, r
		if data != nil {
			data[at] = v
		}
	}
}

// check adds the diagnostics that need the whole log.
func (b *builder) check() {
	l := b.log
	devs := map[int32]bool{}
	for i := range l.Lanes {
		devs[l.Lanes[i].Device] = true
	}
	if len(devs) > 1 {
		l.Diags.Add(diagDevices, uint64(len(devs)), 0, "counters of different devices are not aligned: times are compared within a device only")
	}
	// One id, several zones.
	byID := map[uint32]uint32{}
	for k := range l.Keys {
		key := &l.Keys[k]
		if key.Name == "" || key.ID > 0xFFFF || key.ID <= 4 {
			continue
		}
		if first, ok := byID[key.ID]; ok {
			a := &l.Keys[first]
			l.Diags.Add(diagCollision, 1, 0, fmt.Sprintf("id %d is both %s (%s:%d) and %s (%s:%d)", key.ID, a.Name, a.File, a.Line, key.Name, key.File, key.Line))
			continue
		}
		byID[key.ID] = uint32(k)
	}
	if b.opt.Sources != nil {
		for _, c := range b.opt.Sources.Collisions {
			if _, ok := byID[uint32(c.A.ID)]; ok {
				l.Diags.Add(diagCollision, 1, 0, fmt.Sprintf("id %d is both %s (%s:%d) and %s (%s:%d) in the source log", c.A.ID, c.A.Name, c.A.File, c.A.Line, c.B.Name, c.B.File, c.B.Line))
			}
		}
	}
	b.fullBuffers()
}

// fullBuffers counts the lanes and launches whose optional markers fill the
// L1 buffer, so that later zones of the launch are missing (dispatch cores
// push early and go beyond it). The old recorder, with ids 1..4, held 16
// markers and lost the kernel end.
func (b *builder) fullBuffers() {
	l := b.log
	full, line := uint64(0), uint64(0)
	// Markers that a packet takes, payload included.
	cost := [zonelog.NumMarkers]int{1, 1, 1, 2, 1, 3}
	guaranteed := func(k *zonelog.ZoneKey, t zonelog.MarkerType) bool {
		return (t == zonelog.MarkerStart || t == zonelog.MarkerEnd) &&
			(hasSuffix(k.Name, "-FW") || hasSuffix(k.Name, "-KERNEL"))
	}
	flush := func(row, used int, fixed int, ended bool, old bool) {
		if !old && (used == OptionalMarkers || used == OptionalMarkers-1) || old && used+fixed == oldMarkers && !ended {
			full++
			if at := l.Line(row); line == 0 || at < line {
				line = at
			}
		}
	}
	for lane := range l.Lanes {
		lo, hi := int(l.LaneOff[lane]), int(l.LaneOff[lane+1])
		used, fixed, ended, from := 0, 0, false, lo
		for m := lo; m < hi; m++ {
			d := &l.Defs[l.Def[m]]
			k := &l.Keys[d.Key]
			old := d.Timer <= 4 && k.Line == 0
			g := guaranteed(k, d.Type)
			newFW := g && d.Type == zonelog.MarkerStart && hasSuffix(k.Name, "-FW")
			if m > from && (l.Run[m] != l.Run[m-1] || newFW) {
				prev := &l.Defs[l.Def[m-1]]
				flush(m-1, used, fixed, ended, prev.Timer <= 4 && l.Keys[prev.Key].Line == 0)
				used, fixed, ended, from = 0, 0, false, m
			}
			if g {
				fixed++
				if d.Type == zonelog.MarkerEnd && hasSuffix(k.Name, "-KERNEL") {
					ended = true
				}
			} else {
				used += cost[d.Type]
			}
			if m == hi-1 {
				flush(m, used, fixed, ended, old)
			}
		}
	}
	if full > 0 {
		l.Diags.Add(DiagBufferFull, full, line, "the marker buffer of the processor was full: what came later in that launch was dropped by the device")
	}
}

func hasSuffix(s, suffix string) bool {
	return len(s) >= len(suffix) && s[len(s)-len(suffix):] == suffix
}
