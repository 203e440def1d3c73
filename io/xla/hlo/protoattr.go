package hlo

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// attributes reads the fields of an instruction that depend on its opcode.
func (r *protoReader) attributes(op opgraph.OpID, b []byte) bool {
	g := r.g
	kind := g.Ops.Kind[op]
	var slices, pairs, dims []int64
	gatherSizes := r.scratch[:0]
	var groups opgraph.ReplicaGroups
	haveGroups := false
	for m := r.message(b); m.next(); {
		switch m.Num {
		case 9:
			if kind == opgraph.OpParameter {
				g.Ops.Index[op] = int32(min(max(m.int(), -2), math.MaxInt32))
			}
		case 13:
			if kind == opgraph.OpGetTupleElement {
				g.Ops.Index[op] = int32(min(max(m.int(), -2), math.MaxInt32))
			}
		case 14:
			dims = m.ints(dims)
		case 15:
			r.window(op, m.Data)
		case 16:
			r.convDims(op, m.Data)
		case 17:
			lo, hi, stride := int64(0), int64(0), int64(0)
			r.scan(m.Data, 1, &lo, 2, &hi, 3, &stride)
			slices = append(slices, lo, hi, stride)
		case 20, 34:
			gatherSizes = m.ints(gatherSizes)
		case 21:
			r.padding(op, m.Data)
		case 30:
			r.dotDims(op, m.Data)
		case 33, 48:
			r.gatherDims(op, m.Data)
		case 40:
			g.SetAttrStr(op, opgraph.AttrSharding, string(r.sharding(nil, m.Data, 0)))
		case 49:
			groups.Form = opgraph.GroupsList
			groups.Sizes, groups.Devices = r.group(groups.Sizes, groups.Devices, m.Data)
			haveGroups = true
		case 87:
			groups = r.deviceList(m.Data)
			haveGroups = true
		case 51:
			r.precision(op, m.Data)
		case 52:
			var s, t int64
			r.scan(m.Data, 1, &s, 2, &t)
			pairs = append(pairs, s, t)
		case 68:
			r.frontend(op, m.Data)
		case 74:
			r.outputAliasing(op, m.Data)
		case 79:
			if s := m.str(); s != "" && s != "main" {
				g.SetAttrStr(op, opgraph.AttrThread, s)
			}
		case 90:
			r.raggedDims(op, m.Data)
		default:
			if row := attrs().byField[int64(m.Num)]; row != nil {
				row.fromProto(g, op, &m)
			}
		}
	}
	r.scratch = gatherSizes
	if r.err != nil {
		return false
	}
	if kind == opgraph.OpGetTupleElement && g.Ops.Index[op] == opgraph.NoIndex ||
		kind == opgraph.OpParameter && g.Ops.Index[op] == opgraph.NoIndex {
		g.Ops.Index[op] = 0 // proto3 leaves zeros out
	}
	switch {
	case kind == opgraph.OpIota:
		d := int64(0)
		if len(dims) > 0 {
			d = dims[0]
		}
		g.SetInt(op, opgraph.AttrIotaDimension, d)
	case len(dims) > 0 || usesDims(kind):
		g.SetInts(op, opgraph.AttrDimensions, dims...)
	}
	if len(slices) > 0 || kind == opgraph.OpSlice {
		g.SetInts(op, opgraph.AttrSlice, slices...)
	}
	if len(gatherSizes) > 0 || kind == opgraph.OpDynamicSlice {
		g.SetInts(op, opgraph.AttrSliceSizes, gatherSizes...)
	}
	if kind == opgraph.OpPad && !g.Has(op, opgraph.AttrPadding) {
		g.SetInts(op, opgraph.AttrPadding)
	}
	if len(pairs) > 0 {
		g.SetInts(op, opgraph.AttrSourceTargetPairs, pairs...)
	}
	if haveGroups || kind.IsCollective() && len(pairs) == 0 {
		if groups.Form == opgraph.GroupsIota && !validIota(groups) {
			return r.failAt(b, "replica groups of %q do not name each device once", g.OpText(op))
		}
		if groups.Form == opgraph.GroupsList && len(groups.Sizes) == 0 {
			groups = opgraph.ReplicaGroups{}
		}
		g.SetReplicaGroups(op, groups)
	}
	return true
}

