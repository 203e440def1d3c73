package lower

import (
	"fmt"
	"slices"
	"strings"

	"perfsim/components/opgraph"
)

// checkTrips refuses trip counts given for a name that no while and no while
// body of the graph has.
func (l *lowerer) checkTrips() error {
	g := l.g
	var whiles []string
	left := make(map[string]bool, len(l.opt.Trips))
	for name := range l.opt.Trips {
		left[name] = true
	}
	for op := range opgraph.OpID(g.NumOps()) {
		if g.Ops.Kind[op] == opgraph.OpWhile {
			whiles = append(whiles, g.OpText(op))
			delete(left, g.OpText(op))
			delete(left, g.CompText(g.Called(op, opgraph.RoleBody)))
		}
	}
	if len(left) == 0 {
		return nil
	}
	var unknown []string
	for name := range left {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	const most = 8
	switch {
	case len(whiles) == 0:
		return fmt.Errorf("--trip-count %s: the module has no while", unknown[0])
	case len(whiles) > most:
		whiles = append(whiles[:most], "…")
	}
	return fmt.Errorf("--trip-count %s: no while or while body is called %q; the whiles are %s", unknown[0], unknown[0], strings.Join(whiles, ", "))
}

// tripNotes says which trip counts are not known and which ones contradict
// the condition of their loop.
func (l *lowerer) tripNotes() {
	g, m := l.g, l.e.m
	for _, t := range l.rep.Trips {
		if t.From == "default" {
			m.Note("unknown-trip-count", fmt.Sprintf("the trip count of %s is not known; %d is used (--trip-count %s=N, --default-trip-count N)", t.Name, t.Count, t.Name), 1)
		}
	}
	for _, c := range g.BottomUp() {
		for op := g.Comps.First[c]; op < g.Comps.End[c]; op++ {
			if g.Ops.Kind[op] != opgraph.OpWhile {
				continue
			}
			stated, from := g.TripCount(op)
			if _, given := l.givenTrip(op); given || from != opgraph.TripKnown {
				continue
			}
			if n, ok := g.ConditionTrips(op); ok && n != stated {
				m.Note("trip-count-contradicts", fmt.Sprintf("%s states %d iterations (known_trip_count), its condition gives %d; %d is used (--trip-count %s=%d takes the other)",
					g.OpText(op), stated, n, stated, g.OpText(op), n), 1)
			}
		}
	}
}
