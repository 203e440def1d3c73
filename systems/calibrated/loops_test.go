package calibrated

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
)

func predicted(t *testing.T, m *components.Module, mach *machine.Machine, loops components.Loops) *components.World {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Calibrated, Jobs: 1, Loops: loops}, Events: components.NewEvents()}
	if err := cost.Fill(ctx, w); err != nil {
		t.Fatal(err)
	}
	if err := Run(ctx, w); err != nil {
		t.Fatal(err)
	}
	return w
}

// growth is what counting the growth of the block's end over a body as often
// as it runs gives: what this model did before it worked out iterations.
func growth(m *components.Module, once *components.World, run components.Run) float64 {
	extra := make([]float64, m.Blocks.Len())
	for b := m.Blocks.Len() - 1; b > 0; b-- {
		around, p := 0, m.Blocks.Parent.At(b)-1
		for a := range b {
			if m.Blocks.First.At(a) <= p && p < m.Blocks.End.At(a) {
				around = a
			}
		}
		one := float64(once.Blocks[b].Latency[run])
		extra[around] += (one+extra[b])*float64(max(m.Blocks.Trip.At(b), 1)) - one
	}
	return float64(once.Blocks[0].Latency[run]) + extra[0]
}

// Counting trips comes near to writing loops out, and is never less than what
// the busiest lane has to do.
func TestTripsAgainstWritingOut(t *testing.T) {
	t.Parallel()
	modules := proptest.Cases(10_000)
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	var now, before []float64
	for n := range modules {
		m := randmod.Module(rand.New(rand.NewPCG(23, uint64(n))), randmod.Options{Streams: 2, Nested: n%3 == 0, Trips: 20, NoCollectives: true})
		if m.Blocks.Len() == 1 {
			continue
		}
		once, w, all := predicted(t, m, mach, components.Once), predicted(t, m, mach, components.Trips), predicted(t, randmod.Unroll(m), mach, components.Once)
		for _, run := range []components.Run{components.RunA, components.RunB} {
			want := float64(all.Blocks[0].Latency[run])
			now = append(now, float64(w.Blocks[0].LatencyTrips[run])/want-1)
			before = append(before, growth(m, once, run)/want-1)
			if got, least := w.Blocks[0].LatencyTrips[run], busiest(m); float64(got)+10 < least {
				t.Errorf("module %d run %d: %d, the busiest engine has %.0f ns of work", n, run, got, least)
			}
		}
	}
	tell := func(e []float64) (median, p95, worst float64, text string) {
		abs := make([]float64, len(e))
		for i, x := range e {
			abs[i] = max(x, -x)
		}
		slices.Sort(abs)
		k := len(abs)
		median, p95, worst = abs[k/2], abs[k*95/100], abs[k-1]
		return median, p95, worst, fmt.Sprintf("%d runs, error median %.2f %%, p95 %.1f %%, worst %.0f %% (%.0f to %.0f %%)", k, 100*median, 100*p95, 100*worst, 100*slices.Min(e), 100*slices.Max(e))
	}
	_, _, _, text := tell(before)
	t.Log("before: ", text)
	median, p95, _, text := tell(now)
	t.Log("now: ", text)
	if median > 0.01 || p95 > 0.3 {
		t.Errorf("counting trips has drifted from writing out: %s", text)
	}
}

// busiest is how long the engine with most data-path work is kept by it. The
// column has issue intervals rounded to ns, the model has not: half a ns less
// each is what is sure.
func busiest(m *components.Module) float64 {
	work := map[uint16]float64{}
	in := &m.Instr
	var rows func(b int, times uint64)
	rows = func(b int, times uint64) {
		t := &m.Blocks
		for i := t.First.At(b); i < t.End.At(b); i++ {
			f, k := in.Flags.At(int(i)), int(i)
			if f&components.FlagLoop != 0 {
				for body := range t.Len() {
					if t.Parent.At(body) == i+1 {
						rows(body, times*max(t.Trip.At(body), 1))
						i = max(i, t.End.At(body)-1)
					}
				}
				continue
			}
			if e := in.Engine.At(k); (e == components.DVE || e == components.Activation) && f == 0 {
				work[in.Lane.At(k)] += float64(times) * max(float64(in.Issue.At(k))-0.5, 0)
			}
		}
	}
	rows(0, 1)
	most := 0.0
	for _, n := range work {
		most = max(most, n)
	}
	return most
}
