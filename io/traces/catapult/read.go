package catapult

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/jsonarray"
	"perfsim/io/internal/jsonscan"
)

// Importer reads traces of the perf_sim families, ours or the documented
// compiler's, back as a module whose durations and times are those of the
// trace.
var Importer = format.Importer{
	Name:   "perf_sim",
	Sniff:  sniff,
	Module: read,
}

// documentedTrace is the attribute that marks such a module: the replay model
// then uses the documented overlap windows (systems/cost.DocumentedTrace).
const documentedTrace = "perfsim.documented_trace"

// sniff looks for the first of the documented thread names.
func sniff(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("[")) && bytes.Contains(head, []byte(`"0. Unassigned"`))
}

// maxTid bounds thread ids: a lane is made for each.
const maxTid = 4096

// traceEvent is one complete event as the trace has it.
type traceEvent struct {
	name, opcode, source ecs.Symbol // of traceReader.symbols
	operands             ecs.Symbol // the arguments about operands, as they are written
	id                   uint64
	start, dur           uint64 // ns
	tid                  int
	barrier              bool // one that has no thread of its own
	chained              bool // writes PSUM in banks that the trace does not have
	transfer             bool // a transfer that a trigger started, with the trigger's id
	banks                uint16
	deps                 []traceDep
	offset               int64
}

type traceDep struct {
	id     uint64
	hasID  bool
	engine int // lane of a cross-engine producer, -1 for the same lane
	kind   components.EdgeKind
	end    uint64
}

func read(ctx context.Context, src *format.Source, _ format.Options) (*components.Module, error) {
	t := &traceReader{threads: map[int]string{}, symbols: ecs.NewSymbols()}
	err := jsonarray.New(src).Each("traceEvents", func(v jsonscan.Value, off int64) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.element(v, off); err != nil {
			return fmt.Errorf("byte %d: %w", off, err)
		}
		return nil
	}, nil)
	if err == nil {
		var m *components.Module
		if m, err = t.module(src.Name); err == nil {
			return m, nil
		}
	}
	if strings.HasPrefix(err.Error(), src.Name) {
		return nil, err
	}
	return nil, fmt.Errorf("%s: %w", src.Name, err)
}

type traceReader struct {
	threads map[int]string
	events  []traceEvent
	skipped int
	symbols *ecs.Symbols // texts of the events
	buf     []byte
	noOwner int // dependencies whose producer could not be found
}

// members are those of an event that mean something; of equal keys the first.
type members struct {
	ph, name, ts, dur, tid, args jsonscan.Value
}

func (m *members) of(key []byte) *jsonscan.Value {
	switch string(key) {
	case "ph":
		return &m.ph
	case "name":
		return &m.name
	case "ts":
		return &m.ts
	case "dur":
		return &m.dur
	case "tid":
		return &m.tid
	case "args":
		return &m.args
	}
	return nil
}

func (t *traceReader) element(v jsonscan.Value, off int64) error {
	if v.Kind() != jsonscan.Object {
		return fmt.Errorf("an event is an object, not %s", v.Kind())
	}
	var e members
	for m := v.Members(); m.Ok(); m = m.Next() {
		if to := e.of(m.Key()); to != nil && to.Kind() == jsonscan.Absent {
			*to = m.Value()
		}
	}
	switch string(e.ph.Bytes()) {
	case "M":
		if string(e.name.Bytes()) == "thread_name" {
			tid, err := number(e.tid, "tid", maxTid)
			if err != nil {
				return err
			}
			t.threads[int(tid)] = string(e.args.Get("name").Bytes())
		}
		return nil
	case "X":
		return t.complete(&e, off)
	default:
		t.skipped++ // arrows, counters and marks say nothing new
		return nil
	}
}

// arguments are those of an event that mean something; of equal keys the first.
type arguments struct {
	engine, opcode, source, name, id, latency, banks, deps jsonscan.Value
	operands                                               [len(operandKeys)]jsonscan.Value
}