// usesDims reports whether the text of an opcode always has dimensions=.
func usesDims(k opgraph.OpKind) bool {
	switch k {
	case opgraph.OpBroadcast, opgraph.OpReduce, opgraph.OpTranspose, opgraph.OpConcatenate,
		opgraph.OpReverse, opgraph.OpSort, opgraph.OpMap:
		return true
	}
	return false
}

func (r *protoReader) window(op opgraph.OpID, b []byte) {
	var dims [][]byte
	r.scan(b, 1, &dims)
	var w []opgraph.WindowDim
	for _, at := range dims {
		d := opgraph.WindowDim{}
		r.scan(at, 1, &d.Size, 2, &d.Stride, 3, &d.PadLow, 4, &d.PadHigh, 5, &d.RHSDilate, 6, &d.LHSDilate, 7, &d.Reversed)
		if d.Size < 0 || d.Stride < 0 || d.LHSDilate < 0 || d.RHSDilate < 0 || len(w) == maxRank {
			r.failAt(at, "window sizes must not be negative, strides and dilations positive")
			return
		}
		d.Stride, d.LHSDilate, d.RHSDilate = max(d.Stride, 1), max(d.LHSDilate, 1), max(d.RHSDilate, 1)
		w = append(w, d)
	}
	if len(w) > 0 {
		r.g.SetWindow(op, w)
	}
}

func (r *protoReader) convDims(op opgraph.OpID, b []byte) {
	var d opgraph.ConvDims
	r.scan(b, 3, &d.KernelInput, 4, &d.KernelOutput, 6, &d.KernelSpatial, 7, &d.InputBatch, 8, &d.InputFeature, 9, &d.OutputBatch,
		10, &d.OutputFeature, 11, &d.InputSpatial, 12, &d.OutputSpatial)
	if len(b) == 0 {
		return // not stated
	}
	n := len(d.InputSpatial)
	if len(d.KernelSpatial) != n || len(d.OutputSpatial) != n || n > maxSpatial {
		r.failAt(b, "convolution has %d, %d and %d spatial dimensions", n, len(d.KernelSpatial), len(d.OutputSpatial))
		return
	}
	for _, side := range []struct {
		what    string
		a, b    int64
		spatial []int64
	}{{"input", d.InputBatch, d.InputFeature, d.InputSpatial}, {"kernel", d.KernelInput, d.KernelOutput, d.KernelSpatial},
		{"output", d.OutputBatch, d.OutputFeature, d.OutputSpatial}} {
		seen := 0
		for _, v := range append([]int64{side.a, side.b}, side.spatial...) {
			if v < 0 || v >= int64(n)+2 || seen>>v&1 != 0 {
				r.failAt(b, "convolution %s dimension %d is outside rank %d or occurs twice", side.what, v, n+2)
				return
			}
			seen |= 1 << v
		}
	}
	r.g.SetConvDims(op, d)
}

func (r *protoReader) padding(op opgraph.OpID, b []byte) {
	var dims [][]byte
	r.scan(b, 1, &dims)
	var v []int64
	for _, at := range dims {
		var d [3]int64
		r.scan(at, 1, &d[0], 2, &d[1], 3, &d[2])
		v = append(v, d[:]...)
	}
	r.g.SetInts(op, opgraph.AttrPadding, v...)
}

func (r *protoReader) dotDims(op opgraph.OpID, b []byte) {
	var d opgraph.DotDims
	r.scan(b, 1, &d.LHSContract, 2, &d.RHSContract, 3, &d.LHSBatch, 4, &d.RHSBatch)
	r.g.SetDot(op, d)
}

func (r *protoReader) raggedDims(op opgraph.OpID, b []byte) {
	var ragged, group []int64
	var dot []byte
	r.scan(b, 1, &dot, 2, &ragged, 3, &group)
	if dot != nil {
		r.dotDims(op, dot)
	}
	r.g.SetInts(op, opgraph.AttrLHSRagged, ragged...)
	if len(group) > 0 {
		r.g.SetInts(op, opgraph.AttrRHSGroup, group...)
	}
}

