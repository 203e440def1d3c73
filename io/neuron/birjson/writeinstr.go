package birjson

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/jsonscan"
)

// instruction writes row i and, where it is a loop, its blocks; it returns the
// row behind it.
func (e *encoder) instruction(i components.InstrID) uint32 {
	m := e.m
	t := &m.Instr
	row := int(i)
	next := uint32(i) + 1
	op := t.Opcode.At(row)
	flags := t.Flags.At(row)
	engine := t.Engine.At(row)
	holds := e.block < m.Blocks.Len() && m.Blocks.Parent.At(e.block) == uint32(i)+1
	e.takeText(row)
	others := e.othersOf(uint32(i))
	e.ops = e.ops[:0]
	if !holds {
		e.ops = operandsOf(m, i, e.ops)
	}
	w := objectWriter{e: e, left: e.texts}
	w.open()

	// What a reader makes of the documented members, to be compared with what
	// is so.
	seen := derive(op, e.ops)
	seen.flags |= baseFlags(op, engine, holds)
	if op >= components.NumOpcodes {
		seen.flags |= components.FlagUnknownOp
	}

	if flags&components.FlagLoop != 0 && !w.has("LoopAxis") && holds {
		if trip := m.Blocks.Trip.At(e.block); trip > 0 && !w.has("DynamicForLoopAxis") && !w.has("ub") {
			w.key("LoopAxis")
			e.str(`{"lb":0,"stride":1,"ub":`)
			e.uint(trip)
			e.str("}")
		}
	}
	if holds {
		w.key("blocks")
		e.str("[")
		for first := true; e.block < m.Blocks.Len() && m.Blocks.Parent.At(e.block) == uint32(i)+1; first = false {
			if !first {
				e.str(",")
			}
			next = max(next, m.Blocks.End.At(e.block))
			e.writeBlock()
		}
		e.str("]")
		e.takeText(row) // the blocks have used the parser
		w.left, w.all = e.texts[w.at:], e.texts
		e.ops = e.ops[:0]
	}
	if !holds && flags&components.FlagLoop != 0 && !op.IsLoop() {
		w.key("blocks") // none, but they make it a loop
		e.str("[]")
		seen.flags |= components.FlagLoop
	}
	e.debug(&w, row)
	e.dependencies(&w, i, others)
	switch flags & (components.FlagHWDGE | components.FlagSWDGE | components.FlagStaticDMA) {
	case components.FlagHWDGE:
		w.marker("dge_type", `"HWDGE"`, components.FlagHWDGE, &seen.flags)
	case components.FlagSWDGE:
		w.marker("dge_type", `"SWDGE"`, components.FlagSWDGE, &seen.flags)
	case components.FlagStaticDMA:
		w.marker("dge_type", `"None"`, components.FlagStaticDMA, &seen.flags)
	}
	if engine != components.Unassigned {
		w.key("engine")
		e.str(`"`)
		e.str(engine.String())
		e.str(`"`)
	}
	operands := m.Operands.Offsets.Len() > 0 && !holds
	e.operands(&w, components.RoleIndirect, false)
	e.operands(&w, components.RoleIn, operands)
	if op.IsCollective() && flags&components.FlagLocal != 0 {
		w.marker("is_local", "true", components.FlagLocal, &seen.flags)
	}
	if flags&components.FlagScalarTT != 0 {
		w.marker("is_scalar_tensor_tensor", "true", components.FlagScalarTT, &seen.flags)
	}
	if flags&components.FlagScan != 0 {
		w.marker("is_tensor_tensor_scan", "true", components.FlagScan, &seen.flags)
	}
	if op.IsMatmul() && flags&components.FlagTranspose != 0 {
		w.marker("is_transpose", "true", components.FlagTranspose, &seen.flags)
	}
	e.carried(&w, others)
	if (op.IsDMA() || isDescriptor(op)) && flags&components.FlagTranspose != 0 {
		w.marker("mode", `"Transpose"`, components.FlagTranspose, &seen.flags)
	}
	w.key("name")
	e.instrName(i)
	w.key("opcode")
	e.buf = appendString(e.buf, m.OpcodeName(op))
	e.operands(&w, components.RoleOut, operands)

	// perfsim comes before start_tensor_calc and stream_id in the order of
	// keys: work out first what those will say.
	start := op.IsMatmul() && flags&components.FlagAccStart != 0 && w.free("start_tensor_calc")
	stop := op.IsMatmul() && flags&components.FlagAccStop != 0 && w.free("stop_tensor_calc")
	if start {
		seen.flags |= components.FlagAccStart
	}
	if stop {
		seen.flags |= components.FlagAccStop
	}
	seen.flags |= w.textFlags(op)
	stream := 0
	if l := t.Lane.At(row); op.IsCollective() && op != components.OpcodeCollective && l > components.LaneCC0 &&
		l < components.LaneCC0+components.NumStreams && w.free("stream_id") {
		stream = int(l - components.LaneCC0)
	}
	e.overrides(&w, row, &seen, lane(op, engine, seen.flags, stream))
	if q := t.Queue.Get(row); q > 0 {
		w.key("queue")
		e.sym(m.Queues.Name.At(int(q) - 1))
	}
	if start {
		w.key("start_tensor_calc")
		e.str("true")
	}
	if stop {
		w.key("stop_tensor_calc")
		e.str("true")
	}
	if stream > 0 {
		w.key("stream_id")
		e.int(int64(stream))
	}
	e.syncs(&w, i)
	w.close()
	return next
}

