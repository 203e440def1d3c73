package devicelog

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"perfsim/components/zonelog"
)

// Rule says how markers are grouped into launches.
type Rule uint8

const (
	// ByRun is ours: markers of one launch identity of a device form a
	// launch, even where its cores do not overlap in time. A core that
	// starts again opens a further launch (replays without a counter).
	// Identities that number nothing (host id 0, a run id that is 0
	// throughout) are cut as by Merged.
	ByRun Rule = iota
	// Merged is the vendor's rule up to 2024: all markers of a device in
	// time order; a launch opens when no core is open and a firmware start
	// of BRISC or ERISC arrives, further starts join it, and it closes when
	// every core that started has ended. Markers in between belong to the
	// launch opened last.
	Merged
	// HostID is the vendor's rule of 2025 on: by run host ID, 0 skipped, a
	// launch ending with the firmware end of its last core.
	HostID
)

// Diagnostics of launches.
const (
	diagNoController = "controller-missing"   // cores without BRISC or ERISC: launches from the processor whose firmware starts first
	diagNoLaunch     = "no-launch"            // no firmware start of BRISC or ERISC: no launch can be recognised
	diagRestart      = "firmware-restart"     // a core starts its firmware again without an end
	diagOrphanFWEnd  = "firmware-orphan-end"  // a firmware end on a core that had not started
	diagOpenLaunch   = "launch-open"          // a launch without the firmware end of some core
	diagCoreSkew     = "firmware-start-skew"  // cores of a launch start more than 1000 cycles apart
	diagFarZone      = "far-zone"             // zones absurdly far from all others
	diagVendorFails  = "vendor-script-fails"  // the vendor's script raises an assertion on this log
	diagTriscNames   = "trisc-zones-unmapped" // TRISC_n-KERNEL names, which the vendor's analyses do not look for
)

// skewLimit is the spread of firmware starts, in cycles, above which the
// vendor's script asks to reboot the host.
const skewLimit = 1000

// place orders markers of a device: time, then the order in which the
// vendor's script sees cores and processors, then the place on the lane.
type place struct {
	time uint64
	rank uint32
	row  uint32
}

func (a place) compare(b place) int {
	if c := cmp.Compare(a.time, b.time); c != 0 {
		return c
	}
	if c := cmp.Compare(a.rank, b.rank); c != 0 {
		return c
	}
	return cmp.Compare(a.row, b.row)
}

// Launch is one launch of a program on a device.
type Launch struct {
	Device   int32
	Run      uint32 // row of DeviceLog.Runs of its first marker
	Start    uint64 // first firmware start
	End      uint64 // last firmware end of BRISC or ERISC, 0 while open
	Complete bool   // every core that started has ended
	Cores    int    // cores that started

	open, done place
}

// Topology is the order of lanes, cores and devices of a log.
type Topology struct {
	Devices []int32
	Cores   []Core
	// Of lane: core, device, and place in the vendor's order.
	CoreOf, DeviceOf []int
	Rank             []uint32
	// ByDevice lists the lanes of each device in the vendor's order.
	ByDevice [][]int
}

// Core is one core of a device.
type Core struct {
	Device     int // index into Topology.Devices
	X, Y       int32
	Lanes      []int // by first appearance
	Controller int   // lane whose firmware zone is the launch: BRISC or ERISC, else the one whose firmware starts first, -1 without
	Fallback   bool  // the controller is neither BRISC nor ERISC: the vendor sees no launch
}

// Name gives "x,y".
func (c *Core) Name() string { return fmt.Sprintf("%d,%d", c.X, c.Y) }

