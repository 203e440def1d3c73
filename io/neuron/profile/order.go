package profile

import (
	"cmp"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Program order.
//
// An engine executes its instructions one after the other, so within one
// (core, engine) the order is that of the program counter; Tensor and
// TensorMatrix are one engine, the PE. Timestamps do not order rows: the
// sequencer runs ahead of the data path, and a semaphore instruction shows an
// earlier time than matmuls before it. Three refinements:
//
//   - the runtime's closing SET_ORDERING_MODE strict has a low program counter
//     but is reached by a branch backwards at the end, so it comes last;
//   - where a program counter repeats (a loop) the branches are followed, see
//     unroll;
//   - rows without a program counter make the engine fall back to measured
//     order.
//
// Between engines only dependencies order. The rows of all engines are merged
// by level: the level of an instruction is one more than the largest among
// the instruction before it on its engine and its predecessors, that is, when
// it would start if everything took one step. Rows are sorted by (level,
// core, engine, program order). Every producer has a lower level than its
// consumers, so it comes first. Where program order and dependencies
// contradict each other, the dependencies win: the earliest instruction that
// waits only for its turn is taken out of turn.

// ordering has the properties of an instruction that programOrder needs.
type ordering struct {
	start  uint64
	group  uint32 // core × NumEngines + engine
	pc     uint32 // plus one, 0 for none
	branch int32
	always bool
	strict bool
}

// orderNotes counts the remarks of programOrder.
type orderNotes struct {
	unrolled int // instructions of engines whose program counter repeats
	measured int // instructions in measured order
	relaxed  int // instructions taken out of turn
}

// programOrder returns the rows in program order. The predecessors of row r
// are preds[predOff[r]:predOff[r+1]]. cyclic holds rows that form a
// dependency cycle, nil where there is none.
func programOrder(rows []ordering, predOff, preds []uint32) (perm []uint32, notes orderNotes, cyclic []uint32) {
	order := engineOrder(rows, &notes)
	v := newLeveling(rows, order, predOff, preds)
	for v.drain(); v.count < len(rows); v.drain() {
		if !v.relax() {
			first := slices.Index(v.done, false)
			return nil, notes, cycleFrom(uint32(first), v.done, predOff, preds)
		}
		notes.relaxed++
	}
	return v.byLevel(), notes, nil
}

// noRow is the row behind the last one of an engine.
const noRow = ^uint32(0)

// leveling gives rows their levels, from those that wait for nothing on.
type leveling struct {
	order   []uint32 // rows by engine, each in program order
	rank    []uint32 // of a row in order
	succOff []uint32 // the successors of r are succ[succOff[r]:succOff[r+1]]
	succ    []uint32
	next    []uint32 // row behind a row on its engine, noRow for none
	turn    []bool   // whether a row waits for the one before it on its engine
	waits   []uint32 // predecessors that a row still waits for
	level   []uint32
	done    []bool
	count   int // of the rows that are done
	ready   []uint32

	relaxing  bool
	outOfTurn ecs.Heap[uint32] // ranks of rows that wait for their turn only
}

func newLeveling(rows []ordering, order, predOff, preds []uint32) *leveling {
	n := len(rows)
	v := &leveling{order: order, succOff: make([]uint32, n+1), succ: make([]uint32, len(preds)), next: make([]uint32, n), turn: make([]bool, n),
		waits: make([]uint32, n), level: make([]uint32, n), done: make([]bool, n), outOfTurn: ecs.Heap[uint32]{Less: func(a, b uint32) bool { return a < b }}}
	for _, p := range preds {
		v.succOff[p+1]++
	}
	for i := range n {
		v.succOff[i+1] += v.succOff[i]
	}
	at := slices.Clone(v.succOff[:n])
	for r := range n {
		for _, p := range preds[predOff[r]:predOff[r+1]] {
			v.succ[at[p]] = uint32(r)
			at[p]++
		}
	}
	v.rank = at // its memory is free again
	for k, r := range order {
		v.rank[r] = uint32(k)
		v.next[r] = noRow
		if k+1 < n && rows[order[k+1]].group == rows[r].group {
			v.next[r] = order[k+1]
			v.turn[order[k+1]] = true
		}
	}
	for r := range n {
		if v.waits[r] = predOff[r+1] - predOff[r]; v.waits[r] == 0 && !v.turn[r] {
			v.ready = append(v.ready, uint32(r))
		}
	}
	return v
}

// drain takes rows until none is ready.
func (v *leveling) drain() {
	for len(v.ready) > 0 {
		r := v.ready[len(v.ready)-1]
		v.ready = v.ready[:len(v.ready)-1]
		if v.done[r] {
			continue
		}
		v.done[r] = true
		v.count++
		l := v.level[r] + 1
		if q := v.next[r]; q != noRow && v.turn[q] {
			v.turn[q] = false
			v.level[q] = max(v.level[q], l)
			if v.waits[q] == 0 {
				v.ready = append(v.ready, q)
			}
		}
		for _, q := range v.succ[v.succOff[r]:v.succOff[r+1]] {
			v.waits[q]--
			v.level[q] = max(v.level[q], l)
			switch {
			case v.waits[q] > 0:
			case !v.turn[q]:
				v.ready = append(v.ready, q)
			case v.relaxing:
				v.outOfTurn.Push(v.rank[q])
			}
		}
	}
}

// relax makes the earliest row that waits for its turn only ready, and reports
// whether there is one.
func (v *leveling) relax() bool {
	if !v.relaxing {
		v.relaxing = true
		for _, r := range v.order {
			if !v.done[r] && v.waits[r] == 0 {
				v.outOfTurn.Push(v.rank[r])
			}
		}
	}
	for v.outOfTurn.Len() > 0 {
		r := v.order[v.outOfTurn.Pop()]
		if !v.done[r] {
			v.turn[r] = false
			v.ready = append(v.ready, r)
			return true
		}
	}
	return false
}

// byLevel returns the rows by level, those of one level in engine order.
func (v *leveling) byLevel() []uint32 {
	top := uint32(0)
	for _, l := range v.level {
		top = max(top, l)
	}
	start := make([]uint32, top+2)
	for _, l := range v.level {
		start[l+1]++
	}
	for i := range len(start) - 1 {
		start[i+1] += start[i]
	}
	perm := make([]uint32, len(v.order))
	for _, r := range v.order {
		l := v.level[r]
		perm[start[l]] = r
		start[l]++
	}
	return perm
}

// cycleFrom follows unfinished predecessors from row r until one repeats.
func cycleFrom(r uint32, done []bool, predOff, preds []uint32) []uint32 {
	seen := map[uint32]int{}
	var path []uint32
	for {
		if i, ok := seen[r]; ok {
			return path[i:]
		}
		seen[r] = len(path)
		path = append(path, r)
		for _, p := range preds[predOff[r]:predOff[r+1]] {
			if !done[p] {
				r = p
				break
			}
		}
	}
}

// engineOrder returns the rows engine by engine, each in program order.
func engineOrder(rows []ordering, notes *orderNotes) []uint32 {
	order := make([]uint32, len(rows))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := &rows[a], &rows[b]
		return cmp.Or(cmp.Compare(x.group, y.group), compareBool(x.strict, y.strict), cmp.Compare(x.pc, y.pc),
			cmp.Compare(x.start, y.start), cmp.Compare(a, b))
	})
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && rows[order[hi]].group == rows[order[lo]].group {
			hi++
		}
		one := order[lo:hi]
		for len(one) > 0 && rows[one[len(one)-1]].strict {
			one = one[:len(one)-1]
		}
		engineRows(rows, one, notes)
		lo = hi
	}
	return order
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// engineRows puts the rows of one engine, sorted by program counter, into
// program order.
func engineRows(rows []ordering, one []uint32, notes *orderNotes) {
	repeats, loops := false, false
	for k, r := range one {
		if rows[r].pc == 0 {
			measuredOrder(rows, one)
			notes.measured += len(one)
			return
		}
		repeats = repeats || k > 0 && rows[one[k-1]].pc == rows[r].pc
		loops = loops || rows[r].branch < 0
	}
	switch {
	case !repeats:
	case !loops:
		measuredOrder(rows, one)
		notes.measured += len(one)
	default:
		unroll(rows, one)
		notes.unrolled += len(one)
	}
}

