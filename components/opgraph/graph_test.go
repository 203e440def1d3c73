package opgraph

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

func TestShapeSizes(t *testing.T) {
	g := NewGraph("m")
	for _, c := range []struct {
		elem         ElemType
		dims         []int64
		count, bytes int64
	}{
		{ElemF32, nil, 1, 4},
		{ElemBF16, []int64{128, 4096}, 524288, 1048576},
		{ElemPred, []int64{3}, 3, 3},
		{ElemS4, []int64{3}, 3, 2},
		{ElemU4, []int64{1024, 512}, 524288, 262144},
		{ElemU1, []int64{9}, 9, 2},
		{ElemF6E2M3FN, []int64{4}, 4, 3},
		{ElemC128, []int64{2}, 2, 32},
		{ElemF32, []int64{0, 1 << 62, 1 << 62}, 0, 0},
		{ElemF32, []int64{1 << 40, 1 << 40}, MaxSize, MaxSize},
		{ElemU4, []int64{1 << 61}, 1 << 61, 1 << 61}, // the bit count does not fit; a byte each is said
		{ElemF32, []int64{DimUnknown, 8}, 8, 32},
		{ElemToken, nil, 0, 0},
	} {
		s := g.Array(c.elem, c.dims...)
		if g.Shapes.Count(s) != c.count || g.Shapes.Bytes(s) != c.bytes {
			t.Errorf("%s: %d elements, %d bytes, want %d and %d", g.ShapeText(s), g.Shapes.Count(s), g.Shapes.Bytes(s), c.count, c.bytes)
		}
		if again := g.Array(c.elem, slices.Clone(c.dims)...); again != s {
			t.Errorf("%s interned twice", g.ShapeText(s))
		}
	}
	tup := g.Shapes.AddTuple([]ShapeID{g.Array(ElemF32, 2), g.Array(ElemS8, 5)})
	if g.Shapes.Bytes(tup) != 13 || g.ShapeText(tup) != "(f32[2], s8[5])" {
		t.Errorf("tuple %s of %d bytes", g.ShapeText(tup), g.Shapes.Bytes(tup))
	}
	l := g.Shapes.AddArrayLayout(ElemF32, []int64{2, 3}, ShapeLayout{HasText: true, Layout: "0,1:T(8,128)SC(1:2)S(3)"})
	if got := g.Shapes.MinorToMajor(l, nil); !slices.Equal(got, []int64{0, 1}) || g.Shapes.Space(l) != 3 {
		t.Errorf("order %v, space %d", got, g.Shapes.Space(l))
	}
	if g.Shapes.WithoutLayout(g.Shapes.AddTuple([]ShapeID{l})) != g.Shapes.AddTuple([]ShapeID{g.Array(ElemF32, 2, 3)}) {
		t.Error("WithoutLayout of a tuple")
	}
	if got := g.Shapes.MinorToMajor(g.Array(ElemF32, 2, 3, 4), nil); !slices.Equal(got, []int64{2, 1, 0}) {
		t.Errorf("default order %v", got)
	}
	for e := ElemPred; e <= ElemOpaque; e++ {
		if back, ok := ParseElemType(e.String()); !ok || back != e {
			t.Errorf("element type %v reads back as %v", e, back)
		}
	}
	for k := OpUnknown + 1; k < NumOpKinds; k++ {
		if back, ok := ParseOpKind(k.String()); !ok || back != k {
			t.Errorf("opcode %v reads back as %v", k, back)
		}
	}
	for a := AttrNone + 1; a < NumOpAttrs; a++ {
		if a.String() == "" {
			t.Errorf("attribute %d has no name", a)
		}
	}
}

func TestSizeArithmetic(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64Range(0, math.MaxInt64).Draw(t, "a"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "b")
		b >>= rapid.IntRange(0, 62).Draw(t, "shift")
		want := MaxSize
		if b == 0 || a <= math.MaxInt64/b {
			want = a * b
		}
		if got := MulSize(a, b); got != want {
			t.Fatalf("%d × %d = %d, want %d", a, b, got, want)
		}
		want = MaxSize
		if a <= math.MaxInt64-b {
			want = a + b
		}
		if got := AddSize(a, b); got != want {
			t.Fatalf("%d + %d = %d, want %d", a, b, got, want)
		}
	})
}

