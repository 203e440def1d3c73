package calibrated

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
)

// Run places all top-level blocks of the world with the calibrated model and
// fills Events and Blocks. Both runs use the governor phase of run A.
func Run(ctx context.Context, w *components.World) error {
	c, err := Load(w.Machine)
	if err != nil {
		return err
	}
	m := w.Module
	w.Placement++
	r := newRunner(w, programOf(m, w.Machine, c, !w.Config.OnDependencies))
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	for n := range r.top {
		g.Go(func() error { return r.place(ctx, n) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.attribute()
	w.Transfers = nil
	if r.p.syncs { // else the event of a transfer lasts until its data is there
		w.Transfers = r.p.inFlight(r.out[components.RunA])
	}
	w.FullClock, w.SlowClock = slices.Concat(r.clocks...), c.Gov.Slow
	r.p.notes(r.spreads, r.freed)
	w.Range = r.p.latencyRange(w, r.top, r.spreads)
	if from := w.Machine.Calibrated.Scaled; from != "" {
		m.Note(components.NoteScaled, fmt.Sprintf("the constants of %s are scaled %s; no profile of %s was measured", w.Machine.Name, from, w.Machine.Name), 1)
	}
	r.p.noteUsual(w.Machine.Name)
	return nil
}

// runner places the top-level blocks of a world, whose rows and places in the
// lists are their own.
type runner struct {
	w      *components.World
	p      *program
	arrive [][2]uint64
	dur    [][2]uint32
	out    [2]rows // one and the same where nobody asks for run A when run B is made
	why    [2]*reasons
	// By top-level block.
	top     []int
	spreads []Spread
	freed   []int
	clocks  [][]components.ClockSpan
}

func newRunner(w *components.World, p *program) *runner {
	m := w.Module
	n := m.Instr.Len()
	r := &runner{w: w, p: p, arrive: w.Events.Arrive.Scratch(n), dur: w.Events.Dur.Scratch(n), top: m.TopBlocks()}
	w.Blocks = make([]components.BlockResult, m.Blocks.Len())
	for b := range w.Blocks {
		w.Blocks[b].Block = b
	}
	first := newRows(p)
	r.out = [2]rows{first, first}
	if p.syncs {
		r.out[components.RunA].begin = make([]float64, n)
	}
	if w.Config.Why {
		r.out[components.RunB] = newRows(p)
		r.why = [2]*reasons{newReasons(n), newReasons(n)}
	}
	r.spreads, r.freed = make([]Spread, len(r.top)), make([]int, len(r.top))
	r.clocks = make([][]components.ClockSpan, len(r.top))
	return r
}

// place places top-level block number n in both runs.
func (r *runner) place(ctx context.Context, n int) error {
	var opt Options
	for run := components.RunA; run <= components.RunB; run++ {
		if err := r.run(ctx, n, run, &opt); err != nil {
			return err
		}
	}
	if w := r.w; w.Config.Progress != nil {
		w.Config.Progress(int64(w.Module.Blocks.End.At(r.top[n])), int64(w.Module.Instr.Len()))
	}
	return nil
}

// run places a block in one run; run A chooses the governor's phase.
func (r *runner) run(ctx context.Context, n int, run components.Run, opt *Options) error {
	m, b := r.w.Module, r.top[n]
	lo, hi := m.Blocks.First.At(b), m.Blocks.End.At(b)
	if run == components.RunB {
		r.out[run].clear(lo, hi)
	}
	blk, err := r.block(ctx, b, run, *opt)
	if err != nil {
		return err
	}
	if run == components.RunA {
		if r.spreads[n], err = r.p.phases(ctx, opt, r.out[run], b, blk.sim.last); err != nil {
			return err
		}
		if r.spreads[n].Phases > 1 {
			if blk, err = r.block(ctx, b, run, *opt); err != nil {
				return err
			}
		}
	}
	r.freed[n] = max(r.freed[n], blk.sim.freed)
	first := 0.0
	if r.w.Config.Loops == components.Trips && components.Repeats(m, b) {
		last, err := blk.trips(ctx, b)
		if err != nil {
			return err
		}
		r.w.Blocks[b].LatencyTrips[run] = whole(last)
	} else {
		first = blk.fromFirst(b, r.out[run])
	}
	if run == components.RunA {
		r.spreads[n].shift(first)
		r.clocks[n] = blk.clock(b, first)
	}
	r.events(run, lo, hi)
	return nil
}

func (r *runner) block(ctx context.Context, b int, run components.Run, opt Options) (*block, error) {
	t := &r.w.Module.Blocks
	blk := &block{sim: newSim(ctx, r.p, opt, run, r.out[run], t.First.At(b), t.End.At(b)), results: r.w.Blocks, run: run}
	blk.sim.why = r.why[run]
	return blk, blk.place(b)
}

// events makes events of rows lo to hi.
func (r *runner) events(run components.Run, lo, hi uint32) {
	o, flags := &r.out[run], r.w.Module.Instr.Flags.Slice()
	for i := lo; i < hi; i++ {
		start := uint64(max(0, o.start[i]) + 0.5)
		// Start and end are each rounded, so that no event ends after its block.
		d := uint32(max(0, o.start[i]) + float64(o.dur[i]) + 0.5 - float64(start))
		r.dur[i][run] = d
		r.arrive[i][run] = start
		if flags[i]&components.FlagTrigger == 0 {
			r.arrive[i][run] += uint64(d)
		}
	}
}

// attribute says what let every row start, where that is asked for.
func (r *runner) attribute() {
	w := r.w
	w.Why = [2]*components.Attribution{}
	for run, why := range r.why {
		if why != nil {
			w.Why[run] = r.p.attribution(why, r.out[run], components.Run(run), func(i uint32) uint64 {
				start, _ := w.Events.Span(w.Module, components.InstrID(i), components.Run(run))
				return start
			})
		}
	}
}

// fromFirst has the times of a placed block count from the start of its first
// event, because latencies do, and returns where that was, in ns.
func (k *block) fromFirst(b int, out rows) float64 {
	s := k.sim
	m := s.p.m
	lo, hi := m.Blocks.First.At(b), m.Blocks.End.At(b)
	first := math.Inf(1)
	for i := lo; i < hi; i++ {
		if s.p.kind[i] != kindLoop {
			first = min(first, out.start[i])
		}
	}
	if !(first > 0) || math.IsInf(first, 1) {
		return 0
	}
	if first = math.Round(first); first == 0 { // whole ns, so that all times are rounded as before
		return 0
	}
	for i := lo; i < hi; i++ {
		out.start[i] -= first
		out.arrive[i] -= first
		if out.begin != nil {
			out.begin[i] -= first
		}
		if s.why != nil {
			s.why.release[i] -= first
		}
	}
	last := whole(s.last - first)
	for i := lo; i < hi; i++ {
		if s.p.kind[i] != kindLoop { // as events are rounded
			last = max(last, uint64(max(0, out.start[i])+0.5)+uint64(out.dur[i]+0.5))
		}
	}
	r := &k.results[b]
	r.Latency[k.run], r.LatencyTrips[k.run] = last, last
	return first
}

// shift takes away the time before the first event.
func (s *Spread) shift(first float64) {
	s.Low, s.Used, s.High = s.Low-first, s.Used-first, s.High-first
}

// inFlight lists the transfers of a run.
func (p *program) inFlight(out rows) []components.Transfer {
	var list []components.Transfer
	for i, k := range p.kind {
		if k.transfers() {
			begin := whole(out.begin[i])
			list = append(list, components.Transfer{Row: components.InstrID(i), Begin: begin, End: max(begin, whole(out.arrive[i]))})
		}
	}
	return list
}

// noteUsual names the opcodes of the data paths that have no cost of their own.
func (p *program) noteUsual(machine string) {
	type key struct {
		e  components.Engine
		op components.Opcode
	}
	in := &p.m.Instr
	rows := map[key]int{}
	for i, k := range p.kind {
		if k == kindData && p.costs[p.shape[i]].usual {
			rows[key{in.Engine.At(i), in.Opcode.At(i)}]++
		}
	}
	keys := slices.SortedFunc(maps.Keys(rows), func(a, b key) int { return cmp.Or(cmp.Compare(a.e, b.e), cmp.Compare(a.op, b.op)) })
	for _, k := range keys {
		p.m.Note(components.NoteDefaultCost, fmt.Sprintf("opcode %s has no cost of its own on the %s of %s; what operations usually take there is used",
			p.m.OpcodeName(k.op), k.e, machine), rows[k])
	}
}

// latencyRange adds the spreads of the top blocks up.
func (p *program) latencyRange(w *components.World, top []int, spreads []Spread) *components.LatencyRange {
	r := components.LatencyRange{Low: w.Latency(components.RunA), High: w.Latency(components.RunA)}
	for n, b := range top {
		runs := float64(p.m.Functions.Runs.At(int(p.m.Blocks.Function.At(b))))
		r.Low -= min(r.Low, whole(runs*(spreads[n].Used-spreads[n].Low)))
		r.High = max(r.High, r.High+whole(runs*(spreads[n].High-spreads[n].Used)))
	}
	if r.Low == r.High {
		return nil
	}
	return &r
}

// clock returns when the clocks of the PEs give full rate; first is the start of
// the block's first event. Blocks whose loops repeat have nothing: their
// iterations do not all have events.
func (b *block) clock(row int, first float64) []components.ClockSpan {
	p := b.sim.p
	if components.Repeats(p.m, row) {
		return nil
	}
	var out []components.ClockSpan
	for unit, core := range p.cores {
		for _, w := range b.sim.pes[unit].gov.kept {
			if w.End > first {
				out = append(out, components.ClockSpan{Block: row, Core: int(core), Start: whole(max(0, w.Start-first)), End: whole(w.End - first)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b components.ClockSpan) int { return cmp.Compare(a.Core, b.Core) })
	return out
}

// Spread is the range of the latency over the unknown phase of the governor.
type Spread struct {
	Phases          int     // tried; 1 where it does not matter
	Phase           float64 // ns, the one used
	Low, Used, High float64 // ns, totals
}

func (p *program) notes(spreads []Spread, freed []int) {
	var s Spread
	for _, x := range spreads {
		if x.High-x.Low > s.High-s.Low {
			s = x
		}
	}
	if s.Phases > 1 && s.High > s.Low {
		p.m.Note(components.NoteClockPhase, fmt.Sprintf("the program does not determine the phase of the PE clock: the latency is %.2f to %.2f µs, printed is the central %.2f",
			s.Low/1e3, s.High/1e3, s.Used/1e3), 1)
	}
	n := 0
	for _, f := range freed {
		n += f
	}
	if n > 0 {
		p.m.Note("waits-without-end", "waits that nothing in the module ends were given up", n)
	}
}

// phases sets opt.Phase to the governor phase that is central among several.
// The block has been placed with phase 0 and ends at last; where several phases
// were tried, out is not that any more. Long blocks and those without matmuls
// keep phase 0.
func (p *program) phases(ctx context.Context, opt *Options, out rows, b int, last float64) (Spread, error) {
	lo, hi := p.m.Blocks.First.At(b), p.m.Blocks.End.At(b)
	g := &p.c.Gov
	one := Spread{Phases: 1, Low: last, Used: last, High: last}
	n := int(min(g.Phases, maxPhases))
	if opt.NoGovernor || opt.Documented || opt.Windows != nil || g.Slow >= 1 || n < 2 || last > g.Short*g.Window || !p.matmuls(lo, hi) {
		return one, nil
	}
	every := max(1, int(hi-lo)/maxStarts)
	starts := make([][]float64, n)
	totals := make([]float64, n)
	for k := range n {
		if k > 0 {
			o := *opt
			o.Phase = float64(k) * g.Window / float64(n)
			blk := block{sim: newSim(ctx, p, o, components.RunA, out, lo, hi)}
			if err := blk.place(b); err != nil {
				return one, err
			}
			last = blk.sim.last
		}
		totals[k] = last
		for i := int(lo); i < int(hi); i += every {
			starts[k] = append(starts[k], out.start[i])
		}
	}
	best := central(starts)
	opt.Phase = float64(best) * g.Window / float64(n)
	return Spread{Phases: n, Phase: opt.Phase, Low: slices.Min(totals), Used: totals[best], High: slices.Max(totals)}, nil
}

// central returns the phase from which the starts under all others differ
// least: by the mean square, over phases, of the 90th percentile of the
// differences. Every phase is as likely as any other, and the total jumps where
// a window just reaches the threshold; squares keep the prediction within reach
// of both sides of the jump, where means would sit among the phases that
// happen to be more. starts are by phase and instruction.
func central(starts [][]float64) int {
	cost := make([]float64, len(starts))
	diff := make([]float64, len(starts[0]))
	for x := range starts {
		for y := range x {
			for i := range diff {
				diff[i] = math.Abs(starts[x][i] - starts[y][i])
			}
			d := nth(diff, len(diff)*9/10)
			cost[x] += d * d
			cost[y] += d * d
		}
	}
	best := 0
	for k := range cost {
		if cost[k] < cost[best] {
			best = k
		}
	}
	return best
}

// nth returns what a sorted list would have in place n; the list's order
// changes. None of its numbers is NaN.
func nth(list []float64, n int) float64 {
	for lo, hi := 0, len(list)-1; lo < hi; {
		pivot := list[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for list[i] < pivot {
				i++
			}
			for list[j] > pivot {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch { // lo…j are at most the pivot, i…hi at least
		case n <= j:
			hi = j
		case n >= i:
			lo = i
		default:
			return list[n]
		}
	}
	return list[n]
}

// maxPhases and maxStarts bound the work of looking for the central phase.
const (
	maxPhases = 64
	maxStarts = 2000
)

func (p *program) matmuls(lo, hi uint32) bool {
	for _, k := range p.kind[lo:hi] {
		if k == kindStream || k == kindMatmul {
			return true
		}
	}
	return false
}

// block places one top-level block with the loops in it.
type block struct {
	sim     *sim
	results []components.BlockResult // nil where not wanted
	run     components.Run
}

// place places all rows of block b, those of loops once and in their place in
// the program: engines that have nothing to wait for run past the ends of
// loops, as the reference does. A loop's body takes what the block's end
// grows by over its rows, in the order of the program.
func (k *block) place(b int) error {
	t := &k.sim.p.m.Blocks
	if err := k.sim.place(t.First.At(b), t.End.At(b)); err != nil {
		return err
	}
	if k.sim.p.loops {
		inner, end := b+1, 0.0
		k.region(t.First.At(b), t.End.At(b), &inner, &end)
	}
	if k.results != nil {
		r := &k.results[b]
		r.Latency[k.run] = whole(k.sim.last)
		r.LatencyTrips[k.run] = r.Latency[k.run]
	}
	return nil
}

// region walks rows first to end in the order of the program, descending into
// loops. last is the largest end so far.
func (k *block) region(first, end uint32, next *int, last *float64) {
	s := k.sim
	kinds := s.p.kind
	t := &s.p.m.Blocks
	for i := first; i < end; {
		if kinds[i] != kindLoop {
			*last = max(*last, s.endOf(i))
			i++
			continue
		}
		s.start[i], s.dur[i], s.arrive[i] = *last, 0, *last
		i++
		for *next < t.Len() && t.Parent.At(*next) == i {
			b := *next
			*next++
			before := *last
			k.region(t.First.At(b), t.End.At(b), next, last)
			if k.results != nil {
				k.results[b].Latency[k.run] = whole(*last - before)
				k.results[b].LatencyTrips[k.run] = k.results[b].Latency[k.run]
			}
			i = t.End.At(b)
		}
	}
}

// whole rounds a time to ns; times beyond what 64 bits hold give the largest.
func whole(t float64) uint64 {
	if !(t > 0) {
		return 0
	}
	if t >= math.MaxUint64/2 {
		return math.MaxUint64
	}
	return uint64(t + 0.5)
}

// Prediction is one run of the model, for comparison and fitting.
type Prediction struct {
	Start []float64 // by row, ns from the start of its block
	Dur   []float32 // by row, ns
	// Complete is when a row's result is there, in ns: of a transfer, its
	// semaphore's last change; else of what it raises.
	Complete []float64
	Spread   Spread
	Total    float64 // of the first top-level block
}

// Predict runs the model over a module with options and without touching it.
func Predict(ctx context.Context, m *components.Module, mach *machine.Machine, opt Options) (*Prediction, error) {
	c, err := Load(mach)
	if err != nil {
		return nil, err
	}
	return predictWith(ctx, m, mach, c, opt)
}

// PredictPhases predicts a module for several phases of the governor and calls f
// with each prediction, which is valid until f returns.
func PredictPhases(ctx context.Context, m *components.Module, mach *machine.Machine, phases []float64, f func(*Prediction)) error {
	c, err := Load(mach)
	if err != nil {
		return err
	}
	p := newProgram(m, mach, c)
	out := newRows(p)
	for _, phase := range phases {
		r, err := p.predict(ctx, Options{Phase: phase}, out)
		if err != nil {
			return err
		}
		f(r)
	}
	return nil
}

// predictWith is Predict with given constants. A phase of NaN asks for the
// median over phases.
func predictWith(ctx context.Context, m *components.Module, mach *machine.Machine, c *Constants, opt Options) (*Prediction, error) {
	p := newProgram(m, mach, c)
	return p.predict(ctx, opt, newRows(p))
}

func (p *program) predict(ctx context.Context, opt Options, out rows) (*Prediction, error) {
	m := p.m
	r := &Prediction{Start: out.start, Dur: out.dur, Complete: out.arrive}
	for n, b := range m.TopBlocks() {
		o := opt
		if math.IsNaN(opt.Phase) {
			o.Phase = 0
		}
		place := func() (float64, error) {
			blk := block{sim: newSim(ctx, p, o, components.RunA, out, m.Blocks.First.At(b), m.Blocks.End.At(b))}
			err := blk.place(b)
			return blk.sim.last, err
		}
		last, err := place()
		if err != nil {
			return nil, err
		}
		if math.IsNaN(opt.Phase) {
			s, err := p.phases(ctx, &o, out, b, last)
			if err != nil {
				return nil, err
			}
			if n == 0 {
				r.Spread = s
			}
			if s.Phases > 1 {
				if last, err = place(); err != nil {
					return nil, err
				}
			}
		}
		if n == 0 {
			r.Total = last
		}
	}
	return r, nil
}
