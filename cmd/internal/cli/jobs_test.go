package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// jobsCommands are command lines for every command with -j whose output does
// not tell times of this machine. EX is the folder of the examples, TMP one
// with inputs, OUT a file whose bytes are compared beside standard output.
var jobsCommands = []string{
	"run -o OUT EX/attention.bir.json",
	"explain --json TMP/m.psim",
	"memory --json TMP/m.psim",
	"whatif --json TMP/m.psim pe.clock=1x,2x dma.engines=8,16",
	"whatif --json --elasticity EX/loop.bir.json",
	"query --json TMP/m.psim critical",
	"diff --json TMP/calibrate/a.json TMP/calibrate/b.json",
	"convert TMP/m.psim OUT.bir.json",
	"gen -n 3000 --operands OUT.psim",
	"export TMP/m.psim OUT.pftrace",
	"view -o OUT.html TMP/m.psim",
	"rank --json TMP/m.psim EX/loop.bir.json",
	"calibrate -o OUT.yaml TMP/calibrate/a.json TMP/calibrate/b.json",
	"accuracy --json TMP/accuracy/laws.csv",
	"netlist --json --simulate TMP/netlist/n.yaml",
	"profile --json TMP/a.csv",
}

// TestJobsDoNotMatter compares the bytes of -j 1 and -j 4; with PERFSIM_LONG=1
// those of up to 16 goroutines.
func TestJobsDoNotMatter(t *testing.T) {
	t.Parallel()
	dir, examples := t.TempDir(), example(t, ".")
	for _, script := range []string{"accuracy", "calibrate", "netlist"} {
		fixtures(t, script, filepath.Join(dir, script))
	}
	perfsim(t, "gen", "-q", "-n", "4000", "--operands", "--blocks", "3", "--loops", "2", filepath.Join(dir, "m.psim"))
	perfsim(t, "profile", "gen", "--rows", "3000", "--width", "2", "--height", "2", filepath.Join(dir, "a.csv"))
	counts := []string{"1", "4"}
	if os.Getenv("PERFSIM_LONG") != "" {
		counts = []string{"1", "2", "3", "4", "5", "7", "8", "11", "16"}
	}
	for _, line := range jobsCommands {
		printed, files := make([]string, len(counts)), make([]map[string]string, len(counts))
		for k, jobs := range counts {
			out := filepath.Join(dir, "out")
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(out, 0o755); err != nil {
				t.Fatal(err)
			}
			args := strings.Fields(strings.NewReplacer("EX", examples, "TMP", dir, "OUT", filepath.Join(out, "x")).Replace(line))
			printed[k] = perfsim(t, append(args, "-j", jobs)...)
			files[k] = folder(t, out)
		}
		wrote := strings.Contains(line, "OUT")
		for k, jobs := range counts[1:] {
			printed, files := [2]string{printed[0], printed[k+1]}, [2]map[string]string{files[0], files[k+1]}
			if !wrote && (printed[0] == "" || printed[0] != printed[1]) {
				t.Errorf("perfsim %s prints other bytes with -j %s than with -j 1", line, jobs)
			}
			if wrote && len(files[0]) == 0 || len(files[0]) != len(files[1]) {
				t.Errorf("perfsim %s writes %d files with -j 1, %d with -j %s", line, len(files[0]), len(files[1]), jobs)
			}
			for name, text := range files[0] {
				if files[1][name] != text {
					t.Errorf("perfsim %s: %s has other bytes with -j %s than with -j 1", line, name, jobs)
				}
			}
		}
	}
}

// folder returns the files below dir by path.
func folder(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestJobsCommandsAreComplete holds the list to every command with -j.
func TestJobsCommandsAreComplete(t *testing.T) {
	elsewhere := map[string]string{"bench": "its records tell times of this machine", "bench table": "it runs all models, which takes minutes",
		"serve": "it answers until it is ended", "sweep": "its record tells times of this machine", "worker": "it takes the cases of a sweep"}
	var visit func(c *cobra.Command, name string)
	visit = func(c *cobra.Command, name string) {
		if c.Flags().Lookup("jobs") != nil && elsewhere[name] == "" {
			found := false
			for _, line := range jobsCommands {
				found = found || commandOf(line) == name
			}
			if !found {
				t.Errorf("jobsCommands lacks perfsim %s -j", name)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub, name+" "+sub.Name())
		}
	}
	for _, c := range commands() {
		visit(c.make(), c.name)
	}
}
