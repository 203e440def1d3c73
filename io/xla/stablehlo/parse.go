package stablehlo

import (
	"strings"

	"perfsim/components/opgraph"
)

// parser makes nodes of the text of one section. Types become shapes of g at
// once; attributes stay text until the graph is made, as aliases may be
// defined after their use.
type parser struct {
	scanner
	names
	slabs
	infos     map[string]*opInfo
	near      [32]nearType
	count     int // operations read since into
	scratch   []int64
	g         *opgraph.Graph
	types     map[string]opgraph.ShapeID
	leaves    map[opgraph.ShapeID]int // arrays in a tuple of g
	alias     map[string]string       // "#loc3" to its text
	typeAlias map[string]string       // "!t" to its text
	depth     int
	blamed    bool // the error names an operation of a foreign dialect
}

// into makes shapes of types in g from here on.
func (p *parser) into(g *opgraph.Graph) {
	p.g, p.types, p.leaves = g, map[string]opgraph.ShapeID{}, map[opgraph.ShapeID]int{}
	p.near, p.count = [32]nearType{}, 0
}

// topOp reads what is next at the outermost level: an operation, or nil for an
// alias definition or a resource section.
func (p *parser) topOp() (*node, bool) {
	switch {
	case p.has("{-#"):
		// Resources: blobs of dense_resource constants.
		n := strings.Index(p.s[p.pos:], "#-}")
		if n < 0 {
			return nil, p.fail("resource section is not closed")
		}
		p.pos += n + len("#-}")
		return nil, true
	case p.has("#"), p.has("!"):
		return nil, p.aliasDef()
	}
	n, ok := p.op()
	return n, ok && p.err == nil
}

// aliasDef takes "#name = value" or "!name = type".
func (p *parser) aliasDef() bool {
	at := p.pos
	p.pos++
	p.word()
	name := p.s[at:p.pos]
	if !p.expect("=", "after alias "+clip(name)) {
		return false
	}
	p.peek()
	if name[0] == '!' {
		text, _, ok := p.typeText()
		p.typeAlias[name] = text
		return ok
	}
	// The value ends with the line unless brackets are open.
	start := p.pos
	for p.pos < len(p.s) && p.s[p.pos] != '\n' {
		switch p.s[p.pos] {
		case '"':
			end := stringEnd(p.s, p.pos)
			if end < 0 {
				return p.fail("string is not closed")
			}
			p.pos = end
		case '(', '[', '{', '<':
			if _, ok := p.balanced(); !ok {
				return false
			}
		default:
			p.pos++
		}
	}
	p.alias[name] = strings.TrimSpace(p.s[start:p.pos])
	return true
}

// op reads one operation.
func (p *parser) op() (*node, bool) {
	p.peek()
	n := p.node()
	n.pos = p.pos
	p.count++
	if p.peek() == '%' {
		if !p.resultNames(n) {
			return nil, false
		}
	}
	nameAt := p.pos
	if p.peek() == '"' {
		name, ok := p.quoted()
		if !ok {
			return nil, false
		}
		n.opInfo = p.info(name)
		return n, p.generic(n) || p.blame(n)
	}
	name := p.word()
	if name == "" {
		return nil, p.failAt(nameAt, "expected an operation, found %s", p.found())
	}
	if full, short := shortNames[name]; short {
		name = full
	}
	n.opInfo = p.info(name)
	switch name {
	case "builtin.module":
		return n, p.module(n)
	case "func.func":
		return n, p.function(n)
	}
	return n, p.pretty(n) || p.blame(n)
}

// blame names an operation of a foreign dialect as the reason for an error
// within it: its syntax is not ours to judge. It reports false.
func (p *parser) blame(n *node) bool {
	if n.foreign && p.err != nil && !p.blamed {
		p.blamed = true
		p.err = nil
		return p.failAt(n.pos, "%s", notRead(n.name))
	}
	return false
}

