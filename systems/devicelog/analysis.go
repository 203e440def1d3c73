package devicelog

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"perfsim/components"
)

// Kind is how an analysis measures.
type Kind uint8

// Kinds, by the names of the vendor's configuration.
const (
	Adjacent     Kind = iota // adjacent: from a start to the next end
	SessionSpan              // session_first_last: first start to last end of all
	LaunchSpan               // op_first_last: first start to last end of a launch
	LaunchByCore             // op_core_first_last: the same for each core of a launch
	DataSum                  // sum: attached data of a launch added up
	DispatchSpan             // op_first_last across dispatch_ops: the same on the core that dispatches
)

var kindNames = [...]string{"adjacent", "session_first_last", "op_first_last", "op_core_first_last", "sum", "op_first_last"}

// String returns the vendor's name.
func (k Kind) String() string { return kindNames[k] }

// Match says which markers an analysis takes.
type Match struct {
	Core  string   // "ANY", or empty where the definition names no core
	Risc  string   // "ANY" or a processor
	Riscs []string // several processors, in place of Risc
	Zones []string // zone names; a trailing * takes names that contain the rest
	List  bool     // the definition has a list, not one name
	Phase string   // phase the definition asks for, empty for none
	T0    bool     // the first time of the device, which the vendor's script inserts
	// WantStart and WantEnd are the phase that the definition means. Our
	// results keep to it; the vendor's Python results only where Phase is set.
	Want components.MarkerType
}

// Analysis is one definition.
type Analysis struct {
	Name   string
	Across string // "core", "device", "ops", "dispatch_ops"
	Kind   Kind
	Start  Match // also the marker of a sum
	End    Match
}

// Setup is a set of definitions of one era of the vendor's scripts.
type Setup struct {
	Name     string
	Rule     Rule // how the vendor groups launches
	Analyses []Analysis
	ZeroSums bool // a sum of 0 is listed
	Style    Style
}

// Style is the shape of the vendor's output files.
type Style uint8

// Styles by the log version that introduced them.
const (
	Style2023   Style = iota // device_stats.txt with maps of 0-based cores
	Style202402              // zoneName, diff
	Style202403              // zone_name, duration_cycles, stat value in the elements
	StyleHostID              // type, run_host_id
)

var riscTypes = []string{"BRISC", "NCRISC", "TRISC", "ERISC"}

func zonesOf(suffix string, riscs ...string) []string {
	out := make([]string, len(riscs))
	for i, r := range riscs {
		out[i] = r + suffix
	}
	return out
}

func spanOf(name, across string, kind Kind, risc string, list bool, zones ...string) Analysis {
	return Analysis{Name: name, Across: across, Kind: kind,
		Start: Match{Core: "ANY", Risc: risc, Zones: zones, List: list, Want: components.MarkerStart},
		End:   Match{Core: "ANY", Risc: risc, Zones: zones, List: list, Want: components.MarkerEnd}}
}

// SetupFor returns the definitions that the vendor's script of a log
// version's time had.
func SetupFor(version string) Setup {
	switch version {
	case "V0", "V1", "V2", "V3":
		return setup2023()
	case "V4":
		return setup202402()
	case "V5", "V6":
		return setup202403()
	}
	return setupCurrent()
}

// SetupByName returns a setup by its name.
func SetupByName(name string) (Setup, bool) {
	for _, s := range setups() {
		if s.Name == name {
			return s, true
		}
	}
	return Setup{}, false
}

// setups lists every era, oldest first.
func setups() []Setup {
	return []Setup{setup2023(), setup202402(), setup202403(), setupCurrent()}
}

