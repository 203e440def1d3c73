package psim

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
)

// sample returns a module of n instructions with something in every table
// that a snapshot saves: rows whose values tell which column they are in.
func sample(n int) *components.Module {
	m := components.NewModule("sample", "test")
	m.Arch = "trn2"
	m.Attributes = []components.Attribute{{Key: "kernel", Value: "µ"}, {Key: "", Value: ""}}
	m.AddCoreLanes(0)
	m.Opcode("Frobnicate")
	m.Instr.Grow(n)
	m.Instr.Name.Resize(n)
	m.Instr.DMABytes.Resize(n)
	f := m.Functions.Add(m.Symbols.InternString("main"), 0)
	m.Blocks.Add(m.Symbols.InternString("entry"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	var edges components.EdgeSet
	for i := range n {
		m.Instr.Opcode.Set(i, components.OpcodeTensorTensor)
		m.Instr.Engine.Set(i, components.DVE)
		m.Instr.Lane.Set(i, components.LaneDVE)
		m.Instr.Elems.Set(i, uint32(i))
		m.Instr.DMABytes.Set(i, uint64(i)<<32)
		m.Instr.Name.Set(i, m.Symbols.InternString("i"+strings.Repeat("x", i%7)))
		m.Operands.Add(components.AccessPattern{DType: components.Float32, Steps: []int64{-1, 2}, Counts: []uint64{3, 4}})
		m.Operands.EndRow()
		if i > 0 {
			edges.Add(components.InstrID(i), components.InstrID(i/2), components.EdgeKind(1+i%4))
		}
	}
	m.Note("remark", "text", 3)
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	return m
}

func encode(t testing.TB, m *components.Module, jobs int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(context.Background(), &b, m, format.Options{Jobs: jobs}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fromBytes reads all columns of a snapshot as from a pipe.
func fromBytes(name string, b []byte) (*Snapshot, error) {
	return read(name, bytes.NewReader(b), func(*header) func(string) bool { return nil })
}

// same compares everything a module has.
func same(t *testing.T, got, want *components.Module) {
	t.Helper()
	if d := cmp.Diff(headerOf(want), headerOf(got), cmp.AllowUnexported(header{})); d != "" {
		t.Errorf("header: %s", d)
	}
	g := got.Columns()
	for i, c := range want.Columns() {
		if c.Name() != g[i].Name() || !bytes.Equal(c.Raw(), g[i].Raw()) {
			t.Errorf("column %s differs", c.Name())
		}
	}
}

func TestRoundTrip(t *testing.T) {
	for _, n := range []int{1, 2, 1000, 300_000} {
		m := sample(n)
		b := encode(t, m, 1)
		if !bytes.Equal(b, encode(t, m, 7)) {
			t.Fatalf("%d instructions: the bytes depend on the number of goroutines", n)
		}
		s, err := fromBytes("sample", b)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(context.Background(), 2, nil, nil); err != nil {
			t.Fatal(err)
		}
		got, err := s.Module(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Check(); err != nil {
			t.Fatal(err)
		}
		same(t, got, m)
		if !bytes.Equal(b, encode(t, got, 1)) {
			t.Errorf("%d instructions: a snapshot of the module read differs", n)
		}
	}
}

// Random column contents and sizes, from a file and from a stream.
func TestRoundTripRandom(t *testing.T) {
	dir := t.TempDir()
	proptest.Check(t, func(t *rapid.T) {
		m := components.NewModule(rapid.String().Draw(t, "name"), "test")
		for _, c := range m.Columns() {
			rows := rapid.IntRange(0, 5000).Draw(t, c.Name())
			raw := make([]uint64, (rows*c.ElemSize()+7)/8)
			for i := range raw {
				raw[i] = uint64(i) * 0x9e3779b97f4a7c15
			}
			col := ecs.NewColumn[uint64]("")
			col.Adopt(raw)
			if err := c.AdoptRaw(col.Raw()[:rows*c.ElemSize()]); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		if err := Write(context.Background(), &b, m, format.Options{Jobs: 1}); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "m.psim")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(context.Background(), path, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := fromBytes("stream", b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Snapshot{opened, streamed} {
			if err := s.Verify(context.Background(), 1, nil, nil); err != nil {
				t.Fatal(err)
			}
			got, err := s.Module(nil)
			if err != nil {
				t.Fatal(err)
			}
			g := got.Columns()
			for i, c := range m.Columns() {
				if c.Len() > 0 && !bytes.Equal(c.Raw(), g[i].Raw()) {
					t.Fatalf("column %s differs", c.Name())
				}
			}
		}
	})
}

// A change of any byte of preamble, directory or columns is found, and where it
// is in a column the column is named. The padding between columns is not read.
func TestEveryByteIsCovered(t *testing.T) {
	b := encode(t, sample(40), 1)
	for at := range b {
		c := bytes.Clone(b)
		c[at] ^= 0x10
		s, err := fromBytes("flipped", c)
		if err == nil {
			err = s.Verify(context.Background(), 1, nil, nil)
		}
		if err == nil {
			if at >= preambleSize+int(s.pre.dirSize) && !slices.ContainsFunc(s.Columns(), func(c Column) bool { return int64(at) >= c.Offset && int64(at) < c.Offset+c.Bytes }) {
				continue
			}
			t.Fatalf("a change of byte %d went unnoticed", at)
		}
		if s != nil {
			for _, col := range s.Columns() {
				if int64(at) >= col.Offset && int64(at) < col.Offset+col.Bytes && !strings.Contains(err.Error(), "column "+col.Name+",") {
					t.Fatalf("byte %d is in column %s, the error names it not: %v", at, col.Name, err)
				}
			}
		}
	}
}

// A file cut short anywhere, or with something behind it, is refused with an
// error by every way of reading.
func TestTruncated(t *testing.T) {
	b := encode(t, sample(40), 1)
	path := filepath.Join(t.TempDir(), "short.psim")
	for n := 0; n < len(b)+2; n++ {
		if n == len(b) {
			continue
		}
		c := append(bytes.Clone(b), 'x')[:min(n, len(b)+1)]
		if _, err := fromBytes("short", c); err == nil {
			t.Fatalf("%d bytes of %d were read from a stream as whole", n, len(b))
		}
		if n%97 == 0 {
			if err := os.WriteFile(path, c, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(context.Background(), path, 1, nil); err == nil {
				t.Fatalf("%d bytes of %d were opened as whole", n, len(b))
			}
		}
	}
}

func TestDamageIsNamedByRow(t *testing.T) {
	m := sample(400_000)
	b := encode(t, m, 1)
	s, err := fromBytes("big", b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range s.Columns() {
		if c.Name == "instr.elems" {
			b[c.Offset+4*300_000] ^= 1 // the second MiB of uint32
		}
	}
	if s, err = fromBytes("big", b); err == nil {
		err = s.Verify(context.Background(), 3, nil, nil)
	}
	if err == nil || !strings.Contains(err.Error(), "column instr.elems, rows 262144 to 399999") {
		t.Errorf("damage of row 300000 of instr.elems: %v", err)
	}
}

// mend gives a changed directory its checksums again: what somebody who
// means harm would do.
func mend(b []byte) []byte {
	le := binary.LittleEndian
	if len(b) < preambleSize {
		return b
	}
	if size := le.Uint64(b[32:]); size <= uint64(len(b)-preambleSize) {
		le.PutUint32(b[52:], crc32.Checksum(b[preambleSize:preambleSize+size], castagnoli))
	}
	le.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli))
	return b
}

func TestHostileDirectory(t *testing.T) {
	good := encode(t, sample(10), 1)
	le := binary.LittleEndian
	record := func(b []byte, i int) []byte { return b[preambleSize+i*recordSize:] }
	for name, c := range map[string]struct {
		change func(b []byte)
		want   string
	}{
		"later version":       {func(b []byte) { le.PutUint32(b[8:], 2) }, "version 2"},
		"columns":             {func(b []byte) { le.PutUint32(b[12:], 1<<31) }, "columns"},
		"file size":           {func(b []byte) { le.PutUint64(b[16:], 1<<63) }, "size"},
		"directory size":      {func(b []byte) { le.PutUint64(b[32:], 1<<60) }, "directory"},
		"chunk size":          {func(b []byte) { le.PutUint32(b[48:], 1) }, "chunk size"},
		"same name":           {func(b []byte) { copy(record(b, 1)[:nameSize], record(b, 0)[:nameSize]) }, "name"},
		"offset beyond":       {func(b []byte) { le.PutUint64(record(b, 2)[40:], 1<<62) }, "has bytes"},
		"offset elsewhere":    {func(b []byte) { le.PutUint64(record(b, 2)[40:], 0) }, "has bytes"},
		"size wraps":          {func(b []byte) { le.PutUint64(record(b, 2)[48:], 1<<64-8) }, "has bytes"},
		"no element size":     {func(b []byte) { le.PutUint32(record(b, 2)[56:], 0) }, "rows of 0"},
		"other element size":  {func(b []byte) { le.PutUint32(record(b, 1)[56:], 1) }, "rows of 1 bytes, not 4"},
		"number of checksums": {func(b []byte) { le.PutUint32(record(b, 2)[60:], 1<<30) }, "checksums"},
	} {
		b := bytes.Clone(good)
		c.change(b)
		s, err := fromBytes("hostile", mend(b))
		if err == nil {
			_, err = s.Module(nil)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		}
	}
}

func TestReadInPart(t *testing.T) {
	b := encode(t, sample(1000), 1)
	want := func(name string) bool { return strings.HasPrefix(name, "edges.") }
	streamed, err := read("part", bytes.NewReader(b), func(*header) func(string) bool { return want })
	if err != nil {
		t.Fatal(err)
	}
	whole, err := fromBytes("part", b)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Snapshot{streamed, whole} {
		m, err := s.Module(want)
		if err != nil {
			t.Fatal(err)
		}
		if m.Edges.Preds.Len() != 999 || m.Instr.Len() != 0 || m.Operands.Len() != 0 || m.Name != "sample" {
			t.Errorf("read %d edges, %d instructions, %d operands of %q", m.Edges.Preds.Len(), m.Instr.Len(), m.Operands.Len(), m.Name)
		}
	}
}

// What is written to the file after it was read, or cut from it, does not
// reach the module; what is written to the module does not reach the file.
func TestColumnsAreOurOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.psim")
	want := sample(50_000)
	b := encode(t, want, 1)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), path, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Module(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{bytes.Repeat([]byte{0xff}, len(b)), nil} {
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		same(t, m, want)
	}
	clear(m.Instr.Elems.Slice())
	if after, err := os.ReadFile(path); err != nil || len(after) > 0 {
		t.Errorf("the file has %d bytes, %v", len(after), err)
	}
}

// Memory for the columns is taken only where the limit of the context allows.
func TestMemoryIsAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.psim")
	if err := os.WriteFile(path, encode(t, sample(1000), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	full := errors.New("full")
	asked := uint64(0)
	ctx := format.WithReserve(context.Background(), func(n uint64, _ string) error { asked = n; return full })
	if _, err := Open(ctx, path, 1, nil); !errors.Is(err, full) || asked < 20_000 {
		t.Errorf("asked for %d bytes, error %v", asked, err)
	}
}

func TestImporter(t *testing.T) {
	ctx := context.Background()
	m := sample(3000)
	b := encode(t, m, 1)
	dir := t.TempDir()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	plain, packed := filepath.Join(dir, "a.psim"), filepath.Join(dir, "a.psim.zst")
	if err := os.WriteFile(plain, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(packed, z.EncodeAll(b, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, packed, "-"} {
		src, err := format.Open(ctx, path, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if !Importer.Sniff(src.Head()) {
			t.Errorf("%s is not recognised", path)
		}
		got, err := Importer.Module(ctx, src, format.Options{Jobs: 2})
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, m)
		src.Close()
	}
	src, err := format.Open(ctx, plain, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	got, err := Importer.Module(ctx, src, format.Options{Jobs: 2, SkipOperands: func(f string, _ []components.Attribute) bool { return f == "test" }})
	if err != nil {
		t.Fatal(err)
	}
	if got.Operands.Len() != 0 || got.Instr.Len() != 3000 {
		t.Errorf("read %d operands of %d instructions, want none of 3000", got.Operands.Len(), got.Instr.Len())
	}
}

// Columns of a program of tomorrow are left out and told.
func TestUnknownColumn(t *testing.T) {
	b := encode(t, sample(10), 1)
	copy(b[preambleSize+3*recordSize:][:nameSize], "instr.phase\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	s, err := fromBytes("later", mend(b))
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.Module(nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Notes[len(m.Notes)-1]; n.Code != "snapshot-column" || !strings.Contains(n.Text, "instr.phase") {
		t.Errorf("the last note is %+v", n)
	}
}

// Everything a module has is either in a column or in the header; whoever
// adds a field has to save it.
func TestEveryFieldIsSaved(t *testing.T) {
	saved := map[string]bool{"Name": true, "Format": true, "Arch": true, "Attributes": true, "Opcodes": true, "Notes": true,
		"opcodeOf": true, // rebuilt from Opcodes
		"Base":     true} // of windows, which are not saved
	m := components.NewModule("", "")
	typ := reflect.TypeFor[components.Module]()
	for i := range typ.NumField() {
		f := typ.Field(i)
		if saved[f.Name] {
			continue
		}
		// A table: it has columns, which the module lists.
		v := reflect.ValueOf(m).Elem().Field(i)
		if v.Kind() != reflect.Pointer {
			v = v.Addr()
		}
		table, ok := v.Interface().(interface{ Columns() []ecs.AnyColumn })
		if !ok {
			t.Errorf("field %s of a module is neither a table nor in the header of a snapshot", f.Name)
			continue
		}
		listed := map[ecs.AnyColumn]bool{}
		for _, c := range m.Columns() {
			listed[c] = true
		}
		for _, c := range table.Columns() {
			if !listed[c] {
				t.Errorf("column %s is not listed by the module", c.Name())
			}
		}
	}
}

// The element type of a column is part of the format: to change it is to
// raise the version.
func TestColumnTypes(t *testing.T) {
	want := map[string]int{"instr.opcode": 2, "instr.engine": 1, "instr.lane": 2, "instr.flags": 4, "instr.elems": 4, "instr.parts": 2,
		"instr.dtype": 1, "instr.banks": 2, "instr.name": 4, "instr.ref": 8, "instr.dma_bytes": 8, "edges.offsets": 4, "edges.words": 4,
		"operands.address": 8, "operands.step": 8, "operands.count": 8, "symbols.arena": 1, "symbols.ends": 4, "blocks.trip": 8}
	for _, c := range components.NewModule("", "").Columns() {
		if size, ok := want[c.Name()]; ok && size != c.ElemSize() {
			t.Errorf("column %s has rows of %d bytes; version %d of the format says %d", c.Name(), c.ElemSize(), version, size)
		}
		delete(want, c.Name())
	}
	for name := range want {
		t.Errorf("column %s is no longer there; old snapshots have it", name)
	}
}

func FuzzRead(f *testing.F) {
	small := encode(f, sample(3), 1)
	f.Add(small)
	f.Add(small[:100])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := fromBytes("fuzz", mend(bytes.Clone(b)))
		if err != nil {
			return
		}
		_ = s.Verify(context.Background(), 1, nil, nil) // either answer is right; it must come
		m, err := s.Module(nil)
		if err != nil || m.Check() != nil {
			return
		}
		// What passed can be used: every name, edge and operand.
		for i := range m.Instr.Len() {
			m.InstrName(components.InstrID(i))
			for _, w := range m.Edges.Preds.Row(i) {
				m.InstrName(components.InstrID(w & ecs.TargetMask))
			}
			lo, hi := m.Operands.Range(components.InstrID(i))
			for r := lo; r < hi; r++ {
				m.Operands.At(r).Elems()
			}
		}
	})
}
