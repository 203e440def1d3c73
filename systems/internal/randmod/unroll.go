package randmod

import (
	"perfsim/components"
	"perfsim/ecs"
)

// Unroll returns m, of one top-level block, with its loops written out: what
// counting trips must come to.
func Unroll(m *components.Module) *components.Module {
	out := components.NewModule("unrolled", "test")
	for l := range m.Lanes.Len() {
		out.Lanes.Add(0, m.Lanes.Engine.At(l), m.Lanes.Kind.At(l), m.Lanes.Core.At(l))
	}
	out.Queues = m.Queues
	in, from := &out.Instr, &m.Instr
	at := map[uint32]uint32{} // rows' last copies
	var rows func(b int)
	rows = func(b int) {
		t := &m.Blocks
		for i := t.First.At(b); i < t.End.At(b); i++ {
			k := int(i)
			if from.Flags.At(k)&components.FlagLoop != 0 {
				for body := range t.Len() {
					if t.Parent.At(body) != uint32(k)+1 {
						continue
					}
					for range max(t.Trip.At(body), 1) {
						rows(body)
					}
					i = max(i, t.End.At(body)-1)
				}
				continue
			}
			n := int(in.Grow(1))
			in.Queue.Resize(n + 1)
			in.OutElems.Resize(n + 1)
			at[i] = uint32(n)
			in.Opcode.Set(n, from.Opcode.At(k))
			in.Engine.Set(n, from.Engine.At(k))
			in.Lane.Set(n, from.Lane.At(k))
			in.Flags.Set(n, from.Flags.At(k))
			in.Elems.Set(n, from.Elems.At(k))
			in.OutElems.Set(n, from.OutElems.Get(k))
			in.Parts.Set(n, from.Parts.At(k))
			in.DType.Set(n, from.DType.At(k))
			in.Banks.Set(n, from.Banks.At(k))
			in.Queue.Set(n, from.Queue.Get(k))
			var words []uint32
			for _, w := range m.Edges.Preds.Row(k) {
				words = append(words, ecs.Word(uint8(w>>ecs.ClassShift), at[w&ecs.TargetMask]))
			}
			out.Edges.Preds.AppendRow(words)
		}
	}
	rows(0)
	f := out.Functions.Add(0, 0)
	out.Blocks.End.Set(out.Blocks.Add(0, uint32(f), 0, 0, 1), uint32(out.Instr.Len()))
	out.Functions.EndBlock.Set(f, 1)
	return out
}
