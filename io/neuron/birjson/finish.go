package birjson

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/jsonscan"
)

// Prefixes of the keys of attributes that are not the module's own bag.
const (
	prefixTop    = "bir."          // other members of the top level
	prefixFn     = "bir.function." // attributes of a function, by its name
	prefixOrigin = "bir.origin."
	attributeNKI = "bir.nki_function"
)

// finish completes the module when everything is merged.
func (g *merger) finish(ctx context.Context, p *splitter) error {
	m := g.m
	g.pad(p.rows)
	g.completeColumns()
	names, err := g.functions(p)
	if err != nil {
		return err
	}
	g.blocks(p)
	g.joinAliases()
	g.findLate(names)
	for _, q := range p.queues {
		if _, err := g.queue([]byte(q.name), components.Unassigned); err != nil {
			return err
		}
	}
	if err := g.trigger(p.queues); err != nil {
		return err
	}
	g.completeColumns()
	g.sortQueues()
	if err := g.link(); err != nil {
		return err
	}
	g.attributes(p)
	copy(m.Functions.Runs.Slice(), runsOf(m, func(f int) uint64 { return p.functions[f].runs }, g.note))
	g.notes(p)
	if p.declared != nil {
		m.Edges.Declared = *p.declared
	}
	return m.CheckJobs(ctx, p.pipe.jobs)
}

// sortQueues puts the queues into the order of their first use and gives each
// the engine of its first user.
func (g *merger) sortQueues() {
	t := &g.m.Queues
	n := t.Len()
	use := g.m.Instr.Queue.Slice()
	order := make([]uint16, 0, n) // old rows
	to := make([]uint16, n+1)     // new rows plus one, by old row plus one
	take := func(q uint16) {
		order = append(order, q-1)
		to[q] = uint16(len(order))
	}
	engines := make([]components.Engine, 0, n)
	for i, q := range use {
		if q > 0 && to[q] == 0 {
			take(q)
			engines = append(engines, g.m.Instr.Engine.At(i))
		}
	}
	for q := uint16(1); int(q) <= n; q++ {
		if to[q] == 0 {
			take(q)
			engines = append(engines, components.Unassigned)
		}
	}
	for i, q := range use {
		use[i] = to[q]
	}
	names := make([]ecs.Symbol, n)
	depths := make([]uint32, n)
	for i, q := range order {
		names[i], depths[i] = t.Name.At(int(q)), t.Depth.At(int(q))
	}
	t.Name.Adopt(names)
	t.Depth.Adopt(depths)
	t.Engine.Adopt(engines)
}

// completeColumns fills the optional columns that are present up to the last row.
func (g *merger) completeColumns() {
	t := &g.m.Instr
	n := int(g.rows)
	for _, c := range []*ecs.Column[ecs.Symbol]{&t.Name, &t.Source, &t.HLO, &t.Scope, &t.Func, &t.Text} {
		complete(c, n)
	}
	for _, c := range []*ecs.Column[uint32]{&t.OutElems, &t.PC, &t.CompilerPC, &t.DMARow, &t.MACs, &t.MeasuredDur, &t.MeasuredWait} {
		complete(c, n)
	}
	for _, c := range []*ecs.Column[uint64]{&t.Ref, &t.DMABytes, &t.Work, &t.MeasuredStart} {
		complete(c, n)
	}
	complete(&t.Queue, n)
}

func complete[T ecs.Fixed](c *ecs.Column[T], n int) {
	if c.Len() > 0 {
		c.Resize(n)
	}
}

// functions fills the table of functions and returns their rows by name.
func (g *merger) functions(p *splitter) (map[string]int, error) {
	m := g.m
	names := make(map[string]int, len(p.functions))
	for i, f := range p.functions {
		if f.name == "" {
			f.name = fmt.Sprintf("function%d", i)
		}
		if _, ok := names[f.name]; ok {
			return nil, &jsonscan.Error{At: f.at, Err: fmt.Errorf("two functions are called %s", clip(f.name))}
		}
		names[f.name] = i
		sym, err := g.in.intern([]byte(f.name))
		if err != nil {
			return nil, err
		}
		m.Functions.Add(sym, f.firstBlock)
		m.Functions.EndBlock.Set(i, uint32(f.endBlock))
	}
	return names, nil
}

// blocks fills the table of blocks.
func (g *merger) blocks(p *splitter) {
	m := g.m
	slices.SortFunc(g.trips, func(a, b loopTrip) int { return cmp.Compare(a.row, b.row) })
	for _, b := range p.blocks {
		trip := uint64(1)
		if b.parent > 0 {
			trip = 0
			i, ok := slices.BinarySearchFunc(g.trips, b.parent-1, func(t loopTrip, row uint32) int { return cmp.Compare(t.row, row) })
			if ok {
				trip = g.trips[i].trip
			}
		}
		sym, err := g.in.intern([]byte(b.name))
		if err != nil {
			sym = 0
		}
		id := m.Blocks.Add(sym, uint32(b.function), b.parent, components.InstrID(b.first), trip)
		m.Blocks.End.Set(id, b.end)
	}
}

