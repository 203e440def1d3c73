package hlo

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/components/opgraph"
)

// protoReader fills a graph from a HloModuleProto. Field numbers are those of
// xla/service/hlo.proto and xla/xla_data.proto.
type protoReader struct {
	wire
	g       *opgraph.Graph
	shapes  map[string]opgraph.ShapeID // by encoding
	comps   map[int64]opgraph.CompID
	ops     map[int64]opgraph.OpID // of the computation being read
	in      instrProto
	scratch []int64
}

// ReadProto reads a HloModuleProto, bare or inside a HloProto or a
// HloSnapshot, into a graph like that of the same module's text. The caller
// unwraps gzip. name is for messages. Errors are *Error with a byte offset.
func ReadProto(name string, b []byte) ([]*opgraph.Graph, error) {
	r := &protoReader{wire: wire{file: name, b: b[:len(b):len(b)], text: string(b)}}
	mod, ok := findModule(&r.wire, r.b, 0)
	if !ok {
		if r.err == nil {
			r.failAt(r.b, "no HloModuleProto in it")
		}
		return nil, r.err
	}
	r.module(mod)
	if r.err != nil {
		return nil, r.err
	}
	if err := finish(r.g); err != nil {
		return nil, &Error{File: name, Offset: 0, Msg: err.Error()}
	}
	return []*opgraph.Graph{r.g}, nil
}

// findModule finds the module in a message that is one or wraps one in
// field 1.
func findModule(w *wire, b []byte, depth int) ([]byte, bool) {
	if looksLikeModule(b) {
		return b, true
	}
	if depth == 2 {
		return nil, false
	}
	for m := w.message(b); m.next(); {
		if m.Num == 1 && m.Type == protowire.BytesType && len(m.Data) > 0 {
			if mod, ok := findModule(&wire{b: w.b, text: w.text}, m.Data, depth+1); ok {
				return mod, true
			}
		}
	}
	return nil, false
}

// looksLikeModule reports whether a message can be a HloModuleProto: a name
// that is text, and computations that hold instructions.
func looksLikeModule(b []byte) bool {
	w := &wire{b: b}
	named, comps := false, false
	for m := w.message(b); m.next(); {
		switch m.Num {
		case 1:
			named = m.Type == protowire.BytesType && printable(m.Data)
			if !named {
				return false
			}
		case 3:
			if m.Type != protowire.BytesType {
				return false
			}
			comps = true
			return named
		}
	}
	return w.err == nil && named && comps
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < 0x20 || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}

// SniffProto reports whether head can begin a file that ReadProto reads.
func SniffProto(head []byte) bool {
	b := head
	for range 3 { // HloModuleProto, in HloProto, in HloSnapshot
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 || num != 1 || typ != protowire.BytesType {
			return false
		}
		size, k := protowire.ConsumeVarint(b[n:])
		if k < 0 {
			return false
		}
		rest := b[n+k:]
		if uint64(len(rest)) >= size && size > 0 && size < 1024 && printable(rest[:size]) {
			// A name: the name of the entry computation, computations or an
			// id come next.
			num, typ, n := protowire.ConsumeTag(rest[size:])
			return n > 0 && (num == 2 || num == 3) && typ == protowire.BytesType
		}
		b = rest
	}
	return false
}

// absent stands for an id that a message does not have.
const absent = math.MinInt64

// compProto describes a computation before its instructions are read.
type compProto struct {
	name, thread string
	id, root     int64
	instrs       [][]byte
	at           []byte
}

func (r *protoReader) module(b []byte) {
	r.g = opgraph.NewGraph("")
	r.shapes = map[string]opgraph.ShapeID{}
	r.comps = map[int64]opgraph.CompID{}
	r.ops = map[int64]opgraph.OpID{}
	var name, entryName string
	entryID := int64(absent)
	var schedule, aliases, frames, devices []byte
	var comps []compProto
	var at [][]byte
	r.scan(b, 1, &name, 2, &entryName, 3, &at, 6, &entryID, 7, &schedule, 8, &aliases, 15, &devices, 17, &frames)
	r.g.Name = r.g.Str(name)
	sequences := r.schedule(schedule)
	r.aliases(aliases)
	r.frames(frames)
	r.scan(devices, 1, &r.g.Replicas, 2, &r.g.Partitions)
	total := 0
	for _, b := range at {
		c := r.comp(b)
		total += len(c.instrs)
		comps = append(comps, c)
	}
	r.g.Reserve(total)
	for i, c := range comps {
		if _, twice := r.comps[c.id]; twice {
			r.failAt(c.at, "computation id %d occurs twice", c.id)
			return
		}
		r.comps[c.id] = opgraph.CompID(i)
		if c.id == entryID || entryID == absent && c.name == entryName {
			r.g.Entry = opgraph.CompID(i)
		}
	}
	r.g.IsScheduled = schedule != nil
	for _, c := range comps {
		if r.err != nil {
			return
		}
		r.computation(c, sequences[c.id])
	}
	if r.g.Entry == opgraph.NoComp && r.err == nil {
		r.failAt(b, "entry computation %d is missing", entryID)
	}
}