// setup2023 is the set of the first scripts, by timer id.
func setup2023() Setup {
	fwS := Match{Core: "", Risc: "BRISC", Zones: []string{"BRISC-FW"}, Phase: "begin", Want: components.MarkerStart}
	fwE := Match{Core: "", Risc: "ANY", Zones: zonesOf("-FW", "BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC"), Phase: "end", Want: components.MarkerEnd}
	any := func(m Match) Match { m.Core = "ANY"; return m }
	kernel := func(risc string) Analysis {
		z := []string{risc + "-KERNEL"}
		return Analysis{Name: risc + " kernel start -> " + risc + " kernel end", Across: "core", Kind: Adjacent,
			Start: Match{Risc: risc, Zones: z, Phase: "begin", Want: components.MarkerStart},
			End:   Match{Risc: risc, Zones: z, Phase: "end", Want: components.MarkerEnd}}
	}
	return Setup{Name: "2023", Rule: Merged, Style: Style2023, Analyses: []Analysis{
		{Name: "FW start", Across: "core", Kind: Adjacent, Start: Match{Risc: "BRISC", T0: true}, End: fwS},
		kernel("BRISC"), kernel("NCRISC"),
		{Name: "Launch delta", Across: "core", Kind: Adjacent, Start: fwE, End: fwS},
		{Name: "Core end", Across: "core", Kind: SessionSpan, Start: Match{Risc: "BRISC", T0: true}, End: fwE},
		{Name: "Core start -> Core end", Across: "core", Kind: SessionSpan, Start: fwS, End: fwE},
		{Name: "Device start -> Device end", Across: "device", Kind: SessionSpan, Start: any(fwS), End: any(fwE)},
	}}
}

// setup202402 is the set of 2024-02 (V4).
func setup202402() Setup {
	s := Setup{Name: "2024-02", Rule: Merged, Style: Style202402}
	s.Analyses = []Analysis{
		spanOf("FW_START->FW_END", "ops", LaunchSpan, "ANY", true, zonesOf("-FW", riscTypes...)...),
		spanOf("KERNEL_START->KERNEL_END", "ops", LaunchSpan, "ANY", true, zonesOf("-KERNEL", riscTypes...)...),
		spanOf("BR_KERNEL_START->BR_KERNEL_END", "ops", LaunchSpan, "BRISC", false, "BRISC-KERNEL"),
		spanOf("NC_KERNEL_START->NC_KERNEL_END", "ops", LaunchSpan, "NCRISC", false, "NCRISC-KERNEL"),
		spanOf("T0_KERNEL_START->T0_KERNEL_END", "ops", LaunchSpan, "TRISC_0", false, "TRISC-KERNEL"),
		spanOf("T1_KERNEL_START->T1_KERNEL_END", "ops", LaunchSpan, "TRISC_1", false, "TRISC-KERNEL"),
		spanOf("T2_KERNEL_START->T2_KERNEL_END", "ops", LaunchSpan, "TRISC_2", false, "TRISC-KERNEL"),
		spanOf("ER_KERNEL_START->ER_KERNEL_END", "ops", LaunchSpan, "ERISC", false, "ERISC-KERNEL"),
	}
	return s
}

func sumOf(name, risc, zone string) Analysis {
	return Analysis{Name: name, Across: "ops", Kind: DataSum,
		Start: Match{Risc: risc, Zones: []string{zone}, Want: components.MarkerTotal}}
}

func perRisc() []Analysis {
	return []Analysis{
		spanOf("device_brisc_kernel_duration", "ops", LaunchSpan, "BRISC", false, "BRISC-KERNEL"),
		spanOf("device_ncrisc_kernel_duration", "ops", LaunchSpan, "NCRISC", false, "NCRISC-KERNEL"),
		spanOf("device_trisc0_kernel_duration", "ops", LaunchSpan, "TRISC_0", false, "TRISC-KERNEL"),
		spanOf("device_trisc1_kernel_duration", "ops", LaunchSpan, "TRISC_1", false, "TRISC-KERNEL"),
		spanOf("device_trisc2_kernel_duration", "ops", LaunchSpan, "TRISC_2", false, "TRISC-KERNEL"),
		spanOf("device_erisc_kernel_duration", "ops", LaunchSpan, "ERISC", false, "ERISC-KERNEL"),
		sumOf("device_compute_cb_wait_front", "TRISC_0", "CB-COMPUTE-WAIT-FRONT"),
		sumOf("device_compute_cb_reserve_back", "TRISC_2", "CB-COMPUTE-RESERVE-BACK"),
	}
}

