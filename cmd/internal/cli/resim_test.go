package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The traces of all examples, both runs, are what a simulation written in
// Python from the rules alone gives.
func TestExamplesEqualPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	perfsim := func(args ...string) []byte {
		t.Helper()
		var out, fault bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &fault); code != 0 {
			t.Fatalf("perfsim %s: %s", strings.Join(args, " "), fault.String())
		}
		return out.Bytes()
	}
	dir := t.TempDir()
	examples, err := filepath.Glob("../../../examples/*.bir.json")
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	machines := []string{"trn2"}
	if os.Getenv("PERFSIM_LONG") != "" {
		machines = append(machines, "trn3")
	}
	for _, name := range machines {
		machine := filepath.Join(dir, name+".json")
		if err := os.WriteFile(machine, perfsim("machine", "show", "--json", name), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, example := range examples {
			module := strings.TrimSuffix(filepath.Base(example), ".bir.json")
			out := filepath.Join(dir, name, module)
			perfsim("run", "-q", "--machine", name, "-o", out, example)
			cmd := exec.Command(python, "testdata/resim.py", machine, example)
			for _, family := range []string{"perf_sim.", "perf_sim_no_antideps."} {
				cmd.Args = append(cmd.Args, filepath.Join(out, family+module+".sg0000.Block1.json"))
			}
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s on %s: %v\n%s", module, name, err, text)
			}
		}
	}
}
