package models

import (
	"fmt"
	"math"
	"strconv"

	"perfsim/components/opgraph"
)

// val is a value of a network being built: a row of its nodes.
type val int32

// node is one operator before it is emitted.
type node struct {
	kind  opgraph.OpKind
	elem  opgraph.ElemType
	dims  []int64
	in    []val
	path  string // framework path: the metadata op_name
	attrs func(g *opgraph.Graph, op opgraph.OpID)

	weight bool // a parameter of the entry that holds trained values
	input  bool // a parameter of the entry that is fed
	region opgraph.OpKind
}

// net collects the operators of one graph in program order. Operators are
// emitted at the end, because the bodies of fusions must come before the
// entry. A net is filled by the model builders; a mistake of theirs (operands
// that do not fit) panics, since it does not depend on any input.
type net struct {
	name  string
	elem  opgraph.ElemType
	batch int64
	nodes []node
	scope []string
	named map[string]val // weights by path, so that a tied weight is one parameter
}

func newNet(name string, o Options) *net {
	return &net{name: name, elem: o.Elem, batch: int64(o.Batch), named: map[string]val{}}
}

// in runs f with name appended to the path of what it adds.
func (n *net) in(name string, f func()) {
	n.scope = append(n.scope, name)
	f()
	n.scope = n.scope[:len(n.scope)-1]
}

func (n *net) path(name string) string {
	p := ""
	for _, s := range n.scope {
		p += s + "/"
	}
	return p + name
}

func (n *net) dims(v val) []int64 { return n.nodes[v].dims }

// dim returns dimension i of v, counted from the end where i is negative.
func (n *net) dim(v val, i int) int64 {
	d := n.nodes[v].dims
	if i < 0 {
		i += len(d)
	}
	return d[i]
}

func (n *net) add(nd node) val {
	if nd.elem == 0 {
		nd.elem = n.elem
	}
	if nd.path == "" {
		nd.path = n.path(nd.kind.String())
	}
	n.nodes = append(n.nodes, nd)
	return val(len(n.nodes) - 1)
}

// weight returns the trained parameter called name in the scope.
func (n *net) weight(name string, dims ...int64) val {
	return n.tied(n.path(name), dims...)
}

// tied returns the trained parameter of that full path; asking twice gives
// the same one.
func (n *net) tied(path string, dims ...int64) val {
	if v, ok := n.named[path]; ok {
		return v
	}
	v := n.add(node{kind: opgraph.OpParameter, dims: dims, path: path, weight: true})
	n.named[path] = v
	return v
}

// feed returns an input of the graph.
func (n *net) feed(name string, elem opgraph.ElemType, dims ...int64) val {
	return n.add(node{kind: opgraph.OpParameter, elem: elem, dims: dims, path: name, input: true})
}

// konst returns a scalar constant, rounded to the element type.
func (n *net) konst(x float64) val {
	x = rounded(n.elem, x)
	return n.add(node{kind: opgraph.OpConstant, attrs: func(g *opgraph.Graph, op opgraph.OpID) { g.SetFloat(op, x) }})
}

// rounded returns the nearest number of the element type, ties to even.
func rounded(e opgraph.ElemType, x float64) float64 {
	if x == 0 {
		return 0
	}
	digits, low := 24, -126 // of f32
	switch e {
	case opgraph.ElemBF16:
		digits = 8
	case opgraph.ElemF16:
		digits, low = 11, -14
	}
	_, exp := math.Frexp(x) // x = m·2^exp with ½ ≤ m < 1
	step := math.Ldexp(1, max(exp-1, low)-digits+1)
	return math.RoundToEven(x/step) * step
}

// bcast spreads v over dims; at names the dimension of the result each
// dimension of v becomes.
func (n *net) bcast(v val, dims []int64, at ...int64) val {
	return n.add(node{kind: opgraph.OpBroadcast, elem: n.nodes[v].elem, dims: dims, in: []val{v},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) { g.SetInts(op, opgraph.AttrDimensions, at...) }})
}

// binary is an elementwise operator of two values of one shape.
func (n *net) binary(k opgraph.OpKind, a, b val) val {
	if !equal(n.dims(a), n.dims(b)) {
		panic(fmt.Sprintf("models: %s at %s: shapes %v and %v", k, n.path(""), n.dims(a), n.dims(b)))
	}
	return n.add(node{kind: k, dims: n.dims(a), in: []val{a, b}})
}

func equal(a, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// unary is an elementwise operator of one value.
func (n *net) unary(k opgraph.OpKind, a val) val {
	return n.add(node{kind: k, dims: n.dims(a), in: []val{a}})
}

func (n *net) plus(a, b val) val  { return n.binary(opgraph.OpAdd, a, b) }
func (n *net) times(a, b val) val { return n.binary(opgraph.OpMultiply, a, b) }

// scalar is an elementwise operator of a value and a constant.
func (n *net) scalar(k opgraph.OpKind, a val, x float64) val {
	return n.binary(k, a, n.bcast(n.konst(x), n.dims(a)))
}

// perChannel is an elementwise operator of a value and a vector along
// dimension d.
func (n *net) perChannel(k opgraph.OpKind, a, vec val, d int64) val {
	return n.binary(k, a, n.bcast(vec, n.dims(a), d))
}

// reshape gives v other dimensions; the number of elements stays.
func (n *net) reshape(v val, dims ...int64) val {
	if count(dims) != count(n.dims(v)) {
		panic(fmt.Sprintf("models: reshape %v to %v at %s", n.dims(v), dims, n.path("")))
	}
	return n.add(node{kind: opgraph.OpReshape, elem: n.nodes[v].elem, dims: dims, in: []val{v}})
}

func count(dims []int64) int64 {
	c := int64(1)
	for _, d := range dims {
		c *= d
	}
	return c
}

// transpose permutes the dimensions: dimension i of the result is dimension
// perm[i] of v.
func (n *net) transpose(v val, perm ...int64) val {
	dims := make([]int64, len(perm))
	for i, p := range perm {
		dims[i] = n.dims(v)[p]
	}
	return n.add(node{kind: opgraph.OpTranspose, elem: n.nodes[v].elem, dims: dims, in: []val{v},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) { g.SetInts(op, opgraph.AttrDimensions, perm...) }})
}

