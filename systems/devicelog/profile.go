package devicelog

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"perfsim/components/zonelog"
)

// Options says what a profile holds.
type Options struct {
	By      By
	Setup   string // name of a setup; empty means that of the log's version
	Slowest int
	Zone    string // only this zone among the slowest
	Gaps    int    // how many of the largest gaps
}

// Profile is everything perfsim says about a log, ready for JSON. Numbers of
// cycles are exact; nanoseconds are null without a clock.
type Profile struct {
	File     string         `json:"file"`               // file that was read
	Sessions []SessionInfo  `json:"sessions"`           // headers of the log and what they say
	Rows     int            `json:"rows"`               // rows of the log
	Zones    int            `json:"zones"`              // zones with a start and an end
	Lanes    int            `json:"processors"`         // processors with rows
	Cores    int            `json:"cores"`              // cores with rows
	Bytes    int            `json:"bytes_held"`         // memory that the rows take
	Diags    []DiagInfo     `json:"diagnostics"`        // what is wrong with the log
	Devices  []DeviceInfo   `json:"devices"`            // figures by device and session
	Stats    []ZoneInfo     `json:"zone_statistics"`    // figures by zone
	Setup    string         `json:"analyses_of"`        // where the declared analyses are from
	Analyses []AnalysisInfo `json:"analyses"`           // declared analyses and what they found
	Slow     []SlowInfo     `json:"slowest"`            // launches that took longest
	Counters []CounterInfo  `json:"counters,omitempty"` // hardware counters

	Log      *zonelog.DeviceLog `json:"-"`
	Topo     *Topology          `json:"-"`
	Launches []*Launches        `json:"-"`
	Maps     []DeviceMap        `json:"-"`
}

// SessionInfo is one session.
type SessionInfo struct {
	Version  string   `json:"version"`                     // version of the log's format
	Arch     string   `json:"arch"`                        // architecture that the header names
	FreqMHz  *float64 `json:"clock_mhz"`                   // clock that the header names, MHz
	MaxCores int      `json:"max_compute_cores,omitempty"` // cores that the header names
	Line     uint64   `json:"header_line"`                 // line of the header in the file
}

// DiagInfo is one diagnostic.
type DiagInfo struct {
	Code   string `json:"code"`
	Count  uint64 `json:"count"` // how often
	Line   uint64 `json:"line,omitempty"`
	Detail string `json:"detail"` // the first place
}

// DeviceInfo is one device in one session.
type DeviceInfo struct {
	Device    int32      `json:"device"`
	Session   uint32     `json:"session"` // session of the log, from 0
	Launches  int        `json:"launches"`
	Open      int        `json:"launches_without_end"` // launches whose end the log lacks
	Start     uint64     `json:"start_cycle"`          // first cycle
	End       uint64     `json:"end_cycle"`            // last cycle
	Span      Time       `json:"span"`                 // from the first cycle to the last
	Busy      Time       `json:"busy"`                 // union of launches
	Sum       Time       `json:"launch_total"`         // launches added up
	Idle      Time       `json:"idle"`                 // span without a launch
	Overlaps  int        `json:"overlaps"`             // launches that start before another has ended
	MaxSkew   Time       `json:"max_core_skew"`        // spread of firmware starts in one launch
	Occupancy float64    `json:"mean_core_busy_share"` // mean over the cores of busy_share
	Gaps      []GapInfo  `json:"largest_gaps"`         // longest times without a launch
	CoreMap   []CoreInfo `json:"cores"`                // figures by core
}

// Time is a number of cycles and its nanoseconds.
type Time struct {
	Cycles uint64   `json:"cycles"`
	NS     *float64 `json:"ns"` // the cycles at the clock of the session, ns
}

// GapInfo is idle time between launches.
type GapInfo struct {
	Time
	Start  uint64 `json:"start_cycle"`
	After  string `json:"after"` // launch before the gap
	Before string `json:"before"`
}

// CoreInfo is one core of the map.
type CoreInfo struct {
	X      int32   `json:"x"`
	Y      int32   `json:"y"`               // row of the core
	Kernel uint64  `json:"kernel_cycles"`   // cycles in kernel zones
	FW     uint64  `json:"firmware_cycles"` // cycles in firmware zones
	Zones  uint64  `json:"zones"`
	Share  float64 `json:"busy_share"` // part of the span in which the core was busy
}

// AnalysisInfo is one analysis of the vendor's definitions on one device:
// our result, and the vendor's where its script computes another.
type AnalysisInfo struct {
	Device int32      `json:"device"`
	Name   string     `json:"name"`             // name of the declared analysis
	Across string     `json:"across"`           // where its events are: core, device, ops or dispatch_ops
	Type   string     `json:"type"`             // kind of analysis, in the vendor's words
	Stats  *StatsInfo `json:"stats"`            // figures of what it found
	Vendor *StatsInfo `json:"vendor,omitempty"` // what the vendor's post-processing finds, where that differs
}

