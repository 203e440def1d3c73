// Package systems says what runs, and in which order: pipeline is the whole
// list. Each system is a package below.
package systems

import (
	"context"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/neuron/metricstore"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
	"perfsim/systems/deps"
	"perfsim/systems/emit"
	"perfsim/systems/place"
	"perfsim/systems/sched"
	"perfsim/systems/summary"
)

// pipeline lists every pass in the order in which it runs, with the ordinals
// of the documented compiler. This is the only place that decides the order;
// Order picks from it, never sorts. A pass is a few systems; three
// registrations share one kind of pass and differ in their name only.
func pipeline() []Pass {
	return []Pass{
		{Ordinal: 74, Name: "build_fdeps", Make: buildFlow, // what reads depend on comes before what writes must wait for
			Doc: "rebuild the flow dependencies of functions that came without any, or of all with --rebuild-deps"},
		{Ordinal: 76, Name: "anti_dependency_analyzer", Make: analyzeAnti, // after allocation: needs addresses
			Doc: "rebuild their anti- and output dependencies from access patterns"},
		{Ordinal: 88, Name: "perf_sim", Flagged: true, Make: perfSim, // before the scheduler: the estimate it starts from
			Doc: "place every instruction, with and without anti-dependencies; metric 42"},
		{Ordinal: 92, Name: "post_sched", Make: postSched, // after allocation and the estimate that says what it has to beat
			Doc: "give the instructions a better order, by --policy 1, 2 or 3; 0 keeps the order (ours: the input's order is what is asked about)"},
		{Ordinal: 99, Name: "perf_sim", Flagged: true, Make: perfSim, // after the scheduler: overwrites the estimate of 88
			Doc: "the same after scheduling: its estimate replaces that of 88 under one key"},
		{Ordinal: 106, Name: "perf_sim_at_end", Make: perfSim, // needs no flag
			Doc: "the same at the end of the backend; traces of a family of their own"},
		{Ordinal: 130, Name: "metric_store", Make: metricStore, // the documented packager writes it after the last pass
			Doc: "write global_metric_store.json"},
		{Ordinal: 131, Name: "perf_sim_package_pass", Make: packagePass, // last, when all traces are there
			Doc: "pack the perf_sim traces into file.perf-sim"},
	}
}

// What needs what, and why; docs of the order for people, and the reason in the
// error of an order that is wrong.
func reasons() map[ecs.Component]string {
	return map[ecs.Component]string{
		"edges":         "an instruction starts when its producers let it",
		"instr.issue":   "a lane is busy for the issue interval",
		"instr.latency": "an event ends a latency after its start",
		"events":        "figures and traces are those of placed instructions",
		"results":       "the latency of a module is that of its blocks",
		"metrics":       "the store is written when all passes have published",
		"files.traces":  "the package holds the traces",
	}
}

// given are the components a module brings.
var given = []ecs.Component{"instr", "edges", "blocks", "operands", "lanes", "machine"}

func buildFlow(Pass, bool) []System {
	return []System{{Name: "rebuild", Run: func(ctx context.Context, w *World) error {
		r, err := deps.BuildFlow(ctx, w.Module, w.depsOptions())
		w.rebuilt(r)
		return err
	}, Reads: []ecs.Component{"operands", "blocks"}, Writes: []ecs.Component{"edges"}}}
}

func analyzeAnti(Pass, bool) []System {
	return []System{{Name: "rebuild", Run: func(ctx context.Context, w *World) error {
		r, err := deps.AnalyzeAnti(ctx, w.Module, w.depsOptions())
		w.rebuilt(r)
		return err
	}, Reads: []ecs.Component{"operands", "blocks", "edges"}, Writes: []ecs.Component{"edges"}}}
}

// The conditions of systems.
func unlessPlaced() condition {
	return condition{Name: "unless placed", Holds: func(w *World) bool { return !w.placed }}
}

// ofModule holds for a pass that simulates the module itself: the first perf_sim
// pass sees the module before allocation, where there is one.
func ofModule(p Pass) condition {
	return condition{Name: "of the module as it is", Holds: func(w *World) bool { return p.Ordinal != beforeAllocation || w.PreAlloc == nil }}
}

