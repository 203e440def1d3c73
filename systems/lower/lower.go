package lower

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/opgraph"
	"perfsim/ecs"
)

// attributeLowered is the attribute of modules that were lowered from a
// graph; its value is the name of the graph's format, or "graph".
const attributeLowered = "perfsim.lowered"

// Result is a lowered module with its report.
type Result struct {
	Module *components.Module
	Report Report
}

type lowerer struct {
	ctx  context.Context
	g    *opgraph.Graph
	mach *machine.Machine
	arr  array
	opt  Options
	e    emitter
	rep  Report

	treat     []Treatment // by operator, plus one; 0 for not met
	how       map[opgraph.OpID]string
	isFn      []bool
	made      []bool // functions that are lowered
	runs      []int64
	users     map[opgraph.CompID][][]opgraph.OpID
	far       []Far
	asyncRefs map[asyncKey][]ref
	sizes     []int // flat size of a computation, 0 for not known
	queues    map[string]uint16
	turnQueue int
	streams   []uint16
	streamOf  map[string]uint16            // by the devices that take part
	scopes    map[opgraph.StrID]ecs.Symbol // by op_name
	done      int64
	before    int64 // operators of the functions that are lowered
	total     int64
}

// Lower makes a module of engine instructions of the graph, which must have
// passed Check. The result depends on the graph, the machine and the options
// only.
func Lower(ctx context.Context, g *opgraph.Graph, mach *machine.Machine, opt Options) (*Result, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if g.Entry == opgraph.NoComp {
		return nil, errors.New("the graph has no entry computation")
	}
	g, notes, err := prepare(g, &opt)
	if err != nil {
		return nil, err
	}
	l := &lowerer{ctx: ctx, scopes: map[opgraph.StrID]ecs.Symbol{}, g: g, mach: mach, arr: arrayOf(mach), opt: opt, how: map[opgraph.OpID]string{},
		users: map[opgraph.CompID][][]opgraph.OpID{}, asyncRefs: map[asyncKey][]ref{}, queues: map[string]uint16{}, streamOf: map[string]uint16{}}
	if err := checkSizes(g); err != nil {
		return nil, err
	}
	if err := l.checkTrips(); err != nil {
		return nil, err
	}
	l.treat = make([]Treatment, g.NumOps())
	l.isFn, l.made, l.runs, l.sizes = make([]bool, g.NumComps()), make([]bool, g.NumComps()), make([]int64, g.NumComps()), make([]int, g.NumComps())
	name := g.Text(g.Name)
	m := components.NewModule(name, "lowered")
	if opt.Reuse != nil {
		reuse(m, opt.Reuse)
		l.opt.Reuse = nil
	}
	m.Arch = mach.Name
	m.Attributes = append(m.Attributes, components.Attribute{Key: "perfsim.loops", Value: "trips"}, components.Attribute{Key: attributeLowered, Value: "graph"})
	m.AddCoreLanes(0)
	l.e = emitter{ctx: ctx, m: m, opt: &l.opt, texts: map[string]ecs.Symbol{}}
	for s, share := range mach.Reference.StreamShares {
		if share > 0 {
			l.streams = append(l.streams, components.LaneCC0+uint16(s))
		}
	}
	if len(l.streams) == 0 {
		l.streams = []uint16{components.LaneCC0}
	}
	l.rep.Graph = l.totals()
	if err := l.functions(); err != nil {
		return nil, err
	}
	l.e.acc = accesses{coarse: l.e.acc.coarse}
	if m.Instr.Len() > manyRows {
		runtime.GC() // what lowering took serves the placement
	}
	m.Notes = append(m.Notes, notes...)
	l.rep.Coarse = l.e.acc.coarse
	l.account()
	l.notes()
	l.farReport()
	if err := m.CheckJobs(ctx, 1); err != nil {
		return nil, fmt.Errorf("the lowered module is inconsistent: %w", err)
	}
	return &Result{m, l.rep}, nil
}

// manyRows is from how many rows on the garbage of lowering is worth a
// collection.
const manyRows = 1 << 20

// reuse gives an empty module the rows of an old one to write to. Columns that
// grow copy what they have, and the first touch of fresh memory costs more than
// what is written.
func reuse(m, old *components.Module) {
	m.Instr, m.Edges.Preds, m.Edges.Other = old.Instr, old.Edges.Preds, old.Edges.Other
	for _, c := range slices.Concat(m.Instr.Columns(), m.Edges.Columns()) {
		c.Reset()
	}
	old.Instr, old.Edges = components.Instructions{}, components.Edges{}
}

// functions lowers the entry and everything it calls that is not laid out in
// its caller, callers first.
func (l *lowerer) functions() error {
	order := l.g.BottomUp()
	for _, c := range order {
		l.total += l.ops(c)
	}
	l.isFn[l.g.Entry], l.runs[l.g.Entry] = true, 1
	for _, c := range slices.Backward(order) {
		if l.isFn[c] {
			if err := l.function(c); err != nil {
				return err
			}
			l.before += l.ops(c)
			l.made[c] = true
		}
	}
	return nil
}

// ops returns the number of operators of a computation.
func (l *lowerer) ops(c opgraph.CompID) int64 {
	return int64(l.g.Comps.End[c] - l.g.Comps.First[c])
}

// needed returns the number of operators of the functions, but for c, that are
// known to be needed and are not lowered.
func (l *lowerer) needed(c opgraph.CompID) (n int64) {
	for d, is := range l.isFn {
		if is && !l.made[d] && opgraph.CompID(d) != c {
			n += l.ops(opgraph.CompID(d))
		}
	}
	return n
}

