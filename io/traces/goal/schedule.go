package goal

import (
	"fmt"
	"sort"
	"strconv"

	"perfsim/components"
	"perfsim/io/internal/timeline"
)

// wildcard is the wildcard for a source or a tag.
const wildcard = -1

// A receive without a duration takes 1 ns; sends are ordered by 8 µs and 100
// bytes per ns, as the embedded machines have, which does not enter the result
// otherwise.
const (
	recvTime  = 1
	guessBase = 8000
	guessRate = 100
)

// message is the other end of a send or a receive.
type message struct {
	op         uint32
	rank, peer int32
	tag        int64
}

// rankStart is where the operations of a rank start.
type rankStart struct {
	op   int
	rank int32
}

// lane is a compute stream (calc) or an interface of a rank.
type lane struct {
	opcode components.Opcode
	rank   int32
	unit   uint16
}

// schedule collects the operations of all ranks: operation i is row i of the
// builder, and dependencies on a start have the kind Ordered until finish.
type schedule struct {
	b        *timeline.Builder
	ranks    int
	starts   []rankStart // in the order of the file
	at       []pos       // of operations; nil where the file has no text
	messages []message   // of sends and receives, in the order of the file
	lanes    map[lane]uint16
	last     lane // the lane of the operation before
	lastLane uint16
	calc     components.Opcode
	sends    int
}

func newSchedule(name string) *schedule {
	s := &schedule{b: timeline.New(name, "goal"), lanes: map[lane]uint16{}}
	s.calc = s.b.M.Opcode("calc")
	return s
}

// add appends an operation: a calc of size ns, or a send or receive of size
// bytes.
func (s *schedule) add(opcode components.Opcode, rank int32, unit uint16, size uint64) (*timeline.Row, error) {
	k := lane{opcode, rank, unit}
	l, ok := s.lastLane, k == s.last && len(s.lanes) > 0
	if !ok {
		l, ok = s.lanes[k]
	}
	if !ok {
		var err error
		if l, err = s.b.Lane(k.name()); err != nil {
			return nil, err
		}
		s.lanes[k] = l
	}
	s.last, s.lastLane = k, l
	s.b.Add(timeline.Row{Ref: uint64(len(s.b.Rows)), Lane: l, Opcode: opcode})
	r := &s.b.Rows[len(s.b.Rows)-1]
	switch opcode {
	case components.OpcodeCollectiveSend:
		r.Engine, r.Flags = components.Pool, components.FlagCollective|components.FlagEstimated
		r.Bytes, r.End, r.Guess = size, recvTime, guessBase+size/guessRate
		s.sends++
	case components.OpcodeCollectiveRecv:
		r.Engine, r.Flags = components.Pool, components.FlagCollective
		r.Bytes, r.End = size, recvTime
	default:
		r.Engine, r.End = components.DVE, size
	}
	return r, nil
}

func (k lane) name() string {
	out := "rank " + strconv.Itoa(int(k.rank))
	switch k.opcode {
	case components.OpcodeCollectiveSend:
		out += " send"
	case components.OpcodeCollectiveRecv:
		out += " recv"
	default:
		out += " cpu"
	}
	if k.unit > 0 {
		out += " " + strconv.Itoa(int(k.unit))
	}
	return out
}

// rankOf returns the rank of an operation.
func (s *schedule) rankOf(op int) int32 {
	i := sort.Search(len(s.starts), func(i int) bool { return s.starts[i].op > op })
	return s.starts[i-1].rank
}

// place names an operation for a message.
func (s *schedule) place(op int) string {
	if s.at == nil {
		i := sort.Search(len(s.starts), func(i int) bool { return s.starts[i].op > op })
		return fmt.Sprintf("operation %d", op-s.starts[i-1].op)
	}
	return fmt.Sprintf("%d:%d", s.at[op].line, s.at[op].col)
}
