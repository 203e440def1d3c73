package antidep

import (
	"context"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/ecs/proptest"
	"perfsim/systems/attribute"
	"perfsim/systems/cost"
	"perfsim/systems/index"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

var (
	ctx    = context.Background()
	engine = scenario.Engine{Cost: cost.Fill, Place: place.Run}
)

func analyse(t testing.TB, w *components.World, table func(m *components.Module) *Table, top int) (*Report, *Table) {
	t.Helper()
	a, err := attribute.Bind(ctx, w, place.RulesFor(w), components.RunA)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := attribute.CriticalPath(ctx, w, place.RulesFor(w), a, attribute.Options{Block: -1})
	if err != nil {
		t.Fatal(err)
	}
	tab := table(w.Module)
	r, err := Make(ctx, w, engine, tab, a, paths, Options{Top: top})
	if err != nil {
		t.Fatal(err)
	}
	return r, tab
}

// tiles makes a program that loads n tiles into one buffer of SBUF, each load
// taking load ns and each use of it use ns.
func tiles(n int, load, use uint32) *components.World {
	m := components.NewModule("tiles", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(2 * n)
	pattern := func(role components.OperandRole) components.AccessPattern {
		return components.AccessPattern{Role: role, Memory: components.MemSBUF, DType: components.BFloat16, Address: 0x1000, Steps: []int64{1, 1}, Counts: []uint64{128, 512}}
	}
	var edges components.EdgeSet
	for k := range n {
		l, u := 2*k, 2*k+1
		m.Instr.Opcode.Set(l, components.OpcodeLoad)
		m.Instr.Engine.Set(l, components.SP)
		m.Instr.Lane.Set(l, components.LaneDMA)
		m.Operands.Add(pattern(components.RoleOut))
		m.Operands.EndRow()
		m.Instr.Opcode.Set(u, components.OpcodeTensorCopy)
		m.Instr.Engine.Set(u, components.DVE)
		m.Instr.Lane.Set(u, components.LaneDVE)
		m.Operands.Add(pattern(components.RoleIn))
		m.Operands.EndRow()
		edges.Add(components.InstrID(u), components.InstrID(l), components.Flow)
		if k > 0 {
			edges.Add(components.InstrID(l), components.InstrID(l-1), components.Anti)
			edges.Add(components.InstrID(l), components.InstrID(l-2), components.Output)
		}
	}
	f := m.Functions.Add(0, 0)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, uint32(2*n))
	m.Functions.EndBlock.Set(f, 1)
	if err := m.Link(&edges); err != nil {
		panic(err)
	}
	if err := m.Check(); err != nil {
		panic(err)
	}
	for k := range n {
		for _, x := range []struct {
			row int
			t   uint32
		}{{2 * k, load}, {2*k + 1, use}} {
			if k == 0 {
				m.Instr.Issue.Resize(2 * n)
				m.Instr.Latency.Resize(2 * n)
			}
			m.Instr.Issue.Set(x.row, x.t)
			m.Instr.Latency.Set(x.row, x.t)
		}
	}
	w := &components.World{Module: m, Machine: &machine.Machine{}, Config: components.Config{Model: cost.Calibrated, Jobs: 1}, Events: components.NewEvents()}
	if err := place.Run(ctx, w); err != nil {
		panic(err)
	}
	return w
}

// Worked out by hand: with one buffer load and use alternate, 10 × (100+300);
// without anti-dependencies loads run ahead of the uses, 100 + 10×300.
func TestTiles(t *testing.T) {
	w := tiles(10, 100, 300)
	table := func(m *components.Module) *Table {
		tab, err := Buffers(ctx, m, index.AntiEdges(w), 2)
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	r, tab := analyse(t, w, table, 5)
	if r.A != 4000 || r.B != 3100 {
		t.Fatalf("runs are %d and %d, not 4000 and 3100", r.A, r.B)
	}
	if len(r.Buffers) != 1 {
		t.Fatalf("%d buffers, not 1", len(r.Buffers))
	}
	c := r.Buffers[0]
	if name := c.Buffer.Name(w.Module); name != "SB@0x1000-0x1400" {
		t.Errorf("buffer is called %s", name)
	}
	if c.Edges != 9 || c.Binding != 9 || c.Writers != 9 || c.OnPath != 9 || !c.Exact || c.Cost != 900 || c.Buffer.Bytes(w.Module) != 1024 {
		t.Errorf("cost is %+v", c)
	}
	// Run B: version k is loaded from 100k, used until 100+300(k+1). At 900,
	// when the last load starts, versions 2 to 8 still live (version 2 is used
	// from 700 to 1000), and the tenth begins: eight at once, seven more.
	if c.Extra != 7 {
		t.Errorf("%d more buffers, not 7", c.Extra)
	}
	if c.Wait != 300 {
		t.Errorf("longest wait %d, not 300", c.Wait)
	}
	if rows, err := tab.Find(w.Module, "SB@0x1000-0x1400"); err != nil || len(rows) != 1 {
		t.Errorf("Find: %v, %v", rows, err)
	}
	if _, err := tab.Find(w.Module, "nothing"); err == nil {
		t.Error("Find found a buffer that is not there")
	}
}

// With any split of the anti-dependencies into buffers: what is said to be
// exact is, what is said to bound does.
func TestCostsAreExactAndBoundsHold(t *testing.T) {
	n := proptest.Cases(3_000)
	mach, err := machine.Load("trn1")
	if err != nil {
		t.Fatal(err)
	}
	costly, bounded := 0, 0
	for k := range n {
		r := rand.New(rand.NewPCG(21, uint64(k)))
		m := randmod.Module(r, randmod.Options{Streams: 4, Blocks: true, NoCollectives: true})
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1}, Events: components.NewEvents()}
		if err := cost.Fill(ctx, w); err != nil {
			t.Fatal(err)
		}
		if err := place.Run(ctx, w); err != nil {
			t.Fatal(err)
		}
		buffers := 1 + r.IntN(5)
		table := func(m *components.Module) *Table {
			tab := &Table{}
			for b := range buffers {
				tab.Buffers = append(tab.Buffers, Buffer{Memory: components.MemSBUF, Bank: -1, Lo: uint64(b), Hi: uint64(b + 1)})
			}
			for e, word := range m.Edges.Preds.Words() {
				if uint8(word>>ecs.ClassShift) == components.ClassAnti {
					tab.Edges = append(tab.Edges, uint32(e))
					tab.Of = append(tab.Of, uint32(r.IntN(buffers)))
				}
			}
			return tab
		}
		rep, tab := analyse(t, w, table, r.IntN(3))
		for _, c := range rep.Buffers {
			f := scenario.Fork(w)
			DropBuffers(f, tab, []uint32{uint32(c.Buffer.Lo)})
			if err := place.Run(ctx, f); err != nil {
				t.Fatal(err)
			}
			saved := w.Latency(components.RunA) - f.Latency(components.RunA)
			switch {
			case c.Exact && c.Cost != saved:
				t.Fatalf("module %d: buffer %d costs %d, said to be exactly %d", k, c.Buffer.Lo, saved, c.Cost)
			case c.Bounded && c.Cost < saved:
				t.Fatalf("module %d: buffer %d costs %d, said to be at most %d", k, c.Buffer.Lo, saved, c.Cost)
			}
			if c.Exact && saved > 0 {
				costly++
			}
			if !c.Exact && c.Bounded && c.Cost > 0 {
				bounded++
			}
			if c.Edges == 0 && (c.Binding > 0 || c.Extra > 0) {
				t.Fatalf("module %d: buffer without edges: %+v", k, c)
			}
		}
	}
	if costly == 0 || bounded == 0 {
		t.Fatalf("%d costs and %d bounds were tried: the test shows nothing", costly, bounded)
	}
}

