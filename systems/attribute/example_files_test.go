package attribute

import (
	"path/filepath"
	"testing"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/io/neuron/birjson"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
	"perfsim/systems/place"
)

// Causes and critical paths of every example add up, on every machine, in
// both runs and both ways to count loops, and in the calibrated model.
func TestExamplesAddUp(t *testing.T) {
	files, err := filepath.Glob("../../examples/*.bir.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for n, f := range files {
		for _, mach := range []string{"trn1", "trn2", "trn3"} {
			for _, loops := range []components.Loops{components.Once, components.Trips} {
				src, err := format.Open(ctx, f, nil)
				if err != nil {
					t.Fatal(err)
				}
				m, err := birjson.Importer.Module(ctx, src, format.Options{Jobs: 1})
				src.Close()
				if err != nil {
					t.Fatal(err)
				}
				w, rules := placed(t, m, load(t, mach), cost.Reference, loops)
				o := Options{Trips: loops == components.Trips, Block: -1}
				for run := range components.Run(2) {
					a := bind(t, w, rules, run)
					checkSums(t, n, w, rules, a, o, w.Latency(run))
					checkReleases(t, n, w, rules, a)
				}
				w.Config.Model, w.Config.Why = cost.Calibrated, true
				if err := cost.Fill(ctx, w); err != nil {
					t.Fatal(err)
				}
				if err := calibrated.Run(ctx, w); err != nil {
					t.Fatal(err)
				}
				for run := range components.Run(2) {
					checkSums(t, n, w, place.RulesFor(w), bind(t, w, place.RulesFor(w), run), o, w.Latency(run))
				}
			}
		}
	}
}
