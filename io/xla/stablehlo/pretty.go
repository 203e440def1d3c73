package stablehlo

import "strings"

// pretty reads an operation in its own syntax. The syntaxes differ by
// operation, but are made of few pieces: values, "key = value" clauses, bare
// words, bracketed lists, an attribute dictionary, and types after a colon.
// One loop reads them all; while and reduce, whose regions come after the
// types, and the dimension numbers of a convolution have a reader of their
// own.
func (p *parser) pretty(n *node) bool {
	op := n.op
	if n.foreign && op != "return" && op != "constant" {
		op = ""
	}
	switch op {
	case "while":
		return p.while(n)
	case "reduce":
		return p.reduce(n)
	case "return":
		return p.returned(n)
	case "constant":
		return p.constant(n)
	case "mesh":
		return p.mesh(n)
	case "manual_computation", "named_computation":
		return p.manual(n)
	}
	if !p.pieces(n, "") {
		return false
	}
	if p.accept(":") && !p.signature(n) {
		return false
	}
	// A list of types where one result is: those of some operands, then that
	// of the result (select).
	if n.results == 1 && len(n.out) > 1 && len(n.in) == 0 {
		n.out = n.out[len(n.out)-1:]
	}
	n.loc = p.location()
	return p.err == nil
}

// pieces reads up to the colon before the types, or, in parentheses, up to
// the closing one.
func (p *parser) pieces(n *node, end string) bool {
	startLine := p.pos
	for p.more() {
		if end != "" && p.accept(end) {
			return true
		}
		switch b := p.s[p.pos]; {
		case b == ':':
			if end == "" {
				return true
			}
			p.pos++
		case b == ',':
			p.pos++
		case b == '%':
			// Without types an operation ends where the next begins.
			if end == "" && p.startsOp(startLine) {
				return true
			}
			r, ok := p.use()
			if !ok {
				return false
			}
			n.operands = p.refs.add(n.operands, r)
		case b == '@':
			p.pos++
			n.own().symbol = p.symbol()
		case b == '(':
			p.pos++
			if p.depth++; p.depth > maxDepth {
				return p.fail("parentheses are nested more than %d levels", maxDepth)
			}
			ok := p.pieces(n, ")")
			p.depth--
			if !ok {
				return false
			}
		case b == '[':
			text, ok := p.balanced()
			if !ok {
				return false
			}
			n.own().lists = p.texts.add(n.lists, text)
		case b == '{':
			if !p.dict(n) {
				return false
			}
		case b == '<':
			if strings.HasPrefix(p.s[p.pos:], "<{") {
				p.pos++
				if !p.dict(n) || !p.expect(">", "after the properties") {
					return false
				}
			} else {
				text, ok := p.balanced()
				if !ok {
					return false
				}
				n.own().lists = p.texts.add(n.lists, text)
			}
		case b == '"':
			if end == "" && p.startsOp(startLine) {
				return true
			}
			if _, ok := p.quoted(); !ok {
				return false
			}
		case b == '#':
			if _, ok := p.value(); !ok {
				return false
			}
		case b == '}' || b == ')' || b == ']':
			if end == "" {
				return true
			}
			return p.fail("expected %q, found %q", end, b)
		case isLetter(b):
			if end == "" && p.startsOp(startLine) {
				return true
			}
			if !p.clause(n) {
				return false
			}
		default:
			p.pos++ // numbers, signs, arrows
		}
	}
	if end != "" {
		return p.fail("expected %q, found the end of the input", end)
	}
	return p.err == nil
}

// startsOp reports whether the cursor, on a later line than from, is at a new
// operation.
func (p *parser) startsOp(from int) bool {
	if strings.IndexByte(p.s[from:p.pos], '\n') < 0 {
		return false
	}
	save := p.pos
	defer func() { p.pos = save }()
	switch p.s[p.pos] {
	case '%':
		p.pos++
		p.word()
		return p.has("=") || p.has(":")
	case '"':
		return true
	}
	w := p.word()
	return strings.Contains(w, ".") || w == "return" || w == "call" || w == "func" || w == "module" || w == "loc"
}

// clause reads "key = value", or a bare word. The value of some keys has
// more parts: "[1] x [0]", or dimension numbers.
func (p *parser) clause(n *node) bool {
	a := attr{pos: p.pos}
	a.key = p.word()
	if p.has("==") || !p.accept("=") {
		n.own().words = p.texts.add(n.words, a.key)
		return true
	}
	next := p.peek()
	at := p.pos
	switch next {
	case '[', '{', '<', '(':
		for {
			if _, ok := p.balanced(); !ok {
				return false
			}
			// "[1] x [0]" and "[b, f]x[i, o]->[b, f]"
			save := p.pos
			if (p.accept("x") || p.accept("->")) && p.peek() == '[' {
				continue
			}
			p.pos = save
			break
		}
	case '"':
		if _, ok := p.quoted(); !ok {
			return false
		}
	case '#', '@':
		p.pos++
		p.word()
		if p.pos < len(p.s) && p.s[p.pos] == '<' {
			if _, ok := p.balanced(); !ok {
				return false
			}
		}
	default:
		for p.pos < len(p.s) && (isWord(p.s[p.pos]) || p.s[p.pos] == '-' || p.s[p.pos] == '+') {
			p.pos++
		}
		if p.pos == at {
			return p.fail("expected a value for %s, found %s", a.key, p.found())
		}
		if p.pos < len(p.s) && p.s[p.pos] == '<' {
			if _, ok := p.balanced(); !ok {
				return false
			}
		}
	}
	a.val = p.s[at:p.pos]
	n.attrs = p.attrs.add(n.attrs, a)
	return true
}

