package svg

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   []float64
	}{
		{0, 10, 5, []float64{0, 2, 4, 6, 8, 10}},
		{0, 47.5, 5, []float64{0, 10, 20, 30, 40, 50}},
		{24.2, 25.1, 5, []float64{24.2, 24.4, 24.6, 24.8, 25, 25.2}},
		{3, 3, 5, []float64{3}},
		{0, 1, 4, []float64{0, 0.5, 1}},
	} {
		got := Ticks(c.lo, c.hi, c.n)
		if len(got) != len(c.want) || slices.ContainsFunc(got, func(v float64) bool {
			return !slices.ContainsFunc(c.want, func(w float64) bool { return math.Abs(v-w) < 1e-9 })
		}) {
			t.Errorf("ticks of %v to %v: %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
}

// Whatever the text is, the picture is XML and the text is in it.
func TestTextIsText(t *testing.T) {
	for _, s := range []string{"a<b & \"c\"", "\x00\x1f", "\xff", "stream 7 (waits) µs", "</svg>", "\ufffe"} {
		p := New(100, 50, s)
		p.Text(1, 2, 12, "start", Ink, s)
		p.Upright(1, 2, 12, Ink, s)
		p.Dot(1, math.NaN(), 3, "none", Ink, s)
		p.Box(0, 0, -1, math.Inf(1), Ink, "", s)
		p.Path([]float64{0, 1, 2, -0.001}, 1, Ink, "4 2")
		p.Line(0, 0, 1, 1, 1, Ink, "")
		d := xml.NewDecoder(strings.NewReader(string(p.Bytes())))
		found := 0
		for {
			tok, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", s, err)
			}
			if text, ok := tok.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
				if strings.ContainsRune(s, '&') && string(text) != s {
					t.Errorf("%q became %q", s, text)
				}
				found++
			}
		}
		if found != 5 {
			t.Errorf("%q is there %d times, not 5", s, found)
		}
	}
}
