package lower

import (
	"perfsim/components"
	"perfsim/components/opgraph"
)

// lower makes the instructions of the function.
func (f *fn) lower() error {
	l := f.l
	g := l.g
	f.sb = newSBUF(l.arr.sbuf, l.opt.Infinite, &l.e.acc)
	f.initPSUM()
	entry := f.comp == g.Entry
	var params [][]ref
	invariant := l.invariants(f.comp)
	for n, op := range g.Params(f.comp, nil) {
		var leaves []ref
		for leaf, s := range l.leaves(g.Ops.Shape[op], nil) {
			r := f.newValue(s, -1)
			v := &f.values[r.v]
			v.param = int32(n)
			v.weight = entry || invariant[leaf]
			if l.g.Shapes.Elem(s) == opgraph.ElemToken {
				v.konst = true
			}
			v.hbm = f.hbmRegion(v, components.MemInput, 1, g.OpText(op)+"."+itoa(leaf))
			leaves = append(leaves, r)
			if entry {
				f.paramBytes = opgraph.AddSize(f.paramBytes, v.total)
			}
		}
		params = append(params, leaves)
	}
	f.result = f.flatten(f.comp, params, 0, 0)
	f.countUsers()
	if l.opt.Group {
		f.recognise()
	}
	f.layouts()
	for i := range f.values {
		if v := &f.values[i]; v.param >= 0 && v.hbm != nil {
			v.hbm.quiet = f.fixed(int32(i))
		}
	}
	f.weights()
	if err := f.kernels(); err != nil {
		return err
	}
	f.finishOutputs(entry)
	return l.e.err
}

// invariants marks, for the body of a while, the leaves of the state that it
// hands on unchanged.
func (l *lowerer) invariants(c opgraph.CompID) map[int]bool {
	g := l.g
	out := map[int]bool{}
	ps := g.Params(c, nil)
	root := g.Comps.Root[c]
	if len(ps) != 1 || g.Ops.Kind[root] != opgraph.OpTuple {
		return out
	}
	leaf := 0
	for i, o := range g.Operands(root) {
		n := l.numLeaves(g.OperandShape(o))
		p := o.Op
		if g.Ops.Kind[p] == opgraph.OpGetTupleElement && int(g.Ops.Index[p]) == i && g.Operands(p)[0].Op == ps[0] {
			for k := range n {
				out[leaf+k] = true
			}
		}
		leaf += n
	}
	return out
}

// weights spreads the freedom of parameters and constants to be laid out as
// their user likes to what is only copied, cut, converted or gathered of them.
func (f *fn) weights() {
	for i := range f.flats {
		x := &f.flats[i]
		switch x.kind {
		case opgraph.OpConvert, opgraph.OpCopy, opgraph.OpSlice, opgraph.OpDynamicSlice, opgraph.OpReshape, opgraph.OpBitcast, opgraph.OpTranspose,
			opgraph.OpAllGather, opgraph.OpAllGatherStart, opgraph.OpCopyStart, opgraph.OpConcatenate:
		default:
			continue
		}
		all := len(x.args) > 0
		for n, a := range x.args {
			if n > 0 && x.kind == opgraph.OpDynamicSlice {
				break
			}
			all = all && f.values[a.v].weight
		}
		if all {
			for _, o := range x.outs {
				f.values[o.v].weight = true
			}
		}
	}
}

// kernels cuts the flat operators into kernels, in program order.
func (f *fn) kernels() error {
	l := f.l
	f.behind = l.needed(f.comp)
	k := kernelRun{fn: f, colReduced: map[int32]bool{}, external: map[int32]bool{}}
	for i := range f.flats {
		if l.e.err != nil {
			return l.e.err
		}
		if i&255 == 0 {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			if l.opt.Progress != nil {
				l.done += 256
				l.opt.Progress(min(l.done, l.total), l.total)
			}
		}
		l.e.share = f.share(i)
		x := &f.flats[i]
		if x.gone {
			continue
		}
		if !mappable(x.kind) && !(x.group != 0 && x.kind.Is(opgraph.TraitMoves)) || len(x.outs) == 0 {
			k.flush()
			f.cur = int32(i)
			f.start(int32(i))
			f.single(int32(i))
			f.end([]int32{int32(i)})
			continue
		}
		if size := f.spaceOf(x); !k.takes(x, size) {
			k.flush()
			k.space = size
		} else {
			k.space = max(k.space, size)
		}
		k.add(int32(i), x)
	}
	k.flush()
	return l.e.err
}