// constant reads "stablehlo.constant {attrs} dense<…> : T".
func (p *parser) constant(n *node) bool {
	if p.peek() == '{' && !p.dict(n) {
		return false
	}
	p.peek()
	at := p.pos
	p.word()
	if p.pos < len(p.s) && p.s[p.pos] == '<' {
		if _, ok := p.balanced(); !ok {
			return false
		}
	} else if p.pos == at { // a bare number or an alias: arith.constant
		for p.pos < len(p.s) && p.s[p.pos] != ':' && p.s[p.pos] != '\n' {
			p.pos++
		}
	}
	n.own().dense = strings.TrimSpace(p.s[at:p.pos])
	if !p.expect(":", "before the type of a constant") || !p.signature(n) {
		return false
	}
	n.loc = p.location()
	return p.err == nil
}

// returned reads "stablehlo.return %a, %b : T, U", or a bare return.
func (p *parser) returned(n *node) bool {
	if p.peek() == '{' && !p.dict(n) {
		return false
	}
	if p.peek() == '%' {
		for {
			r, ok := p.use()
			if !ok {
				return false
			}
			n.operands = p.refs.add(n.operands, r)
			if !p.accept(",") {
				break
			}
		}
		if !p.expect(":", "before the types of "+n.name) || !p.signature(n) {
			return false
		}
	}
	n.loc = p.location()
	return p.err == nil
}

// while reads "(%iterArg = %init, …) : T, U attributes {…} cond {…} do {…}".
func (p *parser) while(n *node) bool {
	if !p.expect("(", "after "+n.name) {
		return false
	}
	for !p.accept(")") {
		if !p.expect("%", "before a loop value") {
			return false
		}
		n.own().inits = append(n.inits, p.valueName())
		if !p.expect("=", "after a loop value") {
			return false
		}
		r, ok := p.use()
		if !ok {
			return false
		}
		n.operands = p.refs.add(n.operands, r)
		if !p.accept(",") && p.peek() != ')' {
			return p.fail("expected \",\" or \")\" after a loop value, found %s", p.found())
		}
	}
	if p.accept(":") && !p.signature(n) {
		return false
	}
	if len(n.out) != len(n.inits) {
		return p.failAt(n.pos, "while of %d values has %d types", len(n.inits), len(n.out))
	}
	if p.acceptWord("attributes") && !p.dict(n) {
		return false
	}
	for _, w := range []string{"cond", "do"} {
		if !p.acceptWord(w) {
			return p.fail("expected %q of a while, found %s", w, p.found())
		}
		r, ok := p.region()
		if !ok {
			return false
		}
		for i, name := range n.inits {
			r.args = append(r.args, arg{name: name, shape: n.out[i], pos: n.pos})
		}
		n.own().regions = append(n.regions, r)
	}
	n.loc = p.location()
	return p.err == nil
}

// reduce reads "(%x init: %c), (%y init: %d) applies stablehlo.add across
// dimensions = [1] : (T, U) -> V", or without "applies" and with
// "reducer(%a: T, %b: T) (%c: U, %d: U) {…}" at the end.
func (p *parser) reduce(n *node) bool {
	var inits []ref
	for {
		if !p.expect("(", "before the operands of a reduce") {
			return false
		}
		x, ok := p.use()
		if !ok || !p.expect("init", "after an operand of a reduce") || !p.expect(":", "after init") {
			return false
		}
		c, ok := p.use()
		if !ok || !p.expect(")", "after the operands of a reduce") {
			return false
		}
		n.operands, inits = append(n.operands, x), append(inits, c)
		if !p.accept(",") {
			break
		}
	}
	n.operands = append(n.operands, inits...)
	if p.acceptWord("applies") {
		n.own().symbol = p.word()
	}
	if !p.acceptWord("across") || !p.clause(n) {
		return p.fail("expected \"across dimensions = […]\" of a reduce, found %s", p.found())
	}
	if p.peek() == '{' && !p.dict(n) {
		return false
	}
	if !p.expect(":", "before the types of a reduce") || !p.signature(n) {
		return false
	}
	if p.acceptWord("reducer") {
		// The arguments come in pairs (left, right) of each operand; the
		// computation takes all left ones first.
		var left, right []arg
		for p.accept("(") {
			args, ok := p.arguments()
			if !ok {
				return false
			}
			if len(args) != 2 {
				return p.fail("a reducer takes its arguments in pairs")
			}
			left, right = append(left, args[0]), append(right, args[1])
		}
		r, ok := p.region()
		if !ok {
			return false
		}
		r.args = append(left, right...)
		n.own().regions = append(n.regions, r)
	}
	n.loc = p.location()
	return p.err == nil
}
