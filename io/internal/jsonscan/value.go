package jsonscan

import (
	"fmt"
	"iter"

	"github.com/valyala/fastjson"
	"github.com/valyala/fastjson/fastfloat"
)

// Value is a value of a Tape. The zero Value is absent.
type Value struct {
	t *Tape
	i uint32
}

// Kind returns what v is.
func (v Value) Kind() Kind {
	if v.t == nil {
		return Absent
	}
	return v.t.rows[v.i].kind
}

// Text returns v as it is written, of a string what is between the quotes.
func (v Value) Text() []byte {
	if v.t == nil {
		return nil
	}
	r := &v.t.rows[v.i]
	return v.t.text[r.lo:r.hi:r.hi]
}

// Bytes returns a string, its escapes decoded; nil for anything else.
func (v Value) Bytes() []byte {
	if v.t == nil || v.t.rows[v.i].kind != String {
		return nil
	}
	return v.t.bytes(v.i)
}

// bytes returns the string of a row.
func (t *Tape) bytes(i uint32) []byte {
	r := &t.rows[i]
	b := t.text[r.lo:r.hi:r.hi]
	if r.escaped {
		return t.plain.unescape(b)
	}
	return b
}

// unescaper decodes strings with escapes.
type unescaper struct {
	parser fastjson.Parser
	quoted []byte
	buf    []byte
}

func (u *unescaper) reset() { u.buf = u.buf[:0] }

// unescape decodes the text of a string. Bad escapes stay as they are.
func (u *unescaper) unescape(b []byte) []byte {
	u.quoted = append(append(append(u.quoted[:0], '"'), b...), '"')
	v, err := u.parser.ParseBytes(u.quoted)
	if err != nil {
		return b // cannot be: fill found its end
	}
	at := len(u.buf)
	u.buf = append(u.buf, v.GetStringBytes()...)
	return u.buf[at:len(u.buf):len(u.buf)]
}

// Member is a member of an object, or where the object ends.
type Member struct {
	t      *Tape
	i, end uint32 // the row of the key; that behind the object
}

// Members returns the first member of an object; anything else has none.
func (v Value) Members() Member {
	if v.Kind() != Object {
		return Member{}
	}
	return Member{v.t, v.i + 1, v.t.rows[v.i].next}
}

// Ok reports whether there is a member.
func (m Member) Ok() bool { return m.i < m.end }

// Key returns the key.
func (m Member) Key() []byte { return m.t.bytes(m.i) }

// Value returns the value.
func (m Member) Value() Value { return Value{m.t, m.i + 1} }

// Next returns the member behind m.
func (m Member) Next() Member { return Member{m.t, m.t.rows[m.i+1].next, m.end} }

// Element is an element of an array, or where the array ends.
type Element struct {
	t      *Tape
	i, end uint32
}

// Elements returns the first element of an array; anything else has none.
func (v Value) Elements() Element {
	if v.Kind() != Array {
		return Element{}
	}
	return Element{v.t, v.i + 1, v.t.rows[v.i].next}
}

// Ok reports whether there is an element.
func (e Element) Ok() bool { return e.i < e.end }

// Value returns the element.
func (e Element) Value() Value { return Value{e.t, e.i} }

// Next returns the element behind e.
func (e Element) Next() Element { return Element{e.t, e.t.rows[e.i].next, e.end} }

// All yields the elements of an array with their places; anything else has none.
func (v Value) All() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		n := 0
		for e := v.Elements(); e.Ok() && yield(n, e.Value()); e = e.Next() {
			n++
		}
	}
}

// Len returns the number of elements of an array, 0 for anything else.
func (v Value) Len() (n int) {
	for e := v.Elements(); e.Ok(); e = e.Next() {
		n++
	}
	return n
}

// At returns element n of an array, absent where there is none.
func (v Value) At(n int) Value {
	for e := v.Elements(); e.Ok(); e = e.Next() {
		if n == 0 {
			return e.Value()
		}
		n--
	}
	return Value{}
}

// Get returns the first member of an object with a key, absent where there is
// none. A key without escapes goes before one with.
func (v Value) Get(key string) Value {
	escaped := false
	for m := v.Members(); m.Ok(); m = m.Next() {
		r := &m.t.rows[m.i]
		if string(m.t.text[r.lo:r.hi]) == key {
			return m.Value()
		}
		escaped = escaped || r.escaped
	}
	if escaped {
		for m := v.Members(); m.Ok(); m = m.Next() {
			if string(m.Key()) == key {
				return m.Value()
			}
		}
	}
	return Value{}
}

// Uint64 returns a whole number from 0 on.
func (v Value) Uint64() (uint64, error) {
	if v.Kind() != Number {
		return 0, v.notNumber()
	}
	return fastfloat.ParseUint64(inPlace(v.Text()))
}

// Int64 returns a whole number.
func (v Value) Int64() (int64, error) {
	if v.Kind() != Number {
		return 0, v.notNumber()
	}
	return fastfloat.ParseInt64(inPlace(v.Text()))
}

// Float64 returns a number.
func (v Value) Float64() (float64, error) {
	if v.Kind() != Number {
		return 0, v.notNumber()
	}
	return fastfloat.Parse(inPlace(v.Text()))
}

func (v Value) notNumber() error {
	return fmt.Errorf("value doesn't contain number; it contains %s", v.Kind())
}

// AppendTo appends v as compact JSON, numbers and strings as they are written.
func (v Value) AppendTo(dst []byte) []byte {
	switch v.Kind() {
	case Object:
		dst = append(dst, '{')
		for m := v.Members(); m.Ok(); m = m.Next() {
			if m.i != v.i+1 {
				dst = append(dst, ',')
			}
			r := &m.t.rows[m.i]
			dst = append(append(append(dst, '"'), m.t.text[r.lo:r.hi]...), `":`...)
			dst = m.Value().AppendTo(dst)
		}
		return append(dst, '}')
	case Array:
		dst = append(dst, '[')
		for e := v.Elements(); e.Ok(); e = e.Next() {
			if e.i != v.i+1 {
				dst = append(dst, ',')
			}
			dst = e.Value().AppendTo(dst)
		}
		return append(dst, ']')
	case String:
		return append(append(append(dst, '"'), v.Text()...), '"')
	}
	return append(dst, v.Text()...)
}