// newTopology orders the lanes of a log by first appearance.
func newTopology(l *zonelog.DeviceLog) *Topology {
	t := &Topology{CoreOf: make([]int, len(l.Lanes)), DeviceOf: make([]int, len(l.Lanes)), Rank: make([]uint32, len(l.Lanes))}
	type coreKey struct{ dev, x, y int32 }
	devs, cores := map[int32]int{}, map[coreKey]int{}
	for i := range l.Lanes {
		ln := &l.Lanes[i]
		d, ok := devs[ln.Device]
		if !ok {
			d = len(t.Devices)
			devs[ln.Device] = d
			t.Devices = append(t.Devices, ln.Device)
			t.ByDevice = append(t.ByDevice, nil)
		}
		k := coreKey{ln.Device, ln.X, ln.Y}
		c, ok := cores[k]
		if !ok {
			c = len(t.Cores)
			cores[k] = c
			t.Cores = append(t.Cores, Core{Device: d, X: ln.X, Y: ln.Y, Controller: -1})
		}
		t.CoreOf[i], t.DeviceOf[i] = c, d
		core := &t.Cores[c]
		core.Lanes = append(core.Lanes, i)
		if (ln.Risc == "BRISC" || ln.Risc == "ERISC") && core.Controller < 0 {
			core.Controller = i
		}
	}
	fw := make([]bool, len(l.Defs))
	for i := range l.Defs {
		fw[i] = l.Defs[i].Type == zonelog.MarkerStart && strings.HasSuffix(l.Keys[l.Defs[i].Key].Name, "-FW")
	}
	for c := range t.Cores {
		core := &t.Cores[c]
		if core.Controller >= 0 {
			continue
		}
		first := ^uint64(0)
		for _, lane := range core.Lanes {
			for m := l.LaneOff[lane]; m < l.LaneOff[lane+1]; m++ {
				if !fw[l.Def[m]] {
					continue
				}
				if l.Time[m] < first {
					first, core.Controller, core.Fallback = l.Time[m], lane, true
				}
				break
			}
		}
	}
	rank := uint32(0)
	for c := range t.Cores {
		for _, lane := range t.Cores[c].Lanes {
			t.Rank[lane] = rank
			rank++
			d := t.Cores[c].Device
			t.ByDevice[d] = append(t.ByDevice[d], lane)
		}
	}
	return t
}

// Launches holds the launches of one device in order of their opening, and
// finds the one to which a marker belongs.
type Launches struct {
	Rule   Rule
	Device int // index into Topology.Devices
	List   []Launch

	groupOf map[uint32]int // run -> group
	groups  [][]int        // launches of each group, in order
	base    []int          // HostID: number of launches of the groups before
	total   int
	// numbered groups are launches by their identity, not by time alone.
	numbered []bool

	// dispatch has what the device's dispatch cores did, dispatchLog the log
	// in which their markers are named after commands; nil where not asked for.
	dispatch    []dispatchOp
	dispatchLog *zonelog.DeviceLog
}

// groupKey folds runs into groups under a rule; ok is false for markers that
// belong to no launch.
func groupKey(l *zonelog.DeviceLog, run uint32, rule Rule) (zonelog.LogRun, bool) {
	r := l.Runs[run]
	switch rule {
	case Merged:
		return zonelog.LogRun{Session: r.Session}, true
	case HostID:
		return zonelog.LogRun{HostID: r.HostID, Session: r.Session}, r.HostID > 0
	}
	return r, true
}

// findLaunches finds the launches of device d of the topology.
func findLaunches(l *zonelog.DeviceLog, t *Topology, d int, rule Rule, diags *zonelog.Diagnostics) *Launches {
	f := &launchFinder{Launches: &Launches{Rule: rule, Device: d, groupOf: map[uint32]int{}}, l: l, t: t, diags: diags, byKey: map[zonelog.LogRun]int{}}
	for _, lane := range t.ByDevice[d] {
		f.gather(lane)
	}
	for r := range l.Runs {
		f.counted = f.counted || l.Runs[r].RunID > 0
	}
	n := len(f.found)
	f.groups, f.base, f.numbered = make([][]int, n), make([]int, n), make([]bool, n)
	// Groups in order of their first marker.
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return f.found[a].first.compare(f.found[b].first) })
	for _, g := range order {
		f.base[g] = len(f.List)
		f.launches(g)
	}
	f.total = len(f.List)
	if rule == ByRun {
		f.sortByStart()
	}
	return f.Launches
}

// launchFinder gathers the firmware zones of each group and makes launches of
// them.
type launchFinder struct {
	*Launches
	l       *zonelog.DeviceLog
	t       *Topology
	diags   *zonelog.Diagnostics
	byKey   map[zonelog.LogRun]int
	found   []launchGroup
	counted bool // the run id counts launches
}

// launchGroup has the events of a group in the log.
type launchGroup struct {
	first  place // its first marker
	events []firmwareEvent
	// cores that take part. Under the HostID rule a launch also waits for
	// those without a controller.
	cores []int
}

