package stablehlo

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Error is a mistake in an input, with its place: 1-based line and column in
// bytes.
type Error struct {
	File      string
	Line, Col int
	Msg       string
}

// Error returns "file:line:col: message".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg)
}

// scanner is a cursor over MLIR text. The first mistake is kept in err; every
// reading function then reports false.
type scanner struct {
	file  string
	s     string
	pos   int
	err   *Error
	lines []int // offsets of line starts of the whole file
	line  int   // the line found last, from 0
}

// lineStarts returns the offsets at which lines begin.
func lineStarts(s string) []int {
	lines := append(make([]int, 0, 1+len(s)/64), 0)
	for i := 0; i < len(s); i++ {
		n := strings.IndexByte(s[i:], '\n')
		if n < 0 {
			break
		}
		i += n
		lines = append(lines, i+1)
	}
	return lines
}

// lineAt returns the 1-based line of pos.
func (c *scanner) lineAt(pos int) int {
	if c.lines == nil {
		c.lines = lineStarts(c.s)
	}
	// Most places follow the one before closely.
	for n := c.line; n < len(c.lines) && c.lines[n] <= pos; n++ {
		if n-c.line > 16 {
			break
		}
		if n+1 == len(c.lines) || pos < c.lines[n+1] {
			c.line = n
			return n + 1
		}
	}
	c.line = sort.SearchInts(c.lines, pos+1) - 1
	return c.line + 1
}

func (c *scanner) failAt(pos int, format string, args ...any) bool {
	if c.err == nil {
		pos = min(pos, len(c.s))
		line := c.lineAt(pos)
		c.err = &Error{File: c.file, Line: line, Col: pos - c.lines[line-1] + 1, Msg: oneLine(fmt.Sprintf(format, args...))}
	}
	return false
}

// maxMessage bounds the text of an error, which may quote a name of any length.
const maxMessage = 400

// oneLine makes a message one short line of UTF-8, whatever it quotes.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s { // U+FFFD for what is not UTF-8
		if b.Len() >= maxMessage {
			b.WriteString("…")
			break
		}
		b.WriteRune(max(r, ' '))
	}
	return b.String()
}

func (c *scanner) fail(format string, args ...any) bool { return c.failAt(c.pos, format, args...) }

func isSpace(b byte) bool { return b <= ' ' && (b == ' ' || b == '\n' || b == '\t' || b == '\r') }

func isDigit(b byte) bool { return b-'0' <= 9 }

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }

// isWord reports whether b may be inside an identifier: of an operation
// ("stablehlo.add"), a value ("%arg0"), a symbol or an attribute.
func isWord(b byte) bool { return wordBytes[b] }

var wordBytes = makeWordBytes()

func makeWordBytes() (t [256]bool) {
	for b := range t {
		t[b] = isLetter(byte(b)) || isDigit(byte(b)) || b == '.' || b == '$'
	}
	return t
}

// peek skips white space and comments and returns the next byte, 0 at the
// end.
func (c *scanner) peek() byte {
	if c.pos < len(c.s) && c.s[c.pos] > '/' { // most often
		return c.s[c.pos]
	}
	return c.skip()
}

func (c *scanner) skip() byte {
	for c.pos < len(c.s) {
		b := c.s[c.pos]
		if isSpace(b) {
			c.pos++
			continue
		}
		if b == '/' && strings.HasPrefix(c.s[c.pos:], "//") {
			n := strings.IndexByte(c.s[c.pos:], '\n')
			if n < 0 {
				c.pos = len(c.s)
				return 0
			}
			c.pos += n + 1
			continue
		}
		return b
	}
	return 0
}

func (c *scanner) more() bool {
	c.peek()
	return c.pos < len(c.s)
}

func (c *scanner) has(s string) bool {
	c.peek()
	return strings.HasPrefix(c.s[c.pos:], s)
}

// accept takes s if it is next.
func (c *scanner) accept(s string) bool {
	if len(s) == 1 {
		if c.peek() != s[0] {
			return false
		}
		c.pos++
		return true
	}
	if c.has(s) {
		c.pos += len(s)
		return true
	}
	return false
}

// acceptWord takes the word w if it is the next whole word.
func (c *scanner) acceptWord(w string) bool {
	if c.has(w) && (c.pos+len(w) == len(c.s) || !isWord(c.s[c.pos+len(w)])) {
		c.pos += len(w)
		return true
	}
	return false
}

