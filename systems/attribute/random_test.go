package attribute

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

var cases = []struct {
	machine string
	model   components.Model
	streams int
}{{"trn1", cost.Reference, 4}, {"trn2", cost.Reference, 2}, {"trn3", cost.Reference, 3}}

var ctx = context.Background()

func load(t testing.TB, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// loadAll returns the machines of the cases.
func loadAll(t testing.TB) map[string]*machine.Machine {
	machines := map[string]*machine.Machine{}
	for _, c := range cases {
		machines[c.machine] = load(t, c.machine)
	}
	return machines
}

// placed returns a placed world and its rules.
func placed(t testing.TB, m *components.Module, mach *machine.Machine, model components.Model, loops components.Loops) (*components.World, place.Rules) {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: model, Jobs: 1, Loops: loops}, Events: components.NewEvents()}
	if err := cost.Fill(ctx, w); err != nil {
		t.Fatal(err)
	}
	rules := place.RulesOf(model, mach)
	if err := place.RunRules(ctx, w, rules); err != nil {
		t.Fatal(err)
	}
	return w, rules
}

func bind(t testing.TB, w *components.World, rules place.Rules, run components.Run) *components.Attribution {
	t.Helper()
	a, err := Bind(ctx, w, rules, run)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCausesAndPathAddUpToTheMakespan(t *testing.T) {
	machines := loadAll(t)
	for n := range proptest.Cases(10_000) {
		r := rand.New(rand.NewPCG(11, uint64(n)))
		c := cases[n%len(cases)]
		m := randmod.Module(r, randmod.Options{Streams: c.streams, Blocks: true, Nested: true, Transfers: n%5 > 2})
		loops := []components.Loops{components.Once, components.Trips}[n/2%2]
		run := components.Run(n % 2)
		w, rules := placed(t, m, machines[c.machine], c.model, loops)
		a := bind(t, w, rules, run)
		if a.Gap.Len() != 0 {
			t.Fatalf("module %d: a start of the reference model is not explained by its rules", n)
		}
		checkSums(t, n, w, rules, a, Options{Trips: loops == components.Trips, Block: -1}, w.Latency(run))
		if loops == components.Trips {
			checkBusy(t, n, w, rules, a)
			checkReleases(t, n, w, rules, a)
			continue
		}
		checkReleases(t, n, w, rules, a)
		checkLanes(t, n, w, rules, a)
	}
}

// checkSums reports whether everything adds up to span.
func checkSums(t *testing.T, n int, w *components.World, rules place.Rules, a *components.Attribution, o Options, span uint64) {
	t.Helper()
	rep, err := Lanes(ctx, w, rules, a, o)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Span != span {
		t.Fatalf("module %d: lanes span %d, not %d", n, rep.Span, span)
	}
	for _, l := range rep.Lanes {
		if l.Sum() != span {
			t.Fatalf("module %d: lane %d adds up to %d, not %d: %+v", n, l.Lane, l.Sum(), span, l)
		}
	}
	var stalls, waits uint64
	for _, s := range rep.Stalls {
		stalls += s.Time
	}
	for _, l := range rep.Lanes {
		waits += l.Waiting()
	}
	if stalls != waits {
		t.Fatalf("module %d: stalls add up to %d, waits to %d", n, stalls, waits)
	}
	paths, err := CriticalPath(ctx, w, rules, a, o)
	if err != nil {
		t.Fatal(err)
	}
	var length uint64
	for _, p := range paths {
		at := p.Lead
		sum := p.CountedLead()
		p.Visit(func(s Step) {
			if s.From != at || s.Until < s.From {
				t.Fatalf("module %d: step %d runs from %d to %d behind %d", n, s.Instr, s.From, s.Until, at)
			}
			at = s.Until + s.Gap
			sum += s.Counted + s.CountedGap
		})
		at += p.Tail
		sum += p.CountedTail()
		if ns, counted := p.Span(); at != ns || sum != counted {
			t.Fatalf("module %d: path ends at %d of %d, adds up to %d of %d", n, at, ns, sum, counted)
		}
		length += sum * p.Times
	}
	r := Report(w.Module, paths)
	if length != span || r.Span != span {
		t.Fatalf("module %d: path is %d long, report %d, span %d", n, length, r.Span, span)
	}
	rest := r.Lead + r.Tail
	sums := map[string]uint64{"classes": 0, "lanes": rest, "opcodes": rest, "via": rest, "where": rest, "patterns": rest}
	for _, v := range r.Gaps {
		for _, k := range []string{"lanes", "opcodes", "via", "where", "patterns"} {
			sums[k] += v
		}
	}
	for _, v := range r.Classes {
		sums["classes"] += v
	}
	for _, v := range r.Lanes {
		sums["lanes"] += v
	}
	for _, v := range r.Opcodes {
		sums["opcodes"] += v
	}
	for _, v := range r.Via {
		sums["via"] += v
	}
	for _, v := range r.Where {
		sums["where"] += v.Time
	}
	for _, v := range r.Patterns {
		sums["patterns"] += v.Time
	}
	for k, v := range sums {
		if v != span {
			t.Fatalf("module %d: path by %s adds up to %d, not %d", n, k, v, span)
		}
	}
}

// repeated reports whether row i runs more than once.
func repeated(m *components.Module, i uint32) bool {
	t := &m.Blocks
	for b := range t.Len() {
		if t.Trip.At(b) > 1 && t.First.At(b) <= i && i < t.End.At(b) {
			return true
		}
	}
	return false
}

// checkReleases reports whether every binding constraint is one that the rules
// have, worked out again from the events alone.
func checkReleases(t *testing.T, n int, w *components.World, rules place.Rules, a *components.Attribution) {
	t.Helper()
	m := w.Module
	span := func(i uint32) (uint64, uint64) { return w.Events.Span(m, components.InstrID(i), a.Run) }
	for i := range uint32(m.Instr.Len()) {
		if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 {
			continue
		}
		start, _ := span(i)
		cause, pred := a.Cause.At(int(i)), a.Pred.At(int(i))
		if cause == components.CauseStart {
			if start != 0 || pred != components.NoInstr {
				t.Fatalf("module %d: %d starts at %d and nothing held it", n, i, start)
			}
			continue
		}
		p := uint32(pred)
		if p >= i && w.Config.Loops == components.Trips {
			continue // held from the iteration before the last, which has no events
		}
		from, end := span(p)
		next := from + uint64(m.Instr.Issue.At(int(p)))
		if rules.Shared(m, p) {
			next = end
		}
		kind, dependent := components.Invalid, false
		for _, e := range m.Edges.Preds.Row(int(i)) {
			if e&ecs.TargetMask == p {
				kind, dependent = components.KindOfClass(uint8(e>>ecs.ClassShift)), true
			}
		}
		trigger := m.Instr.Flags.At(int(p))&components.FlagTrigger != 0
		lane, held := m.Instr.Lane.At(int(i)), m.Instr.Lane.At(int(p))
		ok := false
		switch cause {
		case components.CauseLane, components.CauseBank:
			ok = next == start && (cause == components.CauseBank || lane == held)
		case components.CauseFlow, components.CauseOutput, components.CauseAnti:
			ok = dependent && components.CauseOfKind(kind) == cause && (end == start || trigger && from == start)
		case components.CauseOrdered:
			// Behind a collective what brought its inputs may be named.
			ok = dependent && kind == components.Ordered && (next == start || end == start) || from <= start
		case components.CauseCoupling:
			ok = lane != held && (next == start || end == start)
		case components.CauseRing:
			left := next // of a transfer with a row of its own
			if trigger {
				left = from + place.TransferIssue(m, &rules, p)
			}
			// Behind a loop it may be a transfer of an earlier iteration, which has
			// no events.
			ok = (trigger || m.Instr.Flags.At(int(p))&components.FlagTransfer != 0) && (left == start || left > start && w.Config.Loops == components.Trips && repeated(m, p))
		case components.CauseBarrier:
			ok = next == start && m.Instr.Flags.At(int(i))&components.FlagBarrier != 0
		}
		if !ok {
			t.Fatalf("module %d: %d starts at %d, held by %s through %d (%d to %d, leaves its lane at %d)", n, i, start, cause, p, from, end, next)
		}
	}
}

// checkBusy compares the time with work with that of the summary, loops as
// often as they run, and what keeps a lane with what its instructions are
// worth.
func checkBusy(t *testing.T, n int, w *components.World, rules place.Rules, a *components.Attribution) {
	t.Helper()
	rep, err := Lanes(ctx, w, rules, a, Options{Block: -1, Trips: true})
	if err != nil {
		t.Fatal(err)
	}
	m := w.Module
	work := make([]uint64, m.Lanes.Len())
	odd := make([]bool, m.Lanes.Len())
	for _, row := range m.TopBlocks() {
		b := newBlock(w, rules, a.Run, row)
		shuffled := newLaneWalk(b, a, newScale(b, nil), true).outOfOrder()
		trips := tripRanges(b)
		at := 0
		for i := b.first; i < b.end; i++ {
			if b.loop(i) {
				continue
			}
			times := m.Functions.Runs.At(int(m.Blocks.Function.At(row)))
			if trips != nil {
				times *= tripsAt(trips, &at, i)
			}
			odd[b.lane[i]] = odd[b.lane[i]] || shuffled[b.lane[i]] || b.shares(i) || b.flags[i]&components.FlagBarrier != 0
			work[b.lane[i]] += b.occupancy(i) * times
		}
	}
	for l := range rep.Lanes {
		if got := rep.Lanes[l].Issue + rep.Lanes[l].Stretch + rep.Lanes[l].Control; !odd[l] && got < work[l] {
			t.Fatalf("module %d: lane %d is kept for %d ns, its instructions for %d", n, l, got, work[l])
		}
	}
	if a.Run == components.RunA {
		for _, e := range summary.Make(w).Engines {
			for l := range rep.Lanes {
				if m.LaneName(uint16(l)) == e.Name && !odd[l] && rep.Lanes[l].Busy() != e.BusyNS {
					t.Fatalf("module %d: lane %s is busy for %d, summary says %d", n, e.Name, rep.Lanes[l].Busy(), e.BusyNS)
				}
			}
		}
	}
}

// checkLanes works out the time of every lane from elementary intervals, and
// compares the time with work with that of the summary.
func checkLanes(t *testing.T, n int, w *components.World, rules place.Rules, a *components.Attribution) {
	t.Helper()
	m := w.Module
	rep, err := Lanes(ctx, w, rules, a, Options{Block: -1})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]LaneTime, m.Lanes.Len())
	for _, row := range m.TopBlocks() {
		runs := m.Functions.Runs.At(int(m.Blocks.Function.At(row)))
		for l := range want {
			slowLane(w, rules, a, row, uint16(l), runs, &want[l])
		}
	}
	for l := range want {
		want[l].Lane = uint16(l)
		if want[l] != rep.Lanes[l] {
			t.Fatalf("module %d, lane %d:\n got %+v\nwant %+v", n, l, rep.Lanes[l], want[l])
		}
	}
	if a.Run == components.RunA {
		once := *w
		once.Config.Loops = components.Once // as rep counts
		for _, e := range summary.Make(&once).Engines {
			for l := range rep.Lanes {
				if m.LaneName(uint16(l)) == e.Name && rep.Lanes[l].Busy() != e.BusyNS && e.Name != "ALL" {
					t.Fatalf("module %d: lane %s is busy for %d, summary says %d", n, e.Name, rep.Lanes[l].Busy(), e.BusyNS)
				}
			}
		}
	}
}