// takeText parses the remaining members that row keeps as text.
func (e *encoder) takeText(row int) {
	s := e.m.Instr.Text.Get(row)
	if s == e.textSym && e.isJSON {
		return
	}
	e.textSym, e.isJSON = s, true
	e.texts = e.texts[:0]
	clear(e.opTexts[:])
	if s == 0 {
		return
	}
	b := e.m.Symbols.Bytes(s)
	e.isJSON = false
	if len(b) < 2 || b[0] != '{' {
		return
	}
	v, ok := e.tape.Parse(b)
	if !ok {
		return
	}
	// Only what leftovers made is taken apart again; anything else that
	// happens to be JSON is kept as it is.
	if again, err := appendValue(e.scratch[:0], v); err != nil || !bytes.Equal(again, b) {
		return
	} else {
		e.scratch = again
	}
	e.isJSON = true
	last := ""
	for x := v.Members(); x.Ok(); x = x.Next() {
		key := keyString(x.Key())
		e.isJSON = e.isJSON && key > last
		last = key
	}
	if !e.isJSON {
		return
	}
	for x := v.Members(); x.Ok(); x = x.Next() {
		key := keyString(x.Key())
		if role := slices.Index(operandKeys[:], key); role >= 0 {
			e.opTexts[role] = x.Value()
			continue
		}
		e.texts = append(e.texts, member{key: key, value: x.Value()})
	}
}

// objectWriter writes members in the order of their keys and puts the
// leftover ones in between.
type objectWriter struct {
	e     *encoder
	left  []member // not written yet
	at    int      // how many were
	all   []member
	begun bool
}

func (w *objectWriter) open() {
	w.e.str("{")
	w.all = w.left
}

// key writes the leftovers before key and the key itself.
func (w *objectWriter) key(key string) {
	w.upTo(key)
	w.comma()
	w.e.str(`"`)
	w.e.str(key)
	w.e.str(`":`)
}

func (w *objectWriter) comma() {
	if w.begun {
		w.e.str(",")
	}
	w.begun = true
}

func (w *objectWriter) upTo(key string) {
	for len(w.left) > 0 && w.left[0].key < key {
		w.leftover()
	}
}

func (w *objectWriter) leftover() {
	x := w.left[0]
	w.left = w.left[1:]
	w.at++
	if x.key == "debug" { // its members are written with the documented ones
		return
	}
	w.comma()
	w.e.buf = appendString(w.e.buf, x.key)
	w.e.str(":")
	w.e.value(x.value)
}

func (e *encoder) value(v jsonscan.Value) {
	var err error
	if e.buf, err = appendValue(e.buf, v); err != nil && e.err == nil {
		e.err = err
	}
}

// appendMembersOf appends the members of an object.
func appendMembersOf(list []member, v jsonscan.Value) []member {
	for x := v.Members(); x.Ok(); x = x.Next() {
		list = append(list, member{key: keyString(x.Key()), value: x.Value()})
	}
	return list
}

func (w *objectWriter) close() {
	for len(w.left) > 0 {
		w.leftover()
	}
	w.e.str("}")
}

// get returns a leftover member.
func (w *objectWriter) get(key string) jsonscan.Value {
	for _, x := range w.all {
		if x.key == key {
			return x.value
		}
	}
	return jsonscan.Value{}
}

func (w *objectWriter) has(key string) bool  { return w.get(key).Kind() != jsonscan.Absent }
func (w *objectWriter) free(key string) bool { return !w.has(key) }

// marker writes a member that a reader takes for a flag, unless the leftovers
// have one of that name.
func (w *objectWriter) marker(key, value string, flag components.Flags, seen *components.Flags) {
	if w.has(key) {
		return
	}
	w.key(key)
	w.e.str(value)
	*seen |= flag
}

// textFlags are the flags that a reader takes from members that are kept.
func (w *objectWriter) textFlags(op components.Opcode) components.Flags {
	var f components.Flags
	if op.IsMatmul() {
		f = accumulation(w.get("accumulation_flag"))
	}
	if op == components.OpcodeMemset && isZero(w.get("constant")) {
		f |= components.FlagZeroConst
	}
	return f
}

