package query

import (
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
)

// A field is something to ask of an instruction or an edge. Exactly one of
// its functions is set.
type field struct {
	name string
	doc  string
	edge bool // of edges only

	index  func(q *engine) *lookup        // a bitmap index over a small enumeration
	flag   func(q *engine, i uint32) bool // a bare word
	number func(q *engine, i uint32) (float64, bool)
	text   func(q *engine, i uint32) []byte
	// also is another field whose values are understood: the column ENGINE of
	// tables holds lanes.
	also func(q *engine) *lookup
	// long is another form of a text that = and != take too.
	long func(q *engine, i uint32) []byte
	// canonical turns a value into the form that text has; ok is false for one
	// that text never has.
	canonical func(value string) (text string, ok bool)
	needs     need
}

// need says what has to be worked out before a field can be asked.
type need uint8

const (
	needWhy need = 1 << iota
	needSlack
	needPath
)

// lookup answers which rows have one of the keys that a value names.
type lookup struct {
	of   *ecs.Index
	keys func(value string, partial bool) []int
	// names lists what may stand as a value, for errors.
	names func() []string
}

// fields lists every field; instructions first, then those of edges. For an
// edge i is its id.
func fields() []field {
	flag := func(name, doc string, f components.Flags) field {
		return field{name: name, doc: doc, flag: func(q *engine, i uint32) bool { return q.m.Instr.Flags.At(int(i))&f != 0 }}
	}
	return []field{
		{name: "engine", doc: "kind of engine of the lane: PE, DVE, Activation, Pool, SP, DMA; or a lane by name", index: (*engine).engines, also: (*engine).lanes},
		{name: "lane", doc: "lane by name", index: (*engine).lanes},
		{name: "opcode", doc: "instruction type", index: (*engine).opcodes},
		{name: "name", doc: "name of the instruction", text: func(q *engine, i uint32) []byte {
			q.buf = q.m.AppendInstrName(q.buf[:0], components.InstrID(i))
			return q.buf
		}},
		{name: "source", doc: "source line, file:line, or where there is none the HLO name, as tables show it",
			text: func(q *engine, i uint32) []byte {
				return q.m.Symbols.Bytes(attribute.Where(q.m, components.InstrID(i)))
			}},
		{name: "scope", doc: "path of the operator in the program, else its source line, else its name", text: func(q *engine, i uint32) []byte {
			return q.m.Symbols.Bytes(q.m.ScopeOf(components.InstrID(i)))
		}},
		{name: "hlo", doc: "name of the HLO instruction", text: symbol(func(t *components.Instructions) *ecs.Column[ecs.Symbol] { return &t.HLO })},
		{name: "func", doc: "activation function or ALU operation", text: symbol(func(t *components.Instructions) *ecs.Column[ecs.Symbol] { return &t.Func })},
		{name: "operands", doc: "operand text as the input had it", text: symbol(func(t *components.Instructions) *ecs.Column[ecs.Symbol] { return &t.Text })},
		{name: "dtype", doc: "element type", text: func(q *engine, i uint32) []byte { return []byte(q.m.Instr.DType.At(int(i)).String()) }},
		{name: "block", doc: "innermost block, as BLOCK or FUNCTION/BLOCK", text: func(q *engine, i uint32) []byte { return q.blockName(i) },
			long: func(q *engine, i uint32) []byte { return q.longBlockName(i) }},
		{name: "cause", doc: "what held it: lane, flow, anti, output, ordered, bank, coupling, ring, barrier, semaphore, model, start", needs: needWhy,
			canonical: func(v string) (string, bool) { c, ok := components.ParseCause(v); return c.String(), ok },
			text:      func(q *engine, i uint32) []byte { return []byte(q.why.Cause.At(int(i)).String()) }},
		{name: "row", doc: "row in program order", number: func(_ *engine, i uint32) (float64, bool) { return float64(i), true }},
		{name: "start", doc: "ns from the start of its block", number: func(q *engine, i uint32) (float64, bool) {
			s, _ := q.w.Events.Span(q.m, components.InstrID(i), components.RunA)
			return float64(s), q.placed(i)
		}},
		{name: "end", doc: "ns", number: func(q *engine, i uint32) (float64, bool) {
			_, e := q.w.Events.Span(q.m, components.InstrID(i), components.RunA)
			return float64(e), q.placed(i)
		}},
		{name: "dur", doc: "how long until its result is there, ns", number: func(q *engine, i uint32) (float64, bool) {
			return float64(q.w.Events.Duration(q.m, components.InstrID(i), components.RunA)), q.placed(i)
		}},
		{name: "busy", doc: "what it adds to the busy time of its lane, ns", number: func(q *engine, i uint32) (float64, bool) { return float64(q.busy()[i]), q.placed(i) }},
		{name: "executions", doc: "how often it executes: runs of its function times trips around it", number: func(q *engine, i uint32) (float64, bool) {
			return float64(q.executions().At(components.InstrID(i))), true
		}},
		{name: "issue", doc: "how long it keeps its engine, ns", number: func(q *engine, i uint32) (float64, bool) { return float64(q.m.Instr.Issue.At(int(i))), true }},
		{name: "slack", doc: "how much it could slip, ns", needs: needWhy | needSlack, number: func(q *engine, i uint32) (float64, bool) { return float64(q.slack[i]), q.placed(i) }},
		{name: "delay", doc: "start behind what held it, ns", needs: needWhy, number: func(q *engine, i uint32) (float64, bool) { return float64(q.why.Gap.Get(int(i))), q.placed(i) }},
		{name: "elems", doc: "elements per partition", number: func(q *engine, i uint32) (float64, bool) { return float64(q.m.Instr.Elems.At(int(i))), true }},
		{name: "parts", doc: "partitions", number: func(q *engine, i uint32) (float64, bool) { return float64(q.m.Instr.Parts.At(int(i))), true }},
		{name: "bytes", doc: "bytes a DMA moves", number: func(q *engine, i uint32) (float64, bool) {
			return float64(q.m.Instr.DMABytes.Get(int(i))), q.m.Instr.DMABytes.Len() > 0
		}},
		{name: "rowbytes", doc: "bytes of one contiguous row of a DMA", number: func(q *engine, i uint32) (float64, bool) {
			v := q.m.Instr.DMARow.Get(int(i))
			return float64(v), v > 0
		}},
		{name: "preds", doc: "number of dependencies", number: func(q *engine, i uint32) (float64, bool) { return float64(len(q.m.Edges.Preds.Row(int(i)))), true }},
		{name: "measured", doc: "measured duration, ns", number: func(q *engine, i uint32) (float64, bool) {
			return float64(q.m.Instr.MeasuredDur.Get(int(i))), q.m.HasMeasurement()
		}},
		{name: "critical", doc: "on the critical path", needs: needWhy | needPath, flag: func(q *engine, i uint32) bool { return q.path.Has(i) }},
		flag("transpose", "a transpose", components.FlagTranspose),
		flag("spill", "a spill store or reload", components.FlagSpill),
		flag("trigger", "triggers a DMA", components.FlagTrigger),
		flag("collective", "a collective", components.FlagCollective),
		flag("barrier", "a barrier", components.FlagBarrier),
		flag("sequencer", "done by the sequencer", components.FlagSequencer),
		flag("loop", "a loop", components.FlagLoop),
		flag("psum", "writes PSUM", components.FlagDstPSUM),
		flag("todram", "writes device memory", components.FlagDstDRAM),
		flag("fromdram", "reads device memory", components.FlagSrcDRAM),

		{name: "kind", doc: "kind of dependency: flow, anti, output, ordered", edge: true, index: (*engine).kinds},
		{name: "cross", doc: "its ends are on two lanes", edge: true, flag: func(q *engine, e uint32) bool {
			return q.m.Instr.Lane.At(int(q.consumer(e))) != q.m.Instr.Lane.At(int(q.producer(e)))
		}},
		{name: "binding", doc: "it held its consumer", edge: true, needs: needWhy, flag: func(q *engine, e uint32) bool { return q.binding(e) }},
		{name: "hop", doc: "it is a hop of the critical path", edge: true, needs: needWhy | needPath, flag: func(q *engine, e uint32) bool {
			return q.binding(e) && q.path.Has(q.consumer(e)) && q.path.Has(q.producer(e))
		}},
		{name: "gap", doc: "from when the producer lets go to the consumer's start, ns", edge: true, number: func(q *engine, e uint32) (float64, bool) { return q.gap(e), true }},
		{name: "distance", doc: "rows between its ends", edge: true, number: func(q *engine, e uint32) (float64, bool) { return float64(q.consumer(e) - q.producer(e)), true }},
	}
}

