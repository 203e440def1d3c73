package place

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

// counted places m with loops as often as they run.
func counted(t testing.TB, m *components.Module, mach *machine.Machine, model components.Model) *components.World {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: model, Jobs: 1, Loops: components.Trips}, Events: components.NewEvents()}
	if err := cost.Fill(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	if err := RunRules(context.Background(), w, RulesOf(model, mach)); err != nil {
		t.Fatal(err)
	}
	return w
}

// onceTimesTrips is what counting the growth of the block's end over a body
// as often as it runs would give: what this package did before it placed
// iterations.
func onceTimesTrips(w *components.World, run components.Run) uint64 {
	m := w.Module
	once := &components.World{Module: m, Machine: w.Machine, Config: components.Config{Model: w.Config.Model, Jobs: 1}, Events: components.NewEvents()}
	if err := RunRules(context.Background(), once, RulesOf(w.Config.Model, w.Machine)); err != nil {
		panic(err)
	}
	extra := make([]uint64, m.Blocks.Len()+1) // what is added inside a block
	for b := m.Blocks.Len() - 1; b > 0; b-- {
		one := once.Blocks[b].Latency[run]
		around, p := 0, m.Blocks.Parent.At(b)-1
		for a := range b {
			if m.Blocks.First.At(a) <= p && p < m.Blocks.End.At(a) {
				around = a
			}
		}
		extra[around] += (one+extra[b])*max(m.Blocks.Trip.At(b), 1) - one
	}
	return once.Blocks[0].Latency[run] + extra[0]
}

func TestTripsEqualWritingOut(t *testing.T) {
	t.Parallel()
	modules := proptest.Cases(20_000)
	for _, c := range []struct {
		machine     string
		trips       int
		collectives bool
	}{{"trn1", 5, false}, {"trn2", 40, false}, {"trn2", 300, false}, {"trn2", 40, true}} {
		t.Run(fmt.Sprintf("%s up to %d trips, collectives %v", c.machine, c.trips, c.collectives), func(t *testing.T) {
			mach, err := machine.Load(c.machine)
			if err != nil {
				t.Fatal(err)
			}
			var now, old []float64
			n := modules
			if c.trips > 100 || c.collectives {
				n /= 10
			}
			for n := range n {
				r := rand.New(rand.NewPCG(21, uint64(n)))
				m := randmod.Module(r, randmod.Options{Streams: 2, Nested: n%3 == 0 && c.trips < 100, Trips: c.trips, NoCollectives: !c.collectives, Transfers: n%2 == 1})
				if m.Blocks.Len() == 1 {
					continue
				}
				w := counted(t, m, mach, cost.Reference)
				for _, run := range []components.Run{components.RunA, components.RunB} {
					s := newSlow(m, RulesOf(cost.Reference, mach), run)
					s.all(0, true)
					got := w.Blocks[0].LatencyTrips[run]
					if least := busiest(m, run); got < least {
						t.Errorf("module %d run %d: %d, the busiest lane has %d ns of work", n, run, got, least)
					}
					now = append(now, float64(got)/float64(s.last)-1)
					old = append(old, float64(onceTimesTrips(w, run))/float64(s.last)-1)
					if got != s.last {
						if !c.collectives {
							t.Errorf("module %d run %d: %d, written out %d", n, run, got, s.last)
						}
						continue
					}
					for i, want := range s.events {
						if start, end := w.Events.Span(m, components.InstrID(i), run); start != want.start || end != want.end() {
							t.Errorf("module %d run %d, instruction %d: %d to %d, written out %d to %d", n, run, i, start, end, want.start, want.end())
						}
					}
				}
			}
			show(t, "now", now)
			show(t, "before", old)
		})
	}
}

func show(t *testing.T, what string, e []float64) {
	abs := make([]float64, len(e))
	exact := 0
	for i, x := range e {
		abs[i] = max(x, -x)
		if x == 0 {
			exact++
		}
	}
	slices.Sort(abs)
	slices.Sort(e)
	n := len(abs)
	t.Logf("%s: %d runs, %.2f %% exact, error median %.2g %%, p95 %.2g %%, worst %.3g %% (%+.3g to %+.3g %%)", what, n, 100*float64(exact)/float64(n),
		100*abs[n/2], 100*abs[n*95/100], 100*abs[n-1], 100*e[0], 100*e[n-1])
}

