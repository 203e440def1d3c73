// Package occupancy finds what is held in SBUF, PSUM and device memory over
// time: how much, when most of it, and by which tensors. docs/figures.md
// defines the figures.
package occupancy

import (
	"perfsim/components"
	"perfsim/ecs"
)

// The cells of the on-chip memories: what an instruction touches counts in
// whole cells.
const (
	CellBytes = 64 // of SBUF, in a partition
	Banks     = 8  // of PSUM
)

// mostCells bounds the cells of all cores: the SBUF of 256 cores of trn3 has a
// million. mostCoreCells bounds those of one where the machine's size is not
// known.
const (
	mostCells     = 1 << 20
	mostCoreCells = 1 << 16
)

// Done is called with every life of a cell of a core: from the start of a write
// to the end of the last access before the next write, in ns on the axis of the
// timeline. by is the row that wrote it, or that read it first.
type Done func(core, cell int, from, to uint64, by components.InstrID)

// Cores numbers the cores that have lanes, in the order of the lanes: the
// numbers of an input may be any. names has the input's number of each.
func Cores(m *components.Module) (byLane []int, names []uint16) {
	number := map[uint16]int{}
	for _, core := range m.Lanes.Core.Slice() {
		n, ok := number[core]
		if !ok {
			n = len(number)
			number[core] = n
			names = append(names, core)
		}
		byLane = append(byLane, n)
	}
	return byLane, names
}

// lives follows a fixed number of cells. The lives of a cell do not overlap.
type lives struct {
	birth []uint64 // plus one; 0 for a cell that was never written
	last  []uint64
	by    []components.InstrID
	done  func(cell int, from, to uint64, by components.InstrID)
}

func newLives(cells int, done func(int, uint64, uint64, components.InstrID)) *lives {
	return &lives{make([]uint64, cells), make([]uint64, cells), make([]components.InstrID, cells), done}
}

func (l *lives) access(cell int, write bool, start, end uint64, by components.InstrID) {
	if write && (l.birth[cell] == 0 || start >= l.last[cell]) {
		l.close(cell)
		l.birth[cell], l.last[cell], l.by[cell] = start+1, end, by
		return
	}
	if l.birth[cell] == 0 { // read before any write: it was there from the start
		l.birth[cell], l.by[cell] = 1, by
	}
	l.last[cell] = max(l.last[cell], end)
}

func (l *lives) close(cell int) {
	if l.birth[cell] > 0 {
		l.done(cell, l.birth[cell]-1, l.last[cell], l.by[cell])
	}
}

func (l *lives) closeAll() {
	for cell := range l.birth {
		l.close(cell)
	}
}

// ordered returns the instructions of process p that take part, in the order of
// starts.
func ordered(t *components.Timeline, p int, part func(i components.InstrID) bool) []components.InstrID {
	n := 0
	t.Each(func(i components.InstrID) {
		if part(i) {
			n++
		}
	})
	all := make([]ecs.Keyed[components.InstrID], 0, n)
	t.Each(func(i components.InstrID) {
		if part(i) && t.Has(p, i) {
			s, _ := t.Span(p, i)
			all = append(all, ecs.Keyed[components.InstrID]{Key: s, V: i})
		}
	})
	ecs.SortByKey(all)
	out := make([]components.InstrID, len(all))
	for k, e := range all {
		out[k] = e.V
	}
	return out
}

// PSUM follows the banks of PSUM in process p.
func PSUM(t *components.Timeline, p int, done Done) {
	m := t.World.Module
	byLane, names := Cores(m)
	cores := make([]*lives, len(names))
	for _, i := range ordered(t, p, func(i components.InstrID) bool { return m.Instr.Banks.At(int(i)) != 0 }) {
		mask := m.Instr.Banks.At(int(i))
		l := coreLives(cores, byLane[m.Instr.Lane.At(int(i))], Banks, done)
		s, e := t.Span(p, i)
		for b := range Banks {
			switch {
			case mask>>(Banks+b)&1 != 0:
				l.access(b, mask>>b&1 == 0 && !accumulates(m, i), s, e, i)
			case mask>>b&1 != 0:
				l.access(b, false, s, e, i)
			}
		}
	}
	finish(cores)
}

func coreLives(cores []*lives, core, cells int, done Done) *lives {
	if cores[core] == nil {
		cores[core] = newLives(cells, func(cell int, from, to uint64, by components.InstrID) { done(core, cell, from, to, by) })
	}
	return cores[core]
}

func finish(cores []*lives) {
	for _, l := range cores {
		if l != nil {
			l.closeAll()
		}
	}
}

// accumulates reports whether a matmul adds to what its bank holds.
func accumulates(m *components.Module, i components.InstrID) bool {
	return m.Instr.Engine.At(int(i)) == components.PE && m.Instr.Flags.At(int(i))&components.FlagAccStart == 0
}

// SBUF follows the cells of SBUF in process p; size is its bytes in a partition,
// 0 where they are not known. Addresses behind it are no part of it: beyond
// counts the access patterns that reach there. Without access patterns, or with
// more cells than are followed, ok is false.
func SBUF(t *components.Timeline, p int, size uint64, done Done) (beyond int, ok bool) {
	m := t.World.Module
	if m.Operands.Len() == 0 {
		return 0, false
	}
	if size == 0 || size > mostCoreCells*CellBytes {
		size = mostCoreCells * CellBytes
	}
	top := uint64(0)
	for r := range m.Operands.Len() {
		if m.Operands.Memory.At(r) == components.MemSBUF && m.Operands.NumDims.At(r) > 0 {
			_, hi := m.Operands.At(r).Span()
			if hi > size {
				beyond++
			}
			top = max(top, min(hi, size))
		}
	}
	cells := int((top + CellBytes - 1) / CellBytes)
	byLane, names := Cores(m)
	if cells == 0 || len(names)*cells > mostCells {
		return beyond, false
	}
	cores := make([]*lives, len(names))
	touches := func(i components.InstrID) bool {
		lo, hi := m.Operands.Range(i)
		return lo < hi
	}
	for _, i := range ordered(t, p, touches) {
		lo, hi := m.Operands.Range(i)
		s, e := t.Span(p, i)
		for _, write := range []bool{false, true} { // an instruction reads before it writes
			for r := lo; r < hi; r++ {
				if m.Operands.Memory.At(r) != components.MemSBUF || m.Operands.NumDims.At(r) == 0 || (m.Operands.Role.At(r) == components.RoleOut) != write {
					continue
				}
				l := coreLives(cores, byLane[m.Instr.Lane.At(int(i))], cells, done)
				from, to := m.Operands.At(r).Span()
				for g := from / CellBytes; g < (to+CellBytes-1)/CellBytes && int(g) < cells; g++ {
					l.access(int(g), write, s, e, i)
				}
			}
		}
	}
	finish(cores)
	return beyond, true
}
