package hlo

import (
	"strings"

	"perfsim/components"
)

// attr writes one attribute with the spelling its opcode has.
func (w *writer) attr(dst []byte, op components.OpID, key components.OpAttr, raw components.RawAttr) []byte {
	g := w.g
	begin := func(k string) []byte { return append(append(append(dst, ", "...), k...), '=') }
	number := func(k string) []byte {
		v, _ := g.Int(op, key)
		return appendInt(begin(k), v)
	}
	yes := func(k string) []byte {
		if v, _ := g.Int(op, key); v == 0 {
			return dst
		}
		return append(begin(k), "true"...)
	}
	scatter := g.Ops.Kind[op] == components.OpScatter
	list := func(gather, scatterKey string) []byte {
		k := gather
		if scatter {
			k = scatterKey
		}
		return w.braced(begin(k), g.Ints(op, key))
	}
	switch key {
	case components.AttrOffsetDims:
		return list("offset_dims", "update_window_dims")
	case components.AttrCollapsedDims:
		return list("collapsed_slice_dims", "inserted_window_dims")
	case components.AttrIndexMap:
		return list("start_index_map", "scatter_dims_to_operand_dims")
	case components.AttrOperandBatching:
		return list("operand_batching_dims", "input_batching_dims")
	case components.AttrIndicesBatching:
		return list("start_indices_batching_dims", "scatter_indices_batching_dims")
	case components.AttrSliceSizes:
		if g.Ops.Kind[op] == components.OpDynamicSlice {
			return list("dynamic_slice_sizes", "")
		}
		return list("slice_sizes", "slice_sizes")
	case components.AttrDimensions, components.AttrLHSContract, components.AttrRHSContract, components.AttrLHSBatch,
		components.AttrRHSBatch, components.AttrLHSRagged, components.AttrRHSGroup, components.AttrFFTLength:
		return list(key.String(), key.String())
	case components.AttrWindow:
		return w.window(dst, op)
	case components.AttrSlice:
		dst = append(begin("slice"), '{')
		for v, first := g.Ints(op, key), true; len(v) >= 3; v, first = v[3:], false {
			if !first {
				dst = append(dst, ", "...)
			}
			dst = appendInt(append(dst, '['), v[0])
			dst = appendInt(append(dst, ':'), v[1])
			if v[2] != 1 {
				dst = appendInt(append(dst, ':'), v[2])
			}
			dst = append(dst, ']')
		}
		return append(dst, '}')
	case components.AttrPadding:
		v := g.Ints(op, key)
		if len(v) == 0 {
			return dst
		}
		dst = begin("padding")
		for first := true; len(v) >= 3; v, first = v[3:], false {
			if !first {
				dst = append(dst, 'x')
			}
			dst = appendInt(dst, v[0])
			dst = appendInt(append(dst, '_'), v[1])
			if v[2] != 0 {
				dst = appendInt(append(dst, '_'), v[2])
			}
		}
		return dst
	case components.AttrConvDims:
		d, _ := g.ConvDims(op)
		return appendDimLabels(begin("dim_labels"), d)
	case components.AttrReplicaGroups:
		return w.groups(begin("replica_groups"), op)
	case components.AttrSourceTargetPairs:
		dst = append(begin("source_target_pairs"), '{')
		for v, first := g.Ints(op, key), true; len(v) >= 2; v, first = v[2:], false {
			if !first {
				dst = append(dst, ',')
			}
			dst = w.braced(dst, v[:2])
		}
		return append(dst, '}')
	case components.AttrOutputAliasing:
		dst = append(begin("output_to_operand_aliasing"), '{')
		for v, first := g.Ints(op, key), true; len(v) >= 3; v, first = v[3:], false {
			if !first {
				dst = append(dst, ", "...)
			}
			dst = w.braced(dst, g.Path(components.PathID(v[0])))
			dst = appendInt(append(dst, ": ("...), v[1])
			dst = w.braced(append(dst, ", "...), g.Path(components.PathID(v[2])))
			dst = append(dst, ')')
		}
		return append(dst, '}')
	case components.AttrChannelID, components.AttrFeatureGroups, components.AttrBatchGroups, components.AttrIndexVectorDim,
		components.AttrIotaDimension, components.AttrTopK, components.AttrCrossProgram, components.AttrFeatureIndex:
		return number(key.String())
	case components.AttrUseGlobalDeviceIDs, components.AttrIsStable, components.AttrHostTransfer:
		return yes(key.String())
	case components.AttrFusionKind:
		v, _ := g.Int(op, key)
		return append(begin("kind"), components.FusionKind(v).String()...)
	case components.AttrDirection:
		v, _ := g.Int(op, key)
		return append(begin("direction"), components.Direction(v).String()...)
	case components.AttrCustomCallTarget, components.AttrThread:
		return appendQuoted(begin(key.String()), g.AttrStr(op, key))
	case components.AttrBackendConfig:
		v := g.AttrStr(op, key)
		if isValue(v) && v[0] == '{' {
			return append(begin("backend_config"), v...)
		}
		return appendQuoted(begin("backend_config"), v)
	case components.AttrSharding, components.AttrFrontend:
		v := g.AttrStr(op, key)
		if isValue(v) && v[0] != '"' {
			return append(begin(key.String()), v...)
		}
		return appendQuoted(begin(key.String()), v)
	case components.AttrRaw:
		name, v := g.Text(raw.Key), g.Text(raw.Value)
		if name == "literal" { // a shape and a value
			return append(begin(name), v...)
		}
		return appendValue(begin(name), v)
	}
	// The rest is written elsewhere: literals, opcode words, and trip counts,
	// which are in the backend configuration or follow from the condition.
	return dst
}

