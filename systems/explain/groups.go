package explain

import (
	"cmp"
	"context"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/attribute"
	"perfsim/systems/summary"
	"perfsim/systems/work"
)

// Grouping is the property by which rows are grouped.
type Grouping string

// The groupings.
const (
	ByOperator Grouping = "op"
	ByLayer    Grouping = "layer"
	BySource   Grouping = "source"
	ByOpcode   Grouping = "opcode"
	ByEngine   Grouping = "engine"
	ByKernel   Grouping = "kernel"
)

// Groupings lists them.
func Groupings() []string {
	return []string{string(ByOperator), string(ByLayer), string(BySource), string(ByOpcode), string(ByEngine), string(ByKernel)}
}

// Group is the sum over the rows of one operator, layer, line, opcode, engine
// or kernel, by executions.
type Group struct {
	Name         string `json:"name"`         // the operator, layer, source line, opcode, lane or kernel
	Instructions int    `json:"instructions"` // its rows
	Executions   uint64 `json:"executions"`   // sum of the weights of its rows
	// PathNS is the time of its steps of the critical path of run A, with the
	// model's delays behind them.
	PathNS    uint64  `json:"path_ns"`
	PathShare float64 `json:"path_share"` // path_ns over latency_ns
	// Bound is the class of most of its time on the critical path, "" where it
	// has none.
	Bound string  `json:"bound"`
	Busy  []Share `json:"engines"`   // busy time by lane, longest first; shares of the latency
	FLOPs *uint64 `json:"flops"`     // but for transposes and sums put in
	Bytes *uint64 `json:"hbm_bytes"` // bytes that its rows read from and write to device memory, weighted
	// MFU is the time that the FLOPs take at their peak, over the busy time of
	// the lane that is busy longest.
	MFU *float64 `json:"mfu"`
	// PerfectNS is the time of the FLOPs or the bytes at the peaks,
	// whichever is longer: the time of a perfect kernel. Nil where it has
	// neither.
	PerfectNS *uint64 `json:"perfect_ns"`
}

// none names the rows of which the input does not say where they are from.
const none = "(none)"

// groupNames numbers the groups in the order in which they are met.
type groupNames struct {
	list []string
	of   map[string]int
}

func (n *groupNames) named(name string) int {
	k, ok := n.of[name]
	if !ok {
		k = len(n.list)
		n.of[name] = k
		n.list = append(n.list, name)
	}
	return k
}

// groupOf returns what numbers the group of a row.
func groupOf(m *components.Module, by Grouping, names *groupNames) func(components.InstrID) int {
	bySymbol := map[ecs.Symbol]int{}
	named := names.named
	symbol := func(s ecs.Symbol, name func(string) string) int {
		k, ok := bySymbol[s]
		if !ok {
			k = named(name(m.Symbols.String(s)))
			bySymbol[s] = k
		}
		return k
	}
	same := func(s string) string { return cmp.Or(s, none) }
	in := &m.Instr
	function := functionOf(m)
	switch by {
	case ByOperator:
		return func(i components.InstrID) int {
			if s := in.HLO.Get(int(i)); s != 0 {
				return symbol(s, same)
			}
			return named(cmp.Or(m.OperatorOf(i), m.Symbols.String(in.Source.Get(int(i))), none))
		}
	case ByLayer:
		layers := map[ecs.Symbol]int{}
		return func(i components.InstrID) int {
			s := in.Scope.Get(int(i))
			if s == 0 {
				return named(cmp.Or(function(i), none))
			}
			k, ok := layers[s]
			if !ok {
				layer, _ := components.SplitScope(m.Symbols.String(s))
				k = named(cmp.Or(layer, "(top)"))
				layers[s] = k
			}
			return k
		}
	case BySource:
		return func(i components.InstrID) int { return symbol(attribute.Where(m, i), same) }
	case ByOpcode:
		return func(i components.InstrID) int { return named(m.OpcodeName(in.Opcode.At(int(i)))) }
	case ByEngine:
		return func(i components.InstrID) int { return named(m.LaneName(in.Lane.At(int(i)))) }
	}
	return func(i components.InstrID) int {
		if l := in.Lane.At(int(i)); m.Lanes.Kind.At(int(l)) == components.LaneThread {
			if attribute.OfHost(m, l) {
				return named("(host)")
			}
			return named(m.InstrName(i))
		}
		return named(cmp.Or(function(i), none))
	}
}

