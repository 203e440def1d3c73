package systems

import (
	"context"

	"perfsim/components"
	"perfsim/systems/cost"
	"perfsim/systems/scenario"
	"perfsim/systems/transfer"
)

// Engine returns the prediction of the pipeline, its cost and its place
// system, for changed copies of a world.
func Engine() scenario.Engine {
	return scenario.Engine{Cost: fillCosts, Place: func(ctx context.Context, w *components.World) error {
		x := World{World: *w}
		err := placeModel(ctx, &x)
		*w = x.World
		return err
	}}
}

// fillCosts is the cost system. The documented simulator has transfers on a
// timeline of their own, so that they get rows first.
func fillCosts(ctx context.Context, w *components.World) error {
	if w.Config.Model == cost.Reference {
		m, err := transfer.Expand(w.Module)
		if err != nil {
			return err
		}
		w.Module = m
	}
	return cost.Fill(ctx, w)
}
