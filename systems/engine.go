package systems

import (
	"context"

	"perfsim/components"
	"perfsim/systems/cost"
	"perfsim/systems/scenario"
)

// Engine returns the prediction of the pipeline, its cost and its place
// system, for changed copies of a world.
func Engine() scenario.Engine {
	return scenario.Engine{Cost: cost.Fill, Place: func(ctx context.Context, w *components.World) error {
		x := World{World: *w}
		err := placeModel(ctx, &x)
		*w = x.World
		return err
	}}
}
