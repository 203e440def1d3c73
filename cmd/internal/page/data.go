package page

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/dustin/go-humanize"

	"perfsim/cmd/internal/units"
	"perfsim/cmd/internal/web"
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/summary"
	"perfsim/systems/tracklayout"
)

// The runs a page stacks; the prediction is its first section.
const (
	sectionA = iota
	sectionB
	sectionMeasured
)

// viewer turns one block of a simulated world into what the page shows. Event
// ids are rows counted from the first of the block.
type viewer struct {
	p     *Module
	w     *components.World
	m     *components.Module
	block int
	first uint32
	end   uint32
	lanes []uint16 // lane of each row of the page that is no part of another
	rowOf []int    // row of the page by lane, -1 for none
	runs  []int    // what the sections of the page are

	succs        func() *successors
	laneBusy     func() []uint64
	measuredFrom uint64 // first measured start of the block, ns
	loops        []blockLoop
	loopsLeft    int // loops that are not drawn
	data         *web.Dataset
}

func newViewer(p *Module, block int) *viewer {
	m := p.w.Module
	v := &viewer{p: p, w: p.w, m: m, block: block, first: m.Blocks.First.At(block), end: m.Blocks.End.At(block)}
	used := make([]bool, m.Lanes.Len())
	lane, flags := m.Instr.Lane.Slice(), m.Instr.Flags.Slice()
	for i := v.first; i < v.end; i++ {
		if flags[i]&components.FlagLoop == 0 {
			used[lane[i]] = true
		}
	}
	v.rowOf = make([]int, len(used))
	for l := range used {
		v.rowOf[l] = -1
		if used[l] {
			v.rowOf[l] = len(v.lanes)
			v.lanes = append(v.lanes, uint16(l))
		}
	}
	v.succs = sync.OnceValue(func() *successors { return newSuccessors(m, v.first, v.end) })
	v.laneBusy = sync.OnceValue(v.busyOfLanes)
	v.findLoops()
	return v
}

func (v *viewer) loop(i uint32) bool { return v.m.Instr.Flags.At(int(i))&components.FlagLoop != 0 }

// runsOf returns how often the block runs, at least 1.
func (v *viewer) runsOf() uint64 {
	return max(v.m.Functions.Runs.At(int(v.m.Blocks.Function.At(v.block))), 1)
}

// busyOfLanes returns the busy time of every lane in one run of the block.
func (v *viewer) busyOfLanes() []uint64 {
	if len(v.p.blocks) == 1 {
		busy := v.p.res.Summary().Busy(v.m.Lanes.Len())
		for l := range busy {
			busy[l] /= v.runsOf()
		}
		return busy
	}
	busy := make([]uint64, v.m.Lanes.Len())
	rows := v.p.rowBusy()
	for i := v.first; i < v.end; i++ {
		l := v.m.Instr.Lane.At(int(i))
		busy[l] = ecs.AddSat(busy[l], rows[i])
	}
	for l := range busy {
		busy[l] /= v.runsOf()
	}
	return busy
}

