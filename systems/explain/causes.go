package explain

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// work is the instructions of one opcode on one lane.
type work struct {
	lane   uint16
	opcode components.Opcode
}

// candidate is a cause before its worth is known.
type candidate struct {
	Cause
	// change makes the copy in which it does not exist; costs tells that it
	// changes costs, of which the copy then has its own.
	change func(c *components.World)
	costs  bool
	place  func(ctx context.Context, c *components.World) error
}

// causes lists what makes the makespan, what is worth most first.
func (x *Analysis) causes(ctx context.Context, r *Report, path *attribute.PathReport) error {
	list := x.workCauses(path)
	list = append(list, x.constraints(path)...)
	if v := path.Classes[attribute.ClassRuntime]; v > 0 {
		list = append(list, candidate{Cause: Cause{Name: "runtime", Kind: "runtime", NS: v, AtMost: v, Bounded: true,
			Place: Place{Source: "before and behind the program"}}})
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.NS, a.NS) })
	list = list[:min(len(list), 2*x.opt.Top)]
	if x.count.Window == nil && x.count.Block < 0 {
		if err := x.evaluate(ctx, list); err != nil {
			return err
		}
	}
	for _, c := range list {
		c.Share, c.Gain = share(c.NS, path.Span), share(c.AtMost, path.Span)
		r.Causes = append(r.Causes, c.Cause)
	}
	slices.SortStableFunc(r.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.worth(), a.worth()), cmp.Compare(b.NS, a.NS))
	})
	r.Causes = r.Causes[:min(len(r.Causes), x.opt.Top)]
	return nil
}

// worth orders causes: what they are worth, or where that is not known their
// time on the path.
func (c *Cause) worth() uint64 {
	if c.Bounded {
		return c.AtMost
	}
	return c.NS
}

// workCauses groups the path by opcode and lane. A step that the next waits
// for because of a constraint counts as work here and for the constraint: the
// two are ways to look at one path, not parts of it.
func (x *Analysis) workCauses(path *attribute.PathReport) []candidate {
	m := x.World.Module
	sums := map[work]int{}
	var out []candidate
	var where []uint64 // ns of the pattern that names the place
	var keys []work
	for _, p := range path.Patterns {
		if p.Runtime {
			continue // one cause of its own
		}
		if p.Time == 0 {
			continue
		}
		key := work{p.Lane, p.Opcode}
		k, ok := sums[key]
		if !ok {
			k = len(out)
			sums[key] = k
			out = append(out, candidate{Cause: Cause{Name: m.LaneName(p.Lane) + " " + m.OpcodeName(p.Opcode), Kind: "work"}})
			where = append(where, 0)
			keys = append(keys, key)
		}
		c := &out[k]
		c.NS += p.Time
		c.Place.Count += p.Works
		if p.Time > where[k] {
			where[k] = p.Time
			c.Place.Source, c.Place.Instruction = symbolOf(m, p.Where), m.InstrName(p.Example)
		}
	}
	for k := range out {
		// Without the work the path is still there, shorter by its time.
		out[k].AtMost, out[k].Bounded = out[k].NS, true
		key := keys[k]
		out[k].costs = true
		out[k].change = func(c *components.World) {
			in := &c.Module.Instr
			issue, latency := in.Issue.Slice(), in.Latency.Slice()
			lane, opcode := in.Lane.Slice(), in.Opcode.Slice()
			for i := range issue {
				if lane[i] == key.lane && opcode[i] == key.opcode {
					issue[i], latency[i] = 0, 0
				}
			}
		}
	}
	return out
}

// constraints are the rules that hold steps of the path.
func (x *Analysis) constraints(path *attribute.PathReport) []candidate {
	w := x.World
	var out []candidate
	add := func(cause components.Cause, name string, change func(*components.World), rules func(*place.Rules)) {
		c := candidate{Cause: Cause{Name: name, Kind: "constraint"}, change: change}
		for _, p := range path.Patterns {
			if p.Via == cause && !p.Runtime {
				c.NS += p.Time
				c.Place.Count += p.Count
				if c.Place.Instruction == "" {
					c.Place.Source, c.Place.Instruction = symbolOf(w.Module, p.Where), w.Module.InstrName(p.Example)
				}
			}
		}
		if c.Place.Count == 0 {
			return
		}
		if rules != nil {
			c.place = func(ctx context.Context, f *components.World) error {
				r := x.Rules
				rules(&r)
				return place.RunRules(ctx, f, r)
			}
		}
		out = append(out, c)
	}
	if a, b := w.Latency(components.RunA), w.Latency(components.RunB); a > b && x.count.Window == nil && x.count.Block < 0 {
		// Run B is the answer already.
		add(components.CauseAnti, "anti-dependencies", nil, nil)
		if n := len(out); n > 0 {
			out[n-1].AtMost, out[n-1].Exact, out[n-1].Bounded = a-b, true, true
		}
	} else {
		add(components.CauseAnti, "anti-dependencies", nil, nil)
	}
	add(components.CauseOutput, "output dependencies", dropClass(components.ClassOutput), nil)
	add(components.CauseOrdered, "ordering edges", dropClass(components.ClassOrdered), nil)
	add(components.CauseBank, "PSUM banks", func(*components.World) {}, func(r *place.Rules) { r.Banks = false })
	add(components.CauseCoupling, "engine couplings", func(*components.World) {}, func(r *place.Rules) { r.Couplings = false })
	add(components.CauseRing, "DMA ring depth", func(*components.World) {}, func(r *place.Rules) { r.Rings = false })
	add(components.CauseSemaphore, "semaphores of the runtime", nil, nil)
	add(components.CauseBarrier, "barriers", nil, nil)
	return out
}

func dropClass(class uint8) func(c *components.World) {
	return func(c *components.World) {
		scenario.Without(c, func(_ uint32, _ int, word uint32) bool { return uint8(word>>ecs.ClassShift) == class })
	}
}

// evaluate predicts anew without each cause.
func (x *Analysis) evaluate(ctx context.Context, list []candidate) error {
	base := x.World.Latency(components.RunA)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, x.World.Config.Jobs))
	pool := scenario.NewPool(x.World)
	for k := range list {
		c := &list[k]
		if c.change == nil || c.Exact || c.costs && x.knows() || !c.costs && x.semaphores() {
			continue
		}
		g.Go(func() error {
			f := pool.Get()
			defer pool.Put(f)
			f.Config.Jobs = 1
			if c.costs {
				pool.OwnCosts(f, true)
			}
			c.change(f)
			run := x.Engine.Place
			if c.place != nil {
				run = c.place
			}
			if err := run(ctx, f); err != nil {
				return err
			}
			c.AtMost, c.Exact, c.Bounded = base-min(base, f.Latency(components.RunA)), true, true
			return nil
		})
	}
	return g.Wait()
}
