package catapult

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// eight returns the eight digits of v below 10^8 as text, the first in the
// lowest byte: halves of four digits, then of two, then of one, all at once.
func eight(v uint64) uint64 {
	hi := v / 10000
	x := hi | (v-hi*10000)<<32
	hi = x * 10486 >> 20 & 0x7f0000007f // a hundredth of each half, exact below 10^4
	x = hi | (x-hi*100)<<16
	hi = x * 103 >> 10 & 0x000f000f000f000f // a tenth of each, exact below 100
	return hi | (x-hi*10)<<8 | ascii
}

// ascii makes text of the digits of eight.
const ascii = 0x3030303030303030

// threes has the text of three digits, the first in the lowest byte: with
// leading zeros, and without them and their number in the highest byte. Eight
// kilobytes stay in the first-level cache, and most numbers of a trace are two
// or three of them; eight takes three times as many operations.
var threes, heads = makeThrees()

func makeThrees() (threes, heads [1024]uint32) {
	for v := range uint32(1000) {
		text := v/100 | v/10%10<<8 | v%10<<16 | ascii&0xffffff
		n := uint32(1)
		if v >= 100 {
			n = 3
		} else if v >= 10 {
			n = 2
		}
		threes[v], heads[v] = text, text>>(24-8*n)|n<<24
	}
	return threes, heads
}

// few returns the text of v below 10^8, the first digit in the lowest byte,
// and how many digits it has.
func few(v uint64) (text uint64, n int) {
	if v < 1000 {
		h := heads[v]
		return uint64(h & 0xffffff), int(h >> 24)
	}
	hi := uint32(v) / 1000
	lo := uint64(threes[(uint32(v)-hi*1000)&1023])
	if hi < 1000 {
		h := heads[hi]
		k := h >> 24
		return uint64(h&0xffffff) | lo<<(8*k&63), int(k) + 3
	}
	top := hi / 1000
	h := heads[top&1023]
	k := h >> 24
	return uint64(h&0xffffff) | (uint64(threes[(hi-top*1000)&1023])|lo<<24)<<(8*k&63), int(k) + 6
}

// decimal is few for v below 10^16, in two words.
func decimal(v uint64) (lo, hi uint64, n int) {
	if v < 1e8 {
		lo, n = few(v)
		return lo, 0, n
	}
	head := v / 1e8
	last := eight(v - head*1e8)
	lo, n = few(head)
	return lo | last<<(8*uint(n)), last >> (64 - 8*uint(n)), n + 8
}

// numberRoom is the room that putUint needs for any number.
const numberRoom = 24

// putUint writes v to o at n and returns where it ends. Up to numberRoom bytes
// are written to; those behind the end mean nothing.
func putUint(o []byte, n int, v uint64) int {
	if v < 1000 {
		h := heads[v]
		binary.LittleEndian.PutUint64(o[n:], uint64(h)) // its length goes under what follows
		return n + int(h>>24)
	}
	if v < 1e6 {
		hi := uint32(v) / 1000
		h := heads[hi&1023]
		k := h >> 24
		binary.LittleEndian.PutUint64(o[n:], uint64(h&0xffffff)|uint64(threes[(uint32(v)-hi*1000)&1023])<<(8*k&63))
		return n + int(k) + 3
	}
	if v < 1e8 {
		// few, written out: most numbers come here, and a call costs as much as
		// a look.
		hi := uint32(v) / 1000
		top := hi / 1000
		h := heads[top&1023]
		k := h >> 24
		rest := uint64(threes[(hi-top*1000)&1023]) | uint64(threes[(uint32(v)-hi*1000)&1023])<<24
		binary.LittleEndian.PutUint64(o[n:], uint64(h&0xffffff)|rest<<(8*k&63))
		return n + int(k) + 6
	}
	if v >= 1e16 {
		return len(strconv.AppendUint(o[:n], v, 10))
	}
	lo, hi, d := decimal(v)
	put16(o, n, lo, hi)
	return n + d
}

// put16 writes two words.
func put16(o []byte, n int, lo, hi uint64) {
	out := o[n : n+16]
	binary.LittleEndian.PutUint64(out, lo)
	binary.LittleEndian.PutUint64(out[8:], hi)
}

// appendUint is strconv.AppendUint for the numbers that a trace is full of.
func appendUint(b []byte, v uint64) []byte {
	n := len(b)
	if cap(b)-n < numberRoom {
		b = slices.Grow(b, numberRoom)
	}
	return b[:putUint(b[:n+numberRoom], n, v)]
}
