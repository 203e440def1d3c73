package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

// split returns the elements of the wanted sections as the splitter cuts
// them, each with its offset.
func split(r io.Reader) ([]string, error) {
	var out []string
	sp := &splitter{
		scan: newScanner(r),
		get:  func() *chunk { return &chunk{} },
		put: func(c *chunk) error {
			lo := 0
			for i, hi := range c.ends {
				out = append(out, fmt.Sprintf("%s %d at %d: %s", c.name, c.first+i, c.offs[i], c.buf[lo:hi]))
				lo = hi
			}
			return nil
		},
	}
	sp.take = sp.cut
	err := sp.file()
	for _, s := range sp.skipped {
		out = append(out, fmt.Sprintf("skipped %s: %d", s.name, s.count))
	}
	return out, err
}

func TestSplit(t *testing.T) {
	const text = ` { "x" : {"a":["]}"]} , "dma" : [ {"s":"}\\\"]"} , [1,[2]],"text",-1.5e3,true ,null ] , "y":[ ],"z":[1,"two",[3]],
	"dma":[{"b":{}}],"ham":[]} ` + "\n"
	want := []string{
		`dma 0 at 34: {"s":"}\\\"]"}`, `dma 1 at 51: [1,[2]]`, `dma 2 at 59: "text"`, `dma 3 at 66: -1.5e3`, `dma 4 at 73: true`, `dma 5 at 79: null`,
		`dma 6 at 123: {"b":{}}`, "skipped x: 1", "skipped y: 0", "skipped z: 3",
	}
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text)), "halves": iotest.HalfReader(strings.NewReader(text))} {
		got, err := split(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestSplitRandom compares the elements with those the standard library
// finds, for text that arrives in pieces of any size.
func TestSplitRandom(t *testing.T) {
	value := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.Int64(), func(n int64) any { return n }),
		rapid.Map(rapid.StringOf(rapid.RuneFrom([]rune(`{}[]",:\ abü`))), func(s string) any { return s }))
	proptest.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.MapOfN(rapid.StringN(0, 4, 8), rapid.OneOf(value, rapid.Map(rapid.SliceOfN(value, 0, 3), func(l []any) any { return l })), 0, 4), 0, 5).Draw(t, "list")
		b, err := json.Marshal(map[string]any{"dma": list, "aaa": list, "zzz": 1})
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indent") {
			var buf bytes.Buffer
			if err := json.Indent(&buf, b, " ", "\t"); err != nil {
				t.Fatal(err)
			}
			b = buf.Bytes()
		}
		piece := rapid.IntRange(1, 40).Draw(t, "piece")
		got, err := split(&pieces{b, piece})
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		var plain struct{ DMA []json.RawMessage }
		if err := json.Unmarshal(b, &plain); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i, e := range plain.DMA {
			want = append(want, fmt.Sprintf("dma %d: %s", i, e))
		}
		n := 0
		for _, g := range got {
			if !strings.HasPrefix(g, "dma ") {
				continue
			}
			var i, at int
			if _, err := fmt.Sscanf(g, "dma %d at %d:", &i, &at); err != nil {
				t.Fatal(err)
			}
			text := g[strings.Index(g, ": ")+2:]
			if n >= len(want) || fmt.Sprintf("dma %d: %s", i, text) != want[n] || string(b[at:at+len(text)]) != text {
				t.Fatalf("%q, want %q", got, want)
			}
			n++
		}
		if n != len(want) {
			t.Fatalf("%d elements of %d", n, len(want))
		}
	})
}

// pieces gives at most n bytes at a time.
type pieces struct {
	rest []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
