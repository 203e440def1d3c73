package birjson

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/internal/jsonscan"
)

// Exporter is the format as the list of formats knows it.
var Exporter = format.Exporter{Name: "birjson", Title: "BIR JSON (Neuron compiler)", Suffix: ".bir.json", Module: Write}

// Write writes the module as BIR JSON text, keys sorted, one instruction a
// line. Read makes an equal module of it, apart from what BIR JSON cannot hold:
// measured DMA packets, clock windows and semaphore values, and what the cost
// system computed.
func Write(ctx context.Context, w io.Writer, m *components.Module, opt format.Options) error {
	e := &encoder{ctx: ctx, w: w, m: m, tell: opt.Progress}
	e.prepare()
	e.module()
	e.flush(0)
	return e.err
}

// encoder appends text to buf and writes it out from time to time.
type encoder struct {
	ctx  context.Context
	w    io.Writer
	m    *components.Module
	buf  []byte
	done int64
	tell func(int64)
	err  error

	others []uint32 // rows of Edges.Other, by consumer
	next   int      // of others
	block  int      // the next row of the block table
	ops    []components.AccessPattern
	// repeated holds the rows whose name an earlier row of their function has;
	// it is empty where there are none.
	repeated ecs.Bits
	markDep  bool // the next instruction says that its function has no dependencies

	tape    jsonscan.Tape
	textSym ecs.Symbol
	texts   []member // of textSym's object
	opTexts [3]jsonscan.Value
	isJSON  bool
	scratch []byte
	locEnd  []uint32 // by function: end of its rows of the location table
}

const flushAt = 256 << 10

// flush writes the buffer where it has reached n bytes.
func (e *encoder) flush(n int) {
	if len(e.buf) < n || e.err != nil {
		return
	}
	if e.err = e.ctx.Err(); e.err == nil {
		_, e.err = e.w.Write(e.buf)
	}
	e.done += int64(len(e.buf))
	if e.tell != nil {
		e.tell(e.done)
	}
	e.buf = e.buf[:0]
}

func (e *encoder) str(s string) { e.buf = append(e.buf, s...) }
func (e *encoder) int(n int64)  { e.buf = strconv.AppendInt(e.buf, n, 10) }
func (e *encoder) uint(n uint64) {
	e.buf = strconv.AppendUint(e.buf, n, 10)
}
func (e *encoder) sym(s ecs.Symbol) { e.buf = appendString(e.buf, e.m.Symbols.Bytes(s)) }

// prepare sorts the edges outside the placement by consumer and finds out
// which locations are whose.
func (e *encoder) prepare() {
	o := &e.m.Edges.Other
	e.others = make([]uint32, o.Len())
	for i := range e.others {
		e.others[i] = uint32(i)
	}
	slices.SortStableFunc(e.others, func(a, b uint32) int { return cmp.Compare(o.From.At(int(a)), o.From.At(int(b))) })
	e.ownLocations()
	e.findRepeated()
}

// findRepeated marks the rows whose name an earlier row of their function has.
// The names of an execution trace repeat.
func (e *encoder) findRepeated() {
	names := &e.m.Instr.Name
	if names.Len() == 0 {
		return
	}
	seen := ecs.NewBits(e.m.Symbols.Len() + 1)
	for f := range e.m.Functions.Len() {
		lo, hi := e.rows(f)
		for i := lo; i < hi; i++ {
			s := uint32(names.At(int(i)))
			if s == 0 {
				continue
			}
			if seen.Has(s) {
				if len(e.repeated) == 0 {
					e.repeated = ecs.NewBits(e.m.Instr.Len())
				}
				e.repeated.Set(i)
			}
			seen.Set(s)
		}
		for i := lo; i < hi; i++ {
			seen[names.At(int(i))>>6] = 0 // only names of this function are set
		}
	}
}

// ownLocations splits the location table among the functions, which lie in it
// in their order. A function's part begins with the first row that one of its
// operands is at, or earlier where what belongs together (the placements of a
// tensor, aliases) would be torn apart.
func (e *encoder) ownLocations() {
	m := e.m
	n := m.Functions.Len()
	first := make([]uint32, n+1)
	for f := range first {
		first[f] = uint32(m.Locations.Len())
	}
	foreign := map[ecs.Symbol]bool{} // texts that name another function's location
	where := m.Operands.Where.Slice()
	for f := range n {
		lo, hi := e.rows(f)
		for i := lo; i < hi; i++ {
			a, b := m.Operands.Range(components.InstrID(i))
			if a == b {
				continue
			}
			text := m.Instr.Text.Get(int(i))
			skip, known := foreign[text]
			if !known {
				skip = bytes.Contains(m.Symbols.Bytes(text), []byte(`"memref_owner_func"`))
				foreign[text] = skip
			}
			for _, w := range where[a:b] {
				if w > 0 && !skip {
					first[f] = min(first[f], w-1)
				}
			}
		}
	}
	down := e.groupStarts()
	for f := n - 1; f >= 0; f-- {
		first[f] = min(first[f], first[f+1])
		if int(first[f]) < len(down) {
			first[f] = down[first[f]]
		}
	}
	e.locEnd = first[1:]
}