// kernelRun is a run of operators that become one kernel.
type kernelRun struct {
	*fn
	ops        []int32
	space      int64          // most elements of an operator
	colReduced map[int32]bool // values that depend on a sum over rows of the run
	external   map[int32]bool // values that the run reads
}

// flush makes the kernel of the run and begins another.
func (k *kernelRun) flush() {
	if len(k.ops) > 0 {
		k.cur = k.ops[0]
		k.start(k.ops[0])
		k.mapKernel(k.ops)
		k.end(k.ops)
	}
	k.ops, k.space = k.ops[:0], 0
	clear(k.colReduced)
	clear(k.external)
}

// Bounds of a run: operators, those outside of a fusion, and the values that
// these read.
const (
	mostRun      = 512
	mostLooseRun = 64
	mostExternal = 48
	tinySpace    = 4096 // elements up to which an operator joins any run
)

// takes reports whether the run can take operator x of so many elements.
func (k *kernelRun) takes(x *flat, size int64) bool {
	if len(k.ops) == 0 {
		return true
	}
	if k.flats[k.ops[0]].group != x.group || len(x.after) > 0 || len(k.ops) >= mostRun {
		return false
	}
	fresh := 0
	for _, a := range x.args {
		if k.colReduced[a.v] {
			return false
		}
		if !k.external[a.v] {
			fresh++
		}
	}
	if x.group != 0 {
		return true
	}
	return k.l.opt.Group && len(k.ops) < mostLooseRun && len(k.external)+fresh <= mostExternal &&
		(size == k.space || size <= tinySpace || k.space <= tinySpace)
}

// add makes x, which is row i of the flat operators, part of the run.
func (k *kernelRun) add(i int32, x *flat) {
	k.ops = append(k.ops, i)
	reduced := x.kind == opgraph.OpReduce && k.overRows(x)
	for _, a := range x.args {
		k.external[a.v] = true
		reduced = reduced || k.colReduced[a.v]
	}
	if reduced {
		for _, o := range x.outs {
			k.colReduced[o.v] = true
		}
	}
}

// overRows reports whether a reduce sums over more than the elements of a row.
func (f *fn) overRows(x *flat) bool {
	p := &pass{f: f, space: f.spaceOf(x), parts: f.l.arr.parts}
	o := mapOp{x: x}
	p.reduction(&o)
	return o.rows || o.full
}

func (f *fn) spaceOf(x *flat) int64 {
	var n int64
	for _, o := range x.outs {
		n = max(n, f.values[o.v].elems)
	}
	if x.kind == opgraph.OpReduce {
		for _, a := range x.args {
			n = max(n, f.values[a.v].elems)
		}
	}
	return n
}

// index returns the row of a flat operator.
func (f *fn) index(x *flat) int32 { return x.me }

// start and end keep the rows that operators made, for control predecessors.
func (f *fn) start(i int32) {
	f.flats[i].rows[0] = uint32(f.l.e.m.Instr.Opcode.Len())
	f.holdBack(i)
}

func (f *fn) end(list []int32) {
	first := f.flats[list[0]].rows[0]
	for _, i := range list {
		f.flats[i].rows = [2]uint32{first, uint32(f.l.e.m.Instr.Opcode.Len())}
	}
}

// holdBack makes the next instruction of operator i come after the last
// instruction of its control predecessors.
func (f *fn) holdBack(i int32) {
	x := &f.flats[i]
	for _, p := range x.after {
		if r := f.flats[p].rows; r[1] > r[0] && r[1]-1 >= f.l.e.open[0].first {
			f.l.e.after(r[1]-1, components.ClassOrdered)
		}
	}
}

// finishOutputs brings the results that are not yet in device memory there.
func (f *fn) finishOutputs(entry bool) {
	for _, r := range f.result {
		v := &f.values[r.v]
		if entry {
			f.outBytes = opgraph.AddSize(f.outBytes, v.total)
		}
		if v.chip != nil && f.hbmOf(r.v) == nil {
			f.saveValue(r.v, 0)
		}
	}
}

// share is about how much of the rows there will be are there when flat
// operator i is next: of the functions that are known to be needed.
func (f *fn) share(i int) float64 {
	l := f.l
	mine := float64(l.ops(f.comp))
	return (float64(l.before) + mine*float64(i)/float64(len(f.flats))) / (float64(l.before) + mine + float64(f.behind))
}