func TestDotFLOPs(t *testing.T) {
	g := NewGraph("m")
	g.Entry = g.BeginComputation("main")
	a := g.AddParameter("a", g.Array(ElemBF16, 3, 5, 7), 0)
	b := g.AddParameter("b", g.Array(ElemBF16, 3, 7, 11), 1)
	d := g.AddOp(OpDot, "d", 0, a, b)
	g.SetDot(d, DotDims{LHSContract: []int64{2}, RHSContract: []int64{1}, LHSBatch: []int64{0}, RHSBatch: []int64{0}})
	if err := g.Infer(d); err != nil {
		t.Fatal(err)
	}
	if g.ShapeText(g.Ops.Shape[d]) != "bf16[3,5,11]" || g.DotSize(d) != (DotSize{3, 5, 11, 7}) || g.FLOPs(d) != 2*3*5*11*7 {
		t.Errorf("shape %s, size %+v", g.ShapeText(g.Ops.Shape[d]), g.DotSize(d))
	}
	// Groups partition the ragged rows: [5,7] by [3,7,11].
	r := g.AddParameter("r", g.Array(ElemBF16, 5, 7), 2)
	n := g.AddParameter("n", g.Array(ElemS32, 3), 3)
	rd := g.AddOp(OpRaggedDot, "rd", g.Array(ElemBF16, 5, 11), r, b, n)
	g.SetDot(rd, DotDims{LHSContract: []int64{1}, RHSContract: []int64{1}})
	g.SetInts(rd, AttrLHSRagged, 0)
	g.SetInts(rd, AttrRHSGroup, 0)
	if g.FLOPs(rd) != 2*5*7*11 {
		t.Errorf("ragged dot of %d FLOPs", g.FLOPs(rd))
	}
	g.EndComputation(d)
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

// TestValidPairs counts the pairs (output, tap) by looking at each.
func TestValidPairs(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		x, k := rapid.Int64Range(0, 12).Draw(t, "x"), rapid.Int64Range(0, 6).Draw(t, "k")
		w := WindowDim{
			Size: k, Stride: rapid.Int64Range(1, 5).Draw(t, "stride"),
			PadLow: rapid.Int64Range(-3, 5).Draw(t, "low"), PadHigh: rapid.Int64Range(-3, 5).Draw(t, "high"),
			LHSDilate: rapid.Int64Range(1, 5).Draw(t, "base"), RHSDilate: rapid.Int64Range(1, 4).Draw(t, "window"),
		}
		y := windowed(x, w)
		var want int64
		for p := range y {
			for tap := range k {
				at := p*w.Stride + tap*w.RHSDilate - w.PadLow
				if at >= 0 && at%w.LHSDilate == 0 && at/w.LHSDilate < x {
					want++
				}
			}
		}
		if got := validPairs(x, k, y, w); got != want {
			t.Fatalf("%d pairs for %d inputs, %d taps, %d outputs, %+v; want %d", got, x, k, y, w, want)
		}
	})
}

