package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"perfsim/cmd/internal/web"
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems"
	"perfsim/systems/tracklayout"
)

// The runs a page stacks; the prediction is its first section.
const (
	sectionA = iota
	sectionB
	sectionMeasured
)

// attribute finds what held every event of run A, the critical path and the
// slack.
func (v *viewer) attribute(ctx context.Context, r *systems.Result) error {
	var err error
	if v.attr, err = r.Why(ctx, components.RunA); err != nil {
		return err
	}
	if v.slack, err = r.Slack(ctx); err != nil {
		return err
	}
	paths, err := r.Paths(ctx)
	if err != nil {
		return err
	}
	v.crit = make([]bool, v.end-v.first)
	for _, p := range paths {
		for _, i := range p.Steps {
			if uint32(i) >= v.first && uint32(i) < v.end {
				v.crit[uint32(i)-v.first] = true
			}
		}
	}
	return nil
}

func (v *viewer) dataset() *web.Dataset {
	m := v.m
	latency := v.w.Blocks[v.block]
	d := &web.Dataset{Title: m.Name, Detail: v.detail, Search: v.search, Blocks: blockFacts(v.w), Facts: []web.Fact{
		{Name: "block", Value: m.FunctionName(int(m.Blocks.Function.At(v.block))) + "/" + m.BlockName(v.block)},
		{Name: "machine", Value: v.machine()},
		{Name: "instructions", Value: humanize.Comma(int64(v.end - v.first))},
		{Name: "latency", Value: nanos(latency.Extent(0))},
	}}
	for op := range m.NumOpcodes() {
		name := m.OpcodeName(components.Opcode(op))
		d.Kinds = append(d.Kinds, name)
		d.Quiet = append(d.Quiet, v.w.Machine.Reference.Costs[name].Form == "none") // what no engine computes
	}
	for c := range components.NumEventCauses {
		d.Causes = append(d.Causes, c.String())
	}
	name := "predicted"
	if v.w.Replayed() {
		name = "replayed"
	}
	d.Sections = append(d.Sections, web.Section{Name: name, Span: latency.Extent(0), Rows: v.placed(components.RunA)})
	v.runs = append(v.runs[:0], sectionA)
	if v.w.NoRunB == "" {
		d.Facts = append(d.Facts, web.Fact{Name: "without anti-dependencies", Value: nanos(latency.Extent(1))})
		d.Sections = append(d.Sections, web.Section{Name: "without anti-dependencies", Span: latency.Extent(1), Rows: v.placed(components.RunB),
			Folded: m.HasMeasurement()}) // prediction and measurement are what to compare
		v.runs = append(v.runs, sectionB)
	}
	if m.HasMeasurement() && !v.w.Replayed() { // a replay is its measurement
		rows, span := v.measured()
		d.Facts = append(d.Facts, web.Fact{Name: tracklayout.MeasuredName(m), Value: nanos(span)})
		d.Sections = append(d.Sections, web.Section{Name: tracklayout.MeasuredName(m), Span: span, Rows: rows})
		v.runs = append(v.runs, sectionMeasured)
	}
	return d
}

// machine says what was simulated.
func (v *viewer) machine() string {
	if v.w.Replayed() {
		return "none: replayed"
	}
	return v.w.Machine.Name + ", " + v.w.Config.Model.String()
}

// placed returns the rows of a run. An event is drawn as long as it keeps its
// lane.
func (v *viewer) placed(r components.Run) []web.Row {
	rows := v.emptyRows()
	for i := v.first; i < v.end; i++ {
		if v.loop(i) {
			continue
		}
		start, end := v.w.Events.Span(v.m, components.InstrID(i), r)
		v.addEvent(rows, i, start, end, r == components.RunA)
	}
	v.order(rows)
	return rows
}

// measured returns the rows of the measurement and its span.
func (v *viewer) measured() ([]web.Row, uint64) {
	rows := v.emptyRows()
	start, dur := v.m.Instr.MeasuredStart.Slice(), v.m.Instr.MeasuredDur.Slice()
	lo, hi := ^uint64(0), uint64(0)
	for i := v.first; i < v.end; i++ {
		lo, hi = min(lo, start[i]), max(hi, start[i]+uint64(dur[i]))
	}
	v.measuredFrom = lo
	for i := v.first; i < v.end; i++ {
		if !v.loop(i) {
			v.addEvent(rows, i, start[i]-lo, start[i]-lo+uint64(dur[i]), false)
		}
	}
	v.order(rows)
	return rows, hi - lo
}

func (v *viewer) emptyRows() []web.Row {
	rows := make([]web.Row, len(v.lanes))
	for r, l := range v.lanes {
		rows[r].Name = v.m.LaneName(l)
	}
	return rows
}

