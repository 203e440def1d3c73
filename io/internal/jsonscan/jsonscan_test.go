package jsonscan

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func scan(text string) *Scanner {
	return New(iotest.OneByteReader(strings.NewReader(text)), Limits{Depth: 4, Element: 40}, nil)
}

// Every error says the line and column at which the text stops being what was
// asked for, whatever the pieces in which it arrives.
func TestPlaces(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{\"a\": 1,\n \"b\" [2]}", "f:2:6: an object: expected ':', found '['"},
		{"{\"a\":1\n\n}x", ""},
		{"{\"a\":1\n  2}", "f:2:3: an object: expected ',' or '}', found '2'"},
		{"{\n\"a\":{\"b\":]}}", "f:2:10: a value: ']' closes nothing that is open"},
		{"{\"a\":,}", "f:1:6: a value: expected a value, found ','"},
		{"{\"a\":\x00}", `f:1:6: a value: expected a value, found '\x00'`},
		{"{\"a\":[[[[[1]]]]]}", "f:1:10: a value: nested more than 4 levels deep"},
		{"{\"a\":\"" + strings.Repeat("x", 300<<10) + "\"}", "f:1:6: a value (in a string) is longer than 40 bytes"},
		{"{\"a\":\n\"x", "f:2:3: the input ends inside a value (in a string)"},
		{"{\"a\":\n[", "f:2:2: the input ends inside a value"},
		{"", "f:1:1: the input ends inside an object"},
	} {
		s := scan(c.text)
		err := s.Members("an object", func(string) error { _, err := s.Value("a value"); return err })
		got := ""
		if at, ok := errors.AsType[*Error](err); ok {
			got = at.In("f").Error()
		} else if err != nil {
			t.Errorf("%.30q: %v has no place", c.text, err)
		}
		if got != c.want {
			t.Errorf("%.30q: %s, want %s", c.text, got, c.want)
		}
	}
}

// A text that breaks off is told from one that is wrong, and from one that
// cannot be read.
func TestCut(t *testing.T) {
	broken := errors.New("disk on fire")
	for _, c := range []struct {
		in   io.Reader
		want error
	}{
		{strings.NewReader(`[1,`), io.ErrUnexpectedEOF},
		{strings.NewReader(`[1}`), nil},
		{io.MultiReader(strings.NewReader(`[1,`), iotest.ErrReader(broken)), broken},
	} {
		s := New(c.in, Limits{Depth: 4, Element: 40}, nil)
		err := s.Elements("a list", func() error { return s.Skip("an element") })
		for _, e := range []error{io.ErrUnexpectedEOF, broken} {
			if errors.Is(err, e) != (e == c.want) {
				t.Errorf("%v: is it %v?", err, e)
			}
		}
	}
}

// Part stops behind a key of the outermost object and nowhere else.
func TestPart(t *testing.T) {
	s := scan(`{"x":{"in":1},"in" :[7],"y":"in","in":2}`)
	var v Walk
	var got []string
	for {
		text, found, err := s.Part(&v, "in", "it")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
		if !found {
			break
		}
		inner, err := s.Value("what is in")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, "<"+string(inner)+">")
	}
	if want := `{"x":{"in":1},"in" :|<[7]>|,"y":"in","in":|<2>|}`; strings.Join(got, "|") != want {
		t.Errorf("%s, want %s", strings.Join(got, "|"), want)
	}
}

// Places count bytes of what the text was made from where it is told so.
func TestBytes(t *testing.T) {
	s := scan("[1,\n x:]")
	s.Bytes = func(off int64) int64 { return 100 + off }
	err := s.Elements("a list", func() error { return s.Skip("an element") })
	at, ok := errors.AsType[*Error](err)
	if !ok || fmt.Sprint(at.In("f")) != "f: byte 106: a list: expected ',' or ']', found ':'" {
		t.Errorf("%v", err)
	}
}
