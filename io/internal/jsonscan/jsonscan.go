// Package jsonscan walks over JSON text in a sliding window without building
// values: it finds where elements begin and end, which takes knowing strings
// and brackets only. Memory is the largest value that is taken whole.
package jsonscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits bound what a text may ask for.
type Limits struct {
	Depth   int // levels of braces and brackets, at most MaxDepth
	Element int // bytes of a value that is taken whole
}

// MaxDepth is the largest bound on nesting.
const MaxDepth = 255

const windowSize = 256 << 10 // bytes read at a time

// Place is a position in the input: 1-based line and column, or a byte offset
// where the line is 0.
type Place struct {
	Line, Col int
	Off       int64
}

// Error is an error with its place.
type Error struct {
	At  Place
	Err error
}

// Error is the error without its place.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its place.
func (e *Error) Unwrap() error { return e.Err }

// In gives the error with the name of the file and the place.
func (e *Error) In(name string) error {
	if e.At.Line == 0 {
		return fmt.Errorf("%s: byte %d: %w", name, e.At.Off, e.Err)
	}
	return fmt.Errorf("%s:%d:%d: %w", name, e.At.Line, e.At.Col, e.Err)
}

// Scanner walks over JSON text.
type Scanner struct {
	// Bytes, where set, has places count bytes and not lines: it gives the byte
	// of the input from which the text at an offset was made.
	Bytes func(off int64) int64

	r        io.Reader
	limits   Limits
	buf      []byte
	pos, end int // buf[pos:end] is unread
	mark     int // start of what has to stay in the window, -1 for nothing
	base     int64
	eof      bool
	rerr     error // what ended the input, other than its end
	tell     func(int64)

	line    int   // newlines before counted
	counted int   // newlines are counted up to here
	bol     int64 // offset of the first byte of that line
}

// New returns a scanner of the text that r gives; tell, where not nil, is called with
// the number of bytes read.
func New(r io.Reader, limits Limits, tell func(int64)) *Scanner {
	limits.Depth = min(limits.Depth, MaxDepth)
	return &Scanner{r: r, limits: limits, buf: make([]byte, windowSize), mark: -1, tell: tell}
}

// Discard passes over n bytes, fewer at the end of the input.
func (s *Scanner) Discard(n int) {
	for s.end < n && s.fill() {
	}
	s.pos = min(n, s.end)
}

// Offset returns how much of the text is behind the scanner.
func (s *Scanner) Offset() int64 { return s.base + int64(s.pos) }

// Ended reports whether all that could be read was taken. Err says why.
func (s *Scanner) Ended() bool { return s.pos >= s.end }

// Err is the error that ended the input, nil at its end.
func (s *Scanner) Err() error { return s.rerr }

// Here returns the place of the next byte.
func (s *Scanner) Here() Place { return s.at(s.pos) }

// Fail returns an error at the next byte.
func (s *Scanner) Fail(format string, args ...any) error { return s.fail(s.pos, format, args...) }

// fill reads more input behind end. It returns false at the end of the input
// and where reading failed; see rerr.
func (s *Scanner) fill() bool {
	if s.eof {
		return false
	}
	keep := s.pos
	if s.mark >= 0 {
		keep = min(keep, s.mark)
	}
	if s.end == len(s.buf) {
		if keep > 0 && (keep >= len(s.buf)/2 || s.end-keep < len(s.buf)/2) {
			s.count(keep)
			copy(s.buf, s.buf[keep:s.end])
			s.base += int64(keep)
			s.pos -= keep
			s.end -= keep
			s.counted -= keep
			if s.mark >= 0 {
				s.mark -= keep
			}
		} else {
			bigger := make([]byte, 2*len(s.buf))
			copy(bigger, s.buf[:s.end])
			s.buf = bigger
		}
	}
	for {
		n, err := s.r.Read(s.buf[s.end:])
		s.end += n
		if err != nil {
			s.eof = true
			if !errors.Is(err, io.EOF) {
				s.rerr = err
			}
		}
		if n > 0 {
			if s.tell != nil {
				s.tell(s.base + int64(s.end))
			}
			return true
		}
		if err != nil {
			return false
		}
	}
}

// count advances the line count to buf[p].
func (s *Scanner) count(p int) {
	if p <= s.counted || s.Bytes != nil {
		return
	}
	seg := s.buf[s.counted:p]
	if n := bytes.Count(seg, newline); n > 0 {
		s.line += n
		s.bol = s.base + int64(s.counted+bytes.LastIndexByte(seg, '\n')+1)
	}
	s.counted = p
}

