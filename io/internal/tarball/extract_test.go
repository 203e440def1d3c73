package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"
)

func extract(t *testing.T, data []byte, dir string, opt ExtractOptions) ([]Extracted, error) {
	t.Helper()
	r, err := NewReader(ctx, bytes.NewReader(data), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return Extract(r, dir, opt)
}

// tree lists the files below dir with their contents, and empty folders.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var out []string
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if d.IsDir() {
			if rel != "." {
				out = append(out, filepath.ToSlash(rel)+"/")
			}
			return nil
		}
		b, err := os.ReadFile(p)
		out = append(out, filepath.ToSlash(rel)+"="+string(b))
		return err
	})
	sort.Strings(out)
	return strings.Join(out, " ")
}

func TestExtract(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "deep")
	data := build(t, file{"./a", "1"}, file{"d/e/f", "2"}, file{"d/g", ""})
	got, err := extract(t, data, dir, ExtractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || got[0] != (Extracted{"./a", "a", 1}) {
		t.Errorf("%+v", got)
	}
	if s := tree(t, dir); s != "a=1 d/ d/e/ d/e/f=2 d/g=" {
		t.Error(s)
	}
	// Again: refused as a whole, even though only one of the files exists.
	os.RemoveAll(filepath.Join(dir, "d"))
	if _, err := extract(t, data, dir, ExtractOptions{}); err == nil || !errors.Is(err, ErrFileExists) || !strings.Contains(err.Error(), "a: file exists") {
		t.Error(err)
	}
	if s := tree(t, dir); s != "a=1" {
		t.Error(s)
	}
	if _, err := extract(t, data, dir, ExtractOptions{Overwrite: true}); err != nil {
		t.Error(err)
	}
	flat := t.TempDir()
	if _, err := extract(t, data, flat, ExtractOptions{Flat: true, Names: []string{"d/e/f", "d/g", "d/g"}}); err != nil {
		t.Error(err)
	}
	if s := tree(t, flat); s != "f=2 g=" {
		t.Error(s)
	}
	some := t.TempDir()
	if _, err := extract(t, data, some, ExtractOptions{Names: []string{"d/g", "nope"}}); err == nil || !strings.Contains(err.Error(), `named "nope"`) {
		t.Error(err)
	}
	if _, err := extract(t, data, some, ExtractOptions{Names: []string{"a"}}); err != nil {
		t.Error(err)
	}
	if s := tree(t, some); s != "a=1" {
		t.Error(s)
	}
}

func TestExtractKeepsTimesAndUmask(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	when := time.Unix(1_700_000_000, 0)
	w.Add(ctx, Header{Name: "a", Mode: 0o4777, ModTime: when}, strings.NewReader(""), nil)
	w.Close()
	dir := t.TempDir()
	if _, err := extract(t, buf.Bytes(), dir, ExtractOptions{}); err != nil {
		t.Fatal(err)
	}
	fi, _ := os.Stat(filepath.Join(dir, "a"))
	if !fi.ModTime().Equal(when) || fi.Mode()&0o7111 != 0 {
		t.Errorf("%v %v", fi.ModTime(), fi.Mode())
	}
}

// member is a raw tar member, to write what NewWriter refuses.
type member struct {
	typ        byte
	name, link string
	data       string
}

