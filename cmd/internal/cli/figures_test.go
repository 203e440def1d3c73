package cli

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// docs/figures.md defines every key that the commands print as JSON on the
// examples and on the trace of one of them.
func TestFiguresAreDefined(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/figures.md")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile("`([A-Za-z0-9_]+)`").FindAllSubmatch(page, -1) {
		defined[string(m[1])] = true
	}
	inputs, err := filepath.Glob("../../../examples/*.bir.json")
	if err != nil || len(inputs) == 0 {
		t.Fatal("no examples", err)
	}
	out := filepath.Join(t.TempDir(), "out")
	perfsim(t, "run", "-q", "-o", out, example(t, "loop.bir.json"))
	traces, err := filepath.Glob(filepath.Join(out, "perf_sim_at_end_trace.*"))
	if err != nil || len(traces) != 1 {
		t.Fatal("no trace", err)
	}
	used := map[string]string{}
	for _, input := range append(inputs, traces...) {
		for _, args := range [][]string{
			{"run"}, {"run", "--loops", "trips"}, {"explain"}, {"explain", "--loops", "trips"}, {"explain", "--by", "op"}, {"memory"},
			{"whatif", input, "drop=anti"}, {"diff", input, input}, {"diff", "--model-b", "calibrated", input, input},
			{"query"}, {"query", "--edges"}, {"query", "--by", "engine"}, {"query", "--count"},
		} {
			if input == traces[0] && args[len(args)-1] == input && args[1] == "--model-b" {
				continue // a trace has no operands for a model
			}
			line := append([]string{args[0], "--json"}, args[1:]...)
			if !slices.Contains(line, input) {
				line = append(line, input)
			}
			var v any
			decode(t, perfsim(t, line...), &v)
			keys(v, func(k string) { used[k] = args[0] })
		}
	}
	for _, k := range slices.Sorted(maps.Keys(used)) {
		if !defined[k] {
			t.Errorf("docs/figures.md has no %q, which %s prints", k, used[k])
		}
	}
	if len(used) < 100 {
		t.Errorf("only %d keys", len(used))
	}
}

// keys calls f with every key of a JSON value.
func keys(v any, f func(string)) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			f(k)
			keys(x, f)
		}
	case []any:
		for _, x := range v {
			keys(x, f)
		}
	}
}
