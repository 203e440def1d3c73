package catapult

import (
	"perfsim/components"
	"perfsim/io/format"
)

// operandKeys are the arguments about operands, in the order of the records.
var operandKeys = [...]string{"input_shapes", "output_shapes", "input_access_patterns", "output_access_patterns", "inst_dump"}

// appendOperands appends the five arguments that describe operands. Their
// text is ours (the documented trace names the arguments, not the text):
// shapes are [partitions,count,…], access patterns
// dtype@location+offset[steps][counts], the dump is the opcode with the
// operand text of the input.
func (t *tracer) appendOperands(b []byte, i uint32) []byte {
	if t.verbatim {
		return append(b, t.m.Symbols.Bytes(t.m.Instr.Text.Get(int(i)))...)
	}
	lo, hi := t.m.Operands.Range(components.InstrID(i))
	b = append(b, `,"input_shapes":"`...)
	b = t.shapes(b, lo, hi, false)
	b = append(b, `","output_shapes":"`...)
	b = t.shapes(b, lo, hi, true)
	b = append(b, `","input_access_patterns":"`...)
	b = t.patterns(b, lo, hi, false)
	b = append(b, `","output_access_patterns":"`...)
	b = t.patterns(b, lo, hi, true)
	b = append(b, `","inst_dump":"`...)
	b = format.AppendJSONText(b, t.m.OpcodeName(t.m.Instr.Opcode.At(int(i))))
	if f := t.m.Instr.Func.Get(int(i)); f != 0 {
		b = append(b, '.')
		b = format.AppendJSONText(b, t.m.Symbols.Bytes(f))
	}
	if s := t.m.Instr.Text.Get(int(i)); s != 0 {
		b = append(b, ' ')
		b = format.AppendJSONText(b, t.m.Symbols.Bytes(s))
	}
	return append(b, '"')
}

// selected reports whether operand row r is a pattern of the wanted side.
func (t *tracer) selected(r int, out bool) bool {
	return (t.roles[r] == components.RoleOut) == out && t.numDims[r] > 0
}

func (t *tracer) shapes(b []byte, lo, hi int, out bool) []byte {
	first := true
	for r := lo; r < hi; r++ {
		if !t.selected(r, out) {
			continue
		}
		if !first {
			b = append(b, ' ')
		}
		first = false
		b = t.appendCounts(b, r)
	}
	return b
}

func (t *tracer) patterns(b []byte, lo, hi int, out bool) []byte {
	first := true
	for r := lo; r < hi; r++ {
		if !t.selected(r, out) {
			continue
		}
		if !first {
			b = append(b, ' ')
		}
		first = false
		b = append(b, t.m.Operands.DType.At(r).String()...)
		b = append(b, '@')
		offset := t.m.Operands.Address.At(r)
		if where := t.m.Operands.Where.At(r); where > 0 {
			b = format.AppendJSONText(b, t.m.Symbols.Bytes(t.m.Locations.Name.At(int(where-1))))
			offset -= min(offset, t.m.Locations.Addr.At(int(where-1)))
		} else {
			b = append(b, t.m.Operands.Memory.At(r).String()...)
		}
		b = append(b, '+')
		b = appendUint(b, offset)
		b = append(b, '[')
		at := int(t.dims[r])
		for n, s := range t.steps[at : at+int(t.numDims[r])] {
			if n > 0 {
				b = append(b, ',')
			}
			if s < 0 {
				b = append(b, '-')
			}
			b = appendUint(b, uint64(max(s, -s)))
		}
		b = append(b, ']')
		b = t.appendCounts(b, r)
	}
	return b
}

func (t *tracer) appendCounts(b []byte, r int) []byte {
	b = append(b, '[')
	at := int(t.dims[r])
	for n, x := range t.counts[at : at+int(t.numDims[r])] {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendUint(b, x)
	}
	return append(b, ']')
}
