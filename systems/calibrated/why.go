package calibrated

import (
	"perfsim/components"
	"perfsim/ecs"
)

// reasons records what let every row start: the constraint that was there
// last.
type reasons struct {
	cause   []components.Cause
	by      []uint32  // row that let it go, plus one
	release []float64 // when, ns
}

func newReasons(n int) *reasons {
	return &reasons{cause: make([]components.Cause, n), by: make([]uint32, n), release: make([]float64, n)}
}

// bound is a time from which on a row may start and the row, plus one, that
// makes it so.
type bound struct {
	at float64
	by uint32
}

// because records why an instruction starts: it was reached at arrived, what it
// waits for was there at at and wakes its engine wake later, and its data path
// has the bounds a and b. Of equals the sequencer comes first.
func (s *sim) because(x *taken, wake float64, a, b bound) {
	if s.why != nil {
		s.record(x, wake, a, b)
	}
}

func (s *sim) record(x *taken, wake float64, a, b bound) {
	q, i, arrived, held := x.q, x.i, x.arrived, x.at
	cause, by, release, start := components.CauseModel, uint32(0), arrived, arrived // the engine's own start
	if q.pos > 0 {
		cause, by = components.CauseLane, q.list[q.pos-1]+1
	}
	if held+wake > start {
		cause, by, release, start = components.CauseSemaphore, s.heldBy, held, held+wake
	}
	for _, y := range [...]bound{a, b} {
		if y.by > 0 && y.at > start {
			cause, by, release, start = components.CauseLane, y.by, y.at, y.at
		}
	}
	if s.p.kind[i] == kindBarrier && by == a.by && by > 0 {
		cause = components.CauseBarrier
	}
	// A sequencer runs ahead of its data path: the row before may start later
	// than this one. What held this one is then the last that started before.
	if by > 0 && s.start[by-1] > start {
		cause, by = components.CauseModel, 0
		for k := q.pos - 1; k >= 0; k-- {
			if h := q.list[k]; s.start[h] <= start {
				cause, by = components.CauseLane, h+1
				break
			}
		}
	}
	s.why.cause[i], s.why.by[i], s.why.release[i] = cause, by, release
}

// attribution turns the reasons of one run, whose starts are given in whole
// ns, into the table. A wait for a semaphore is named after the dependency it
// stands for, where the module has one.
func (p *program) attribution(r *reasons, out rows, run components.Run, start func(i uint32) uint64) *components.Attribution {
	a := components.NewAttribution()
	a.Run = run
	cause, pred, gap := a.Cause.Resize(len(p.kind)), a.Pred.Resize(len(p.kind)), a.Gap.Resize(len(p.kind))
	visible := a.Visible.Resize(len(p.kind))
	for i := range pred {
		pred[i] = components.NoInstr
		if p.kind[i] == kindLoop {
			continue
		}
		at := start(uint32(i))
		visible[i] = max(at, whole(out.arrive[i]))
		from := uint64(0)
		if by := r.by[i]; by > 0 {
			pred[i] = components.InstrID(by - 1)
			from = start(by - 1)
		}
		cause[i] = r.cause[i]
		if cause[i] == components.CauseSemaphore && r.by[i] > 0 {
			cause[i] = p.dependency(uint32(i), r.by[i]-1)
		}
		if pred[i] == components.NoInstr {
			gap[i] = at
			cause[i] = components.CauseModel
			if at == 0 {
				cause[i] = components.CauseStart
			}
			continue
		}
		release := max(whole(r.release[i]), min(from, at))
		gap[i] = at - min(at, release)
	}
	return &a
}

// dependency returns the kind of dependency that a wait of row i for row q
// stands for: that of the edge between them, else of the last edge to a row
// before q on the same sequencer, whose result q's raise vouches for.
func (p *program) dependency(i, q uint32) components.Cause {
	best, at := components.CauseSemaphore, -1
	for _, w := range p.m.Edges.Preds.Row(int(i)) {
		t := w & ecs.TargetMask
		if t <= q && int(t) > at && p.group[t] == p.group[q] {
			best, at = components.CauseOfKind(components.KindOfClass(uint8(w>>ecs.ClassShift))), int(t)
		}
	}
	return best
}
