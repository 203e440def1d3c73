package systems

import (
	"context"

	"perfsim/components"
	"perfsim/systems/cost"
	"perfsim/systems/scenario"
	"perfsim/systems/transfer"
)

// engine returns the prediction of the pipeline, its cost and its place
// system, for changed copies of a placed world, whose transfers have their rows.
func engine() scenario.Engine {
	return scenario.Engine{Cost: cost.Fill, Place: func(ctx context.Context, w *components.World) error {
		x := World{World: *w}
		err := placeModel(ctx, &x)
		*w = x.World
		return err
	}}
}

// expandTransfers gives the transfers of DMA triggers rows of their own, as the
// reference model places them.
func expandTransfers(_ context.Context, w *World) error { return expand(&w.World) }

func expand(w *components.World) error {
	if w.Config.Model != cost.Reference {
		return nil
	}
	m, err := transfer.Expand(w.Module)
	if err != nil {
		return err
	}
	w.Module = m
	return nil
}

// fillCosts is the transfers and the cost system.
func fillCosts(ctx context.Context, w *components.World) error {
	if err := expand(w); err != nil {
		return err
	}
	return cost.Fill(ctx, w)
}