func (c *scanner) expect(s, where string) bool {
	return c.accept(s) || c.fail("expected %q %s, found %s", s, where, c.found())
}

func (c *scanner) found() string {
	if !c.more() {
		return "the end of the input"
	}
	end := c.pos
	for end < len(c.s) && end-c.pos < 24 && isWord(c.s[end]) {
		end++
	}
	if end == c.pos {
		end++
	}
	return strconv.Quote(c.s[c.pos:end])
}

// word takes an identifier, "" when there is none.
func (c *scanner) word() string {
	c.peek()
	start, end, s := c.pos, c.pos, c.s
	for end < len(s) && wordBytes[s[end]] {
		end++
	}
	c.pos = end
	return s[start:end]
}

// nestBytes are those that balanced looks at.
var nestBytes = [256]bool{'"': true, '(': true, '[': true, '{': true, '<': true, '>': true, ')': true, ']': true, '}': true, '/': true}

// balanced takes a bracketed text, brackets included: (, [, {, or <. Strings
// are skipped. In "->", '>' closes nothing.
func (c *scanner) balanced() (string, bool) {
	start := c.pos
	s := c.s
	var small [32]byte
	stack := small[:0]
	for i := start; i < len(s); i++ {
		b := s[i]
		if !nestBytes[b] {
			continue
		}
		switch b {
		case '"':
			end := stringEnd(s, i)
			if end < 0 {
				return "", c.failAt(i, "string is not closed")
			}
			i = end - 1
		case '(':
			stack = append(stack, ')')
		case '[':
			stack = append(stack, ']')
		case '{':
			stack = append(stack, '}')
		case '<':
			if i > start && i+1 < len(s) && s[i+1] == '=' { // "devices=[2]<=[2]" outside a string
				continue
			}
			stack = append(stack, '>')
		case '>', ')', ']', '}':
			if b == '>' && i > start && s[i-1] == '-' {
				continue
			}
			if len(stack) == 0 || stack[len(stack)-1] != b {
				if len(stack) == 0 {
					return "", c.failAt(i, "%q closes nothing", b)
				}
				return "", c.failAt(i, "%q where %q is expected", b, stack[len(stack)-1])
			}
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				c.pos = i + 1
				return s[start:c.pos], true
			}
		case '/':
			if i+1 < len(s) && s[i+1] == '/' {
				n := strings.IndexByte(s[i:], '\n')
				if n < 0 {
					n = len(s) - i
				}
				i += n - 1
			}
		}
	}
	return "", c.failAt(start, "%q is not closed", s[start])
}

// stringEnd returns the position after the closing quote of the string that
// opens at i, -1 when it does not end.
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// quoted takes a string and returns its content, unescaped.
func (c *scanner) quoted() (string, bool) {
	if c.peek() != '"' {
		return "", c.fail("expected a string, found %s", c.found())
	}
	end := stringEnd(c.s, c.pos)
	if end < 0 {
		return "", c.fail("string is not closed")
	}
	raw := c.s[c.pos+1 : end-1]
	c.pos = end
	return unescape(raw), true
}

// unescape undoes the escapes of MLIR strings: \n, \t, \", \\ and two
// hexadecimal digits.
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
		if i+1 < len(s) {
			if v, err := strconv.ParseUint(s[i:i+2], 16, 8); err == nil {
				b = append(b, byte(v))
				i++
				continue
			}
		}
		switch s[i] {
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

// value takes the text of an attribute: it ends at a comma or a closing
// bracket outside brackets. A type after a colon belongs to it.
func (c *scanner) value() (string, bool) {
	c.peek()
	start := c.pos
	for c.pos < len(c.s) {
		switch b := c.s[c.pos]; b {
		case '"':
			end := stringEnd(c.s, c.pos)
			if end < 0 {
				return "", c.fail("string is not closed")
			}
			c.pos = end
			continue
		case '(', '[', '{', '<':
			if _, ok := c.balanced(); !ok {
				return "", false
			}
			continue
		case ',', ')', ']', '}':
		case '>':
			if c.pos > start && c.s[c.pos-1] == '-' {
				c.pos++
				continue
			}
		default:
			c.pos++
			continue
		}
		break
	}
	text := strings.TrimSpace(c.s[start:c.pos])
	if text == "" {
		return "", c.fail("expected a value, found %s", c.found())
	}
	return text, true
}
