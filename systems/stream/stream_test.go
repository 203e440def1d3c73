package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perfsim/bench/self/gen"
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs/proptest"
	"perfsim/io/format"
	"perfsim/io/psim"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
	"perfsim/systems/summary"
	"perfsim/systems/work"
)

// save writes a module as a snapshot and returns its path.
func save(t testing.TB, dir string, m *components.Module) string {
	t.Helper()
	var b bytes.Buffer
	if err := psim.Write(context.Background(), &b, m, format.Options{Jobs: 1}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "x.psim")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open opens a snapshot and makes a world of its small tables.
func open(t testing.TB, path string, mach *machine.Machine) (*components.World, *psim.Rows) {
	t.Helper()
	src, err := psim.OpenRows(context.Background(), path, 1, true, Whole)
	if err != nil {
		t.Fatal(err)
	}
	m, err := src.Module(Whole)
	if err != nil {
		t.Fatal(err)
	}
	return &components.World{Module: m, Machine: mach, Config: components.Config{Model: components.Reference, Jobs: 1}}, src
}

// equal predicts m in memory and in a stream and holds both equal.
func equal(t rapid.TB, tb testing.TB, m *components.Module, mach *machine.Machine, window, jobs int) (far uint64) {
	ctx := context.Background()
	config := components.Config{Model: components.Reference, Jobs: 1}
	want := &components.World{Module: m, Machine: mach, Config: config, Events: components.NewEvents()}
	path := save(tb, tb.TempDir(), m)
	if err := cost.Fill(ctx, want); err != nil {
		t.Fatal(err)
	}
	if err := place.Run(ctx, want); err != nil {
		t.Fatal(err)
	}
	got, src := open(tb, path, mach)
	defer src.Close()
	got.Config.Jobs = jobs
	placed := 0
	o := Options{Window: window, Jobs: jobs, Planned: func(p Plan) { far = p.Far }, placed: func(w *components.World, rows int) {
		for i := range rows {
			row := components.InstrID(int(w.Module.Base) + i)
			if int(row) != placed {
				t.Fatalf("row %d is placed behind row %d", row, placed-1)
			}
			placed++
			for run := range components.Run(2) {
				start, end := w.Events.Span(w.Module, components.InstrID(i), run)
				if s, e := want.Events.Span(m, row, run); s != start || e != end {
					t.Fatalf("row %d, run %d: %d to %d in a stream, %d to %d in memory", row, run, start, end, s, e)
				}
			}
		}
	}}
	res, err := Run(ctx, got, src, o)
	if err != nil {
		t.Fatal(err)
	}
	if placed != m.Instr.Len() {
		t.Fatalf("%d of %d rows are placed", placed, m.Instr.Len())
	}
	if !reflect.DeepEqual(got.Blocks, want.Blocks) {
		t.Fatalf("blocks %+v in a stream, %+v in memory", got.Blocks, want.Blocks)
	}
	if a, b := res.Summary.Summary(got), summary.Make(want); !reflect.DeepEqual(a, b) {
		t.Fatalf("summary %+v in a stream, %+v in memory", a, b)
	}
	if a, b := res.Work.Figures(got), work.Make(want); !reflect.DeepEqual(a, b) {
		t.Fatalf("work %+v in a stream, %+v in memory", a, b)
	}
	if a, b := fmt.Sprint(got.Module.Notes), fmt.Sprint(m.Notes); a != b {
		t.Fatalf("notes %s in a stream, %s in memory", a, b)
	}
	return far
}

// A stream gives every event, block, figure and note that placing the module in
// memory gives, whatever the window.
func TestStreamEqualsMemory(t *testing.T) {
	t.Parallel()
	var machines []*machine.Machine
	for _, name := range []string{"trn1", "trn2", "trn3"} {
		m, err := machine.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		machines = append(machines, m)
	}
	streams := []int{4, 2, 3}
	far := uint64(0)
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		n := rapid.IntRange(0, 2).Draw(rt, "machine")
		window := rapid.IntRange(1, 60).Draw(rt, "window")
		jobs := rapid.IntRange(1, 2).Draw(rt, "jobs")
		r := rand.New(rand.NewPCG(seed, 3))
		m := randmod.Module(r, randmod.Options{Streams: streams[n], Blocks: true, Nested: true, Transfers: true, Most: 120})
		if r.IntN(3) == 0 { // work
			macs, moved := m.Instr.MACs.Resize(m.Instr.Len()), m.Instr.DMABytes.Resize(m.Instr.Len())
			for i := range macs {
				macs[i], moved[i] = r.Uint32N(1000), r.Uint64N(1<<20)
				m.Instr.Flags.Set(i, m.Instr.Flags.At(i)|components.FlagSrcDRAM)
			}
		}
		far += equal(rt, t, m, machines[n], window, jobs)
	})
	if far == 0 {
		t.Error("no edge reached beyond a window")
	}
}

// The same of modules that take the fast paths.
func TestStreamEqualsMemoryOfMany(t *testing.T) {
	t.Parallel()
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	o := gen.Default(90_000)
	o.Far, o.Mix.Collective, o.Blocks, o.Loops = 0.1, 0.05, 2, 3
	m, err := gen.Module(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, window := range []int{7_000, 40_000, 65_536, 1 << 20} {
		if far := equal(t, t, m, mach, window, 2); (far == 0) != (window == 1<<20) {
			t.Errorf("windows of %d rows: %d edges reach beyond them", window, far)
		}
	}
}

// What needs the whole module is refused, with the reason.
func TestRefusals(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	loops := func() *components.Module {
		for {
			m := randmod.Module(r, randmod.Options{Streams: 2, Transfers: true})
			if components.Repeats(m, 0) {
				return m
			}
		}
	}
	for name, c := range map[string]struct {
		m      *components.Module
		change func(*components.World)
	}{
		"trips":      {loops(), func(w *components.World) { w.Config.Loops = components.Trips }},
		"calibrated": {loops(), func(w *components.World) { w.Config.Model = components.Calibrated }},
		"measured":   {func() *components.Module { m := loops(); m.Instr.MeasuredDur.Resize(m.Instr.Len()); return m }(), func(*components.World) {}},
		"trigger": {func() *components.Module {
			m := loops()
			m.Instr.Flags.Set(m.Instr.Len()-1, components.FlagTrigger)
			return m
		}(), func(*components.World) {}},
	} {
		w, src := open(t, save(t, t.TempDir(), c.m), mach)
		c.change(w)
		_, err := Run(context.Background(), w, src, Options{Window: 7, Jobs: 2})
		src.Close()
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v is no refusal", name, err)
		}
	}
}

