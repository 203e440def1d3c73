// Package query answers questions about the instructions and dependencies of
// a placed module: kind=anti & engine=PE & cross. Enumerations (engine,
// opcode, kind) are answered by bitmap indexes and combined as bitmaps; other
// fields look at the rows.
package query

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

// Domain is the kind of rows of a query.
type Domain uint8

// The domains.
const (
	Instructions Domain = iota
	Edges
)

// String names the domain in the plural.
func (d Domain) String() string {
	if d == Edges {
		return "edges"
	}
	return "instructions"
}

// Query is an expression that fits the fields.
type Query struct {
	Text   string
	Domain Domain
	root   node
	needs  need
}

// Compile reads an expression. It is about edges where it uses a field that
// only edges have, or where edges is set; for an edge the fields of
// instructions mean its consumer, with from. in front its producer.
func Compile(text string, edges bool) (*Query, error) {
	q := &Query{Text: text}
	if strings.TrimSpace(text) == "" {
		if edges {
			q.Domain = Edges
		}
		return q, nil
	}
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	q.root = root
	known := fields()
	if edges {
		q.Domain = Edges
	}
	err = eachTerm(root, func(t termNode) error {
		f := find(known, t.field)
		if f == nil {
			return &syntaxError{Text: text, At: t.at, Msg: fmt.Sprintf("there is no field %q; query --fields lists them", t.field), Names: fieldNames(known, true)}
		}
		if f.edge && t.from {
			return &syntaxError{Text: text, At: t.at, Msg: fmt.Sprintf("%s belongs to the edge, not to its producer", t.field)}
		}
		if f.edge || t.from || t.to {
			q.Domain = Edges
		}
		q.needs |= f.needs
		return f.check(text, t)
	})
	return q, err
}

func find(known []field, name string) *field {
	for k := range known {
		if known[k].name == name {
			return &known[k]
		}
	}
	return nil
}

// fieldNames returns the names of fields, with those of dependencies where
// edges is set.
func fieldNames(known []field, edges bool) []string {
	var names []string
	for k := range known {
		if edges || !known[k].edge {
			names = append(names, known[k].name)
		}
	}
	return names
}

