package components

import (
	"strings"

	"perfsim/ecs"
)

// scopeSeparator stands between the parts of a scope.
const scopeSeparator = '/'

// mostScope bounds the bytes of a scope that a reader puts together.
const mostScope = 512

// ScopeOf returns where in the user's program instruction i comes from: its
// scope, else its source line, else its operator, else 0.
func (m *Module) ScopeOf(i InstrID) ecs.Symbol {
	if s := m.Instr.Scope.Get(int(i)); s != 0 {
		return s
	}
	if s := m.Instr.Source.Get(int(i)); s != 0 {
		return s
	}
	return m.Instr.HLO.Get(int(i))
}

// OperatorOf returns the operator that instruction i comes from: the name of
// the HLO or framework operator, else the last part of its scope, else "".
func (m *Module) OperatorOf(i InstrID) string {
	if s := m.Instr.HLO.Get(int(i)); s != 0 {
		return m.Symbols.String(s)
	}
	_, last := SplitScope(m.Symbols.String(m.Instr.Scope.Get(int(i))))
	return last
}

// SplitScope takes a scope apart: the path of the layer and the operator
// behind it. A scope of one part is an operator without a layer. A separator
// in brackets belongs to its part.
func SplitScope(scope string) (layer, operator string) {
	depth := 0
	for k := len(scope) - 1; k >= 0; k-- {
		switch scope[k] {
		case ')', ']', '}':
			depth++
		case '(', '[', '{':
			depth--
		case scopeSeparator:
			if depth <= 0 {
				return scope[:k], scope[k+1:]
			}
		}
	}
	return "", scope
}

// CleanScope returns a path without what stands in square brackets: the
// attributes that JAX writes behind a primitive.
func CleanScope(path string) string {
	if !strings.ContainsRune(path, '[') {
		return path
	}
	var b strings.Builder
	depth := 0
	for k := range len(path) {
		switch c := path[k]; {
		case c == '[':
			depth++
		case c == ']' && depth > 0:
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// JoinScope makes a scope of its parts, outermost first. Of one that is too
// long the outer parts are left out.
func JoinScope(parts ...string) string {
	n := len(parts)
	for size := 0; n > 0; n-- {
		if size += len(parts[n-1]) + 1; size > mostScope {
			break
		}
	}
	if n == len(parts) && n > 0 { // the innermost part alone is too long
		return strings.ToValidUTF8(parts[n-1][:mostScope], "")
	}
	return strings.Join(parts[n:], string(scopeSeparator))
}
