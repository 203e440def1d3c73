package profile

import (
	"fmt"
	"strings"
	"testing"

	"perfsim/components"
)

// format writes parsed operands down, one item a line.
func (o *operands) dump() string {
	var b strings.Builder
	ops := [...]string{"wait>=", "wait==", "inc", "dec", "set"}
	for _, s := range o.Syncs {
		fmt.Fprintf(&b, "sync %c%d %s %d", s.Space, s.ID, ops[s.Op], s.Value)
		if s.Owner != nil {
			fmt.Fprintf(&b, " by %s", s.Owner)
		}
		if s.Clear {
			b.WriteString(" clear")
		}
		b.WriteByte('\n')
	}
	for _, p := range o.Patterns {
		fmt.Fprintf(&b, "pattern %s", p.Key)
		if p.DType != components.NoDType {
			fmt.Fprintf(&b, " %s", p.DType)
		}
		if p.HasAddress {
			fmt.Fprintf(&b, " at %#x", p.Address)
		}
		if p.Steps != nil {
			fmt.Fprintf(&b, " %v × %v", p.Steps, p.Counts)
		}
		b.WriteByte('\n')
	}
	for _, f := range o.Fields {
		fmt.Fprintf(&b, "field %s = %s\n", f.Key, f.Value)
	}
	for _, w := range o.Words {
		fmt.Fprintf(&b, "word %s\n", w)
	}
	if o.Rows+o.Cols > 0 {
		fmt.Fprintf(&b, "array %d × %d\n", o.Rows, o.Cols)
	}
	if o.Odd > 0 {
		fmt.Fprintf(&b, "odd %d\n", o.Odd)
	}
	return b.String()
}

func TestParseOperands(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\n ", ""},
		// Semaphores.
		{"S[5] (Tensor)>=8", "sync S5 wait>= 8 by Tensor\n"},
		{"S[4] (Scalar)++@complete", "sync S4 inc 1 by Scalar\n"},
		{"S[4](test)++@complete", "sync S4 inc 1 by test\n"},
		{"S[24] (qGpSimdDynamic)>=16 setter=0 S[10] (qGpSimdDynamic)>=16  ",
			"sync S24 wait>= 16 by qGpSimdDynamic\nsync S10 wait>= 16 by qGpSimdDynamic\nfield setter = 0\n"},
		{" setter=0 $S[2]==8 $S[2]=0@complete ", "sync $2 wait== 8\nsync $2 set 0\nfield setter = 0\n"},
		{" setter=0  $S[2]+=3@complete ", "sync $2 inc 3\nfield setter = 0\n"},
		{"$S[1]>=1 $S[1]--@complete", "sync $1 wait>= 1\nsync $1 dec 1\n"},
		{"$S[1]-=2", "sync $1 dec 2\n"},
		{"$S[10]>0 $S[22]++@complete ctype=ALL_REDUCE", "sync $10 wait>= 1\nsync $22 inc 1\nfield ctype = ALL_REDUCE\n"},
		{"$E[1]+@complete cycle=1 ", "sync E1 inc 1\nfield cycle = 1\n"},
		{"$E[4]==1- cycle=1", "sync E4 wait== 1 clear\nfield cycle = 1\n"},
		// Access patterns.
		{"src=fp32@0x2000800[1,1,1,1][512,1,1,1]", "pattern src float32 at 0x2000800 [1 1 1 1] × [512 1 1 1]\n"},
		{" transpose_mode=ENABLED src=bfloat16@0x372fe[-1,0,-32][32,1,4] 128*64 ",
			"pattern src bfloat16 at 0x372fe [-1 0 -32] × [32 1 4]\nfield transpose_mode = ENABLED\narray 128 × 64\n"},
		{"dst=0x2002000[1,0,0][128,1,1]", "pattern dst at 0x2002000 [1 0 0] × [128 1 1]\n"},
		{"src=fp16@0x5600[1, 0, 0][3, 1, 1] 3*128", "pattern src float16 at 0x5600 [1 0 0] × [3 1 1]\narray 3 × 128\n"},
		{"EXP bias_ptr=fp32@0xc040 scale=1.000000", "pattern bias_ptr float32 at 0xc040\nfield scale = 1.000000\nword EXP\n"},
		{"src=newtype@0x10[1][2]", "pattern src at 0x10 [1] × [2]\nodd 1\n"},
		{"src_pattern=[256,262144][4,128]", "pattern src_pattern [256 262144] × [4 128]\n"},
		{"addr=uint32@0x8005c0365000[1,0][2,1] data=$R[130],$R[131]",
			"pattern addr uint32 at 0x8005c0365000 [1 0] × [2 1]\nfield data = $R[130],$R[131]\n"},
		// What looks like one but is not stays a field or a word.
		{"imm=0xa060,0 dst=0x80100252f038,0x80100250f038", "field imm = 0xa060,0\nfield dst = 0x80100252f038,0x80100250f038\n"},
		{"src=fp32@0x10[1,2][3]", "field src = fp32@0x10[1,2][3]\n"},
		{"src=fp32@0x10[1,x][3,4]", "field src = fp32@0x10[1,x][3,4]\n"},
		{"src=fp32@0x10000000000000000[1][4]", "field src = fp32@0x10000000000000000[1][4]\n"},
		{"src=fp32@16[1][4]", "field src = fp32@16[1][4]\n"},
		{"src=fp32@0x10[1][-4]", "field src = fp32@0x10[1][-4]\n"},
		{"src=fp32@0x10[1][18446744073709551616]", "field src = fp32@0x10[1][18446744073709551616]\n"},
		{"S[5] ", "word S[5]\nodd 1\n"},
		{"S[5](Tensor", "word S[5](Tensor\nodd 1\n"},
		{"S[5] (Tensor)>=x", "field (Tensor)> = x\nword S[5]\nodd 1\n"},
		{"S[4294967296]>=1", "field S[4294967296]> = 1\n"},
		{"S[1]>=9223372036854775808", "field S[1]> = 9223372036854775808\n"},
		{"=5 *3 3*", "word =5\nword *3\nword 3*\nodd 3\n"},
		{"a[b c", "word a[b\nword c\nodd 1\n"},
	} {
		var o operands
		parseOperands([]byte(c.text), &o)
		if got := o.dump(); got != c.want {
			t.Errorf("%q gives\n%swant\n%s", c.text, got, c.want)
		}
	}
}

