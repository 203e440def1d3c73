// Package opgraph holds operator graphs: operators, computations, shapes and
// attributes as tables, with the checks and the inference of shapes. Readers of
// HLO and StableHLO and the benchmark's models make them, lowering reads them.
package opgraph

import (
	"hash/maphash"
	"math"
	"slices"
)

// This file holds the one in-memory form of an operator graph: what the
// readers of HLO text, HloProto and StableHLO produce, what the programmatic
// model builders make, and what lowering consumes. It is a set of tables; an
// operator, a computation, a shape and a name are row numbers.
//
// A graph is filled front to back:
//
//	g := opgraph.NewGraph("mlp")
//	x := g.Array(opgraph.ElemBF16, 128, 4096)
//	w := g.Array(opgraph.ElemBF16, 4096, 512)
//	y := g.Array(opgraph.ElemBF16, 128, 512)
//	main := g.BeginComputation("main")
//	p0 := g.AddParameter("x", x, 0)
//	p1 := g.AddParameter("w", w, 1)
//	d := g.AddOp(opgraph.OpDot, "y", y, p0, p1)
//	g.SetDot(d, opgraph.DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
//	g.EndComputation(d)
//	g.Entry = main
//	err := g.Check()
//
// The operators of one computation are one contiguous range of OpIDs in
// program order; operands come before their users. A computation that is
// called must be begun before the call is recorded (bodies first, entry
// last), or recorded later with AddCall.

// OpID is the row of an operator (an HLO instruction). Rows of one
// computation are contiguous and in program order. NoOp means none.
type OpID uint32

// CompID is the row of a computation. NoComp means none.
type CompID uint32

// StrID is an interned string of a graph. 0 is the empty string.
type StrID uint32

// PathID is a tuple-index chain ("#1#0" of a compact tuple access). 0 is the
// empty chain: the whole value.
type PathID uint32

// The absent ids.
const (
	NoOp   OpID   = math.MaxUint32
	NoComp CompID = math.MaxUint32
)

// NoIndex is the value of OpTable.Index of an operator that has neither a
// parameter number nor a tuple index.
const NoIndex = -1

// Operand is one input of an operator: the producer, and which part of its
// tuple is meant (0: the whole value; see Graph.Path).
type Operand struct {
	Op   OpID
	Path PathID
}

// CallRole says what a computation is to the operator that names it.
type CallRole uint8

// The roles, after the attribute names of HLO text.
const (
	RoleCalls     CallRole = iota // calls=: the body of a fusion, async-start or custom-call
	RoleToApply                   // to_apply=: the callee of call, or the scalar function of reduce, map, sort, scatter, all-reduce, …
	RoleBody                      // body= of a while
	RoleCondition                 // condition= of a while
	RoleBranch                    // branch_computations=, in order; true_computation= is first, false_computation= second
	RoleSelect                    // select= of select-and-scatter
	RoleScatter                   // scatter= of select-and-scatter
	RoleCalled                    // called_computations= of a custom-call
)

// Call is one computation named by an operator.
type Call struct {
	Comp CompID
	Role CallRole
}

// graphSpan is a range of one of the pools of a graph.
type graphSpan struct{ start, n uint32 }

// OpTable holds the columns of the operators; every slice has one entry per
// OpID. Variable-length data is behind the methods of Graph (Operands,
// Control, Calls, Ints, …).
type OpTable struct {
	Kind  []OpKind
	Shape []ShapeID // result shape
	Name  []StrID   // without the leading '%'
	Comp  []CompID  // the computation that holds the operator
	Index []int32   // parameter number of a parameter, tuple index of a get-tuple-element, else NoIndex

	OpName     []StrID  // metadata op_name: the framework's path, e.g. "jit(f)/dot_general"
	SourceFile []StrID  // metadata source_file; see Graph.Source for frames
	SourceLine []uint32 // metadata source_line, 0 when absent
	Frame      []uint32 // metadata stack_frame_id (1-based into Graph.Frames), 0 when absent
	TextLine   []uint32 // line of the operator in the file it was read from, 0 when unknown

	operands []graphSpan
	control  []graphSpan
	calls    []graphSpan
	attrs    []uint32 // head of the attribute chain + 1; 0 when empty
}

