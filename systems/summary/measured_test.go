package summary

import (
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
)

// The measured busy time of a lane is the number of ns in which any of its
// instructions is there, in whatever order the rows come.
func TestMeasuredBusy(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 200 {
		m := components.NewModule("m", "neuronprofile")
		m.AddCoreLanes(0)
		n := 1 + r.IntN(30)
		m.Instr.Grow(n)
		starts := m.Instr.MeasuredStart.Resize(n)
		for i := range starts {
			starts[i] = r.Uint64N(60)
		}
		if round%2 == 0 {
			slices.Sort(starts)
		}
		there := make([]map[uint64]bool, m.Lanes.Len())
		for i, d := range m.Instr.MeasuredDur.Resize(n) {
			l := uint16(r.IntN(3))
			d = uint32(r.IntN(12))
			m.Instr.Lane.Set(i, l)
			m.Instr.MeasuredDur.Set(i, d)
			for at := starts[i]; at < starts[i]+uint64(d); at++ {
				if there[l] == nil {
					there[l] = map[uint64]bool{}
				}
				there[l][at] = true
			}
		}
		for l, got := range MeasuredBusy(m) {
			if want := uint64(len(there[l])); got != want {
				t.Fatalf("round %d, lane %d: %d ns, want %d", round, l, got, want)
			}
		}
	}
}