func measuredOrder(rows []ordering, one []uint32) {
	slices.SortFunc(one, func(a, b uint32) int {
		x, y := &rows[a], &rows[b]
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(x.pc, y.pc), cmp.Compare(a, b))
	})
}

// unroll orders the rows of an engine whose program counter repeats by
// following its branches: each row takes the earliest instance, in measured
// time, of the next program counter. At a branch that may go either way the
// side whose next instance comes first in measured time was taken: the other
// one runs a loop body later.
func unroll(rows []ordering, one []uint32) {
	const maxPC = ^uint32(0)
	// Instances of the k-th distinct program counter are byPC[first[k]:first[k+1]].
	byPC := slices.Clone(one)
	var first, pcs []uint32
	for k, r := range byPC {
		if k == 0 || rows[byPC[k-1]].pc != rows[r].pc {
			first = append(first, uint32(k))
			pcs = append(pcs, rows[r].pc)
		}
	}
	n := len(pcs)
	used := slices.Clone(first)
	first = append(first, uint32(len(byPC)))
	// alive[k] leads to the first program counter at or behind k that has
	// instances left; n stands for none.
	alive := make([]int, n+1)
	for k := range alive {
		alive[k] = k
	}
	find := func(k int) int {
		root := k
		for alive[root] != root {
			root = alive[root]
		}
		for alive[k] != root {
			alive[k], k = root, alive[k]
		}
		return root
	}
	byTime := slices.Clone(one)
	measuredOrder(rows, byTime)
	emitted := make(map[uint32]bool, len(one))

	out := one[:0]
	k := 0 // the lowest program counter starts
	for oldest := 0; len(out) < len(byPC); {
		if k == n {
			// Nothing ahead: go on with the oldest instance left.
			for emitted[byTime[oldest]] {
				oldest++
			}
			k, _ = slices.BinarySearch(pcs, rows[byTime[oldest]].pc)
		}
		r := byPC[used[k]]
		used[k]++
		if used[k] == first[k+1] {
			alive[k] = k + 1
		}
		emitted[r] = true
		out = append(out, r)

		ahead := find(k + 1)
		if b := rows[r].branch; b != 0 {
			target := int64(rows[r].pc) + int64(b)
			t := n
			if target > 0 && target < int64(maxPC) {
				t, _ = slices.BinarySearch(pcs, uint32(target))
				t = find(t)
			}
			switch {
			case t == n:
			case ahead == n || rows[r].always:
				ahead = t
			case rows[byPC[used[t]]].start < rows[byPC[used[ahead]]].start:
				ahead = t
			}
		}
		k = ahead
	}
}

// group numbers the engine of a core.
func group(core uint32, engine components.Engine) uint32 {
	return core*uint32(components.NumEngines) + uint32(engine)
}