func (v *viewer) addEvent(rows []web.Row, i uint32, start, end uint64, attributed bool) {
	row := &rows[v.rowOf[v.m.Instr.Lane.At(int(i))]]
	row.Start = append(row.Start, start)
	row.End = append(row.End, end)
	row.ID = append(row.ID, i-v.first)
	row.Kind = append(row.Kind, uint16(v.m.Instr.Opcode.At(int(i))))
	if attributed {
		row.Cause = append(row.Cause, uint8(v.attr.Cause.At(int(i)))+1)
		row.Critical = append(row.Critical, v.crit[i-v.first])
	}
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
	slices.SortStableFunc(at, func(a, b int) int {
		switch {
		case r.Start[a] < r.Start[b]:
			return -1
		case r.Start[a] > r.Start[b]:
			return 1
		}
		return 0
	})
	old := *r
	r.Start, r.End, r.ID, r.Kind = nil, nil, nil, nil
	if old.Cause != nil {
		r.Cause, r.Critical = nil, nil
	}
	for _, i := range at {
		r.Start = append(r.Start, old.Start[i])
		r.End = append(r.End, old.End[i])
		r.ID = append(r.ID, old.ID[i])
		r.Kind = append(r.Kind, old.Kind[i])
		if old.Cause != nil {
			r.Cause = append(r.Cause, old.Cause[i])
			r.Critical = append(r.Critical, old.Critical[i])
		}
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
	fact("HLO", v.m.Symbols.String(in.HLO.Get(int(i))))
	if n := in.Elems.At(int(i)); n > 0 {
		fact("geometry", fmt.Sprintf("%s elements × %d partitions, %s", humanize.Comma(int64(n)), in.Parts.At(int(i)), in.DType.At(int(i))))
	}
	if n := in.DMABytes.Get(int(i)); n > 0 {
		fact("moves", humanize.IBytes(n))
	}
	fact("issue interval, latency", nanos(uint64(in.Issue.At(int(i))))+", "+nanos(v.w.Events.Duration(v.m, components.InstrID(i), components.RunA)))
	if section == sectionA {
		fact("held by", v.attr.Cause.At(int(i)).Text())
		fact("slack", nanos(v.slack[i]))
		if v.crit[id] {
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
	binding := v.attr.Pred.At(int(i))
	for _, w := range v.m.Edges.Preds.Row(int(i)) {
		p := w & ecs.TargetMask
		d.Preds = append(d.Preds, v.link(section, p, w, start, true, section == sectionA && components.InstrID(p) == binding))
	}
	for _, s := range v.succs.of(i) {
		for _, w := range v.m.Edges.Preds.Row(int(s)) {
			if w&ecs.TargetMask == i {
				d.Succs = append(d.Succs, v.link(section, s, w, end, false, section == sectionA && v.attr.Pred.At(int(s)) == components.InstrID(i)))
			}
		}
	}
	return d, true
}

// link describes the other end of an edge; at is when this end lets go or
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

// search finds events by name, opcode, HLO name or source line.
func (v *viewer) search(text string, limit int) []web.Hit {
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
		if opcode[in.Opcode.At(int(i))] || web.Contains(string(name), text) ||
			web.Contains(v.m.Symbols.String(in.HLO.Get(int(i))), text) || web.Contains(v.m.Symbols.String(in.Source.Get(int(i))), text) {
			start, end := v.span(sectionA, i)
			hits = append(hits, web.Hit{Section: sectionA, Row: v.rowOf[in.Lane.At(int(i))], ID: i - v.first, Name: string(name), Start: start, End: end})
		}
	}
	return hits
}

// static gathers what the page as one file needs.
func (v *viewer) static() web.Static {
	s := web.Static{Names: []string{""}, Sources: []string{""}}
	for c := range components.NumClasses {
		s.EdgeKinds = append(s.EdgeKinds, components.KindOfClass(c).String())
	}
	// Texts are numbered in the order in which they are met.
	index := func(list *[]string, seen []uint32, sym ecs.Symbol) uint32 {
		if sym == 0 || int(sym) >= len(seen) {
			return 0
		}
		if seen[sym] == 0 {
			seen[sym] = uint32(len(*list))
			*list = append(*list, v.m.Symbols.String(sym))
		}
		return seen[sym]
	}
	names, sources := make([]uint32, v.m.Symbols.Len()), make([]uint32, v.m.Symbols.Len())
	in := &v.m.Instr
	for i := v.first; i < v.end; i++ {
		name := index(&s.Names, names, in.Name.Get(int(i)))
		if name == 0 && v.first > 0 { // the page calls it by its place in the block
			name = uint32(len(s.Names))
			s.Names = append(s.Names, v.m.InstrName(components.InstrID(i)))
		}
		s.Name = append(s.Name, name)
		s.Source = append(s.Source, index(&s.Sources, sources, in.Source.Get(int(i))))
		row := v.m.Edges.Preds.Row(int(i))
		s.Off = append(s.Off, uint32(len(row)))
		for _, w := range row {
			s.Back = append(s.Back, i-w&ecs.TargetMask)
			s.Kind = append(s.Kind, w>>ecs.ClassShift)
		}
	}
	return s
}

// successors is the edge relation of one block the other way round.
type successors struct {
	first uint32
	off   []uint32
	to    []uint32
}

func newSuccessors(m *components.Module, first, end uint32) *successors {
	s := &successors{first: first, off: make([]uint32, end-first+1)}
	for i := first; i < end; i++ {
		for _, w := range m.Edges.Preds.Row(int(i)) {
			s.off[w&ecs.TargetMask-first+1]++
		}
	}
	for i := range end - first {
		s.off[i+1] += s.off[i]
	}
	s.to = make([]uint32, s.off[end-first])
	next := slices.Clone(s.off)
	for i := first; i < end; i++ {
		for _, w := range m.Edges.Preds.Row(int(i)) {
			p := w&ecs.TargetMask - first
			s.to[next[p]] = i
			next[p]++
		}
	}
	return s
}

// of returns the instructions that depend on i.
func (s *successors) of(i uint32) []uint32 { return s.to[s.off[i-s.first]:s.off[i-s.first+1]] }
