package page

import (
	"cmp"
	"slices"

	"perfsim/cmd/internal/web"
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/work"
)

// classes are the engines by which times of operators are listed.
var classes = [...]string{"PE", "Activation", "DVE", "Pool", "SP", "DMA", "collectives", "other"}

// classOf returns the class of a lane.
func classOf(m *components.Module, lane uint16) int {
	if m.Lanes.Kind.At(int(lane)) == components.LaneStream {
		return 6
	}
	switch m.Lanes.Engine.At(int(lane)) {
	case components.PE:
		return 0
	case components.Activation:
		return 1
	case components.DVE:
		return 2
	case components.Pool:
		return 3
	case components.SP:
		return 4
	case components.DMA:
		return 5
	}
	return 7
}

// scopePrefix begins a search for the instructions of a scope.
const scopePrefix = "scope:"

// placeOf returns where instruction i comes from: its scope, source line or
// operator, else its opcode.
func (v *viewer) placeOf(i uint32) string {
	if s := v.m.ScopeOf(components.InstrID(i)); s != 0 {
		return v.m.Symbols.String(s)
	}
	return v.m.OpcodeName(v.m.Instr.Opcode.At(int(i)))
}

// mostPageGroups bounds the operators that the page lists.
const mostPageGroups = 3000

// groups sums one run of the block up by scope, as a tree.
func (v *viewer) groups() []web.Group {
	busy := v.p.rowBusy()
	runs := v.runsOf()
	var out []web.Group
	byPath := map[string]int{}
	var place func(path string, isPath bool) int
	place = func(path string, isPath bool) int {
		if n, ok := byPath[path]; ok {
			return n
		}
		parent, name := -1, path
		if isPath {
			if layer, last := components.SplitScope(path); layer != "" {
				parent, name = place(layer, true), last
			}
		}
		byPath[path] = len(out)
		out = append(out, web.Group{Name: name, Parent: parent, Path: scopePrefix + path, Busy: make([]uint64, len(classes))})
		return len(out) - 1
	}
	type key struct {
		sym ecs.Symbol
		op  components.Opcode
	}
	cache := map[key]int{}
	laneClass := make([]int, v.m.Lanes.Len())
	for l := range laneClass {
		laneClass[l] = classOf(v.m, uint16(l))
	}
	rows := work.NewRows(v.w)
	of := make([]int32, v.end-v.first)
	for i := v.first; i < v.end; i++ {
		k := key{sym: v.m.ScopeOf(components.InstrID(i))}
		if k.sym == 0 {
			k.op = v.m.Instr.Opcode.At(int(i))
		}
		n, ok := cache[k]
		if !ok {
			n = place(v.placeOf(i), v.m.Instr.Scope.Get(int(i)) != 0)
			cache[k] = n
		}
		of[i-v.first] = int32(n)
		if v.loop(i) {
			continue
		}
		g, times := &out[n], v.p.times.At(components.InstrID(i))
		g.Busy[laneClass[v.m.Instr.Lane.At(int(i))]] += busy[i]
		g.Events += times
		x := rows.At(components.InstrID(i))
		if !x.Helper {
			g.FLOPs = ecs.AddSat(g.FLOPs, ecs.MulSat(x.FLOPs, times))
		}
		g.Bytes = ecs.AddSat(g.Bytes, ecs.MulSat(ecs.AddSat(x.Read, x.Written), times))
	}
	v.onPath(out, of)
	for n := len(out) - 1; n >= 0; n-- { // parents come before their children
		g := &out[n]
		if g.Parent >= 0 {
			p := &out[g.Parent]
			p.Events += g.Events
			p.OnPath += g.OnPath
			p.FLOPs, p.Bytes = ecs.AddSat(p.FLOPs, g.FLOPs), ecs.AddSat(p.Bytes, g.Bytes)
			for c := range g.Busy {
				p.Busy[c] += g.Busy[c]
			}
		}
	}
	for n := range out {
		for _, x := range []*uint64{&out[n].Events, &out[n].OnPath, &out[n].FLOPs, &out[n].Bytes} {
			*x /= runs
		}
		for c := range out[n].Busy {
			out[n].Busy[c] /= runs
		}
	}
	return largest(out, mostPageGroups)
}

// onPath gives groups their time on the critical path of the block; of has the
// group of every row.
func (v *viewer) onPath(out []web.Group, of []int32) {
	why, err := v.p.why()
	if err != nil {
		return // the page says so where it asks for the causes
	}
	for _, path := range why.paths {
		if path.Block != v.block {
			continue
		}
		times, _ := attribute.Groups(v.m, []*attribute.Path{path}, len(out), func(i components.InstrID) int { return int(of[uint32(i)-v.first]) })
		for n := range out {
			if out[n].OnPath = times[n].Total(); out[n].OnPath > 0 {
				out[n].Bound = times[n].Bound().String()
			}
		}
	}
}

// largest returns the groups with most time, parents before children, each
// with all its parents.
func largest(all []web.Group, most int) []web.Group {
	if len(all) <= most {
		return all
	}
	sum := func(g *web.Group) (s uint64) {
		for _, ns := range g.Busy {
			s += ns
		}
		return s
	}
	order := make([]int, len(all))
	for n := range order {
		order[n] = n
	}
	// A parent has at least the time of its child and stands before it.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sum(&all[b]), sum(&all[a])) })
	order = order[:most]
	slices.Sort(order)
	at := map[int]int{-1: -1}
	var out []web.Group
	for _, n := range order {
		g := all[n]
		p, ok := at[g.Parent]
		if !ok {
			continue
		}
		at[n] = len(out)
		g.Parent = p
		out = append(out, g)
	}
	return out
}