// CompTable holds the columns of the computations; every slice has one entry
// per CompID.
type CompTable struct {
	Name     []StrID
	First    []OpID  // first operator
	End      []OpID  // one past the last operator
	Root     []OpID  // the operator whose value is the result
	Thread   []StrID // execution_thread, 0 for the main one
	TextLine []uint32
}

// Alias says that a part of the entry's output shares the buffer of a part
// of a parameter (input_output_alias of the module).
type Alias struct {
	Output    PathID
	Parameter int32
	Param     PathID
	Must      bool // must-alias; false is may-alias
}

// StackFrame is one row of the StackFrames table of a module, resolved
// through FileLocations: a place in the user's program.
type StackFrame struct {
	File     StrID
	Function StrID
	Line     uint32
	EndLine  uint32
	Column   uint32
	EndCol   uint32
	Parent   uint32 // 1-based frame, 0 at the outermost
}

// Graph is one module. The zero value is not usable; call NewGraph.
// A graph is not safe for concurrent writes; reading it from many
// goroutines is safe.
type Graph struct {
	Name        StrID
	Entry       CompID // NoComp until set
	IsScheduled bool   // program order of each computation is the schedule
	Replicas    int64  // replica_count, 0 when not stated
	Partitions  int64  // num_partitions, 0 when not stated
	Ops         OpTable
	Comps       CompTable
	Shapes      ShapeTable
	Aliases     []Alias
	Frames      []StackFrame // row i is frame i+1
	ModuleAttrs []RawAttr    // header attributes that are kept as text, in order

	strs     strTable
	operands []Operand
	control  []OpID
	calls    []Call
	attr     []attrRow
	ints     []int64
	paths    []graphSpan // into ints; row PathID-1
	pathKey  map[string]PathID
	open     bool // a computation is being filled
}

// RawAttr is an attribute kept as the text of the file.
type RawAttr struct{ Key, Value StrID }

// NewGraph returns an empty graph with the given module name.
func NewGraph(name string) *Graph {
	g := &Graph{Entry: NoComp}
	g.strs.init()
	g.Shapes.init()
	g.Name = g.Str(name)
	return g
}

// Str interns s.
func (g *Graph) Str(s string) StrID { return g.strs.add(s) }

// Text returns the string of an id.
func (g *Graph) Text(id StrID) string { return g.strs.text[id] }

// LookupStr returns the id of s without interning it.
func (g *Graph) LookupStr(s string) (StrID, bool) { return g.strs.find(s) }

// NumStrs returns the number of interned strings, the empty one included.
func (g *Graph) NumStrs() int { return len(g.strs.text) }

// NumOps returns the number of operators in all computations.
func (g *Graph) NumOps() int { return len(g.Ops.Kind) }

// NumComps returns the number of computations.
func (g *Graph) NumComps() int { return len(g.Comps.Name) }

// OpText returns the name of an operator, without '%'.
func (g *Graph) OpText(op OpID) string { return g.strs.text[g.Ops.Name[op]] }

// CompText returns the name of a computation, without '%'.
func (g *Graph) CompText(c CompID) string { return g.strs.text[g.Comps.Name[c]] }

// Reserve makes room for about n operators, so that filling the graph does
// not copy the columns again and again.
func (g *Graph) Reserve(n int) {
	t := &g.Ops
	t.Kind = slices.Grow(t.Kind, n)
	t.Shape = slices.Grow(t.Shape, n)
	t.Name = slices.Grow(t.Name, n)
	t.Comp = slices.Grow(t.Comp, n)
	t.Index = slices.Grow(t.Index, n)
	t.OpName = slices.Grow(t.OpName, n)
	t.SourceFile = slices.Grow(t.SourceFile, n)
	t.SourceLine = slices.Grow(t.SourceLine, n)
	t.Frame = slices.Grow(t.Frame, n)
	t.TextLine = slices.Grow(t.TextLine, n)
	t.operands = slices.Grow(t.operands, n)
	t.control = slices.Grow(t.control, n)
	t.calls = slices.Grow(t.calls, n)
	t.attrs = slices.Grow(t.attrs, n)
	g.operands = slices.Grow(g.operands, n+n/2)
	g.attr = slices.Grow(g.attr, n)
	g.strs.reserve(n + n/4)
}