// setup202403 is the set of 2024-03 (V5, the article's time) to 2024-11.
func setup202403() Setup {
	s := Setup{Name: "2024-03", Rule: Merged, Style: Style202403, ZeroSums: true}
	s.Analyses = append([]Analysis{
		spanOf("device_fw_duration", "ops", LaunchSpan, "ANY", true, zonesOf("-FW", riscTypes...)...),
		spanOf("device_kernel_duration", "ops", LaunchSpan, "ANY", true, zonesOf("-KERNEL", riscTypes...)...),
	}, perRisc()...)
	return s
}

// setupCurrent is the default set of 2025 on. trace_fw_duration and
// trace_kernel_duration look for the synthetic processor that logs of traces
// have: TENSIX_RISC_AGG, CORE_AGG in the first such scripts.
func setupCurrent() Setup {
	kernels := zonesOf("-KERNEL", riscTypes...)
	s := Setup{Name: "current", Rule: HostID, Style: StyleHostID}
	phased := func(a Analysis, start, end string) Analysis {
		a.Start.Phase, a.End.Phase = start, end
		if end == "ZONE_START" {
			a.End.Want = components.MarkerStart
		}
		if start == "ZONE_END" {
			a.Start.Want = components.MarkerEnd
		}
		return a
	}
	op2op := phased(spanOf("op2op", "core", Adjacent, "ANY", true, kernels...), "ZONE_END", "ZONE_START")
	op2op.End.Zones = zonesOf("-KERNEL", "BRISC", "NCRISC")
	dm := spanOf("device_kernel_duration_dm_start", "ops", LaunchSpan, "ANY", true, kernels...)
	dm.Start.Zones = zonesOf("-KERNEL", "BRISC", "NCRISC", "ERISC")
	agg := func(name, zone string) Analysis {
		a := spanOf(name, "ops", LaunchSpan, "TENSIX_RISC_AGG", false, zone)
		a.Start.Riscs = []string{"TENSIX_RISC_AGG", "CORE_AGG"}
		a.End.Riscs = a.Start.Riscs
		return a
	}
	between := func(name, zone string) Analysis {
		return phased(spanOf(name, "device", Adjacent, "ANY", false, zone), "ZONE_END", "ZONE_START")
	}
	s.Analyses = append([]Analysis{
		agg("trace_fw_duration", "TRACE-FW"),
		agg("trace_kernel_duration", "TRACE-KERNEL"),
		between("trace2trace - FW", "TRACE-FW"),
		between("trace2trace - kernel", "TRACE-KERNEL"),
		op2op,
		phased(spanOf("device_kernel_first_to_last_start", "ops", LaunchSpan, "ANY", true, kernels...), "ZONE_START", "ZONE_START"),
		spanOf("device_kernel_duration_per_core", "ops", LaunchByCore, "ANY", true, kernels...),
		spanOf("device_fw_duration", "ops", LaunchSpan, "ANY", true, zonesOf("-FW", riscTypes...)...),
		spanOf("device_kernel_duration", "ops", LaunchSpan, "ANY", true, kernels...),
		dm,
	}, perRisc()...)
	s.Analyses = append(s.Analyses,
		spanOf("dispatch_total_cq_cmd_op_time", "dispatch_ops", DispatchSpan, "BRISC", false, "CQ_DISPATCH_*"),
		spanOf("dispatch_go_send_wait_time", "dispatch_ops", DispatchSpan, "NCRISC", false, "CQ_DISPATCH_CMD_SEND_GO_SIGNAL"))
	return s
}

// Duration is one measured value.
type Duration struct {
	Start, End       uint64
	Cycles           uint64
	StartRow, EndRow uint32 // marker rows; NoRow for a sum or T0
	Launch           int    // index into Launches.List, -1 across cores or the device
	Core             int    // index into Topology.Cores, -1 where all cores count
}