// isValue reports whether v reads back as one value.
func isValue(v string) bool {
	if strings.Contains(v, separator) {
		return false // could end the section
	}
	c := scanner{s: v}
	out, ok := c.value()
	return ok && len(out) == len(v)
}

func appendValue(dst []byte, v string) []byte {
	if isValue(v) {
		return append(dst, v...)
	}
	return appendQuoted(dst, v)
}

func (w *writer) window(dst []byte, op components.OpID) []byte {
	d := w.g.Window(op, nil)
	if len(d) == 0 {
		return dst
	}
	item := func(key string, def int64, get func(components.WindowDim) int64) {
		plain := true
		for _, x := range d {
			plain = plain && get(x) == def
		}
		if plain && key != "{size=" {
			return
		}
		dst = append(dst, key...)
		for i, x := range d {
			if i > 0 {
				dst = append(dst, 'x')
			}
			dst = appendInt(dst, get(x))
		}
	}
	dst = append(dst, ", window="...)
	item("{size=", 0, func(x components.WindowDim) int64 { return x.Size })
	item(" stride=", 1, func(x components.WindowDim) int64 { return x.Stride })
	padded := false
	for _, x := range d {
		padded = padded || x.PadLow != 0 || x.PadHigh != 0
	}
	for i, x := range d {
		if !padded {
			break
		}
		if i == 0 {
			dst = append(dst, " pad="...)
		} else {
			dst = append(dst, 'x')
		}
		dst = appendInt(dst, x.PadLow)
		dst = appendInt(append(dst, '_'), x.PadHigh)
	}
	item(" lhs_dilate=", 1, func(x components.WindowDim) int64 { return x.LHSDilate })
	item(" rhs_dilate=", 1, func(x components.WindowDim) int64 { return x.RHSDilate })
	item(" rhs_reversal=", 0, func(x components.WindowDim) int64 {
		if x.Reversed {
			return 1
		}
		return 0
	})
	return append(dst, '}')
}

func appendDimLabels(dst []byte, d components.ConvDims) []byte {
	n := len(d.InputSpatial) + 2
	one := func(a, b byte, at, bt int64, spatial []int64) {
		for i := range int64(n) {
			switch {
			case i == at:
				dst = append(dst, a)
			case i == bt:
				dst = append(dst, b)
			default:
				for k, s := range spatial {
					if s == i {
						dst = append(dst, '0'+byte(k))
					}
				}
			}
		}
	}
	one('b', 'f', d.InputBatch, d.InputFeature, d.InputSpatial)
	dst = append(dst, '_')
	one('i', 'o', d.KernelInput, d.KernelOutput, d.KernelSpatial)
	dst = append(dst, "->"...)
	one('b', 'f', d.OutputBatch, d.OutputFeature, d.OutputSpatial)
	return dst
}

func (w *writer) groups(dst []byte, op components.OpID) []byte {
	r, _ := w.g.ReplicaGroups(op)
	switch r.Form {
	case components.GroupsList:
		dst = append(dst, '{')
		v := r.Devices
		for i, n := range r.Sizes {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.braced(dst, v[:n])
			v = v[n:]
		}
		return append(dst, '}')
	case components.GroupsIota:
		dst = append(appendInts(append(dst, '['), r.Dims), "]<=["...)
		dst = append(appendInts(dst, r.Reshape), ']')
		if len(r.Perm) > 0 {
			dst = append(appendInts(append(dst, "T("...), r.Perm), ')')
		}
		return dst
	}
	return append(dst, "{}"...)
}
