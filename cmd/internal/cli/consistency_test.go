package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// One input has one answer: latency of both runs and busy time of every
// engine are the same for all commands that print them, for a file and its
// conversions, with and without -o, on any number of goroutines.
func TestCommandsAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inputs, err := filepath.Glob("../../../examples/*.bir.json")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no examples", err)
	}
	modules := 4
	if os.Getenv("PERFSIM_LONG") != "" {
		modules = 200
	}
	for k := range modules {
		path := filepath.Join(dir, fmt.Sprintf("m%d.psim", k))
		args := []string{"gen", "-n", "120", "--seed", fmt.Sprint(k), "--blocks", fmt.Sprint(1 + k%3), path}
		if k%2 == 1 {
			args = append(args, "--operands") // comes without dependency lists
		}
		if k%4 >= 2 {
			args = append(args, "--loops", "2", "--nested", "--body", "8")
		}
		perfsim(t, args...)
		inputs = append(inputs, path)
	}
	for k, input := range inputs {
		for _, loops := range []string{"once", "trips"} {
			ask := func(args ...string) answer {
				var a answer
				if err := json.Unmarshal([]byte(perfsim(t, append(args, "--loops", loops)...)), &a); err != nil {
					t.Fatal(args, err)
				}
				return a
			}
			want := ask("run", "--json", input)
			if want.A == 0 || want.B == nil || len(want.Engines) == 0 {
				t.Fatalf("%s: %+v", input, want)
			}
			same := func(got answer, what string) {
				t.Helper()
				if got.A != want.A || got.B == nil || *got.B != *want.B || got.Instructions != 0 && got.Instructions != want.Instructions {
					t.Errorf("%s, %s: %s has %d ns, run %d", input, loops, what, got.A, want.A)
				}
				if len(got.Engines) == 0 {
					return
				}
				busy := map[string]uint64{}
				for _, e := range got.Engines {
					busy[e.Name] = e.Busy
				}
				for _, e := range want.Engines {
					if busy[e.Name] != e.Busy {
						t.Errorf("%s, %s: %s has %s busy %d ns, run %d", input, loops, what, e.Name, busy[e.Name], e.Busy)
					}
				}
			}
			same(ask("run", "--json", "-j", "1", input), "run -j 1")
			same(ask("run", "--json", "-j", "4", input), "run -j 4")
			same(ask("run", "--json", "-o", filepath.Join(dir, fmt.Sprint("o", k, loops)), input), "run -o")
			same(ask("explain", "--json", input), "explain")
			var w struct{ Base answer }
			if err := json.Unmarshal([]byte(perfsim(t, "whatif", "--json", "--loops", loops, input, "pe.clock=2x")), &w); err != nil {
				t.Fatal(err)
			}
			same(w.Base, "whatif")
			for _, suffix := range []string{".psim", ".bir.json"} {
				other := filepath.Join(dir, fmt.Sprint("c", k, loops, suffix))
				perfsim(t, "convert", input, other)
				same(ask("run", "--json", other), "run of "+suffix)
				if suffix == ".bir.json" {
					toCBOR(t, other, other+".cbor")
					same(ask("run", "--json", other+".cbor"), "run of CBOR")
				}
			}
			agreeTables(t, input, loops, want)
		}
	}
}
