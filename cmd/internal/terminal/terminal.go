// Package terminal is the one printer of text for people. Names and other
// text of inputs may hold anything: control characters that move the cursor,
// set the title or the clipboard (ESC, OSC, CR), and bidirectional controls
// that show a name in another order. Writer shows them as escapes.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer escapes what a terminal would act on. Tabs and line ends stay. A
// character is shown as \uXXXX, which is the same string within JSON; a byte
// that is not UTF-8 as \xXX. Several goroutines may write.
type Writer struct {
	out  io.Writer
	mu   sync.Mutex
	held []byte // bytes of a character that is not complete yet
	buf  []byte
	err  error // the first of out
}

// NewWriter returns a writer to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Raw returns the writer below: for binary formats and displays that move the
// cursor themselves.
func (w *Writer) Raw() io.Writer { return w.out }

// Err returns the first error of the writer below, also where the caller of
// Write did not look at it.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Write writes p, escaped. An incomplete character at the end waits for the
// next Write or Flush.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	b := p
	if len(w.held) > 0 {
		w.held = append(w.held, p...)
		b = w.held
	}
	var rest int
	w.buf, rest = appendEscaped(w.buf[:0], b, false)
	held := append([]byte(nil), b[len(b)-rest:]...)
	if w.held = held; len(w.buf) > 0 {
		if _, w.err = w.out.Write(w.buf); w.err != nil {
			return 0, w.err
		}
	}
	return len(p), nil
}

// Flush writes what waits and returns the first error of all.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil && len(w.held) > 0 {
		w.buf, _ = appendEscaped(w.buf[:0], w.held, true)
		w.held = nil
		_, w.err = w.out.Write(w.buf)
	}
	return w.err
}

// escape returns s as Writer shows it.
func escape(s string) string {
	b, _ := appendEscaped(nil, []byte(s), true)
	return string(b)
}

// appendEscaped appends b, escaped. Unless this is the end of the text, the
// last rest bytes are left out where they may be part of more.
func appendEscaped(dst, b []byte, end bool) (_ []byte, rest int) {
	start := 0
	for i := 0; i < len(b); {
		c := b[i]
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if !end && c >= utf8.RuneSelf && !utf8.FullRune(b[i:]) {
			return append(dst, b[start:i]...), len(b) - i
		}
		r, size := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && size <= 1 {
			dst = fmt.Appendf(append(dst, b[start:i]...), `\x%02x`, c)
			i++
			start = i
			continue
		}
		if acts(r) {
			dst = fmt.Appendf(append(dst, b[start:i]...), `\u%04x`, r)
			start = i + size
		}
		i += size
	}
	return append(dst, b[start:]...), 0
}

// acts reports whether a terminal does something else with r than show it:
// the control characters, and the controls of bidirectional text and line
// separators (Unicode 15, UAX 9).
func acts(r rune) bool {
	switch {
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r >= 0x200e && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xfeff:
		return true
	}
	return false
}

// Bounds of a message: a word, a line, the lines.
const (
	mostWord  = 400
	mostLine  = 4000
	mostLines = 40
)

// Message returns the text of an error for people: escaped, and without the
// middle of words and lines that only an input could have made that long.
func Message(err error) string {
	lines := strings.Split(escape(err.Error()), "\n")
	if more := len(lines) - mostLines; more > 0 {
		lines = append(lines[:mostLines], fmt.Sprintf("… (%d more lines)", more))
	}
	for i, l := range lines {
		words := strings.Split(l, " ")
		for k, word := range words {
			words[k] = cut(word, mostWord)
		}
		lines[i] = cut(strings.Join(words, " "), mostLine)
	}
	return strings.Join(lines, "\n")
}

// cut leaves out the middle of s where it is longer than most bytes.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head, tail := s[:most/2], s[len(s)-most/4:]
	for len(head) > 0 && !utf8.RuneStart(s[len(head)]) {
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return fmt.Sprintf("%s…(%d bytes left out)…%s", head, len(s)-len(head)-len(tail), tail)
}
