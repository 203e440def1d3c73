package neuronprofile

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds on untrusted input. An instruction of the real files takes about
// 2 KB and five levels.
const (
	maxDepth   = 128
	maxElement = 16 << 20
	maxKey     = 4096
	readSize   = 1 << 18
)

// scanner walks JSON text without building values: it finds where the
// elements of the top-level arrays begin and end, which takes knowing strings
// and brackets only. Memory is one element.
type scanner struct {
	r    io.Reader
	name string
	buf  []byte
	pos  int   // next byte in buf
	base int64 // offset of buf[0] in the input
	eof  bool
	err  error
	open [maxDepth]byte // what closes each open bracket
}

// posError is an error at a byte offset of the (unwrapped) input.
type posError struct {
	offset int64
	err    error
}

func (e *posError) Error() string { return fmt.Sprintf("byte %d: %v", e.offset, e.err) }
func (e *posError) Unwrap() error { return e.err }

func errorAt(offset int64, format string, args ...any) error {
	return &posError{offset, fmt.Errorf(format, args...)}
}

// readError is an error of the input without its name, which the caller adds
// to every error.
type readError struct {
	err  error
	name string
}

func (e *readError) Error() string { return strings.TrimPrefix(e.err.Error(), e.name+": ") }
func (e *readError) Unwrap() error { return e.err }

func newScanner(r io.Reader, name string) *scanner {
	return &scanner{r: r, name: name, buf: make([]byte, 0, readSize)}
}

func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// fill drops what was read and reads more: false at the end or on an error.
func (s *scanner) fill() bool {
	if s.eof {
		return false
	}
	s.base += int64(len(s.buf))
	s.buf = s.buf[:cap(s.buf)]
	s.pos = 0
	for empty := 0; ; empty++ {
		n, err := s.r.Read(s.buf)
		if err == nil && n == 0 && empty == 100 {
			err = io.ErrNoProgress
		}
		if err != nil {
			s.eof = true
			if !errors.Is(err, io.EOF) {
				s.err = &posError{s.base + int64(n), &readError{err, s.name}}
			}
		}
		if n > 0 || err != nil {
			s.buf = s.buf[:n]
			return n > 0
		}
	}
}

// ended returns the error for input that stops too early.
func (s *scanner) ended(what string) error {
	if s.err != nil {
		return s.err
	}
	return errorAt(s.offset(), "the input ends inside %s", what)
}

// next skips white space and returns the next byte without taking it, or 0
// at the end of the input.
func (s *scanner) next() byte {
	for {
		for s.pos < len(s.buf) {
			c := s.buf[s.pos]
			if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				return c
			}
			s.pos++
		}
		if !s.fill() {
			return 0
		}
	}
}

// expect takes the byte c, after white space.
func (s *scanner) expect(c byte, where string) error {
	switch got := s.next(); {
	case got == c:
		s.pos++
		return nil
	case got == 0 && s.eof && s.pos == len(s.buf):
		return s.ended(where)
	default:
		return errorAt(s.offset(), "%q where %q should be, in %s", got, c, where)
	}
}

// value takes one value after white space and appends its text to dst; with
// keep false it only skips it.
func (s *scanner) value(dst []byte, keep bool) ([]byte, error) {
	c := s.next()
	limit := len(dst) + maxElement
	start := s.offset()
	take := func(n int) {
		if keep {
			dst = append(dst, s.buf[s.pos:s.pos+n]...)
		}
		s.pos += n
	}
	switch c {
	case 0:
		if s.eof && s.pos == len(s.buf) {
			return dst, s.ended("an object or array")
		}
		return dst, errorAt(start, "a zero byte where a value should be")
	case '"', '{', '[':
	case '}', ']', ',', ':':
		return dst, errorAt(start, "%q where a value should be", c)
	default:
		for {
			n := s.pos
			for n < len(s.buf) && !isDelimiter[s.buf[n]] {
				n++
			}
			done := n < len(s.buf)
			take(n - s.pos)
			if len(dst) > limit {
				return dst, errorAt(start, "a value of more than %d bytes", maxElement)
			}
			if done || !s.fill() {
				return dst, s.err
			}
		}
	}

	depth := 0
	inString, escaped := false, false
	for {
		b := s.buf[s.pos:]
		i := 0
	scan:
		for i < len(b) {
			if inString {
				if escaped {
					escaped = false
					i++
					continue
				}
				for i < len(b) && b[i] != '"' && b[i] != '\\' {
					i++
				}
				if i == len(b) {
					break scan
				}
				i++
				if escaped = b[i-1] == '\\'; escaped {
					continue
				}
				inString = false
				if depth == 0 {
					take(i)
					return dst, nil
				}
				continue
			}
			for i < len(b) && !isStructure[b[i]] {
				i++
			}
			if i == len(b) {
				break scan
			}
			switch c := b[i]; c {
			case '"':
				inString = true
			case '{', '[':
				if depth == maxDepth {
					return dst, errorAt(s.offset()+int64(i), "nested deeper than %d levels", maxDepth)
				}
				s.open[depth] = c + 2 // '{' + 2 is '}', '[' + 2 is ']'
				depth++
			default:
				if depth == 0 || s.open[depth-1] != c {
					return dst, errorAt(s.offset()+int64(i), "%q closes what it did not open", c)
				}
				depth--
				if depth == 0 {
					take(i + 1)
					return dst, nil
				}
			}
			i++
		}
		take(len(b))
		if len(dst) > limit {
			return dst, errorAt(start, "an element of more than %d bytes", maxElement)
		}
		if !s.fill() {
			what := "an object or array"
			if inString {
				what = "a string"
			}
			return dst, s.ended(what)
		}
	}
}

var isDelimiter = table(" \n\t\r,]}:\"{[")
var isStructure = table("\"{}[]")

func table(set string) (t [256]bool) {
	for i := range len(set) {
		t[set[i]] = true
	}
	return t
}

// key takes an object key and the colon behind it.
func (s *scanner) key() (string, error) {
	if c := s.next(); c != '"' {
		if c == 0 && s.eof && s.pos == len(s.buf) {
			return "", s.ended("an object")
		}
		return "", errorAt(s.offset(), "%q where a key should be", c)
	}
	start := s.offset()
	raw, err := s.value(nil, true)
	if err != nil {
		return "", err
	}
	if len(raw) > maxKey {
		return "", errorAt(start, "a key of %d bytes", len(raw))
	}
	return string(raw[1 : len(raw)-1]), s.expect(':', "an object")
}

// separator takes a comma, or the byte that closes the list: more tells which.
func (s *scanner) separator(closing byte, where string) (more bool, err error) {
	switch c := s.next(); {
	case c == ',':
		s.pos++
		return true, nil
	case c == closing:
		s.pos++
		return false, nil
	case c == 0 && s.eof && s.pos == len(s.buf):
		return false, s.ended(where)
	default:
		return false, errorAt(s.offset(), "%q where ',' or %q should be, in %s", c, closing, where)
	}
}
