package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestPages writes the pages twice: every command has one, with the same bytes.
func TestPages(t *testing.T) {
	var pages [2][]byte
	for k := range pages {
		dir := t.TempDir()
		if err := write(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"perfsim.1", "perfsim-whatif.1", "perfsim-run.1"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			pages[k] = append(pages[k], b...)
		}
	}
	if !bytes.Equal(pages[0], pages[1]) || !bytes.Contains(pages[0], []byte("perfsim-run")) {
		t.Errorf("pages differ or lack what is expected: %d and %d bytes", len(pages[0]), len(pages[1]))
	}
}
