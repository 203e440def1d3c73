package dprint

import (
	"encoding/binary"
	"fmt"
	"math"
)

// selection selects elements of a tile: rows h0 to h1 in steps of hs, columns w0
// to w1 in steps of ws.
type selection struct{ h0, h1, hs, w0, w1, ws int }

// Return codes of a tile slice.
const (
	tileOK            = 2
	tileBadPointer    = 4
	tileBadFormat     = 5
	tileOnMath        = 6
	tileOnEthernet    = 7
	oldTileHead       = 20
	newTileHead       = 16
	badTileW0         = 0xFFFF
	mathRisc          = 3
	formatFloat16b    = 5
	formatFloat32     = 0
	formatBfp8b       = 6
	formatBfp4b       = 7
	formatInt32       = 8
	formatUInt16      = 9
	formatInt8        = 14
	formatUInt32      = 24
	formatUInt8       = 30
	typedRaw          = 1
	typedConfigFormat = 2
)

// printOldTile prints the slice of 2024-01.
func (f *stream) printOldTile(b []byte, risc int) error {
	if risc == mathRisc {
		f.text("Warning: MATH core does not support TileSlice printing, omitting print...\n")
		return nil
	}
	if len(b) < oldTileHead {
		return fmt.Errorf("tile slice of %d bytes", len(b))
	}
	le := binary.LittleEndian
	u := func(i int) int { return int(le.Uint16(b[4+2*i:])) }
	h0, h1, hs, w0, w1, ws, count, endRows := u(0), u(1), u(2), u(3), u(4), u(5), u(6), u(7)
	f.text("TILE: (\n")
	if w0 == badTileW0 {
		f.text(fmt.Sprintf("BAD TILE POINTER count=%d", count))
	} else {
		indent := ""
		if w0 < w1 {
			indent = "  "
		}
		if err := f.elements(selection{h0, h1, hs, w0, w1, ws}, b[oldTileHead:], formatFloat16b, count, indent, endRows != 0); err != nil {
			return err
		}
	}
	f.text("\n  ptr=")
	f.uint(uint64(le.Uint32(b)), 32)
	f.text(")\n")
	return nil
}

// printTile prints the current slice.
func (f *stream) printTile(b []byte) error {
	if len(b) < newTileHead {
		return fmt.Errorf("tile slice of %d bytes", len(b))
	}
	le := binary.LittleEndian
	ptr := le.Uint32(b)
	r := selection{int(b[4]), int(b[5]), int(b[6]), int(b[7]), int(b[8]), int(b[9])}
	cb, format, count, endRows, ret := b[10], b[11], int(b[12]), b[13], b[14]
	switch ret {
	case tileOK:
		return f.elements(r, b[newTileHead:], format, count, "", endRows != 0)
	case tileBadPointer:
		f.text(fmt.Sprintf("Tried printing CBIndex::c_%d: BAD TILE POINTER (ptr=%d, count=%d)\n", cb, ptr, count))
	case tileBadFormat:
		f.text(fmt.Sprintf("Tried printing CBIndex::c_%d: Unsupported data format (%d)\n", cb, format))
	case tileOnMath:
		f.text("Warning: MATH core does not support TileSlice printing, omitting print...\n")
	case tileOnEthernet:
		f.text("Warning: Ethernet core does not support TileSlice printing, omitting print...\n")
	default:
		f.text(fmt.Sprintf("Warning: TileSlice printing failed with unknown return code %d, omitting print...\n", ret))
	}
	return nil
}

// elements prints at most count elements of a tile, a row a line where endRows
// is set.
func (f *stream) elements(r selection, data []byte, format uint8, count int, indent string, endRows bool) error {
	if r.hs == 0 || r.ws == 0 {
		return fmt.Errorf("tile slice with a step of 0")
	}
	i := 0
	for h := r.h0; h < r.h1; h += r.hs {
		f.text(indent)
		for w := r.w0; w < r.w1; w += r.ws {
			if i >= count || !f.element(data, format, i) {
				f.text(fmt.Sprintf("<TileSlice data truncated due to exceeding max count (%d)>\n", count))
				return nil
			}
			if w+r.ws < r.w1 {
				f.text(" ")
			}
			i++
		}
		if endRows {
			f.text("\n")
		}
	}
	return nil
}

