//go:build unix

package suite

import (
	"context"
	"errors"
	"fmt"
	"math"

	"perfsim/bench/self/kernel"
	"perfsim/components"
	"perfsim/io/traces/catapult"
	"perfsim/systems/place"
)

// dagSeed makes every run measure the same graphs.
const dagSeed = 1

func dag(n int) kernel.Shape { return kernel.Shape{Instructions: n, Seed: dagSeed, Far: 5, Near: 64} }

// kernelMost bounds the race with C: its arrays are there twice, ours and
// those of the C program, with several layouts of the edges.
const kernelMost = 30_000_000

// kernel lets the placement and the C kernels take turns on the same arrays.
func (b *bench) kernel() error {
	return b.sizes("kernel", kernelMost, func(n int) error {
		m := kernel.DAG(dag(n))
		c, err := kernel.StartC(b.opt.Dir, m)
		if errors.Is(err, kernel.ErrNoCompiler) {
			b.r.Notes = append(b.r.Notes, "the C kernels: "+err.Error())
		} else if err != nil {
			return err
		} else {
			defer c.Close()
		}
		w := &components.World{Module: m, Events: components.NewEvents(), Config: components.Config{Jobs: 1}}
		// Small sizes are repeated within one figure: the clock is coarse.
		repeat := max(1, 2_000_000/n)
		ours := []struct {
			name  string
			place func(context.Context, *components.World, place.Rules) error
		}{{"kernel/Go", place.RunRules}, {"kernel/Go without assembly", place.RunPlain}}
		if err := ours[0].place(b.ctx, w, place.Rules{}); err != nil { // brings the memory of the events
			return err
		}
		return b.rounds(func() error {
			sum, best, err := b.inC(n, repeat, c)
			if err != nil {
				return err
			}
			var ns [2]float64
			for k, x := range ours {
				if ns[k], err = repeated(repeat, func() error { return x.place(b.ctx, w, place.Rules{}) }); err != nil {
					return err
				}
				ns[k] /= float64(n)
				b.r.add(x.name, n, "ns/instr", ns[k])
				if got := kernel.Sum(w.Events.Arrive.Slice()); c != nil && got != sum {
					return fmt.Errorf("%s and C disagree on the times of %d instructions", x.name, n)
				}
			}
			if c == nil {
				return nil
			}
			b.r.add("kernel/Go to best C", n, "ratio", ns[0]/best)
			if n > traceMost {
				return nil
			}
			return b.traces(n, c, w)
		})
	})
}

// inC takes the time of every C kernel; best is the smallest, sum the checksum
// of the times that all of them find. Without a C program both are 0.
func (b *bench) inC(n, repeat int, c *kernel.C) (sum uint64, best float64, err error) {
	if c == nil {
		return 0, 0, nil
	}
	best = math.Inf(1)
	for _, v := range c.Variants {
		total := int64(0)
		for range repeat {
			var ns int64
			if ns, sum, err = c.Run(v); err != nil {
				return 0, 0, err
			}
			total += ns
		}
		x := float64(total) / float64(repeat) / float64(n)
		b.r.add("kernel/C "+v, n, "ns/instr", x)
		best = min(best, x)
	}
	return sum, best, nil
}

// traces lets C and Go take turns at writing the trace of run A.
func (b *bench) traces(n int, c *kernel.C, w *components.World) error {
	theirs, size, err := c.Trace()
	if err != nil {
		return err
	}
	b.r.add("trace/C", n, "ns/instr", float64(theirs)/float64(n))
	b.r.add("trace/C, bytes", n, "bytes/instr", float64(size)/float64(n))
	var out counter
	ours, err := timed(func() error { return catapult.Write(b.ctx, &out, w, 0, components.RunA, false, 1) })
	if err != nil {
		return err
	}
	b.r.add("trace/Go", n, "ns/instr", ours/float64(n))
	b.r.add("trace/Go, bytes", n, "bytes/instr", float64(out)/float64(n))
	b.r.add("trace/Go to C, byte for byte", n, "ratio", ours/float64(out)/(float64(theirs)/float64(size)))
	return nil
}