func beforeAllocated(p Pass) condition {
	return condition{Name: "of a graph, before allocation", Holds: func(w *World) bool { return p.Ordinal == beforeAllocation && w.PreAlloc != nil }}
}

func ordering() condition {
	return condition{Name: "--policy 1, 2 or 3", Holds: func(w *World) bool { return w.Policy != sched.Keep }}
}

func dumpsSchedule() condition {
	return condition{Name: "--dump-postsched-trace", Holds: func(w *World) bool { return w.DumpSched && w.Out.Dir != "" }}
}

// postSched orders the instructions anew, publishes how many each engine has,
// as the documented pass does, and, where asked, writes the trace of what it
// made.
func postSched(Pass, bool) []System {
	return []System{
		{Name: "order", When: []condition{ordering()}, Run: func(ctx context.Context, w *World) error {
			if err := fillCosts(ctx, &w.World); err != nil {
				return err
			}
			// The new order has to be better than the result of
			// pass 88.
			blocks, err := sched.Run(ctx, &w.World, sched.Options{Policy: w.Policy, Log: w.Log, Before: w.snapshot()})
			w.Scheduled = append(w.Scheduled, blocks...)
			w.Changed()
			return err
		}, Reads: []ecs.Component{"instr", "machine", "edges", "blocks", "lanes", "operands"}, Earlier: []ecs.Component{"results"},
			Writes: []ecs.Component{"instr", "edges", "blocks", "operands", "instr.issue", "instr.latency"}},
		{Name: "counts", Run: func(_ context.Context, w *World) error { summary.Count(w.Metrics, w.Module); return nil },
			Reads: []ecs.Component{"instr", "lanes"}, Writes: []ecs.Component{"metrics"}},
		{Name: "trace", When: []condition{ordering(), dumpsSchedule()}, Run: func(ctx context.Context, w *World) error {
			if err := placeModel(ctx, w); err != nil {
				return err
			}
			w.Summary = summary.Make(&w.World)
			w.placed = true
			return emit.Traces(ctx, &w.World, &w.Out, emit.FamilySched)
		}, Reads: []ecs.Component{"instr", "operands", "instr.issue", "instr.latency", "edges", "blocks"}, Writes: []ecs.Component{"events", "results", "summary", "files.traces"}},
	}
}

// perfSim are the systems of one perf_sim pass. The name of the pass is the
// prefix of its trace files; nothing else differs between registrations.
func perfSim(p Pass, last bool) []System {
	family := p.Name
	if family == "perf_sim_at_end" {
		family = emit.FamilyAtEnd
	}
	places := []condition{ofModule(p), unlessPlaced()}
	list := []System{
		{Name: "before_allocation", When: []condition{beforeAllocated(p)}, Run: func(ctx context.Context, w *World) error { return w.preAlloc(ctx, p) },
			Reads: []ecs.Component{"instr", "machine"}, Writes: []ecs.Component{"metrics"}},
		{Name: "transfers", When: places, Run: expandTransfers, // before cost: a transfer is an instruction with a cost of its own
			Reads: []ecs.Component{"instr", "edges", "blocks", "operands", "lanes"}, Writes: []ecs.Component{"instr", "edges", "blocks", "operands"}},
		{Name: "cost", When: places, Run: func(ctx context.Context, w *World) error { return cost.Fill(ctx, &w.World) },
			Reads: []ecs.Component{"instr", "machine", "lanes"}, Writes: []ecs.Component{"instr.issue", "instr.latency"}},
		{Name: "place", When: places, Run: placeModel, // after cost
			Reads: []ecs.Component{"instr", "instr.issue", "instr.latency", "edges", "blocks", "lanes"}, Writes: []ecs.Component{"events", "results"}},
		{Name: "summary", When: []condition{ofModule(p)}, Run: func(_ context.Context, w *World) error {
			if err := beyond(w); err != nil {
				return err
			}
			if !w.placed {
				w.Summary = summary.Make(&w.World)
				w.placed = true
				remarks(w)
			}
			w.estimate(p)
			return nil
		}, Reads: []ecs.Component{"instr", "instr.issue", "instr.latency", "edges", "blocks", "lanes", "operands", "events", "results"},
			Writes: []ecs.Component{"summary", "metrics"}},
	}
	if last { // an earlier pass of the same name would write the same files
		list = append(list, System{Name: "traces", Run: func(ctx context.Context, w *World) error {
			return emit.Traces(ctx, &w.World, &w.Out, family)
		}, Reads: []ecs.Component{"events", "instr", "edges", "operands"}, Writes: []ecs.Component{"files.traces"}})
	}
	return list
}

