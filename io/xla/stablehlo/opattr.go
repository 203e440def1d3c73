package stablehlo

import (
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// ints returns the integers of the first attribute with one of the names.
func (e *emitter) ints(n *node, keys ...string) (v, dims []int64, present, ok bool) {
	a, present := n.attr(keys...)
	if !present {
		return nil, nil, false, true
	}
	v, dims, ok = e.intList(a.val)
	if !ok {
		return nil, nil, true, e.failAt(a.pos, "attribute %s is no list of integers: %s", a.key, clip(a.val))
	}
	return v, dims, true, true
}

// setInts copies an integer-list attribute.
func (e *emitter) setInts(n *node, op opgraph.OpID, key opgraph.OpAttr, names ...string) bool {
	v, _, present, ok := e.ints(n, names...)
	if present && ok {
		e.g.SetInts(op, key, v...)
	}
	return ok
}

// setInt copies a single integer.
func (e *emitter) setInt(n *node, op opgraph.OpID, key opgraph.OpAttr, names ...string) bool {
	v, _, present, ok := e.ints(n, names...)
	if !ok || !present {
		return ok
	}
	if len(v) != 1 {
		a, _ := n.attr(names...)
		return e.failAt(a.pos, "attribute %s has %d numbers, want 1", a.key, len(v))
	}
	e.g.SetInt(op, key, v[0])
	return true
}

// setFlag copies a unit or boolean attribute.
func (e *emitter) setFlag(n *node, op opgraph.OpID, key opgraph.OpAttr, name string) {
	if a, ok := n.attr(name); ok && a.val != "false" {
		e.g.SetInt(op, key, 1)
	}
}

// attributes translates the attributes that an operation's HLO twin has.
func (e *emitter) attributes(n *node, op opgraph.OpID) bool {
	g := e.g
	if a, ok := n.attr("mhlo.sharding"); ok {
		g.SetAttrStr(op, opgraph.AttrSharding, unescape(strings.Trim(a.val, `"`)))
	}
	if a, ok := n.attr("sdy.sharding"); ok {
		e.setSdy(op, e.resolve(a.val))
	} else if a, ok := n.attr("mhlo.frontend_attributes"); ok {
		e.setFrontend(op, e.resolve(a.val))
	}
	switch g.Ops.Kind[op] {
	case opgraph.OpBroadcast:
		if n.op == "broadcast" {
			v, _, _, ok := e.ints(n, "broadcast_sizes", "sizes")
			var dims []int64
			for i := range g.Shapes.Rank(g.Ops.Shape[op]) - len(v) {
				dims = append(dims, int64(len(v)+i))
			}
			g.SetInts(op, opgraph.AttrDimensions, dims...)
			return ok
		}
		return e.setInts(n, op, opgraph.AttrDimensions, "broadcast_dimensions", "dims")
	case opgraph.OpTranspose:
		return e.setInts(n, op, opgraph.AttrDimensions, "dims", "permutation")
	case opgraph.OpReverse, opgraph.OpReduce, opgraph.OpMap:
		return e.setInts(n, op, opgraph.AttrDimensions, "dims", "dimensions")
	case opgraph.OpConcatenate, opgraph.OpGetDimensionSize, opgraph.OpSetDimensionSize:
		return e.setInts(n, op, opgraph.AttrDimensions, "dim", "dimension")
	case opgraph.OpSort:
		e.setFlag(n, op, opgraph.AttrIsStable, "is_stable")
		if len(g.Operands(op)) == 0 {
			return e.failAt(n.pos, "%s has no operands", n.name)
		}
		if !n.has("dimension") { // the last one
			g.SetInts(op, opgraph.AttrDimensions, int64(g.Shapes.Rank(g.Ops.Shape[g.Operands(op)[0].Op])-1))
			return true
		}
		v, _, _, ok := e.ints(n, "dimension")
		if ok && len(v) == 1 && v[0] < 0 {
			v[0] += int64(g.Shapes.Rank(g.Ops.Shape[g.Operands(op)[0].Op]))
		}
		g.SetInts(op, opgraph.AttrDimensions, v...)
		return ok
	case opgraph.OpIota:
		return e.setInt(n, op, opgraph.AttrIotaDimension, "dim", "iota_dimension")
	case opgraph.OpSlice:
		return e.slice(n, op)
	case opgraph.OpDynamicSlice:
		return e.setInts(n, op, opgraph.AttrSliceSizes, "sizes", "slice_sizes")
	case opgraph.OpPad:
		return e.pad(n, op)
	case opgraph.OpDot:
		return e.dot(n, op)
	case opgraph.OpConvolution:
		return e.convolution(n, op)
	case opgraph.OpReduceWindow, opgraph.OpSelectAndScatter:
		return e.window(n, op)
	case opgraph.OpGather, opgraph.OpScatter:
		return e.gather(n, op)
	case opgraph.OpCompare:
		return e.compare(n, op)
	case opgraph.OpGetTupleElement:
		v, _, present, ok := e.ints(n, "index")
		if !present && len(n.lists) == 1 {
			v, ok = numbers(n.lists[0])
		}
		if !ok || len(v) != 1 || v[0] < 0 || v[0] > 1<<30 {
			return e.failAt(n.pos, "get_tuple_element without an index")
		}
		g.Ops.Index[op] = int32(v[0])
		return true
	case opgraph.OpFFT:
		return e.setInts(n, op, opgraph.AttrFFTLength, "length", "fft_length")
	case opgraph.OpTopK:
		return e.setInt(n, op, opgraph.AttrTopK, "k")
	case opgraph.OpBatchNormGrad, opgraph.OpBatchNormInference, opgraph.OpBatchNormTraining:
		return e.setInt(n, op, opgraph.AttrFeatureIndex, "feature_index")
	case opgraph.OpCall:
		return e.call(n, op)
	case opgraph.OpCustomCall:
		return e.customCall(n, op)
	case opgraph.OpAllGather, opgraph.OpReduceScatter, opgraph.OpAllToAll:
		return e.setInts(n, op, opgraph.AttrDimensions, "all_gather_dim", "scatter_dimension", "split_dimension") &&
			e.collective(n, op)
	case opgraph.OpAllReduce, opgraph.OpCollectiveBroadcast, opgraph.OpCollectivePermute,
		opgraph.OpRaggedAllToAll, opgraph.OpSend, opgraph.OpRecv:
		e.setFlag(n, op, opgraph.AttrHostTransfer, "is_host_transfer")
		return e.collective(n, op)
	}
	return true
}

// slice reads "[0:1, 0:7:2]" or start_indices, limit_indices, strides.
func (e *emitter) slice(n *node, op opgraph.OpID) bool {
	var out []int64
	if len(n.lists) == 1 {
		for _, part := range splitTop(n.lists[0][1 : len(n.lists[0])-1]) {
			var d [3]int64
			d[2] = 1
			f := strings.Split(part, ":")
			if len(f) < 2 || len(f) > 3 {
				return e.failAt(n.pos, "slice range %q", clip(part))
			}
			for i, s := range f {
				v, ok := parseInt(strings.TrimSpace(s))
				if !ok {
					return e.failAt(n.pos, "slice range %q", clip(part))
				}
				d[i] = v
			}
			out = append(out, d[:]...)
		}
		e.g.SetInts(op, opgraph.AttrSlice, out...)
		return true
	}
	lo, _, _, ok1 := e.ints(n, "start_indices")
	hi, _, _, ok2 := e.ints(n, "limit_indices")
	st, _, hasStride, ok3 := e.ints(n, "strides")
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	if len(lo) != len(hi) || hasStride && len(st) != len(lo) {
		return e.failAt(n.pos, "slice with %d starts, %d limits and %d strides", len(lo), len(hi), len(st))
	}
	for i := range lo {
		s := int64(1)
		if hasStride {
			s = st[i]
		}
		out = append(out, lo[i], hi[i], s)
	}
	e.g.SetInts(op, opgraph.AttrSlice, out...)
	return true
}

func (e *emitter) pad(n *node, op opgraph.OpID) bool {
	lo, _, _, ok1 := e.ints(n, "low", "edge_padding_low")
	hi, _, _, ok2 := e.ints(n, "high", "edge_padding_high")
	in, _, _, ok3 := e.ints(n, "interior", "interior_padding")
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	if len(lo) != len(hi) || len(in) != 0 && len(in) != len(lo) {
		return e.failAt(n.pos, "pad with %d low, %d high and %d interior numbers", len(lo), len(hi), len(in))
	}
	var out []int64
	for i := range lo {
		k := int64(0)
		if len(in) > 0 {
			k = in[i]
		}
		out = append(out, lo[i], hi[i], k)
	}
	e.g.SetInts(op, opgraph.AttrPadding, out...)
	return true
}

// pair reads "[1] x [0]".
func pair(text string) (a, b []int64, ok bool) {
	l, r, ok := strings.Cut(text, "x")
	if !ok {
		return nil, nil, false
	}
	a, ok1 := numbers(l)
	b, ok2 := numbers(r)
	return a, b, ok1 && ok2
}

func (e *emitter) dot(n *node, op opgraph.OpID) bool {
	var d opgraph.DotDims
	ok := true
	if len(e.g.Operands(op)) != 2 {
		return e.failAt(n.pos, "%s has %d operands, want 2", n.name, len(e.g.Operands(op)))
	}
	if n.op == "dot" { // the last dimension with the first, but that of a vector
		l := e.g.Shapes.Rank(e.g.Ops.Shape[e.g.Operands(op)[0].Op])
		d = opgraph.DotDims{LHSContract: []int64{int64(l - 1)}, RHSContract: []int64{0}}
	} else if a, has := n.attr("dot_dimension_numbers"); has {
		text := e.resolve(a.val)
		for _, f := range []struct {
			key string
			to  *[]int64
		}{{"lhs_contracting_dimensions", &d.LHSContract}, {"rhs_contracting_dimensions", &d.RHSContract},
			{"lhs_batching_dimensions", &d.LHSBatch}, {"rhs_batching_dimensions", &d.RHSBatch}} {
			if v, has := field(text, f.key); has {
				var good bool
				*f.to, good = numbers(v)
				ok = ok && good
			}
		}
	} else {
		if a, has := n.attr("contracting_dims"); has {
			d.LHSContract, d.RHSContract, ok = pair(a.val)
		}
		if a, has := n.attr("batching_dims"); has && ok {
			d.LHSBatch, d.RHSBatch, ok = pair(a.val)
		}
	}
	if !ok {
		return e.failAt(n.pos, "dimension numbers of %s are malformed", n.name)
	}
	e.g.SetDot(op, d)
	return true
}

// convDims reads "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]".
func convDims(text string) (d opgraph.ConvDims, ok bool) {
	if i := strings.IndexByte(text, '<'); i >= 0 {
		text = strings.TrimSuffix(text[i+1:], ">")
	}
	lhs, rest, ok1 := strings.Cut(text, "]x[")
	rhs, out, ok2 := strings.Cut(rest, "]->[")
	if !ok1 || !ok2 {
		return d, false
	}
	var okIn, okKer, okOut bool
	d.InputSpatial, d.InputBatch, d.InputFeature, okIn = labels(lhs, "b", "f")
	d.KernelSpatial, d.KernelInput, d.KernelOutput, okKer = labels(rhs, "i", "o")
	d.OutputSpatial, d.OutputBatch, d.OutputFeature, okOut = labels(out, "b", "f")
	n := len(d.InputSpatial)
	return d, okIn && okKer && okOut && len(d.KernelSpatial) == n && len(d.OutputSpatial) == n
}

func labels(text, a, b string) (spatial []int64, at, bt int64, ok bool) {
	parts := splitTop(strings.Trim(strings.TrimSpace(text), "[]"))
	at, bt = -1, -1
	if len(parts) < 2 || len(parts) > 12 {
		return nil, 0, 0, false
	}
	spatial = make([]int64, len(parts)-2)
	for i := range spatial {
		spatial[i] = -1
	}
	for i, p := range parts {
		switch {
		case p == a && at < 0:
			at = int64(i)
		case p == b && bt < 0:
			bt = int64(i)
		default:
			v, ok := parseInt(p)
			if !ok || v < 0 || v >= int64(len(spatial)) || spatial[v] >= 0 {
				return nil, 0, 0, false
			}
			spatial[v] = int64(i)
		}
	}
	return spatial, at, bt, at >= 0 && bt >= 0
}

func (e *emitter) convolution(n *node, op opgraph.OpID) bool {
	g := e.g
	a, _ := n.attr("dim_numbers", "dimension_numbers")
	d, ok := convDims(e.resolve(a.val))
	if !ok {
		return e.failAt(n.pos, "dimension numbers of %s are malformed: %s", n.name, clip(a.val))
	}
	g.SetConvDims(op, d)
	if len(g.Operands(op)) < 2 {
		return e.failAt(n.pos, "%s has %d operands, want 2", n.name, len(g.Operands(op)))
	}
	ker := g.Shapes.Dims(g.Ops.Shape[g.Operands(op)[1].Op])
	w := make([]opgraph.WindowDim, len(d.KernelSpatial))
	for i, k := range d.KernelSpatial {
		if k >= int64(len(ker)) {
			return e.failAt(n.pos, "kernel of rank %d for dimension numbers of rank %d", len(ker), len(w)+2)
		}
		w[i] = opgraph.WindowDim{Size: max(ker[k], 0), Stride: 1, LHSDilate: 1, RHSDilate: 1}
	}
	read := func(pretty, generic string) ([]int64, bool) {
		if a, has := n.attr("window"); has { // window = {stride = [2, 2], …}
			v, has := field("<"+strings.Trim(a.val, "{}")+">", pretty)
			if !has {
				return nil, true
			}
			out, ok := numbers(v)
			return out, ok || e.failAt(a.pos, "window %s is malformed", pretty)
		}
		v, _, _, ok := e.ints(n, generic)
		return v, ok
	}
	return e.fill(n, w, read) && e.finishConv(n, op, w)
}

func (e *emitter) finishConv(n *node, op opgraph.OpID, w []opgraph.WindowDim) bool {
	e.g.SetWindow(op, w)
	for key, name := range map[opgraph.OpAttr]string{
		opgraph.AttrFeatureGroups: "feature_group_count", opgraph.AttrBatchGroups: "batch_group_count",
	} {
		v, _, _, ok := e.ints(n, name)
		if !ok {
			return false
		}
		if len(v) == 1 && v[0] > 1 {
			e.g.SetInt(op, key, v[0])
		}
	}
	return true
}

// fill sets strides, paddings and dilations of a window.
func (e *emitter) fill(n *node, w []opgraph.WindowDim, read func(pretty, generic string) ([]int64, bool)) bool {
	for _, f := range []struct {
		pretty, generic string
		each            int
		set             func(d *opgraph.WindowDim, v []int64)
	}{
		{"stride", "window_strides", 1, func(d *opgraph.WindowDim, v []int64) { d.Stride = v[0] }},
		{"pad", "padding", 2, func(d *opgraph.WindowDim, v []int64) { d.PadLow, d.PadHigh = v[0], v[1] }},
		{"lhs_dilate", "lhs_dilation", 1, func(d *opgraph.WindowDim, v []int64) { d.LHSDilate = v[0] }},
		{"rhs_dilate", "rhs_dilation", 1, func(d *opgraph.WindowDim, v []int64) { d.RHSDilate = v[0] }},
		{"reverse", "window_reversal", 1, func(d *opgraph.WindowDim, v []int64) { d.Reversed = v[0] != 0 }},
		{"", "base_dilations", 1, func(d *opgraph.WindowDim, v []int64) { d.LHSDilate = v[0] }},
		{"", "window_dilations", 1, func(d *opgraph.WindowDim, v []int64) { d.RHSDilate = v[0] }},
	} {
		v, ok := read(f.pretty, f.generic)
		if !ok {
			return false
		}
		if len(v) == 0 {
			continue
		}
		if len(v) != f.each*len(w) {
			return e.failAt(n.pos, "%s: %s has %d numbers for a window of rank %d", n.name, f.generic, len(v), len(w))
		}
		for i := range w {
			f.set(&w[i], v[f.each*i:])
		}
	}
	for _, d := range w {
		if d.Stride <= 0 || d.LHSDilate <= 0 || d.RHSDilate <= 0 || d.Size < 0 {
			return e.failAt(n.pos, "%s: window sizes must not be negative, strides and dilations positive", n.name)
		}
	}
	return true
}

// window reads the window of reduce_window and select_and_scatter.
func (e *emitter) window(n *node, op opgraph.OpID) bool {
	size, _, _, ok := e.ints(n, "window_dimensions")
	if !ok {
		return false
	}
	w := make([]opgraph.WindowDim, len(size))
	for i, s := range size {
		w[i] = opgraph.WindowDim{Size: s, Stride: 1, LHSDilate: 1, RHSDilate: 1}
	}
	read := func(_, generic string) ([]int64, bool) {
		v, _, _, ok := e.ints(n, generic)
		return v, ok
	}
	if !e.fill(n, w, read) {
		return false
	}
	e.g.SetWindow(op, w)
	return true
}

// gather reads the dimension numbers of gather and scatter.
func (e *emitter) gather(n *node, op opgraph.OpID) bool {
	a, has := n.attr("dimension_numbers", "scatter_dimension_numbers")
	if !has {
		return e.failAt(n.pos, "%s without dimension numbers", n.name)
	}
	text := e.resolve(a.val)
	for _, f := range []struct {
		key             opgraph.OpAttr
		gather, scatter string
	}{
		{opgraph.AttrOffsetDims, "offset_dims", "update_window_dims"},
		{opgraph.AttrCollapsedDims, "collapsed_slice_dims", "inserted_window_dims"},
		{opgraph.AttrIndexMap, "start_index_map", "scatter_dims_to_operand_dims"},
		{opgraph.AttrOperandBatching, "operand_batching_dims", "input_batching_dims"},
		{opgraph.AttrIndicesBatching, "start_indices_batching_dims", "scatter_indices_batching_dims"},
	} {
		v, has := field(text, f.gather)
		if !has {
			v, has = field(text, f.scatter)
		}
		if !has {
			continue
		}
		list, ok := numbers(v)
		if !ok {
			return e.failAt(a.pos, "dimension numbers of %s are malformed", n.name)
		}
		e.g.SetInts(op, f.key, list...)
	}
	vector := int64(0)
	if v, has := field(text, "index_vector_dim"); has {
		if list, ok := numbers(v); ok && len(list) == 1 {
			vector = list[0]
		}
	}
	e.g.SetInt(op, opgraph.AttrIndexVectorDim, vector)
	return e.setInts(n, op, opgraph.AttrSliceSizes, "slice_sizes")
}

func (e *emitter) compare(n *node, op opgraph.OpID) bool {
	if n.dialect == "arith" {
		d, ok := e.predicate(n)
		if e.err == nil && !ok {
			return e.failAt(n.pos, "%s without a predicate that is known", n.name)
		}
		e.g.SetInt(op, opgraph.AttrDirection, int64(d))
		return e.err == nil
	}
	words := n.words
	if a, has := n.attr("comparison_direction"); has { // #stablehlo<comparison_direction LT>
		words = strings.FieldsFunc(e.resolve(a.val), func(r rune) bool { return r == ' ' || r == '<' || r == '>' })
	}
	for _, w := range words {
		if d, ok := opgraph.ParseDirection(w); ok {
			e.g.SetInt(op, opgraph.AttrDirection, int64(d))
			return true
		}
	}
	return e.failAt(n.pos, "compare without a direction")
}

func (e *emitter) call(n *node, op opgraph.OpID) bool {
	name := n.symbol
	if a, has := n.attr("decomposition", "callee"); has {
		name = strings.Trim(a.val, `@"`)
	}
	if name == "" {
		return e.failAt(n.pos, "%s names no function", n.name)
	}
	e.late = append(e.late, lateCall{op, len(e.g.Calls(op)), name, n.pos})
	e.g.AddCall(op, opgraph.RoleToApply, opgraph.NoComp)
	return true
}

func (e *emitter) customCall(n *node, op opgraph.OpID) bool {
	g := e.g
	target := n.symbol
	if a, has := n.attr("call_target_name"); has {
		target = unescape(strings.Trim(a.val, `"`))
	}
	if n.dialect == "sdy" {
		target = "Sharding"
		if a, has := n.attr("sharding"); has { // the generic form
			e.setSdy(op, e.resolve(a.val))
		} else if a, has := n.attr("out_sharding"); has { // of Shardy's collectives
			e.setSdy(op, "#sdy.sharding"+strings.TrimPrefix(e.resolve(a.val), "#sdy.sharding"))
		} else if i := slices.IndexFunc(n.lists, func(s string) bool { return strings.HasPrefix(s, "<@") }); i >= 0 {
			e.setSdy(op, "#sdy.sharding"+n.lists[i])
		}
	}
	if target == "" {
		return e.failAt(n.pos, "custom_call without a target")
	}
	g.SetAttrStr(op, opgraph.AttrCustomCallTarget, target)
	if a, has := n.attr("backend_config", "mhlo.backend_config"); has {
		if v := a.val; strings.HasPrefix(v, `"`) {
			v = unescape(strings.Trim(v, `"`))
			if v != "" {
				g.SetAttrStr(op, opgraph.AttrBackendConfig, v)
			}
		} else {
			g.SetAttrStr(op, opgraph.AttrBackendConfig, v)
		}
	}
	if a, has := n.attr("called_computations"); has {
		for _, s := range splitTop(strings.Trim(a.val, "[]")) {
			e.late = append(e.late, lateCall{op, len(g.Calls(op)), strings.Trim(s, `@"`), a.pos})
			g.AddCall(op, opgraph.RoleCalled, opgraph.NoComp)
		}
	}
	return true
}

// collective reads what says who takes part.
func (e *emitter) collective(n *node, op opgraph.OpID) bool {
	g := e.g
	if a, has := n.attr("channel_handle", "channel_id"); has {
		text := e.resolve(a.val)
		if v, has := field(text, "handle"); has {
			text = v
		}
		v, _, ok := e.intList(text)
		if !ok || len(v) == 0 {
			return e.failAt(a.pos, "channel handle %q", clip(a.val))
		}
		g.SetInt(op, opgraph.AttrChannelID, v[0])
	}
	e.setFlag(n, op, opgraph.AttrUseGlobalDeviceIDs, "use_global_device_ids")
	if v, dims, present, ok := e.ints(n, "source_target_pairs"); !ok {
		return false
	} else if present {
		if len(dims) > 0 && len(v)%2 != 0 {
			return e.failAt(n.pos, "source_target_pairs of %d numbers", len(v))
		}
		g.SetInts(op, opgraph.AttrSourceTargetPairs, v...)
	}
	v, dims, present, ok := e.ints(n, "replica_groups")
	if !ok || !present {
		return ok
	}
	r := opgraph.ReplicaGroups{Form: opgraph.GroupsList}
	if len(dims) == 2 && dims[1] > 0 {
		for ; int64(len(v)) >= dims[1]; v = v[dims[1]:] {
			size := int64(0)
			for _, d := range v[:dims[1]] {
				if d >= 0 { // groups of different sizes are filled up with -1
					r.Devices = append(r.Devices, d)
					size++
				}
			}
			r.Sizes = append(r.Sizes, size)
		}
	}
	if len(r.Sizes) == 0 {
		r = opgraph.ReplicaGroups{}
	}
	g.SetReplicaGroups(op, r)
	return true
}
