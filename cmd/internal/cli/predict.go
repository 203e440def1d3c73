package cli

import (
	"context"

	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/systems"
)

// predict reads the module at path, configures a world for it and runs the
// prediction: what explain, whatif, query and export start from.
func (f *inputFlags) predict(ctx context.Context, c *cobra.Command, path string, p *progress) (*components.World, error) {
	m, err := f.load(ctx, c, path, p)
	if err != nil {
		return nil, err
	}
	w := &components.World{Module: m, Events: components.NewEvents()}
	if w.Machine, err = f.machineFor(m); err != nil {
		return nil, err
	}
	if w.Config, err = f.configure(m, w.Machine); err != nil {
		return nil, err
	}
	w.Config.Why = true
	w.Config.Progress = func(done, _ int64) { p.set(done) }
	e := systems.Engine()
	p.start("costs", int64(m.Instr.Len()), false)
	if err := e.Cost(ctx, w); err != nil {
		return nil, err
	}
	p.start("placement", int64(m.Instr.Len()), false)
	if err := e.Place(ctx, w); err != nil {
		return nil, err
	}
	p.finish()
	return w, nil
}
