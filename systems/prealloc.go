package systems

import (
	"context"
	"fmt"

	"perfsim/components"
	"perfsim/systems/summary"
)

// beforeAllocation is the ordinal of the perf_sim pass that runs before
// buffers are allocated.
const beforeAllocation = 88

// preAlloc simulates the module before allocation in a world of its own and
// records the estimates of pass p.
func (w *World) preAlloc(ctx context.Context, p Pass) error {
	m, err := w.PreAlloc(ctx)
	if err != nil {
		return fmt.Errorf("before allocation: %w", err)
	}
	early := newWorld(m)
	early.Machine, early.Config, early.Log = w.Machine, w.Config, w.Log
	early.Config.Progress = nil
	if err := fillCosts(ctx, &early.World); err != nil {
		return err
	}
	if err := placeModel(ctx, early); err != nil {
		return err
	}
	early.Summary = summary.Make(&early.World)
	early.Metrics = w.Metrics
	early.estimate(p)
	w.Estimates = append(w.Estimates, early.Estimates...)
	w.before = early.Latency(components.RunA)
	return nil
}

// BeforeAllocation returns the predicted time of the module before allocation
// in ns, 0 where it was not simulated.
func (w *World) BeforeAllocation() uint64 { return w.before }
