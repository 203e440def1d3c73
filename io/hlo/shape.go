package hlo

import (
	"perfsim/components"
)

// maxDepth bounds nesting of tuple shapes and of anonymous instructions:
// deeper text is refused with an error, not with a stack overflow.
const maxDepth = 256

// maxRank bounds the rank of an array shape.
const maxRank = 64

// startsShape reports whether a shape begins at the cursor: a tuple, an
// element type followed by '[', or b(.
func (c *scanner) startsShape() bool {
	b := c.peek()
	if b == '(' {
		return true
	}
	if b == '%' || class[b]&classWord == 0 {
		return false
	}
	i := c.pos + 1
	for i < len(c.s) && class[c.s[i]]&classWord != 0 {
		i++
	}
	for i < len(c.s) && c.s[i] == ' ' { // "s32 [5,4]" is written too
		if i+1 < len(c.s) && c.s[i+1] == '[' {
			return true
		}
		i++
	}
	if i >= len(c.s) {
		return false
	}
	return c.s[i] == '[' || c.s[i] == '(' && c.s[c.pos:i] == "b"
}

// shape takes a shape. Whole shapes are looked up by their text first, so
// that each spelling is parsed once.
func (p *parser) shape() (components.ShapeID, bool) {
	p.peek()
	start := p.pos
	end := p.shapeEnd()
	if end < 0 {
		return 0, false
	}
	text := p.s[start:end]
	if id, ok := p.shapes[text]; ok {
		p.pos = end
		return id, true
	}
	p.pos = start
	id, ok := p.parseShape(0)
	if ok {
		if p.shapes == nil {
			p.shapes = map[string]components.ShapeID{}
		}
		p.shapes[p.s[start:p.pos]] = id
	}
	return id, ok
}

// shapeEnd returns the end of the shape at the cursor, as parseShape will
// find it, without looking inside; -1 after a mistake.
func (p *parser) shapeEnd() int {
	s := p.s
	i := p.pos
	if i < len(s) && s[i] != '(' {
		for i < len(s) && class[s[i]]&classWord != 0 {
			i++
		}
		for i < len(s) && s[i] == ' ' {
			i++
		}
		if i < len(s) && s[i] == '[' {
			for i < len(s) && s[i] != ']' {
				i++
			}
			i++
			if i < len(s) && s[i] == '{' {
				for i < len(s) && s[i] != '}' {
					i++
				}
				i++
			}
			return min(i, len(s))
		}
	}
	save := p.pos
	defer func() { p.pos = save }()
	p.pos = i
	if i >= len(s) || s[i] != '(' {
		p.fail("expected a shape, found %s", p.found())
		return -1
	}
	if _, ok := p.balanced(); !ok {
		return -1
	}
	return p.pos
}

func (p *parser) parseShape(depth int) (components.ShapeID, bool) {
	if depth > maxDepth {
		return 0, p.fail("shape is nested more than %d levels", maxDepth)
	}
	if p.accept('(') {
		mark := len(p.members)
		for p.peek() != ')' {
			m, ok := p.parseShape(depth + 1)
			if !ok {
				return 0, false
			}
			p.members = append(p.members, m)
			if !p.accept(',') {
				break
			}
		}
		if !p.expect(')', "to end the tuple shape") {
			return 0, false
		}
		id := p.g.Shapes.AddTuple(p.members[mark:])
		p.members = p.members[:mark]
		return id, true
	}
	start := p.pos
	word := p.word()
	if word == "b" && p.accept('(') {
		m, ok := p.parseShape(depth + 1)
		if !ok || !p.expect(')', "to end the buffer shape") {
			return 0, false
		}
		return p.g.Shapes.AddBuffer(m), true
	}
	elem, ok := components.ParseElemType(word)
	if !ok {
		if word == "" {
			return 0, p.fail("expected a shape, found %s", p.found())
		}
		return 0, p.failAt(start, "unknown element type %q", word)
	}
	dims, dyn, ok := p.dimList()
	if !ok {
		return 0, false
	}
	layout := components.ShapeLayout{Dynamic: dyn}
	if p.startsLayout() {
		text, ok := p.balanced()
		if !ok {
			return 0, false
		}
		layout.HasText = true
		layout.Layout = compact(text[1 : len(text)-1])
	}
	return p.g.Shapes.AddArrayLayout(elem, dims, layout), true
}

// startsLayout reports whether a layout follows a shape's dimensions. A brace
// that follows directly is one; after white space it is one only when a
// dimension number or a colon is inside, as a computation's body begins with
// a brace too.
func (p *parser) startsLayout() bool {
	if p.pos < len(p.s) && p.s[p.pos] == '{' {
		return true
	}
	i := p.pos
	for i < len(p.s) && p.s[i] == ' ' {
		i++
	}
	if i+1 < len(p.s) && p.s[i] == '{' && (p.s[i+1] == ':' || p.s[i+1]-'0' <= 9) {
		p.pos = i
		return true
	}
	return false
}

// dimList takes "[2,<=3,?]": sizes, with a mark for each bound.
func (p *parser) dimList() (dims []int64, dynamic uint64, ok bool) {
	if !p.expect('[', "after the element type") {
		return nil, 0, false
	}
	dims = p.dims[:0]
	for p.peek() != ']' {
		if len(dims) == maxRank {
			return nil, 0, p.fail("rank above %d", maxRank)
		}
		if p.accept('?') {
			dims = append(dims, components.DimUnknown)
			dynamic |= 1 << (len(dims) - 1)
		} else {
			if p.accept('<') {
				if !p.expect('=', "after '<'") {
					return nil, 0, false
				}
				dynamic |= 1 << len(dims)
			}
			at := p.pos
			d, ok := p.int()
			if !ok {
				return nil, 0, false
			}
			if d < 0 {
				return nil, 0, p.failAt(at, "dimension %d is negative", d)
			}
			dims = append(dims, d)
		}
		if !p.accept(',') {
			break
		}
	}
	p.dims = dims
	return dims, dynamic, p.expect(']', "to end the dimensions")
}

// compact removes white space from a layout.
func compact(s string) string {
	for i := 0; i < len(s); i++ {
		if class[s[i]]&classSpace != 0 {
			b := make([]byte, 0, len(s))
			for j := 0; j < len(s); j++ {
				if class[s[j]]&classSpace == 0 {
					b = append(b, s[j])
				}
			}
			return string(b)
		}
	}
	return s
}
