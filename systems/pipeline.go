// Package systems says what runs, and in which order: Order is the whole
// list. Each system is a package below.
package systems

import (
	"context"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/metricstore"
	"perfsim/systems/cost"
	"perfsim/systems/emit"
	"perfsim/systems/index"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

// World is a simulation with its outputs.
type World struct {
	components.World
	Metrics *metricstore.Store
	Summary summary.Summary
	Out     emit.Output
	Log     func(string) // documented log lines; may be nil
}

// NewWorld returns a world over module m.
func NewWorld(m *components.Module) *World {
	return &World{World: components.World{Module: m, Events: components.NewEvents()}, Metrics: metricstore.New()}
}

type system = ecs.System[World]

// Order returns the systems in the order in which they run. This is the only
// place that decides it.
func Order() ecs.Schedule[World] {
	return ecs.Schedule[World]{
		Given: []ecs.Component{"instr", "edges", "blocks", "operands", "lanes", "machine"},
		Systems: []system{
			{Name: "cost", Run: func(ctx context.Context, w *World) error { return cost.Fill(ctx, &w.World) },
				Reads: []ecs.Component{"instr", "machine"}, Writes: []ecs.Component{"instr.issue", "instr.latency"}},
			{Name: "place", Run: func(ctx context.Context, w *World) error { return place.Run(ctx, &w.World) },
				Reads: []ecs.Component{"instr.issue", "instr.latency", "edges", "blocks"}, Writes: []ecs.Component{"events", "results"}},
			{Name: "index", Run: func(ctx context.Context, w *World) error { return index.Build(ctx, &w.World) },
				Reads: []ecs.Component{"instr", "edges"}, Writes: []ecs.Component{"index"}},
			{Name: "summary", Run: func(ctx context.Context, w *World) error {
				w.Summary = summary.Make(&w.World)
				w.Summary.Record(w.Metrics, w.Module)
				return nil
			}, Reads: []ecs.Component{"events", "results", "index"}, Writes: []ecs.Component{"summary", "metrics"}},
			{Name: "traces", Run: func(ctx context.Context, w *World) error { return emit.Traces(ctx, &w.World, &w.Out) },
				Reads: []ecs.Component{"events", "instr", "edges", "operands"}, Writes: []ecs.Component{"files.traces"}},
			{Name: "metrics", Run: func(ctx context.Context, w *World) error { return emit.Metrics(ctx, w.Metrics, &w.Out) },
				Reads: []ecs.Component{"metrics"}, Writes: []ecs.Component{"files.metrics"}},
			{Name: "package", Run: func(ctx context.Context, w *World) error { return emit.Package(ctx, &w.Out, w.Log) },
				Reads: []ecs.Component{"files.traces"}, Writes: []ecs.Component{"files.package"}},
			{Name: "commit", Run: func(ctx context.Context, w *World) error { return emit.Commit(&w.Out) },
				Reads: []ecs.Component{"files.traces", "files.metrics", "files.package"}, Writes: []ecs.Component{"files"}},
		},
	}
}
