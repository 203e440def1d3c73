package dprint

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Type is the type of a record, independent of the number a dialect gives it.
type Type uint8

// Types.
const (
	CStr Type = iota
	Endl
	SetW
	Uint8
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Float32
	Char
	Raise
	Wait
	BFloat16
	SetPrecision
	Fixed
	DefaultFloat
	Hex
	Oct
	Dec
	TileSlice
	U32Array
	TypedU32Array
	numTypes
)

var typeNames = [numTypes]string{"CSTR", "ENDL", "SETW", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
	"FLOAT32", "CHAR", "RAISE", "WAIT", "BFLOAT16", "SETPRECISION", "FIXED", "DEFAULTFLOAT", "HEX", "OCT", "DEC", "TILESLICE", "U32_ARRAY", "TYPED_U32_ARRAY"}

// String returns the vendor's name of the type.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return "unknown"
}

// fixedSize is the payload of types that have one size; 0 for the others.
var fixedSize = [numTypes]int{Endl: 1, SetW: 1, Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8, Int8: 1, Int16: 2, Int32: 4, Int64: 8, Float32: 4, Char: 1,
	Raise: 4, Wait: 4, BFloat16: 2, SetPrecision: 1, Fixed: 1, DefaultFloat: 1, Hex: 1, Oct: 1, Dec: 1}

// Dialect is an era of the format.
type Dialect struct {
	Name string
	// Signals says that RAISE and WAIT exist (up to 2025-09) and take the
	// numbers 13 and 14.
	Signals bool
	// OldTiles is the tile slice of 2024-01: bfloat16 samples, 16-bit fields.
	OldTiles bool
	// SplitLong says that a text above 190 bytes is sent in pieces; before, it
	// was replaced by OverflowText.
	SplitLong bool
	Start     uint32 // write position that enables a buffer
	Disabled  uint32 // write position of a buffer that must stay silent
}

// The dialects: that of the article and the golden files (2024), and the
// current one.
var (
	Dialect2024    = Dialect{Name: "2024", Signals: true, OldTiles: true, Start: 0x12341234, Disabled: 0x23455432}
	DialectCurrent = Dialect{Name: "current", SplitLong: true, Start: 0x98989898, Disabled: 0xf8f8f8f8}
)

// Code gives the number of a type in a dialect.
func (d *Dialect) Code(t Type) (uint8, bool) {
	if t == Raise || t == Wait {
		return uint8(t), d.Signals
	}
	if t > Wait && !d.Signals {
		return uint8(t) - 2, true
	}
	return uint8(t), t < numTypes
}

// TypeOf gives the type of a number.
func (d *Dialect) TypeOf(code uint8) (Type, bool) {
	t := Type(code)
	if !d.Signals && t >= Raise {
		t += 2
	}
	return t, t < numTypes && code < 64
}

// Sizes of the buffer.
const (
	BufferBytes = 204
	headBytes   = 12
	dataBytes   = BufferBytes - headBytes
	maxPayload  = dataBytes - 2
)

// overflowText stands in for a text that does not fit the buffer.
const overflowText = "*** INTERNAL DEBUG PRINT BUFFER OVERFLOW ***\n\n"

// errFull says that the writer has to wait for the host.
var errFull = errors.New("print buffer is full")

// errTooLong says that a record can never fit.
var errTooLong = errors.New("record is larger than the print buffer")

// Buffer is the print buffer of one processor, shared by the device side and
// the host side.
type Buffer struct {
	d   Dialect
	mem [BufferBytes]byte
	// Waits counts how often the device had to wait for the host.
	Waits uint64
}

// NewBuffer returns a buffer that no server has enabled yet: what is printed
// before is lost, as nobody may wait for a host that is not there.
func NewBuffer(d Dialect, x, y uint16) *Buffer {
	b := &Buffer{d: d}
	binary.LittleEndian.PutUint16(b.mem[8:], x)
	binary.LittleEndian.PutUint16(b.mem[10:], y)
	b.put(0, d.Disabled)
	return b
}

func (b *Buffer) put(at int, v uint32)  { binary.LittleEndian.PutUint32(b.mem[at:], v) }
func (b *Buffer) get(at int) uint32     { return binary.LittleEndian.Uint32(b.mem[at:]) }
func (b *Buffer) positions() (w, r int) { return int(b.get(0)), int(b.get(4)) }

// Enable lets the device print; the host writes the starting value and the
// device resets both positions when it sees it.
func (b *Buffer) Enable(on bool) {
	if on {
		b.put(0, b.d.Start)
	} else {
		b.put(0, b.d.Disabled)
	}
}

// write writes one record, or returns errFull where the device would have to
// wait. It prints nothing on a disabled buffer.
func (b *Buffer) write(t Type, payload []byte) error {
	code, ok := b.d.Code(t)
	if !ok {
		return fmt.Errorf("%s does not exist in dialect %s", t, b.d.Name)
	}
	switch b.get(0) {
	case b.d.Disabled:
		return nil
	case b.d.Start:
		b.put(0, 0)
		b.put(4, 0)
	}
	w, r := b.positions()
	if w+len(payload)+2 >= dataBytes {
		if r < w {
			return errFull
		}
		b.put(0, 0)
		b.put(4, 0)
		w = 0
	}
	if len(payload) > maxPayload {
		return errTooLong
	}
	at := headBytes + w
	b.mem[at], b.mem[at+1] = code, uint8(len(payload))
	copy(b.mem[at+2:], payload)
	b.put(0, uint32(w+2+len(payload)))
	return nil
}

// Printer is the device side: records in stream order. The zero value is not
// usable; set Buf and OnFull, which is called when the buffer is full and has
// to make room (poll a server).
type Printer struct {
	Buf    *Buffer
	OnFull func() error
	err    error
}

// Err returns the first error; further records are not written then.
func (p *Printer) Err() error { return p.err }

func (p *Printer) send(t Type, payload []byte) *Printer {
	for p.err == nil {
		if p.err = p.Buf.write(t, payload); !errors.Is(p.err, errFull) {
			break
		}
		p.Buf.Waits++
		p.err = p.OnFull()
	}
	return p
}

// Str prints a text. Above the size of the buffer it goes in pieces or is
// replaced, by the dialect.
func (p *Printer) Str(s string) *Printer {
	for i := 0; i < len(s); i++ {
		if s[i] == 0 {
			s = s[:i] // a C text ends there
			break
		}
	}
	if len(s)+1 > maxPayload && !p.Buf.d.SplitLong {
		s = overflowText
	}
	for len(s)+1 > maxPayload {
		p.send(CStr, append([]byte(s[:maxPayload-1]), 0))
		s = s[maxPayload-1:]
	}
	return p.send(CStr, append([]byte(s), 0))
}

// U64 prints a whole number.
func (p *Printer) U64(v uint64) *Printer {
	return p.send(Uint64, binary.LittleEndian.AppendUint64(nil, v))
}

// Endl ends the line.
func (p *Printer) Endl() *Printer { return p.send(Endl, []byte{0}) }
