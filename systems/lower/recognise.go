package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// how names the input of one of several instructions of an operator, where it
// is not the output of the one before.
type how struct {
	again bool  // reads the operator's operands, not what the step before made
	few   bool  // values of which there is one a row
	each  bool  // one instruction a row: its scale, bias or sum is that row's
	half  int   // the half of a row that it makes, of 1 and 2; 0 for all of it
	twice bool  // two results of steps before it are its operands
	of    []int // operands of the operator that it reads; nil for all
}

// recipe is how a group of operators is done that is recognised as one.
type recipe struct {
	steps []step
	how   []how
	row   int64 // elements of a row, 0 where rows do not matter
}

// recognise finds groups of operators that engines do in fewer passes than the
// operators are: activation functions with an instruction of their own,
// normalisations, softmax, attention, rotary embeddings, and what follows a product and can be
// done while its sums leave PSUM. The operator at the end of a group does the
// work, the others are gone.
func (f *fn) recognise() {
	for i := range f.flats {
		if f.flats[i].gone {
			continue
		}
		switch f.flats[i].kind {
		case opgraph.OpConcatenate:
			f.rotated(int32(i))
		case opgraph.OpMultiply, opgraph.OpDivide:
			_ = f.gated(int32(i)) || f.normalised(int32(i))
		}
	}
	if f.l.psum() {
		for i := range f.flats {
			if x := &f.flats[i]; !x.gone && x.kind == opgraph.OpDot {
				f.attends(int32(i))
			}
		}
		for i := range f.flats {
			if x := &f.flats[i]; !x.gone && (x.kind == opgraph.OpDot && x.attn == nil || x.kind == opgraph.OpConvolution) {
				f.finishesIn(int32(i))
			}
		}
	}
}

// psum reports whether the machine sums up in PSUM, which engines read.
func (l *lowerer) psum() bool { return l.arr.banks > 0 }

// factors appends what a product of elementwise factors is a product of, but
// for constants.
func (f *fn) factors(v int32, dst []int32) []int32 {
	if f.fixedScalar(v) {
		return dst
	}
	d := f.defOf(v)
	if d != nil && len(dst) < 8 {
		switch {
		case d.kind == opgraph.OpConvert:
			return f.factors(d.args[0].v, dst)
		case d.kind == opgraph.OpMultiply && len(d.args) == 2:
			return f.factors(d.args[1].v, f.factors(d.args[0].v, dst))
		case d.kind == opgraph.OpDivide && len(d.args) == 2 && f.fixedScalar(d.args[1].v):
			return f.factors(d.args[0].v, dst)
		}
	}
	return append(dst, v)
}

// gated recognises x·g(x) with g made of one transcendental function: GELU in
// its forms (erf, tanh, or a function written out), SiLU with a logistic or
// with an exponential.
func (f *fn) gated(root int32) bool {
	y := &f.flats[root]
	if len(y.outs) != 1 || len(y.args) != 2 || y.recipe != nil {
		return false
	}
	out := y.outs[0].v
	leaves := f.factors(out, nil)
	if y.kind == opgraph.OpDivide {
		leaves = f.factors(y.args[0].v, nil)
	}
	for _, x := range leaves {
		if f.values[x].elems != f.values[out].elems {
			continue
		}
		c := cone{f: f, x: x}
		if !c.whole(out) || len(c.ops) < 2 || !c.closed(root) {
			continue
		}
		k := &c.kinds
		name := ""
		switch erf, tanh, sigmoid, exp := k[opgraph.OpErf], k[opgraph.OpTanh], k[opgraph.OpLogistic], k[opgraph.OpExp]; {
		case erf == 1 && tanh+sigmoid+exp == 0:
			name = "gelu"
		case tanh == 1 && erf+sigmoid+exp == 0:
			name = "gelu_apprx_tanh"
		case sigmoid == 1 && erf+tanh+exp == 0:
			name = "silu"
		case exp >= 1 && erf+tanh+sigmoid == 0 && k[opgraph.OpSelect] > 0:
			name = "gelu" // an error function written out in polynomials
		case exp == 1 && erf+tanh+sigmoid == 0 && k[opgraph.OpLog]+k[opgraph.OpLog1p] == 0:
			name = "silu"
		default:
			continue
		}
		shape := y.outs[0].shape
		f.absorb(c.ops, root, []ref{{x, shape, -1}})
		f.flats[root].recipe = &recipe{steps: []step{act(name)}}
		return true
	}
	return false
}

