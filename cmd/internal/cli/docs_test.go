package cli

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
)

var (
	docFence   = regexp.MustCompile("(?ms)^```(?:sh)?\n(.*?)^```")
	docRemark  = regexp.MustCompile(`\s+#\s.*$`)
	docOwnFile = regexp.MustCompile(`[\w-]+\.(json|gz|hlo|mlir|csv|psim|py|yaml|sock|neff|ntff|xml)\b|\b(INPUT|EXPRESSION|ASSIGNMENT)\b|…|\\$|nats:|--serve|--listen|--unix|[\w-]+/(\s|$)`)
	docOutput  = regexp.MustCompile(`(>|-o|--svg|--plot|--trace|--device-profile|--stats|--zones)\s+\S+`)
	docPipe    = regexp.MustCompile(`\s+\|\s+jq .*$`) // which a machine may lack
)

// TestCommandsOfTheDocs runs the commands of README.md and docs that need no
// file but the examples, as a person would in a fresh clone.
func TestCommandsOfTheDocs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var scripts []string
	total := 0
	for _, path := range append([]string{"../../../README.md"}, files...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var script strings.Builder
		n := 0
		for _, block := range docFence.FindAllStringSubmatch(string(text), -1) {
			for line := range strings.Lines(block[1]) {
				line = strings.TrimSpace(docRemark.ReplaceAllString(strings.TrimSpace(line), ""))
				line = docPipe.ReplaceAllString(line, "")
				if !runsOnExamples(line) {
					continue
				}
				fmt.Fprintf(&script, "exec sh -c '%s'\n", strings.ReplaceAll(line, "'", `'"'"'`))
				n++
			}
		}
		if n == 0 {
			continue
		}
		total += n
		name := filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".md")+".txt")
		quoted := strings.ReplaceAll(script.String(), `'"'"'`, `''`) // as testscript quotes
		if err := os.WriteFile(name, []byte(quoted), 0o600); err != nil {
			t.Fatal(err)
		}
		scripts = append(scripts, name)
	}
	if total < 44 {
		t.Errorf("only %d commands of the docs run", total)
	}
	inputs := t.TempDir()
	if err := docInputs(t, inputs); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{Files: scripts, Setup: func(env *testscript.Env) error {
		wd, err := os.Getwd()
		if err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(wd, "../../../examples"), filepath.Join(env.WorkDir, "examples")); err != nil {
			return err
		}
		return os.CopyFS(env.WorkDir, os.DirFS(inputs))
	}})
}

// docInputs makes the inputs that the documentation names, of the fixtures of
// the scripts and of what perfsim writes.
func docInputs(t *testing.T, dir string) error {
	for _, x := range []struct{ to, script, file string }{
		{"profile.json.gz", "calibrate", "a.json"}, {"profiles/a.json.gz", "calibrate", "a.json"}, {"profiles/b.json.gz", "calibrate", "b.json"},
		{"ops_perf_results.csv", "profile_ops", "ops.csv"}, {"profile_log_device.csv", "profile_ops", "log.csv"},
		{"mobilenet_v2.yaml", "netlist", "n.yaml"}, {"measured.json", "bench", "measured.json"}, {"measured/laws.csv", "accuracy", "laws.csv"},
	} {
		a, err := txtar.ParseFile(filepath.Join("testdata", "script", x.script+".txt"))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(a.Files, func(f txtar.File) bool { return f.Name == x.file })
		if i < 0 {
			return fmt.Errorf("%s.txt has no file %s", x.script, x.file)
		}
		to := filepath.Join(dir, x.to)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		data := a.Files[i].Data
		if strings.HasSuffix(to, ".gz") {
			data = gzipped(t, data)
		}
		if err := os.WriteFile(to, data, 0o600); err != nil {
			return err
		}
	}
	log := filepath.Join(dir, "generated", "profiler", ".logs")
	if err := os.MkdirAll(log, 0o700); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	one, two := example(t, "attention.bir.json"), example(t, "tiled_matmul.bir.json")
	for _, args := range [][]string{
		{"run", "-q", "--device-profile", filepath.Join(log, "profile_log_device.csv"), one}, {"run", "-q", "--device-profile", at("log.csv.gz"), one},
		{"run", "-q", "--device-profile", at("log.csv"), one}, {"run", "-q", "--device-profile", at("before.csv"), one}, {"run", "-q", "--device-profile", at("after.csv"), two},
		{"bench", "-q", "-m", "bert", "-c", "tiny", "-mb", "8", "--dump", "hlo", "-o", at("module.hlo")},
		{"bench", "-q", "-m", "bert", "-c", "tiny", "--dump", "hlo", "-o", at("model.hlo")},
		{"bench", "-q", "-m", "mobilenetv2", "-c", "224", "--task", "image_classification", "-mb", "64", "--loop_count", "8", "--save_output", "--results", at("results")},
	} {
		perfsim(t, args...)
	}
	text, err := os.ReadFile(at("model.hlo"))
	if err != nil {
		return err
	}
	return os.WriteFile(at("model.hlo.gz"), gzipped(t, text), 0o600)
}

// docNames are the inputs that docInputs makes.
var docNames = regexp.MustCompile(`(^|[\s'])(profile\.json\.gz|profiles/\*\.json\.gz|ops_perf_results\.csv|(generated/profiler/\.logs/)?profile_log_device\.csv|mobilenet_v2\.yaml|measured\.json|measured/|log\.csv(\.gz)?|before\.csv|after\.csv|module\.hlo|model\.hlo\.gz|mine\.yaml|device\.csv|tables/|results/perf_mobilenetv2_\*\.json)`)

// runsOnExamples reports whether a command needs no file but the examples and
// those that docInputs makes, and ends by itself.
func runsOnExamples(line string) bool {
	if !strings.HasPrefix(line, "perfsim ") || strings.HasPrefix(line, "perfsim bench table") /* ten seconds */ || strings.HasPrefix(line, "perfsim view ") && !strings.Contains(line, " -o ") {
		return false
	}
	rest := docNames.ReplaceAllString(docOutput.ReplaceAllString(line, ""), "$1")
	rest = regexp.MustCompile(`'?examples/[\w*.]+'?`).ReplaceAllString(rest, "")
	rest = regexp.MustCompile(`source~"[\w.:]+"`).ReplaceAllString(rest, "")
	return !docOwnFile.MatchString(rest)
}

func gzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
