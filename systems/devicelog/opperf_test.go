package devicelog

import (
	"math"
	"slices"
	"strings"
	"testing"

	"perfsim/io/tenstorrent/profilelog"
)

const opHead = "OP CODE,OP TYPE,GLOBAL CALL COUNT,DEVICE ID,DEVICE ARCH,ATTRIBUTES,MATH FIDELITY,CORE COUNT,AVAILABLE WORKER CORE COUNT,OP TO OP LATENCY [ns],DEVICE FW START CYCLE,DEVICE KERNEL DURATION [ns]," +
	"INPUT_0_W_PAD[LOGICAL],INPUT_0_Z_PAD[LOGICAL],INPUT_0_Y_PAD[LOGICAL],INPUT_0_X_PAD[LOGICAL],INPUT_0_DATATYPE,INPUT_0_MEMORY," +
	"INPUT_1_W_PAD[LOGICAL],INPUT_1_Z_PAD[LOGICAL],INPUT_1_Y_PAD[LOGICAL],INPUT_1_X_PAD[LOGICAL],INPUT_1_DATATYPE,INPUT_1_MEMORY," +
	"OUTPUT_0_W_PAD[LOGICAL],OUTPUT_0_Z_PAD[LOGICAL],OUTPUT_0_Y_PAD[LOGICAL],OUTPUT_0_X_PAD[LOGICAL],OUTPUT_0_DATATYPE,OUTPUT_0_MEMORY\n"

