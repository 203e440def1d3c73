package hlo

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a mistake in an input, with its place: 1-based line and column in
// bytes for text, the byte offset for HloProto.
type Error struct {
	File      string
	Line, Col int   // 0 for HloProto
	Offset    int64 // from the start of the unwrapped input
	Msg       string
}

// Error returns "file:line:col: message" or "file: byte N: message".
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: byte %d: %s", e.File, e.Offset, e.Msg)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// scanner is a cursor over the text of a file. It reads tokens where the
// grammar asks for them instead of making a token stream: names, opcodes and
// types share one lexical class and only the place distinguishes them. The
// first mistake is kept in err; every reading function then reports false.
type scanner struct {
	file string
	s    string // the file up to the end of the current section
	pos  int
	err  *Error
	// line and linePos say which line a position is on, counted lazily.
	line    int
	linePos int
}

// lineAt returns the 1-based line of pos. It counts from where the last call
// was, so that all calls together cost about one pass over the text.
func (c *scanner) lineAt(pos int) int {
	switch {
	case c.line == 0:
		c.line = 1 + strings.Count(c.s[:pos], "\n")
	case pos < c.linePos:
		c.line -= strings.Count(c.s[pos:c.linePos], "\n")
	default:
		c.line += strings.Count(c.s[c.linePos:pos], "\n")
	}
	c.linePos = pos
	return c.line
}

// failAt records a mistake at pos and returns false.
func (c *scanner) failAt(pos int, format string, args ...any) bool {
	if c.err != nil {
		return false
	}
	pos = min(pos, len(c.s))
	start := strings.LastIndexByte(c.s[:pos], '\n') + 1
	line := 1 + strings.Count(c.s[:start], "\n")
	c.err = &Error{File: c.file, Line: line, Col: pos - start + 1, Offset: int64(pos), Msg: fmt.Sprintf(format, args...)}
	return false
}

func (c *scanner) fail(format string, args ...any) bool { return c.failAt(c.pos, format, args...) }

// Character classes.
const (
	classSpace = 1 << iota
	classWord  // letters, digits, '_', '-', '.'
	classNest  // brackets, braces, parentheses and the double quote
	classSkip  // white space, and '/' that may begin a comment
)

// class maps a byte to its classes; bytes above 0x7f have none outside strings.
var class = buildClass()

func buildClass() (t [256]uint8) {
	for _, b := range []byte(" \t\r\n\f\v") {
		t[b] |= classSpace | classSkip
	}
	t['/'] |= classSkip
	for b := byte('a'); b <= 'z'; b++ {
		t[b] |= classWord
		t[b-'a'+'A'] |= classWord
	}
	for b := byte('0'); b <= '9'; b++ {
		t[b] |= classWord
	}
	for _, b := range []byte("_-.") {
		t[b] |= classWord
	}
	for _, b := range []byte("()[]{}\"") {
		t[b] |= classNest
	}
	return t
}

// ws skips white space and comments.
func (c *scanner) ws() {
	s := c.s
	i := c.pos
	for i < len(s) {
		b := s[i]
		if class[b]&classSpace != 0 {
			i++
			continue
		}
		if b != '/' || i+1 >= len(s) {
			break
		}
		if s[i+1] == '*' {
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				c.pos = i
				c.fail("comment is not closed")
				i = len(s)
				break
			}
			i += n + 4
			continue
		}
		if s[i+1] != '/' {
			break
		}
		n := strings.IndexByte(s[i:], '\n')
		if n < 0 {
			i = len(s)
			break
		}
		i += n + 1
	}
	c.pos = i
}

// trimSpace removes white space of the grammar, which is ASCII, at both ends.
func trimSpace(s string) string { return strings.Trim(s, " \t\r\n\f\v") }

// peek skips white space and comments and returns the next byte, 0 at the
// end.
func (c *scanner) peek() byte {
	if c.pos < len(c.s) {
		if b := c.s[c.pos]; class[b]&classSkip == 0 {
			return b
		}
	}
	return c.skip()
}

