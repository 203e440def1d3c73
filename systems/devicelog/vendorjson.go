package devicelog

import (
	"bufio"
	"container/heap"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"perfsim/components/zonelog"
)

// WriteJSON writes device_analysis_data.json in the shape of the setup's
// era: keys sorted, two blanks of indent, and series elements as the texts
// that Python prints for them.
func (v *Vendor) WriteJSON(w io.Writer) error {
	j := &pyJSON{w: bufio.NewWriterSize(w, 256<<10)}
	l := v.Log
	j.open('{')
	j.key("data")
	j.open('{')
	j.key("deviceInfo")
	j.open('{')
	arch, freq := "", 0.0
	if len(l.Sessions) > 0 {
		arch, freq = l.Sessions[0].Arch, l.Sessions[0].FreqMHz
	}
	j.key("arch")
	j.str(arch)
	j.key("freq")
	j.raw(strconv.FormatFloat(math.Trunc(freq), 'f', 0, 64))
	j.close('}')
	j.key("devices")
	j.open('{')
	order := make([]int, len(v.Devices))
	for i := range order {
		order[i] = i
	}
	mins := v.globalMins()
	slices.SortFunc(order, func(a, b int) int { return int(v.Topo.Devices[a]) - int(v.Topo.Devices[b]) })
	for _, d := range order {
		j.key(strconv.Itoa(int(v.Topo.Devices[d])))
		v.device(j, d, mins[d])
	}
	j.close('}')
	j.close('}')
	j.key("setup")
	v.setup(j)
	j.close('}')
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

// inserted tells whether the era's script puts an element with id 0 and the
// earliest time before each series.
func (v *Vendor) inserted() bool { return v.Setup.Style != StyleHostID }

func (v *Vendor) device(j *pyJSON, d int, gm globalMin) {
	l, t := v.Log, v.Topo
	j.open('{')
	j.key("cores")
	j.open('{')
	type named struct {
		name string
		core int
	}
	var cores []named
	for c := range t.Cores {
		if t.Cores[c].Device == d {
			cores = append(cores, named{fmt.Sprintf("(%d, %d)", t.Cores[c].X, t.Cores[c].Y), c})
		}
	}
	slices.SortFunc(cores, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for _, nc := range cores {
		core := &t.Cores[nc.core]
		j.key(nc.name)
		j.open('{')
		j.key("riscs")
		j.open('{')
		for _, r := range v.riscsOf(core.Lanes) {
			j.key(r.name)
			j.open('{')
			if r.name == "TENSIX" {
				v.coreAnalysis(j, d, nc.core)
				if v.Setup.Style == StyleHostID {
					v.coreOpsByID(j, d, nc.core)
				} else {
					v.coreOps(j, core, gm)
				}
			} else if v.Setup.Style == Style202402 {
				j.key("durations")
				j.open('[')
				j.close(']')
			}
			j.key("timeseries")
			v.series(j, r.lanes, gm, r.name == "TENSIX", false)
			j.close('}')
		}
		j.close('}')
		j.close('}')
	}
	j.key("DEVICE")
	j.open('{')
	v.deviceAnalysis(j, d)
	j.key("riscs")
	j.open('{')
	for _, r := range v.riscsOf(t.ByDevice[d]) {
		j.key(r.name)
		j.open('{')
		if r.name == "TENSIX" {
			v.deviceUnit(j, d)
			if v.Setup.Style == StyleHostID {
				j.key("dispatch_ops")
				v.dispatchOps(j, d, -1)
			}
			v.ops(j, d)
		} else if v.Setup.Style == Style202402 {
			j.key("durations")
			j.open('[')
			j.close(']')
		}
		j.key("timeseries")
		v.series(j, r.lanes, gm, r.name == "TENSIX", true)
		j.close('}')
	}
	j.close('}')
	j.close('}')
	j.close('}')
	if v.inserted() && gm.lane >= 0 {
		ln := &l.Lanes[gm.lane]
		j.key("metadata")
		j.open('{')
		j.key("global_min")
		j.open('{')
		j.key("core")
		j.str(fmt.Sprintf("(%d, %d)", ln.X, ln.Y))
		j.key("risc")
		j.str(ln.Risc)
		j.key("ts")
		j.raw(strconv.FormatUint(gm.time, 10))
		j.close('}')
		j.close('}')
	}
	j.close('}')
}

type riscLanes struct {
	name  string
	lanes []int
}

// riscsOf groups lanes by processor, sorted by name, with TENSIX for all.
func (v *Vendor) riscsOf(lanes []int) []riscLanes {
	by := map[string][]int{"TENSIX": lanes}
	for _, lane := range lanes {
		r := v.Log.Lanes[lane].Risc
		by[r] = append(by[r], lane)
	}
	out := make([]riscLanes, 0, len(by))
	for n, ls := range by {
		out = append(out, riscLanes{n, ls})
	}
	slices.SortFunc(out, func(a, b riscLanes) int { return strings.Compare(a.name, b.name) })
	return out
}

// series writes the elements of lanes merged in the script's order.
func (v *Vendor) series(j *pyJSON, lanes []int, gm globalMin, risc, core bool) {
	j.open('[')
	mergeLanes(v.Log, lanes, v.inserted(), gm.time, func(lane int, row uint32) {
		if row == noRow {
			j.str(v.zeroText(lane, gm, risc, core))
			return
		}
		j.str(v.text(lane, row, risc, core))
	})
	j.close(']')
}

func (v *Vendor) zeroText(lane int, gm globalMin, risc, core bool) string {
	b := make([]byte, 0, 128)
	switch v.Setup.Style {
	case Style202403:
		b = append(b, "({'id': 0, 'zone_name': '', 'zone_phase': '', 'src_line': '', 'src_file': ''}, "...)
	default:
		b = append(b, "({'id': 0, 'zoneName': '', 'zonePhase': '', 'srcLine': '', 'srcFile': ''}, "...)
	}
	b = strconv.AppendUint(b, gm.time, 10)
	if v.Setup.Style == Style202403 {
		b = append(b, ", 0"...)
	}
	// The element is labelled with the core of the earliest marker.
	at := lane
	if core {
		at = gm.lane
	}
	return string(v.tail(b, v.Log.Lanes[lane].Risc, at, risc, core))
}

// text is what Python prints for an element: (marker, time[, data][, risc][, core]).
func (v *Vendor) text(lane int, row uint32, risc, core bool) string {
	l := v.Log
	b := append(make([]byte, 0, 160), '(')
	b = v.marker(b, row)
	b = append(b, ", "...)
	b = strconv.AppendUint(b, l.Time[row], 10)
	if v.Setup.Style >= Style202403 {
		b = append(b, ", "...)
		var data uint64
		if l.Data != nil {
			data = l.Data[row]
		}
		b = strconv.AppendUint(b, data, 10)
	}
	return string(v.tail(b, l.Lanes[lane].Risc, lane, risc, core))
}

func (v *Vendor) tail(b []byte, name string, lane int, risc, core bool) []byte {
	if risc {
		b = append(b, ", "...)
		b = pyRepr(b, name)
	}
	if core {
		ln := &v.Log.Lanes[lane]
		b = fmt.Appendf(b, ", (%d, %d)", ln.X, ln.Y)
	}
	return append(b, ')')
}

// marker is the dict of one marker.
func (v *Vendor) marker(b []byte, row uint32) []byte {
	l := v.Log
	d := &l.Defs[l.Def[row]]
	k := &l.Keys[d.Key]
	run := &l.Runs[l.Run[row]]
	names := [...]string{"zone_name", "zone_phase", "src_line", "src_file"}
	switch v.Setup.Style {
	case Style2023, Style202402:
		names = [...]string{"zoneName", "zonePhase", "srcLine", "srcFile"}
	case StyleHostID:
		names[1] = "type"
	}
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

// coreOps writes the launches of one core: each firmware start of BRISC or
// ERISC opens one.
func (v *Vendor) coreOps(j *pyJSON, core *Core, gm globalMin) {
	l := v.Log
	j.key("ops")
	j.open('[')
	open := false
	start := func() {
		if v.Setup.Style != Style202402 {
			j.open('{')
			j.key("timeseries")
		}
		j.open('[')
		open = true
	}
	end := func() {
		if !open {
			return
		}
		j.close(']')
		if v.Setup.Style != Style202402 {
			j.close('}')
		}
	}
	mergeLanes(l, core.Lanes, v.inserted(), gm.time, func(lane int, row uint32) {
		if row == noRow {
			if open { // inserted elements can lie behind the first start
				j.str(v.zeroText(lane, gm, true, false))
			}
			return
		}
		d := &l.Defs[l.Def[row]]
		risc := l.Lanes[lane].Risc
		if d.Type == zonelog.MarkerStart && (risc == "BRISC" || risc == "ERISC") && l.Keys[d.Key].Name == risc+"-FW" {
			end()
			start()
		}
		if open {
			j.str(v.text(lane, row, true, false))
		}
	})
	end()
	j.close(']')
}

// coreOpsByID writes the launches of one core as the scripts of 2025 on find
// them: by host id, closed at every firmware end of BRISC or ERISC; what
// comes behind it is in the next one, and what is open at the end in none.
// Of a dispatch core it writes what it did for programs.
func (v *Vendor) coreOpsByID(j *pyJSON, d, c int) {
	l := v.Log
	j.key("ops")
	if slices.Contains(v.Devices[d].dispatchCores, c) {
		v.dispatchOps(j, d, c)
		return
	}
	byID := map[int64][]uint32{}
	var ids []int64
	mergeLanes(l, v.Topo.Cores[c].Lanes, false, 0, func(_ int, row uint32) {
		id := l.Runs[l.Run[row]].HostID
		if id <= 0 || l.Defs[l.Def[row]].Timer == 0 {
			return
		}
		if byID[id] == nil {
			ids = append(ids, id)
		}
		byID[id] = append(byID[id], row)
	})
	var ops [][]uint32
	var open []uint32
	for _, id := range ids {
		for _, row := range byID[id] {
			open = append(open, row)
			def := &l.Defs[l.Def[row]]
			risc := l.Lanes[l.LaneOfMarker(int(row))].Risc
			if def.Type == zonelog.MarkerEnd && (risc == "BRISC" || risc == "ERISC") && l.Keys[def.Key].Name == risc+"-FW" {
				ops = append(ops, open)
				open = nil
			}
		}
	}
	j.open('[')
	for _, rows := range ops {
		j.open('{')
		v.rows(j, rows)
		j.close('}')
	}
	j.close(']')
}

// dispatchOps writes what dispatch cores did for programs, all of the device
// or those of core c.
func (v *Vendor) dispatchOps(j *pyJSON, d, c int) {
	j.open('[')
	for n := range v.Devices[d].Launches.dispatch {
		op := &v.Devices[d].Launches.dispatch[n]
		if c >= 0 && op.core != c {
			continue
		}
		j.open('{')
		v.units(j, d, func(s *Series, _ *Analysis) bool { return s.Dispatch == n+1 })
		v.rows(j, op.rows)
		j.close('}')
	}
	j.close(']')
}

// rows writes the elements of one core's launch.
func (v *Vendor) rows(j *pyJSON, rows []uint32) {
	j.key("timeseries")
	j.open('[')
	for _, row := range rows {
		j.str(v.text(v.Log.LaneOfMarker(int(row)), row, true, false))
	}
	j.close(']')
}

// coreAnalysis writes the analyses across cores of one core.
func (v *Vendor) coreAnalysis(j *pyJSON, d, core int) {
	v.iteration = nil
	if v.Setup.Style == StyleHostID {
		v.iterations(d, core, v.Topo.Cores[core].Lanes)
	}
	v.units(j, d, func(s *Series, a *Analysis) bool { return a.Across == "core" && s.Core == core })
}

// iterations finds, for the markers at both ends of the durations of a core
// or, for -1, the device, the last firmware start before.
func (v *Vendor) iterations(d, core int, lanes []int) {
	v.iteration = map[uint32]uint32{}
	for i := range v.Devices[d].Results {
		r := &v.Devices[d].Results[i]
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

// iterationMark writes the firmware start before a marker.
func (v *Vendor) iterationMark(j *pyJSON, key string, row uint32) {
	j.key(key)
	mark, ok := v.iteration[row]
	if !ok || mark == noRow {
		j.raw("null")
		return
	}
	b := append([]byte(nil), '(')
	b = v.marker(b, mark)
	b = append(b, ", "...)
	b = strconv.AppendUint(b, v.Log.Time[mark], 10)
	j.str(string(append(b, ')')))
}

func (v *Vendor) deviceUnit(j *pyJSON, d int) {
	v.iteration = nil
	if v.Setup.Style == StyleHostID {
		v.iterations(d, -1, v.Topo.ByDevice[d])
	}
	v.units(j, d, func(_ *Series, a *Analysis) bool { return a.Across == "device" })
}

// units writes "analysis" with the series that take part, where there is one.
func (v *Vendor) units(j *pyJSON, d int, take func(*Series, *Analysis) bool) {
	opened := false
	for _, r := range v.sorted(d) {
		for i := range r.Series {
			s := &r.Series[i]
			if !take(s, r.Analysis) {
				continue
			}
			if !opened {
				j.key("analysis")
				j.open('{')
				opened = true
			}
			v.unit(j, r, s)
		}
	}
	if opened {
		j.close('}')
	}
}

func (v *Vendor) sorted(d int) []*Result {
	out := make([]*Result, 0, len(v.Devices[d].Results))
	for i := range v.Devices[d].Results {
		out = append(out, &v.Devices[d].Results[i])
	}
	slices.SortFunc(out, func(a, b *Result) int { return strings.Compare(a.Analysis.Name, b.Analysis.Name) })
	return out
}

// unit writes the analysis of one launch, core or device.
func (v *Vendor) unit(j *pyJSON, r *Result, s *Series) {
	j.key(r.Analysis.Name)
	j.open('{')
	j.key("analysis")
	v.definition(j, r.Analysis)
	j.key("series")
	j.open('[')
	for i := range s.Values {
		d := &s.Values[i]
		j.open('{')
		kind := "duration_type"
		if v.Setup.Style <= Style202402 {
			j.key("diff")
			j.raw(strconv.FormatUint(d.Cycles, 10))
			kind = "durationType"
		} else {
			j.key("duration_cycles")
			j.raw(strconv.FormatUint(d.Cycles, 10))
		}
		j.key(kind)
		if r.Analysis.Kind == DataSum {
			v.condition(j, r.Analysis, &r.Analysis.Start)
			j.close('}')
			continue
		}
		b := []byte{'('}
		if d.StartRow == noRow {
			b = append(b, "{'id': 0}"...)
		} else {
			b = v.marker(b, d.StartRow)
		}
		b = append(b, ", "...)
		b = append(v.marker(b, d.EndRow), ')')
		j.str(string(b))
		if v.Setup.Style <= Style202402 {
			j.key("end")
			j.raw(strconv.FormatUint(d.End, 10))
			j.key("start")
			j.raw(strconv.FormatUint(d.Start, 10))
		} else {
			j.key("end_cycle")
			j.raw(strconv.FormatUint(d.End, 10))
			if v.iteration != nil && r.Analysis.Kind == Adjacent {
				v.iterationMark(j, "end_iter_mark", d.EndRow)
			}
			j.key("start_cycle")
			j.raw(strconv.FormatUint(d.Start, 10))
			if v.iteration != nil && r.Analysis.Kind == Adjacent {
				v.iterationMark(j, "start_iter_mark", d.StartRow)
			}
		}
		j.close('}')
	}
	j.close(']')
	j.key("stats")
	writeStats(j, &s.Stats, true)
	j.close('}')
}

func writeStats(j *pyJSON, s *Stats, first bool) {
	j.open('{')
	j.key("Average")
	j.raw(pyFloat(s.Average))
	j.key("Count")
	j.raw(strconv.FormatUint(s.Count, 10))
	if first {
		j.key("First")
		j.raw(strconv.FormatUint(s.First, 10))
	}
	j.key("Max")
	j.raw(strconv.FormatUint(s.Max, 10))
	j.key("Median")
	j.raw(pyFloat(s.Median))
	j.key("Min")
	j.raw(strconv.FormatUint(s.Min, 10))
	j.key("Range")
	j.raw(strconv.FormatUint(s.Range, 10))
	j.key("Sum")
	j.raw(strconv.FormatUint(s.Sum, 10))
	j.close('}')
}

func (v *Vendor) deviceAnalysis(j *pyJSON, d int) {
	opened := false
	for _, r := range v.sorted(d) {
		if len(r.Series) == 0 {
			continue
		}
		if !opened {
			j.key("analysis")
			j.open('{')
			opened = true
		}
		j.key(r.Analysis.Name)
		j.open('{')
		j.key("analysis")
		v.definition(j, r.Analysis)
		j.key("stats")
		writeStats(j, &r.Stats, false)
		j.close('}')
	}
	if opened {
		j.close('}')
	}
}

// ops writes the launches of a device with their analyses and elements.
func (v *Vendor) ops(j *pyJSON, d int) {
	l, ls := v.Log, v.Devices[d].Launches
	rows := make([][]uint32, len(ls.List))
	lanes := v.Topo.ByDevice[d]
	cursors := make([]cursor, len(l.Lanes))
	for _, lane := range lanes {
		cursors[lane] = ls.cursor()
	}
	mergeLanes(l, lanes, false, 0, func(lane int, row uint32) {
		la := cursors[lane].launch(l.Run[row], place{l.Time[row], v.Topo.Rank[lane], row})
		if la >= 0 && l.Defs[l.Def[row]].Timer != 0 {
			rows[la] = append(rows[la], row)
		}
	})
	j.key("ops")
	j.open('[')
	for la := range ls.List {
		j.open('{')
		v.units(j, d, func(s *Series, _ *Analysis) bool { return s.Launch == la })
		j.key("timeseries")
		j.open('[')
		for _, row := range rows[la] {
			j.str(v.text(l.LaneOfMarker(int(row)), row, true, true))
		}
		j.close(']')
		j.close('}')
	}
	j.close(']')
}

// definition writes an analysis as the configuration has it.
func (v *Vendor) definition(j *pyJSON, a *Analysis) {
	j.open('{')
	j.key("across")
	j.str(a.Across)
	if a.Kind != DataSum {
		j.key("end")
		v.condition(j, a, &a.End)
	} else {
		j.key("marker")
		v.condition(j, a, &a.Start)
		j.key("type")
		j.str(a.Kind.String())
		j.close('}')
		return
	}
	j.key("start")
	v.condition(j, a, &a.Start)
	j.key("type")
	j.str(a.Kind.String())
	j.close('}')
}

func (v *Vendor) condition(j *pyJSON, a *Analysis, m *Match) {
	zone, phase := "zone_name", "zone_phase"
	if v.Setup.Style <= Style202402 {
		zone, phase = "zoneName", "zonePhase"
	}
	j.open('{')
	if m.Core != "" {
		j.key("core")
		j.str(m.Core)
	}
	j.key("risc")
	j.str(m.Risc)
	if len(m.Zones) > 0 {
		j.key(zone)
		if m.List {
			j.open('[')
			for _, z := range m.Zones {
				j.str(z)
			}
			j.close(']')
		} else {
			j.str(m.Zones[0])
		}
	}
	if m.Phase != "" {
		j.key(phase)
		j.str(m.Phase)
	}
	j.close('}')
}

func (v *Vendor) setup(j *pyJSON) {
	list := func(key string, items []string) {
		j.key(key)
		j.open('[')
		for _, s := range items {
			j.str(s)
		}
		j.close(']')
	}
	j.open('{')
	j.key("detectOps")
	j.raw("true")
	j.key("deviceAnalysisData")
	j.str("device_analysis_data.json")
	j.key("deviceStatsTXT")
	j.str("device_stats.txt")
	j.key("deviceTarball")
	j.str("device_perf_results.tgz")
	list("displayStats", displayStats)
	j.key("outputFolder")
	j.str("output/device")
	list("riscTypes", riscTypes)
	list("riscs", []string{"BRISC", "NCRISC", "TRISC_0", "TRISC_1", "TRISC_2", "ERISC"})
	j.key("timerAnalysis")
	j.open('{')
	order := make([]*Analysis, 0, len(v.Setup.Analyses))
	for i := range v.Setup.Analyses {
		order = append(order, &v.Setup.Analyses[i])
	}
	slices.SortFunc(order, func(a, b *Analysis) int { return strings.Compare(a.Name, b.Name) })
	for _, a := range order {
		j.key(a.Name)
		v.definition(j, a)
	}
	j.close('}')
	j.close('}')
}

// laneHeap merges lanes by time, then by the script's order.
type laneHeap struct {
	l    *zonelog.DeviceLog
	head []laneHead
}

type laneHead struct {
	place
	lane, seq, end int
	zero           bool // the inserted element comes next
}

func (h *laneHeap) Len() int           { return len(h.head) }
func (h *laneHeap) Less(i, k int) bool { return h.head[i].less(&h.head[k]) }
func (h *laneHeap) Swap(i, k int)      { h.head[i], h.head[k] = h.head[k], h.head[i] }
func (h *laneHeap) Push(x any)         { h.head = append(h.head, x.(laneHead)) }
func (h *laneHeap) Pop() any {
	x := h.head[len(h.head)-1]
	h.head = h.head[:len(h.head)-1]
	return x
}

func (a *laneHead) less(b *laneHead) bool {
	if a.time != b.time {
		return a.time < b.time
	}
	if a.seq != b.seq {
		return a.seq < b.seq
	}
	return a.row < b.row
}

// mergeLanes visits the markers of lanes in time order; ties go in the order
// of the lanes. With zero, each lane starts with an element (row NoRow) at
// time t0.
func mergeLanes(l *zonelog.DeviceLog, lanes []int, zero bool, t0 uint64, visit func(lane int, row uint32)) {
	h := &laneHeap{l: l}
	for i, lane := range lanes {
		lo, hi := int(l.LaneOff[lane]), int(l.LaneOff[lane+1])
		x := laneHead{lane: lane, seq: i, end: hi, zero: zero}
		switch {
		case zero:
			x.place = place{time: t0, row: uint32(lo)}
		case lo < hi:
			x.place = place{time: l.Time[lo], row: uint32(lo)}
		default:
			continue
		}
		h.head = append(h.head, x)
	}
	heap.Init(h)
	for len(h.head) > 0 {
		x := &h.head[0]
		if x.zero {
			x.zero = false
			visit(x.lane, noRow)
		} else {
			visit(x.lane, x.row)
			x.row++
		}
		if int(x.row) >= x.end {
			heap.Pop(h)
			continue
		}
		x.time = l.Time[x.row]
		heap.Fix(h, 0)
	}
}
