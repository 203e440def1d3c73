package lower_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/systems/cost"
	"perfsim/systems/lower"
)

// randomGraph draws a small graph of products, elementwise operators,
// reductions, transposes, moves, collectives and a loop.
func randomGraph(t *rapid.T) *opgraph.Graph {
	g := opgraph.NewGraph("random")
	elem := rapid.SampledFrom([]opgraph.ElemType{opgraph.ElemBF16, opgraph.ElemF32, opgraph.ElemF8E4M3FN}).Draw(t, "type")
	dim := rapid.SampledFrom([]int64{1, 3, 64, 128, 200, 513, 2048})
	scalar := g.Array(elem)
	add := g.BeginComputation("add")
	x, y := g.AddParameter("x", scalar, 0), g.AddParameter("y", scalar, 1)
	g.EndComputation(g.AddOp(opgraph.OpAdd, "r", scalar, x, y))

	state := g.Array(elem, 64, dim.Draw(t, "state"))
	body := g.BeginComputation("body")
	s := g.AddParameter("s", state, 0)
	g.EndComputation(g.AddOp(opgraph.OpTanh, "step", state, s))
	cond := g.BeginComputation("cond")
	g.AddParameter("cs", state, 0)
	yes := g.AddOp(opgraph.OpConstant, "yes", g.Array(opgraph.ElemPred))
	g.SetInt(yes, opgraph.AttrConstInt, 1)
	g.EndComputation(yes)

	g.Entry = g.BeginComputation("main")
	var live []opgraph.OpID
	params := 0
	param := func(s opgraph.ShapeID) opgraph.OpID {
		p := g.AddParameter("", s, params)
		params++
		return p
	}
	live = append(live, param(g.Array(elem, dim.Draw(t, "m"), dim.Draw(t, "k"))))
	z := g.AddOp(opgraph.OpConstant, "zero", scalar)
	for range rapid.IntRange(1, 12).Draw(t, "operators") {
		a := rapid.SampledFrom(live).Draw(t, "operand")
		sh := g.Ops.Shape[a]
		d := append([]int64(nil), g.Shapes.Dims(sh)...)
		var op opgraph.OpID
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			n := dim.Draw(t, "n")
			op = g.AddOp(opgraph.OpDot, "", g.Array(elem, d[0], n), a, param(g.Array(elem, d[1], n)))
			g.SetDot(op, opgraph.DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
		case 1:
			n := dim.Draw(t, "n")
			op = g.AddOp(opgraph.OpDot, "", g.Array(elem, d[1], n), a, param(g.Array(elem, d[0], n)))
			g.SetDot(op, opgraph.DotDims{LHSContract: []int64{0}, RHSContract: []int64{0}})
		case 2:
			op = g.AddOp(opgraph.OpExp, "", sh, a)
		case 3:
			op = g.AddOp(opgraph.OpMultiply, "", sh, a, param(sh))
		case 4:
			at := int64(rapid.IntRange(0, 1).Draw(t, "dimension"))
			r := g.AddOp(opgraph.OpReduce, "", g.Array(elem, d[1-at]), a, z)
			g.SetInts(r, opgraph.AttrDimensions, at)
			g.AddCall(r, opgraph.RoleToApply, add)
			b := g.AddOp(opgraph.OpBroadcast, "", sh, r)
			g.SetInts(b, opgraph.AttrDimensions, 1-at)
			op = g.AddOp(opgraph.OpSubtract, "", sh, a, b)
		case 5:
			op = g.AddOp(opgraph.OpTranspose, "", g.Array(elem, d[1], d[0]), a)
			g.SetInts(op, opgraph.AttrDimensions, 1, 0)
		case 6:
			op = g.AddOp(opgraph.OpAllReduce, "", sh, a)
			g.AddCall(op, opgraph.RoleToApply, add)
			g.SetReplicaGroups(op, opgraph.ReplicaGroups{Form: opgraph.GroupsList, Sizes: []int64{2}, Devices: []int64{0, 1}})
		case 7:
			op = g.AddOp(opgraph.OpConcatenate, "", g.Array(elem, 2*d[0], d[1]), a, a)
			g.SetInts(op, opgraph.AttrDimensions, 0)
		case 8:
			if d[0] > 1 {
				op = g.AddOp(opgraph.OpSlice, "", g.Array(elem, d[0]/2, d[1]), a)
				g.SetInts(op, opgraph.AttrSlice, 0, d[0]/2, 1, 0, d[1], 1)
				break
			}
			op = g.AddOp(opgraph.OpCopy, "", sh, a)
		case 9:
			w := g.AddOp(opgraph.OpWhile, "", state, param(state))
			g.AddCall(w, opgraph.RoleCondition, cond)
			g.AddCall(w, opgraph.RoleBody, body)
			g.SetTripCount(w, int64(rapid.IntRange(0, 5).Draw(t, "trips")))
			op = w
		}
		live = append(live, op)
	}
	last := live[len(live)-1]
	g.EndComputation(g.AddTuple("", last, live[len(live)/2]))
	return g
}

