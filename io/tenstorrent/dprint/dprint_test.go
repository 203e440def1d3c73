package dprint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components/datadir"
	"perfsim/ecs/proptest"
)

func toBF16(v float32) uint16 { return uint16(math.Float32bits(v) >> 16) }

// rig is a server with some processors, polled whenever a buffer is full.
type rig struct {
	s   *Server
	out bytes.Buffer
}

func newRig(o Options) *rig {
	r := &rig{}
	o.Out = &r.out
	r.s = NewServer(o)
	return r
}

func (r *rig) printer(k Key) *Printer {
	b := NewBuffer(r.s.o.Dialect, uint16(k.X), uint16(k.Y))
	r.s.Attach(k, b)
	return &Printer{Buf: b, OnFull: func() error { _, err := r.s.Poll(); return err }}
}

// The example of the article: a text, a character, a number, a float.
func TestSeedPrint(t *testing.T) {
	for _, d := range []Dialect{Dialect2024, DialectCurrent} {
		r := newRig(Options{Dialect: d, Shared: d.Signals})
		p := r.printer(Key{X: 1, Y: 1})
		p.Str("Test string").Char('a').I32(5).F32(0.123456).Endl()
		if err := r.s.Drain(); err != nil || p.Err() != nil {
			t.Fatal(err, p.Err())
		}
		if got := r.out.String(); got != "Test stringa50.123456\n" {
			t.Errorf("%s: %q", d.Name, got)
		}
	}
}