// groupStarts returns for every location the row to which a boundary in front
// of it has to move so that it tears nothing apart.
func (e *encoder) groupStarts() []uint32 {
	t := &e.m.Locations
	n := t.Len()
	start := make([]uint32, n) // of the tensor, then also of the alias set
	firstOf := map[uint32]uint32{}
	for r := range n {
		start[r] = uint32(r)
		if r > 0 && t.Tensor.At(r) != 0 && t.Tensor.At(r) == t.Tensor.At(r-1) {
			start[r] = start[r-1]
		}
		if a := t.Alias.At(r); a != 0 {
			if f, ok := firstOf[a]; ok {
				start[r] = min(start[r], start[f])
			} else {
				firstOf[a] = uint32(r)
			}
		}
	}
	// A boundary in front of row r is wrong where some row from r on reaches
	// back before r; moving it down may tear something else.
	reach := uint32(n)
	for r := n - 1; r >= 0; r-- {
		reach = min(reach, start[r])
		start[r] = min(reach, uint32(r))
	}
	for r := range n {
		for start[r] != start[start[r]] {
			start[r] = start[start[r]]
		}
	}
	return start
}

// rows returns the instruction rows of function f.
func (e *encoder) rows(f int) (lo, hi uint32) {
	t := &e.m.Blocks
	a, b := int(e.m.Functions.FirstBlock.At(f)), int(e.m.Functions.EndBlock.At(f))
	if a >= b {
		return 0, 0
	}
	lo, hi = t.First.At(a), t.First.At(a)
	for ; a < b; a++ {
		hi = max(hi, t.End.At(a))
	}
	return lo, hi
}

// kv is a member that is written in its place among sorted keys.
type kv struct {
	key   string
	write func()
}

func (e *encoder) object(members []kv) {
	slices.SortStableFunc(members, func(a, b kv) int { return strings.Compare(a.key, b.key) })
	e.str("{")
	for i, m := range members {
		if i > 0 {
			e.str(",\n")
		}
		e.buf = appendString(e.buf, m.key)
		e.str(":")
		m.write()
	}
	e.str("}")
}

func (e *encoder) module() {
	m := e.m
	var members []kv
	add := func(key string, write func()) { members = append(members, kv{key, write}) }
	if m.Arch != "" {
		add("arch", func() { e.buf = appendString(e.buf, m.Arch) })
	}
	add("attributes", e.attributes)
	for _, a := range m.Attributes {
		if key, ok := strings.CutPrefix(a.Key, prefixTop); ok && !isFunctionAttribute(a.Key) && json.Valid([]byte(a.Value)) {
			add(key, func() { e.str(a.Value) })
		}
	}
	nki := map[string]bool{}
	for _, a := range m.Attributes {
		if a.Key == attributeNKI {
			nki[a.Value] = true
		}
	}
	// NKI functions are behind the others in the table as they are in the
	// text; where they are not, the order of the table wins.
	split := m.Functions.Len()
	for split > 0 && nki[m.FunctionName(split-1)] {
		split--
	}
	add("functions", func() { e.functions(0, split) })
	if split < m.Functions.Len() {
		add("nki_functions", func() { e.functions(split, m.Functions.Len()) })
	}
	if m.Name != "" {
		add("name", func() { e.buf = appendString(e.buf, m.Name) })
	}
	if e.needsOurs() {
		add("perfsim", e.ours)
	}
	if m.Queues.Len() > 0 {
		add("queues", e.queues)
	}
	add("version", func() { e.str("2") })
	e.object(members)
	e.str("\n")
}

func isFunctionAttribute(key string) bool {
	return key == attributeNKI || strings.HasPrefix(key, prefixFn) || strings.HasPrefix(key, prefixOrigin)
}

func (e *encoder) attributes() {
	e.str("{")
	first := true
	for _, a := range e.m.Attributes {
		if strings.HasPrefix(a.Key, prefixTop) || a.Key == components.AttributeNoDependencies {
			continue
		}
		if !first {
			e.str(",")
		}
		first = false
		e.buf = appendString(e.buf, a.Key)
		e.str(":")
		// The reader gives the text of a value that is no string.
		if len(a.Value) > 0 && a.Value[0] != '"' && json.Valid([]byte(a.Value)) {
			e.str(a.Value)
		} else {
			e.buf = appendString(e.buf, a.Value)
		}
	}
	e.str("}")
}

// needsOurs reports whether the module as a whole has something that documented
// members cannot say.
func (e *encoder) needsOurs() bool { return e.oddLanes() || e.oddDeclared() }

func (e *encoder) oddLanes() bool {
	core := components.NewModule("", "")
	core.AddCoreLanes(0)
	if core.Lanes.Len() != e.m.Lanes.Len() {
		return true
	}
	for l := range core.Lanes.Len() {
		if core.LaneName(uint16(l)) != e.m.LaneName(uint16(l)) || core.Lanes.Engine.At(l) != e.m.Lanes.Engine.At(l) ||
			core.Lanes.Kind.At(l) != e.m.Lanes.Kind.At(l) || core.Lanes.Core.At(l) != e.m.Lanes.Core.At(l) {
			return true
		}
	}
	return false
}

