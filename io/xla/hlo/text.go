package hlo

import (
	"strings"
	"unsafe"

	"perfsim/components/opgraph"
)

// parser fills one graph at a time from the text of a file.
type parser struct {
	scanner
	g      *opgraph.Graph
	attrs  *attrIndex
	shapes map[string]opgraph.ShapeID // by text
	// Where a name was defined, by StrID. An operator entry counts only when
	// its computation is the one being read.
	opOf   []opEntry
	compOf []uint32 // CompID+1
	// The same for what was met last.
	lastShapes recent[opgraph.ShapeID]
	lastOps    recent[opEntry]
	sizes      []int // about the number of instructions of each module that comes
	// Scratch stacks, shared by nested uses.
	members  []opgraph.ShapeID
	dims     []int64
	operands []opgraph.Operand
	ints     []int64
	// What has to wait for the end of a computation or of the module.
	late    []lateCall
	inlines []lateCall
	sugars  []sugar
	inter   []opgraph.OpID // operators whose shape waits for a computation that comes later
	comp    opgraph.CompID
	// missing lets an operand that is not defined but has a shape become a
	// parameter, as XLA does for text without a module around it.
	missing bool
	tables  stackTables
	nest    int
}

// opEntry is an operator that has a name in a computation; the zero value is
// none.
type opEntry struct {
	comp opgraph.CompID
	row  uint32 // OpID+1
}

type lateCall struct {
	op   opgraph.OpID
	i    int // index in Calls(op)
	name string
	pos  int
}

// ReadText reads every module of an HLO text file: a module printed by XLA
// (header, computations), several of them (one after another, or in the
// sections that lines "// -----" make in lit files), or text without a
// header: computations, or just instructions. name is for messages. Errors
// are *Error. The graphs satisfy opgraph.Graph.Check; their strings are
// parts of b, which must not be changed any more.
func ReadText(name string, b []byte) ([]*opgraph.Graph, error) {
	if off := int64(len(b)); off > maxText {
		return nil, &Error{File: name, Msg: "text longer than 4 GiB"}
	}
	text := unsafe.String(unsafe.SliceData(b), len(b)) // no copy: names in the graphs are parts of it
	var graphs []*opgraph.Graph
	for start := 0; start < len(text); {
		end, next, sizes := section(text, start)
		p := parser{scanner: scanner{file: name, s: text[:end], pos: start}, sizes: sizes}
		for p.more() {
			g, ok := p.module()
			if !ok {
				return nil, p.err
			}
			graphs = append(graphs, g)
			p.peek()
			if p.err != nil {
				return nil, p.err
			}
		}
		if p.err != nil {
			return nil, p.err
		}
		start = next
	}
	if len(graphs) == 0 {
		return nil, &Error{File: name, Line: 1, Col: 1, Msg: "no HLO module: the text is empty"}
	}
	return graphs, nil
}

// maxText keeps offsets in 32 bits.
const maxText = 1<<32 - 1

// separator begins the lines between the sections of a lit file.
const separator = "// -----"

// section returns where the section that starts at start ends and where the
// next one begins: lines that start with "// -----" separate them. sizes has
// the number of indented lines, instructions in dumps, of each module in it.
func section(text string, start int) (end, next int, sizes []int) {
	n := 0
	header := false
	for at := start; at < len(text); {
		line := at
		for at < len(text) && class[text[at]]&classSpace != 0 && text[at] != '\n' {
			at++
		}
		switch {
		case at > line:
			n++
		case strings.HasPrefix(text[at:], "HloModule"):
			if header {
				sizes = append(sizes, n)
			}
			header, n = true, 0
		}
		eol := strings.IndexByte(text[at:], '\n')
		if strings.HasPrefix(text[at:], separator) {
			if eol < 0 {
				return at, len(text), append(sizes, n)
			}
			return at, at + eol + 1, append(sizes, n)
		}
		if eol < 0 {
			break
		}
		at += eol + 1
	}
	return len(text), len(text), append(sizes, n)
}

