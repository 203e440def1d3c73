package profile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"perfsim/ecs/proptest"
)

// edges makes the offsets and predecessors of lists.
func edges(preds [][]uint32) (off, flat []uint32) {
	off = []uint32{0}
	for _, p := range preds {
		flat = append(flat, p...)
		off = append(off, uint32(len(flat)))
	}
	return off, flat
}

func TestProgramOrder(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  []ordering
		preds [][]uint32
		want  []uint32
		notes orderNotes
	}{
		{"by pc, not by time", []ordering{{pc: 3, start: 1}, {pc: 1, start: 9}, {pc: 2, start: 5}}, [][]uint32{{}, {}, {}}, []uint32{1, 2, 0}, orderNotes{}},
		{"strict mode last", []ordering{{pc: 1, strict: true}, {pc: 2, strict: true}, {pc: 5}, {pc: 6}}, [][]uint32{{}, {}, {}, {}}, []uint32{2, 3, 0, 1}, orderNotes{}},
		// Levels: row 0 is 0, row 1 is 1, row 2 (engine 1) needs row 1: 2, row 3 follows it: 3.
		{"merged by level", []ordering{{pc: 1}, {pc: 2}, {group: 1, pc: 1}, {group: 1, pc: 2}, {pc: 3}}, [][]uint32{{}, {}, {1}, {}, {}}, []uint32{0, 1, 4, 2, 3}, orderNotes{}},
		// Rows 0 and 1 are in pc order, but 0 needs 2 of the other engine, which needs 1.
		{"out of turn", []ordering{{pc: 1}, {pc: 2}, {group: 1, pc: 1}}, [][]uint32{{2}, {}, {1}}, []uint32{1, 2, 0}, orderNotes{relaxed: 1}},
		{"no pc", []ordering{{start: 7}, {start: 3}, {pc: 9, start: 5}}, [][]uint32{{}, {}, {}}, []uint32{1, 2, 0}, orderNotes{measured: 3}},
		{"repeats without a branch", []ordering{{pc: 1, start: 1}, {pc: 2, start: 2}, {pc: 1, start: 3}, {pc: 2, start: 4}}, [][]uint32{{}, {}, {}, {}},
			[]uint32{0, 1, 2, 3}, orderNotes{measured: 4}},
		// pc 1, then three times the body 2..3 with the branch at 3, then 4. The
		// second instance of pc 2 shows an earlier time than it ran.
		{"loop", []ordering{{pc: 1, start: 0}, {pc: 2, start: 10}, {pc: 3, start: 20, branch: -1}, {pc: 2, start: 21}, {pc: 3, start: 40, branch: -1},
			{pc: 2, start: 41}, {pc: 3, start: 60, branch: -1}, {pc: 4, start: 61}}, [][]uint32{{}, {}, {}, {}, {}, {}, {}, {}},
			[]uint32{0, 1, 2, 3, 4, 5, 6, 7}, orderNotes{unrolled: 8}},
		// A branch over pc 3 is taken in the first iteration only.
		{"branch in a loop", []ordering{{pc: 2, start: 1, branch: 2}, {pc: 4, start: 2, branch: -2}, {pc: 2, start: 3, branch: 2}, {pc: 3, start: 4}, {pc: 4, start: 5, branch: -2}},
			[][]uint32{{}, {}, {}, {}, {}}, []uint32{0, 1, 2, 3, 4}, orderNotes{unrolled: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			off, flat := edges(c.preds)
			got, notes, cycle := programOrder(c.rows, off, flat)
			if d := cmp.Diff(c.want, got); d != "" || notes != c.notes || cycle != nil {
				t.Errorf("notes %+v, cycle %v, order:\n%s", notes, cycle, d)
			}
		})
	}
}

func TestProgramOrderCycle(t *testing.T) {
	// Row 3 waits for the cycle 0, 1, 2 without being on it.
	off, flat := edges([][]uint32{{2}, {0}, {1}, {0}})
	_, _, cycle := programOrder([]ordering{{pc: 1}, {pc: 2}, {pc: 3}, {pc: 4}}, off, flat)
	slices.Sort(cycle)
	if d := cmp.Diff([]uint32{0, 1, 2}, cycle); d != "" {
		t.Error(d)
	}
}

