package components

import (
	"context"
	"fmt"
	"slices"
)

// Window returns a module with the tables of m but those of instructions and
// edges, which are empty: it holds some rows of m at a time, from row Base of m
// on. m itself then has no rows.
func (m *Module) Window() *Module {
	w := *m
	w.Instr, w.Edges = newInstructions(), newEdges()
	return &w
}

// CheckWindows is the part of CheckJobs that needs no rows, for a module of n
// rows that is read a window at a time. What it returns checks a window of that
// module, whose edges still point to rows of m: called with all windows in
// their order it checks as CheckJobs does for a module in memory.
func (m *Module) CheckWindows(n int) (window func(ctx context.Context, jobs int, w *Module) error, err error) {
	if err := m.checkSize(n); err != nil {
		return nil, err
	}
	if err := m.Symbols.Check(); err != nil {
		return nil, err
	}
	if err := m.checkTables(); err != nil {
		return nil, err
	}
	var loops []int // rows that have bodies
	tops, err := m.checkBlocks(n, func(row int) bool { loops = append(loops, row); return true })
	if err != nil {
		return nil, err
	}
	slices.Sort(loops)
	return func(ctx context.Context, jobs int, w *Module) error {
		base := int(w.Base)
		at, _ := slices.BinarySearch(loops, base)
		for _, row := range loops[at:] {
			if row >= base+w.Instr.Len() {
				break
			}
			if w.Instr.Flags.At(row-base)&FlagLoop == 0 {
				return fmt.Errorf("instruction %s has a body and is no loop", w.InstrName(InstrID(row-base)))
			}
		}
		return rowsInParallel(ctx, jobs, w.Instr.Len(), func(lo, hi int) error { return w.checkRows(lo, hi, tops) })
	}, nil
}