func (v *viewer) dataset() *web.Dataset {
	m := v.m
	r := v.w.Blocks[v.block]
	d := &web.Dataset{Detail: v.detail, Search: v.search, Attribute: v.attribute, Groups: v.groups, Classes: classes[:], Counters: v.counters,
		Facts: []web.Fact{{Name: "instructions", Value: humanize.Comma(int64(v.end - v.first))}}}
	if !m.HasNote(components.NoteNoLatency) {
		d.Facts = append(d.Facts, web.Fact{Name: "latency", Value: units.Nanos(r.Extent(components.RunA))})
	}
	v.data = d
	if n := v.runsOf(); n > 1 {
		d.Facts = append(d.Facts, web.Fact{Name: "runs", Value: humanize.Comma(int64(min(n, math.MaxInt64)))})
	}
	for op := range m.NumOpcodes() {
		name := m.OpcodeName(components.Opcode(op))
		d.Kinds = append(d.Kinds, name)
		d.Quiet = append(d.Quiet, v.w.Machine.Reference.Costs[name].Form == "none") // what no engine computes
	}
	for c := range components.NumEventCauses {
		d.Causes = append(d.Causes, c.String())
	}
	if len(v.loops) > 0 {
		d.Work = v.work()
	}
	if v.loopsLeft > 0 {
		d.Facts = append(d.Facts, web.Fact{Name: "loops drawn", Value: fmt.Sprintf("the %s longest, not %s shorter ones", humanize.Comma(mostLoops), humanize.Comma(int64(v.loopsLeft)))})
	}
	for _, l := range v.loops {
		d.Loops = append(d.Loops, l.info)
	}
	name := "predicted"
	if v.w.Replayed() {
		name = tracklayout.ReplayedRun
	}
	d.Sections = append(d.Sections, web.Section{Name: name, Span: r.Extent(components.RunA), Rows: v.emptyRows(v.laneBusy()),
		Fill: func() []web.Row { return v.placed(components.RunA) }})
	v.runs = append(v.runs, sectionA)
	if v.w.NoRunB == "" {
		d.Facts = append(d.Facts, web.Fact{Name: "without anti-dependencies", Value: units.Nanos(r.Extent(components.RunB))})
		d.Sections = append(d.Sections, web.Section{Name: "without anti-dependencies", Span: r.Extent(components.RunB), Rows: v.emptyRows(nil), Folded: true,
			Fill: func() []web.Row { return v.placed(components.RunB) }})
		v.runs = append(v.runs, sectionB)
	}
	if m.HasMeasurement() && !v.w.Replayed() { // a replay is its measurement
		lo, hi := ^uint64(0), uint64(0)
		start, dur := m.Instr.MeasuredStart.Slice(), m.Instr.MeasuredDur.Slice()
		for i := v.first; i < v.end; i++ {
			lo, hi = min(lo, start[i]), max(hi, start[i]+uint64(dur[i]))
		}
		v.measuredFrom = lo
		d.Facts = append(d.Facts, web.Fact{Name: tracklayout.MeasuredName(m), Value: units.Nanos(hi - lo)})
		var busy []uint64
		if len(v.p.blocks) == 1 {
			busy = summary.MeasuredBusy(m)
		}
		d.Sections = append(d.Sections, web.Section{Name: tracklayout.MeasuredName(m), Span: hi - lo, Rows: v.emptyRows(busy), Fill: v.measured})
		v.runs = append(v.runs, sectionMeasured)
	}
	return d
}

// work returns the executions and the busy time of one run of the block by
// opcode.
func (v *viewer) work() []web.Work {
	out := make([]web.Work, v.m.NumOpcodes())
	for k := range out {
		out[k].Kind = k
	}
	busy, runs := v.p.rowBusy(), v.runsOf()
	for i := v.first; i < v.end; i++ {
		if !v.loop(i) {
			w := &out[v.m.Instr.Opcode.At(int(i))]
			w.Events += int(min(v.p.times.At(components.InstrID(i))/runs, math.MaxInt32))
			w.Time += busy[i] / runs
		}
	}
	return out
}

// attribute finds what held every event of run A and the critical path.
func (v *viewer) attribute() (set func(), err error) {
	why, err := v.p.why()
	if err != nil {
		return nil, err
	}
	rows := v.data.Sections[sectionA].Rows
	cause, critical := make([][]uint8, len(rows)), make([][]bool, len(rows))
	for r := range rows {
		n := len(rows[r].ID)
		cause[r], critical[r] = make([]uint8, n), make([]bool, n)
		for k, id := range rows[r].ID {
			i := v.first + id
			cause[r][k] = uint8(why.attr.Cause.At(int(i))) + 1
			critical[r][k] = why.critical.Has(i)
		}
	}
	return func() {
		for r := range cause {
			v.data.Sections[sectionA].Rows[r].Cause, v.data.Sections[sectionA].Rows[r].Critical = cause[r], critical[r]
		}
	}, nil
}