// module reads one module. The cursor is at its first token.
func (p *parser) module() (*opgraph.Graph, bool) {
	p.g = opgraph.NewGraph("")
	p.shapes, p.opOf, p.compOf = nil, nil, nil
	p.reserve()
	p.lastShapes, p.lastOps = recent[opgraph.ShapeID]{}, recent[opEntry]{}
	p.late, p.inlines, p.sugars, p.inter = p.late[:0], p.inlines[:0], p.sugars[:0], p.inter[:0]
	p.tables = stackTables{}
	p.missing = false
	start := p.pos
	entry := opgraph.NoComp
	header := p.isWord("HloModule")
	if !header {
		p.g.Name = p.g.Str("module")
	} else {
		p.pos += len("HloModule")
		if !p.header() || !p.stackTables() {
			return nil, false
		}
	}
	for p.more() && !p.isWord("HloModule") {
		at := p.pos
		if !header && p.g.NumComps() == 0 && p.bareInstructions() {
			p.missing = true
			if !p.bareComputation() {
				return nil, false
			}
			continue
		}
		isEntry := p.isWord("ENTRY")
		if isEntry {
			p.pos += len("ENTRY")
		}
		if !p.computation() {
			return nil, false
		}
		if isEntry {
			if entry != opgraph.NoComp {
				return nil, p.failAt(at, "a second ENTRY computation")
			}
			entry = p.comp
		}
	}
	if p.err != nil {
		return nil, false
	}
	if p.g.NumComps() == 0 {
		return nil, p.failAt(start, "the module has no computation")
	}
	if entry == opgraph.NoComp {
		entry = p.comp // the last one read, not the ones made from sugar
	}
	p.g.Entry = entry
	if !p.resolveCalls() || !p.inferLate() {
		return nil, false
	}
	if err := finish(p.g); err != nil {
		return nil, p.graphErr(err, start)
	}
	return p.g, true
}

// reserve makes room for the instructions of the module at the cursor: dumps
// have one a line, of seldom less than 32 bytes.
func (p *parser) reserve() {
	if len(p.sizes) == 0 {
		return
	}
	n := min(p.sizes[0], (len(p.s)-p.pos)/32)
	p.sizes = p.sizes[1:]
	p.g.Reserve(n)
	p.opOf = make([]opEntry, 0, n+n/4)
}

// isWord reports whether the next token is the word w.
func (p *parser) isWord(w string) bool {
	p.peek()
	rest := p.s[p.pos:]
	if !strings.HasPrefix(rest, w) {
		return false
	}
	return len(rest) == len(w) || class[rest[len(w)]]&classWord == 0
}

// graphErr turns an error of the graph into one with a place.
func (p *parser) graphErr(err error, start int) bool {
	ge, ok := err.(*opgraph.GraphError)
	if !ok {
		return p.failAt(start, "%v", err)
	}
	line := 0
	switch {
	case ge.Op != opgraph.NoOp:
		line = int(p.g.Ops.TextLine[ge.Op])
	case ge.Comp != opgraph.NoComp:
		line = int(p.g.Comps.TextLine[ge.Comp])
	}
	if line == 0 {
		return p.failAt(start, "%s", ge.Msg)
	}
	pos := 0
	for n := 1; n < line; n++ {
		pos += strings.IndexByte(p.s[pos:], '\n') + 1
	}
	for pos < len(p.s) && class[p.s[pos]]&classSpace != 0 {
		pos++
	}
	return p.failAt(pos, "%s", ge.Msg)
}

// header reads what follows "HloModule": the name and the attributes.
func (p *parser) header() bool {
	if p.peek() == '%' {
		p.pos++
	}
	start := p.pos
	for p.pos < len(p.s) && moduleNameByte(p.s[p.pos]) {
		p.pos++
	}
	if p.pos == start {
		return p.fail("expected the name of the module, found %s", p.found())
	}
	if p.pos < len(p.s) && p.s[p.pos] != ',' && class[p.s[p.pos]]&classSpace == 0 {
		return p.fail("%s cannot be in the name of a module, which is printable ASCII", p.found())
	}
	p.g.Name = p.g.Str(p.s[start:p.pos])
	for p.accept(',') {
		p.peek()
		at := p.pos
		key := p.word()
		if key == "" {
			return p.fail("expected a module attribute, found %s", p.found())
		}
		if !p.expectAfter('=', "after", key) {
			return false
		}
		var ok bool
		switch key {
		case "is_scheduled":
			p.g.IsScheduled, ok = p.bool()
		case "replica_count":
			p.g.Replicas, ok = p.int()
		case "num_partitions":
			p.g.Partitions, ok = p.int()
		case "input_output_alias":
			ok = p.aliases()
		default:
			var v string
			v, ok = p.value()
			p.g.ModuleAttrs = append(p.g.ModuleAttrs, opgraph.RawAttr{Key: p.g.Str(key), Value: p.g.Str(v)})
		}
		if !ok {
			return p.failAt(at, "bad module attribute %s", key)
		}
	}
	return true
}

