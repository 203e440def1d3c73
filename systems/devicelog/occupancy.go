package devicelog

import (
	"bytes"
	"fmt"
	"strings"

	"perfsim/components/zonelog"
	"perfsim/ecs"
	"perfsim/io/svg"
)

// CoreBusy is how long one core worked.
type CoreBusy struct {
	Core   int // index into Topology.Cores
	Kernel uint64
	FW     uint64
	Zones  uint64
}

// DeviceMap is the core grid of a device with the share of its span (first
// to last zone) in which any processor of the core was inside a kernel
// zone (a zone whose name ends in -KERNEL; every zone where there is none).
type DeviceMap struct {
	Device     int32
	Arch       string
	Session    uint32
	Start, End uint64
	Cores      []CoreBusy
	MinX, MinY int32
	MaxX, MaxY int32
	AnyZone    bool // no kernel zones: every zone counts
	Far        int  // zones far from all others, which are left out
	FirstFar   int  // row of the marker that begins the first of them
}

// Occupancy makes the map of every device and session.
func Occupancy(l *zonelog.DeviceLog, t *Topology) []DeviceMap {
	busy, anyZone := busyKeys(l)
	var out []DeviceMap
	for d := range t.Devices {
		for s := range l.Sessions {
			m := DeviceMap{Device: t.Devices[d], Session: uint32(s), Arch: l.Sessions[s].Arch, AnyZone: anyZone}
			var ok bool
			if m.Start, m.End, ok = sessionSpan(l, t, d, uint32(s)); !ok {
				continue
			}
			// The span is that of zones where there are any: counters may be read
			// in a later pass, whose times are those of that pass.
			ext := extentOf(l, t, d, uint32(s))
			if ext.zones > 0 {
				m.Start, m.End, m.Far, m.FirstFar = ext.start, ext.end, ext.far, ext.firstFar
			}
			m.addCores(l, t, d, &ext, busy)
			out = append(out, m)
		}
	}
	return out
}

// keyBusy says what zones of a name count as.
type keyBusy struct{ kernel, firmware bool }

// busyKeys returns what the zones of each key count as. Without kernel zones
// every zone counts as one.
func busyKeys(l *zonelog.DeviceLog) (busy []keyBusy, anyZone bool) {
	busy = make([]keyBusy, len(l.Keys))
	for k := range l.Keys {
		busy[k] = keyBusy{strings.HasSuffix(l.Keys[k].Name, "-KERNEL"), strings.HasSuffix(l.Keys[k].Name, "-FW")}
	}
	for z := range l.Zones.Len() {
		if busy[l.Key(z)].kernel {
			return busy, false
		}
	}
	for k := range busy {
		busy[k].kernel = true
	}
	return busy, true
}

// addCores measures the cores of device d in the map's session.
func (m *DeviceMap) addCores(l *zonelog.DeviceLog, t *Topology, d int, ext *extent, busy []keyBusy) {
	var kernel, firmware []ecs.Interval // of one core
	for c := range t.Cores {
		core := &t.Cores[c]
		if core.Device != d {
			continue
		}
		b := CoreBusy{Core: c}
		kernel, firmware = kernel[:0], firmware[:0]
		for _, lane := range core.Lanes {
			for z := int(l.Zones.LaneOff[lane]); z < int(l.Zones.LaneOff[lane+1]); z++ {
				if l.Runs[l.Run[l.Zones.Begin[z]]].Session != m.Session {
					continue
				}
				b.Zones++
				if !ext.has(l, z) {
					continue
				}
				iv := ecs.Interval{l.Start(z), l.Start(z) + l.Dur(z)}
				if busy[l.Key(z)].kernel {
					kernel = append(kernel, iv)
				}
				if busy[l.Key(z)].firmware {
					firmware = append(firmware, iv)
				}
			}
		}
		b.Kernel, b.FW = ecs.UnionLength(kernel), ecs.UnionLength(firmware)
		if len(m.Cores) == 0 {
			m.MinX, m.MaxX, m.MinY, m.MaxY = core.X, core.X, core.Y, core.Y
		}
		m.Cores = append(m.Cores, b)
		m.MinX, m.MaxX = min(m.MinX, core.X), max(m.MaxX, core.X)
		m.MinY, m.MaxY = min(m.MinY, core.Y), max(m.MaxY, core.Y)
	}
}

// sessionSpan returns the first and the last time of a device in a session; ok
// is false where it has no markers.
func sessionSpan(l *zonelog.DeviceLog, t *Topology, d int, s uint32) (start, end uint64, ok bool) {
	for _, lane := range t.ByDevice[d] {
		if lo, hi := sessionRange(l, lane, s); lo < hi {
			if !ok || l.Time[lo] < start {
				start = l.Time[lo]
			}
			end, ok = max(end, l.Time[hi-1]), true
		}
	}
	return start, end, ok
}

