package timeline

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
)

// replay places a module by the plain rule (lane free, producers' ends) and
// returns the starts: a slow, obvious stand-in for the placement.
func replay(m *components.Module) []uint64 {
	free := make([]uint64, m.Lanes.Len())
	start := make([]uint64, m.Instr.Len())
	for i := range start {
		l := m.Instr.Lane.At(i)
		start[i] = free[l]
		for _, w := range m.Edges.Preds.Row(i) {
			p := w & ecs.TargetMask
			start[i] = max(start[i], start[p]+uint64(m.Instr.MeasuredDur.At(int(p))))
		}
		free[l] = start[i] + uint64(m.Instr.MeasuredDur.At(i))
	}
	return start
}

func lanes(t interface{ Fatal(...any) }, b *Builder, n int) {
	for l := range n {
		if _, err := b.Lane(fmt.Sprint("lane ", l)); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever rows do not overlap on their lanes, the replay gives their starts
// back, and every dependency that time allows is kept.
func TestMeasuredReplays(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := New("m", "kineto")
		lanes(t, b, 3)
		at := [3]uint64{}
		n := rapid.IntRange(1, 40).Draw(t, "rows")
		for i := range n {
			l := rapid.IntRange(0, 2).Draw(t, "lane")
			start := at[l] + uint64(rapid.SampledFrom([]int{0, 0, 1, 5}).Draw(t, "gap"))
			end := start + uint64(rapid.SampledFrom([]int{0, 1, 3, 5_000_000_000}).Draw(t, "dur"))
			at[l] = end
			b.Add(Row{Start: start + 1000, End: end + 1000, Lane: uint16(l), Ref: uint64(i) + 1})
		}
		kept := 0
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			c, p := rapid.IntRange(0, n-1).Draw(t, "consumer"), rapid.IntRange(0, n-1).Draw(t, "producer")
			b.Depend(c, p, components.Flow)
			if b.Rows[p].End < b.Rows[c].Start {
				kept++
			}
		}
		rows := slices.Clone(b.Rows)
		m, err := b.Measured()
		if err != nil {
			t.Fatal(err)
		}
		first := slices.MinFunc(rows, func(x, y Row) int { return int(int64(x.Start) - int64(y.Start)) }).Start
		got := replay(m)
		seen, work := 0, uint64(0)
		for i, s := range got {
			if s != m.Instr.MeasuredStart.At(i) {
				t.Fatalf("instruction %d starts at %d, recorded %d", i, s, m.Instr.MeasuredStart.At(i))
			}
			if m.OpcodeName(m.Instr.Opcode.At(i)) == OpWait {
				continue
			}
			r := rows[m.Instr.Ref.At(i)-1]
			if s == r.Start-first {
				seen++
			}
			work += uint64(m.Instr.MeasuredDur.At(i))
		}
		var want uint64
		for _, r := range rows {
			want += r.End - r.Start
		}
		if seen < n || work != want {
			t.Fatalf("%d of %d rows are there, %d of %d ns", seen, n, work, want)
		}
		declared := m.Edges.Declared[components.Flow]
		if declared < uint64(kept) {
			t.Fatalf("%d edges, at least %d are in time", declared, kept)
		}
	})
}

// By hand: b waits for a across lanes, c for its lane, d for nothing known.
func TestMeasuredWaits(t *testing.T) {
	b := New("m", "kineto")
	lanes(t, b, 2)
	a := b.Add(Row{Start: 100, End: 110, Lane: 0})
	x := b.Add(Row{Start: 110, End: 115, Lane: 1})
	b.Add(Row{Start: 115, End: 120, Lane: 1})
	b.Add(Row{Start: 150, End: 151, Lane: 0})
	b.Depend(x, a, components.Flow)
	b.Depend(a, x, components.Flow) // against time
	m, err := b.Measured()
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for i := range m.Instr.Len() {
		text = append(text, fmt.Sprintf("%s %d+%d", m.LaneName(m.Instr.Lane.At(i)), m.Instr.MeasuredStart.At(i), m.Instr.MeasuredDur.At(i)))
	}
	want := []string{"lane 0 0+10", "lane 1 10+5", "lane 1 15+5", "lane 0 (waits) 10+40", "lane 0 50+1"}
	if !slices.Equal(text, want) {
		t.Errorf("%q, want %q", text, want)
	}
	if len(m.Notes) != 2 || m.Notes[0].Code != "unexplained-wait" || m.Notes[1].Code != "contradicted-dependency" {
		t.Errorf("notes %v", m.Notes)
	}
}