// moduleNameByte reports whether a byte can be in the name of a module: names
// made by frameworks ("jit(f)/x") are read as they are, although XLA itself
// makes words of them.
func moduleNameByte(b byte) bool { return b > ' ' && b < 0x7f && b != ',' }

func (p *parser) bool() (v, ok bool) {
	p.peek()
	at := p.pos
	switch w := p.word(); w {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	default:
		return false, p.failAt(at, "expected true or false, found %q", w)
	}
}

// bareInstructions reports whether the text begins with an instruction
// instead of a computation.
func (p *parser) bareInstructions() bool {
	save := p.pos
	defer func() { p.pos = save }()
	if p.isWord("ENTRY") {
		return false
	}
	if p.isWord("ROOT") || p.startsShape() {
		return true
	}
	if p.peek() == '%' {
		p.pos++
	}
	return p.word() != "" && p.peek() == '='
}

// bareComputation reads instructions up to the end as one computation.
func (p *parser) bareComputation() bool {
	p.comp = p.g.BeginComputation("entry")
	p.g.Comps.TextLine[p.comp] = uint32(p.lineAt(p.pos))
	root := opgraph.NoOp
	for p.more() && !p.isWord("HloModule") {
		if !p.instruction(&root) {
			return false
		}
	}
	p.g.EndComputation(root)
	return p.afterComputation()
}

// computation reads "name (params) -> shape { instructions }".
func (p *parser) computation() bool {
	p.peek()
	at := p.pos
	name, ok := p.name()
	if !ok {
		return false
	}
	if p.peek() == '(' {
		if _, ok := p.balanced(); !ok {
			return false
		}
		if !p.expectAfter('-', "after the parameters of computation", name) || !p.expect('>', "after '-'") {
			return false
		}
		if !p.skipShape() {
			return false
		}
	}
	if !p.expectAfter('{', "to begin computation", name) {
		return false
	}
	if p.compNamed(name) != opgraph.NoComp {
		return p.failAt(at, "computation %q is defined twice", name)
	}
	p.comp = p.g.BeginComputation(name)
	p.define(p.comp, at)
	root := opgraph.NoOp
	for !p.accept('}') {
		if p.pos >= len(p.s) {
			return p.failAt(at, "computation %q is not closed", name)
		}
		if !p.instruction(&root) {
			return false
		}
	}
	p.g.EndComputation(root)
	for p.accept(',') {
		key := p.word()
		if !p.expectAfter('=', "after an attribute of computation", name) {
			return false
		}
		if key == "execution_thread" {
			v, ok := p.quoted()
			if !ok {
				return false
			}
			if v != "main" {
				p.g.Comps.Thread[p.comp] = p.g.Str(v)
			}
		} else if _, ok := p.value(); !ok {
			return false
		}
	}
	return p.afterComputation()
}

// afterComputation adds what the computation just read needs in addition: the
// computations of asynchronous sugar and those written in the place of a name.
func (p *parser) afterComputation() bool {
	comp := p.comp
	if !p.expandSugar() {
		return false
	}
	inlines := p.inlines
	p.inlines = nil
	for _, l := range inlines {
		if !p.inline(l) {
			return false
		}
	}
	p.comp = comp
	return true
}

// inline reads a computation in braces that was skipped.
func (p *parser) inline(l lateCall) bool {
	if p.nest == maxDepth {
		return p.failAt(l.pos, "computations are nested more than %d levels", maxDepth)
	}
	p.nest++
	back := p.pos
	p.pos = l.pos + 1
	name := "inline_" + p.g.OpText(l.op)
	for i := 0; p.compNamed(name) != opgraph.NoComp; i++ {
		name = "inline_" + p.g.OpText(l.op) + "." + string(appendInt(nil, int64(i)))
	}
	p.comp = p.g.BeginComputation(name)
	p.define(p.comp, l.pos)
	p.g.SetCall(l.op, l.i, p.comp)
	root := opgraph.NoOp
	nest := p.nest
	p.nest = 0
	for !p.accept('}') {
		if p.pos >= len(p.s) {
			return p.failAt(l.pos, "computation is not closed")
		}
		if !p.instruction(&root) {
			return false
		}
	}
	p.nest = nest
	p.g.EndComputation(root)
	ok := p.afterComputation()
	p.nest--
	p.pos = back
	return ok
}

