package stablehlo

import (
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

// maxDepth bounds the nesting of regions and tuples.
const maxDepth = 200

// maxLeaves bounds the arrays in a tuple: by aliases a short text can name a
// tuple of any size.
const maxLeaves = 1 << 14

// maxRank bounds the rank of a tensor.
const maxRank = 64

// typ takes a type.
func (p *parser) typ() (opgraph.ShapeID, bool) {
	text, at, ok := p.typeText()
	if !ok {
		return 0, false
	}
	near := &p.near[typeSlot(text)]
	if text == near.text {
		return near.shape, true
	}
	id, ok := p.types[text]
	if !ok {
		var msg string
		if id, msg = p.parseType(text, 0); msg != "" {
			return 0, p.failAt(at, "%s", msg)
		}
		p.types[text] = id
	}
	*near = nearType{text, id}
	return id, true
}

// nearType is a type met lately, which is often the next one too: a look at it
// costs less than one into the map.
type nearType struct {
	text  string
	shape opgraph.ShapeID
}

// typeSlot returns the place of a type among those met lately: by its length
// and the digits after "tensor<".
func typeSlot(text string) int {
	n := len(text)
	if n > len("tensor<12") {
		n += int(text[7])*5 + int(text[8])*3 + int(text[n/2])
	}
	return n & 31
}

// typeText takes the text of a type: a word, or !word, and what is in angle
// brackets after it.
func (p *parser) typeText() (text string, at int, ok bool) {
	p.peek()
	at = p.pos
	if p.pos < len(p.s) && p.s[p.pos] == '!' {
		p.pos++
	}
	if p.word() == "" {
		return "", at, p.failAt(at, "expected a type, found %s", p.found())
	}
	if p.pos < len(p.s) && p.s[p.pos] == '<' {
		if _, ok := p.balanced(); !ok {
			return "", at, false
		}
	}
	return p.s[at:p.pos], at, true
}

// typeList takes types with commas between them.
func (p *parser) typeList(dst []opgraph.ShapeID) ([]opgraph.ShapeID, bool) {
	for {
		t, ok := p.typ()
		if !ok {
			return dst, false
		}
		dst = p.shapes.add(dst, t)
		if !p.accept(",") {
			return dst, true
		}
	}
}

// parenTypes takes "(T, U)" or "()".
func (p *parser) parenTypes(dst []opgraph.ShapeID, attrs *[]string) ([]opgraph.ShapeID, bool) {
	if !p.expect("(", "before the types") {
		return dst, false
	}
	if p.accept(")") {
		return dst, true
	}
	for {
		t, ok := p.typ()
		if !ok {
			return dst, false
		}
		dst = p.shapes.add(dst, t)
		text := ""
		if p.peek() == '{' { // attributes of a function's result
			if text, ok = p.balanced(); !ok {
				return dst, false
			}
		}
		if attrs != nil {
			*attrs = append(*attrs, text)
		}
		p.location()
		if !p.accept(",") {
			return dst, p.expect(")", "to end the types")
		}
	}
}

// signature takes what is after the colon of an operation: "(T, U) -> V",
// "(T) -> (U, V)", "T -> U", or only "T, U".
func (p *parser) signature(n *node) bool {
	var ok bool
	if p.peek() == '(' {
		if n.in, ok = p.parenTypes(n.in, nil); !ok {
			return false
		}
	} else if n.in, ok = p.typeList(n.in); !ok {
		return false
	}
	if !p.accept("->") && !p.acceptWord("to") {
		n.out, n.in = n.in, nil
		return true
	}
	if p.peek() == '(' {
		n.out, ok = p.parenTypes(n.out, nil)
		return ok
	}
	t, ok := p.typ()
	n.out = p.shapes.add(n.out, t)
	return ok
}

// parseType makes a shape of the text of a type, an alias once however often
// it is named; msg says what is wrong.
func (p *parser) parseType(text string, depth int) (id opgraph.ShapeID, msg string) {
	if depth > maxDepth {
		return 0, "type is nested more than " + strconv.Itoa(maxDepth) + " levels"
	}
	name, inner, _ := strings.Cut(text, "<")
	inner = strings.TrimSuffix(inner, ">")
	switch {
	case strings.HasPrefix(text, "!") && inner == "" && p.typeAlias[name] != "":
		id, ok := p.types[name]
		if !ok {
			if id, msg = p.parseType(p.typeAlias[name], depth+1); msg == "" {
				p.types[name] = id
			}
		}
		return id, msg
	case name == "tensor" || name == "vector" || name == "memref":
		return p.tensor(inner)
	case name == "tuple":
		var members []opgraph.ShapeID
		leaves := 0
		for _, m := range splitTop(inner) {
			id, msg := p.parseType(m, depth+1)
			if msg != "" {
				return 0, msg
			}
			members = append(members, id)
			if leaves += max(p.leaves[id], 1); leaves > maxLeaves {
				return 0, "tuple of more than " + strconv.Itoa(maxLeaves) + " arrays"
			}
		}
		id = p.g.Shapes.AddTuple(members)
		p.leaves[id] = leaves
		return id, ""
	case strings.HasSuffix(name, ".token") || name == "!mhlo.token":
		return p.g.Array(opgraph.ElemToken), ""
	case name == "!mhlo.async_bundle" || strings.HasSuffix(name, ".future"):
		return 0, "type " + text + " is not supported"
	}
	if e, ok := element(text); ok {
		return p.g.Array(e), ""
	}
	return 0, "unknown type " + strconv.Quote(clip(text))
}

// tensor makes the shape of "2x?xf32" or "?xf32, #stablehlo.bounds<4>".
func (p *parser) tensor(inner string) (opgraph.ShapeID, string) {
	parts := splitTop(inner)
	if len(parts) == 0 {
		return 0, "tensor without an element type"
	}
	body := parts[0]
	var dims []int64
	var dynamic uint64
	for {
		n, rest, ok := strings.Cut(body, "x")
		n = strings.TrimSpace(n)
		if !ok || n == "" || !isDigit(n[0]) && n != "?" && n != "*" {
			break
		}
		d := opgraph.DimUnknown
		switch {
		case n == "*":
			return 0, "tensor without a rank is not supported"
		case n == "?":
			dynamic |= 1 << len(dims)
		default:
			v, err := strconv.ParseInt(n, 10, 64)
			if err != nil {
				return 0, "dimension " + strconv.Quote(clip(n)) + " is no number of 63 bits"
			}
			d = v
		}
		if dims = append(dims, d); len(dims) > maxRank {
			return 0, "rank above " + strconv.Itoa(maxRank)
		}
		body = rest
	}
	body = strings.TrimSpace(body)
	if to, is := p.typeAlias[body]; is { // of a quantized type
		body = to
	}
	elem, ok := element(body)
	if !ok {
		return 0, "unknown element type " + strconv.Quote(clip(body))
	}
	for _, enc := range parts[1:] {
		bounds, ok := strings.CutPrefix(enc, "#stablehlo.bounds<")
		if !ok {
			if bounds, ok = strings.CutPrefix(enc, "#mhlo.type_extensions<bounds = ["); !ok {
				continue
			}
		}
		for i, b := range strings.Split(strings.TrimRight(bounds, ">]"), ",") {
			if v, err := strconv.ParseInt(strings.TrimSpace(b), 10, 64); err == nil && i < len(dims) && dims[i] == opgraph.DimUnknown && v >= 0 {
				dims[i] = v
			}
		}
	}
	return p.g.Shapes.AddArrayLayout(elem, dims, opgraph.ShapeLayout{Dynamic: dynamic}), ""
}

// element maps an MLIR element type. Integers without sign are signed, as
// StableHLO has them; a quantized type counts as its storage type; an index
// as 64 bits.
func element(text string) (opgraph.ElemType, bool) {
	switch text {
	case "i1":
		return opgraph.ElemPred, true
	case "index":
		return opgraph.ElemS64, true
	case "complex<f32>":
		return opgraph.ElemC64, true
	case "complex<f64>":
		return opgraph.ElemC128, true
	case "tf32":
		return opgraph.ElemF32, true
	}
	if q, ok := strings.CutPrefix(text, "!quant.uniform<"); ok {
		storage, _, _ := strings.Cut(q, ":")
		storage, _, _ = strings.Cut(storage, "<") // i8<-127:127>
		return element(strings.TrimSpace(storage))
	}
	name := strings.ToLower(text)
	switch {
	case strings.HasPrefix(name, "ui"):
		name = "u" + name[2:]
	case strings.HasPrefix(name, "si"):
		name = "s" + name[2:]
	case strings.HasPrefix(name, "i"):
		name = "s" + name[1:]
	}
	e, ok := opgraph.ParseElemType(name)
	return e, ok && e.IsArray()
}

// splitTop splits at commas outside brackets and strings.
func splitTop(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			if end := stringEnd(s, i); end > 0 {
				i = end - 1
			}
		case '(', '[', '{', '<':
			depth++
		case ')', ']', '}':
			depth--
		case '>':
			if i == 0 || s[i-1] != '-' {
				depth--
			}
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[start:]); last != "" || len(out) > 0 {
		out = append(out, last)
	}
	return out
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
