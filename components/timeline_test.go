package components

import (
	"slices"
	"testing"
)

// Two blocks, on one lane; the second starts where the first ends.
func TestTimelineLaysBlocksOut(t *testing.T) {
	m := NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(5)
	f := m.Functions.Add(0, 0)
	for b, end := range []uint32{3, 5} {
		row := m.Blocks.Add(0, uint32(f), 0, InstrID([]uint32{0, 3}[b]), 1)
		m.Blocks.End.Set(row, end)
	}
	m.Functions.EndBlock.Set(f, 2)
	for i := range 5 {
		m.Instr.Lane.Set(i, LanePE)
		m.Instr.Latency.Append(100)
	}
	m.Instr.Flags.Set(1, FlagLoop)
	w := &World{Module: m, Events: NewEvents()}
	// Ends: 100, –, 150 in the first block, 100 and 300 in the second.
	for _, e := range []uint64{100, 0, 150, 100, 300} {
		w.Events.Arrive.Append([2]uint64{e, e})
	}
	w.Blocks = []BlockResult{{Block: 0, Latency: [2]uint64{150, 120}}, {Block: 1, Latency: [2]uint64{300, 300}}}
	tl := NewTimeline(w, -1, Process{Name: "predicted"})
	if !slices.Equal(tl.Offset, []uint64{0, 150}) || tl.End() != 450 {
		t.Errorf("offsets %v, end %d", tl.Offset, tl.End())
	}
	rows := tl.Lanes(0)[LanePE]
	if !slices.Equal(rows, []InstrID{0, 2, 3, 4}) {
		t.Fatalf("rows %v", rows)
	}
	want := [][3]uint64{{0, 50, 100}, {50, 100, 100}, {150, 100, 100}, {350, 100, 100}}
	for k := range rows {
		s, d, full := tl.Drawn(0, rows, k)
		if [3]uint64{s, d, full} != want[k] {
			t.Errorf("event %d is drawn at %d for %d of %d, want %v", k, s, d, full, want[k])
		}
	}
	if one := NewTimeline(w, 1, Process{}); one.End() != 300 || len(one.Lanes(0)[LanePE]) != 2 {
		t.Errorf("the second block alone ends at %d", one.End())
	}
}
