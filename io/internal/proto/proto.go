// Package proto reads protobuf messages field by field, for formats of which a
// few messages are needed: no schema compiler, no reflection, no copies.
package proto

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Error is a message that is not protobuf. At is the rest of the message from
// the bad field on, a part of the input.
type Error struct {
	At  []byte
	Msg string
}

func (e *Error) Error() string { return e.Msg }

// Fields iterates over the fields of a message:
//
//	for f := proto.Of(b); f.Next(); { … }
//
// The embedded values are those of the current field. After a failure Num and
// Type are those of the field that is cut off, and Data is what there is of it.
type Fields struct {
	Num  protowire.Number
	Type protowire.Type
	Uint uint64 // varint and fixed values
	Data []byte // length-delimited values
	Err  *Error

	rest []byte
}

// Of returns the fields of the message b.
func Of(b []byte) Fields { return Fields{rest: b} }

// Next reads the next field; false at the end and after a failure.
func (f *Fields) Next() bool {
	if len(f.rest) == 0 || f.Err != nil {
		return false
	}
	at := f.rest
	num, typ, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		f.Num, f.Err = 0, &Error{at, "bad field tag"}
		return false
	}
	f.Num, f.Type, f.Uint, f.Data = num, typ, 0, nil
	f.rest = f.rest[n:]
	switch typ {
	case protowire.VarintType:
		if len(f.rest) > 0 && f.rest[0] < 0x80 {
			f.Uint = uint64(f.rest[0])
			f.rest = f.rest[1:]
			return true
		}
		f.Uint, n = protowire.ConsumeVarint(f.rest)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(f.rest)
		f.Uint = uint64(v)
	case protowire.Fixed64Type:
		f.Uint, n = protowire.ConsumeFixed64(f.rest)
	case protowire.BytesType:
		if f.Data, n = protowire.ConsumeBytes(f.rest); n < 0 {
			_, size := protowire.ConsumeVarint(f.rest)
			f.Data = f.rest[max(size, 0):]
		}
	default: // groups: nobody writes them
		n = -1
	}
	if n < 0 {
		f.Err = &Error{at, fmt.Sprintf("field %d is cut off or malformed", num)}
		return false
	}
	f.rest = f.rest[n:]
	return true
}

// Ints appends the values of a repeated integer, packed or not.
func Ints[T ~int64 | ~uint64](dst []T, f *Fields) []T {
	if f.Type != protowire.BytesType {
		return append(dst, T(f.Uint))
	}
	for b := f.Data; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			f.Err = &Error{b, "bad number in a packed list"}
			break
		}
		dst = append(dst, T(v))
		b = b[n:]
	}
	return dst
}

// Scan reads the fields of a message into variables: pairs of a field number
// and a pointer, whose type says how the field is read; text makes a string of
// bytes. A repeated field goes to a slice. Other fields are passed over.
func Scan(b []byte, text func([]byte) string, into ...any) *Error {
	f := Of(b)
	for f.Next() {
		for i := 0; i < len(into); i += 2 {
			if into[i].(int) != int(f.Num) {
				continue
			}
			switch p := into[i+1].(type) {
			case *int64:
				*p = int64(f.Uint)
			case *uint64:
				*p = f.Uint
			case *uint32:
				*p = uint32(f.Uint)
			case *bool:
				*p = f.Uint != 0
			case *string:
				*p = text(f.Data)
			case *[]byte:
				*p = f.Data
			case *[]int64:
				*p = Ints(*p, &f)
			case *[][]byte:
				*p = append(*p, f.Data)
			case *[]string:
				*p = append(*p, text(f.Data))
			default:
				panic("proto: a field cannot be read into this type")
			}
			break
		}
	}
	return f.Err
}