func slowLane(w *components.World, rules place.Rules, a *components.Attribution, row int, lane uint16, runs uint64, t *LaneTime) {
	m := w.Module
	type ev struct {
		i                 uint32
		start, leave, end uint64
		nominal           uint64
	}
	var events []ev
	cuts := []uint64{0, w.Blocks[row].Latency[a.Run]}
	for i := m.Blocks.First.At(row); i < m.Blocks.End.At(row); i++ {
		if m.Instr.Lane.At(int(i)) != lane || m.Instr.Flags.At(int(i))&components.FlagLoop != 0 {
			continue
		}
		s, e := w.Events.Span(m, components.InstrID(i), a.Run)
		leave := s + uint64(m.Instr.Issue.At(int(i)))
		if rules.Shared(m, i) {
			leave = e
		}
		events = append(events, ev{i, s, leave, e, min(leave, s+uint64(m.Instr.Latency.At(int(i))))})
		cuts = append(cuts, s, leave, e, events[len(events)-1].nominal)
	}
	slices.SortStableFunc(events, func(a, b ev) int { return int(a.start) - int(b.start) })
	slices.Sort(cuts)
	t.Instructions += uint64(len(events)) * runs
	for k := 1; k < len(cuts); k++ {
		from, to := cuts[k-1], cuts[k]
		d := (to - from) * runs
		var issue, stretch, finish, later bool
		cause := components.CauseDrained
		for _, e := range events {
			if e.start <= from && from < e.leave {
				if from < e.nominal {
					issue = true
				} else {
					stretch = true
				}
			}
			finish = finish || e.start <= from && from < e.end
			if e.start > from && !later {
				later = true
				cause = a.Cause.At(int(e.i))
			}
		}
		switch {
		case issue:
			t.Issue += d
		case stretch:
			t.Stretch += d
		case finish:
			t.Finish += d
		case len(events) == 0 || events[0].start > from:
			t.Idle[components.CauseNotStarted] += d
		default:
			t.Idle[cause] += d
		}
	}
}