// TestReplicaGroups expands the iota form against a transposed array.
func TestReplicaGroups(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.Int64Range(1, 4), 1, 4).Draw(t, "shape")
		perm := make([]int64, len(shape))
		for i := range perm {
			perm[i] = int64(i)
		}
		perm = rapid.Permutation(perm).Draw(t, "perm")
		total := int64(1)
		for _, d := range shape {
			total *= d
		}
		var sizes []int64
		for s := int64(1); s <= total; s++ {
			if total%s == 0 {
				sizes = append(sizes, s)
			}
		}
		size := rapid.SampledFrom(sizes).Draw(t, "size")
		// All index tuples of the transposed array in order.
		var want []int64
		idx := make([]int64, len(shape))
		for range total {
			var id int64
			for i, d := range shape {
				at := idx[slices.Index(perm, int64(i))]
				id = id*d + at
			}
			want = append(want, id)
			for j := len(idx) - 1; j >= 0; j-- {
				if idx[j]++; idx[j] < shape[perm[j]] {
					break
				}
				idx[j] = 0
			}
		}
		g := NewGraph("m")
		g.BeginComputation("c")
		op := g.AddOp(OpAllReduce, "x", g.Array(ElemF32))
		g.SetReplicaGroups(op, ReplicaGroups{Form: GroupsIota, Dims: []int64{total / size, size}, Reshape: shape, Perm: perm})
		r, ok := g.ReplicaGroups(op)
		if !ok || r.Count() != total/size || r.Size() != size {
			t.Fatalf("groups %d of %d", r.Count(), r.Size())
		}
		var got []int64
		for i := range r.Count() {
			got = r.AppendGroup(got, i)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("devices %v, want %v", got, want)
		}
	})
}

// TestTripCountProperty runs the loop it counts.
func TestTripCountProperty(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		start, bound := rapid.Int64Range(-20, 20).Draw(t, "start"), rapid.Int64Range(-20, 20).Draw(t, "bound")
		step := rapid.Int64Range(-5, 5).Draw(t, "step")
		dir := Direction(rapid.IntRange(int(DirEQ), int(DirLT)).Draw(t, "dir"))
		holds := func(v int64) bool {
			switch dir {
			case DirEQ:
				return v == bound
			case DirNE:
				return v != bound
			case DirGE:
				return v >= bound
			case DirGT:
				return v > bound
			case DirLE:
				return v <= bound
			}
			return v < bound
		}
		want, ends := int64(0), false
		for v := start; want < 1000; v += step {
			if !holds(v) {
				ends = true
				break
			}
			want++
		}
		got, ok := tripCount(start, bound, step, dir)
		if ok != ends || ok && got != want {
			t.Fatalf("%d from %d by %d while %v %d: %d %v, want %d %v", got, start, step, dir, bound, got, ok, want, ends)
		}
	})
}

// TestTotals counts bodies by trip counts and the dearest branch.
func TestTotals(t *testing.T) {
	g := NewGraph("m")
	f := g.Array(ElemF32, 4, 4)
	dot := func(name string, n int) CompID {
		c := g.BeginComputation(name)
		x := g.AddParameter("x", f, 0)
		for range n {
			x = g.AddOp(OpDot, "", f, x, x)
			g.SetDot(x, DotDims{LHSContract: []int64{1}, RHSContract: []int64{0}})
		}
		g.EndComputation(x)
		return c
	}
	one, three := dot("one", 1), dot("three", 3)
	cond := g.BeginComputation("cond")
	g.AddParameter("x", f, 0)
	g.AddOp(OpConstant, "t", g.Array(ElemPred))
	g.EndComputation(NoOp)
	g.Entry = g.BeginComputation("main")
	x := g.AddParameter("x", f, 0)
	w := g.AddOp(OpWhile, "w", f, x)
	g.AddCall(w, RoleCondition, cond)
	g.AddCall(w, RoleBody, one)
	i := g.AddOp(OpConstant, "i", g.Array(ElemS32))
	c := g.AddOp(OpConditional, "c", f, i, w, w)
	g.AddCall(c, RoleBranch, one)
	g.AddCall(c, RoleBranch, three)
	a := g.AddOp(OpAllReduce, "a", f, c)
	g.AddCall(a, RoleToApply, one)
	g.EndComputation(a)
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	const each = 2 * 4 * 4 * 4
	got := g.Totals(10)
	if got.FLOPs != (10+3)*each || !slices.Equal(got.UnknownTrips, []OpID{w}) || got.CollectiveBytes != 64 ||
		got.ParameterBytes != 64 || got.OutputBytes != 64 || got.Collectives != 1 {
		t.Errorf("totals %+v", got)
	}
	g.SetTripCount(w, 7)
	if got := g.Totals(10); got.FLOPs != (7+3)*each || len(got.UnknownTrips) != 0 {
		t.Errorf("totals %+v", got)
	}
}
