package components

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"perfsim/ecs"
)

// Check is CheckJobs on one goroutine.
func (m *Module) Check() error { return m.CheckJobs(context.Background(), 1) }

// CheckJobs reports whether the tables fit together. Every system relies on
// it and no system checks again; readers call it last. Rows are checked in
// parallel, and the error is that of the lowest row whatever jobs is.
//
// After it
//   - every column has one value per row of its table, or none where it is
//     optional, and every value that indexes another table lies in it;
//   - top-level blocks cover all rows in order, loops nest, and functions
//     cover all blocks in order;
//   - the offsets of the edges have one entry per row and one more, also
//     where there are no edges, and edges point to earlier rows of the same
//     top-level block;
//   - access patterns and locations stay below 2^56 (maxReach);
//   - measured times end before 2^63 ns.
//
// Time is linear in the rows of the tables.
func (m *Module) CheckJobs(ctx context.Context, jobs int) error {
	n := m.Instr.Len()
	if err := m.checkSize(n); err != nil {
		return err
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
	if err := m.Symbols.Check(); err != nil {
		return err
	}
	if err := m.checkTables(); err != nil {
		return err
	}
	tops, err := m.checkBlocks(n, func(i int) bool { return m.Instr.Flags.At(i)&FlagLoop != 0 })
	if err != nil {
		return err
	}
	if err := m.checkRagged(n); err != nil {
		return err
	}
	if err := rowsInParallel(ctx, jobs, n, func(lo, hi int) error { return m.checkRows(lo, hi, tops) }); err != nil {
		return err
	}
	return rowsInParallel(ctx, jobs, m.Operands.Len(), m.checkOperands)
}

func (m *Module) checkSize(n int) error {
	if n == 0 {
		return fmt.Errorf("module %q has no instructions", m.Name)
	}
	if n >= ecs.MaxRows {
		return fmt.Errorf("module %q has %d instructions, more than %d", m.Name, n, ecs.MaxRows-1)
	}
	return nil
}

// rowsInParallel calls check for ranges that make up rows 0 to n and returns
// the error of the lowest range that has one.
func rowsInParallel(ctx context.Context, jobs, n int, check func(lo, hi int) error) error {
	const size = 1 << 18
	errs := make([]error, (n+size-1)/size)
	g, ctx := ecs.NewGroup(ctx, jobs)
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

// checkRows checks rows lo to hi of the instruction table and their edges;
// tops are the top-level blocks.
func (m *Module) checkRows(lo, hi int, tops []uint32) error {
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
	for i, d := range in.DType.View(lo, hi) {
		if d >= NumDTypes && d != NoDType {
			return fmt.Errorf("instruction %s has element type %d of %d", m.InstrName(InstrID(lo+i)), d, NumDTypes)
		}
	}
	if err := m.checkMeasured(lo, hi); err != nil {
		return err
	}
	return m.checkEdges(lo, hi, tops)
}

// checkMeasured reports whether the measured times of rows lo to hi end
// before 2^63 ns, so that sums of a start and a duration do not overflow.
func (m *Module) checkMeasured(lo, hi int) error {
	if m.Instr.MeasuredStart.Len() == 0 {
		return nil
	}
	dur := m.Instr.MeasuredDur.View(lo, hi)
	for i, s := range m.Instr.MeasuredStart.View(lo, hi) {
		if s+uint64(dur[i]) > math.MaxInt64 || s > math.MaxInt64 {
			return fmt.Errorf("instruction %s starts at %d ns and takes %d ns, beyond 2^63", m.InstrName(InstrID(lo+i)), s, dur[i])
		}
	}
	return nil
}

// checkEdges reports whether the edges of rows lo to hi point to earlier rows
// of the same top-level block: blocks are placed in parallel.
func (m *Module) checkEdges(lo, hi int, tops []uint32) error {
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	for i := lo; i < hi; i++ {
		if off[i] > off[i+1] || int(off[i+1]) > len(words) {
			return fmt.Errorf("instruction %s: its edges %d to %d are not a part of %d", m.InstrName(InstrID(i)), off[i], off[i+1], len(words))
		}
	}
	if len(words) == 0 {
		return nil
	}
	// Rows lie in top-level blocks without gaps: the block of row lo is the
	// last that starts at or before it.
	base := int(m.Base)
	at, _ := slices.BinarySearchFunc(tops, base+lo, func(b uint32, row int) int {
		if int(m.Blocks.End.At(int(b))) <= row {
			return -1
		}
		return 1
	})
	for i := lo; i < hi; at++ {
		first, end := m.Blocks.First.At(int(tops[at])), min(int(m.Blocks.End.At(int(tops[at])))-base, hi)
		if end <= i {
			continue
		}
		if bad := edgesInside(off, words, i, end, first, m.Base); bad < end {
			return m.edgeError(bad, int(first))
		}
		i = end
	}
	return nil
}

// edgesInside returns the first of rows lo to hi with an edge that does not
// point to a row from first to before its own, or hi; what an edge points to is
// counted from base rows before row 0. The first four edges of
// a row are looked at without a branch, because how many a row has is hard to
// foresee. Offsets must ascend and lie within words.
func edgesInside(off, words []uint32, lo, hi int, first, base uint32) int {
	for i := lo; i < hi; i++ {
		from, n, row := off[i], off[i+1]-off[i], uint32(i)+base
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
		to := w & ecs.TargetMask
		name := m.InstrName(InstrID(to - m.Base))
		if to >= uint32(i)+m.Base {
			return fmt.Errorf("instruction %s depends on %s, which is not before it in program order", m.InstrName(InstrID(i)), name)
		}
		if int(to) < first {
			return fmt.Errorf("instruction %s depends on %s, which is in another block", m.InstrName(InstrID(i)), name)
		}
	}
	return nil
}

// maxBlockLanes bounds top-level blocks times lanes: every block is placed on
// lanes of its own. A million blocks of one core make 12 million pairs.
const maxBlockLanes = 1 << 24

// maxNesting bounds how deep loops may lie in one another; the placement
// descends into them. Compilers' deepest are below twenty.
const maxNesting = 1000

// checkBlocks reports whether top-level blocks cover the rows and functions
// cover the blocks, both in order, and loops are properly nested: a body
// follows the loop it belongs to, and the next body of the same loop follows
// it. It returns the top-level blocks.
//
// loop reports whether a row is a loop.
func (m *Module) checkBlocks(n int, loop func(row int) bool) ([]uint32, error) {
	t := &m.Blocks
	blocks := t.Len()
	if blocks == 0 {
		return nil, fmt.Errorf("module %q has no blocks", m.Name)
	}
	var tops []uint32
	type open struct{ first, end, next, loop int } // a block around: its rows, where its next body may start, the loop of its last body
	var around []open
	top := 0
	for b := range blocks {
		first, end, parent := int(t.First.At(b)), int(t.End.At(b)), int(t.Parent.At(b))
		if first > end || end > n {
			return nil, fmt.Errorf("block %s spans rows %d to %d of %d", m.BlockName(b), first, end, n)
		}
		if int(t.Function.At(b)) >= m.Functions.Len() {
			return nil, fmt.Errorf("block %s belongs to function %d of %d", m.BlockName(b), t.Function.At(b), m.Functions.Len())
		}
		if parent == 0 {
			if first < top {
				return nil, fmt.Errorf("block %s starts at row %d, inside the block before it, which ends at %d", m.BlockName(b), first, top)
			}
			if first > top {
				return nil, fmt.Errorf("rows %d to %d are in no block: block %s starts behind them", top, first, m.BlockName(b))
			}
			top = end
			tops = append(tops, uint32(b))
			around = append(around[:0], open{first, end, first, 0})
			continue
		}
		// Leave the blocks that do not hold the loop of this one.
		for len(around) > 0 && (parent-1 < around[len(around)-1].first || parent-1 >= around[len(around)-1].end) {
			around = around[:len(around)-1]
		}
		if len(around) == 0 {
			return nil, fmt.Errorf("block %s belongs to the loop at row %d, which is in no block before it", m.BlockName(b), parent-1)
		}
		in := &around[len(around)-1]
		follows := first == parent && first > in.next || first == in.next && parent == in.loop
		if !follows || end > in.end || !loop(parent-1) {
			return nil, fmt.Errorf("block %s (rows %d to %d) is not the body of a loop at row %d in the block around it, which ends at %d",
				m.BlockName(b), first, end, parent-1, in.end)
		}
		in.next, in.loop = end, parent
		if len(around) == maxNesting {
			return nil, fmt.Errorf("block %s lies in %d loops, more than %d", m.BlockName(b), len(around), maxNesting)
		}
		around = append(around, open{first, end, first, 0})
	}
	if lanes := m.Lanes.Len(); len(tops)*lanes > maxBlockLanes {
		return nil, fmt.Errorf("%d top-level blocks on %d lanes: their product is more than %d", len(tops), lanes, maxBlockLanes)
	}
	if top != n {
		return nil, fmt.Errorf("rows %d to %d are in no block", top, n)
	}
	return tops, m.checkFunctions(blocks)
}

// checkFunctions reports whether the functions cover the blocks in order and
// every block names the function that holds it.
func (m *Module) checkFunctions(blocks int) error {
	at := 0
	for f := range m.Functions.Len() {
		lo, hi := int(m.Functions.FirstBlock.At(f)), int(m.Functions.EndBlock.At(f))
		if lo > hi || hi > blocks {
			return fmt.Errorf("function %s spans blocks %d to %d of %d", m.FunctionName(f), lo, hi, blocks)
		}
		if lo != at {
			return fmt.Errorf("function %s starts at block %d, the function before it ends at %d", m.FunctionName(f), lo, at)
		}
		for b := lo; b < hi; b++ {
			if of := int(m.Blocks.Function.At(b)); of != f {
				return fmt.Errorf("block %s belongs to function %d and lies in function %d", m.BlockName(b), of, f)
			}
		}
		at = hi
	}
	if at != blocks {
		return fmt.Errorf("blocks %d to %d are in no function", at, blocks)
	}
	return nil
}

// checkTables reports whether the columns of each small table have one length,
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
	for l, k := range m.Lanes.Kind.Slice() {
		if k > LaneOperator {
			return fmt.Errorf("lane %s has kind %d of %d", m.LaneName(uint16(l)), k, LaneOperator+1)
		}
	}
	for l, a := range m.Locations.Addr.Slice() {
		if n := m.Locations.Bytes.At(l); a > maxReach || n > maxReach {
			return fmt.Errorf("location %s has %d bytes at address %d, more than 2^56", m.Symbols.String(m.Locations.Name.At(l)), n, a)
		}
	}
	for i, o := range m.Syncs.Op.Slice() {
		if o > SetTo {
			return fmt.Errorf("semaphore operation %d has kind %d of %d", i, o, SetTo+1)
		}
	}
	for i, q := range m.Packets.Queue.Slice() {
		if int(q) > m.Queues.Len() {
			return fmt.Errorf("packet %d is on queue %d of %d", i, q, m.Queues.Len())
		}
	}
	for i, t := range m.Packets.Start.Slice() {
		if t > math.MaxInt64-math.MaxUint32 {
			return fmt.Errorf("packet %d starts at %d ns, beyond 2^63", i, t)
		}
	}
	for i, t := range m.Windows.Start.Slice() {
		if d := m.Windows.Dur.At(i); t > math.MaxInt64 || d > math.MaxInt64-t {
			return fmt.Errorf("clock window %d starts at %d ns and takes %d ns, beyond 2^63", i, t, d)
		}
	}
	for i, t := range m.SemUpdates.Time.Slice() {
		if t > math.MaxInt64 {
			return fmt.Errorf("semaphore change %d is at %d ns, beyond 2^63", i, t)
		}
	}
	n := m.Instr.Len()
	for e, k := range m.Edges.Other.Kind.Slice() {
		from, to := m.Edges.Other.From.At(e), m.Edges.Other.To.At(e)
		if k >= NumEdgeKinds || m.Edges.Other.Scope.At(e) > ScopeLater || int(from) >= n || int(to) >= n {
			return fmt.Errorf("edge %d outside the placement goes from row %d to %d of %d with kind %d", e, from, to, n, k)
		}
	}
	return nil
}

// checkRagged reports whether the offsets of the tables that have some rows
// for each instruction ascend and cover them. A module without edges gets the
// offsets of empty rows.
func (m *Module) checkRagged(n int) error {
	if len(m.Edges.Preds.Offsets()) == 0 && m.Edges.Preds.Len() == 0 {
		m.Edges.Preds.SetEmpty(n)
	}
	if off := m.Edges.Preds.Offsets(); len(off) != n+1 || off[0] != 0 || int(off[n]) != m.Edges.Preds.Len() {
		return fmt.Errorf("edges: offsets do not cover %d rows and %d edges", n, m.Edges.Preds.Len())
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
		for i := range len(t.off) - 1 {
			if t.off[i] > t.off[i+1] {
				return fmt.Errorf("%s: those of instruction %s end before they start", t.name, m.InstrName(InstrID(i)))
			}
		}
	}
	return nil
}

// maxReach bounds the bytes that an access pattern may span and the addresses
// of memory: far above any memory, and sums of a few stay below 2^63.
const maxReach = 1 << 56

// checkOperands checks operand rows lo to hi.
func (m *Module) checkOperands(lo, hi int) error {
	t := &m.Operands
	locations, pairs := m.Locations.Len(), t.Step.Len()
	dims, num, where, addr := t.Dims.Slice(), t.NumDims.Slice(), t.Where.Slice(), t.Address.Slice()
	steps, counts := t.Step.Slice(), t.Count.Slice()
	for r := lo; r < hi; r++ {
		from := int(dims[r])
		to := from + int(num[r])
		if to > pairs {
			return fmt.Errorf("operand %d has dimensions %d to %d of %d", r, from, to, pairs)
		}
		if int(where[r]) > locations {
			return fmt.Errorf("operand %d is in location %d of %d", r, where[r], locations)
		}
		if !withinReach(addr[r], steps[from:to], counts[from:to]) {
			return fmt.Errorf("operand %d%s: its pattern at address %d, steps %d, counts %d spans more than 2^56 elements", r, m.operandOf(r), addr[r],
				steps[from:min(to, from+8)], counts[from:min(to, from+8)])
		}
	}
	return nil
}

// withinReach reports whether an access pattern stays within maxReach
// elements of address 0.
func withinReach(addr uint64, steps []int64, counts []uint64) bool {
	reach := addr
	for i, c := range counts {
		s := uint64(steps[i])
		if steps[i] < 0 {
			s = -s
		}
		if c > maxReach || s > maxReach {
			return false
		}
		if c <= 1 {
			continue
		}
		over, d := bits.Mul64(c-1, s)
		if over > 0 || d > maxReach || reach > maxReach {
			return false
		}
		reach += d
	}
	return reach <= maxReach
}

// operandOf returns " of instruction NAME" for operand r, or nothing where no
// instruction has it.
func (m *Module) operandOf(r int) string {
	off := m.Operands.Offsets.Slice()
	i, found := slices.BinarySearch(off, uint32(r))
	if found { // rows without operands share an offset: the last of them has r
		for i+1 < len(off) && off[i+1] == uint32(r) {
			i++
		}
	} else {
		i--
	}
	if i < 0 || i >= m.Instr.Len() {
		return ""
	}
	return " of instruction " + m.InstrName(InstrID(i))
}