// The vendor's golden file: all types on five processors, in an order kept by
// signals, one stream for all, so that the precision set by the first
// processor is seen by the next.
func TestGoldenAllHarts(t *testing.T) {
	want, err := os.ReadFile(datadir.Path(t, "tenstorrent", "tenstorrent__tt-metal", "dprint", "test_print_all_harts_golden.txt"))
	if err != nil {
		t.Fatal(err)
	}
	tile := Tile{Ptr: 122880, Range: tileRange{0, 32, 8, 0, 32, 8}, EndRows: true, Count: 16}
	for _, v := range []float32{0.122558594, 0.127929688, 0.490234375, 0.51171875, 0.245117188, 0.255859375, 0.98046875, 1.0234375,
		1.9609375, 2.046875, 7.84375, 8.1875, 3.921875, 4.09375, 15.6875, 16.375} {
		b := toBF16(v)
		tile.Data = append(tile.Data, byte(b), byte(b>>8))
	}
	r := newRig(Options{Dialect: Dialect2024, Shared: true})
	order := []struct {
		risc int
		name string
	}{{0, "Data0"}, {2, "Unpack"}, {3, "Math"}, {4, "Pack"}, {1, "Data1"}}
	var printers []*Printer
	for _, o := range order {
		printers = append(printers, r.printer(Key{Risc: o.risc}))
	}
	// The last one prints first and has to wait for the others.
	for i := len(order) - 1; i >= 0; i-- {
		p := printers[i]
		if i > 0 {
			p.Wait(uint32(i))
		}
		p.Str("Test Debug Print: " + order[i].name + "\nBasic Types:\n").I32(101).F32(-1.6180034).Char('@').BF16(0x3dfb).Endl()
		p.Str("SETPRECISION/FIXED/DEFAULTFLOAT:\n").Precision(5).F32(3.14159).Endl()
		p.Precision(9).F32(3.14159).Endl()
		p.Fixed().F32(3.14159).DefaultFloat().Endl()
	}
	// What follows does not fit behind it: those behind have to wait until
	// the ones before have been printed.
	rest := func(i int) {
		p := printers[i]
		p.Str("SETW (sticky):\n").SetW(10).U32(123456).SetW(10).U32(123456).Endl()
		p.Str("SETW (non-sticky):\n").SetW(10).U32(123456).U32(123456).Endl()
		p.Str("HEX/OCT/DEC:\n").Hex().U32(123456).Oct().U32(123456).Dec().U32(123456).Endl()
		p.Str("SLICE:\n")
		if order[i].risc != mathRisc {
			p.Tile(tile)
		}
		p.Raise(uint32(i + 1))
	}
	for i := range order {
		rest(i)
	}
	for _, p := range printers {
		if p.Err() != nil {
			t.Fatal(p.Err())
		}
	}
	if err := r.s.Drain(); err != nil {
		t.Fatal(err)
	}
	if got := r.out.String(); got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The vendor's golden file of ordered hand-over: 25 cores, two processors.
func TestGoldenRaiseWait(t *testing.T) {
	want, err := os.ReadFile(datadir.Path(t, "tenstorrent", "tenstorrent__tt-metal", "dprint", "test_raise_wait_golden.txt"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(Options{Dialect: Dialect2024, Shared: true})
	// All kernels have run before the server looks for the first time.
	for y := 4; y >= 0; y-- {
		for x := 4; x >= 0; x-- {
			n := uint32(y*5 + x)
			nc, br := r.printer(Key{X: x, Y: y, Risc: 1}), r.printer(Key{X: x, Y: y, Risc: 0})
			br.Wait(2*n + 1)
			br.Str(fmt.Sprintf("TestStrBR{%d,%d}\n", x, y)).Str("+++++++++++++++").Endl().Raise(2*n + 2)
			if n > 0 {
				nc.Wait(2 * n)
			}
			nc.Str(fmt.Sprintf("TestConstCharStrNC{%d,%d}", x, y)).Endl()
			nc.SetW(4).U32(2).Endl().Fixed().Precision(4).F32(0.123456).Endl().F32(0.12).Endl().BF16(0x3dfb).Endl().Str("----------").Endl().Raise(2*n + 1)
			if nc.Err() != nil || br.Err() != nil {
				t.Fatal(nc.Err(), br.Err())
			}
		}
	}
	if err := r.s.Drain(); err != nil {
		t.Fatal(err)
	}
	if got := r.out.String(); got != string(want) {
		t.Errorf("got\n%.600s\nwant\n%.600s", got, want)
	}
}

func TestHang(t *testing.T) {
	r := newRig(Options{Dialect: Dialect2024, Shared: true})
	p := r.printer(Key{X: 3, Y: 4, Risc: 1})
	p.Str("before").Endl().Wait(77).Str("after").Endl()
	if err := r.s.Drain(); !errors.Is(err, errHang) {
		t.Fatalf("error %v", err)
	}
	if got, want := r.out.String(), "before\nDPRINT server timed out on core (3,4) riscv 1, waiting on a RAISE signal: 77\n"; got != want {
		t.Errorf("%q", got)
	}
	// A writer that fills its buffer now is told, and does not hang.
	for range 100 {
		p.Str("x").Endl()
	}
	if !errors.Is(p.Err(), errHang) {
		t.Errorf("writer's error %v", p.Err())
	}
}

// A full buffer makes the device wait until the host has read it; nothing is
// lost.
func TestFullBuffer(t *testing.T) {
	r := newRig(Options{Dialect: DialectCurrent})
	p := r.printer(Key{})
	var want strings.Builder
	for i := range 300 {
		p.Str("line ").U32(uint32(i)).Endl()
		fmt.Fprintf(&want, "line %d\n", i)
	}
	r.s.Drain()
	if p.Err() != nil || r.out.String() != want.String() || p.Buf.Waits == 0 {
		t.Errorf("%v, %d bytes, %d waits", p.Err(), r.out.Len(), p.Buf.Waits)
	}
}

func TestDisabled(t *testing.T) {
	r := newRig(Options{Dialect: DialectCurrent})
	b := NewBuffer(DialectCurrent, 0, 0)
	p := &Printer{Buf: b}
	for range 1000 {
		p.Str("nobody listens").Endl() // and nobody waits
	}
	r.s.Attach(Key{}, b)
	p.Str("one").Endl()
	r.s.Drain()
	p.Str("three").Endl().Str("no end")
	r.s.Drain()
	if got := r.out.String(); got != "one\nthree\n" {
		t.Errorf("%q", got)
	}
	r.s.Close()
	if got := r.out.String(); got != "one\nthree\nno end" {
		t.Errorf("at close %q", got)
	}
}

func TestPrefixAndFiles(t *testing.T) {
	r := newRig(Options{Dialect: DialectCurrent, Prefix: true})
	a, b := r.printer(Key{Device: 2, X: 1, Y: 3, Risc: 1}), r.printer(Key{Device: 2, X: 1, Y: 2, Risc: 4})
	a.Str("half ")
	b.Str("x\ny\nz").Endl()
	r.s.Drain()
	a.Str("line").Endl()
	r.s.Drain()
	if got, want := r.out.String(), "2:(1, 2):TR2: x\n2:(1, 2):TR2: y\n2:(1, 2):TR2: z\n2:(1, 3):NC: half line\n"; got != want {
		t.Errorf("%q", got)
	}
	files := map[string]*bytes.Buffer{}
	s := NewServer(Options{Dialect: DialectCurrent, File: func(k Key) io.Writer {
		f := &bytes.Buffer{}
		files[k.FileName()] = f
		return f
	}})
	for risc := range 2 {
		buf := NewBuffer(DialectCurrent, 1, 1)
		s.Attach(Key{X: 1, Y: 1, Risc: risc}, buf)
		(&Printer{Buf: buf}).U32(uint32(risc)).Endl()
	}
	s.Drain()
	if len(files) != 2 || files["device-0_worker-core-1-1_NCRISC.txt"].String() != "1\n" {
		t.Errorf("%v", files)
	}
}

func TestLongText(t *testing.T) {
	long := strings.Repeat("0123456789", 60)
	r := newRig(Options{Dialect: DialectCurrent})
	r.printer(Key{}).Str(long).Endl()
	r.s.Drain()
	if got := r.out.String(); got != long+"\n" {
		t.Errorf("in pieces: %q", got)
	}
	r = newRig(Options{Dialect: Dialect2024, Shared: true})
	r.printer(Key{}).Str(long)
	r.s.Drain()
	if got := r.out.String(); got != overflowText {
		t.Errorf("in 2024: %q", got)
	}
	p := r.printer(Key{Risc: 1}).Array(make([]uint32, 60))
	if !errors.Is(p.Err(), errTooLong) {
		t.Errorf("error %v", p.Err())
	}
	if p := r.printer(Key{Risc: 2}); p.Str(strings.Repeat("x", 189)).Err() != nil {
		t.Error("189 characters and their end fit")
	}
}

func TestTiles(t *testing.T) {
	print := func(d Dialect, risc int, tile Tile) string {
		r := newRig(Options{Dialect: d})
		r.printer(Key{Risc: risc}).Tile(tile)
		r.s.Drain()
		r.s.Close()
		if len(r.s.Problem) > 0 {
			return fmt.Sprint(r.s.Problem)
		}
		return r.out.String()
	}
	two := tileRange{0, 2, 1, 0, 2, 1}
	for _, tc := range []struct {
		tile Tile
		want string
	}{
		{Tile{Range: two, Return: tileOK, Format: formatFloat16b, Count: 4, EndRows: true, Data: []byte{0x80, 0x3f, 0, 0x40, 0x40, 0x40, 0x80, 0x40}}, "1 2\n3 4\n"},
		{Tile{Range: two, Return: tileOK, Format: formatInt32, Count: 4, EndRows: true, Data: []byte{1, 0, 0, 0, 255, 255, 255, 255, 3, 0, 0, 0, 4, 0, 0, 0}}, "1 -1\n3 4\n"},
		{Tile{Range: two, Return: tileOK, Format: formatUInt8, Count: 4, EndRows: true, Data: []byte{1, 255, 3, 4}}, "1 255\n3 4\n"},
		// Bfp8: exponent 127, magnitude 64 of 64 is 1; 0xE0 is -1.5.
		{Tile{Range: two, Return: tileOK, Format: formatBfp8b, Count: 4, EndRows: true, Data: []byte{127, 64, 127, 0xE0, 128, 96, 126, 64}}, "1 -1.5\n3 0.5\n"},
		{Tile{Range: two, Return: tileOK, Format: formatUInt8, Count: 3, EndRows: true, Data: []byte{1, 2, 3}}, "1 2\n3 <TileSlice data truncated due to exceeding max count (3)>\n"},
		{Tile{Ptr: 9, Return: tileBadPointer, CB: 5, Count: 2}, "Tried printing CBIndex::c_5: BAD TILE POINTER (ptr=9, count=2)\n"},
		{Tile{Return: tileBadFormat, CB: 5, Format: 99}, "Tried printing CBIndex::c_5: Unsupported data format (99)\n"},
		{Tile{Return: tileOnMath}, "Warning: MATH core does not support TileSlice printing, omitting print...\n"},
		{Tile{Return: tileOnEthernet}, "Warning: Ethernet core does not support TileSlice printing, omitting print...\n"},
		{Tile{Return: 3}, "Warning: TileSlice printing failed with unknown return code 3, omitting print...\n"},
		{Tile{Range: tileRange{0, 2, 0, 0, 2, 1}, Return: tileOK}, "[{{0 0 0 0 } 0 tile slice with a step of 0}]"},
	} {
		if got := print(DialectCurrent, 0, tc.tile); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.tile, got, tc.want)
		}
	}
	if got := print(Dialect2024, mathRisc, Tile{}); got != "Warning: MATH core does not support TileSlice printing, omitting print...\n" {
		t.Errorf("%q", got)
	}
	if got := print(Dialect2024, 0, Tile{Return: tileBadPointer, Ptr: 4, Count: 2}); got != "TILE: (\nBAD TILE POINTER count=2\n  ptr=4)\n" {
		t.Errorf("%q", got)
	}
}

func TestArrays(t *testing.T) {
	r := newRig(Options{Dialect: DialectCurrent})
	p := r.printer(Key{})
	p.Array([]uint32{1, 255}).Dec().Endl()
	p.SetW(8).TypedArray(typedConfigFormat, formatUInt16, []uint32{0x00020001}).Endl()
	p.TypedArray(typedConfigFormat, formatFloat32, []uint32{math.Float32bits(1.5)}).Endl()
	p.TypedArray(typedConfigFormat, 77, []uint32{5}).Endl()
	r.s.Drain()
	if got, want := r.out.String(), "0x1 0xff \n       1        2 \n     1.5 \nUnknown data format 77 \n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := makeFloat(5, 10, 0b0_1000000000_01111); got != 1.5 {
		t.Errorf("%g", got)
	}
}

