package birjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits of what a text may ask for. They are far above any real module and
// far below what would hurt.
const (
	maxNesting = 200       // levels of braces and brackets
	maxLoops   = 64        // loops in loops
	maxElement = 64 << 20  // bytes of one instruction, allocation or attribute
	windowSize = 256 << 10 // bytes read at a time
)

// place is a position in the input: 1-based line and column of a text, or a
// byte offset of a binary input (line 0).
type place struct {
	line, col int
	off       int64
}

// posError is an error with its place.
type posError struct {
	at  place
	err error
}

func (e *posError) Error() string { return e.err.Error() }
func (e *posError) Unwrap() error { return e.err }

// text gives the error with file and place.
func (e *posError) text(name string) error {
	if e.at.line == 0 {
		return fmt.Errorf("%s: byte %d: %w", name, e.at.off, e.err)
	}
	return fmt.Errorf("%s:%d:%d: %w", name, e.at.line, e.at.col, e.err)
}

// mapper gives the offset in a binary input from which the text at an offset
// was made.
type mapper interface{ origin(off int64) int64 }

// scanner walks over JSON text in a sliding window.
type scanner struct {
	r        io.Reader
	buf      []byte
	pos, end int // buf[pos:end] is unread
	mark     int // start of what has to stay in the window, -1 for nothing
	base     int64
	eof      bool
	rerr     error // what ended the input, other than its end
	tell     func(int64)

	binary  mapper // set for a binary input
	line    int    // newlines before counted
	counted int    // newlines are counted up to here
	bol     int64  // offset of the first byte of that line
}

func newScanner(r io.Reader, tell func(int64)) *scanner {
	return &scanner{r: r, buf: make([]byte, windowSize), mark: -1, tell: tell}
}

