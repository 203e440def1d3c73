package explain

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
)

func (r *Report) classes(path *attribute.PathReport) {
	c, ns := path.Bound()
	r.Bound, r.BoundShare = c.String(), share(ns, path.Span)
	for c := range attribute.NumClasses {
		r.Classes = append(r.Classes, Share{c.String(), path.Classes[c], share(path.Classes[c], path.Span)})
	}
	slices.SortStableFunc(r.Classes, func(a, b Share) int { return cmp.Compare(b.NS, a.NS) })
}

func (r *Report) path(m *components.Module, path *attribute.PathReport, top int) {
	r.Path = PathShape{Steps: path.Steps, LeadNS: path.Lead, TailNS: path.Tail}
	for _, v := range path.Gaps {
		r.Path.DelaysNS += v
	}
	r.Path.Delays = share(r.Path.DelaysNS, path.Span)
	for _, p := range path.Patterns[:min(top, len(path.Patterns))] {
		r.Patterns = append(r.Patterns, Pattern{Lane: m.LaneName(p.Lane), Opcode: m.OpcodeName(p.Opcode), Source: m.Symbols.String(p.Where),
			Via: p.Via.String(), NS: p.Time, Share: share(p.Time, path.Span), Count: p.Count, Example: m.InstrName(p.Example)})
	}
	for _, l := range path.Where {
		if l.Where == 0 || len(r.Lines) == top {
			continue
		}
		r.Lines = append(r.Lines, Line{Source: m.Symbols.String(l.Where), NS: l.Time, Share: share(l.Time, path.Span), Count: l.Count,
			Example: m.InstrName(l.Example)})
	}
	for op, v := range path.Opcodes {
		if v > 0 {
			r.Opcodes = append(r.Opcodes, Share{m.OpcodeName(components.Opcode(op)), v, share(v, path.Span)})
		}
	}
	slices.SortStableFunc(r.Opcodes, func(a, b Share) int { return cmp.Compare(b.NS, a.NS) })
	r.Opcodes = r.Opcodes[:min(top, len(r.Opcodes))]
	for c, v := range path.Via {
		if v > 0 {
			name := components.Cause(c).String()
			if components.Cause(c) == components.CauseStart {
				name = "end"
			}
			r.Kinds = append(r.Kinds, Share{name, v, share(v, path.Span)})
		}
	}
	slices.SortStableFunc(r.Kinds, func(a, b Share) int { return cmp.Compare(b.NS, a.NS) })
}

// engines lists the lanes that have instructions.
func (r *Report) engines(m *components.Module, lanes *attribute.LaneReport, path *attribute.PathReport, top int) {
	type held struct {
		lane, by uint16
	}
	waits := map[held]uint64{}
	for _, s := range lanes.Stalls {
		if s.Held && s.HolderLane != s.Lane {
			waits[held{s.Lane, s.HolderLane}] += s.Time
		}
	}
	for l := range lanes.Lanes {
		t := &lanes.Lanes[l]
		if t.Instructions == 0 {
			continue
		}
		e := Engine{Lane: uint16(l), Name: m.LaneName(uint16(l)), Instructions: t.Instructions, BusyNS: t.Work(), IssueNS: t.Issue, StretchNS: t.Stretch,
			FinishNS: t.Finish, ControlNS: t.Control, Busy: share(t.Work(), lanes.Span), PathNS: path.Lanes[l]}
		for c, v := range t.Idle {
			if v > 0 {
				e.Idle = append(e.Idle, Share{components.Cause(c).String(), v, share(v, lanes.Span)})
			}
		}
		slices.SortStableFunc(e.Idle, func(a, b Share) int { return cmp.Compare(b.NS, a.NS) })
		for by := range lanes.Lanes {
			if v := waits[held{uint16(l), uint16(by)}]; v > e.WaitsForNS {
				e.WaitsForNS, e.WaitsFor = v, m.LaneName(uint16(by))
			}
		}
		r.Engines = append(r.Engines, e)
	}
	for _, s := range lanes.Stalls[:min(len(lanes.Stalls), 4*top)] {
		r.Stalls = append(r.Stalls, stallOf(m, s, lanes.Span))
	}
}

func stallOf(m *components.Module, s attribute.StallSum, span uint64) Stall {
	out := Stall{Lane: m.LaneName(s.Lane), Cause: s.Cause.String(), Opcode: m.OpcodeName(s.Opcode), Source: m.Symbols.String(s.Where), NS: s.Time,
		Share: share(s.Time, span), Count: s.Count, Longest: s.Longest, Example: m.InstrName(s.Example)}
	if s.Held {
		out.Holder, out.HolderLane = m.OpcodeName(s.Holder), m.LaneName(s.HolderLane)
	}
	return out
}

// symbolOf returns the place of an instruction as text.
func symbolOf(m *components.Module, s ecs.Symbol) string { return m.Symbols.String(s) }

// Stalls returns the waits of one lane, longest first.
func (x *Analysis) Stalls(ctx context.Context, lane uint16) ([]Stall, error) {
	lanes, err := attribute.Lanes(ctx, x.World, x.Rules, x.Why, x.count)
	if err != nil {
		return nil, err
	}
	var out []Stall
	for _, s := range lanes.Stalls {
		if s.Lane == lane {
			out = append(out, stallOf(x.World.Module, s, lanes.Span))
		}
	}
	return out, nil
}
