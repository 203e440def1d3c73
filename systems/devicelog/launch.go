package devicelog

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"perfsim/components"
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
	diagNoController = "controller-missing"   // cores without BRISC or ERISC: launches from their first processor
	diagNoLaunch     = "no-launch"            // no firmware start of BRISC or ERISC: no launch can be told
	diagRestart      = "firmware-restart"     // a core starts its firmware again without an end
	diagOrphanFWEnd  = "firmware-orphan-end"  // a firmware end on a core that had not started
	diagOpenLaunch   = "launch-open"          // a launch without the firmware end of some core
	diagCoreSkew     = "firmware-start-skew"  // cores of a launch start more than 1000 cycles apart
	diagVendorFails  = "vendor-script-fails"  // the vendor's script raises an assertion on this log
	diagTriscNames   = "trisc-zones-unmapped" // TRISC_n-KERNEL names, which the vendor's analyses do not look for
)

// skewLimit is the spread of firmware starts, in cycles, above which the
// vendor's script tells people to reboot the host.
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
	group      int
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
	Controller int   // lane whose firmware zone is the launch: BRISC or ERISC, else the first lane with one, -1 without
	Fallback   bool  // the controller is neither BRISC nor ERISC: the vendor sees no launch
}

// Name gives "x,y".
func (c *Core) Name() string { return fmt.Sprintf("%d,%d", c.X, c.Y) }

