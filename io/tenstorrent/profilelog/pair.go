package profilelog

import (
	"fmt"
	"sync"

	"perfsim/components/zonelog"
	"perfsim/ecs"
)

// maxNest bounds how deep an end looks for its start below starts that were
// never ended. A marker buffer holds 125 scopes, so no true nest is deeper.
const maxNest = 256

// pair forms the zones of a log whose lanes are in time order.
//
// An end takes the innermost open start with its key in the same launch;
// starts above that one have lost their ends. An end whose start lies in
// another launch is taken only while the firmware zone around both is still
// open (a dispatch kernel runs through many launches). A firmware start
// closes the book on everything open: nothing survives a new launch. Starts
// and ends left over are listed, counted and get no duration.
//
// It uses spare, memory of a column that is no longer needed, for the columns
// of the zones where it is large enough.
func pair(l *zonelog.DeviceLog, spare []uint32) {
	n := len(l.Lanes)
	type result struct{ badStart, badEnd []uint32 }
	res := make([]result, n)
	fw, kernel := make([]bool, len(l.Keys)), make([]bool, len(l.Keys))
	for i := range l.Keys {
		fw[i] = hasSuffix(l.Keys[i].Name, "-FW")
		kernel[i] = hasSuffix(l.Keys[i].Name, "-KERNEL")
	}
	counts := make([]uint32, n)
	// Pass 1 counts the zones of each lane, pass 2 writes them in place, so
	// that the columns are allocated once.
	ecs.Parallel(n, func(lane int) {
		p := pairer{l: l, fw: fw, kernel: kernel}
		p.lane(int(l.LaneOff[lane]), int(l.LaneOff[lane+1]))
		counts[lane] = uint32(p.zones)
	})
	z := &l.Zones
	z.LaneOff = make([]uint32, n+1)
	for i, c := range counts {
		z.LaneOff[i+1] = z.LaneOff[i] + c
	}
	total := int(z.LaneOff[n])
	if len(spare) < 2*total {
		spare = make([]uint32, 2*total)
	}
	z.Begin, z.End = spare[:total:total], spare[total:2*total:2*total]
	z.Parent = make([]uint32, total)
	z.Depth = make([]uint8, total)
	var pool sync.Pool // of []uint32
	ecs.Parallel(n, func(lane int) {
		lo, hi := int(l.LaneOff[lane]), int(l.LaneOff[lane+1])
		ends, _ := pool.Get().([]uint32)
		if cap(ends) < hi-lo {
			ends = make([]uint32, hi-lo)
		}
		ends = ends[:hi-lo]
		clear(ends)
		p := pairer{l: l, fw: fw, kernel: kernel, from: lo, endOf: ends}
		p.lane(lo, hi)
		p.write(z, int(z.LaneOff[lane]))
		//lint:ignore SA6002 a slice header a lane is nothing compared with the lane
		pool.Put(ends)
		res[lane].badStart, res[lane].badEnd = p.badStart, p.badEnd
	})
	l.UnmatchedStart, l.UnmatchedEnd = nil, nil
	for i := range res {
		l.UnmatchedStart = append(l.UnmatchedStart, res[i].badStart...)
		l.UnmatchedEnd = append(l.UnmatchedEnd, res[i].badEnd...)
	}
	report := func(code string, rows []uint32, what string) {
		if len(rows) == 0 {
			return
		}
		first := rows[0]
		for _, r := range rows {
			if l.Src.At(int(r)) < l.Src.At(int(first)) {
				first = r
			}
		}
		ln := l.Lanes[l.LaneOfMarker(int(first))]
		l.Diags.Add(code, uint64(len(rows)), l.Line(int(first)),
			fmt.Sprintf("%s of %s on device %d core %d,%d %s", what, l.ZoneName(l.Defs[l.Def[first]].Key), ln.Device, ln.X, ln.Y, ln.Risc))
	}
	report(diagUnmatchedStart, l.UnmatchedStart, "start")
	report(diagUnmatchedEnd, l.UnmatchedEnd, "end")
}

// pairer walks one lane.
type pairer struct {
	l      *zonelog.DeviceLog
	fw     []bool   // key is a firmware zone
	kernel []bool   // key is a kernel zone
	from   int      // first row of the lane
	endOf  []uint32 // row of the end + 1, by row of the start from the first on; nil when counting
	zones  int
	stack  []uint32 // marker rows of open starts
	group  []uint32 // rows of one time, waiting

	badStart, badEnd []uint32
}

