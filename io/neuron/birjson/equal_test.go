package birjson

import (
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// moduleDiff says where two modules differ, "" where they are equal. Symbols
// are compared by what they spell.
func moduleDiff(a, b *components.Module) string {
	if a.Name != b.Name || a.Arch != b.Arch || a.Format != b.Format {
		return fmt.Sprintf("name, architecture, format: %s %s %s, %s %s %s", a.Name, a.Arch, a.Format, b.Name, b.Arch, b.Format)
	}
	if !slices.Equal(a.Opcodes, b.Opcodes) {
		return fmt.Sprintf("opcodes %v, %v", a.Opcodes, b.Opcodes)
	}
	if !slices.Equal(a.Attributes, b.Attributes) {
		return fmt.Sprintf("attributes %v, %v", a.Attributes, b.Attributes)
	}
	if a.Edges.Declared != b.Edges.Declared {
		return fmt.Sprintf("declared edges %v, %v", a.Edges.Declared, b.Edges.Declared)
	}
	ca, cb := a.Columns(), b.Columns()
	for i := range ca {
		x, y := ca[i], cb[i]
		if x.Name() == "symbols.arena" || x.Name() == "symbols.ends" {
			continue
		}
		if x.Len() != y.Len() {
			return fmt.Sprintf("column %s: %d rows, %d", x.Name(), x.Len(), y.Len())
		}
		if sx, ok := x.(*ecs.Column[ecs.Symbol]); ok {
			sy := y.(*ecs.Column[ecs.Symbol])
			for r := range sx.Len() {
				if p, q := a.Symbols.String(sx.At(r)), b.Symbols.String(sy.At(r)); p != q {
					return fmt.Sprintf("column %s, row %d: %q, %q", x.Name(), r, p, q)
				}
			}
			continue
		}
		if p, q := x.Raw(), y.Raw(); string(p) != string(q) {
			at := 0
			for p[at] == q[at] {
				at++
			}
			return fmt.Sprintf("column %s differs in row %d: % x, % x", x.Name(), at/x.ElemSize(), p[at/x.ElemSize()*x.ElemSize():][:x.ElemSize()],
				q[at/x.ElemSize()*x.ElemSize():][:x.ElemSize()])
		}
	}
	return ""
}