// functionOf returns the name of the function of a row; rows are asked for in
// any order.
func functionOf(m *components.Module) func(components.InstrID) string {
	var first []uint32
	var name []string
	for _, b := range m.TopBlocks() {
		first = append(first, m.Blocks.First.At(b))
		name = append(name, m.FunctionName(int(m.Blocks.Function.At(b))))
	}
	return func(i components.InstrID) string {
		k, found := slices.BinarySearch(first, uint32(i))
		if !found {
			k--
		}
		if k < 0 {
			return ""
		}
		return name[k]
	}
}

// Groups adds the rows up by a grouping, what has most of the critical path
// first. The times on the path and rest, what lies before its first and behind
// its last step, add up to the latency.
func (x *Analysis) Groups(ctx context.Context, by Grouping) (list []Group, rest uint64, err error) {
	w, m := x.World, x.World.Module
	n := m.Instr.Len()
	names := groupNames{of: map[string]int{}}
	of := groupOf(m, by, &names)
	group := make([]int32, n)
	for i := range n {
		group[i] = int32(of(components.InstrID(i)))
	}
	count := len(names.list)
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	times, rest := attribute.Groups(m, x.Paths, count, func(i components.InstrID) int { return int(group[i]) })
	list = make([]Group, count)
	lanes := m.Lanes.Len()
	busy := map[int64]uint64{} // by group and lane
	runs := components.NewExecutions(m, w.Config.Loops)
	own := summary.RowBusy(w)
	rows := work.NewRows(w)
	figures := work.Make(w)
	type sums struct {
		ideal float64
		flops uint64
		bytes uint64
	}
	sum := make([]sums, count)
	for i := range n {
		id := components.InstrID(i)
		if m.Instr.Flags.At(i)&components.FlagLoop != 0 {
			continue
		}
		k := int(group[i])
		g, times := &list[k], runs.At(id)
		if m.Instr.Flags.At(i)&components.FlagTransfer == 0 {
			g.Instructions++
			g.Executions = ecs.AddSat(g.Executions, times)
		}
		if own[i] > 0 {
			at := int64(k)*int64(lanes) + int64(m.Instr.Lane.At(i))
			busy[at] = ecs.AddSat(busy[at], own[i])
		}
		r := rows.At(id)
		s := &sum[k]
		if !r.Helper {
			s.ideal += r.Ideal * float64(times)
			s.flops = ecs.AddSat(s.flops, ecs.MulSat(r.FLOPs, times))
		}
		s.bytes = ecs.AddSat(s.bytes, ecs.MulSat(ecs.AddSat(r.Read, r.Written), times))
	}
	span := w.Latency(components.RunA)
	for at, ns := range busy {
		g := &list[at/int64(lanes)]
		g.Busy = append(g.Busy, Share{m.LaneName(uint16(at % int64(lanes))), ns, share(ns, span)})
	}
	_, total := x.span()
	for k := range list {
		g, s := &list[k], &sum[k]
		g.Name = names.list[k]
		slices.SortFunc(g.Busy, func(a, b Share) int { return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Name, b.Name)) })
		if g.PathNS = times[k].Total(); g.PathNS > 0 {
			g.Bound = times[k].Bound().String()
		}
		g.PathShare = share(g.PathNS, total)
		if figures.FLOPs != nil {
			g.FLOPs = &s.flops
		}
		if figures.HBMRead != nil {
			g.Bytes = &s.bytes
		}
		p := figures.Peaks
		if p == nil || p.FLOPs <= 0 || p.HBM <= 0 || g.FLOPs == nil || g.Bytes == nil || s.flops == 0 && s.bytes == 0 {
			continue
		}
		least := max(s.ideal/p.FLOPs, float64(s.bytes)/p.HBM) * 1e9
		g.PerfectNS = new(uint64(least + 0.5))
		if s.flops > 0 && len(g.Busy) > 0 {
			g.MFU = new(s.ideal / p.FLOPs * 1e9 / float64(g.Busy[0].NS))
		}
	}
	list = slices.DeleteFunc(list, func(g Group) bool { return g.Instructions == 0 && g.PathNS == 0 })
	slices.SortStableFunc(list, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.PathNS, a.PathNS), cmp.Compare(b.busiest(), a.busiest()))
	})
	return list, rest, nil
}

// busiest returns the busy time of the lane that is busy longest.
func (g *Group) busiest() uint64 {
	if len(g.Busy) == 0 {
		return 0
	}
	return g.Busy[0].NS
}

// span returns the makespan of the paths, and as counted and weighted time.
func (x *Analysis) span() (ns, counted uint64) {
	for _, p := range x.Paths {
		a, b := p.Span()
		ns, counted = ecs.AddSat(ns, ecs.MulSat(a, p.Times)), ecs.AddSat(counted, ecs.MulSat(b, p.Times))
	}
	return ns, counted
}
