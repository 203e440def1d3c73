package summary_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/traces/catapult"
	"perfsim/systems/cost"
	"perfsim/systems/internal/randmod"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

// placed places m.
func placed(t *testing.T, m *components.Module, mach *machine.Machine, model components.Model) *components.World {
	t.Helper()
	w := &components.World{Module: m, Machine: mach, Events: components.NewEvents(), Config: components.Config{Model: model, Jobs: 1}}
	if err := cost.Fill(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	if err := place.Run(context.Background(), w); err != nil {
		t.Fatal(err)
	}
	return w
}

// A trace of the documented rules read back and placed by its durations and
// edges starts every event where it was: with collectives that others are
// ordered behind, with barriers and with banks. Full queues are not in a trace
// and are left out.
func TestOwnTraceReplays(t *testing.T) {
	for _, name := range []string{"trn1", "trn2", "trn3"} {
		mach, err := machine.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		for q := range mach.Reference.Queues {
			mach.Reference.Queues[q].Depth = 0
		}
		for n := range uint64(200) {
			m := randmod.Module(rand.New(rand.NewPCG(5, n)), randmod.Options{Streams: 2})
			for q := range m.Queues.Len() {
				m.Queues.Depth.Set(q, 0)
			}
			w := placed(t, m, mach, cost.Reference)
			var text bytes.Buffer
			if err := catapult.Write(context.Background(), &text, w, 0, components.RunA, false, 1); err != nil {
				t.Fatal(err)
			}
			src, err := format.FromBytes("t.json", text.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			back, err := catapult.Importer.Module(context.Background(), src, format.Options{Jobs: 1})
			if err != nil {
				t.Fatalf("%s, module %d: %v", name, n, err)
			}
			r := summary.CompareStarts(placed(t, back, mach, cost.Replay))
			if r.Same != r.Events {
				t.Errorf("%s, module %d: %d of %d events start where they did, the first that does not: %+v", name, n, r.Same, r.Events, r.Moved[0])
			}
		}
	}
}
