package cost

import (
	"math/bits"

	"perfsim/components"
)

// signature is what the cost of an instruction depends on in the calibrated
// model, where its operands have no say: rows of one signature cost the same.
type signature struct {
	elems uint64 // of input and output
	what  uint64 // flags, opcode and partitions
	where uint64 // lane, engine and type
	moved uint64 // bytes of a DMA
	row   uint64 // bytes of a DMA's contiguous piece, function
}

// signature returns that of instruction i, and whether there is one.
// Collectives have none, and neither has what looks at operands: transfers,
// and the cases of an operation that ask for vectors, types or strides.
func (c *Nominal) signature(i int) (s signature, ok bool) {
	in := &c.m.Instr
	flags, op := in.Flags.At(i), in.Opcode.At(i)
	s.elems = uint64(in.Elems.At(i)) | uint64(in.OutElems.Get(i))<<32
	s.what = uint64(flags) | uint64(op)<<32 | uint64(in.Parts.At(i))<<48
	s.where = uint64(in.Lane.At(i)) | uint64(in.Engine.At(i))<<16 | uint64(in.DType.At(i))<<32
	s.moved = in.DMABytes.Get(i)
	s.row = uint64(in.DMARow.Get(i)) | uint64(in.Func.Get(i))<<32
	if flags&components.FlagCollective != 0 || c.rest.costs[op].Form == "collective" {
		return s, false
	}
	if c.m.Operands.Len() == 0 {
		return s, true
	}
	if lo, hi := c.m.Operands.Range(components.InstrID(i)); lo == hi {
		return s, true
	}
	o := c.operation(i)
	known := c.pe[op] != PENone || o != nil && len(o.cases) > 0 && !o.vectors
	return s, known && flags&operandFlags == 0
}

// operandFlags mark instructions whose operands a case may ask for.
const operandFlags = components.FlagMixedTypes | components.FlagTwoInputs | components.FlagStrided

func (s *signature) hash() uint32 {
	const odd, other = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	a := s.elems*odd ^ bits.RotateLeft64(s.what*other, 32)
	b := bits.RotateLeft64((s.where^s.moved)*odd, 29) ^ bits.RotateLeft64(s.row*other, 17)
	return uint32((a ^ b>>7 ^ b<<3) * odd >> 32)
}

// Memo remembers a value for each of the signatures seen last. Signatures that
// meet in one place put each other out, so it never grows.
type Memo[V any] struct {
	known []memo[V]
	shift uint
}

type memo[V any] struct {
	signature signature
	set       bool
	value     V
}

// NewMemo returns a memo for a module of n rows.
func NewMemo[V any](n int) *Memo[V] {
	width := min(max(bits.Len(uint(n))-4, 4), 11)
	return &Memo[V]{make([]memo[V], 1<<width), uint(32 - width)}
}

// Of returns the value of instruction i: one that was worked out for its
// signature, else what f returns.
func (t *Memo[V]) Of(c *Nominal, i int, f func(i int) V) V {
	s, ok := c.signature(i)
	if !ok {
		return f(i)
	}
	x := &t.known[s.hash()>>t.shift]
	if !x.set || x.signature != s {
		*x = memo[V]{s, true, f(i)}
	}
	return x.value
}