func (p *pairer) lane(lo, hi int) {
	l := p.l
	session := uint32(0)
	multi := len(l.Sessions) > 1
	for m := lo; m < hi; m++ {
		if multi {
			if s := l.Runs[l.Run[m]].Session; s != session {
				p.drop(0)
				session = s
			}
		}
		// Rows of one time: the order in which they were recorded is not
		// known, so ends that fit go first.
		if m+1 < hi && l.Time[m+1] == l.Time[m] {
			e := m + 1
			for e < hi && l.Time[e] == l.Time[m] && e-m < 64 && (!multi || l.Runs[l.Run[e]].Session == session) {
				e++
			}
			p.ties(m, e)
			m = e - 1
			continue
		}
		p.row(uint32(m))
	}
	p.drop(0)
}

// ties takes rows of one time: an end that closes the innermost zone first,
// else a firmware start, a kernel start, the first row left that is not an
// end, else the first end.
func (p *pairer) ties(lo, hi int) {
	l := p.l
	p.group = p.group[:0]
	for m := lo; m < hi; m++ {
		p.group = append(p.group, uint32(m))
	}
	for len(p.group) > 0 {
		pick := -1
		for i, m := range p.group {
			if len(p.stack) > 0 && l.Type(int(m)) == zonelog.MarkerEnd {
				top := p.stack[len(p.stack)-1]
				if l.Defs[l.Def[top]].Key == l.Defs[l.Def[m]].Key && l.Run[top] == l.Run[m] {
					pick = i
					break
				}
			}
		}
		if pick < 0 {
			best := 3
			for i, m := range p.group {
				d := &l.Defs[l.Def[m]]
				rank := 2
				switch {
				case d.Type == zonelog.MarkerEnd:
					continue
				case p.fw[d.Key]:
					rank = 0
				case p.kernel[d.Key]:
					rank = 1
				}
				if rank < best {
					best, pick = rank, i
				}
			}
		}
		pick = max(pick, 0)
		m := p.group[pick]
		p.group = append(p.group[:pick], p.group[pick+1:]...)
		p.row(m)
	}
}

func (p *pairer) row(m uint32) {
	l := p.l
	d := &l.Defs[l.Def[m]]
	switch d.Type {
	case zonelog.MarkerStart:
		if p.fw[d.Key] {
			p.drop(0)
		}
		p.stack = append(p.stack, m)
	case zonelog.MarkerEnd:
		at := -1
		for i, low := len(p.stack)-1, max(0, len(p.stack)-maxNest); i >= low; i-- {
			s := p.stack[i]
			if l.Defs[l.Def[s]].Key == d.Key && (l.Run[s] == l.Run[m] || i > 0 && p.fw[l.Defs[l.Def[p.stack[0]]].Key]) {
				at = i
				break
			}
		}
		if at < 0 {
			if p.endOf != nil {
				p.badEnd = append(p.badEnd, m)
			}
			return
		}
		p.drop(at + 1)
		s := p.stack[at]
		p.stack = p.stack[:at]
		if p.endOf != nil {
			p.endOf[int(s)-p.from] = m + 1
		}
		p.zones++
	}
}

// drop gives up the open starts from place at on.
func (p *pairer) drop(at int) {
	if p.endOf != nil {
		p.badStart = append(p.badStart, p.stack[at:]...)
	}
	p.stack = p.stack[:at]
}

// write stores the zones of the lane in order of their starts, with parents
// and depths.
func (p *pairer) write(z *zonelog.Zones, i int) {
	l := p.l
	open := p.stack[:0] // zones around the current one
	session := uint32(0)
	for off, e := range p.endOf {
		if e == 0 {
			continue
		}
		m, end := uint32(p.from+off), e-1
		t := l.Time[m]
		if s := l.Runs[l.Run[m]].Session; s != session {
			session, open = s, open[:0]
		}
		for len(open) > 0 {
			te := l.Time[z.End[open[len(open)-1]]]
			if te < t || te == t && l.Time[end] > t {
				open = open[:len(open)-1]
				continue
			}
			break
		}
		z.Begin[i], z.End[i], z.Parent[i] = m, end, zonelog.NoZone
		z.Depth[i] = uint8(min(len(open), 255))
		if len(open) > 0 {
			z.Parent[i] = open[len(open)-1]
		}
		open = append(open, uint32(i))
		i++
	}
}
