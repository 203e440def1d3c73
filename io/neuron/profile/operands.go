package profile

import (
	"bytes"
	"math"

	"perfsim/components"
)

// operands is the operand text of one instruction, taken apart. Byte slices
// alias the text; everything is valid until the next Parse.
//
// The language (a token is a text between spaces; spaces inside brackets belong
// to the token):
//
//	text     = { sync | pattern | field | shape | word }
//	sync     = ["$"] ("S"|"E") "[" n "]" [ "(" owner ")" ] op [ "@" when ]
//	op       = ">=" v | ">" v | "==" v ["-"]              wait ("-": then clear)
//	         | "++" | "--" | "+=" v | "-=" v | "=" v | "+" | "-"   set
//	pattern  = key "=" [ dtype "@" ] address [ steps counts ] | key "=" steps counts
//	steps    = "[" n { "," n } "]"       elements (bytes in a DMA), fast to slow
//	counts   = "[" n { "," n } "]"       as many as steps
//	field    = key "=" value
//	shape    = n "*" n                   rows * columns of the PE array
//
// Nothing is lost and nothing is fatal: a token outside the language becomes
// a word and is counted in Odd, like a pattern of a type we do not know.
type operands struct {
	Syncs    []Sync
	Patterns []pattern
	Fields   []field
	Words    [][]byte
	// Rows and Cols are the part of the PE array in use (0 where not given).
	Rows, Cols uint32
	Odd        int

	steps  []int64
	counts []uint64
}

// Sync is a semaphore or event operation.
type Sync struct {
	Op    components.SyncOp
	Space byte // 'S', '$' for $S (a semaphore of the runtime), 'E' for $E (an event)
	ID    uint32
	Value int64
	Owner []byte // who raises it, as the text says in parentheses; nil where it does not
	Clear bool   // a wait that sets the semaphore to zero afterwards
}

// pattern is an access pattern, or a bare address (no steps), or the bare
// steps and counts of a DMA (no address).
type pattern struct {
	Key        []byte
	DType      components.DType // NoDType where the text gives none or one we do not know
	HasAddress bool
	Address    uint64
	Steps      []int64 // fast to slow
	Counts     []uint64
}

// field is any other key=value.
type field struct{ Key, Value []byte }

// maxDims bounds the dimensions of a pattern; the hardware has five at most.
const maxDims = 16

// maxBrackets bounds how far a bracket or parenthesis may be from its mate,
// so that hostile text cannot make the parser look at it again and again.
const maxBrackets = 1024

// parseOperands takes text apart into o, reusing its memory.
func parseOperands(text []byte, o *operands) {
	o.Syncs, o.Patterns, o.Fields, o.Words = o.Syncs[:0], o.Patterns[:0], o.Fields[:0], o.Words[:0]
	o.steps, o.counts = o.steps[:0], o.counts[:0]
	o.Rows, o.Cols, o.Odd = 0, 0, 0
	for {
		text = trimLeft(text)
		if len(text) == 0 {
			return
		}
		if n := o.sync(text); n > 0 {
			text = text[n:]
			continue
		}
		n := tokenEnd(text)
		o.token(text[:n])
		text = text[n:]
	}
}

// Field returns the value of the first field with the given key.
func (o *operands) Field(key string) ([]byte, bool) {
	for i := range o.Fields {
		if string(o.Fields[i].Key) == key {
			return o.Fields[i].Value, true
		}
	}
	return nil, false
}

// Uint returns the first field with the given key as a number.
func (o *operands) Uint(key string) (uint64, bool) {
	v, ok := o.Field(key)
	if !ok {
		return 0, false
	}
	return number(v)
}

