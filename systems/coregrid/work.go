package coregrid

import (
	"fmt"
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// Op is one operator as it is placed: a convolution or product with the
// elementwise operators that follow it, or elementwise operators alone, a
// reduction, a pooling. Sizes are in elements, for one run of the graph.
type Op struct {
	Name string
	Kind string // matmul, convolution, depthwise, fused_op, reduce, pool, splice, embedding, …

	// A product: Batch times [M, K] by [K, N]; a convolution is one product
	// with K taps times inputs. Zero where the operator has none.
	Batch, M, K, N int64
	MACs           int64 // without rounding up to tiles

	Vector, Transcendental int64 // elementwise results of either kind
	Window                 int64 // elements gathered for the windows of a convolution or pooling, else those of the inputs
	In, Out, Weights       int64
	// Kernels are the passes an eager framework makes for the operator.
	Kernels []Kernel

	Inputs []Edge // operators it reads
	Feeds  int64  // elements read from the graph's inputs
	Result bool   // the graph returns it
}

// Edge is a tensor that one operator reads from another.
type Edge struct {
	From  int
	Elems int64
}

// Kernel is one pass over memory.
type Kernel struct {
	Name                   string
	Product                bool
	Vector, Transcendental int64
	Read, Write            int64
}

// Work lists the operators of the graph's entry in program order. weights are
// the parameters that hold trained values; the others are fed.
func Work(g *opgraph.Graph, weights map[opgraph.OpID]bool) ([]Op, error) {
	w := &worker{g: g, weights: weights, of: make([]source, g.NumOps()), users: make([][]opgraph.OpID, g.NumOps())}
	c := g.Entry
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		for _, o := range g.Operands(op) {
			if u := w.users[o.Op]; len(u) == 0 || u[len(u)-1] != op {
				w.users[o.Op] = append(u, op)
			}
		}
	}
	for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
		if err := w.add(op); err != nil {
			return nil, err
		}
	}
	w.result(g.Comps.Root[c])
	if len(w.ops) == 0 {
		return nil, fmt.Errorf("graph %s: nothing to execute: every operator is free", g.Text(g.Name))
	}
	return w.ops, nil
}

// source says where the value of a graph operator comes from.
type source struct {
	ops    []int // operators that make it, in order; several for a view of several
	weight bool
	feed   bool
	scalar bool
}

type worker struct {
	g       *opgraph.Graph
	weights map[opgraph.OpID]bool
	ops     []Op
	of      []source
	users   [][]opgraph.OpID
}

// view operators only name, reorder or repeat elements: the reader takes them
// as it reads.
func view(k opgraph.OpKind) bool {
	switch k {
	case opgraph.OpReshape, opgraph.OpBitcast, opgraph.OpTranspose, opgraph.OpSlice, opgraph.OpBroadcast, opgraph.OpCopy,
		opgraph.OpTuple, opgraph.OpGetTupleElement, opgraph.OpConvert, opgraph.OpReverse, opgraph.OpPad:
		return true
	}
	return false
}

func (w *worker) count(op opgraph.OpID) int64 { return max(w.g.Shapes.Count(w.g.Ops.Shape[op]), 1) }