// element prints element i of tile data; false where the data end before it.
func (f *stream) element(data []byte, format uint8, i int) bool {
	size := 2
	switch format {
	case formatFloat32, formatInt32, formatUInt32:
		size = 4
	case formatInt8, formatUInt8:
		size = 1
	}
	if (i+1)*size > len(data) {
		return false
	}
	d := data[i*size:]
	le := binary.LittleEndian
	switch format {
	case formatFloat16b:
		f.float(bf16(le.Uint16(d)))
	case formatFloat32:
		f.float(math.Float32frombits(le.Uint32(d)))
	case formatBfp8b, formatBfp4b:
		// Low byte exponent, high byte sign and magnitude with its leading
		// one: 7 bits in Bfp8, 3 in Bfp4.
		exp, v := int(d[0]), d[1]
		bits := 7
		if format == formatBfp4b {
			bits = 3
		}
		mag := float64(v & (1<<bits - 1))
		x := math.Ldexp(mag, exp-127-(bits-1))
		if v>>bits&1 == 1 {
			x = -x
		}
		f.float(float32(x))
	case formatInt8:
		f.int(int64(int8(d[0])), 32)
	case formatUInt8:
		f.uint(uint64(d[0]), 32)
	case formatUInt16:
		f.uint(uint64(le.Uint16(d)), 32)
	case formatInt32:
		f.int(int64(int32(le.Uint32(d))), 32)
	case formatUInt32:
		f.uint(uint64(le.Uint32(d)), 32)
	}
	return true
}

// typedArray prints the words of an array whose last word is the type.
func (f *stream) typedArray(b []byte, raw bool, width int) error {
	if len(b)%4 != 0 || len(b) == 0 && !raw {
		return fmt.Errorf("array of %d bytes", len(b))
	}
	le := binary.LittleEndian
	n := len(b) / 4
	typ, sub := uint32(typedRaw), uint32(0)
	if !raw {
		n--
		last := le.Uint32(b[4*n:])
		typ, sub = last>>16, last&0xFFFF
	}
	for i := range n {
		v := le.Uint32(b[4*i:])
		switch typ {
		case typedRaw:
			f.base = 16 // the stream stays in base 16, as the vendor's does
			f.text("0x")
			f.uint(uint64(v), 32)
			f.text(" ")
		case typedConfigFormat:
			f.register(v, sub, width)
		default:
			f.text(fmt.Sprintf("Unknown type %d", typ))
		}
	}
	return nil
}

// register prints one word of a Tensix register in a data format.
func (f *stream) register(v, format uint32, width int) {
	half := func(exp, man int) {
		for _, h := range []uint32{v & 0xFFFF, v >> 16} {
			f.width = width
			f.float(makeFloat(exp, man, h))
			f.text(" ")
		}
	}
	switch format {
	case 1, 2, 3, 10, 11: // Float16, Bfp8, Bfp4, Lf8, Bfp2
		half(5, 10)
	case formatFloat16b, formatBfp8b, formatBfp4b, 15: // ... Bfp2_b
		half(8, 7)
	case 4: // Tf32
		f.width = width
		f.float(makeFloat(8, 10, v))
		f.text(" ")
	case formatFloat32:
		f.width = width
		f.float(math.Float32frombits(v))
		f.text(" ")
	case formatUInt32:
		f.width = width
		f.uint(uint64(v), 32)
		f.text(" ")
	case formatUInt16:
		for _, h := range []uint32{v & 0xFFFF, v >> 16} {
			f.width = width
			f.uint(uint64(h), 32)
			f.text(" ")
		}
	case formatInt32:
		f.width = width
		f.int(int64(int32(v)), 32)
		f.text(" ")
	default:
		f.text(fmt.Sprintf("Unknown data format %d ", format))
	}
}

// makeFloat reads a register float: sign, mantissa, exponent from the top.
func makeFloat(exp, man int, v uint32) float32 {
	e := int(v&(1<<exp-1)) - (1<<(exp-1) - 1)
	m := v >> exp & (1<<man - 1)
	x := (1 + float64(m)/float64(uint32(1)<<man)) * math.Pow(2, float64(e))
	if v>>(exp+man)&1 == 1 {
		x = -x
	}
	return float32(x)
}

func bf16(v uint16) float32 { return math.Float32frombits(uint32(v) << 16) }
