package devicelog

import (
	"slices"

	"perfsim/components/zonelog"
)

// A few zones whose times lie absurdly far from all others, such as those of a
// timer that was reset or of a marker that was overwritten, would make the span
// of a device all idle.
const (
	mostFar  = 16  // zones that may be far, and no more than one in four
	farTimes = 100 // how many times the extent of all others they lie away
)

// extent is the span of the zones of a device in a session without those that
// lie far from all others.
type extent struct {
	start, end uint64
	zones      int
	far        int
	firstFar   int // row of the marker that begins the first of them
}

// has reports whether a zone belongs to the extent.
func (e *extent) has(l *zonelog.DeviceLog, z int) bool {
	from := l.Start(z)
	return e.far == 0 || from >= e.start && from+l.Dur(z) <= e.end
}

// extentOf measures the zones of a device in a session.
func extentOf(l *zonelog.DeviceLog, t *Topology, device int, session uint32) extent {
	each := func(f func(z int, from, to uint64)) {
		for _, lane := range t.ByDevice[device] {
			for z := int(l.Zones.LaneOff[lane]); z < int(l.Zones.LaneOff[lane+1]); z++ {
				if l.Runs[l.Run[l.Zones.Begin[z]]].Session == session {
					f(z, l.Start(z), l.Start(z)+l.Dur(z))
				}
			}
		}
	}
	var e extent
	low, high := make([]uint64, 0, mostFar+1), make([]uint64, 0, mostFar+1) // the least starts, the greatest ends
	each(func(_ int, from, to uint64) {
		if e.zones == 0 || from < e.start {
			e.start = from
		}
		e.end = max(e.end, to)
		e.zones++
		low = insert(low, from, true)
		high = insert(high, to, false)
	})
	if e.zones < 4 {
		return e
	}
	// Of the zones apart from the widest gap at either side, the others' extent.
	for _, side := range []struct {
		list []uint64
		high bool
	}{{high, true}, {low, false}} {
		cut, ok := widest(side.list)
		if !ok {
			continue
		}
		rest := extent{firstFar: -1}
		each(func(z int, from, to uint64) {
			if side.high && to >= cut || !side.high && from <= cut {
				if rest.far++; rest.firstFar < 0 {
					rest.firstFar = int(l.Zones.Begin[z])
				}
				return
			}
			if rest.zones == 0 || from < rest.start {
				rest.start = from
			}
			rest.end = max(rest.end, to)
			rest.zones++
		})
		away := cut - rest.end
		if !side.high {
			away = rest.start - cut
		}
		if rest.far*4 <= e.zones && rest.far <= mostFar && rest.end > rest.start && away/farTimes > rest.end-rest.start {
			return rest
		}
	}
	return e
}

// insert keeps the mostFar+1 least or greatest values, the extreme one first.
func insert(list []uint64, v uint64, least bool) []uint64 {
	i, _ := slices.BinarySearchFunc(list, v, func(a, b uint64) int {
		if a == b || a < b == least {
			return -1
		}
		return 1
	})
	if i > mostFar {
		return list
	}
	list = slices.Insert(list, i, v)
	return list[:min(len(list), mostFar+1)]
}

// widest returns the value before the widest gap between neighbours.
func widest(list []uint64) (cut uint64, ok bool) {
	gap := uint64(0)
	for i := 1; i < len(list); i++ {
		if d := max(list[i], list[i-1]) - min(list[i], list[i-1]); d > gap {
			gap, cut, ok = d, list[i-1], true
		}
	}
	return cut, ok
}
