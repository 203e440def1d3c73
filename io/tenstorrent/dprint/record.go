package dprint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
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
	mu      sync.Mutex
	drained *sync.Cond
	d       Dialect
	mem     [BufferBytes]byte
	// Waits counts how often the device had to wait for the host.
	Waits uint64
}

// NewBuffer returns a buffer that no server has enabled yet: what is printed
// before is lost, as nobody may wait for a host that is not there.
func NewBuffer(d Dialect, x, y uint16) *Buffer {
	b := &Buffer{d: d}
	b.drained = sync.NewCond(&b.mu)
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
	b.mu.Lock()
	defer b.mu.Unlock()
	if on {
		b.put(0, b.d.Start)
	} else {
		b.put(0, b.d.Disabled)
	}
	b.drained.Broadcast()
}

// Dump returns the bytes of the buffer.
func (b *Buffer) Dump() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]byte(nil), b.mem[:]...)
}

// TryWrite writes one record, or returns ErrFull where the device would have
// to wait. It prints nothing on a disabled buffer.
func (b *Buffer) TryWrite(t Type, payload []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write(t, payload)
}

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

// Write writes one record and waits for the host where the buffer is full.
func (b *Buffer) Write(ctx context.Context, t Type, payload []byte) error {
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.drained.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		err := b.write(t, payload)
		if !errors.Is(err, errFull) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		b.Waits++
		b.drained.Wait()
	}
}

// Printer is the device side: records in stream order. The zero value is not
// usable; set Buf. OnFull is called when the buffer is full and has to make
// room (poll a server); without it the printer blocks until another
// goroutine's server has read.
type Printer struct {
	Ctx    context.Context
	Buf    *Buffer
	OnFull func() error
	err    error
	width  int // sticky width, 0 for none
}

// Err returns the first error; further records are not written then.
func (p *Printer) Err() error { return p.err }

func (p *Printer) send(t Type, payload []byte) *Printer {
	if p.err != nil {
		return p
	}
	if p.OnFull == nil {
		ctx := p.Ctx
		if ctx == nil {
			ctx = context.Background()
		}
		p.err = p.Buf.Write(ctx, t, payload)
		return p
	}
	for {
		err := p.Buf.TryWrite(t, payload)
		if !errors.Is(err, errFull) {
			p.err = err
			return p
		}
		p.Buf.Waits++
		if p.err = p.OnFull(); p.err != nil {
			return p
		}
	}
}

// value sends a value, preceded by the sticky width.
func (p *Printer) value(t Type, payload []byte) *Printer {
	if p.width > 0 {
		p.send(SetW, []byte{byte(p.width)})
	}
	return p.send(t, payload)
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

// Char prints one character.
func (p *Printer) Char(c byte) *Printer { return p.send(Char, []byte{c}) }

// U8 to I64 print whole numbers.
func (p *Printer) U8(v uint8) *Printer { return p.value(Uint8, []byte{v}) }

// U16 prints a whole number.
func (p *Printer) U16(v uint16) *Printer {
	return p.value(Uint16, binary.LittleEndian.AppendUint16(nil, v))
}

// U32 prints a whole number.
func (p *Printer) U32(v uint32) *Printer {
	return p.value(Uint32, binary.LittleEndian.AppendUint32(nil, v))
}

// U64 prints a whole number.
func (p *Printer) U64(v uint64) *Printer {
	return p.value(Uint64, binary.LittleEndian.AppendUint64(nil, v))
}

// I8 prints a whole number.
func (p *Printer) I8(v int8) *Printer { return p.value(Int8, []byte{byte(v)}) }

// I16 prints a whole number.
func (p *Printer) I16(v int16) *Printer {
	return p.value(Int16, binary.LittleEndian.AppendUint16(nil, uint16(v)))
}

// I32 prints a whole number.
func (p *Printer) I32(v int32) *Printer {
	return p.value(Int32, binary.LittleEndian.AppendUint32(nil, uint32(v)))
}

// I64 prints a whole number.
func (p *Printer) I64(v int64) *Printer {
	return p.value(Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// F32 prints a float.
func (p *Printer) F32(v float32) *Printer {
	return p.value(Float32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// BF16 prints a bfloat16 given by its bits.
func (p *Printer) BF16(v uint16) *Printer {
	return p.value(BFloat16, binary.LittleEndian.AppendUint16(nil, v))
}

// Endl ends the line.
func (p *Printer) Endl() *Printer { return p.send(Endl, []byte{0}) }

// SetW sets the width of the next value, or with sticky of every value up to
// a width of 0.
func (p *Printer) SetW(w uint8, sticky bool) *Printer {
	if sticky {
		p.width = int(w)
		return p
	}
	p.width = 0
	return p.send(SetW, []byte{w})
}

// Precision, Fixed, DefaultFloat, Hex, Oct and Dec change how numbers print.
func (p *Printer) Precision(n uint8) *Printer { return p.send(SetPrecision, []byte{n}) }

// Fixed prints floats with fixed decimals.
func (p *Printer) Fixed() *Printer { return p.send(Fixed, []byte{0}) }

// DefaultFloat prints floats with significant digits.
func (p *Printer) DefaultFloat() *Printer { return p.send(DefaultFloat, []byte{0}) }

// Hex prints whole numbers to base 16.
func (p *Printer) Hex() *Printer { return p.send(Hex, []byte{0}) }

// Oct prints whole numbers to base 8.
func (p *Printer) Oct() *Printer { return p.send(Oct, []byte{0}) }

// Dec prints whole numbers to base 10.
func (p *Printer) Dec() *Printer { return p.send(Dec, []byte{0}) }

// Raise raises a signal.
func (p *Printer) Raise(code uint32) *Printer {
	return p.send(Raise, binary.LittleEndian.AppendUint32(nil, code))
}

// Wait holds the host's printing of this processor until some processor has
// raised the signal.
func (p *Printer) Wait(code uint32) *Printer {
	return p.send(Wait, binary.LittleEndian.AppendUint32(nil, code))
}

// Array prints 32-bit words.
func (p *Printer) Array(v []uint32) *Printer { return p.send(U32Array, words(v)) }

// TypedArray prints words of a Tensix data format.
func (p *Printer) TypedArray(typ, subtype uint16, v []uint32) *Printer {
	return p.send(TypedU32Array, words(append(append([]uint32(nil), v...), uint32(typ)<<16|uint32(subtype))))
}

func words(v []uint32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}
