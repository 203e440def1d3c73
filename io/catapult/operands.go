package catapult

import (
	"strconv"

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

// selected tells whether operand row r is a pattern of the wanted side.
func (t *tracer) selected(r int, out bool) bool {
	return (t.m.Operands.Role.At(r) == components.RoleOut) == out && t.m.Operands.NumDims.At(r) > 0
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
		b = appendList(b, t.m.Operands.At(r).Counts)
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
		o := t.m.Operands.At(r)
		b = append(b, o.DType.String()...)
		b = append(b, '@')
		offset := o.Address
		if o.Where > 0 {
			b = format.AppendJSONText(b, t.m.Symbols.Bytes(t.m.Locations.Name.At(int(o.Where-1))))
			offset -= min(offset, t.m.Locations.Addr.At(int(o.Where-1)))
		} else {
			b = append(b, o.Memory.String()...)
		}
		b = append(b, '+')
		b = strconv.AppendUint(b, offset, 10)
		b = append(b, '[')
		for n, s := range o.Steps {
			if n > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, s, 10)
		}
		b = append(b, ']')
		b = appendList(b, o.Counts)
	}
	return b
}

func appendList(b []byte, v []uint64) []byte {
	b = append(b, '[')
	for n, x := range v {
		if n > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, x, 10)
	}
	return append(b, ']')
}