// A model with rules of its own starts instructions at other times; all sums
// stay exact.
func TestSumsStayExactForOtherModels(t *testing.T) {
	mach := load(t, "trn2")
	for n := range proptest.Cases(3_000) {
		r := rand.New(rand.NewPCG(12, uint64(n)))
		m := randmod.Module(r, randmod.Options{Streams: 2, Blocks: true, Nested: true})
		w, _ := placed(t, m, mach, cost.Reference, components.Once)
		strange(r, w)
		a := bind(t, w, place.Rules{}, components.RunA)
		checkSums(t, n, w, place.Rules{}, a, Options{Block: -1}, w.Latency(components.RunA))
		win := &Window{From: uint64(r.IntN(5_000)), To: 5_000 + uint64(r.IntN(20_000))}
		var inside uint64
		for _, row := range m.TopBlocks() {
			end := w.Blocks[row].Latency[0]
			inside += (min(end, win.To) - min(end, win.From)) * m.Functions.Runs.At(int(m.Blocks.Function.At(row)))
		}
		checkSums(t, n, w, place.Rules{}, a, Options{Block: -1, Window: win}, inside)
	}
}

// strange delays, advances and stretches the events of a world at random and
// works out its results again.
func strange(r *rand.Rand, w *components.World) {
	m := w.Module
	n := m.Instr.Len()
	arrive := w.Events.Arrive.Slice()
	dur := w.Events.Dur.Resize(n)
	for i := range n {
		if m.Instr.Flags.At(i)&components.FlagLoop != 0 {
			continue
		}
		start := arrive[i][0]
		if m.Instr.Flags.At(i)&components.FlagTrigger == 0 {
			start -= min(start, uint64(m.Instr.Latency.At(i)))
		}
		start = start + start/4 + uint64(r.IntN(50)) - min(start, uint64(r.IntN(200)))
		d := uint32(float64(m.Instr.Latency.At(i)) * (0.5 + r.Float64()))
		end := start + uint64(d)
		dur[i] = [2]uint32{d, d}
		arrive[i] = [2]uint64{end, end}
		if m.Instr.Flags.At(i)&components.FlagTrigger != 0 {
			arrive[i] = [2]uint64{start, start}
		}
	}
	for b := range w.Blocks {
		res := &w.Blocks[b]
		res.Latency, res.LatencyTrips = [2]uint64{}, [2]uint64{}
	}
	for _, row := range m.TopBlocks() {
		bl := newBlock(w, place.Rules{}, 0, row)
		for i := bl.first; i < bl.end; i++ {
			if !bl.loop(i) {
				_, end := bl.spanOf(i)
				bl.span = max(bl.span, end)
			}
		}
		w.Blocks[row].Latency = [2]uint64{bl.span, bl.span}
		w.Blocks[row].LatencyTrips = w.Blocks[row].Latency
	}
}