// Random values against an independent formatting with package fmt.
func TestAgainstFmt(t *testing.T) {
	proptest.Check(t, func(rt *rapid.T) {
		d := DialectCurrent
		if rapid.Bool().Draw(rt, "old") {
			d = Dialect2024
		}
		r := newRig(Options{Dialect: d})
		p := r.printer(Key{})
		var want strings.Builder
		prec, fixed, verb, width := 6, false, "d", 0
		pad := func(s string) {
			fmt.Fprintf(&want, "%*s", width, s)
			width = 0
		}
		whole := func(v any) { pad(fmt.Sprintf("%"+verb, v)) }
		for range rapid.IntRange(1, 60).Draw(rt, "n") {
			switch rapid.IntRange(0, 17).Draw(rt, "op") {
			case 0:
				prec = rapid.IntRange(1, 12).Draw(rt, "prec")
				p.Precision(uint8(prec))
			case 1:
				fixed = !fixed
				if fixed {
					p.Fixed()
				} else {
					p.DefaultFloat()
				}
			case 2:
				p.Hex()
				verb = "x"
			case 3:
				p.Oct()
				verb = "o"
			case 4:
				p.Dec()
				verb = "d"
			case 5:
				width = rapid.IntRange(0, 20).Draw(rt, "width")
				p.SetW(uint8(width))
			case 6:
				v := rapid.Uint16().Draw(rt, "v")
				p.U16(v)
				whole(v)
			case 7:
				v := rapid.Uint32().Draw(rt, "v")
				p.U32(v)
				whole(v)
			case 8:
				v := rapid.Uint64().Draw(rt, "v")
				p.U64(v)
				whole(v)
			case 9:
				v := rapid.Int8().Draw(rt, "v")
				p.I8(v)
				if verb == "d" {
					whole(v)
				} else {
					whole(uint32(int32(v)))
				}
			case 10:
				v := rapid.Int16().Draw(rt, "v")
				p.I16(v)
				if verb == "d" {
					whole(v)
				} else {
					whole(uint16(v))
				}
			case 11:
				v := rapid.Int32().Draw(rt, "v")
				p.I32(v)
				if verb == "d" {
					whole(v)
				} else {
					whole(uint32(v))
				}
			case 12:
				v := rapid.Int64().Draw(rt, "v")
				p.I64(v)
				if verb == "d" {
					whole(v)
				} else {
					whole(uint64(v))
				}
			case 13, 14:
				v := float32(rapid.Float64Range(-1e9, 1e9).Draw(rt, "v"))
				if rapid.Bool().Draw(rt, "small") {
					v /= 1e12
				}
				p.F32(v)
				if fixed {
					pad(fmt.Sprintf("%.*f", prec, v))
				} else {
					pad(fmt.Sprintf("%.*g", prec, v))
				}
			case 15:
				c := byte(rapid.IntRange(33, 126).Draw(rt, "c"))
				p.Char(c)
				pad(string(c))
			case 16:
				s := rapid.StringMatching(`[ -~]{0,30}`).Draw(rt, "s")
				p.Str(s)
				pad(s)
			case 17:
				p.Endl()
				want.WriteByte('\n')
			}
		}
		if p.Err() != nil {
			rt.Fatal(p.Err())
		}
		r.s.Drain()
		r.s.Close()
		if got := r.out.String(); got != want.String() || len(r.s.Problem) > 0 {
			rt.Fatalf("\n got %q\nwant %q\n%v", got, want.String(), r.s.Problem)
		}
	})
}