// BeginComputation starts a computation; the operators added until
// EndComputation belong to it. Computations do not nest: beginning one while
// another is open is a mistake of the caller and panics.
func (g *Graph) BeginComputation(name string) CompID {
	if g.open {
		panic("components: BeginComputation while " + g.CompText(CompID(g.NumComps()-1)) + " is open")
	}
	g.open = true
	c := CompID(g.NumComps())
	at := OpID(g.NumOps())
	g.Comps.Name = append(g.Comps.Name, g.Str(name))
	g.Comps.First = append(g.Comps.First, at)
	g.Comps.End = append(g.Comps.End, at)
	g.Comps.Root = append(g.Comps.Root, NoOp)
	g.Comps.Thread = append(g.Comps.Thread, 0)
	g.Comps.TextLine = append(g.Comps.TextLine, 0)
	return c
}

// EndComputation closes the open computation. root is the operator whose
// value is the result; NoOp takes the last operator.
func (g *Graph) EndComputation(root OpID) {
	if !g.open {
		panic("components: EndComputation without BeginComputation")
	}
	g.open = false
	c := CompID(g.NumComps() - 1)
	end := OpID(g.NumOps())
	g.Comps.End[c] = end
	if root == NoOp && end > g.Comps.First[c] {
		root = end - 1
	}
	g.Comps.Root[c] = root
}

// AddOp appends an operator to the open computation and returns its id. name
// may be empty: a name is made from the opcode and the row. shape may be 0
// where Infer can work it out once the attributes are set.
func (g *Graph) AddOp(kind OpKind, name string, shape ShapeID, operands ...OpID) OpID {
	op := g.newOp(kind, name, shape)
	start := uint32(len(g.operands))
	for _, o := range operands {
		g.operands = append(g.operands, Operand{Op: o})
	}
	g.Ops.operands[op] = graphSpan{start, uint32(len(operands))}
	return op
}

// AddOpOperands is AddOp for an interned name and operands with tuple-index
// chains.
func (g *Graph) AddOpOperands(kind OpKind, name StrID, shape ShapeID, operands []Operand) OpID {
	op := g.newOpStr(kind, name, shape)
	start := uint32(len(g.operands))
	g.operands = append(g.operands, operands...)
	g.Ops.operands[op] = graphSpan{start, uint32(len(operands))}
	return op
}

// AddParameter appends parameter number n of the open computation.
func (g *Graph) AddParameter(name string, shape ShapeID, n int) OpID {
	op := g.newOp(OpParameter, name, shape)
	g.Ops.Index[op] = int32(n)
	return op
}

// AddTupleElement appends a get-tuple-element of element i of tuple; the
// shape is that of the element.
func (g *Graph) AddTupleElement(name string, tuple OpID, i int) OpID {
	var shape ShapeID
	if elems := g.Shapes.Tuple(g.Ops.Shape[tuple]); i >= 0 && i < len(elems) {
		shape = elems[i]
	}
	op := g.AddOp(OpGetTupleElement, name, shape, tuple)
	g.Ops.Index[op] = int32(i)
	return op
}

// AddTuple appends a tuple of the operators; the shape follows.
func (g *Graph) AddTuple(name string, elems ...OpID) OpID {
	shapes := make([]ShapeID, len(elems))
	for i, e := range elems {
		shapes[i] = g.Ops.Shape[e]
	}
	return g.AddOp(OpTuple, name, g.Shapes.AddTuple(shapes), elems...)
}

func (g *Graph) newOp(kind OpKind, name string, shape ShapeID) OpID {
	if name == "" {
		name = kind.String() + "." + itoa(g.NumOps())
	}
	return g.newOpStr(kind, g.Str(name), shape)
}