// without returns the module with the edges that keep refuses left out.
func without(m *components.Module, keep func(i, p uint32, class uint8) bool) *components.Module {
	c := *m
	c.Edges.Preds = ecs.NewRelation("edges")
	var row []uint32
	for i := range m.Edges.Preds.Rows() {
		row = row[:0]
		for _, w := range m.Edges.Preds.Row(i) {
			if keep(uint32(i), w&ecs.TargetMask, uint8(w>>ecs.ClassShift)) {
				row = append(row, w)
			}
		}
		c.Edges.Preds.AppendRow(row)
	}
	return &c
}

func TestRemovingEdgesOffTheCriticalPathChangesNothing(t *testing.T) {
	machines := loadAll(t)
	for n := range proptest.Cases(4_000) {
		r := rand.New(rand.NewPCG(13, uint64(n)))
		c := cases[n%len(cases)]
		mach := machines[c.machine]
		m := randmod.Module(r, randmod.Options{Streams: c.streams, NoCollectives: true, Nested: true, Transfers: n%5 > 2})
		w, rules := placed(t, m, mach, c.model, components.Once)
		a := bind(t, w, rules, components.RunA)
		paths, err := CriticalPath(ctx, w, rules, a, Options{Block: -1})
		if err != nil {
			t.Fatal(err)
		}
		critical := map[[2]uint32]bool{}
		for _, p := range paths {
			for k := 1; k < len(p.Steps); k++ {
				critical[[2]uint32{uint32(p.Steps[k]), uint32(p.Steps[k-1])}] = true
			}
		}
		all := n%2 == 0
		w2, _ := placed(t, without(m, func(i, p uint32, _ uint8) bool {
			return critical[[2]uint32{i, p}] || !all && r.IntN(2) == 0
		}), mach, c.model, components.Once)
		if w2.Blocks[0].Latency[0] != w.Blocks[0].Latency[0] {
			t.Fatalf("module %d: %d became %d without edges off the critical path", n, w.Blocks[0].Latency[0], w2.Blocks[0].Latency[0])
		}
	}
}