// sessionRange gives the marker rows of a session on a lane.
func sessionRange(l *zonelog.DeviceLog, lane int, s uint32) (lo, hi int) {
	lo, hi = int(l.LaneOff[lane]), int(l.LaneOff[lane+1])
	if len(l.Sessions) < 2 {
		return lo, hi
	}
	for lo < hi && l.Runs[l.Run[lo]].Session != s {
		lo++
	}
	end := lo
	for end < hi && l.Runs[l.Run[end]].Session == s {
		end++
	}
	return lo, end
}

// Share is the share of the span in which a core was busy, 0 to 1.
func (m *DeviceMap) Share(b *CoreBusy) float64 {
	if m.End <= m.Start {
		return 0
	}
	return float64(b.Kernel) / float64(m.End-m.Start)
}

// Mean is the mean share of the cores that appear in the log.
func (m *DeviceMap) Mean() float64 {
	if len(m.Cores) == 0 {
		return 0
	}
	s := 0.0
	for i := range m.Cores {
		s += m.Share(&m.Cores[i])
	}
	return s / float64(len(m.Cores))
}

// maxGrid bounds the picture: a log may name any core.
const maxGrid = 256

func (m *DeviceMap) tooWide() bool { return m.MaxX-m.MinX >= maxGrid || m.MaxY-m.MinY >= maxGrid }

// Text draws the map with percent busy; a dot is a core without markers.
func (m *DeviceMap) Text(t *Topology) string {
	if m.tooWide() {
		return fmt.Sprintf("core coordinates from %d,%d to %d,%d are too far apart to draw\n", m.MinX, m.MinY, m.MaxX, m.MaxY)
	}
	cell := map[[2]int32]string{}
	for i := range m.Cores {
		c := &t.Cores[m.Cores[i].Core]
		cell[[2]int32{c.X, c.Y}] = fmt.Sprintf("%.0f", 100*m.Share(&m.Cores[i]))
	}
	var b strings.Builder
	b.WriteString("  y\\x")
	for x := m.MinX; x <= m.MaxX; x++ {
		fmt.Fprintf(&b, " %4d", x)
	}
	b.WriteByte('\n')
	for y := m.MinY; y <= m.MaxY; y++ {
		fmt.Fprintf(&b, " %4d", y)
		for x := m.MinX; x <= m.MaxX; x++ {
			s, ok := cell[[2]int32{x, y}]
			if !ok {
				s = "."
			}
			fmt.Fprintf(&b, " %4s", s)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// SVG draws the map as a picture, without scripts or outside references.
func (m *DeviceMap) SVG(t *Topology) []byte {
	const cw, ch, left, top = 54, 38, 44, 56
	var b bytes.Buffer
	if m.tooWide() {
		m = &DeviceMap{Device: m.Device, Arch: m.Arch}
	}
	w, h := left+cw*int(m.MaxX-m.MinX+1)+12, top+ch*int(m.MaxY-m.MinY+1)+12
	svg.Open(&b, w, h, 12)
	fmt.Fprintf(&b, `<text x="8" y="20" font-size="14">device %d %s: busy share of each core, mean %.1f %%</text>`+"\n", m.Device, svg.Escape(m.Arch), 100*m.Mean())
	for x := m.MinX; x <= m.MaxX; x++ {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#555">%d</text>`, left+cw*int(x-m.MinX)+cw/2, top-8, x)
	}
	for y := m.MinY; y <= m.MaxY; y++ {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="#555">%d</text>`, left-8, top+ch*int(y-m.MinY)+ch/2+4, y)
		for x := m.MinX; x <= m.MaxX; x++ {
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="#f2f2f2"/>`, left+cw*int(x-m.MinX), top+ch*int(y-m.MinY), cw-2, ch-2)
		}
	}
	b.WriteByte('\n')
	for i := range m.Cores {
		c := &t.Cores[m.Cores[i].Core]
		s := m.Share(&m.Cores[i])
		// White to blue; the text turns white where the cell is dark.
		shade := int(s*200 + 0.5)
		ink := "#000"
		if s > 0.6 {
			ink = "#fff"
		}
		px, py := left+cw*int(c.X-m.MinX), top+ch*int(c.Y-m.MinY)
		fmt.Fprintf(&b, `<g><title>core %d,%d: kernels %d cycles, firmware %d cycles, %d zones</title><rect x="%d" y="%d" width="%d" height="%d" fill="rgb(%d,%d,%d)" stroke="#999"/><text x="%d" y="%d" text-anchor="middle" fill="%s">%.0f%%</text></g>`+"\n",
			c.X, c.Y, m.Cores[i].Kernel, m.Cores[i].FW, m.Cores[i].Zones, px, py, cw-2, ch-2, 230-shade, 240-shade*3/4, 255-shade/4, px+cw/2-1, py+ch/2+3, ink, 100*s)
	}
	svg.Close(&b)
	return b.Bytes()
}
