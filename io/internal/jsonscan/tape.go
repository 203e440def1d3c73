package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unsafe"
)

// Kind is what a value is.
type Kind uint8

// The kinds of values. A number is what looks like one; Value.Uint64 and its
// like tell whether it is.
const (
	Absent Kind = iota // a member that an object does not have
	Null
	False
	True
	Number
	String
	Object
	Array
)

// String returns the name of a kind as messages have it.
func (k Kind) String() string {
	return [...]string{"absent", "null", "false", "true", "number", "string", "object", "array"}[k]
}

// row is one value or key of a Tape.
type row struct {
	lo, hi  uint32 // in the text, of a string without its quotes
	next    uint32 // the row behind the value; while it is open the row around it
	kind    Kind
	escaped bool // a string with escapes
}

// outside is the row around the outermost value.
const outside = ^uint32(0)

// Tape holds one JSON text as a flat list of its values in their order, made in
// one pass. The rows of an object are itself, then each key and its value; those
// of an array itself and its elements. Nothing is decoded before it is asked
// for. A Tape is used again for the next text, which ends the life of all
// Values and slices of the one before.
type Tape struct {
	text  []byte
	rows  []row
	plain unescaper
}

// Parse makes the tape of one text, which may have white space around the
// value, and returns the value; ok is false for what is no JSON. It takes what
// the readers always took: any bytes in strings, unknown escapes, and numbers
// that only look like some, nan, inf and infinity among them.
func (t *Tape) Parse(text []byte) (v Value, ok bool) {
	const deepest = 300
	n, got := t.fill(text, deepest, "")
	if got == more && n == len(text) { // what ends with the text is complete
		if last := len(text) - 1; last >= 0 && len(t.rows) == 0 && skipSpace(text, 0) == last && (text[last] == '-' || text[last] == '+') {
			t.rows = append(t.rows, row{lo: uint32(last), hi: uint32(n), next: 1, kind: Number})
		}
		if len(t.rows) == 1 && t.rows[0].kind <= Number {
			got = complete
		}
	}
	if got != complete || skipSpace(text, n) != len(text) {
		return Value{}, false
	}
	return Value{t, 0}, true
}

// outcome is how filling a tape ended.
type outcome uint8

const (
	complete outcome = iota
	more             // the text ended
	wrong            // the text is no JSON, or nested too deep
)

// fill makes the rows of the value that text begins with and returns where it
// ends. A key stop of the outermost object is taken for an error.
func (t *Tape) fill(text []byte, deepest int, stop string) (end int, got outcome) {
	t.text = text
	t.plain.reset()
	rows := t.rows[:0]
	around, depth := outside, 0
	key := false // a key comes next
	i := 0
	for {
		if key {
			if i = skipSpace(text, i); i >= len(text) {
				break
			}
			if text[i] != '"' {
				return i, wrong
			}
			r := row{lo: uint32(i + 1), kind: String}
			if i, r.escaped = stringEnd(text, i+1); i >= len(text) {
				break
			}
			r.hi = uint32(i)
			if depth == 1 && stop != "" && string(text[r.lo:r.hi]) == stop {
				return i, wrong
			}
			rows = append(rows, r)
			if i++; i < len(text) && text[i] != ':' {
				i = skipSpace(text, i)
			}
			if i >= len(text) {
				break
			}
			if text[i] != ':' {
				return i, wrong
			}
			i++
		}
		if i < len(text) && text[i] <= ' ' {
			i = skipSpace(text, i)
		}
		if i >= len(text) {
			break
		}
		at := uint32(len(rows))
		switch c := text[i]; c {
		case '"':
			r := row{lo: uint32(i + 1), next: at + 1, kind: String}
			if i, r.escaped = stringEnd(text, i+1); i >= len(text) {
				t.rows = rows
				return i, more
			}
			r.hi = uint32(i)
			rows = append(rows, r)
			i++
		case '{', '[':
			kind := Object
			if c == '[' {
				kind = Array
			}
			if depth++; depth > deepest {
				return i, wrong
			}
			rows = append(rows, row{lo: uint32(i), next: around, kind: kind})
			around = at
			if i = skipSpace(text, i+1); i >= len(text) {
				t.rows = rows
				return i, more
			}
			if text[i] != c+2 { // the closing one is two behind
				key = kind == Object
				continue
			}
		default:
			r := row{lo: uint32(i), next: at + 1}
			var n int
			if n, r.kind = scalarEnd(text, i); r.kind == Absent {
				t.rows = rows
				if n >= len(text) {
					return n, more
				}
				return n, wrong
			}
			i = n
			r.hi = uint32(i)
			rows = append(rows, r)
			if i == len(text) {
				t.rows = rows
				return i, more // a number may go on
			}
		}
		// Behind a value: the end of what is around it, or a comma.
		for around != outside {
			if i < len(text) && text[i] <= ' ' {
				i = skipSpace(text, i)
			}
			if i >= len(text) {
				t.rows = rows
				return i, more
			}
			o := &rows[around]
			c := text[i]
			i++
			if c == ',' {
				key = o.kind == Object
				break
			}
			if c != '}' && c != ']' || (c == '}') != (o.kind == Object) {
				return i - 1, wrong
			}
			depth--
			o.hi = uint32(i)
			around, o.next = o.next, uint32(len(rows))
		}
		if around == outside {
			t.rows = rows
			return i, complete
		}
	}
	t.rows = rows
	return i, more
}

