package hlo

import (
	"strconv"

	"perfsim/components/opgraph"
)

// AppendText appends a graph as HLO text that ReadText reads back as an
// equal graph (opgraph.GraphDiff). Names that HLO text cannot hold are
// changed: bytes that are no letter, digit, '_', '-' or '.' become '_', and a
// name that would occur twice in a computation gets a number. The name of the
// module may have any printable ASCII but a comma. Strings may hold any bytes;
// they are written in ASCII with octal escapes.
func AppendText(dst []byte, g *opgraph.Graph) []byte {
	w := &writer{g: g}
	w.compNames()
	dst = w.header(dst)
	dst = w.frames(dst)
	for c := range opgraph.CompID(g.NumComps()) {
		dst = w.computation(dst, c)
	}
	return dst
}

type writer struct {
	g     *opgraph.Graph
	comps []string
	ops   []string // names in the computation being written, from first
	first opgraph.OpID
}

// unique returns a name HLO text can hold that is not in seen, and adds it.
func unique(name, empty string, seen map[string]bool) string {
	clean := wordOf(name)
	if clean == "" {
		clean = empty
	}
	out := clean
	for n := 1; seen[out]; n++ {
		out = clean + "." + strconv.Itoa(n)
	}
	seen[out] = true
	return out
}

// wordOf replaces what is not in the lexical class of names.
func wordOf(name string) string {
	if isWordText(name) {
		return name
	}
	b := []byte(name)
	for i := range b {
		if class[b[i]]&classWord == 0 {
			b[i] = '_'
		}
	}
	return string(b)
}

func (w *writer) compNames() {
	seen := map[string]bool{}
	for c := range opgraph.CompID(w.g.NumComps()) {
		w.comps = append(w.comps, unique(w.g.CompText(c), "computation", seen))
	}
}

func (w *writer) header(dst []byte) []byte {
	g := w.g
	dst = appendModuleName(append(dst, "HloModule "...), g.Text(g.Name))
	if g.IsScheduled {
		dst = append(dst, ", is_scheduled=true"...)
	}
	if len(g.Aliases) > 0 {
		dst = append(dst, ", input_output_alias={ "...)
		for i, a := range g.Aliases {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = w.braced(dst, g.Path(a.Output))
			dst = append(dst, ": ("...)
			dst = appendInt(dst, int64(a.Parameter))
			dst = append(dst, ", "...)
			dst = w.braced(dst, g.Path(a.Param))
			if a.Must {
				dst = append(dst, ", must-alias)"...)
			} else {
				dst = append(dst, ", may-alias)"...)
			}
		}
		dst = append(dst, " }"...)
	}
	for _, r := range g.ModuleAttrs {
		dst = append(append(append(dst, ", "...), g.Text(r.Key)...), '=')
		dst = append(dst, g.Text(r.Value)...)
	}
	if g.Replicas != 0 {
		dst = append(dst, ", replica_count="...)
		dst = appendInt(dst, g.Replicas)
	}
	if g.Partitions != 0 {
		dst = append(dst, ", num_partitions="...)
		dst = appendInt(dst, g.Partitions)
	}
	return append(dst, '\n')
}

// appendModuleName appends the name of a module, with '_' for each byte that
// cannot be in one.
func appendModuleName(dst []byte, name string) []byte {
	if name == "" {
		return append(dst, "module"...)
	}
	if name[0] == '%' || name[0] == '/' { // the reader takes one '%' off; "//" would be a comment
		dst = append(dst, '%')
	}
	for i := range len(name) {
		if moduleNameByte(name[i]) {
			dst = append(dst, name[i])
		} else {
			dst = append(dst, '_')
		}
	}
	return dst
}

