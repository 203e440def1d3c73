package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/io/fileset"
)

// sets are the commands that write: IN is the input, OUT the folder of the
// outputs.
var sets = []string{
	"run -q -j 1 -o OUT IN",
	"run -q -j 4 -o OUT IN",
	"run -q -j 1 --package-only -o OUT IN",
	"export -q -j 1 --to csv IN OUT",
	"export -q -j 1 IN OUT/x.pftrace",
	"convert -q -j 1 IN OUT/x.psim",
	"convert -q -j 1 IN OUT/x.bir.json.gz",
	"gen -q -j 1 -n 3000 OUT/g.psim",
	"view -q -o OUT/x.html IN",
	"pack -q -o OUT/file.perf-sim TRACES",
	"unpack --overwrite -C OUT PACKAGE",
	"unpack -C OUT/new PACKAGE",
	"dprint --files OUT DUMP",
	"run -q -j 1 -o OUT --device-profile OUT/log.csv IN",
	"run -q -j 1 -o OUT --dprint OUT/print.txt IN",
}

var kinds = []string{"enospc", "eio", "eintr", "eacces", "enoent", "kill"}

// TestCampaignFaults runs commands with every one of their file operations
// failing in every way, and killed before it, over a folder with the outputs
// of another run. Afterwards the folder holds the old set or the new one, and
// nothing else when the command has run again.
func TestCampaignFaults(t *testing.T) {
	if *long == 0 && os.Getenv("PERFSIM_LONG") == "" {
		t.Skip("PERFSIM_LONG=1 or -campaign runs commands with failing file operations")
	}
	dir := t.TempDir()
	exe := filepath.Join(dir, "perfsim")
	build := exec.Command("go", "build", "-tags", "faults", "-o", exe, "perfsim/cmd/perfsim")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(examples, "loop.bir.json")
	traces := filepath.Join(dir, "traces")
	perfsim(t, "run", "-q", "-o", traces, filepath.Join(examples, "tiled_matmul.bir.json"))
	dump := filepath.Join(dir, "dump.bin")
	os.WriteFile(dump, printBuffers(), 0o644)
	faults, kills := 0, 0
	every := 1
	if *long == 0 {
		every = 7 // the short form takes some of the operations
	}
	for _, set := range sets {
		out := filepath.Join(dir, "out")
		args := strings.Fields(strings.NewReplacer("IN", in, "OUT", out, "TRACES", traces, "PACKAGE", filepath.Join(traces, "file.perf-sim"), "DUMP", dump).Replace(set))
		run := func(fault string) (int, string) {
			cmd := exec.Command(exe, args...)
			cmd.Env = append(os.Environ(), "PERFSIM_FAULT="+fault)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			return cmd.ProcessState.ExitCode(), stderr.String()
		}
		fresh := func() {
			os.RemoveAll(out)
			if err := os.Mkdir(out, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		fresh()
		status, said := run("count")
		ops := strings.Count(said, "fault: ")
		if status != 0 || ops == 0 {
			t.Fatalf("%s: status %d, %d operations: %s", set, status, ops, said)
		}
		after := listing(t, out)
		// The old set has the same names with other bytes.
		old := func() string {
			fresh()
			if strings.Contains(set, "OUT/new") { // a folder that is not there
				return fmt.Sprint(listing(t, out))
			}
			for name := range after {
				path := filepath.Join(out, name)
				os.MkdirAll(filepath.Dir(path), 0o755)
				os.WriteFile(path, []byte("old"), 0o644)
			}
			return fmt.Sprint(listing(t, out))
		}
		for n := 1; n <= ops; n += every {
			for _, kind := range kinds {
				before := old()
				status, said := run(fmt.Sprintf("%s:%d", kind, n))
				if kind == "kill" {
					kills++
					if status != -1 {
						t.Errorf("%s, %s at operation %d: status %d", set, kind, n, status)
					}
				} else {
					faults++
					if got := fmt.Sprint(listing(t, out)); status == 1 && got != before || status == 0 && got != fmt.Sprint(after) || status > 1 || status < 0 {
						t.Errorf("%s, %s at operation %d: status %d (%s), the folder holds %s", set, kind, n, status, strings.TrimSpace(said), names(listing(t, out)))
					}
					if strings.Contains(said, ".perfsim-") || strings.Contains(said, ".tmp") {
						t.Errorf("%s, %s at operation %d: the error tells a hidden name: %s", set, kind, n, said)
					}
					continue
				}
				// The next run in the folder begins by completing or removing what
				// is left.
				if err := fileset.Recover(out); err != nil {
					t.Error(err)
				}
				if got := fmt.Sprint(visible(listing(t, out))); got != before && got != fmt.Sprint(after) {
					t.Errorf("%s, killed at operation %d: a mixed set: %s", set, n, names(listing(t, out)))
				}
				if status, said := run(""); status != 0 {
					t.Errorf("%s after a kill at operation %d: status %d: %s", set, n, status, said)
				}
				if got := listing(t, out); fmt.Sprint(got) != fmt.Sprint(after) {
					t.Errorf("%s after a kill at operation %d: the folder holds %s", set, n, names(got))
				}
			}
		}
		t.Logf("%-50s %d operations", set, ops)
	}
	result := fmt.Sprintf("%d faults and %d kills over %d commands", faults, kills, len(sets))
	t.Log(result)
	if !t.Failed() {
		record(t, "failing operations", result+": no mixed set, nothing left after the next run")
	}
}

// listing returns the contents of all files below dir by name.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			b, _ := os.ReadFile(path)
			name, _ := filepath.Rel(dir, path)
			out[name] = string(b)
		}
		return nil
	})
	return out
}

func visible(files map[string]string) map[string]string {
	out := map[string]string{}
	for name, b := range files {
		if !strings.HasPrefix(name, ".") {
			out[name] = b
		}
	}
	return out
}

func names(files map[string]string) string {
	var b strings.Builder
	for name, text := range files {
		kind := "new"
		if text == "old" {
			kind = "old"
		}
		fmt.Fprintf(&b, "%s (%s) ", name, kind)
	}
	return b.String()
}

// printBuffers is a dump of five empty print buffers of 204 bytes.
func printBuffers() []byte { return make([]byte, 5*204) }
