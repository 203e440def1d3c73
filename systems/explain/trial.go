package explain

import (
	"context"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// trial is one prediction with less in the world.
type trial struct {
	less  place.Variant
	rules *place.Rules // other rules of placement, nil for the same
	// unstretched has no collective stretched where several share a bandwidth:
	// with less of some work another one may be stretched more or less than
	// without any. None takes less than unstretched.
	unstretched bool

	ns    uint64 // the latency of run A
	exact bool   // it is that of the world with less, not a lower bound of it
}

// try predicts all trials.
func (x *Analysis) try(ctx context.Context, list []*trial) error {
	w := x.World
	bent := x.Rules
	bent.Reflow, bent.ReflowWeight = false, 0
	sharing := x.sharing()
	var variants []place.Variant
	var of []*trial
	for _, t := range list {
		t.exact = !t.unstretched || !sharing
		if t.rules == nil {
			variants, of = append(variants, t.less), append(of, t)
		}
	}
	ns, err := place.Variants(ctx, w, x.Rules, variants)
	if err != nil {
		return err
	}
	for k := range ns {
		of[k].ns = ns[k]
	}
	g, group := ecs.NewGroup(ctx, w.Config.Jobs)
	pool := scenario.NewPool(w)
	for _, t := range list {
		run := x.Engine.Place
		switch {
		case t.rules != nil:
			run = func(ctx context.Context, w *components.World) error { return place.RunRules(ctx, w, *t.rules) }
		case len(ns) > 0:
			continue // known
		case !t.exact:
			run = func(ctx context.Context, w *components.World) error { return place.RunRules(ctx, w, bent) }
		}
		g.Go(func() error {
			f := pool.Get()
			defer pool.Put(f)
			f.Config.Jobs = 1
			reduce(pool, f, t.less)
			err := run(group, f)
			t.ns = f.Latency(components.RunA)
			return err
		})
	}
	return g.Wait()
}

// reduce makes a copy of a pool the variant.
func reduce(pool *scenario.Pool, c *components.World, v place.Variant) {
	if v.Drop != 0 {
		scenario.Without(c, func(_ uint32, _ int, word uint32) bool { return v.Drop>>(word>>ecs.ClassShift)&1 != 0 })
	}
	if v.Pick == nil {
		return
	}
	pool.OwnCosts(c, true)
	issue, latency := c.Module.Instr.Issue.Slice(), c.Module.Instr.Latency.Slice()
	hit := make([]uint8, len(issue))
	v.Pick(0, hit, 1)
	for i, h := range hit {
		if h != 0 {
			issue[i], latency[i] = 0, min(latency[i], v.Least)
		}
	}
}
