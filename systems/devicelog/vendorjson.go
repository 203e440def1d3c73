package devicelog

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"perfsim/components/zonelog"
	"perfsim/ecs"
)

// WriteJSON writes device_analysis_data.json in the shape of the setup's
// era: keys sorted, two blanks of indent, and series elements as the texts
// that Python prints for them.
func (v *Vendor) WriteJSON(w io.Writer) error {
	j := &pyJSON{w: bufio.NewWriterSize(w, 256<<10)}
	arch, freq := "", 0.0
	if len(v.Log.Sessions) > 0 {
		arch, freq = v.Log.Sessions[0].Arch, v.Log.Sessions[0].FreqMHz
	}
	devices := dict{}
	mins := v.globalMins()
	for d, id := range v.Topo.Devices {
		dev := &vendorDevice{Vendor: v, d: d, first: mins[d]}
		devices[strconv.Itoa(int(id))] = dev.value
	}
	j.value(dict{
		"data": dict{
			"deviceInfo": dict{"arch": arch, "freq": number(strconv.FormatFloat(math.Trunc(freq), 'f', 0, 64))},
			"devices":    devices,
		},
		"setup": v.setup(),
	})
	return j.w.Flush()
}

// globalMin is the earliest marker so far: the script does not start over
// with each device.
type globalMin struct {
	time uint64
	lane int
}

func (v *Vendor) globalMins() []globalMin {
	out := make([]globalMin, len(v.Devices))
	cur := globalMin{time: math.MaxUint64, lane: -1}
	for d := range v.Devices {
		for _, lane := range v.Topo.ByDevice[d] {
			lo, hi := v.Log.LaneOff[lane], v.Log.LaneOff[lane+1]
			if lo < hi && v.Log.Time[lo] < cur.time {
				cur = globalMin{v.Log.Time[lo], lane}
			}
		}
		out[d] = cur
	}
	return out
}

// inserted reports whether the era's script puts an element with id 0 and the
// earliest time before each series.
func (v *Vendor) inserted() bool { return v.Setup.Style != StyleHostID }

// vendorDevice is a device that is being written.
type vendorDevice struct {
	*Vendor
	d     int
	first globalMin
	// iteration has, for markers of the core being written, the firmware start
	// before; nil where the era's script does not write it.
	iteration map[uint32]uint32
}

// element is a marker of a lane; row is noRow for the inserted one.
type element struct {
	lane int
	row  uint32
}

func (v *vendorDevice) value() any {
	t := v.Topo
	cores := dict{}
	for c := range t.Cores {
		core := &t.Cores[c]
		if core.Device != v.d {
			continue
		}
		cores[fmt.Sprintf("(%d, %d)", core.X, core.Y)] = func() any {
			return dict{"riscs": v.riscs(core.Lanes, false, func(all dict) {
				v.units(all, c, func(s *Series, a *Analysis) bool { return a.Across == "core" && s.Core == c })
				all["ops"] = v.coreOps(c)
			})}
		}
	}
	cores["DEVICE"] = func() any {
		out := dict{"riscs": v.riscs(t.ByDevice[v.d], true, func(all dict) {
			v.units(all, -1, func(_ *Series, a *Analysis) bool { return a.Across == "device" })
			if v.Setup.Style == StyleHostID {
				all["dispatch_ops"] = v.dispatchOps(-1)
			}
			all["ops"] = v.ops()
		})}
		if results := v.results(); len(results) > 0 {
			sums := dict{}
			for _, r := range results {
				sums[r.Analysis.Name] = dict{"analysis": v.definition(r.Analysis), "stats": statsDict(&r.Stats)}
			}
			out["analysis"] = sums
		}
		return out
	}
	out := dict{"cores": cores}
	if v.inserted() && v.first.lane >= 0 {
		ln := &v.Log.Lanes[v.first.lane]
		out["metadata"] = dict{"global_min": dict{"core": fmt.Sprintf("(%d, %d)", ln.X, ln.Y), "risc": ln.Risc, "ts": v.first.time}}
	}
	return out
}