// frames writes the tables of stack frames; each frame has a location of its
// own.
func (w *writer) frames(dst []byte) []byte {
	g := w.g
	if len(g.Frames) == 0 {
		return dst
	}
	table := func(title string, pick func(opgraph.StackFrame) opgraph.StrID) map[opgraph.StrID]int {
		dst = append(append(append(dst, '\n'), title...), '\n')
		ids := map[opgraph.StrID]int{}
		for _, f := range g.Frames {
			s := pick(f)
			if _, ok := ids[s]; ok {
				continue
			}
			ids[s] = len(ids) + 1
			dst = appendInt(dst, int64(ids[s]))
			dst = append(appendQuoted(append(dst, ' '), g.Text(s)), '\n')
		}
		return ids
	}
	files := table("FileNames", func(f opgraph.StackFrame) opgraph.StrID { return f.File })
	functions := table("FunctionNames", func(f opgraph.StackFrame) opgraph.StrID { return f.Function })
	dst = append(dst, "\nFileLocations\n"...)
	for i, f := range g.Frames {
		dst = appendInt(dst, int64(i+1))
		for _, v := range []struct {
			key string
			val int64
		}{{" {file_name_id=", int64(files[f.File])}, {" function_name_id=", int64(functions[f.Function])},
			{" line=", int64(f.Line)}, {" end_line=", int64(f.EndLine)},
			{" column=", int64(f.Column)}, {" end_column=", int64(f.EndCol)}} {
			dst = appendInt(append(dst, v.key...), v.val)
		}
		dst = append(dst, "}\n"...)
	}
	dst = append(dst, "\nStackFrames\n"...)
	for i, f := range g.Frames {
		dst = appendInt(dst, int64(i+1))
		dst = appendInt(append(dst, " {file_location_id="...), int64(i+1))
		dst = appendInt(append(dst, " parent_frame_id="...), int64(f.Parent)+1)
		dst = append(dst, "}\n"...)
	}
	return dst
}

func (w *writer) computation(dst []byte, c opgraph.CompID) []byte {
	g := w.g
	w.first = g.Comps.First[c]
	w.ops = w.ops[:0]
	seen := map[string]bool{}
	for op := w.first; op < g.Comps.End[c]; op++ {
		w.ops = append(w.ops, unique(g.OpText(op), g.Ops.Kind[op].String(), seen))
	}
	dst = append(dst, '\n')
	if c == g.Entry {
		dst = append(dst, "ENTRY "...)
	}
	dst = append(append(append(dst, '%'), w.comps[c]...), " ("...)
	for i, p := range g.Params(c, nil) {
		if p == opgraph.NoOp {
			continue
		}
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(append(dst, w.ops[p-w.first]...), ": "...)
		dst = g.AppendShape(dst, g.Shapes.WithoutLayout(g.Ops.Shape[p]))
	}
	dst = append(dst, ") -> "...)
	dst = g.AppendShape(dst, g.Shapes.WithoutLayout(g.Ops.Shape[g.Comps.Root[c]]))
	dst = append(dst, " {\n"...)
	for op := w.first; op < g.Comps.End[c]; op++ {
		dst = append(dst, "  "...)
		if op == g.Comps.Root[c] {
			dst = append(dst, "ROOT "...)
		}
		dst = w.op(dst, op)
		dst = append(dst, '\n')
	}
	dst = append(dst, '}')
	if t := g.Comps.Thread[c]; t != 0 {
		dst = appendQuoted(append(dst, ", execution_thread="...), g.Text(t))
	}
	return append(dst, '\n')
}

func (w *writer) opName(dst []byte, op opgraph.OpID) []byte {
	return append(append(dst, '%'), w.ops[op-w.first]...)
}

func (w *writer) op(dst []byte, op opgraph.OpID) []byte {
	g := w.g
	kind := g.Ops.Kind[op]
	dst = append(w.opName(dst, op), " = "...)
	dst = append(g.AppendShape(dst, g.Ops.Shape[op]), ' ')
	if kind == opgraph.OpUnknown {
		dst = append(dst, unknownOpcode(g.AttrStr(op, opgraph.AttrOpcode))...)
	} else {
		dst = append(dst, kind.String()...)
	}
	dst = append(dst, '(')
	switch kind {
	case opgraph.OpParameter:
		dst = appendInt(dst, int64(g.Ops.Index[op]))
	case opgraph.OpConstant:
		dst = w.constant(dst, op)
	}
	for i, o := range g.Operands(op) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = w.opName(dst, o.Op)
		for _, k := range g.Path(o.Path) {
			dst = appendInt(append(dst, '#'), k)
		}
	}
	dst = append(dst, ')')
	if kind == opgraph.OpGetTupleElement {
		dst = appendInt(append(dst, ", index="...), int64(g.Ops.Index[op]))
	}
	dst = w.calls(dst, op)
	if preds := g.Control(op); len(preds) > 0 {
		dst = append(dst, ", control-predecessors={"...)
		for i, p := range preds {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = w.opName(dst, p)
		}
		dst = append(dst, '}')
	}
	g.Attrs(op, func(key opgraph.OpAttr, raw opgraph.RawAttr) bool {
		dst = w.attr(dst, op, key, raw)
		return true
	})
	return w.metadata(dst, op)
}

