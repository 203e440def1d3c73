package tidy

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// object is a package-level name.
type object struct{ pkg, name string }

// kept are exported names that no other package needs, with the reason.
var kept = map[object]string{
	{"perfsim/bench/record", "Number"}:            "kind of a documented field",
	{"perfsim/bench/record", "String"}:            "kind of a documented field",
	{"perfsim/ecs/proptest", "SeedVariable"}:      "interface to CI",
	{"perfsim/io/fault", "Variable"}:              "interface to the campaign",
	{"perfsim/io/neuron/metricstore", "NumTypes"}: "size of a documented enumeration",
	{"perfsim/io/neuron/metricstore", "Uint32"}:   "constructor of a documented value",
	{"perfsim/io/neuron/metricstore", "Int64"}:    "constructor of a documented value",
	{"perfsim/io/neuron/neff", "New"}:             "constructor, used by tests",
	{"perfsim/io/neuron/nki", "Python"}:           "field type of options",
	{"perfsim/io/neuron/profile", "Sync"}:         "part of an operand",
	{"perfsim/io/psim", "Read"}:                   "reader for Go callers",
	{"perfsim/io/xla/hlo", "Error"}:               "error type for Go callers",
	{"perfsim/io/xla/stablehlo", "Error"}:         "error type for Go callers",
}

// TestNoUnusedExports finds names that are exported and that no other package
// needs: none names them, and no declaration that another package names
// mentions them.
func TestNoUnusedExports(t *testing.T) {
	declared := map[object]token.Position{}
	mentions := map[object][]object{} // by a declaration, of its own package
	var pending []object              // named from outside
	eachFile(t, func(path string, f *ast.File, fset *token.FileSet) {
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		pkg := "perfsim/" + filepath.ToSlash(dir)
		imports := map[string]string{}
		for _, imp := range f.Imports {
			p := strings.Trim(imp.Path.Value, `"`)
			name := p[strings.LastIndex(p, "/")+1:]
			if imp.Name != nil {
				name = imp.Name.Name
			}
			if strings.HasPrefix(p, "perfsim/") && (p != pkg || strings.HasSuffix(f.Name.Name, "_test")) {
				imports[name] = p
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
					pending = append(pending, object{imports[x.Name], s.Sel.Name})
				}
			}
			return true
		})
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			for _, x := range declarations(d) {
				o := object{pkg, x.owner}
				if x.declares && ast.IsExported(x.owner) {
					declared[o] = fset.Position(x.node.Pos())
				}
				for _, name := range exportedIn(x.node) {
					mentions[o] = append(mentions[o], object{pkg, name})
				}
			}
		}
	})
	used := map[object]bool{}
	for len(pending) > 0 {
		o := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if !used[o] {
			used[o] = true
			pending = append(pending, mentions[o]...)
		}
	}
	var unused []string
	for o, at := range declared {
		if !used[o] && kept[o] == "" && !strings.HasPrefix(o.pkg, "perfsim/cmd/perfsim") {
			unused = append(unused, at.String()+": "+o.pkg+"."+o.name+" is exported and no other package needs it")
		}
	}
	slices.Sort(unused)
	for _, line := range unused {
		t.Error(line)
	}
}

// declaration is a part of a file that belongs to a package-level name.
type declaration struct {
	owner    string
	declares bool // it is the declaration of owner, not a method of it
	node     ast.Node
}

func declarations(d ast.Decl) (out []declaration) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []declaration{{d.Name.Name, true, d.Type}}
		}
		if name := receiver(d.Recv.List[0].Type); ast.IsExported(d.Name.Name) {
			return []declaration{{name, false, d.Type}}
		}
	case *ast.GenDecl:
		var typed ast.Expr // of a group of constants
		var group []declaration
		if d.Tok == token.CONST && len(d.Specs) > 1 {
			// One that is needed keeps the group: a documented layout is listed whole.
			for _, s := range d.Specs {
				for _, n := range s.(*ast.ValueSpec).Names {
					group = append(group, declaration{n.Name, false, d})
				}
			}
		}
		out = append(out, group...)
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				out = append(out, declaration{s.Name.Name, true, s})
			case *ast.ValueSpec:
				if s.Type != nil {
					typed = s.Type
				}
				for _, n := range s.Names {
					out = append(out, declaration{n.Name, true, s})
					// The values of a type that is needed are.
					if id, ok := typed.(*ast.Ident); ok && d.Tok == token.CONST {
						out = append(out, declaration{id.Name, false, n})
					}
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// exportedIn returns the exported identifiers below a node that may be names of
// its package.
func exportedIn(n ast.Node) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			return false
		case *ast.Ident:
			if x.IsExported() {
				names = append(names, x.Name)
			}
		}
		return true
	})
	return names
}
