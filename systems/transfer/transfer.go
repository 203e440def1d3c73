// Package transfer gives the transfers that DMA triggers start rows of their
// own. The documented simulator keeps (trigger, transfer) pairs: the trigger is
// an event of the engine that issues it, the transfer one of the DMA timeline,
// and what needs the data waits for the transfer.
package transfer

import (
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/internal/rows"
)

// Expand returns m with a row behind every trigger for its transfer, and m
// itself where all have theirs. The transfer is on the DMA lane of the
// trigger's core, depends on its trigger, which lets it start at the trigger's
// own start, and takes over the trigger's size. Dependencies on the trigger
// become dependencies on the transfer, but for those of order. Both rows carry
// the id of the trigger.
func Expand(m *components.Module) (*components.Module, error) {
	flags := m.Instr.Flags.Slice()
	n := len(flags)
	var triggers int
	for i := range flags {
		if lacks(flags, i) {
			triggers++
		}
	}
	if triggers == 0 {
		return m, nil
	}
	order := make([]uint32, 0, n+triggers)
	to := make([]uint32, n+1) // where a row goes
	for i := range flags {
		to[i] = uint32(len(order))
		order = append(order, uint32(i))
		if lacks(flags, i) {
			order = append(order, uint32(i))
		}
	}
	to[n] = uint32(len(order))
	out, err := rows.Pick(m, order)
	if err != nil {
		return nil, err
	}
	ids(out, m, order)
	unknown := 0
	for i := range flags {
		if !lacks(flags, i) {
			continue
		}
		split(out, to[i])
		if t := int(to[i]) + 1; out.Instr.Elems.At(t) == 0 && out.Instr.DMABytes.Get(t) == 0 {
			unknown++
		}
	}
	moveBlocks(out, m, to)
	if unknown > 0 {
		out.Note("transfer-size", "DMA triggers start transfers whose size the module does not have: they take the start-up time of a transfer", unknown)
	}
	return out, link(out, m, flags, to)
}

// lacks reports whether row i is a trigger without a row for its transfer.
func lacks(flags []components.Flags, i int) bool {
	return flags[i]&components.FlagTrigger != 0 && (i+1 == len(flags) || flags[i+1]&components.FlagTransfer == 0)
}

// ids gives rows that had none the id that they had: their number.
func ids(out, m *components.Module, order []uint32) {
	if m.Instr.Ref.Len() > 0 {
		return
	}
	refs := out.Instr.Ref.Resize(len(order))
	for i, r := range order {
		refs[i] = uint64(r)
	}
}

// split makes row i+1, a copy of trigger i, its transfer.
func split(out *components.Module, i uint32) {
	in := &out.Instr
	t := int(i) + 1
	lane, flags := in.Lane.At(t), in.Flags.At(t)
	if k := out.Lanes.Kind.At(int(lane)); k == components.LaneEngine || k == components.LaneStream {
		lane = lane/components.LanesPerCore*components.LanesPerCore + components.LaneDMA
	}
	in.Opcode.Set(t, components.OpcodeDMADescriptorCopy)
	if flags&components.FlagTranspose != 0 {
		in.Opcode.Set(t, components.OpcodeDMADescriptorTranspose)
	}
	in.Engine.Set(t, components.DMA)
	in.Lane.Set(t, lane)
	in.Flags.Set(t, flags&^(components.FlagTrigger|components.FlagBarrier|components.FlagSequencer|components.FlagMeasured)|components.FlagTransfer)
	in.Banks.Set(t, 0)
	in.Name.Set(t, out.Symbols.AddUnique(append(out.AppendInstrName(nil, components.InstrID(i)), ".transfer"...)))
	// The work is the transfer's.
	in.Elems.Set(int(i), 0)
	in.Parts.Set(int(i), 0)
	if in.DMABytes.Len() > 0 { // optional columns, each of its own
		in.DMABytes.Set(int(i), 0)
	}
	if in.DMARow.Len() > 0 {
		in.DMARow.Set(int(i), 0)
	}
}

// moveBlocks gives the blocks the rows of out.
func moveBlocks(out, m *components.Module, to []uint32) {
	t := &out.Blocks
	for _, c := range []*ecs.Column[uint32]{&t.First, &t.End, &t.Parent} {
		old := c.Slice()
		*c = ecs.NewColumn[uint32](c.Name())
		copy(c.Resize(len(old)), old)
	}
	for b := range m.Blocks.Len() {
		t.First.Set(b, to[t.First.At(b)])
		t.End.Set(b, to[t.End.At(b)])
		if p := t.Parent.At(b); p > 0 {
			t.Parent.Set(b, to[p-1]+1)
		}
	}
}

// link gives out the dependencies of m.
func link(out, m *components.Module, flags []components.Flags, to []uint32) error {
	producer := func(p uint32, k components.EdgeKind) components.InstrID {
		if k != components.Ordered && lacks(flags, int(p)) {
			return components.InstrID(to[p] + 1)
		}
		return components.InstrID(to[p])
	}
	var set components.EdgeSet
	set.Reserve(m.Edges.Preds.Len())
	for i := range m.Edges.Preds.Rows() {
		for _, w := range m.Edges.Preds.Row(i) {
			k := components.KindOfClass(uint8(w >> ecs.ClassShift))
			set.Add(components.InstrID(to[i]), producer(w&ecs.TargetMask, k), k)
		}
	}
	for i := range flags {
		if lacks(flags, i) {
			set.Add(components.InstrID(to[i]+1), components.InstrID(to[i]), components.Flow)
		}
	}
	o := &m.Edges.Other
	for e := range o.Len() {
		k := o.Kind.At(e)
		from, on := components.InstrID(to[o.From.At(e)]), producer(o.To.At(e), k)
		if o.Scope.At(e) == components.ScopeCarried {
			set.AddCarried(from, on, k, o.Distance.At(e))
		} else {
			set.Add(from, on, k)
		}
	}
	out.Notes = slices.DeleteFunc(out.Notes, func(n components.Note) bool { return n.Code == "later-producer" })
	if err := out.Link(&set); err != nil {
		return err
	}
	out.Edges.Declared = m.Edges.Declared
	return nil
}
