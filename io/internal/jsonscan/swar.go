package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes at a time (SWAR): a byte of x is zero where one is looked for, and
// x-ones borrows into its top bit. Bytes behind the first that is found may be
// wrong, as the borrow goes on; only the first is used.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// mark sets the top bit of the first byte of w that is c.
func mark(w uint64, c byte) uint64 {
	x := w ^ ones*uint64(c)
	return (x - ones) &^ x & tops
}

// toQuote returns where in b from i on the first '"' or '\\' is, len(b) for
// none.
func toQuote(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		if m := mark(w, '"') | mark(w, '\\'); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for i < len(b) && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}

// toBracket returns where in b from i on the first byte is that means something
// to walk, len(b) for none. Brackets are the bytes that are 0x7f with the bits
// of 0x26, but for four (Y, _, y, 0x7f) that JSON has in strings only.
func toBracket(b []byte, i int) int {
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		m := mark(w, '"') | mark(w|0x26*ones, 0x7f)
		if m == 0 {
			i += 8
			continue
		}
		if i += bits.TrailingZeros64(m) >> 3; meaning[b[i]] != plain {
			return i
		}
		i++
	}
	for i < len(b) && meaning[b[i]] == plain {
		i++
	}
	return i
}