// Listed gives a free lane the ready row with the lowest number, against a
// slow simulation nanosecond by nanosecond.
func TestListedOrder(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := New("m", "chakra")
		lanes(t, b, 2)
		n := rapid.IntRange(1, 20).Draw(t, "rows")
		for i := range n {
			b.Add(Row{End: uint64(rapid.IntRange(1, 4).Draw(t, "dur")), Lane: uint16(rapid.IntRange(0, 1).Draw(t, "lane")), Ref: uint64(i)})
		}
		preds := make([][]int, n)
		for range rapid.IntRange(0, 30).Draw(t, "edges") {
			c, p := rapid.IntRange(0, n-1).Draw(t, "consumer"), rapid.IntRange(0, n-1).Draw(t, "producer")
			if c > p {
				b.Depend(c, p, components.Flow)
				preds[c] = append(preds[c], p)
			}
		}
		start, end := make([]int, n), make([]int, n)
		for i := range start {
			start[i], end[i] = -1, -1
		}
		for now, left := 0, n; left > 0; now++ {
			for l := range 2 {
				busy, pick := false, -1
				for i := range n {
					if int(b.Rows[i].Lane) != l {
						continue
					}
					busy = busy || start[i] >= 0 && start[i] <= now && now < end[i]
					ready := start[i] < 0 && !slices.ContainsFunc(preds[i], func(p int) bool { return end[p] < 0 || end[p] > now })
					if pick < 0 && ready {
						pick = i
					}
				}
				if !busy && pick >= 0 {
					start[pick], end[pick] = now, now+int(b.Rows[pick].End)
					left--
				}
			}
		}
		m, err := b.Listed()
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range replay(m) {
			if ref := m.Instr.Ref.At(i); int(s) != start[ref] {
				t.Fatalf("row %d starts at %d, want %d", ref, s, start[ref])
			}
		}
	})
}

func TestCycles(t *testing.T) {
	build := func() *Builder {
		b := New("m", "chakra")
		lanes(t, b, 1)
		for range 5 {
			b.Add(Row{End: 1})
		}
		b.Depend(1, 0, components.Flow)
		b.Depend(2, 1, components.Flow)
		b.Depend(1, 2, components.Ordered)
		b.Depend(3, 2, components.Ordered)
		return b
	}
	_, err := build().Listed()
	var cycle *CycleError
	if !errors.As(err, &cycle) {
		t.Fatalf("error %v, want a cycle", err)
	}
	slices.Sort(cycle.Rows)
	if !slices.Equal(cycle.Rows, []int{1, 2}) {
		t.Errorf("cycle %v, want rows 1 and 2", cycle.Rows)
	}
	b := build()
	if n := b.DropCycles(components.Ordered); n != 1 {
		t.Errorf("%d dropped, want 1: the one that closes the cycle", n)
	}
	m, err := b.Listed()
	if err != nil {
		t.Fatal(err)
	}
	if c := m.Edges.Counts(); c[components.Flow] != 2 || c[components.Ordered] != 1 {
		t.Errorf("edges %v", c)
	}
}

// After dropping all dependencies inside groups no cycle is left, and none is
// dropped that was in no cycle.
func TestDropCyclesRandom(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := New("m", "chakra")
		lanes(t, b, 1)
		n := rapid.IntRange(1, 12).Draw(t, "rows")
		for range n {
			b.Add(Row{End: 1})
		}
		reach := make([][]bool, n)
		for i := range reach {
			reach[i] = make([]bool, n)
		}
		type pair struct{ c, p int }
		var all []pair
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			e := pair{rapid.IntRange(0, n-1).Draw(t, "c"), rapid.IntRange(0, n-1).Draw(t, "p")}
			b.Depend(e.c, e.p, components.Ordered)
			reach[e.c][e.p] = true
			all = append(all, e)
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		want := 0
		for _, e := range all {
			if e.c == e.p || reach[e.p][e.c] {
				want++
			}
		}
		if got := b.DropCycles(components.Ordered); got != want {
			t.Fatalf("%d dropped, want %d", got, want)
		}
		if _, err := b.Listed(); err != nil {
			t.Fatal(err)
		}
	})
}
