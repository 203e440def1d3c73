package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// finishStep is one instruction between a product's sums and its result.
type finishStep struct {
	step
	with   int32 // a second operand, -1 for none
	vector bool  // the operand is one value a column of the result
}

// finish is the work on the sums of a product as they leave PSUM. The first
// instruction reads the bank, so that no copy is needed.
type finish struct {
	steps []finishStep
	// perPart says that vectors are one value a partition, so that one
	// instruction does scale, shift and function.
	perPart bool
}

// most bounds the operators that follow a product in its kernel.
const mostFinish = 8

// finishesIn makes the elementwise operators that follow product i, and that
// nobody else reads in between, part of its kernel: bias, scale, activation
// function, a residual that is added, conversion.
func (f *fn) finishesIn(i int32) {
	x := &f.flats[i]
	if len(x.outs) != 1 || len(x.args) != 2 {
		return
	}
	w := finishing{fn: f, product: i, fin: &finish{}, columns: f.ofColumns, args: slices.Clone(x.args)}
	if d, ok := f.l.g.ConvDims(x.op); x.kind == opgraph.OpConvolution {
		if !ok || f.isDepthwise(i) {
			return
		}
		w.fin.perPart = true
		w.columns = func(v int32) (ref, bool) { return f.repeatedAlong(v, d.OutputFeature) }
	} else if z := f.l.g.DotSize(x.op); z.K*min(z.M, z.N) <= elementwiseK {
		return
	}
	end := x.outs[0]
	for len(w.ops) < mostFinish {
		u := w.next(end.v)
		if u == nil || !w.take(u, end.v) {
			break
		}
		w.ops = append(w.ops, u.me)
		end = u.outs[0]
	}
	if len(w.ops) == 0 {
		return
	}
	f.absorb(w.ops, i, w.args)
	for _, o := range w.ops {
		f.flats[o].gone = true
	}
	x.fin = w.fin
	x.outs = []ref{end}
	f.values[end.v].def = i
}

// finishing is the search for the operators that finish a product.
type finishing struct {
	*fn
	product int32
	columns func(v int32) (ref, bool) // the vector that v repeats, where it does
	fin     *finish
	args    []ref // of the kernel
	ops     []int32
	full    int // operands as large as the product
}

// next returns the only reader of value v where it can be part of the kernel,
// else nil.
func (w *finishing) next(v int32) *flat {
	y := &w.values[v]
	if len(y.users) != 1 || y.out || y.double {
		return nil
	}
	u := &w.flats[y.users[0]]
	if u.gone || !u.kind.IsElementwise() || len(u.outs) != 1 || len(u.after) > 0 || u.recipe != nil && u.recipe.row > 0 {
		return nil
	}
	if out := &w.values[u.outs[0].v]; out.elems != y.elems || out.double {
		return nil
	}
	return u
}

// take adds the steps of operator u, which reads value v, and reports whether
// the kernel can do them.
func (w *finishing) take(u *flat, v int32) bool {
	with := finishStep{with: -1} // the operand that is neither v nor a number
	known, value, isKnown := false, 0.0, false
	seen := false
	for n, a := range u.args {
		switch {
		case a.v == v:
			seen = true
		case w.fixedScalar(a.v):
			known = true
			if n == 1 {
				value, isKnown = w.number(a.v)
			}
		case with.with >= 0 || !w.operand(a.v, w.values[v].elems, &with):
			return false
		}
	}
	steps := stepsOf(u.kind, known && len(u.args) == 2, value, isKnown)
	if u.recipe != nil {
		steps = u.recipe.steps
	}
	if !seen || len(steps) == 0 || with.with >= 0 && (len(steps) != 1 || len(u.args) != 2) || len(u.args) > 2 && u.kind != opgraph.OpClamp {
		return false
	}
	for n, st := range steps {
		t := finishStep{step: st, with: -1}
		if n == 0 {
			t.with, t.vector = with.with, with.vector
		}
		w.fin.add(t)
	}
	if with.with >= 0 {
		shape := u.args[0].shape
		for _, a := range u.args {
			if a.v != v {
				shape = a.shape
			}
		}
		w.args = append(w.args, ref{with.with, shape, -1})
	}
	return true
}

// operand makes value v, read beside the product, the operand of a step and
// reports whether the kernel can read it: a vector, or one array as large as the
// product, that is there before it.
func (w *finishing) operand(v int32, elems int64, s *finishStep) bool {
	s.with = v
	if vec, is := w.columns(v); is {
		s.with, s.vector = vec.v, true
	} else if w.full++; w.full > 1 || w.values[v].elems != elems || w.values[v].double {
		return false
	}
	d := w.values[s.with].def
	return d < w.product && (d < 0 || !w.flats[d].gone)
}

