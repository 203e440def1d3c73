package floorplan

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/components/machine/grid"
	"perfsim/ecs/proptest"
	"perfsim/io/tenstorrent/netlist"
	"perfsim/io/traces/catapult"
)

// unit is a cost at which a block of one tile with one input takes 10 ns.
var unit = Cost{ClockMHz: 1000, TileByte: 10.0 / 2080, Channel: 1, Host: 1}

func simulate(t testing.TB, text string, inputs int) *SimResult {
	t.Helper()
	n, err := netlist.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r := Analyze(n, Grid{Arch: "grayskull", Rows: 10, Cols: 12})
	s, err := Simulate(context.Background(), n, r, 0, SimOptions{Inputs: inputs, Cost: unit, Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func net(ops ...string) string {
	return "graphs:\n  g:\n    input_count: 4\n    " + strings.Join(ops, "\n    ") + "\nprograms: [p: [execute: {graph_name: g}]]\n"
}

func op(name string, tiles, t, buf int, inputs ...string) string {
	return fmt.Sprintf("%s: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [%s], t: %d, mblock: [1, %d], ublock: [1, 1], buf_size_mb: %d}", name, strings.Join(inputs, ", "), t, tiles, buf)
}

// A fast and a slow operator, by hand: b takes 20 ns a block and starts when
// a's first is there, so four samples leave at 30, 50, 70, 90. The third
// block of a waits for room: b releases the first at 30.
func TestTwoOperators(t *testing.T) {
	s := simulate(t, net(op("a", 1, 1, 2, "x"), op("b", 2, 1, 2, "a")), 4)
	if s.Latency != [2]uint64{90, 90} || s.FirstOut != 30 || s.PerSample != 20 || s.Bottleneck != "b" || s.Relaxed != 0 {
		t.Errorf("%+v", s)
	}
	m := s.World.Module
	var a []string
	for i := range m.Instr.Len() {
		if m.LaneName(m.Instr.Lane.At(i)) == "a" {
			x, y := s.World.Events.Span(m, components.InstrID(i), components.RunA)
			a = append(a, fmt.Sprintf("%d-%d", x, y))
		}
	}
	if got := strings.Join(a, " "); got != "0-10 10-20 30-40 50-60" {
		t.Errorf("a ran at %s", got)
	}
}

// A short and a long branch: with room for two blocks the short branch blocks
// the source; with endless buffers only the slowest operator counts.
func TestBuffersCost(t *testing.T) {
	s := simulate(t, net(op("src", 1, 1, 2, "x"), op("l1", 1, 1, 2, "src"), op("l2", 1, 1, 2, "l1"), op("l3", 1, 1, 2, "l2"), op("join", 1, 1, 2, "src", "l3")), 20)
	// Endless: join has two inputs, 20 ns a block; first at 40, then 20 each.
	if s.Latency[components.RunB] != 40+20*20 {
		t.Errorf("endless buffers: %d", s.Latency[components.RunB])
	}
	if s.Latency[components.RunA] <= s.Latency[components.RunB] || s.Relaxed != 0 {
		t.Errorf("finite buffers: %d, relaxed %d", s.Latency[components.RunA], s.Relaxed)
	}
}

// Steps of different size: the consumer takes all four blocks of a sample.
func TestUnequalSteps(t *testing.T) {
	for _, tc := range []struct{ k, c, p, need int }{{0, 1, 4, 3}, {1, 1, 4, 7}, {0, 4, 1, 0}, {3, 4, 1, 0}, {4, 4, 1, 1}, {0, 2, 3, 1}, {1, 2, 3, 2}, {0, 14, 14, 0}} {
		if got := need(tc.k, tc.c, tc.p); got != tc.need {
			t.Errorf("need(%d, %d, %d) = %d, want %d", tc.k, tc.c, tc.p, got, tc.need)
		}
	}
	proptest.Check(t, func(rt *rapid.T) {
		c, p := rapid.IntRange(1, 20).Draw(rt, "c"), rapid.IntRange(1, 20).Draw(rt, "p")
		q := rapid.IntRange(0, 3*p-1).Draw(rt, "q")
		k := release(q, p, c)
		// The first consumer block that needs q, no earlier one.
		if need(k, c, p) < q || k > 0 && need(k-1, c, p) >= q && (k-1)/c == q/p {
			rt.Fatalf("release(%d, %d, %d) = %d: needs %d", q, p, c, k, need(k, c, p))
		}
	})
	s := simulate(t, net(op("a", 1, 4, 1, "x"), op("b", 1, 1, 2, "a")), 3)
	// a makes four blocks (40 ns), b 10 ns; with room for the four that b
	// takes at once, a waits for b's end: samples at 50, 100, 150; endless
	// buffers give 50, 90, 130.
	if s.Latency != [2]uint64{150, 130} {
		t.Errorf("%v", s.Latency)
	}
}

// Queues: DRAM at 1 GB/s, one tile of 2080 bytes a sample.
func TestQueues(t *testing.T) {
	s := simulate(t, `
queues:
  in: {type: queue, input: HOST, entries: 4, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float16_b, target_device: 0, loc: dram, dram: [[0, 0x0]]}
  w: {type: ram, input: HOST, entries: 1, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float16_b, target_device: 0, loc: dram, dram: [[1, 0x0]]}
  out: {type: queue, input: a, entries: 4, grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1], df: Float16_b, target_device: 0, loc: dram, dram: [[2, 0x0]]}
graphs:
  g: {input_count: 4, a: {type: nop, grid_loc: [0, 0], grid_size: [1, 1], inputs: [in, w]}}
programs: [p: [execute: {graph_name: g}]]
`, 4)
	// Reads end at 2080, 4160, ...; a takes 20 ns; writes take 2080.
	if s.FirstOut != 2080+20+2080 || s.PerSample != 2080 || s.Bottleneck != "chip0.dram0" || s.Latency[components.RunA] != 4*2080+20+2080 {
		t.Errorf("%+v", s)
	}
}

// The real netlists simulate, and the trace goes through the same writer as
// every simulation.
func TestSimulateReal(t *testing.T) {
	n := read(t, "wormhole_b0", "inference", "mobilenet_v2_hifi2_fp16b.yaml")
	r := analyze(t, n)
	mach, err := grid.Load("wormhole_b0")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range r.Epochs {
		s, err := Simulate(context.Background(), n, r, e.Index, SimOptions{Inputs: 8, Cost: CostOf(mach), Jobs: 2})
		if err != nil {
			t.Fatal(err)
		}
		if s.Latency[components.RunA] < s.Latency[components.RunB] || s.PerSample <= 0 || s.CoreShare <= 0 || s.CoreShare > 1 || s.BusyShare > 1 || s.Bottleneck == "" {
			t.Errorf("epoch %d: %+v", e.Index, s)
		}
		for _, o := range s.Ops {
			if o.Blocks == 0 {
				t.Errorf("epoch %d: %s did nothing", e.Index, o.Name)
			}
		}
		if e.Index == 0 {
			var b bytes.Buffer
			if err := catapult.Write(context.Background(), &b, s.World, 0, components.RunA, false, 1); err != nil {
				t.Fatal(err)
			}
			var events []map[string]any
			if err := json.Unmarshal(b.Bytes(), &events); err != nil || len(events) < 100 {
				t.Errorf("%d events, %v", len(events), err)
			}
		}
	}
	if _, err := Simulate(context.Background(), n, r, 0, SimOptions{}); err == nil {
		t.Error("a machine without a clock simulates")
	}
	if _, err := Simulate(context.Background(), n, r, 99, SimOptions{Cost: CostOf(mach)}); err == nil {
		t.Error("epoch 99 does not exist")
	}
}

// The cost of a block, by hand from the description of wormhole: 16 cycles a
// tile product at LoFi, 64 bytes unpacked a cycle, 1000 cycles an operator
// and sample.
func TestBlockTime(t *testing.T) {
	mach, err := grid.Load("wormhole_b0")
	if err != nil {
		t.Fatal(err)
	}
	b := &simBuilder{n: &netlist.Netlist{FusedOps: []netlist.FusedOp{{Name: "3", Ops: []string{"add", "mul", "add"}}}}, cost: CostOf(mach)}
	shape := netlist.Shape{T: 4, MBlock: netlist.Size{R: 2, C: 1}, UBlock: netlist.Size{R: 3, C: 1}}
	for _, tc := range []struct {
		op   netlist.Op
		want uint32
	}{
		{netlist.Op{Type: "matmul", Fidelity: "HiFi2", MK: 5, UKT: 2, Shape: shape}, 6*10*32 + 250},
		{netlist.Op{Type: "matmul", Fidelity: "LoFi", MK: 5, UKT: 2, Identity: true, Shape: shape}, 6*3*16 + 250}, // three passes gather a window
		{netlist.Op{Type: "add", Inputs: []string{"a", "b"}, InFormats: []string{"Float16_b", "Bfp8_b"}, Shape: shape}, (6*(2080+1120)+32)/64 + 250},
		{netlist.Op{Type: "fused_op", Kind: "3", Inputs: []string{"a", "b"}, InFormats: []string{"Float16_b", "Float16_b"}, Shape: shape}, 6*2080*3/64 + 250},
	} {
		if got := b.blockTime(&tc.op); got != tc.want {
			t.Errorf("%s: %d ns, want %d", tc.op.Type, got, tc.want)
		}
	}
}
