package lower

import (
	"fmt"
	"strconv"
	"strings"

	"perfsim/components/opgraph"
)

// isAttention reports whether a custom-call target is a fused attention of the
// GPU stack: TransformerEngine, cuDNN as XLA calls it, the flash-attention
// library.
func isAttention(target string) bool {
	for _, p := range []string{"te_fused_attn", "__cudnn$fmha", "flash_attn", "flash_mha", "flash_attention"} {
		if strings.HasPrefix(target, p) {
			return true
		}
	}
	return false
}

// heads are the sizes of an attention: the queries of each group of heads
// share the keys and values of one.
type heads struct {
	batch, heads, groups int64 // heads of queries, heads of keys
	queries, keys        int64
	size, values         int64 // elements of a head of queries and keys, of values
}

// attention replaces a fused attention by its products and its softmax:
// 4·batch·heads·queries·keys·size FLOPs forward, 10 backward with the scores
// made once more. Masks count as full: what they skip is not known from shapes.
func (x *expander) attention(op opgraph.OpID) (opgraph.OpID, bool) {
	target := strings.ToLower(x.r.From.AttrStr(op, opgraph.AttrCustomCallTarget))
	backward := strings.Contains(target, "backward") || strings.Contains(target, "bwd")
	q, k, v, h, ok := x.headsOf(op)
	if !ok {
		return 0, false
	}
	elem := x.g.Shapes.Elem(x.g.Ops.Shape[q])
	group := h.heads / h.groups
	shape := func(e opgraph.ElemType, rows, cols int64) opgraph.ShapeID {
		return x.g.Array(e, h.batch, h.groups, rows, cols)
	}
	as := func(v opgraph.OpID, rows, cols int64) opgraph.OpID {
		return x.shaped(op, v, shape(elem, rows, cols))
	}
	rows := group * h.queries
	q, k, v = as(q, rows, h.size), as(k, h.keys, h.size), as(v, h.keys, h.values)
	scores := x.product(op, q, k, 3, 3, shape(opgraph.ElemF32, rows, h.keys))
	e, sum := x.exponents(op, scores, 3)
	weights := as(x.add(op, opgraph.OpDivide, x.g.Ops.Shape[e], e, sum), rows, h.keys)
	form := fmt.Sprintf("batch %d, %d heads, %d queries, %d keys, head size %d", h.batch, h.heads, h.queries, h.keys, h.size)
	if !backward {
		x.note(op, "attention ("+form+")")
		return x.results(op, x.product(op, weights, v, 3, 2, shape(elem, rows, h.values))), true
	}
	grad, ok := x.gradient(op, h)
	if !ok {
		return 0, false
	}
	x.note(op, "the gradient of attention ("+form+")")
	grad = as(grad, rows, h.values)
	dv := x.product(op, weights, grad, 2, 2, shape(elem, h.keys, h.values))
	dp := x.product(op, grad, v, 3, 3, shape(elem, rows, h.keys))
	ds := x.add(op, opgraph.OpMultiply, x.g.Ops.Shape[dp], x.softmaxGradient(op, dp, weights, 3), weights)
	dq := x.product(op, ds, k, 3, 2, shape(elem, rows, h.size))
	dk := x.product(op, ds, q, 2, 2, shape(elem, h.keys, h.size))
	return x.results(op, dq, dk, dv), true
}

// product is a matrix product for each head of keys, which contracts dimension
// l of a and r of b.
func (x *expander) product(op, a, b opgraph.OpID, l, r int64, shape opgraph.ShapeID) opgraph.OpID {
	d := x.add(op, opgraph.OpDot, shape, a, b)
	x.g.SetDot(d, opgraph.DotDims{LHSContract: []int64{l}, RHSContract: []int64{r}, LHSBatch: []int64{0, 1}, RHSBatch: []int64{0, 1}})
	return d
}

