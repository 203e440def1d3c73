package components

import "testing"

// A function that runs 3 times has rows 0 to 9: a loop of 5 trips over rows 2
// to 7 with a loop of 7 trips over rows 4 to 5 in it. A second function that
// runs once has rows 10 and 11.
func TestExecutions(t *testing.T) {
	m := NewModule("m", "test")
	m.Instr.Grow(12)
	f := m.Functions.Add(0, 0)
	m.Functions.Runs.Set(f, 3)
	block := func(f int, parent uint32, first InstrID, end uint32, trip uint64) {
		m.Blocks.End.Set(m.Blocks.Add(0, uint32(f), parent, first, trip), end)
	}
	block(f, 0, 0, 10, 1)
	block(f, 2, 2, 8, 5)
	block(f, 4, 4, 6, 7)
	m.Functions.EndBlock.Set(f, 3)
	g := m.Functions.Add(0, 3)
	block(g, 0, 10, 12, 1)
	m.Functions.EndBlock.Set(g, 4)
	for loops, want := range map[Loops][]uint64{
		Once:  {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 1, 1},
		Trips: {3, 3, 15, 15, 105, 105, 15, 15, 3, 3, 1, 1},
	} {
		x := NewExecutions(m, loops)
		for i, w := range want {
			if got := x.At(InstrID(i)); got != w {
				t.Errorf("%s: row %d executes %d times, want %d", loops, i, got, w)
			}
		}
	}
}
