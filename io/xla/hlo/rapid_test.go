package hlo

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components/opgraph"
	"perfsim/ecs/proptest"
)

// anyBytes draws strings that need not be UTF-8.
func anyBytes() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "bytes")) })
}

// drawGraph builds a random valid graph through the builder interface.
func drawGraph(t *rapid.T) *opgraph.Graph {
	g := opgraph.NewGraph(rapid.SampledFrom([]string{"m", "jit_train_step", "a.b-c", "jit(f)/x:0", "%x", "//y", "/*z"}).Draw(t, "name"))
	g.IsScheduled = rapid.Bool().Draw(t, "scheduled")
	g.Replicas = rapid.Int64Range(0, 4).Draw(t, "replicas")
	text := rapid.OneOf(rapid.StringN(0, 12, 40), anyBytes())
	for range rapid.IntRange(0, 3).Draw(t, "frames") {
		g.Frames = append(g.Frames, opgraph.StackFrame{
			File: g.Str(text.Draw(t, "file")), Function: g.Str(text.Draw(t, "function")),
			Line: rapid.Uint32Range(0, 1000).Draw(t, "line"), Parent: uint32(rapid.IntRange(0, len(g.Frames)).Draw(t, "parent")),
		})
	}
	shape := func() opgraph.ShapeID {
		elem := opgraph.ElemType(rapid.IntRange(int(opgraph.ElemPred), int(opgraph.ElemC128)).Draw(t, "elem"))
		dims := rapid.SliceOfN(rapid.Int64Range(0, 300), 0, 4).Draw(t, "dims")
		l := opgraph.ShapeLayout{}
		if rapid.Bool().Draw(t, "layout") && len(dims) > 0 {
			l.HasText = true
			for i := range dims {
				if i > 0 {
					l.Layout += ","
				}
				l.Layout += fmt.Sprint(len(dims) - 1 - i)
			}
			l.Layout += rapid.SampledFrom([]string{"", ":T(8,128)", ":T(8,128)(2,1)S(1)", ":E(4)", ":S(5)"}).Draw(t, "tiles")
			l.Dynamic = rapid.Uint64Range(0, 1<<len(dims)-1).Draw(t, "dynamic")
		}
		return g.Shapes.AddArrayLayout(elem, dims, l)
	}
	comps := rapid.IntRange(1, 4).Draw(t, "comps")
	for c := range comps {
		comp := g.BeginComputation(fmt.Sprintf("comp.%d", c))
		params := rapid.IntRange(1, 3).Draw(t, "params")
		for p := range params {
			g.AddParameter(fmt.Sprintf("p%d", p), shape(), p)
		}
		for range rapid.IntRange(0, 8).Draw(t, "ops") {
			drawOp(t, g, comp, shape)
			last := opgraph.OpID(g.NumOps() - 1)
			if rapid.Bool().Draw(t, "metadata") {
				g.Ops.OpName[last] = g.Str(text.Draw(t, "op_name"))
				g.Ops.SourceFile[last] = g.Str(text.Draw(t, "source"))
				g.Ops.SourceLine[last] = rapid.Uint32Range(0, 99999).Draw(t, "line")
				g.Ops.Frame[last] = uint32(rapid.IntRange(0, len(g.Frames)).Draw(t, "frame"))
			}
			if rapid.IntRange(0, 3).Draw(t, "control") == 0 {
				g.AddControl(last, opgraph.OpID(rapid.IntRange(int(g.Comps.First[comp]), int(last)-1).Draw(t, "pred")))
			}
		}
		root := opgraph.OpID(rapid.IntRange(int(g.Comps.First[comp]), g.NumOps()-1).Draw(t, "root"))
		g.EndComputation(root)
		if rapid.IntRange(0, 3).Draw(t, "thread") == 0 {
			g.Comps.Thread[comp] = g.Str("p" + text.Draw(t, "thread name")) // "main" is not kept
		}
		g.Entry = comp
	}
	return g
}