// concat joins values along dimension d.
func (n *net) concat(d int, vs ...val) val {
	dims := append([]int64(nil), n.dims(vs[0])...)
	dims[d] = 0
	for _, v := range vs {
		dims[d] += n.dims(v)[d]
	}
	return n.add(node{kind: opgraph.OpConcatenate, dims: dims, in: vs,
		attrs: func(g *opgraph.Graph, op opgraph.OpID) {
			g.SetInts(op, opgraph.AttrDimensions, int64(d))
		}})
}

// slice takes lo to hi (excluded) of dimension d.
func (n *net) slice(v val, d int, lo, hi int64) val {
	dims := append([]int64(nil), n.dims(v)...)
	full := append([]int64(nil), dims...)
	dims[d] = hi - lo
	return n.add(node{kind: opgraph.OpSlice, elem: n.nodes[v].elem, dims: dims, in: []val{v},
		attrs: func(g *opgraph.Graph, op opgraph.OpID) {
			var s []int64
			for i, f := range full {
				if i == d {
					s = append(s, lo, hi, 1)
				} else {
					s = append(s, 0, f, 1)
				}
			}
			g.SetInts(op, opgraph.AttrSlice, s...)
		}})
}

// reduce folds dimensions over with k (OpAdd or OpMaximum).
func (n *net) reduce(k opgraph.OpKind, v val, over ...int64) val {
	var dims []int64
	for i, d := range n.dims(v) {
		if !has(over, int64(i)) {
			dims = append(dims, d)
		}
	}
	return n.add(node{kind: opgraph.OpReduce, dims: dims, in: []val{v, n.identity(k)}, region: k,
		attrs: func(g *opgraph.Graph, op opgraph.OpID) { g.SetInts(op, opgraph.AttrDimensions, over...) }})
}

func has(v []int64, x int64) bool {
	for _, y := range v {
		if x == y {
			return true
		}
	}
	return false
}

// identity returns the constant a reduction by k starts from: 0, or for a
// maximum -65504, the lowest finite number of f16, below every activation.
func (n *net) identity(k opgraph.OpKind) val {
	if k == opgraph.OpMaximum {
		return n.konst(-65504)
	}
	return n.konst(0)
}

// emit writes the nodes as a graph whose entry returns outs.
func (n *net) emit(outs ...val) (*opgraph.Graph, error) {
	g := opgraph.NewGraph(n.name)
	g.Reserve(len(n.nodes) * 2)
	e := emitter{n: n, g: g, live: n.reachable(outs), op: make([]opgraph.OpID, len(n.nodes))}
	e.group()
	e.regions()
	for r := range n.nodes {
		if e.live[r] && len(e.members[val(r)]) > 1 {
			e.fusionBody(val(r))
		}
	}
	g.Entry = g.BeginComputation("main")
	params := 0
	for v := range n.nodes {
		nd := &n.nodes[v]
		switch {
		case !e.live[v] || e.inside(val(v)):
			continue
		case nd.kind == opgraph.OpParameter:
			e.op[v] = g.AddParameter(opName(nd, v), g.Array(nd.elem, nd.dims...), params)
			params++
		case len(e.members[val(v)]) > 1:
			e.fusion(val(v))
		default:
			e.op[v] = e.plain(val(v), e.op)
		}
		g.Ops.OpName[e.op[v]] = g.Str(nd.path)
	}
	root := e.op[outs[0]]
	if len(outs) > 1 {
		ids := make([]opgraph.OpID, len(outs))
		for i, o := range outs {
			ids[i] = e.op[o]
		}
		root = g.AddTuple("outputs", ids...)
	}
	g.EndComputation(root)
	if err := g.Check(); err != nil {
		return nil, fmt.Errorf("model %s: %w", n.name, err)
	}
	return g, nil
}

// reachable marks the nodes that outs depend on. Inputs stay in any case.
func (n *net) reachable(outs []val) []bool {
	live := make([]bool, len(n.nodes))
	for _, o := range outs {
		live[o] = true
	}
	for v := len(n.nodes) - 1; v >= 0; v-- {
		if n.nodes[v].input {
			live[v] = true
		}
		if live[v] {
			for _, o := range n.nodes[v].in {
				live[o] = true
			}
		}
	}
	return live
}

// opName makes the name of an operator in the text: the last parts of its
// path and its row, so that names are unique and readable.
func opName(nd *node, row int) string {
	name := nd.path
	for i := range len(name) {
		if c := name[i]; c == '/' {
			name = name[:i] + "." + name[i+1:]
		}
	}
	if nd.kind == opgraph.OpParameter {
		return name
	}
	return name + "." + strconv.Itoa(row)
}