// Pattern returns the first pattern with the given key, or nil.
func (o *operands) Pattern(key string) *pattern {
	for i := range o.Patterns {
		if string(o.Patterns[i].Key) == key {
			return &o.Patterns[i]
		}
	}
	return nil
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func trimLeft(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	return b
}

// tokenEnd returns the length of the token that text starts with.
func tokenEnd(text []byte) int {
	depth, last := 0, -1
	for i, c := range text {
		switch {
		case c == '[':
			if depth == 0 {
				last = bytes.LastIndexByte(text[:min(len(text), i+maxBrackets)], ']')
			}
			depth++
		case c == ']' && depth > 0:
			depth--
		case isSpace(c) && (depth == 0 || i > last):
			return i
		}
	}
	return len(text)
}

// sync reads a semaphore operation and returns its length, 0 where text does
// not start with one.
func (o *operands) sync(text []byte) int {
	var s Sync
	p := 0
	dollar := text[0] == '$'
	if dollar {
		p++
	}
	if p+1 >= len(text) || text[p] != 'S' && text[p] != 'E' || text[p+1] != '[' {
		return 0
	}
	s.Space = text[p]
	if dollar && s.Space == 'S' {
		s.Space = '$'
	}
	p += 2
	end := bytes.IndexByte(text[p:min(len(text), p+24)], ']')
	if end < 0 {
		return 0
	}
	id, ok := number(text[p : p+end])
	if !ok || id > math.MaxUint32 {
		return 0
	}
	s.ID = uint32(id)
	p += end + 1
	q := p
	for q < len(text) && isSpace(text[q]) {
		q++
	}
	if q < len(text) && text[q] == '(' {
		end := bytes.IndexByte(text[q:min(len(text), q+maxBrackets)], ')')
		if end < 0 {
			return 0
		}
		s.Owner = text[q+1 : q+end]
		p = q + end + 1
	}
	end = p
	for end < len(text) && !isSpace(text[end]) {
		end++
	}
	if !s.operation(text[p:end]) {
		return 0
	}
	o.Syncs = append(o.Syncs, s)
	return end
}

// operation reads what follows the semaphore: a comparison or a change.
func (s *Sync) operation(op []byte) bool {
	if at := bytes.IndexByte(op, '@'); at >= 0 {
		op = op[:at]
	}
	value := func(b []byte) bool {
		v, ok := number(b)
		s.Value = int64(v)
		return ok && v <= math.MaxInt64
	}
	switch {
	case bytes.HasPrefix(op, []byte(">=")):
		s.Op = components.WaitGE
		return value(op[2:])
	case bytes.HasPrefix(op, []byte(">")):
		s.Op = components.WaitGE
		ok := value(op[1:]) && s.Value < math.MaxInt64
		s.Value++
		return ok
	case bytes.HasPrefix(op, []byte("==")):
		s.Op = components.WaitEQ
		op = op[2:]
		if n := len(op); n > 0 && op[n-1] == '-' {
			s.Clear = true
			op = op[:n-1]
		}
		return value(op)
	case string(op) == "++", string(op) == "+":
		s.Op, s.Value = components.SetInc, 1
		return true
	case string(op) == "--", string(op) == "-":
		s.Op, s.Value = components.SetDec, 1
		return true
	case bytes.HasPrefix(op, []byte("+=")):
		s.Op = components.SetInc
		return value(op[2:])
	case bytes.HasPrefix(op, []byte("-=")):
		s.Op = components.SetDec
		return value(op[2:])
	case bytes.HasPrefix(op, []byte("=")):
		s.Op = components.SetTo
		return value(op[1:])
	}
	return false
}

func (o *operands) token(tok []byte) {
	eq := bytes.IndexByte(tok, '=')
	if eq <= 0 {
		o.word(tok)
		return
	}
	key, value := tok[:eq], tok[eq+1:]
	if o.pattern(key, value) {
		return
	}
	o.Fields = append(o.Fields, field{key, value})
}

func (o *operands) word(tok []byte) {
	if star := bytes.IndexByte(tok, '*'); star > 0 {
		rows, ok1 := number(tok[:star])
		cols, ok2 := number(tok[star+1:])
		if ok1 && ok2 && rows <= math.MaxUint32 && cols <= math.MaxUint32 {
			o.Rows, o.Cols = uint32(rows), uint32(cols)
			return
		}
	}
	for _, c := range tok {
		if !isNameByte(c) {
			o.Odd++
			break
		}
	}
	o.Words = append(o.Words, tok)
}

func isNameByte(c byte) bool {
	return c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-'
}

// pattern reads value as an access pattern: false where it is not one.
func (o *operands) pattern(key, value []byte) bool {
	p := pattern{Key: key, DType: components.NoDType}
	rest := value
	unknown := false
	if at := bytes.IndexByte(rest, '@'); at > 0 {
		p.DType = dtypeOf(rest[:at])
		unknown = p.DType == components.NoDType
		rest = rest[at+1:]
		if !bytes.HasPrefix(rest, []byte("0x")) {
			return false
		}
	}
	open := bytes.IndexByte(rest, '[')
	if open < 0 {
		// A bare address counts as a pattern only with a type: imm=0x10 is a field.
		if len(rest) == len(value) {
			return false
		}
		open = len(rest)
	}
	if open > 0 {
		a, ok := number(rest[:open])
		if !ok || !bytes.HasPrefix(rest, []byte("0x")) {
			return false
		}
		p.HasAddress, p.Address = true, a
	}
	if open < len(rest) && !o.lists(&p, rest[open:]) {
		return false
	}
	if unknown {
		o.Odd++
	}
	o.Patterns = append(o.Patterns, p)
	return true
}

// dtypeOf returns the type of the given name, NoDType for an unknown one. The
// common ones are looked up without making a string.
func dtypeOf(name []byte) components.DType {
	switch string(name) {
	case "fp32":
		return components.Float32
	case "bfloat16":
		return components.BFloat16
	case "fp16":
		return components.Float16
	case "int32":
		return components.Int32
	case "uint32":
		return components.Uint32
	}
	d, _ := components.ParseDType(string(name))
	return d
}

// lists reads "[steps][counts]" to its end.
func (o *operands) lists(p *pattern, b []byte) bool {
	mid := bytes.Index(b, []byte("]["))
	if mid < 0 || b[len(b)-1] != ']' {
		return false
	}
	ns, nc := len(o.steps), len(o.counts)
	ok := eachItem(b[1:mid], func(item []byte) bool {
		v, ok := signed(item)
		o.steps = append(o.steps, v)
		return ok && len(o.steps)-ns <= maxDims
	}) && eachItem(b[mid+2:len(b)-1], func(item []byte) bool {
		v, ok := number(item)
		o.counts = append(o.counts, v)
		return ok && len(o.counts)-nc <= maxDims
	})
	if !ok || len(o.steps)-ns != len(o.counts)-nc {
		o.steps, o.counts = o.steps[:ns], o.counts[:nc]
		return false
	}
	p.Steps = o.steps[ns:len(o.steps):len(o.steps)]
	p.Counts = o.counts[nc:len(o.counts):len(o.counts)]
	return true
}

// eachItem calls f for every item between commas.
func eachItem(b []byte, f func([]byte) bool) bool {
	for {
		item, rest, more := bytes.Cut(b, []byte(","))
		if !f(bytes.TrimSpace(item)) {
			return false
		}
		if !more {
			return true
		}
		b = rest
	}
}

// number reads a decimal or 0x number that fits 64 bits.
func number(b []byte) (uint64, bool) {
	if len(b) > 2 && b[0] == '0' && b[1] == 'x' {
		var v uint64
		if len(b) > 18 {
			return 0, false
		}
		for _, c := range b[2:] {
			switch {
			case c >= '0' && c <= '9':
				c -= '0'
			case c >= 'a' && c <= 'f':
				c -= 'a' - 10
			case c >= 'A' && c <= 'F':
				c -= 'A' - 10
			default:
				return 0, false
			}
			v = v<<4 | uint64(c)
		}
		return v, true
	}
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := uint64(c - '0')
		if v > (math.MaxUint64-d)/10 {
			return 0, false
		}
		v = v*10 + d
	}
	return v, true
}

// signed reads a number that may be negative.
func signed(b []byte) (int64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	if neg {
		b = b[1:]
	}
	v, ok := number(b)
	if !ok || v > math.MaxInt64 {
		return 0, false
	}
	if neg {
		return -int64(v), true
	}
	return int64(v), true
}