// noRow stands for the absence of a marker row.
const noRow = ^uint32(0)

// Stats are the vendor's statistics of one series or of a device.
type Stats struct {
	Count, Max, Min, Range, Sum, First uint64
	Average, Median                    float64
}

func statsOf(v []Duration) Stats {
	s := Stats{Count: uint64(len(v)), Min: math.MaxUint64, First: v[0].Cycles}
	c := make([]uint64, len(v))
	for i, d := range v {
		c[i] = d.Cycles
		s.Sum += d.Cycles
		s.Min, s.Max = min(s.Min, d.Cycles), max(s.Max, d.Cycles)
	}
	s.Range = s.Max - s.Min
	s.Average = float64(s.Sum) / float64(s.Count)
	slices.Sort(c)
	s.Median = medianSorted(c)
	return s
}

// Series is the values of one unit: a launch, a core, a device or what a
// dispatch core did for a program.
type Series struct {
	Launch, Core int // -1 where it does not apply
	Dispatch     int // number of the dispatched program from 1, else 0
	Values       []Duration
	Stats        Stats
}

// Result is one analysis on one device. Stats is the vendor's device
// summary: Average is the sum of sums over the sum of counts, Median the
// median of the medians.
type Result struct {
	Analysis *Analysis
	Series   []Series
	Stats    Stats
}

// analyze runs the analyses of a setup on the launches of one device. With
// vendor, markers match as the vendor's Python script matches them: by name,
// core and processor, and by phase only where the definition names one, so a
// launch without ends can get a duration from two starts. Without it, a
// start is a start and an end is an end.
func analyze(l *components.DeviceLog, t *Topology, ls *Launches, s *Setup, vendor bool) []Result {
	out := make([]Result, len(s.Analyses))
	masks := newMasks(l, t, s, vendor)
	dispatched := masks
	if ls.dispatchLog != nil && ls.dispatchLog != l {
		dispatched = newMasks(ls.dispatchLog, t, s, vendor)
	}
	spans(l, t, ls, s, masks, out)
	for i := range s.Analyses {
		a := &s.Analyses[i]
		out[i].Analysis = a
		switch {
		case !masks.possible(i):
		case a.Kind == Adjacent:
			adjacent(l, t, ls.Device, i, a, masks, &out[i])
		case a.Kind == SessionSpan:
			session(l, t, ls.Device, i, a, masks, &out[i])
		}
		if a.Kind == DispatchSpan {
			dispatch(i, ls, dispatched, &out[i])
		}
		r := &out[i]
		for k := range r.Series {
			r.Series[k].Stats = statsOf(r.Series[k].Values)
		}
		r.Stats = deviceStats(r.Series)
	}
	return out
}

// deviceStats sums series up.
func deviceStats(series []Series) Stats {
	if len(series) == 0 {
		return Stats{}
	}
	s := Stats{Min: math.MaxUint64}
	med := make([]float64, len(series))
	for i := range series {
		x := &series[i].Stats
		s.Count += x.Count
		s.Sum += x.Sum
		s.Max, s.Min = max(s.Max, x.Max), min(s.Min, x.Min)
		med[i] = x.Median
	}
	s.First = series[0].Stats.First
	s.Range = s.Max - s.Min
	s.Average = float64(s.Sum) / float64(s.Count)
	slices.Sort(med)
	if n := len(med); n%2 == 1 {
		s.Median = med[n/2]
	} else {
		s.Median = (med[n/2-1] + med[n/2]) / 2
	}
	return s
}

// masks turn the conditions of up to 32 analyses into bits.
type masks struct {
	startKey, endKey   []uint32 // by key
	startLane, endLane []uint32 // by lane
	startType, endType [components.NumMarkers]uint32
	t0                 uint32
}