// firmwareEvent is a start or an end of the firmware zone of a core's
// controller.
type firmwareEvent struct {
	place
	core  int
	start bool
	run   uint32
}

// group returns the group of a run, -1 where it is in none.
func (f *launchFinder) group(run uint32) int {
	if g, ok := f.groupOf[run]; ok {
		return g
	}
	k, ok := groupKey(f.l, run, f.Rule)
	if !ok {
		f.groupOf[run] = -1
		return -1
	}
	g, ok := f.byKey[k]
	if !ok {
		g = len(f.found)
		f.byKey[k] = g
		f.found = append(f.found, launchGroup{first: place{time: ^uint64(0)}})
	}
	f.groupOf[run] = g
	return g
}

// gather adds the markers of a lane to their groups.
func (f *launchFinder) gather(lane int) {
	l := f.l
	risc := l.Lanes[lane].Risc
	at := f.t.CoreOf[lane]
	core := &f.t.Cores[at]
	controller := risc == "BRISC" || risc == "ERISC" || f.Rule == ByRun && core.Fallback && core.Controller == lane
	firmware := func(row int) bool {
		def := &l.Defs[l.Def[row]]
		name := l.Keys[def.Key].Name
		return def.Type <= zonelog.MarkerEnd && (name == risc+"-FW" || core.Fallback && strings.HasSuffix(name, "-FW"))
	}
	lastRun, g := ^uint32(0), -1
	for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
		run := l.Run[row]
		if run != lastRun {
			lastRun, g = run, f.group(run)
			if g >= 0 && f.Rule == HostID && !slices.Contains(f.found[g].cores, at) {
				f.found[g].cores = append(f.found[g].cores, at)
			}
		}
		if g < 0 {
			continue
		}
		x := &f.found[g]
		p := place{l.Time[row], f.t.Rank[lane], uint32(row)}
		if p.compare(x.first) < 0 {
			x.first = p
		}
		if controller && firmware(row) {
			x.events = append(x.events, firmwareEvent{p, at, l.Defs[l.Def[row]].Type == zonelog.MarkerStart, run})
		}
	}
}

// openLaunch is the launch of a group that the events are in.
type openLaunch struct {
	at    int          // in List, -1 where none is open
	ended map[int]bool // by core that started: whether it has ended
	open  int          // cores that have not ended
}

// launches makes launches of the events of group g.
func (f *launchFinder) launches(g int) {
	x := &f.found[g]
	if f.Rule == ByRun && len(x.events) > 0 {
		r := f.l.Runs[x.events[0].run]
		f.numbered[g] = r.HostID > 0 || r.HostID < 0 && f.counted
	}
	slices.SortFunc(x.events, func(a, b firmwareEvent) int { return a.compare(b.place) })
	cur := openLaunch{at: -1, ended: map[int]bool{}}
	for _, e := range x.events {
		ended, seen := cur.ended[e.core]
		switch {
		case e.start:
			f.start(g, &cur, e)
		case !seen || ended:
			f.tell(diagOrphanFWEnd, e, "it expects a firmware start before each firmware end of a core")
		default:
			f.end(g, &cur, e)
		}
	}
	if cur.at >= 0 && !f.List[cur.at].Complete {
		la := &f.List[cur.at]
		f.diags.Add(diagOpenLaunch, 1, f.l.Line(int(la.open.row)), fmt.Sprintf("device %d launch %s", f.t.Devices[f.Device], runText(f.l.Runs[la.Run])))
	}
}

// start takes the start of a core's firmware.
func (f *launchFinder) start(g int, cur *openLaunch, e firmwareEvent) {
	ended, seen := cur.ended[e.core]
	if seen && !(f.numbered[g] && ended) {
		f.tell(diagRestart, e, "it expects a firmware end before the next firmware start of a core")
	}
	if seen && !ended {
		cur.open--
	}
	if cur.at < 0 || seen && f.Rule != HostID {
		// A core that starts again has begun the next launch.
		if cur.at >= 0 {
			clear(cur.ended)
			cur.open = 0
		}
		cur.at = len(f.List)
		f.List = append(f.List, Launch{Device: f.t.Devices[f.Device], Run: e.run, Start: e.time, open: e.place})
		f.groups[g] = append(f.groups[g], cur.at)
	}
	cur.ended[e.core] = false
	f.List[cur.at].Cores++
	f.List[cur.at].Complete = false
	cur.open++
}

