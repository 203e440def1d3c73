package formats

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestSave(t *testing.T) {
	dir := t.TempDir()
	write := func(w io.Writer) error { _, err := io.WriteString(w, "hello"); return err }
	plain, packed := filepath.Join(dir, "a"), filepath.Join(dir, "a.gz")
	var out bytes.Buffer
	for _, p := range []string{plain, packed, "-", os.DevNull} {
		if err := Save(p, &out, write); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	if b, err := os.ReadFile(plain); err != nil || string(b) != "hello" || out.String() != "hello" {
		t.Errorf("%q, %v, %q", b, err, out.String())
	}
	b, err := os.ReadFile(packed)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(z); err != nil || string(b) != "hello" || !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("%q, %v, %v", b, err, z.Header)
	}
	// A device stays one; a failure leaves the old file and nothing beside it.
	if fi, err := os.Stat(os.DevNull); err != nil || fi.Mode().IsRegular() {
		t.Errorf("%s is %v, %v", os.DevNull, fi, err)
	}
	broken := errors.New("broken")
	if err := Save(plain, &out, func(w io.Writer) error { io.WriteString(w, "half"); return broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(plain); string(b) != "hello" {
		t.Errorf("the old file is %q", b)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%v is there", list)
	}
}
