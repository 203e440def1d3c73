package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// noFigures are the keys at the top of `run --json` that a row of a sweep does
// not have under the same name: the name of the input, what is a list or the
// account of a lowering (--files writes them), and the time perfsim took.
var noFigures = []string{"input", "blocks", "engines", "estimates", "notes", "artifacts", "lowering", "replay", "measured_active", "scheduled", "timings",
	"read_seconds", "seconds", "instructions_per_second"}

// flatten lists the values of an object under the names of a sweep's columns.
func flatten(prefix string, v map[string]any, into map[string]any) {
	for k, x := range v {
		if m, ok := x.(map[string]any); ok {
			flatten(prefix+k+"_", m, into)
		} else if x != nil {
			into[prefix+k] = x
		}
	}
}

// Every headline figure of `run --json` is a column with the same name and
// value, for every kind of input, machine and model.
func TestSweepFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, script := range []string{"calibrate", "graph", "kernel"} {
		fixtures(t, script, filepath.Join(dir, script))
	}
	trace := filepath.Join(dir, "out")
	perfsim(t, "run", "-o", trace, example(t, "attention.bir.json"))
	seen := map[string]bool{}
	for k, args := range [][]string{
		{example(t, "attention.bir.json")}, {example(t, "attention.bir.json"), "--machine", "trn1", "--rebuild-deps"},
		{example(t, "collective.bir.json")}, {example(t, "loop.bir.json"), "--loops", "trips"}, {example(t, "tiled_matmul.bir.json"), "--machine", "trn3"},
		{filepath.Join(dir, "graph", "layer.hlo")}, {filepath.Join(dir, "graph", "layer.hlo"), "--machine", "trn1", "--buffers", "3"},
		{filepath.Join(dir, "calibrate", "a.json")}, {filepath.Join(dir, "calibrate", "a.json"), "--model", "reference"},
		{filepath.Join(trace, "perf_sim.attention.sg0000.Block1.json")},
		{filepath.Join(dir, "kernel", "copy.py:copy"), "--arg", "f32[1024,512]"},
	} {
		sweep := []string{"sweep", "-q", "--input", args[0], "-o", filepath.Join(dir, "r.jsonl"), "--whatif", "latency.DVE=2x"}
		var options []string
		for n := 1; n < len(args); n++ {
			switch name := strings.TrimPrefix(args[n], "--"); name {
			case "machine", "model":
				sweep = append(sweep, args[n], args[n+1])
				n++
			case "rebuild-deps":
				options = append(options, name)
			default:
				options = append(options, name+"="+args[n+1])
				n++
			}
		}
		if options != nil {
			sweep = append(sweep, "--option", strings.Join(options, " "))
		}
		var run, row map[string]any
		if err := json.Unmarshal([]byte(perfsim(t, append([]string{"run", "-q", "--json"}, args...)...)), &run); err != nil {
			t.Fatal(err)
		}
		perfsim(t, sweep...)
		text, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := bytes.Cut(text, []byte{'\n'})
		if err := json.Unmarshal(first, &row); err != nil {
			t.Fatal(err)
		}
		if row["error"] != nil || row["input"] != args[0] {
			t.Fatalf("%v: error %v of input %v", args, row["error"], row["input"])
		}
		want := map[string]any{}
		for _, key := range noFigures {
			delete(run, key)
		}
		flatten("", run, want)
		for key := range want {
			if key == "kernel_source" || key == "memory" || key == "work_absent" || key == "work_predicted_ns" || strings.HasPrefix(key, "work_measured_") ||
				strings.HasPrefix(key, "work_profiler_") || strings.HasPrefix(key, "work_peaks_") {
				delete(want, key) // report.json has them
			}
		}
		for key, v := range want {
			seen[key] = true
			if row[key] != v {
				t.Errorf("case %d, %v: %s is %v, run has %v", k, args, key, row[key], v)
			}
		}
		for key, v := range row {
			if v != nil && seen[key] && want[key] == nil {
				t.Errorf("case %d, %v: %s is %v, run has none", k, args, key, v)
			}
		}
	}
	for _, key := range []string{"latency_ns", "latency_no_antideps_ns", "antidep_cost_ns", "before_allocation_ns", "measured_ns", "recorded_ns", "error_percent",
		"work_predicted_mfu", "kernel_spill_bytes", "edges_flow", "edges_honoured_anti", "edges_rebuilt_flow", "machine"} {
		if !seen[key] {
			t.Errorf("no input has %s", key)
		}
	}
}

// The table has the same bytes on any number of cores and in any format of the
// command line.
func TestSweepJobs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := []string{"sweep", "-q", "--input", example(t, "*.bir.json"), "--machine", "trn1", "--machine", "trn2",
		"--whatif", "pe.clock=0.5x..2x", "--whatif", "dma.rate=1x,2x latency.DVE=-10%,+10%", "--whatif", "buffers=2", "--whatif", "drop=anti,output", "--whatif", "rule.banks=off"}
	for _, ending := range []string{".csv", ".parquet", ".jsonl"} {
		var want []byte
		for _, jobs := range []string{"1", "2", "7"} {
			path := filepath.Join(dir, "j"+jobs+ending)
			perfsim(t, append(slices.Clone(args), "-j", jobs, "-o", path)...)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !bytes.Equal(want, got) {
				t.Errorf("%s with -j %s differs from -j 1", ending, jobs)
			}
		}
	}
}
