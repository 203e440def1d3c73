package place

import "perfsim/components"

// Stepper places the instructions of one top-level block one by one, in an
// order that the caller makes up: what a scheduler needs to know when
// something could start. An instruction may be placed once all its producers
// are.
type Stepper struct{ k *kernel }

// NewStepper returns a stepper with empty timelines. It writes the events of
// w, which Prepare has made room for; blocks are stepped with a stepper of
// their own each, side by side if need be.
func NewStepper(w *components.World, rules Rules) *Stepper {
	return &Stepper{newKernel(w, rules, nil, nil)}
}

// Prepare makes room for the events of steppers of w.
func Prepare(w *components.World, rules Rules) {
	n := w.Module.Instr.Len()
	w.Events.Arrive.Scratch(n)
	if rules.Shares != nil && hasCollectives(w.Module) {
		w.Events.Dur.Scratch(n)
	} else {
		w.Events.Dur.Drop()
	}
}

// Place places instruction i.
func (s *Stepper) Place(i uint32) error { return s.k.rows(i, i+1) }

// Free returns when lane l can take its next instruction, run A.
func (s *Stepper) Free(l uint16) uint64 { return s.k.free[l][components.RunA] }

// Ready returns when all producers of instruction i, which must be placed,
// let it start, run A.
func (s *Stepper) Ready(i uint32) uint64 {
	return s.k.ready(i)[components.RunA]
}

// Earliest returns when instruction i would start if it were placed now, run
// A, not counting what sharing a collective's bandwidth would do to it.
func (s *Stepper) Earliest(i uint32) uint64 {
	k := s.k
	start := max(s.Ready(i), k.engineFree(i)[components.RunA])
	if k.m.Instr.Flags.At(int(i))&components.FlagTrigger != 0 && k.rules.Rings {
		start = max(start, s.queue(i))
	}
	return start
}

// queue is when the DMA queue of trigger i has room.
func (s *Stepper) queue(i uint32) uint64 {
	r := s.k.ring(i)
	if fly := r.flying[components.RunA]; r.depth > 0 && len(fly) >= r.depth {
		return fly[0]
	}
	return 0
}

// QueueReady reports whether the DMA queue of instruction i has room at time t;
// true for what is no trigger.
func (s *Stepper) QueueReady(i uint32, t uint64) bool {
	return s.k.m.Instr.Flags.At(int(i))&components.FlagTrigger == 0 || !s.k.rules.Rings || s.queue(i) <= t
}
