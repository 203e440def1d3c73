package hlo

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/io/internal/proto"
)

// wire holds the protobuf input and the first error. Strings are parts of one
// copy of the input, found by offset.
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

// message iterates over the fields of a message and keeps the first error.
type message struct {
	proto.Fields
	w *wire
}

func (w *wire) message(b []byte) message { return message{proto.Of(b), w} }

func (m *message) next() bool {
	if m.Next() {
		return true
	}
	m.w.keep(m.Err)
	return false
}

// keep keeps an error of the wire format.
func (w *wire) keep(e *proto.Error) {
	if e != nil {
		w.failAt(e.At, "%s", e.Msg)
	}
}

// scan is proto.Scan with the strings of the input.
func (w *wire) scan(b []byte, into ...any) {
	if w.err == nil {
		w.keep(proto.Scan(b, w.str, into...))
	}
}

func (m *message) int() int64 { return int64(m.Uint) }

func (m *message) str() string { return m.w.str(m.Data) }

func (m *message) ints(dst []int64) []int64 { return proto.Ints(dst, &m.Fields) }

// first returns the first element of a repeated scalar field, packed or not.
func (m *message) first() (uint64, bool) {
	if m.Type != protowire.BytesType {
		return m.Uint, true
	}
	v, n := protowire.ConsumeVarint(m.Data)
	return v, n > 0
}

func (m *message) firstFloat() (float64, bool) {
	if m.Type == protowire.Fixed32Type {
		return float64(math.Float32frombits(uint32(m.Uint))), true
	}
	v, n := protowire.ConsumeFixed32(m.Data)
	return float64(math.Float32frombits(v)), n > 0
}

func (m *message) firstDouble() (float64, bool) {
	if m.Type == protowire.Fixed64Type {
		return math.Float64frombits(m.Uint), true
	}
	v, n := protowire.ConsumeFixed64(m.Data)
	return math.Float64frombits(v), n > 0
}