func (g *Graph) newOpStr(kind OpKind, id StrID, shape ShapeID) OpID {
	if !g.open {
		panic("components: AddOp outside a computation")
	}
	t := &g.Ops
	op := OpID(len(t.Kind))
	t.Kind = append(t.Kind, kind)
	t.Shape = append(t.Shape, shape)
	t.Name = append(t.Name, id)
	t.Comp = append(t.Comp, CompID(g.NumComps()-1))
	t.Index = append(t.Index, NoIndex)
	t.OpName = append(t.OpName, 0)
	t.SourceFile = append(t.SourceFile, 0)
	t.SourceLine = append(t.SourceLine, 0)
	t.Frame = append(t.Frame, 0)
	t.TextLine = append(t.TextLine, 0)
	t.operands = append(t.operands, graphSpan{})
	t.control = append(t.control, graphSpan{})
	t.calls = append(t.calls, graphSpan{})
	t.attrs = append(t.attrs, 0)
	return op
}

// Operands returns the inputs of an operator in order. The slice is part of
// the graph: do not append to it.
func (g *Graph) Operands(op OpID) []Operand {
	s := g.Ops.operands[op]
	return g.operands[s.start : s.start+s.n : s.start+s.n]
}

// Control returns the control predecessors of an operator: pure order, no
// data (control-predecessors=).
func (g *Graph) Control(op OpID) []OpID {
	s := g.Ops.control[op]
	return g.control[s.start : s.start+s.n : s.start+s.n]
}

// Calls returns the computations an operator names, with their roles.
func (g *Graph) Calls(op OpID) []Call {
	s := g.Ops.calls[op]
	return g.calls[s.start : s.start+s.n : s.start+s.n]
}

// Called returns the first computation an operator names with the role, or
// NoComp.
func (g *Graph) Called(op OpID, role CallRole) CompID {
	for _, c := range g.Calls(op) {
		if c.Role == role {
			return c.Comp
		}
	}
	return NoComp
}

// AddControl makes each of preds come before op.
func (g *Graph) AddControl(op OpID, preds ...OpID) {
	s := &g.Ops.control[op]
	if s.n > 0 && int(s.start+s.n) != len(g.control) {
		old := g.Control(op)
		s.start = uint32(len(g.control))
		g.control = append(g.control, old...)
	} else if s.n == 0 {
		s.start = uint32(len(g.control))
	}
	g.control = append(g.control, preds...)
	s.n += uint32(len(preds))
}

// AddCall records that op names computation comp in the given role. Order is
// kept: branches are added in branch order.
func (g *Graph) AddCall(op OpID, role CallRole, comp CompID) {
	s := &g.Ops.calls[op]
	if s.n > 0 && int(s.start+s.n) != len(g.calls) {
		old := g.Calls(op)
		s.start = uint32(len(g.calls))
		g.calls = append(g.calls, old...)
	} else if s.n == 0 {
		s.start = uint32(len(g.calls))
	}
	g.calls = append(g.calls, Call{comp, role})
	s.n++
}

// SetCall replaces the computation of call i of op: a reader that met the
// name before the computation records NoComp first.
func (g *Graph) SetCall(op OpID, i int, comp CompID) {
	g.calls[int(g.Ops.calls[op].start)+i].Comp = comp
}

// AddPath interns a tuple-index chain.
func (g *Graph) AddPath(index ...int64) PathID {
	if len(index) == 0 {
		return 0
	}
	key := make([]byte, 0, 32)
	for _, i := range index {
		key = appendKey(key, i)
	}
	if id, ok := g.pathKey[string(key)]; ok {
		return id
	}
	if g.pathKey == nil {
		g.pathKey = map[string]PathID{}
	}
	g.paths = append(g.paths, g.addInts(index))
	id := PathID(len(g.paths))
	g.pathKey[string(key)] = id
	return id
}

// Path returns the indices of a chain, outermost first.
func (g *Graph) Path(id PathID) []int64 {
	if id == 0 {
		return nil
	}
	return g.intSpan(g.paths[id-1])
}

