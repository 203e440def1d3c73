package systems

import (
	"context"
	"fmt"

	"perfsim/components"
	"perfsim/systems/calibrated"
	"perfsim/systems/scenario"
)

// nearEnough is by which share run A on dependencies may differ from run A on
// semaphores for dependencies to stand for semaphores in both runs.
const nearEnough = 0.01

// chooseSync decides, once for a world and its changed copies, what the
// calibrated model goes by where the input has semaphores: by dependencies
// where they give nearly the same run A, so that run B can leave
// anti-dependencies out, else by semaphores and without a run B.
func chooseSync(ctx context.Context, w *components.World) error {
	var ns [2]uint64
	for k := range ns {
		c := scenario.Fork(w)
		c.Config.Why, c.Config.OnDependencies = false, k == 1
		if err := calibrated.Run(ctx, c); err != nil {
			return err
		}
		ns[k] = c.Latency(components.RunA)
	}
	off := float64(ns[1])/float64(max(ns[0], 1)) - 1
	if off >= -nearEnough && off <= nearEnough {
		w.Config.OnDependencies = true
		return nil
	}
	w.NoRunB = fmt.Sprintf("the instructions synchronise by semaphores, which hold anti-dependencies too; by dependencies run A takes %+.1f %%, beyond the 1 %% up to which they stand for semaphores", 100*off)
	return nil
}
