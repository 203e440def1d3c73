package attribute

import (
	"path/filepath"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/io/format"
	"perfsim/io/neuron/profile"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
	"perfsim/systems/place"
)

// readProfile reads a measured profile.
func readProfile(t testing.TB, path string) *components.Module {
	t.Helper()
	src, err := format.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	m, err := profile.Importer.Module(ctx, src, format.Options{Jobs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRealProfiles(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(datadir.Path(t, "neuron-profiles"), "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no profiles", err)
	}
	mach := load(t, "trn2")
	for n, f := range files {
		m := readProfile(t, f)
		w, rules := placed(t, m, mach, cost.Reference, components.Once)
		for run := range components.Run(2) {
			checkSums(t, n, w, rules, bind(t, w, rules, run), Options{Block: -1}, w.Latency(run))
		}
		w.Config.Model, w.Config.Why = cost.Calibrated, true
		if err := cost.Fill(ctx, w); err != nil {
			t.Fatal(err)
		}
		if err := calibrated.Run(ctx, w); err != nil {
			t.Fatal(err)
		}
		rules = place.RulesFor(w)
		for run := range components.Run(2) {
			a := bind(t, w, rules, run)
			checkSums(t, n, w, rules, a, Options{Block: -1}, w.Latency(run))
			paths, err := CriticalPath(ctx, w, rules, a, Options{Block: -1})
			if err != nil {
				t.Fatal(err)
			}
			// The model says what held its instructions: what is left over is
			// small, and the path reaches back to the start of an engine.
			r := Report(m, paths)
			if left := r.Gaps[components.CauseModel] + r.Tail; left*10 > r.Span {
				t.Errorf("%s: %d of %d ns of the path are nobody's", filepath.Base(f), left, r.Span)
			}
			if r.Lead*4 > r.Span || r.Steps < 30 {
				t.Errorf("%s: the path of %d steps starts at %d of %d", filepath.Base(f), r.Steps, r.Lead, r.Span)
			}
			slack, err := Slack(ctx, w, rules, a)
			if err != nil {
				t.Fatal(err)
			}
			zero := 0
			for i, s := range slack {
				start, end := w.Events.Span(m, components.InstrID(i), run)
				if s > r.Span || start+s+(end-start) > r.Span+1 {
					t.Fatalf("%s: %d from %d to %d can slip by %d of %d", filepath.Base(f), i, start, end, s, r.Span)
				}
				if s == 0 {
					zero++
				}
			}
			for _, i := range paths[0].Steps {
				if slack[i] != 0 {
					t.Errorf("%s: %s is on the critical path and can slip by %d", filepath.Base(f), m.InstrName(i), slack[i])
				}
			}
			if zero == len(slack) {
				t.Errorf("%s: nothing can slip", filepath.Base(f))
			}
		}
	}
}