// results are the analyses that found something.
func (v *vendorDevice) results() (out []*Result) {
	for i := range v.Devices[v.d].Results {
		if r := &v.Devices[v.d].Results[i]; len(r.Series) > 0 {
			out = append(out, r)
		}
	}
	return out
}

// riscs returns the elements of lanes by processor; TENSIX stands for all
// processors, and more adds the entries that only TENSIX has.
func (v *vendorDevice) riscs(lanes []int, core bool, more func(all dict)) dict {
	by := map[string][]int{"TENSIX": lanes}
	for _, lane := range lanes {
		r := v.Log.Lanes[lane].Risc
		by[r] = append(by[r], lane)
	}
	out := dict{}
	for name, of := range by {
		out[name] = func() any {
			one := dict{"timeseries": list(func(add func(any)) {
				mergeLanes(v.Log, of, v.inserted(), v.first.time, func(lane int, row uint32) {
					add(v.text(element{lane, row}, name == "TENSIX", core))
				})
			})}
			if name == "TENSIX" {
				more(one)
			} else if v.Setup.Style == Style202402 {
				one["durations"] = []string{}
			}
			return one
		}
	}
	return out
}

// text is Python's output for an element: (marker, time[, data][, risc][, core]).
func (v *vendorDevice) text(e element, risc, core bool) string {
	l := v.Log
	b := append(make([]byte, 0, 160), '(')
	at := &l.Lanes[e.lane]
	var time, data uint64
	if e.row == noRow {
		names := v.names()
		b = fmt.Appendf(b, "{'id': 0, '%s': '', '%s': '', '%s': '', '%s': ''}", names[0], names[1], names[2], names[3])
		time = v.first.time
		if core { // labelled with the core of the earliest marker
			at = &l.Lanes[v.first.lane]
		}
	} else {
		b = v.marker(b, e.row)
		time = l.Time[e.row]
		if l.Data != nil {
			data = l.Data[e.row]
		}
	}
	b = fmt.Appendf(b, ", %d", time)
	if v.Setup.Style >= Style202403 {
		b = fmt.Appendf(b, ", %d", data)
	}
	if risc {
		b = pyRepr(append(b, ", "...), l.Lanes[e.lane].Risc)
	}
	if core {
		b = fmt.Appendf(b, ", (%d, %d)", at.X, at.Y)
	}
	return string(append(b, ')'))
}

// names are the keys of a marker that name its zone, phase, line and file.
func (v *Vendor) names() [4]string {
	switch v.Setup.Style {
	case Style2023, Style202402:
		return [...]string{"zoneName", "zonePhase", "srcLine", "srcFile"}
	case StyleHostID:
		return [...]string{"zone_name", "type", "src_line", "src_file"}
	}
	return [...]string{"zone_name", "zone_phase", "src_line", "src_file"}
}

// marker is the dict of one marker.
func (v *Vendor) marker(b []byte, row uint32) []byte {
	l := v.Log
	d := &l.Defs[l.Def[row]]
	k := &l.Keys[d.Key]
	run := &l.Runs[l.Run[row]]
	names := v.names()
	b = fmt.Appendf(b, "{'id': %d, '%s': ", d.Timer, names[0])
	b = pyRepr(b, k.Name)
	b = fmt.Appendf(b, ", '%s': ", names[1])
	phase := d.Phase
	if phase == "" && d.Type <= zonelog.MarkerEnd {
		phase = [...]string{"begin", "end"}[d.Type] // logs without a phase column
	}
	b = pyRepr(b, phase)
	b = fmt.Appendf(b, ", '%s': %d, '%s': ", names[2], k.Line, names[3])
	b = pyRepr(b, k.File)
	switch v.Setup.Style {
	case Style202403:
		if run.RunID >= 0 {
			b = fmt.Appendf(b, ", 'run_id': %d", run.RunID)
		}
		if run.HostID >= 0 {
			b = fmt.Appendf(b, ", 'run_host_id': %d", run.HostID)
		}
	case StyleHostID:
		b = fmt.Appendf(b, ", 'run_host_id': %d", max(run.HostID, 0))
		if s := &l.Sessions[run.Session]; s.Version >= "V10" && len(s.Version) == 3 {
			b = append(b, ", 'trace_id': "...)
			b = pyInt(b, run.TraceID)
			b = append(b, ", 'trace_id_counter': "...)
			b = pyInt(b, run.TraceCounter)
		}
		b = append(b, ", 'meta_data': "...)
		b = pyRepr(b, l.Meta(int(row)))
	}
	return append(b, '}')
}

