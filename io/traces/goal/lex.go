package goal

import (
	"errors"
	"fmt"
	"io"
)

// pos is a place in the text, both from 1.
type pos struct{ line, col int32 }

func (p pos) errorf(format string, args ...any) error {
	return fmt.Errorf("%d:%d: "+format, append([]any{p.line, p.col}, args...)...)
}

const (
	// maxWord bounds a word; labels are short.
	maxWord = 1024
	// bufferSize is how much text is in memory at a time, a multiple of maxWord.
	bufferSize = 1 << 18
)

// lexer splits the text into words (letters, digits, _, -, .) and single
// characters.
type lexer struct {
	r    io.Reader
	buf  []byte // what is in memory of the text
	p    int    // the next byte in buf
	base int64  // how far the start of buf is in the text
	err  error  // what ended reading; io.EOF at the end of the text

	line      int32
	lineStart int64 // where the line starts in the text

	word []byte // the last word; it lies in buf and is valid until next
	from pos    // of the word
}

func newLexer(r io.Reader) *lexer {
	return &lexer{r: r, buf: make([]byte, 0, bufferSize), line: 1}
}

// The classes of bytes.
const (
	other = iota
	space
	newline
	slash
	inWord
)

var classes = classTable()

func classTable() (t [256]uint8) {
	for c := range t {
		switch c := byte(c); {
		case c == ' ' || c == '\t' || c == '\r':
			t[c] = space
		case c == '\n':
			t[c] = newline
		case c == '/':
			t[c] = slash
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.':
			t[c] = inWord
		}
	}
	return t
}

// here returns the place of the byte at index i of the buffer.
func (l *lexer) here(i int) pos { return pos{l.line, int32(l.base + int64(i) - l.lineStart + 1)} }

// fill reads more text behind the unused rest, which moves to the start of the
// buffer, and reports whether there was any.
func (l *lexer) fill() bool {
	if l.err != nil {
		return false
	}
	l.base += int64(l.p)
	l.buf = l.buf[:copy(l.buf, l.buf[l.p:])]
	l.p = 0
	for l.err == nil && len(l.buf) < cap(l.buf) {
		var n int
		n, l.err = l.r.Read(l.buf[len(l.buf):cap(l.buf)])
		l.buf = l.buf[:len(l.buf)+n]
		if n > 0 {
			return true
		}
	}
	return false
}

// failed is the error that ended reading, nil at the end of the text.
func (l *lexer) failed() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

// next reads the next word; an empty one stands for the end of the text.
func (l *lexer) next() error {
	for {
		if l.p == len(l.buf) && !l.fill() {
			l.word, l.from = nil, l.here(l.p)
			return l.failed()
		}
		switch classes[l.buf[l.p]] {
		case space:
			l.p++
		case newline:
			l.newline()
		case inWord:
			return l.letters()
		case slash:
			comment, err := l.comment()
			if err != nil {
				return err
			}
			if !comment {
				return l.single()
			}
		default:
			return l.single()
		}
	}
}

// newline takes the byte that ends a line.
func (l *lexer) newline() {
	l.p++
	l.line++
	l.lineStart = l.base + int64(l.p)
}

func (l *lexer) single() error {
	l.word, l.from = l.buf[l.p:l.p+1], l.here(l.p)
	l.p++
	return nil
}

func (l *lexer) letters() error {
	n := 1
	for {
		rest := l.buf[l.p:]
		for n < len(rest) && classes[rest[n]] == inWord {
			n++
		}
		if n > maxWord {
			return l.here(l.p).errorf("a word is longer than %d bytes", maxWord)
		}
		if n < len(rest) {
			break
		}
		if !l.fill() {
			if err := l.failed(); err != nil {
				return err
			}
			break
		}
	}
	l.word, l.from = l.buf[l.p:l.p+n], l.here(l.p)
	l.p += n
	return nil
}

// comment skips a comment at a slash, and reports whether there is one.
func (l *lexer) comment() (bool, error) {
	if l.p+1 == len(l.buf) {
		l.fill()
	}
	if l.p+1 == len(l.buf) {
		return false, l.failed()
	}
	from := l.here(l.p)
	switch l.buf[l.p+1] {
	case '/':
		for {
			for l.p < len(l.buf) {
				if l.buf[l.p] == '\n' {
					return true, nil
				}
				l.p++
			}
			if !l.fill() {
				return true, l.failed()
			}
		}
	case '*':
		l.p += 2
		for last := byte(0); ; {
			if l.p == len(l.buf) && !l.fill() {
				if err := l.failed(); err != nil {
					return false, err
				}
				return false, from.errorf("a comment is not closed")
			}
			c := l.buf[l.p]
			if c == '\n' {
				l.newline()
			} else {
				l.p++
			}
			if last == '*' && c == '/' {
				return true, nil
			}
			last = c
		}
	}
	return false, nil
}

// option returns which of tag, cpu and nic comes next with a number behind it,
// "" for none, without taking it: a label may have one of these names. More
// than 4,096 bytes of white space are not looked through.
func (l *lexer) option() string {
	for {
		key, known := option(l.buf[l.p:])
		if known || len(l.buf)-l.p > 4096 || !l.fill() {
			return key
		}
	}
}

// option looks for an option in text, and reports whether more text cannot
// change what it finds.
func option(text []byte) (key string, known bool) {
	i := 0
	for i < len(text) && (classes[text[i]] == space || classes[text[i]] == newline) {
		i++
	}
	if len(text) < i+4 {
		return "", false
	}
	switch string(text[i : i+3]) {
	case "tag":
		key = "tag"
	case "cpu":
		key = "cpu"
	case "nic":
		key = "nic"
	default:
		return "", true
	}
	j := i + 3
	for j < len(text) && (classes[text[j]] == space || classes[text[j]] == newline) {
		j++
	}
	switch {
	case j == len(text):
		return "", false
	case j > i+3 && (text[j] == '-' || '0' <= text[j] && text[j] <= '9'):
		return key, true
	}
	return "", true
}