// origins appends the values that a normalisation of v may be one of, the one
// farthest back first.
func (f *fn) origins(v int32) (list []int32) {
	for range 8 {
		list = append(list, v)
		d := f.defOf(v)
		if d == nil || f.fixedScalar(v) {
			break
		}
		next := d.args[min(0, len(d.args)-1):]
		switch {
		case d.kind == opgraph.OpConvert:
		case d.kind == opgraph.OpSubtract && f.perRowArg(d, 1), (d.kind == opgraph.OpMultiply || d.kind == opgraph.OpDivide) && f.perRowArg(d, 1):
		case d.kind == opgraph.OpMultiply && f.perRowArg(d, 0):
			next = d.args[1:]
		case d.kind == opgraph.OpExp:
		default:
			slices.Reverse(list)
			return list
		}
		v = next[0].v
	}
	slices.Reverse(list)
	return list
}

func (f *fn) perRowArg(d *flat, n int) bool {
	if n >= len(d.args) {
		return false
	}
	_, ok := f.ofRows(d.args[n].v)
	return ok
}

// normalised recognises an operator whose operand is normalised with values of
// its own rows: LayerNorm and its kin (mean and variance in one pass of
// BNStats), RMSNorm (squares summed up by Activation) and softmax.
func (f *fn) normalised(root int32) bool {
	y := &f.flats[root]
	if len(y.outs) != 1 || len(y.args) != 2 || y.recipe != nil || !f.perRowArg(y, 0) && !f.perRowArg(y, 1) {
		return false
	}
	out := y.outs[0].v
	full := y.args[0].v
	if f.perRowArg(y, 0) {
		full = y.args[1].v
	}
	for _, x := range f.origins(full) {
		c, r := f.rowCone(x, out, root)
		if r == nil {
			continue
		}
		shape := y.outs[0].shape
		f.absorb(c.ops, root, []ref{{x, shape, -1}})
		f.flats[root].recipe = r
		return true
	}
	return false
}

// rowCone returns the cone from x to out, where it is a normalisation, and how
// that is done.
func (f *fn) rowCone(x, out, root int32) (*cone, *recipe) {
	c := &cone{f: f, x: x, rows: true}
	if !c.whole(out) || c.reduces == 0 || !c.closed(root) {
		return nil, nil
	}
	k := &c.kinds
	root2 := k[opgraph.OpRsqrt] + k[opgraph.OpSqrt] + k[opgraph.OpPower]
	r := &recipe{row: c.row}
	add := func(s step, h how) { r.steps, r.how = append(r.steps, s), append(r.how, h) }
	scale := on(components.OpcodeTensorScalarPtr, onDVE, "mult_add")
	switch {
	case k[opgraph.OpExp] == 1 && root2 == 0 && c.reduces <= 2:
		if c.reduces == 2 {
			add(on(components.OpcodeTensorReduce, onDVE, "max"), how{})
		}
		add(act("exp"), how{again: true, each: true})
		add(on(components.OpcodeReciprocal, onDVE, "reciprocal"), how{few: true})
		add(scale, how{each: true})
	case root2 == 1 && k[opgraph.OpExp] == 0 && c.reduces == 1:
		add(act("square"), how{each: true})
		add(act("rsqrt"), how{few: true})
		add(scale, how{again: true, each: true})
	case root2 == 1 && k[opgraph.OpExp] == 0 && c.reduces == 2:
		add(on(components.OpcodeBNStats, onDVE, "bn_stats"), how{each: true})
		add(on(components.OpcodeBNStatsAggregate, onDVE, "bn_aggr"), how{few: true})
		add(act("rsqrt"), how{few: true})
		add(scale, how{again: true, each: true})
	default:
		return nil, nil
	}
	return c, r
}