func newMasks(l *components.DeviceLog, t *Topology, s *Setup, vendor bool) *masks {
	m := &masks{startKey: make([]uint32, len(l.Keys)), endKey: make([]uint32, len(l.Keys)),
		startLane: make([]uint32, len(l.Lanes)), endLane: make([]uint32, len(l.Lanes))}
	for i := range s.Analyses {
		a := &s.Analyses[i]
		bit := uint32(1) << i
		for k := range l.Keys {
			if matchName(a.Start.Zones, l.Keys[k].Name) {
				m.startKey[k] |= bit
			}
			if matchName(a.End.Zones, l.Keys[k].Name) {
				m.endKey[k] |= bit
			}
		}
		for ln := range l.Lanes {
			if a.Start.risc(l.Lanes[ln].Risc) {
				m.startLane[ln] |= bit
			}
			if a.End.risc(l.Lanes[ln].Risc) {
				m.endLane[ln] |= bit
			}
		}
		for ty := range components.MarkerType(components.NumMarkers) {
			if vendor && a.Start.Phase == "" || ty == a.Start.Want {
				m.startType[ty] |= bit
			}
			if vendor && a.End.Phase == "" || ty == a.End.Want {
				m.endType[ty] |= bit
			}
		}
		if a.Start.T0 {
			m.t0 |= bit
		}
	}
	return m
}

// risc tells whether a processor takes part. "WORKER" is every processor
// but the synthetic one that stands for a whole core.
func (m *Match) risc(name string) bool {
	if len(m.Riscs) > 0 {
		return slices.Contains(m.Riscs, name)
	}
	return m.Risc == "ANY" || m.Risc == name || m.Risc == "WORKER" && name != "TENSIX_RISC_AGG"
}

func matchName(zones []string, name string) bool {
	for _, z := range zones {
		if z == name {
			return true
		}
		if p, ok := strings.CutSuffix(z, "*"); ok && p != "" && strings.Contains(name, p) {
			return true
		}
		if p, ok := strings.CutPrefix(z, "*"); ok && p != "" && strings.HasSuffix(name, p) {
			return true
		}
	}
	return false
}

// possible tells whether the log has a zone and a processor for the start and
// for the end of analysis i.
func (m *masks) possible(i int) bool {
	bit := uint32(1) << i
	some := func(list []uint32) bool {
		for _, v := range list {
			if v&bit != 0 {
				return true
			}
		}
		return false
	}
	return some(m.endKey) && some(m.endLane) && (m.t0&bit != 0 || some(m.startKey) && some(m.startLane))
}

// at gives the analyses whose start and end conditions marker row r meets.
func (m *masks) at(l *components.DeviceLog, lane int, row int) (start, end uint32) {
	d := &l.Defs[l.Def[row]]
	return m.startKey[d.Key] & m.startLane[lane] & m.startType[d.Type], m.endKey[d.Key] & m.endLane[lane] & m.endType[d.Type]
}

// firstLast is the first start and last end seen.
type firstLast struct {
	first, last place
	sum         uint64
	hasFirst    bool
	hasLast     bool
}

func (f *firstLast) start(p place) {
	if !f.hasFirst || p.compare(f.first) < 0 {
		f.first, f.hasFirst = p, true
	}
}

func (f *firstLast) end(p place) {
	if !f.hasLast || p.compare(f.last) > 0 {
		f.last, f.hasLast = p, true
	}
}

// duration is the span where the last end lies behind the first start.
func (f *firstLast) duration() (Duration, bool) {
	if !f.hasFirst || !f.hasLast || f.last.compare(f.first) <= 0 {
		return Duration{}, false
	}
	return Duration{Start: f.first.time, End: f.last.time, Cycles: f.last.time - f.first.time,
		StartRow: f.first.row, EndRow: f.last.row, Launch: -1, Core: -1}, true
}

