package systems

import (
	"context"
	"fmt"
	"slices"
	"time"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/antidep"
	"perfsim/systems/attribute"
	"perfsim/systems/index"
)

// analyses lists the systems that run when a caller asks a Result for what
// they write, each at most once, in this order. What one reads and another
// writes is made first.
func analyses() []ecs.System[Result] {
	return []ecs.System[Result]{
		{Name: "index", // bitmaps (roaring): lane and opcode to instructions, edge class to edges
			Reads: []ecs.Component{"instr", "edges"}, Writes: []ecs.Component{"index"},
			Run: func(ctx context.Context, r *Result) error { return index.Build(ctx, &r.World.World) }},
		{Name: "causes", // before slack, path and stalls, which follow the binding constraints
			Reads: []ecs.Component{"events", "edges", "blocks"}, Writes: []ecs.Component{"causes"},
			Run: func(ctx context.Context, r *Result) error {
				w, err := r.reasoned(ctx)
				if err != nil {
					return err
				}
				for run := range r.why {
					if r.why[run], err = attribute.Bind(ctx, w, r.Rules(), components.Run(run)); err != nil {
						return err
					}
				}
				return nil
			}},
		{Name: "slack",
			Reads: []ecs.Component{"events", "causes"}, Writes: []ecs.Component{"slack"},
			Run: func(ctx context.Context, r *Result) (err error) {
				r.slack, err = attribute.Slack(ctx, &r.World.World, r.Rules(), r.why[components.RunA])
				return err
			}},
		{Name: "critical-path",
			Reads: []ecs.Component{"events", "causes"}, Writes: []ecs.Component{"path"},
			Run: func(ctx context.Context, r *Result) (err error) {
				w := &r.World.World
				r.paths, err = attribute.CriticalPath(ctx, w, r.Rules(), r.why[components.RunA],
					attribute.Options{Block: -1, Trips: w.Config.Loops == components.Trips})
				return err
			}},
		{Name: "anti-stalls", // anti-dependency stall resolution: what run A lost, buffer by buffer, over the rows that have such edges
			Reads: []ecs.Component{"index", "operands", "events", "causes"}, Writes: []ecs.Component{"stalls"},
			Run: func(ctx context.Context, r *Result) error {
				w := &r.World.World
				table, err := antidep.Buffers(ctx, w.Module, index.AntiEdges(w), w.Config.Jobs)
				if err != nil {
					return err
				}
				paths, err := attribute.CriticalPath(ctx, w, r.Rules(), r.why[components.RunA], attribute.Options{Block: -1})
				if err != nil {
					return err
				}
				r.stalls, err = antidep.Make(ctx, w, engine(), table, r.why[components.RunA], paths,
					antidep.Options{Top: exactBuffers, Trips: w.Config.Loops == components.Trips})
				return err
			}},
	}
}

// exactBuffers is how many buffers the anti-stalls system predicts anew
// without their anti-dependencies; the cost of others is bounded.
const exactBuffers = 5

// demand makes component c and what it is made from, where it is not there
// yet. The caller holds r.mu.
func (r *Result) demand(ctx context.Context, c ecs.Component) error {
	if r.made[c] {
		return nil
	}
	list := analyses()
	n := slices.IndexFunc(list, func(s ecs.System[Result]) bool { return slices.Contains(s.Writes, c) })
	if n < 0 {
		return nil // a simulation has made it
	}
	sys := list[n]
	for _, needed := range sys.Reads {
		if err := r.demand(ctx, needed); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := sys.Run(ctx, r); err != nil {
		return fmt.Errorf("%s: %w", sys.Name, err)
	}
	r.Timings = append(r.Timings, Timing{System: "on demand/" + sys.Name, Wall: time.Since(began)})
	if r.made == nil {
		r.made = map[ecs.Component]bool{}
	}
	for _, w := range sys.Writes {
		r.made[w] = true
	}
	return nil
}

// Why returns what held every instruction in one run.
func (r *Result) Why(ctx context.Context, run components.Run) (*components.Attribution, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.demand(ctx, "causes")
	return r.why[run], err
}

// Slack returns by how much every instruction could end later in run A
// without the run getting longer, in ns.
func (r *Result) Slack(ctx context.Context) ([]uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.demand(ctx, "slack")
	return r.slack, err
}

// Paths returns the critical path of every top-level block in run A.
func (r *Result) Paths(ctx context.Context) ([]*attribute.Path, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.demand(ctx, "path")
	return r.paths, err
}

// Stalls returns what anti-dependencies cost run A, buffer by buffer.
func (r *Result) Stalls(ctx context.Context) (*antidep.Report, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.demand(ctx, "stalls")
	return r.stalls, err
}

// Index returns the world with its bitmap indexes: lane and opcode to
// instructions, edge class to edges.
func (r *Result) Index(ctx context.Context) (*components.World, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &r.World.World, r.demand(ctx, "index")
}
