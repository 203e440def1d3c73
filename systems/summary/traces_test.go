package summary_test

import (
	"context"
	"os"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/formats"
	"perfsim/systems/cost"
	"perfsim/systems/place"
	"perfsim/systems/summary"
)

// Every trace of other machines that is read by recognition is placed by the
// replay model; where it has starts, every event starts where it was recorded.
func TestTracesReplay(t *testing.T) {
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	read, events := 0, 0
	for _, kind := range []string{"kineto", "chrome_variety", "chrome_negative", "chakra_et", "pytorch_et", "goal"} {
		dir := datadir.Path(t, kind)
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			src, err := format.Open(context.Background(), dir+"/"+f.Name(), nil)
			if err != nil {
				t.Fatal(err)
			}
			imp, err := formats.Find(src, "")
			if err != nil {
				// The groups of a communicator are no trace.
				if f.Name() != "astra-sim__symbolic_tensor_graph__GENERATED_llama8l_comm_group.json" {
					t.Error(err)
				}
				continue
			}
			m, err := imp.Module(context.Background(), src, format.Options{Jobs: 1})
			src.Close()
			if err != nil {
				t.Errorf("%s: %v", f.Name(), err)
				continue
			}
			if !cost.Foreign(m) || !cost.ReplaysByDefault(m) {
				t.Errorf("%s: read as %s, which does not replay by default", f.Name(), m.Format)
			}
			w := &components.World{Module: m, Machine: mach, Events: components.NewEvents()}
			w.Config = components.Config{Model: cost.Replay, Jobs: 2}
			if err := cost.Fill(context.Background(), w); err != nil {
				t.Errorf("%s: %v", f.Name(), err)
				continue
			}
			if err := place.Run(context.Background(), w); err != nil {
				t.Errorf("%s: %v", f.Name(), err)
				continue
			}
			r := summary.CompareStarts(w)
			if len(r.Moved) > 0 {
				t.Errorf("%s: %d of %d events moved, first %+v", f.Name(), len(r.Moved), r.Events, r.Moved[0])
			}
			read++
			events += r.Events
		}
	}
	if read < 20 {
		t.Errorf("%d files read", read)
	}
	t.Logf("%d files, %d recorded starts, all reproduced", read, events)
}

// A model that needs operands says that a trace has none.
func TestTraceRefusesReference(t *testing.T) {
	m := components.NewModule("m", "kineto")
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []components.Model{cost.Reference, cost.Calibrated} {
		w := &components.World{Module: m, Machine: mach, Events: components.NewEvents()}
		w.Config = components.Config{Model: model, Jobs: 1}
		if err := cost.Fill(context.Background(), w); err == nil {
			t.Errorf("%s took a trace", model)
		}
	}
}
