package devicelog

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components/zonelog"
	"perfsim/ecs"
)

// By says along which dimensions zones are grouped.
type By uint8

// Dimensions.
const (
	ByZone By = 1 << iota
	ByRisc
	ByCore
	ByDevice
	ByLaunchID // the launch identity of the log
)

// ZoneRow is the statistics of one group. Dimensions that are not grouped by
// hold -1 or an empty text.
type ZoneRow struct {
	Name   string
	File   string
	Line   uint32
	Risc   string
	Device int32
	X, Y   int32
	Run    int // row of DeviceLog.Runs

	Summary
	Self      uint64 // cycles outside inner zones, summed
	Unmatched uint64 // starts and ends without a partner
	FreqMHz   float64
}

// groupID identifies a group.
type groupID struct {
	key, run int32
	lane     int32 // first lane of the lane group
	freq     float64
}

// Zones gives the statistics of all zones by the dimensions of by, ordered by
// total time, largest first. Groups never mix sessions of different clocks.
func Zones(ctx context.Context, l *zonelog.DeviceLog, by By) ([]ZoneRow, error) {
	// Lanes that fall together.
	laneGroup := make([]int32, len(l.Lanes))
	type laneKey struct {
		dev, x, y int32
		risc      string
	}
	first := map[laneKey]int32{}
	for i := range l.Lanes {
		ln := &l.Lanes[i]
		k := laneKey{-1, -1, -1, ""}
		if by&(ByDevice|ByCore) != 0 {
			k.dev = ln.Device // a core is a core of a device
		}
		if by&ByCore != 0 {
			k.x, k.y = ln.X, ln.Y
		}
		if by&ByRisc != 0 {
			k.risc = ln.Risc
		}
		g, ok := first[k]
		if !ok {
			g = int32(i)
			first[k] = g
		}
		laneGroup[i] = g
	}
	freq := make([]float64, len(l.Runs))
	for r := range l.Runs {
		freq[r] = l.Freq(uint32(r))
	}

	groups := map[groupID]int{}
	var ids []groupID
	var count []uint64
	find := func(lane, key int, run uint32) int {
		id := groupID{key: -1, run: -1, lane: laneGroup[lane], freq: freq[run]}
		if by&ByZone != 0 {
			id.key = int32(key)
		}
		if by&ByLaunchID != 0 {
			id.run = int32(run)
		}
		g, ok := groups[id]
		if !ok {
			g = len(ids)
			groups[id] = g
			ids = append(ids, id)
			count = append(count, 0)
		}
		return g
	}
	// Pass 1 counts, pass 2 fills one array group by group, so that each
	// group sorts its own part.
	z := &l.Zones
	type memo struct {
		key, run uint32
		g        int
	}
	var cache [64]memo
	// groupOf returns the group of zone i of a lane; forget comes before a lane.
	groupOf := func(lane int, i uint32) int {
		b := z.Begin[i]
		key, run := l.Defs[l.Def[b]].Key, l.Run[b]
		m := &cache[(key*31+run)%64]
		if m.g < 0 || m.key != key || m.run != run {
			*m = memo{key, run, find(lane, int(key), run)}
		}
		return m.g
	}
	forget := func() {
		for i := range cache {
			cache[i].g = -1
		}
	}
	for lane := range l.Lanes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		forget()
		for i := z.LaneOff[lane]; i < z.LaneOff[lane+1]; i++ {
			count[groupOf(lane, i)]++
		}
	}
	unmatched := make([]uint64, len(ids))
	for _, list := range [][]uint32{l.UnmatchedStart, l.UnmatchedEnd} {
		for _, row := range list {
			g := find(l.LaneOfMarker(int(row)), int(l.Defs[l.Def[row]].Key), l.Run[row])
			for len(unmatched) <= g {
				unmatched = append(unmatched, 0)
			}
			unmatched[g]++
		}
	}
	off := make([]uint64, len(ids)+1)
	for g, c := range count {
		off[g+1] = off[g] + c
	}
	// Lengths below 2^32 cycles, 3 s at 1.35 GHz, take half of the memory.
	most := uint64(0)
	for i := range z.Len() {
		most = max(most, l.Dur(i))
	}
	var short []uint32
	var long []uint64
	if most < 1<<32 {
		short = make([]uint32, z.Len())
	} else {
		long = make([]uint64, z.Len())
	}
	next := append([]uint64(nil), off[:len(ids)]...)
	self := make([]uint64, len(ids))
	for lane := range l.Lanes {
		forget()
		for i := z.LaneOff[lane]; i < z.LaneOff[lane+1]; i++ {
			d := l.Dur(int(i))
			g := groupOf(lane, i)
			if short != nil {
				short[next[g]] = uint32(d)
			} else {
				long[next[g]] = d
			}
			next[g]++
			self[g] += d
			if p := z.Parent[i]; p != zonelog.NoZone {
				self[groupOf(lane, p)] -= d
			}
		}
	}
	rows := make([]ZoneRow, len(ids))
	ecs.Parallel(len(ids), func(g int) {
		id := &ids[g]
		r := &rows[g]
		*r = ZoneRow{Device: -1, X: -1, Y: -1, Run: int(id.run), FreqMHz: id.freq, Self: self[g]}
		if id.key >= 0 {
			k := &l.Keys[id.key]
			r.Name, r.File, r.Line = l.ZoneName(uint32(id.key)), k.File, k.Line
		}
		ln := &l.Lanes[id.lane]
		if by&ByRisc != 0 {
			r.Risc = ln.Risc
		}
		if by&(ByDevice|ByCore) != 0 {
			r.Device = ln.Device
		}
		if by&ByCore != 0 {
			r.X, r.Y = ln.X, ln.Y
		}
		if short != nil {
			r.Summary = summarize(short[off[g]:off[g+1]])
		} else {
			r.Summary = summarize(long[off[g]:off[g+1]])
		}
		if g < len(unmatched) {
			r.Unmatched = unmatched[g]
		}
	})
	slices.SortStableFunc(rows, func(a, b ZoneRow) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Risc, b.Risc),
			cmp.Compare(a.Device, b.Device), cmp.Compare(a.Y, b.Y), cmp.Compare(a.X, b.X), cmp.Compare(a.Run, b.Run))
	})
	return rows, nil
}