var newline = []byte{'\n'}

// at returns the place of buf[p]; p must not go back behind an earlier call.
func (s *Scanner) at(p int) Place {
	off := s.base + int64(p)
	if s.Bytes != nil {
		return Place{Off: s.Bytes(off)}
	}
	s.count(p)
	return Place{Line: s.line + 1, Col: int(off-s.bol) + 1, Off: off}
}

func (s *Scanner) fail(p int, format string, args ...any) error {
	return &Error{s.at(p), fmt.Errorf(format, args...)}
}

// Cut is the error of an input that ends inside what.
func (s *Scanner) Cut(what string) error {
	if s.rerr != nil {
		if _, ok := errors.AsType[*Error](s.rerr); ok {
			return s.rerr
		}
		// The source names itself; the place does that here.
		err := s.rerr
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return s.fail(s.end, "the input cannot be read on: %w", err)
	}
	return &Error{s.at(s.end), cut(what)}
}

// cut is the error of an input that ends inside what it says. It is
// io.ErrUnexpectedEOF.
type cut string

func (c cut) Error() string      { return "the input ends inside " + string(c) }
func (cut) Is(target error) bool { return target == io.ErrUnexpectedEOF }

// Peek skips white space and returns the next byte without taking it, 0 at
// the end of the input.
func (s *Scanner) Peek() byte {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ' ', '\n', '\t', '\r':
				s.pos++
			default:
				return c
			}
		}
		if !s.fill() {
			return 0
		}
	}
}

// Expect takes the byte c, which must come next.
func (s *Scanner) Expect(c byte, what string) error {
	switch got := s.Peek(); {
	case got == c:
		s.pos++
		return nil
	case s.pos >= s.end:
		return s.Cut(what)
	default:
		return s.fail(s.pos, "%s: expected %q, found %q", what, c, got)
	}
}

// Key takes a member's key and the colon behind it. Escapes are not decoded:
// no key that matters has any.
func (s *Scanner) Key(what string) (string, error) {
	if c := s.Peek(); c != '"' {
		if s.pos >= s.end {
			return "", s.Cut(what)
		}
		return "", s.fail(s.pos, "%s: expected a key, found %q", what, c)
	}
	raw, err := s.Value("a key")
	if err != nil {
		return "", err
	}
	key := string(raw[1 : len(raw)-1])
	return key, s.Expect(':', what)
}

// Members calls f for every member of the object that comes next.
func (s *Scanner) Members(what string, f func(key string) error) error {
	if err := s.Expect('{', what); err != nil {
		return err
	}
	if s.Peek() == '}' {
		s.pos++
		return nil
	}
	for {
		key, err := s.Key(what)
		if err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		if more, err := s.More('}', what); !more {
			return err
		}
	}
}

// Elements calls f for every element of the array that comes next; null is an
// empty array.
func (s *Scanner) Elements(what string, f func() error) error {
	if s.Peek() == 'n' {
		return s.Skip(what)
	}
	if err := s.Expect('[', what); err != nil {
		return err
	}
	if s.Peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if s.Peek() == 0 && s.pos >= s.end {
			return s.Cut(what)
		}
		if err := f(); err != nil {
			return err
		}
		if more, err := s.More(']', what); !more {
			return err
		}
	}
}

// More takes a comma (true) or the closing byte (false). A comma before the
// closing byte, as programs leave that print JSON by hand, is passed over.
func (s *Scanner) More(closing byte, what string) (bool, error) {
	switch c := s.Peek(); {
	case s.pos >= s.end:
		return false, s.Cut(what)
	case c == ',':
		s.pos++
		if s.Peek() == closing && s.pos < s.end {
			s.pos++
			return false, nil
		}
		return true, nil
	case c == closing:
		s.pos++
		return false, nil
	default:
		return false, s.fail(s.pos, "%s: expected ',' or %q, found %q", what, closing, c)
	}
}

// Value takes the next value and returns its bytes, valid until the next call.
func (s *Scanner) Value(what string) ([]byte, error) {
	if s.Peek() == 0 && s.pos >= s.end {
		return nil, s.Cut(what)
	}
	s.mark = s.pos
	defer func() { s.mark = -1 }()
	var v Walk
	if _, err := s.walk(&v, "", what); err != nil {
		return nil, err
	}
	return s.buf[s.mark:s.pos], nil
}

