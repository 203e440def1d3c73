package devicelog

import (
	"bufio"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// pyJSON writes what Python's json.dump(indent=2) writes.
type pyJSON struct {
	w     *bufio.Writer
	depth int
	empty bool // nothing yet in the innermost container
	after bool // a key was written, its value comes
}

func (j *pyJSON) next() {
	if j.after {
		j.after = false
		return
	}
	if j.depth == 0 {
		return
	}
	if !j.empty {
		j.w.WriteByte(',')
	}
	j.newline()
	j.empty = false
}

func (j *pyJSON) newline() {
	j.w.WriteByte('\n')
	for range j.depth {
		j.w.WriteString("  ")
	}
}

func (j *pyJSON) open(c byte) {
	j.next()
	j.w.WriteByte(c)
	j.depth++
	j.empty = true
}

func (j *pyJSON) close(c byte) {
	j.depth--
	if !j.empty {
		j.newline()
	}
	j.w.WriteByte(c)
	j.empty = false
}

func (j *pyJSON) key(s string) {
	j.next()
	j.quote(s)
	j.w.WriteString(": ")
	j.after = true
}

func (j *pyJSON) raw(s string) {
	j.next()
	j.w.WriteString(s)
}

func (j *pyJSON) str(s string) {
	j.next()
	j.quote(s)
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