// define records the name and line of a computation.
func (p *parser) define(c opgraph.CompID, at int) {
	p.g.Comps.TextLine[c] = uint32(p.lineAt(at))
	id := p.g.Comps.Name[c]
	for int(id) >= len(p.compOf) {
		p.compOf = append(p.compOf, 0)
	}
	p.compOf[id] = uint32(c) + 1
}

func (p *parser) compNamed(name string) opgraph.CompID {
	if id, ok := p.g.LookupStr(name); ok && int(id) < len(p.compOf) && p.compOf[id] != 0 {
		return opgraph.CompID(p.compOf[id] - 1)
	}
	return opgraph.NoComp
}

// opNamed returns the operator of the computation being read with a name,
// NoOp when there is none.
func (p *parser) opNamed(name string) opgraph.OpID {
	if e, ok := p.lastOps.get(name); ok && e.comp == p.comp {
		return opgraph.OpID(e.row - 1)
	}
	if id, ok := p.g.LookupStr(name); ok {
		return p.opOfStr(id)
	}
	return opgraph.NoOp
}

func (p *parser) opOfStr(id opgraph.StrID) opgraph.OpID {
	if int(id) < len(p.opOf) {
		if e := p.opOf[id]; e.comp == p.comp && e.row != 0 {
			return opgraph.OpID(e.row - 1)
		}
	}
	return opgraph.NoOp
}

// setOp records which operator of the computation being read has a name.
func (p *parser) setOp(name string, op opgraph.OpID) {
	id := p.g.Ops.Name[op]
	for int(id) >= len(p.opOf) {
		p.opOf = append(p.opOf, opEntry{})
	}
	e := opEntry{p.comp, uint32(op) + 1}
	p.opOf[id] = e
	p.lastOps.put(name, e)
}

// instruction reads "[ROOT] name = [shape] opcode(operands), attributes".
func (p *parser) instruction(root *opgraph.OpID) bool {
	b := p.peek()
	at := p.pos
	isRoot := b == 'R' && p.isWord("ROOT") && p.s[p.pos+4:] != "" && !p.assigned("ROOT")
	if isRoot {
		p.pos += len("ROOT")
	}
	var name string
	if p.missing && p.startsShape() && !p.named() {
		name = "" // a nameless instruction of bare text
	} else {
		var ok bool
		if name, ok = p.name(); !ok {
			return false
		}
		if !p.exact(" = ") && !p.expectAfter('=', "after instruction", name) {
			return false
		}
	}
	op, ok := p.body(at, name)
	if !ok {
		return false
	}
	if isRoot {
		if *root != opgraph.NoOp {
			return p.failAt(at, "computation %q has a second ROOT", p.g.CompText(p.comp))
		}
		*root = op
	}
	return true
}

// assigned reports whether the word at the cursor is followed by '=': an
// instruction may be called ROOT.
func (p *parser) assigned(word string) bool {
	save := p.pos
	p.pos += len(word)
	is := p.peek() == '='
	p.pos = save
	return is
}

// named reports whether the cursor is at "name =".
func (p *parser) named() bool {
	save := p.pos
	defer func() { p.pos = save }()
	if p.peek() == '%' {
		p.pos++
	}
	return p.word() != "" && p.peek() == '='
}

