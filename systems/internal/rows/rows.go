// Package rows makes instruction tables of chosen rows of others, for the
// systems that give a module another program order.
package rows

import (
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Pick returns a copy of m whose row i is row order[i] of m, in instructions,
// operands and semaphore operations. A row that comes again right behind itself
// has no operands and semaphore operations the second time. The rest is shared
// with m, and the copy has no dependencies: the caller links them. An
// instruction that moves keeps its name.
func Pick(m *components.Module, order []uint32) (*components.Module, error) {
	out := *m
	out.Notes = slices.Clone(m.Notes)
	fresh := components.NewModule("", "")
	out.Instr, out.Edges, out.Operands, out.Syncs = fresh.Instr, fresh.Edges, fresh.Operands, fresh.Syncs
	from, into := m.Instr.Columns(), out.Instr.Columns()
	for c := range from {
		if err := pickAny(into[c], from[c], order); err != nil {
			return nil, err
		}
	}
	keepNames(&out, m, order)
	pickOperands(&out, m, order)
	pickSyncs(&out, m, order)
	return &out, nil
}

// again reports whether row k of the result is the second copy of a row.
func again(order []uint32, k int) bool { return k > 0 && order[k] == order[k-1] }

// pickAny picks rows of a column of whatever type.
func pickAny(into, from ecs.AnyColumn, order []uint32) error {
	switch f := from.(type) {
	case *ecs.Column[uint8]:
		pick(into.(*ecs.Column[uint8]), f, order)
	case *ecs.Column[uint16]:
		pick(into.(*ecs.Column[uint16]), f, order)
	case *ecs.Column[uint32]:
		pick(into.(*ecs.Column[uint32]), f, order)
	case *ecs.Column[uint64]:
		pick(into.(*ecs.Column[uint64]), f, order)
	case *ecs.Column[components.Opcode]:
		pick(into.(*ecs.Column[components.Opcode]), f, order)
	case *ecs.Column[components.Engine]:
		pick(into.(*ecs.Column[components.Engine]), f, order)
	case *ecs.Column[components.Flags]:
		pick(into.(*ecs.Column[components.Flags]), f, order)
	case *ecs.Column[components.DType]:
		pick(into.(*ecs.Column[components.DType]), f, order)
	case *ecs.Column[ecs.Symbol]:
		pick(into.(*ecs.Column[ecs.Symbol]), f, order)
	default:
		return fmt.Errorf("column %s has a type that is not known here", from.Name())
	}
	return nil
}

func pick[T ecs.Fixed](into, from *ecs.Column[T], order []uint32) {
	if from.Len() == 0 {
		return
	}
	src := from.Slice()
	dst := into.Scratch(len(order))
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

func pickOperands(out, m *components.Module, order []uint32) {
	if m.Operands.Offsets.Len() == 0 {
		return
	}
	t := &out.Operands
	for i, r := range order {
		lo, hi := m.Operands.Range(components.InstrID(r))
		for k := lo; k < hi && !again(order, i); k++ {
			t.Add(m.Operands.At(k))
		}
		t.EndRow()
	}
}

func pickSyncs(out, m *components.Module, order []uint32) {
	if m.Syncs.Offsets.Len() == 0 {
		return
	}
	s, t := &m.Syncs, &out.Syncs
	for i, r := range order {
		lo, hi := s.Range(components.InstrID(r))
		for k := lo; k < hi && !again(order, i); k++ {
			t.Add(s.Op.At(k), s.Space.At(k), s.ID.At(k), s.Value.At(k), s.Owner.At(k))
		}
		t.EndRow()
	}
}
