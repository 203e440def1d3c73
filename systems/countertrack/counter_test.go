package countertrack

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/occupancy"
)

// at returns the value of a series at time t.
func at(t *testing.T, tl *components.Timeline, name string, ns uint64) float64 {
	t.Helper()
	for _, s := range tl.Series {
		if s.Name != name {
			continue
		}
		v := 0.0
		for k := range s.Time {
			if s.Time[k] <= ns {
				v = s.Value[k]
			}
		}
		return v
	}
	t.Fatalf("no counter %q", name)
	return 0
}

// Worked out by hand, 1024 ns so that a sample is one: a load of 4096 bytes
// from 0 to 256 writes 1024 bytes per partition of SBUF; a matmul from 256 to
// 512 reads them and writes bank 3; a copy from 768 to 1024 reads the bank and
// writes 130 bytes behind the tile, which touch three cells of 64.
func TestCounters(t *testing.T) {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(3)
	m.Instr.DMABytes.Resize(3)
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, 3)
	m.Functions.EndBlock.Set(f, 1)
	w := &components.World{Module: m, Events: components.NewEvents(), Blocks: []components.BlockResult{{Latency: [2]uint64{1024, 1024}}}}
	sbuf := func(role components.OperandRole, address, bytes uint64) components.AccessPattern {
		return components.AccessPattern{Role: role, Memory: components.MemSBUF, DType: components.Uint8, Address: address, Steps: []int64{1, 1}, Counts: []uint64{128, bytes}}
	}
	for i, x := range []struct {
		engine components.Engine
		lane   uint16
		flags  components.Flags
		banks  uint16
		end    uint64
		ops    []components.AccessPattern
	}{
		{components.SP, components.LaneDMA, components.FlagSrcDRAM, 0, 256, []components.AccessPattern{sbuf(components.RoleOut, 0, 1024)}},
		{components.PE, components.LanePE, components.FlagAccStart, 1 << 11, 512, []components.AccessPattern{sbuf(components.RoleIn, 0, 1024)}},
		{components.DVE, components.LaneDVE, 0, 1 << 3, 1024, []components.AccessPattern{sbuf(components.RoleOut, 1024, 130)}},
	} {
		m.Instr.Engine.Set(i, x.engine)
		m.Instr.Lane.Set(i, x.lane)
		m.Instr.Flags.Set(i, x.flags)
		m.Instr.Banks.Set(i, x.banks)
		m.Instr.Latency.Append(256)
		m.Instr.Issue.Append(256)
		w.Events.Arrive.Append([2]uint64{x.end, x.end})
		for _, o := range x.ops {
			m.Operands.Add(o)
		}
		m.Operands.EndRow()
	}
	m.Instr.DMABytes.Set(0, 4096)
	tl := expect(t, w, []sample{
		{"busy DMA", 0, 100}, {"busy DMA", 255, 100}, {"busy DMA", 256, 0},
		{"busy PE", 255, 0}, {"busy PE", 300, 100}, {"busy DVE", 767, 0}, {"busy DVE", 1023, 100},
		{"HBM read", 100, 16}, {"HBM read", 256, 0},
		{"PSUM banks in use", 255, 0}, {"PSUM banks in use", 256, 1}, {"PSUM banks in use", 700, 1}, {"PSUM banks in use", 1023, 1},
		{"SBUF in use", 0, 1024}, {"SBUF in use", 511, 1024}, {"SBUF in use", 512, 0}, {"SBUF in use", 800, 192}, {"SBUF in use", 1024, 0},
	})
	if len(tl.Series) != 6 {
		t.Errorf("%d counters", len(tl.Series))
	}
}

// sample is the value of a counter at a time.
type sample struct {
	name string
	ns   uint64
	want float64
}

