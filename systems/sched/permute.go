package sched

import (
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Permute returns the module with its instructions in another order: row i of
// the result is row order[i] of m. Rows must stay in their blocks. Tables that
// do not follow the instructions are shared with m; dependencies are linked
// anew, so that those on later instructions are honoured where the producer
// comes first now. An instruction that moves keeps its name.
func Permute(m *components.Module, order []uint32) (*components.Module, error) {
	n := m.Instr.Len()
	to := make([]uint32, n)
	seen := make([]bool, n)
	if len(order) != n {
		return nil, fmt.Errorf("an order of %d rows for %d", len(order), n)
	}
	moved := false
	for i, r := range order {
		if int(r) >= n || seen[r] {
			return nil, fmt.Errorf("row %d comes twice or does not exist", r)
		}
		seen[r] = true
		to[r] = uint32(i)
		moved = moved || int(r) != i
	}
	if !moved {
		return m, nil
	}
	out := *m
	out.Notes = slices.Clone(m.Notes)
	fresh := components.NewModule("", "")
	out.Instr, out.Edges, out.Operands, out.Syncs = fresh.Instr, fresh.Edges, fresh.Operands, fresh.Syncs
	from, into := m.Instr.Columns(), out.Instr.Columns()
	for c := range from {
		if err := permuteAny(into[c], from[c], order); err != nil {
			return nil, err
		}
	}
	keepNames(&out, m, order)
	permuteOperands(&out, m, order)
	permuteSyncs(&out, m, order)
	if err := permuteEdges(&out, m, to); err != nil {
		return nil, err
	}
	return &out, nil
}

// permuteAny permutes a column of whatever type.
func permuteAny(into, from ecs.AnyColumn, order []uint32) error {
	switch f := from.(type) {
	case *ecs.Column[uint8]:
		permute(into.(*ecs.Column[uint8]), f, order)
	case *ecs.Column[uint16]:
		permute(into.(*ecs.Column[uint16]), f, order)
	case *ecs.Column[uint32]:
		permute(into.(*ecs.Column[uint32]), f, order)
	case *ecs.Column[uint64]:
		permute(into.(*ecs.Column[uint64]), f, order)
	case *ecs.Column[components.Opcode]:
		permute(into.(*ecs.Column[components.Opcode]), f, order)
	case *ecs.Column[components.Engine]:
		permute(into.(*ecs.Column[components.Engine]), f, order)
	case *ecs.Column[components.Flags]:
		permute(into.(*ecs.Column[components.Flags]), f, order)
	case *ecs.Column[components.DType]:
		permute(into.(*ecs.Column[components.DType]), f, order)
	case *ecs.Column[ecs.Symbol]:
		permute(into.(*ecs.Column[ecs.Symbol]), f, order)
	default:
		return fmt.Errorf("column %s has a type that is not known here", from.Name())
	}
	return nil
}

func permute[T ecs.Fixed](into, from *ecs.Column[T], order []uint32) {
	if from.Len() == 0 {
		return
	}
	src := from.Slice()
	dst := into.Scratch(len(src))
	for i, r := range order {
		dst[i] = src[r]
	}
}

// keepNames gives the rows that moved and were called by their number that
// name in so many letters.
func keepNames(out, m *components.Module, order []uint32) {
	names := &out.Instr.Name
	if names.Len() == 0 {
		names.Resize(len(order))
	}
	var buf []byte
	for i, r := range order {
		if int(r) != i && names.At(i) == 0 {
			buf = m.AppendInstrName(buf[:0], components.InstrID(r))
			names.Set(i, out.Symbols.AddUnique(buf))
		}
	}
}

func permuteOperands(out, m *components.Module, order []uint32) {
	if m.Operands.Offsets.Len() == 0 {
		return
	}
	t := &out.Operands
	for _, r := range order {
		lo, hi := m.Operands.Range(components.InstrID(r))
		for k := lo; k < hi; k++ {
			t.Add(m.Operands.At(k))
		}
		t.EndRow()
	}
}

func permuteSyncs(out, m *components.Module, order []uint32) {
	if m.Syncs.Offsets.Len() == 0 {
		return
	}
	s, t := &m.Syncs, &out.Syncs
	for _, r := range order {
		lo, hi := s.Range(components.InstrID(r))
		for k := lo; k < hi; k++ {
			t.Add(s.Op.At(k), s.Space.At(k), s.ID.At(k), s.Value.At(k), s.Owner.At(k))
		}
		t.EndRow()
	}
}

func permuteEdges(out, m *components.Module, to []uint32) error {
	var set components.EdgeSet
	set.Reserve(m.Edges.Preds.Len())
	for i := range m.Edges.Preds.Rows() {
		for _, w := range m.Edges.Preds.Row(i) {
			set.Add(components.InstrID(to[i]), components.InstrID(to[w&ecs.TargetMask]), components.KindOfClass(uint8(w>>ecs.ClassShift)))
		}
	}
	o := &m.Edges.Other
	for e := range o.Len() {
		from, on := components.InstrID(to[o.From.At(e)]), components.InstrID(to[o.To.At(e)])
		if o.Scope.At(e) == components.ScopeCarried {
			set.AddCarried(from, on, o.Kind.At(e), o.Distance.At(e))
		} else {
			set.Add(from, on, o.Kind.At(e))
		}
	}
	out.Notes = slices.DeleteFunc(out.Notes, func(n components.Note) bool { return n.Code == "later-producer" })
	if err := out.Link(&set); err != nil {
		return err
	}
	out.Edges.Declared = m.Edges.Declared
	return nil
}