// slowOrder is the documented rule, straight: levels by repeated relaxation
// over all constraints, then a sort. It holds where order and dependencies
// agree and no program counter repeats.
func slowOrder(rows []ordering, preds [][]uint32) []uint32 {
	n := len(rows)
	key := func(i int) [3]uint32 {
		strict := uint32(0)
		if rows[i].strict {
			strict = 1
		}
		return [3]uint32{rows[i].group, strict, rows[i].pc}
	}
	level := make([]int, n)
	for range n {
		for i := range n {
			for j := range n {
				if rows[i].group == rows[j].group && cmpKey(key(j), key(i)) < 0 {
					level[i] = max(level[i], level[j]+1)
				}
			}
			for _, p := range preds[i] {
				level[i] = max(level[i], level[p]+1)
			}
		}
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	slices.SortFunc(out, func(a, b uint32) int {
		if level[a] != level[b] {
			return level[a] - level[b]
		}
		return cmpKey(key(int(a)), key(int(b)))
	})
	return out
}

func cmpKey(a, b [3]uint32) int { return slices.Compare(a[:], b[:]) }

// TestProgramOrderRandom compares with the slow rule where program order and
// dependencies agree, and otherwise asks that producers come first.
func TestProgramOrderRandom(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "n")
		agree := rapid.Bool().Draw(t, "agree")
		rows := make([]ordering, n)
		preds := make([][]uint32, n)
		// Rows in an order of execution; program counters follow it where they
		// agree. File order is then shuffled.
		for i := range rows {
			rows[i] = ordering{group: uint32(rapid.IntRange(0, 2).Draw(t, "group")), start: rapid.Uint64Range(0, 5).Draw(t, "start"), pc: uint32(i + 1)}
			if !agree {
				rows[i].pc = uint32(rapid.IntRange(1, n).Draw(t, "pc"))
				rows[i].branch = int32(rapid.IntRange(-n, 2).Draw(t, "branch"))
				rows[i].always = rapid.Bool().Draw(t, "always")
			}
			for j := range i {
				if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
					preds[i] = append(preds[i], uint32(j))
				}
			}
		}
		order := rapid.Permutation(indices(n)).Draw(t, "file order")
		fileRows, filePreds := make([]ordering, n), make([][]uint32, n)
		for i, k := range order {
			fileRows[k] = rows[i]
			for _, p := range preds[i] {
				filePreds[k] = append(filePreds[k], uint32(order[p]))
			}
		}
		off, flat := edges(filePreds)
		got, notes, cycle := programOrder(fileRows, off, flat)
		if cycle != nil {
			t.Fatalf("a cycle: %v", cycle)
		}
		pos := make([]int, n)
		for i := range pos {
			pos[i] = -1
		}
		for k, r := range got {
			pos[r] = k
		}
		for i := range n {
			for _, p := range filePreds[i] {
				if pos[p] < 0 || pos[p] >= pos[i] {
					t.Fatalf("row %d at %d does not come before its consumer %d at %d: %v", p, pos[p], i, pos[i], got)
				}
			}
		}
		if agree {
			if want := slowOrder(fileRows, filePreds); !slices.Equal(got, want) || notes != (orderNotes{}) {
				t.Fatalf("order %v, want %v, notes %+v", got, want, notes)
			}
		}
	})
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// TestUnrollNested walks two nested loops with a sequencer that runs ahead:
// the time of some instances is earlier than that of instances before them.
func TestUnrollNested(t *testing.T) {
	var rows []ordering
	var want []string
	time := uint64(0)
	emit := func(pc uint32, branch int32, early uint64) {
		time += 100
		rows = append(rows, ordering{pc: pc, start: time - early, branch: branch})
		want = append(want, fmt.Sprint(len(rows)-1))
	}
	emit(1, 0, 0)
	for range 3 { // pc 2..6
		emit(2, 0, 0)
		for range 4 { // pc 3..5
			emit(3, 0, 0)
			emit(4, 0, 150) // shown before pc 3
			emit(5, -2, 0)
		}
		emit(6, -4, 0)
	}
	emit(7, 0, 0)
	off, flat := edges(make([][]uint32, len(rows)))
	got, notes, _ := programOrder(rows, off, flat)
	var text []string
	for _, r := range got {
		text = append(text, fmt.Sprint(r))
	}
	if d := cmp.Diff(want, text); d != "" || notes.unrolled != len(rows) {
		t.Errorf("notes %+v, order:\n%s", notes, d)
	}
}