func pyInt(b []byte, v int64) []byte {
	if v < 0 {
		return append(b, "''"...)
	}
	return strconv.AppendInt(b, v, 10)
}

// series is the elements of one core's launch.
func (v *vendorDevice) series(of []element, core bool) list {
	return func(add func(any)) {
		for _, e := range of {
			add(v.text(e, true, core))
		}
	}
}

// coreOps returns the launches of one core. Each firmware start of BRISC or
// ERISC opens one.
func (v *vendorDevice) coreOps(c int) list {
	if v.Setup.Style == StyleHostID {
		return v.coreOpsByID(c)
	}
	var ops [][]element
	mergeLanes(v.Log, v.Topo.Cores[c].Lanes, true, v.first.time, func(lane int, row uint32) {
		if row != noRow && v.firmware(lane, row, zonelog.MarkerStart) {
			ops = append(ops, nil)
		}
		if n := len(ops); n > 0 { // inserted elements can lie behind the first start
			ops[n-1] = append(ops[n-1], element{lane, row})
		}
	})
	return func(add func(any)) {
		for _, op := range ops {
			if v.Setup.Style == Style202402 {
				add(v.series(op, false))
			} else {
				add(dict{"timeseries": v.series(op, false)})
			}
		}
	}
}

// firmware reports whether a marker is a start or an end of the firmware zone
// of the processor that controls its core.
func (v *Vendor) firmware(lane int, row uint32, t zonelog.MarkerType) bool {
	d := &v.Log.Defs[v.Log.Def[row]]
	risc := v.Log.Lanes[lane].Risc
	return d.Type == t && (risc == "BRISC" || risc == "ERISC") && v.Log.Keys[d.Key].Name == risc+"-FW"
}

// coreOpsByID is the launches of one core as the scripts of 2025 on find them:
// by host id, closed at every firmware end of BRISC or ERISC; what comes behind
// it is in the next one, and what is open at the end in none. Of a dispatch
// core it has the work for programs.
func (v *vendorDevice) coreOpsByID(c int) list {
	l := v.Log
	if slices.Contains(v.Devices[v.d].dispatchCores, c) {
		return v.dispatchOps(c)
	}
	byID := map[int64][]element{}
	var ids []int64
	mergeLanes(l, v.Topo.Cores[c].Lanes, false, 0, func(lane int, row uint32) {
		id := l.Runs[l.Run[row]].HostID
		if id <= 0 || l.Defs[l.Def[row]].Timer == 0 {
			return
		}
		if byID[id] == nil {
			ids = append(ids, id)
		}
		byID[id] = append(byID[id], element{lane, row})
	})
	var ops [][]element
	var open []element
	for _, id := range ids {
		for _, e := range byID[id] {
			open = append(open, e)
			if v.firmware(e.lane, e.row, zonelog.MarkerEnd) {
				ops = append(ops, open)
				open = nil
			}
		}
	}
	return func(add func(any)) {
		for _, op := range ops {
			add(dict{"timeseries": v.series(op, false)})
		}
	}
}

// dispatchOps returns the programs of the dispatch cores: of the device where c
// is negative, else of core c.
func (v *vendorDevice) dispatchOps(c int) list {
	return func(add func(any)) {
		for n, op := range v.Devices[v.d].Launches.dispatch {
			if c >= 0 && op.core != c {
				continue
			}
			var rows []element
			for _, row := range op.rows {
				rows = append(rows, element{v.Log.LaneOfMarker(int(row)), row})
			}
			one := dict{"timeseries": v.series(rows, false)}
			v.analyses(one, func(s *Series, _ *Analysis) bool { return s.Dispatch == n+1 })
			add(one)
		}
	}
}