func (r *protoReader) comp(b []byte) compProto {
	c := compProto{at: b, root: absent}
	r.scan(b, 1, &c.name, 2, &c.instrs, 5, &c.id, 6, &c.root, 8, &c.thread)
	return c
}

// schedule reads HloScheduleProto: computation id to instruction ids.
func (r *protoReader) schedule(b []byte) map[int64][]int64 {
	out := map[int64][]int64{}
	var entries [][]byte
	r.scan(b, 1, &entries)
	for _, e := range entries {
		var key int64
		var lists [][]byte
		r.scan(e, 1, &key, 2, &lists)
		var seq []int64
		for _, l := range lists {
			r.scan(l, 1, &seq)
		}
		out[key] = seq
	}
	return out
}

func (r *protoReader) aliases(b []byte) {
	var entries [][]byte
	r.scan(b, 1, &entries)
	for _, e := range entries {
		var out, part []int64
		var param, kind int64
		r.scan(e, 1, &out, 2, &param, 3, &part, 4, &kind)
		r.g.Aliases = append(r.g.Aliases, opgraph.Alias{Output: r.g.AddPath(out...), Param: r.g.AddPath(part...),
			Parameter: int32(min(max(param, -1), 1<<30)), Must: kind == 2})
	}
}

// frames reads StackFrameIndexProto.
func (r *protoReader) frames(b []byte) {
	var files, functions, locations, entries [][]byte
	r.scan(b, 1, &files, 2, &functions, 3, &locations, 4, &entries)
	at := func(v [][]byte, i uint64) opgraph.StrID {
		if i == 0 || i > uint64(len(v)) {
			return 0
		}
		return r.g.Str(r.str(v[i-1]))
	}
	var places []opgraph.StackFrame
	for _, l := range locations {
		var f opgraph.StackFrame
		var file, function uint64
		r.scan(l, 1, &file, 2, &function, 3, &f.Line, 4, &f.Column, 5, &f.EndLine, 6, &f.EndCol)
		f.File, f.Function = at(files, file), at(functions, function)
		places = append(places, f)
	}
	var frames [][2]uint64
	for _, e := range entries {
		var f [2]uint64
		r.scan(e, 1, &f[0], 2, &f[1])
		frames = append(frames, f)
	}
	for i, f := range frames {
		var fr opgraph.StackFrame
		if f[0] >= 1 && f[0] <= uint64(len(places)) {
			fr = places[f[0]-1]
		}
		if f[1] <= uint64(i) {
			fr.Parent = uint32(f[1])
		}
		r.g.Frames = append(r.g.Frames, fr)
	}
}

// computation adds the instructions of c: in the order of its sequence when
// it has one, else as stored.
func (r *protoReader) computation(c compProto, seq []int64) {
	order := c.instrs
	if seq != nil {
		if len(seq) != len(c.instrs) {
			r.failAt(c.at, "the schedule of computation %q has %d instructions, the computation %d", c.name, len(seq), len(c.instrs))
			return
		}
		byID := make(map[int64][]byte, len(c.instrs))
		for _, b := range c.instrs {
			byID[r.instrID(b)] = b
		}
		order = make([][]byte, len(seq))
		for i, id := range seq {
			b, ok := byID[id]
			if !ok {
				r.failAt(c.at, "the schedule of computation %q names instruction %d, which it does not have or names twice", c.name, id)
				return
			}
			delete(byID, id)
			order[i] = b
		}
	}
	clear(r.ops)
	comp := r.g.BeginComputation(c.name)
	if c.thread != "" && c.thread != "main" {
		r.g.Comps.Thread[comp] = r.g.Str(c.thread)
	}
	for _, b := range order {
		if !r.instruction(b) {
			break
		}
	}
	root := opgraph.NoOp
	if r.err == nil && c.root != absent {
		op, ok := r.ops[c.root]
		if !ok {
			r.failAt(c.at, "root %d of computation %q is missing", c.root, c.name)
		} else {
			root = op
		}
	}
	r.g.EndComputation(root)
}

func (r *protoReader) instrID(b []byte) int64 {
	for m := r.message(b); m.next(); {
		if m.Num == 35 {
			return m.int()
		}
	}
	return 0
}

// instrProto is one decoded HloInstructionProto; its slices are reused.
type instrProto struct {
	name, opcode            string
	shape, literal, meta    []byte
	id                      int64
	operands, control, call []int64
}