func opTable(t *testing.T, rows string) *profilelog.OpsTable {
	t.Helper()
	table, err := profilelog.ReadOps(strings.NewReader(opHead + rows))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// Figures of three operators, by hand.
//
// The product is 2048 × 1024 × 4096 in BF16 on 64 Wormhole cores in 1 ms: its
// tensors are 4 + 8 + 16 MiB in DRAM, 29.36 B/ns, 10.19 % of 288; its
// 2·2048·1024·4096 FLOPs are 17.18 TFLOP/s, 26.12 % of 64·74/72.
// The convolution has 640 × 576 × 64, weights in DRAM and the rest in L1:
// 36,864 bytes (BFP8) in 1,000 ns are 36.864 B/ns, 12.8 %; 47,185,920 FLOPs are
// 47.19 TFLOP/s, 143.5 % of 16·148/72 TFLOP/s: bound by the matrix engine.
func TestPerfOps(t *testing.T) {
	table := opTable(t, `start,signpost
Matmul,tt_dnn_device,1024,0,wormhole_b0,in0_block_w=1;out_subblock_h=1;out_subblock_w=1,HiFi4,64,64,9000,100,1000000,1,1,2048[2048],1024[1000],BFLOAT16,DEV_1_DRAM_INTERLEAVED,1,1,1024,4096,BFLOAT16,DEV_1_DRAM_INTERLEAVED,1,1,2048,4096,BFLOAT16,DEV_1_DRAM_INTERLEAVED
second,signpost
Conv2d,tt_dnn_device,2048,0,wormhole_b0,,HiFi2,16,64,9000,2000,1000,1,1,640,64,BFLOAT8_B,DEV_1_L1,1,1,576,64,BFLOAT8_B,DEV_1_DRAM_INTERLEAVED,1,1,640,64,BFLOAT8_B,DEV_1_L1
Add (torch),python_fallback
`)
	ops := PerfOps(table, "")
	if len(ops) != 3 {
		t.Fatalf("%d operators", len(ops))
	}
	near := func(what string, got *float64, want float64) {
		t.Helper()
		if got == nil || math.Abs(*got-want) > 0.005*want {
			t.Errorf("%s %v, want %v", what, value(got), want)
		}
	}
	m, c, host := ops[0], ops[1], ops[2]
	if m.Signpost != "start" || c.Signpost != "second" || m.Gap != nil || *c.Gap != 9000 || m.DRAMBytes != 28<<20 || m.FLOPs != 2*2048*1024*4096 || m.Size != "2048 × 1024 × 4096" || m.Types != "BF16 × BF16 → BF16" {
		t.Errorf("%+v, gap of the second %v", m, value(c.Gap))
	}
	near("DRAM % of the product", m.DRAMPercent, 10.194)
	near("FLOP % of the product", m.FLOPsPercent, 26.12)
	near("DRAM % of the convolution", c.DRAMPercent, 12.8)
	near("FLOP % of the convolution", c.FLOPsPercent, 143.5)
	if m.Bound != "SLOW" || c.Bound != "FLOP" || host.Bound != "HOST" || host.Time != nil {
		t.Errorf("bounds %q, %q, %q", m.Bound, c.Bound, host.Bound)
	}
	if want := []string{adviceL1, adviceBlock, adviceSub}; !slices.Equal(m.Advice, want) {
		t.Errorf("advice %q, want %q", m.Advice, want)
	}
	if want := []string{adviceGap}; !slices.Equal(c.Advice, want) {
		t.Errorf("advice %q, want %q", c.Advice, want)
	}
	// Of 1,000,000 + 1,000 + 9,000 ns.
	near("share", &m.Share, 1e6/1.01e6)
	if other := PerfOps(table, "blackhole"); math.Abs(*other[0].DRAMPercent-29.36/5.12) > 0.01 {
		t.Errorf("DRAM %% on a Blackhole: %v", *other[0].DRAMPercent)
	}
	if other := PerfOps(opTable(t, "Matmul,tt_dnn_device,1,0,,,HiFi4,64,,,1,1000,1,1,32,32,BFLOAT16,DRAM,1,1,32,32,BFLOAT16,DRAM,1,1,32,32,BFLOAT16,DRAM\n"), ""); other[0].FLOPsPercent != nil || other[0].Bound != "" || other[0].FLOPs != 65536 {
		t.Errorf("a chip that is not known: %+v", other[0])
	}
	sums := TotalOps(ops, func(o *OpPerf) string { return o.Signpost })
	if len(sums) != 3 || sums[0].Time != 1e6 || sums[1].Time != 1000 || sums[1].Gap != 9000 {
		t.Errorf("%+v", sums)
	}
}

func TestFidelityFor(t *testing.T) {
	for _, c := range [][4]string{
		{"BFLOAT16", "BFLOAT16", "BFLOAT16", "HiFi4"}, {"BFLOAT16", "BFLOAT8_B", "BFLOAT8_B", "HiFi4"}, {"BFLOAT8_B", "BFLOAT8_B", "BFLOAT8_B", "HiFi2"},
		{"BFLOAT16", "BFLOAT4_B", "BFLOAT16", "LoFi"}, {"BFLOAT16", "BFLOAT16", "BFLOAT4_B", "HiFi2"}, {"UINT32", "BFLOAT16", "BFLOAT16", ""},
	} {
		if got, ok := fidelityFor(c[0], c[1], c[2]); got != c[3] || ok != (c[3] != "") {
			t.Errorf("%v: %q", c, got)
		}
	}
}

// Launches are joined by their firmware start, else by call count, else, where
// there are as many, by order.
func TestJoinOps(t *testing.T) {
	l := logOf(t,
		"0/BRISC/1/BRISC-FW/s/100/1024", "0/BRISC/1/BRISC-KERNEL/s/110/1024", "0/BRISC/1/BRISC-KERNEL/e/290/1024", "0/BRISC/1/BRISC-FW/e/300/1024",
		"0/BRISC/1/BRISC-FW/s/1500/2048", "0/BRISC/1/BRISC-KERNEL/s/1510/2048", "0/BRISC/1/BRISC-KERNEL/e/1590/2048", "0/BRISC/1/BRISC-FW/e/1600/2048",
		"0/BRISC/1/BRISC-FW/s/2000/3072", "0/BRISC/1/BRISC-KERNEL/s/2010/3072", "0/BRISC/1/BRISC-KERNEL/e/2090/3072", "0/BRISC/1/BRISC-FW/e/2100/3072")
	p, err := New(t.Context(), "log", l, Options{By: ByZone})
	if err != nil {
		t.Fatal(err)
	}
	ops := PerfOps(opTable(t, "C,tt_dnn_device,9,0,,,,1,,0,5,80\nA,tt_dnn_device,7,0,,,,1,,,100,150\nB,tt_dnn_device,2048,0,,,,1,,1220,4,80\n"), "")
	if j := JoinOps(p, ops); j != (Join{Ops: 3, Launches: 3, Joined: 3, ByCycle: 1, ByCall: 1, ByOrder: 1, Differ: 1}) {
		t.Errorf("%+v", j)
	}
	if a := ops[1].Launch; a == nil || a.Start != 100 || *a.KernelNS != 180 || *a.FirmwareNS != 200 {
		t.Errorf("%+v", a)
	}
	if b := ops[2].Launch; b == nil || b.Start != 1500 || *b.KernelNS != 80 || *b.GapNS != 1220 {
		t.Errorf("%+v", b)
	}
	if c := ops[0].Launch; c == nil || c.Start != 2000 {
		t.Errorf("%+v", c)
	}
	// Two ops for three launches: none is guessed.
	ops = PerfOps(opTable(t, "A,tt_dnn_device,7,0,,,,1,,,9,180\nB,tt_dnn_device,8,0,,,,1,,,4,80\n"), "")
	if j := JoinOps(p, ops); j.Joined != 0 || ops[0].Launch != nil {
		t.Errorf("%+v", j)
	}
}