func (e *encoder) debug(w *objectWriter, row int) {
	t := &e.m.Instr
	source, hlo := e.m.Symbols.Bytes(t.Source.Get(row)), t.HLO.Get(row)
	left := w.get("debug")
	if len(source) == 0 && hlo == 0 {
		if left.Kind() != jsonscan.Absent {
			w.upTo("debug")
			w.comma()
			e.str(`"debug":`)
			e.value(left)
		}
		return
	}
	w.key("debug")
	d := objectWriter{e: e}
	d.left = appendMembersOf(d.left, left)
	d.open()
	file, line := splitSource(source)
	if len(file) > 0 {
		d.key("filename")
		e.buf = appendString(e.buf, file)
	}
	if line != nil {
		d.key("lineno")
		e.buf = append(e.buf, line...)
	}
	if hlo != 0 {
		d.key("op_name")
		e.sym(hlo)
	}
	d.close()
}

// splitSource takes "file:line" apart; line is nil where there is none.
func splitSource(s []byte) (file, line []byte) {
	i := bytes.LastIndexByte(s, ':')
	if i <= 0 {
		return s, nil
	}
	n, err := strconv.ParseUint(string(s[i+1:]), 10, 31)
	if err != nil || string(strconv.AppendUint(nil, n, 10)) != string(s[i+1:]) {
		return s, nil
	}
	return s[:i], s[i+1:]
}

// othersOf returns the rows of the edges outside the placement whose consumer
// is i. It is asked in ascending order.
func (e *encoder) othersOf(i uint32) []uint32 {
	from := &e.m.Edges.Other.From
	for e.next < len(e.others) && from.At(int(e.others[e.next])) < i {
		e.next++
	}
	lo := e.next
	for e.next < len(e.others) && from.At(int(e.others[e.next])) == i {
		e.next++
	}
	return e.others[lo:e.next]
}

func (e *encoder) dependencies(w *objectWriter, i components.InstrID, others []uint32) {
	m := e.m
	o := &m.Edges.Other
	n := 0
	edge := func(to components.InstrID, kind components.EdgeKind) {
		if n == 0 {
			w.key("dependencies")
			e.str("[")
		} else {
			e.str(",")
		}
		n++
		e.str("[")
		e.instrName(to)
		e.str(`,"`)
		e.str(kind.String())
		e.str(`"]`)
	}
	for _, word := range m.Edges.Preds.Row(int(i)) {
		edge(components.InstrID(word&ecs.TargetMask), components.KindOfClass(uint8(word>>ecs.ClassShift)))
	}
	for _, r := range others {
		if o.Scope.At(int(r)) != components.ScopeCarried {
			edge(components.InstrID(o.To.At(int(r))), o.Kind.At(int(r)))
		}
	}
	if n > 0 {
		e.str("]")
	} else if e.markDep {
		w.key("dependencies")
		e.str("[]")
	}
	e.markDep = false
}

func (e *encoder) carried(w *objectWriter, others []uint32) {
	o := &e.m.Edges.Other
	n := 0
	for _, r := range others {
		if o.Scope.At(int(r)) != components.ScopeCarried {
			continue
		}
		if n == 0 {
			w.key("loop_carried_dependencies")
			e.str("[")
		} else {
			e.str(",")
		}
		n++
		e.str("[")
		e.instrName(components.InstrID(o.To.At(int(r))))
		e.str(`,"`)
		e.str(o.Kind.At(int(r)).String())
		e.str(`",[`)
		e.int(int64(o.Distance.At(int(r))))
		e.str("]]")
	}
	if n > 0 {
		e.str("]")
	}
}

// instrName writes the name of row i. Names are unique in a function of BIR
// JSON: one that an earlier row has is followed by # and the row.
func (e *encoder) instrName(i components.InstrID) {
	if s := e.m.Instr.Name.Get(int(i)); s != 0 {
		if len(e.repeated) == 0 || !e.repeated.Has(uint32(i)) {
			e.sym(s)
			return
		}
		name := fmt.Appendf(nil, "%s#%d", e.m.Symbols.Bytes(s), i)
		for _, taken := e.m.Symbols.Find(name); taken; _, taken = e.m.Symbols.Find(name) {
			name = append(name, '#')
		}
		e.buf = appendString(e.buf, name)
		return
	}
	e.str(`"I-`)
	e.uint(uint64(i))
	e.str(`"`)
}