func (r *protoReader) instruction(b []byte) bool {
	in := &r.in
	*in = instrProto{operands: in.operands[:0], control: in.control[:0], call: in.call[:0]}
	for m := r.message(b); m.next(); {
		switch m.Num {
		case 1:
			in.name = m.str()
		case 2:
			in.opcode = m.str()
		case 3:
			in.shape = m.Data
		case 7:
			in.meta = m.Data
		case 8:
			in.literal = m.Data
		case 35:
			in.id = m.int()
		case 36:
			in.operands = m.ints(in.operands)
		case 37:
			in.control = m.ints(in.control)
		case 38:
			in.call = m.ints(in.call)
		}
	}
	if r.err != nil {
		return false
	}
	shape, ok := r.shape(in.shape, 0)
	if !ok {
		return false
	}
	kind, ok := opgraph.ParseOpKind(in.opcode)
	if !ok {
		kind = opgraph.OpUnknown
	}
	if _, twice := r.ops[in.id]; twice {
		return r.failAt(b, "instruction id %d occurs twice in a computation", in.id)
	}
	args := make([]opgraph.Operand, 0, 8)
	for _, id := range in.operands {
		op, ok := r.ops[id]
		if !ok {
			return r.failAt(b, "instruction %q: operand %d is not defined before it", in.name, id)
		}
		args = append(args, opgraph.Operand{Op: op})
	}
	op := r.g.AddOpOperands(kind, r.g.Str(in.name), shape, args)
	r.ops[in.id] = op
	if kind == opgraph.OpUnknown {
		r.g.SetAttrStr(op, opgraph.AttrOpcode, in.opcode)
	}
	for _, id := range in.control {
		pred, ok := r.ops[id]
		if !ok || pred == op {
			return r.failAt(b, "instruction %q: control predecessor %d is not defined before it", in.name, id)
		}
		r.g.AddControl(op, pred)
	}
	for i, id := range in.call {
		c, ok := r.comps[id]
		if !ok {
			return r.failAt(b, "instruction %q: computation %d does not exist", in.name, id)
		}
		r.g.AddCall(op, callRole(kind, i), c)
	}
	r.metadata(op, in.meta)
	if kind == opgraph.OpConstant {
		r.literal(op, in.literal)
	}
	return r.attributes(op, b)
}

// callRole says what called computation i is to an operator: the order is
// that of HloInstruction (a while has its body first).
func callRole(k opgraph.OpKind, i int) opgraph.CallRole {
	switch k {
	case opgraph.OpWhile:
		if i == 0 {
			return opgraph.RoleBody
		}
		return opgraph.RoleCondition
	case opgraph.OpConditional:
		return opgraph.RoleBranch
	case opgraph.OpSelectAndScatter:
		if i == 0 {
			return opgraph.RoleSelect
		}
		return opgraph.RoleScatter
	case opgraph.OpFusion, opgraph.OpAsyncStart, opgraph.OpAsyncUpdate, opgraph.OpAsyncDone:
		return opgraph.RoleCalls
	case opgraph.OpCustomCall:
		return opgraph.RoleCalled
	}
	return opgraph.RoleToApply
}

func (r *protoReader) metadata(op opgraph.OpID, b []byte) {
	t := &r.g.Ops
	var name, file string
	r.scan(b, 2, &name, 3, &file, 4, &t.SourceLine[op], 15, &t.Frame[op])
	t.OpName[op], t.SourceFile[op] = r.g.Str(name), r.g.Str(file)
}

// primitive maps PrimitiveType to an element type.
func primitive(v uint64) (opgraph.ElemType, bool) {
	table := [...]opgraph.ElemType{
		1: opgraph.ElemPred, 2: opgraph.ElemS8, 3: opgraph.ElemS16, 4: opgraph.ElemS32,
		5: opgraph.ElemS64, 6: opgraph.ElemU8, 7: opgraph.ElemU16, 8: opgraph.ElemU32,
		9: opgraph.ElemU64, 10: opgraph.ElemF16, 11: opgraph.ElemF32, 12: opgraph.ElemF64,
		13: opgraph.ElemTuple, 14: opgraph.ElemOpaque, 15: opgraph.ElemC64, 16: opgraph.ElemBF16,
		17: opgraph.ElemToken, 18: opgraph.ElemC128, 19: opgraph.ElemF8E5M2, 20: opgraph.ElemF8E4M3FN,
		21: opgraph.ElemS4, 22: opgraph.ElemU4, 23: opgraph.ElemF8E4M3B11FNUZ, 24: opgraph.ElemF8E5M2FNUZ,
		25: opgraph.ElemF8E4M3FNUZ, 26: opgraph.ElemS2, 27: opgraph.ElemU2, 28: opgraph.ElemF8E4M3,
		29: opgraph.ElemF8E3M4, 30: opgraph.ElemS1, 31: opgraph.ElemU1, 32: opgraph.ElemF4E2M1FN,
		33: opgraph.ElemF8E8M0FNU, 34: opgraph.ElemBuffer,
	}
	if v >= uint64(len(table)) || table[v] == opgraph.ElemInvalid {
		return 0, false
	}
	return table[v], true
}

