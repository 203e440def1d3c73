package sched

import (
	"perfsim/components"
	"perfsim/ecs"
)

// groups finds the accumulation groups of a segment: matmuls that follow one
// another on their engine and add up in the same PSUM banks, from a start to
// the next. The map has the rows of a group under its first row and nil under
// the others; what is in no group is absent.
//
// A group is scheduled as one, so it must not depend on itself through
// something else: a member that does begins a new group.
func groups(m *components.Module, seg segment) map[uint32][]uint32 {
	in := &m.Instr
	type open struct{ rows []uint32 }
	byLane := map[uint16]*open{}
	out := map[uint32][]uint32{}
	finish := func(o *open) {
		for _, rows := range splitDependent(m, o.rows) {
			if len(rows) < 2 {
				continue
			}
			for _, r := range rows {
				out[r] = nil
			}
			out[rows[0]] = rows
		}
		o.rows = nil
	}
	var lanes []uint16 // in order of appearance
	for i := seg.lo; i < seg.hi; i++ {
		if !in.Opcode.At(int(i)).IsMatmul() {
			continue
		}
		l := in.Lane.At(int(i))
		o := byLane[l]
		if o == nil {
			o = &open{}
			byLane[l] = o
			lanes = append(lanes, l)
		}
		flags := in.Flags.At(int(i))
		written := in.Banks.At(int(i)) >> 8
		if n := len(o.rows); n > 0 && (flags&components.FlagAccStart != 0 || written != in.Banks.At(int(o.rows[0]))>>8) {
			finish(o)
		}
		// A group that has no start lies partly before the segment, or the
		// module does not mark them: then matmuls go one by one.
		if len(o.rows) > 0 || flags&components.FlagAccStart != 0 && written != 0 {
			o.rows = append(o.rows, i)
		}
		if flags&components.FlagAccStop != 0 && len(o.rows) > 0 {
			finish(o)
		}
	}
	for _, l := range lanes {
		finish(byLane[l])
	}
	return out
}

// splitDependent splits rows where a member depends on an earlier one through
// something that is no member.
func splitDependent(m *components.Module, rows []uint32) [][]uint32 {
	if len(rows) < 2 {
		return [][]uint32{rows}
	}
	first, last := rows[0], rows[len(rows)-1]
	member := make([]bool, last-first+1)
	reached := make([]bool, last-first+1) // depends on a member of the group that is open
	var out [][]uint32
	var cur []uint32
	at := 0
	for i := first; i <= last; i++ {
		isMember := at < len(rows) && rows[at] == i
		through := false // depends on the group by way of a row that is not in it
		direct := false
		for _, w := range m.Edges.Preds.Row(int(i)) {
			p := w & ecs.TargetMask
			if p < first {
				continue
			}
			if member[p-first] {
				direct = true
			} else if reached[p-first] {
				through = true
			}
		}
		if !isMember {
			reached[i-first] = direct || through
			continue
		}
		at++
		if through {
			out = append(out, cur)
			cur = nil
			clear(member)
			clear(reached)
		}
		member[i-first] = true
		cur = append(cur, i)
	}
	return append(out, cur)
}
