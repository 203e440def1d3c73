package systems

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/io/format"
	"perfsim/io/neuron/metricstore"
	"perfsim/systems/change"
	"perfsim/systems/emit"
	"perfsim/systems/sched"
)

// Request is one question to the simulator: a module and everything that
// changes its prediction.
type Request struct {
	Reading
	Settings
	// Loaded is a module that Load returned, instead of what Reading names.
	Loaded *Loaded
	// Changes give single instructions other work or costs; the module that was
	// loaded stays as it is.
	Changes []change.Change
	// On is the machine, where not nil; it replaces Settings.Machine.
	On *machine.Machine

	// Why has the model keep the reasons of every start as it places, where it
	// has some: for callers that will ask the Result for them.
	Why bool
	// Pipeline picks passes; nil runs those that a prediction needs, once, and
	// writes nothing.
	Pipeline *Options
	// Policy is how post_sched orders instructions, DumpSched has it write the
	// trace of what it made.
	Policy    sched.Policy
	DumpSched bool
	// Out says where the passes write.
	Out emit.Output
	// Record, where not nil, is called when all is placed and before the files
	// of the outputs get their names: what it writes may be of their set.
	Record func(*components.World, *emit.Output) error
	// Log takes the documented lines of the passes; may be nil.
	Log func(line string)
}

// predicting picks the passes of a prediction that leaves nothing behind:
// dependencies of functions that came without any, and one placement.
var predicting = Options{Only: []string{"build_fdeps", "anti_dependency_analyzer", "perf_sim_at_end"}}

// pipeline picks the passes that the request asks for.
func (r *Request) pipeline() Options {
	if r.Pipeline != nil {
		return *r.Pipeline
	}
	return predicting
}

// Simulate is the one way from a module to its prediction. It loads the
// module, lowers it where it is a graph, rebuilds the dependencies that it
// lacks, and costs and places its instructions. All commands call it, so that
// one input has one answer; what else a command asks for, the Result works
// out.
func Simulate(ctx context.Context, r Request) (*Result, error) {
	began := time.Now()
	l := r.Loaded
	if l == nil {
		var err error
		r.Passes = r.Pipeline
		if l, err = Load(ctx, &r.Reading, r.Settings); err != nil {
			return nil, err
		}
	}
	res := &Result{Input: l.Input, Lowering: l.Lowering, ReadTime: time.Since(began)}
	m := l.Module
	if l.prepared || len(r.Changes) > 0 {
		m = ownCosts(m)
	}
	w := newWorld(m)
	w.Rebuilt = l.rebuilt
	res.World = w
	var err error
	if w.Machine = r.On; w.Machine == nil {
		if w.Machine, err = r.MachineOf(m); err != nil {
			return nil, err
		}
	}
	if w.Config, err = r.configOf(m, w.Machine, r.Jobs); err != nil {
		return nil, err
	}
	w.Config.Why = r.Why
	if r.RebuildDeps {
		if err := l.canRebuild(); err != nil {
			return nil, err
		}
	}
	if l.prepared && w.Config.Model == components.Reference {
		m = ownCosts(l.expanded)
		w.Module = m
	}
	if len(r.Changes) > 0 {
		if err := expand(&w.World); err != nil {
			return nil, err
		}
		m = w.Module
		if w.Config.Costs, err = change.Apply(m, r.Changes, w.Config.Model); err != nil {
			return nil, RequestError{err}
		}
	}
	w.Out, w.Log, w.PreAlloc = r.Out, r.Log, l.preAlloc
	if l.early.serves(w) {
		w.early = l.early
		w.Events, l.early.events = l.early.events, components.NewEvents()
	}
	w.RebuildDeps = r.RebuildDeps && !l.prepared
	w.Policy, w.DumpSched = r.Policy, r.DumpSched
	if err := mergeTensorizer(w, l.path); err != nil {
		return nil, err
	}
	n := m.Instr.Len()
	if err := format.Reserve(ctx, uint64(n)*bytesPlaced, fmt.Sprintf("simulating %s instructions", humanize.Comma(int64(n)))); err != nil {
		return nil, err
	}
	order, err := order(r.pipeline())
	if err != nil {
		return nil, RequestError{err}
	}
	defer w.Out.Abort()
	set := func(int64) {}
	w.Config.Progress = func(done, _ int64) { set(done) }
	res.Timings, err = order.Run(ctx, w, func(_ int, name string) { set = r.stage(name, int64(n), false) })
	if err != nil {
		return nil, err
	}
	w.Config.Progress = nil
	if r.Record != nil {
		if err := r.Record(&w.World, &w.Out); err != nil {
			return nil, err
		}
	}
	if err := emit.Commit(&w.Out); err != nil {
		return nil, err
	}
	res.Time = time.Since(began)
	return res, nil
}

// bytesPlaced is the memory of a prediction, by row, besides the module: issue
// interval, latency and the times of both runs.
const bytesPlaced = 24

// Timing is the time of one system.
type Timing = ecs.Timing

// Keep makes the loaded module hold what the settings ask for, so that its
// prediction is the same after it was written and read again: dependencies
// are rebuilt where the settings say so, and a chosen machine, model and loop
// mode become attributes. Dependencies that an input lacks stay absent, marked
// as such.
func (l *Loaded) Keep(ctx context.Context, jobs int) error {
	m, s := l.Module, &l.settings
	if s.Loops != components.LoopsUnset {
		m.SetAttribute(loopsAttribute, s.Loops.String())
	}
	switch {
	case s.Model != components.NoModel:
		m.SetAttribute(modelAttribute, s.Model.String())
	case usualModel(m) != components.Reference && m.Attribute(modelAttribute) == "":
		// Another format does not say that the module came from a trace or profile.
		m.SetAttribute(modelAttribute, usualModel(m).String())
	}
	if s.Machine != "" {
		mach, err := LoadMachine(s.Machine)
		if err != nil {
			return err
		}
		m.Arch = mach.Name
	}
	if !s.RebuildDeps {
		return nil
	}
	return l.rebuild(ctx, jobs)
}

// canRebuild fails where there is nothing to rebuild dependencies from.
func (l *Loaded) canRebuild() error {
	if l.Module.Operands.Offsets.Len() > 0 {
		return nil
	}
	return requestf("--rebuild-deps: %s has no access patterns to derive dependencies from (%s)", l.Input, l.Module.Format)
}

// mergeTensorizer takes over the metrics that the compiler's front end left
// next to the input, before the passes add theirs, as the documented driver
// does. Where no metrics are written it does nothing.
func mergeTensorizer(w *World, path string) error {
	if w.Out.Dir == "" || path == "" {
		return nil
	}
	rep, found, err := w.Metrics.MergeTensorizer(filepath.Dir(path), metricstore.ReadOptions{DefaultName: w.Module.Name})
	if err != nil {
		return err
	}
	if found {
		w.Module.Note("tensorizer-metrics", fmt.Sprintf("metrics of %s beside the input are in the metric store", metricstore.TensorizerFile), rep.Entries)
	}
	return nil
}