// With two buffers the loads run one ahead of the uses: 100 + 10×300; with a
// load as long as three uses two are not enough to hide the waits of the
// first, and more do not help.
func TestMoreBuffers(t *testing.T) {
	for _, c := range []struct {
		load, use uint32
		n         int
		want      uint64
	}{
		{100, 300, 1, 4000}, {100, 300, 2, 3100}, {100, 300, 3, 3100},
		{300, 100, 1, 4000}, {300, 100, 2, 3100},
		{200, 200, 1, 4000}, {200, 200, 2, 2200},
	} {
		w := tiles(10, c.load, c.use)
		tab, err := Buffers(ctx, w.Module, index.AntiEdges(w), 1)
		if err != nil {
			t.Fatal(err)
		}
		f := scenario.Fork(w)
		room := NewRoom(w.Module, tab)
		MoreBuffers(f, tab, room.Copies(c.n))
		if err := place.Run(ctx, f); err != nil {
			t.Fatal(err)
		}
		if got := f.Latency(components.RunA); got != c.want {
			t.Errorf("load %d, use %d, %d buffers: %d ns, want %d", c.load, c.use, c.n, got, c.want)
		}
		// A tile is 512 × 2 bytes per partition.
		need := room.Need(room.Copies(c.n), func(components.Memory) uint64 { return 4000 })
		if len(need) != 1 || need[0].Bytes != uint64(c.n)*1024 || need[0].Memory != "SBUF" || need[0].Has != 4000 {
			t.Errorf("%d buffers need %+v", c.n, need)
		}
	}
}
