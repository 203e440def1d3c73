package birjson

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"perfsim/io/format"
	"perfsim/io/internal/jsonscan"
)

// errNotFinite is the error for NaN and infinities.
var errNotFinite = errors.New("is not a finite number")

// parseInt reads an integer. Integral values with an exponent or a fraction
// (1e3, 4.0) are taken too: some writers make them.
func parseInt(s string) (int64, error) {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, nil
	}
	switch strings.ToLower(strings.Trim(s, `"`)) {
	case "nan", "inf", "-inf", "infinity", "-infinity":
		return 0, fmt.Errorf("%s %w", clip(s), errNotFinite)
	}
	if !validNumber(s) {
		return 0, fmt.Errorf("%s is not a number", clip(s))
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || math.IsInf(f, 0):
		return 0, fmt.Errorf("%s is too large", clip(s))
	case f != math.Trunc(f):
		return 0, fmt.Errorf("%s is not a whole number", clip(s))
	case math.Abs(f) >= 1<<53:
		return 0, fmt.Errorf("%s is too large", clip(s))
	}
	return int64(f), nil
}

// validNumber reports whether s is a number as JSON has them.
func validNumber(s string) bool {
	i := 0
	digits := func() bool {
		n := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i > n
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	zero := i < len(s) && s[i] == '0'
	start := i
	if !digits() || zero && i-start > 1 {
		return false
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(s)
}

// number returns an integer value, which must lie within lo and hi.
func number(v jsonscan.Value, lo, hi int64) (int64, error) {
	var n int64
	var err error
	switch v.Kind() {
	case jsonscan.Number:
		if n, err = v.Int64(); err != nil {
			n, err = parseInt(string(v.AppendTo(nil)))
		}
	case jsonscan.String:
		b := v.Bytes()
		n, err = parseInt(string(b))
		if err == nil {
			err = fmt.Errorf("%q is a string, not a number", clip(string(b)))
		}
	default:
		kind := v.Kind()
		if kind == jsonscan.Absent {
			kind = jsonscan.Null
		}
		err = fmt.Errorf("is %s, not a number", kind)
	}
	if err != nil {
		return 0, err
	}
	if n < lo || n > hi {
		return 0, fmt.Errorf("%d is outside %d to %d", n, lo, hi)
	}
	return n, nil
}

// isTrue reports whether v is true (or a number other than 0, as some writers
// have it).
func isTrue(v jsonscan.Value) bool {
	if v.Kind() == jsonscan.Number {
		f, _ := v.Float64()
		return f != 0
	}
	return v.Kind() == jsonscan.True
}

// text returns the bytes of a string value, nil for anything else.
func text(v jsonscan.Value) []byte { return v.Bytes() }

// object returns v where it is an object.
func object(v jsonscan.Value) (jsonscan.Value, error) {
	if v.Kind() != jsonscan.Object {
		return v, fmt.Errorf("value doesn't contain object; it contains %s", v.Kind())
	}
	return v, nil
}

// array returns v where it is an array.
func array(v jsonscan.Value) (jsonscan.Value, error) {
	if v.Kind() != jsonscan.Array {
		return v, fmt.Errorf("value doesn't contain array; it contains %s", v.Kind())
	}
	return v, nil
}

// member is a key and its value, or where value is absent its JSON text.
type member struct {
	key   string
	value jsonscan.Value
	raw   []byte
}

// keyString returns a key without copying it. It lives as long as the value
// it came from: until the parser's next document.
func keyString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// appendMembers appends an object of the members, sorted by key.
func appendMembers(dst []byte, m []member) ([]byte, error) {
	if !slices.IsSortedFunc(m, byKey) {
		slices.SortStableFunc(m, byKey)
	}
	dst = append(dst, '{')
	var err error
	for i, x := range m {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, x.key)
		dst = append(dst, ':')
		if x.value.Kind() == jsonscan.Absent {
			dst = append(dst, x.raw...)
		} else if dst, err = appendValue(dst, x.value); err != nil {
			return dst, fmt.Errorf("%s: %w", clip(x.key), err)
		}
	}
	return append(dst, '}'), nil
}

func byKey(a, b member) int { return strings.Compare(a.key, b.key) }

// appendValue appends v as compact JSON. It fails on a number that JSON does
// not have, which the parser lets through.
func appendValue(dst []byte, v jsonscan.Value) ([]byte, error) {
	var err error
	switch v.Kind() {
	case jsonscan.Object:
		dst = append(dst, '{')
		first := true
		for m := v.Members(); m.Ok() && err == nil; m = m.Next() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendString(dst, m.Key())
			dst = append(dst, ':')
			dst, err = appendValue(dst, m.Value())
		}
		return append(dst, '}'), err
	case jsonscan.Array:
		dst = append(dst, '[')
		for i, e := range v.All() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendValue(dst, e); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case jsonscan.String:
		return appendString(dst, text(v)), nil
	case jsonscan.Number:
		at := len(dst)
		dst = v.AppendTo(dst)
		if !validNumber(string(dst[at:])) {
			return dst, fmt.Errorf("%s is not a number as JSON has them", clip(string(dst[at:])))
		}
		return dst, nil
	default:
		return v.AppendTo(dst), nil
	}
}

// appendString appends s as a JSON string, every byte of valid UTF-8 kept.
func appendString[S string | []byte](dst []byte, s S) []byte {
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		if s[i] == 0 {
			dst = format.AppendJSONText(dst, s[start:i])
			dst = append(dst, `\u0000`...)
			start = i + 1
		}
	}
	dst = format.AppendJSONText(dst, s[start:])
	return append(dst, '"')
}

// unquote decodes a JSON string; anything else gives "".
func unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	var tape jsonscan.Tape
	v, ok := tape.Parse(raw)
	if !ok {
		return ""
	}
	return strings.ToValidUTF8(string(text(v)), "\uFFFD")
}
