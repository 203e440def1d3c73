package emit

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// What is written past the page cache is what was written, whatever the
// sizes of the writes, up to the last byte.
func TestDirect(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 9<<20+123)
	for i := range text {
		text[i] = byte(r.Uint32())
	}
	for _, c := range []struct {
		size   int
		cached int64
	}{{0, 1 << 20}, {1000, 1 << 20}, {1 << 20, 1 << 20}, {1<<20 + 1, 1 << 20}, {5 << 20, 1 << 20}, {6<<20 + 4096, 0}, {len(text), 1 << 20}, {len(text), 1 << 30}} {
		path := filepath.Join(t.TempDir(), "out")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		d := newDirect(f, c.cached)
		for rest := text[:c.size]; len(rest) > 0; {
			n := min(len(rest), r.IntN(300_000))
			if k, err := d.Write(rest[:n]); err != nil || k != n {
				t.Fatalf("%d of %d bytes: %v", k, n, err)
			}
			rest = rest[n:]
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, text[:c.size]) {
			t.Errorf("%d bytes, %d of them cached: %d came back, %v", c.size, c.cached, len(got), err)
		}
		if got := duplicated(t, path, int64(c.size)); !bytes.Equal(got, text[:c.size]) {
			t.Errorf("%d bytes: the copy has %d", c.size, len(got))
		}
	}
}

func duplicated(t *testing.T, path string, size int64) []byte {
	t.Helper()
	src, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.Create(path + ".copy")
	if err != nil {
		t.Fatal(err)
	}
	if err := duplicate(struct{ io.Writer }{dst}, dst, src, size); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(dst.Name())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// An error of the disk is told at the latest when the file is closed.
func TestDirectError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // not for writing
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := newDirect(f, 0)
	var werr error
	for range 4 {
		if _, werr = d.Write(make([]byte, 1<<20)); werr != nil {
			break
		}
	}
	if err := d.Close(); err == nil && werr == nil {
		t.Error("no error told")
	}
}