// skip is peek where there is something to skip: mostly one space.
func (c *scanner) skip() byte {
	if i := c.pos + 1; i < len(c.s) && c.s[i-1] == ' ' && class[c.s[i]]&classSkip == 0 {
		c.pos = i
		return c.s[i]
	}
	c.ws()
	if c.pos < len(c.s) {
		return c.s[c.pos]
	}
	return 0
}

// more skips white space and reports whether anything is left.
func (c *scanner) more() bool {
	c.peek()
	return c.pos < len(c.s)
}

// accept takes the byte b if it is next.
func (c *scanner) accept(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.pos++
	return true
}

// exact takes the text t if it is next, as it stands. It is the quick way
// through what dumps always write the same; where it fails, the general way
// follows.
func (c *scanner) exact(t string) bool {
	if !strings.HasPrefix(c.s[c.pos:], t) {
		return false
	}
	c.pos += len(t)
	return true
}

// expect takes the byte b or fails.
func (c *scanner) expect(b byte, where string) bool {
	if c.accept(b) {
		return true
	}
	return c.fail("expected %q %s, found %s", b, where, c.found())
}

// expectAfter is expect where the message names what came before; it does not
// make the message unless it is needed.
func (c *scanner) expectAfter(b byte, where, what string) bool {
	return c.accept(b) || c.expect(b, where+" "+what)
}

// found describes what is at the cursor for a message.
func (c *scanner) found() string {
	c.ws()
	if c.pos >= len(c.s) {
		return "the end of the input"
	}
	end := c.pos
	for end < len(c.s) && end-c.pos < 24 && class[c.s[end]]&classWord != 0 {
		end++
	}
	if end == c.pos {
		_, n := utf8.DecodeRuneInString(c.s[end:])
		end += n
	}
	return strconv.Quote(c.s[c.pos:end])
}

// wordEnd returns where the run of word characters that begins at i ends.
func (c *scanner) wordEnd(i int) int {
	for s := c.s; i < len(s) && class[s[i]]&classWord != 0; {
		i++
	}
	return i
}

// word takes a run of word characters, "" when there is none.
func (c *scanner) word() string {
	c.peek()
	return c.wordHere()
}

// wordHere is word where white space is skipped already.
func (c *scanner) wordHere() string {
	start := c.pos
	c.pos = c.wordEnd(start)
	return c.s[start:c.pos]
}

// isWordText reports whether s is one word.
func isWordText(s string) bool {
	for i := range len(s) {
		if class[s[i]]&classWord == 0 {
			return false
		}
	}
	return s != ""
}

// name takes a name with or without the leading '%' and returns it without.
func (c *scanner) name() (string, bool) {
	if c.peek() == '%' {
		c.pos++
	}
	start := c.pos
	c.pos = c.wordEnd(start)
	if c.pos == start {
		return "", c.fail("expected a name, found %s", c.found())
	}
	return c.s[start:c.pos], true
}

// int takes a decimal integer that fits in 64 bits.
func (c *scanner) int() (int64, bool) {
	c.peek()
	start := c.pos
	i := start
	limit := uint64(1<<63 - 1)
	if i < len(c.s) && c.s[i] == '-' {
		i++
		limit++
	}
	var v uint64
	digits := i
	for i < len(c.s) && c.s[i]-'0' <= 9 {
		d := uint64(c.s[i] - '0')
		if v > (limit-d)/10 {
			return 0, c.failAt(start, "integer does not fit in 64 bits")
		}
		v = v*10 + d
		i++
	}
	if i == digits {
		return 0, c.fail("expected an integer, found %s", c.found())
	}
	c.pos = i
	if digits > start {
		return -int64(v), true
	}
	return int64(v), true
}