// placed returns the rows of a run. An event is drawn as long as it keeps its
// lane; the parts of a row have whole events.
func (v *viewer) placed(r components.Run) []web.Row {
	var busy []uint64
	if r == components.RunA {
		busy = v.laneBusy()
	}
	rows := v.sized(busy)
	lane, flags := v.m.Instr.Lane.Slice(), v.m.Instr.Flags.Slice()
	var transfers []components.Transfer
	if r == components.RunA {
		transfers = v.w.Transfers
	}
	for i := v.first; i < v.end; i++ {
		if flags[i]&components.FlagLoop != 0 {
			continue
		}
		start, end := v.w.Events.Span(v.m, components.InstrID(i), r)
		v.addEvent(&rows[v.rowOf[lane[i]]], i, start, end)
	}
	whole := v.whole(rows, transfers)
	v.order(rows)
	v.addLoops(rows, r)
	return append(rows, v.parts(rows, whole)...)
}

// measured returns the rows of the measurement.
func (v *viewer) measured() []web.Row {
	var busy []uint64
	if len(v.p.blocks) == 1 {
		busy = summary.MeasuredBusy(v.m)
	}
	rows := v.sized(busy)
	start, dur := v.m.Instr.MeasuredStart.Slice(), v.m.Instr.MeasuredDur.Slice()
	for i := v.first; i < v.end; i++ {
		if !v.loop(i) {
			at := start[i] - v.measuredFrom
			v.addEvent(&rows[v.rowOf[v.m.Instr.Lane.At(int(i))]], i, at, at+uint64(dur[i]))
		}
	}
	whole := v.whole(rows, nil)
	v.order(rows)
	return append(rows, v.parts(rows, whole)...)
}

// emptyRows returns the rows of the lanes; busy is by lane, nil where it is not
// known.
func (v *viewer) emptyRows(busy []uint64) []web.Row {
	rows := make([]web.Row, len(v.lanes))
	for r, l := range v.lanes {
		rows[r].Name = v.m.LaneName(l)
		if busy != nil {
			rows[r].Busy = busy[l]
		}
	}
	return rows
}

// sized returns emptyRows with room for their events.
func (v *viewer) sized(busy []uint64) []web.Row {
	rows := v.emptyRows(busy)
	count := make([]int, len(v.rowOf))
	for _, l := range v.m.Instr.Lane.Slice()[v.first:v.end] {
		count[l]++
	}
	for r, l := range v.lanes {
		n := count[l]
		rows[r].Start, rows[r].End, rows[r].ID, rows[r].Kind = make([]uint64, 0, n), make([]uint64, 0, n), make([]uint32, 0, n), make([]uint16, 0, n)
	}
	return rows
}

func (v *viewer) addEvent(row *web.Row, i uint32, start, end uint64) {
	row.Start = append(row.Start, start)
	row.End = append(row.End, end)
	row.ID = append(row.ID, i-v.first)
	row.Kind = append(row.Kind, uint16(v.m.Instr.Opcode.At(int(i))))
}

// order sorts the events of rows that do not ascend yet and cuts each at the
// start of the next, so that nothing overlaps.
func (v *viewer) order(rows []web.Row) {
	for n := range rows {
		r := &rows[n]
		if !slices.IsSorted(r.Start) {
			sortRow(r)
		}
		for i := 1; i < len(r.Start); i++ {
			r.End[i-1] = min(r.End[i-1], r.Start[i])
		}
	}
}

