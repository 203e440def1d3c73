package metricstore

import (
	"math"
	"strconv"
	"strings"
)

// Kind is the type of a value.
type Kind uint8

// The kinds of the documented variant.
const (
	KindFloat Kind = iota
	KindUint32
	KindInt64
	KindUint64
)

var kindNames = [...]string{"float", "uint32", "int64", "uint64"}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Value is a number of one of four kinds. The zero Value is the float 0. It
// is comparable.
type Value struct {
	kind Kind
	bits uint64
}

// float makes a float. The documented store holds single precision.
func float(f float32) Value { return double(float64(f)) }

// double makes a float of double precision, as means and files have them.
func double(f float64) Value { return Value{KindFloat, math.Float64bits(f)} }

// Uint32 makes a uint32.
func Uint32(u uint32) Value { return Value{KindUint32, uint64(u)} }

// Int64 makes an int64.
func Int64(i int64) Value { return Value{KindInt64, uint64(i)} }

// Uint64 makes a uint64.
func Uint64(u uint64) Value { return Value{KindUint64, u} }

// Kind returns the kind.
func (v Value) Kind() Kind { return v.kind }

// Float64 returns the value as a float64; integers beyond 2^53 are rounded.
func (v Value) Float64() float64 {
	switch v.kind {
	case KindFloat:
		return math.Float64frombits(v.bits)
	case KindInt64:
		return float64(int64(v.bits))
	}
	return float64(v.bits)
}

// Uint64 returns the value as an unsigned integer; ok is false if it is
// negative, has a fraction or is too large.
func (v Value) Uint64() (u uint64, ok bool) {
	switch v.kind {
	case KindFloat:
		f := v.Float64()
		if f < 0 || f >= 1<<64 || f != math.Trunc(f) { // NaN fails the last
			return 0, false
		}
		return uint64(f), true
	case KindInt64:
		return v.bits, int64(v.bits) >= 0
	}
	return v.bits, true
}

// String returns the value as JSON has it.
func (v Value) String() string { return string(v.append(nil)) }

// append appends the value as a JSON number. A float always shows that it is
// one, by a point or an exponent, so that reading gives the same kind; NaN and
// infinities, which JSON lacks, become null.
func (v Value) append(dst []byte) []byte {
	switch v.kind {
	case KindFloat:
		return appendFloat(dst, v.Float64())
	case KindInt64:
		return strconv.AppendInt(dst, int64(v.bits), 10)
	}
	return strconv.AppendUint(dst, v.bits, 10)
}

// appendFloat writes the shortest digits that read back exactly, in the form
// that the documented program's JSON library gives them: plain from 1e-4 to
// 1e15, with ".0" for whole numbers, and otherwise with an exponent of at
// least two digits.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e15) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	n := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if !strings.Contains(string(dst[n:]), ".") {
		dst = append(dst, ".0"...)
	}
	return dst
}

// plus adds two values. Integers stay integers as long as the sum fits: int64
// if either is, else uint64 (uint32 if both are and it fits).
func (v Value) plus(w Value) Value {
	if v.kind == KindFloat || w.kind == KindFloat {
		return double(v.Float64() + w.Float64())
	}
	if v.kind == KindInt64 || w.kind == KindInt64 {
		a, aok := v.int64()
		b, bok := w.int64()
		if s := a + b; aok && bok && (s > a) == (b > 0) {
			return Int64(s)
		}
		return double(v.Float64() + w.Float64())
	}
	s := v.bits + w.bits
	switch {
	case s < v.bits:
		return double(v.Float64() + w.Float64())
	case v.kind == KindUint32 && w.kind == KindUint32 && s <= math.MaxUint32:
		return Uint32(uint32(s))
	}
	return Uint64(s)
}

func (v Value) int64() (int64, bool) {
	if v.kind == KindInt64 {
		return int64(v.bits), true
	}
	return int64(v.bits), v.bits <= math.MaxInt64
}
