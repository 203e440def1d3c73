// Package tidy has tests about the source itself: layers, folders, names and
// habits that a review would otherwise have to look for.
package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// layers lists the folders whose packages may import those before them in
// the list, and their own.
var layers = []string{"ecs", "components", "io", "systems", "bench", "cmd"}

// topLevel is everything that may lie at the top of the repository.
var topLevel = []string{".ci", ".git", ".gitattributes", ".gitignore", "ARCHITECTURE.md", "BENCHMARKS.md", "CHANGELOG.md", "CONTRIBUTING.md", "Containerfile", ".goreleaser.yaml", "LICENSE", "README.md", "bench", "cmd",
	"components", "docs", "ecs", "examples", "go.mod", "go.sum", "io", "systems"}

// forbidden are package names that tell nothing or collide.
var forbidden = []string{"util", "utils", "common", "helpers", "types", "misc", "io"}

const root = "../../.."

func TestTopLevel(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && !slices.Contains(topLevel, e.Name()) && !ignored(e.Name()) {
			t.Errorf("folder %s is not one of the project's", e.Name())
		}
	}
	if files, err := filepath.Glob(root + "/io/*.go"); err != nil || len(files) > 0 {
		t.Errorf("io/ holds packages only, found %v", files)
	}
}

// ignored names what tools leave behind and .gitignore has.
func ignored(name string) bool { return name == "out" || name == "node_modules" }

func TestLayers(t *testing.T) {
	eachFile(t, func(path string, f *ast.File, _ *token.FileSet) {
		from := layerOf(path)
		for _, imp := range f.Imports {
			to, ok := strings.CutPrefix(strings.Trim(imp.Path.Value, `"`), "perfsim/")
			if !ok {
				continue
			}
			if a, b := slices.Index(layers, from), slices.Index(layers, strings.Split(to, "/")[0]); b > a || b < 0 {
				// Tests of a lower layer may use the generators and models of bench.
				if strings.HasSuffix(path, "_test.go") && (strings.HasPrefix(to, "bench/self/gen") || strings.HasPrefix(to, "bench/models")) {
					continue
				}
				t.Errorf("%s imports %s: imports go down only (%s)", path, to, strings.Join(layers, " <- "))
			}
		}
	})
}

func TestPackageNames(t *testing.T) {
	eachFile(t, func(path string, f *ast.File, _ *token.FileSet) {
		name := strings.TrimSuffix(f.Name.Name, "_test")
		if slices.Contains(forbidden, name) {
			t.Errorf("%s: package %s", path, name)
		}
		if dir := filepath.Base(filepath.Dir(path)); name != "main" && name != dir {
			t.Errorf("%s: package %s is not named after its folder", path, name)
		}
	})
}

// No registration by side effect and no hidden state: init functions are
// banned outside tests.
func TestNoInit(t *testing.T) {
	eachFile(t, func(path string, f *ast.File, fset *token.FileSet) {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init function", fset.Position(fn.Pos()))
			}
		}
	})
}

// maxLines bounds a file: what is longer has more than one purpose.
const maxLines = 900

func TestFileLength(t *testing.T) {
	eachFile(t, func(path string, f *ast.File, fset *token.FileSet) {
		if n := fset.Position(f.End()).Line; n > maxLines {
			t.Errorf("%s has %d lines, more than %d", path, n, maxLines)
		}
	})
}

// Comments cite pages of docs/, not documents that are not here.
func TestCitations(t *testing.T) {
	eachFile(t, func(path string, f *ast.File, fset *token.FileSet) {
		for _, g := range f.Comments {
			for _, c := range g.List {
				if strings.Contains(c.Text, "spec "+"§") || strings.Contains(c.Text, "spec"+"/") {
					t.Errorf("%s: %s", fset.Position(c.Pos()), c.Text)
				}
				for _, page := range docPage.FindAllString(c.Text, -1) {
					if _, err := os.Stat(filepath.Join(root, page)); err != nil {
						t.Errorf("%s: %s does not exist", fset.Position(c.Pos()), page)
					}
				}
			}
		}
	})
}

var docPage = regexp.MustCompile(`\bdocs/[a-z-]+\.md\b`)

// Leftovers of work in progress.
func TestNoMarkers(t *testing.T) {
	eachFile(t, func(path string, f *ast.File, fset *token.FileSet) {
		for _, g := range f.Comments {
			for _, c := range g.List {
				for _, m := range []string{"TO" + "DO", "FIX" + "ME", "X" + "XX"} {
					if strings.Contains(c.Text, m+":") || strings.Contains(c.Text, m+" ") {
						t.Errorf("%s: %s", fset.Position(c.Pos()), c.Text)
					}
				}
			}
		}
	})
}

func layerOf(path string) string {
	rel, _ := filepath.Rel(root, path)
	return strings.Split(filepath.ToSlash(rel), "/")[0]
}

// eachFile parses every Go file of the project.
func eachFile(t *testing.T, visit func(path string, f *ast.File, fset *token.FileSet)) {
	t.Helper()
	fset := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "testdata" || name == "node_modules" || (strings.HasPrefix(name, ".") && path != root) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		files++
		visit(path, f, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Fatalf("only %d files found", files)
	}
}
