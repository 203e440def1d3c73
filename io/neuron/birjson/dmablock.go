package birjson

import (
	"fmt"
	"math"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// dmaBlock is a transfer that a DMATrigger starts: what its descriptors move
// in all.
type dmaBlock struct {
	name  span
	bytes uint64
	row   uint32
	elems uint32
	parts uint16
	dtype components.DType
	flags components.Flags
}

// dmaBlock parses a DMABlock of a queue with its descriptors (docs/birjson.md).
func (w *worker) dmaBlock(v jsonscan.Value) error {
	obj, err := object(v)
	if err != nil {
		return fmt.Errorf("a DMA block is %s, not an object", v.Kind())
	}
	o := &w.b.out
	name := text(obj.Get("name"))
	d := dmaBlock{name: o.keep(name), dtype: components.NoDType, row: math.MaxUint32}
	n := 0
	for _, b := range v.Get("blocks").All() {
		for _, e := range b.Get("instructions").All() {
			in := instr{opcode: w.known[string(text(e.Get("opcode")))]}
			if !isDescriptor(in.opcode) {
				in.opcode = components.OpcodeDMADescriptorCopy
			}
			f := fields{ins: e.Get("ins"), outs: e.Get("outs")}
			if err := w.operands(&in, &f); err != nil {
				return fmt.Errorf("DMA block %s: descriptor %d: %w", clip(string(name)), n, err)
			}
			o.ops, o.late = o.ops[:in.ops.lo], o.late[:in.late.lo]
			n++
			if d.bytes > math.MaxInt64-min(in.dmaBytes, math.MaxInt64) {
				return fmt.Errorf("DMA block %s: more than %d bytes", clip(string(name)), int64(math.MaxInt64))
			}
			d.bytes += in.dmaBytes
			d.row = min(d.row, in.dmaRow)
			if n == 1 {
				d.dtype, d.flags = in.dtype, in.flags&operandFlags
			}
			d.parts = max(d.parts, in.parts)
			if in.opcode == components.OpcodeDMADescriptorTranspose {
				d.flags |= components.FlagTranspose
			}
		}
	}
	if n == 0 {
		d.row = 0
	}
	if d.parts > 0 {
		d.elems = uint32(min(d.bytes/uint64(d.parts)/uint64(max(d.dtype.Size(), 1)), math.MaxUint32))
	}
	o.dmas = append(o.dmas, d)
	return nil
}