// resultNames takes "%0 =", "%0:2 =" or "%a, %b:2 =".
func (p *parser) resultNames(n *node) bool {
	for {
		if !p.expect("%", "before a result") {
			return false
		}
		name := p.valueName()
		if name == 0 {
			return p.fail("expected the name of a result, found %s", p.found())
		}
		count := 1
		if p.pos < len(p.s) && p.s[p.pos] == ':' {
			p.pos++
			v, ok := p.number()
			if !ok {
				return false
			}
			if v < 1 || v > 1<<20 || int64(n.results)+v > 1<<20 {
				return p.fail("%d results", v)
			}
			count = int(v)
		}
		first := n.results
		n.results += int32(count)
		end := p.accept("=")
		if first == 0 {
			n.result = name
		}
		if first > 0 || !end { // several names
			n.own().names = append(n.names, resultName{name, int(first), count})
		}
		if end {
			return true
		}
		if !p.expect(",", "or \"=\" after a result") {
			return false
		}
	}
}

// number takes a decimal integer.
func (p *parser) number() (int64, bool) {
	p.peek()
	at := p.pos
	if p.pos < len(p.s) && p.s[p.pos] == '-' {
		p.pos++
	}
	for p.pos < len(p.s) && isDigit(p.s[p.pos]) {
		p.pos++
	}
	v, ok := parseInt(p.s[at:p.pos])
	if !ok {
		return 0, p.failAt(at, "expected an integer, found %s", p.found())
	}
	return v, true
}

// use takes "%0" or "%0#1".
func (p *parser) use() (ref, bool) {
	b := p.peek()
	r := ref{pos: int32(p.pos)}
	if b != '%' {
		return r, p.expect("%", "before a value")
	}
	p.pos++
	if r.name = p.valueName(); r.name == 0 {
		return r, p.fail("expected the name of a value, found %s", p.found())
	}
	if p.pos < len(p.s) && p.s[p.pos] == '#' {
		p.pos++
		v, ok := p.number()
		if !ok {
			return r, false
		}
		if v < 0 || v > 1<<20 {
			return r, p.failAt(int(r.pos), "result %d", v)
		}
		r.i = int32(v)
	}
	return r, true
}

// dict takes "{key = value, unit}" into the attributes of n.
func (p *parser) dict(n *node) bool {
	if !p.expect("{", "before the attributes") {
		return false
	}
	for !p.accept("}") {
		p.peek()
		a := attr{pos: p.pos}
		var ok bool
		if p.peek() == '"' {
			if a.key, ok = p.quoted(); !ok {
				return false
			}
		} else if a.key = p.word(); a.key == "" {
			return p.fail("expected an attribute, found %s", p.found())
		}
		if p.accept("=") {
			if a.val, ok = p.value(); !ok {
				return false
			}
		}
		n.attrs = p.attrs.add(n.attrs, a)
		if !p.accept(",") {
			if !p.expect("}", "to end the attributes") {
				return false
			}
			break
		}
	}
	return true
}

// location takes an optional "loc(…)" and returns what is inside.
func (p *parser) location() string {
	if !p.has("loc(") {
		return ""
	}
	p.pos += len("loc")
	text, ok := p.balanced()
	if !ok {
		return ""
	}
	return text[1 : len(text)-1]
}

// generic reads the rest of `"dialect.op"(%a) <{…}> ({…}) {…} : (T) -> U`.
func (p *parser) generic(n *node) bool {
	if !p.expect("(", "after the name of an operation") {
		return false
	}
	for !p.accept(")") {
		r, ok := p.use()
		if !ok {
			return false
		}
		n.operands = p.refs.add(n.operands, r)
		if !p.accept(",") && p.peek() != ')' {
			return p.fail("expected \",\" or \")\" after an operand, found %s", p.found())
		}
	}
	if p.peek() == '[' { // successors
		return p.fail("%s: branches between blocks are not supported", n.name)
	}
	if p.accept("<") {
		if p.peek() == '{' && !p.dict(n) {
			return false
		}
		if !p.expect(">", "after the properties") {
			return false
		}
	}
	if p.accept("(") {
		for {
			r, ok := p.region()
			if !ok {
				return false
			}
			n.own().regions = append(n.regions, r)
			if !p.accept(",") {
				break
			}
		}
		if !p.expect(")", "after the regions") {
			return false
		}
	}
	if p.peek() == '{' && !p.dict(n) {
		return false
	}
	if !p.expect(":", "before the types of "+n.name) || !p.signature(n) {
		return false
	}
	n.loc = p.location()
	for _, a := range n.attrs {
		if a.key == "sym_name" || a.key == "callee" {
			n.own().symbol = strings.Trim(a.val, `@"`)
		}
	}
	return p.err == nil
}

