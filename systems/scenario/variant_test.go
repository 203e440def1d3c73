package scenario

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
)

// Copies of a pool give what fresh copies give, and leave the original alone.
func TestPool(t *testing.T) {
	ctx := context.Background()
	mach, err := machine.Load("trn1")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(61, seed))
		w := &components.World{Module: randmod.Module(r, randmod.Options{Streams: 4}), Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}, Events: components.NewEvents()}
		if err := cost.Fill(ctx, w); err != nil {
			t.Fatal(err)
		}
		if err := place.Run(ctx, w); err != nil {
			t.Fatal(err)
		}
		issue, arrive := slices.Clone(w.Module.Instr.Issue.Slice()), slices.Clone(w.Events.Arrive.Slice())
		pool := NewPool(w)
		for range 6 {
			kind := r.IntN(3)
			change := func(c *components.World, own func(*components.World, bool)) uint64 {
				switch kind {
				case 1:
					own(c, true)
					for i, l := range c.Module.Instr.Latency.Slice() {
						c.Module.Instr.Latency.Set(i, l/2)
						c.Module.Instr.Issue.Set(i, c.Module.Instr.Issue.At(i)/2)
					}
				case 2:
					Without(c, func(_ uint32, e int, _ uint32) bool { return e%2 == 0 })
				}
				if err := place.Run(ctx, c); err != nil {
					t.Fatal(err)
				}
				return c.Latency(components.RunA)
			}
			want := change(Fork(w), OwnCosts)
			c := pool.Get()
			got := change(c, pool.OwnCosts)
			pool.Put(c)
			if got != want || kind == 0 && got != w.Latency(components.RunA) {
				t.Fatalf("seed %d, change %d: %d, a fresh copy gives %d", seed, kind, got, want)
			}
		}
		if !slices.Equal(issue, w.Module.Instr.Issue.Slice()) || !slices.Equal(arrive, w.Events.Arrive.Slice()) {
			t.Fatalf("seed %d: the original changed", seed)
		}
	}
}