// body reads "[shape] opcode(operands), attributes" and adds the operator.
// An empty name means that it is anonymous: an operand of another.
func (p *parser) body(at int, name string) (opgraph.OpID, bool) {
	shape, _, ok := p.optionalShape()
	if !ok {
		return 0, false
	}
	if !p.exact(" ") || p.pos == len(p.s) || class[p.s[p.pos]]&classWord == 0 {
		p.peek()
	}
	kindAt := p.pos
	word := p.wordHere()
	if word == "" {
		return 0, p.fail("expected an opcode, found %s", p.found())
	}
	kind, part, ok := parseOpcode(word)
	if !p.exact("(") && !p.expectAfter('(', "after opcode", word) {
		return 0, false
	}
	var id opgraph.StrID
	if name != "" {
		known := p.g.NumStrs()
		id = p.g.Str(name)
		if int(id) < known && p.opOfStr(id) != opgraph.NoOp {
			return 0, p.failAt(at, "instruction %q is defined twice in the computation", name)
		}
	}
	mark := len(p.operands)
	index := int64(opgraph.NoIndex)
	literal := ""
	switch {
	case !ok:
		// An unknown opcode: its operands are still read.
		kind = opgraph.OpUnknown
		if !p.operandList() {
			return 0, false
		}
	case kind == opgraph.OpParameter && part == whole:
		numAt := p.pos
		if index, ok = p.int(); !ok {
			return 0, false
		}
		if index < 0 || index > 1<<30 {
			return 0, p.failAt(numAt, "parameter number %d", index)
		}
		if !p.expect(')', "after the parameter number") {
			return 0, false
		}
	case kind == opgraph.OpConstant && part == whole:
		if literal, ok = p.literal(); !ok {
			return 0, false
		}
	default:
		if !p.operandList() {
			return 0, false
		}
	}
	if name == "" {
		id = p.freshName(word)
		name = p.g.Text(id)
	}
	inner := kind
	switch part {
	case start:
		kind = opgraph.OpAsyncStart
	case update:
		kind = opgraph.OpAsyncUpdate
	case done:
		kind = opgraph.OpAsyncDone
	}
	op := p.g.AddOpOperands(kind, id, shape, p.operands[mark:])
	p.operands = p.operands[:mark]
	p.g.Ops.TextLine[op] = uint32(p.lineAt(at))
	p.g.Ops.Index[op] = int32(index)
	p.setOp(name, op)
	if kind == opgraph.OpUnknown {
		p.g.SetAttrStr(op, opgraph.AttrOpcode, word)
	}
	if kind == opgraph.OpConstant && !setLiteral(p.g, op, literal) {
		return 0, p.failAt(kindAt, "constant %q is no value of %s", clip(literal), p.g.ShapeText(shape))
	}
	// An anonymous operand has no attributes: a comma there begins the next
	// operand.
	if p.nest == 0 && !p.attributes(op) {
		return 0, false
	}
	if part == start {
		p.sugars = append(p.sugars, sugar{op, inner, at})
		if shape == 0 {
			return 0, p.failAt(at, "%s needs its shape stated", word)
		}
		return op, true
	}
	if shape == 0 {
		return op, p.infer(op, at)
	}
	return op, true
}

// infer works out the shape of op, or leaves it for the end of the module where
// it depends on a computation that comes later.
func (p *parser) infer(op opgraph.OpID, at int) bool {
	if !p.inferable(op) {
		p.inter = append(p.inter, op)
		return true
	}
	if err := p.g.Infer(op); err != nil {
		return p.graphErr(err, at)
	}
	return true
}

// inferable reports whether the shapes that op depends on are known.
func (p *parser) inferable(op opgraph.OpID) bool {
	g := p.g
	for _, c := range g.Calls(op) {
		if c.Comp == opgraph.NoComp || g.Comps.Root[c.Comp] == opgraph.NoOp || g.Ops.Shape[g.Comps.Root[c.Comp]] == 0 {
			return false
		}
	}
	for _, o := range g.Operands(op) {
		if g.Ops.Shape[o.Op] == 0 {
			return false
		}
	}
	return true
}

// inferLate works out the shapes that had to wait, in as many rounds as the
// computations call each other deeply.
func (p *parser) inferLate() bool {
	for len(p.inter) > 0 {
		wait := p.inter[:0]
		for _, op := range p.inter {
			if !p.inferable(op) {
				wait = append(wait, op)
				continue
			}
			if err := p.g.Infer(op); err != nil {
				return p.graphErr(err, 0)
			}
		}
		if len(wait) == len(p.inter) {
			return p.graphErr(p.g.Infer(wait[0]), 0) // recursion, or a computation without instructions
		}
		p.inter = wait
	}
	return true
}