func drawOp(t *rapid.T, g *opgraph.Graph, comp opgraph.CompID, shape func() opgraph.ShapeID) {
	any := func() opgraph.OpID {
		return opgraph.OpID(rapid.IntRange(int(g.Comps.First[comp]), g.NumOps()-1).Draw(t, "operand"))
	}
	name := fmt.Sprintf("op-%d.x", g.NumOps())
	text := rapid.OneOf(rapid.StringN(0, 12, 40), anyBytes())
	switch rapid.IntRange(0, 12).Draw(t, "kind") {
	case 0:
		g.AddOp(opgraph.OpAdd, name, shape(), any(), any())
	case 1:
		g.AddTuple(name, any(), any())
	case 2:
		a := any()
		if n := len(g.Shapes.Tuple(g.Ops.Shape[a])); n > 0 {
			g.AddTupleElement(name, a, rapid.IntRange(0, n-1).Draw(t, "index"))
			return
		}
		g.AddOp(opgraph.OpCopy, name, shape(), a)
	case 3:
		op := g.AddOp(opgraph.OpConstant, name, g.Array(opgraph.ElemS32))
		g.SetInt(op, opgraph.AttrConstInt, rapid.Int64Range(-1<<31, 1<<31-1).Draw(t, "int"))
	case 4:
		op := g.AddOp(opgraph.OpConstant, name, g.Array(opgraph.ElemF32))
		g.SetFloat(op, float64(rapid.Float32().Draw(t, "float")))
	case 5:
		x := g.AddOp(opgraph.OpConstant, name+"l", g.Array(opgraph.ElemBF16, 4, 6, 8))
		y := g.AddOp(opgraph.OpConstant, name+"r", g.Array(opgraph.ElemBF16, 4, 8, 10))
		d := g.AddOp(opgraph.OpDot, name, 0, x, y)
		g.SetDot(d, opgraph.DotDims{LHSContract: []int64{2}, RHSContract: []int64{1}, LHSBatch: []int64{0}, RHSBatch: []int64{0}})
		if err := g.Infer(d); err != nil {
			t.Fatal(err)
		}
	case 6:
		op := g.AddOp(opgraph.OpCustomCall, name, shape(), any())
		g.SetAttrStr(op, opgraph.AttrCustomCallTarget, text.Draw(t, "target"))
		if s := text.Draw(t, "config"); s != "" {
			g.SetAttrStr(op, opgraph.AttrBackendConfig, s)
		}
		if s := text.Draw(t, "sharding"); s != "" {
			g.SetAttrStr(op, opgraph.AttrSharding, s)
			g.SetAttrStr(op, opgraph.AttrFrontend, s)
			g.SetAttrStr(op, opgraph.AttrThread, s)
		}
		w := make([]opgraph.WindowDim, rapid.IntRange(1, 3).Draw(t, "window"))
		for i := range w {
			w[i] = opgraph.WindowDim{
				Size: rapid.Int64Range(0, 9).Draw(t, "size"), Stride: rapid.Int64Range(1, 3).Draw(t, "stride"),
				PadLow: rapid.Int64Range(-2, 2).Draw(t, "low"), PadHigh: rapid.Int64Range(-2, 2).Draw(t, "high"),
				LHSDilate: rapid.Int64Range(1, 2).Draw(t, "base"), RHSDilate: rapid.Int64Range(1, 2).Draw(t, "window"),
				Reversed: rapid.Bool().Draw(t, "reversed"),
			}
		}
		g.SetWindow(op, w)
	case 7:
		if comp == 0 {
			g.AddOp(opgraph.OpNegate, name, shape(), any())
			return
		}
		op := g.AddOp(opgraph.OpCall, name, shape(), any())
		g.AddCall(op, opgraph.RoleToApply, opgraph.CompID(rapid.IntRange(0, int(comp)-1).Draw(t, "callee")))
	case 8:
		op := g.AddOp(opgraph.OpCollectivePermute, name, shape(), any())
		g.SetInt(op, opgraph.AttrChannelID, rapid.Int64Range(1, 9).Draw(t, "channel"))
		g.SetInts(op, opgraph.AttrSourceTargetPairs, 0, 1, 1, 2)
	case 9:
		op := g.AddOp(opgraph.OpAllToAll, name, shape(), any())
		switch rapid.IntRange(0, 2).Draw(t, "groups") {
		case 0:
			g.SetReplicaGroups(op, opgraph.ReplicaGroups{})
		case 1:
			g.SetReplicaGroups(op, opgraph.ReplicaGroups{Form: opgraph.GroupsList, Sizes: []int64{2, 1}, Devices: []int64{0, 2, 1}})
		case 2:
			g.SetReplicaGroups(op, opgraph.ReplicaGroups{Form: opgraph.GroupsIota, Dims: []int64{2, 6}, Reshape: []int64{3, 4}, Perm: []int64{1, 0}})
		}
		g.SetInt(op, opgraph.AttrUseGlobalDeviceIDs, 1)
	case 10:
		op := g.AddOp(opgraph.OpUnknown, name, shape(), any())
		g.SetAttrStr(op, opgraph.AttrOpcode, "new-opcode")
		g.AddRaw(op, "some_flag", "{x=1,y=\"}\"}")
	case 11:
		op := g.AddOp(opgraph.OpCompare, name, shape(), any(), any())
		g.SetInt(op, opgraph.AttrDirection, rapid.Int64Range(int64(opgraph.DirEQ), int64(opgraph.DirLT)).Draw(t, "direction"))
	case 12:
		op := g.AddOp(opgraph.OpConvolution, name, g.Array(opgraph.ElemF32, 2, 5, 7),
			g.AddOp(opgraph.OpConstant, name+"i", g.Array(opgraph.ElemF32, 2, 5, 3)),
			g.AddOp(opgraph.OpConstant, name+"k", g.Array(opgraph.ElemF32, 3, 3, 7)))
		g.SetConvDims(op, opgraph.ConvDims{
			InputBatch: 0, InputFeature: 2, KernelInput: 1, KernelOutput: 2, OutputBatch: 0, OutputFeature: 2,
			InputSpatial: []int64{1}, KernelSpatial: []int64{0}, OutputSpatial: []int64{1},
		})
		g.SetWindow(op, []opgraph.WindowDim{{Size: 3, Stride: 1, PadLow: 1, PadHigh: 1, LHSDilate: 1, RHSDilate: 1}})
	}
}

