package catapult

import (
	"strconv"

	"perfsim/components"
	"perfsim/io/format"
)

// documentedLanes are the eleven thread names of the documented trace, by
// tid.
var documentedLanes = [...]string{"0. Unassigned", "4. POOL", "7. ACT", "5. PE", "1. DMA", "6. DVE", "3. SP",
	"2.0 CCStream0", "2.1 CCStream1", "2.2 CCStream2", "2.3 CCStream3"}

// threads gives every lane of a module its thread id, and the lane on whose
// thread its events are. The lanes of core 0 have the documented ids (streams
// are shifted by one, because the barrier lane 7 has no thread of its own);
// all others follow from 11 on, in lane order. The barriers of core 0 are on
// thread 0 where they get none of their own.
func threads(m *components.Module, barriers bool) (tids []int, on []uint16) {
	tids, on = make([]int, m.Lanes.Len()), make([]uint16, m.Lanes.Len())
	next := len(documentedLanes)
	for l := range tids {
		kind := m.Lanes.Kind.At(l)
		core := kind == components.LaneEngine || kind == components.LaneStream
		on[l] = uint16(l)
		switch {
		case core && l < int(components.LaneBarrier):
			tids[l] = l
		case core && l == int(components.LaneBarrier) && !barriers:
			tids[l], on[l] = 0, 0
		case core && l >= int(components.LaneCC0) && l < components.LanesPerCore:
			tids[l] = l - 1
		default:
			tids[l] = next
			next++
		}
	}
	return tids, on
}

// laneTitle is the thread name of a lane beyond the eleven.
func laneTitle(m *components.Module, l int) string {
	kind := m.Lanes.Kind.At(l)
	if kind != components.LaneEngine && kind != components.LaneStream {
		return m.LaneName(uint16(l))
	}
	slot := l % components.LanesPerCore
	core := "core " + strconv.Itoa(int(m.Lanes.Core.At(l))) + ": "
	if l < components.LanesPerCore {
		core = ""
	}
	switch {
	case slot < int(components.LaneBarrier):
		return core + documentedLanes[slot]
	case slot == int(components.LaneBarrier):
		return core + "8. ALL"
	}
	return core + documentedLanes[slot-1]
}

// appendThread appends a thread_name record.
func appendThread(dst []byte, tid int, name string) []byte {
	dst = append(dst, `{"name":"thread_name","ph":"M","pid":0,"tid":`...)
	dst = strconv.AppendInt(dst, int64(tid), 10)
	dst = append(dst, `,"args":{"name":`...)
	dst = format.AppendJSONString(dst, name)
	return append(dst, "}}"...)
}