func sortRow(r *web.Row) {
	at := make([]int, len(r.Start))
	for i := range at {
		at[i] = i
	}
	sort.SliceStable(at, func(a, b int) bool { return r.Start[at[a]] < r.Start[at[b]] })
	old := *r
	r.Start, r.End, r.ID, r.Kind = nil, nil, nil, nil
	for _, i := range at {
		r.Start = append(r.Start, old.Start[i])
		r.End = append(r.End, old.End[i])
		r.ID = append(r.ID, old.ID[i])
		r.Kind = append(r.Kind, old.Kind[i])
	}
}

// span returns the times of an event in a section, whole and uncut.
func (v *viewer) span(section int, i uint32) (start, end uint64) {
	run := v.runs[section]
	if run == sectionMeasured {
		start = v.m.Instr.MeasuredStart.At(int(i)) - v.measuredFrom
		return start, start + uint64(v.m.Instr.MeasuredDur.At(int(i)))
	}
	return v.w.Events.Span(v.m, components.InstrID(i), components.Run(run))
}

func (v *viewer) detail(section int, id uint32) (web.Detail, bool) {
	if uint64(id) >= uint64(v.end-v.first) || v.loop(v.first+id) {
		return web.Detail{}, false
	}
	i := v.first + id
	in := &v.m.Instr
	start, end := v.span(section, i)
	d := web.Detail{ID: id, Row: v.rowOf[in.Lane.At(int(i))], Name: v.m.InstrName(components.InstrID(i)), Start: start, End: end,
		Source: v.m.Symbols.String(in.Source.Get(int(i)))}
	fact := func(name, value string) {
		if value != "" {
			d.Facts = append(d.Facts, web.Fact{Name: name, Value: value})
		}
	}
	fact("opcode", v.m.OpcodeName(in.Opcode.At(int(i))))
	fact("function", v.m.Symbols.String(in.Func.Get(int(i))))
	fact("scope", v.m.Symbols.String(in.Scope.Get(int(i))))
	fact("operator", v.m.Symbols.String(in.HLO.Get(int(i))))
	if n := v.p.times.At(components.InstrID(i)) / v.runsOf(); n > 1 {
		fact("executions", humanize.Comma(int64(n))+" in one run of the block")
	}
	if n := in.Elems.At(int(i)); n > 0 {
		fact("geometry", fmt.Sprintf("%s elements × %d partitions, %s", humanize.Comma(int64(n)), in.Parts.At(int(i)), in.DType.At(int(i))))
	}
	if n := in.DMABytes.Get(int(i)); n > 0 {
		fact("moves", humanize.IBytes(n))
	}
	fact("issue interval, latency", units.Nanos(uint64(in.Issue.At(int(i))))+", "+units.Nanos(v.w.Events.Duration(v.m, components.InstrID(i), components.RunA)))
	why := v.p.known.Load() // nil until it was worked out
	if section != sectionA {
		why = nil
	}
	if why != nil {
		fact("held by", why.attr.Cause.At(int(i)).Text())
		fact("slack", units.Nanos(why.slack[i]))
		if why.critical.Has(i) {
			fact("critical path", "yes")
		}
	}
	for other := range v.runs {
		if other != section {
			start, end := v.span(other, i)
			d.Others = append(d.Others, web.Other{Section: other, Start: start, End: end})
		}
	}
	fact("operands", v.m.Symbols.String(in.Text.Get(int(i))))
	binds := func(pred, succ uint32) bool {
		return why != nil && why.attr.Pred.At(int(succ)) == components.InstrID(pred)
	}
	for _, w := range v.m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		d.Preds = append(d.Preds, v.link(section, p, w, start, true, binds(p, i)))
	}
	for _, s := range v.succs().of(i) {
		for _, w := range v.m.Edges.Preds.Row(int(s)) {
			if w&ecs.TargetMask == i {
				d.Succs = append(d.Succs, v.link(section, s, w, end, false, binds(i, s)))
			}
		}
	}
	return d, true
}

