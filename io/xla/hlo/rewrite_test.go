package hlo

import (
	"testing"

	"perfsim/components/opgraph"
)

// A rewriter that copies everything gives an equal graph and leaves the
// original alone, whatever is added to the copy.
func TestRewriterCopies(t *testing.T) {
	text := `HloModule m, num_partitions=2
add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}
ENTRY e {
  a = (f32[4,8]{1,0}, s32[]) parameter(0)
  b = f32[4,8]{1,0} get-tuple-element(a), index=0, sharding={replicated}
  z = f32[] constant(0)
  c = f32[4]{0} reduce(b, z), dimensions={1}, to_apply=add
  ROOT d = f32[4]{0} negate(c), control-predecessors={b}, metadata={op_name="n" source_file="f.py" source_line=3}
}
`
	graphs, err := ReadText("t.hlo", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	g := graphs[0]
	before := string(AppendText(nil, g))
	r := opgraph.NewRewriter(g)
	for c := range opgraph.CompID(g.NumComps()) {
		r.Begin(c)
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			r.Copy(op)
		}
		r.End(c)
	}
	if err := r.To.Check(); err != nil {
		t.Fatal(err)
	}
	if d := graphDiff(g, r.To, diffOptions{}); d != "" {
		t.Errorf("the copy differs: %s", d)
	}
	r.To.SetInt(0, opgraph.AttrChannelID, 7)
	r.To.Shapes.AddArray(opgraph.ElemF64, []int64{3, 5, 7})
	r.To.Str("new")
	if after := string(AppendText(nil, g)); after != before {
		t.Errorf("the original changed:\n%s", after)
	}
	if id := g.Array(opgraph.ElemF16, 9, 9); g.ShapeText(id) != "f16[9,9]" {
		t.Errorf("a shape added to the original is %s", g.ShapeText(id))
	}
}
