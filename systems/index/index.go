// Package index builds the bitmap indexes of a world: lane and opcode to
// instructions, edge class to edges. Queries combine them; the stalls of
// anti-dependencies are looked for among the edges of one class. Placement
// walks all rows and uses none, so they are built when first asked for.
package index

import (
	"context"

	"perfsim/components"
	"perfsim/ecs"
)

// Build fills those of w.ByLane, w.ByOpcode and w.ByClass that are not there.
func Build(ctx context.Context, w *components.World) error {
	m := w.Module
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	if w.ByLane == nil {
		g.Go(func() error {
			w.ByLane = ecs.BuildIndex(m.Instr.Lane.Slice(), m.Lanes.Len(), 0)
			return ctx.Err()
		})
	}
	if w.ByOpcode == nil {
		g.Go(func() error {
			w.ByOpcode = ecs.BuildIndex(m.Instr.Opcode.Slice(), m.NumOpcodes(), 0)
			return ctx.Err()
		})
	}
	if w.ByClass == nil {
		g.Go(func() error {
			w.ByClass = ecs.BuildIndex(m.Edges.Preds.Words(), int(components.NumClasses), ecs.ClassShift)
			return ctx.Err()
		})
	}
	return g.Wait()
}

// AntiEdges returns the ids of the anti-dependencies that placement honours.
func AntiEdges(w *components.World) ecs.Set {
	x := w.ByClass
	if x == nil {
		x = ecs.BuildIndex(w.Module.Edges.Preds.Words(), int(components.NumClasses), ecs.ClassShift)
	}
	return x.Set(int(components.ClassAnti))
}