func raw(t *testing.T, ms ...member) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, m := range ms {
		if m.typ == 0 {
			m.typ = tar.TypeReg
		}
		h := &tar.Header{Typeflag: m.typ, Name: m.name, Linkname: m.link, Size: int64(len(m.data)), Mode: 0o644}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestExtractRefuses: each archive fails with one error, and nothing is
// written anywhere.
func TestExtractRefuses(t *testing.T) {
	ok := member{name: "first.json", data: "good"}
	for _, c := range []struct {
		name string
		ms   []member
		want string
	}{
		{"climbs", []member{ok, {name: "../evil", data: "x"}}, "climbs out"},
		{"climbs inside", []member{ok, {name: "a/../../evil", data: "x"}}, "climbs out"},
		{"absolute", []member{ok, {name: "/tmp/evil.json", data: "x"}}, "extract it flat"},
		{"backslash", []member{ok, {name: `..\evil`, data: "x"}}, "backslash"},
		{"symbolic link", []member{ok, {typ: tar.TypeSymlink, name: "l", link: "/etc"}}, "symbolic link"},
		{"through a link", []member{{typ: tar.TypeSymlink, name: "l", link: "/tmp"}, {name: "l/evil"}}, "symbolic link"},
		{"hard link", []member{ok, {typ: tar.TypeLink, name: "l", link: "first.json"}}, "hard link"},
		{"device", []member{ok, {typ: tar.TypeChar, name: "null"}}, "special file"},
		{"pipe", []member{ok, {typ: tar.TypeFifo, name: "pipe"}}, "special file"},
		{"twice", []member{ok, {name: "./first.json", data: "x"}}, "second member"},
		{"file and folder", []member{ok, {name: "first.json/x", data: "x"}}, "which is a file"},
		{"folder and file", []member{{name: "d/x", data: "x"}, {name: "d", data: "x"}}, "second member"},
		{"folder over file", []member{ok, {typ: tar.TypeDir, name: "first.json/"}}, "second member"},
		{"long component", []member{ok, {name: strings.Repeat("n", 256), data: "x"}}, "component"},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "in", "out")
		_, err := extract(t, raw(t, c.ms...), dir, ExtractOptions{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if s := tree(t, top); s != "in/" {
			t.Errorf("%s: left %q", c.name, s)
		}
	}
	// An error at the very end, in the checksum, takes everything back too.
	gz := zip(t, build(t, file{"a", "1"}, file{"b", "2"}), 1)
	gz[len(gz)-8] ^= 1
	dir := t.TempDir()
	if _, err := extract(t, gz, dir, ExtractOptions{}); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Error(err)
	}
	if s := tree(t, dir); s != "" {
		t.Error(s)
	}
	// Flat names that meet.
	if _, err := extract(t, build(t, file{"a/x", "1"}, file{"b/x", "2"}), dir, ExtractOptions{Flat: true}); err == nil || !strings.Contains(err.Error(), "second member") {
		t.Error(err)
	}
	// A flat extraction takes what is otherwise out of bounds.
	if got, err := extract(t, raw(t, member{name: "/abs/x", data: "1"}), dir, ExtractOptions{Flat: true}); err != nil || got[0].Path != "x" {
		t.Error(got, err)
	}
}

// TestExtractMeetsLinksInTheTarget: a link that is already in the folder must
// not lead out of it.
func TestExtractMeetsLinksInTheTarget(t *testing.T) {
	top := t.TempDir()
	outside, dir := filepath.Join(top, "outside"), filepath.Join(top, "dir")
	os.Mkdir(outside, 0o755)
	os.Mkdir(dir, 0o755)
	if err := os.Symlink(outside, filepath.Join(dir, "l")); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	_, err := extract(t, build(t, file{"b", "2"}, file{"l/evil", "x"}), dir, ExtractOptions{Overwrite: true})
	if err == nil {
		t.Error("wrote through a link")
	}
	if s := tree(t, outside); s != "" {
		t.Error("outside holds", s)
	}
	if _, err := os.Lstat(filepath.Join(dir, "b")); err == nil {
		t.Error("half of the archive stayed")
	}
	// A link of the file's own name is replaced, never followed.
	os.WriteFile(filepath.Join(outside, "v"), []byte("old"), 0o644)
	os.Symlink(filepath.Join(outside, "v"), filepath.Join(dir, "v"))
	if _, err := extract(t, build(t, file{"v", "new"}), dir, ExtractOptions{Overwrite: true}); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(outside, "v")); string(b) != "old" {
		t.Error("wrote through a link of the file's name")
	}
}

func TestExtractOverwriteKinds(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "a"), 0o755)
	if _, err := extract(t, build(t, file{"a", "x"}), dir, ExtractOptions{Overwrite: true}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Error(err)
	}
	os.WriteFile(filepath.Join(dir, "f"), []byte("keep"), 0o644)
	if _, err := extract(t, build(t, file{"0", "x"}, file{"f/g", "x"}), dir, ExtractOptions{}); err == nil {
		t.Error("wrote below a file")
	}
	if s := tree(t, dir); s != "a/ f=keep" {
		t.Error(s)
	}
	file := filepath.Join(dir, "f")
	if _, err := extract(t, build(t), file, ExtractOptions{}); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Error(err)
	}
}
