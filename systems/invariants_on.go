//go:build invariants

package systems

import (
	"context"
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/cost"
)

// checked returns a system that fails where the tables behind it do not hold
// what every later system relies on.
func checked(sys System) System {
	run := sys.Run
	sys.Run = func(ctx context.Context, w *World) error {
		if err := run(ctx, w); err != nil {
			return err
		}
		if err := w.Module.Check(); err != nil {
			return fmt.Errorf("invariant behind %s: %w", sys.Name, err)
		}
		if slices.Contains(sys.Writes, "summary") && w.placed {
			if err := checkPlacement(w); err != nil {
				return fmt.Errorf("invariant behind %s: %w", sys.Name, err)
			}
		}
		return nil
	}
	return sys
}

// checkPlacement fails where an event reaches beyond its block, where it starts
// before a producer lets it, or where a lane of the documented rules does not
// keep the order of the program.
func checkPlacement(w *World) error {
	m := w.Module
	if n := w.Events.Arrive.Len(); n != m.Instr.Len() {
		return fmt.Errorf("%d events of %d instructions", n, m.Instr.Len())
	}
	if len(w.Blocks) != m.Blocks.Len() {
		return fmt.Errorf("%d results of %d blocks", len(w.Blocks), m.Blocks.Len())
	}
	runs := []components.Run{components.RunA, components.RunB}
	if w.NoRunB != "" {
		runs = runs[:1]
	}
	for _, b := range m.TopBlocks() {
		for _, run := range runs {
			if err := checkBlock(w, b, run); err != nil {
				return fmt.Errorf("block %s, run %c: %w", m.BlockName(b), 'A'+rune(run), err)
			}
		}
	}
	return nil
}

func checkBlock(w *World, b int, run components.Run) error {
	m := w.Module
	extent := w.Blocks[b].Extent(run)
	last := make([]uint64, m.Lanes.Len()) // start of the last instruction, by lane
	for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
		if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 {
			continue
		}
		id := components.InstrID(i)
		start, end := w.Events.Span(m, id, run)
		if start > end || end > extent {
			return fmt.Errorf("%s lasts from %d to %d ns, the block to %d", m.InstrName(id), start, end, extent)
		}
		if w.Config.Model == cost.Calibrated {
			continue // its lanes and waits follow semaphores and queues
		}
		lane := m.Instr.Lane.At(int(i))
		if m.Instr.Flags.At(int(i))&components.FlagBarrier == 0 && start < last[lane] { // barriers wait for the engines, not for each other
			return fmt.Errorf("%s starts at %d ns, before the instruction ahead of it on %s (%d)", m.InstrName(id), start, m.LaneName(lane), last[lane])
		}
		last[lane] = start
		for _, word := range m.Edges.Preds.Row(int(i)) {
			p := components.InstrID(word & ecs.TargetMask)
			kind := components.KindOfClass(uint8(word >> ecs.ClassShift))
			if kind == components.Ordered || kind == components.Anti && run == components.RunB {
				continue
			}
			if at := w.Events.Arrive.At(int(p))[run]; start < at {
				return fmt.Errorf("%s starts at %d ns, before %s lets it (%d, %s)", m.InstrName(id), start, m.InstrName(p), at, kind)
			}
		}
	}
	return nil
}