// skipSpace returns where in b from i on the first byte is that is no white
// space, len(b) for none.
func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns where the quote is that ends the string whose text begins
// at i, len(b) or more for none, and whether there are escapes before.
func stringEnd(b []byte, i int) (end int, escaped bool) {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := mark(w, '"') | mark(w, '\\'); m != 0 {
			if i += bits.TrailingZeros64(m) >> 3; b[i] == '"' {
				return i, escaped
			}
			escaped = true
			i += 2 - 8
		}
	}
	for i < len(b) && b[i] != '"' {
		if b[i] == '\\' {
			escaped = true
			i++
		}
		i++
	}
	return i, escaped
}

// numberBytes are the bytes of numbers.
var numberBytes = [256]bool{'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true,
	'.': true, '-': true, '+': true, 'e': true, 'E': true}

// scalarEnd returns where the number or word at i ends, and its kind; Absent
// where there is none, or where the text ends before that can be told.
func scalarEnd(b []byte, i int) (end int, kind Kind) {
	start := i
	for i < len(b) && numberBytes[b[i]] {
		i++
	}
	if i-start > 1 || i-start == 1 && b[start] != '-' && b[start] != '+' {
		return i, Number
	}
	return wordEnd(inPlace(b[i:]), i, start)
}

// wordEnd is scalarEnd for what begins with no digit; s is the text from i on.
func wordEnd(s string, i, start int) (end int, kind Kind) {
	if i == start {
		for k, w := range [...]string{Null: "null", False: "false", True: "true"} {
			if w != "" && strings.HasPrefix(s, w) {
				return i + len(w), Kind(k)
			}
		}
	}
	if len(s) >= len("infinity") && strings.EqualFold(s[:len("infinity")], "infinity") {
		return i + len("infinity"), Number
	}
	if len(s) >= len("nan") && (strings.EqualFold(s[:3], "nan") || strings.EqualFold(s[:3], "inf")) {
		return i + len("nan"), Number
	}
	if len(s) < len("false") { // it may be a word whose end is not here yet
		return i + len(s), Absent
	}
	return i, Absent
}

// Try takes the next object, array or string in one pass over its text, valid
// until the next call. Where that is no JSON, or too long or deep, it takes
// nothing: Value says what is wrong with the brackets. Nor does it take an
// object with the key stop, where that is not empty.
func (s *Scanner) Try(t *Tape, stop string) (v Value, ok bool) {
	switch s.Peek() {
	case '{', '[', '"':
	default:
		return v, false
	}
	for {
		n, got := t.fill(s.buf[s.pos:s.end], s.limits.Depth, stop)
		if got == complete {
			s.pos += n
			return Value{t, 0}, true
		}
		if got == wrong || s.end-s.pos > s.limits.Element || !s.fill() {
			return v, false
		}
	}
}

// Parse takes the next value in one pass over its text and returns it, valid
// until the next call. What is no JSON is an error that says where.
func (s *Scanner) Parse(t *Tape, what string) (Value, error) {
	if v, ok := s.Try(t, ""); ok {
		return v, nil
	}
	s.Peek()
	off := s.Offset()
	text, err := s.Value(what)
	if err != nil {
		return Value{}, err
	}
	if v, ok := t.Parse(text); ok {
		return v, nil
	}
	if short, any := withoutTrailingCommas(text); any {
		if v, ok := t.Parse(short); ok {
			return v, nil
		}
	}
	return Value{}, &SyntaxError{off, syntaxError(text, off)}
}

// inPlace returns the bytes as a string, which lives as long as they do not
// change.
func inPlace(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
