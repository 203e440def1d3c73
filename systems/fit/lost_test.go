package fit

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/components/machine"
	"perfsim/io/format"
	nprofile "perfsim/io/neuron/profile"
	"perfsim/systems/calibrated"
)

// exported is a profile as its top-level sections, instructions apart.
type exported struct {
	sections     map[string]json.RawMessage
	instructions []json.RawMessage
}

func openExport(t *testing.T, path string) exported {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if b, err = io.ReadAll(z); err != nil {
		t.Fatal(err)
	}
	var e exported
	if err := json.Unmarshal(b, &e.sections); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(e.sections["instruction"], &e.instructions); err != nil {
		t.Fatal(err)
	}
	return e
}

// without returns the module of the profile without some instructions.
func (e exported) without(lost func(i int) bool) (*components.Module, error) {
	var kept []json.RawMessage
	for i, x := range e.instructions {
		if !lost(i) {
			kept = append(kept, x)
		}
	}
	list, err := json.Marshal(kept)
	if err != nil {
		return nil, err
	}
	s := map[string]json.RawMessage{}
	for k, v := range e.sections {
		s[k] = v
	}
	s["instruction"] = list
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	src, err := format.FromBytes("p", b)
	if err != nil {
		return nil, err
	}
	return nprofile.Importer.Module(context.Background(), src, format.Options{Jobs: 1})
}

func headlines(m *components.Module) string {
	var list []string
	for _, n := range m.Notes {
		if n.Headline() {
			list = append(list, n.Text)
		}
	}
	return strings.Join(list, "; ")
}

// Records that a profile lost: nothing is refused, and where the predicted
// kernel time changes by more than one per cent a headline says that records
// are missing. Every record is lost in turn in the long form, one of each kind
// else; then every second record of each kind.
func TestLostRecords(t *testing.T) {
	ctx := context.Background()
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(datadir.Path(t, "neuron-profiles"), "*.json.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%v, %d profiles", err, len(paths))
	}
	long := os.Getenv("PERFSIM_LONG") != ""
	if !long {
		paths = paths[len(paths)-2 : len(paths)-1]
	}
	for _, path := range paths {
		e := openExport(t, path)
		kinds := map[string][]int{}
		var order []string
		for i, x := range e.instructions {
			var in struct{ Label, Opcode string }
			if err := json.Unmarshal(x, &in); err != nil {
				t.Fatal(err)
			}
			k := in.Label + " " + in.Opcode
			if kinds[k] == nil {
				order = append(order, k)
			}
			kinds[k] = append(kinds[k], i)
		}
		time := func(what string, lost func(int) bool) (float64, string) {
			m, err := e.without(lost)
			if err != nil {
				t.Errorf("%s without %s: %v", filepath.Base(path), what, err)
				return math.NaN(), ""
			}
			s, err := Judge(ctx, m, mach, calibrated.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s.Predicted, headlines(m)
		}
		base, said := time("nothing", func(int) bool { return false })
		// One profile has a hole of its own: whoever reads it is told at once.
		if said != "" {
			t.Logf("%s as it is: %s", filepath.Base(path), said)
		}
		tried, moved, silent, worst := 0, 0, 0, 0.0
		check := func(what string, lost func(int) bool) {
			got, said := time(what, lost)
			change := 100 * (got/base - 1)
			tried++
			if math.Abs(change) > 1 {
				moved++
				if said == "" {
					silent++
				}
				if said == "" {
					t.Errorf("%s without %s: kernel time %+.2f %% without a word", filepath.Base(path), what, change)
				}
			}
			if math.Abs(change) > math.Abs(worst) {
				worst = change
			}
		}
		for _, k := range order {
			list := kinds[k]
			if strings.HasPrefix(k, "Sync") && long { // the engine with the hole
				for _, i := range list {
					check(fmt.Sprintf("%s at %d", k, i), func(n int) bool { return n == i })
				}
				continue
			}
			step := 8 // in the long form one record in eight: all of them take ten minutes
			if !long {
				list, step = list[len(list)/2:len(list)/2+1], 1
			}
			for n := 0; n < len(list); n += step {
				i := list[n]
				check(fmt.Sprintf("%s at %d", k, i), func(n int) bool { return n == i })
			}
		}
		t.Logf("%s: %d single records lost, kernel time moves by more than 1 %% in %d (worst %+.2f %%), %d of them without a word", filepath.Base(path), tried, moved, worst, silent)
		tried, moved, silent, worst = 0, 0, 0, 0
		for _, k := range order {
			if len(kinds[k]) < 2 {
				continue
			}
			check("every second "+k, func(n int) bool { at, ok := slices.BinarySearch(kinds[k], n); return ok && at%2 == 1 })
		}
		t.Logf("%s: %d kinds with every second record lost, moved %d (worst %+.2f %%), %d without a word", filepath.Base(path), tried, moved, worst, silent)
	}
}
