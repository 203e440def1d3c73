package tarball

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzReader: no input makes the reader panic, hang or exceed its limits, and
// extraction leaves nothing outside its folder, and nothing at all on an error.
func FuzzReader(f *testing.F) {
	plain := build(f, file{"a", "hello"}, file{"d/b", "x"}, file{strings.Repeat("n", 120), "y"})
	f.Add(plain)
	f.Add(zip(f, plain, 1))
	f.Add(zip(f, plain, 1)[:60])
	f.Add([]byte{})
	f.Add(append(bytes.Clone(plain), "x"...))
	lim := Limits{Members: 100, Bytes: 1 << 20}
	f.Fuzz(func(t *testing.T, data []byte) {
		files, err := readAll(data, lim)
		total := 0
		for _, x := range files {
			total += len(x.data)
		}
		if total > 1<<20 || len(files) > 100 {
			t.Fatalf("%d members, %d bytes", len(files), total)
		}
		r, nerr := NewReader(ctx, bytes.NewReader(data), lim)
		if nerr != nil {
			if err == nil {
				t.Fatal("opened once, refused once")
			}
			return
		}
		top := t.TempDir()
		dir := filepath.Join(top, "dir")
		got, xerr := Extract(r, dir, ExtractOptions{})
		if xerr == nil && err != nil {
			t.Fatalf("extracted what cannot be read: %v", err)
		}
		if es, _ := os.ReadDir(top); len(es) > 1 {
			t.Fatal("wrote outside")
		}
		if xerr != nil {
			if _, err := os.Stat(dir); err == nil {
				t.Fatal("left a folder after", xerr)
			}
			return
		}
		for _, g := range got {
			if fi, err := os.Lstat(filepath.Join(dir, g.Path)); err != nil || fi.Size() != g.Size {
				t.Fatal(g, err)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}