// placeModel places with the rules of the configured model.
func placeModel(ctx context.Context, w *World) error {
	if w.Config.Model != cost.Calibrated {
		return place.Run(ctx, &w.World)
	}
	if w.BySemaphores() && w.NoRunB == "" {
		if err := chooseSync(ctx, &w.World); err != nil {
			return err
		}
	}
	return calibrated.Run(ctx, &w.World)
}

func metricStore(Pass, bool) []System {
	return []System{{Name: "write", Run: func(ctx context.Context, w *World) error { return emit.Metrics(ctx, w.Metrics, &w.Out) },
		Reads: []ecs.Component{"metrics"}, Writes: []ecs.Component{"files.metrics"}}}
}

func packagePass(Pass, bool) []System {
	return []System{{Name: "pack", Run: func(ctx context.Context, w *World) error { return emit.Package(ctx, &w.World, &w.Out, w.Log) },
		Reads: []ecs.Component{"files.traces"}, Writes: []ecs.Component{"files.package"}}}
}

// World is a simulation with its outputs.
type World struct {
	components.World
	Metrics   *metricstore.Store
	Summary   summary.Summary
	Estimates []Estimate
	Out       emit.Output
	Log       func(string) // documented log lines; may be nil

	// RebuildDeps has the dependency passes take every function, not only
	// those that came without dependencies.
	RebuildDeps bool
	// Policy is how post_sched orders instructions; sched.Keep leaves them.
	Policy sched.Policy
	// DumpSched has post_sched write the trace of what it made.
	DumpSched bool
	// Scheduled has what post_sched did to every top-level block.
	Scheduled []sched.Block
	// Rebuilt adds up what the dependency passes inserted.
	Rebuilt deps.Report

	// PreAlloc makes the module as it was before buffers were allocated, which
	// the first perf_sim pass simulates; nil where the input is not a graph that
	// was lowered.
	PreAlloc func(context.Context) (*components.Module, error)
	early    *early // its simulation, where that is done
	before   uint64 // its predicted time in ns

	// placed says that Events and Summary are those of the module as it is:
	// a pass that simulates an unchanged module again reuses them.
	placed bool
}

// newWorld returns a world over module m.
func newWorld(m *components.Module) *World {
	return &World{World: components.World{Module: m, Events: components.NewEvents()}, Metrics: metricstore.New()}
}

// Changed says that the module, machine or configuration changed, so that the
// next perf_sim pass places anew.
func (w *World) Changed() { w.placed = false }

// snapshot returns the latency of every block row in run A, loop bodies once,
// as the last perf_sim pass found it; nil where none placed the module as it
// is.
func (w *World) snapshot() []uint64 {
	if !w.placed {
		return nil
	}
	out := make([]uint64, len(w.Blocks))
	for i, b := range w.Blocks {
		out[i] = b.Latency[components.RunA]
	}
	return out
}

// depsOptions are the options of both dependency passes.
func (w *World) depsOptions() deps.Options {
	o := deps.Default()
	o.All, o.Log = w.RebuildDeps, w.Log
	return o
}

// rebuilt adds up what a dependency pass did.
func (w *World) rebuilt(r deps.Report) {
	if r.Functions == 0 {
		return
	}
	w.Changed()
	w.Rebuilt.Functions = max(w.Rebuilt.Functions, r.Functions)
	w.Rebuilt.Accesses += r.Accesses
	w.Rebuilt.Carried += r.Carried
	w.Rebuilt.Blind += r.Blind
	for k, n := range r.Edges {
		w.Rebuilt.Edges[k] += n
	}
}
