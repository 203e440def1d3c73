package pttf

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perfsim/ecs/golden"
)

var ctx = context.Background()

func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTraceName(t *testing.T) {
	for name, want := range map[string]bool{
		"perf_sim.m.f.b.json":          true,
		"perf_sim..json":               true,
		"x_perf_sim.a.json":            true, // searched, not matched
		"perf_sim.a.json.bak":          true,
		"perf_sim.a.jsonl":             true,
		"perf_sim.é\xff.json":          true,  // not UTF-8
		"perf_sim.json":                false, // one dot cannot be both
		"perf_sim.a.jso":               false,
		"perf_sim_at_end_trace.a.json": false,
		"ps_trace.a.json":              false,
		"perf-sim.a.json":              false,
		"Perf_sim.a.json":              false,
		"file.perf-sim":                false,
		"perf_sim.a\nb.json":           false, // "." stops at a line end
		"perf_sim.a\nperf_sim.b.json":  true,
	} {
		if got := isTraceName(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{
		"perf_sim.b.json": "b", "perf_sim.a.json": "a", "notes.txt": "n",
		"perf_sim_at_end_trace.a.json": "e", "sub/perf_sim.deep.json": "d",
		"perf_sim.dir.json/x": "a folder of that name",
	})
	os.Symlink("perf_sim.a.json", filepath.Join(dir, "perf_sim.link.json"))
	syscall.Mkfifo(filepath.Join(dir, "perf_sim.fifo.json"), 0o644)
	var lines []string
	got, err := Collect(dir, func(s string) { lines = append(lines, s) })
	if err != nil {
		t.Fatal(err)
	}
	a, b := filepath.Join(dir, "perf_sim.a.json"), filepath.Join(dir, "perf_sim.b.json")
	if len(got) != 2 || !slices.Contains(got, a) || !slices.Contains(got, b) {
		t.Errorf("%q", got)
	}
	want := []string{"Found trace file: " + got[0], "Found trace file: " + got[1], "Found 2 perf_sim trace file(s)"}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
	// The order is the directory's own, not sorted.
	for i := range 40 {
		put(t, dir, map[string]string{fmt.Sprintf("perf_sim.%02d.json", i*7%40): ""})
	}
	got, _ = Collect(dir, nil)
	f, _ := os.Open(dir)
	names, _ := f.Readdirnames(-1)
	var raw []string
	for _, n := range names {
		if fi, _ := os.Lstat(filepath.Join(dir, n)); isTraceName(n) && fi.Mode().IsRegular() {
			raw = append(raw, filepath.Join(dir, n))
		}
	}
	if d := cmp.Diff(raw, got); d != "" {
		t.Error(d)
	}
}

func TestPackageLogLines(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, FileName)
	var lines []string
	opt := Options{Log: func(s string) { lines = append(lines, s) }}
	check := func(want ...string) {
		t.Helper()
		if d := cmp.Diff(want, lines); d != "" {
			t.Error(d)
		}
		lines = nil
	}
	res, err := Package(ctx, dir, out, opt)
	if err != nil || res.Created {
		t.Fatal(res, err)
	}
	check("Searching for perf_sim trace files in: "+dir, "No perf_sim trace files found. Skipping tarball creation.")
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Error("made a package of nothing")
	}
	put(t, dir, map[string]string{"perf_sim.a.json": "[]"})
	p := filepath.Join(dir, "perf_sim.a.json")
	if res, err = Package(ctx, dir, out, opt); err != nil || !res.Created || len(res.Files) != 1 {
		t.Fatal(res, err)
	}
	if fi, err := os.Stat(out); err != nil || fi.Size() != res.Size {
		t.Error(fi, err, res.Size)
	}
	check("Searching for perf_sim trace files in: "+dir, "Found trace file: "+p, "Found 1 perf_sim trace file(s)",
		"Added to tarball: "+p, "Successfully created file.perf-sim")
	gone := filepath.Join(dir, "gone")
	if _, err = Package(ctx, gone, out, opt); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	check("Searching for perf_sim trace files in: "+gone, "Directory does not exist: "+gone, "No perf_sim trace files found. Skipping tarball creation.")
	if _, err = Package(ctx, dir, filepath.Join(gone, "x"), opt); err == nil {
		t.Error("wrote into a folder that is not there")
	}
	if len(lines) < 2 || !strings.HasPrefix(lines[len(lines)-2], "Failed to open archive file: ") || lines[len(lines)-1] != "Failed to create perf sim package" {
		t.Errorf("%q", lines)
	}
}

