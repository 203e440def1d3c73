package birjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// worker parses batches. Every goroutine has its own.
type worker struct {
	b     *batch
	known map[string]components.Opcode
	tape  jsonscan.Tape

	op     components.AccessPattern // of the current operand
	left   []member                 // what has no column
	opLeft [3][]operandLeft         // the same of the operands, by role
	raw    []byte                   // JSON text of members made here
	buf    []byte
}

// operandLeft has the fields of an operand that no column holds.
type operandLeft struct {
	index   int
	members []member
}

func newWorker(known map[string]components.Opcode) *worker { return &worker{known: known} }

// parse parses the items of b up to the first error.
func (w *worker) parse(b *batch) {
	w.b = b
	for i := range b.items {
		it := &b.items[i]
		if !w.done(i, w.item(it, b.text[it.lo:it.hi])) {
			return
		}
	}
}

// done takes the error of item i of the batch and reports whether there is
// none.
func (w *worker) done(i int, err error) bool {
	if err == nil {
		return true
	}
	b := w.b
	if b.err, _ = errors.AsType[*jsonscan.Error](err); b.err == nil {
		b.err = &jsonscan.Error{At: b.items[i].at, Err: err}
	}
	b.items = b.items[:i]
	return false
}

// note counts something kept but not understood.
func (w *worker) note(code string, what []byte) {
	o := &w.b.out
	for i := range o.unread {
		u := &o.unread[i]
		if u.code == code && string(o.bytes(u.what)) == string(what) {
			u.count++
			return
		}
	}
	o.unread = append(o.unread, unread{code, o.keep(what), 1})
}