// add appends an instruction; two that one instruction does become one.
func (fin *finish) add(s finishStep) {
	if n := len(fin.steps); n > 0 && fin.perPart && fin.steps[n-1].vector && (s.vector || s.with < 0 && (s.op == components.OpcodeTensorScalar || s.op == components.OpcodeActivation)) {
		// Scale, shift and function of a channel are one instruction.
		last := &fin.steps[n-1]
		last.fn = s.fn
		switch {
		case s.op == components.OpcodeActivation:
			last.op, last.eng = s.op, s.eng
		case last.op != components.OpcodeActivation:
			last.op, last.eng = components.OpcodeTensorScalarPtr, onAny
		}
		return
	}
	if n := len(fin.steps); n > 0 && s.with < 0 {
		last := &fin.steps[n-1]
		const scalarOp, copyOp = components.OpcodeTensorScalar, components.OpcodeTensorCopy
		switch {
		case s.op == copyOp && s.fn == "copy": // the conversion is done as the result is written
			return
		case last.with < 0 && last.op == copyOp && last.fn == "copy":
			*last = s
			return
		case last.with < 0 && last.op == scalarOp && s.op == components.OpcodeActivation && (last.fn == "mult" || last.fn == "add"):
			*last = s // scale and bias of the activation
			return
		case last.with < 0 && last.op == scalarOp && s.op == scalarOp && last.fn != "two":
			last.fn = "two" // an instruction has two operators with constants
			return
		}
	}
	fin.steps = append(fin.steps, s)
}

// leaving takes finished sums from PSUM to the result of a product.
type leaving struct {
	f   *fn
	fin *finish
	out int32
	// perPart says that the columns of the result, as the graph has them, lie
	// on the partitions.
	perPart bool
	width   int64 // columns of a tile
	withs   int64 // tiles of second operands that were loaded
	homes   []home
}

// home is where the kernel keeps a second operand that it brought on chip.
type home struct {
	v int32
	r *region
}

func (l *leaving) home(v int32) *region {
	for _, h := range l.homes {
		if h.v == v {
			return h.r
		}
	}
	return nil
}

// bring loads the vectors that every tile reads and makes room for tiles of
// other second operands that are not on chip.
func (l *leaving) bring() {
	if l.fin == nil {
		return
	}
	f := l.f
	for k := range l.fin.steps {
		s := &l.fin.steps[k]
		if s.with < 0 {
			continue
		}
		x := &f.values[s.with]
		x.lastOn = f.kern
		switch {
		case l.home(s.with) != nil || x.chip != nil:
		case s.vector:
			r := f.must(1, max(x.elems*x.size, 4))
			f.load(s.with, f.partOf(s.with, 0, x.total), r, 0, x.total, f.l.arr.parts, x.elems)
			l.homes = append(l.homes, home{s.with, r})
		default:
			f.ensureHBM(s.with)
			l.homes = append(l.homes, home{s.with, f.must(f.l.opt.Buffers+1, l.width*x.size)})
		}
	}
}

func (l *leaving) release() {
	for _, h := range l.homes {
		l.f.sb.release(h.r)
	}
	l.homes = nil
}

// emit does what follows a product to a finished sum of n columns from column
// n0 on, on parts partitions, from its bank to the result's tile. The sum is
// element at of all of the result.
func (l *leaving) emit(bank int, to *region, slot int, n0, parts, n, at, all int64) {
	f := l.f
	x := &f.values[l.out]
	if l.fin == nil || len(l.fin.steps) == 0 {
		f.evictBank(bank, to, slot, n, parts, x.dtype, "copy")
		return
	}
	dst := spot{to, slot, 0, n, x.dtype}
	src := f.bankSpot(bank, 0, n)
	for k := range l.fin.steps {
		s := &l.fin.steps[k]
		op := s.op
		if s.with < 0 {
			f.vec(s.eng, op, s.fn, n, parts, dst, src)
			src = dst
			continue
		}
		w := &f.values[s.with]
		r := l.home(s.with)
		second := spot{w.chip, 0, 0, n, w.dtype}
		switch {
		case s.vector && l.perPart: // one value a partition
			second.n = 1
			if r != nil {
				second.r = r
			}
			if op == components.OpcodeTensorTensor {
				op = components.OpcodeTensorScalarPtr
			}
		case s.vector:
			if r != nil {
				second.r, second.off = r, min(n0*w.size, max(r.bytes-w.size, 0))
			}
		case r != nil:
			i := int(l.withs) % len(r.tiles)
			l.withs++
			lo, hi := mulDiv(at, w.total, all), mulDiv(at+parts*n, w.total, all)
			f.load(s.with, f.partOf(s.with, lo, max(hi-lo, 1)), r, i, max(hi-lo, 1), parts, n)
			second.r, second.t = r, i
		default:
			second.t, _ = w.chip.span(at, at+parts*n, all)
		}
		f.vec(s.eng, op, s.fn, n, parts, dst, src, second)
		src = dst
	}
}