// freshName makes a name for an anonymous instruction.
func (p *parser) freshName(word string) opgraph.StrID {
	buf := append([]byte(word), '.')
	n := len(buf)
	for i := p.g.NumOps(); ; i++ {
		buf = appendInt(buf[:n], int64(i))
		id := p.g.Str(string(buf))
		if p.opOfStr(id) == opgraph.NoOp {
			return id
		}
	}
}

// operandList takes "operand, …)"; the opening parenthesis is taken.
func (p *parser) operandList() bool {
	if p.accept(')') {
		return true
	}
	for {
		if !p.operand() {
			return false
		}
		switch p.peek() {
		case ',':
			p.pos++
			p.exact(" ")
		case ')':
			p.pos++
			return true
		default:
			return p.expect(')', "to end the operands")
		}
	}
}

// plainOperand takes "%name" if a comma or a parenthesis follows, as mostly in
// dumps.
func (p *parser) plainOperand() bool {
	s, start := p.s, p.pos+1
	if start > len(s) || s[p.pos] != '%' {
		return false
	}
	end := p.wordEnd(start)
	if end == start || end == len(s) || s[end] != ',' && s[end] != ')' {
		return false
	}
	op := p.opNamed(s[start:end])
	if op == opgraph.NoOp {
		return false
	}
	p.pos = end
	p.operands = append(p.operands, opgraph.Operand{Op: op})
	return true
}

// operand takes "[shape] name[#i…]" or "[shape] opcode(operands)".
func (p *parser) operand() bool {
	if p.plainOperand() {
		return true
	}
	p.peek()
	at := p.pos
	shape, _, ok := p.optionalShape()
	if !ok {
		return false
	}
	b := p.peek()
	nameAt := p.pos
	if b != '%' {
		i := p.wordEnd(p.pos)
		if i > p.pos && i < len(p.s) && p.s[i] == '(' {
			return p.nested(at)
		}
	}
	name, ok := p.name()
	if !ok {
		return false
	}
	op := p.opNamed(name)
	if op == opgraph.NoOp {
		if !p.missing || shape == 0 {
			return p.failAt(nameAt, "operand %q is not defined before in the computation", name)
		}
		op = p.addMissing(name, shape)
	}
	o := opgraph.Operand{Op: op}
	if p.pos < len(p.s) && p.s[p.pos] == '#' {
		if o.Path, ok = p.path(); !ok {
			return false
		}
	}
	p.operands = append(p.operands, o)
	return true
}

// nested takes an anonymous instruction in the place of an operand.
func (p *parser) nested(at int) bool {
	if p.nest == maxDepth {
		return p.fail("instructions are nested more than %d levels", maxDepth)
	}
	p.nest++
	p.pos = at
	op, ok := p.body(at, "")
	p.nest--
	if !ok {
		return false
	}
	p.operands = append(p.operands, opgraph.Operand{Op: op})
	return true
}

// path takes "#1#0".
func (p *parser) path() (opgraph.PathID, bool) {
	v := p.ints[:0]
	for p.pos < len(p.s) && p.s[p.pos] == '#' {
		p.pos++
		i, ok := p.int()
		if !ok {
			return 0, false
		}
		v = append(v, i)
	}
	p.ints = v[:0]
	return p.g.AddPath(v...), true
}

// addMissing makes a parameter of an operand that bare text does not define.
func (p *parser) addMissing(name string, shape opgraph.ShapeID) opgraph.OpID {
	op := p.g.AddParameter(name, shape, p.params())
	p.g.Ops.TextLine[op] = uint32(p.lineAt(p.pos))
	p.setOp(name, op)
	return op
}

// params counts the parameters of the computation being read.
func (p *parser) params() int {
	n := 0
	for op := p.g.Comps.First[p.comp]; int(op) < p.g.NumOps(); op++ {
		if p.g.Ops.Kind[op] == opgraph.OpParameter {
			n++
		}
	}
	return n
}

// resolveCalls fills in the computations that were named before they came.
func (p *parser) resolveCalls() bool {
	for _, l := range p.late {
		c := p.compNamed(l.name)
		if c == opgraph.NoComp {
			return p.failAt(l.pos, "computation %q does not exist", l.name)
		}
		p.g.SetCall(l.op, l.i, c)
	}
	return true
}

// clip shortens a text for a message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
