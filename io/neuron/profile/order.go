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
	n := len(rows)
	order := engineOrder(rows, &notes)

	// Successors, and how many predecessors each row still waits for.
	succOff := make([]uint32, n+1)
	for _, p := range preds {
		succOff[p+1]++
	}
	for i := range n {
		succOff[i+1] += succOff[i]
	}
	succ := make([]uint32, len(preds))
	at := slices.Clone(succOff[:n])
	for r := range n {
		for _, p := range preds[predOff[r]:predOff[r+1]] {
			succ[at[p]] = uint32(r)
			at[p]++
		}
	}
	const none = ^uint32(0)
	next := make([]uint32, n) // on the engine
	rank := at                // its memory is free again
	turn := make([]bool, n)   // waits for the instruction before it
	for k, r := range order {
		rank[r] = uint32(k)
		next[r] = none
		if k+1 < n && rows[order[k+1]].group == rows[r].group {
			next[r] = order[k+1]
			turn[order[k+1]] = true
		}
	}

	level := make([]uint32, n)
	waits := make([]uint32, n)
	ready := make([]uint32, 0, n)
	for r := range n {
		waits[r] = predOff[r+1] - predOff[r]
		if waits[r] == 0 && !turn[r] {
			ready = append(ready, uint32(r))
		}
	}
	done := make([]bool, n)
	count, stuckAt := 0, 0
	outOfTurn := ecs.Heap[uint32]{Less: func(a, b uint32) bool { return a < b }} // ranks
	relaxing := false
	for {
		for len(ready) > 0 {
			r := ready[len(ready)-1]
			ready = ready[:len(ready)-1]
			if done[r] {
				continue
			}
			done[r] = true
			count++
			l := level[r] + 1
			if q := next[r]; q != none && turn[q] {
				turn[q] = false
				level[q] = max(level[q], l)
				if waits[q] == 0 {
					ready = append(ready, q)
				}
			}
			for _, q := range succ[succOff[r]:succOff[r+1]] {
				waits[q]--
				level[q] = max(level[q], l)
				if waits[q] == 0 {
					if !turn[q] {
						ready = append(ready, q)
					} else if relaxing {
						outOfTurn.Push(rank[q])
					}
				}
			}
		}
		if count == n {
			break
		}
		if !relaxing {
			relaxing = true
			for _, r := range order {
				if !done[r] && waits[r] == 0 {
					outOfTurn.Push(rank[r])
				}
			}
		}
		found := false
		for outOfTurn.Len() > 0 && !found {
			r := order[outOfTurn.Pop()]
			if found = !done[r]; found {
				turn[r] = false
				ready = append(ready, r)
				notes.relaxed++
			}
		}
		if !found {
			for ; stuckAt < n && done[stuckAt]; stuckAt++ {
			}
			return nil, notes, cycleFrom(uint32(stuckAt), done, predOff, preds)
		}
	}

	// Sort by level, keeping engine order within one.
	top := uint32(0)
	for _, l := range level {
		top = max(top, l)
	}
	start := make([]uint32, top+2)
	for _, l := range level {
		start[l+1]++
	}
	for i := range top + 1 {
		start[i+1] += start[i]
	}
	perm = make([]uint32, n)
	for _, r := range order {
		l := level[r]
		perm[start[l]] = r
		start[l]++
	}
	return perm, notes, nil
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