func TestDump(t *testing.T) {
	var dump []byte
	for i := range 3 {
		b := NewBuffer(Dialect2024, 1, uint16(1+i/2))
		if i != 1 { // the second was never enabled
			b.Enable(true)
			(&Printer{Buf: b}).Str("buffer ").U32(uint32(i)).Endl()
		}
		dump = append(dump, b.mem[:]...)
	}
	key := func(i, x, y int) Key { return Key{X: x, Y: y, Risc: i % 2} }
	var out bytes.Buffer
	bad, err := DecodeDump(dump, Options{Dialect: Dialect2024, Out: &out, Prefix: true}, key)
	if err != nil || len(bad) > 0 {
		t.Fatal(err, bad)
	}
	if got, want := out.String(), "0:(1, 1):BR: buffer 0\n0:(1, 2):BR: buffer 2\n"; got != want {
		t.Errorf("%q", got)
	}
	// Damage is reported with its place and the rest is printed.
	hurt := append([]byte(nil), dump...)
	hurt[headBytes] = 60 // type of the first record
	hurt[2*BufferBytes+headBytes+1] = 200
	out.Reset()
	bad, err = DecodeDump(hurt, Options{Dialect: Dialect2024, Out: &out}, key)
	if err != nil || out.String() != "0\n" || len(bad) != 2 || bad[0].Reason != "unexpected type code 60" || bad[1].Key.Y != 2 {
		t.Errorf("%v %q %v", err, out.String(), bad)
	}
	if _, err := DecodeDump(dump[:100], Options{Out: &out}, key); err == nil {
		t.Error("half a buffer is not an error")
	}
}

