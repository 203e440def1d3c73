package sched

import (
	"perfsim/components"
	"perfsim/ecs"
)

// segment is a run of rows whose order may change.
type segment struct{ lo, hi uint32 }

// cut returns the segments of the rows of a top-level block, and the rows
// between them one by one as segments of their own: loops, full barriers,
// calls. A segment lies in one innermost block.
func cut(m *components.Module, region []uint32, lo, hi uint32) []segment {
	var out []segment
	flags := m.Instr.Flags.Slice()
	start := lo
	end := func(i uint32) {
		if start < i {
			out = append(out, segment{start, i})
		}
		start = i
	}
	for i := lo; i < hi; i++ {
		if i > lo && region[i] != region[i-1] {
			end(i)
		}
		if fence(m.Instr.Opcode.At(int(i)), flags[i]) {
			end(i)
			out = append(out, segment{i, i + 1})
			start = i + 1
		}
	}
	end(hi)
	return out
}

// fence reports whether nothing may move across the instruction.
func fence(op components.Opcode, f components.Flags) bool {
	return f&(components.FlagLoop|components.FlagBarrier) != 0 || op == components.OpcodeCall || op.IsControl()
}

// unit is a group of instructions that is scheduled as one: an instruction, or
// an accumulation group.
type unit struct {
	first, n uint32 // members[first:first+n]
	lane     uint16
	height   uint64
	left     int32 // producers in the segment that are not scheduled yet
	ready    uint64
	load     bool
}

// graph is a segment as units with their dependants.
type graph struct {
	m       *components.Module
	seg     segment
	units   []unit
	members []uint32
	unitOf  []int32 // by row - seg.lo
	succOff []uint32
	succ    []int32
}

// makeGraph builds the units of a segment and the edges between them.
func makeGraph(m *components.Module, seg segment) *graph {
	g := &graph{m: m, seg: seg}
	n := seg.hi - seg.lo
	g.unitOf = make([]int32, n)
	group := groups(m, seg)
	g.members = make([]uint32, 0, n)
	in := &m.Instr
	for i := seg.lo; i < seg.hi; i++ {
		list := group[i]
		if list == nil {
			if _, member := group[i]; member {
				continue // not the first of its group
			}
			list = []uint32{i}
		}
		u := unit{first: uint32(len(g.members)), n: uint32(len(list)), lane: in.Lane.At(int(i))}
		u.load = isLoad(m, i)
		for _, r := range list {
			g.unitOf[r-seg.lo] = int32(len(g.units))
		}
		g.members = append(g.members, list...)
		g.units = append(g.units, u)
	}
	// Edges between units, each pair once: a list of the last unit that was
	// entered shows it.
	type edge struct{ from, to int32 }
	var edges []edge
	seen := make([]int32, len(g.units))
	for u := range g.units {
		for _, r := range g.of(int32(u)) {
			for _, w := range m.Edges.Preds.Row(int(r)) {
				p := w & ecs.TargetMask
				if p < seg.lo {
					continue
				}
				v := g.unitOf[p-seg.lo]
				if v == int32(u) || seen[v] == int32(u)+1 {
					continue
				}
				seen[v] = int32(u) + 1
				edges = append(edges, edge{v, int32(u)})
				g.units[u].left++
			}
		}
	}
	g.succOff = make([]uint32, len(g.units)+1)
	for _, e := range edges {
		g.succOff[e.from+1]++
	}
	for u := range g.units {
		g.succOff[u+1] += g.succOff[u]
	}
	g.succ = make([]int32, len(edges))
	next := append([]uint32(nil), g.succOff...)
	for _, e := range edges {
		g.succ[next[e.from]] = e.to
		next[e.from]++
	}
	return g
}

// of returns the rows of a unit, in their order.
func (g *graph) of(u int32) []uint32 {
	x := &g.units[u]
	return g.members[x.first : x.first+x.n]
}

// after returns the dependants of a unit.
func (g *graph) after(u int32) []int32 { return g.succ[g.succOff[u]:g.succOff[u+1]] }

// isLoad reports whether the instruction brings data from device memory.
func isLoad(m *components.Module, i uint32) bool {
	f := m.Instr.Flags.At(int(i))
	op := m.Instr.Opcode.At(int(i))
	return op.IsDMA() && (op == components.OpcodeLoad || f&components.FlagSrcDRAM != 0 && f&components.FlagDstDRAM == 0)
}

// heights fills the height of every unit: its own weight and the largest
// height of its dependants. Dependants come later in program order than their
// producers, but a group stands where its first member does; order gives the
// units so that dependants are behind.
func (g *graph) heights(weight func(u int32) uint64, most uint64) {
	order := g.topological()
	for i := len(order) - 1; i >= 0; i-- {
		u := order[i]
		h := uint64(0)
		for _, v := range g.after(u) {
			h = max(h, g.units[v].height)
		}
		g.units[u].height = min(h+weight(u), most)
	}
}

// topological returns all units, producers first.
func (g *graph) topological() []int32 {
	left := make([]int32, len(g.units))
	order := make([]int32, 0, len(g.units))
	for u := range g.units {
		left[u] = g.units[u].left
		if left[u] == 0 {
			order = append(order, int32(u))
		}
	}
	for i := 0; i < len(order); i++ {
		for _, v := range g.after(order[i]) {
			if left[v]--; left[v] == 0 {
				order = append(order, v)
			}
		}
	}
	return order
}

// latencyOf is the weight of a unit in a chain: how long it takes from its
// start to the end of its last member.
func (g *graph) latencyOf(u int32) uint64 {
	in := &g.m.Instr
	rows := g.of(u)
	t := uint64(0)
	for _, r := range rows[:len(rows)-1] {
		t += uint64(in.Issue.At(int(r)))
	}
	last := rows[len(rows)-1]
	if in.Flags.At(int(last))&components.FlagTrigger != 0 {
		return t // a trigger's consumers wait for its start only
	}
	return t + uint64(in.Latency.At(int(last)))
}