// ops is the launches of the device with their analyses and elements.
func (v *vendorDevice) ops() list {
	l, ls := v.Log, v.Devices[v.d].Launches
	rows := make([][]element, len(ls.List))
	lanes := v.Topo.ByDevice[v.d]
	cursors := make([]cursor, len(l.Lanes))
	for _, lane := range lanes {
		cursors[lane] = ls.cursor()
	}
	mergeLanes(l, lanes, false, 0, func(lane int, row uint32) {
		la := cursors[lane].launch(l.Run[row], place{l.Time[row], v.Topo.Rank[lane], row})
		if la >= 0 && l.Defs[l.Def[row]].Timer != 0 {
			rows[la] = append(rows[la], element{lane, row})
		}
	})
	return func(add func(any)) {
		for la := range ls.List {
			one := dict{"timeseries": v.series(rows[la], true)}
			v.analyses(one, func(s *Series, _ *Analysis) bool { return s.Launch == la })
			add(one)
		}
	}
}

// units adds the analyses across the series that take part, of core c or, for
// -1, the device, and finds the iteration marks of what is written from then on.
func (v *vendorDevice) units(out dict, c int, take func(*Series, *Analysis) bool) {
	v.iteration = nil
	if v.Setup.Style == StyleHostID {
		lanes := v.Topo.ByDevice[v.d]
		if c >= 0 {
			lanes = v.Topo.Cores[c].Lanes
		}
		v.iterations(c, lanes)
	}
	v.analyses(out, take)
}

// iterations finds, for the markers at both ends of the durations of a core
// or, for -1, the device, the last firmware start before.
func (v *vendorDevice) iterations(core int, lanes []int) {
	v.iteration = map[uint32]uint32{}
	for _, r := range v.results() {
		for k := range r.Series {
			if r.Analysis.Kind == Adjacent && r.Series[k].Core == core {
				for _, x := range r.Series[k].Values {
					v.iteration[x.StartRow], v.iteration[x.EndRow] = noRow, noRow
				}
			}
		}
	}
	if len(v.iteration) == 0 {
		return
	}
	last := noRow
	mergeLanes(v.Log, lanes, false, 0, func(_ int, row uint32) {
		def := &v.Log.Defs[v.Log.Def[row]]
		if def.Type == zonelog.MarkerStart && v.Log.Keys[def.Key].Name == "BRISC-FW" {
			last = row
		}
		if _, ok := v.iteration[row]; ok {
			v.iteration[row] = last
		}
	})
}

// iterationMark is the firmware start before a marker.
func (v *vendorDevice) iterationMark(row uint32) any {
	mark, ok := v.iteration[row]
	if !ok || mark == noRow {
		return nil
	}
	return fmt.Sprintf("(%s, %d)", v.marker(nil, mark), v.Log.Time[mark])
}

// analyses adds "analysis" with the series that take part, where there is one.
func (v *vendorDevice) analyses(out dict, take func(*Series, *Analysis) bool) {
	found := dict{}
	for _, r := range v.results() {
		for i := range r.Series {
			if s := &r.Series[i]; take(s, r.Analysis) {
				found[r.Analysis.Name] = dict{"analysis": v.definition(r.Analysis), "series": v.durations(r.Analysis, s), "stats": statsDict(&s.Stats, s.Stats.First)}
			}
		}
	}
	if len(found) > 0 {
		out["analysis"] = found
	}
}