func (l *lowerer) function(c opgraph.CompID) error {
	g, m := l.g, l.e.m
	f := &fn{l: l, comp: c, loaded: map[int32]int64{}, scalars: map[int32]float64{}}
	id := m.Functions.Add(l.e.sym(g.CompText(c)), m.Blocks.Len())
	m.Functions.Runs.Set(id, uint64(l.runs[c]))
	l.e.begin(g.CompText(c), id)
	if err := f.lower(); err != nil {
		return err
	}
	if int(l.e.open[0].first) == m.Instr.Len() { // a block has at least one row
		l.e.hlo, l.e.src, l.e.scope = l.e.sym(g.OpText(g.Comps.Root[c])), 0, 0
		l.e.add(ins{op: components.OpcodeNoOp, eng: components.SP, lane: components.LaneSP, dtype: components.Float32})
	}
	l.e.finish()
	m.Functions.EndBlock.Set(id, uint32(m.Blocks.Len()))
	if l.e.err != nil {
		return l.e.err
	}
	runs := l.runs[c]
	r := &l.rep
	for _, x := range []struct {
		to *int64
		n  int64
	}{{&r.FLOPs, f.flops}, {&r.VectorFLOPs, f.vector}, {&r.HelperFLOPs, f.helper}, {&r.CollectiveBytes, f.ccBytes}, {&r.Collectives, f.ccs}, {&r.LoadBytes, f.loads},
		{&r.StoreBytes, f.stores}, {&r.CopyBytes, f.copies}, {&r.SpillBytes, f.spills}, {&r.Executed, l.e.executed}} {
		*x.to = opgraph.AddSize(*x.to, opgraph.MulSize(x.n, runs))
	}
	r.ParameterBytes += f.paramBytes
	r.OutputBytes += f.outBytes
	r.DRAMBytes = opgraph.AddSize(r.DRAMBytes, f.dramPeak)
	r.SBUFPeak = max(r.SBUFPeak, f.sb.peak)
	r.TileLoops = l.e.loops
	return nil
}

// totals is the work of the graph, with the trip counts in force.
func (l *lowerer) totals() opgraph.Totals {
	g := l.g
	for op := range opgraph.OpID(g.NumOps()) {
		if g.Ops.Kind[op] != opgraph.OpWhile {
			continue
		}
		if n, ok := l.givenTrip(op); ok {
			g.SetInt(op, opgraph.AttrTripKnown, n)
		}
	}
	return g.Totals(l.opt.DefaultTrip)
}

func (l *lowerer) givenTrip(op opgraph.OpID) (int64, bool) {
	if n, ok := l.opt.Trips[l.g.OpText(op)]; ok {
		return n, true
	}
	n, ok := l.opt.Trips[l.g.CompText(l.g.Called(op, opgraph.RoleBody))]
	return n, ok
}

// trip returns the trip count of a while and where it comes from.
func (l *lowerer) trip(op opgraph.OpID) (int64, string) {
	if n, ok := l.givenTrip(op); ok {
		return n, "given"
	}
	if n, from := l.g.TripCount(op); from != opgraph.TripUnknown {
		return n, from.String()
	}
	return l.opt.DefaultTrip, "default"
}

// small reports whether a computation is laid out where it is called.
func (l *lowerer) small(c opgraph.CompID) bool {
	if l.sizes[c] == 0 {
		n := 1
		g := l.g
		for op := g.Comps.First[c]; op < g.Comps.End[c] && n <= l.opt.Inline; op++ {
			n++
			for _, call := range g.Calls(op) {
				if call.Role == opgraph.RoleCalls || g.Ops.Kind[op] == opgraph.OpCall {
					l.small(call.Comp)
					n += l.sizes[call.Comp]
				}
			}
		}
		l.sizes[c] = n
	}
	return l.sizes[c] <= l.opt.Inline
}

// usersOf returns, for each operator of a computation, the operators of it
// that read it.
func (l *lowerer) usersOf(c opgraph.CompID) [][]opgraph.OpID {
	u, ok := l.users[c]
	if !ok {
		g := l.g
		first := g.Comps.First[c]
		u = make([][]opgraph.OpID, g.Comps.End[c]-first)
		for op := first; op < g.Comps.End[c]; op++ {
			for _, o := range g.Operands(op) {
				u[o.Op-first] = append(u[o.Op-first], op)
			}
		}
		l.users[c] = u
	}
	return u
}

// count notes what became of an operator; a stronger word stays.
func (l *lowerer) count(op opgraph.OpID, t Treatment, how string) {
	if t == Estimated {
		l.how[op] = how
	}
	if was := l.treat[op]; was == 0 || t == Estimated || t == Lowered && Treatment(was-1) == Free {
		l.treat[op] = t + 1
	}
}

// account sums up the operators of the reachable computations.
func (l *lowerer) account() {
	type key struct {
		name string
		t    Treatment
		how  string
	}
	n := map[key]int64{}
	for _, c := range l.g.BottomUp() {
		for op := l.g.Comps.First[c]; op < l.g.Comps.End[c]; op++ {
			t := Scalar
			if l.treat[op] != 0 {
				t = l.treat[op] - 1
			}
			n[key{l.nameOf(op), t, l.how[op]}]++
			l.rep.Ops++
		}
	}
	var keys []key
	for k := range n {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.t != b.t {
			return cmp.Compare(a.t, b.t)
		}
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.how, b.how))
	})
	for _, k := range keys {
		l.rep.Accounts = append(l.rep.Accounts, Account{k.name, k.t.String(), k.how, n[k]})
	}
}