func (w *worker) add(op opgraph.OpID) error {
	g := w.g
	k := g.Ops.Kind[op]
	switch {
	case k == opgraph.OpParameter:
		w.of[op] = source{weight: w.weights[op], feed: !w.weights[op]}
		return nil
	case k == opgraph.OpConstant || k == opgraph.OpIota:
		w.of[op] = source{scalar: true}
		return nil
	case view(k):
		var s source
		s.weight, s.scalar = true, true
		for _, o := range g.Operands(op) {
			x := w.of[o.Op]
			s.ops = append(s.ops, x.ops...)
			s.feed = s.feed || x.feed
			s.weight, s.scalar = s.weight && x.weight, s.scalar && (x.scalar || x.weight)
		}
		s.scalar = s.scalar && !s.weight
		w.of[op] = s
		return nil
	}
	if at, ok := w.epilogue(op); ok {
		w.fuse(&w.ops[at], at, op)
		w.of[op] = source{ops: []int{at}}
		return nil
	}
	o := Op{Name: g.OpText(op), Kind: k.String(), Out: w.count(op)}
	switch k {
	case opgraph.OpDot:
		d := g.DotSize(op)
		o.Kind, o.Batch, o.M, o.K, o.N, o.MACs = "matmul", d.Batch, d.M, d.K, d.N, d.FLOPs()/2
	case opgraph.OpConvolution:
		if err := w.convolution(&o, op); err != nil {
			return err
		}
	case opgraph.OpFusion:
		o.Kind = "fused_op"
	case opgraph.OpReduce:
		o.Vector = w.count(g.Operands(op)[0].Op)
	case opgraph.OpReduceWindow:
		o.Kind = "pool"
		o.Window = o.Out
		for _, d := range g.Window(op, nil) {
			o.Window *= max(d.Size, 1)
		}
		o.Vector = o.Window
	case opgraph.OpConcatenate:
		o.Kind = "splice"
	case opgraph.OpGather:
		o.Kind = "embedding"
	case opgraph.OpDynamicSlice, opgraph.OpDynamicUpdateSlice:
	default:
		if !k.IsElementwise() {
			return fmt.Errorf("graph %s: operator %s (%s) has no counterpart on a grid of cores", g.Text(g.Name), o.Name, k)
		}
	}
	at := len(w.ops)
	w.ops = append(w.ops, o)
	w.of[op] = source{ops: []int{at}}
	p := &w.ops[at]
	if k == opgraph.OpFusion || k.IsElementwise() {
		w.fuse(p, at, op)
	} else {
		w.read(p, at, op)
		p.Kernels = append(p.Kernels, Kernel{Name: p.Name, Product: p.MACs > 0, Vector: p.Vector, Read: p.In + p.Weights, Write: p.Out})
	}
	if p.Window == 0 {
		p.Window = p.In
	}
	return nil
}

// read adds the operands of op to o.
func (w *worker) read(o *Op, at int, op opgraph.OpID) {
	seen := map[opgraph.OpID]bool{}
	for i, x := range w.g.Operands(op) {
		if seen[x.Op] {
			continue
		}
		seen[x.Op] = true
		n := w.count(x.Op)
		s := w.of[x.Op]
		if w.g.Ops.Kind[op] == opgraph.OpGather && i == 0 {
			n = o.Out // the rows that are looked up, not the table
		}
		switch {
		case s.scalar:
		case s.weight:
			o.Weights += n
		case len(s.ops) == 1 && s.ops[0] == at && !s.feed: // made on the same core
		default:
			o.In += n
			if s.feed {
				o.Feeds += n
			}
			for _, from := range s.ops {
				if from != at && !slices.ContainsFunc(o.Inputs, func(e Edge) bool { return e.From == from }) {
					o.Inputs = append(o.Inputs, Edge{from, min(n, w.ops[from].Out)})
				}
			}
		}
	}
}

// epilogue returns the operator into which op is computed: the one that makes
// an operand of op's own size that only op reads, if op is elementwise.
func (w *worker) epilogue(op opgraph.OpID) (int, bool) {
	g := w.g
	if k := g.Ops.Kind[op]; k != opgraph.OpFusion && !k.IsElementwise() {
		return 0, false
	}
	best := -1
	for _, x := range g.Operands(op) {
		s := w.of[x.Op]
		if len(s.ops) != 1 || view(g.Ops.Kind[x.Op]) || len(w.users[x.Op]) != 1 || w.count(x.Op) != w.count(op) {
			continue
		}
		// What is joined must come after every other operand's maker.
		if o := &w.ops[s.ops[0]]; (o.MACs > 0 || o.Kind == "fused_op") && s.ops[0] > best {
			best = s.ops[0]
		}
	}
	if best < 0 {
		return 0, false
	}
	for _, x := range g.Operands(op) {
		for _, from := range w.of[x.Op].ops {
			if from > best {
				return 0, false
			}
		}
	}
	return best, true
}

func transcendental(k opgraph.OpKind) bool {
	switch k {
	case opgraph.OpExp, opgraph.OpExpm1, opgraph.OpTanh, opgraph.OpErf, opgraph.OpLogistic, opgraph.OpDivide, opgraph.OpRsqrt,
		opgraph.OpSqrt, opgraph.OpLog, opgraph.OpLog1p, opgraph.OpPower, opgraph.OpSin, opgraph.OpCos, opgraph.OpCbrt, opgraph.OpTan, opgraph.OpAtan2:
		return true
	}
	return false
}

