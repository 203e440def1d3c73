package jsonarray

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"perfsim/io/internal/jsonscan"
)

var trailing = regexp.MustCompile(`,\s*[\]}]`)

func walk(text, key string) (elems []string, rest []string, err error) {
	err = New(strings.NewReader(text)).Each(key, func(v jsonscan.Value, off int64) error {
		b := v.Text()
		if v.Kind() == jsonscan.String {
			b = []byte(`"` + string(b) + `"`)
		}
		if !trailing.MatchString(text) && !strings.HasPrefix(text[off:], string(b)) { // those commas are taken out
			panic("the offset is not that of the element")
		}
		elems = append(elems, string(b))
		return nil
	}, func(k string, b []byte) error { rest = append(rest, k+"="+string(b)); return nil })
	return elems, rest, err
}

func TestEach(t *testing.T) {
	for _, c := range []struct{ in, elems, rest, err string }{
		{`[]`, ``, ``, ``},
		{` [ 1 , "a]" ,{"x":[1,2]} ] `, `1|"a]"|{"x":[1,2]}`, ``, ``},
		{`{"a":1,"ev":[{"s":"\"}"},2],"z":{"q":[]}}`, `{"s":"\"}"}|2`, `a=1|z={"q":[]}`, ``},
		{`{}`, ``, ``, ``},
		{`{"ev":null}`, ``, `ev=null`, ``},
		{`[1,2`, `1|2`, ``, `byte 4: the input ends`},
		{`[1,]`, `1`, ``, ``},
		{`{"ev":[1, 2 , ] , "b":{"c":1,},}`, `1|2`, `b={"c":1,}`, ``},
		{`[,]`, ``, ``, `byte 1: an element: expected a value`},
		{`[1,,]`, `1`, ``, `byte 3: an element: expected a value`},
		{`[1 2]`, `1`, ``, `byte 3`},
		{`[1]x`, `1`, ``, `byte 3: 'x' after`},
		{`[ {"a":1},{"a":tru}]`, `{"a":1}`, ``, `byte 10: not JSON at byte 18: invalid character '}' in literal true (expecting 'e')`},
		{`7`, ``, ``, `byte 0`},
		{``, ``, ``, `byte 0: the input ends`},
		{`{"a" 1}`, ``, ``, `byte 5: the object: expected ':'`},
		{`["` + "\\", ``, ``, `byte 3: the input ends inside`},
		{strings.Repeat(`[`, 300), ``, ``, `nested more than 128 levels`},
	} {
		elems, rest, err := walk(c.in, "ev")
		if got := strings.Join(elems, "|"); got != c.elems {
			t.Errorf("%.40s: elements %s, want %s", c.in, got, c.elems)
		}
		if got := strings.Join(rest, "|"); got != c.rest {
			t.Errorf("%.40s: rest %s, want %s", c.in, got, c.rest)
		}
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%.40s: error %v, want %q", c.in, err, c.err)
		}
	}
}

// Whatever is valid JSON with an array at the top, and not nested too deep, is
// split as encoding/json splits it.
func FuzzEach(f *testing.F) {
	f.Add(`[1,{"a":"]"},[2,[3]],"x\"y"]`)
	f.Add(`{"traceEvents":[{}],"b":[1]}`)
	f.Fuzz(func(t *testing.T, text string) {
		elems, _, err := walk(text, "traceEvents")
		var want []json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return
		}
		if err != nil && strings.Contains(err.Error(), "nested more than") && strings.Count(text, "[")+strings.Count(text, "{") > maxDepth {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(elems) != len(want) {
			t.Fatalf("%q: %d elements, want %d", text, len(elems), len(want))
		}
		for i := range want {
			if elems[i] != string(want[i]) {
				t.Fatalf("%q: element %d is %q, want %q", text, i, elems[i], want[i])
			}
		}
	})
}
