package goal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/internal/timeline"
)

// A receive without a duration takes 1 ns; sends are ordered by 8 µs and 100
// bytes per ns, as the embedded machines have, which does not enter the result
// otherwise.
const (
	recvTime  = 1
	guessBase = 8000
	guessRate = 100
)

// module makes the tables. An operation that others start after (irequires)
// has a row "post" in front, of no duration, that takes its dependencies: the
// others depend on that.
func (s *schedule) module(name string) (*components.Module, error) {
	if len(s.ops) == 0 {
		return nil, errors.New("1:1: the schedule has no operations")
	}
	b := timeline.New(name, "goal")
	b.M.Attributes = append(b.M.Attributes, components.Attribute{Key: "trace.num_ranks", Value: strconv.Itoa(s.ranks)})
	lanes := map[string]uint16{}
	row, post := make([]int, len(s.ops)), make([]int, len(s.ops))
	var origin []int // operations by row
	posts, estimated, recvs := 0, 0, 0
	names := map[string]ecs.Symbol{}
	opPost := b.M.Opcode("Post")
	for i := range s.ops {
		o := &s.ops[i]
		key := laneName(o)
		lane, ok := lanes[key]
		if !ok {
			var err error
			if lane, err = b.Lane(key); err != nil {
				return nil, o.at.errorf("%w", err)
			}
			lanes[key] = lane
		}
		label := o.label
		if label == "" {
			label = "op" + strconv.Itoa(i)
		}
		full := "r" + strconv.Itoa(int(o.rank)) + "." + label
		sym, ok := names[full]
		if !ok {
			sym = b.M.Symbols.InternString(full)
			names[full] = sym
		}
		r := timeline.Row{Name: sym, Ref: uint64(i), Lane: lane}
		post[i] = -1
		if o.posted {
			p := r
			p.Opcode = opPost
			post[i] = b.Add(p)
			origin = append(origin, i)
			posts++
		}
		switch o.kind {
		case opCalc:
			r.Opcode, r.Engine, r.End = b.M.Opcode("calc"), components.DVE, o.size
		case opSend:
			r.Opcode, r.Engine, r.Flags = components.OpcodeCollectiveSend, components.Pool, components.FlagCollective|components.FlagEstimated
			r.Bytes, r.End, r.Guess = o.size, recvTime, guessBase+o.size/guessRate
			estimated++
		case opRecv:
			r.Opcode, r.Engine, r.Flags = components.OpcodeCollectiveRecv, components.Pool, components.FlagCollective
			r.Bytes, r.End = o.size, recvTime
			recvs++
		}
		row[i] = b.Add(r)
		origin = append(origin, i)
		if post[i] >= 0 {
			b.Depend(row[i], post[i], components.Ordered)
		}
	}
	starts := 0
	for _, d := range s.orders {
		consumer := row[d.from]
		if post[d.from] >= 0 {
			consumer = post[d.from]
		}
		if d.start {
			b.Depend(consumer, post[d.to], components.Ordered)
			starts++
			continue
		}
		b.Depend(consumer, row[d.to], components.Flow)
	}
	s.match(b, row)
	if estimated > 0 {
		b.M.Note("estimated-communication", "sends have sizes and no durations: the machine's latency and rate for communication are used", estimated)
	}
	if recvs > 0 {
		b.M.Note("receive-time", "receives take 1 ns once the message is there", recvs)
	}
	if starts > 0 {
		b.M.Note("irequires", "irequires: the operation starts once the other one can start; a Post instruction stands for that", starts)
	}
	m, err := b.Listed()
	var cycle *timeline.CycleError
	if errors.As(err, &cycle) {
		return nil, s.cycleError(origin, cycle)
	}
	if err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return m, nil
}

func laneName(o *op) string {
	rank := "rank " + strconv.Itoa(int(o.rank))
	unit := ""
	if o.unit > 0 {
		unit = " " + strconv.Itoa(int(o.unit))
	}
	switch o.kind {
	case opSend:
		return rank + " send" + unit
	case opRecv:
		return rank + " recv" + unit
	}
	return rank + " cpu" + unit
}

