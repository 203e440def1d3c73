package tarball

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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

// What a sparse member expands to counts, not what its header takes; paths of
// folders without end are refused.
func TestHolesAndDepth(t *testing.T) {
	read := func(b []byte) error {
		r, err := NewReader(ctx, bytes.NewReader(b), DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Extract(r, t.TempDir(), ExtractOptions{})
		return err
	}
	// An old GNU sparse header by hand (tar(5)): one hole of 1 TiB.
	h := make([]byte, 512)
	copy(h, "sp")
	copy(h[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00")
	h[156] = 'S'
	copy(h[257:], "ustar  \x00")
	h[386], h[398] = 0x80, 0x80 // the first piece of data, of no bytes, at the end
	binary.BigEndian.PutUint64(h[386+4:], 1<<40)
	h[483] = 0x80 // the real size
	binary.BigEndian.PutUint64(h[483+4:], 1<<40)
	sum := 8 * int(' ')
	for i, c := range h {
		if i < 148 || i >= 156 {
			sum += int(c)
		}
	}
	copy(h[148:], fmt.Sprintf("%06o\x00 ", sum))
	if err := read(append(h, make([]byte, 1024)...)); !errors.Is(err, ErrLimit) {
		t.Errorf("1 TiB of holes: %v", err)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: strings.Repeat("d/", 1900) + "f", Mode: 0o644, Format: tar.FormatPAX})
	w.Close()
	if err := read(b.Bytes()); !errors.Is(err, ErrLimit) || !strings.Contains(err.Error(), "1900 folders") {
		t.Errorf("a deep path: %v", err)
	}
}

// A rename that fails gives replaced files back.
func TestOverwriteIsUndone(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a"), []byte("old"), 0o644)
	os.WriteFile(filepath.Join(dir, "b"), []byte("old"), 0o644) // in the place of a folder
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range []string{"a", "b/c"} {
		w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: 3})
		w.Write([]byte("new"))
	}
	w.Close()
	r, err := NewReader(ctx, &b, DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Extract(r, dir, ExtractOptions{Overwrite: true}); err == nil {
		t.Error("a file below a file was extracted")
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "a")); string(got) != "old" {
		t.Errorf("a holds %q", got)
	}
	if es, _ := os.ReadDir(dir); len(es) != 2 {
		t.Errorf("left %v", es)
	}
}
