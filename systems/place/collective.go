package place

import (
	"fmt"
	"slices"

	"perfsim/components"
)

// collectives keeps the collectives placed so far, for the reflow.
//
// Reflow is ours (the documented system publishes only its name): a
// collective placed at start with work of d ns, d being its cost over its
// stream's share, runs in parallel with those already placed on other streams. While
// the shares of all that run add up to more than one, each progresses at one
// over their sum. Collectives placed earlier keep their times, so that an
// event never moves after its consumers were placed.
type collectives struct {
	shares []float64
	reflow bool
	weight float64
	// spans are the intervals placed, by run and lane, ascending and disjoint.
	spans [2]map[uint16][]span
}

type span struct{ start, end uint64 }

func newCollectives(r Rules) *collectives {
	return &collectives{shares: r.Shares, reflow: r.Reflow, weight: r.ReflowWeight, spans: [2]map[uint16][]span{{}, {}}}
}

// place records collective i with the given bounds and returns its duration
// in both runs.
func (c *collectives) place(m *components.Module, i uint32, lane uint16, start pair, cost uint64) (pair, error) {
	stream := int(lane%components.LanesPerCore) - int(components.LaneCC0)
	if stream < 0 || stream >= components.NumStreams {
		stream = 0 // on another lane by the input's own wish: it has the whole bandwidth
	} else if stream >= len(c.shares) || c.shares[stream] == 0 {
		return pair{}, fmt.Errorf("collective %s is on stream %d, which the machine does not have", m.InstrName(components.InstrID(i)), stream)
	}
	share := 1.0
	if stream < len(c.shares) {
		share = c.shares[stream]
	}
	work := uint64(float64(cost) / share)
	var dur pair
	for x := range start {
		dur[x] = work
		if c.reflow {
			dur[x] = c.stretch(x, lane, share, start[x], work)
		}
		c.spans[x][lane] = append(c.spans[x][lane], span{start[x], start[x] + dur[x]})
	}
	return dur, nil
}

// stretch returns how long work ns take from start on, given the spans on
// the other streams of the core in run x.
func (c *collectives) stretch(x int, lane uint16, share float64, start, work uint64) uint64 {
	first := coreOf(lane) + components.LaneCC0
	if c.weight > 0 {
		return work + uint64(c.weight*float64(c.overlap(x, lane, start, start+work))+0.5)
	}
	t, left := start, float64(work)
	for left > 0 {
		// How many shares run at t, and until when nothing changes.
		sum, until := share, ^uint64(0)
		for s := range c.shares {
			other := first + uint16(s)
			if other == lane {
				continue
			}
			spans := c.spans[x][other]
			for n := len(spans) - 1; n >= 0 && spans[n].end > t; n-- {
				if spans[n].start > t {
					until = min(until, spans[n].start)
					continue
				}
				sum += c.shares[s]
				until = min(until, spans[n].end)
			}
		}
		slow := max(sum, 1)
		if need := left * slow; until == ^uint64(0) || need <= float64(until-t) {
			return t + uint64(need+0.5) - start
		}
		left -= float64(until-t) / slow
		t = until
	}
	return t - start
}

// overlap is how long the spans on the other streams of the core overlap start
// to end in run x, added up over the streams.
func (c *collectives) overlap(x int, lane uint16, start, end uint64) (sum uint64) {
	first := coreOf(lane) + components.LaneCC0
	for s := range c.shares {
		if first+uint16(s) == lane {
			continue
		}
		spans := c.spans[x][first+uint16(s)]
		for n := len(spans) - 1; n >= 0 && spans[n].end > start; n-- {
			lo, hi := max(spans[n].start, start), min(spans[n].end, end)
			sum += hi - min(lo, hi)
		}
	}
	return sum
}

// clone returns a copy that changes alone.
func (c *collectives) clone() *collectives {
	n := *c
	for x := range n.spans {
		n.spans[x] = map[uint16][]span{}
		for lane, s := range c.spans[x] {
			n.spans[x][lane] = slices.Clone(s)
		}
	}
	return &n
}

// shift moves the collectives of a lane that started at from or later by d.
func (c *collectives) shift(lane uint16, from, d pair) {
	for x := range c.spans {
		s := c.spans[x][lane]
		for n := len(s) - 1; n >= 0 && s[n].start >= from[x]; n-- {
			s[n].start += d[x]
			s[n].end += d[x]
		}
	}
}