// gatherDims reads GatherDimensionNumbers or ScatterDimensionNumbers, whose
// fields agree in number and meaning.
func (r *protoReader) gatherDims(op opgraph.OpID, b []byte) {
	var v [7][]int64
	vectorDim := int64(0)
	r.scan(b, 1, &v[1], 2, &v[2], 3, &v[3], 4, &vectorDim, 5, &v[5], 6, &v[6])
	r.g.SetInts(op, opgraph.AttrOffsetDims, v[1]...)
	r.g.SetInts(op, opgraph.AttrCollapsedDims, v[2]...)
	r.g.SetInts(op, opgraph.AttrIndexMap, v[3]...)
	r.g.SetInt(op, opgraph.AttrIndexVectorDim, vectorDim)
	if len(v[5]) > 0 {
		r.g.SetInts(op, opgraph.AttrOperandBatching, v[5]...)
	}
	if len(v[6]) > 0 {
		r.g.SetInts(op, opgraph.AttrIndicesBatching, v[6]...)
	}
}

func (r *protoReader) group(sizes, devices []int64, b []byte) ([]int64, []int64) {
	n := len(devices)
	r.scan(b, 1, &devices)
	return append(sizes, int64(len(devices)-n)), devices
}

// deviceList reads CollectiveDeviceListProto.
func (r *protoReader) deviceList(b []byte) opgraph.ReplicaGroups {
	out := opgraph.ReplicaGroups{Form: opgraph.GroupsList}
	for m := r.message(b); m.next(); {
		switch m.Num {
		case 1:
			out.Sizes, out.Devices = r.group(out.Sizes, out.Devices, m.Data)
		case 2:
			iota := opgraph.ReplicaGroups{Form: opgraph.GroupsIota, Dims: []int64{0, 0}}
			r.scan(m.Data, 1, &iota.Dims[0], 2, &iota.Dims[1], 3, &iota.Reshape, 4, &iota.Perm)
			identity := true
			for i, d := range iota.Perm {
				identity = identity && int64(i) == d
			}
			if identity {
				iota.Perm = nil
			}
			return iota
		}
	}
	return out
}

// precision keeps operand_precision as the text spells it, when it is not
// the default.
func (r *protoReader) precision(op opgraph.OpID, b []byte) {
	var v []int64
	r.scan(b, 1, &v)
	text := []byte{'{'}
	plain := true
	for i, p := range v {
		if i > 0 {
			text = append(text, ',')
		}
		switch p {
		case 0:
			text = append(text, "default"...)
		case 1:
			text, plain = append(text, "high"...), false
		default:
			text, plain = append(text, "highest"...), false
		}
	}
	if !plain {
		r.g.AddRaw(op, "operand_precision", string(append(text, '}')))
	}
}

func (r *protoReader) frontend(op opgraph.OpID, b []byte) {
	attrs := map[string]string{}
	var entries [][]byte
	r.scan(b, 1, &entries)
	for _, e := range entries {
		var k, v string
		r.scan(e, 1, &k, 2, &v)
		attrs[k] = v
	}
	if len(attrs) == 0 {
		return
	}
	text := []byte{'{'}
	for i, k := range slices.Sorted(maps.Keys(attrs)) {
		if i > 0 {
			text = append(text, ',')
		}
		if isWordText(k) {
			text = append(text, k...)
		} else {
			text = appendQuoted(text, k)
		}
		text = appendQuoted(append(text, '='), attrs[k])
	}
	r.g.SetAttrStr(op, opgraph.AttrFrontend, string(append(text, '}')))
}

func (r *protoReader) outputAliasing(op opgraph.OpID, b []byte) {
	var out, part []int64
	var number int64
	r.scan(b, 1, &out, 2, &number, 3, &part)
	v := append([]int64(nil), r.g.Ints(op, opgraph.AttrOutputAliasing)...)
	v = append(v, int64(r.g.AddPath(out...)), number, int64(r.g.AddPath(part...)))
	r.g.SetInts(op, opgraph.AttrOutputAliasing, v...)
}

