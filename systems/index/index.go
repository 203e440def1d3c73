// Package index builds the bitmap indexes of a world: lane and opcode to
// instructions, edge class to edges. They answer queries; no hot loop walks
// them.
package index

import (
	"context"

	"perfsim/components"
	"perfsim/ecs"
)

// Build fills w.ByLane, w.ByOpcode and w.ByClass.
func Build(_ context.Context, w *components.World) error {
	m := w.Module
	w.ByLane = ecs.BuildIndex(m.Instr.Lane.Slice(), m.Lanes.Len(), 0)
	w.ByOpcode = ecs.BuildIndex(m.Instr.Opcode.Slice(), m.NumOpcodes(), 0)
	w.ByClass = ecs.BuildIndex(m.Edges.Preds.Words(), int(components.NumClasses), ecs.ClassShift)
	return nil
}
