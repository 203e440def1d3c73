// Package jsonarray walks over the elements of one large JSON array without
// holding more than one of them: the array at the top of the text, or the
// value of a key of the object at the top.
package jsonarray

import (
	"errors"
	"fmt"
	"io"

	"perfsim/io/internal/jsonscan"
)

// Limits of one element.
const (
	maxElement = 16 << 20 // bytes
	maxDepth   = 128      // brackets around it and within
)

// Walker reads elements.
type Walker struct {
	s    *jsonscan.Scanner
	tape jsonscan.Tape
}

// New returns a walker over r.
func New(r io.Reader) *Walker {
	s := jsonscan.New(r, jsonscan.Limits{Depth: maxDepth, Element: maxElement}, nil)
	s.Bytes = func(off int64) int64 { return off }
	return &Walker{s: s}
}

// Offset returns the offset of the next byte.
func (w *Walker) Offset() int64 { return w.s.Offset() }

// errorf makes an error at the given byte offset.
func errorf(off int64, format string, args ...any) error {
	return fmt.Errorf("byte %d: "+format, append([]any{off}, args...)...)
}

// Each calls elem for every element of the array at the top, or of the array
// under key of the object at the top; other members of that object are given
// to rest, where not nil, with their key and text. Values and slices are reused.
// The error for a text that breaks off is io.ErrUnexpectedEOF.
func (w *Walker) Each(key string, elem func(v jsonscan.Value, off int64) error, rest func(key string, text []byte) error) error {
	err := w.each(key, elem, rest)
	if at, ok := errors.AsType[*jsonscan.Error](err); ok {
		return errorf(at.At.Off, "%w", at.Err)
	}
	return err
}

func (w *Walker) each(key string, elem func(jsonscan.Value, int64) error, rest func(string, []byte) error) error {
	s := w.s
	one := func() error {
		s.Peek()
		off := s.Offset()
		v, err := s.Parse(&w.tape, "an element")
		if err == nil {
			return elem(v, off)
		}
		if _, in := errors.AsType[*jsonscan.SyntaxError](err); in {
			return errorf(off, "%w", err)
		}
		return err
	}
	var err error
	switch c := s.Peek(); {
	case s.Ended():
		return s.Cut("the file")
	case c == '[':
		err = s.Elements("the array", one)
	case c == '{':
		err = s.Members("the object", func(name string) error {
			if name == key && s.Peek() == '[' {
				return s.Elements("the array", one)
			}
			text, err := s.Value("a member")
			if err == nil && rest != nil {
				err = rest(name, text)
			}
			return err
		})
	default:
		return s.Fail("%q where an array or an object should start", c)
	}
	if err != nil {
		return err
	}
	if c := s.Peek(); !s.Ended() {
		return s.Fail("%q after the end of the value", c)
	}
	if s.Err() != nil {
		return s.Cut("the file")
	}
	return nil
}
