package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestWidthOfHelp holds the help of every command to the width of a terminal.
func TestWidthOfHelp(t *testing.T) {
	t.Parallel()
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		path := strings.Fields(c.CommandPath())[1:]
		var out, fault bytes.Buffer
		if code := Main(append(path, "--help"), strings.NewReader(""), &out, &fault); code != 0 {
			t.Errorf("%s --help: exit %d, %s", c.CommandPath(), code, fault.String())
		}
		checkWidth(t, c.CommandPath()+" --help", out.String())
		for _, sub := range c.Commands() {
			if sub.Name() != "completion" { // whose text is the library's
				visit(sub)
			}
		}
	}
	visit(newRoot(nil))
}

// TestWidthOfText holds the text of the commands to the width of a terminal, on
// the examples and on what they leave.
func TestWidthOfText(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(args ...string) {
		t.Helper()
		var out, fault bytes.Buffer
		if code := Main(args, strings.NewReader(""), &out, &fault); code != 0 {
			t.Errorf("perfsim %s: exit %d, %s", strings.Join(args, " "), code, fault.String())
		}
		// Paths are as long as they are.
		text := strings.ReplaceAll(out.String()+fault.String(), dir+string(filepath.Separator), "")
		checkWidth(t, "perfsim "+strings.Join(args, " "), strings.ReplaceAll(text, examples+string(filepath.Separator), ""))
	}
	files, err := filepath.Glob(filepath.Join(examples, "*.bir.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no examples: ", err)
	}
	for _, f := range files {
		for _, c := range [][]string{
			{"run"}, {"run", "--timings"}, {"explain"}, {"explain", "--path"}, {"explain", "--engine", "PE"}, {"explain", "--antideps"},
			{"explain", "--by", "op"}, {"explain", "--by", "source"}, {"explain", "--by", "opcode"}, {"explain", "--by", "engine"},
			{"memory"}, {"query"}, {"query", "--by", "engine"}, {"whatif", "--elasticity"},
		} {
			run(append(c, f)...)
		}
		run("whatif", f, "pe.clock=0.5x..2x", "dma.rate=1x,2x")
	}
	one, two := files[0], files[1]
	run(append([]string{"run", "-o", at("out")}, files...)...)
	run("run", "-v", "-o", at("one"), "--device-profile", at("d.csv"), one)
	run("whatif", one, "reference.cycle_accurate=false", "reference.fixed_cycles=1000", "memory.psum_banks=4", "buffers=2,4")
	run("whatif", "--list")
	run("query", "--fields")
	run("machine", "list")
	run("machine", "show", "--assumptions", "trn2")
	run("machine", "show", "--assumptions", "grayskull")
	run("passes")
	run("diff", one, two)
	run("rank", one, two)
	run("metrics", at("one/global_metric_store.json"))
	run("pack", "-v", at("one"))
	run("unpack", "--list", at("one/file.perf-sim"))
	run("neff", "create", "-o", at("a.neff"), at("one"))
	run("neff", "info", at("a.neff"))
	run("neff", "add", "-o", at("b.neff"), at("a.neff"), at("one/file.perf-sim"))
	run("export", one, at("tables/"))
	run("export", one, at("x.pftrace"))
	run("convert", one, at("a.psim"))
	run("profile", at("d.csv"))
	run("profile", "--by", "zone,core", "--map", at("d.csv"))
	run("profile", "--compare", at("d.csv"), at("d.csv"))
	run("bench", "-q", "-m", "bert", "-c", "tiny", "--epochs", "--dump_intermediate", "embeddings.gather.4", "--results", at("results"))
	run("bench", "-q", "-m", "bert", "-c", "tiny", "--sweep", "machine=grayskull,trn2")
}

// checkWidth reports the lines that no terminal of 80 columns holds; a single
// word that is longer cannot be broken.
func checkWidth(t *testing.T, what, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line) > textWidth && len(strings.Fields(line)) > 1 {
			t.Errorf("%s: %d columns: %s", what, utf8.RuneCountInString(line), line)
		}
	}
}
