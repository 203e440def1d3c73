package profile

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
)

func (s *shaper) dump() string {
	var b strings.Builder
	o := &s.out
	fmt.Fprintf(&b, "elems %d out %d parts %d %s banks %04x", o.elems, o.outElems, o.parts, o.dtype, o.banks)
	if o.dmaBytes > 0 {
		fmt.Fprintf(&b, " dma %d rows of %d sem %d", o.dmaBytes, o.dmaRow, int(o.queueSem)-1)
	}
	for _, f := range []struct {
		f components.Flags
		n string
	}{{components.FlagTranspose, "transpose"}, {components.FlagAccStart, "start"}, {components.FlagAccStop, "stop"},
		{components.FlagSrcPSUM, "src-psum"}, {components.FlagSrcDRAM, "src-dram"}, {components.FlagTwoInputs, "two"},
		{components.FlagSrc2PSUM, "src2-psum"}, {components.FlagThreeInputs, "three"}, {components.FlagDstPSUM, "dst-psum"},
		{components.FlagDstDRAM, "dst-dram"}, {components.FlagMixedTypes, "mixed"}, {components.FlagStrided, "strided"},
		{components.FlagSequencer, "sequencer"}, {components.FlagUnknownOp, "unknown"}} {
		if o.flags.Has(f.f) {
			b.WriteString(" " + f.n)
		}
	}
	b.WriteByte('\n')
	for _, a := range s.aps {
		role := "in"
		if a.role == components.RoleOut {
			role = "out"
		}
		fmt.Fprintf(&b, "%s %s %s %#x+%d", role, a.dtype, a.memory, a.addr, a.base)
		if a.table > 0 {
			fmt.Fprintf(&b, " table %d", a.table-1)
		}
		for _, d := range s.dims[a.lo:a.hi] {
			fmt.Fprintf(&b, " %d×%d", d.step, d.count)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestMeasure has values worked out by hand from the text: bank = (address −
// 0x2000000) / 2048; a pattern of N fp32 elements covers 4 N bytes.
func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		name, opcode, text string
		transpose          bool
		use                traffic
		want               string
	}{
		{name: "matmul bf16: 512 fp32 sums are one bank", opcode: "MATMUL",
			text: "S[5] (Tensor)++@complete acc_flags=3 src=bfloat16@0x36ff8[1,0,0][512,1,1] dst=0x2000800[1,0,0][512,1,1] 128*64",
			want: "elems 512 out 512 parts 128 bfloat16 banks 0200 start stop dst-psum mixed\n" +
				"in bfloat16 SB 0x36ff8+0 1×128 1×512\nout float32 PSUM 0x800+0 1×64 1×512\n"},
		{name: "transpose passes its type on: 512 bf16 are half a bank", opcode: "MATMUL", transpose: true,
			text: "acc_flags=1 src=bfloat16@0x37e00[1,0,0][512,1,1] dst=0x2000c00[1,0,0][512,1,1] 128*128",
			want: "elems 512 out 512 parts 128 bfloat16 banks 0200 transpose start dst-psum\n" +
				"in bfloat16 SB 0x37e00+0 1×128 1×512\nout bfloat16 PSUM 0xc00+0 1×128 1×512\n"},
		{name: "fp32 weights, backwards; 128 × 4 bytes below 0x71fc+4", opcode: "LDWEIGHTS",
			text: "fp32_mode=HIGH transpose_mode=DISABLED src=fp32@0x71fc[-1,0,0][128,1,1] 128*128",
			want: "elems 128 out 0 parts 128 float32 banks 0000\nin float32 SB 0x71fc+0 1×128 -1×128\n"},
		{name: "weights in two dimensions, slow to fast", opcode: "LDWEIGHTS",
			text: "transpose_mode=ENABLED src=bfloat16@0x2e9f6[-1,0,-32][32,1,4] 128*128",
			want: "elems 128 out 0 parts 128 bfloat16 banks 0000 transpose\nin bfloat16 SB 0x2e9f6+0 1×128 -32×4 -1×32\n"},
		{name: "cast out of bank 0", opcode: "CAST",
			text: "S[5] (Tensor)>=4 src=bfloat16@0x2000000[1,1,1,1][512,1,1,1] dst=fp32@0x4000[1,1,1,1][512,1,1,1] channels=128",
			want: "elems 512 out 512 parts 128 bfloat16 banks 0001 src-psum mixed\n" +
				"in bfloat16 PSUM 0x0+0 1×128 1×512\nout float32 SB 0x4000+0 1×128 1×512\n"},
		{name: "a pattern over the edge of a bank: bytes 0x2f00..0x30ff are banks 5 and 6", opcode: "COPY",
			text: "src=fp32@0x2002f00[1][128] dst=fp32@0x2003e00[1][128] channels=96",
			want: "elems 128 out 128 parts 96 float32 banks 8060 src-psum dst-psum\n" +
				"in float32 PSUM 0x2f00+0 1×96 1×128\nout float32 PSUM 0x3e00+0 1×96 1×128\n"},
		{name: "reduction: 2 × 8 elements, innermost step 1", opcode: "TENSOR_REDUCE",
			text: "op=MAX dim=X negated=1 src=fp32@0xc000[1,2,1,1][2,8,1,1] dst=fp32@0xc040[1,1,1,1][8,1,1,1] channels=128",
			want: "elems 16 out 8 parts 128 float32 banks 0000\nin float32 SB 0xc000+0 1×128 2×8 1×2\nout float32 SB 0xc040+0 1×128 1×8\n"},
		{name: "strided", opcode: "COPY", text: "src=bfloat16@0x40100[4,1][16,1] dst=bfloat16@0x200[1,1][16,1] channels=32",
			want: "elems 16 out 16 parts 32 bfloat16 banks 0000 strided\nin bfloat16 SB 0x100+1 1×32 4×16\nout bfloat16 SB 0x200+0 1×32 1×16\n"},
		{name: "activation: the bias is a pointer, not a tensor", opcode: "ACTIVATE",
			text: "EXP bias_ptr=fp32@0x4810 src=fp32@0x2002000[1,1,1][512,1,1] dst=fp32@0x4820[1,1,1][512,1,1] channels=128",
			want: "elems 512 out 512 parts 128 float32 banks 0010 src-psum\n" +
				"in float32 SB 0x4810+0 1×128 1×1\nin float32 PSUM 0x2000+0 1×128 1×512\nout float32 SB 0x4820+0 1×128 1×512\n"},
		{name: "pointer operand", opcode: "TENSOR_SCALAR",
			text: "ops=MULTIPLY,BYPASS imm=0xa060,0 imm_src=PTR,INSTRUCTION src=fp32@0xc860[1][512] dst=fp32@0xa880[1][512] channels=128",
			want: "elems 512 out 512 parts 128 float32 banks 0000\n" +
				"in float32 SB 0xc860+0 1×128 1×512\nout float32 SB 0xa880+0 1×128 1×512\nin float32 SB 0xa060+0 1×128 1×1\n"},
		{name: "three inputs", opcode: "SELECT", text: "src0=fp32@0x0[1][8] src1=fp32@0x2000000[1][8] src2=fp32@0x40[1][8] dst=fp32@0x80[1][8] channels=128",
			want: "elems 8 out 8 parts 128 float32 banks 0001 two src2-psum three\nin float32 SB 0x0+0 1×128 1×8\n" +
				"in float32 PSUM 0x0+0 1×128 1×8\nin float32 SB 0x40+0 1×128 1×8\nout float32 SB 0x80+0 1×128 1×8\n"},
		{name: "registers", opcode: "TENSOR_LOAD", text: "addr=uint32@0x8005c0365000[1,0][2,1] data=$R[130],$R[131]",
			want: "elems 2 out 0 parts 1 uint32 banks 0000 src-dram sequencer\nin uint32 DRAM 0x8005c0365000+0 1×1 1×2\n" +
				"out uint32 REG 0x82+0\nout uint32 REG 0x83+0\n"},
		{name: "load of 128 rows of 2048 bytes through the address table", opcode: "DMA_DIRECT2D",
			text: " semaphore=8 sem_increment=16  src_elem_size=2048 dst_elem_size=2048 src_pattern=[2048,1][128,1] dst_pattern=[262144,1][128,1] " +
				"src_table_offset_imm=0x0 src_table_index=0 src_shape_reg=0 dst_addr_imm=0x8020000377f8 dst_shape_reg=0 compute_op=NONE ",
			use: traffic{hbmRead: 262144, sbufWrite: 262144},
			want: "elems 2048 out 2048 parts 128 uint8 banks 0000 dma 262144 rows of 2048 sem 8 src-dram\n" +
				"in uint8 DRAM 0x0+0 table 0 2048×128 1×2048\nout uint8 SB 0x377f8+0 1×128 1×2048\n"},
		{name: "converting store: 4 × 128 rows of 512 bytes become 256", opcode: "DMA_DIRECT2D",
			text: "S[6] (Vector)>=16 semaphore=27 sem_increment=16 src_elem_size=512 dst_elem_size=256 src_pattern=[512,262144][4,128] " +
				"dst_pattern=[32768,256][4,128] src_addr_imm=0x802000008850 dst_table_offset_imm=0x0 dst_table_index=3 in_dtype=fp32 out_dtype=bfloat16",
			want: "elems 512 out 512 parts 128 float32 banks 0000 dma 131072 rows of 256 sem 27 dst-dram mixed\n" +
				"in float32 SB 0x8850+0 1×128 128×4 1×128\nout bfloat16 DRAM 0x0+0 table 3 128×128 16384×4 1×128\n"},
		{name: "not seen yet", opcode: "FROBNICATE", text: "src=fp32@0x0[1][8] channels=128",
			want: "elems 8 out 0 parts 128 float32 banks 0000 unknown\nin float32 SB 0x0+0 1×128 1×8\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s shaper
			parseOperands([]byte(c.text), &s.ops)
			if err := s.measure([]byte(c.opcode), c.transpose, c.use); err != nil {
				t.Fatal(err)
			}
			if got := s.dump(); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestMeasureRefuses(t *testing.T) {
	for _, c := range []struct{ opcode, text, want string }{
		{"COPY", "src=fp32@0x0[1,1][1000000000000000000,1] channels=128", "src has more than 2147483648 elements"},
		{"COPY", "src=fp32@0x0[1,1,1][65536,65536,2] channels=128", "src has more than 2147483648 elements"},
		{"COPY", "src=fp32@0x0[1,9000000000000000000][4,4] channels=128", "src steps by 9000000000000000000 elements"},
		{"MATMUL", "src=fp32@0x0[1][4] 129*128", "src covers 129 partitions of 128"},
		{"DMA_DIRECT2D", "src_elem_size=0 src_pattern=[1][1]", "src_elem_size is 0"},
		{"DMA_DIRECT2D", "src_elem_size=4 src_pattern=[1][0]", "src_pattern covers 4 × 0 bytes"},
		{"DMA_DIRECT2D", "src_elem_size=4 src_pattern=[1,1][9000000000000000,9000000000000000]", "src_pattern covers"},
		{"DMA_DIRECT2D", "src_elem_size=4 src_pattern=[9000000000000000][2]", "src_pattern steps by"},
		{"DMA_DIRECT2D", "src_elem_size=4 src_pattern=[262144][129] src_addr_imm=0x802000000000", "src_pattern covers 129 partitions"},
	} {
		var s shaper
		parseOperands([]byte(c.text), &s.ops)
		if err := s.measure([]byte(c.opcode), false, traffic{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s gives %v, want %q", c.text, err, c.want)
		}
	}
}
