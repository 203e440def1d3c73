package catapult

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

// powers has the powers of ten, powers[0] left 0 so that 0 has one digit;
// what lies behind is never reached.
var powers = [32]uint64{0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16}

// digits returns the number of decimal digits of v below 10^16: the number of
// bits times log10(2), corrected by one comparison.
func digits(v uint64) int {
	n := bits.Len64(v) * 1233 >> 12
	if v >= powers[n&31] {
		n++
	}
	return n
}

// eight returns the eight digits of v below 10^8 as text, the first in the
// lowest byte: halves of four digits, then of two, then of one, all at once.
func eight(v uint64) uint64 {
	hi := v / 10000
	x := hi | (v-hi*10000)<<32
	hi = x * 10486 >> 20 & 0x7f0000007f // a hundredth of each half, exact below 10^4
	x = hi | (x-hi*100)<<16
	hi = x * 103 >> 10 & 0x000f000f000f000f // a tenth of each, exact below 100
	x = hi | (x-hi*10)<<8
	return x | 0x3030303030303030
}

// appendUint is strconv.AppendUint for the numbers that a trace is full of:
// below 10^16 they are written eight digits at a time to where they belong.
func appendUint(b []byte, v uint64) []byte {
	if v >= 1e16 {
		return strconv.AppendUint(b, v, 10)
	}
	at := len(b)
	if cap(b)-at < 16 {
		b = slices.Grow(b, 16)
	}
	n := digits(v)
	out := b[at : at+16]
	if v >= 1e8 {
		hi := v / 1e8
		binary.LittleEndian.PutUint64(out, eight(hi)>>(128-8*uint(n))) // n-8 digits
		binary.LittleEndian.PutUint64(out[n-8:], eight(v-hi*1e8))
		return b[:at+n]
	}
	binary.LittleEndian.PutUint64(out, eight(v)>>(64-8*uint(n)))
	return b[:at+n]
}
