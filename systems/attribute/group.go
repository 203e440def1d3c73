package attribute

import "perfsim/components"

// GroupTime is the part of the critical paths that the rows of a group have, in
// counted ns: their steps and the delays of the model behind them, by class.
type GroupTime [NumClasses]uint64

// Total returns the time of all classes.
func (t *GroupTime) Total() uint64 {
	var n uint64
	for _, v := range t {
		n += v
	}
	return n
}

// Bound returns the class that most of the time belongs to.
func (t *GroupTime) Bound() Class {
	best := Class(0)
	for c := range NumClasses {
		if t[c] > t[best] {
			best = c
		}
	}
	return best
}

// Groups adds the critical paths up by the groups 0 to n-1 of their steps. What
// lies before the first steps and behind the last is in no group: rest.
func Groups(m *components.Module, paths []*Path, n int, group func(components.InstrID) int) (times []GroupTime, rest uint64) {
	times = make([]GroupTime, n)
	for _, p := range paths {
		k := 0
		p.Visit(func(s Step) {
			classify((*[NumClasses]uint64)(&times[group(s.Instr)]), m, p, s, p.GapCause(k))
			k++
		})
		rest += (p.CountedLead() + p.CountedTail()) * p.Times
	}
	return times, rest
}
