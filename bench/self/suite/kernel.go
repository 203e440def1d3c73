//go:build unix

package suite

import (
	"context"
	"errors"
	"fmt"

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
		first := true
		return b.rounds(func() error {
			var sum uint64
			var best float64
			if c != nil {
				for _, v := range c.Variants {
					total := int64(0)
					for range repeat {
						ns, s, err := c.Run(v)
						if err != nil {
							return err
						}
						total, sum = total+ns, s
					}
					x := float64(total) / float64(repeat) / float64(n)
					b.r.add("kernel/C "+v, n, "ns/instr", x)
					if best == 0 || x < best {
						best = x
					}
				}
			}
			var ns float64
			for _, plain := range []bool{false, true} {
				place := func() error { return place.RunRules(context.Background(), w, place.Rules{}) }
				name := "kernel/Go"
				if plain {
					place = func() error { return runPlain(w) }
					name = "kernel/Go without assembly"
				}
				if first {
					if err := place(); err != nil { // brings the memory of the events
						return err
					}
				}
				x, err := timed(func() error {
					for range repeat {
						if err := place(); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					return err
				}
				x /= float64(repeat) * float64(n)
				b.r.add(name, n, "ns/instr", x)
				if !plain {
					ns = x
				}
				if got := kernel.Sum(w.Events.Arrive.Slice()); c != nil && got != sum {
					return fmt.Errorf("%s and C disagree on the times of %d instructions", name, n)
				}
			}
			if best > 0 {
				b.r.add("kernel/Go to best C", n, "ratio", ns/best)
			}
			first = false
			if c == nil || n > traceMost {
				return nil
			}
			return b.traces(n, c, w)
		})
	})
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

func runPlain(w *components.World) error {
	return place.RunPlain(context.Background(), w, place.Rules{})
}