// fuse adds the elementwise work of op, an elementwise operator or a fusion
// of such, to o.
func (w *worker) fuse(o *Op, at int, op opgraph.OpID) {
	g := w.g
	w.read(o, at, op)
	o.Out = w.count(op)
	add := func(k *Kernel, kind opgraph.OpKind, n int64) {
		if transcendental(kind) {
			o.Transcendental, k.Transcendental = o.Transcendental+n, k.Transcendental+n
		} else {
			o.Vector, k.Vector = o.Vector+n, k.Vector+n
		}
	}
	if g.Ops.Kind[op] != opgraph.OpFusion {
		k := Kernel{Name: g.OpText(op), Write: o.Out}
		for _, x := range g.Operands(op) {
			k.Read += w.count(x.Op)
		}
		add(&k, g.Ops.Kind[op], o.Out)
		o.Kernels = append(o.Kernels, k)
		return
	}
	// The kernels of an eager framework: neighbouring operators of one layer,
	// which share a path, are one pass.
	body := g.Called(op, opgraph.RoleCalls)
	kernel := map[opgraph.OpID]int{} // index plus one in o.Kernels
	last := ""
	for b := g.Comps.First[body]; b < g.Comps.End[body]; b++ {
		kind := g.Ops.Kind[b]
		if !kind.IsElementwise() {
			continue
		}
		path := g.Text(g.Ops.OpName[b])
		if layer := path[:max(strings.LastIndexByte(path, '/'), 0)]; len(kernel) == 0 || layer != last {
			o.Kernels = append(o.Kernels, Kernel{Name: g.OpText(op) + "." + g.OpText(b)})
			last = layer
		}
		n := len(o.Kernels)
		k := &o.Kernels[n-1]
		kernel[b] = n
		add(k, kind, w.count(b))
		k.Write = w.count(b)
		for _, x := range g.Operands(b) {
			if kernel[x.Op] != n {
				k.Read += w.source(x.Op)
			}
		}
	}
}

// source returns how many elements are behind an operand inside a fusion: a
// broadcast reads what it spreads, a constant nothing.
func (w *worker) source(op opgraph.OpID) int64 {
	switch w.g.Ops.Kind[op] {
	case opgraph.OpConstant:
		return 0
	case opgraph.OpBroadcast:
		return w.source(w.g.Operands(op)[0].Op)
	}
	return w.count(op)
}

// convolution fills the product of a convolution. Groups narrower than a tile
// share one: several groups make one block of a blocked diagonal matrix.
func (w *worker) convolution(o *Op, op opgraph.OpID) error {
	g := w.g
	c, ok := g.ConvSize(op)
	if !ok {
		return fmt.Errorf("graph %s: convolution %s has no dimension numbers", g.Text(g.Name), o.Name)
	}
	groups := max(g.IntOr(op, opgraph.AttrFeatureGroups, 1), 1)
	taps := int64(1)
	for _, d := range g.Window(op, nil) {
		taps *= max(d.Size, 1)
	}
	o.Kind = "convolution"
	if groups > 1 {
		o.Kind = "depthwise"
	}
	places := c.Batch
	dims := g.Shapes.Dims(g.Ops.Shape[op])
	d, _ := g.ConvDims(op)
	for _, s := range d.OutputSpatial {
		places *= dims[s]
	}
	// A transposed convolution whose kernel tiles the output has one term where
	// the dense count has taps.
	if win := g.Window(op, nil); len(win) > 0 && win[0].LHSDilate > 1 {
		for _, x := range win {
			taps /= min(max(x.LHSDilate, 1), taps)
		}
		taps = max(taps, 1)
	}
	o.Batch, o.M, o.K, o.N = groups, places, taps*c.In, c.Out/groups
	o.MACs = places * taps * c.In * c.Out
	in := w.count(g.Operands(op)[0].Op)
	o.Window = min(places*taps*c.In*groups, in*taps)
	return nil
}

// result marks what the graph returns.
func (w *worker) result(op opgraph.OpID) {
	if w.g.Ops.Kind[op] == opgraph.OpTuple {
		for _, o := range w.g.Operands(op) {
			w.result(o.Op)
		}
		return
	}
	for _, i := range w.of[op].ops {
		w.ops[i].Result = true
	}
}
