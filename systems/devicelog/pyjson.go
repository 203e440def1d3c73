package devicelog

import (
	"bufio"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pyJSON writes what Python's json.dump(indent=2, sort_keys=True) writes.
type pyJSON struct {
	w     *bufio.Writer
	depth int
}

// A value is a string, uint64, float64, bool, number, []string, nil, a dict, a
// list, or a function that makes one when its turn comes, so that no more of a
// document is held than what is being written.
type (
	dict   map[string]any
	list   func(add func(any))
	number string // as it is written
)

func (j *pyJSON) value(v any) {
	switch v := v.(type) {
	case nil:
		j.w.WriteString("null")
	case string:
		j.quote(v)
	case number:
		j.w.WriteString(string(v))
	case uint64:
		j.w.WriteString(strconv.FormatUint(v, 10))
	case float64:
		j.w.WriteString(pyFloat(v))
	case bool:
		j.w.WriteString(strconv.FormatBool(v))
	case func() any:
		j.value(v())
	case []string:
		j.value(list(func(add func(any)) {
			for _, s := range v {
				add(s)
			}
		}))
	case list:
		j.items('[', ']', func(next func()) {
			v(func(x any) {
				next()
				j.value(x)
			})
		})
	case dict:
		j.items('{', '}', func(next func()) {
			for _, k := range slices.Sorted(maps.Keys(v)) {
				next()
				j.quote(k)
				j.w.WriteString(": ")
				j.value(v[k])
			}
		})
	default:
		panic(fmt.Sprintf("devicelog: %T in a JSON document", v))
	}
}

// items writes a container; write calls next before each item.
func (j *pyJSON) items(first, last byte, write func(next func())) {
	newline := func() {
		j.w.WriteByte('\n')
		for range j.depth {
			j.w.WriteString("  ")
		}
	}
	j.w.WriteByte(first)
	j.depth++
	empty := true
	write(func() {
		if !empty {
			j.w.WriteByte(',')
		}
		empty = false
		newline()
	})
	j.depth--
	if !empty {
		newline()
	}
	j.w.WriteByte(last)
}

// quote writes an ASCII JSON string.
func (j *pyJSON) quote(s string) {
	w := j.w
	w.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.WriteByte('\\')
			w.WriteByte(byte(r))
		case r == '\n':
			w.WriteString(`\n`)
		case r == '\t':
			w.WriteString(`\t`)
		case r == '\r':
			w.WriteString(`\r`)
		case r == '\b':
			w.WriteString(`\b`)
		case r == '\f':
			w.WriteString(`\f`)
		case r >= 0x20 && r < 0x7F:
			w.WriteByte(byte(r))
		case r > 0xFFFF:
			r -= 0x10000
			fmt.Fprintf(w, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			fmt.Fprintf(w, `\u%04x`, r)
		}
	}
	w.WriteByte('"')
}

// pyFloat prints a float as Python's repr does.
func pyFloat(f float64) string {
	if math.IsNaN(f) {
		return "NaN"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return s
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.ContainsAny(s, ".") {
		s += ".0"
	}
	return s
}

// pyRepr appends a text as Python's repr prints it.
func pyRepr(b []byte, s string) []byte {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b = append(b, q)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\udc%02x`, s[i]) // surrogateescape
		case byte(r) == q && r < 0x80 || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r < 0x20 || r == 0x7F:
			b = fmt.Appendf(b, `\x%02x`, r)
		case !unicode.IsPrint(r):
			if r <= 0xFF {
				b = fmt.Appendf(b, `\x%02x`, r)
			} else if r <= 0xFFFF {
				b = fmt.Appendf(b, `\u%04x`, r)
			} else {
				b = fmt.Appendf(b, `\U%08x`, r)
			}
		default:
			b = utf8.AppendRune(b, r)
		}
		i += n
	}
	return append(b, q)
}