func symbol(column func(*components.Instructions) *ecs.Column[ecs.Symbol]) func(q *engine, i uint32) []byte {
	return func(q *engine, i uint32) []byte { return q.m.Symbols.Bytes(column(&q.m.Instr).Get(int(i))) }
}

// Field describes a field for people.
type Field struct {
	Name string `json:"name"` // name of the field
	Doc  string `json:"doc"`  // what it holds
	Edge bool   `json:"edge"` // of edges only
	Kind string `json:"kind"` // "word", "flag", "number", "text"
}

// Fields lists what can be asked.
func Fields() []Field {
	var out []Field
	for _, f := range fields() {
		kind := "text"
		switch {
		case f.index != nil:
			kind = "word"
		case f.flag != nil:
			kind = "flag"
		case f.number != nil:
			kind = "number"
		}
		out = append(out, Field{f.name, f.doc, f.edge, kind})
	}
	return out
}

// placed reports whether instruction i has an event.
func (q *engine) placed(i uint32) bool { return q.m.Instr.Flags.At(int(i))&components.FlagLoop == 0 }

// producer and consumer are the ends of edge e.
func (q *engine) producer(e uint32) uint32 { return q.words[e] & ecs.TargetMask }

// consumer finds the row that edge e belongs to; edges are mostly asked in
// order.
func (q *engine) consumer(e uint32) uint32 {
	i := q.row
	if q.off[i] <= e && e < q.off[i+1] {
		return uint32(i)
	}
	if e < q.off[i] || i+8 < len(q.off) && q.off[i+8] <= e {
		lo, hi := 0, len(q.off)-1
		for lo+1 < hi {
			mid := (lo + hi) / 2
			if q.off[mid] <= e {
				lo = mid
			} else {
				hi = mid
			}
		}
		i = lo
	}
	for q.off[i+1] <= e {
		i++
	}
	q.row = i
	return uint32(i)
}

