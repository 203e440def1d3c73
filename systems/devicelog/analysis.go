package devicelog

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"

	"perfsim/components/zonelog"
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
	// Want is the marker type that the definition means. Our results keep to
	// it; the vendor's Python results only where Phase is set.
	Want zonelog.MarkerType
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
		Start: Match{Core: "ANY", Risc: risc, Zones: zones, List: list, Want: zonelog.MarkerStart},
		End:   Match{Core: "ANY", Risc: risc, Zones: zones, List: list, Want: zonelog.MarkerEnd}}
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
	fwS := Match{Core: "", Risc: "BRISC", Zones: []string{"BRISC-FW"}, Phase: "begin", Want: zonelog.MarkerStart}
	fwE := Match{Core: "", Risc: "ANY", Zones: zonesOf("-FW", "BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC"), Phase: "end", Want: zonelog.MarkerEnd}
	any := func(m Match) Match { m.Core = "ANY"; return m }
	kernel := func(risc string) Analysis {
		z := []string{risc + "-KERNEL"}
		return Analysis{Name: risc + " kernel start -> " + risc + " kernel end", Across: "core", Kind: Adjacent,
			Start: Match{Risc: risc, Zones: z, Phase: "begin", Want: zonelog.MarkerStart},
			End:   Match{Risc: risc, Zones: z, Phase: "end", Want: zonelog.MarkerEnd}}
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
		Start: Match{Risc: risc, Zones: []string{zone}, Want: zonelog.MarkerTotal}}
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
			a.End.Want = zonelog.MarkerStart
		}
		if start == "ZONE_END" {
			a.Start.Want = zonelog.MarkerEnd
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

// Series holds the values of one unit: a launch, a core, a device or a program
// on a dispatch core.
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
func analyze(l *zonelog.DeviceLog, t *Topology, ls *Launches, s *Setup, vendor bool) []Result {
	out := make([]Result, len(s.Analyses))
	masks := newMasks(l, s, vendor)
	dispatched := masks
	if ls.dispatchLog != nil && ls.dispatchLog != l {
		dispatched = newMasks(ls.dispatchLog, s, vendor)
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
	startType, endType [zonelog.NumMarkers]uint32
	t0                 uint32
}

func newMasks(l *zonelog.DeviceLog, s *Setup, vendor bool) *masks {
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
		for ty := range zonelog.MarkerType(zonelog.NumMarkers) {
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

// risc reports whether a processor takes part. "WORKER" is every processor but
// the synthetic one that stands for a whole core.
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

// possible reports whether the log has a zone and a processor for the start and
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
func (m *masks) at(l *zonelog.DeviceLog, lane int, row int) (start, end uint32) {
	d := &l.Defs[l.Def[row]]
	return m.startKey[d.Key] & m.startLane[lane] & m.startType[d.Type], m.endKey[d.Key] & m.endLane[lane] & m.endType[d.Type]
}

// firstLast is the first start and last end seen.
type firstLast struct {
	first, last       place
	hasFirst, hasLast bool
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
		StartRow: f.first.row, EndRow: f.last.row, Launch: -1}, true
}

// spans does the analyses of launches in one pass over the markers.
func spans(l *zonelog.DeviceLog, t *Topology, ls *Launches, s *Setup, m *masks, out []Result) {
	w := newSpanWalk(l, t, ls, s, m)
	for _, lane := range t.ByDevice[ls.Device] {
		w.lane(lane)
	}
	for i := range s.Analyses {
		switch s.Analyses[i].Kind {
		case LaunchSpan:
			out[i].Series = append(out[i].Series, w.launchSpansOf(i)...)
		case DataSum:
			out[i].Series = append(out[i].Series, w.sumsOf(i, s.ZeroSums)...)
		case LaunchByCore:
			out[i].Series = append(out[i].Series, w.coreSpansOf(i)...)
		}
	}
}

// launchCore is a core in a launch.
type launchCore struct{ launch, core int32 }

// rowSpan are the marker rows of the first start and the last end, noRow where
// there is none.
type rowSpan struct{ first, last uint32 }

// spanWalk gathers first starts and last ends by launch, and by launch and
// core.
type spanWalk struct {
	l  *zonelog.DeviceLog
	t  *Topology
	ls *Launches
	m  *masks
	// The analyses of each kind, a bit each.
	launchBits, sumBits, coreBits uint32
	// slot is the place of an analysis among those of its kind, and slots their
	// number: by launch, sums, by core.
	slot                             []int
	launchSlots, sumSlots, coreSlots int
	// spans has launchSlots cells a launch, sums sumSlots.
	spans []rowSpan
	sums  []uint64
	// cells has coreSlots cells for each of cores; index finds a core in a launch
	// among them.
	index map[launchCore]int32
	cores []coreInLaunch
	cells []rowSpan
}

// coreInLaunch is a core in a launch and the row of its first marker there.
type coreInLaunch struct {
	launchCore
	first uint32
}

func newSpanWalk(l *zonelog.DeviceLog, t *Topology, ls *Launches, s *Setup, m *masks) *spanWalk {
	w := &spanWalk{l: l, t: t, ls: ls, m: m, slot: make([]int, len(s.Analyses)), index: map[launchCore]int32{}}
	take := func(i int, bits *uint32, slots *int) {
		*bits |= uint32(1) << i
		w.slot[i] = *slots
		*slots++
	}
	for i := range s.Analyses {
		switch s.Analyses[i].Kind {
		case LaunchSpan:
			take(i, &w.launchBits, &w.launchSlots)
		case DataSum:
			take(i, &w.sumBits, &w.sumSlots)
		case LaunchByCore:
			take(i, &w.coreBits, &w.coreSlots)
		}
	}
	w.spans = slices.Repeat([]rowSpan{{noRow, noRow}}, w.launchSlots*len(ls.List))
	w.sums = make([]uint64, w.sumSlots*len(ls.List))
	return w
}

// before reports whether marker row a comes before row b, as place orders them.
func (w *spanWalk) before(a, b uint32) bool {
	if ta, tb := w.l.Time[a], w.l.Time[b]; ta != tb {
		return ta < tb
	}
	if ra, rb := w.t.Rank[w.l.LaneOfMarker(int(a))], w.t.Rank[w.l.LaneOfMarker(int(b))]; ra != rb {
		return ra < rb
	}
	return a < b
}

// add takes a marker that is a start, an end or both.
func (w *spanWalk) add(f *rowSpan, row uint32, start, end bool) {
	if start && (f.first == noRow || w.before(row, f.first)) {
		f.first = row
	}
	if end && (f.last == noRow || w.before(f.last, row)) {
		f.last = row
	}
}

// duration is the span where the last end lies behind the first start.
func (w *spanWalk) duration(f rowSpan) (Duration, bool) {
	if f.first == noRow || f.last == noRow || !w.before(f.first, f.last) {
		return Duration{}, false
	}
	start, end := w.l.Time[f.first], w.l.Time[f.last]
	return Duration{Start: start, End: end, Cycles: end - start, StartRow: f.first, EndRow: f.last, Launch: -1}, true
}

// lane walks the markers of one lane.
func (w *spanWalk) lane(lane int) {
	l := w.l
	cur := w.ls.cursor()
	seen := launchCore{-1, int32(w.t.CoreOf[lane])}
	at := 0 // cells of seen
	for row := int(l.LaneOff[lane]); row < int(l.LaneOff[lane+1]); row++ {
		start, end := w.m.at(l, lane, row)
		if start|end == 0 && w.coreBits == 0 {
			continue
		}
		launch := cur.launch(l.Run[row], place{l.Time[row], w.t.Rank[lane], uint32(row)})
		if launch < 0 {
			continue
		}
		if w.coreBits != 0 && int32(launch) != seen.launch {
			seen.launch = int32(launch)
			at = w.cellsOf(seen, uint32(row))
		}
		w.addToLaunch(launch, start, end, uint32(row))
		for b := (start | end) & w.coreBits; b != 0; b &= b - 1 {
			i := bitIndex(b)
			w.add(&w.cells[at+w.slot[i]], uint32(row), start>>i&1 != 0, end>>i&1 != 0)
		}
	}
}

// addToLaunch adds a marker that meets the start and end conditions of the
// analyses in start and end.
func (w *spanWalk) addToLaunch(launch int, start, end uint32, row uint32) {
	for b := (start | end) & w.launchBits; b != 0; b &= b - 1 {
		i := bitIndex(b)
		w.add(&w.spans[launch*w.launchSlots+w.slot[i]], row, start>>i&1 != 0, end>>i&1 != 0)
	}
	if w.l.Data == nil {
		return
	}
	for b := start & w.sumBits; b != 0; b &= b - 1 {
		w.sums[launch*w.sumSlots+w.slot[bitIndex(b)]] += w.l.Data[row]
	}
}

// cellsOf returns the place of the cells of a core in a launch, which has a
// marker in row.
func (w *spanWalk) cellsOf(k launchCore, row uint32) int {
	n, ok := w.index[k]
	if !ok {
		n = int32(len(w.cores))
		w.index[k] = n
		w.cores = append(w.cores, coreInLaunch{k, row})
		for range w.coreSlots {
			w.cells = append(w.cells, rowSpan{noRow, noRow})
		}
	} else if c := &w.cores[n]; w.before(row, c.first) {
		c.first = row
	}
	return int(n) * w.coreSlots
}

// launchSpansOf returns the results of analysis i, a LaunchSpan.
func (w *spanWalk) launchSpansOf(i int) (out []Series) {
	for launch := range w.ls.List {
		if d, ok := w.duration(w.spans[launch*w.launchSlots+w.slot[i]]); ok {
			d.Launch = launch
			out = append(out, Series{Launch: launch, Core: -1, Values: []Duration{d}})
		}
	}
	return out
}

// sumsOf returns the results of analysis i, a DataSum.
func (w *spanWalk) sumsOf(i int, zeros bool) (out []Series) {
	for launch := range w.ls.List {
		if sum := w.sums[launch*w.sumSlots+w.slot[i]]; sum != 0 || zeros {
			out = append(out, Series{Launch: launch, Core: -1, Values: []Duration{{Cycles: sum, StartRow: noRow, EndRow: noRow, Launch: launch}}})
		}
	}
	return out
}

// coreSpansOf returns the results of analysis i, a LaunchByCore, cores in the
// order in which they appear, as the vendor's script lists them.
func (w *spanWalk) coreSpansOf(i int) (out []Series) {
	order := make([]int32, len(w.cores))
	for n := range order {
		order[n] = int32(n)
	}
	slices.SortFunc(order, func(x, y int32) int {
		a, b := &w.cores[x], &w.cores[y]
		switch {
		case a.launch != b.launch:
			return cmp.Compare(a.launch, b.launch)
		case a.first == b.first:
			return 0
		case w.before(a.first, b.first):
			return -1
		}
		return 1
	})
	for _, n := range order {
		d, ok := w.duration(w.cells[int(n)*w.coreSlots+w.slot[i]])
		if !ok {
			continue
		}
		c := &w.cores[n]
		d.Launch = int(c.launch)
		if n := len(out); n > 0 && out[n-1].Launch == d.Launch {
			out[n-1].Values = append(out[n-1].Values, d)
			continue
		}
		out = append(out, Series{Launch: d.Launch, Core: -1, Values: []Duration{d}})
	}
	return out
}

// adjacent measures on each core, its processors merged in time order, or on
// the whole device, from a start to the next end; a further start replaces
// the one before.
func adjacent(l *zonelog.DeviceLog, t *Topology, dev, i int, a *Analysis, m *masks, r *Result) {
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

func adjacentIn(l *zonelog.DeviceLog, t *Topology, dev, core int, lanes []int, i int, m *masks, r *Result) {
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
			d := Duration{Start: open.time, End: l.Time[row], Cycles: l.Time[row] - open.time, StartRow: open.row, EndRow: row, Launch: -1}
			values = append(values, d)
			have = false
		case st&bit != 0 && m.t0&bit == 0:
			open, have = place{l.Time[row], t.Rank[lane], row}, true
		}
	}
	mergeLanes(l, lanes, false, 0, visit)
	if len(values) > 0 {
		r.Series = append(r.Series, Series{Launch: -1, Core: core, Values: values})
	}
}

// session measures from the first start to the last end of a core or of the
// device.
func session(l *zonelog.DeviceLog, t *Topology, dev, i int, a *Analysis, m *masks, r *Result) {
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
func deviceStart(l *zonelog.DeviceLog, t *Topology, dev int) uint64 {
	lo := uint64(math.MaxUint64)
	for _, lane := range t.ByDevice[dev] {
		if l.LaneOff[lane] < l.LaneOff[lane+1] {
			lo = min(lo, l.Time[l.LaneOff[lane]])
		}
	}
	return lo
}

func bitIndex(b uint32) int { return bits.TrailingZeros32(b) }
