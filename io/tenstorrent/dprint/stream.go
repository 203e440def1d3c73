package dprint

import (
	"math"
	"strconv"
	"strings"
)

// stream formats as a C++ output stream does: base, precision and float
// style stay, a width counts for the next insertion only.
type stream struct {
	buf   []byte
	base  int // 10, 16 or 8
	prec  int
	fixed bool
	width int
}

func newStream() stream { return stream{base: 10, prec: 6} }

// insert appends a formatted value, padded to the width on the left.
func (f *stream) insert(s string) {
	for n := f.width - len(s); n > 0; n-- {
		f.buf = append(f.buf, ' ')
	}
	f.width = 0
	f.buf = append(f.buf, s...)
}

func (f *stream) text(s string) { f.insert(s) }

// uint prints a number of a type with so many bits.
func (f *stream) uint(v uint64, bits int) {
	if bits < 64 {
		v &= 1<<bits - 1
	}
	f.insert(strconv.FormatUint(v, f.base))
}

// int prints a signed number; bases 8 and 16 show its bits.
func (f *stream) int(v int64, bits int) {
	if f.base == 10 {
		f.insert(strconv.FormatInt(v, 10))
		return
	}
	f.uint(uint64(v), bits)
}

func (f *stream) float(v float32) {
	x := float64(v)
	switch {
	case math.IsNaN(x):
		if math.Signbit(x) {
			f.insert("-nan")
		} else {
			f.insert("nan")
		}
	case math.IsInf(x, 0):
		f.insert(strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+")))
	case f.fixed:
		f.insert(strconv.FormatFloat(x, 'f', f.prec, 64))
	default:
		f.insert(general(x, max(f.prec, 1)))
	}
}

// general is C's %.*g: the shorter of plain and exponent notation, without
// trailing zeros.
func general(x float64, prec int) string {
	e := strconv.FormatFloat(x, 'e', prec-1, 64)
	i := strings.IndexByte(e, 'e')
	exp, _ := strconv.Atoi(e[i+1:])
	if exp < -4 || exp >= prec {
		return trimZeros(e[:i]) + e[i:]
	}
	return trimZeros(strconv.FormatFloat(x, 'f', prec-1-exp, 64))
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
