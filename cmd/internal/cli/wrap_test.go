package cli

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Lines are broken at blanks, numbers keep their units, what goes on stands
// below the value.
func TestWrapLine(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"short", "short\n"},
		{"note: " + strings.Repeat("word ", 20) + "end", "note: " + strings.TrimRight(strings.Repeat("word ", 15), " ") + "\n  " + strings.Repeat("word ", 5) + "end\n"},
		{"memory  " + strings.Repeat("x", 66) + " of 16 KiB more", "memory  " + strings.Repeat("x", 66) + " of\n        16 KiB more\n"},
		{strings.Repeat("y", 100), strings.Repeat("y", 100) + "\n"},
	} {
		if got := wrapLine(c[0]); got != c[1] {
			t.Errorf("wrapLine(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

// The head and the screens of run and explain fit 80 columns.
func TestTextFits(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"attention.bir.json", "loop.bir.json", "collective.bir.json", "tiled_matmul.bir.json"} {
		for _, args := range [][]string{{"run"}, {"run", "--loops", "trips"}, {"run", "--model", "calibrated"}, {"explain"}, {"explain", "--by", "op"}, {"explain", "--by", "source"},
			{"explain", "--model", "calibrated"}, {"memory"}} {
			out := perfsim(t, append(args, example(t, file))...)
			for _, line := range strings.Split(out, "\n") {
				if n := utf8.RuneCountInString(line); n > textWidth {
					t.Errorf("%v %s: %d columns: %s", args, file, n, line)
				}
			}
		}
	}
}
