// Package summary adds a simulation up: the figures that people and machines
// read first.
package summary

import (
	"context"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/neuron/metricstore"
	"perfsim/systems/cost"
)

// Engine is one lane's share of a simulation.
type Engine struct {
	Name         string `json:"name"`         // name of the lane
	Instructions int    `json:"instructions"` // instructions of the lane, each once
	// BusyNS is the union of the time in which the lane executes instructions in
	// run A, weighted. Waiting for a semaphore is not part of it, as in the
	// profiler's active times. A DMA lane is busy while a transfer is in flight.
	BusyNS      uint64  `json:"busy_ns"`
	Utilization float64 `json:"utilization"` // busy time / latency
	// MeasuredBusyNS is the same of the measured times, where the input has
	// them.
	MeasuredBusyNS *uint64 `json:"measured_busy_ns"`

	lane uint16
}

// Active is one kind of engine over the cores of a measured profile, as the
// profiler's summary has it: the union over the lanes of the engine.
type Active struct {
	Engine     string `json:"engine"`           // kind of engine
	MeasuredNS uint64 `json:"measured_busy_ns"` // of the measured times
	// ProfilerNS is the profiler's own figure (*_engine_active_time,
	// dma_active_time).
	ProfilerNS *uint64 `json:"profiler_active_ns"`
}

// Block is one block's result.
type Block struct {
	Function     string `json:"function"`
	Block        string `json:"block"`
	Instructions int    `json:"instructions"` // instructions of the block, each once
	TripCount    uint64 `json:"trip_count"`   // trips of a loop's body; 1 elsewhere
	// TripKnown is false where the input has no trip count; one pass is
	// counted then.
	TripKnown    bool                  `json:"trip_count_known"`
	Runs         uint64                `json:"function_runs"`
	Latency      components.OptionalNS `json:"latency_ns"`                  // latency of all executions in run A, loops as often as --loops says
	LatencyB     components.OptionalNS `json:"latency_no_antideps_ns"`      // the same of run B
	InLoop       bool                  `json:"in_loop"`                     // whether it is a loop's body or inside one
	LatencyOnce  components.OptionalNS `json:"latency_once_ns"`             // latency of one execution with its loops once, run A
	LatencyOnceB components.OptionalNS `json:"latency_once_no_antideps_ns"` // the same of run B
}

// Summary is the result of a simulation in figures.
type Summary struct {
	Instructions int               `json:"instructions"`   // of the module, each once
	Edges        map[string]uint64 `json:"edges"`          // by kind (flow, anti, output, ordered), as the input declared them
	Placed       map[string]uint64 `json:"edges_honoured"` // by kind, after merging, as the placement honours them
	// LatencyA is the end of the last event less the start of the first of run
	// A, all blocks one after the other, as often as their functions run; absent
	// where nothing in the input has a duration or a size.
	LatencyA components.OptionalNS `json:"latency_ns"`
	// LatencyB is the same of run B, which leaves anti-dependencies out; absent
	// where there is no run B.
	LatencyB components.OptionalNS `json:"latency_no_antideps_ns"`
	NoRunB   string                `json:"no_run_b,omitempty"` // why there is no run B
	// Range is the range of the latency over the phases of the PE clock.
	Range *components.LatencyRange `json:"latency_range,omitempty"`
	// Launch is the runtime's time around a kernel launched alone, Device that
	// and the latency; both are absent where they are not known.
	Launch *uint64 `json:"launch_ns"`
	Device *uint64 `json:"device_latency_ns"`
	// AntiCost is LatencyA less LatencyB, at least 0; absent where there is no
	// run B.
	AntiCost components.OptionalNS `json:"antidep_cost_ns"`
	// Measured is the end of the last measured event less the start of the
	// first; absent for a trace that a simulator wrote.
	Measured *uint64  `json:"measured_ns"`
	Recorded *uint64  `json:"recorded_ns,omitempty"`     // the same of a trace that a simulator wrote
	Engines  []Engine `json:"engines"`                   // lanes with instructions
	Active   []Active `json:"measured_active,omitempty"` // of measured profiles
	Blocks   []Block  `json:"blocks"`                    // those of loop bodies included
}