func TestDialectCodes(t *testing.T) {
	// The order of the vendor's list: BFLOAT16 follows CHAR, or WAIT where
	// signals exist.
	for _, tc := range []struct {
		d    Dialect
		t    Type
		code uint8
	}{{Dialect2024, CStr, 0}, {Dialect2024, Char, 12}, {Dialect2024, Raise, 13}, {Dialect2024, Wait, 14}, {Dialect2024, BFloat16, 15}, {Dialect2024, TypedU32Array, 24},
		{DialectCurrent, Char, 12}, {DialectCurrent, BFloat16, 13}, {DialectCurrent, TileSlice, 20}, {DialectCurrent, TypedU32Array, 22}} {
		c, ok := tc.d.Code(tc.t)
		back, ok2 := tc.d.TypeOf(tc.code)
		if !ok || !ok2 || c != tc.code || back != tc.t {
			t.Errorf("%s %s: %d, %s", tc.d.Name, tc.t, c, back)
		}
	}
	if _, ok := DialectCurrent.Code(Wait); ok {
		t.Error("WAIT is gone from the current dialect")
	}
	if _, ok := DialectCurrent.TypeOf(23); ok {
		t.Error("23 has no type")
	}
}

func FuzzDecodeDump(f *testing.F) {
	b := NewBuffer(Dialect2024, 1, 1)
	b.Enable(true)
	(&Printer{Buf: b}).Str("x").U32(1).Wait(5).Hex().Fixed().F32(1).Tile(Tile{Range: tileRange{0, 2, 1, 0, 2, 1}, Count: 1, Data: []byte{1, 2}})
	f.Add(b.mem[:], true)
	c := NewBuffer(DialectCurrent, 1, 1)
	c.Enable(true)
	(&Printer{Buf: c}).Array([]uint32{1, 2}).TypedArray(2, 5, []uint32{3}).Tile(Tile{Range: tileRange{0, 2, 1, 0, 2, 1}, Return: tileOK, Format: 6, Count: 1, Data: []byte{1, 2}})
	f.Add(c.mem[:], false)
	f.Fuzz(func(t *testing.T, in []byte, old bool) {
		in = in[:len(in)/BufferBytes*BufferBytes]
		d := DialectCurrent
		if old {
			d = Dialect2024
		}
		var out bytes.Buffer
		DecodeDump(in, Options{Dialect: d, Out: &out, Shared: old}, func(i, x, y int) Key { return Key{Device: i, X: x, Y: y} })
		if out.Len() > 1<<20*(1+len(in)/BufferBytes) {
			t.Fatalf("%d bytes printed from %d", out.Len(), len(in))
		}
	})
}