// item reads one item from its text.
func (w *worker) item(it *item, raw []byte) error {
	if it.kind >= itemFunction {
		return nil
	}
	if !utf8.Valid(raw) { // replaced, so that every name can be written again
		w.note("invalid-utf8", nil)
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	v, ok := w.tape.Parse(raw)
	if !ok {
		return w.syntax(it, raw)
	}
	return w.value(it, v)
}

// value reads one item from its value.
func (w *worker) value(it *item, v jsonscan.Value) error {
	switch it.kind {
	case itemAlloc:
		return w.allocation(it, v)
	case itemDMABlock:
		return w.dmaBlock(v)
	default:
		return w.instruction(it, v)
	}
}

// syntax finds out where in raw the JSON is wrong.
func (w *worker) syntax(it *item, raw []byte) error {
	var any json.RawMessage
	strict := json.Unmarshal(raw, &any)
	se, ok := errors.AsType[*json.SyntaxError](strict)
	if !ok {
		return errors.New("malformed JSON")
	}
	if it.holds { // raw is not as it stands in the input
		return fmt.Errorf("malformed JSON: %w", strict)
	}
	n := max(int(se.Offset)-1, 0)
	at := it.at
	at.Off += int64(n)
	if at.Line > 0 {
		if nl := bytes.Count(raw[:n], []byte{'\n'}); nl > 0 {
			at.Line += nl
			at.Col = n - bytes.LastIndexByte(raw[:n], '\n')
		} else {
			at.Col += n
		}
	}
	return &jsonscan.Error{At: at, Err: fmt.Errorf("malformed JSON: %w", strict)}
}

// instruction parses one instruction.
func (w *worker) instruction(it *item, v jsonscan.Value) error {
	o := &w.b.out
	in := instr{row: it.row, block: it.block, at: it.at, holds: it.holds}
	var f fields
	w.left = w.left[:0]
	w.raw = w.raw[:0]
	for x := v.Members(); x.Ok(); x = x.Next() {
		if p := f.of(x.Key()); p != nil {
			*p = x.Value()
			continue
		}
		w.left = append(w.left, member{key: keyString(x.Key()), value: x.Value()})
	}
	err := w.fill(&in, &f)
	if err != nil {
		return fmt.Errorf("instruction %s: %w", w.called(&in, &f), err)
	}
	o.instrs = append(o.instrs, in)
	return nil
}

// called is the name of an instruction for messages.
func (w *worker) called(in *instr, f *fields) string {
	if n := text(f.name); n != nil {
		return clip(string(n))
	}
	return fmt.Sprintf("%d (without a name)", in.row)
}

// fields are the members of an instruction that have columns, or from which a
// column follows.
type fields struct {
	name, opcode, engine, queue, debug, ins, outs, indirect, deps, carried, unroll, sync        jsonscan.Value
	blocks, axis, dynAxis, lb, ub, stride, dge, stream, local, trigger, target, start, end      jsonscan.Value
	transpose, accStart, accStop, accFlag, mode, scan, scalarTT, constant, fn, op, op0, perfsim jsonscan.Value
}

func (f *fields) of(key []byte) *jsonscan.Value {
	switch string(key) {
	case "name":
		return &f.name
	case "opcode":
		return &f.opcode
	case "engine":
		return &f.engine
	case "queue":
		return &f.queue
	case "debug":
		return &f.debug
	case "ins":
		return &f.ins
	case "outs":
		return &f.outs
	case "indirection_ins":
		return &f.indirect
	case "dependencies":
		return &f.deps
	case "loop_carried_dependencies":
		return &f.carried
	case "unroll_dependencies":
		return &f.unroll
	case "sync_info":
		return &f.sync
	case "blocks":
		return &f.blocks
	case "LoopAxis":
		return &f.axis
	case "DynamicForLoopAxis":
		return &f.dynAxis
	case "lb":
		return &f.lb
	case "ub":
		return &f.ub
	case "stride":
		return &f.stride
	case "dge_type":
		return &f.dge
	case "stream_id":
		return &f.stream
	case "is_local":
		return &f.local
	case "dma_blocks":
		return &f.trigger
	case "target":
		return &f.target
	case "scheduled_start":
		return &f.start
	case "scheduled_end":
		return &f.end
	case "is_transpose":
		return &f.transpose
	case "start_tensor_calc":
		return &f.accStart
	case "stop_tensor_calc":
		return &f.accStop
	case "accumulation_flag":
		return &f.accFlag
	case "mode":
		return &f.mode
	case "is_tensor_tensor_scan":
		return &f.scan
	case "is_scalar_tensor_tensor":
		return &f.scalarTT
	case "constant":
		return &f.constant
	case "func":
		return &f.fn
	case "op":
		return &f.op
	case "op0":
		return &f.op0
	case "perfsim":
		return &f.perfsim
	}
	return nil
}

// rest keeps a member that is not, or not wholly, expressed by columns.
func (w *worker) rest(key string, v jsonscan.Value) {
	if v.Kind() != jsonscan.Absent {
		w.left = append(w.left, member{key: key, value: v})
	}
}

func (w *worker) fill(in *instr, f *fields) error {
	o := &w.b.out
	if err := w.identity(in, f); err != nil {
		return err
	}
	var err error
	if in.deps, err = w.dependencies(in, f); err != nil {
		return err
	}
	flags := w.markers(in, f)
	if err := w.operands(in, f); err != nil {
		return err
	}
	if f.perfsim.Kind() != jsonscan.Absent {
		if err := w.ours(in, f.perfsim, &flags); err != nil {
			return fmt.Errorf("perfsim: %w", err)
		}
	}
	in.flags |= flags
	if in.flags&components.FlagLoop != 0 {
		if in.trip, err = w.trips(f); err != nil {
			return err
		}
		w.axis(in, f)
	} else {
		w.rest("LoopAxis", f.axis)
	}
	w.rest("DynamicForLoopAxis", f.dynAxis)
	w.rest("lb", f.lb)
	w.rest("ub", f.ub)
	w.rest("stride", f.stride)
	if err := w.debug(in, f.debug); err != nil {
		return err
	}
	if err := w.syncs(in, f.sync); err != nil {
		return err
	}
	if err := w.scheduled(f); err != nil {
		return err
	}
	if !in.holds && f.blocks.Kind() > jsonscan.Null {
		w.rest("blocks", f.blocks)
	}
	w.rest("func", f.fn)
	w.rest("op", f.op)
	w.rest("op0", f.op0)
	for _, v := range []jsonscan.Value{f.fn, f.op0, f.op} {
		if b := text(v); len(b) > 0 {
			in.fn = o.keep(b)
			break
		}
	}
	w.rest("target", f.target)
	if in.opcode == components.OpcodeCall {
		in.target = o.keep(text(f.target))
	}
	w.rest("dma_blocks", f.trigger)
	in.refs.lo = uint32(len(o.refs))
	if in.opcode == components.OpcodeDMATrigger && !in.overrides && f.trigger.Kind() == jsonscan.Array {
		for _, n := range f.trigger.All() {
			if b := text(n); b != nil {
				o.refs = append(o.refs, o.keep(b))
			}
		}
	}
	in.refs.hi = uint32(len(o.refs))
	return w.leftovers(in)
}

// identity reads name, opcode, engine and queue.
func (w *worker) identity(in *instr, f *fields) error {
	o := &w.b.out
	if f.name.Kind() != jsonscan.Absent {
		name := text(f.name)
		if name == nil {
			return fmt.Errorf("name: is %s, not a string", f.name.Kind())
		}
		in.name = o.keep(name)
		in.hash = hashName(name)
	}
	op := text(f.opcode)
	if len(op) == 0 {
		return errors.New("it has no opcode")
	}
	var ok bool
	if in.opcode, ok = w.known[string(op)]; !ok {
		in.unknown = o.keep(op)
		in.opcode = components.NumOpcodes
		w.note("unknown-opcode", op)
	}
	if f.engine.Kind() > jsonscan.Null {
		e := text(f.engine)
		if in.engine, ok = components.ParseEngine(string(e)); !ok {
			return fmt.Errorf("engine: %q is no engine of the machine (Unassigned, Pool, Activation, PE, DMA, DVE, SP or ALL)", clip(strings.Trim(string(f.engine.AppendTo(nil)), `"`)))
		}
	}
	if q := text(f.queue); q != nil {
		in.queue = o.keep(q)
	} else {
		w.rest("queue", f.queue)
	}
	return nil
}

// markers reads the members that become flags and the lane. What they say in
// full is dropped from the rest; the writer makes them again.
func (w *worker) markers(in *instr, f *fields) components.Flags {
	op := in.opcode
	flags := baseFlags(op, in.engine, in.holds)
	take := func(key string, v jsonscan.Value, flag components.Flags, yes bool) {
		switch {
		case v.Kind() == jsonscan.Absent:
		case yes:
			flags |= flag
		default:
			w.rest(key, v)
		}
	}
	if op == components.NumOpcodes {
		flags |= components.FlagUnknownOp
	}
	switch string(text(f.dge)) {
	case "SWDGE":
		flags |= components.FlagSWDGE
	case "HWDGE":
		flags |= components.FlagHWDGE
	case "None":
		flags |= components.FlagStaticDMA
	default:
		w.rest("dge_type", f.dge)
	}
	if op.IsMatmul() {
		take("is_transpose", f.transpose, components.FlagTranspose, isTrue(f.transpose))
		take("start_tensor_calc", f.accStart, components.FlagAccStart, isTrue(f.accStart))
		take("stop_tensor_calc", f.accStop, components.FlagAccStop, isTrue(f.accStop))
		w.rest("accumulation_flag", f.accFlag)
		flags |= accumulation(f.accFlag)
	} else {
		w.rest("is_transpose", f.transpose)
		w.rest("start_tensor_calc", f.accStart)
		w.rest("stop_tensor_calc", f.accStop)
		w.rest("accumulation_flag", f.accFlag)
	}
	take("mode", f.mode, components.FlagTranspose, (op.IsDMA() || isDescriptor(op)) && string(text(f.mode)) == "Transpose")
	take("is_tensor_tensor_scan", f.scan, components.FlagScan, isTrue(f.scan))
	take("is_scalar_tensor_tensor", f.scalarTT, components.FlagScalarTT, isTrue(f.scalarTT))
	take("is_local", f.local, components.FlagLocal, op.IsCollective() && isTrue(f.local))
	if f.constant.Kind() != jsonscan.Absent {
		w.rest("constant", f.constant)
		if op == components.OpcodeMemset && isZero(f.constant) {
			flags |= components.FlagZeroConst
		}
	}
	stream := 0
	if f.stream.Kind() != jsonscan.Absent {
		n, err := number(f.stream, 0, components.NumStreams-1)
		if op.IsCollective() && err == nil {
			stream = int(n)
		} else {
			if op.IsCollective() {
				w.note("stream-id", f.stream.AppendTo(nil))
			}
			w.rest("stream_id", f.stream)
		}
	}
	in.lane = lane(op, in.engine, flags, stream)
	return flags
}

// baseFlags are the flags that follow from opcode and engine alone; holds says
// that the instruction has blocks of its own.
func baseFlags(op components.Opcode, engine components.Engine, holds bool) components.Flags {
	var flags components.Flags
	switch op {
	case components.OpcodeDMATrigger:
		flags |= components.FlagTrigger
	case components.OpcodeCollectiveCompute:
		flags |= components.FlagCollective
	case components.OpcodeStreamShuffle, components.OpcodeStreamTranspose:
		flags |= components.FlagCrossPart
	}
	if op.IsLoop() || holds {
		flags |= components.FlagLoop
	}
	if op.IsControl() {
		flags |= components.FlagSequencer
	}
	if engine == components.All {
		flags |= components.FlagBarrier
	}
	return flags
}

func isZero(v jsonscan.Value) bool {
	if v.Kind() != jsonscan.Number {
		return false
	}
	x, err := v.Float64()
	return err == nil && x == 0
}

// lane is the timeline of an instruction (docs/model.md, section 2).
func lane(op components.Opcode, engine components.Engine, flags components.Flags, stream int) uint16 {
	switch {
	case op.IsDMA():
		return components.LaneDMA
	case op == components.OpcodeCollective:
		return components.LaneCC0
	case op.IsCollective() && flags&components.FlagLocal != 0:
		return components.LaneDMA
	case op.IsCollective():
		return components.LaneCC0 + uint16(stream)
	}
	return uint16(engine)
}

// accumulation reads the newer spelling of a matmul's place in its
// accumulation group. The names are those of EngineAccumulationType; numbers
// are its ordinals: Zero and ZeroAccumulate start a group. Where a group ends
// it does not say.
func accumulation(v jsonscan.Value) components.Flags {
	switch v.Kind() {
	case jsonscan.String:
		switch string(text(v)) {
		case "Zero", "ZeroAccumulate":
			return components.FlagAccStart
		}
	case jsonscan.Number:
		if n, err := v.Int64(); err == nil && (n == 1 || n == 3) {
			return components.FlagAccStart
		}
	}
	return 0
}

// dependencies reads both lists of dependencies.
func (w *worker) dependencies(in *instr, f *fields) (rng, error) {
	o := &w.b.out
	r := rng{lo: uint32(len(o.deps))}
	in.hasDeps = f.deps.Kind() != jsonscan.Absent || f.carried.Kind() != jsonscan.Absent
	for i, v := range []jsonscan.Value{f.deps, f.carried} {
		key := "dependencies"
		if i == 1 {
			key = "loop_carried_dependencies"
		}
		if v.Kind() <= jsonscan.Null {
			continue
		}
		list, err := array(v)
		if err != nil {
			return r, fmt.Errorf("%s: is %s, not a list", key, v.Kind())
		}
		for _, e := range list.All() {
			d := dep{kind: components.Flow, carried: i == 1}
			if i == 1 {
				d.distance = 1
			}
			name := text(e)
			if name == nil {
				parts := e.Len()
				if parts == 0 {
					return r, fmt.Errorf("%s: expected a name or [name, kind], found %s", key, clip(string(e.AppendTo(nil))))
				}
				if name = text(e.At(0)); name == nil {
					return r, fmt.Errorf("%s: the name is %s, not a string", key, e.At(0).Kind())
				}
				if parts > 1 {
					if d.kind, err = edgeKind(e.At(1)); err != nil {
						return r, fmt.Errorf("%s: %w", key, err)
					}
				}
				if i == 1 && parts > 2 {
					if d.distance, err = distance(e.At(2)); err != nil {
						return r, fmt.Errorf("%s: %w", key, err)
					}
				}
			}
			d.name = o.keep(name)
			d.hash = hashName(name)
			o.deps = append(o.deps, d)
		}
	}
	if f.unroll.Kind() != jsonscan.Absent {
		w.rest("unroll_dependencies", f.unroll)
		if f.unroll.Elements().Ok() {
			w.note("unroll-dependency", nil)
		}
	}
	r.hi = uint32(len(o.deps))
	return r, nil
}

func edgeKind(v jsonscan.Value) (components.EdgeKind, error) {
	if v.Kind() == jsonscan.String {
		k, ok := components.ParseEdgeKind(string(text(v)))
		if !ok {
			return 0, fmt.Errorf("unknown kind %q", clip(string(text(v))))
		}
		return k, nil
	}
	n, err := number(v, 0, int64(components.NumEdgeKinds)-1)
	if err != nil {
		return 0, fmt.Errorf("kind %w", err)
	}
	return components.EdgeKind(n), nil
}

// distance is that of the innermost loop, the last of the list.
func distance(v jsonscan.Value) (int32, error) {
	if n := v.Len(); n > 0 {
		v = v.At(n - 1)
	} else if v.Kind() == jsonscan.Array {
		return 1, nil
	}
	n, err := number(v, math.MinInt32, math.MaxInt32)
	if err != nil {
		return 0, fmt.Errorf("distance %w", err)
	}
	return int32(n), nil
}

// debug reads where the instruction comes from.
func (w *worker) debug(in *instr, v jsonscan.Value) error {
	if v.Kind() == jsonscan.Absent {
		return nil
	}
	obj, err := object(v)
	if err != nil {
		w.rest("debug", v)
		return nil
	}
	o := &w.b.out
	var file, op []byte
	line := int64(-1)
	var left []member
	for x := obj.Members(); x.Ok(); x = x.Next() {
		key, v := x.Key(), x.Value()
		switch string(key) {
		case "filename", "fileName":
			if b := text(v); b != nil {
				file = b
				continue
			}
		case "lineno", "lineNo":
			if n, err := number(v, 0, math.MaxInt32); err == nil {
				line = n
				continue
			}
		case "op_name", "opName":
			if b := text(v); b != nil {
				op = b
				continue
			}
		}
		left = append(left, member{key: keyString(key), value: v})
	}
	if len(file) > 0 {
		lo := len(o.str)
		o.str = append(o.str, file...)
		if line >= 0 {
			o.str = fmt.Appendf(o.str, ":%d", line)
		}
		in.source = span{uint32(lo), uint32(len(o.str))}
	}
	in.hlo = o.keep(op)
	return w.debugLeft(left)
}

// scheduled checks the scheduler's own times, which nothing else uses.
func (w *worker) scheduled(f *fields) error {
	for _, t := range []struct {
		key string
		v   jsonscan.Value
	}{{"scheduled_start", f.start}, {"scheduled_end", f.end}} {
		if t.v.Kind() <= jsonscan.Null {
			continue
		}
		n, err := number(t.v, 0, math.MaxInt64)
		if err != nil {
			return fmt.Errorf("%s: %w", t.key, err)
		}
		if n != 0 {
			w.rest(t.key, t.v)
		}
	}
	return nil
}
