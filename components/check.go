package components

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"perfsim/ecs"
)

// Check is CheckJobs on one goroutine.
func (m *Module) Check() error { return m.CheckJobs(context.Background(), 1) }

// CheckJobs tells whether the tables fit together: every system relies on it
// and no system checks again. Readers call it last. Rows are looked at in
// parallel; the error told is the first in row order whatever jobs is.
func (m *Module) CheckJobs(ctx context.Context, jobs int) error {
	n := m.Instr.Len()
	if n == 0 {
		return fmt.Errorf("module %q has no instructions", m.Name)
	}
	if n >= ecs.MaxRows {
		return fmt.Errorf("module %q has %d instructions, more than %d", m.Name, n, ecs.MaxRows-1)
	}
	for _, c := range m.Instr.required() {
		if c.Len() != n {
			return fmt.Errorf("column %s has %d rows, not %d", c.Name(), c.Len(), n)
		}
	}
	for _, c := range m.Instr.optional() {
		if c.Len() != 0 && c.Len() != n {
			return fmt.Errorf("column %s has %d rows, not %d or none", c.Name(), c.Len(), n)
		}
	}
	if m.Instr.MeasuredStart.Len() > 0 && m.Instr.MeasuredDur.Len() == 0 {
		return fmt.Errorf("column %s is there without %s", m.Instr.MeasuredStart.Name(), m.Instr.MeasuredDur.Name())
	}
	if err := m.checkTables(); err != nil {
		return err
	}
	if err := m.checkBlocks(n); err != nil {
		return err
	}
	if err := m.checkRagged(n); err != nil {
		return err
	}
	if err := rowsInParallel(ctx, jobs, n, m.checkRows); err != nil {
		return err
	}
	return rowsInParallel(ctx, jobs, m.Operands.Len(), m.checkOperands)
}

