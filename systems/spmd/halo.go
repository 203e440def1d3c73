package spmd

import (
	"math/bits"
	"slices"

	"perfsim/components/opgraph"
)

// halo is the part of its neighbours' data that one device's part of a window
// dimension needs.
type halo struct {
	low, high int64 // elements of the part before and of the one behind
	pad       int64 // padding at the high end that is left: negative where the last elements are not read
}

// haloOf returns the halo of a dimension of size in, whose windows give size
// out, cut over n devices. ok is false where the parts of operand and result
// do not lie at the same places or the halo spans more than one neighbour.
//
// One part of the result, out/n windows, reads stride*(out/n-1)+reach elements
// from PadLow before the part of the operand on.
func haloOf(w opgraph.WindowDim, in, out, n int64) (h halo, ok bool) {
	if n < 1 || in%n != 0 || out%n != 0 || w.LHSDilate > 1 || w.Stride < 1 || w.PadLow < 0 {
		return h, false
	}
	part, made := in/n, out/n
	if opgraph.MulSize(made, w.Stride) != part {
		return h, false
	}
	reach := opgraph.MulSize(max(w.Size, 1)-1, max(w.RHSDilate, 1)) + 1
	rest := w.Stride*(made-1) + reach - part - w.PadLow
	h = halo{low: w.PadLow, high: max(rest, 0), pad: min(rest, 0)}
	return h, h.low <= part && h.high <= part
}

// halos gives the operands of the window operator op what their
// parts lack: slices of the neighbours' parts, which come by a
// collective-permute from each side.
func (e *emitter) halos(op opgraph.OpID, d *decision, list []opgraph.Operand) (window []opgraph.WindowDim) {
	g := e.g
	for k, f := range d.rule.factors {
		if f.window == 0 || d.cuts[k] == 0 {
			continue
		}
		if window == nil {
			window = g.Window(op, nil)
		}
		w := &window[f.window-1]
		for i, a := range f.args {
			if a < 0 {
				continue
			}
			in := g.Shapes.Dims(g.OperandShape(g.Operands(op)[i]))[a]
			out := g.Shapes.Dims(e.first(op))[f.out]
			h, _ := haloOf(*w, in, out, e.ax.size(d.cuts[k]))
			list[i].Op = e.extend(op, list[i].Op, a, h, d.cuts[k])
		}
		in := g.Shapes.Dims(g.OperandShape(g.Operands(op)[0]))[f.args[0]]
		h, _ := haloOf(*w, in, g.Shapes.Dims(e.first(op))[f.out], e.ax.size(d.cuts[k]))
		w.PadLow, w.PadHigh = 0, h.pad
	}
	return window
}

// first returns the shape of the first result of op.
func (p *planner) first(op opgraph.OpID) opgraph.ShapeID {
	return arrays(&p.g.Shapes, p.g.Ops.Shape[op], nil)[0]
}

// extend joins v, cut along dim, with the halo from its neighbours.
func (e *emitter) extend(op, v opgraph.OpID, dim int, h halo, cut axisSet) opgraph.OpID {
	t := &e.to.Shapes
	dims := slices.Clone(t.Dims(e.to.Ops.Shape[v]))
	elem := t.Elem(e.to.Ops.Shape[v])
	edge := func(lo, hi int64, step int) opgraph.OpID {
		var bounds []int64
		for d, n := range dims {
			if d == dim {
				bounds = append(bounds, lo, hi, 1)
			} else {
				bounds = append(bounds, 0, n, 1)
			}
		}
		part := slices.Clone(dims)
		part[dim] = hi - lo
		s := e.to.Array(elem, part...)
		x := e.add(op, opgraph.OpSlice, s, v)
		e.to.SetInts(x, opgraph.AttrSlice, bounds...)
		x = e.add(op, opgraph.OpCollectivePermute, s, x)
		e.to.SetInts(x, opgraph.AttrSourceTargetPairs, e.ax.neighbours(cut, step)...)
		e.counts[opgraph.OpCollectivePermute]++
		return x
	}
	parts := []opgraph.OpID{v}
	size := dims[dim]
	if h.low > 0 {
		parts = slices.Insert(parts, 0, edge(size-h.low, size, 1))
	}
	if h.high > 0 {
		parts = append(parts, edge(0, h.high, -1))
	}
	if len(parts) == 1 {
		return v
	}
	whole := slices.Clone(dims)
	whole[dim] += h.low + h.high
	x := e.add(op, opgraph.OpConcatenate, e.to.Array(elem, whole...), parts...)
	e.to.SetInts(x, opgraph.AttrDimensions, int64(dim))
	return x
}

// neighbours lists the pairs of a device and the one step further along a set
// of axes, the axis of the largest stride being the major one.
func (a *axes) neighbours(s axisSet, step int) (pairs []int64) {
	var list []axis
	for t := s; t != 0; t &= t - 1 {
		list = append(list, a.list[bits.TrailingZeros64(uint64(t))])
	}
	slices.SortFunc(list, func(x, y axis) int { return int(x.stride - y.stride) })
	n := a.size(s)
	for d := range min(a.devices, 1<<10) {
		at, unit, base := int64(0), int64(1), d
		for _, x := range list {
			c := d / x.stride % x.size
			at += c * unit
			unit *= x.size
			base -= c * x.stride
		}
		if at += int64(step); at < 0 || at >= n {
			continue
		}
		for _, x := range list {
			base += at % x.size * x.stride
			at /= x.size
		}
		pairs = append(pairs, a.device(d), a.device(base))
	}
	return pairs
}
