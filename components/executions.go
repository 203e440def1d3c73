package components

import (
	"sort"

	"perfsim/ecs"
)

// Executions is how often every row of a module executes: the runs of its
// function times the trip counts of the loops around it, where trips count.
type Executions struct {
	first []uint32 // first row of every range, ascending from 0
	times []uint64
}

// NewExecutions returns the executions of the rows of m; with Once a loop body
// counts as one.
func NewExecutions(m *Module, loops Loops) *Executions {
	x := &Executions{first: []uint32{0}, times: []uint64{1}}
	set := func(row uint32, times uint64) {
		n := len(x.first) - 1
		if x.first[n] == row {
			x.times[n] = times
		} else if x.times[n] != times {
			x.first, x.times = append(x.first, row), append(x.times, times)
		}
	}
	type body struct {
		end    uint32
		around uint64
	}
	var open []body
	t := &m.Blocks
	now := uint64(1)
	closeUpTo := func(row uint32) {
		for n := len(open); n > 0 && open[n-1].end <= row; n = len(open) {
			now = open[n-1].around
			set(open[n-1].end, now)
			open = open[:n-1]
		}
	}
	for b := range t.Len() {
		first, end := t.First.At(b), t.End.At(b)
		if first == end {
			continue
		}
		closeUpTo(first)
		if t.Parent.At(b) == 0 {
			now = m.Functions.Runs.At(int(t.Function.At(b)))
			open = append(open[:0], body{end, 1})
			set(first, now)
			continue
		}
		open = append(open, body{end, now})
		if loops == Trips {
			now = ecs.MulSat(now, max(t.Trip.At(b), 1))
		}
		set(first, now)
	}
	closeUpTo(uint32(m.Instr.Len()))
	return x
}

// At returns how often row i executes.
func (x *Executions) At(i InstrID) uint64 {
	k := len(x.first) - 1
	if k > 0 && x.first[k] > uint32(i) {
		k = sort.Search(len(x.first), func(k int) bool { return x.first[k] > uint32(i) }) - 1
	}
	return x.times[k]
}