func twoTraces(t testing.TB) (dir string) {
	dir = t.TempDir()
	put(t, dir, map[string]string{
		"perf_sim.m.f.b.json": "[\n]\n",
		"perf_sim.m.f.a.json": "[\n{\"name\":\"I-0\"}\n]\n",
	})
	return dir
}

func pack(t testing.TB, dir string, opt Options) []byte {
	t.Helper()
	files, err := Collect(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := WriteTo(ctx, &buf, files, opt); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gunzip(t testing.TB, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestGolden compares the inner tar, because the compressor may change its
// bytes between versions and the archive may not.
func TestGolden(t *testing.T) {
	got := gunzip(t, pack(t, twoTraces(t), Options{}))
	golden.Check(t, filepath.Join("testdata", "two_traces.tar"), got)
	// Plain ustar members: what Perfetto opens.
	for off := 0; off < len(got)-1024; off += 1024 {
		if got[off+156] != '0' || string(got[off+257:off+265]) != "ustar\x0000" {
			t.Errorf("member at %d: type %q", off, got[off+156])
		}
	}
}

func TestReproducible(t *testing.T) {
	a, b := twoTraces(t), twoTraces(t)
	now := time.Now()
	os.Chtimes(filepath.Join(b, "perf_sim.m.f.a.json"), now, now.Add(-time.Hour))
	os.Chmod(filepath.Join(b, "perf_sim.m.f.b.json"), 0o600)
	first := pack(t, a, Options{})
	if !bytes.Equal(first, pack(t, b, Options{})) {
		t.Error("times, modes or folders show")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if !bytes.Equal(first, pack(t, a, Options{})) {
		t.Error("the number of processors shows")
	}
}

// TestRoundTrip: write, read, write gives the same bytes.
func TestRoundTrip(t *testing.T) {
	first := pack(t, twoTraces(t), Options{})
	dir := t.TempDir()
	got, err := unpack(ctx, bytes.NewReader(first), dir, DefaultLimits, ExtractOptions{})
	if err != nil || len(got) != 2 {
		t.Fatal(got, err)
	}
	if !bytes.Equal(first, pack(t, dir, Options{})) {
		t.Error("other bytes")
	}
}

func TestAsFound(t *testing.T) {
	dir := twoTraces(t)
	when := time.Unix(1_600_000_000, 999_000_000)
	a, b := filepath.Join(dir, "perf_sim.m.f.a.json"), filepath.Join(dir, "perf_sim.m.f.b.json")
	os.Chtimes(a, when, when)
	os.Chmod(a, 0o640)
	var buf bytes.Buffer
	if err := WriteTo(ctx, &buf, []string{b, a}, Options{AsFound: true}); err != nil {
		t.Fatal(err)
	}
	es, err := List(ctx, &buf, DefaultLimits)
	if err != nil || len(es) != 2 {
		t.Fatal(es, err)
	}
	if es[0].Name != "perf_sim.m.f.b.json" || es[1].Name != "perf_sim.m.f.a.json" {
		t.Error("order not kept:", es[0].Name)
	}
	e := es[1]
	if !e.ModTime.Equal(when) || e.Mode != 0o640 || e.UID != os.Getuid() || e.Uname != "" || e.Gname != "" || !e.PAX {
		t.Errorf("%+v", e)
	}
	buf.Reset()
	if err := WriteTo(ctx, &buf, []string{b, a}, Options{PathNames: true, ModTime: when}); err != nil {
		t.Fatal(err)
	}
	es, err = List(ctx, &buf, DefaultLimits)
	if err != nil || es[0].Name != filepath.ToSlash(a) || es[0].ModTime.Unix() != 1_600_000_000 {
		t.Error(es, err)
	}
}

func TestCreateErrors(t *testing.T) {
	dir := twoTraces(t)
	a := filepath.Join(dir, "perf_sim.m.f.a.json")
	out := filepath.Join(t.TempDir(), FileName)
	put(t, filepath.Dir(out), map[string]string{FileName: "old"})
	fifo := filepath.Join(dir, "fifo")
	syscall.Mkfifo(fifo, 0o644)
	link := filepath.Join(dir, "same")
	os.Symlink(a, link)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		name  string
		ctx   context.Context
		out   string
		files []string
		opt   Options
		want  string
		line  string
	}{
		{"none", ctx, out, nil, Options{}, "no files", ""},
		{"vanished", ctx, out, []string{a, filepath.Join(dir, "gone")}, Options{}, "no such file", "Failed to stat file: " + filepath.Join(dir, "gone")},
		{"pipe", ctx, out, []string{fifo}, Options{}, "not a regular file", "Failed to stat file: " + fifo},
		{"folder", ctx, out, []string{dir}, Options{}, "not a regular file", ""},
		{"twice", ctx, out, []string{a, a}, Options{}, "two members", ""},
		{"level", ctx, out, []string{a}, Options{Level: 17}, "level 17", ""},
		{"itself", ctx, a, []string{link}, Options{}, "its own members", ""},
		{"cancelled", cancelled, out, []string{a}, Options{}, "canceled", ""},
		{"no such folder", ctx, filepath.Join(dir, "x", "y"), []string{a}, Options{}, "no such file", ""},
	} {
		var lines []string
		c.opt.Log = func(s string) { lines = append(lines, s) }
		_, err := create(c.ctx, c.out, c.files, c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.line != "" && !slices.Contains(lines, c.line) {
			t.Errorf("%s: lines %q", c.name, lines)
		}
		if es, _ := os.ReadDir(filepath.Dir(out)); len(es) != 1 {
			t.Errorf("%s: left %v", c.name, es)
		}
		if b, _ := os.ReadFile(out); string(b) != "old" {
			t.Errorf("%s: the old package is %q", c.name, b)
		}
	}
}

func TestUnreadableFile(t *testing.T) {
	if os.Getuid() == 0 {
		// The superuser reads everything; a file that cannot be opened for
		// another reason: one that vanishes after stat is not reachable from
		// here, so use a name that is a dangling link.
		dir := twoTraces(t)
		bad := filepath.Join(dir, "bad")
		os.Symlink(filepath.Join(dir, "nowhere"), bad)
		if _, err := create(ctx, filepath.Join(dir, "o"), []string{bad}, Options{}); err == nil || !strings.Contains(err.Error(), "bad") {
			t.Error(err)
		}
		return
	}
	dir := twoTraces(t)
	a := filepath.Join(dir, "perf_sim.m.f.a.json")
	os.Chmod(a, 0)
	var lines []string
	_, err := create(ctx, filepath.Join(dir, "o"), []string{a}, Options{Log: func(s string) { lines = append(lines, s) }})
	if !errors.Is(err, fs.ErrPermission) || !slices.Contains(lines, "Failed to open file: "+a) {
		t.Error(err, lines)
	}
}

// TestFullDisk uses the device that is always full, and a writer that fails at
// every stage.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"perf_sim.a.json": strings.Repeat("0123456789abcdef", 300_000)})
	files, _ := Collect(dir, nil)
	whole := len(pack(t, dir, Options{}))
	for _, n := range []int{0, 9, 10, 500, whole - 8, whole - 1} {
		if err := WriteTo(ctx, &shortWriter{n}, files, Options{}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if _, err := create(ctx, "/dev/full", files, Options{}); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	}
}

type shortWriter struct{ left int }

func (s *shortWriter) Write(p []byte) (int, error) {
	n := min(s.left, len(p))
	s.left -= n
	if n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// TestChangingFile: a file that grows or shrinks while it is packed.
func TestChangingFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"perf_sim.a.json": strings.Repeat("x", 2<<20)})
	p := filepath.Join(dir, "perf_sim.a.json")
	for _, size := range []int64{1 << 20, 3 << 20} {
		os.Truncate(p, 2<<20)
		changed := false
		opt := Options{Progress: func(done, total int64) {
			if !changed {
				changed = true
				os.Truncate(p, size)
			}
		}}
		err := WriteTo(ctx, io.Discard, []string{p}, opt)
		if err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("to %d: %v", size, err)
		}
	}
}

func TestStreamingWriter(t *testing.T) {
	var buf bytes.Buffer
	var last [2]int64
	w, err := NewWriter(&buf, Options{Progress: func(d, n int64) { last = [2]int64{d, n} }})
	if err != nil {
		t.Fatal(err)
	}
	const n = 5000
	for i := range n {
		data := fmt.Sprintf("[%d]", i)
		if err := w.Add(ctx, fmt.Sprintf("perf_sim.m.f.b%05d.json", i), int64(len(data)), time.Time{}, strings.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Error("closed twice")
	}
	es, err := List(ctx, bytes.NewReader(buf.Bytes()), DefaultLimits)
	if err != nil || len(es) != n || es[n-1].Size != 6 || last[0] != last[1] || last[0] == 0 {
		t.Error(len(es), err, last)
	}
}

// TestOtherTools has the package listed and extracted by bsdtar, GNU tar and
// Python's tarfile.
func TestOtherTools(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"perf_sim.m.f.b.json": "[]\n",
		"perf_sim.é.json":     "[1]\n",
		"perf_sim." + strings.Repeat("long", 50) + ".json": "[2]\n",
		"perf_sim.empty.json":                              "",
		"perf_sim.big.json":                                strings.Repeat("[3],\n", 500_000),
	}
	put(t, dir, files)
	out := filepath.Join(t.TempDir(), FileName)
	found, err := Collect(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, opt := range []Options{{}, {AsFound: true}, {Level: 9}} {
		if _, err := create(ctx, out, found, opt); err != nil {
			t.Fatal(err)
		}
		for _, tool := range []struct {
			name string
			args func(dir string) []string
		}{
			{"bsdtar", func(d string) []string { return []string{"-xf", out, "-C", d} }},
			{"tar", func(d string) []string { return []string{"-xzf", out, "-C", d} }},
			{"python3", func(d string) []string {
				return []string{"-c", `import sys,tarfile
t=tarfile.open(sys.argv[1],"r:gz")
for m in t:
    assert m.isreg() and m.uname=="" and m.gname=="", m.get_info()
    open(sys.argv[2]+"/"+m.name,"wb").write(t.extractfile(m).read())`, out, d}
			}},
			{"gzip", func(string) []string { return []string{"-t", "-S", ".perf-sim", out} }},
		} {
			t.Run(tool.name, func(t *testing.T) {
				path, err := exec.LookPath(tool.name)
				if err != nil {
					t.Skip("not installed")
				}
				to := t.TempDir()
				cmd := exec.Command(path, tool.args(to)...)
				cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
				if text, err := cmd.CombinedOutput(); err != nil || len(text) > 0 {
					t.Fatalf("%v: %s", err, text)
				}
				if tool.name == "gzip" {
					return
				}
				for name, data := range files {
					if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != data {
						t.Errorf("%s: %d bytes, %v", name, len(got), err)
					}
				}
			})
		}
	}
}

// TestReadsOtherWriters reads what bsdtar and GNU tar write.
func TestReadsOtherWriters(t *testing.T) {
	dir := twoTraces(t)
	for _, args := range [][]string{
		{"bsdtar", "--format", "pax", "-czf"}, {"bsdtar", "--format", "paxr", "-czf"},
		{"bsdtar", "--format", "ustar", "-cf"}, {"bsdtar", "--format", "gnutar", "-czf"},
		{"tar", "--format=posix", "-czf"}, {"tar", "--format=gnu", "-cf"}, {"tar", "--format=v7", "-czf"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			tool, err := exec.LookPath(args[0])
			if err != nil {
				t.Skip("not installed")
			}
			out := filepath.Join(t.TempDir(), FileName)
			all := append(slices.Clone(args[1:]), out, "-C", dir, ".")
			if text, err := exec.Command(tool, all...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			to := t.TempDir()
			got, err := unpackFile(ctx, out, to, DefaultLimits, ExtractOptions{})
			if err != nil || len(got) != 2 {
				t.Fatal(got, err)
			}
			if !bytes.Equal(pack(t, dir, Options{}), pack(t, to, Options{})) {
				t.Error("other contents")
			}
		})
	}
}

func BenchmarkPack(b *testing.B) {
	var one bytes.Buffer
	for i := 0; one.Len() < 64<<20; i++ {
		fmt.Fprintf(&one, `,{"name":"I-%d","ph":"X","ts":%d,"dur":%d,"pid":0,"tid":%d,"args":{"bir_id":%d,"opcode":"TensorTensor","deps":[]}}`+"\n", i, i*97, 60+i%41, i%11, i)
	}
	b.SetBytes(int64(one.Len()))
	b.ReportAllocs()
	for b.Loop() {
		w, _ := NewWriter(io.Discard, Options{})
		if err := w.Add(ctx, "perf_sim.a.json", int64(one.Len()), time.Time{}, bytes.NewReader(one.Bytes())); err != nil {
			b.Fatal(err)
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// The members of a package as found have the PAX records, names, modes and
// owners that bsdtar writes for the same files in its pax format.
func TestAsFoundIsLibarchives(t *testing.T) {
	bsdtar, err := exec.LookPath("bsdtar")
	if err != nil {
		t.Skip("bsdtar (libarchive-tools) is not installed")
	}
	t.Chdir(t.TempDir())
	put(t, "out", map[string]string{"perf_sim.m.f.a.json": "[\n]\n", "perf_sim.m.f.b.json": "[]", "perf_sim.m.f.c.json": "x"})
	names := []string{"out/perf_sim.m.f.a.json", "out/perf_sim.m.f.b.json", "out/perf_sim.m.f.c.json"}
	// Access times ahead of now, so that reading the files does not set them.
	later := time.Now().Add(time.Hour)
	os.Chtimes(names[0], later, time.Unix(1_600_000_000, 123_456_789))
	os.Chtimes(names[1], later.Truncate(time.Second), time.Unix(1_600_000_000, 500_000_000))
	os.Chtimes(names[2], later, time.Unix(1_600_000_000, 0))
	os.Chmod(names[1], 0o600)
	args := append([]string{"--format", "pax", "--uname", "", "--gname", "", "-cf", "theirs.tar"}, names...)
	if out, err := exec.Command(bsdtar, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	theirs, err := os.ReadFile("theirs.tar")
	if err != nil {
		t.Fatal(err)
	}
	var ours bytes.Buffer
	if err := WriteTo(ctx, &ours, names, Options{AsFound: true, PathNames: true}); err != nil {
		t.Fatal(err)
	}
	type member struct {
		Name, Uname, Gname string
		Mode, Size         int64
		UID, GID           int
		Records            map[string]string
	}
	list := func(data []byte) (all []member) {
		r := tar.NewReader(bytes.NewReader(data))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return all
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, member{h.Name, h.Uname, h.Gname, h.Mode, h.Size, h.Uid, h.Gid, h.PAXRecords})
		}
	}
	if d := cmp.Diff(list(theirs), list(gunzip(t, ours.Bytes()))); d != "" {
		t.Error(d)
	}
}

// unpack extracts the package in r below dir, all or nothing.
func unpack(ctx context.Context, r io.Reader, dir string, lim Limits, opt ExtractOptions) ([]Extracted, error) {
	tr, err := NewReader(ctx, r, lim)
	if err != nil {
		return nil, err
	}
	return Extract(tr, dir, opt)
}

// unpackFile is Unpack of the named file.
func unpackFile(ctx context.Context, path, dir string, lim Limits, opt ExtractOptions) ([]Extracted, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out, err := unpack(ctx, f, dir, lim, opt)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
