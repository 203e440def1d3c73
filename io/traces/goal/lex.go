package goal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// pos is a place in the text, both from 1.
type pos struct{ line, col int32 }

func (p pos) errorf(format string, args ...any) error {
	return fmt.Errorf("%d:%d: "+format, append([]any{p.line, p.col}, args...)...)
}

// maxWord bounds a word; labels are short.
const maxWord = 1024

// lexer splits the text into words (letters, digits, _, -, .) and single
// characters.
type lexer struct {
	r    *bufio.Reader
	at   pos // of the next byte
	word []byte
	from pos // of the word
}

func newLexer(r io.Reader) *lexer { return &lexer{r: bufio.NewReaderSize(r, 1<<18), at: pos{1, 1}} }

func (l *lexer) take() (byte, error) {
	c, err := l.r.ReadByte()
	if err != nil {
		return 0, err
	}
	if c == '\n' {
		l.at.line++
		l.at.col = 0
	}
	l.at.col++
	return c, nil
}

func (l *lexer) peek() byte {
	b, err := l.r.Peek(1)
	if err != nil {
		return 0
	}
	return b[0]
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

// next reads the next word; an empty one stands for the end of the text.
func (l *lexer) next() error {
	l.word = l.word[:0]
	for {
		l.from = l.at
		c, err := l.take()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == '/' && l.peek() == '/':
			for c != '\n' {
				if c, err = l.take(); err != nil {
					return ignoreEOF(err)
				}
			}
		case c == '/' && l.peek() == '*':
			if err := l.comment(); err != nil {
				return err
			}
		case !wordByte(c):
			l.word = append(l.word, c)
			return nil
		default:
			for l.word = append(l.word, c); wordByte(l.peek()); l.word = append(l.word, c) {
				if c, err = l.take(); err != nil {
					return err
				}
				if len(l.word) == maxWord {
					return l.from.errorf("a word is longer than %d bytes", maxWord)
				}
			}
			return nil
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// comment skips a comment whose slash was taken.
func (l *lexer) comment() error {
	if _, err := l.take(); err != nil {
		return err
	}
	for last := byte(0); ; {
		c, err := l.take()
		if errors.Is(err, io.EOF) {
			return l.from.errorf("a comment is not closed")
		}
		if err != nil {
			return err
		}
		if last == '*' && c == '/' {
			return nil
		}
		last = c
	}
}
