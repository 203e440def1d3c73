package summary

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/neuron/metricstore"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
)

// The busy time of a lane is the union of its events, sorted by start; counts are those of a loop over the rows.
func TestEnginesEqualSlowUnion(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(8, seed))
		m := randmod.Module(r, randmod.Options{Streams: 2, Blocks: true, Nested: true})
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 2}, Events: components.NewEvents()}
		if err := cost.Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if err := place.Run(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		busy, count := map[string]uint64{}, map[string]int{}
		var byEngine [components.NumEngines]uint64
		for i, e := range m.Instr.Engine.Slice() {
			switch {
			case m.Instr.Flags.At(i)&components.FlagLoop != 0: // a loop is no instruction of an engine
			case m.Instr.Lane.At(i)%components.LanesPerCore == components.LaneDMA:
				byEngine[components.DMA]++
			default:
				byEngine[e]++
			}
		}
		for _, b := range m.TopBlocks() {
			spans := map[uint16][][2]uint64{}
			for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
				if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 {
					continue
				}
				l := m.Instr.Lane.At(int(i))
				count[m.LaneName(l)]++
				start, end := w.Events.Span(m, components.InstrID(i), components.RunA)
				spans[l] = append(spans[l], [2]uint64{start, end})
			}
			for l, s := range spans {
				slices.SortFunc(s, func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) })
				until := uint64(0)
				for _, x := range s {
					if lo := max(x[0], until); x[1] > lo {
						busy[m.LaneName(l)] += (x[1] - lo) * m.Functions.Runs.At(int(m.Blocks.Function.At(b)))
						until = x[1]
					}
				}
			}
		}
		s := Make(w)
		for _, e := range s.Engines {
			if e.BusyNS != busy[e.Name] || e.Instructions != count[e.Name] {
				t.Fatalf("seed %d, %s: busy %d ns with %d instructions, want %d and %d", seed, e.Name, e.BusyNS, e.Instructions, busy[e.Name], count[e.Name])
			}
		}
		if len(s.Engines) != len(count) {
			t.Fatalf("seed %d: %d lanes, want %d", seed, len(s.Engines), len(count))
		}
		store := metricstore.New()
		Count(store, m)
		for name, e := range map[metricstore.MetricType]components.Engine{metricstore.NumDMAInstructions: components.DMA, metricstore.NumPEInstructions: components.PE,
			metricstore.NumSPInstructions: components.SP, metricstore.NumPoolInstructions: components.Pool, metricstore.NumUnassignedInstructions: components.Unassigned} {
			v, ok := store.Get(name, m.Name, metricstore.Sum)
			if n, exact := v.Uint64(); !ok || !exact || n != byEngine[e] {
				t.Fatalf("seed %d: %s is %v, want %d", seed, name, v, byEngine[e])
			}
		}
	}
}
