package gen

import (
	"context"
	"testing"

	"perfsim/io/format"
	"perfsim/io/formats"
)

// Every text is read by its reader and has as many rows as its size allows.
func TestTexts(t *testing.T) {
	for _, x := range Texts() {
		text, err := x.Make(200 << 10)
		if err != nil {
			t.Fatal(x.Name, err)
		}
		if n := len(text); n < 100<<10 || n > 800<<10 {
			t.Errorf("%s: %d bytes", x.Name, n)
		}
		src, err := format.FromBytes("x", text)
		if err != nil {
			t.Fatal(x.Name, err)
		}
		imp, err := formats.Find(src, "")
		if err != nil {
			t.Error(x.Name, err)
			continue
		}
		rows := 0
		if imp.Graph != nil {
			g, err := imp.Graph(context.Background(), src, format.Options{Jobs: 1})
			if err != nil {
				t.Error(x.Name, err)
				continue
			}
			rows = g[0].NumOps()
		} else {
			m, err := imp.Module(context.Background(), src, format.Options{Jobs: 1})
			if err != nil {
				t.Error(x.Name, err)
				continue
			}
			rows = m.Instr.Len()
		}
		if rows < 200<<10/1200 {
			t.Errorf("%s by %s: %d rows", x.Name, imp.Name, rows)
		}
	}
}
