package profile

import (
	"bytes"
	"math"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// maxOperands bounds the operand text of one instruction; real ones have 300
// bytes.
const maxOperands = 1 << 16

// instructionSize is the bytes of one instruction: branch labels count bytes,
// program counters count instructions.
const instructionSize = 64

// instruction reads one element of the instruction section.
func (w *worker) instruction(obj jsonscan.Value, offset int64) {
	w.in = instr{offset: offset}
	w.use = traffic{}
	w.ops, w.fn, w.trans, w.preds = nil, nil, false, jsonscan.Value{}
	var label, subgroup, opcode []byte
	for m := obj.Members(); m.Ok(); m = m.Next() {
		key, v := m.Key(), m.Value()
		in := &w.in
		switch string(key) {
		case "id":
			in.id, in.hasID = w.uint("id", v, math.MaxUint64), v.Kind() != jsonscan.Null
		case "timestamp":
			in.start = w.uint("timestamp", v, maxTime)
		case "duration":
			in.dur = w.clamped("duration", v)
		case "evt_wait_time":
			in.wait = w.clamped("evt_wait_time", v)
		case "pc":
			if v.Kind() != jsonscan.Null {
				in.pc = uint32(w.uint("pc", v, math.MaxUint32-1)) + 1
			}
		case "compiler_pc":
			if v.Kind() != jsonscan.Null {
				in.compilerPC = uint32(w.uint("compiler_pc", v, math.MaxUint32-1)) + 1
			}
		case "label":
			label = w.str(v)
		case "subgroup":
			subgroup = w.str(v)
		case "opcode":
			opcode = w.str(v)
		case "operands":
			w.ops = w.str(v)
		case "subgraph":
			w.core = w.word(w.str(v))
		case "bir_instruction_name":
			in.name = w.keep(w.str(v))
		case "bir_id":
			if id := w.str(v); len(w.out.function) == 0 {
				if colon := bytes.IndexByte(id, ':'); colon > 0 {
					w.out.function = string(valid(id[:colon]))
				}
			}
		case "hlo_name":
			in.hlo = w.keep(w.str(v))
		case "nki_source_location":
			in.source = w.keep(w.str(v))
		case "bir_debug_info_source_location":
			if in.source == (span{}) || in.source.lo == in.source.hi {
				in.source = w.keep(w.str(v))
			}
		case "instruction_type":
			w.trans = string(w.str(v)) == "TRANSPOSE"
		case "activation_fn":
			w.fn = w.str(v)
		case "predecessors":
			w.preds = v
		case "sbuf_read_bytes":
			w.use.sbufRead = w.uint("sbuf_read_bytes", v, maxBytes)
		case "sbuf_write_bytes":
			w.use.sbufWrite = w.uint("sbuf_write_bytes", v, maxBytes)
		case "psum_read_bytes":
			w.use.psumRead = w.uint("psum_read_bytes", v, maxBytes)
		case "psum_write_bytes":
			w.use.psumWrite = w.uint("psum_write_bytes", v, maxBytes)
		case "hbm_read_bytes":
			w.use.hbmRead = w.uint("hbm_read_bytes", v, maxBytes)
		case "hbm_write_bytes":
			w.use.hbmWrite = w.uint("hbm_write_bytes", v, maxBytes)
		}
	}
	in := &w.in
	if len(opcode) == 0 {
		w.fail("no opcode")
		return
	}
	if len(label) == 0 {
		label = subgroup
	}
	var known bool
	if in.engine, known = components.ParseEngine(string(label)); !known {
		w.note("unknown-engine", "engine "+cut(string(valid(label)), 60)+" is none that perfsim knows; its instructions are on lane Unassigned")
	}
	in.opcode = w.word(valid(opcode))
	in.core = w.core
	w.operands(opcode)
	w.predecessors()
	if w.err == nil {
		w.out.instrs = append(w.out.instrs, *in)
	}
}

// operands reads the operand text: the shape, access patterns and semaphores.
func (w *worker) operands(opcode []byte) {
	if len(w.ops) > maxOperands {
		w.fail("operands of %d bytes, more than %d", len(w.ops), maxOperands)
		return
	}
	in, s, out := &w.in, &w.shape, w.out
	in.text = w.keep(w.ops)
	ops := &s.ops
	parseOperands(w.ops, ops)
	if ops.Odd > 0 {
		w.note("operand-words", "operand text of "+string(valid(opcode))+" holds words or types that are not of the known language; the text is kept")
	}
	s.aps, s.dims = out.aps, out.dims
	if err := s.measure(opcode, w.trans, w.use); err != nil {
		w.fail("operands: %v", err)
	}
	out.aps, out.dims = s.aps, s.dims
	in.shape = s.out
	in.apEnd, in.dimEnd = uint32(len(out.aps)), uint32(len(out.dims))
	if isDMA(opcode) {
		if in.engine == components.Pool {
			in.flags |= components.FlagSWDGE
		} else {
			in.flags |= components.FlagHWDGE
		}
	}

	for _, x := range ops.Syncs {
		row := syncRow{op: x.Op, space: x.Space, id: x.ID, value: x.Value}
		if len(x.Owner) > 0 {
			row.owner = w.word(valid(x.Owner)) + 1
		}
		out.syncs = append(out.syncs, row)
		if x.Clear {
			out.syncs = append(out.syncs, syncRow{op: components.SetTo, space: x.Space, id: x.ID, owner: row.owner})
		}
	}
	if in.queueSem > 0 {
		// The queue raises it, once for each of its engines that is done.
		by, _ := ops.Uint("sem_increment")
		if by > math.MaxInt64 {
			w.fail("sem_increment is %d", by)
		}
		out.syncs = append(out.syncs, syncRow{op: components.SetInc, space: 'S', id: in.queueSem - 1, value: int64(by)})
	}
	in.syncEnd = uint32(len(out.syncs))

	if fn := function(opcode, ops, w.fn); len(fn) > 0 {
		in.fn = w.word(valid(fn)) + 1
	}
	switch string(opcode) {
	case "SET_ORDERING_MODE":
		mode, _ := ops.Field("ordering_mode")
		in.strict = string(mode) == "strict" && in.compilerPC == 0
	case "COMPARE_BRANCH":
		if label, ok := ops.Uint("label_id"); ok && label <= math.MaxUint32 {
			in.branch = int32(uint32(label)) / instructionSize
			cmp, _ := ops.Field("cmp_op")
			in.always = string(cmp) == "ALWAYS"
		}
	}
}

// function returns what column Func holds: the activation function, the ALU
// operations, of a matmul the fp32 mode, of a branch the comparison.
func function(opcode []byte, ops *operands, activation []byte) []byte {
	if len(activation) > 0 {
		return activation
	}
	for _, key := range [...]string{"ops", "op", "fp32_mode", "cmp_op", "compute_op"} {
		if v, ok := ops.Field(key); ok {
			return v
		}
	}
	if string(opcode) == "ACTIVATE" && len(ops.Words) > 0 {
		return ops.Words[0]
	}
	return nil
}

// predecessors reads the typed edges.
func (w *worker) predecessors() {
	if w.preds.Kind() > jsonscan.Null {
		if w.preds.Kind() != jsonscan.Array {
			w.fail("predecessors is of type %s, not a list", w.preds.Kind())
			return
		}
		i := -1
		for x := w.preds.Elements(); x.Ok(); x = x.Next() {
			p := x.Value()
			i++
			id := p.Get("id")
			if id.Kind() == jsonscan.Absent {
				w.fail("predecessor %d has no id", i)
				return
			}
			kind := p.Get("type").Bytes()
			e := pred{id: w.uint("predecessor id", id, math.MaxUint64)}
			var ok bool
			if e.kind, ok = components.ParseEdgeKind(string(kind)); !ok || e.kind == components.Invalid {
				w.note("unknown-edge-type", "dependency type "+cut(string(valid(kind)), 60)+" is none that perfsim knows; taken as Ordered")
				e.kind = components.Ordered
			}
			w.out.preds = append(w.out.preds, e)
		}
	}
	w.in.predEnd = uint32(len(w.out.preds))
}