// rowsInParallel calls check for ranges that make up rows 0 to n and returns
// the error of the lowest range that has one.
func rowsInParallel(ctx context.Context, jobs, n int, check func(lo, hi int) error) error {
	const size = 1 << 18
	errs := make([]error, (n+size-1)/size)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, jobs))
	for c := range errs {
		g.Go(func() error {
			errs[c] = check(c*size, min((c+1)*size, n))
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkRows checks rows lo to hi of the instruction table and their edges.
func (m *Module) checkRows(lo, hi int) error {
	in := &m.Instr
	lanes, ops, queues := m.Lanes.Len(), m.NumOpcodes(), m.Queues.Len()
	for i, l := range in.Lane.View(lo, hi) {
		if int(l) >= lanes {
			return fmt.Errorf("instruction %s is on lane %d of %d", m.InstrName(InstrID(lo+i)), l, lanes)
		}
	}
	for i, op := range in.Opcode.View(lo, hi) {
		if int(op) >= ops {
			return fmt.Errorf("instruction %s has opcode %d of %d", m.InstrName(InstrID(lo+i)), op, ops)
		}
	}
	for i, e := range in.Engine.View(lo, hi) {
		if e >= NumEngines {
			return fmt.Errorf("instruction %s has engine %d of %d", m.InstrName(InstrID(lo+i)), e, NumEngines)
		}
	}
	if in.Queue.Len() > 0 {
		for i, q := range in.Queue.View(lo, hi) {
			if int(q) > queues {
				return fmt.Errorf("instruction %s is on queue %d of %d", m.InstrName(InstrID(lo+i)), q, queues)
			}
		}
	}
	return m.checkEdges(lo, hi)
}

// checkEdges tells whether the edges of rows lo to hi point to earlier rows
// of the same top-level block: blocks are placed in parallel.
func (m *Module) checkEdges(lo, hi int) error {
	if m.Edges.Preds.Len() == 0 {
		return nil
	}
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	// The top-level block of a row only changes at a block's start; walk them
	// along with the rows.
	for i := lo; i < hi; i++ {
		if off[i] > off[i+1] || int(off[i+1]) > len(words) {
			return fmt.Errorf("instruction %s: its edges %d to %d are not a part of %d", m.InstrName(InstrID(i)), off[i], off[i+1], len(words))
		}
	}
	for i, block := lo, -1; i < hi; {
		var first, end int
		block, first, end = m.topBlock(block, i)
		if bad := edgesInside(off, words, i, min(end, hi), uint32(first)); bad < min(end, hi) {
			return m.edgeError(bad, first)
		}
		i = end
	}
	return nil
}

// edgesInside returns the first of rows lo to hi with an edge that does not
// point to a row from first to before its own, or hi. The first four edges of
// a row are looked at without a branch, because how many a row has is hard to
// foresee. Offsets must ascend and lie within words.
func edgesInside(off, words []uint32, lo, hi int, first uint32) int {
	for i := lo; i < hi; i++ {
		from, n, row := off[i], off[i+1]-off[i], uint32(i)
		if uint64(from)+4 > uint64(len(words)) {
			for _, w := range words[from : from+n] {
				if outside(w, first, row) < 0 {
					return i
				}
			}
			continue
		}
		q := (*[4]uint32)(words[from:])
		// The shifts are all ones for a word in use.
		bad := outside(q[0], first, row)&(int32(0-n)>>31) | outside(q[1], first, row)&(int32(1-n)>>31) |
			outside(q[2], first, row)&(int32(2-n)>>31) | outside(q[3], first, row)&(int32(3-n)>>31)
		if n > 4 {
			for _, w := range words[from+4 : from+n] {
				bad |= outside(w, first, row)
			}
		}
		if bad < 0 {
			return i
		}
	}
	return hi
}

// outside is negative where the edge w points before first, or to row or
// behind it: rows are below 2^30, so that differences have a sign.
func outside(w, first, row uint32) int32 {
	to := w & ecs.TargetMask
	return int32(to-first) | ^int32(to-row)
}

// edgeError says which edge of row i is not inside.
func (m *Module) edgeError(i, first int) error {
	for _, w := range m.Edges.Preds.Row(i) {
		to := int(w & ecs.TargetMask)
		if to >= i {
			return fmt.Errorf("instruction %s depends on %s, which is not before it in program order",
				m.InstrName(InstrID(i)), m.InstrName(InstrID(to)))
		}
		if to < first {
			return fmt.Errorf("instruction %s depends on %s, which is in another block", m.InstrName(InstrID(i)), m.InstrName(InstrID(to)))
		}
	}
	return nil
}

// topBlock returns the top-level block that row i is in, searched from block
// after on, and its rows; a row in no block forms one of its own.
func (m *Module) topBlock(after, i int) (block, first, end int) {
	for b := max(after, 0); b < m.Blocks.Len(); b++ {
		lo, hi := int(m.Blocks.First.At(b)), int(m.Blocks.End.At(b))
		if m.Blocks.Parent.At(b) == 0 && lo <= i && i < hi {
			return b, lo, hi
		}
	}
	return after, i, i + 1
}

// maxNesting bounds how deep loops may lie in one another; the placement
// descends into them. Compilers' deepest are below twenty.
const maxNesting = 1000

// checkBlocks tells whether blocks and functions are ranges in program order
// and loops are properly nested: a body follows the loop it belongs to, and
// the next body of the same loop follows it.
func (m *Module) checkBlocks(n int) error {
	t := &m.Blocks
	blocks := t.Len()
	if blocks == 0 {
		return fmt.Errorf("module %q has no blocks", m.Name)
	}
	type open struct{ first, end, next, loop int } // a block around: its rows, where its next body may start, the loop of its last body
	var around []open
	top := 0
	for b := range blocks {
		first, end, parent := int(t.First.At(b)), int(t.End.At(b)), int(t.Parent.At(b))
		if first > end || end > n {
			return fmt.Errorf("block %s spans rows %d to %d of %d", m.BlockName(b), first, end, n)
		}
		if int(t.Function.At(b)) >= m.Functions.Len() {
			return fmt.Errorf("block %s belongs to function %d of %d", m.BlockName(b), t.Function.At(b), m.Functions.Len())
		}
		if parent == 0 {
			if first < top {
				return fmt.Errorf("block %s starts at row %d, inside the block before it, which ends at %d", m.BlockName(b), first, top)
			}
			top = end
			around = append(around[:0], open{first, end, first, 0})
			continue
		}
		// Leave the blocks that do not hold the loop of this one.
		for len(around) > 0 && (parent-1 < around[len(around)-1].first || parent-1 >= around[len(around)-1].end) {
			around = around[:len(around)-1]
		}
		if len(around) == 0 {
			return fmt.Errorf("block %s belongs to the loop at row %d, which is in no block before it", m.BlockName(b), parent-1)
		}
		in := &around[len(around)-1]
		follows := first == parent && first > in.next || first == in.next && parent == in.loop
		if !follows || end > in.end || m.Instr.Flags.At(parent-1)&FlagLoop == 0 {
			return fmt.Errorf("block %s (rows %d to %d) is not the body of a loop at row %d in the block around it, which ends at %d",
				m.BlockName(b), first, end, parent-1, in.end)
		}
		in.next, in.loop = end, parent
		if len(around) == maxNesting {
			return fmt.Errorf("block %s lies in %d loops, more than %d", m.BlockName(b), len(around), maxNesting)
		}
		around = append(around, open{first, end, first, 0})
	}
	for f := range m.Functions.Len() {
		if lo, hi := m.Functions.FirstBlock.At(f), m.Functions.EndBlock.At(f); lo > hi || int(hi) > blocks {
			return fmt.Errorf("function %s spans blocks %d to %d of %d", m.FunctionName(f), lo, hi, blocks)
		}
	}
	return nil
}

// checkTables tells whether the columns of each small table have one length,
// and lanes and queues values that systems can use as indexes.
func (m *Module) checkTables() error {
	operands := m.Operands.Columns() // offsets, a column a row, steps, counts
	for _, t := range [][]ecs.AnyColumn{m.Locations.Columns(), m.Blocks.Columns(), m.Functions.Columns(), m.Lanes.Columns(), m.Queues.Columns(),
		m.Packets.Columns(), m.Windows.Columns(), m.SemUpdates.Columns(), m.Edges.Columns()[2:], m.Syncs.Columns()[1:], operands[1 : len(operands)-2],
		operands[len(operands)-2:]} {
		for _, c := range t[1:] {
			if c.Len() != t[0].Len() {
				return fmt.Errorf("column %s has %d rows, %s has %d", c.Name(), c.Len(), t[0].Name(), t[0].Len())
			}
		}
	}
	if m.Lanes.Len() > math.MaxUint16 {
		return fmt.Errorf("%d lanes, more than %d", m.Lanes.Len(), math.MaxUint16)
	}
	for l, e := range m.Lanes.Engine.Slice() {
		if e >= NumEngines {
			return fmt.Errorf("lane %s has engine %d of %d", m.LaneName(uint16(l)), e, NumEngines)
		}
	}
	for q, e := range m.Queues.Engine.Slice() {
		if e >= NumEngines {
			return fmt.Errorf("queue %s has engine %d of %d", m.Symbols.String(m.Queues.Name.At(q)), e, NumEngines)
		}
	}
	n := m.Instr.Len()
	for e, k := range m.Edges.Other.Kind.Slice() {
		from, to := m.Edges.Other.From.At(e), m.Edges.Other.To.At(e)
		if k >= NumEdgeKinds || int(from) >= n || int(to) >= n {
			return fmt.Errorf("edge %d outside the placement goes from row %d to %d of %d with kind %d", e, from, to, n, k)
		}
	}
	return nil
}

// checkRagged tells whether the offsets of the tables that have some rows
// for each instruction cover them.
func (m *Module) checkRagged(n int) error {
	if off := m.Edges.Preds.Offsets(); len(off) > 0 || m.Edges.Preds.Len() > 0 {
		if len(off) != n+1 || off[0] != 0 || int(off[n]) != m.Edges.Preds.Len() {
			return fmt.Errorf("edges: offsets do not cover %d rows and %d edges", n, m.Edges.Preds.Len())
		}
	}
	for _, t := range []struct {
		name string
		off  []uint32
		rows int
	}{{"operands", m.Operands.Offsets.Slice(), m.Operands.Len()}, {"syncs", m.Syncs.Offsets.Slice(), m.Syncs.Op.Len()}} {
		if len(t.off) == 0 {
			continue
		}
		if len(t.off) > n+1 || t.off[0] != 0 || int(t.off[len(t.off)-1]) > t.rows {
			return fmt.Errorf("%s: offsets do not cover %d instructions and %d rows", t.name, n, t.rows)
		}
		for i := range t.off[1:] {
			if t.off[i] > t.off[i+1] {
				return fmt.Errorf("%s: those of instruction %s end before they start", t.name, m.InstrName(InstrID(i)))
			}
		}
	}
	return nil
}

// checkOperands checks operand rows lo to hi.
func (m *Module) checkOperands(lo, hi int) error {
	t := &m.Operands
	locations, pairs := m.Locations.Len(), t.Step.Len()
	dims, num, where := t.Dims.Slice(), t.NumDims.Slice(), t.Where.Slice()
	for r := lo; r < hi; r++ {
		if int(dims[r])+int(num[r]) > pairs {
			return fmt.Errorf("operand %d has dimensions %d to %d of %d", r, dims[r], int(dims[r])+int(num[r]), pairs)
		}
		if int(where[r]) > locations {
			return fmt.Errorf("operand %d is in location %d of %d", r, where[r], locations)
		}
	}
	return nil
}