// A snapshot that is not a module is refused as in memory.
func TestBadSnapshots(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for name, spoil := range map[string]func(m *components.Module){
		"lane":          func(m *components.Module) { m.Instr.Lane.Set(2_500, 99) },
		"opcode":        func(m *components.Module) { m.Instr.Opcode.Set(1_900, 60_000) },
		"later":         func(m *components.Module) { m.Edges.Preds.Row(1_000)[0] = 1_000 },
		"beyond":        func(m *components.Module) { m.Edges.Preds.Row(1_000)[0] = 1<<30 - 1 },
		"other block":   func(m *components.Module) { m.Edges.Preds.Row(1_600)[0] = 1_400 },
		"short column":  func(m *components.Module) { m.Instr.Lane.SetLen(2_999) },
		"empty column":  func(m *components.Module) { m.Instr.Lane.SetLen(0) },
		"offset":        func(m *components.Module) { m.Edges.Preds.Offsets()[1_234] = 1 << 31 },
		"first offset":  func(m *components.Module) { m.Edges.Preds.Offsets()[0] = 1 },
		"last offset":   func(m *components.Module) { m.Edges.Preds.Offsets()[3_000]-- },
		"block":         func(m *components.Module) { m.Blocks.End.Set(0, 1_499) },
		"nesting":       func(m *components.Module) { m.Blocks.Parent.Set(2, 3); m.Blocks.First.Set(2, 3) },
		"loop":          func(m *components.Module) { m.Instr.Flags.Set(int(m.Blocks.Parent.At(1))-1, 0) },
		"short offsets": func(m *components.Module) { m.Edges.Preds.Columns()[0].SetLen(2_000) },
		"no words":      func(m *components.Module) { m.Edges.Preds.Columns()[1].SetLen(0) },
	} {
		o := gen.Default(3_000)
		o.Blocks, o.Loops = 2, 1
		m, err := gen.Module(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		spoil(m)
		if m.Check() == nil {
			t.Fatalf("%s: the module is right", name)
		}
		w, src := open(t, save(t, t.TempDir(), m), mach)
		_, err = Run(ctx, w, src, Options{Window: 256, Jobs: 2})
		src.Close()
		if err == nil {
			t.Errorf("%s: streamed", name)
		} else if testing.Verbose() {
			t.Logf("%s: %v", name, err)
		}
	}
}

// A snapshot with wrong bytes and right checksums in what a stream reads is
// refused where the module in memory is, and else predicted as it is.
func TestMutatedSnapshots(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	dir := t.TempDir()
	rows := map[string]bool{offsetsColumn: true, wordsColumn: true}
	var in components.Instructions = components.NewModule("", "").Instr
	for _, c := range read(&in) {
		rows[c.Name()] = true
	}
	refused, equal := 0, 0
	for n := range proptest.Cases(3_000) {
		r := rand.New(rand.NewPCG(19, uint64(n)))
		path := save(t, dir, randmod.Module(r, randmod.Options{Streams: 2, Blocks: true, Nested: true, Transfers: true}))
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := psim.Open(ctx, path, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		columns := slices.DeleteFunc(slices.Clone(s.Columns()), func(c psim.Column) bool { return !Whole(c.Name) && !rows[c.Name] })
		for range 1 + r.IntN(2) {
			c := columns[r.IntN(len(columns))]
			file[c.Offset+r.Int64N(c.Bytes)] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		want := &components.World{Machine: mach, Config: components.Config{Model: components.Reference, Jobs: 1}, Events: components.NewEvents()}
		wrong := func() error {
			if s, err = psim.Open(ctx, path, 1, nil); err != nil {
				return err
			}
			if want.Module, err = s.Module(nil); err != nil {
				return err
			}
			if err := want.Module.Check(); err != nil {
				return err
			}
			if err := cost.Fill(ctx, want); err != nil {
				return err
			}
			return place.Run(ctx, want)
		}()
		src, err := psim.OpenRows(ctx, path, 1, false, Whole)
		if err != nil {
			t.Fatal(err)
		}
		m, err := src.Module(Whole)
		if err != nil {
			t.Fatal(err)
		}
		got := &components.World{Module: m, Machine: mach, Config: want.Config}
		_, err = Run(ctx, got, src, Options{Window: 1 + r.IntN(40), Jobs: 1})
		src.Close()
		var refusal *Refusal
		switch {
		case errors.As(err, &refusal):
		case (err == nil) != (wrong == nil):
			t.Fatalf("case %d: in a stream %v, in memory %v", n, err, wrong)
		case err != nil:
			refused++
		case !reflect.DeepEqual(got.Blocks, want.Blocks):
			t.Fatalf("case %d: blocks %+v in a stream, %+v in memory", n, got.Blocks, want.Blocks)
		default:
			equal++
		}
	}
	if refused == 0 || equal == 0 {
		t.Errorf("%d cases refused, %d equal", refused, equal)
	}
}
