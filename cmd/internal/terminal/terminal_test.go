package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestEscape(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain µ 漢字 🙂\tx\n", "plain µ 漢字 🙂\tx\n"},
		{"a\r\nb", `a\u000d` + "\nb"},
		{"a\rb", `a\u000db`},
		{"\x1b[31m\x1b]0;t\a", `\u001b[31m\u001b]0;t\u0007`},
		{"\x00\x7f\u009b2J", `\u0000\u007f\u009b2J`},
		{"evil\u202egpj.exe\u2066x\u200f\u061c\u2028", `evil\u202egpj.exe\u2066x\u200f\u061c\u2028`},
		{"bad \xff\x9b bytes \xe2\x80", `bad \xff\x9b bytes \xe2\x80`},
	} {
		if got := escape(c.in); got != c.want {
			t.Errorf("%q became %q, want %q", c.in, got, c.want)
		}
		// However the text is cut into writes.
		for n := 1; n <= len(c.in); n++ {
			var b bytes.Buffer
			w := NewWriter(&b)
			for s := c.in; s != ""; s = s[min(n, len(s)):] {
				if k, err := w.Write([]byte(s[:min(n, len(s))])); err != nil || k != min(n, len(s)) {
					t.Fatal(k, err)
				}
			}
			if err := w.Flush(); err != nil || b.String() != c.want {
				t.Errorf("%q in pieces of %d became %q, want %q", c.in, n, b.String(), c.want)
			}
		}
	}
}

// Escapes of characters are the same string within JSON.
func TestJSONStaysTheSame(t *testing.T) {
	in := "a\u202eb\x1b\u0085c"
	text, _ := json.Marshal(in)
	var got string
	if err := json.Unmarshal([]byte(escape(string(text))), &got); err != nil || got != in {
		t.Errorf("%q came back as %q, %v", in, got, err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestErrorsAreKept(t *testing.T) {
	full := errors.New("full")
	w := NewWriter(failing{full})
	w.Write([]byte("x"))
	if !errors.Is(w.Err(), full) || !errors.Is(w.Flush(), full) {
		t.Error("the error of the writer below is lost")
	}
}

func TestMessage(t *testing.T) {
	long := strings.Repeat("k", 70_000)
	got := Message(errors.New("f.json:3:4: key \"" + long + "\" is\x1b[2J unknown"))
	if len(got) > 1000 || !strings.HasPrefix(got, `f.json:3:4: key "kkk`) || !strings.HasSuffix(got, `is\u001b[2J unknown`) || !strings.Contains(got, "bytes left out") {
		t.Errorf("message %q", got)
	}
	if got := Message(errors.New(strings.Repeat("a b ", 30_000))); len(got) > 4200 {
		t.Errorf("%d bytes of a line", len(got))
	}
	if got := Message(errors.New(strings.Repeat("x\n", 3000))); strings.Count(got, "\n") != mostLines {
		t.Errorf("%d lines", strings.Count(got, "\n"))
	}
	if got := Message(errors.New("/a/b/c.json: no such file")); got != "/a/b/c.json: no such file" {
		t.Errorf("message %q", got)
	}
}
