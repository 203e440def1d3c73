package devicelog

import (
	"cmp"
	"slices"

	"perfsim/components/zonelog"
)

// DeviceBusy is how long a device had a launch running.
type DeviceBusy struct {
	Device  int32
	Session uint32
	FreqMHz float64

	Launches int
	Start    uint64 // first firmware start
	End      uint64 // last firmware end
	Span     uint64 // from the one to the other
	Union    uint64 // cycles with at least one launch
	Sum      uint64 // lengths of the launches added up: above Union where they overlap
	Overlaps int    // launches that start before an earlier one has ended
	Gaps     []Gap  // idle time between launches, in time order
	MaxSkew  uint64 // largest spread of firmware starts in one launch
	SkewAt   int    // launch of that
	Open     int    // launches without their last end, left out of the sums
}

// Gap is time of a device without a launch.
type Gap struct {
	Before, After int // launches around it
	Start, Cycles uint64
}

// Busy measures every device and session. Lengths are from the first
// firmware start to the last firmware end of any processor.
func Busy(l *zonelog.DeviceLog, t *Topology, launches []*Launches) []DeviceBusy {
	var out []DeviceBusy
	for d := range t.Devices {
		ls := launches[d]
		iv := intervals(l, t, ls)
		idx := make([]int, len(iv))
		for i := range idx {
			idx[i] = i
		}
		session := func(i int) uint32 { return l.Runs[ls.List[i].Run].Session }
		slices.SortStableFunc(idx, func(a, b int) int {
			return cmp.Or(cmp.Compare(session(a), session(b)), cmp.Compare(iv[a].Start, iv[b].Start))
		})
		var cur *DeviceBusy
		reach, last := uint64(0), -1
		for _, i := range idx {
			if cur == nil || cur.Session != session(i) {
				out = append(out, DeviceBusy{Device: t.Devices[d], Session: session(i), FreqMHz: l.Sessions[session(i)].FreqMHz, Start: iv[i].Start, SkewAt: -1})
				cur = &out[len(out)-1]
				reach, last = iv[i].Start, -1
			}
			cur.Launches++
			if s := iv[i].LastStart - iv[i].FirstCore; s > cur.MaxSkew {
				cur.MaxSkew, cur.SkewAt = s, i
			}
			if iv[i].End < iv[i].Start || !iv[i].HasEnd {
				cur.Open++
				continue
			}
			a, b := iv[i].Start, iv[i].End
			cur.Sum += b - a
			if last >= 0 && a < reach {
				cur.Overlaps++
			}
			if last >= 0 && a > reach {
				cur.Gaps = append(cur.Gaps, Gap{Before: last, After: i, Start: reach, Cycles: a - reach})
			}
			if b > reach {
				cur.Union += b - max(a, reach)
				reach, last = b, i
			} else if last < 0 {
				last = i
			}
			cur.End = max(cur.End, b)
			cur.Span = cur.End - cur.Start
		}
	}
	return out
}

// interval is the extent of one launch over all its processors.
type interval struct {
	Start     uint64 // first firmware start of any processor
	FirstCore uint64 // first and last firmware start of BRISC or ERISC
	LastStart uint64
	End       uint64 // last firmware end of any processor
	HasEnd    bool
}

// intervals gives the extent of each launch.
func intervals(l *zonelog.DeviceLog, t *Topology, ls *Launches) []interval {
	iv := make([]interval, len(ls.List))
	for i := range iv {
		iv[i].Start, iv[i].FirstCore, iv[i].LastStart = ls.List[i].Start, ls.List[i].Start, ls.List[i].Start
	}
	fw := make([]bool, len(l.Keys))
	for k := range l.Keys {
		fw[k] = matchName([]string{"*-FW"}, l.Keys[k].Name)
	}
	for _, lane := range t.ByDevice[ls.Device] {
		cur := ls.cursor()
		risc := l.Lanes[lane].Risc
		core := &t.Cores[t.CoreOf[lane]]
		controller := risc == "BRISC" || risc == "ERISC" || core.Fallback && core.Controller == lane
		for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
			def := &l.Defs[l.Def[row]]
			if def.Type > zonelog.MarkerEnd || !fw[def.Key] {
				continue
			}
			la := cur.launch(l.Run[row], place{l.Time[row], t.Rank[lane], uint32(row)})
			if la < 0 {
				continue
			}
			x := &iv[la]
			if def.Type == zonelog.MarkerStart {
				x.Start = min(x.Start, l.Time[row])
				if controller {
					x.LastStart = max(x.LastStart, l.Time[row])
				}
			} else {
				x.End, x.HasEnd = max(x.End, l.Time[row]), true
			}
		}
	}
	return iv
}