// sharding spells an OpSharding as HLO text does.
func (r *protoReader) sharding(dst, b []byte, depth int) []byte {
	if depth > 4 {
		return append(dst, "{...}"...)
	}
	var typ uint64
	var dims, devices, reshape, perm, last []int64
	var members [][]byte
	replicate := false
	r.scan(b, 1, &typ, 3, &dims, 4, &devices, 5, &members, 6, &replicate, 8, &last, 9, &reshape, 10, &perm)
	switch typ {
	case 0:
		return append(dst, "{replicated}"...)
	case 1:
		dst = append(dst, "{maximal device="...)
		return append(appendInts(dst, devices), '}')
	case 2:
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = r.sharding(dst, m, depth+1)
		}
		return append(dst, '}')
	case 4:
		return append(dst, "{manual}"...)
	case 5:
		return append(dst, "{unknown}"...)
	case 6:
		return append(dst, "{unreduced}"...)
	}
	dst = append(dst, "{devices=["...)
	dst = append(appendInts(dst, dims), ']')
	if len(reshape) > 0 {
		dst = append(dst, "<=["...)
		dst = append(appendInts(dst, reshape), ']')
		identity := true
		for i, p := range perm {
			identity = identity && int64(i) == p
		}
		if !identity {
			dst = append(dst, "T("...)
			dst = append(appendInts(dst, perm), ')')
		}
	} else {
		dst = appendInts(dst, devices)
	}
	if replicate {
		dst = append(dst, " last_tile_dim_replicate"...)
	}
	if len(last) > 0 {
		dst = append(dst, " last_tile_dims={"...)
		for i, t := range last {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			switch t {
			case 0:
				dst = append(dst, "replicated"...)
			case 4:
				dst = append(dst, "manual"...)
			case 6:
				dst = append(dst, "unreduced"...)
			default:
				dst = appendInt(dst, t)
			}
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// literal keeps the value of a scalar constant; arrays and the floats of
// eight bits and less are left out, as the text does with large constants.
func (r *protoReader) literal(op opgraph.OpID, b []byte) {
	g := r.g
	shape := g.Ops.Shape[op]
	elem := g.Shapes.Elem(shape)
	if g.Shapes.Rank(shape) != 0 || !elem.IsArray() || elem == opgraph.ElemC64 || elem == opgraph.ElemC128 {
		return
	}
	set := func(v uint64) { g.SetInt(op, opgraph.AttrConstInt, narrow(elem, v)) }
	setFloat := func(v float64) { g.SetFloat(op, roundTo(elem, v)) }
	isInt := elem.IsInteger() || elem == opgraph.ElemPred
	for m := r.message(b); m.next(); {
		switch m.Num {
		case 2, 4, 5, 6, 7: // preds, s32s, s64s, u32s, u64s
			if v, ok := m.first(); ok && isInt {
				set(v)
			}
		case 8:
			if v, ok := m.firstFloat(); ok && !isInt {
				setFloat(v)
			}
		case 9:
			if v, ok := m.firstDouble(); ok && !isInt {
				setFloat(v)
			}
		case 11, 13: // f16s, bf16s
			if len(m.Data) >= 2 && !isInt {
				h := binary.LittleEndian.Uint16(m.Data)
				if m.Num == 13 {
					setFloat(float64(math.Float32frombits(uint32(h) << 16)))
				} else {
					setFloat(components.HalfFloat(h))
				}
			}
		case 16, 17: // u16s, s16s
			if len(m.Data) >= 2 && isInt {
				set(uint64(binary.LittleEndian.Uint16(m.Data)))
			}
		case 3, 15, 22, 21, 26, 27, 30, 31: // u8s, s8s, u4s, s4s, s2s, u2s, s1s, u1s
			if len(m.Data) >= 1 && isInt {
				set(uint64(m.Data[0]))
			}
		}
	}
}

// narrow returns the integer of type e in the low bits of v; a predicate is 0
// or 1.
func narrow(e opgraph.ElemType, v uint64) int64 {
	if e == opgraph.ElemPred {
		return int64(min(v, 1))
	}
	shift := 64 - e.Bits()
	if e >= opgraph.ElemS1 && e <= opgraph.ElemS64 {
		return int64(v<<shift) >> shift
	}
	return int64(v << shift >> shift)
}