// Skip takes the next value without keeping it.
func (s *Scanner) Skip(what string) error {
	if s.Peek() == 0 && s.pos >= s.end {
		return s.Cut(what)
	}
	var v Walk
	_, err := s.walk(&v, "", what)
	return err
}

// Part takes the value that comes next up to behind the colon of a key of the
// outermost object and returns true, or what is left of the value: calls go on
// where the one before stopped, and what lies behind the colon is the caller's
// to take. The text is valid until the next call.
func (s *Scanner) Part(v *Walk, key, what string) (text []byte, found bool, err error) {
	if !v.started && s.Peek() == 0 && s.Ended() {
		return nil, false, s.Cut(what)
	}
	s.mark = s.pos
	defer func() { s.mark = -1 }()
	found, err = s.walk(v, key, what)
	return s.buf[s.mark:s.pos], found, err
}

// Walk is the state of a walk over one value.
type Walk struct {
	depth   int
	object  [MaxDepth/64 + 1]uint64 // bit d: level d is an object
	started bool
}

// What a byte means to walk.
const (
	plain = iota
	quote
	opening
	closing
)

var meaning = [256]uint8{'"': quote, '{': opening, '[': opening, '}': closing, ']': closing}

// walk moves behind the value at pos. Where stop is not empty it stops behind
// the colon of that key of the outermost object and returns true; the next call
// goes on from there. The input is kept from mark on, which must be set then.
func (s *Scanner) walk(v *Walk, stop, what string) (bool, error) {
	if !v.started {
		v.started = true
		switch c := s.buf[s.pos]; {
		case meaning[c] == opening, c == '"':
		case meaning[c] == closing, c == ',', c == ':', c == 0:
			return false, s.fail(s.pos, "%s: expected a value, found %q", what, c)
		default:
			return false, s.scalar()
		}
	}
	for {
		b := s.buf[:s.end]
		i := toBracket(b, s.pos)
		s.pos = i
		if i == len(b) {
			if err := s.grow(what); err != nil {
				return false, err
			}
			continue
		}
		switch meaning[b[i]] {
		case opening:
			if v.depth++; v.depth > s.limits.Depth {
				return false, s.fail(i, "%s: nested more than %d levels deep", what, s.limits.Depth)
			}
			bit := uint64(1) << (v.depth & 63)
			if b[i] == '{' {
				v.object[v.depth>>6] |= bit
			} else {
				v.object[v.depth>>6] &^= bit
			}
			s.pos++
		case closing:
			object := v.object[v.depth>>6]>>(v.depth&63)&1 == 1
			if v.depth == 0 || object != (b[i] == '}') {
				return false, s.fail(i, "%s: %q closes nothing that is open", what, b[i])
			}
			s.pos++
			if v.depth--; v.depth == 0 {
				return false, nil
			}
		case quote:
			start := s.base + int64(i)
			if err := s.quoted(what); err != nil {
				return false, err
			}
			if v.depth == 0 {
				return false, nil
			}
			if stop != "" && v.depth == 1 && s.base+int64(s.pos)-start == int64(len(stop)+2) &&
				string(s.buf[int(start-s.base)+1:s.pos-1]) == stop && s.Peek() == ':' {
				s.pos++
				return true, nil
			}
		}
	}
}

// grow makes more input available to a walk.
func (s *Scanner) grow(what string) error {
	if s.mark >= 0 && s.pos-s.mark > s.limits.Element {
		return s.fail(s.mark, "%s is longer than %d bytes", what, s.limits.Element)
	}
	if !s.fill() {
		return s.Cut(what)
	}
	return nil
}

// quoted takes the string that starts at pos.
func (s *Scanner) quoted(what string) error {
	s.pos++
	for {
		b := s.buf[:s.end]
		i := toQuote(b, s.pos)
		s.pos = i
		switch {
		case i == len(b):
		case b[i] == '"':
			s.pos++
			return nil
		case i+1 < len(b):
			s.pos += 2
			continue
		}
		if err := s.grow(what + " (in a string)"); err != nil {
			return err
		}
	}
}

// scalar takes a number, true, false or null.
func (s *Scanner) scalar() error {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ',', '}', ']', ':', ' ', '\n', '\t', '\r', '"', '{', '[':
				return nil
			}
			s.pos++
		}
		if s.mark >= 0 && s.pos-s.mark > s.limits.Element {
			return s.fail(s.mark, "a value is longer than %d bytes", s.limits.Element)
		}
		if !s.fill() {
			if s.rerr != nil {
				return s.Cut("a value")
			}
			return nil
		}
	}
}
