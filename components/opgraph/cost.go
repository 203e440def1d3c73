package opgraph

// This file computes what a graph asks for, from shapes alone. Lowering is
// checked against these numbers: every FLOP and byte must arrive.

// DotSize is a dot as Batch products of an M×K by a K×N matrix.
type DotSize struct{ Batch, M, N, K int64 }

// FLOPs returns 2·Batch·M·N·K (one multiplication and one addition a term),
// saturating at MaxSize.
func (d DotSize) FLOPs() int64 {
	return MulSize(2, MulSize(MulSize(d.Batch, d.M), MulSize(d.N, d.K)))
}

// DotSize returns the sizes of a dot, or of a custom-call that carries dot
// dimension numbers. A scaled-dot counts the product, not the scaling. A
// ragged-dot counts each row of the ragged dimension once: the groups
// partition it, so the group dimension of the right operand adds no work.
// Unknown dimensions count 1.
func (g *Graph) DotSize(op OpID) DotSize {
	d := g.Dot(op)
	z := DotSize{1, 1, 1, 1}
	if len(g.Operands(op)) < 2 {
		return z
	}
	l, r := g.Shapes.Dims(g.arg(op, 0)), g.Shapes.Dims(g.arg(op, 1))
	group := g.Ints(op, AttrRHSGroup)
	for i, n := range l {
		switch {
		case n < 0:
		case hasDim(d.LHSContract, i):
			z.K = MulSize(z.K, n)
		case hasDim(d.LHSBatch, i):
			z.Batch = MulSize(z.Batch, n)
		default:
			z.M = MulSize(z.M, n)
		}
	}
	for i, n := range r {
		if n >= 0 && !hasDim(d.RHSContract, i) && !hasDim(d.RHSBatch, i) && !hasDim(group, i) {
			z.N = MulSize(z.N, n)
		}
	}
	return z
}

func hasDim(v []int64, i int) bool {
	for _, d := range v {
		if d == int64(i) {
			return true
		}
	}
	return false
}

// ConvSize is a convolution as a sum over kernel taps.
type ConvSize struct {
	Batch   int64 // output batch
	In, Out int64 // input features one output sees (those of one group), output features
	// Pairs is the number of pairs (output position, kernel tap) that meet an
	// element of the input: padding and the holes of a dilated input are not
	// counted, as no term is there.
	Pairs int64
	// Dense is that number with padding and holes counted.
	Dense int64
}

// FLOPs returns 2·Batch·Out·In·Pairs, saturating at MaxSize.
func (c ConvSize) FLOPs() int64 {
	return MulSize(2, MulSize(MulSize(c.Batch, c.Out), MulSize(c.In, c.Pairs)))
}

// maxTaps bounds the loop over the taps of one kernel dimension.
const maxTaps = 1 << 16

