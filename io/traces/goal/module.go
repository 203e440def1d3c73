package goal

import (
	"errors"
	"fmt"
	"strings"

	"perfsim/components"
	"perfsim/io/internal/timeline"
)

// module makes the tables. An operation that others start after (irequires)
// has a row "post" in front, of no duration, that takes its dependencies: the
// others depend on that.
func (s *schedule) module() (*components.Module, error) {
	if len(s.b.Rows) == 0 {
		return nil, errors.New(" the schedule has no operations")
	}
	posts, starts := s.posts()
	s.match(posts)
	m := s.b.M
	if s.sends > 0 {
		m.Note(components.NoteEstimatedTransfers, "sends have sizes and no durations: the machine's latency and rate for communication are used", s.sends)
	}
	if n := len(s.messages) - s.sends; n > 0 {
		m.Note("receive-time", "receives take 1 ns once the message is there", n)
	}
	if starts > 0 {
		m.Note("irequires", "irequires: the operation starts once the other one can start; a Post instruction stands for that", starts)
	}
	m, err := s.b.Listed()
	var cycle *timeline.CycleError
	if errors.As(err, &cycle) {
		return nil, s.cycleError(cycle)
	}
	if err != nil {
		return nil, fmt.Errorf(" %w", err)
	}
	return m, nil
}

// posts gives every operation that another starts after its post, and returns
// the rows of the operations (nil where there is no post) and how many
// dependencies on a start there are.
func (s *schedule) posts() (rowOf []uint32, starts int) {
	b := s.b
	var posted []bool
	for x := range b.Deps.Len() {
		if _, to, kind := b.Deps.At(x); kind == components.Ordered {
			if posted == nil {
				posted = make([]bool, len(b.Rows))
			}
			posted[to] = true
			starts++
		}
	}
	if starts == 0 {
		return nil, 0
	}
	ops := b.Rows
	b.Rows = make([]timeline.Row, 0, len(ops)+len(ops)/2)
	rowOf = make([]uint32, len(ops))
	post := b.M.Opcode("Post")
	for i := range ops {
		if posted[i] {
			b.Add(timeline.Row{Name: ops[i].Name, Ref: ops[i].Ref, Lane: ops[i].Lane, Opcode: post})
		}
		rowOf[i] = uint32(b.Add(ops[i]))
	}
	// The dependency of an operation on its own post comes before all others.
	edges := b.Deps
	b.Deps = timeline.Dependencies{}
	for i := range ops {
		if posted[i] {
			b.Depend(int(rowOf[i]), int(rowOf[i])-1, components.Ordered)
		}
	}
	for x := range edges.Len() {
		from, to, kind := edges.At(x)
		consumer, producer := int(rowOf[from]), int(rowOf[to])
		if posted[from] {
			consumer--
		}
		if kind == components.Ordered {
			producer--
		}
		b.Depend(consumer, producer, kind)
	}
	return rowOf, starts
}

// channel identifies the sends that a receive without wildcards matches.
type channel struct {
	from, to int32
	tag      int64
}

// queues are the sends of every channel in the order of the file.
type queues struct {
	index       map[channel]int32
	first, last []int32 // by channel: places in send and next, -1 for none
	send, next  []int32
}

func (q *queues) add(k channel, send int) {
	c, ok := q.index[k]
	if !ok {
		if q.index == nil {
			q.index = map[channel]int32{}
		}
		c = int32(len(q.first))
		q.index[k] = c
		q.first, q.last = append(q.first, -1), append(q.last, -1)
	}
	at := int32(len(q.send))
	q.send, q.next = append(q.send, int32(send)), append(q.next, -1)
	if q.first[c] < 0 {
		q.first[c] = at
	} else {
		q.next[q.last[c]] = at
	}
	q.last[c] = at
}

// take takes the first send of a channel that is not taken yet out of its
// queue, and returns its index, -1 for none.
func (q *queues) take(k channel, taken []bool) int {
	c, ok := q.index[k]
	if !ok {
		return -1
	}
	for q.first[c] >= 0 {
		at := q.first[c]
		q.first[c] = q.next[at]
		if s := q.send[at]; !taken[s] {
			taken[s] = true
			return int(s)
		}
	}
	return -1
}

// match makes every receive depend on its send: the sends of a channel reach
// its receives in the order of the file. Receives with wildcards then take,
// in the order of the file, the first send left that fits.
func (s *schedule) match(rowOf []uint32) {
	if len(s.messages) == 0 {
		return
	}
	row := func(op uint32) int {
		if rowOf == nil {
			return int(op)
		}
		return int(rowOf[op])
	}
	m := s.b.M
	sends := func(x *message) bool {
		return s.b.Rows[row(x.op)].Opcode == components.OpcodeCollectiveSend
	}
	var open queues
	for i := range s.messages {
		if x := &s.messages[i]; sends(x) {
			open.add(channel{x.rank, x.peer, x.tag}, i)
		}
	}
	var wild []int
	lost, first := 0, ""
	miss := func(i int) {
		if lost++; first == "" {
			x := &s.messages[i]
			first = fmt.Sprintf("%s in rank %d", s.place(int(x.op)), x.rank)
		}
	}
	taken := make([]bool, len(s.messages))
	receive := func(q *queues, i int) {
		x := &s.messages[i]
		send := q.take(channel{x.peer, x.rank, x.tag}, taken)
		if send < 0 {
			miss(i)
			return
		}
		s.b.Depend(row(x.op), row(s.messages[send].op), components.Flow)
	}
	for i := range s.messages {
		x := &s.messages[i]
		switch {
		case sends(x):
		case x.peer == wildcard || x.tag == wildcard:
			wild = append(wild, i)
		default:
			receive(&open, i)
		}
	}
	if len(wild) > 0 {
		// What is left, by receiver and by what a wildcard may leave open.
		var left queues
		for i := range s.messages {
			if x := &s.messages[i]; sends(x) && !taken[i] {
				for _, k := range []channel{{wildcard, x.peer, wildcard}, {x.rank, x.peer, wildcard}, {wildcard, x.peer, x.tag}} {
					left.add(k, i)
				}
			}
		}
		for _, i := range wild {
			receive(&left, i)
		}
		m.Note("wildcard-receive", "receives from any source or with any tag: matched with the first send of the text that is left and fits", len(wild))
	}
	if lost > 0 {
		m.Note("unmatched-receive", "receives that no send matches: taken as received at once; the first: "+first, lost)
	}
	lost, first = 0, ""
	for i := range s.messages {
		if sends(&s.messages[i]) && !taken[i] {
			miss(i)
		}
	}
	if lost > 0 {
		m.Note("unmatched-send", "sends that no receive matches; the first: "+first, lost)
	}
}

// cycleError names at most eight operations of a cycle.
func (s *schedule) cycleError(c *timeline.CycleError) error {
	const most = 8
	var parts []string
	last, first := -1, -1
	for _, r := range c.Rows {
		op := int(s.b.Rows[r].Ref)
		if op == last {
			continue // an operation and its post
		}
		if last = op; first < 0 {
			first = op
		}
		if len(parts) == most {
			parts = append(parts, fmt.Sprintf("… (%d operations)", len(c.Rows)))
			break
		}
		parts = append(parts, fmt.Sprintf("rank %d %s", s.rankOf(op), s.place(op)))
	}
	at := s.place(first)
	if s.at == nil {
		at = fmt.Sprintf(" %s of rank %d", at, s.rankOf(first))
	}
	return fmt.Errorf("%s: operations wait for one another in a cycle: %s", at, strings.Join(append(parts, parts[0]), " <- "))
}