func TestOperandsReuse(t *testing.T) {
	var o operands
	parseOperands([]byte("S[1]>=2 src=fp32@0x10[1][4] a=b W 3*4 ??"), &o)
	parseOperands(nil, &o)
	if got := o.dump(); got != "" {
		t.Errorf("left over from the parse before: %s", got)
	}
	if o.Pattern("src") != nil {
		t.Error("a pattern is left over")
	}
	text := []byte("S[6] (Vector)>=25 S[4] (Scalar)++@complete EXP src=fp32@0x35ff8[1,1,1][512,1,1] channels=128")
	if n := testing.AllocsPerRun(100, func() { parseOperands(text, &o) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if v, ok := o.Uint("channels"); !ok || v != 128 {
		t.Errorf("channels is %d, %v", v, ok)
	}
}

// TestOperandsHostile takes text that makes a careless parser look for a
// mate of every bracket over and over.
func TestOperandsHostile(t *testing.T) {
	var o operands
	for _, unit := range []string{"[ ", "S[ ", "S[1] (", "a=[", "]", "x[ ] "} {
		parseOperands([]byte(strings.Repeat(unit, maxOperands/len(unit))), &o)
	}
}

func FuzzParseOperands(f *testing.F) {
	for _, s := range []string{
		"S[4] (Scalar)>=33 fp32_mode=LOW transpose_mode=DISABLED src=fp32@0x71fc[-1,0,0][128,1,1] 128*128 ",
		"S[5] (Tensor)++@complete acc_flags=3 src=bfloat16@0x36ff8[1,0,0][512,1,1] dst=0x2000800[1,0,0][512,1,1] 128*128 ",
		"S[6] (Vector)++@complete ops=MULTIPLY,BYPASS imm=0xa060,0 imm_src=PTR,INSTRUCTION src=fp32@0xc860[1,1,1][512,1,1] dst=fp32@0xa880[1,1,1][512,1,1] channels=128 ",
		" semaphore=8 sem_increment=16  src_elem_size=2048 dst_elem_size=2048 src_pattern=[2048,1][128,1] dst_pattern=[262144,1][128,1] src_table_offset_imm=0x0 src_table_index=0 src_shape_reg=0 dst_addr_imm=0x8020000377f8 dst_shape_reg=0 compute_op=NONE ",
		"$E[4]==1- $S[2]=0@complete data=$R[130],$R[131]",
	} {
		for _, op := range []string{"MATMUL", "DMA_DIRECT2D", "TENSOR_SCALAR"} {
			f.Add(s, op, true, uint64(0), uint64(256))
		}
	}
	f.Fuzz(func(t *testing.T, text, opcode string, transpose bool, hbm, sbuf uint64) {
		var s shaper
		parseOperands([]byte(text), &s.ops)
		for _, p := range s.ops.Patterns {
			if len(p.Steps) != len(p.Counts) || len(p.Steps) > maxDims {
				t.Fatalf("%d steps and %d counts", len(p.Steps), len(p.Counts))
			}
		}
		if err := s.measure([]byte(opcode), transpose, traffic{hbmRead: hbm, sbufWrite: sbuf}); err != nil {
			return
		}
		for _, a := range s.aps {
			if a.lo > a.hi || int(a.hi) > len(s.dims) || a.kind == components.OperandPhysical && a.lo == a.hi {
				t.Fatalf("dimensions %d to %d of %d", a.lo, a.hi, len(s.dims))
			}
			if a.memory == components.MemPSUM || a.memory == components.MemSBUF {
				if a.base >= numPartitions || a.addr >= partitionBytes || s.dims[a.lo].count > numPartitions {
					t.Fatalf("partition %d + %d, address %#x", a.base, s.dims[a.lo].count, a.addr)
				}
			}
		}
		if s.out.elems > maxElems || s.out.outElems > maxElems || s.out.dmaBytes > maxBytes {
			t.Fatalf("shape %+v", s.out)
		}
	})
}
