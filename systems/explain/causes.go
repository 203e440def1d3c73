package explain

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// workKey is the instructions of one opcode on one lane.
type workKey struct {
	lane   uint16
	opcode components.Opcode
}

// candidate is a cause before its worth is known.
type candidate struct {
	Cause
	// change makes the copy in which it does not exist; where costs is set it
	// changes costs, of which the copy then has its own.
	change func(c *components.World)
	costs  bool
	// least makes the copy in which the work of the cause takes as little as
	// work can, 1 ns, and reports whether any of it uses PSUM.
	least func(c *components.World) bool
	place func(ctx context.Context, c *components.World) error
}

// causes lists what makes the makespan, what is worth most first.
func (x *Analysis) causes(ctx context.Context, r *Report, path *attribute.PathReport) error {
	list := x.workCauses(path)
	list = append(list, x.constraints(path)...)
	if v := path.Classes[attribute.ClassRuntime]; v > 0 {
		list = append(list, candidate{Cause: Cause{Name: "runtime", Kind: "runtime", NS: v,
			Place: Place{Source: "around the program"}}})
	}
	if x.pathBounds() {
		for k := range list {
			if c := &list[k]; c.Kind != "constraint" {
				c.AtMost, c.Bounded = c.NS, true
			}
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.NS, a.NS) })
	list = list[:min(len(list), 2*x.opt.Top)]
	if x.whole() {
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

// whole tells whether the report is on the whole prediction, not on one block
// or a window: only then does another prediction answer for a cause.
func (x *Analysis) whole() bool { return x.count.Window == nil && x.count.Block < 0 }

// pathBounds tells whether work is worth at most its time on the critical path:
// without the work the path is still there, shorter by that time, if durations
// do not depend on the moment and a rule does not release what takes no time.
func (x *Analysis) pathBounds() bool {
	return !x.timesWork() && !x.Rules.Banks && !x.Rules.Couplings && x.Rules.Shares == nil
}

// sharing tells whether collectives of several streams share a bandwidth, so
// that one of them that ends earlier can make another one longer.
func (x *Analysis) sharing() bool {
	if !x.Rules.Reflow {
		return false
	}
	in, first := &x.World.Module.Instr, -1
	for i := range in.Len() {
		if !x.Rules.Shared(x.World.Module, uint32(i)) {
			continue
		}
		l := int(in.Lane.At(i))
		if first >= 0 && l != first {
			return true
		}
		first = l
	}
	return false
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
	sums := map[workKey]int{}
	var out []candidate
	var where []uint64 // ns of the pattern that names the place
	var keys []workKey
	for _, p := range path.Patterns {
		if p.Runtime {
			continue // one cause of its own
		}
		if p.Time == 0 {
			continue
		}
		key := workKey{p.Lane, p.Opcode}
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
		key := keys[k]
		out[k].costs = true
		set := func(c *components.World, least uint32) (psum bool) {
			in, was := &c.Module.Instr, m.Instr.Latency.Slice()
			issue, latency := in.Issue.Slice(), in.Latency.Slice()
			lane, opcode := in.Lane.Slice(), in.Opcode.Slice()
			for i := range issue {
				if lane[i] == key.lane && opcode[i] == key.opcode {
					issue[i], latency[i] = 0, min(least, was[i])
					psum = psum || in.Banks.At(i) != 0 || place.Chained(in.Flags.At(i), 0)
				}
			}
			return psum
		}
		out[k].change = func(c *components.World) { set(c, 0) }
		out[k].least = func(c *components.World) bool { return set(c, 1) }
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
	for _, r := range place.Table() {
		switch {
		case r.Constraint == "":
		case r.Switch != nil:
			add(r.Cause, r.Constraint, func(*components.World) {}, func(all *place.Rules) { *r.Switch(all) = false })
		case r.Edges != "" && r.Cause != components.CauseAnti:
			add(r.Cause, r.Constraint, dropClass(r.Class), nil)
		default: // run B is the answer for anti-dependencies; barriers stay
			add(r.Cause, r.Constraint, nil, nil)
		}
		if n := len(out); r.Cause == components.CauseAnti && n > 0 && out[n-1].Name == r.Constraint && x.whole() {
			if a, b := w.Latency(components.RunA), w.LatencyB().Or(0); a > b && b > 0 {
				out[n-1].AtMost, out[n-1].Exact, out[n-1].Bounded = a-b, true, true
			}
		}
	}
	add(components.CauseSemaphore, "semaphores of the runtime", nil, nil)
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
	g, ctx := ecs.NewGroup(ctx, x.World.Config.Jobs)
	pool := scenario.NewPool(x.World)
	sharing := x.sharing()
	for k := range list {
		c := &list[k]
		if c.change == nil || c.Exact || c.costs && x.timesWork() || !c.costs && x.semaphores() {
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
			exact := true
			switch {
			case c.place != nil:
				run = c.place
			case c.costs && sharing:
				// With less of this work another collective may be stretched more
				// or less than without any. None takes less than unstretched.
				exact = false
				run = func(ctx context.Context, f *components.World) error {
					r := x.Rules
					r.Reflow, r.ReflowWeight = false, 0
					return place.RunRules(ctx, f, r)
				}
			}
			if err := run(ctx, f); err != nil {
				return err
			}
			least := f.Latency(components.RunA)
			// The rules of PSUM let the last user of a bank decide when it is free,
			// and what takes no time is none. So a little work can end earlier than
			// none; in between, less is never later.
			if c.least != nil && (x.Rules.Banks || x.Rules.Couplings) && c.least(f) {
				if err := run(ctx, f); err != nil {
					return err
				}
				if l := f.Latency(components.RunA); l < least {
					least, exact = l, false
				}
			}
			c.AtMost, c.Exact, c.Bounded = base-min(base, least), exact, true
			return nil
		})
	}
	return g.Wait()
}