func (a *arguments) of(key []byte) *jsonscan.Value {
	switch string(key) {
	case "engine":
		return &a.engine
	case "opcode":
		return &a.opcode
	case "nki_source_location":
		return &a.source
	case "bir_name":
		return &a.name
	case "bir_id":
		return &a.id
	case "latency_ns":
		return &a.latency
	case "psum_banks":
		return &a.banks
	case "deps":
		return &a.deps
	}
	for i, k := range operandKeys {
		if string(key) == k {
			return &a.operands[i]
		}
	}
	return nil
}

func (t *traceReader) complete(v *members, off int64) error {
	name := v.name.Bytes()
	e := traceEvent{offset: off}
	var err error
	if e.start, err = number(v.ts, "ts", math.MaxInt64); err != nil {
		return err
	}
	if e.dur, err = number(v.dur, "dur", math.MaxUint32); err != nil {
		return err
	}
	tid, err := number(v.tid, "tid", maxTid)
	if err != nil {
		return err
	}
	e.tid = int(tid)
	var a arguments
	for m := v.args.Members(); m.Ok(); m = m.Next() {
		if to := a.of(m.Key()); to != nil && to.Kind() == jsonscan.Absent {
			*to = m.Value()
		}
	}
	e.barrier = tid == 0 && string(a.engine.Bytes()) == "ALL"
	e.transfer = (string(name) == transferName || string(name) == nullName) && a.opcode.Kind() == jsonscan.Absent
	e.opcode = t.symbols.Intern(a.opcode.Bytes())
	e.source = t.symbols.Intern(a.source.Bytes())
	t.buf = t.buf[:0]
	for i, key := range operandKeys {
		t.buf = append(append(append(t.buf, `,"`...), key...), `":`...)
		t.buf = format.AppendJSONString(t.buf, a.operands[i].Bytes())
	}
	e.operands = t.symbols.Intern(t.buf)
	if n := a.name.Bytes(); len(n) > 0 {
		name = n
	}
	e.name = t.symbols.Intern(name)
	if e.id, err = idOf(a.id); err != nil {
		return fmt.Errorf("bir_id: %w", err)
	}
	if a.latency.Kind() != jsonscan.Absent {
		if e.dur, err = number(a.latency, "latency_ns", math.MaxUint32); err != nil {
			return err
		}
	}
	if a.banks.Len() == 2 {
		from, to := a.banks.At(0), a.banks.At(1)
		e.banks = bank(from) | bank(to)<<8
		e.chained = to.Kind() == jsonscan.Null
	}
	if e.deps, err = t.dependencies(a.deps); err != nil {
		return err
	}
	t.events = append(t.events, e)
	return nil
}

// bank returns the number of a PSUM bank, 0 where it is none.
func bank(v jsonscan.Value) uint16 {
	if v.Kind() != jsonscan.Number {
		return 0
	}
	n, _ := v.Uint64()
	return uint16(n & 0xff)
}

func (t *traceReader) dependencies(list jsonscan.Value) ([]traceDep, error) {
	var deps []traceDep
	for x := list.Elements(); x.Ok(); x = x.Next() {
		d := x.Value()
		dep := traceDep{engine: -1}
		kindName := d.Get("edge_type").Bytes()
		var ok bool
		if dep.kind, ok = components.ParseEdgeKind(string(kindName)); !ok {
			return nil, fmt.Errorf("edge_type %q of a dependency is not known", kindName)
		}
		var err error
		if id := d.Get("bir_id"); id.Kind() != jsonscan.Absent {
			if dep.id, err = idOf(id); err != nil {
				return nil, fmt.Errorf("bir_id of a dependency: %w", err)
			}
			dep.hasID = true
		}
		if end := d.Get("end_time"); end.Kind() != jsonscan.Absent {
			if dep.end, err = number(end, "end_time", math.MaxInt64); err != nil {
				return nil, err
			}
		}
		if eng, ok := strings.CutPrefix(string(d.Get("engine").Bytes()), "Engine"); ok {
			if n, err := strconv.Atoi(eng); err == nil && n >= 0 {
				dep.engine = min(n, math.MaxUint16) // a lane that no trace has
			}
		}
		deps = append(deps, dep)
	}
	return deps, nil
}

