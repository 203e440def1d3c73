package place

import (
	"context"
	"sync"

	"perfsim/components"
)

// Stream places a module whose rows come a window at a time: the module of its
// world holds some rows in program order, and behind them a row for every
// producer that came earlier. Lanes, banks, queues and collectives stay as they
// are from one window to the next.
type Stream struct {
	w      *components.World
	rules  Rules
	k      *kernel
	arrive []pair
	fast   *sync.Pool
}

// NewStream returns a stream that places the windows of w's module: w has its
// machine and configuration, and the module of w becomes that of the window.
func NewStream(w *components.World, rules Rules) *Stream {
	return &Stream{w: w, rules: rules}
}

// Begin starts a top-level block.
func (s *Stream) Begin() { s.k = newKernel(s.w, s.rules, s.arrive, s.fast) }

// Window makes room for the events of the rows of m, which come next.
func (s *Stream) Window(m *components.Module) {
	s.w.Module = m
	s.arrive, s.fast = room(s.w, s.rules), nil
	if hasFast() {
		s.fast = plainPath(m)
	}
	if s.k != nil {
		s.k.m, s.k.resources.m = m, m
		s.k.usePlain(s.arrive, s.fast)
		clear(s.k.inputs) // by rows of the window before
	}
}

// Place places rows lo to hi of the window, loop bodies once.
func (s *Stream) Place(ctx context.Context, lo, hi uint32) error { return s.k.walk(ctx, lo, hi) }

// Last returns the end of the last event of the block so far, in ns by run.
func (s *Stream) Last() [2]uint64 { return s.k.last }

// Producer has what dependencies of later rows need of a row: when it arrives,
// in ns by run, and, where they are of order, the rest.
type Producer struct {
	Arrive [2]uint64
	Leaving
}

// Leaving decides when a producer releases the rows that are ordered behind it.
type Leaving struct {
	Inputs         [2]uint64 // when the inputs of a collective were there
	Issue, Latency uint32
	Flags          components.Flags
}

// producerFlags are the flags of a producer that dependencies ask for.
const producerFlags = components.FlagTrigger | components.FlagCollective | components.FlagLocal

// Producer returns what later windows ask of row i, which is placed.
func (s *Stream) Producer(i uint32) Producer {
	in := &s.w.Module.Instr
	return Producer{s.w.Events.Arrive.At(int(i)), Leaving{s.k.inputs[i], in.Issue.At(int(i)), in.Latency.At(int(i)), in.Flags.At(int(i)) & producerFlags}}
}

// Earlier makes row i, which is not placed, stand for a producer of an earlier
// window.
func (s *Stream) Earlier(i uint32, p Producer) {
	in := &s.w.Module.Instr
	s.w.Events.Arrive.Set(int(i), p.Arrive)
	in.Issue.Set(int(i), p.Issue)
	in.Latency.Set(int(i), p.Latency)
	in.Flags.Set(int(i), p.Flags)
	if s.k.inputs != nil && p.Flags&components.FlagCollective != 0 {
		s.k.inputs[i] = p.Inputs
	}
}