// delayed returns m with one more instruction before all others, on a lane of
// its own, that keeps instruction i until time t.
func delayed(m *components.Module, mach *machine.Machine, i uint32, t uint64) (uint64, error) {
	c := components.NewModule("delayed", "test")
	n := m.Instr.Len()
	for l := range m.Lanes.Len() {
		c.Lanes.Add(0, m.Lanes.Engine.At(l), m.Lanes.Kind.At(l), m.Lanes.Core.At(l))
	}
	extra := c.Lanes.Add(0, components.Unassigned, components.LaneThread, 0)
	c.Queues = m.Queues
	c.Instr.Grow(n + 1)
	c.Instr.Queue.Resize(n + 1)
	in, from := &c.Instr, &m.Instr
	in.Lane.Set(0, extra)
	var row []uint32
	c.Edges.Preds.AppendRow(nil)
	for k := range n {
		in.Opcode.Set(k+1, from.Opcode.At(k))
		in.Engine.Set(k+1, from.Engine.At(k))
		in.Lane.Set(k+1, from.Lane.At(k))
		in.Flags.Set(k+1, from.Flags.At(k))
		in.Elems.Set(k+1, from.Elems.At(k))
		in.Parts.Set(k+1, from.Parts.At(k))
		in.DType.Set(k+1, from.DType.At(k))
		in.Banks.Set(k+1, from.Banks.At(k))
		in.Queue.Set(k+1, from.Queue.At(k))
		row = row[:0]
		for _, w := range m.Edges.Preds.Row(k) {
			row = append(row, w+1)
		}
		if k == int(i) {
			row = append(row, ecs.Word(components.ClassFlow, 0))
		}
		c.Edges.Preds.AppendRow(row)
	}
	f := c.Functions.Add(0, 0)
	for b := range m.Blocks.Len() {
		row, parent := m.Blocks.First.At(b)+1, m.Blocks.Parent.At(b)
		if parent == 0 {
			row = 0
		} else {
			parent++
		}
		nb := c.Blocks.Add(0, uint32(f), parent, components.InstrID(row), m.Blocks.Trip.At(b))
		c.Blocks.End.Set(nb, m.Blocks.End.At(b)+1)
	}
	w := &components.World{Module: c, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}, Events: components.NewEvents()}
	if err := cost.Fill(ctx, w); err != nil {
		return 0, err
	}
	c.Instr.Latency.Set(0, uint32(t))
	c.Instr.Issue.Set(0, uint32(t))
	if err := place.Run(ctx, w); err != nil {
		return 0, err
	}
	return w.Blocks[0].Latency[0], nil
}

func TestSlackIsExact(t *testing.T) {
	machines := loadAll(t)
	for n := range proptest.Cases(2_000) {
		r := rand.New(rand.NewPCG(14, uint64(n)))
		c := cases[n%len(cases)]
		mach := machines[c.machine]
		m := randmod.Module(r, randmod.Options{Streams: c.streams, NoCollectives: true, Nested: true, Transfers: n%5 > 2})
		w, rules := placed(t, m, mach, c.model, components.Once)
		a := bind(t, w, rules, components.RunA)
		slack, err := Slack(ctx, w, rules, a)
		if err != nil {
			t.Fatal(err)
		}
		paths, err := CriticalPath(ctx, w, rules, a, Options{Block: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range paths[0].Steps {
			if slack[i] != 0 {
				t.Fatalf("module %d: %d is on the critical path and has slack %d", n, i, slack[i])
			}
		}
		span := w.Blocks[0].Latency[0]
		for range 3 {
			i := uint32(r.IntN(m.Instr.Len()))
			// Nothing but its trigger and its lane hold a transfer up, so that it
			// cannot be delayed alone.
			if m.Instr.Flags.At(int(i))&(components.FlagLoop|components.FlagTransfer) != 0 {
				continue
			}
			start, _ := w.Events.Span(m, components.InstrID(i), components.RunA)
			for _, d := range []uint64{0, 1, 17} {
				got, err := delayed(m, mach, i, start+slack[i]+d)
				if err != nil {
					t.Fatal(err)
				}
				if got != max(span+d, start+slack[i]+d) {
					t.Fatalf("module %d: %d slipping by its slack %d and %d gives %d, not %d", n, i, slack[i], d, got, span+d)
				}
			}
		}
	}
}
