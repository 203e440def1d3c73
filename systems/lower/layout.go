package lower

import (
	"slices"

	"perfsim/components/opgraph"
)

// A product can be made with either side of it on the partitions: the operand
// that stays in the array decides. So can what elementwise operators make of
// products. Where everything that reads such values contracts their last
// dimension, they are made with that dimension on the partitions and need not
// be turned.

// layouts finds the values that are made as their readers contract them.
func (f *fn) layouts() {
	seen := make([]bool, len(f.values))
	for v := range f.values {
		d := f.values[v].def
		if seen[v] || d < 0 || f.flats[d].gone || f.flats[d].kind != opgraph.OpDot || f.flats[d].attn != nil {
			continue
		}
		list := []int32{int32(v)}
		seen[v] = true
		ok := true
		add := func(w int32) {
			if !seen[w] {
				seen[w] = true
				list = append(list, w)
			}
		}
		for n := 0; n < len(list); n++ {
			x := &f.values[list[n]]
			ok = ok && !x.out && x.def >= 0 && f.madeEitherWay(x.def)
			if x.def >= 0 && f.flats[x.def].kind != opgraph.OpDot {
				for _, a := range f.flats[x.def].args {
					if f.values[a.v].elems == x.elems && !f.fixedScalar(a.v) && !f.repeats(a.v) {
						add(a.v)
					}
				}
			}
			for _, u := range x.users {
				y := &f.flats[u]
				switch {
				case y.kind.IsElementwise() && (y.recipe == nil || y.recipe.row == 0) && len(y.outs) == 1 && f.values[y.outs[0].v].elems == x.elems:
					add(y.outs[0].v)
				case y.kind == opgraph.OpDot:
					ok = ok && f.contractsLast(y, list[n])
				default:
					ok = false
				}
			}
		}
		if ok {
			for _, w := range list {
				f.values[w].contracted = true
			}
		}
	}
}

// repeats reports whether a value is an access pattern of a smaller one.
func (f *fn) repeats(v int32) bool {
	d := f.defOf(v)
	return d != nil && d.kind == opgraph.OpBroadcast
}

func (f *fn) madeEitherWay(d int32) bool {
	x := &f.flats[d]
	switch {
	case x.kind == opgraph.OpDot:
		return x.attn == nil && f.l.g.DotSize(x.op).Batch == 1
	case x.kind.IsElementwise():
		return x.recipe == nil || x.recipe.row == 0
	}
	return false
}

// contractsLast reports whether product x contracts the last dimension of its
// operand v wherever it reads it.
func (f *fn) contractsLast(x *flat, v int32) bool {
	if x.fin != nil {
		for _, s := range x.fin.steps {
			if s.with == v {
				return false
			}
		}
	}
	op, args := x.op, x.args
	if x.attn != nil {
		op = x.attn.first
		if slices.ContainsFunc(args[2:], func(a ref) bool { return a.v == v }) {
			return false
		}
	}
	dd := f.l.g.Dot(op)
	for n, contract := range [][]int64{dd.LHSContract, dd.RHSContract} {
		if n < len(args) && args[n].v == v && !slices.Contains(contract, f.minorOf(args[n])) {
			return false
		}
	}
	return true
}

// minorOf returns the dimension of a reference that is contiguous in memory.
func (f *fn) minorOf(a ref) int64 {
	t := &f.l.g.Shapes
	if a.minor >= 0 {
		return int64(a.minor)
	}
	if mm := t.MinorToMajor(a.shape, nil); len(mm) > 0 {
		return mm[0]
	}
	return int64(len(t.Dims(a.shape)) - 1)
}