// binding reports whether edge e held its consumer.
func (q *engine) binding(e uint32) bool {
	i := int(q.consumer(e))
	return q.why.Pred.At(i) == components.InstrID(q.producer(e)) &&
		q.why.Cause.At(i) == components.CauseOfKind(components.KindOfClass(uint8(q.words[e]>>ecs.ClassShift)))
}

// gap is the time from when the producer releases to the consumer's start;
// negative where the placement does not honour the edge.
func (q *engine) gap(e uint32) float64 {
	i, p := components.InstrID(q.consumer(e)), components.InstrID(q.producer(e))
	start, _ := q.w.Events.Span(q.m, i, components.RunA)
	from, end := q.w.Events.Span(q.m, p, components.RunA)
	at := q.w.Events.Arrive.At(int(p))[components.RunA]
	if uint8(q.words[e]>>ecs.ClassShift) == components.ClassOrdered {
		at = from + min(uint64(q.m.Instr.Issue.At(int(p))), end-from)
		if q.m.Instr.Flags.At(int(p))&components.FlagTrigger != 0 {
			at = end
		}
	} else if q.w.Why[components.RunA] != nil {
		at = q.w.Why[components.RunA].Visible.At(int(p))
	}
	return float64(start) - float64(at)
}

// blockName returns the name of the innermost block of row i.
func (q *engine) blockName(i uint32) []byte {
	return q.m.Symbols.Bytes(q.m.Blocks.Name.At(q.innermost(i)))
}

func (q *engine) innermost(i uint32) int {
	t := &q.m.Blocks
	if q.inner == nil {
		q.inner = make([]uint32, q.m.Instr.Len())
		for b := range t.Len() { // inner blocks come after the ones around them
			for k := t.First.At(b); k < t.End.At(b); k++ {
				q.inner[k] = uint32(b)
			}
		}
	}
	return int(q.inner[i])
}

// longBlockName returns FUNCTION/BLOCK of the innermost block of row i.
func (q *engine) longBlockName(i uint32) []byte {
	q.buf = append(q.buf[:0], q.m.FunctionName(int(q.m.Blocks.Function.At(q.innermost(i))))...)
	q.buf = append(q.buf, '/')
	return append(q.buf, q.blockName(i)...)
}

// Where returns the place of an instruction.
func where(m *components.Module, i uint32) string {
	return m.Symbols.String(attribute.Where(m, components.InstrID(i)))
}