// channel is what a receive without wildcards matches.
type channel struct {
	from, to int32
	tag      int64
}

// match makes every receive depend on its send: the sends of a channel reach
// its receives in the order of the text. Receives with wildcards then take,
// in the order of the text, the first send left that fits.
func (s *schedule) match(b *timeline.Builder, row []int) {
	queue := map[channel][]int{}
	var wild []int
	for i := range s.ops {
		if o := &s.ops[i]; o.kind == opSend {
			k := channel{o.rank, o.peer, o.tag}
			queue[k] = append(queue[k], i)
		}
	}
	lost, first := 0, ""
	miss := func(i int) {
		if lost++; first == "" {
			o := &s.ops[i]
			first = fmt.Sprintf("%d:%d in rank %d", o.at.line, o.at.col, o.rank)
		}
	}
	taken := make([]bool, len(s.ops))
	for i := range s.ops {
		o := &s.ops[i]
		if o.kind != opRecv {
			continue
		}
		if o.peer == wildcard || o.tag == wildcard {
			wild = append(wild, i)
			continue
		}
		k := channel{o.peer, o.rank, o.tag}
		q := queue[k]
		if len(q) == 0 {
			miss(i)
			continue
		}
		b.Depend(row[i], row[q[0]], components.Flow)
		taken[q[0]] = true
		queue[k] = q[1:]
	}
	s.matchWild(b, row, wild, taken, miss)
	if lost > 0 {
		b.M.Note("unmatched-receive", "receives that no send matches: taken as received at once; the first: "+first, lost)
	}
	lost, first = 0, ""
	for i := range s.ops {
		if s.ops[i].kind == opSend && !taken[i] {
			miss(i)
		}
	}
	if lost > 0 {
		b.M.Note("unmatched-send", "sends that no receive matches; the first: "+first, lost)
	}
}

// matchWild matches the receives with wildcards.
func (s *schedule) matchWild(b *timeline.Builder, row, wild []int, taken []bool, miss func(int)) {
	if len(wild) == 0 {
		return
	}
	// What is left, by receiver and by what a wildcard may leave open, in the
	// order of the text.
	left := map[channel][]int{}
	for i := range s.ops {
		if o := &s.ops[i]; o.kind == opSend && !taken[i] {
			for _, k := range []channel{{wildcard, o.peer, wildcard}, {o.rank, o.peer, wildcard}, {wildcard, o.peer, o.tag}} {
				left[k] = append(left[k], i)
			}
		}
	}
	for _, i := range wild {
		o := &s.ops[i]
		k := channel{o.peer, o.rank, o.tag}
		q := left[k]
		for len(q) > 0 && taken[q[0]] {
			q = q[1:]
		}
		if len(q) == 0 {
			left[k] = nil
			miss(i)
			continue
		}
		b.Depend(row[i], row[q[0]], components.Flow)
		taken[q[0]] = true
		left[k] = q[1:]
	}
	b.M.Note("wildcard-receive", "receives from any source or with any tag: matched with the first send of the text that is left and fits", len(wild))
}

// cycleError names at most eight operations of a cycle.
func (s *schedule) cycleError(origin []int, c *timeline.CycleError) error {
	const most = 8
	var parts []string
	last := -1
	for _, r := range c.Rows {
		if origin[r] == last {
			continue // an operation and its post
		}
		last = origin[r]
		o := &s.ops[last]
		if len(parts) == most {
			parts = append(parts, fmt.Sprintf("… (%d operations)", len(c.Rows)))
			break
		}
		parts = append(parts, fmt.Sprintf("rank %d %d:%d", o.rank, o.at.line, o.at.col))
	}
	first := &s.ops[origin[c.Rows[0]]]
	return first.at.errorf("operations wait for one another in a cycle: %s", strings.Join(append(parts, parts[0]), " <- "))
}