// fill reads more input behind end. It returns false at the end of the input
// and where reading failed; see rerr.
func (s *scanner) fill() bool {
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
func (s *scanner) count(p int) {
	if p <= s.counted {
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
func (s *scanner) at(p int) place {
	off := s.base + int64(p)
	if s.binary != nil {
		return place{off: s.binary.origin(off)}
	}
	s.count(p)
	return place{line: s.line + 1, col: int(off-s.bol) + 1, off: off}
}

func (s *scanner) fail(p int, format string, args ...any) error {
	return &posError{s.at(p), fmt.Errorf(format, args...)}
}

// ended is the error of an input that ends inside what.
func (s *scanner) ended(what string) error {
	if s.rerr != nil {
		if _, ok := errors.AsType[*posError](s.rerr); ok {
			return s.rerr
		}
		// The source names itself; the place does that here.
		err := s.rerr
		if inner := errors.Unwrap(err); inner != nil {
			err = inner
		}
		return s.fail(s.end, "the input cannot be read on: %w", err)
	}
	return s.fail(s.end, "the input ends inside %s", what)
}

// peek skips white space and returns the next byte without taking it, 0 at
// the end of the input.
func (s *scanner) peek() byte {
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

// expect takes the byte c, which must come next.
func (s *scanner) expect(c byte, what string) error {
	switch got := s.peek(); {
	case got == c:
		s.pos++
		return nil
	case s.pos >= s.end:
		return s.ended(what)
	default:
		return s.fail(s.pos, "%s: expected %q, found %q", what, c, got)
	}
}

// key takes a member's key and the colon behind it. Escapes are not decoded:
// no key that matters has any.
func (s *scanner) key(what string) (string, error) {
	if c := s.peek(); c != '"' {
		if s.pos >= s.end {
			return "", s.ended(what)
		}
		return "", s.fail(s.pos, "%s: expected a key, found %q", what, c)
	}
	raw, err := s.value("a key")
	if err != nil {
		return "", err
	}
	key := string(raw[1 : len(raw)-1])
	return key, s.expect(':', what)
}

// members calls f for every member of the object that comes next.
func (s *scanner) members(what string, f func(key string) error) error {
	if err := s.expect('{', what); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		key, err := s.key(what)
		if err != nil {
			return err
		}
		if err := f(key); err != nil {
			return err
		}
		if more, err := s.more('}', what); !more {
			return err
		}
	}
}

// elements calls f for every element of the array that comes next; null is an
// empty array.
func (s *scanner) elements(what string, f func() error) error {
	if s.peek() == 'n' {
		return s.skip(what)
	}
	if err := s.expect('[', what); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if s.peek() == 0 && s.pos >= s.end {
			return s.ended(what)
		}
		if err := f(); err != nil {
			return err
		}
		if more, err := s.more(']', what); !more {
			return err
		}
	}
}

// more takes a comma (true) or the closing byte (false).
func (s *scanner) more(closing byte, what string) (bool, error) {
	switch c := s.peek(); {
	case s.pos >= s.end:
		return false, s.ended(what)
	case c == ',':
		s.pos++
		return true, nil
	case c == closing:
		s.pos++
		return false, nil
	default:
		return false, s.fail(s.pos, "%s: expected ',' or %q, found %q", what, closing, c)
	}
}

// value takes the next value and returns its bytes, valid until the next call.
func (s *scanner) value(what string) ([]byte, error) {
	if s.peek() == 0 && s.pos >= s.end {
		return nil, s.ended(what)
	}
	s.mark = s.pos
	defer func() { s.mark = -1 }()
	var v walk
	if _, err := s.walk(&v, false, what); err != nil {
		return nil, err
	}
	return s.buf[s.mark:s.pos], nil
}

// skip takes the next value without keeping it.
func (s *scanner) skip(what string) error {
	if s.peek() == 0 && s.pos >= s.end {
		return s.ended(what)
	}
	var v walk
	_, err := s.walk(&v, false, what)
	return err
}

// walk is the state of a walk over one value.
type walk struct {
	depth   int
	object  [maxNesting/64 + 1]uint64 // bit d: level d is an object
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

// walk moves behind the value at pos. With watch set it stops behind the
// colon of a key "blocks" of the outermost object and returns true; the next
// call goes on from there. The input is kept from mark on, which must be set
// then.
func (s *scanner) walk(v *walk, watch bool, what string) (bool, error) {
	if !v.started {
		v.started = true
		switch c := s.buf[s.pos]; {
		case meaning[c] == opening, c == '"':
		case meaning[c] == closing, c == ',', c == ':':
			return false, s.fail(s.pos, "%s: expected a value, found %q", what, c)
		default:
			return false, s.scalar()
		}
	}
	for {
		b := s.buf[:s.end]
		i := s.pos
		for i < len(b) && meaning[b[i]] == plain {
			i++
		}
		s.pos = i
		if i == len(b) {
			if err := s.grow(what); err != nil {
				return false, err
			}
			continue
		}
		switch meaning[b[i]] {
		case opening:
			if v.depth++; v.depth > maxNesting {
				return false, s.fail(i, "%s: nested more than %d levels deep", what, maxNesting)
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
			if watch && v.depth == 1 && s.base+int64(s.pos)-start == int64(len(blocksKey)) &&
				string(s.buf[int(start-s.base):s.pos]) == blocksKey && s.peek() == ':' {
				s.pos++
				return true, nil
			}
		}
	}
}

const blocksKey = `"blocks"`

// grow makes more input available to a walk.
func (s *scanner) grow(what string) error {
	if s.mark >= 0 && s.pos-s.mark > maxElement {
		return s.fail(s.mark, "%s is longer than %d bytes", what, maxElement)
	}
	if !s.fill() {
		return s.ended(what)
	}
	return nil
}

// quoted takes the string that starts at pos.
func (s *scanner) quoted(what string) error {
	s.pos++
	for {
		b := s.buf[:s.end]
		i := s.pos
		for i < len(b) && b[i] != '"' && b[i] != '\\' {
			i++
		}
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
func (s *scanner) scalar() error {
	for {
		for s.pos < s.end {
			switch c := s.buf[s.pos]; c {
			case ',', '}', ']', ':', ' ', '\n', '\t', '\r', '"', '{', '[':
				return nil
			}
			s.pos++
		}
		if s.mark >= 0 && s.pos-s.mark > maxElement {
			return s.fail(s.mark, "a value is longer than %d bytes", maxElement)
		}
		if !s.fill() {
			if s.rerr != nil {
				return s.ended("a value")
			}
			return nil
		}
	}
}
