package fit

import (
	"testing"

	"github.com/valyala/fastjson"

	"perfsim/components"
)

func TestPattern(t *testing.T) {
	for _, x := range []struct {
		text  string
		dtype components.DType
		elems uint64
		ok    bool
	}{
		{"float32@scores+0[512,1][128,512]", components.Float32, 512, true},
		{"bfloat16@p+0[512,4,1][128,3,40]", components.BFloat16, 120, true},
		{"float32@peak+0[1,1][128,1]", components.Float32, 1, true},
		{"float32@p[1][128]", components.Float32, 1, true},
		{"float32@p[1,1][128,0]", components.Float32, 1, true},
		{"complex7@p[1][128]", 0, 0, false},
		{"float32", 0, 0, false},
		{"float32@p+0[1,1][128,x]", 0, 0, false},
		{"float32@p+0[1,1][128,-5]", 0, 0, false},
		{"float32@p[1,1,1][128,4000000000,4000000000]", 0, 0, false},
		{"float32@]", 0, 0, false},
		{"", 0, 0, false},
	} {
		d, n, ok := pattern(x.text)
		if ok != x.ok || ok && (d != x.dtype || n != x.elems) {
			t.Errorf("%q: %v, %d elements, %v", x.text, d, n, ok)
		}
	}
}

func TestShapeOf(t *testing.T) {
	var p fastjson.Parser
	for _, x := range []struct {
		text string
		want traceShape
		ok   bool
	}{
		{`,"input_access_patterns":"float32@a+0[512,1][128,512] bfloat16@b+0[1,1][128,700]","output_access_patterns":"bfloat16@c+0[64,1][128,64]"`, traceShape{700, 64, components.Float32}, true},
		{`,"input_access_patterns":"","output_access_patterns":"bfloat16@c+0[64,1][128,64]"`, traceShape{64, 64, components.BFloat16}, true},
		{`,"input_access_patterns":"","output_access_patterns":""`, traceShape{}, false},
		{`,"input_access_patterns":"nonsense"`, traceShape{}, false},
		{`S[4]>=1 src=fp32@0x0`, traceShape{}, false},
		{`,"a":`, traceShape{}, false},
		{``, traceShape{}, false},
	} {
		m := traced(t, "COPY", components.DVE, components.NoDType, 96, 1, 0, []uint32{0})
		m.Instr.OutElems.Set(0, 0)
		m.Instr.Text.Resize(1)
		m.Instr.Text.Set(0, m.Symbols.InternString(x.text))
		s, ok := shapeOf(m, 0, &p)
		if ok != x.ok || ok && s != x.want {
			t.Errorf("%s: %+v, %v", x.text, s, ok)
		}
	}
}