// end takes the end of a core's firmware.
func (f *launchFinder) end(g int, cur *openLaunch, e firmwareEvent) {
	cur.ended[e.core] = true
	cur.open--
	la := &f.List[cur.at]
	la.End = max(la.End, e.time)
	if cur.open == 0 && (f.Rule != HostID || allIn(cur.ended, f.found[g].cores)) {
		la.Complete = true
		la.done = e.place
		if !f.numbered[g] {
			clear(cur.ended)
			cur.at = -1
		}
	}
}

// tell records an event that does not fit, and that the vendor's script fails
// there where its rule is used.
func (f *launchFinder) tell(code string, e firmwareEvent, vendor string) {
	f.diags.Add(code, 1, f.l.Line(int(e.row)), fmt.Sprintf("device %d core %s", f.t.Devices[f.Device], f.t.Cores[e.core].Name()))
	if f.Rule != ByRun {
		f.diags.Add(diagVendorFails, 1, f.l.Line(int(e.row)), vendor)
	}
}

func allIn(state map[int]bool, cores []int) bool {
	for _, c := range cores {
		if ended, ok := state[c]; !ok || !ended {
			return false
		}
	}
	return true
}

// sortByStart orders launches by their first firmware start.
func (ls *Launches) sortByStart() {
	idx := make([]int, len(ls.List))
	for i := range idx {
		idx[i] = i
	}
	slices.SortStableFunc(idx, func(a, b int) int { return ls.List[a].open.compare(ls.List[b].open) })
	list := make([]Launch, len(idx))
	to := make([]int, len(idx))
	for i, from := range idx {
		list[i] = ls.List[from]
		to[from] = i
	}
	ls.List = list
	for g := range ls.groups {
		for i, v := range ls.groups[g] {
			ls.groups[g][i] = to[v]
		}
	}
}

// cursor walks a lane in time order and gives the launch of each marker.
type cursor struct {
	ls   *Launches
	run  uint32
	g    int
	pos  int // launches of the group passed
	have bool
}

func (ls *Launches) cursor() cursor { return cursor{ls: ls} }

// launch returns the launch of a marker, -1 for none. Places of one lane
// must come in order.
func (c *cursor) launch(run uint32, p place) int {
	ls := c.ls
	if !c.have || run != c.run {
		g, ok := ls.groupOf[run]
		if !ok {
			g = -1
		}
		c.run, c.g, c.have = run, g, true
		c.pos = 0
		if g >= 0 {
			c.pos = sort.Search(len(ls.groups[g]), func(i int) bool { return !ls.behind(ls.groups[g][i], p) })
		}
	}
	if c.g < 0 {
		return -1
	}
	list := ls.groups[c.g]
	for c.pos < len(list) && ls.behind(list[c.pos], p) {
		c.pos++
	}
	if ls.Rule == HostID {
		// Markers belong to the launch whose end comes next; what follows
		// the last end goes to the first launch of the next group.
		if n := ls.base[c.g] + c.pos; n < ls.total {
			return n
		}
		return -1
	}
	if c.pos == 0 {
		if len(list) > 0 && ls.numbered[c.g] {
			return list[0] // the identity decides, not the first start
		}
		return -1
	}
	return list[c.pos-1]
}

// behind reports whether place p lies behind the border of launch i: its
// opening, or its end under the HostID rule.
func (ls *Launches) behind(i int, p place) bool {
	la := &ls.List[i]
	if ls.Rule == HostID {
		return la.Complete && la.done.compare(p) < 0
	}
	return la.open.compare(p) <= 0
}

// runText names a launch identity for people.
func runText(r zonelog.LogRun) string {
	var parts []string
	if r.HostID >= 0 {
		parts = append(parts, fmt.Sprintf("host id %d", r.HostID))
	}
	if r.RunID >= 0 {
		parts = append(parts, fmt.Sprintf("run %d", r.RunID))
	}
	if r.TraceID >= 0 {
		parts = append(parts, fmt.Sprintf("trace %d", r.TraceID))
	}
	if r.TraceCounter >= 0 {
		parts = append(parts, fmt.Sprintf("replay %d", r.TraceCounter))
	}
	if r.Session > 0 {
		parts = append(parts, fmt.Sprintf("session %d", r.Session))
	}
	if len(parts) == 0 {
		return "unnumbered"
	}
	return strings.Join(parts, " ")
}
