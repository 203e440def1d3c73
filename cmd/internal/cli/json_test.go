package cli

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// jsonCommands are command lines for every command with --json, in an order in
// which each finds its inputs. EX is the folder of the examples, TMP a folder
// with the fixtures of the scripts in it, each below the script's name.
var jsonCommands = []string{
	"run --json --timings -o TMP/out EX/attention.bir.json",
	"run --json EX/collective.bir.json",
	"run --json TMP/graph/layer.hlo",
	"run --json --loops trips --policy 3 --rebuild-deps EX/loop.bir.json",
	"run --json EX/loop.bir.json EX/tiled_matmul.bir.json",
	"run --json TMP/out/perf_sim.attention.sg0000.Block1.json",
	"run --json TMP/calibrate/a.json",
	"run --json --arg f32[1024,512] TMP/kernel/copy.py:copy",
	"explain --json EX/attention.bir.json",
	"explain --json EX/collective.bir.json",
	"explain --json --antideps EX/tiled_matmul.bir.json",
	"explain --json TMP/calibrate/a.json",
	"whatif --json EX/attention.bir.json pe.clock=2x buffers=4",
	"whatif --json --elasticity EX/loop.bir.json",
	"whatif --json --list",
	"query --json EX/attention.bir.json critical",
	"query --json EX/attention.bir.json binding",
	"query --json --by opcode EX/attention.bir.json",
	"sweep -q --json --input EX/loop.bir.json --whatif pe.clock=2x -o TMP/sweep.csv",
	"query --json --fields",
	"diff --json TMP/calibrate/a.json TMP/calibrate/b.json",
	"convert --json EX/loop.bir.json TMP/loop.psim",
	"gen --json -n 50 TMP/gen.psim",
	"export --json EX/loop.bir.json TMP/loop.pftrace",
	"rank --json EX/loop.bir.json EX/tiled_matmul.bir.json",
	"calibrate --json TMP/calibrate/a.json TMP/calibrate/b.json",
	"calibrate --json TMP/out/perf_sim.attention.sg0000.Block1.json",
	"calibrate --json --ops TMP/accuracy/ops.csv",
	"accuracy --json TMP/accuracy/laws.csv",
	"machine list --json",
	"machine show --json trn1",
	"machine show --json trn2",
	"machine show --json trn3",
	"machine show --json wormhole_b0",
	"passes --json",
	"version --json",
	"metrics --json TMP/out/global_metric_store.json",
	"pack --json TMP/pack/traces",
	"unpack --json -C TMP/unpacked TMP/pack/traces/file.perf-sim",
	"memory --json EX/attention.bir.json",
	"neff create -o TMP/a.neff TMP/neff/dir",
	"neff add --json -o TMP/b.neff TMP/a.neff TMP/pack/traces/file.perf-sim",
	"neff info --json TMP/b.neff",
	"neff list --json TMP/b.neff",
	"neff extract --json -C TMP/members TMP/b.neff",
	"netlist --json --simulate TMP/netlist/n.yaml",
	"netlist --json TMP/netlist/bad.yaml",
	"profile gen --rows 300 --width 2 --height 2 TMP/a.csv",
	"profile --json TMP/a.csv",
	"profile --compare --json TMP/a.csv TMP/a.csv",
	"profile --json TMP/accuracy/ops.csv",
	"profile id --json read_dram_to_l1 ./kernel.cpp 23",
	"bench -q --json -m bert -c tiny --machine trn2",
	"bench -q -m bert -c tiny --machine grayskull --save_output --results TMP/results --id abcde",
	"bench compare --json TMP/results/*.json",
}

// TestJSONKeys holds the keys of all JSON output to snake_case.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	dir, examples := t.TempDir(), example(t, ".")
	for _, script := range []string{"accuracy", "calibrate", "graph", "kernel", "neff", "netlist", "pack"} {
		fixtures(t, script, filepath.Join(dir, script))
	}
	bad := map[string]string{}
	for _, line := range jsonCommands {
		args := strings.Fields(strings.NewReplacer("EX", examples, "TMP", dir).Replace(line))
		if last := args[len(args)-1]; strings.Contains(last, "*") {
			found, _ := filepath.Glob(last)
			args = append(args[:len(args)-1], found...)
		}
		out := perfsim(t, args...)
		if !slices.Contains(args, "--json") {
			continue
		}
		name := commandOf(line)
		d := json.NewDecoder(strings.NewReader(out))
		for n := 0; ; n++ {
			var v any
			if err := d.Decode(&v); errors.Is(err, io.EOF) && n > 0 {
				break
			} else if err != nil {
				t.Fatalf("%s: %v in %.200q", line, err, out)
			}
			walkKeys(name, v, func(path string) { bad[path] = line })
		}
	}
	for path, line := range bad {
		t.Errorf("%s is not snake_case (perfsim %s)", path, line)
	}
}

// TestJSONCommandsAreComplete holds the list to every command with --json.
func TestJSONCommandsAreComplete(t *testing.T) {
	elsewhere := map[string]string{"neff debug": "TestNEFFDebug: it takes a file that only that test makes"}
	var visit func(c *cobra.Command, name string)
	visit = func(c *cobra.Command, name string) {
		if x := c.Flags().Lookup("json"); x != nil && elsewhere[name] == "" {
			if !slices.ContainsFunc(jsonCommands, func(line string) bool {
				return commandOf(line) == name && strings.Contains(line, "--json")
			}) {
				t.Errorf("jsonCommands lacks perfsim %s --json", name)
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

// fixtures writes the files of a script of testdata/script into dir.
func fixtures(t *testing.T, script, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "script", script+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	marks := regexp.MustCompile(`(?m)^-- (\S+) --\n`).FindAllSubmatchIndex(text, -1)
	for k, m := range marks {
		end := len(text)
		if k+1 < len(marks) {
			end = marks[k+1][0]
		}
		path := filepath.Join(dir, string(text[m[2]:m[3]]))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text[m[1]:end], 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// commandOf returns the command of a line, with the subcommand.
func commandOf(line string) string {
	words := strings.Fields(line)
	name := words[0]
	for _, c := range commands() {
		if c.name != words[0] || len(words) < 2 {
			continue
		}
		if slices.ContainsFunc(c.make().Commands(), func(sub *cobra.Command) bool { return sub.Name() == words[1] }) {
			name += " " + words[1]
		}
	}
	return name
}

var snakeCase = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

// namedKeys are the objects whose keys are names of things rather than names
// of ours, by path.
var namedKeys = []struct{ path, reason string }{
	{"calibrate.cross_validation[].busy_error_percent", "names of engines"},
	{"machine show.calibrated.constants", "names of constants, as whatif takes them"},
	{"machine show.calibrated.ops", "engines and opcodes with their case"},
	{"machine show.reference.costs", "names of opcodes"},
	{"machine show.fidelity", "the vendor's names of fidelities"},
	{"machine show.formats", "the vendor's names of data formats"},
	{"machine show.accumulators", "the vendor's names of data formats"},
}

// walkKeys calls bad with the path of every key below v that is not
// snake_case.
func walkKeys(path string, v any, bad func(path string)) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			walkKeys(path+"[]", x, bad)
		}
	case map[string]any:
		named := false
		for _, x := range namedKeys {
			named = named || x.path == path
		}
		for key, x := range v {
			at := path + "." + key
			if named {
				at = path + ".NAME"
			} else if !snakeCase.MatchString(key) {
				bad(at)
			}
			walkKeys(at, x, bad)
		}
	}
}