// check reports whether the operator and values fit the field.
func (f *field) check(text string, t termNode) error {
	fail := func(format string, args ...any) error {
		return &syntaxError{Text: text, At: t.at, Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case f.flag != nil:
		if t.op != "" {
			return fail("%s is true or not: write %s or !%s", f.name, f.name, f.name)
		}
	case t.op == "":
		return fail("%s needs a value, such as %s=…", f.name, f.name)
	case f.number != nil:
		if t.op == "~" || t.op == "!~" {
			return fail("%s is a number", f.name)
		}
		for _, v := range t.values {
			if _, ok := number(v); !ok {
				return fail("%q is not a number", v)
			}
		}
		if len(t.values) > 1 && t.op != "=" && t.op != "!=" {
			return fail("%s takes one value", t.op)
		}
	default:
		if t.op != "=" && t.op != "!=" && t.op != "~" && t.op != "!~" {
			return fail("%s is text: use = != ~ !~", f.name)
		}
		if t.op == "~" || t.op == "!~" {
			for _, v := range t.values {
				if _, err := pattern(v); err != nil {
					return fail("%v", err)
				}
			}
		}
	}
	return nil
}

func eachTerm(n node, f func(termNode) error) error {
	switch n := n.(type) {
	case andNode:
		if err := eachTerm(n.a, f); err != nil {
			return err
		}
		return eachTerm(n.b, f)
	case orNode:
		if err := eachTerm(n.a, f); err != nil {
			return err
		}
		return eachTerm(n.b, f)
	case notNode:
		return eachTerm(n.a, f)
	case termNode:
		return f(n)
	}
	return nil
}

// engine holds what answering needs.
type engine struct {
	ctx   context.Context
	w     *components.World
	m     *components.Module
	rules place.Rules
	known []field
	off   []uint32
	words []uint32

	why   *components.Attribution
	slack []uint64
	path  ecs.Bits

	byEngine *ecs.Index
	row      int // consumer of the edge asked last
	inner    []uint32
	buf      []byte
	times    *components.Executions
	rowBusy  []uint64 // what all executions of a row add to the busy time of its lane, ns
}

// Result is the answer to a query.
type Result struct {
	Domain Domain
	Set    ecs.Set // rows of the instruction table, or edge ids
	e      *engine
}

// Module returns the module that was asked.
func (r *Result) Module() *components.Module { return r.e.m }

// Run answers the query on a placed world.
func (q *Query) Run(ctx context.Context, w *components.World) (*Result, error) {
	e := &engine{ctx: ctx, w: w, m: w.Module, rules: place.RulesFor(w), known: fields(), off: w.Module.Edges.Preds.Offsets(), words: w.Module.Edges.Preds.Words()}
	if err := e.prepare(q.needs); err != nil {
		return nil, err
	}
	r := &Result{Domain: q.Domain, e: e}
	if q.root == nil {
		r.Set = e.all(q.Domain)
		return r, nil
	}
	var err error
	r.Set, err = e.eval(q.root, q.Domain)
	return r, err
}

func (e *engine) prepare(n need) error {
	var err error
	if n&needWhy != 0 && e.why == nil {
		if e.why, err = attribute.Bind(e.ctx, e.w, e.rules, components.RunA); err != nil {
			return err
		}
	}
	if n&needSlack != 0 && e.slack == nil {
		if e.slack, err = attribute.Slack(e.ctx, e.w, e.rules, e.why); err != nil {
			return err
		}
	}
	if n&needPath != 0 && e.path == nil {
		paths, err := attribute.CriticalPath(e.ctx, e.w, e.rules, e.why, attribute.Options{Block: -1})
		if err != nil {
			return err
		}
		e.path = ecs.NewBits(e.m.Instr.Len())
		for _, p := range paths {
			for _, i := range p.Steps {
				e.path.Set(uint32(i))
			}
		}
	}
	return nil
}

func (e *engine) size(d Domain) int {
	if d == Edges {
		return len(e.words)
	}
	return e.m.Instr.Len()
}

func (e *engine) all(d Domain) ecs.Set { return ecs.SetOfRange(0, uint32(e.size(d))) }

func (e *engine) eval(n node, d Domain) (ecs.Set, error) {
	if err := e.ctx.Err(); err != nil {
		return ecs.Set{}, err
	}
	switch n := n.(type) {
	case andNode:
		a, err := e.eval(n.a, d)
		if err != nil {
			return a, err
		}
		b, err := e.eval(n.b, d)
		return a.And(b), err
	case orNode:
		a, err := e.eval(n.a, d)
		if err != nil {
			return a, err
		}
		b, err := e.eval(n.b, d)
		return a.Or(b), err
	case notNode:
		a, err := e.eval(n.a, d)
		return e.all(d).AndNot(a), err
	case termNode:
		f := find(e.known, n.field)
		if d == Edges && !f.edge {
			rows, err := e.term(f, n, Instructions)
			if err != nil {
				return rows, err
			}
			return e.edgesOf(rows, n.from), nil
		}
		return e.term(f, n, d)
	}
	return ecs.Set{}, fmt.Errorf("query: unknown node %T", n)
}

// edgesOf returns the edges whose consumer, or producer, is in rows.
func (e *engine) edgesOf(rows ecs.Set, producer bool) ecs.Set {
	out := ecs.NewBits(len(e.words))
	if producer {
		in := rows.Bits(e.m.Instr.Len())
		for k, w := range e.words {
			if in.Has(w & ecs.TargetMask) {
				out.Set(uint32(k))
			}
		}
		return out.Frozen()
	}
	for batch := range rows.Batches() {
		for _, i := range batch {
			if int(i)+1 < len(e.off) {
				out.SetRange(e.off[i], e.off[i+1])
			}
		}
	}
	return out.Frozen()
}

// term answers one term over the rows of a domain.
func (e *engine) term(f *field, t termNode, d Domain) (ecs.Set, error) {
	if f.index != nil {
		look := f.index(e)
		var s ecs.Set
		for _, v := range t.values {
			partial := t.op == "~" || t.op == "!~"
			from, keys := look, look.keys(v, partial)
			if len(keys) == 0 && f.also != nil {
				from = f.also(e)
				keys = from.keys(v, partial)
			}
			if len(keys) == 0 && !partial {
				return s, fmt.Errorf("query: %s=%s: no such %s in this module%s", f.name, v, f.name, from.list())
			}
			for _, k := range keys {
				s = s.Or(from.of.Set(k))
			}
		}
		if t.op == "!=" || t.op == "!~" {
			s = e.all(d).AndNot(s)
		}
		return s, nil
	}
	test, err := f.test(e, t)
	if err != nil {
		return ecs.Set{}, err
	}
	n := e.size(d)
	out := ecs.NewBits(n)
	for i := range uint32(n) {
		if i&0xfffff == 0 {
			if err := e.ctx.Err(); err != nil {
				return ecs.Set{}, err
			}
		}
		if test(i) {
			out.Set(i)
		}
	}
	return out.Frozen(), nil
}

// test returns the predicate of a term.
func (f *field) test(e *engine, t termNode) (func(i uint32) bool, error) {
	switch {
	case f.flag != nil:
		return func(i uint32) bool { return f.flag(e, i) }, nil
	case f.number != nil:
		want := make([]float64, len(t.values))
		for k, v := range t.values {
			want[k], _ = number(v) // checked by Compile
		}
		return func(i uint32) bool {
			v, ok := f.number(e, i)
			return ok && compare(v, t.op, want)
		}, nil
	}
	negate := t.op == "!=" || t.op == "!~"
	if t.op == "~" || t.op == "!~" {
		var list []*regexp.Regexp
		for _, v := range t.values {
			p, err := pattern(v)
			if err != nil {
				return nil, err
			}
			list = append(list, p)
		}
		return func(i uint32) bool {
			s := f.text(e, i)
			for _, p := range list {
				if p.Match(s) {
					return !negate
				}
			}
			return negate
		}, nil
	}
	var list, ends [][]byte
	for _, v := range t.values {
		if f.canonical != nil {
			if c, ok := f.canonical(v); ok {
				v = c
			} else {
				return nil, fmt.Errorf("query: %s=%s: no such %s; %s is: %s", f.name, v, f.name, f.name, f.doc)
			}
		}
		list = append(list, []byte(v))
		// A value of StableHLO, as lists print it.
		if name, ok := strings.CutPrefix(v, "%"); ok && name != "" {
			list = append(list, []byte(name))
		}
		// A long name that a table cut; see components.Named.
		if end, cut := strings.CutPrefix(v, "…"); cut && end != "" {
			ends = append(ends, []byte(end))
		}
	}
	return func(i uint32) bool {
		s := f.text(e, i)
		for _, v := range list {
			if bytes.Equal(s, v) {
				return !negate
			}
		}
		for _, v := range ends {
			if bytes.HasSuffix(s, v) {
				return !negate
			}
		}
		if f.long != nil {
			s = f.long(e, i)
			for _, v := range list {
				if bytes.Equal(s, v) {
					return !negate
				}
			}
		}
		return negate
	}, nil
}

// list names up to twelve values for an error.
func (l *lookup) list() string {
	const most = 12
	var names []string
	for _, n := range l.names() {
		if len(names) == most {
			names = append(names, "…")
			break
		}
		names = append(names, n)
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// pattern turns the right side of ~ into an expression: /…/ is a regular
// expression, anything else a part of the text; letter case does not matter.
func pattern(v string) (*regexp.Regexp, error) {
	if len(v) > 1 && v[0] == '/' && v[len(v)-1] == '/' {
		return regexp.Compile("(?i)" + v[1:len(v)-1])
	}
	return regexp.Compile("(?i)" + regexp.QuoteMeta(v))
}

func compare(v float64, op string, want []float64) bool {
	switch op {
	case "=":
		return slices.Contains(want, v)
	case "!=":
		return !slices.Contains(want, v)
	case "<":
		return v < want[0]
	case "<=":
		return v <= want[0]
	case ">":
		return v > want[0]
	}
	return v >= want[0]
}

// The bitmap indexes.

func (e *engine) lanes() *lookup {
	if e.w.ByLane == nil {
		e.w.ByLane = ecs.BuildIndex(e.m.Instr.Lane.Slice(), e.m.Lanes.Len(), 0)
	}
	return e.lookup(e.w.ByLane, e.m.Lanes.Len(), func(k int) string { return e.m.LaneName(uint16(k)) })
}

// engines indexes instructions by the engine of their lane, so that work on the
// DMA counts for the DMA, not for the engine that triggers it.
func (e *engine) engines() *lookup {
	if e.byEngine == nil {
		kinds := make([]components.Engine, e.m.Instr.Len())
		for i, l := range e.m.Instr.Lane.Slice() {
			kinds[i] = e.m.Lanes.Engine.At(int(l))
		}
		e.byEngine = ecs.BuildIndex(kinds, int(components.NumEngines), 0)
	}
	l := e.lookup(e.byEngine, int(components.NumEngines), func(k int) string { return components.Engine(k).String() })
	byName := l.keys
	l.keys = func(v string, partial bool) []int {
		if k, ok := components.ParseEngine(v); ok && !partial {
			return []int{int(k)}
		}
		return byName(v, partial)
	}
	return l
}

func (e *engine) opcodes() *lookup {
	if e.w.ByOpcode == nil {
		e.w.ByOpcode = ecs.BuildIndex(e.m.Instr.Opcode.Slice(), e.m.NumOpcodes(), 0)
	}
	return e.lookup(e.w.ByOpcode, e.m.NumOpcodes(), func(k int) string { return e.m.OpcodeName(components.Opcode(k)) })
}

func (e *engine) kinds() *lookup {
	if e.w.ByClass == nil {
		e.w.ByClass = ecs.BuildIndex(e.words, int(components.NumClasses), ecs.ClassShift)
	}
	return e.lookup(e.w.ByClass, int(components.NumClasses), func(k int) string { return strings.ToLower(components.KindOfClass(uint8(k)).String()) })
}

// lookup asks an index of n keys by their names.
func (e *engine) lookup(of *ecs.Index, n int, name func(k int) string) *lookup {
	l := &lookup{of: of, keys: func(v string, partial bool) []int { return e.named(n, v, partial, name) }}
	l.names = func() []string {
		var out []string
		for k := range n {
			if s := of.Set(k); s.Len() > 0 {
				out = append(out, name(k))
			}
		}
		return out
	}
	return l
}

// named returns the keys below n whose name is v, or matches it.
func (e *engine) named(n int, v string, partial bool, name func(k int) string) []int {
	var out []int
	p, err := pattern(v)
	for k := range n {
		switch s := name(k); {
		case partial && err == nil && p.MatchString(s):
			out = append(out, k)
		case !partial && (strings.EqualFold(s, v) || components.Named(s, v)):
			out = append(out, k)
		}
	}
	return out
}

// Row is one row of an answer.
type Row struct {
	ID uint32 `json:"id"` // row of the instruction, or id of the edge
	// Executions is how often the instruction, or the consumer of the edge,
	// executes: the runs of its function times the trips around it.
	Executions uint64 `json:"executions"`
	Name       string `json:"name"` // name of the instruction
	Lane       string `json:"lane"`
	Opcode     string `json:"opcode"`
	Source     string `json:"source,omitempty"` // file:line in the user's program
	Start      uint64 `json:"start_ns"`
	End        uint64 `json:"end_ns"`
	// Cause and Slack are of instructions, where the query had them worked out.
	Cause      string  `json:"cause,omitempty"`
	Slack      *uint64 `json:"slack_ns,omitempty"`
	Kind       string  `json:"kind,omitempty"`        // of edges: flow, anti, output or ordered
	From       string  `json:"from,omitempty"`        // producer
	FromLane   string  `json:"from_lane,omitempty"`   // lane of the producer
	FromOpcode string  `json:"from_opcode,omitempty"` // opcode of the producer
	Gap        *int64  `json:"gap_ns,omitempty"`
	Binding    *bool   `json:"binding,omitempty"`
}

// Len returns how many rows the answer has.
func (r *Result) Len() int { return r.Set.Len() }

// Each calls f with up to most rows in order, all where most is negative; it
// stops at the first error of f.
func (r *Result) Each(most int, f func(*Row) error) error {
	n := 0
	for batch := range r.Set.Batches() {
		for _, id := range batch {
			if most >= 0 && n == most {
				return nil
			}
			n++
			row := r.e.describe(r.Domain, id)
			if err := f(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *engine) describe(d Domain, id uint32) Row {
	i := id
	if d == Edges {
		i = e.consumer(id)
	}
	m := e.m
	r := Row{ID: id, Executions: e.executions().At(components.InstrID(i)), Name: m.InstrName(components.InstrID(i)), Lane: m.LaneName(m.Instr.Lane.At(int(i))), Opcode: m.OpcodeName(m.Instr.Opcode.At(int(i))), Source: where(m, i)}
	if e.placed(i) {
		r.Start, r.End = e.w.Events.Span(m, components.InstrID(i), components.RunA)
	}
	if e.why != nil && e.placed(i) {
		r.Cause = e.why.Cause.At(int(i)).String()
	}
	if e.slack != nil {
		r.Slack = &e.slack[i]
	}
	if d == Edges {
		p := e.producer(id)
		r.Kind = strings.ToLower(components.KindOfClass(uint8(e.words[id] >> ecs.ClassShift)).String())
		r.From, r.FromLane = m.InstrName(components.InstrID(p)), m.LaneName(m.Instr.Lane.At(int(p)))
		r.FromOpcode = m.OpcodeName(m.Instr.Opcode.At(int(p)))
		gap := int64(e.gap(id))
		r.Gap = &gap
		if e.why != nil {
			b := e.binding(id)
			r.Binding = &b
		}
	}
	return r
}

// Group is the rows of an answer that share a value.
type Group struct {
	Value string `json:"value"`
	Count int    `json:"count"` // rows
	// Executions is how often the rows execute together: the runs of their
	// functions times the trips around them.
	Executions uint64 `json:"executions"`
	// NS is the busy time of the instructions, each as often as it executes: a
	// lane's groups add up to its busy time. Of edges it is the gap of those
	// that are honoured, as often as the consumer executes.
	NS uint64 `json:"ns"`
}

// GroupBy counts the rows of an answer by the value of a field, the largest
// group first; with from. in front of it that of an edge's producer.
func (r *Result) GroupBy(name string) ([]Group, error) {
	rest, from := strings.CutPrefix(name, "from.")
	f := find(r.e.known, strings.ToLower(rest))
	if f == nil || f.edge && r.Domain != Edges || from && (r.Domain != Edges || f.edge) {
		return nil, &syntaxError{Text: name, Msg: fmt.Sprintf("--by %s: no such field of %s; query --fields lists them", name, r.Domain),
			Names: fieldNames(r.e.known, r.Domain == Edges)}
	}
	if err := r.e.prepare(f.needs); err != nil {
		return nil, err
	}
	value := r.e.valueOf(f)
	groups := map[string]*Group{}
	for batch := range r.Set.Batches() {
		for _, id := range batch {
			i := id
			switch {
			case r.Domain == Edges && from:
				i = r.e.producer(id)
			case r.Domain == Edges && !f.edge:
				i = r.e.consumer(id)
			}
			v := value(i)
			g := groups[v]
			if g == nil {
				g = &Group{Value: v}
				groups[v] = g
			}
			g.Count++
			consumer := id
			if r.Domain == Edges {
				consumer = r.e.consumer(id)
			}
			times := r.e.executions().At(components.InstrID(consumer))
			g.Executions = ecs.AddSat(g.Executions, times)
			if r.Domain == Edges {
				g.NS = ecs.AddSat(g.NS, ecs.MulSat(times, uint64(max(0, r.e.gap(id)))))
			} else if r.e.placed(id) {
				g.NS = ecs.AddSat(g.NS, r.e.busy()[id])
			}
		}
	}
	var out []Group
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Value, b.Value))
	})
	return out, nil
}

// executions returns how often the rows execute.
func (e *engine) executions() *components.Executions {
	if e.times == nil {
		e.times = components.NewExecutions(e.m, e.w.Config.Loops)
	}
	return e.times
}

// busy returns what the executions of every row add to the busy time of its lane.
func (e *engine) busy() []uint64 {
	if e.rowBusy == nil {
		e.rowBusy = summary.RowBusy(e.w)
	}
	return e.rowBusy
}

// valueOf returns a field's value as text.
func (e *engine) valueOf(f *field) func(i uint32) string {
	switch {
	case f.name == "engine":
		return func(i uint32) string { return e.m.Lanes.Engine.At(int(e.m.Instr.Lane.At(int(i)))).String() }
	case f.name == "lane":
		return func(i uint32) string { return e.m.LaneName(e.m.Instr.Lane.At(int(i))) }
	case f.name == "opcode":
		return func(i uint32) string { return e.m.OpcodeName(e.m.Instr.Opcode.At(int(i))) }
	case f.name == "kind":
		return func(i uint32) string {
			return strings.ToLower(components.KindOfClass(uint8(e.words[i] >> ecs.ClassShift)).String())
		}
	case f.flag != nil:
		return func(i uint32) string { return fmt.Sprint(f.flag(e, i)) }
	case f.number != nil:
		return func(i uint32) string {
			v, ok := f.number(e, i)
			if !ok {
				return ""
			}
			return fmt.Sprint(v)
		}
	}
	return func(i uint32) string { return string(f.text(e, i)) }
}