// ConvSize returns the sizes of a convolution, or of a custom-call that
// carries dim_labels (the first two operands are then input and kernel, and
// the first array of the result is the output). ok is false when the
// attribute is missing or does not fit the shapes.
func (g *Graph) ConvSize(op OpID) (c ConvSize, ok bool) {
	d, ok := g.ConvDims(op)
	if !ok || len(g.Operands(op)) < 2 {
		return ConvSize{}, false
	}
	out := g.Ops.Shape[op]
	for g.Shapes.IsTuple(out) && len(g.Shapes.Tuple(out)) > 0 {
		out = g.Shapes.Tuple(out)[0]
	}
	in, ker, o := g.Shapes.Dims(g.arg(op, 0)), g.Shapes.Dims(g.arg(op, 1)), g.Shapes.Dims(out)
	n := len(d.InputSpatial) + 2
	if len(in) != n || len(ker) != n || len(o) != n {
		return ConvSize{}, false
	}
	for i := range d.InputSpatial {
		if d.InputSpatial[i] >= int64(n) || d.KernelSpatial[i] >= int64(n) || d.OutputSpatial[i] >= int64(n) {
			return ConvSize{}, false
		}
	}
	if max(d.KernelInput, d.KernelOutput, d.OutputBatch) >= int64(n) {
		return ConvSize{}, false
	}
	known := func(v int64) int64 { return max(v, 0) + b2i(v == DimUnknown) }
	c = ConvSize{Batch: known(o[d.OutputBatch]), In: known(ker[d.KernelInput]), Out: known(ker[d.KernelOutput]), Pairs: 1, Dense: 1}
	w := g.Window(op, nil)
	for i := range d.InputSpatial {
		dim := WindowDim{Stride: 1, LHSDilate: 1, RHSDilate: 1}
		if i < len(w) {
			dim = w[i]
		}
		x, k, y := known(in[d.InputSpatial[i]]), known(ker[d.KernelSpatial[i]]), known(o[d.OutputSpatial[i]])
		c.Pairs = MulSize(c.Pairs, validPairs(x, k, y, dim))
		c.Dense = MulSize(c.Dense, MulSize(k, y))
	}
	return c, true
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// validPairs counts the pairs (output p, tap t) of one dimension whose place
// in the dilated input, p·stride + t·rhs_dilate − pad_low, holds an element.
func validPairs(x, k, y int64, w WindowDim) int64 {
	const small = 1 << 31
	if k > maxTaps || x >= small || y >= small || w.Stride <= 0 || w.LHSDilate <= 0 || w.RHSDilate <= 0 ||
		w.Stride >= small || w.LHSDilate >= small || w.RHSDilate >= small || w.PadLow >= small || w.PadLow <= -small {
		return MulSize(k, y)
	}
	if x == 0 || y == 0 {
		return 0
	}
	span := (x-1)*w.LHSDilate + 1
	var n int64
	for t := range k {
		off := t*w.RHSDilate - w.PadLow
		// 0 ≤ p·stride + off < span
		lo := max(ceilDiv(-off, w.Stride), 0)
		hi := min(ceilDiv(span-off, w.Stride), y) // exclusive
		if lo >= hi {
			continue
		}
		if w.LHSDilate == 1 {
			n += hi - lo
			continue
		}
		// p·stride ≡ −off (mod dilate): one residue class of p every
		// dilate/gcd positions, or none.
		d := GCD(w.Stride, w.LHSDilate)
		if off%d != 0 {
			continue
		}
		period := w.LHSDilate / d
		for p := lo; p < min(lo+period, hi); p++ {
			if (p*w.Stride+off)%w.LHSDilate == 0 {
				n += (hi - p + period - 1) / period
				break
			}
			if p-lo > maxTaps {
				return MulSize(k, y)
			}
		}
	}
	return n
}

// ceilDiv returns ⌈a/b⌉ for b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b > 0 {
		q++
	}
	return q
}

// GCD returns the greatest common divisor of two numbers.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// FLOPs returns the multiply-add work of one execution of an operator by
// itself: dots and convolutions, and custom-calls that carry their dimension
// numbers. Every other operator is 0 here; called computations are not
// followed (Totals does).
func (g *Graph) FLOPs(op OpID) int64 {
	switch g.Ops.Kind[op] {
	case OpDot, OpRaggedDot, OpScaledDot:
		return g.DotSize(op).FLOPs()
	case OpConvolution:
		c, _ := g.ConvSize(op)
		return c.FLOPs()
	case OpCustomCall:
		if c, ok := g.ConvSize(op); ok {
			return c.FLOPs()
		}
		if g.Has(op, AttrLHSContract) {
			return g.DotSize(op).FLOPs()
		}
	}
	return 0
}

// CollectiveBytes returns what one device puts into a collective and what it
// gets out of it, in bytes; zeros for any other operator. The result of a
// start half is a tuple that repeats the operands; only the results count.
func (g *Graph) CollectiveBytes(op OpID) (in, out int64) {
	if !g.Ops.Kind[op].IsCollective() {
		return 0, 0
	}
	for _, o := range g.Operands(op) {
		in = AddSize(in, g.Shapes.Bytes(g.OperandShape(o)))
	}
	s := g.Ops.Shape[op]
	switch g.Ops.Kind[op] {
	case OpAllGatherStart, OpCollectivePermuteStart: // (operands, results, …)
		if m := g.Shapes.Tuple(s); len(m) >= 2 {
			s = m[1]
		}
	}
	return in, g.Shapes.Bytes(s)
}