// balanced takes a bracketed text: the cursor is at an opening bracket; the
// result includes both brackets. Quoted strings are skipped, brackets of
// every kind must match. The nesting is counted, not recursed.
func (c *scanner) balanced() (string, bool) {
	start := c.pos
	s := c.s
	var small [32]byte
	stack := small[:0]
	i := start
	for i < len(s) {
		b := s[i]
		if class[b]&classNest == 0 {
			i++
			continue
		}
		switch b {
		case '"':
			end := stringEnd(s, i)
			if end < 0 {
				return "", c.failAt(i, "string is not closed")
			}
			i = end
			continue
		case '(':
			stack = append(stack, ')')
		case '[':
			stack = append(stack, ']')
		case '{':
			stack = append(stack, '}')
		default:
			if stack[len(stack)-1] != b {
				return "", c.failAt(i, "%q where %q is expected", b, stack[len(stack)-1])
			}
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				c.pos = i + 1
				return s[start:c.pos], true
			}
		}
		i++
	}
	return "", c.failAt(start, "%q is not closed", s[start])
}

// stringEnd returns the position after the closing quote of the string that
// opens at i, -1 when it does not end.
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return -1
		}
		// The quote closes unless an odd number of backslashes is before it.
		j := i + n
		k := j
		for k > i && s[k-1] == '\\' {
			k--
		}
		if (j-k)%2 == 0 {
			return j + 1
		}
		i = j
	}
	return -1
}

// quoted takes a quoted string and returns its content unescaped.
func (c *scanner) quoted() (string, bool) {
	if c.peek() != '"' {
		return "", c.fail("expected a quoted string, found %s", c.found())
	}
	end := stringEnd(c.s, c.pos)
	if end < 0 {
		return "", c.fail("string is not closed")
	}
	raw := c.s[c.pos+1 : end-1]
	c.pos = end
	return unescape(raw), true
}

// unescape undoes C escapes, which is how XLA prints strings; text without a
// backslash is returned as it is, without a copy. Bytes are not looked at as
// UTF-8: what stands in the file, and what \376 and \xfe name, is kept.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		i++
		switch e := s[i]; e {
		case 'a', 'b', 'f', 'n', 'r', 't', 'v':
			b = append(b, "\a\b\f\n\r\t\v"[strings.IndexByte("abfnrtv", e)])
		case 'x':
			n := 0
			v := byte(0)
			for n < 2 && i+1 < len(s) && hexDigit(s[i+1]) >= 0 {
				v = v<<4 | byte(hexDigit(s[i+1]))
				i++
				n++
			}
			b = append(b, v)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v := int(e - '0')
			for n := 1; n < 3 && i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '7'; n++ {
				v = v<<3 | int(s[i+1]-'0')
				i++
			}
			b = append(b, byte(v))
		default: // \" \\ \' and what nobody writes
			b = append(b, e)
		}
	}
	return string(b)
}

// appendQuoted appends s as a quoted string that quoted reads back: ASCII,
// with other bytes in octal, as XLA's CEscape has it.
func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '"' || b == '\\':
			dst = append(dst, '\\', b)
		case b == '\n':
			dst = append(dst, `\n`...)
		case b == '\t':
			dst = append(dst, `\t`...)
		case b == '\r':
			dst = append(dst, `\r`...)
		case b < 0x20 || b >= 0x7f:
			dst = append(dst, '\\', '0'+b>>6, '0'+b>>3&7, '0'+b&7)
		default:
			dst = append(dst, b)
		}
	}
	return append(dst, '"')
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// value takes the text of an attribute of no particular form: a string, a
// bracketed text, or a word with brackets in it such as
// "[2,4]<=[8]T(1,0)". It ends at a comma, white space or closing bracket
// outside brackets.
func (c *scanner) value() (string, bool) {
	switch c.peek() {
	case '"':
		start := c.pos
		end := stringEnd(c.s, start)
		if end < 0 {
			return "", c.fail("string is not closed")
		}
		c.pos = end
		return c.s[start:end], true
	case '{':
		return c.balanced()
	}
	start := c.pos
	for c.pos < len(c.s) {
		b := c.s[c.pos]
		switch {
		case b == '[' || b == '(' || b == '{':
			if _, ok := c.balanced(); !ok {
				return "", false
			}
			continue
		case b == ',' || b == ')' || b == ']' || b == '}' || class[b]&classSpace != 0:
		default:
			c.pos++
			continue
		}
		break
	}
	if c.pos == start {
		return "", c.fail("expected a value, found %s", c.found())
	}
	return c.s[start:c.pos], true
}
