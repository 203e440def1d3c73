package tarball

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	stdgzip "compress/gzip"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

var ctx = context.Background()

type file struct{ name, data string }

func build(t testing.TB, files ...file) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	for _, f := range files {
		if err := w.Add(ctx, Header{Name: f.name, Size: int64(len(f.data))}, strings.NewReader(f.data), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zip(t testing.TB, data []byte, level int) []byte {
	t.Helper()
	var buf bytes.Buffer
	z, err := NewGzip(&buf, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// readAll returns the members until the first error, nil at a sound end.
func readAll(data []byte, lim Limits) ([]file, error) {
	r, err := NewReader(ctx, bytes.NewReader(data), lim)
	if err != nil {
		return nil, err
	}
	var out []file
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return out, err
		}
		out = append(out, file{e.Name, string(b)})
	}
}

// TestHeaderBytes spells out the 512 bytes of a reproducible member: what
// POSIX ustar says, worked out by hand.
func TestHeaderBytes(t *testing.T) {
	got := build(t, file{"perf_sim.m.f.b.json", "[]\n"})
	if len(got) != 512+512+1024 {
		t.Fatalf("length %d", len(got))
	}
	want := make([]byte, 512)
	put := func(off int, s string) { copy(want[off:], s) }
	put(0, "perf_sim.m.f.b.json")
	put(100, "0000644\x00")
	put(108, "0000000\x00") // uid
	put(116, "0000000\x00") // gid
	put(124, "00000000003\x00")
	put(136, "00000000000\x00") // mtime
	put(156, "0")
	put(257, "ustar\x0000")
	put(329, "0000000\x00") // devmajor
	put(337, "0000000\x00") // devminor
	sum := 8 * int(' ')
	for _, b := range want {
		sum += int(b)
	}
	put(148, octal6(sum)+"\x00 ")
	if !bytes.Equal(got[:512], want) {
		t.Errorf("header\n%q\nwant\n%q", got[:512], want)
	}
	if string(got[512:515]) != "[]\n" || len(bytes.Trim(got[515:], "\x00")) != 0 {
		t.Error("data, padding or end mark differ")
	}
}

func octal6(n int) string {
	s := ""
	for range 6 {
		s = string(rune('0'+n%8)) + s
		n /= 8
	}
	return s
}

// TestExtendedHeaderOnlyWhenNeeded: a ustar reader opens what needs none.
func TestExtendedHeaderOnlyWhenNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		want byte
	}{
		{strings.Repeat("a", 100), '0'},
		{strings.Repeat("d", 100) + "/" + strings.Repeat("a", 100), '0'}, // ustar prefix
		{strings.Repeat("a", 101), 'x'},
		{"perf_sim.é.json", 'x'},
	} {
		if got := build(t, file{c.name, "x"})[156]; got != c.want {
			t.Errorf("%q: type flag %q, want %q", c.name, got, c.want)
		}
	}
	var buf bytes.Buffer
	w := NewWriter(&buf)
	// A fraction of a second must not cost a record.
	h := Header{Name: "a", ModTime: time.Unix(12, 345678900)}
	if err := w.Add(ctx, h, strings.NewReader(""), nil); err != nil {
		t.Fatal(err)
	}
	if buf.Bytes()[156] != '0' || string(buf.Bytes()[136:147]) != "00000000014" {
		t.Errorf("type %q mtime %q", buf.Bytes()[156], buf.Bytes()[136:147])
	}
}

func TestGzipHeaderAndDeterminism(t *testing.T) {
	data := bytes.Repeat([]byte(`{"name":"I-1","ph":"X","ts":1,"dur":2},`), 100_000)
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	one := zip(t, data, 0)
	if want := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3}; !bytes.Equal(one[:10], want) {
		t.Errorf("gzip header % x, want % x", one[:10], want)
	}
	for _, procs := range []int{2, 5} {
		runtime.GOMAXPROCS(procs)
		var buf bytes.Buffer
		z, _ := NewGzip(&buf, 1)
		for rest := data; len(rest) > 0; { // other write sizes
			n := min(len(rest), 7777*procs)
			z.Write(rest[:n])
			rest = rest[n:]
		}
		z.Close()
		if !bytes.Equal(buf.Bytes(), one) {
			t.Errorf("%d processors: other bytes", procs)
		}
	}
	r, err := stdgzip.NewReader(bytes.NewReader(one))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("the standard library reads %d bytes, %v", len(got), err)
	}
	for _, level := range []int{-1, 10} {
		if _, err := NewGzip(io.Discard, level); err == nil {
			t.Errorf("level %d accepted", level)
		}
	}
}

type failAfter struct{ left int }

var errFull = errors.New("no space left on device")