// Instance is one zone for a list of the slowest.
type Instance struct {
	Name   string
	Lane   zonelog.ZoneLane
	Run    zonelog.LogRun
	Start  uint64
	Cycles uint64
	Line   uint64 // line of the start in the file
	NS     float64
}

// Slowest returns the n longest zones; with name, only those of that zone.
// Equal lengths go by place.
func Slowest(l *zonelog.DeviceLog, n int, name string) []Instance {
	if n <= 0 {
		return nil
	}
	type cand struct {
		dur  uint64
		zone uint32
	}
	want := make([]bool, len(l.Keys))
	for k := range l.Keys {
		want[k] = name == "" || l.Keys[k].Name == name
	}
	// A heap of the n longest, the shortest on top.
	h := ecs.Heap[cand]{Less: func(a, b cand) bool { return a.dur < b.dur || a.dur == b.dur && a.zone > b.zone }}
	for z := range l.Zones.Len() {
		if !want[l.Key(z)] {
			continue
		}
		c := cand{l.Dur(z), uint32(z)}
		if h.Len() < n {
			h.Push(c)
		} else if h.Less(h.Top(), c) {
			h.Replace(c)
		}
	}
	slices.SortFunc(h.Items, func(a, b cand) int { return cmp.Or(cmp.Compare(b.dur, a.dur), cmp.Compare(a.zone, b.zone)) })
	out := make([]Instance, h.Len())
	for i, c := range h.Items {
		z := int(c.zone)
		b := l.Zones.Begin[z]
		out[i] = Instance{Name: l.ZoneName(l.Key(z)), Lane: l.Lanes[l.LaneOfZone(z)], Run: l.Runs[l.Run[b]],
			Start: l.Start(z), Cycles: c.dur, Line: l.Line(int(b)), NS: nanoseconds(float64(c.dur), l.Freq(l.Run[b]))}
	}
	return out
}