// newTopology orders the lanes of a log by first appearance.
func newTopology(l *components.DeviceLog) *Topology {
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
		fw[i] = l.Defs[i].Type == components.MarkerStart && strings.HasSuffix(l.Keys[l.Defs[i].Key].Name, "-FW")
	}
	for c := range t.Cores {
		core := &t.Cores[c]
		for _, lane := range core.Lanes {
			if core.Controller >= 0 {
				break
			}
			for m := l.LaneOff[lane]; m < l.LaneOff[lane+1]; m++ {
				if fw[l.Def[m]] {
					core.Controller, core.Fallback = lane, true
					break
				}
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
// tells to which one a marker belongs.
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
	dispatchLog *components.DeviceLog
}

// groupKey folds runs into groups under a rule; ok is false for markers that
// belong to no launch.
func groupKey(l *components.DeviceLog, run uint32, rule Rule) (components.LogRun, bool) {
	r := l.Runs[run]
	switch rule {
	case Merged:
		return components.LogRun{Session: r.Session}, true
	case HostID:
		return components.LogRun{HostID: r.HostID, Session: r.Session}, r.HostID > 0
	}
	return r, true
}

// findLaunches finds the launches of device d of the topology.
func findLaunches(l *components.DeviceLog, t *Topology, d int, rule Rule, diags *components.Diagnostics) *Launches {
	ls := &Launches{Rule: rule, Device: d, groupOf: map[uint32]int{}}
	byKey := map[components.LogRun]int{}
	type event struct {
		place
		core  int
		start bool
		run   uint32
	}
	var events [][]event // by group
	first := []place{}
	addGroup := func(run uint32) int {
		if g, ok := ls.groupOf[run]; ok {
			return g
		}
		k, ok := groupKey(l, run, rule)
		if !ok {
			ls.groupOf[run] = -1
			return -1
		}
		g, ok := byKey[k]
		if !ok {
			g = len(events)
			byKey[k] = g
			events = append(events, nil)
			first = append(first, place{time: ^uint64(0)})
		}
		ls.groupOf[run] = g
		return g
	}
	// Under the HostID rule a launch also waits for cores without a
	// controller, so every core of a group counts.
	type groupCore struct{ group, core int }
	waiting := map[groupCore]bool{}
	for _, lane := range t.ByDevice[d] {
		risc := l.Lanes[lane].Risc
		core := &t.Cores[t.CoreOf[lane]]
		controller := risc == "BRISC" || risc == "ERISC" || rule == ByRun && core.Fallback && core.Controller == lane
		fw := risc + "-FW"
		lastRun, g := ^uint32(0), -1
		for m := int(l.LaneOff[lane]); m < int(l.LaneOff[lane+1]); m++ {
			run := l.Run[m]
			if run != lastRun {
				lastRun, g = run, addGroup(run)
				if g >= 0 && rule == HostID {
					waiting[groupCore{g, t.CoreOf[lane]}] = true
				}
			}
			if g < 0 {
				continue
			}
			p := place{l.Time[m], t.Rank[lane], uint32(m)}
			if p.compare(first[g]) < 0 {
				first[g] = p
			}
			if !controller {
				continue
			}
			def := &l.Defs[l.Def[m]]
			if def.Type > components.MarkerEnd {
				continue
			}
			if n := l.Keys[def.Key].Name; n != fw && !(core.Fallback && strings.HasSuffix(n, "-FW")) {
				continue
			}
			events[g] = append(events[g], event{p, t.CoreOf[lane], def.Type == components.MarkerStart, run})
		}
	}
	// Groups in order of their first marker.
	order := make([]int, len(events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return first[a].compare(first[b]) })
	ls.groups = make([][]int, len(events))
	ls.base = make([]int, len(events))
	ls.numbered = make([]bool, len(events))
	coresOf := make([][]int, len(events))
	for k := range waiting {
		coresOf[k.group] = append(coresOf[k.group], k.core)
	}
	counted := false // the run id counts launches
	for r := range l.Runs {
		counted = counted || l.Runs[r].RunID > 0
	}
	for _, g := range order {
		ls.base[g] = len(ls.List)
		numbered := rule == ByRun && len(events[g]) > 0 && func(r components.LogRun) bool {
			return r.HostID > 0 || r.HostID < 0 && counted
		}(l.Runs[events[g][0].run])
		ls.numbered[g] = numbered
		ev := events[g]
		slices.SortFunc(ev, func(a, b event) int { return a.compare(b.place) })
		state := map[int]bool{} // core -> ended
		open := 0
		cur := -1
		for _, e := range ev {
			ended, seen := state[e.core]
			switch {
			case e.start:
				if seen && !(numbered && ended) {
					diags.Add(diagRestart, 1, l.Line(int(e.row)), fmt.Sprintf("device %d core %s", t.Devices[d], t.Cores[e.core].Name()))
					if rule != ByRun {
						diags.Add(diagVendorFails, 1, l.Line(int(e.row)), "it expects a firmware end before the next firmware start of a core")
					}
				}
				if seen && !ended {
					open--
				}
				if cur < 0 || seen && rule != HostID {
					// A core that starts again has begun the next launch.
					if cur >= 0 {
						clear(state)
						open = 0
					}
					cur = len(ls.List)
					ls.List = append(ls.List, Launch{Device: t.Devices[d], Run: e.run, Start: e.time, open: e.place, group: g})
					ls.groups[g] = append(ls.groups[g], cur)
				}
				state[e.core] = false
				ls.List[cur].Cores++
				ls.List[cur].Complete = false
				open++
			case !seen || ended:
				diags.Add(diagOrphanFWEnd, 1, l.Line(int(e.row)), fmt.Sprintf("device %d core %s", t.Devices[d], t.Cores[e.core].Name()))
				if rule != ByRun {
					diags.Add(diagVendorFails, 1, l.Line(int(e.row)), "it expects a firmware start before each firmware end of a core")
				}
			default:
				state[e.core] = true
				open--
				la := &ls.List[cur]
				la.End = max(la.End, e.time)
				if open == 0 && (rule != HostID || allIn(state, coresOf[g])) {
					la.Complete = true
					la.done = e.place
					if !numbered {
						clear(state)
						cur = -1
					}
				}
			}
		}
		if cur >= 0 && !ls.List[cur].Complete {
			diags.Add(diagOpenLaunch, 1, l.Line(int(ls.List[cur].open.row)), fmt.Sprintf("device %d launch %s", t.Devices[d], runText(l.Runs[ls.List[cur].Run])))
		}
	}
	ls.total = len(ls.List)
	if rule == ByRun {
		ls.sortByStart()
	}
	return ls
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
			return list[0] // the identity says so, whoever started first
		}
		return -1
	}
	return list[c.pos-1]
}

// behind tells whether place p lies behind the border of launch i: its
// opening, or its end under the HostID rule.
func (ls *Launches) behind(i int, p place) bool {
	la := &ls.List[i]
	if ls.Rule == HostID {
		return la.Complete && la.done.compare(p) < 0
	}
	return la.open.compare(p) <= 0
}

// runText names a launch identity for people.
func runText(r components.LogRun) string {
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
