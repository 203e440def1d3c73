package formats

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/io/format"
)

// archive makes a tar of pairs of a name and a text.
func archive(t *testing.T, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for k := 0; k < len(pairs); k += 2 {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: pairs[k], Mode: 0o644, Size: int64(len(pairs[k+1]))}
		if strings.HasSuffix(pairs[k], "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(pairs[k+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func packedText(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestArchives(t *testing.T) {
	const text = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"
	readable := archive(t, "d/", "", "d/README", "words", "d/m.hlo", text)
	for _, c := range []struct {
		name string
		b    []byte
		want []string
	}{
		{"a.tar", readable, []string{`a tar archive, not a module`, `such as "d/m.hlo" (hlo)`, `tar -xf `, `/a.tar d/m.hlo`}},
		{"a.tar.gz", packedText(t, readable), []string{`a tar archive`, `"d/m.hlo"`}},
		{"members.tar", archive(t, "m.gz", string(packedText(t, []byte(text)))), []string{`such as "m.gz" (hlo)`}},
		{"two words.tar", archive(t, "it's.hlo", text), []string{`two words.tar' 'it'\''s.hlo'`}},
		{"odd.tar", archive(t, "a\x1b[2J.hlo", text), []string{`such as "a\x1b[2J.hlo"`}},
		{"words.tar", archive(t, "a", "words", "b", ""), []string{`none of the files looked at is of a known format (2, the first "a")`}},
		{"cut.tar", readable[:1200], []string{`(1, the first "d/README")`}},
		{"empty.tar", archive(t, "d/", ""), []string{`a tar archive without files`}},
		{"a.zip", append([]byte("PK\x03\x04"), make([]byte, 100)...), []string{`a zip archive`}},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, c.b, 0o600); err != nil {
			t.Fatal(err)
		}
		src, err := format.Open(context.Background(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Find(src, "")
		src.Close()
		if err == nil {
			t.Errorf("%s is read", c.name)
			continue
		}
		for _, want := range c.want {
			if s := err.Error(); !strings.Contains(s, want) || strings.ContainsAny(s, "\x1b\n") {
				t.Errorf("%s: %q lacks %q", c.name, s, want)
			}
		}
	}
}

// TestArchiveOfModules has a public archive of many modules.
func TestArchiveOfModules(t *testing.T) {
	src, err := format.Open(context.Background(), datadir.Path(t, "hlo_corpus", "openxla__xla__embedded_test_modules.tar.gz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := Find(src, ""); err == nil || !strings.Contains(err.Error(), "(hlo)") {
		t.Errorf("error %v", err)
	}
}
