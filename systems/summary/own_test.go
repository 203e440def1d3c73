package summary

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs/proptest"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
)

// A lane of a module with loops is as busy as with the loops written out, but
// for first iterations that take another time than the last, and its rows add
// up to its busy time.
func TestBusyEqualsWritingOut(t *testing.T) {
	t.Parallel()
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	placed := func(m *components.Module, loops components.Loops) *components.World {
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1, Loops: loops}, Events: components.NewEvents()}
		if err := cost.Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if err := place.Run(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		return w
	}
	looped, lanesSeen, other := 0, 0, 0
	worst := 0.0
	for n := range proptest.Cases(2_000) {
		r := rand.New(rand.NewPCG(31, uint64(n)))
		m := randmod.Module(r, randmod.Options{Streams: 2, Nested: n%3 == 0, Trips: 30, NoCollectives: true, Transfers: n%2 == 1})
		if m.Blocks.Len() > 1 {
			looped++
		}
		w, out := placed(m, components.Trips), placed(randmod.Unroll(m), components.Once)
		var got, want totals
		got.blocks(w)
		want.blocks(out)
		lanes := m.Lanes.Len()
		a, b := got.busy, want.busy
		rows := make([]uint64, lanes)
		for i, ns := range RowBusy(w) {
			rows[m.Instr.Lane.At(i)] += ns
		}
		for l := range lanes {
			if b[l] > 0 {
				lanesSeen++
			}
			if a[l] != b[l] {
				other++
				worst = max(worst, math.Abs(float64(a[l])/float64(b[l])-1))
			}
			if rows[l] != a[l] {
				t.Errorf("module %d: the rows of %s are busy for %d ns, the lane %d", n, m.LaneName(uint16(l)), rows[l], a[l])
			}
		}
	}
	t.Logf("%d modules with loops: %d of %d lanes differ from writing out, worst by %.1f %%", looped, other, lanesSeen, 100*worst)
	if looped == 0 || 8*other > lanesSeen || worst > 1 {
		t.Errorf("%d modules with loops, %d of %d lanes differ, worst by %.1f %%", looped, other, lanesSeen, 100*worst)
	}
}
