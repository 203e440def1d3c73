package hlo

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// wire reads protobuf messages without a schema compiler. Strings are parts
// of one copy of the input, found by offset.
type wire struct {
	file string
	b    []byte
	text string
	err  *Error
}

func (w *wire) failAt(at []byte, format string, args ...any) bool {
	if w.err == nil {
		w.err = &Error{File: w.file, Offset: int64(w.offset(at)), Msg: fmt.Sprintf(format, args...)}
	}
	return false
}

// offset returns where a part of the input begins: the parts share its array.
func (w *wire) offset(part []byte) int { return cap(w.b) - cap(part) }

// str returns a part of the input as a string without a copy.
func (w *wire) str(part []byte) string {
	at := w.offset(part)
	return w.text[at : at+len(part)]
}

// message iterates over the fields of a message.
type message struct {
	w    *wire
	rest []byte
	num  protowire.Number
	typ  protowire.Type
	val  uint64 // varint and fixed values
	data []byte // length-delimited values
}

func (w *wire) message(b []byte) message { return message{w: w, rest: b} }

// next reads the next field; false at the end and after a mistake.
func (m *message) next() bool {
	if len(m.rest) == 0 || m.w.err != nil {
		return false
	}
	at := m.rest
	num, typ, n := protowire.ConsumeTag(m.rest)
	if n < 0 {
		return m.w.failAt(at, "bad field tag")
	}
	m.num, m.typ, m.val, m.data = num, typ, 0, nil
	m.rest = m.rest[n:]
	switch typ {
	case protowire.VarintType:
		m.val, n = protowire.ConsumeVarint(m.rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(m.rest)
		m.val = uint64(v)
	case protowire.Fixed64Type:
		m.val, n = protowire.ConsumeFixed64(m.rest)
	case protowire.BytesType:
		m.data, n = protowire.ConsumeBytes(m.rest)
	default: // groups: nobody writes them
		n = -1
	}
	if n < 0 {
		return m.w.failAt(at, "field %d is cut off or malformed", num)
	}
	m.rest = m.rest[n:]
	return true
}

// scan reads the fields of a message into variables: pairs of a field number
// and a pointer, which says how the field is read. A repeated field, packed or
// not, goes to a slice; other fields are passed over.
func (w *wire) scan(b []byte, into ...any) {
	for m := w.message(b); m.next(); {
		for i := 0; i < len(into); i += 2 {
			if into[i].(int) != int(m.num) {
				continue
			}
			switch p := into[i+1].(type) {
			case *int64:
				*p = m.int()
			case *uint64:
				*p = m.val
			case *uint32:
				*p = uint32(m.val)
			case *bool:
				*p = m.val != 0
			case *string:
				*p = m.str()
			case *[]byte:
				*p = m.data
			case *[]int64:
				*p = m.ints(*p)
			case *[][]byte:
				*p = append(*p, m.data)
			default:
				panic("hlo: a field cannot be read into this type")
			}
			break
		}
	}
}

func (m *message) int() int64 { return int64(m.val) }

func (m *message) str() string { return m.w.str(m.data) }

// ints appends a repeated integer field, packed or not.
func (m *message) ints(dst []int64) []int64 {
	if m.typ != protowire.BytesType {
		return append(dst, int64(m.val))
	}
	for b := m.data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			m.w.failAt(b, "bad number in a packed list")
			return dst
		}
		dst = append(dst, int64(v))
		b = b[n:]
	}
	return dst
}

// first returns the first element of a repeated scalar field, packed or not.
func (m *message) first() (uint64, bool) {
	if m.typ != protowire.BytesType {
		return m.val, true
	}
	v, n := protowire.ConsumeVarint(m.data)
	return v, n > 0
}

func (m *message) firstFloat() (float64, bool) {
	if m.typ == protowire.Fixed32Type {
		return float64(math.Float32frombits(uint32(m.val))), true
	}
	v, n := protowire.ConsumeFixed32(m.data)
	return float64(math.Float32frombits(v)), n > 0
}

func (m *message) firstDouble() (float64, bool) {
	if m.typ == protowire.Fixed64Type {
		return math.Float64frombits(m.val), true
	}
	v, n := protowire.ConsumeFixed64(m.data)
	return math.Float64frombits(v), n > 0
}
