package explain

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/systems/attribute"
	"perfsim/systems/place"
)

// workKey is the instructions of one opcode on one lane.
type workKey struct {
	lane   uint16
	opcode components.Opcode
}

// candidate is a cause before its worth is known.
type candidate struct {
	Cause
	// less is the prediction in which it does not exist, nil where none answers;
	// little, where not nil, that in which its work takes 1 ns, as little as work
	// can.
	less, little *trial
}

// causes lists what makes the makespan, what is worth most first. others are
// trials that are made with those of the causes.
func (x *Analysis) causes(ctx context.Context, r *Report, path *attribute.PathReport, others []*trial) error {
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
		if err := x.evaluate(ctx, list, others); err != nil {
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

// whole reports whether the report is on the whole prediction, not on one block
// or a window: only then does another prediction answer for a cause.
func (x *Analysis) whole() bool { return x.count.Window == nil && x.count.Block < 0 }

// pathBounds reports whether work is worth at most its time on the critical
// path: without the work the path is still there, shorter by that time, if
// durations do not depend on the moment and a rule does not release what takes
// no time.
func (x *Analysis) pathBounds() bool {
	return !x.timesWork() && !x.Rules.Banks && !x.Rules.Couplings && x.Rules.Shares == nil
}

// sharing reports whether collectives of several streams share a bandwidth, so
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
	if x.timesWork() {
		return out
	}
	lane, opcode := m.Instr.Lane.Slice(), m.Instr.Opcode.Slice()
	psum := x.workInPSUM()
	for k, key := range keys {
		pick := func(lo int, hit []uint8, bit uint8) {
			lane, opcode := lane[lo:][:len(hit)], opcode[lo:][:len(hit)]
			for i := range hit { // without branches, which would be hard to foresee
				differ := uint64(lane[i]^key.lane) | uint64(opcode[i]^key.opcode)
				hit[i] |= bit & uint8((differ-1)>>56)
			}
		}
		out[k].less = &trial{less: place.Variant{Pick: pick}, unstretched: true}
		// The rules of PSUM let the last user of a bank decide when it is free,
		// and what takes no time is none. So a little work can end earlier than
		// none; in between, less is never later.
		if psum[key] {
			out[k].little = &trial{less: place.Variant{Pick: pick, Least: 1}, unstretched: true}
		}
	}
	return out
}

// workInPSUM tells of which work some is under the rules of PSUM.
func (x *Analysis) workInPSUM() map[workKey]bool {
	if !x.Rules.Banks && !x.Rules.Couplings {
		return nil
	}
	in := &x.World.Module.Instr
	opcodes := x.World.Module.NumOpcodes()
	seen := make([]bool, x.World.Module.Lanes.Len()*opcodes)
	lane, opcode, banks := in.Lane.Slice(), in.Opcode.Slice(), in.Banks.Slice()
	for i, f := range in.Flags.Slice() {
		if banks[i] != 0 || place.Chained(f, 0) {
			seen[int(lane[i])*opcodes+int(opcode[i])] = true
		}
	}
	out := map[workKey]bool{}
	for k, yes := range seen {
		if yes {
			out[workKey{uint16(k / opcodes), components.Opcode(k % opcodes)}] = true
		}
	}
	return out
}

// constraints are the rules that hold steps of the path.
func (x *Analysis) constraints(path *attribute.PathReport) []candidate {
	w := x.World
	var out []candidate
	add := func(cause components.Cause, name string, less *trial) {
		c := candidate{Cause: Cause{Name: name, Kind: "constraint"}}
		if !x.semaphores() {
			c.less = less
		}
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
		out = append(out, c)
	}
	for _, r := range place.Table() {
		switch {
		case r.Constraint == "":
		case r.Switch != nil:
			rules := x.Rules
			*r.Switch(&rules) = false
			add(r.Cause, r.Constraint, &trial{rules: &rules})
		case r.Edges != "" && r.Cause != components.CauseAnti:
			add(r.Cause, r.Constraint, &trial{less: place.Variant{Drop: 1 << r.Class}})
		default: // run B is the answer for anti-dependencies; barriers stay
			add(r.Cause, r.Constraint, nil)
		}
		if n := len(out); r.Cause == components.CauseAnti && n > 0 && out[n-1].Name == r.Constraint && x.whole() {
			if a, b := w.Latency(components.RunA), w.LatencyB().Or(0); a > b && b > 0 {
				out[n-1].AtMost, out[n-1].Exact, out[n-1].Bounded = a-b, true, true
			}
		}
	}
	add(components.CauseSemaphore, "semaphores of the runtime", nil)
	return out
}

// evaluate predicts anew without each cause, and makes other trials.
func (x *Analysis) evaluate(ctx context.Context, list []candidate, others []*trial) error {
	base := x.World.Latency(components.RunA)
	for k := range list {
		if c := &list[k]; c.less != nil && !c.Exact {
			others = append(others, c.less)
			if c.little != nil {
				others = append(others, c.little)
			}
		}
	}
	if err := x.try(ctx, others); err != nil {
		return err
	}
	for k := range list {
		c := &list[k]
		if c.less == nil || c.Exact {
			continue
		}
		least, exact := c.less.ns, c.less.exact
		if c.little != nil && c.little.ns < least {
			least, exact = c.little.ns, false
		}
		c.AtMost, c.Exact, c.Bounded = base-min(base, least), exact, true
	}
	return nil
}