// Whatever the graph, the machine's buffers and the options: the module does
// what the graph asks for, its memory accesses are in order, and the same
// graph gives the same bytes.
func TestRandomGraphs(t *testing.T) {
	full := loadMachine(t, "trn2")
	proptest.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		if err := g.Check(); err != nil {
			t.Fatalf("the test drew a bad graph: %v", err)
		}
		mach := *full
		mach.Memory.SBUFBytes = rapid.SampledFrom([]int{48 << 10, 96 << 10, 224 << 10}).Draw(t, "sbuf")
		mach.Memory.PSUMBanks = rapid.SampledFrom([]int{0, 4, 8}).Draw(t, "banks")
		opt := lower.DefaultOptions()
		opt.Operands = true
		opt.Buffers = rapid.IntRange(1, 4).Draw(t, "buffers")
		opt.Compress = rapid.Bool().Draw(t, "compress")
		opt.Group = rapid.Bool().Draw(t, "group")
		opt.Infinite = rapid.Bool().Draw(t, "infinite")
		write := func() []byte {
			res, err := lower.Lower(context.Background(), g, &mach, opt)
			if err != nil && opt.Buffers > 1 && mach.Memory.SBUFBytes < full.Memory.SBUFBytes && strings.Contains(err.Error(), "--buffers may be too many") {
				t.Skip("a machine with less SBUF may have no room for so many buffers")
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Report.Conserved(); err != nil {
				t.Fatal(err)
			}
			r, err := checkModule(res.Module)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Err(res.Module); err != nil {
				t.Fatal(err)
			}
			if opt.Infinite && res.Report.SpillBytes > 0 {
				t.Fatalf("%d bytes spilled from a memory without end", res.Report.SpillBytes)
			}
			var b bytes.Buffer
			if err := birjson.Write(context.Background(), &b, res.Module, format.Options{Jobs: 1}); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		if a, b := write(), write(); !bytes.Equal(a, b) {
			t.Fatal("the same graph gave two modules")
		}
	})
}

// Products find room for their results on a machine with little SBUF, whatever
// their operands take.
func TestProductsFitSmallSBUF(t *testing.T) {
	mach := *loadMachine(t, "trn2")
	mach.Memory.SBUFBytes, mach.Memory.PSUMBanks = 48<<10, 4
	for _, elem := range []opgraph.ElemType{opgraph.ElemBF16, opgraph.ElemF32, opgraph.ElemF8E4M3FN} {
		for _, d := range [][3]int64{{200, 2048, 64}, {64, 2048, 200}, {2048, 2048, 2048}, {513, 4096, 3}} {
			for buffers := 1; buffers <= 4; buffers++ {
				opt := lower.DefaultOptions()
				opt.Operands, opt.Buffers = true, buffers
				if m := lowered(t, matmul(d[0], d[1], d[2], elem), &mach, opt).Module; m.Instr.Len() == 0 {
					t.Errorf("%v, %v, %d buffers: no instructions", d, elem, buffers)
				}
			}
		}
	}
}

// A lowered module that is written as BIR JSON and read again predicts the
// same.
func TestRoundTrip(t *testing.T) {
	mach := loadMachine(t, "trn2")
	for _, operands := range []bool{false, true} {
		for _, g := range []*opgraph.Graph{layer(512, 1024, 2048, opgraph.ElemBF16), attention(1024, 128, opgraph.ElemF32), matmul(4096, 512, 4096, opgraph.ElemBF16)} {
			opt := lower.DefaultOptions()
			opt.Operands = operands
			m := lowered(t, g, mach, opt).Module
			var b bytes.Buffer
			if err := birjson.Write(context.Background(), &b, m, format.Options{Jobs: 1}); err != nil {
				t.Fatal(err)
			}
			src, err := format.FromBytes("m.bir.json", b.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			again, err := birjson.Importer.Module(context.Background(), src, format.Options{Jobs: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, model := range []components.Model{cost.Reference, cost.Calibrated} {
				if x, y := predict(t, m, mach, model), predict(t, again, mach, model); x != y {
					t.Errorf("%s, operands %v, %s: %v before, %v after", m.Name, operands, model, x, y)
				}
			}
		}
	}
}
