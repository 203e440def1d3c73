package systems

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perfsim/components"
	"perfsim/systems/change"
	"perfsim/systems/explain"
	"perfsim/systems/internal/randmod"
)

const layerHLO = `HloModule layer

ENTRY main {
  x = bf16[256,1024] parameter(0)
  w = bf16[1024,512] parameter(1)
  d = bf16[256,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = bf16[256,512] tanh(d)
}
`

// A prepared module gives the figures of one that is read anew, however often and
// from however many goroutines it is asked, and what others ask in between
// leaves nothing behind.
func TestPreparedModule(t *testing.T) {
	ctx := context.Background()
	files, err := filepath.Glob("../examples/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	layer := filepath.Join(t.TempDir(), "layer.hlo")
	if err := os.WriteFile(layer, []byte(layerHLO), 0o600); err != nil {
		t.Fatal(err)
	}
	files = append(files, layer)
	run := Options{EnablePerfSim: true}
	settings := []Settings{{Model: components.Reference}, {Model: components.Reference, Loops: components.Trips}, {Model: components.Calibrated}}
	for _, f := range files {
		for _, rebuild := range []bool{false, true} {
			held, err := Load(ctx, &Reading{Path: f}, Settings{RebuildDeps: rebuild})
			if err != nil {
				t.Fatal(err)
			}
			if err := held.Prepare(ctx, 1); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for round := range 2 {
				for _, s := range settings {
					s.RebuildDeps = rebuild
					fresh, err := Simulate(ctx, Request{Reading: Reading{Path: f}, Settings: s, Pipeline: &run})
					if err != nil {
						t.Fatal(err)
					}
					want := figures(t, fresh)
					wg.Go(func() {
						r, err := Simulate(ctx, Request{Loaded: held, Settings: s, Pipeline: &run, Why: round > 0})
						if err != nil {
							t.Error(err)
							return
						}
						if d := cmp.Diff(want, figures(t, r)); d != "" {
							t.Errorf("%s, %v, rebuilt %v: (-read anew +held)\n%s", f, s.Model, rebuild, d)
						}
						if _, err := r.Explain(ctx, explain.Options{Block: -1}); err != nil {
							t.Error(err)
						}
					})
				}
			}
			wg.Wait()
		}
	}
}

// Changes that are all undone give the prediction of the module; changed sizes
// give that of a module that has them.
func TestChanges(t *testing.T) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(3, 5))
	for range 50 {
		seed := r.Uint64()
		module := func() *components.Module {
			return randmod.Module(rand.New(rand.NewPCG(seed, 1)), randmod.Options{Streams: 2, Blocks: true, NoCollectives: true})
		}
		m := module()
		l, err := Load(ctx, &Reading{Module: m}, Settings{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Prepare(ctx, 1); err != nil {
			t.Fatal(err)
		}
		// The rows of the module as it is placed, transfers included.
		w := l.expanded
		i := r.IntN(w.Instr.Len())
		elems, parts := uint32(1+r.IntN(5000)), uint16(1+r.IntN(128))
		got, err := Simulate(ctx, Request{Loaded: l, Settings: Settings{Model: components.Reference},
			Changes: []change.Change{{Instruction: "#" + itoa(i), Elements: &elems, Partitions: &parts}}})
		if err != nil {
			t.Fatal(err)
		}
		other := ownCosts(w)
		other.Instr.Elems.Adopt(append([]uint32{}, w.Instr.Elems.Slice()...))
		other.Instr.Parts.Adopt(append([]uint16{}, w.Instr.Parts.Slice()...))
		other.Instr.Elems.Set(i, elems)
		other.Instr.Parts.Set(i, parts)
		want, err := Simulate(ctx, Request{Reading: Reading{Module: other}, Settings: Settings{Model: components.Reference}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(figures(t, want), figures(t, got)); d != "" {
			t.Errorf("changed row %d: (-want +got)\n%s", i, d)
		}
		again, err := Simulate(ctx, Request{Loaded: l, Settings: Settings{Model: components.Reference}})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := Simulate(ctx, Request{Reading: Reading{Module: module()}, Settings: Settings{Model: components.Reference}})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(figures(t, plain), figures(t, again)); d != "" {
			t.Errorf("a change stays behind: (-want +got)\n%s", d)
		}
	}
}

// A chain of two instructions takes what both take: with given costs their
// sum, since the second waits for the first.
func TestGivenCosts(t *testing.T) {
	ctx := context.Background()
	m := components.NewModule("chain", "test")
	m.AddCoreLanes(0)
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Functions.EndBlock.Set(f, 1)
	m.Instr.Grow(2)
	m.Blocks.End.Set(b, 2)
	for i := range 2 {
		m.Instr.Opcode.Set(i, components.OpcodeMemset)
		m.Instr.Engine.Set(i, components.DVE)
		m.Instr.Lane.Set(i, components.LaneDVE)
		m.Instr.Elems.Set(i, 64)
	}
	m.Instr.Name.Resize(2)
	m.Instr.Name.Set(1, m.Symbols.InternString("second"))
	var edges components.EdgeSet
	edges.Add(1, 0, components.Flow)
	if err := m.Link(&edges); err != nil {
		t.Fatal(err)
	}
	l, err := Load(ctx, &Reading{Module: m}, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	long, short := uint32(7000), uint32(11)
	for _, c := range []struct {
		changes []change.Change
		want    uint64
		err     string
	}{
		{changes: []change.Change{{Instruction: "I-0", LatencyNS: &long}, {Instruction: "second", LatencyNS: &short}}, want: 7011},
		{changes: []change.Change{{Instruction: "#0", LatencyNS: &short, IssueNS: &long}, {Instruction: "#1", LatencyNS: &short}}, want: 7011},
		{changes: []change.Change{{Instruction: "#2"}}, err: "rows go from #0 to #1"},
		{changes: []change.Change{{Instruction: "#0"}, {Instruction: "third"}}, err: `change 2 ("third"): no instruction has this name`},
		{changes: []change.Change{{Instruction: "#0", Opcode: text("Loop")}}, err: "opcode"},
		{changes: []change.Change{{Instruction: "#0", Engine: text("nine")}}, err: "no engine"},
		{changes: []change.Change{{Instruction: "#0", DType: text("int3")}}, err: "element type"},
		{changes: []change.Change{{Instruction: "#0", DMABytes: new(uint64)}}, err: "no transfer sizes"},
	} {
		r, err := Simulate(ctx, Request{Loaded: l, Settings: Settings{Model: components.Reference}, Changes: c.changes})
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: error %v, want %q", c.changes, err, c.err)
			}
		case err != nil:
			t.Error(err)
		default:
			if got := r.World.Latency(components.RunA); got != c.want {
				t.Errorf("%v: %d ns, want %d", c.changes, got, c.want)
			}
		}
	}
}

func text(s string) *string { return &s }

func itoa(i int) string {
	b, _ := json.Marshal(i)
	return string(b)
}