// Make adds up a placed world.
func Make(w *components.World) Summary {
	t := totals{instructions: w.Module.NumInstructions()}
	// Two passes over different columns, side by side where cores are free.
	g, _ := ecs.NewGroup(context.Background(), w.Config.Jobs)
	g.Go(func() error { t.blocks(w); return nil })
	g.Go(func() error { t.edges = w.Module.Edges.Counts(); return nil })
	g.Wait() // none of them fails
	return t.summary(w)
}

// totals are the sums over the rows and edges of a placed world.
type totals struct {
	instructions int
	busy         []uint64 // by lane: ns of run A
	count        []int    // by lane: instructions
	edges        [components.NumEdgeKinds]uint64
}

// summary makes the summary of w, of which t are the totals.
func (t *totals) summary(w *components.World) Summary {
	m := w.Module
	s := Summary{Instructions: t.instructions, LatencyA: components.OptionalNS(w.Latency(components.RunA)), LatencyB: w.LatencyB(),
		Edges: map[string]uint64{}, Placed: map[string]uint64{}}
	s.engines(m, t)
	for k := components.Ordered; k < components.NumEdgeKinds; k++ {
		s.Edges[k.Key()] = m.Edges.Declared[k]
		s.Placed[k.Key()] = t.edges[k]
	}
	if m.Edges.Declared[components.Invalid] > 0 {
		s.Edges[components.Invalid.Key()] = m.Edges.Declared[components.Invalid]
	}
	s.Range = w.Range
	if launch, ok := w.Launch(); ok {
		device := ecs.AddSat(uint64(s.LatencyA), launch)
		s.Launch, s.Device = &launch, &device
	}
	s.NoRunB, s.AntiCost = w.NoRunB, components.AbsentNS
	if s.LatencyB.Known() {
		s.AntiCost = s.LatencyA - min(s.LatencyA, s.LatencyB)
	}
	if span, ok := m.MeasuredSpan(); ok {
		if m.Attribute(cost.DocumentedTrace) != "" {
			s.Recorded = &span // of a simulator: no measurement
		} else {
			s.Measured = &span
		}
	}
	s.blocks(w)
	if m.HasNote(components.NoteNoLatency) {
		s.onlyOrder()
	}
	return s
}

// onlyOrder takes out all times, of a module in which nothing has a duration.
func (s *Summary) onlyOrder() {
	s.NoRunB = "nothing in the input has a duration"
	s.LatencyA, s.LatencyB, s.AntiCost = components.AbsentNS, components.AbsentNS, components.AbsentNS
	for i := range s.Engines {
		s.Engines[i].BusyNS, s.Engines[i].Utilization = 0, 0
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		b.Latency, b.LatencyB, b.LatencyOnce, b.LatencyOnceB = components.AbsentNS, components.AbsentNS, components.AbsentNS, components.AbsentNS
	}
}

func (s *Summary) blocks(w *components.World) {
	m := w.Module
	for _, r := range w.Blocks {
		b := r.Block
		f := int(m.Blocks.Function.At(b))
		trip := m.Blocks.Trip.At(b)
		s.Blocks = append(s.Blocks, Block{
			Function: m.FunctionName(f), Block: m.BlockName(b), Instructions: int(m.Blocks.End.At(b) - m.Blocks.First.At(b)),
			TripCount: max(trip, 1), TripKnown: trip > 0, Runs: m.Functions.Runs.At(f), InLoop: m.Blocks.Parent.At(b) != 0,
			Latency: components.OptionalNS(w.BlockLatency(r, components.RunA)), LatencyB: w.BlockLatencyB(r),
			LatencyOnce: components.OptionalNS(r.Latency[0]), LatencyOnceB: onceB(w, r),
		})
	}
}

func onceB(w *components.World, r components.BlockResult) components.OptionalNS {
	if w.NoRunB != "" {
		return components.AbsentNS
	}
	return components.OptionalNS(r.Latency[1])
}

// blocks adds up the time in which each lane has work, run A, block by block.
func (t *totals) blocks(w *components.World) {
	m := w.Module
	waits := m.WaitOpcodes()
	for _, b := range m.TopBlocks() {
		t.add(busyOfBlock(w, waits, b), m.Functions.Runs.At(int(m.Blocks.Function.At(b))))
	}
}

// add adds a block that runs so many times.
func (t *totals) add(x laneBusy, runs uint64) {
	if t.busy == nil {
		t.busy, t.count = make([]uint64, len(x.sum)), make([]int, len(x.sum))
	}
	for l, ns := range x.times(runs) {
		t.count[l] += x.count[l]
		t.busy[l] = ecs.AddSat(t.busy[l], ns)
	}
}

