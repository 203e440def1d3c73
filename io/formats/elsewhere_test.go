package formats

import (
	"strings"
	"testing"

	"perfsim/io/format"
	"perfsim/io/neuron/neff"
)

func find(t *testing.T, name, text string) (string, string) {
	t.Helper()
	src, err := format.FromBytes(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Find(src, "")
	if err != nil {
		return "", err.Error()
	}
	return f.Name, ""
}

// Comments and metadata of any length may stand before what tells a format.
func TestSniffsFurther(t *testing.T) {
	comment := strings.Repeat("// a line of a licence\n", 300)
	long := strings.Repeat("// a line of a licence\n", 300_000) // 7 MB
	hlo := "HloModule m\nENTRY e {\n  ROOT a = f32[2] parameter(0)\n}\n"
	mlir := "module @m {\n  func.func @main(%a: tensor<2xf32>) {\n    return\n  }\n}\n"
	trace := `"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1}]}`
	for _, c := range []struct{ name, text, want string }{
		{"HLO", comment + hlo, "hlo"},
		{"HLO behind 7 MB", long + hlo, "hlo"},
		{"MLIR", comment + mlir, "stablehlo"},
		{"metadata", `{"metadata":{"x":"` + strings.Repeat("y", 10_000) + `"},` + trace, "kineto"},
		{"profile", `{"notes":{"x":"` + strings.Repeat("y", 10_000) + `"},"pending_dma":[],"instruction":[]}`, "neuronprofile"},
		{"host trace", `{"notes":"` + strings.Repeat("y", 10_000) + `","schema":"1.1.1-chakra.0.0.4","nodes":[]}`, "chakra"},
		{"UTF-32", utf32(hlo), "hlo"},
		{"UTF-32 without a mark", utf32(hlo)[4:], "hlo"},
		{"big-endian UTF-32 without a mark", "\x00\x00\x00" + strings.TrimSuffix(utf32(hlo)[4:], "\x00\x00\x00"), "hlo"},
		{"much metadata", `{"metadata":{"x":"` + strings.Repeat("y", 3<<20) + `"},` + trace, "kineto"},
	} {
		if got, err := find(t, "f", c.text); got != c.want {
			t.Errorf("%s: %q, want %s: %s", c.name, got, c.want, err)
		}
	}
	if _, err := find(t, "f", comment+"nothing that is known\n"); !strings.Contains(err, "none of the known formats") {
		t.Error(err)
	}
}

// utf32 is s, of ASCII, in little-endian UTF-32 with its mark.
func utf32(s string) string {
	out := "\xff\xfe\x00\x00"
	for _, c := range []byte(s) {
		out += string([]byte{c, 0, 0, 0})
	}
	return out
}

// What another command or tool reads is answered with it.
func TestElsewhere(t *testing.T) {
	h, err := neff.NewHeader("x")
	if err != nil {
		t.Fatal(err)
	}
	h.HeaderSize, h.DataSize = neff.HeaderSize, 10
	for _, c := range []struct{ name, text, want string }{
		{"ops.csv", "OP CODE,OP TYPE,GLOBAL CALL COUNT\nMatmul,x,1\n", "ops.csv: an ops table: perfsim profile ops.csv reads it"},
		{"a.neff", string(h.Bytes()) + "0123456789", "a.neff: a NEFF: perfsim neff info a.neff reads it"},
		{"net.yaml", "devices:\n  arch: grayskull\nqueues:\n  q: {}\ngraphs:\n  g: {}\n", "net.yaml: a Buda netlist: perfsim netlist net.yaml reads it"},
		{"a b.ntff", "\x00\x01\x02\x03", "a b.ntff: a Neuron device trace (NTFF): make JSON of it first: neuron-profile view --output-format json --output-file profile.json -n FILE.neff -s 'a b.ntff'"},
		{"t.pftrace", "\x0a\x04\x40\x05\x50\x01\x0a\x04\x40\x06\x50\x01", "t.pftrace: a Perfetto trace (.pftrace): make Chrome JSON of it first: traceconv json t.pftrace trace.json"},
		{"x.bz2", "BZh91AY&SY\x00\x00\x00\x00", "x.bz2: compressed with bzip2: unpack it first (bunzip2 -k x.bz2, or bzip2 -dc x.bz2 | perfsim run -)"},
		{"x.xz", "\xfd7zXZ\x00\x00\x04", "x.xz: compressed with xz: unpack it first (unxz -k x.xz, or xz -dc x.xz | perfsim run -)"},
		{"m.yaml", "name: m\narch: 30\nclock:\n  pe: 1\n", "m.yaml: a machine description: give it with --machine m.yaml"},
		{"s.json", `{"sg0000": {"backend::AverageDMASize": 26}}`, "s.json: a metric store: perfsim metrics s.json reads it"},
		{"r.json", `[{"total_run_time": 0.5, "model": "m"}]`, "r.json: a benchmark record: perfsim bench compare reads it"},
		{"x.lzma", "]\x00\x00\x80\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00", "x.lzma: compressed with lzma: unpack it first (unlzma -k x.lzma)"},
	} {
		if got, err := find(t, c.name, c.text); got != "" || err != c.want {
			t.Errorf("%q %s\nwant %s", got, err, c.want)
		}
	}
	src, err := format.FromBytes("p.json", []byte("HloModule m\nENTRY e {\n ROOT a = f32[2] parameter(0)\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got, want := Advice(src), "a module or trace (hlo): perfsim run p.json and explain read it"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
