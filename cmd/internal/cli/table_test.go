package cli

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

func TestTable(t *testing.T) {
	var b strings.Builder
	tw := newTable(&b)
	fmt.Fprint(tw, "NAME\tµs\tREMARK\t\na long one\t1\t\t\nb\t\tso  it is\t\n\t\t\t\n")
	if err := tw.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "NAME        µs  REMARK\na long one  1\nb               so  it is\n\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestTrimmer writes a text in pieces: however it is cut, lines lose the
// blanks at their ends and nothing else.
func TestTrimmer(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		var b, text strings.Builder
		w := &trimmer{w: &b}
		for _, s := range rapid.SliceOf(rapid.StringMatching(`[a \nµ]*`)).Draw(t, "pieces") {
			text.WriteString(s)
			if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
				t.Fatalf("%d of %d bytes: %v", n, len(s), err)
			}
		}
		lines := strings.Split(text.String(), "\n")
		for k := range lines {
			lines[k] = strings.TrimRight(lines[k], " ")
		}
		if want := strings.Join(lines, "\n"); b.String() != want {
			t.Fatalf("%q became %q", text.String(), b.String())
		}
	})
}
