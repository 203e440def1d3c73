package floorplan

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"perfsim/components/datadir"
	"perfsim/io/tenstorrent/netlist"
)

const buda = "tenstorrent__tt-budabackend"

func read(t *testing.T, elem ...string) *netlist.Netlist {
	t.Helper()
	n, err := netlist.ReadFile(datadir.Path(t, append([]string{"tenstorrent", buda}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func analyze(t *testing.T, n *netlist.Netlist) *Report {
	t.Helper()
	g, err := GridFor(n)
	if err != nil {
		t.Fatal(err)
	}
	return Analyze(n, g)
}

// Cores of every epoch of the public netlists.
func TestRealNetlists(t *testing.T) {
	for _, tc := range []struct {
		file                 string
		graphs, ops, queues  int
		devices, epochs      int
		cores                string // of each epoch, where few
		total, capacity      int
		named                bool
		unsized, badChannels int
	}{
		{"wormhole_b0/inference/mobilenet_v2_hifi2_fp16b.yaml", 8, 188, 278, 1, 8, "53 62 64 62 51 42 64 29", 427, 512, true, 0, 0},
		{"wormhole_b0/inference/resnet50_hifi3_fp16b.yaml", 10, 240, 296, 1, 10, "60 64 42 56 63 64 59 11 58 38", 515, 640, true, 0, 0},
		{"wormhole_b0/inference/bert_large_hifi3_fp16b.yaml.gz", 72, 961, 818, 1, 72, "", 4106, 4608, true, 0, 0},
		{"grayskull/inference/bert_base_lofi_bfp8b_v3.yaml", 5, 180, 298, 1, 5, "112 116 120 117 38", 503, 600, false, 0, 0},
		{"grayskull/inference/resnet50_lofi_bfp8b_may18.yaml", 2, 11, 15, 1, 2, "70 4", 74, 240, false, 0, 0},
		{"loader/tests/net_basic/netlist_binary_perf_test_multi_epoch.yaml", 2, 6, 6, 1, 2, "6 6", 12, 240, false, 0, 0},
		{"verif/multichip_tests/wh_multichip/large_cluster/pt_mobilenet_v2_224_netlist.yaml", 1683, 94, 139, 33, 51, "", -1, -1, true, 0, 0},
	} {
		t.Run(tc.file, func(t *testing.T) {
			n := read(t, strings.Split(tc.file, "/")...)
			r := analyze(t, n)
			var cores []string
			for _, e := range r.Epochs {
				cores = append(cores, fmt.Sprint(e.Cores))
			}
			if r.Graphs != tc.graphs || r.Ops != tc.ops || r.Queues != tc.queues || r.Devices != tc.devices || len(r.Epochs) != tc.epochs || r.Named != tc.named || r.Unsized != tc.unsized {
				t.Errorf("%d graphs, %d ops, %d queues, %d devices, %d epochs, named %v, %d unsized", r.Graphs, r.Ops, r.Queues, r.Devices, len(r.Epochs), r.Named, r.Unsized)
			}
			if tc.cores != "" && strings.Join(cores, " ") != tc.cores {
				t.Errorf("cores %v, want %s", cores, tc.cores)
			}
			if tc.total >= 0 && (r.Cores != tc.total || r.Capacity != tc.capacity) {
				t.Errorf("%d of %d cores, want %d of %d", r.Cores, r.Capacity, tc.total, tc.capacity)
			}
			if len(r.Problems) > 0 {
				t.Errorf("%d problems, first %+v", len(r.Problems), r.Problems[0])
			}
			for _, c := range r.Channels {
				if c.Overlaps > 0 {
					t.Errorf("channel %+v", c)
				}
			}
			checkSVG(t, r)
		})
	}
}

func checkSVG(t *testing.T, r *Report) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(r.SVG(20))))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// synthetic writes a netlist whose epochs use the given numbers of cores, as
// rows of single operators.
func synthetic(arch string, cols int, cores ...int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "devices:\n  arch: %s\n\nqueues:\n  in: {type: queue, input: HOST, entries: 1, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float16_b, target_device: 0, loc: dram, dram: [[0, 0x100]]}\n\ngraphs:\n", arch)
	for e, n := range cores {
		fmt.Fprintf(&b, "  fwd_0_%d:\n    target_device: 0\n    input_count: 1\n", e)
		for row := 0; n > 0; row++ {
			w := min(n, cols)
			fmt.Fprintf(&b, "    op_%d_%d: {type: matmul, grid_loc: [%d, 0], grid_size: [1, %d], inputs: [in], t: 1, mblock: [1, 1], ublock: [1, 1], out_df: Float16_b}\n", e, row, row, w)
			n -= w
		}
	}
	b.WriteString("\nprograms:\n  - run:\n    - loop: $n\n")
	for e := range cores {
		fmt.Fprintf(&b, "    - execute: {graph_name: fwd_0_%d, queue_settings: {in: {prologue: false}}}\n", e)
	}
	b.WriteString("    - endloop\n")
	return b.String()
}

// The article's MobileNetV2: 462 of 960 cores are 48.1 %, where its text says
// about 46 %.
func TestSeedUtilization(t *testing.T) {
	n, err := netlist.Read(strings.NewReader(synthetic("grayskull", 12, 51, 62, 102, 61, 51, 42, 64, 29)))
	if err != nil {
		t.Fatal(err)
	}
	r := analyze(t, n)
	if r.Cores != 462 || r.Capacity != 960 || fmt.Sprintf("%.1f", 100*r.Mean) != "48.1" || len(r.Problems) != 0 {
		t.Errorf("%d of %d, %.2f %%, %v", r.Cores, r.Capacity, 100*r.Mean, r.Problems)
	}
	for i, want := range []int{51, 62, 102, 61, 51, 42, 64, 29} {
		if e := r.Epochs[i]; e.Cores != want || math.Abs(e.Share()-float64(want)/120) > 1e-12 || e.Index != i {
			t.Errorf("epoch %d: %+v", i, e)
		}
	}
}

func TestPlacementFaults(t *testing.T) {
	text := `
devices: {arch: [grayskull]}
queues:
  q: {type: queue, input: c, entries: 2, grid_size: [1, 2], t: 1, mblock: [2, 2], ublock: [1, 1], df: Bfp8_b, target_device: 0, loc: dram, dram: [[1, 0x1000], [1, 0x2000]]}
graphs:
  g0:
    target_device: 0
    input_count: 1
    a: {type: matmul, grid_loc: [0, 0], grid_size: [2, 3], inputs: [q]}
    b: {type: add, grid_loc: [1, 2], grid_size: [1, 2], inputs: [a]}
    c: {type: nop, grid_loc: [9, 10], grid_size: [1, 4], inputs: [b, nowhere]}
    d: {type: nop, grid_loc: [4, 4], grid_size: [1, 3], grid_transpose: true, inputs: [b]}
    e: {type: nop, grid_loc: [1000000, 4], grid_size: [1000000, 1000000], inputs: [b]}
programs:
  - p: [execute: {graph_name: g0}, execute: {graph_name: gone}]
`
	n, err := netlist.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r := analyze(t, n)
	var got []string
	for _, p := range r.Problems {
		got = append(got, fmt.Sprintf("%d:%d %s", p.Line, p.Col, p.Text))
	}
	want := []string{
		"4:3 queue q at 0x2000 of channel 1 lies in queue q, which ends at 0x3320",
		"10:5 op b lies on cores of op a (row 1, column 2)",
		"11:5 op c reads nowhere, which is neither a queue nor an op",
		"11:5 op c covers rows 9 to 9 and columns 10 to 13; the grid has 10 rows and 12 columns",
		"13:5 op e covers rows 1000000 to 1999999 and columns 4 to 1000003; the grid has 10 rows and 12 columns",
		`15:30 program p executes "gone", which is not a graph`,
	}
	// The column of the second execute counts from its own key.
	if strings.Join(got[:5], "\n") != strings.Join(want[:5], "\n") || !strings.HasSuffix(got[5], want[5][6:]) || len(got) != 6 {
		t.Errorf("problems\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	c := r.Epochs[0].Chips[0]
	if c.OutOfGrid != 2 || c.Overlap != 1 || c.Used != 6+1+2+3 {
		t.Errorf("%d out, %d overlap, %d used", c.OutOfGrid, c.Overlap, c.Used)
	}
	if p := c.Ops[3]; p.Rows != 3 || p.Cols != 1 {
		t.Errorf("transposed: %+v", p)
	}
	pic := c.Text(r.Grid)
	if !strings.Contains(pic, "   0  A A A . .") || !strings.Contains(pic, "   1  A A # B .") || !strings.Contains(pic, "   6  . . . . D .") {
		t.Errorf("picture\n%s", pic)
	}
	checkSVG(t, r)
	// Two buffers of 32 + 2*4*1120 bytes each.
	if ch := r.Channels[0]; ch.Bytes != 2*8992 || ch.Buffers != 2 || ch.Overlaps != 1 {
		t.Errorf("%+v", ch)
	}
}

func TestGrids(t *testing.T) {
	for file, want := range map[string]Grid{
		"grayskull_120_arch.yaml": {Arch: "grayskull", Rows: 10, Cols: 12},
		"wormhole_b0_8x10.yaml":   {Arch: "wormhole_b0", Rows: 10, Cols: 8},
	} {
		s, err := netlist.ReadSoCFile(datadir.Path(t, "tenstorrent", buda, "device", file))
		if err != nil {
			t.Fatal(err)
		}
		if g := GridOf(s, ""); g != want {
			t.Errorf("%s: %+v, want %+v", file, g, want)
		}
	}
	if g, err := ParseGrid("8x10"); err != nil || g.Rows != 8 || g.Cols != 10 {
		t.Errorf("%+v %v", g, err)
	}
	for _, bad := range []string{"", "8", "0x3", "8x-1", "9999999x2", "axb"} {
		if _, err := ParseGrid(bad); err == nil {
			t.Errorf("grid %q is taken", bad)
		}
	}
	// A wormhole netlist that needs the ninth row gets the whole chip.
	n, err := netlist.Read(strings.NewReader(synthetic("wormhole_b0", 8, 72)))
	if err != nil {
		t.Fatal(err)
	}
	if r := analyze(t, n); r.Grid.Cores() != 80 || r.Capacity != 80 {
		t.Errorf("%+v", r.Grid)
	}
	if _, err := GridFor(&netlist.Netlist{Arch: []string{"quasar"}}); err == nil {
		t.Error("an unknown architecture has no grid")
	}
}