// Totals is the work of one execution of the entry.
type Totals struct {
	FLOPs           int64 `json:"flops"`            // of dots and convolutions
	ParameterBytes  int64 `json:"parameter_bytes"`  // all parameters of the entry
	OutputBytes     int64 `json:"output_bytes"`     // result of the entry
	CollectiveBytes int64 `json:"collective_bytes"` // put into collectives by one device (operand bytes)
	Collectives     int64 `json:"collectives"`      // collectives executed
	Ops             int64 `json:"operators"`        // operators executed, free ones included, bodies of fusions not
	// UnknownTrips are the whiles whose trip count nobody states; they were
	// counted with the default.
	UnknownTrips []OpID `json:"unknown_trips"`
}

// Totals sums over the call graph: bodies of whiles by their trip count
// (defaultTrip where it is unknown), of conditionals the branch with most
// FLOPs (then most collective bytes, then first), fusions, calls and async
// computations once per call. The graph must have passed Check. Sums
// saturate at MaxSize.
func (g *Graph) Totals(defaultTrip int64) Totals {
	memo := make([]Totals, g.NumComps())
	done := make([]bool, g.NumComps())
	for _, c := range g.BottomUp() {
		memo[c], done[c] = g.compTotals(c, memo, defaultTrip), true
	}
	t := memo[g.Entry]
	for op := g.Comps.First[g.Entry]; op < g.Comps.End[g.Entry]; op++ {
		if g.Ops.Kind[op] == OpParameter {
			t.ParameterBytes = AddSize(t.ParameterBytes, g.Shapes.Bytes(g.Ops.Shape[op]))
		}
	}
	t.OutputBytes = g.Shapes.Bytes(g.Ops.Shape[g.Comps.Root[g.Entry]])
	for op := range OpID(g.NumOps()) {
		if g.Ops.Kind[op] == OpWhile && done[g.Ops.Comp[op]] {
			if _, from := g.TripCount(op); from == TripUnknown {
				t.UnknownTrips = append(t.UnknownTrips, op)
			}
		}
	}
	return t
}

func (g *Graph) compTotals(c CompID, memo []Totals, defaultTrip int64) Totals {
	var t Totals
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		t.Ops = AddSize(t.Ops, 1)
		t.FLOPs = AddSize(t.FLOPs, g.FLOPs(op))
		if g.Ops.Kind[op].IsCollective() {
			in, _ := g.CollectiveBytes(op)
			t.CollectiveBytes = AddSize(t.CollectiveBytes, in)
			t.Collectives = AddSize(t.Collectives, 1)
		}
		switch g.Ops.Kind[op] {
		case OpWhile:
			n, from := g.TripCount(op)
			if from == TripUnknown {
				n = defaultTrip
			}
			t.add(memo[g.Called(op, RoleBody)], n)
			t.add(memo[g.Called(op, RoleCondition)], AddSize(n, 1))
		case OpConditional:
			var best Totals
			for i, call := range g.Calls(op) {
				m := memo[call.Comp]
				if i == 0 || m.FLOPs > best.FLOPs || m.FLOPs == best.FLOPs && m.CollectiveBytes > best.CollectiveBytes {
					best = m
				}
			}
			t.add(best, 1)
		case OpFusion:
			m := memo[g.Called(op, RoleCalls)]
			m.Ops = 0
			t.add(m, 1)
		case OpCall:
			t.add(memo[g.Called(op, RoleToApply)], 1)
		case OpAsyncStart, OpCustomCall:
			for _, call := range g.Calls(op) {
				if call.Role == RoleCalls {
					t.add(memo[call.Comp], 1)
				}
			}
		}
	}
	return t
}

func (t *Totals) add(m Totals, n int64) {
	n = max(n, 0)
	t.FLOPs = AddSize(t.FLOPs, MulSize(m.FLOPs, n))
	t.CollectiveBytes = AddSize(t.CollectiveBytes, MulSize(m.CollectiveBytes, n))
	t.Collectives = AddSize(t.Collectives, MulSize(m.Collectives, n))
	t.Ops = AddSize(t.Ops, MulSize(m.Ops, n))
}

// BottomUp returns the computations reachable from the entry, callees before
// callers, the entry last. The graph must have no recursion (Check).
func (g *Graph) BottomUp() []CompID {
	w := newCallWalk(g)
	w.from(g.Entry)
	return w.order
}
