package lower

import (
	"slices"

	"perfsim/components"
)

// finishStep is one instruction between a product's sums and its result.
type finishStep struct {
	step
	with   int32 // a second operand, -1 for none
	vector bool  // the operand is one value a column of the result
}

// finish is what is done to the sums of a product as they leave PSUM. The
// first instruction reads the bank, so that no copy is needed.
type finish struct {
	steps []finishStep
	homes map[int32]*region // of second operands that the kernel brought in
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
	if z := f.l.g.DotSize(x.op); z.K*min(z.M, z.N) <= elementwiseK {
		return
	}
	fin := &finish{homes: map[int32]*region{}}
	first := x.outs[0]
	args := slices.Clone(x.args)
	var ops []int32
	var end ref
	full := 0
	for v := first.v; len(ops) < mostFinish; {
		y := &f.values[v]
		if len(y.users) != 1 || y.out || y.double {
			break
		}
		u := &f.flats[y.users[0]]
		if u.gone || !u.kind.IsElementwise() || len(u.outs) != 1 || len(u.after) > 0 || f.values[u.outs[0].v].elems != y.elems || f.values[u.outs[0].v].double ||
			u.recipe != nil && u.recipe.row > 0 {
			break
		}
		s := finishStep{with: -1}
		known, value, isKnown := false, 0.0, false
		ok, seen := true, false
		for n, a := range u.args {
			switch {
			case a.v == v:
				seen = true
			case f.fixedScalar(a.v):
				known = true
				if n == 1 {
					value, isKnown = f.number(a.v)
				}
			case s.with >= 0:
				ok = false
			default:
				s.with = a.v
				if vec, is := f.ofColumns(a.v); is {
					s.with, s.vector = vec.v, true
				} else if full++; full > 1 || f.values[a.v].elems != y.elems || f.values[a.v].double {
					ok = false
				}
				if d := f.values[s.with].def; d >= i || d >= 0 && f.flats[d].gone {
					ok = false
				}
			}
		}
		if !ok || !seen {
			break
		}
		steps := stepsOf(u.kind, known && len(u.args) == 2, value, isKnown)
		if u.recipe != nil {
			steps = u.recipe.steps
		}
		if len(steps) == 0 || s.with >= 0 && (len(steps) != 1 || len(u.args) != 2) || len(u.args) > 2 && u.kind != components.OpClamp {
			break
		}
		for n, st := range steps {
			t := finishStep{step: st, with: -1}
			if n == 0 {
				t.with, t.vector = s.with, s.vector
			}
			fin.add(t)
		}
		if s.with >= 0 {
			shape := f.flats[u.me].args[0].shape
			for _, a := range u.args {
				if a.v != v {
					shape = a.shape
				}
			}
			args = append(args, ref{s.with, shape, -1})
		}
		ops = append(ops, u.me)
		end = u.outs[0]
		v = end.v
	}
	if len(ops) == 0 {
		return
	}
	f.absorb(ops, i, args)
	for _, o := range ops {
		f.flats[o].gone = true
	}
	x.fin = fin
	x.outs = []ref{end}
	f.values[end.v].def = i
}

// add appends an instruction; two that one instruction does become one.
func (fin *finish) add(s finishStep) {
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

// withHomes brings second operands that every tile of a product reads on chip:
// vectors, once for the kernel. featureMajor tells that the columns of the
// result lie on the partitions.
func (p *prod) withHomes() {
	if p.fin == nil {
		return
	}
	f := p.f
	for k := range p.fin.steps {
		s := &p.fin.steps[k]
		if s.with < 0 {
			continue
		}
		x := &f.values[s.with]
		x.lastOn = f.kern
		if _, ok := p.fin.homes[s.with]; ok {
			continue
		}
		switch {
		case x.chip != nil:
		case s.vector:
			r := f.must(1, max(x.elems*x.size, 4))
			f.load(s.with, f.partOf(s.with, 0, x.total), r, 0, x.total, f.l.arr.parts, x.elems)
			p.fin.homes[s.with] = r
		default:
			f.ensureHBM(s.with)
			p.fin.homes[s.with] = f.must(f.l.opt.Buffers+1, p.nw*x.size)
		}
	}
}

// leavePSUM does what follows the product to a finished sum of nw columns on
// mw partitions, from its bank to the result's tile.
func (p *prod) leavePSUM(bank int, to *region, slot int, c, n0, mw, nw, at, all int64) {
	f := p.f
	x := &f.values[p.out]
	if p.fin == nil || len(p.fin.steps) == 0 {
		f.evictBank(bank, to, slot, nw, mw, x.dtype, "copy")
		return
	}
	dst := spot{to, slot, 0, nw, x.dtype}
	src := f.bankSpot(bank, 0, nw)
	for k := range p.fin.steps {
		s := &p.fin.steps[k]
		op, eng := s.op, s.eng
		if s.with < 0 {
			f.vec(eng, op, s.fn, nw, mw, dst, src)
			src = dst
			continue
		}
		w := &f.values[s.with]
		home := p.fin.homes[s.with]
		var second spot
		switch {
		case s.vector && p.perPart && home != nil: // one value a partition
			second = spot{home, 0, 0, 1, w.dtype}
			if op == components.OpcodeTensorTensor {
				op = components.OpcodeTensorScalarPtr
			}
		case s.vector && home != nil:
			second = spot{home, 0, min(n0*w.size, max(home.bytes-w.size, 0)), nw, w.dtype}
		case s.vector:
			second = spot{w.chip, 0, 0, 1, w.dtype}
		case home != nil:
			i := int(p.withs) % len(home.tiles)
			p.withs++
			lo, hi := mulDiv(at, w.total, all), mulDiv(at+mw*nw, w.total, all)
			f.load(s.with, f.partOf(s.with, lo, max(hi-lo, 1)), home, i, max(hi-lo, 1), mw, nw)
			second = spot{home, i, 0, nw, w.dtype}
		default:
			t0, _ := w.chip.span(at, at+mw*nw, all)
			second = spot{w.chip, t0, 0, nw, w.dtype}
		}
		f.vec(eng, op, s.fn, nw, mw, dst, src, second)
		src = dst
	}
}
