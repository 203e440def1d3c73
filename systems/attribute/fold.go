package attribute

import "perfsim/components"

// Fold is a run of steps of a path: Period steps from step First on, Repeats
// times over with equal patterns (lane, opcode, place and what lets the next
// go).
type Fold struct {
	First, Period, Repeats int
}

// longestPeriod bounds the period of a fold: a loop body with more steps on
// the critical path is listed step by step.
const longestPeriod = 512

// Folds groups the steps of the path: what repeats back to back becomes one
// fold, everything else folds of one step once.
func (p *Path) Folds(m *components.Module) []Fold {
	ids := make([]uint32, 0, len(p.Steps))
	known := map[Pattern]uint32{}
	p.Visit(func(s Step) {
		key := patternOf(m, s)
		id, ok := known[key]
		if !ok {
			id = uint32(len(known))
			known[key] = id
		}
		ids = append(ids, id)
	})
	return fold(ids)
}

// fold finds repetitions from left to right: at each place the period that
// covers most, the shortest of equals.
func fold(ids []uint32) []Fold {
	// next[i] is the next place with the same id: a period is the distance to
	// one of those.
	next := make([]int, len(ids))
	last := map[uint32]int{}
	for i := len(ids) - 1; i >= 0; i-- {
		n, ok := last[ids[i]]
		if !ok {
			n = len(ids)
		}
		next[i] = n
		last[ids[i]] = i
	}
	var out []Fold
	for i := 0; i < len(ids); {
		best := Fold{i, 1, 1}
		tries := 0
		for j := next[i]; j < len(ids) && j-i <= longestPeriod && tries < 16; j = next[j] {
			tries++
			period := j - i
			same := 0
			for i+same+period < len(ids) && ids[i+same] == ids[i+same+period] {
				same++
			}
			if repeats := same/period + 1; repeats > 1 && repeats*period > best.Repeats*best.Period {
				best = Fold{i, period, repeats}
			}
		}
		out = append(out, best)
		i += best.Period * best.Repeats
	}
	return out
}
