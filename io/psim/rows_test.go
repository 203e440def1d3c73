package psim

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Columns read in pieces of any size are the columns, and damage is found
// whatever the pieces are.
func TestRowsInPieces(t *testing.T) {
	m := sample(300_000)
	file := encode(t, m, 1)
	path := filepath.Join(t.TempDir(), "x.psim")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	small := func(column string) bool {
		return !strings.HasPrefix(column, "instr.") && !strings.HasPrefix(column, "edges.")
	}
	open := func() *Rows {
		r, err := OpenRows(context.Background(), path, 2, true, small)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	r := open()
	part, err := r.Module(small)
	if err != nil {
		t.Fatal(err)
	}
	if part.Instr.Len() != 0 || part.Edges.Preds.Rows() != 0 || part.Lanes.Len() != m.Lanes.Len() || r.Rows("instr.elems") != 300_000 || r.Rows("x") != 0 || r.Column("x") != nil {
		t.Fatalf("%d instructions, %d lanes, %d rows of instr.elems", part.Instr.Len(), part.Lanes.Len(), r.Rows("instr.elems"))
	}
	columns := map[string][]byte{}
	for _, c := range m.Columns() {
		columns[c.Name()] = c.Raw()
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"instr.elems", "instr.opcode", "edges.words", "instr.dma_bytes"}).Draw(t, "column")
		c, want := r.Column(name), columns[name]
		for range 4 {
			n := min(rapid.SampledFrom([]int{1, 7, 4096, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize}).Draw(t, "bytes"), len(want))
			got := make([]byte, n)
			if err := c.Next(got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want[:n]) {
				t.Fatalf("column %s: %d bytes differ", name, n)
			}
			want = want[n:]
		}
		if err := c.Next(make([]byte, len(want)+1)); err == nil {
			t.Fatalf("column %s was read beyond its end", name)
		}
	})

	// One wrong bit in the third MiB of a column.
	var large *Column
	for i := range r.cols {
		if r.cols[i].Name == "instr.dma_bytes" {
			large = &r.cols[i]
		}
	}
	at := large.Offset + 2*chunkSize + 5
	file[at] ^= 4
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, piece := range []int{1000, chunkSize, 300_000 * 8} {
		c := open().Column("instr.dma_bytes")
		var err error
		read := 0
		for ; err == nil && read < 300_000*8; read += piece {
			err = c.Next(make([]byte, min(piece, 300_000*8-read)))
		}
		if err == nil || !strings.Contains(err.Error(), "column instr.dma_bytes, rows 262144 to 299999") || read-piece > 2*chunkSize {
			t.Errorf("in pieces of %d bytes, after %d: %v", piece, read, err)
		}
	}
}