// shape reads a ShapeProto; equal encodings are decoded once.
func (r *protoReader) shape(b []byte, depth int) (opgraph.ShapeID, bool) {
	if depth > maxDepth {
		return 0, r.failAt(b, "shape is nested more than %d levels", maxDepth)
	}
	if id, ok := r.shapes[string(b)]; ok {
		return id, true
	}
	var elem opgraph.ElemType
	var dims []int64
	var layout opgraph.ShapeLayout
	var members []opgraph.ShapeID
	var layoutAt []byte
	dyn := 0
	for m := r.message(b); m.next(); {
		switch m.Num {
		case 2:
			var ok bool
			if elem, ok = primitive(m.Uint); !ok {
				return 0, r.failAt(b, "element type %d is unknown", m.Uint)
			}
		case 3:
			dims = m.ints(dims)
		case 4:
			id, ok := r.shape(m.Data, depth+1)
			if !ok {
				return 0, false
			}
			members = append(members, id)
		case 5:
			layoutAt = m.Data
			layout.HasText = true
		case 6:
			for _, v := range m.ints(nil) {
				if v != 0 && dyn < maxRank {
					layout.Dynamic |= 1 << dyn
				}
				dyn++
			}
		}
	}
	if r.err != nil {
		return 0, false
	}
	if elem == opgraph.ElemInvalid {
		return 0, r.failAt(b, "shape without an element type")
	}
	if len(dims) > maxRank {
		return 0, r.failAt(b, "rank above %d", maxRank)
	}
	for i, d := range dims {
		if d < 0 && d != opgraph.DimUnknown {
			return 0, r.failAt(b, "dimension %d is negative: %d", i, d)
		}
		if d == opgraph.DimUnknown {
			layout.Dynamic |= 1 << i
		}
	}
	layout.Dynamic &= 1<<len(dims) - 1 // marks beyond the rank mean nothing
	var id opgraph.ShapeID
	switch {
	case elem == opgraph.ElemTuple:
		id = r.g.Shapes.AddTuple(members)
	case elem == opgraph.ElemBuffer:
		if len(members) != 1 {
			return 0, r.failAt(b, "buffer of %d shapes", len(members))
		}
		id = r.g.Shapes.AddBuffer(members[0])
	default:
		if layout.HasText {
			layout.Layout = r.layout(layoutAt, len(dims))
			// The text leaves the layout of a scalar out.
			layout.HasText = elem.IsArray() && (len(dims) > 0 || layout.Layout != "")
		}
		id = r.g.Shapes.AddArrayLayout(elem, dims, layout)
	}
	r.shapes[r.str(b)] = id
	return id, r.err == nil
}

// layout spells a LayoutProto as HLO text does:
// minor_to_major:T(tile)L(align)E(bits)S(space)SC(dim:indices)M(bytes).
func (r *protoReader) layout(b []byte, rank int) string {
	var order []int64
	var rest, split []byte
	var tiles, splits [][]byte
	var align, bits, space, prefix int64
	r.scan(b, 1, &order, 6, &tiles, 7, &bits, 8, &space, 15, &prefix, 16, &align, 17, &splits)
	for i, t := range tiles {
		if i == 0 {
			rest = append(rest, 'T')
		}
		var dims []int64
		r.scan(t, 1, &dims)
		rest = append(appendInts(append(rest, '('), dims), ')')
	}
	for _, s := range splits {
		var dim int64
		var at []int64
		r.scan(s, 1, &dim, 2, &at)
		split = append(appendInts(fmt.Appendf(split, "SC(%d:", dim), at), ')')
	}
	if align > 1 {
		rest = fmt.Appendf(rest, "L(%d)", align)
	}
	if bits != 0 {
		rest = fmt.Appendf(rest, "E(%d)", bits)
	}
	if space != 0 {
		rest = fmt.Appendf(rest, "S(%d)", space)
	}
	rest = append(rest, split...)
	if prefix != 0 {
		rest = fmt.Appendf(rest, "M(%d)", prefix)
	}
	if len(order) != rank {
		order = order[:0]
		for i := rank - 1; i >= 0; i-- {
			order = append(order, int64(i))
		}
	}
	out := appendInts(nil, order)
	if len(rest) > 0 {
		out = append(append(out, ':'), rest...)
	}
	return string(out)
}

func appendInts(dst []byte, v []int64) []byte {
	for i, d := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, d)
	}
	return dst
}
