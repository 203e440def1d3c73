package systems

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/whatif"
)

// figures is a report without what differs between two runs of one prediction.
func figures(t *testing.T, r *Result) map[string]any {
	t.Helper()
	rep := r.Report()
	rep.ReadSeconds, rep.Seconds, rep.Rate = 0, 0, 0
	b, err := json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func settings(t *testing.T, text string) []whatif.Setting {
	t.Helper()
	var list []whatif.Assignment
	for _, s := range strings.Fields(text) {
		a, err := whatif.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	points, err := whatif.Points(list)
	if err != nil || len(points) != 1 {
		t.Fatal(points, err)
	}
	return points[0]
}

// A change of the machine predicts what a run on a description with that
// change does, on modules of several blocks, and in any order of the changes.
func TestSessionAgainstRuns(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	base, err := machine.Load("trn1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	changes := []struct{ setting, field, value string }{
		{"reference.overlap_compute_ns=64", "overlap_compute_ns: ", "64"},
		{"reference.default_cost.base=900", "", ""},
		{"reference.couplings=false", "couplings: ", "false"},
		{"reference.costs.Iota.base=3000", "", ""},
		{"memory.hbm_bytes=1", "hbm_bytes: ", "1"},
	}
	machines := make([]*machine.Machine, len(changes))
	for k, c := range changes {
		var doc map[string]any
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		name, value, _ := strings.Cut(c.setting, "=")
		at := doc
		path := strings.Split(name, ".")
		for _, key := range path[:len(path)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				t.Fatalf("%s: no %s", name, key)
			}
			at = next
		}
		var v any
		if err := yaml.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		at[path[len(path)-1]] = v
		changed, err := yaml.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if machines[k], err = machine.Parse("changed", changed); err != nil {
			t.Fatal(err)
		}
	}
	moved := 0
	for seed := range uint64(16) {
		rnd := rand.New(rand.NewPCG(62, seed))
		opt := randmod.Options{Streams: 4, Blocks: true, Nested: true, NoCollectives: seed%2 == 0}
		m := randmod.Module(rnd, opt)
		loops := components.Loops(1 + seed%2)
		s, err := Hold(ctx, Request{Reading: Reading{Module: m}, On: base, Settings: Settings{Model: components.Reference, Loops: loops}})
		if err != nil {
			t.Fatal(err)
		}
		before := figures(t, s.res)
		for range 2 { // the second time on memory that was used
			for k, c := range changes {
				var got map[string]any
				if err := s.Change(ctx, settings(t, c.setting), func(r *Result, _ whatif.Point) error { got = figures(t, r); return nil }); err != nil {
					t.Fatal(err)
				}
				fresh, err := Simulate(ctx, Request{Reading: Reading{Module: randmod.Module(rand.New(rand.NewPCG(62, seed)), opt)}, On: machines[k],
					Settings: Settings{Model: components.Reference, Loops: loops}})
				if err != nil {
					t.Fatal(err)
				}
				want := figures(t, fresh)
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("seed %d, %s: (-run +change)\n%s", seed, c.setting, d)
				}
				if got["latency_ns"] != before["latency_ns"] {
					moved++
				}
			}
		}
		if d := cmp.Diff(before, figures(t, s.res)); d != "" {
			t.Fatalf("seed %d: the base changed:\n%s", seed, d)
		}
	}
	if moved < 16 {
		t.Errorf("only %d changes moved a latency", moved)
	}
}

// drop=anti gives both runs the latency of run B, whatever is dropped or scaled
// before.
func TestSessionDropAnti(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for seed := range uint64(40) {
		m := randmod.Module(rand.New(rand.NewPCG(63, seed)), randmod.Options{Streams: 4, Blocks: true})
		s, err := Hold(ctx, Request{Reading: Reading{Module: m}, Settings: Settings{Machine: "trn1", Model: components.Reference}})
		if err != nil {
			t.Fatal(err)
		}
		want := s.res.World.Latency(components.RunB)
		if err := s.Change(ctx, settings(t, "drop=anti"), func(r *Result, p whatif.Point) error {
			if got := r.Summary(); uint64(got.LatencyA) != want || uint64(got.LatencyB) != want || p.NS != want || got.AntiCost != 0 {
				t.Errorf("seed %d: %d and %v, point %d, want %d", seed, got.LatencyA, got.LatencyB, p.NS, want)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// A prepared module has its dependencies rebuilt once and serves several
// predictions, each as if it were the only one.
func TestPreparedSharesNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, path := range []string{"../examples/tiled_matmul.bir.json", "../examples/attention.bir.json", "../examples/loop.bir.json"} {
		for _, rebuild := range []bool{false, true} {
			set := Settings{RebuildDeps: rebuild}
			l, err := Load(ctx, &Reading{Path: path}, set)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Prepare(ctx, 1); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"trn1", "trn2", "trn3", "trn1"} {
				set.Machine = name
				shared, err := Simulate(ctx, Request{Loaded: l, Settings: set})
				if err != nil {
					t.Fatal(err)
				}
				alone, err := Simulate(ctx, Request{Reading: Reading{Path: path}, Settings: set})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(figures(t, alone), figures(t, shared)); d != "" {
					t.Errorf("%s on %s, rebuild %v: (-alone +shared)\n%s", filepath.Base(path), name, rebuild, d)
				}
			}
		}
	}
}

// Notes of a change are those of its own prediction, counted once.
func TestSessionNotes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	path := "../../shared/data/neuron-profiles"
	files, _ := filepath.Glob(path + "/*.json*")
	if len(files) == 0 {
		t.Skip("no profiles in " + path)
	}
	small := ""
	for _, f := range files {
		if st, err := os.Stat(f); err == nil && (small == "" || st.Size() < 200<<10 && st.Size() > 0) {
			small = f
		}
	}
	s, err := Hold(ctx, Request{Reading: Reading{Path: small}})
	if err != nil {
		t.Skip(err)
	}
	before := s.res.Notes()
	for range 2 {
		if err := s.Change(ctx, settings(t, "pe.clock=1x"), func(r *Result, _ whatif.Point) error {
			if d := cmp.Diff(before, r.Notes()); d != "" {
				t.Errorf("%s: notes (-unchanged +factor 1)\n%s", small, d)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
}