// link completes the edges. Where no dependency points forward, everything
// is in place already; otherwise the general way looks for cycles.
func (g *merger) link() error {
	e := &g.m.Edges
	slices.SortStableFunc(g.carried, func(a, b otherEdge) int { return cmp.Compare(a.from, b.from) })
	if g.forward {
		var set components.EdgeSet
		set.Reserve(e.Preds.Len() + len(g.others))
		for i := range e.Preds.Rows() {
			for _, w := range e.Preds.Row(i) {
				set.Add(components.InstrID(i), components.InstrID(w&ecs.TargetMask), components.KindOfClass(uint8(w>>ecs.ClassShift)))
			}
		}
		for _, o := range g.others {
			set.Add(components.InstrID(o.from), components.InstrID(o.to), o.kind)
		}
		for _, c := range g.carried {
			set.AddCarried(components.InstrID(c.from), components.InstrID(c.to), c.kind, c.distance)
		}
		if err := g.m.Link(&set); err != nil {
			if cycle, ok := errors.AsType[*components.CycleError](err); ok {
				for _, row := range cycle.Rows {
					if at, ok := g.forwardAt[row]; ok {
						return &jsonscan.Error{At: at, Err: err}
					}
				}
			}
			return err
		}
		e.Declared = g.declared
		return nil
	}
	e.Declared = g.declared
	slices.SortStableFunc(g.others, func(a, b otherEdge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), -cmp.Compare(a.kind, b.kind))
	})
	g.others = slices.CompactFunc(g.others, func(a, b otherEdge) bool { return a.from == b.from && a.to == b.to })
	slices.SortFunc(g.others, func(a, b otherEdge) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(ecs.Word(a.kind.Class(), a.to), ecs.Word(b.kind.Class(), b.to)))
	})
	for _, list := range [][]otherEdge{g.others, g.carried} {
		for _, o := range list {
			kind := o.kind
			if o.scope != components.ScopeCarried {
				kind = components.KindOfClass(kind.Class()) // what Link keeps
			}
			e.Other.Add(components.InstrID(o.from), components.InstrID(o.to), kind, o.scope, o.distance)
		}
	}
	return nil
}

// attributes fills in what the input says of the module as a whole.
func (g *merger) attributes(p *splitter) {
	m := g.m
	add := func(key, value string) {
		m.Attributes = append(m.Attributes, components.Attribute{Key: key, Value: value})
	}
	var tape jsonscan.Tape
	var bag []components.Attribute
	for _, t := range p.top {
		switch t.key {
		case "arch":
			m.Arch = unquote([]byte(t.value))
			continue
		case "attributes":
			v, ok := tape.Parse([]byte(t.value))
			if !ok {
				break
			}
			if v.Kind() == jsonscan.Object {
				for x := v.Members(); x.Ok(); x = x.Next() {
					key, v := x.Key(), x.Value()
					if b := text(v); b != nil {
						bag = append(bag, components.Attribute{Key: string(key), Value: string(b)})
					} else if b, err := appendValue(nil, v); err == nil {
						bag = append(bag, components.Attribute{Key: string(key), Value: string(b)})
					}
				}
				continue
			}
		}
		v, ok := tape.Parse([]byte(t.value))
		if !ok {
			continue
		}
		if b, err := appendValue(nil, v); err == nil {
			add(prefixTop+t.key, string(b))
		}
	}
	// The compiler writes keys sorted; so they are whatever wrote the input.
	slices.SortStableFunc(bag, func(a, b components.Attribute) int { return strings.Compare(a.Key, b.Key) })
	slices.SortStableFunc(m.Attributes, func(a, b components.Attribute) int { return strings.Compare(a.Key, b.Key) })
	m.Attributes = append(bag, m.Attributes...)
	for i, f := range p.functions {
		if f.nki {
			add(attributeNKI, f.name)
		}
		if f.attributes != "" && json.Valid([]byte(f.attributes)) && f.attributes != "[]" {
			add(prefixFn+f.name, compact(f.attributes))
		}
		if f.origin != "" {
			add(prefixOrigin+f.name, unquote([]byte(f.origin)))
		}
		if s := g.fns[i]; !s.hasDeps && s.ops && s.instrs > 1 {
			add(components.AttributeNoDependencies, f.name)
		}
	}
}

func compact(s string) string {
	var tape jsonscan.Tape
	v, ok := tape.Parse([]byte(s))
	if !ok {
		return s
	}
	b, err := appendValue(nil, v)
	if err != nil {
		return s
	}
	return string(b)
}

