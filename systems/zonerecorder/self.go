package zonerecorder

import (
	"fmt"
	"io"
	"sync"
	"time"

	"perfsim/components"
	"perfsim/io/tenstorrent/profilelog"
)

// Self profiles the program that holds it, with the zones, markers and
// buffers of the device: one lane a goroutine, nanoseconds for cycles (a
// clock of 1000 MHz). A full buffer is pushed and goes on, so that nothing
// is lost.
type Self struct {
	t0    time.Time
	mu    sync.Mutex
	texts []string
	lanes []*SelfLane
}

// SelfLane records the zones of one goroutine.
type SelfLane struct {
	s    *Self
	name string
	core *Core
	risc *Risc
}

// NewSelf starts a profile of the running program.
func NewSelf() *Self { return &Self{t0: time.Now(), texts: []string{QuickPushText}} }

// Zone registers a zone once and returns its id; file and line are where it
// is in the source.
func (s *Self) Zone(name, file string, line int) uint16 {
	text := fmt.Sprintf("%s,%s,%d,KERNEL_PROFILER", name, file, line)
	s.mu.Lock()
	s.texts = append(s.texts, text)
	s.mu.Unlock()
	return components.ZoneHash16(text)
}

// Lane adds a lane. Its name is what the log calls the processor.
func (s *Self) Lane(name string) *SelfLane {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := uint32(len(s.lanes))
	l := &SelfLane{s: s, name: name, core: NewCore(Config{Layout: profilelog.LayoutClassic, Unlimited: true, Ethernet: true}, n%1000, n/1000, n&0xFF)}
	l.risc = l.core.Riscs[0]
	l.core.SetHostID(1)
	l.risc.BeginFW(s.mainID(), l.now())
	s.lanes = append(s.lanes, l)
	return l
}

const mainText = "PERFSIM-FW,perfsim,0,KERNEL_PROFILER"

func (s *Self) mainID() uint16 { return components.ZoneHash16(mainText) }

func (l *SelfLane) now() uint64 { return uint64(time.Since(l.s.t0)) }

// Open opens a zone; close it on the same goroutine.
func (l *SelfLane) Open(zone uint16) Scope { return l.risc.OpenDispatch(zone, l.now()) }

// Close closes a zone.
func (l *SelfLane) Close(s *Scope) { s.Close(l.now()) }

// WriteLog ends all lanes and writes the profile as a device log of V11.
func (s *Self) WriteLog(w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	src, err := profilelog.NewSources(append([]string{mainText}, s.texts...)...)
	if err != nil {
		return err
	}
	out, err := profilelog.NewWriter(w, "V11", "perfsim", 1000, len(s.lanes))
	if err != nil {
		return err
	}
	for _, l := range s.lanes {
		l.risc.EndFW(s.mainID(), l.now())
		runs, bad := profilelog.DecodeRaw(l.risc.DRAM(), profilelog.LayoutClassic)
		if len(bad) > 0 {
			return fmt.Errorf("lane %s: word %d: %s", l.name, bad[0].Word, bad[0].Reason)
		}
		// Pushes in the middle repeat the guaranteed slots; only the last
		// copy has the end.
		for i := 0; i+1 < len(runs); i++ {
			runs[i].Markers = customOnly(runs[i].Markers)
		}
		lane := func(*profilelog.RawRun) components.ZoneLane {
			return components.ZoneLane{X: int32(l.core.Control[NocX]), Y: int32(l.core.Control[NocY]), Risc: l.name}
		}
		if err := writeSorted(runs, src, lane, out); err != nil {
			return err
		}
	}
	return out.Flush()
}

func customOnly(m []profilelog.RawMarker) []profilelog.RawMarker {
	for len(m) > 0 && m[0].Slot != profilelog.SlotCustom {
		m = m[1:]
	}
	return m
}
