// Package cost fills the issue interval and the latency of every instruction
// from a machine description.
package cost

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
)

// The models a simulation may use.
const (
	Reference  = components.Reference
	Calibrated = components.Calibrated
	Replay     = components.Replay
)

// chunk is how many rows one goroutine takes at a time.
const chunk = 1 << 16

// Fill writes instr.issue and instr.latency, in ns.
func Fill(ctx context.Context, w *components.World) error {
	var t Tally
	if err := t.Fill(ctx, w, w.Module.Instr.Len()); err != nil {
		return err
	}
	t.Note(w)
	return nil
}

// Tally counts, over the windows of a module, the rows whose costs a reader of
// the prediction has to know about.
type Tally struct {
	defaults map[components.Opcode]int // rows by opcode that has no cost of its own
	inline   inline
}

// Note notes what was counted in the module of w.
func (t *Tally) Note(w *components.World) {
	t.inline.note(w.Module)
	noteDefaults(w, t.defaults)
}

// Fill is Fill of the package for the first n rows, without the notes.
func (t *Tally) Fill(ctx context.Context, w *components.World, n int) error {
	m := w.Module
	m.Instr.Issue.Scratch(m.Instr.Len())
	m.Instr.Latency.Scratch(m.Instr.Len())
	var row func(i int) (issue, latency uint64)
	var plan *plan
	var ref *reference
	var nominal *Nominal
	if w.Config.Model != Replay && Foreign(m) {
		return fmt.Errorf("%s was read from a %s trace, which has durations and no operands: the %s model has nothing to go by, use replay",
			m.Name, m.Format, w.Config.Model)
	}
	switch w.Config.Model {
	case Reference:
		ref = newReference(m, w.Machine)
		row = ref.row
		if !ref.unusual() {
			plan = newPlan(ref)
		}
	case Calibrated:
		if len(w.Machine.Calibrated.Ops) == 0 {
			return fmt.Errorf("machine %s has no calibrated model", w.Machine.Name)
		}
		nominal = NewNominal(m, w.Machine)
		row = nominal.row
	case Replay:
		if !m.HasDurations() {
			return fmt.Errorf("the replay model needs an input with durations, which %s has not", m.Name)
		}
		row = newReplay(m, w.Machine)
	default:
		return fmt.Errorf("the %s model gives instructions no costs", w.Config.Model)
	}
	issue, latency := m.Instr.Issue.Slice(), m.Instr.Latency.Slice()
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	for lo := 0; lo < n; lo += chunk {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			from, to := lo, min(lo+chunk, n)
			row := row
			switch {
			case plan != nil:
				from = plan.fill(lo, to, issue, latency)
			case nominal != nil:
				row = nominal.remembered(to - lo)
			case w.Config.Model == Replay && asRecorded(m, lo, to):
				dur := m.Instr.MeasuredDur.View(lo, to)
				copy(issue[lo:to], dur)
				copy(latency[lo:to], dur)
				return nil
			}
			for i := from; i < to; i++ {
				is, lat := row(i)
				if lat > math.MaxUint32 || is > math.MaxUint32 {
					return fmt.Errorf("instruction %s takes %d ns, more than the %d ns one instruction can have",
						m.InstrName(components.InstrID(i)), max(is, lat), uint32(math.MaxUint32))
				}
				issue[i], latency[i] = uint32(is), uint32(lat)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if ref != nil {
		t.inline.fill(ref, issue[:n], latency)
	}
	for _, c := range w.Config.Costs {
		if c.Issue != nil {
			issue[c.Row] = *c.Issue
		}
		if c.Latency != nil {
			latency[c.Row] = *c.Latency
		}
	}
	if plan != nil {
		for op, rows := range plan.defaults {
			if t.defaults == nil {
				t.defaults = map[components.Opcode]int{}
			}
			t.defaults[op] += rows
		}
	}
	return nil
}

// noteDefaults names the opcodes that had no cost of their own.
func noteDefaults(w *components.World, rows map[components.Opcode]int) {
	m := w.Module
	for _, op := range slices.Sorted(maps.Keys(rows)) {
		name := m.OpcodeName(op)
		m.Note(components.NoteDefaultCost, fmt.Sprintf("opcode %s has no cost on %s; default_cost is used", name, w.Machine.Name), rows[op])
	}
}

// clockOf returns the clock of an engine in units of 10 MHz.
func clockOf(c machine.Clock, e components.Engine) int {
	switch e {
	case components.PE:
		return c.PE
	case components.Activation:
		return c.Activation
	case components.Pool:
		return c.Pool
	case components.DVE:
		return c.DVE
	}
	return c.SP
}

// clockNamed returns the clock a cost names.
func clockNamed(c machine.Clock, name string) int {
	switch name {
	case "pe":
		return c.PE
	case "activation":
		return c.Activation
	case "pool":
		return c.Pool
	case "dve":
		return c.DVE
	}
	return c.SP
}
