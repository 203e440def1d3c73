package cli

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"perfsim/ecs/golden"
)

// reports are the folders whose types commands print as JSON.
var reports = []string{"bench/accuracy", "bench/modelrun", "cmd/internal/cli", "cmd/internal/serve", "components", "systems"}

// notReports are files there with types that are read, not printed, or whose
// format is another program's.
var notReports = map[string]bool{
	"cmd/internal/serve/request.go": true, // docs/serve.md
	"cmd/internal/cli/selftrace.go": true, // Chrome's trace format
	"components/machine/grid":       true, // machine descriptions
}

const keysHeading = "## Keys of --json\n"

// docs/figures.md lists every key that commands print as JSON, with the
// comment of the field that holds it. `go test -run Figures -update` writes the
// list anew.
func TestFiguresPage(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/figures.md"
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(old), keysHeading)
	if !ok {
		t.Fatalf("%s has no %q", page, keysHeading)
	}
	golden.Check(t, page, []byte(head+keysHeading+keyTable(t)))
}

// keyTable makes the list of keys. A key has a row for each of its
// definitions; a field without a comment has that of the others of its name.
func keyTable(t *testing.T) string {
	type row struct{ key, text string }
	types := map[row][]string{}
	bare := map[string][]string{} // types whose field of this key has no comment
	for f := range jsonFields(t) {
		if f.text == "" {
			bare[f.key] = append(bare[f.key], f.owner)
			continue
		}
		r := row{f.key, f.text}
		types[r] = append(types[r], f.owner)
	}
	defined := map[string][]row{}
	for r := range types {
		defined[r.key] = append(defined[r.key], r)
	}
	for k, owners := range bare {
		if len(defined[k]) != 1 {
			t.Errorf("%q of %s has %d definitions to choose from: its field needs a comment", k, strings.Join(owners, ", "), len(defined[k]))
			continue
		}
		types[defined[k][0]] = append(types[defined[k][0]], owners...)
	}
	var b strings.Builder
	b.WriteString("\nEvery key that a command prints, from the comments of the fields that hold it\n(`go test ./cmd/internal/cli -run FiguresPage -update`). \"Weighted\" is by\n`executions`.\n\n")
	b.WriteString("| key | unit | definition | in |\n|---|---|---|---|\n")
	for _, r := range slices.SortedFunc(maps.Keys(types), func(a, b row) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.text, b.text)) }) {
		in := types[r]
		slices.Sort(in)
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.key, keyUnit(r.key), strings.ReplaceAll(r.text, "|", `\|`), strings.Join(slices.Compact(in), ", "))
	}
	return b.String()
}

// keyUnit is what the last part of a key says of its unit.
func keyUnit(key string) string {
	for _, u := range [][2]string{{"_per_s", "1/s"}, {"_ns", "ns"}, {"bytes", "bytes"}, {"seconds", "s"}, {"percent", "%"}, {"cycles", "cycles"}, {"_mhz", "MHz"}, {"flops", "FLOP"}, {"share", "1"}} {
		if strings.HasSuffix(key, u[0]) {
			return u[1]
		}
	}
	return ""
}

// jsonField is a field of a struct with a key of JSON.
type jsonField struct {
	key   string
	owner string // package.Type, or the package of a type without a name
	text  string // its comment, "" without one
}

// jsonFields yields the fields of the reports, in the order of the source.
func jsonFields(t *testing.T) func(yield func(jsonField) bool) {
	return func(yield func(jsonField) bool) {
		const root = "../../../"
		for _, dir := range reports {
			err := fs.WalkDir(os.DirFS(root+dir), ".", func(path string, d fs.DirEntry, err error) error {
				name := filepath.ToSlash(filepath.Join(dir, path))
				if err != nil {
					return err
				}
				if d.IsDir() && notReports[name] {
					return fs.SkipDir
				}
				if d.IsDir() || notReports[name] || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
					return nil
				}
				file, err := parser.ParseFile(token.NewFileSet(), root+name, nil, parser.ParseComments)
				if err != nil {
					return err
				}
				fieldsOf(file, yield)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func fieldsOf(file *ast.File, yield func(jsonField) bool) {
	owner := file.Name.Name
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			owner = file.Name.Name
		case *ast.TypeSpec:
			owner = file.Name.Name + "." + n.Name.Name
		case *ast.StructType:
			keyOf := map[string]string{} // by name of the field
			for _, f := range n.Fields.List {
				if f.Tag == nil || len(f.Names) == 0 {
					continue
				}
				tag, _ := strconv.Unquote(f.Tag.Value) // the parser has seen it
				if key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); key != "" && key != "-" {
					keyOf[f.Names[0].Name] = key
				}
			}
			docs := "" // the last comment above a field: it may speak of several
			for _, f := range n.Fields.List {
				text := sentence(f.Doc, f.Comment)
				if f.Doc != nil {
					docs = text
				}
				if len(f.Names) == 0 || keyOf[f.Names[0].Name] == "" {
					continue
				}
				if text == "" && slices.Contains(word.FindAllString(docs, -1), f.Names[0].Name) {
					text = docs
				}
				yield(jsonField{keyOf[f.Names[0].Name], owner, word.ReplaceAllStringFunc(text, func(w string) string {
					if k := keyOf[w]; k != "" {
						return "`" + k + "`"
					}
					return w
				})})
			}
		}
		return true
	})
}

var word = regexp.MustCompile(`\w+`)

// sentence is the comment of a field on one line.
func sentence(doc, trailing *ast.CommentGroup) string {
	if doc == nil {
		doc = trailing
	}
	return strings.TrimSuffix(strings.Join(strings.Fields(doc.Text()), " "), ".")
}

// docs/figures.md has every key that commands print on the examples and on the
// trace of one of them: none is made outside the types that it lists.
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