// engines lists the lanes with instructions.
func (s *Summary) engines(m *components.Module, t *totals) {
	measured := MeasuredBusy(m)
	for l, busy := range t.busy {
		if t.count[l] == 0 && busy == 0 && (measured == nil || measured[l] == 0) {
			continue
		}
		e := Engine{Name: m.LaneName(uint16(l)), Instructions: t.count[l], BusyNS: busy, lane: uint16(l)}
		if s.LatencyA > 0 {
			e.Utilization = float64(busy) / float64(s.LatencyA)
		}
		if measured != nil {
			e.MeasuredBusyNS = &measured[l]
		}
		s.Engines = append(s.Engines, e)
	}
	s.Active = active(m)
}

// Busy returns the busy time of run A by lane, in ns.
func (s *Summary) Busy(lanes int) []uint64 {
	busy := make([]uint64, lanes)
	for _, e := range s.Engines {
		busy[e.lane] = e.BusyNS
	}
	return busy
}

// laneBusy is the work of the lanes in one top block.
type laneBusy struct {
	sum   []uint64 // by lane: busy time of run A in one execution of the block, ns
	count []int    // by lane: its instructions
}

// times returns the busy time of n executions, in ns by lane.
func (x laneBusy) times(n uint64) []uint64 {
	out := make([]uint64, len(x.sum))
	for l, ns := range x.sum {
		out[l] = ecs.MulSat(ns, n)
	}
	return out
}

// busyOfBlock adds up top block b.
func busyOfBlock(w *components.World, waits []bool, b int) laneBusy {
	m := w.Module
	lanes := m.Lanes.Len()
	x := laneBusy{make([]uint64, lanes), make([]int, lanes)}
	inner := b + 1
	busyOf(w, waits, m.Blocks.First.At(b), m.Blocks.End.At(b), &inner, make([]uint64, lanes), x.sum, x.count)
	transfersBusy(w, b, x.sum)
	return x
}

// busyOf is addBusy for rows first to end with the loops among them. Where a
// body is placed as often as it runs (its events are those of its last
// iteration) the lane is as busy in each of the others. next is the block row
// that the next loop's first body has.
func busyOf(w *components.World, waits []bool, first, end uint32, next *int, until, sum []uint64, count []int) {
	t := &w.Module.Blocks
	for i := first; i < end; {
		stop := end
		if *next < t.Len() && t.Parent.At(*next) > i && t.Parent.At(*next) <= end {
			stop = t.Parent.At(*next) - 1
		}
		addBusy(w, waits, int(i), int(stop), until, sum, count)
		i = stop
		if stop == end {
			return
		}
		for i++; *next < t.Len() && t.Parent.At(*next) == stop+1; {
			b := *next
			*next++
			rest := enter(w.Blocks[b].Repeat, until, sum, count)
			busyOf(w, waits, t.First.At(b), t.End.At(b), next, until, sum, count)
			rest.add(until, sum)
			i = t.End.At(b)
		}
	}
}

// others are the iterations of a body before the last.
type others struct {
	*components.Repeat
	hidden []uint64 // by lane of the body: the time they take
	before []uint64 // busy time up to the last iteration
}

// enter prepares for the last iteration of a body that repeats.
func enter(r *components.Repeat, until, sum []uint64, count []int) *others {
	if r == nil {
		return nil
	}
	o := &others{r, make([]uint64, len(r.Lanes)), make([]uint64, len(r.Lanes))}
	for n, l := range r.Lanes {
		at, from := l.Enter[components.RunA], min(l.Enter[components.RunA], l.Start[components.RunA])
		if count[l.Lane] > 0 || until[l.Lane] > 0 {
			// Rows that take no time are behind until, and the lane is not free before them.
			from = min(max(until[l.Lane], l.Before[components.RunA]), from)
		}
		if o.hidden[n] = at - from; o.hidden[n] > 0 {
			// What is outstanding of before is so until the first iteration starts.
			sum[l.Lane] -= min(sum[l.Lane], until[l.Lane]-min(until[l.Lane], from))
			until[l.Lane] = at
			o.before[n] = sum[l.Lane]
			until[l.Lane] += l.Tail[components.RunA]
			sum[l.Lane] = ecs.AddSat(sum[l.Lane], l.Tail[components.RunA])
			continue
		}
		o.before[n] = sum[l.Lane]
	}
	return o
}

