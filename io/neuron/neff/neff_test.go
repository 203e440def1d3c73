package neff

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perfsim/components"
	"perfsim/ecs/golden"
	"perfsim/io/internal/tarball"
)

var ctx = context.Background()

// sample are the members of a small NEFF, in the shape that real ones have.
func sample() []Member {
	return []Member{
		BytesMember("sg00/def.json", []byte(`{"version":"0.6"}`)),
		BytesMember("neff.json", []byte(`{"version":"0.5"}`)),
		BytesMember("kelf-0.json", []byte(`{"graphs":[{"definition":"sg00/def.json","name":"sg00"}],"version":"0.5","target":"*"}`)),
		BytesMember("info.json", []byte(`{}`)),
		BytesMember("sg00/PE.bin", bytes.Repeat([]byte{1, 2, 3, 4}, 160)),
		BytesMember("debug_info/debug_info_backend.PE.0.dbg", sampleDebug()),
	}
}

func create(t testing.TB, version uint64, members []Member) string {
	t.Helper()
	h, err := NewHeader("file.neff")
	if err != nil {
		t.Fatal(err)
	}
	h.PkgVersion = version
	h.FeatureBits = 0x1002
	h.Pad[467] = 7 // must survive
	path := filepath.Join(t.TempDir(), "file.neff")
	if _, err := Create(ctx, path, h, members, CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWrittenNEFF checks header, hash and members with nothing of this
// package: offsets by hand, the standard library's tar and gzip.
func TestWrittenNEFF(t *testing.T) {
	for version := range uint64(3) {
		if version == 0 {
			continue
		}
		b := read(t, create(t, version, sample()))
		data := b[0x400:]
		u64 := func(off int) uint64 { return binary.LittleEndian.Uint64(b[off:]) }
		u32 := func(off int) uint32 { return binary.LittleEndian.Uint32(b[off:]) }
		for off, want := range map[int]uint64{0: version, 8: 0x400, 16: uint64(len(data)), 24: 2, 32: 0, 0x220: 0x1002} {
			if got := u64(off); got != want {
				t.Errorf("v%d: %#x at %#x, want %#x", version, got, off, want)
			}
		}
		for off, want := range map[int]uint32{0xA8: 1, 0x1DC: 1, 0x228: 1} {
			if got := u32(off); got != want {
				t.Errorf("v%d: %#x at %#x, want %#x", version, got, off, want)
			}
		}
		if !bytes.HasPrefix(b[0x28:], []byte("perfsim\x00")) || !bytes.HasPrefix(b[0xDC:], []byte("file.neff\x00")) || b[0x1E0] != 1 || b[0x3FF] != 7 {
			t.Error("texts, TPBs or padding")
		}
		if b[0xCC+6]>>4 != 4 || b[0xCC+8]>>6 != 2 {
			t.Errorf("uuid % x is not of version 4", b[0xCC:0xDC])
		}
		var src io.Reader = bytes.NewReader(data)
		if version == 2 {
			sum := md5.Sum(data)
			for k := range 4 { // each 32-bit word is stored the other way round
				binary.LittleEndian.PutUint32(sum[4*k:], binary.BigEndian.Uint32(sum[4*k:]))
			}
			if !bytes.Equal(b[0xAC:0xBC], sum[:]) || !bytes.Equal(b[0xBC:0xCC], make([]byte, 16)) {
				t.Errorf("hash % x", b[0xAC:0xCC])
			}
			if !bytes.Equal(data[:10], []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 3}) {
				t.Errorf("gzip header % x", data[:10])
			}
			z, err := gzip.NewReader(src)
			if err != nil {
				t.Fatal(err)
			}
			src = z
		} else if sum := sha256.Sum256(data); !bytes.Equal(b[0xAC:0xCC], sum[:]) {
			t.Errorf("hash % x", b[0xAC:0xCC])
		}
		var names []string
		tr := tar.NewReader(src)
		for {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Uname != "nobody" || h.Gname != "nobody" || h.ModTime.Unix() != 0 || h.Mode != 0o644 || h.Typeflag != tar.TypeReg || h.Uid != 0 {
				t.Errorf("%+v", h)
			}
			data, err := io.ReadAll(tr)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range sample() {
				if m.Name == h.Name {
					r, _ := m.Open()
					if want, _ := io.ReadAll(r); !bytes.Equal(want, data) {
						t.Errorf("%s differs", h.Name)
					}
				}
			}
			names = append(names, h.Name)
		}
		want := []string{"debug_info/debug_info_backend.PE.0.dbg", "info.json", "kelf-0.json", "neff.json", "sg00/PE.bin", "sg00/def.json"}
		if d := cmp.Diff(want, names); d != "" {
			t.Error(d)
		}
	}
}

// TestPython has the file taken apart by Python's struct, hashlib and tarfile.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	script := `import sys,struct,hashlib,io,tarfile,json
b=open(sys.argv[1],"rb").read()
f=struct.unpack("<5Q128sI32s16s256sI64sQI468s",b[:1024])
d=b[1024:]
assert f[1]==1024 and f[2]==len(d), f
h=struct.pack("<4I",*struct.unpack(">4I",hashlib.md5(d).digest()))+bytes(16) if f[0]==2 else hashlib.sha256(d).digest()
assert f[7]==h
t=tarfile.open(fileobj=io.BytesIO(d))
print(json.dumps([[m.name,m.size,m.uname] for m in t.getmembers()]))`
	for _, version := range []uint64{1, 2} {
		out, err := exec.Command(python, "-c", script, create(t, version, sample())).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var got [][3]any
		if err := json.Unmarshal(out, &got); err != nil || len(got) != 6 || got[4] != [3]any{"sg00/PE.bin", 640.0, "nobody"} {
			t.Error(got, err)
		}
	}
}

// TestRoundTrip: parse and write the header; take a NEFF apart and write it
// again: the same bytes.
func TestRoundTrip(t *testing.T) {
	for _, version := range []uint64{1, 2} {
		path := create(t, version, sample())
		first := read(t, path)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if !bytes.Equal(f.Header.Bytes(), first[:1024]) {
			t.Error("header differs")
		}
		if err := f.CheckHash(ctx); err != nil {
			t.Error(err)
		}
		if f.Gzipped() != (version == 2) || f.Trailing() != 0 {
			t.Error(f.Gzipped(), f.Trailing())
		}
		dir := t.TempDir()
		if _, err := f.Extract(ctx, dir, DefaultLimits, ExtractOptions{}); err != nil {
			t.Fatal(err)
		}
		members, err := DirMembers(dir)
		if err != nil || len(members) != 6 {
			t.Fatal(members, err)
		}
		again := filepath.Join(t.TempDir(), "again")
		if _, err := Create(ctx, again, f.Header, members, CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(read(t, again), first) {
			t.Error("other bytes")
		}
	}
}

// TestGolden pins header and tar of a plain NEFF, whose bytes no compressor
// touches.
func TestGolden(t *testing.T) {
	got := read(t, create(t, 1, sample()[:2]))
	golden.Check(t, filepath.Join("testdata", "small_v1.neff"), got)
}

func payload(t testing.TB, b []byte) []byte {
	t.Helper()
	data := b[1024 : 1024+binary.LittleEndian.Uint64(b[16:])]
	if data[0] != 0x1f {
		return data
	}
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

// TestAddTouchesNothingElse compares every byte of header and tar.
func TestAddTouchesNothingElse(t *testing.T) {
	for _, version := range []uint64{1, 2} {
		in := create(t, version, sample())
		old := append(read(t, in), "what follows the payload"...)
		os.WriteFile(in, old, 0o644)
		out := filepath.Join(t.TempDir(), "out.neff")
		pkg := bytes.Repeat([]byte("pttf"), 1000)
		m := BytesMember(PTTFName(), pkg)
		res, err := Add(ctx, in, m, out, AddOptions{})
		if err != nil || res.Replaced {
			t.Fatal(res, err)
		}
		b := read(t, out)
		if int64(len(b)) != res.Size || !bytes.HasSuffix(b, []byte("what follows the payload")) {
			t.Error(len(b), res.Size)
		}
		head := slices.Clone(b[:1024])
		copy(head[16:24], old[16:24])
		copy(head[0xAC:0xCC], old[0xAC:0xCC])
		if !bytes.Equal(head, old[:1024]) {
			t.Error("the header differs in more than data size and hash")
		}
		was, is := payload(t, old), payload(t, b)
		const end = 1024 // two zero blocks
		if !bytes.Equal(is[:len(was)-end], was[:len(was)-end]) {
			t.Error("other members changed")
		}
		if !bytes.Equal(is[len(is)-end:], was[len(was)-end:]) || len(is) != len(was)+512+4096 {
			t.Error("the end changed", len(is), len(was))
		}
		f, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.CheckHash(ctx); err != nil {
			t.Error(err)
		}
		es, err := f.List(ctx, DefaultLimits)
		if err != nil || len(es) != 7 {
			t.Fatal(es, err)
		}
		e := es[6]
		if e.Name != "debug_info_pttf" || e.Uname != "nobody" || e.ModTime.Unix() != 0 || e.Mode != 0o644 || e.Size != 4000 {
			t.Errorf("%+v", e)
		}

		// A second time: refused, then replaced in place, then gone back.
		if _, err := Add(ctx, out, m, out, AddOptions{}); !errors.Is(err, ErrMemberExists) {
			t.Error(err)
		}
		if !bytes.Equal(read(t, out), b) {
			t.Error("a refused Add changed the file")
		}
		other := BytesMember("./"+PTTFName(), []byte("new"))
		other.Name = PTTFName()
		if res, err = Add(ctx, out, other, out, AddOptions{Replace: true}); err != nil || !res.Replaced {
			t.Fatal(res, err)
		}
		if got := payload(t, read(t, out)); len(got) != len(was)+1024 || !bytes.Equal(got[:len(was)-end], was[:len(was)-end]) {
			t.Error("replacing changed other members")
		}
		if res, err = Add(ctx, out, m, out, AddOptions{Replace: true}); err != nil || !bytes.Equal(read(t, out), b) {
			t.Error("replacing back gives other bytes", err)
		}
		// In the middle, with everything after it kept.
		if _, err := Add(ctx, out, BytesMember("info.json", []byte("xx")), out, AddOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		got := payload(t, read(t, out))
		i := bytes.Index(is, []byte("info.json"))
		if len(got) != len(is) || !bytes.Equal(got[:i], is[:i]) || !bytes.Equal(got[i+1024:], is[i+1024:]) || string(got[i+512:i+514]) != "xx" {
			t.Error("replacing in the middle")
		}
	}
}

// TestAddKeepsForeignDialects: the tars of other writers, with block padding,
// PAX and GNU records, stay byte for byte.
func TestAddKeepsForeignDialects(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "sg00"), 0o755)
	os.WriteFile(filepath.Join(dir, "sg00", strings.Repeat("long", 50)), []byte("x"), 0o644)
	os.WriteFile(filepath.Join(dir, "info.json"), []byte("{}"), 0o644)
	os.Symlink("info.json", filepath.Join(dir, "link"))
	for _, args := range [][]string{
		{"tar", "--format=gnu", "-cf"}, {"tar", "--format=posix", "-czf"},
		{"bsdtar", "--format", "pax", "-czf"}, {"bsdtar", "--format", "gnutar", "-cf"},
	} {
		tool, err := exec.LookPath(args[0])
		if err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "t")
		if out, err := exec.Command(tool, append(slices.Clone(args[1:]), file, "-C", dir, ".")...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		data := read(t, file)
		h, _ := NewHeader("x")
		h.DataSize = uint64(len(data))
		sum := md5.Sum(data)
		h.Hash = hashField(sum[:])
		in, out := filepath.Join(dir, "../in.neff"), filepath.Join(dir, "../out.neff")
		old := append(h.Bytes(), data...)
		os.WriteFile(in, old, 0o644)
		if _, err := Add(ctx, in, BytesMember(PTTFName(), []byte("p")), out, AddOptions{}); err != nil {
			t.Fatal(args, err)
		}
		b := read(t, out)
		if !bytes.Equal(b[0xCC:0x400], old[0xCC:0x400]) { // a zero UUID stays zero
			t.Error(args, "header")
		}
		was, is := payload(t, old), payload(t, b)
		if len(is) != len(was)+1024 {
			t.Fatal(args, len(is), len(was))
		}
		// The new member lies where the zeros began.
		end := len(bytes.TrimRight(was, "\x00"))
		end = (end + 511) / 512 * 512
		if !bytes.Equal(is[:end], was[:end]) || !bytes.Equal(is[end+1024:], was[end:]) || !bytes.HasPrefix(is[end:], []byte("debug_info_pttf\x00")) {
			t.Error(args, "tar")
		}
	}
}

func TestBadFiles(t *testing.T) {
	good := read(t, create(t, 2, sample()))
	edit := func(f func(b []byte) []byte) []byte { return f(slices.Clone(good)) }
	put := func(off int, v uint64) []byte {
		return edit(func(b []byte) []byte { binary.LittleEndian.PutUint64(b[off:], v); return b })
	}
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "too few"},
		{"short header", good[:1023], "too few"},
		{"header only", good[:1024], "cut short"},
		{"cut", good[:len(good)-1], "cut short"},
		{"no header", good[1024:], "begins with gzip"},
		{"header size", put(8, 512), "header size"},
		{"data size that lies", put(16, 1<<63), "cut short"},
		{"data size overflow", put(16, 1<<64-1), "cut short"},
		{"no data", put(16, 0), "no data"},
		{"text", bytes.Repeat([]byte("neff"), 500), "no NEFF"},
	} {
		path := filepath.Join(t.TempDir(), "x.neff")
		os.WriteFile(path, c.data, 0o644)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
	// What opens, and must not be added to.
	flip := edit(func(b []byte) []byte { b[1024+40] ^= 1; return b })
	short := put(16, uint64(len(good)-1024-20)) // the hash no longer fits either
	for _, c := range []struct {
		name  string
		data  []byte
		m     Member
		force bool
		want  string
	}{
		{"hash", flip, BytesMember("a", nil), false, "hash"},
		{"hash, forced", flip, BytesMember("a", nil), true, ""}, // the damage shows elsewhere
		{"payload cut by the header", short, BytesMember("a", nil), true, "cut short"},
		{"package version", put(0, 3), BytesMember("a", nil), true, "package version 3"},
		{"name", good, BytesMember("../a", nil), false, "climbs"},
		{"empty name", good, BytesMember("", nil), false, "empty name"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x.neff")
		os.WriteFile(path, c.data, 0o644)
		_, err := Add(ctx, path, c.m, path, AddOptions{Force: c.force})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if es, _ := os.ReadDir(dir); len(es) != 1 || !bytes.Equal(read(t, path), c.data) {
			t.Errorf("%s: files changed", c.name)
		}
	}
}

func TestForceAddsDespiteTheHash(t *testing.T) {
	path := create(t, 2, sample())
	b := read(t, path)
	b[0xAC] ^= 1
	os.WriteFile(path, b, 0o644)
	if _, err := Add(ctx, path, BytesMember("a", nil), path, AddOptions{}); err == nil {
		t.Error("added to a NEFF with a wrong hash")
	}
	if _, err := Add(ctx, path, BytesMember("a", nil), path, AddOptions{Force: true}); err != nil {
		t.Error(err)
	}
}

func TestCreateErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	h, _ := NewHeader("n")
	lying := Member{Name: "a", Size: 5, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("abc")), nil }}
	gone := Member{Name: "a", Open: func() (io.ReadCloser, error) { return nil, os.ErrNotExist }}
	v9 := h
	v9.PkgVersion = 9
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		path string
		h    Header
		ms   []Member
		want string
	}{
		{"lies", ctx, path, h, []Member{lying}, "after 3 of 5"},
		{"gone", ctx, path, h, []Member{gone}, "not exist"},
		{"twice", ctx, path, h, []Member{BytesMember("a", nil), BytesMember("a", nil)}, "two members"},
		{"name", ctx, path, h, []Member{BytesMember("/a", nil)}, "absolute"},
		{"version", ctx, path, v9, nil, "package version 9"},
		{"folder", ctx, filepath.Join(dir, "no", "x"), h, nil, "no such file"},
		{"cancelled", cancelled, path, h, []Member{BytesMember("a", []byte("x"))}, "canceled"},
	} {
		if _, err := Create(c.ctx, c.path, c.h, c.ms, CreateOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if es, _ := os.ReadDir(dir); len(es) != 0 {
			t.Errorf("%s: left %v", c.name, es)
		}
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		if _, err := Create(ctx, "/dev/full", h, nil, CreateOptions{}); err == nil {
			t.Error("wrote to a full device")
		}
	}
	if _, err := NewHeader(strings.Repeat("n", 256)); err == nil {
		t.Error("a name of 256 bytes has no NUL")
	}
	if _, err := NewHeader(strings.Repeat("n", 255)); err != nil {
		t.Error(err)
	}
}

func TestComplaintsAndFeatures(t *testing.T) {
	h, _ := NewHeader("n")
	if c := h.LoaderComplaints(); c != nil {
		t.Error(c)
	}
	h.FeatureBits = 0x7fffffff8000000&^0x7fffffff0000000 | 0x2000000 | 0x2 | 1<<63 // the first unknown bit, two known, one ignored
	if c := h.LoaderComplaints(); len(c) != 1 || !strings.Contains(c[0], "0x8000000") {
		t.Error(c)
	}
	if d := cmp.Diff([]string{"collective_has_offset", "large_tensor_support", "0x8000000", "0x8000000000000000"}, h.Features()); d != "" {
		t.Error(d)
	}
	h.VersionMajor, h.FeatureBits = 3, 0
	if c := h.LoaderComplaints(); len(c) != 1 || !strings.Contains(c[0], "major version 3") {
		t.Error(c)
	}
	if got := FormatUUID([16]byte{0x12, 0x34, 15: 0xff}); got != "12340000-0000-0000-0000-0000000000ff" {
		t.Error(got)
	}
}

func TestDebugNames(t *testing.T) {
	for _, c := range []struct {
		n    DebugName
		want string
	}{
		{DebugName{LayerFramework, components.Unassigned, NoCounter, ""}, "debug_info_pttf"},
		{DebugName{LayerFramework, components.Unassigned, NoCounter, "dbg"}, "debug_info_pttf.dbg"},
		{DebugName{LayerHLO, components.Unassigned, NoCounter, "dbg_sg000000"}, "debug_info_hlo.dbg_sg000000"},
		{DebugName{LayerPenguin, components.Unassigned, 3, "dbg"}, "debug_info_penguin.3.dbg"},
		{DebugName{LayerBackend, components.PE, 0, "dbg"}, "debug_info_backend_PE.0.dbg"},
		{DebugName{LayerBackend, components.Activation, NoCounter, "dbg"}, "debug_info_backend_Activation.dbg"},
		{DebugName{LayerASM, components.All, 12, ""}, "debug_info_asm_ALL.12"},
	} {
		if got := c.n.String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.n, got, c.want)
		}
		if got, ok := ParseDebugName("debug_info/" + c.want); !ok || got != c.n {
			t.Errorf("%s parses as %+v, %v", c.want, got, ok)
		}
	}
	for name, want := range map[string]DebugName{
		"sg00/debug_info_backend.PE.0.dbg":     {LayerBackend, components.PE, 0, "dbg"},
		"sg01/debug_info_asm_DVE.dbg":          {LayerASM, components.DVE, NoCounter, "dbg"},
		"sg00/debug_info_backend_SP.dbg":       {LayerBackend, components.SP, NoCounter, "dbg"},
		"sg00/debug_info_asm_Activation.2.dbg": {LayerASM, components.Activation, 2, "dbg"},
		"sg00/debug_info_asm_PE_0.dbg":         {LayerASM, components.PE, 0, "dbg"},
		"sg00/debug_info_asm_pool_13":          {LayerASM, components.Pool, 13, ""},
		"debug_info_backend_Unassigned.dbg":    {LayerBackend, components.Unassigned, NoCounter, "dbg"},
		"debug_info_backend_Unassigned_1.dbg":  {LayerBackend, components.Unassigned, 1, "dbg"},
		"debug_info_penguin_3.dbg":             {LayerPenguin, components.Unassigned, 3, "dbg"},
		"sg0001/debug_info_hlo_sg0001.pb":      {LayerHLO, components.Unassigned, NoCounter, "sg0001.pb"},
		"debug_info_hlo.":                      {LayerHLO, components.Unassigned, NoCounter, ""},
	} {
		if got, ok := ParseDebugName(name); !ok || got != want {
			t.Errorf("%s parses as %+v, %v", name, got, ok)
		}
	}
	if got := (DebugName{Layer: 5, Counter: NoCounter}).String(); got != "unknown" {
		t.Error(got)
	}
	for _, s := range []string{"", "info.json", "debug_info", "debug_info_pttfx", "debug_info_backendx.dbg", "xdebug_info_hlo", "debug_info_hlo/x"} {
		if n, ok := ParseDebugName(s); ok {
			t.Errorf("%q is %+v", s, n)
		}
	}
}

func TestExtractIsSafe(t *testing.T) {
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	tw.WriteHeader(&tar.Header{Name: "../evil", Size: 1, Mode: 0o644})
	tw.Write([]byte("x"))
	tw.Close()
	h, _ := NewHeader("x")
	h.DataSize = uint64(buf.Len())
	f, err := New(bytes.NewReader(append(h.Bytes(), buf.Bytes()...)), 1024+int64(buf.Len()))
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	if _, err := f.Extract(ctx, filepath.Join(top, "d"), DefaultLimits, ExtractOptions{}); err == nil || !strings.Contains(err.Error(), "climbs") {
		t.Error(err)
	}
	if es, _ := os.ReadDir(top); len(es) != 0 {
		t.Error(es)
	}
}

// FuzzNEFF: no file makes the reader panic or exceed its limits; what can be
// added to can be read, and holds the member.
func FuzzNEFF(f *testing.F) {
	for _, v := range []uint64{1, 2} {
		f.Add(read(f, create(f, v, sample()[:2])))
	}
	f.Add([]byte{0x1f, 0x8b})
	f.Fuzz(func(t *testing.T, data []byte) {
		lim := tarball.Limits{Members: 50, Bytes: 1 << 20}
		n, err := New(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		n.CheckHash(ctx)
		n.Header.Features()
		n.Header.LoaderComplaints()
		if !bytes.Equal(n.Header.Bytes(), data[:1024]) {
			t.Fatal("header does not survive")
		}
		before, lerr := n.List(ctx, lim)
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
		os.WriteFile(in, data, 0o644)
		_, err = Add(ctx, in, BytesMember("new", []byte("n")), out, AddOptions{Force: true, Limits: lim})
		if err != nil {
			if _, serr := os.Stat(out); serr == nil {
				t.Fatal("a file after", err)
			}
			return
		}
		if lerr != nil {
			t.Fatal("added to what cannot be listed:", lerr)
		}
		g, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if err := g.CheckHash(ctx); err != nil {
			t.Fatal(err)
		}
		after, err := g.List(ctx, tarball.Limits{})
		if err != nil || len(after) != len(before)+1 || after[len(before)].Name != "new" {
			t.Fatal(after, err)
		}
	})
}