// headsOf finds queries, keys and values among the operands, and their sizes:
// from the shape of the scores in the configuration where it is there (cuDNN),
// else from operands [batch, sequence, heads, size], packed [batch, sequence,
// 3 or 2, heads, size], or [tokens, heads, size].
func (x *expander) headsOf(op opgraph.OpID) (q, k, v opgraph.OpID, h heads, ok bool) {
	g := x.r.From
	args := g.Operands(op)
	dims := func(i int) []int64 {
		if i >= len(args) || !g.Shapes.Elem(g.OperandShape(args[i])).IsFloat() {
			return nil
		}
		return g.Shapes.Dims(g.OperandShape(args[i]))
	}
	a, b, c := dims(0), dims(1), dims(2)
	switch {
	case len(a) == 5 && a[2] == 3: // queries, keys and values in one
		all := x.arg(op, 0)
		q, k, v = x.packed(op, all, 0), x.packed(op, all, 1), x.packed(op, all, 2)
		a = []int64{a[0], a[1], a[3], a[4]}
		b, c = a, a
	case len(a) == 4 && len(b) == 5 && b[2] == 2: // keys and values in one
		both := x.arg(op, 1)
		q, k, v = x.arg(op, 0), x.packed(op, both, 0), x.packed(op, both, 1)
		b = []int64{b[0], b[1], b[3], b[4]}
		c = b
	case len(a) >= 3 && len(a) <= 4 && len(b) == len(a) && len(c) == len(a):
		q, k, v = x.arg(op, 0), x.arg(op, 1), x.arg(op, 2)
		if len(a) == 3 {
			a, b, c = append([]int64{1}, a...), append([]int64{1}, b...), append([]int64{1}, c...)
		}
	default:
		return 0, 0, 0, h, false
	}
	seq, head := 1, 2
	if x.headsFirst(op, a, b) {
		seq, head = 2, 1
	}
	h = heads{batch: a[0], heads: a[head], groups: b[head], queries: a[seq], keys: b[seq], size: a[3], values: c[3]}
	if m := intermediateShape().FindStringSubmatch(g.AttrStr(op, opgraph.AttrBackendConfig)); m != nil {
		n := make([]int64, 4)
		for i := range n {
			n[i], _ = strconv.ParseInt(m[i+1], 10, 64) // digits; what does not fit fails below
		}
		count := func(v []int64) int64 {
			return opgraph.MulSize(opgraph.MulSize(v[0], v[1]), opgraph.MulSize(v[2], v[3]))
		}
		h.batch, h.heads, h.queries, h.keys = n[0], n[1], n[2], n[3]
		if rows := opgraph.MulSize(h.batch, h.keys); rows > 0 && h.heads > 0 && h.queries > 0 {
			h.size = count(a) / opgraph.MulSize(opgraph.MulSize(h.batch, h.heads), h.queries)
			h.groups = count(b) / rows / max(h.size, 1)
			h.values = count(c) / rows / max(h.groups, 1)
		}
	}
	if h.groups <= 0 || h.heads%h.groups != 0 || min(h.batch, h.queries, h.keys, h.size, h.values) <= 0 {
		return 0, 0, 0, h, false
	}
	fits := func(v opgraph.OpID, n ...int64) bool {
		p := int64(1)
		for _, m := range n {
			p = opgraph.MulSize(p, m)
		}
		return p == x.g.Shapes.Count(x.g.Ops.Shape[v])
	}
	ok = fits(q, h.batch, h.heads, h.queries, h.size) && fits(k, h.batch, h.groups, h.keys, h.size) && fits(v, h.batch, h.groups, h.keys, h.values)
	return q, k, v, h, ok
}

// mostHeads is more than any model has: what is larger is a sequence.
const mostHeads = 128

// headsFirst reports whether queries q and keys k are [batch, heads, sequence,
// size]. In this order it is recognised by the batch dimensions of the first product
// in cuDNN's configuration; by the statistics of the softmax, [batch, heads,
// queries, …] in fp32 among operands or results; by sizes that only a sequence
// or only heads can have: fewer queries than keys, fewer heads of keys than of
// queries, more than mostHeads. Else the order is [batch, sequence, heads, size].
func (x *expander) headsFirst(op opgraph.OpID, q, k []int64) bool {
	g := x.r.From
	if m := batchDims().FindStringSubmatch(g.AttrStr(op, opgraph.AttrBackendConfig)); m != nil {
		return m[1] == "1"
	}
	shapes := g.Shapes.Tuple(g.Ops.Shape[op])
	for _, o := range g.Operands(op) {
		shapes = append(shapes[:len(shapes):len(shapes)], g.OperandShape(o))
	}
	for _, s := range shapes {
		d := g.Shapes.Dims(s)
		if g.Shapes.Elem(s) == opgraph.ElemF32 && len(d) >= 3 && (len(d) == 3 || d[3] != q[3]) && d[0] == q[0] && q[1] != q[2] {
			if d[1] == q[1] && d[2] == q[2] {
				return true
			}
			if d[1] == q[2] && d[2] == q[1] {
				return false
			}
		}
	}
	switch {
	case q[2] < k[2] || q[1] > k[1] && q[2] == k[2] && k[1] > 0 && q[1]%k[1] == 0:
		return q[1] <= mostHeads
	case q[1] < k[1] || q[2] > k[2]:
		return false
	}
	return q[1] <= mostHeads && q[2] > mostHeads
}

// packed returns part i of dimension 2 of an array.
func (x *expander) packed(op, v opgraph.OpID, i int64) opgraph.OpID {
	d := x.g.Shapes.Dims(x.g.Ops.Shape[v])
	cut := x.add(op, opgraph.OpSlice, x.array(x.g.Ops.Shape[v], []int64{d[0], d[1], 1, d[3], d[4]}), v)
	x.g.SetInts(cut, opgraph.AttrSlice, 0, d[0], 1, 0, d[1], 1, i, i+1, 1, 0, d[3], 1, 0, d[4], 1)
	return cut
}

// gradient returns the operand that is the gradient of the output: the last
// one of the output's size.
func (x *expander) gradient(op opgraph.OpID, h heads) (opgraph.OpID, bool) {
	g := x.r.From
	args := g.Operands(op)
	want := opgraph.MulSize(opgraph.MulSize(h.batch, h.heads), opgraph.MulSize(h.queries, h.values))
	for i := len(args) - 1; i > 0; i-- {
		if s := g.OperandShape(args[i]); g.Shapes.Elem(s).IsFloat() && g.Shapes.Count(s) == want && g.Shapes.Rank(s) >= 3 {
			return x.arg(op, i), true
		}
	}
	return 0, false
}