// add adds the iterations before the last, behind the last.
func (o *others) add(until, sum []uint64) {
	if o == nil {
		return
	}
	for n, l := range o.Lanes {
		// Up to where the lane is free; what is outstanding then is the next one's.
		one := sum[l.Lane] - min(sum[l.Lane], o.before[n]+until[l.Lane]-min(until[l.Lane], l.Leave[components.RunA]))
		sum[l.Lane] = ecs.AddSat(sum[l.Lane], min(ecs.MulSat(one, o.Trips-1), o.hidden[n]))
	}
}

// addBusy adds what rows lo to hi keep each lane busy in run A to sum; until
// is where the lane's busy time so far ends.
func addBusy(w *components.World, waits []bool, lo, hi int, until, sum []uint64, count []int) {
	in := &w.Module.Instr
	lane, flags := in.Lane.View(lo, hi), in.Flags.View(lo, hi)
	arrive, latency := w.Events.Arrive.View(lo, hi), in.Latency.View(lo, hi)
	var durs [][2]uint32
	if w.Events.Dur.Len() > 0 {
		durs = w.Events.Dur.View(lo, hi)
	}
	flags, arrive, latency = flags[:len(lane)], arrive[:len(lane)], latency[:len(lane)]
	for i, l := range lane {
		if flags[i]&components.FlagLoop != 0 {
			continue
		}
		if flags[i]&components.FlagSequencer != 0 && waits[w.Module.Instr.Opcode.At(lo+i)] {
			count[l]++
			continue
		}
		dur := uint64(latency[i])
		if durs != nil {
			dur = uint64(durs[i][components.RunA])
		}
		end := arrive[i][components.RunA]
		if flags[i]&components.FlagTrigger != 0 { // an event arrives at its start
			end += dur
		}
		// What of start to end lies behind until, without a branch: lanes whose
		// operations overlap make it a coin toss.
		start := max(end-dur, until[l])
		takesTime := uint64(int64(-dur) >> 63) // all ones, or none where dur is 0
		end = max(end&takesTime, until[l])
		sum[l] += end - min(start, end)
		until[l] = end
		if flags[i]&components.FlagTransfer == 0 {
			count[l]++
		}
	}
}

// engineCounts counts rows by engine type, in four tables in turn, so that
// equal neighbours need not wait for one another.
func engineCounts(rows []components.Engine) (n [components.NumEngines]uint64) {
	var part [4][256]uint64
	for len(rows) >= 4 {
		part[0][rows[0]]++
		part[1][rows[1]]++
		part[2][rows[2]]++
		part[3][rows[3]]++
		rows = rows[4:]
	}
	for _, e := range rows {
		part[0][e]++
	}
	for e := range n {
		n[e] = part[0][e] + part[1][e] + part[2][e] + part[3][e]
	}
	return n
}

// Count enters the documented instruction counts of a module by engine type,
// rows as they stand, loop bodies once. What runs on the DMA timeline counts as
// DMA whatever engine starts it, as in the engine table of run; how the
// documented passes count it is not public.
func Count(store *metricstore.Store, m *components.Module) {
	n := engineCounts(m.Instr.Engine.Slice())
	for i, l := range m.Instr.Lane.Slice() {
		e := m.Instr.Engine.At(i)
		switch {
		case m.Instr.Flags.At(i)&(components.FlagTransfer|components.FlagLoop) != 0:
			n[e]-- // no instruction of an engine
		case e != components.DMA && m.Lanes.Kind.At(int(l)) == components.LaneEngine && m.Lanes.Engine.At(int(l)) == components.DMA:
			n[e]--
			n[components.DMA]++
		}
	}
	for _, c := range []struct {
		t metricstore.MetricType
		e components.Engine
	}{{metricstore.NumUnassignedInstructions, components.Unassigned}, {metricstore.NumPoolInstructions, components.Pool},
		{metricstore.NumActivationInstructions, components.Activation}, {metricstore.NumPEInstructions, components.PE},
		{metricstore.NumDMAInstructions, components.DMA}, {metricstore.NumDVEInstructions, components.DVE},
		{metricstore.NumSPInstructions, components.SP}} {
		store.Add(c.t, m.Name, metricstore.Uint64(n[c.e]), metricstore.Sum)
	}
}
