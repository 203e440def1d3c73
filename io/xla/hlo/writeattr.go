package hlo

import (
	"strings"

	"perfsim/components/opgraph"
)

// attr writes one attribute with the spelling that its opcode has.
func (w *writer) attr(dst []byte, op opgraph.OpID, key opgraph.OpAttr, raw opgraph.RawAttr) []byte {
	if key == opgraph.AttrRaw {
		name, v := w.g.Text(raw.Key), w.g.Text(raw.Value)
		if name == "literal" { // a shape and a value
			return append(beginAttr(dst, name), v...)
		}
		return appendValue(beginAttr(dst, name), v)
	}
	if r := attrs().byKey[key]; r != nil {
		return r.put(w, dst, op)
	}
	// The rest is written elsewhere: literals, opcode words, and trip counts,
	// which are in the backend configuration or follow from the condition.
	return dst
}

func (w *writer) slices(dst []byte, op opgraph.OpID) []byte {
	dst = append(beginAttr(dst, "slice"), '{')
	for v, first := w.g.Ints(op, opgraph.AttrSlice), true; len(v) >= 3; v, first = v[3:], false {
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
}

func (w *writer) padding(dst []byte, op opgraph.OpID) []byte {
	v := w.g.Ints(op, opgraph.AttrPadding)
	if len(v) == 0 {
		return dst
	}
	dst = beginAttr(dst, "padding")
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
}

func (w *writer) pairs(dst []byte, op opgraph.OpID) []byte {
	dst = append(beginAttr(dst, "source_target_pairs"), '{')
	for v, first := w.g.Ints(op, opgraph.AttrSourceTargetPairs), true; len(v) >= 2; v, first = v[2:], false {
		if !first {
			dst = append(dst, ',')
		}
		dst = w.braced(dst, v[:2])
	}
	return append(dst, '}')
}

func (w *writer) outputAliasing(dst []byte, op opgraph.OpID) []byte {
	dst = append(beginAttr(dst, "output_to_operand_aliasing"), '{')
	for v, first := w.g.Ints(op, opgraph.AttrOutputAliasing), true; len(v) >= 3; v, first = v[3:], false {
		if !first {
			dst = append(dst, ", "...)
		}
		dst = w.braced(dst, w.g.Path(opgraph.PathID(v[0])))
		dst = appendInt(append(dst, ": ("...), v[1])
		dst = w.braced(append(dst, ", "...), w.g.Path(opgraph.PathID(v[2])))
		dst = append(dst, ')')
	}
	return append(dst, '}')
}

func (w *writer) dimLabels(dst []byte, op opgraph.OpID) []byte {
	d, _ := w.g.ConvDims(op)
	return appendDimLabels(beginAttr(dst, "dim_labels"), d)
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

func (w *writer) window(dst []byte, op opgraph.OpID) []byte {
	d := w.g.Window(op, nil)
	if len(d) == 0 {
		return dst
	}
	item := func(key string, def int64, get func(opgraph.WindowDim) int64) {
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
	item("{size=", 0, func(x opgraph.WindowDim) int64 { return x.Size })
	item(" stride=", 1, func(x opgraph.WindowDim) int64 { return x.Stride })
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
	item(" lhs_dilate=", 1, func(x opgraph.WindowDim) int64 { return x.LHSDilate })
	item(" rhs_dilate=", 1, func(x opgraph.WindowDim) int64 { return x.RHSDilate })
	item(" rhs_reversal=", 0, func(x opgraph.WindowDim) int64 {
		if x.Reversed {
			return 1
		}
		return 0
	})
	return append(dst, '}')
}

func appendDimLabels(dst []byte, d opgraph.ConvDims) []byte {
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

func (w *writer) groups(dst []byte, op opgraph.OpID) []byte {
	r, _ := w.g.ReplicaGroups(op)
	dst = beginAttr(dst, "replica_groups")
	switch r.Form {
	case opgraph.GroupsList:
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
	case opgraph.GroupsIota:
		dst = append(appendInts(append(dst, '['), r.Dims), "]<=["...)
		dst = append(appendInts(dst, r.Reshape), ']')
		if len(r.Perm) > 0 {
			dst = append(appendInts(append(dst, "T("...), r.Perm), ')')
		}
		return dst
	}
	return append(dst, "{}"...)
}