// expect makes the counters of a world and holds them to samples.
func expect(t *testing.T, w *components.World, want []sample) *components.Timeline {
	t.Helper()
	tl := components.NewTimeline(w, -1, components.Process{Name: "predicted"})
	if err := Add(context.Background(), tl, 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range want {
		if got := at(t, tl, c.name, c.ns); got != c.want {
			t.Errorf("%s at %d ns is %v, want %v", c.name, c.ns, got, c.want)
		}
	}
	return tl
}

// What cannot fit into a sample is drawn in the next, reads and writes in
// proportion; what is left at the end where there was room before.
func TestLevel(t *testing.T) {
	read, write := []float64{0, 30, 0, 0}, []float64{0, 10, 0, 20}
	level(read, write, 20)
	for k, want := range [][2]float64{{0, 0}, {15, 5}, {15, 5}, {0, 20}} {
		if read[k] != want[0] || write[k] != want[1] {
			t.Errorf("sample %d: read %v, written %v, want %v", k, read[k], write[k], want)
		}
	}
	read, write = []float64{0, 0, 30}, make([]float64, 3)
	level(read, write, 20)
	if read[0] != 0 || read[1] != 10 || read[2] != 20 {
		t.Errorf("read %v, want what is left at the end before it", read)
	}
}

// Cells count in the samples that begin while they are live.
func TestLiveCells(t *testing.T) {
	c := &counters{width: 1000, n: 4, names: []uint16{0}, end: 4000, t: &components.Timeline{}}
	c.occupied("cells", "banks", 1, func(done occupancy.Done) {
		for k := range uint64(300) { // a hundred lives within a sample are none that it sees
			done(0, 0, 10*k+1, 10*k+8, 0)
		}
		done(0, 0, 0, 5, 0)
		done(0, 1, 0, 1500, 0)
	})
	s := c.t.Series[0]
	for k, want := range map[uint64]float64{0: 2, 1000: 1, 2000: 0} {
		got := -1.0
		for n := range s.Time {
			if s.Time[n] <= k {
				got = s.Value[n]
			}
		}
		if got != want {
			t.Errorf("%v cells live at %d ns, want %v", got, k, want)
		}
	}
}

// The clock of a core with 2.4 GHz at full rate and half of it else: full from
// 256 to 512 ns of a block of 1024. Other cores and models have none.
func TestClock(t *testing.T) {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(1)
	m.Instr.Lane.Set(0, components.LanePE)
	m.Instr.Latency.Append(1024)
	m.Instr.Issue.Append(1024)
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, 1)
	m.Functions.EndBlock.Set(f, 1)
	w := &components.World{Module: m, Events: components.NewEvents(), Blocks: []components.BlockResult{{Latency: [2]uint64{1024, 1024}}},
		Machine: &machine.Machine{Clock: machine.Clock{PEArray: 240}, Memory: machine.Memory{Partitions: 128}}}
	w.Events.Arrive.Append([2]uint64{1024, 1024})
	for _, slow := range []float64{0, .5} {
		w.SlowClock, w.FullClock = slow, []components.ClockSpan{{Start: 256, End: 512}}
		tl := components.NewTimeline(w, -1, components.Process{Name: "predicted"})
		if err := Add(context.Background(), tl, 0); err != nil {
			t.Fatal(err)
		}
		found := false
		for _, s := range tl.Series {
			found = found || s.Name == "PE clock"
		}
		if found != (slow > 0) {
			t.Fatalf("slow rate %v: a clock is there: %v", slow, found)
		}
		if !found {
			continue
		}
		for ns, want := range map[uint64]float64{0: 1.2, 255: 1.2, 256: 2.4, 511: 2.4, 512: 1.2, 1023: 1.2} {
			if got := at(t, tl, "PE clock", ns); got != want {
				t.Errorf("%v GHz at %d ns, want %v", got, ns, want)
			}
		}
	}
}

// Worked out by hand, a sample a ns: a loop of four iterations of 256 ns. Events
// are those of the last, from 768 ns: a load of 1,024 bytes (128 ns) into 1,024
// bytes of SBUF, and a copy that reads them (128 ns). Each iteration moves 4
// bytes a ns, keeps either lane busy for half of the time, and holds the tile.
func TestLoops(t *testing.T) {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(3)
	m.Instr.DMABytes.Resize(3)
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.Add(0, uint32(f), 1, 1, 4)
	m.Blocks.End.Set(0, 3)
	m.Blocks.End.Set(1, 3)
	m.Functions.EndBlock.Set(f, 2)
	repeat := &components.Repeat{First: 1, End: 3, Trips: 4, Lanes: []components.RepeatLane{
		{Lane: components.LaneDMA, First: 1, Last: 1}, {Lane: components.LaneDVE, First: 2, Last: 2, Start: [2]uint64{128, 128}}}}
	w := &components.World{Module: m, Events: components.NewEvents(), Blocks: []components.BlockResult{{Latency: [2]uint64{1024, 1024}}, {Repeat: repeat}}}
	for i, x := range []struct {
		lane  uint16
		flags components.Flags
		end   uint64
		role  components.OperandRole
	}{{components.LaneSP, components.FlagLoop, 0, components.RoleIn}, {components.LaneDMA, components.FlagSrcDRAM, 896, components.RoleOut}, {components.LaneDVE, 0, 1024, components.RoleIn}} {
		m.Instr.Lane.Set(i, x.lane)
		m.Instr.Flags.Set(i, x.flags)
		m.Instr.Latency.Append(128)
		m.Instr.Issue.Append(128)
		w.Events.Arrive.Append([2]uint64{x.end, x.end})
		if i > 0 {
			m.Operands.Add(components.AccessPattern{Role: x.role, Memory: components.MemSBUF, DType: components.Uint8, Steps: []int64{1, 1}, Counts: []uint64{128, 1024}})
		}
		m.Operands.EndRow()
	}
	m.Instr.DMABytes.Set(1, 1024)
	expect(t, w, []sample{
		// Three earlier iterations, evenly over their 768 ns.
		{"HBM read", 0, 4}, {"HBM read", 767, 4}, {"HBM read", 800, 8}, {"HBM read", 900, 0},
		{"busy DMA", 100, 50}, {"busy DMA", 800, 100}, {"busy DMA", 950, 0},
		{"busy DVE", 100, 0}, {"busy DVE", 500, 60}, {"busy DVE", 950, 100},
		{"SBUF in use", 0, 1024}, {"SBUF in use", 767, 1024}, {"SBUF in use", 1000, 1024},
	})
}