// durations is the values of one launch, core or device.
func (v *vendorDevice) durations(a *Analysis, s *Series) list {
	value, kind, start, end := "duration_cycles", "duration_type", "start_cycle", "end_cycle"
	if v.Setup.Style <= Style202402 {
		value, kind, start, end = "diff", "durationType", "start", "end"
	}
	return func(add func(any)) {
		for i := range s.Values {
			d := &s.Values[i]
			if a.Kind == DataSum {
				add(dict{value: d.Cycles, kind: v.condition(&a.Start)})
				continue
			}
			from := []byte("{'id': 0}")
			if d.StartRow != noRow {
				from = v.marker(nil, d.StartRow)
			}
			one := dict{value: d.Cycles, kind: fmt.Sprintf("(%s, %s)", from, v.marker(nil, d.EndRow)), start: d.Start, end: d.End}
			if v.iteration != nil && a.Kind == Adjacent {
				one["start_iter_mark"], one["end_iter_mark"] = v.iterationMark(d.StartRow), v.iterationMark(d.EndRow)
			}
			add(one)
		}
	}
}

// statsDict has the statistics by the vendor's names; first is that of a series.
func statsDict(s *Stats, first ...uint64) dict {
	out := dict{"Average": s.Average, "Count": s.Count, "Max": s.Max, "Median": s.Median, "Min": s.Min, "Range": s.Range, "Sum": s.Sum}
	for _, v := range first {
		out["First"] = v
	}
	return out
}

// definition is an analysis as the configuration has it.
func (v *Vendor) definition(a *Analysis) dict {
	out := dict{"across": a.Across, "type": a.Kind.String()}
	if a.Kind == DataSum {
		out["marker"] = v.condition(&a.Start)
	} else {
		out["start"], out["end"] = v.condition(&a.Start), v.condition(&a.End)
	}
	return out
}

func (v *Vendor) condition(m *Match) dict {
	zone, phase := "zone_name", "zone_phase"
	if v.Setup.Style <= Style202402 {
		zone, phase = "zoneName", "zonePhase"
	}
	out := dict{"risc": m.Risc}
	if m.Core != "" {
		out["core"] = m.Core
	}
	if m.List && len(m.Zones) > 0 {
		out[zone] = m.Zones
	} else if len(m.Zones) > 0 {
		out[zone] = m.Zones[0]
	}
	if m.Phase != "" {
		out[phase] = m.Phase
	}
	return out
}

func (v *Vendor) setup() dict {
	analyses := dict{}
	for i := range v.Setup.Analyses {
		a := &v.Setup.Analyses[i]
		analyses[a.Name] = v.definition(a)
	}
	return dict{
		"detectOps":          true,
		"deviceAnalysisData": "device_analysis_data.json",
		"deviceStatsTXT":     "device_stats.txt",
		"deviceTarball":      "device_perf_results.tgz",
		"displayStats":       displayStats,
		"outputFolder":       "output/device",
		"riscTypes":          riscTypes,
		"riscs":              []string{"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC"},
		"timerAnalysis":      analyses,
	}
}

// mergeLanes visits the markers of lanes in time order; ties go in the order
// of the lanes. With zero, each lane starts with an element (row noRow) at
// time t0, which none of its markers precedes.
func mergeLanes(l *zonelog.DeviceLog, lanes []int, zero bool, t0 uint64, visit func(lane int, row uint32)) {
	type head struct {
		time uint64
		at   int // place of the lane
		row  uint32
	}
	h := ecs.Heap[head]{Less: func(a, b head) bool { return a.time < b.time || a.time == b.time && a.at < b.at }}
	for at, lane := range lanes {
		if zero {
			h.Push(head{t0, at, noRow})
		} else if row := l.LaneOff[lane]; row < l.LaneOff[lane+1] {
			h.Push(head{l.Time[row], at, row})
		}
	}
	for h.Len() > 0 {
		x := h.Top()
		lane := lanes[x.at]
		visit(lane, x.row)
		if x.row++; zero && x.row == 0 { // noRow is one before 0
			x.row = l.LaneOff[lane]
		}
		if x.row == l.LaneOff[lane+1] {
			h.Pop()
			continue
		}
		x.time = l.Time[x.row]
		h.Replace(x)
	}
}
