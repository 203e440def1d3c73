package netlist

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"perfsim/components/datadir"
)

func TestFields(t *testing.T) {
	n, err := ReadFile(datadir.Path(t, "tenstorrent", "tenstorrent__tt-budabackend", "wormhole_b0", "inference", "mobilenet_v2_hifi2_fp16b.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	at, ok := n.graph["fwd_0_0_temporal_epoch_0"]
	g := &n.Graphs[at]
	if !ok || g.InputCount != 64 || g.Device != 0 {
		t.Fatalf("%+v", g)
	}
	o := g.Ops[0]
	if o.Type != "matmul" || o.Loc != (Size{0, 0}) || o.Grid != (Size{4, 1}) || len(o.Inputs) != 3 || o.Inputs[1] != "features_1" || o.Shape.T != 14 ||
		o.Shape.MBlock != (Size{2, 1}) || o.Shape.UBlock != (Size{7, 1}) || o.BufMB != 2 || o.OutFormat != "Float16_b" || o.Fidelity != "HiFi2" {
		t.Errorf("%+v", o)
	}
	q, ok := n.QueueByName("mobilenet_v2.conv_stem.first_conv.convolution.weight")
	if !ok || q.Type != "ram" || q.Grid != (Size{2, 1}) || len(q.Buffers) != 2 || q.Buffers[1] != (Addr{5, 0x401a14c0}) || q.Loc != "dram" {
		t.Errorf("%+v", q)
	}
	h, _ := n.QueueByName("features_1")
	// 32 + 128 entries of 392 tiles of 2080 bytes, on the host.
	if b, ok := h.BufferBytes(); !ok || b != 32+128*392*2080 || h.Loc != "host" {
		t.Errorf("%d bytes at %s", b, h.Loc)
	}
	if len(n.Programs) != 1 || n.Programs[0].Name != "run_fwd_0" || len(n.Executed()) != 8 || len(n.FusedOps) == 0 {
		t.Errorf("%d programs, %d executed, %d fused", len(n.Programs), len(n.Executed()), len(n.FusedOps))
	}
	if f := n.FusedOps[0]; f.Inputs != 3 || strings.Join(f.Ops, " ") != "add add" {
		t.Errorf("%+v", f)
	}
	if s := strings.Join(n.Sections, " "); s != "devices queues graphs programs fused_ops performance-check" {
		t.Errorf("sections %s", s)
	}
	if n.Arch[0] != "wormhole_b0" {
		t.Errorf("%v", n.Arch)
	}
}

// Loops and variables of a program, in order.
func TestProgram(t *testing.T) {
	n, err := ReadFile(datadir.Path(t, "tenstorrent", "tenstorrent__tt-budabackend", "loader", "tests", "net_basic", "netlist_binary_perf_test_multi_epoch.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, in := range n.Programs[0].Instrs {
		got = append(got, strings.TrimSpace(fmt.Sprint(in.Name, in.Args, in.Graph, in.Queues)))
	}
	want := []string{"var[$lptr $gptr $c_loop_count $c_input_count $c_zero][]", "varinst[$c_zero set 0][]", "varinst[$c_loop_count set 80][]", "varinst[$c_input_count set 128][]",
		"loop[$c_loop_count][]", "execute[]test_binary[q0 q1]", "execute[]test_binary_1[q4 q5]", "varinst[$lptr add $lptr $c_input_count][]", "varinst[$gptr add $gptr $c_input_count][]", "endloop[][]"}
	for i := range want {
		a := strings.ReplaceAll(strings.ReplaceAll(got[i], " ", ""), "execute[]", "execute[]")
		if a != strings.ReplaceAll(want[i], " ", "") {
			t.Errorf("instruction %d: %s, want %s", i, got[i], want[i])
		}
	}
	if strings.Join(n.Arch, " ") != "grayskull wormhole wormhole_b0 blackhole" {
		t.Errorf("%v", n.Arch)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "the file is empty",
		"graphs: [":        "line 1: did not find expected node content",
		"a: b\n c: d\n":    "line 2: mapping values are not allowed in this context",
		"queues: {}\n":     "not a netlist: no section graphs",
		"[1, 2]\n":         "line 1:1: a netlist is a mapping with devices, queues, graphs and programs",
		"graphs: *nobody ": "unknown anchor 'nobody' referenced",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", text, err, want)
		}
	}
}

func TestProblems(t *testing.T) {
	n, err := Read(strings.NewReader(`devices: {arch: grayskull}
queues:
  q: {type: queue, input: HOST, entries: many, grid_size: [1], df: Float17, loc: dram, dram: [[1, 0x10], [x], [2, zz]]}
graphs:
  g:
    target_device: -1
    a: {type: nop, grid_loc: [0, 0], grid_size: [0, 1], inputs: [q]}
    b: {type: nop, grid_loc: [0, 0], inputs: [q]}
    c: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [q], grid_transpose: maybe}
    c: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [q]}
  h: 5
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range n.Problems {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Text))
	}
	want := []string{
		"3 entries of queue q is not a whole number",
		"3 grid_size of queue q has 1 numbers, not 2",
		`3 df of queue q: data format "Float17" is unknown`,
		"3 dram of queue q is not a whole number",
		"3 dram of queue q: a buffer is [channel, address]",
		`3 dram of queue q: "zz" is not an address`,
		"6 target_device of graph g is -1, outside 0 to 1048576",
		"7 grid_size of op a is 0, outside 1 to 1048576",
		"7 op a lacks type, grid_loc or grid_size; left out",
		"8 op b lacks type, grid_loc or grid_size; left out",
		"9 grid_transpose of op c is neither true nor false",
		`10 graph g has the key "c" twice; the first counts`,
		"11 graph h is not a mapping",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(n.Graphs[0].Ops) != 1 {
		t.Errorf("%d ops", len(n.Graphs[0].Ops))
	}
}

// Anchors and merges mean what YAML says.
func TestAliases(t *testing.T) {
	n, err := Read(strings.NewReader(`
base: &base {type: nop, grid_loc: [0, 0], grid_size: [1, 2], inputs: []}
graphs:
  g:
    a: *base
    b: {<<: *base, grid_loc: [1, 0]}
`))
	if err != nil {
		t.Fatal(err)
	}
	ops := n.Graphs[0].Ops
	if len(ops) != 2 || ops[0].Loc != (Size{0, 0}) || ops[1].Loc != (Size{1, 0}) || ops[1].Grid != (Size{1, 2}) {
		t.Errorf("%+v", ops)
	}
}

// Ten levels of ten aliases are ten billion entries; the walk stops.
func TestAliasBombs(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 {x: {type: nop}}\n")
	for i := 1; i <= 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d\n", i, i)
		for k := range 10 {
			fmt.Fprintf(&b, "  k%d: *a%d\n", k, i-1)
		}
	}
	bomb := b.String()
	var merge strings.Builder
	merge.WriteString("m0: &m0 {k: 1}\n")
	for i := 1; i <= 30; i++ {
		fmt.Fprintf(&merge, "m%d: &m%d {<<: [*m%d, *m%d]}\n", i, i, i-1, i-1)
	}
	var list strings.Builder
	list.WriteString("l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i <= 9; i++ {
		fmt.Fprintf(&list, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 10), ", "))
	}
	for name, text := range map[string]string{
		"maps":   bomb + "graphs: *a10\n",
		"merges": merge.String() + "graphs: {g: {<<: *m30, o: {type: nop, grid_loc: [0, 0], grid_size: [1, 1]}}}\n",
		"lists":  list.String() + "graphs: {}\nprograms: *l9\n",
		"self":   "graphs: &g {x: {<<: *g}}\n",
		"deep":   "graphs: " + strings.Repeat("[", 100000),
		"deeper": "graphs: " + strings.Repeat("{a: ", 100000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			n, err := Read(strings.NewReader(text))
			if d := time.Since(start); d > time.Minute {
				t.Errorf("took %v", d)
			}
			if err == nil && len(n.Problems) > maxProblems {
				t.Errorf("%d problems", len(n.Problems))
			}
			if name == "merges" && err == nil {
				t.Error("2^30 merges were followed")
			}
		})
	}
}

// Sizes multiply; what no device has is a problem of its queue, not a number
// that went round.
func TestLargeSizes(t *testing.T) {
	const most = 1 << 20
	if n := (Shape{most, Size{most, most}, Size{most, 1}}).Tiles(); n != math.MaxInt64 {
		t.Errorf("%d tiles", n)
	}
	if n := (Shape{most, Size{most, most}, Size{0, 1}}).Tiles(); n != 0 {
		t.Errorf("%d tiles of none", n)
	}
	n, err := Read(strings.NewReader(`graphs: {}
queues:
  a: {t: 1048576, mblock: [1048576, 1048576], df: Float16}
  b: {t: 1, mblock: [1024, 1], entries: 1024, df: Float32, dram: [[0, 0x100000000000000], [0, 0xffffffffffffff]]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range n.Problems {
		got = append(got, p.Text)
	}
	want := `dram of queue b: "0x100000000000000" is not an address; a buffer of queue a has more than 1099511627776 bytes`
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("problems %s\nwant %s", s, want)
	}
	if b, ok := n.Queues[0].BufferBytes(); ok {
		t.Errorf("a has %d bytes", b)
	}
	if b, ok := n.Queues[1].BufferBytes(); !ok || b != 32+1024*1024*4128 {
		t.Errorf("b has %d bytes", b)
	}
}

func TestTooLarge(t *testing.T) {
	big := "graphs: {}\n" + strings.Repeat("# a comment that goes on\n", maxBytes/25+10)
	if _, err := Read(strings.NewReader(big)); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("error %v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("devices: {arch: [a]}\nqueues: {q: {dram: [[1, 0x10]]}}\ngraphs: {g: {o: {type: nop, grid_loc: [0, 0], grid_size: [1, 1]}}}\nprograms: [p: [loop: 2, execute: {graph_name: g, queue_settings: {q: {}}}, endloop]]\n")
	f.Add("x: &x {a: *x}\ngraphs: *x\n")
	f.Add("x: &x [1]\ngraphs: {<<: *x, g: {<<: {o: {type: 1}}}}\nfused_ops: {0: {schedules: [[{a: {type: b}}]]}}\n")
	f.Fuzz(func(t *testing.T, in string) {
		n, err := Read(strings.NewReader(in))
		if err != nil {
			return
		}
		n.Executed()
		for i := range n.Queues {
			if b, _ := n.Queues[i].BufferBytes(); b < 0 {
				t.Fatalf("a buffer of %d bytes", b)
			}
		}
	})
}

func FuzzReadSoC(f *testing.F) {
	f.Add("functional_workers: [1-1, 2-1]\ndram: [[1-0], [1-6]]\narch_name: X\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := readSoC(strings.NewReader(in))
		if err == nil && (s.Rows < 1 || s.Cols < 1) {
			t.Fatalf("%+v", s)
		}
	})
}