// unknownOpcode returns a word that reads back as an opcode nobody knows: a
// proto may have any string there, "dot-start" too, which is sugar in text.
func unknownOpcode(word string) string {
	if word == "" {
		return "unknown"
	}
	word = wordOf(word)
	if _, _, known := parseOpcode(word); known {
		word += "_"
	}
	return word
}

// constant writes the value of a constant.
func (w *writer) constant(dst []byte, op opgraph.OpID) []byte {
	g := w.g
	elem := g.Shapes.Elem(g.Ops.Shape[op])
	if v, ok := g.Int(op, opgraph.AttrConstInt); ok {
		switch {
		case elem == opgraph.ElemPred && v != 0:
			return append(dst, "true"...)
		case elem == opgraph.ElemPred:
			return append(dst, "false"...)
		case elem == opgraph.ElemU64:
			return strconv.AppendUint(dst, uint64(v), 10)
		}
		return appendInt(dst, v)
	}
	if v, ok := g.Float(op); ok {
		return appendFloat(dst, v)
	}
	if text := g.AttrStr(op, opgraph.AttrLiteral); text != "" {
		return append(dst, text...)
	}
	return append(dst, elided...)
}

// calls writes the called computations: a list for the roles that repeat.
func (w *writer) calls(dst []byte, op opgraph.OpID) []byte {
	calls := w.g.Calls(op)
	for i := 0; i < len(calls); {
		role := calls[i].Role
		n := 1
		for i+n < len(calls) && calls[i+n].Role == role {
			n++
		}
		key := [...]string{
			opgraph.RoleCalls: "calls", opgraph.RoleToApply: "to_apply", opgraph.RoleBody: "body",
			opgraph.RoleCondition: "condition", opgraph.RoleBranch: "branch_computations",
			opgraph.RoleSelect: "select", opgraph.RoleScatter: "scatter", opgraph.RoleCalled: "called_computations",
		}[role]
		dst = append(append(append(dst, ", "...), key...), '=')
		list := n > 1 || role == opgraph.RoleBranch || role == opgraph.RoleCalled
		if list {
			dst = append(dst, '{')
		}
		for k := range n {
			if k > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(append(dst, '%'), w.comps[calls[i+k].Comp]...)
		}
		if list {
			dst = append(dst, '}')
		}
		i += n
	}
	return dst
}

// braced writes "{1,2}".
func (w *writer) braced(dst []byte, v []int64) []byte {
	return append(appendInts(append(dst, '{'), v), '}')
}

func (w *writer) metadata(dst []byte, op opgraph.OpID) []byte {
	g := w.g
	name, file, line, frame := g.Ops.OpName[op], g.Ops.SourceFile[op], g.Ops.SourceLine[op], g.Ops.Frame[op]
	if name == 0 && file == 0 && line == 0 && frame == 0 {
		return dst
	}
	dst = append(dst, ", metadata={"...)
	sep := ""
	if name != 0 {
		dst = appendQuoted(append(dst, "op_name="...), g.Text(name))
		sep = " "
	}
	if file != 0 {
		dst = appendQuoted(append(append(dst, sep...), "source_file="...), g.Text(file))
		sep = " "
	}
	if line != 0 {
		dst = appendInt(append(append(dst, sep...), "source_line="...), int64(line))
		sep = " "
	}
	if frame != 0 {
		dst = appendInt(append(append(dst, sep...), "stack_frame_id="...), int64(frame))
	}
	return append(dst, '}')
}