func (e *encoder) syncs(w *objectWriter, i components.InstrID) {
	t := &e.m.Syncs
	lo, hi := t.Range(i)
	if lo == hi {
		return
	}
	w.key("sync_info")
	e.str("{")
	comma := ""
	for _, side := range []struct {
		key, value string
		waits      bool
		usual      components.SyncOp
	}{{"on_update", "update_value", false, components.SetInc}, {"on_wait", "wait_value", true, components.WaitGE}} {
		n := 0
		for r := lo; r < hi; r++ {
			op := t.Op.At(r)
			if op.IsWait() != side.waits {
				continue
			}
			if n == 0 {
				e.str(comma + `"` + side.key + `":[`)
				comma = ","
			} else {
				e.str(",")
			}
			n++
			e.str("{")
			if s := t.Owner.At(r); s != 0 {
				e.str(`"from":`)
				e.sym(s)
				e.str(",")
			}
			e.str(`"id":`)
			e.uint(uint64(t.ID.At(r)))
			if op != side.usual {
				e.str(`,"op":"` + syncNames[op] + `"`)
			}
			if s := t.Space.At(r); s != 'S' {
				e.str(`,"space":`)
				e.uint(uint64(s))
			}
			e.str(`,"` + side.value + `":`)
			e.int(t.Value.At(r))
			e.str("}")
		}
		if n > 0 {
			e.str("]")
		}
	}
	e.str("}")
}

// overrides writes our own member where the documented ones would give other
// values than the columns have.
func (e *encoder) overrides(w *objectWriter, row int, seen *geometry, lane uint16) {
	t := &e.m.Instr
	n := 0
	key := func(k string) {
		if n == 0 {
			w.key("perfsim")
			e.str(`{"`)
		} else {
			e.str(`,"`)
		}
		n++
		e.str(k)
		e.str(`":`)
	}
	number := func(k string, have, seen uint64) {
		if have != seen {
			key(k)
			e.uint(have)
		}
	}
	number("banks", uint64(t.Banks.At(row)), uint64(seen.banks))
	number("compiler_pc", uint64(t.CompilerPC.Get(row)), 0)
	number("dma_bytes", t.DMABytes.Get(row), seen.dmaBytes)
	number("dma_row", uint64(t.DMARow.Get(row)), uint64(seen.dmaRow))
	if d := t.DType.At(row); d != seen.dtype {
		key("dtype")
		e.str(`"` + d.String() + `"`)
	}
	if t.MeasuredDur.Len() > 0 && t.MeasuredStart.Len() == 0 {
		key("duration")
		e.uint(uint64(t.MeasuredDur.At(row)))
	}
	number("elems", uint64(t.Elems.At(row)), uint64(seen.elems))
	if f := t.Flags.At(row); f != seen.flags {
		key("flags")
		e.str("[")
		for b, name := range flagNames {
			if f>>b&1 == 1 {
				if e.buf[len(e.buf)-1] != '[' {
					e.str(",")
				}
				e.str(`"` + name + `"`)
			}
		}
		e.str("]")
	}
	text := e.m.Symbols.Bytes(t.Text.Get(row))
	if f := e.m.Symbols.Bytes(t.Func.Get(row)); !bytes.Equal(f, e.seenFunc(w)) {
		key("func")
		e.buf = appendString(e.buf, f)
	}
	number("lane", uint64(t.Lane.At(row)), uint64(lane))
	if e.m.Operands.Len() == 0 { // else they follow from the access patterns
		number("macs", uint64(t.MACs.Get(row)), 0)
	}
	if t.MeasuredStart.Len() > 0 {
		key("measured")
		e.str("[")
		e.uint(t.MeasuredStart.At(row))
		e.str(",")
		e.uint(uint64(t.MeasuredDur.At(row)))
		e.str("]")
	}
	number("out_elems", uint64(t.OutElems.Get(row)), uint64(seen.outElems))
	number("parts", uint64(t.Parts.At(row)), uint64(seen.parts))
	number("pc", uint64(t.PC.Get(row)), 0)
	if t.Ref.Len() > 0 {
		key("ref")
		e.uint(t.Ref.At(row))
	}
	if scope := e.m.Symbols.Bytes(t.Scope.Get(row)); len(scope) > 0 {
		key("scope")
		e.buf = appendString(e.buf, scope)
	}
	if !e.isJSON && len(text) > 0 {
		key("text")
		e.buf = appendString(e.buf, text)
	}
	number("wait", uint64(t.MeasuredWait.Get(row)), 0)
	number("work", t.Work.Get(row), 0)
	if n > 0 {
		e.str("}")
	}
}

// seenFunc is the function that a reader takes for the instruction's.
func (e *encoder) seenFunc(w *objectWriter) []byte {
	for _, k := range []string{"func", "op0", "op"} {
		if b := text(w.get(k)); len(b) > 0 {
			return b
		}
	}
	return nil
}