// StatsInfo are the vendor's statistics.
type StatsInfo struct {
	Count   uint64  `json:"count"`   // pairs of events found
	Average float64 `json:"average"` // mean distance, cycles
	Max     uint64  `json:"max"`
	Median  float64 `json:"median"`
	Min     uint64  `json:"min"`
	Sum     uint64  `json:"sum"`
	Range   uint64  `json:"range"` // largest distance less the smallest, cycles
}

// SlowInfo is one of the slowest zones.
type SlowInfo struct {
	Time
	Zone   string `json:"zone"`
	Device int32  `json:"device"`
	X      int32  `json:"core_x"`
	Y      int32  `json:"core_y"`
	Risc   string `json:"processor"`
	Start  uint64 `json:"start_cycle"`
	Run    string `json:"run"`
	Line   uint64 `json:"line"`
}

func ptr(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func timeOf(cycles uint64, mhz float64) Time {
	return Time{cycles, ptr(nanoseconds(float64(cycles), mhz))}
}

// New makes the profile of a log.
func New(ctx context.Context, file string, l *zonelog.DeviceLog, o Options) (*Profile, error) {
	// Lists that nothing is in are written as [], which scripts can go through.
	p := &Profile{File: file, Rows: l.Rows(), Zones: l.Zones.Len(), Lanes: len(l.Lanes), Bytes: l.Bytes(), Log: l,
		Sessions: []SessionInfo{}, Diags: []DiagInfo{}, Devices: []DeviceInfo{}, Stats: []ZoneInfo{}, Analyses: []AnalysisInfo{}, Slow: []SlowInfo{}}
	for _, s := range l.Sessions {
		f := &s.FreqMHz
		if *f == 0 {
			f = nil
		}
		p.Sessions = append(p.Sessions, SessionInfo{s.Version, s.Arch, f, s.MaxCores, s.Line})
	}
	p.Topo = newTopology(l)
	p.Cores = len(p.Topo.Cores)
	diags := l.Diags
	for c := range p.Topo.Cores {
		// Simulated engines have no controller to be missed.
		if core := &p.Topo.Cores[c]; core.Fallback && !ownLog(l) {
			diags.Add(diagNoController, 1, l.Line(int(l.LaneOff[core.Controller])), fmt.Sprintf("device %d core %s has no marker of BRISC or ERISC; its launches are taken from %s",
				p.Topo.Devices[core.Device], core.Name(), l.Lanes[core.Controller].Risc))
		}
	}
	for d := range p.Topo.Devices {
		ls := findLaunches(l, p.Topo, d, ByRun, &diags)
		p.Launches = append(p.Launches, ls)
		if len(ls.List) == 0 {
			diags.Add(diagNoLaunch, 1, 0, fmt.Sprintf("device %d has no firmware zone", p.Topo.Devices[d]))
			if k := markerSkew(l, p.Topo, d); k.cycles > skewLimit {
				diags.Add(diagCoreSkew, 1, l.Line(k.row), fmt.Sprintf("device %d: first markers of a launch (%s) on its %d cores lie %d cycles apart, and there are no firmware zones to distinguish late work from clocks that drift; the vendor advises a reboot of the host when counters drift",
					p.Topo.Devices[d], runText(l.Runs[k.run]), k.cores, k.cycles))
			}
		}
	}
	p.devices(l, o, &diags)
	rows, err := Zones(ctx, l, o.By)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		p.Stats = append(p.Stats, zoneInfo(l, &rows[i]))
	}
	if err := p.analyses(l, o, &diags); err != nil {
		return nil, err
	}
	for _, s := range Slowest(l, o.Slowest, o.Zone) {
		p.Slow = append(p.Slow, SlowInfo{Time{s.Cycles, ptr(s.NS)}, s.Name, s.Lane.Device, s.Lane.X, s.Lane.Y, s.Lane.Risc, s.Start, runText(s.Run), s.Line})
	}
	p.Counters = Counters(l, p.Topo)
	for _, d := range diags.All() {
		p.Diags = append(p.Diags, DiagInfo(d))
	}
	return p, nil
}

