package dprint

import (
	"encoding/binary"
	"math"
)

// The rest of the device side, which only tests need: perfsim itself prints
// texts and numbers of 64 bits.

// Char prints one character.
func (p *Printer) Char(c byte) *Printer { return p.send(Char, []byte{c}) }

// U8 prints a whole number.
func (p *Printer) U8(v uint8) *Printer { return p.send(Uint8, []byte{v}) }

// U16 prints a whole number.
func (p *Printer) U16(v uint16) *Printer {
	return p.send(Uint16, binary.LittleEndian.AppendUint16(nil, v))
}

// U32 prints a whole number.
func (p *Printer) U32(v uint32) *Printer {
	return p.send(Uint32, binary.LittleEndian.AppendUint32(nil, v))
}

// I8 prints a whole number.
func (p *Printer) I8(v int8) *Printer { return p.send(Int8, []byte{byte(v)}) }

// I16 prints a whole number.
func (p *Printer) I16(v int16) *Printer {
	return p.send(Int16, binary.LittleEndian.AppendUint16(nil, uint16(v)))
}

// I32 prints a whole number.
func (p *Printer) I32(v int32) *Printer {
	return p.send(Int32, binary.LittleEndian.AppendUint32(nil, uint32(v)))
}

// I64 prints a whole number.
func (p *Printer) I64(v int64) *Printer {
	return p.send(Int64, binary.LittleEndian.AppendUint64(nil, uint64(v)))
}

// F32 prints a float.
func (p *Printer) F32(v float32) *Printer {
	return p.send(Float32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
}

// BF16 prints a bfloat16 given by its bits.
func (p *Printer) BF16(v uint16) *Printer {
	return p.send(BFloat16, binary.LittleEndian.AppendUint16(nil, v))
}

// SetW sets the width of the next value.
func (p *Printer) SetW(w uint8) *Printer { return p.send(SetW, []byte{w}) }

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

// Tile is a slice of a tile for printing.
type Tile struct {
	Ptr     uint32 // of the circular buffer
	Range   tileRange
	CB      uint8
	Format  uint8
	EndRows bool
	Return  uint8 // TileOK or an error
	Count   uint8 // elements in Data
	Data    []byte
}

// Tile prints a slice of a tile. The dialect of 2024 has bfloat16 only.
func (p *Printer) Tile(t Tile) *Printer {
	var b []byte
	le := binary.LittleEndian
	if p.Buf.d.OldTiles {
		b = le.AppendUint32(b, t.Ptr)
		w0 := uint16(t.Range.W0)
		if t.Return == tileBadPointer {
			w0 = badTileW0
		}
		end := uint16(0)
		if t.EndRows {
			end = 1
		}
		for _, v := range []uint16{uint16(t.Range.H0), uint16(t.Range.H1), uint16(t.Range.HS), w0, uint16(t.Range.W1), uint16(t.Range.WS), uint16(t.Count), end} {
			b = le.AppendUint16(b, v)
		}
	} else {
		b = le.AppendUint32(b, t.Ptr)
		end := uint8(0)
		if t.EndRows {
			end = 1
		}
		b = append(b, t.Range.H0, t.Range.H1, t.Range.HS, t.Range.W0, t.Range.W1, t.Range.WS, t.CB, t.Format, t.Count, end, t.Return, 0)
	}
	return p.send(TileSlice, append(b, t.Data...))
}

// tileRange selects elements of a tile: rows H0 to H1 in steps of HS, columns W0
// to W1 in steps of WS.
type tileRange struct{ H0, H1, HS, W0, W1, WS uint8 }
