package hlo

import (
	"perfsim/components/opgraph"
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
	s := c.s
	i := c.wordEnd(c.pos)
	if i < len(s) && s[i] == '(' {
		return s[c.pos:i] == "b"
	}
	i = spaces(s, i) // "s32 [5,4]" is written too
	return i < len(s) && s[i] == '['
}

// spaces returns where the run of spaces that begins at i ends.
func spaces(s string, i int) int {
	for i < len(s) && s[i] == ' ' {
		i++
	}
	return i
}

// skipShape takes a shape that is of no use.
func (p *parser) skipShape() bool {
	_, found, ok := p.optionalShape()
	if !found && ok {
		return p.fail("expected a shape, found %s", p.found())
	}
	return ok
}

// optionalShape takes a shape if one begins at the cursor. Whole shapes are
// looked up by their text first, so that each spelling is parsed once.
func (p *parser) optionalShape() (id opgraph.ShapeID, found, ok bool) {
	b := p.peek()
	if b == '%' || b != '(' && class[b]&classWord == 0 {
		return 0, false, true
	}
	s, start := p.s, p.pos
	end := start
	if b != '(' {
		end = p.wordEnd(start)
		if i := spaces(s, end); i < len(s) && s[i] == '[' {
			id, ok = p.shapeOf(arrayEnd(s, i))
			return id, true, ok
		}
		if s[start:end] != "b" || end >= len(s) || s[end] != '(' {
			return 0, false, true
		}
	}
	p.pos = end
	if _, ok := p.balanced(); !ok {
		return 0, true, false
	}
	end, p.pos = p.pos, start
	id, ok = p.shapeOf(end)
	return id, true, ok
}

// arrayEnd returns where the shape ends whose dimensions begin at i, as
// parseShape will find it unless comments are inside.
func arrayEnd(s string, i int) int {
	i = endOf(s, i, ']')
	if l := layoutAt(s, i); l >= 0 {
		i = endOf(s, l, '}')
	}
	return i
}

// shapeOf takes the shape at the cursor, which ends at end.
func (p *parser) shapeOf(end int) (opgraph.ShapeID, bool) {
	text := p.s[p.pos:end]
	if id, ok := p.lastShapes.get(text); ok {
		p.pos = end
		return id, true
	}
	id, ok := p.shapes[text]
	if ok {
		p.pos = end
	} else {
		if id, ok = p.parseShape(0); !ok {
			return 0, false
		}
		if p.pos != end {
			return id, true // comments or brackets in unusual places: where it ends does not follow from its text
		}
		if p.shapes == nil {
			p.shapes = map[string]opgraph.ShapeID{}
		}
		p.shapes[text] = id
	}
	p.lastShapes.put(text, id)
	return id, true
}

// endOf returns the position after the next b at or after i, at most len(s).
func endOf(s string, i int, b byte) int {
	for i < len(s) && s[i] != b {
		i++
	}
	return min(i+1, len(s))
}

func (p *parser) parseShape(depth int) (opgraph.ShapeID, bool) {
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
	elem, ok := opgraph.ParseElemType(word)
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
	layout := opgraph.ShapeLayout{Dynamic: dyn}
	if at := layoutAt(p.s, p.pos); at >= 0 {
		p.pos = at
		text, ok := p.balanced()
		if !ok {
			return 0, false
		}
		layout.HasText = true
		layout.Layout = compact(text[1 : len(text)-1])
	}
	return p.g.Shapes.AddArrayLayout(elem, dims, layout), true
}

// layoutAt returns where the layout begins that follows dimensions which end
// at i, -1 when none does. A brace that follows directly begins one; after
// white space it does only when a dimension number or a colon is inside, as a
// computation's body begins with a brace too.
func layoutAt(s string, i int) int {
	if i >= len(s) || s[i] != '{' && s[i] != ' ' {
		return -1
	}
	j := spaces(s, i)
	if j == i || j+1 < len(s) && s[j] == '{' && (s[j+1] == ':' || s[j+1]-'0' <= 9) {
		return j
	}
	return -1
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
			dims = append(dims, opgraph.DimUnknown)
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