func (p *Profile) devices(l *zonelog.DeviceLog, o Options, diags *zonelog.Diagnostics) {
	p.Maps = Occupancy(l, p.Topo)
	for _, b := range Busy(l, p.Topo, p.Launches) {
		d := DeviceInfo{Device: b.Device, Session: b.Session, Launches: b.Launches, Open: b.Open, Start: b.Start, End: b.End,
			Span: timeOf(b.Span, b.FreqMHz), Busy: timeOf(b.Union, b.FreqMHz), Sum: timeOf(b.Sum, b.FreqMHz), Idle: timeOf(b.Span-b.Union, b.FreqMHz),
			Overlaps: b.Overlaps, MaxSkew: timeOf(b.MaxSkew, b.FreqMHz), Gaps: []GapInfo{}, CoreMap: []CoreInfo{}}
		var ls *Launches
		for i, dev := range p.Topo.Devices {
			if dev == b.Device {
				ls = p.Launches[i]
			}
		}
		if b.MaxSkew > skewLimit {
			diags.Add(diagCoreSkew, 1, l.Line(int(ls.List[b.SkewAt].open.row)), fmt.Sprintf("device %d: firmware starts of a launch (%s) lie %d cycles apart; the vendor advises a reboot of the host when counters of cores drift",
				b.Device, runText(l.Runs[ls.List[b.SkewAt].Run]), b.MaxSkew))
		}
		gaps := slices.Clone(b.Gaps)
		slices.SortStableFunc(gaps, func(x, y Gap) int { return cmp.Compare(y.Cycles, x.Cycles) })
		for i, g := range gaps {
			if i == o.Gaps {
				break
			}
			d.Gaps = append(d.Gaps, GapInfo{timeOf(g.Cycles, b.FreqMHz), g.Start, runText(l.Runs[ls.List[g.Before].Run]), runText(l.Runs[ls.List[g.After].Run])})
		}
		p.Devices = append(p.Devices, d)
	}
	for i := range p.Maps {
		m := &p.Maps[i]
		if m.Far > 0 {
			diags.Add(diagFarZone, uint64(m.Far), l.Line(m.FirstFar), fmt.Sprintf("device %d: zones that lie more than %d times the extent of all others away from them: left out of the busy shares",
				m.Device, farTimes))
		}
		for k := range p.Devices {
			d := &p.Devices[k]
			if d.Device != m.Device || d.Session != m.Session {
				continue
			}
			d.Occupancy = m.Mean()
			for c := range m.Cores {
				b := &m.Cores[c]
				core := &p.Topo.Cores[b.Core]
				d.CoreMap = append(d.CoreMap, CoreInfo{core.X, core.Y, b.Kernel, b.FW, b.Zones, m.Share(b)})
			}
		}
	}
}

// ownLog reports whether perfsim itself recorded the log: run --device-profile
// names the chip so.
func ownLog(l *zonelog.DeviceLog) bool {
	return len(l.Sessions) > 0 && strings.HasPrefix(l.Sessions[0].Arch, "perfsim")
}

func (p *Profile) analyses(l *zonelog.DeviceLog, o Options, diags *zonelog.Diagnostics) error {
	if len(l.Sessions) == 0 {
		return nil
	}
	setup := SetupFor(l.Sessions[0].Version)
	if o.Setup != "" && o.Setup != "auto" {
		s, ok := SetupByName(o.Setup)
		if !ok {
			return fmt.Errorf("setup %q is unknown; there are %s", o.Setup, strings.Join(SetupNames(), ", "))
		}
		setup = s
	}
	p.Setup = setup.Name
	if unmapped(l) {
		diags.Add(diagTriscNames, 1, 0, "kernel zones are named TRISC_n-KERNEL; the vendor's analyses look for TRISC-KERNEL and leave them out, and so do the analyses here (zone statistics have them)")
	}
	v := NewVendor(l, setup)
	for d, dev := range p.Topo.Devices {
		p.Launches[d].setDispatch(l, p.Topo, false, diags)
		ours := analyze(l, p.Topo, p.Launches[d], &setup, false)
		theirs := v.Devices[d].Results
		for i := range ours {
			a := AnalysisInfo{Device: dev, Name: ours[i].Analysis.Name, Across: ours[i].Analysis.Across, Type: ours[i].Analysis.Kind.String()}
			a.Stats, a.Vendor = statsInfo(&ours[i]), statsInfo(&theirs[i])
			if a.Stats == nil && a.Vendor == nil {
				continue
			}
			if a.Stats != nil && a.Vendor != nil && *a.Stats == *a.Vendor {
				a.Vendor = nil
			}
			p.Analyses = append(p.Analyses, a)
		}
	}
	if d, ok := v.Diags.Find(diagVendorFails); ok {
		diags.Add(d.Code, d.Count, d.Line, d.Detail)
	}
	return nil
}

// unmapped reports whether compute kernels carry the names of the 2024 logs.
func unmapped(l *zonelog.DeviceLog) bool {
	for k := range l.Keys {
		if n := l.Keys[k].Name; strings.HasPrefix(n, "TRISC_") && strings.HasSuffix(n, "-KERNEL") {
			return true
		}
	}
	return false
}

func statsInfo(r *Result) *StatsInfo {
	if len(r.Series) == 0 {
		return nil
	}
	s := &r.Stats
	return &StatsInfo{s.Count, s.Average, s.Max, s.Median, s.Min, s.Sum, s.Range}
}

// SetupNames lists the setups.
func SetupNames() []string {
	var out []string
	for _, s := range setups() {
		out = append(out, s.Name)
	}
	return out
}

// ParseBy reads a list of dimensions: zone, risc, core, device, run.
func ParseBy(names []string) (By, error) {
	var by By
	for _, n := range names {
		switch strings.ToLower(strings.TrimSpace(n)) {
		case "zone":
			by |= ByZone
		case "risc", "processor":
			by |= ByRisc
		case "core":
			by |= ByCore
		case "device":
			by |= ByDevice
		case "run", "launch":
			by |= ByLaunchID
		default:
			return 0, fmt.Errorf("%q is not one of zone, risc, core, device, run", n)
		}
	}
	return by, nil
}
