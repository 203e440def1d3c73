// Package jsonarray walks over the elements of one large JSON array without
// holding more than one of them: the array at the top of the text, or the
// value of a key of the object at the top.
package jsonarray

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Limits of one element.
const (
	MaxElement = 16 << 20 // bytes
	MaxDepth   = 128      // brackets within an element
)

// Walker reads elements.
type Walker struct {
	r   *bufio.Reader
	off int64 // of the next byte
	buf []byte
}

// New returns a walker over r.
func New(r io.Reader) *Walker { return &Walker{r: bufio.NewReaderSize(r, 1<<18)} }

// Offset returns the offset of the next byte.
func (w *Walker) Offset() int64 { return w.off }

// Errorf makes an error at the given byte offset.
func Errorf(off int64, format string, args ...any) error {
	return fmt.Errorf("byte %d: "+format, append([]any{off}, args...)...)
}

// Each calls elem for every element of the array at the top, or of the array
// under key of the object at the top; other members of that object are given
// to rest, where not nil, with their key and text. The slices are reused.
func (w *Walker) Each(key string, elem func(text []byte, off int64) error, rest func(key string, text []byte) error) error {
	c, err := w.space()
	if err != nil {
		return err
	}
	switch c {
	case '[':
		if err := w.array(elem); err != nil {
			return err
		}
	case '{':
		if err := w.object(key, elem, rest); err != nil {
			return err
		}
	default:
		return Errorf(w.off-1, "%q where an array or an object should start", c)
	}
	if c, err = w.space(); err == nil {
		return Errorf(w.off-1, "%q after the end of the value", c)
	} else if !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

// array reads the elements of an array whose bracket was taken.
func (w *Walker) array(elem func([]byte, int64) error) error {
	for first := true; ; first = false {
		c, err := w.space()
		if err != nil {
			return err
		}
		if c == ']' {
			if first {
				return nil
			}
			return Errorf(w.off-1, "an element is missing before ]")
		}
		start := w.off - 1
		text, err := w.value(c)
		if err != nil {
			return err
		}
		if err := elem(text, start); err != nil {
			return err
		}
		if c, err = w.space(); err != nil {
			return err
		}
		if c == ']' {
			return nil
		}
		if c != ',' {
			return Errorf(w.off-1, "%q between two elements", c)
		}
	}
}

// object reads the members of an object whose brace was taken.
func (w *Walker) object(key string, elem func([]byte, int64) error, rest func(string, []byte) error) error {
	for first := true; ; first = false {
		c, err := w.space()
		if err != nil {
			return err
		}
		if c == '}' && first {
			return nil
		}
		if c != '"' {
			return Errorf(w.off-1, "%q where a key should be", c)
		}
		text, err := w.value(c)
		if err != nil {
			return err
		}
		name := string(text[1 : len(text)-1])
		if c, err = w.space(); err != nil {
			return err
		}
		if c != ':' {
			return Errorf(w.off-1, "%q where a colon should be", c)
		}
		if c, err = w.space(); err != nil {
			return err
		}
		if name == key && c == '[' {
			err = w.array(elem)
		} else if text, err = w.value(c); err == nil && rest != nil {
			err = rest(name, text)
		}
		if err != nil {
			return err
		}
		if c, err = w.space(); err != nil {
			return err
		}
		if c == '}' {
			return nil
		}
		if c != ',' {
			return Errorf(w.off-1, "%q between two members", c)
		}
	}
}

// space skips white space and takes the next byte.
func (w *Walker) space() (byte, error) {
	for {
		c, err := w.next()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
	}
}

func (w *Walker) next() (byte, error) {
	c, err := w.r.ReadByte()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("byte %d: the input ends too early: %w", w.off, io.ErrUnexpectedEOF)
		}
		return 0, err
	}
	w.off++
	return c, nil
}

// value takes the value that starts with c.
func (w *Walker) value(c byte) ([]byte, error) {
	start := w.off - 1
	w.buf = append(w.buf[:0], c)
	depth := 0
	for {
		switch c {
		case '"':
			if err := w.str(start); err != nil {
				return nil, err
			}
		case '{', '[':
			if depth++; depth > MaxDepth {
				return nil, Errorf(w.off-1, "nested deeper than %d", MaxDepth)
			}
		case '}', ']':
			depth--
		}
		if depth == 0 && (c == '"' || c == '}' || c == ']') {
			return w.buf, nil
		}
		if depth == 0 {
			// A bare word ends before what cannot belong to it.
			b, err := w.r.Peek(1)
			if err != nil {
				return w.buf, nil
			}
			switch b[0] {
			case ',', ']', '}', ' ', '\n', '\t', '\r', ':', '"':
				return w.buf, nil
			}
		}
		var err error
		if c, err = w.next(); err != nil {
			return nil, err
		}
		if w.buf = append(w.buf, c); len(w.buf) > MaxElement {
			return nil, Errorf(start, "an element is longer than %d bytes", MaxElement)
		}
	}
}

// str takes the rest of a string whose quote was taken.
func (w *Walker) str(start int64) error {
	for {
		c, err := w.next()
		if err != nil {
			return err
		}
		if w.buf = append(w.buf, c); len(w.buf) > MaxElement {
			return Errorf(start, "an element is longer than %d bytes", MaxElement)
		}
		switch c {
		case '"':
			return nil
		case '\\':
			if c, err = w.next(); err != nil {
				return err
			}
			w.buf = append(w.buf, c)
		}
	}
}
