package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	docFence   = regexp.MustCompile("(?ms)^```(?:sh)?\n(.*?)^```")
	docRemark  = regexp.MustCompile(`\s+#\s.*$`)
	docOwnFile = regexp.MustCompile(`[\w-]+\.(json|gz|hlo|mlir|csv|psim|py|yaml|sock|neff|ntff|xml)\b|[A-Z]{4,}|…|~|\\$|\||nats:|--serve|--listen|[\w-]+/(\s|$)`)
	docOutput  = regexp.MustCompile(`(>|-o|--svg|--plot|--trace|--device-profile)\s+\S+`)
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
	if total < 20 {
		t.Errorf("only %d commands of the docs run", total)
	}
	testscript.Run(t, testscript.Params{Files: scripts, Setup: func(env *testscript.Env) error {
		wd, err := os.Getwd()
		if err != nil {
			return err
		}
		return os.Symlink(filepath.Join(wd, "../../../examples"), filepath.Join(env.WorkDir, "examples"))
	}})
}

// runsOnExamples reports whether a command needs no file but the examples and
// ends by itself.
func runsOnExamples(line string) bool {
	if !strings.HasPrefix(line, "perfsim ") || strings.HasPrefix(line, "perfsim bench table") /* ten seconds */ || strings.HasPrefix(line, "perfsim view ") && !strings.Contains(line, " -o ") {
		return false
	}
	rest := docOutput.ReplaceAllString(line, "")
	rest = regexp.MustCompile(`'?examples/[\w*.]+'?`).ReplaceAllString(rest, "")
	return !docOwnFile.MatchString(rest)
}
