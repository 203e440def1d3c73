// Package tracklayout lays a placed world out for the exporters: its runs and,
// where the input has them, its measured times side by side, with what held
// every instruction, counters and the figures of the whole.
package tracklayout

import (
	"context"
	"errors"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/cost"
	"perfsim/systems/countertrack"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

// Options say what a timeline holds.
type Options struct {
	Block    int  // row of a top-level block, negative for all
	RunB     bool // the run without anti-dependencies as a process of its own
	Measured bool // the measured times as a process of their own
	Why      bool // causes, slack and critical path
	Counters bool
	// Busy is the busy time of run A by lane, in ns; nil has it worked out.
	Busy []uint64
}

// Names of the processes.
const (
	predicted   = "predicted"
	predictedB  = "predicted without anti-dependencies"
	measuredRun = "measured"
	ReplayedRun = "replayed"
	recordedRun = "simulated, as recorded"
)

// MeasuredName names the times that the input brought: those of a simulator's
// trace are no measurement.
func MeasuredName(m *components.Module) string {
	if m.Attribute(cost.DocumentedTrace) != "" {
		return recordedRun
	}
	return measuredRun
}

// Make makes the timeline of a placed world.
func Make(ctx context.Context, w *components.World, o Options) (*components.Timeline, error) {
	list := []components.Process{{Name: predicted, Run: components.RunA}}
	if w.Replayed() {
		list[0].Name = ReplayedRun
	}
	if o.RunB && w.NoRunB != "" {
		return nil, errors.New("no run without anti-dependencies: " + w.NoRunB)
	}
	if o.RunB {
		list = append(list, components.Process{Name: predictedB, Run: components.RunB})
	}
	if o.Measured {
		if !w.Module.HasMeasurement() {
			return nil, errors.New("the input has no measured times")
		}
		list = append(list, components.Process{Name: MeasuredName(w.Module), Measured: true})
	}
	t := components.NewTimeline(w, o.Block, list...)
	if o.Why {
		if err := why(ctx, t, o); err != nil {
			return nil, err
		}
	}
	t.Executions, t.RowBusy = components.NewExecutions(w.Module, w.Config.Loops), summary.RowBusy(w)
	if o.Counters {
		for p := range list {
			if err := countertrack.Add(ctx, t, p); err != nil {
				return nil, err
			}
		}
	}
	t.Metrics = metrics(t, o.Busy)
	return t, nil
}

func why(ctx context.Context, t *components.Timeline, o Options) error {
	w := t.World
	rules := place.RulesFor(w)
	var err error
	if t.Why, err = attribute.Bind(ctx, w, rules, components.RunA); err != nil {
		return err
	}
	if t.Slack, err = attribute.Slack(ctx, w, rules, t.Why); err != nil {
		return err
	}
	paths, err := attribute.CriticalPath(ctx, w, rules, t.Why, attribute.Options{Block: o.Block})
	if err != nil {
		return err
	}
	t.Critical = ecs.NewBits(w.Module.Instr.Len())
	for _, p := range paths {
		for _, i := range p.Steps {
			t.Critical.Set(uint32(i))
		}
	}
	return nil
}
