package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"perfsim/io/neuron/neff"
)

// call runs a command line and returns what it prints.
func call(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	var out, errs bytes.Buffer
	status = Main(args, strings.NewReader(""), &out, &errs)
	return out.String(), errs.String(), status
}

// TestNEFFDebug prints the debug information of a NEFF made here, with the
// protobuf written by hand.
func TestNEFFDebug(t *testing.T) {
	str := func(b []byte, field protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
	}
	num := func(b []byte, field protowire.Number, v uint64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	in := str(num(nil, 1, 7), 2, "I-7")
	in = str(str(in, 4, "\x05\x06"), 9, "\x04\x02") // from 5 Flow, from 6 Anti
	in = num(num(in, 6, 2), 8, 1)
	frames := str(str(nil, 1, "k.py"), 3, string(num(num(nil, 1, 1), 3, 12)))
	frames = str(frames, 4, string(num(nil, 1, 1)))
	dbg := str(num(str(str(nil, 3, string(in)), 3, string(num(nil, 1, 8))), 4, 1), 6, string(frames))

	path := filepath.Join(t.TempDir(), "x.neff")
	h, err := neff.NewHeader("x")
	if err != nil {
		t.Fatal(err)
	}
	h.FeatureBits = 0x1000
	members := []neff.Member{
		neff.BytesMember("debug_info/debug_info_backend.PE.0.dbg", dbg),
		neff.BytesMember("debug_info/debug_info_pttf.dbg", []byte("the framework's own")),
		neff.BytesMember("debug_info/debug_info_hlo.dbg", []byte{0x0b}),
	}
	if _, err := neff.Create(context.Background(), path, h, members, neff.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const member = "debug_info/debug_info_backend.PE.0.dbg"
	out, errs, status := call(t, "neff", "debug", path, member)
	want := "backend\tPE\t7\tI-7\tSPILL\tk.py:12\tFlow:5,Anti:6\t-\nbackend\tPE\t8\t\tUNKNOWN_INSTRUCTION_TYPE\t-\t-\t-\n"
	if out != want || status != 0 {
		t.Errorf("%q, %s, want %q", out, errs, want)
	}
	out, _, _ = call(t, "neff", "debug", "--json", path, member)
	line := `{"member":"` + member + `","layer":"backend","engine":"PE","id":7,"name":"I-7","type":"SPILL","file":"k.py","line":12,"parents":[],` +
		`"dataflow":[{"id":5,"kind":"Flow"},{"id":6,"kind":"Anti"}],"scheduling":[]}` + "\n"
	if !strings.HasPrefix(out, line) {
		t.Errorf("%s, want %s", out, line)
	}
	if _, errs, status := call(t, "neff", "debug", path); status != 1 || !strings.Contains(errs, `member "debug_info/debug_info_hlo.dbg"`) {
		t.Error(status, errs)
	}
	out, errs, status = call(t, "neff", "info", path)
	for _, want := range []string{
		"features           0x1000 DGE\n",
		"debug_info_backend.PE.0.dbg: backend PE, 2 instructions, dataflow 1 Anti 1 Flow\n",
		"debug_info_pttf.dbg: pttf layer, 19 B, no trace package\n",
		"debug_info_hlo.dbg: cannot be read: ",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s%s", want, out, errs)
		}
	}
	if status != 0 {
		t.Error(status, errs)
	}

	// A wrong hash is shown, and is the status.
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[0xAC] ^= 1
	os.WriteFile(path, b, 0o644)
	out, errs, status = call(t, "neff", "info", path)
	if status != 1 || !strings.Contains(out, "WRONG") || !strings.Contains(errs, "the header says") {
		t.Error(status, out, errs)
	}

	// One that was left out is said to be, and no fault.
	clear(b[0xAC : 0xAC+32])
	os.WriteFile(path, b, 0o644)
	out, errs, status = call(t, "neff", "info", path)
	if status != 0 || !strings.Contains(out, "none in the header") {
		t.Error(status, out, errs)
	}
	// A damaged NEFF stays one.
	os.WriteFile(path, b[:len(b)-1], 0o644)
	if _, errs, status := call(t, "neff", "info", path); status != 1 || !strings.Contains(errs, "cut short") {
		t.Error(status, errs)
	}
}

// TestListingOfHostileNames: a name must not command the terminal.
func TestListingOfHostileNames(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "perf_sim.\x1b[2J.json"), []byte("[]"), 0o644)
	if _, errs, status := call(t, "pack", dir); status != 0 {
		t.Fatal(errs)
	}
	out, errs, status := call(t, "unpack", "-l", filepath.Join(dir, "file.perf-sim"))
	if status != 0 || !strings.Contains(out, `"perf_sim.\x1b[2J.json"`) || strings.Contains(out, "\x1b") {
		t.Errorf("%q %s", out, errs)
	}
}