func (f *failAfter) Write(p []byte) (int, error) {
	if f.left < len(p) {
		n := f.left
		f.left = 0
		return n, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

// TestFullDisk: whatever byte the disk ends at, the error comes out and no
// goroutine stays.
func TestFullDisk(t *testing.T) {
	data := make([]byte, 5<<20)
	for i := range data {
		data[i] = byte(i * i >> 7)
	}
	whole := len(zip(t, build(t, file{"a", string(data)}), 1))
	before := runtime.NumGoroutine()
	for _, left := range []int{0, 5, 10, 11, whole / 3, whole / 2, whole - 9, whole - 8, whole - 1} {
		z, err := NewGzip(&failAfter{left}, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWriter(z)
		err = w.Add(ctx, Header{Name: "a", Size: int64(len(data))}, bytes.NewReader(data), nil)
		if err == nil {
			err = w.Close()
		}
		if cerr := z.Close(); err == nil {
			err = cerr
		}
		if !errors.Is(err, errFull) {
			t.Errorf("%d bytes: %v", left, err)
		}
	}
	for range 200 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestWriterRefuses(t *testing.T) {
	for _, c := range []struct {
		h    Header
		data string
		want string
	}{
		{Header{Name: ""}, "", "cannot name"},
		{Header{Name: "a/"}, "", "cannot name"},
		{Header{Name: "a\x00b"}, "", "cannot name"},
		{Header{Name: "a", Size: -1}, "", "negative"},
		{Header{Name: "a", Size: 4}, "abc", "after 3 of 4"},
		{Header{Name: "a", Size: 2}, "abc", "more bytes"},
		{Header{Name: "a", Size: 0}, "abc", "more bytes"},
	} {
		w := NewWriter(io.Discard)
		err := w.Add(ctx, c.h, strings.NewReader(c.data), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v %q: %v", c.h, c.data, err)
		}
		if err := w.Close(); err == nil {
			t.Errorf("%+v: Close after a failure succeeded", c.h)
		}
	}
	w := NewWriter(io.Discard)
	w.Add(ctx, Header{Name: "a"}, strings.NewReader(""), nil)
	if err := w.Add(ctx, Header{Name: "a"}, strings.NewReader(""), nil); err == nil || !strings.Contains(err.Error(), "two members") {
		t.Errorf("second member of one name: %v", err)
	}
	c, cancel := context.WithCancel(ctx)
	cancel()
	if err := NewWriter(io.Discard).Add(c, Header{Name: "a", Size: 1}, strings.NewReader("a"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// zeros is a reader of n zero bytes.
type zeros int64

func (z *zeros) Read(p []byte) (int, error) {
	if *z == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), int64(*z))
	clear(p[:n])
	*z -= zeros(n)
	return int(n), nil
}

// TestNineGiB writes a member over ustar's limit of 8 GiB without a disk, and
// reads it back with this reader and (as a sparse file) with bsdtar.
func TestNineGiB(t *testing.T) {
	if testing.Short() {
		t.Skip("copies 18 GiB of zeros in memory")
	}
	const size = 9 << 30
	pr, pw := io.Pipe()
	go func() {
		z := zeros(size)
		w := NewWriter(pw)
		err := w.Add(ctx, Header{Name: "big.json", Size: size}, &z, nil)
		if err == nil {
			err = w.Close()
		}
		pw.CloseWithError(err)
	}()
	var head bytes.Buffer
	r, err := NewReader(ctx, io.TeeReader(pr, &firstN{&head, 1536}), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.Next()
	if err != nil || e.Size != size || !e.PAX {
		t.Fatalf("%+v %v", e, err)
	}
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if !strings.Contains(head.String(), "size=9663676416\n") {
		t.Errorf("no size record in %q", head.String()[:600])
	}
	path := filepath.Join(t.TempDir(), "big.tar")
	if err := os.WriteFile(path, head.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1536+size+1024); err != nil {
		t.Skip("no sparse files here:", err)
	}
	for _, tool := range []string{"bsdtar", "tar"} {
		out := run(t, tool, "-tvf", path)
		if !strings.Contains(out, "9663676416") || !strings.Contains(out, "big.json") {
			t.Errorf("%s: %s", tool, out)
		}
	}
}

type firstN struct {
	w    io.Writer
	left int
}

func (f *firstN) Write(p []byte) (int, error) {
	n := min(f.left, len(p))
	f.w.Write(p[:n])
	f.left -= n
	return len(p), nil
}

func TestReaderChecks(t *testing.T) {
	plain := build(t, file{"a", "hello"}, file{"b", strings.Repeat("x", 1000)})
	gz := zip(t, plain, 6)
	flip := func(b []byte, at int) []byte {
		c := bytes.Clone(b)
		c[at] ^= 0x55
		return c
	}
	join := func(bs ...[]byte) []byte { return bytes.Join(bs, nil) }
	for _, c := range []struct {
		name string
		data []byte
		want string // "" for sound
	}{
		{"plain", plain, ""},
		{"gzip", gz, ""},
		{"zero padding in the tar", join(plain, make([]byte, 10240)), ""},
		{"zero padding after gzip", join(gz, make([]byte, 100)), ""},
		{"two gzip members", join(zip(t, plain[:700], 1), zip(t, plain[700:], 9)), ""},
		{"one zero block only", plain[:len(plain)-512], ""},
		{"empty gzip member last", join(gz, zip(t, nil, 1)), ""},
		{"empty", nil, "empty file"},
		{"gzip of nothing", zip(t, nil, 1), "compressed data are empty"},
		{"no end mark", plain[:len(plain)-1024], "cut short"},
		{"no end mark, gzipped", zip(t, plain[:len(plain)-1024], 1), "cut short"},
		{"cut in a header", plain[:100], "cut short"},
		{"cut in data", plain[:514], "cut short"},
		{"cut gzip", gz[:len(gz)-20], "cut short"},
		{"cut in the checksum", gz[:len(gz)-3], "cut short"},
		{"wrong checksum", flip(gz, len(gz)-8), "checksum"},
		{"wrong length", flip(gz, len(gz)-2), "checksum"},
		{"garbage after gzip", join(gz, []byte("xyz")), "unknown bytes after the end of the compressed data"},
		{"garbage after zeros after gzip", join(gz, make([]byte, 40000), []byte("x")), "unknown bytes"},
		{"garbage after the tar", join(plain, []byte("x")), "unknown bytes after the end of the archive, at byte 3584"},
		{"second archive", join(plain, plain), "unknown bytes"},
		{"gzip of gzip", zip(t, gz, 1), "byte"},
		{"text", []byte("perf_sim traces, honestly" + strings.Repeat(".", 600)), "invalid tar header"},
		{"header checksum", flip(plain, 3), "invalid tar header"},
		{"gzip magic only", []byte{0x1f, 0x8b}, "gzip header"},
	} {
		got, err := readAll(c.data, DefaultLimits)
		switch {
		case c.want == "" && (err != nil || len(got) != 2 || got[0] != (file{"a", "hello"}) || len(got[1].data) != 1000):
			t.Errorf("%s: %d members, %v", c.name, len(got), err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	// The listing alone, with no member read, meets the same errors.
	r, err := NewReader(ctx, bytes.NewReader(flip(gz, len(gz)-8)), DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = r.Next()
	}
	if !strings.Contains(err.Error(), "checksum") {
		t.Errorf("listing: %v", err)
	}
	if _, again := r.Next(); again != err {
		t.Errorf("after an error Next says %v", again)
	}
}

// numeric writes a libarchive-style number: octal digits ended by a space.
func spaceTerminated(t *testing.T, data []byte) []byte {
	b := bytes.Clone(data)
	b[107], b[115], b[123], b[135], b[147] = ' ', ' ', ' ', ' ', ' '
	return fixChecksum(b)
}

func fixChecksum(b []byte) []byte {
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b[:512] {
		sum += int(c)
	}
	copy(b[148:], octal6(sum)+"\x00 ")
	return b
}

func TestDialects(t *testing.T) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(tw.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "g", PAXRecords: map[string]string{"comment": "hi"}, Format: tar.FormatPAX}))
	must(tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755}))
	must(tw.WriteHeader(&tar.Header{Name: "./a", Size: 1, Format: tar.FormatGNU}))
	tw.Write([]byte("A"))
	must(tw.WriteHeader(&tar.Header{Name: "b", Size: 1, PAXRecords: map[string]string{"VENDOR.k": "v"}, Format: tar.FormatPAX}))
	tw.Write([]byte("B"))
	must(tw.WriteHeader(&tar.Header{Name: strings.Repeat("n", 300), Size: 1, Format: tar.FormatGNU}))
	tw.Write([]byte("C"))
	must(tw.Close())
	got, err := readAll(buf.Bytes(), DefaultLimits)
	if err != nil || len(got) != 4 {
		t.Fatalf("%d members, %v", len(got), err)
	}
	if got[1] != (file{"./a", "A"}) || got[2] != (file{"b", "B"}) || len(got[3].name) != 300 {
		t.Errorf("%+v", got)
	}
	got, err = readAll(spaceTerminated(t, build(t, file{"a", "hello"})), DefaultLimits)
	if err != nil || len(got) != 1 || got[0].data != "hello" {
		t.Errorf("space-terminated numbers: %+v %v", got, err)
	}
	v7 := build(t, file{"a", "hello"})
	clear(v7[257:512]) // no magic: Unix V7
	v7[156] = 0
	if got, err = readAll(fixChecksum(v7), DefaultLimits); err != nil || len(got) != 1 || got[0].data != "hello" {
		t.Errorf("V7: %+v %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	many := make([]file, 11)
	for i := range many {
		many[i] = file{string(rune('a' + i)), ""}
	}
	if _, err := readAll(build(t, many...), Limits{Members: 10}); !errors.Is(err, ErrLimit) {
		t.Errorf("members: %v", err)
	}
	if got, err := readAll(build(t, many[:10]...), Limits{Members: 10}); err != nil || len(got) != 10 {
		t.Errorf("exactly ten: %v", err)
	}
	bomb := zip(t, build(t, file{"a", strings.Repeat("\x00", 8<<20)}), 9)
	if _, err := readAll(bomb, Limits{Bytes: 1 << 20}); !errors.Is(err, ErrLimit) {
		t.Errorf("bytes: %v", err)
	}
	if _, err := readAll(bomb, Limits{Ratio: 100, RatioFrom: 1 << 20}); !errors.Is(err, ErrLimit) {
		t.Errorf("ratio: %v", err)
	}
	if _, err := readAll(bomb, DefaultLimits); err != nil {
		t.Errorf("8 MiB is within the default: %v", err)
	}
	// Padding after the end counts too.
	pad := zip(t, append(build(t, file{"a", ""}), make([]byte, 8<<20)...), 9)
	if _, err := readAll(pad, Limits{Bytes: 1 << 20}); !errors.Is(err, ErrLimit) {
		t.Errorf("padding: %v", err)
	}
}

// TestSizeThatLies: a header that promises 2^62 bytes costs nothing.
func TestSizeThatLies(t *testing.T) {
	b := build(t, file{"a", "hello"})
	clear(b[124:136])
	b[124] = 0x80 // base-256
	binary.BigEndian.PutUint64(b[128:], 1<<62)
	fixChecksum(b)
	start := time.Now()
	_, err := readAll(b, DefaultLimits)
	if !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if _, err = readAll(b, Limits{}); err == nil || !strings.Contains(err.Error(), "cut short") {
		t.Error(err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Error("took", d)
	}
}

func TestSparse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "holes")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("begin")
	f.WriteAt([]byte("end"), 1<<20)
	f.Close()
	for _, format := range []string{"gnu", "posix"} {
		out := filepath.Join(dir, format+".tar")
		run(t, "tar", "--sparse", "--format="+format, "-C", dir, "-cf", out, "holes")
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(ctx, bytes.NewReader(data), DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 100<<10 {
			t.Skip("this filesystem keeps no holes")
		}
		if !e.Sparse || e.Size != 1<<20+3 || e.Name != "holes" {
			t.Errorf("%s: %+v", format, e)
		}
		got, err := io.ReadAll(r)
		if err != nil || len(got) != 1<<20+3 || string(got[1<<20:]) != "end" {
			t.Errorf("%s: %d bytes, %v", format, len(got), err)
		}
		// The logical size is what the limit is about.
		if _, err := readAll(data, Limits{Bytes: 200 << 10}); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "./a": "a", "a/b": "a/b", "a//b": "a/b", "./a/./b/": "a/b", "..a": "..a", "a..": "a..", "...": "...",
		"perf_sim.x.json": "perf_sim.x.json",
		"":                "", ".": "", "./": "", "..": "", "/": "", "/etc/passwd": "", "../a": "", "a/../b": "", "a/..": "",
		"a\\b": "", "c:x": "", "C:/x": "", "a\x00b": "", strings.Repeat("a", 256): "", strings.Repeat("a/", 2100) + "a": "",
	} {
		got, err := SafeName(name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("SafeName(%.30q) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestRoundTripRandom(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(rt, "members")
		var files []file
		seen := map[string]bool{}
		for range n {
			name := rapid.StringN(1, 150, 300).Filter(func(s string) bool {
				return !strings.ContainsRune(s, 0) && !strings.HasSuffix(s, "/") && !seen[s]
			}).Draw(rt, "name")
			seen[name] = true
			files = append(files, file{name, string(rapid.SliceOfN(rapid.Byte(), 0, 1500).Draw(rt, "data"))})
		}
		first := build(t, files...)
		for _, data := range [][]byte{first, zip(t, first, 1)} {
			got, err := readAll(data, DefaultLimits)
			if err != nil && !(n == 0) {
				rt.Fatal(err)
			}
			if len(got) != len(files) {
				rt.Fatalf("%d members, want %d", len(got), len(files))
			}
			for i := range got {
				if got[i] != files[i] {
					rt.Fatalf("member %d: %q, want %q", i, got[i], files[i])
				}
			}
			if !bytes.Equal(build(t, got...), first) {
				rt.Fatal("write, read, write gives other bytes")
			}
		}
	})
}
