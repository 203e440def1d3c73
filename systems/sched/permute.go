package sched

import (
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/internal/rows"
)

// permute returns the module with its instructions in another order: row i of
// the result is row order[i] of m. Rows must stay in their blocks. Tables that
// do not follow the instructions are shared with m; dependencies are linked
// anew, so that those on later instructions are honoured where the producer
// comes first now. An instruction that moves keeps its name.
func permute(m *components.Module, order []uint32) (*components.Module, error) {
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
	out, err := rows.Pick(m, order)
	if err != nil {
		return nil, err
	}
	if err := permuteEdges(out, m, to); err != nil {
		return nil, err
	}
	return out, nil
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