// link describes the other end of an edge; at is when this end releases or
// starts.
func (v *viewer) link(section int, other, word uint32, at uint64, pred, binds bool) web.Link {
	start, end := v.span(section, other)
	gap := int64(at) - int64(end)
	if !pred {
		gap = int64(start) - int64(at)
	}
	return web.Link{ID: other - v.first, Row: v.rowOf[v.m.Instr.Lane.At(int(other))], Name: v.m.InstrName(components.InstrID(other)), Start: start, End: end,
		Kind: components.KindOfClass(uint8(word >> ecs.ClassShift)).String(), Gap: gap, Binds: binds}
}

// search finds events by name, opcode, operator, scope or source line; with
// scopePrefix those of one scope and the scopes below it.
func (v *viewer) search(text string, limit int) []web.Hit {
	path, inScope := strings.CutPrefix(text, scopePrefix)
	text = strings.ToLower(text)
	in := &v.m.Instr
	opcode := make([]bool, v.m.NumOpcodes())
	for op := range opcode {
		opcode[op] = web.Contains(v.m.OpcodeName(components.Opcode(op)), text)
	}
	var hits []web.Hit
	var name []byte
	for i := v.first; i < v.end && len(hits) < limit; i++ {
		if v.loop(i) {
			continue
		}
		name = v.m.AppendInstrName(name[:0], components.InstrID(i))
		if inScope {
			if s := v.placeOf(i); s != path && !strings.HasPrefix(s, path+"/") {
				continue
			}
		} else if !(opcode[in.Opcode.At(int(i))] || web.Contains(string(name), text) ||
			web.Contains(v.m.Symbols.String(in.HLO.Get(int(i))), text) || web.Contains(v.m.Symbols.String(in.Source.Get(int(i))), text) ||
			web.Contains(v.m.Symbols.String(in.Scope.Get(int(i))), text)) {
			continue
		}
		start, end := v.span(sectionA, i)
		hits = append(hits, web.Hit{Section: sectionA, Row: v.rowOf[in.Lane.At(int(i))], ID: i - v.first, Name: string(name), Start: start, End: end})
	}
	return hits
}

// static gathers what the page as one file needs of the events with these ids.
func (v *viewer) static(ids []uint32) web.Static {
	s := web.Static{Names: []string{""}, Sources: []string{""}, Scopes: []string{""}}
	for c := range components.NumClasses {
		s.EdgeKinds = append(s.EdgeKinds, components.KindOfClass(c).String())
	}
	names, sources, scopes := v.texts(&s.Names), v.texts(&s.Sources), v.texts(&s.Scopes)
	in := &v.m.Instr
	for _, id := range ids {
		i := v.first + id
		name := names(in.Name.Get(int(i)))
		if name == 0 && v.first > 0 { // the page calls it by its place in the block
			name = uint32(len(s.Names))
			s.Names = append(s.Names, v.m.InstrName(components.InstrID(i)))
		}
		s.Name = append(s.Name, name)
		s.Source = append(s.Source, sources(in.Source.Get(int(i))))
		s.Scope = append(s.Scope, scopes(v.m.ScopeOf(components.InstrID(i))))
		row := v.m.Edges.Preds.Row(int(i))
		s.Off = append(s.Off, uint32(len(row)))
		for _, w := range row {
			s.Back = append(s.Back, i-w&ecs.TargetMask)
			s.Kind = append(s.Kind, w>>ecs.ClassShift)
		}
	}
	return s
}

// texts returns a function that numbers symbols in the order in which they are
// met and appends their texts to list; 0 is no text.
func (v *viewer) texts(list *[]string) func(ecs.Symbol) uint32 {
	seen := make([]uint32, v.m.Symbols.Len())
	return func(sym ecs.Symbol) uint32 {
		if sym == 0 || int(sym) >= len(seen) {
			return 0
		}
		if seen[sym] == 0 {
			seen[sym] = uint32(len(*list))
			*list = append(*list, v.m.Symbols.String(sym))
		}
		return seen[sym]
	}
}
