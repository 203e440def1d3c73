package devicelog

import (
	"perfsim/components/zonelog"
)

// skew is how far apart the cores of a launch begin.
type skew struct {
	cycles uint64
	run    uint32 // row of DeviceLog.Runs
	row    int    // marker row of the latest core's first marker
	cores  int
}

// markerSkew returns the largest spread over the cores of device d of their
// first markers of one launch identity, for logs without firmware zones.
func markerSkew(l *zonelog.DeviceLog, t *Topology, d int) skew {
	type first struct {
		time uint64
		row  int
	}
	byRun := map[uint32]map[int]first{} // by launch and core
	for _, lane := range t.ByDevice[d] {
		last := ^uint32(0)
		for m := l.LaneOff[lane]; m < l.LaneOff[lane+1]; m++ {
			run := l.Run[m]
			if run == last {
				continue // markers of a lane are in the order of time
			}
			last = run
			cores := byRun[run]
			if cores == nil {
				cores = map[int]first{}
				byRun[run] = cores
			}
			if f, ok := cores[t.CoreOf[lane]]; !ok || l.Time[m] < f.time {
				cores[t.CoreOf[lane]] = first{l.Time[m], int(m)}
			}
		}
	}
	best := skew{}
	for run, cores := range byRun {
		lo, hi := first{time: ^uint64(0)}, first{row: -1}
		for _, f := range cores {
			if f.time < lo.time {
				lo = f
			}
			if hi.row < 0 || f.time > hi.time || f.time == hi.time && f.row < hi.row {
				hi = f
			}
		}
		if n := hi.time - lo.time; n > best.cycles || n == best.cycles && n > 0 && run < best.run {
			best = skew{n, run, hi.row, len(cores)}
		}
	}
	return best
}