// TestRoundTripProperty: whatever the builder makes reads back equal.
func TestRoundTripProperty(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		if err := g.Check(); err != nil {
			t.Fatalf("the builder made a graph that does not pass: %v", err)
		}
		text := AppendText(nil, g)
		back, err := ReadText("written", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if d := graphDiff(g, back[0], diffOptions{}); d != "" {
			t.Fatalf("%s\n%s", d, text)
		}
	})
}

// TestWriteNames changes names that HLO text cannot hold, and only those.
func TestWriteNames(t *testing.T) {
	g := opgraph.NewGraph("my model, v2")
	g.Entry = g.BeginComputation("layer/0")
	x := g.AddParameter("x:0", g.Array(opgraph.ElemF32), 0)
	y := g.AddOp(opgraph.OpNegate, "x_0", g.Array(opgraph.ElemF32), x)
	z := g.AddOp(opgraph.OpNegate, "", g.Array(opgraph.ElemF32), y)
	g.AddOp(opgraph.OpNegate, "größe", g.Array(opgraph.ElemF32), z)
	g.EndComputation(opgraph.NoOp)
	want := `HloModule my_model__v2

ENTRY %layer_0 (x_0: f32[]) -> f32[] {
  %x_0 = f32[] parameter(0)
  %x_0.1 = f32[] negate(%x_0)
  %negate.2 = f32[] negate(%x_0.1)
  ROOT %gr____e = f32[] negate(%negate.2)
}
`
	text := AppendText(nil, g)
	if string(text) != want {
		t.Errorf("got %s", text)
	}
	if _, err := ReadText("written", text); err != nil {
		t.Error(err)
	}
}