// spans does the analyses of launches in one pass over the markers.
func spans(l *components.DeviceLog, t *Topology, ls *Launches, s *Setup, m *masks, out []Result) {
	var launchBits, coreBits, sumBits uint32
	var which []int // analyses with a slot for each launch
	slot := make([]int, len(s.Analyses))
	for i := range s.Analyses {
		switch s.Analyses[i].Kind {
		case LaunchSpan:
			launchBits |= 1 << i
		case DataSum:
			sumBits |= 1 << i
		case LaunchByCore:
			coreBits |= 1 << i
			continue
		default:
			continue
		}
		slot[i] = len(which)
		which = append(which, i)
	}
	acc := make([]firstLast, len(which)*len(ls.List))
	type launchCore struct{ launch, core int }
	byCore := map[launchCore]*[]firstLast{}
	var coreOrder []launchCore
	firstOf := map[launchCore]place{} // where a core first appears in a launch
	for _, lane := range t.ByDevice[ls.Device] {
		cur := ls.cursor()
		core := t.CoreOf[lane]
		lastLaunch, seenLaunch := -1, -1
		var cell *[]firstLast
		for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
			st, en := m.at(l, lane, row)
			if st|en == 0 && coreBits == 0 {
				continue
			}
			p := place{l.Time[row], t.Rank[lane], uint32(row)}
			la := cur.launch(l.Run[row], p)
			if la < 0 {
				continue
			}
			if coreBits != 0 && la != seenLaunch {
				seenLaunch = la
				k := launchCore{la, core}
				if f, ok := firstOf[k]; !ok || p.compare(f) < 0 {
					firstOf[k] = p
				}
			}
			if st|en == 0 {
				continue
			}
			for b := (st | en) & (launchBits | sumBits); b != 0; b &= b - 1 {
				i := bitIndex(b)
				f := &acc[la*len(which)+slot[i]]
				bit := uint32(1) << i
				switch {
				case sumBits&bit != 0:
					if l.Data != nil && st&bit != 0 {
						f.sum += l.Data[row]
					}
				default:
					if st&bit != 0 {
						f.start(p)
					}
					if en&bit != 0 {
						f.end(p)
					}
				}
			}
			if b := (st | en) & coreBits; b != 0 {
				if la != lastLaunch {
					k := launchCore{la, core}
					c, ok := byCore[k]
					if !ok {
						v := make([]firstLast, len(s.Analyses))
						c = &v
						byCore[k] = c
						coreOrder = append(coreOrder, k)
					}
					lastLaunch, cell = la, c
				}
				for ; b != 0; b &= b - 1 {
					i := bitIndex(b)
					if st>>i&1 != 0 {
						(*cell)[i].start(p)
					}
					if en>>i&1 != 0 {
						(*cell)[i].end(p)
					}
				}
			}
		}
	}
	for i := range s.Analyses {
		a := &s.Analyses[i]
		switch a.Kind {
		case LaunchSpan, DataSum:
			for la := range ls.List {
				f := &acc[la*len(which)+slot[i]]
				if a.Kind == DataSum {
					if f.sum == 0 && !s.ZeroSums {
						continue
					}
					out[i].Series = append(out[i].Series, Series{Launch: la, Core: -1, Values: []Duration{{Cycles: f.sum, StartRow: noRow, EndRow: noRow, Launch: la, Core: -1}}})
					continue
				}
				if d, ok := f.duration(); ok {
					d.Launch = la
					out[i].Series = append(out[i].Series, Series{Launch: la, Core: -1, Values: []Duration{d}})
				}
			}
		case LaunchByCore:
			// The vendor's script lists cores as they appear.
			slices.SortStableFunc(coreOrder, func(x, y launchCore) int {
				return cmp.Or(cmp.Compare(x.launch, y.launch), firstOf[x].compare(firstOf[y]))
			})
			for _, k := range coreOrder {
				d, ok := (*byCore[k])[i].duration()
				if !ok {
					continue
				}
				d.Launch, d.Core = k.launch, k.core
				if n := len(out[i].Series); n > 0 && out[i].Series[n-1].Launch == k.launch {
					out[i].Series[n-1].Values = append(out[i].Series[n-1].Values, d)
					continue
				}
				out[i].Series = append(out[i].Series, Series{Launch: k.launch, Core: -1, Values: []Duration{d}})
			}
		}
	}
}