// number returns a whole number between 0 and most, given as such.
func number(x jsonscan.Value, key string, most uint64) (uint64, error) {
	switch x.Kind() {
	case jsonscan.Absent:
		return 0, fmt.Errorf("%s is missing", key)
	case jsonscan.Number:
	default:
		return 0, fmt.Errorf("%s is not a number", key)
	}
	n, err := x.Uint64()
	if err != nil {
		return 0, fmt.Errorf("%s: %.60s is not a whole number from 0 on", key, x.Text())
	}
	if n > most {
		return 0, fmt.Errorf("%s is %d, more than %d", key, n, most)
	}
	return n, nil
}

// idOf takes an id as a number or, as large ones are written, as a string.
func idOf(v jsonscan.Value) (uint64, error) {
	switch v.Kind() {
	case jsonscan.Absent:
		return 0, errors.New("missing")
	case jsonscan.String:
		return strconv.ParseUint(string(v.Bytes()), 10, 64)
	}
	return v.Uint64()
}

// module makes tables of the events. Program order is not in a trace; events
// are taken in the order of their ids where that puts every producer before
// its consumers, else by start, lanes kept in order.
func (t *traceReader) module(from string) (*components.Module, error) {
	if len(t.events) == 0 {
		return nil, errors.New("the trace has no complete events")
	}
	name := strings.TrimSuffix(path.Base(from), ".json")
	m := components.NewModule(name, "perf_sim")
	m.Attributes = append(m.Attributes, components.Attribute{Key: documentedTrace, Value: "1"})
	lanes, err := t.lanes(m)
	if err != nil {
		return nil, err
	}
	producers, err := t.producers(lanes)
	if err != nil {
		return nil, err
	}
	order, err := t.order(producers, func(e *traceEvent) uint16 { return laneOf(e, lanes) }, func(lane uint16) bool { return m.Lanes.Engine.At(int(lane)) == components.All })
	if err != nil {
		return nil, err
	}
	row := make([]uint32, len(order))
	for r, i := range order {
		row[i] = uint32(r)
	}
	m.Instr.Grow(len(order))
	in := &m.Instr
	in.Name.Resize(len(order))
	in.Source.Resize(len(order))
	in.Ref.Resize(len(order))
	in.Text.Resize(len(order))
	in.MeasuredStart.Resize(len(order))
	in.MeasuredDur.Resize(len(order))
	var edges components.EdgeSet
	triggers := 0
	opcodes := map[ecs.Symbol]components.Opcode{}
	for r, i := range order {
		e := &t.events[i]
		op, known := opcodes[e.opcode]
		if !known {
			op = m.Opcode(t.symbols.String(e.opcode))
			opcodes[e.opcode] = op
		}
		if e.transfer {
			op = components.OpcodeDMADescriptorCopy
		}
		lane := laneOf(e, lanes)
		in.Opcode.Set(r, op)
		in.Lane.Set(r, lane)
		in.Engine.Set(r, m.Lanes.Engine.At(int(lane)))
		in.Banks.Set(r, e.banks)
		in.DType.Set(r, components.NoDType)
		in.Name.Set(r, m.Symbols.Intern(t.symbols.Bytes(e.name)))
		in.Source.Set(r, m.Symbols.Intern(t.symbols.Bytes(e.source)))
		in.Ref.Set(r, e.id)
		in.Text.Set(r, m.Symbols.Intern(t.symbols.Bytes(e.operands)))
		in.MeasuredStart.Set(r, e.start)
		in.MeasuredDur.Set(r, uint32(e.dur))
		var f components.Flags
		switch {
		case op == components.OpcodeDMATrigger:
			f |= components.FlagTrigger
			triggers++
		case op == components.OpcodeCollectiveCompute:
			f |= components.FlagCollective
		case e.transfer:
			f |= components.FlagTransfer
		}
		if m.Lanes.Engine.At(int(lane)) == components.All {
			f |= components.FlagBarrier
		}
		if e.chained {
			f |= components.FlagDstPSUM
		}
		in.Flags.Set(r, f|components.FlagMeasured)
		for n, p := range producers[i] {
			if p < 0 {
				continue
			}
			kind := components.Flow // of the trigger to its transfer, which has no list of its own
			if n < len(e.deps) {
				kind = e.deps[n].kind
			}
			edges.Add(components.InstrID(r), components.InstrID(row[p]), kind)
		}
	}
	f := m.Functions.Add(m.Symbols.InternString("trace"), 0)
	m.Blocks.Add(m.Symbols.InternString("Block1"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(len(order)))
	m.Functions.EndBlock.Set(f, 1)
	if err := m.Link(&edges); err != nil {
		return nil, err
	}
	if t.skipped > 0 {
		m.Note("skipped-events", "events that are neither metadata nor complete events", t.skipped)
	}
	if triggers > 0 {
		m.Note("trigger-queues", "DMA triggers: how full their queues were is not in a trace; one that waited for room is placed earlier", triggers)
	}
	if t.noOwner > 0 {
		m.Note("unknown-producer", "dependencies whose producer is unknown: no event of that lane ends at their end_time", t.noOwner)
	}
	return m, m.Check()
}

// lanes maps thread ids to lanes of the module.
func (t *traceReader) lanes(m *components.Module) (map[int]uint16, error) {
	m.AddCoreLanes(0)
	out := map[int]uint16{}
	for tid := range documentedLanes {
		lane := tid
		if tid >= int(components.LaneBarrier) {
			lane = tid + 1
		}
		out[tid] = uint16(lane)
	}
	titles := map[string]uint16{"8. ALL": components.LaneBarrier}
	for i := range t.events {
		tid := t.events[i].tid
		if _, ok := out[tid]; ok {
			continue
		}
		title := t.threads[tid]
		if title == "" {
			return nil, fmt.Errorf("byte %d: thread %d has no name", t.events[i].offset, tid)
		}
		// A further core brings all its lanes.
		var core uint16
		if _, err := fmt.Sscanf(title, "core %d: ", &core); err == nil && core > 0 && core < 64 {
			for m.Lanes.Len() < (int(core)+1)*components.LanesPerCore {
				c := uint16(m.Lanes.Len() / components.LanesPerCore)
				first := m.AddCoreLanes(c)
				for slot := range uint16(components.LanesPerCore) {
					titles[laneTitle(m, int(first+slot))] = first + slot
				}
			}
		}
		if l, ok := titles[title]; ok {
			out[tid] = l
			continue
		}
		out[tid] = m.Lanes.Add(m.Symbols.InternString(title), components.Unassigned, components.LaneThread, 0)
		titles[title] = out[tid]
	}
	return out, nil
}

// laneOf returns the lane of an event.
func laneOf(e *traceEvent, lanes map[int]uint16) uint16 {
	if e.barrier {
		return components.LaneBarrier
	}
	return lanes[e.tid]
}

// owner identifies the producer of a dependency: the id, and whether the
// instruction or the transfer that it triggered is meant.
type owner struct {
	id       uint64
	transfer bool
}

// producers finds the event behind every dependency: by id, else by the lane
// and the end time, -1 where there is none. A transfer depends on its trigger.
func (t *traceReader) producers(lanes map[int]uint16) ([][]int, error) {
	byID := make(map[owner]int, len(t.events))
	type spot struct {
		lane uint16
		end  uint64
	}
	byEnd := map[spot]int{}
	for i := range t.events {
		e := &t.events[i]
		o := owner{e.id, e.transfer}
		if old, ok := byID[o]; ok {
			return nil, fmt.Errorf("byte %d: bir_id %d was at byte %d already", e.offset, e.id, t.events[old].offset)
		}
		byID[o] = i
		byEnd[spot{laneOf(e, lanes), e.start + e.dur}] = i
	}
	out := make([][]int, len(t.events))
	for i := range t.events {
		e := &t.events[i]
		if e.transfer {
			if p, ok := byID[owner{e.id, false}]; ok {
				out[i] = append(out[i], p)
			}
			e.deps = nil
			continue
		}
		for _, d := range e.deps {
			p, ok := -1, false
			lane := laneOf(e, lanes)
			if d.engine >= 0 {
				lane = uint16(d.engine)
			}
			if d.hasID {
				// The producer of an id that a trigger and its transfer share is
				// the one on the lane.
				if p, ok = byID[owner{d.id, true}]; !ok || laneOf(&t.events[p], lanes) != lane {
					p, ok = byID[owner{d.id, false}]
				}
				if !ok {
					return nil, fmt.Errorf("byte %d: a dependency on bir_id %d, which no event has", e.offset, d.id)
				}
			} else if p, ok = byEnd[spot{lane, d.end}]; !ok || p == i {
				p = -1
				t.noOwner++
			}
			out[i] = append(out[i], p)
		}
	}
	return out, nil
}

// order returns the events in program order. The lanes of barriers have none:
// a barrier waits for other lanes and not for the one before it.
func (t *traceReader) order(producers [][]int, lane func(*traceEvent) uint16, barriers func(lane uint16) bool) ([]int, error) {
	order := make([]int, len(t.events))
	for i := range order {
		order[i] = i
	}
	byID := sorted(order, func(a, b int) bool {
		x, y := &t.events[a], &t.events[b]
		return x.id < y.id || x.id == y.id && !x.transfer && y.transfer
	})
	if t.sound(byID, producers, lane, barriers) {
		return byID, nil
	}
	byStart := sorted(order, func(a, b int) bool { return t.events[a].start < t.events[b].start })
	if t.sound(byStart, producers, lane, barriers) {
		return byStart, nil
	}
	return t.topological(byStart, producers)
}

// sound reports whether an order keeps lanes in the order of their starts and
// producers before consumers.
func (t *traceReader) sound(order []int, producers [][]int, lane func(*traceEvent) uint16, barriers func(lane uint16) bool) bool {
	pos := make([]int, len(order))
	last := map[uint16]uint64{}
	for n, i := range order {
		pos[i] = n
		e := &t.events[i]
		l := lane(e)
		if e.start < last[l] && !barriers(l) {
			return false
		}
		last[l] = e.start
	}
	for i, ps := range producers {
		for _, p := range ps {
			if p >= 0 && pos[p] >= pos[i] {
				return false
			}
		}
	}
	return true
}

// topological takes events by the given order but never before their
// producers.
func (t *traceReader) topological(order []int, producers [][]int) ([]int, error) {
	waits := make([]int, len(order))
	for i, ps := range producers {
		for _, p := range ps {
			if p >= 0 {
				waits[i]++
			}
		}
	}
	next := make([][]uint32, len(order))
	for i, ps := range producers {
		for _, p := range ps {
			if p >= 0 {
				next[p] = append(next[p], uint32(i))
			}
		}
	}
	rank := make([]int, len(order))
	for n, i := range order {
		rank[i] = n
	}
	ready := ecs.Heap[int]{Less: func(a, b int) bool { return rank[a] < rank[b] }}
	for _, i := range order {
		if waits[i] == 0 {
			ready.Push(i)
		}
	}
	out := make([]int, 0, len(order))
	for ready.Len() > 0 {
		i := ready.Pop()
		out = append(out, i)
		for _, c := range next[i] {
			if waits[c]--; waits[c] == 0 {
				ready.Push(int(c))
			}
		}
	}
	if len(out) < len(order) {
		for _, i := range order {
			if waits[i] > 0 {
				return nil, fmt.Errorf("byte %d: event %q depends on itself by way of others", t.events[i].offset, t.symbols.String(t.events[i].name))
			}
		}
	}
	return out, nil
}

// sorted returns a stably sorted copy.
func sorted(order []int, less func(a, b int) bool) []int {
	out := slices.Clone(order)
	slices.SortStableFunc(out, func(a, b int) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	return out
}
