package cli

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"perfsim/bench/self/gen"
	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/tracklayout"
)

// sharedData is the folder of real inputs; tests that need it skip without it.
const sharedData = "../../../../shared/data"

// No counter of a timeline is beyond what the machine has: for every example,
// generated modules and every real file that simulates. Kernels, which
// Python has to run, and files of more than 60 kB are for the long form only.
func TestCountersFitTheMachine(t *testing.T) {
	t.Parallel()
	long := os.Getenv("PERFSIM_LONG") != ""
	ctx := t.Context()
	examples, err := filepath.Glob("../../../examples/*.bir.json")
	if err != nil || len(examples) == 0 {
		t.Fatal("no examples", err)
	}
	for _, path := range examples {
		if ok, err := checkCounters(ctx, systems.Request{Reading: systems.Reading{Path: path}}); !ok || err != nil {
			t.Errorf("%s: simulated %t, %v", path, ok, err)
		}
	}
	modules := 4
	if long {
		modules = 200
	}
	for k := range modules {
		o := gen.Default(400)
		o.Seed, o.Operands, o.Blocks = uint64(k), k%2 == 0, 1+k%3
		if k%4 >= 2 {
			o.Loops, o.Nested, o.Body = 2, true, 8
		}
		m, err := gen.Module(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := checkCounters(ctx, systems.Request{Reading: systems.Reading{Module: m}}); !ok || err != nil {
			t.Errorf("generated module %d: simulated %t, %v", k, ok, err)
		}
	}
	if _, err := os.Stat(sharedData); err != nil {
		t.Log("the real files are not checked: ../shared/data is absent")
		return
	}
	simulated := 0
	err = filepath.WalkDir(sharedData, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err != nil || !long && (info.Size() > 60_000 || filepath.Ext(path) == ".py") {
			return err
		}
		ok, err := checkCounters(ctx, systems.Request{Reading: systems.Reading{Path: path}})
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if ok {
			simulated++
		}
		return ctx.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	if simulated < 10 {
		t.Errorf("only %d real files simulate", simulated)
	}
	t.Logf("%d real files simulate", simulated)
}

// checkCounters simulates and checks the counters of every process. It
// returns false where the input does not simulate.
func checkCounters(ctx context.Context, r systems.Request) (bool, error) {
	res, err := systems.Simulate(ctx, r)
	if err != nil {
		return false, nil
	}
	w := &res.World.World
	o := tracklayout.Options{Block: -1, RunB: w.NoRunB == "", Measured: w.Module.HasMeasurement(), Counters: true}
	tl, err := tracklayout.Make(ctx, w, o)
	if err != nil {
		return true, err
	}
	if len(tl.Series) == 0 {
		return true, fmt.Errorf("no counters")
	}
	return true, withinMachine(tl)
}

// withinMachine returns an error that names the first value of a timeline's counters
// that is beyond the machine's capacity: the bytes of SBUF and the banks of PSUM of
// a core, and in simulated processes the bytes a ns of its device memory.
func withinMachine(t *components.Timeline) error {
	if t.World.Machine == nil {
		return nil
	}
	mem := t.World.Machine.Memory
	const slip = 1e-3 // of rounding
	for _, s := range t.Series {
		most := math.Inf(1)
		switch {
		case s.Unit == "%":
			most = 100
		case s.Unit == "banks":
			most = float64(mem.PSUMBanks)
		case s.Unit == "bytes per partition" && mem.SBUFBytes > 0:
			most = float64(mem.SBUFBytes)
		case s.Unit == "B/ns" && mem.HBMRate > 0 && !t.Processes[s.Process].Measured:
			most = mem.HBMRate
		}
		for k, v := range s.Value {
			if v < 0 || v > most+slip {
				return fmt.Errorf("%s of %s is %v %s at %d ns; the machine has %v", s.Name, t.Processes[s.Process].Name, v, s.Unit, s.Time[k], most)
			}
		}
	}
	return nil
}