// oddDeclared reports whether the input had more dependencies than are left
// after merging.
func (e *encoder) oddDeclared() bool {
	n := e.m.Edges.Counts()
	for _, k := range e.m.Edges.Other.Kind.Slice() {
		n[k]++
	}
	return n != e.m.Edges.Declared
}

func (e *encoder) ours() {
	m := e.m
	e.str("{")
	if e.oddDeclared() {
		e.str(`"declared":[`)
		for k, n := range m.Edges.Declared {
			if k > 0 {
				e.str(",")
			}
			e.uint(n)
		}
		e.str("]")
	}
	if e.oddLanes() {
		if e.buf[len(e.buf)-1] != '{' {
			e.str(",")
		}
		e.str(`"lanes":[`)
		for l := range m.Lanes.Len() {
			if l > 0 {
				e.str(",")
			}
			e.str(`{"core":`)
			e.uint(uint64(m.Lanes.Core.At(l)))
			e.str(`,"engine":"`)
			e.str(m.Lanes.Engine.At(l).String())
			e.str(`","kind":`)
			e.uint(uint64(m.Lanes.Kind.At(l)))
			e.str(`,"name":`)
			e.sym(m.Lanes.Name.At(l))
			e.str("}")
		}
		e.str("]")
	}
	e.str("}")
}

func (e *encoder) queues() {
	e.str("[")
	for q := range e.m.Queues.Len() {
		if q > 0 {
			e.str(",")
		}
		e.str(`{"name":`)
		e.sym(e.m.Queues.Name.At(q))
		e.str("}")
	}
	e.str("]")
}

func (e *encoder) functions(lo, hi int) {
	m := e.m
	runs := runsOf(m, func(int) uint64 { return 0 }, func(string, string, int) {})
	given := !slices.Equal(runs, m.Functions.Runs.Slice())
	e.str("[")
	for f := lo; f < hi; f++ {
		if f > lo {
			e.str(",\n")
		}
		e.function(f, given)
	}
	e.str("]")
}

func (e *encoder) function(f int, runs bool) {
	m := e.m
	name := m.FunctionName(f)
	e.str("{")
	locLo := uint32(0)
	if f > 0 {
		locLo = e.locEnd[f-1]
	}
	if locLo < e.locEnd[f] {
		e.str(`"allocations":[`)
		e.allocations(int(locLo), int(e.locEnd[f]))
		e.str("],\n")
	}
	if a := m.Attribute(prefixFn + name); a != "" && json.Valid([]byte(a)) {
		e.str(`"attributes":`)
		e.str(a)
		e.str(",")
	}
	e.str(`"blocks":[`)
	e.markDep = e.independent(f)
	e.block = int(m.Functions.FirstBlock.At(f))
	for first := true; e.block < int(m.Functions.EndBlock.At(f)); first = false {
		if !first {
			e.str(",\n")
		}
		e.writeBlock()
	}
	e.str(`],"name":`)
	e.buf = appendString(e.buf, name)
	if o := m.Attribute(prefixOrigin + name); o != "" {
		e.str(`,"origin":`)
		e.buf = appendString(e.buf, o)
	}
	if runs {
		e.str(`,"perfsim":{"runs":`)
		e.uint(m.Functions.Runs.At(f))
		e.str("}")
	}
	e.str("}")
	e.flush(flushAt)
}

// independent reports whether the function has no dependencies although it is
// known that it has none: the text must say so, or a reader takes them for
// lost.
func (e *encoder) independent(f int) bool {
	m := e.m
	for _, a := range m.Attributes {
		if a.Key == components.AttributeNoDependencies && a.Value == m.FunctionName(f) {
			return false
		}
	}
	lo, hi := e.rows(f)
	if hi-lo < 2 || m.Operands.Offsets.Len() == 0 {
		return false
	}
	off := m.Edges.Preds.Offsets()
	if len(off) > 0 && off[hi] > off[lo] {
		return false
	}
	i, _ := slices.BinarySearchFunc(e.others, lo, func(r, row uint32) int { return cmp.Compare(m.Edges.Other.From.At(int(r)), row) })
	return i == len(e.others) || m.Edges.Other.From.At(int(e.others[i])) >= hi
}

// writeBlock writes the next block of the table with the loops in it.
func (e *encoder) writeBlock() {
	m := e.m
	b := e.block
	e.block++
	e.str(`{"instructions":[`)
	end := m.Blocks.End.At(b)
	for i := m.Blocks.First.At(b); i < end && e.err == nil; {
		if i > m.Blocks.First.At(b) {
			e.str(",\n")
		} else {
			e.str("\n")
		}
		i = e.instruction(components.InstrID(i))
		e.flush(flushAt)
	}
	e.str(`],"name":`)
	e.buf = appendString(e.buf, m.BlockName(b))
	e.str("}")
}