// adjacent measures on each core, its processors merged in time order, or on
// the whole device, from a start to the next end; a further start replaces
// the one before.
func adjacent(l *components.DeviceLog, t *Topology, dev, i int, a *Analysis, m *masks, r *Result) {
	if a.Across == "device" {
		adjacentIn(l, t, dev, -1, t.ByDevice[dev], i, m, r)
		return
	}
	for c := range t.Cores {
		if core := &t.Cores[c]; core.Device == dev {
			adjacentIn(l, t, dev, c, core.Lanes, i, m, r)
		}
	}
}

func adjacentIn(l *components.DeviceLog, t *Topology, dev, core int, lanes []int, i int, m *masks, r *Result) {
	bit := uint32(1) << i
	var values []Duration
	var open place
	have := false
	if m.t0&bit != 0 {
		open, have = place{time: deviceStart(l, t, dev), row: noRow}, true
	}
	visit := func(lane int, row uint32) {
		st, en := m.at(l, lane, int(row))
		switch {
		case have && en&bit != 0:
			d := Duration{Start: open.time, End: l.Time[row], Cycles: l.Time[row] - open.time, StartRow: open.row, EndRow: row, Launch: -1, Core: core}
			values = append(values, d)
			have = false
		case st&bit != 0 && m.t0&bit == 0:
			open, have = place{l.Time[row], t.Rank[lane], row}, true
		}
	}
	if core >= 0 {
		mergeCore(l, lanes, visit)
	} else {
		mergeLanes(l, lanes, false, 0, visit)
	}
	if len(values) > 0 {
		r.Series = append(r.Series, Series{Launch: -1, Core: core, Values: values})
	}
}

// session measures from the first start to the last end of a core or of the
// device.
func session(l *components.DeviceLog, t *Topology, dev, i int, a *Analysis, m *masks, r *Result) {
	bit := uint32(1) << i
	t0 := deviceStart(l, t, dev)
	var all firstLast
	for c := range t.Cores {
		core := &t.Cores[c]
		if core.Device != dev {
			continue
		}
		var f firstLast
		if m.t0&bit != 0 {
			f.start(place{time: t0, row: noRow})
		}
		for _, lane := range core.Lanes {
			for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
				st, en := m.at(l, lane, row)
				p := place{l.Time[row], t.Rank[lane], uint32(row)}
				if st&bit != 0 && m.t0&bit == 0 {
					f.start(p)
				}
				if en&bit != 0 {
					f.end(p)
				}
			}
		}
		if a.Across == "device" {
			if f.hasFirst {
				all.start(f.first)
			}
			if f.hasLast {
				all.end(f.last)
			}
			continue
		}
		if d, ok := f.duration(); ok {
			d.Core = c
			r.Series = append(r.Series, Series{Launch: -1, Core: c, Values: []Duration{d}})
		}
	}
	if a.Across == "device" {
		if d, ok := all.duration(); ok {
			r.Series = append(r.Series, Series{Launch: -1, Core: -1, Values: []Duration{d}})
		}
	}
}

// deviceStart is the earliest time of a device.
func deviceStart(l *components.DeviceLog, t *Topology, dev int) uint64 {
	lo := uint64(math.MaxUint64)
	for _, lane := range t.ByDevice[dev] {
		if l.LaneOff[lane] < l.LaneOff[lane+1] {
			lo = min(lo, l.Time[l.LaneOff[lane]])
		}
	}
	return lo
}

// mergeCore visits the markers of a core in time order, ties in the order of
// its processors.
func mergeCore(l *components.DeviceLog, lanes []int, visit func(lane int, row uint32)) {
	pos := make([]uint32, len(lanes))
	for i, lane := range lanes {
		pos[i] = l.LaneOff[lane]
	}
	for {
		best := -1
		for i, lane := range lanes {
			if pos[i] < l.LaneOff[lane+1] && (best < 0 || l.Time[pos[i]] < l.Time[pos[best]]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		visit(lanes[best], pos[best])
		pos[best]++
	}
}

func bitIndex(b uint32) int { return bits.TrailingZeros32(b) }