// region takes "{ ^bb0(%a: T): ops }".
func (p *parser) region() (*region, bool) {
	r := &region{pos: p.pos}
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("regions are nested more than %d levels", maxDepth)
	}
	defer func() { p.depth-- }()
	if !p.expect("{", "to begin a region") {
		return nil, false
	}
	if p.accept("^") {
		p.word()
		if p.accept("(") {
			var ok bool
			if r.args, ok = p.arguments(); !ok {
				return nil, false
			}
		}
		if !p.expect(":", "after the label of a block") {
			return nil, false
		}
	}
	return r, p.body(r)
}

// body reads operations up to the closing brace.
func (p *parser) body(r *region) bool {
	for !p.accept("}") {
		if !p.more() {
			return p.failAt(r.pos, "region is not closed")
		}
		if p.peek() == '^' {
			return p.fail("a region of several blocks is not supported")
		}
		n, ok := p.op()
		if !ok {
			return false
		}
		r.ops = append(r.ops, n)
	}
	return true
}

// arguments takes "%a: T {attrs} loc(…), …)"; the parenthesis is open.
func (p *parser) arguments() ([]arg, bool) {
	var args []arg
	if p.accept(")") {
		return nil, true
	}
	for {
		p.peek()
		a := arg{pos: p.pos}
		if !p.expect("%", "before an argument") {
			return nil, false
		}
		a.name = p.valueName()
		if !p.expect(":", "after an argument") {
			return nil, false
		}
		var ok bool
		if a.shape, ok = p.typ(); !ok {
			return nil, false
		}
		if p.peek() == '{' {
			if a.attrs, ok = p.balanced(); !ok {
				return nil, false
			}
		}
		p.location()
		args = append(args, a)
		if !p.accept(",") {
			return args, p.expect(")", "to end the arguments")
		}
	}
}

// module reads "@name attributes {…} { ops }".
func (p *parser) module(n *node) bool {
	if p.accept("@") {
		n.own().symbol = p.symbol()
	}
	if p.acceptWord("attributes") && !p.dict(n) {
		return false
	}
	r, ok := p.region()
	if !ok {
		return false
	}
	n.own().regions = append(n.regions, r)
	n.loc = p.location()
	return p.err == nil
}

// symbol takes a symbol's name after '@': bare or quoted.
func (p *parser) symbol() string {
	if p.pos < len(p.s) && p.s[p.pos] == '"' {
		s, _ := p.quoted()
		return s
	}
	start := p.pos
	for p.pos < len(p.s) && (isWord(p.s[p.pos]) || p.s[p.pos] == '-') {
		p.pos++
	}
	return p.s[start:p.pos]
}

// function reads "public @name(%a: T {…}) -> (U {…}) attributes {…} { ops }".
func (p *parser) function(n *node) bool {
	for _, v := range []string{"public", "private", "nested"} {
		if p.acceptWord(v) {
			n.own().words = append(n.words, v)
		}
	}
	if !p.expect("@", "before the name of a function") {
		return false
	}
	n.own().symbol = p.symbol()
	if !p.expect("(", "after the name of a function") {
		return false
	}
	r := &region{pos: n.pos}
	declared := false
	if b := p.peek(); b != '%' && b != ')' { // a declaration has types only
		declared = true
		p.pos--
		if _, ok := p.parenTypes(nil, nil); !ok {
			return false
		}
	} else {
		var ok bool
		if r.args, ok = p.arguments(); !ok {
			return false
		}
	}
	if p.accept("->") {
		var ok bool
		if p.peek() == '(' {
			n.out, ok = p.parenTypes(n.out, &n.own().outAttrs)
		} else {
			var t opgraph.ShapeID
			t, ok = p.typ()
			n.out = append(n.out, t)
		}
		if !ok {
			return false
		}
	}
	if p.acceptWord("attributes") && !p.dict(n) {
		return false
	}
	if p.peek() != '{' {
		n.loc = p.location()
		if !declared && len(r.args) > 0 {
			return p.failAt(n.pos, "function @%s has no body", n.symbol)
		}
		return p.err == nil // a declaration
	}
	p.depth++
	p.pos++
	ok := p.body(r)
	p.depth--
	n.own().regions = append(n.regions, r)
	if !ok {
		return false
	}
	n.loc = p.location()
	return p.err == nil
}