// runsOf works out how often each function runs in one run of the module:
// once where nothing calls it, else once for every call site, times the trip
// counts around the site, times the runs of the caller (docs/model.md, section 9; the
// derivation is ours). A given count wins. Sums saturate.
func runsOf(m *components.Module, given func(f int) uint64, note func(code, what string, n int)) []uint64 {
	n := m.Functions.Len()
	out := make([]uint64, n)
	row := map[string]int{}
	for f := range n {
		row[m.FunctionName(f)] = f
	}
	type site struct {
		caller int
		times  uint64
	}
	sites := make([][]site, n)
	var tape jsonscan.Tape
	inner := innerBlocks(m)
	for i, op := range m.Instr.Opcode.Slice() {
		if op != components.OpcodeCall {
			continue
		}
		v, ok := tape.Parse(m.Symbols.Bytes(m.Instr.Text.Get(i)))
		if !ok {
			continue
		}
		target, ok := row[string(text(v.Get("target")))]
		if !ok {
			note("unknown-call-target", string(text(v.Get("target"))), 1)
			continue
		}
		b := inner(uint32(i))
		times := uint64(1)
		for at := b; m.Blocks.Parent.At(at) != 0; {
			times = ecs.MulSat(times, max(m.Blocks.Trip.At(at), 1))
			at = inner(m.Blocks.Parent.At(at) - 1)
		}
		sites[target] = append(sites[target], site{int(m.Blocks.Function.At(b)), times})
	}
	state := make([]uint8, n) // 0 fresh, 1 open, 2 done
	var runs func(f int) uint64
	runs = func(f int) uint64 {
		if state[f] == 2 {
			return out[f]
		}
		if state[f] == 1 {
			note("recursion", m.FunctionName(f), 1)
			return 1
		}
		state[f] = 1
		sum := given(f)
		if sum == 0 {
			for _, s := range sites[f] {
				sum = ecs.AddSat(sum, ecs.MulSat(runs(s.caller), s.times))
			}
		}
		state[f] = 2
		out[f] = max(sum, 1)
		return out[f]
	}
	for f := range n {
		runs(f)
	}
	return out
}

// innerBlocks returns a function that finds the innermost block of a row.
func innerBlocks(m *components.Module) func(row uint32) int {
	t := &m.Blocks
	return func(row uint32) int {
		// The last block that starts at or before row and reaches over it:
		// inner blocks come after the block around them.
		b, _ := slices.BinarySearchFunc(t.First.Slice(), row, func(first, row uint32) int {
			if first <= row {
				return -1
			}
			return 1
		})
		for b--; b > 0 && t.End.At(b) <= row; b-- {
		}
		return b
	}
}

// noteTexts say what a remark of the parser means.
var noteTexts = map[string]string{
	"unknown-opcode":       "opcodes that the compiler's list does not have, kept under their own names",
	"unknown-dtype":        "element types that are not in the table, kept as text",
	"unknown-tensor-kind":  "tensor kinds that are not in the table, taken as Internal",
	"unknown-memory-type":  "memory types that are not in the table, taken as unallocated",
	"unknown-operand-kind": "operand kinds that are not in the table, kept as text",
	"unknown-location":     "operands at memory locations that the module does not have",
	"unknown-alias":        "aliases of memory locations that the module does not have",
	"unknown-dma-block":    "DMA triggers of blocks that no queue has",
	"unknown-trip-count":   "loops whose trip count is not known before they run; one run is counted",
	"unknown-key":          "keys that are not understood, left out",
	"empty-loop":           "loops whose bounds say that they never run; one run is placed",
	"duplicate-location":   "memory locations of one name in one function; the first is used",
	"unknown-call-target":  "calls of functions that the module does not have",
	"recursion":            "functions that call themselves; such a call counts once",
	"stream-id":            "collective streams beyond the four that exist, taken as stream 0",
	"unroll-dependency":    "instructions with dependencies between unrolled iterations, kept as text and not placed",
	"invalid-utf8":         "texts that are not UTF-8, repaired",
}

// notes reports what was kept but not understood.
func (g *merger) notes(p *splitter) {
	for key, n := range p.unread {
		g.note("unknown-key", key, n)
	}
	slices.SortFunc(g.unread, func(a, b components.Note) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), -cmp.Compare(a.Count, b.Count), strings.Compare(a.Text, b.Text))
	})
	for i := 0; i < len(g.unread); {
		code := g.unread[i].Code
		var names []string
		n := 0
		for ; i < len(g.unread) && g.unread[i].Code == code; i++ {
			n += g.unread[i].Count
			if g.unread[i].Text != "" && len(names) < 5 {
				names = append(names, g.unread[i].Text)
			}
		}
		what := noteTexts[code]
		if len(names) > 0 {
			what += ": " + strings.Join(names, ", ")
		}
		g.m.Note(code, what, n)
	}
}