// OperandShape returns the shape of what an operand denotes: the producer's
// shape followed through the chain, 0 when the chain leaves the tuple.
func (g *Graph) OperandShape(o Operand) ShapeID {
	s := g.Ops.Shape[o.Op]
	for _, i := range g.Path(o.Path) {
		elems := g.Shapes.Tuple(s)
		if i < 0 || i >= int64(len(elems)) {
			return 0
		}
		s = elems[i]
	}
	return s
}

// Array interns an array shape without layout. A rank-0 shape is a scalar.
func (g *Graph) Array(elem ElemType, dims ...int64) ShapeID {
	return g.Shapes.AddArray(elem, dims)
}

// ShapeText returns the HLO spelling of a shape, layout included.
func (g *Graph) ShapeText(s ShapeID) string { return string(g.AppendShape(nil, s)) }

// Source returns the place in the user's program an operator comes from:
// source_file and source_line, or the innermost stack frame. Both are zero
// when the module does not say.
func (g *Graph) Source(op OpID) (file string, line int) {
	if f := g.Ops.SourceFile[op]; f != 0 {
		return g.Text(f), int(g.Ops.SourceLine[op])
	}
	if f := g.Ops.Frame[op]; f != 0 && int(f) <= len(g.Frames) {
		fr := g.Frames[f-1]
		return g.Text(fr.File), int(fr.Line)
	}
	return "", 0
}

func (g *Graph) addInts(v []int64) graphSpan {
	s := graphSpan{uint32(len(g.ints)), uint32(len(v))}
	g.ints = append(g.ints, v...)
	return s
}

func (g *Graph) intSpan(s graphSpan) []int64 {
	return g.ints[s.start : s.start+s.n : s.start+s.n]
}

// strTable interns strings: an open-addressing table of ids next to the
// strings. A slot holds the hash with the id, so that a look-up touches one
// slot and, mostly, one string.
type strTable struct {
	text  []string
	slots []uint64 // hash in the high half, id+1 in the low half; 0 is free
	seed  maphash.Seed
}

func (t *strTable) init() {
	t.seed = maphash.MakeSeed()
	t.slots = make([]uint64, 1024)
	t.add("")
}

// hash returns the hash of s. Strings that differ in the last byte only, as
// "add.120" and "add.121", get places side by side: modules number their names
// and use a name near those before it, so that most look-ups meet a cache line
// that is there already.
func (t *strTable) hash(s string) uint64 {
	if s == "" {
		return 0
	}
	last := uint64(s[len(s)-1])
	return maphash.String(t.seed, s[:len(s)-1])&^15 ^ last<<56 ^ last&15
}

func (t *strTable) find(s string) (StrID, bool) {
	h := t.hash(s)
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			return 0, false
		}
		if (v^h)>>32 == 0 && t.text[uint32(v)-1] == s {
			return StrID(uint32(v) - 1), true
		}
	}
}

func (t *strTable) add(s string) StrID {
	h := t.hash(s)
	mask := uint64(len(t.slots) - 1)
	i := h & mask
	for ; ; i = (i + 1) & mask {
		v := t.slots[i]
		if v == 0 {
			break
		}
		if (v^h)>>32 == 0 && t.text[uint32(v)-1] == s {
			return StrID(uint32(v) - 1)
		}
	}
	id := StrID(len(t.text))
	t.text = append(t.text, s)
	t.slots[i] = h>>32<<32 | uint64(id) + 1
	if len(t.text)*2 > len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	return id
}

func (t *strTable) reserve(n int) {
	t.text = slices.Grow(t.text, n)
	n += len(t.text)
	size := len(t.slots)
	for size < 2*n {
		size *= 2
	}
	if size > len(t.slots) {
		t.resize(size)
	}
}

// resize rehashes: only the high half of a hash is kept, the place comes from
// the low half.
func (t *strTable) resize(size int) {
	t.slots = make([]uint64, size)
	mask := uint64(size - 1)
	for id, s := range t.text {
		h := t.hash(s)
		i := h & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = h>>32<<32 | uint64(id) + 1
	}
}
