package summary

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/systems/place"
)

// A body of 100 ns of work in a loop of five trips within one of three, after
// 40 ns outside: 40 + 3×(20 + 5×100), worked by hand; once it is 160.
func TestBusyCountsTrips(t *testing.T) {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	in := &m.Instr
	in.Grow(5)
	lat := []uint32{40, 0, 20, 0, 100}
	in.Latency.Resize(5)
	in.Issue.Resize(5)
	w := &components.World{Module: m, Events: components.NewEvents()}
	for i, l := range lat {
		in.Lane.Set(i, components.LanePE)
		in.Latency.Set(i, l)
		if l == 0 {
			in.Flags.Set(i, components.FlagLoop)
			continue
		}
		in.Issue.Set(i, l)
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	name := m.Symbols.InternString("b")
	for _, b := range []struct {
		parent, first uint32
		trip          uint64
	}{{0, 0, 1}, {2, 2, 3}, {4, 4, 5}} {
		m.Blocks.End.Set(m.Blocks.Add(name, uint32(f), b.parent, components.InstrID(b.first), b.trip), 5)
	}
	for loops, want := range map[components.Loops]uint64{components.Once: 160, components.Trips: 40 + 3*(20+5*100)} {
		w.Config.Loops = loops
		if err := place.RunRules(context.Background(), w, place.Rules{}); err != nil {
			t.Fatal(err)
		}
		var all totals
		all.blocks(w)
		var s Summary
		s.engines(m, &all)
		if len(s.Engines) != 1 || s.Engines[0].BusyNS != want || s.Engines[0].Instructions != 5-2 {
			t.Errorf("loops %s: %+v, want %d ns", loops, s.Engines, want)
		}
	}
}
