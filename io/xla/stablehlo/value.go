package stablehlo

import (
	"encoding/hex"
	"math"
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

func parseInt(s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil
}

// maxList bounds the elements of an attribute list, a splat included.
const maxList = 1 << 22

// intList reads the integers of an attribute: "[1, 2]", "array<i64: 1, 2>",
// "dense<[[0, 1]]> : tensor<1x2xi64>", a splat or hexadecimal dense value, a
// single number with or without a type. dims are those of a dense value.
func (p *parser) intList(text string) (v, dims []int64, ok bool) {
	if strings.HasPrefix(text, "[") { // most often
		v, ok = p.numbers(text)
		return v, []int64{int64(len(v))}, ok
	}
	text = p.resolve(text)
	if rest, is := strings.CutPrefix(text, "array<"); is {
		_, rest, _ = strings.Cut(strings.TrimSuffix(rest, ">"), ":")
		v, ok = numbers(rest)
		return v, []int64{int64(len(v))}, ok
	}
	if strings.HasPrefix(text, "dense<") {
		return p.denseInts(text)
	}
	if strings.HasPrefix(text, "[") {
		v, ok = numbers(text)
		return v, []int64{int64(len(v))}, ok
	}
	num, _, _ := strings.Cut(text, ":")
	v, ok = numbers(num)
	return v, nil, ok
}

// numbers is the function of that name, the list from the parser's memory.
func (p *parser) numbers(text string) (v []int64, ok bool) {
	p.scratch, ok = appendNumbers(p.scratch[:0], text)
	if len(p.scratch) == 0 || !ok {
		return nil, ok
	}
	return p.ints.take(p.scratch), true
}

// numbers reads every integer, true and false of a text, and reports whether
// nothing else than separators and types is in it.
func numbers(text string) ([]int64, bool) { return appendNumbers(nil, text) }

func appendNumbers(v []int64, text string) ([]int64, bool) {
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case isDigit(b) || b == '-':
			j := i + 1
			for j < len(text) && isDigit(text[j]) {
				j++
			}
			n, ok := parseInt(text[i:j])
			if !ok {
				return nil, false
			}
			v = append(v, n)
			i = j
		case isLetter(b):
			j := i
			for j < len(text) && isWord(text[j]) {
				j++
			}
			switch text[i:j] {
			case "true":
				v = append(v, 1)
			case "false":
				v = append(v, 0)
			default:
				return nil, false
			}
			i = j
		case b == ':': // "1 : i64": the type up to the next separator
			for i < len(text) && text[i] != ',' && text[i] != ']' {
				i++
			}
		case isSpace(b) || b == ',' || b == '[' || b == ']':
			i++
		default:
			return nil, false
		}
		if len(v) > maxList {
			return nil, false
		}
	}
	return v, true
}

// denseInts reads "dense<…> : tensor<…>" of integers or booleans.
func (p *parser) denseInts(text string) (v, dims []int64, ok bool) {
	body, shape, ok := p.splitDense(text)
	if !ok {
		return nil, nil, false
	}
	t := &p.g.Shapes
	dims = t.Dims(shape)
	count := t.Count(shape)
	if count > maxList {
		return nil, nil, false
	}
	if hexText, is := strings.CutPrefix(body, `"0x`); is {
		raw, err := hex.DecodeString(strings.TrimSuffix(hexText, `"`))
		size := t.Elem(shape).Bits() / 8
		if err != nil || size == 0 || !(t.Elem(shape).IsInteger() || t.Elem(shape) == opgraph.ElemPred) {
			return nil, nil, false
		}
		for ; int64(len(raw)) >= size; raw = raw[size:] {
			var u uint64
			for i := size - 1; i >= 0; i-- {
				u = u<<8 | uint64(raw[i])
			}
			shift := 64 - 8*size
			v = append(v, int64(u<<shift)>>shift)
		}
	} else if v, ok = numbers(body); !ok {
		return nil, nil, false
	}
	if len(v) == 1 && count != 1 { // a splat
		one := v[0]
		v = v[:0]
		for range count {
			v = append(v, one)
		}
	}
	return v, dims, int64(len(v)) == count
}

// splitDense returns what is between the angle brackets and the shape of the
// type after the colon.
func (p *parser) splitDense(text string) (body string, shape opgraph.ShapeID, ok bool) {
	c := scanner{s: text, pos: len("dense")}
	in, ok := c.balanced()
	if !ok || !c.accept(":") {
		return "", 0, false
	}
	c.peek()
	shape, msg := p.parseType(strings.TrimSpace(text[c.pos:]), 0)
	return strings.TrimSpace(in[1 : len(in)-1]), shape, msg == ""
}

// resolve follows an attribute alias.
func (p *parser) resolve(text string) string {
	for range 8 {
		if !strings.HasPrefix(text, "#") {
			break
		}
		v, ok := p.alias[text]
		if !ok {
			break
		}
		text = v
	}
	return text
}

// field returns the value of "key = value" inside a structured attribute such
// as #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>.
func field(text, key string) (string, bool) {
	if i := strings.IndexByte(text, '<'); i >= 0 {
		text = strings.TrimSuffix(text[i+1:], ">")
	}
	for _, part := range splitTop(text) {
		k, v, ok := strings.Cut(part, "=")
		if ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v), true
		}
	}
	return "", false
}

// scalarValue sets the value of a scalar constant from the text of a dense
// value: a number, true, false, or the bits of a float in hexadecimal. It
// reports whether the text has that form.
func scalarValue(g *opgraph.Graph, op opgraph.OpID, elem opgraph.ElemType, text string) bool {
	switch {
	case elem == opgraph.ElemPred || elem.IsInteger():
		switch text {
		case "true":
			g.SetInt(op, opgraph.AttrConstInt, 1)
			return true
		case "false":
			g.SetInt(op, opgraph.AttrConstInt, 0)
			return true
		}
		v, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			u, err := strconv.ParseUint(text, 0, 64)
			if err != nil {
				return false
			}
			v = int64(u)
		}
		g.SetInt(op, opgraph.AttrConstInt, v)
		return true
	case elem.IsFloat():
		if hexText, ok := strings.CutPrefix(text, "0x"); ok {
			u, err := strconv.ParseUint(hexText, 16, 64)
			if err != nil {
				return false
			}
			switch elem {
			case opgraph.ElemF64:
				g.SetFloat(op, math.Float64frombits(u))
			case opgraph.ElemF32:
				g.SetFloat(op, float64(math.Float32frombits(uint32(u))))
			case opgraph.ElemBF16:
				g.SetFloat(op, float64(math.Float32frombits(uint32(u)<<16)))
			}
			return true // the bits of other types are left out
		}
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return false
		}
		if elem == opgraph.ElemF32 {
			f = float64(float32(f))
		}
		g.SetFloat(op, f)
		return true
	}
	return false
}
