package jsonscan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/valyala/fastjson"
)

// Members, elements, kinds and texts of one value, worked out by hand.
func TestTape(t *testing.T) {
	var tape Tape
	v, ok := tape.Parse([]byte(` {"a" : [1, "x\\n\u00e9", true ,null,[]] , "b":{}, "a":-2.5e3 ,"\u0063":false} `))
	if !ok || v.Kind() != Object {
		t.Fatal("no object")
	}
	a := v.Get("a") // the first of two
	if a.Kind() != Array || a.Len() != 5 || a.At(5).Kind() != Absent {
		t.Errorf("a is %s of %d", a.Kind(), a.Len())
	}
	if n, err := a.At(0).Uint64(); n != 1 || err != nil {
		t.Error(n, err)
	}
	if s := string(a.At(1).Bytes()); s != "x\\né" {
		t.Errorf("%q", s)
	}
	if a.At(2).Kind() != True || a.At(3).Kind() != Null || a.At(4).Len() != 0 || v.Get("c").Kind() != False {
		t.Error("kinds")
	}
	if got := string(v.AppendTo(nil)); got != `{"a":[1,"x\\n\u00e9",true,null,[]],"b":{},"a":-2.5e3,"\u0063":false}` {
		t.Error(got)
	}
	var keys []string
	for m := v.Members(); m.Ok(); m = m.Next() {
		keys = append(keys, string(m.Key())+"="+string(m.Value().Text()))
	}
	if got := strings.Join(keys, " "); got != `a=[1, "x\\n\u00e9", true ,null,[]] b={} a=-2.5e3 c=false` {
		t.Error(got)
	}
	if absent := v.Get("d").Get("e"); absent.Kind() != Absent || absent.Bytes() != nil || absent.Members().Ok() || absent.Elements().Ok() {
		t.Error("absent is something")
	}
}

// An error says where an element stops being JSON, whatever the pieces in which
// it arrives.
func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{`{"a":[1,"x",null]}`, `{"a":[1,"x",null]}`, ``},
		{`{"a":[1,"x,]",null , ],"b":{"c":"\\",},}`, `{"a":[1,"x,]",null],"b":{"c":"\\"}}`, ``},
		{`"x"`, `"x"`, ``},
		{` 12 `, `12`, ``},
		{`{"a":tru}`, ``, `not JSON at byte 8: invalid character '}' in literal true (expecting 'e')`},
		{` {"a":1 2}`, ``, `not JSON at byte 8: invalid character '2' after object key:value pair`},
		{`{"a":1`, ``, `the input ends inside it`},
		{`{"a":[[[[]]]]}`, ``, `it: nested more than 4 levels deep`},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			s := New(r, Limits{Depth: 4, Element: 60}, nil)
			s.Bytes = func(off int64) int64 { return off }
			var tape Tape
			v, err := s.Parse(&tape, "it")
			if got := string(v.AppendTo(nil)); got != c.want {
				t.Errorf("%s: %s", c.in, got)
			}
			if got := fmt.Sprint(err); c.err != "" && got != c.err || c.err == "" && err != nil {
				t.Errorf("%s: error %v, want %q", c.in, err, c.err)
			}
		}
	}
}

// What encoding/json takes is taken, in every piece, and what is taken is what
// the parser of whole documents takes, with the same values.
func FuzzTape(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":"\u0041\ud83d\ude00\q"}],"a":-1e5}`, `[nan,-Inf,+1,.5,1.2.3,-]`, `nul`, `-`, `[1`, "{\"\x01\":\"\\\"}", `[,]`, `{"a":1,}`, ` [ ] `} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var tape Tape
		v, ok := tape.Parse([]byte(text))
		if json.Valid([]byte(text)) && !ok && strings.Count(text, "[")+strings.Count(text, "{") < 128 {
			t.Fatalf("%q is refused", text)
		}
		var p fastjson.Parser
		want, err := p.Parse(text)
		if (err == nil) != ok {
			t.Fatalf("%q: %v, the other parser: %v", text, ok, err)
		}
		if ok {
			same(t, text, v, want)
		}
		s := New(iotest.OneByteReader(strings.NewReader(text)), Limits{Depth: 255, Element: 1 << 20}, nil)
		got, err := s.Parse(&tape, "it")
		if trimmed := strings.Trim(text, " \t\r\n"); ok && trimmed == text {
			if err != nil {
				t.Fatalf("%q in pieces: %v", text, err)
			}
			same(t, text, got, want)
		}
	})
}

func same(t *testing.T, text string, v Value, want *fastjson.Value) {
	if v.Kind().String() != want.Type().String() {
		t.Fatalf("%q: %s, want %s", text, v.Kind(), want.Type())
	}
	switch v.Kind() {
	case Object:
		m := v.Members()
		want.GetObject().Visit(func(key []byte, w *fastjson.Value) {
			if !m.Ok() || string(m.Key()) != string(key) {
				t.Fatalf("%q: key %q", text, key)
			}
			same(t, text, m.Value(), w)
			m = m.Next()
		})
		if m.Ok() {
			t.Fatalf("%q: more members", text)
		}
	case Array:
		list := want.GetArray()
		if v.Len() != len(list) {
			t.Fatalf("%q: %d elements, want %d", text, v.Len(), len(list))
		}
		for i, w := range list {
			same(t, text, v.At(i), w)
		}
	case String:
		if string(v.Bytes()) != string(want.GetStringBytes()) {
			t.Fatalf("%q: %q, want %q", text, v.Bytes(), want.GetStringBytes())
		}
	case Number:
		if string(v.Text()) != string(want.MarshalTo(nil)) {
			t.Fatalf("%q: %s", text, v.Text())
		}
	}
}
