package systems

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/summary"
)

// beforeAllocation is the ordinal of the perf_sim pass that runs before
// buffers are allocated.
const beforeAllocation = 88

// early is the simulation of the module before allocation: what is left of it
// once its rows are gone.
type early struct {
	summary summary.Summary
	latency uint64
	blocks  []components.BlockResult
	module  *components.Module
	machine *machine.Machine
	model   components.Model
	loops   components.Loops
	events  components.Events // memory for those of the allocated module
}

// predictsBefore reports whether one of the passes simulates the module before
// allocation.
func predictsBefore(opt Options) bool {
	passes, err := pick(opt)
	return err == nil && slices.ContainsFunc(passes, func(p Pass) bool { return p.Ordinal == beforeAllocation })
}

// before simulates the module before allocation of a graph of a format. It
// returns nil where that fails.
func (s *Settings) before(ctx context.Context, m *components.Module, mach *machine.Machine, format string, jobs int) *early {
	named := *m
	named.Format = format
	config, err := s.configOf(&named, mach, jobs)
	if err != nil {
		return nil
	}
	e, err := simulateEarly(ctx, m, mach, config)
	if err != nil {
		return nil
	}
	return e
}

// serves reports whether the simulation is that of a machine and configuration.
func (e *early) serves(w *World) bool {
	if e == nil || len(w.Config.Costs) > 0 {
		return false
	}
	return e.model == w.Config.Model && e.loops == w.Config.Loops && reflect.DeepEqual(e.machine, w.Machine)
}

// simulateEarly costs and places the module before allocation.
func simulateEarly(ctx context.Context, m *components.Module, mach *machine.Machine, config components.Config) (*early, error) {
	w := newWorld(m)
	w.Machine, w.Config = mach, config
	w.Config.Progress = nil
	// The allocated module has some more rows and takes the same memory.
	n := m.Instr.Len() + m.Instr.Len()/16 + 1
	m.Instr.Issue.Reserve(n)
	m.Instr.Latency.Reserve(n)
	w.Events.Arrive.Reserve(n)
	w.Events.Dur.Reserve(n)
	if err := fillCosts(ctx, &w.World); err != nil {
		return nil, err
	}
	if err := placeModel(ctx, w); err != nil {
		return nil, err
	}
	named := &components.Module{Name: m.Name, Blocks: w.Module.Blocks, Functions: w.Module.Functions}
	return &early{summary.Make(&w.World), w.Latency(components.RunA), w.Blocks, named, mach, config.Model, config.Loops, w.Events}, nil
}

// preAlloc simulates the module before allocation in a world of its own, where
// that is not done, and records the estimates of pass p.
func (w *World) preAlloc(ctx context.Context, p Pass) error {
	e := w.early
	if e == nil {
		m, err := w.PreAlloc(ctx)
		if err != nil {
			return fmt.Errorf("before allocation: %w", err)
		}
		if e, err = simulateEarly(ctx, m, w.Machine, w.Config); err != nil {
			return err
		}
	}
	x := newWorld(e.module)
	x.Machine, x.Config, x.Log, x.Metrics = w.Machine, w.Config, w.Log, w.Metrics
	x.Summary, x.Blocks = e.summary, e.blocks
	x.estimate(p)
	w.Estimates = append(w.Estimates, x.Estimates...)
	w.before = e.latency
	return nil
}

// BeforeAllocation returns the predicted time of the module before allocation
// in ns, 0 where it was not simulated.
func (w *World) BeforeAllocation() uint64 { return w.before }