// busiest is how long the lane with most to do is kept by it.
func busiest(m *components.Module, run components.Run) uint64 {
	work := map[uint16]uint64{}
	var rows func(b int, times uint64)
	rows = func(b int, times uint64) {
		t := &m.Blocks
		for i := t.First.At(b); i < t.End.At(b); i++ {
			f := m.Instr.Flags.At(int(i))
			if f&components.FlagLoop == 0 {
				if f&components.FlagBarrier == 0 { // does not wait for its lane
					work[m.Instr.Lane.At(int(i))] += times * uint64(m.Instr.Issue.At(int(i)))
				}
				continue
			}
			for body := range t.Len() {
				if t.Parent.At(body) == i+1 {
					rows(body, times*max(t.Trip.At(body), 1))
					i = max(i, t.End.At(body)-1)
				}
			}
		}
	}
	rows(0, 1)
	var most uint64
	for _, n := range work {
		most = max(most, n)
	}
	return most
}

// row is an instruction of a module worked out by hand.
type row struct {
	lane           uint16
	issue, latency uint32
	preds          []uint32
	loop           uint64 // trips, where it is a loop
	rows           int    // of its body
}

func byHand(rows []row) *components.Module {
	m := components.NewModule("hand", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(len(rows))
	m.Instr.Issue.Resize(len(rows))
	m.Instr.Latency.Resize(len(rows))
	f := m.Functions.Add(0, 0)
	m.Blocks.End.Set(m.Blocks.Add(0, uint32(f), 0, 0, 1), uint32(len(rows)))
	for i, r := range rows {
		m.Instr.Lane.Set(i, r.lane)
		m.Instr.Issue.Set(i, r.issue)
		m.Instr.Latency.Set(i, r.latency)
		var words []uint32
		for _, p := range r.preds {
			words = append(words, ecs.Word(components.ClassFlow, p))
		}
		m.Edges.Preds.AppendRow(words)
		if r.loop > 0 {
			m.Instr.Flags.Set(i, components.FlagLoop)
			m.Blocks.End.Set(m.Blocks.Add(0, uint32(f), uint32(i+1), components.InstrID(i+1), r.loop), uint32(i+1+r.rows))
		}
	}
	m.Functions.EndBlock.Set(f, uint32(m.Blocks.Len()))
	return m
}

// Loops worked out by hand, in ns.
func TestTripsByHand(t *testing.T) {
	const a, b, dma = components.LanePE, components.LaneDVE, components.LaneDMA
	for _, c := range []struct {
		name     string
		rows     []row
		want     uint64
		interval uint64 // of the first loop's body
	}{
		{"one lane: 50 × 100, the last 20 late", []row{{loop: 50, rows: 1}, {lane: a, issue: 100, latency: 120}}, 50*100 + 20, 100},
		{"two lanes in a pipeline: 100 + 50 × 100, not 50 × 200", []row{{loop: 50, rows: 2}, {lane: a, issue: 100, latency: 100},
			{lane: b, issue: 100, latency: 100, preds: []uint32{1}}}, 100 + 50*100, 100},
		{"there and back: the first lane waits for the second in every iteration", []row{{loop: 50, rows: 3}, {lane: a, issue: 10, latency: 100},
			{lane: b, issue: 10, latency: 100, preds: []uint32{1}}, {lane: a, issue: 10, latency: 100, preds: []uint32{2}}}, 50*210 + 90, 210},
		{"in the shadow of a transfer of 10,000", []row{{lane: dma, issue: 10000, latency: 10000}, {loop: 50, rows: 1}, {lane: a, issue: 100, latency: 100}}, 10000, 100},
		{"out of the shadow", []row{{lane: dma, issue: 10000, latency: 10000}, {loop: 500, rows: 1}, {lane: a, issue: 100, latency: 100}}, 500 * 100, 100},
		{"one lane in the shadow: the other catches up behind 10,000 and follows", []row{{lane: b, issue: 10000, latency: 10000}, {loop: 500, rows: 2},
			{lane: a, issue: 100, latency: 100}, {lane: b, issue: 50, latency: 50, preds: []uint32{2}}}, 500*100 + 50, 100},
		{"nested: 20 × (5 × 100 + 40)", []row{{loop: 20, rows: 3}, {lane: a, issue: 40, latency: 40}, {loop: 5, rows: 1}, {lane: a, issue: 100, latency: 100}}, 20 * 540, 540},
		{"the consumer behind the loop starts on its lane, and on another one at once", []row{{loop: 50, rows: 1}, {lane: a, issue: 100, latency: 120},
			{lane: a, issue: 30, latency: 30}, {lane: b, issue: 7, latency: 7, preds: []uint32{2}}}, 50*100 + 30 + 7, 100},
		{"crosswise: two lanes take turns, 150 in two iterations", []row{{loop: 100, rows: 4}, {lane: a, issue: 0, latency: 100}, {lane: b, issue: 0, latency: 50},
			{lane: a, issue: 0, latency: 0, preds: []uint32{2}}, {lane: b, issue: 0, latency: 0, preds: []uint32{1}}}, 100 / 2 * 150, 76}, // the second goes 7,450 in 99
		{"more trips than can be placed one by one", []row{{loop: 1 << 40, rows: 1}, {lane: a, issue: 1000, latency: 1000}}, 1000 << 40, 1000},
		{"beyond 146 years", []row{{loop: 1 << 62, rows: 1}, {lane: a, issue: 1000, latency: 1000}}, math.MaxUint64, 0},
	} {
		m := byHand(c.rows)
		if err := m.Check(); err != nil {
			t.Fatal(c.name, err)
		}
		w := &components.World{Module: m, Config: components.Config{Jobs: 1, Loops: components.Trips}, Events: components.NewEvents()}
		if err := RunRules(context.Background(), w, Rules{}); err != nil {
			t.Fatal(c.name, err)
		}
		if got := w.Blocks[0].LatencyTrips; got != [2]uint64{c.want, c.want} {
			t.Errorf("%s: %d, by hand %d", c.name, got, c.want)
		}
		if got := w.Blocks[1].LatencyTrips[0]; c.interval > 0 && got != c.interval {
			t.Errorf("%s: an iteration takes %d, by hand %d", c.name, got, c.interval)
		}
	}
}

// Loops within loops take the power of their depth, up to a bound; behind it an
// iteration stands for those that follow.
func TestDeepLoopsEnd(t *testing.T) {
	var rows []row
	const depth = 60
	for n := range depth {
		rows = append(rows, row{loop: 3, rows: 2*(depth-n) - 1}, row{lane: components.LanePE, issue: 10, latency: 10})
	}
	m := byHand(rows)
	w := &components.World{Module: m, Config: components.Config{Jobs: 1, Loops: components.Trips}, Events: components.NewEvents()}
	if err := RunRules(context.Background(), w, Rules{}); err != nil {
		t.Fatal(err)
	}
	if got := w.Blocks[0].LatencyTrips[0]; got < 1<<62 {
		t.Errorf("3^60 times 10 ns are %d", got)
	}
}

// Any number of cores gives the same.
func TestTripsOnManyCores(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(200) {
		m := randmod.Module(rand.New(rand.NewPCG(22, seed)), randmod.Options{Streams: 2, Blocks: true, Nested: true, Trips: 30, Transfers: seed%2 == 1})
		var first *components.World
		for _, jobs := range []int{1, 4} {
			w := counted(t, m, mach, cost.Reference)
			w.Config.Jobs = jobs
			if err := RunRules(context.Background(), w, RulesOf(cost.Reference, mach)); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = w
				continue
			}
			if !slices.Equal(first.Events.Arrive.Slice(), w.Events.Arrive.Slice()) || !reflect.DeepEqual(first.Blocks, w.Blocks) {
				t.Fatalf("module %d depends on the cores", seed)
			}
		}
	}
}
