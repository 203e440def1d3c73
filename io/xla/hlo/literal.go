package hlo

import (
	"math"
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

// literal takes the text of a constant up to its closing parenthesis, which
// may be many megabytes long.
func (p *parser) literal() (string, bool) {
	open := p.pos - 1
	// Without parentheses or quotes inside, the next ')' ends it: arrays of
	// numbers, which are the large ones.
	n := strings.IndexByte(p.s[p.pos:], ')')
	if n < 0 {
		return "", p.failAt(open, "constant is not closed")
	}
	text := p.s[p.pos : p.pos+n]
	if strings.IndexByte(text, '(') < 0 && strings.IndexByte(text, '"') < 0 {
		p.pos += n + 1
		return trimSpace(text), true
	}
	p.pos = open
	text, ok := p.balanced()
	if !ok {
		return "", false
	}
	return trimSpace(text[1 : len(text)-1]), true
}

// elided is how the text leaves a large constant out; such a constant has no
// literal attribute.
const elided = "{...}"

// setLiteral keeps the value of a constant: as a number for a scalar, as text
// otherwise. It reports false for a scalar that is no number of its type.
func setLiteral(g *opgraph.Graph, op opgraph.OpID, text string) bool {
	shape := g.Ops.Shape[op]
	elem := g.Shapes.Elem(shape)
	if g.Shapes.Rank(shape) != 0 || !elem.IsArray() || strings.HasPrefix(text, "{") ||
		elem == opgraph.ElemC64 || elem == opgraph.ElemC128 {
		if text != "" && text != elided {
			g.SetAttrStr(op, opgraph.AttrLiteral, text)
		}
		return true
	}
	switch {
	case elem == opgraph.ElemPred:
		switch text {
		case "true", "1":
			g.SetInt(op, opgraph.AttrConstInt, 1)
		case "false", "0":
			g.SetInt(op, opgraph.AttrConstInt, 0)
		default:
			return false
		}
	case elem.IsInteger():
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			u, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				f, err := strconv.ParseFloat(text, 64)
				if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<62 {
					return false
				}
				u = uint64(int64(f))
			}
			v = int64(u)
		}
		g.SetInt(op, opgraph.AttrConstInt, v)
	default:
		f, ok := parseFloat(text)
		if !ok {
			return false
		}
		g.SetFloat(op, roundTo(elem, f))
	}
	return true
}

// roundTo rounds f to the precision of the element type, so that the same
// constant is the same number whichever file it came from.
func roundTo(e opgraph.ElemType, f float64) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	switch e {
	case opgraph.ElemF32:
		return float64(float32(f))
	case opgraph.ElemBF16:
		bits := math.Float32bits(float32(f))
		bits += 0x7fff + bits>>16&1 // to nearest, ties to even
		return float64(math.Float32frombits(bits &^ 0xffff))
	case opgraph.ElemF16:
		if math.Abs(f) >= 65520 {
			return math.Inf(int(math.Copysign(1, f)))
		}
		_, exp := math.Frexp(f)
		unit := math.Ldexp(1, max(exp-11, -24)) // eleven significant bits
		return math.RoundToEven(f/unit) * unit
	}
	return f
}

// parseFloat reads a floating-point literal as XLA prints it: nan may carry a
// payload, "-nan(0x400)", which is dropped.
func parseFloat(text string) (float64, bool) {
	t := strings.TrimPrefix(text, "-")
	if t == "nan" || strings.HasPrefix(t, "nan(") {
		return math.NaN(), true
	}
	switch t {
	case "inf":
		if t != text {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// appendFloat appends a value that parseFloat reads back exactly.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }
