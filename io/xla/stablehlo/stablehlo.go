// Package stablehlo reads StableHLO modules in MLIR text, in the pretty and
// in the generic form, into the graph that the HLO readers make. Operations
// of MHLO and CHLO with an HLO twin are read as well; the others become
// operators of unknown opcode, named, never dropped.
//
// What HLO has and StableHLO has not is made as XLA's own translation makes
// it: one tuple for the state of a loop, a computation for each region, a
// broadcast scalar for a splat constant, send-done and recv-done.
package stablehlo

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"sync"
	"unsafe"

	"perfsim/components/opgraph"
)

// bytecodeMagic begins MLIR bytecode.
const bytecodeMagic = "ML\xefR"

// errBytecode says that the input is MLIR bytecode and what to do.
var errBytecode = errors.New("this is MLIR bytecode, which is not read; make text of it first: " +
	"stablehlo-translate --deserialize FILE -o FILE.mlir (a portable artifact), or mlir-opt FILE -o FILE.mlir")

// firstOp matches how the first operation of an MLIR text begins: a module, or
// an operation of a dialect that has a symbol or is in the generic form.
var firstOp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:builtin\.)?module\s*(?:@|\{|attributes\b)|func\.func\s|[a-z_][a-z0-9_]*\.[a-z][a-z0-9_.]*\s+(?:public\s+|private\s+|nested\s+)?@|"[a-z_][a-z0-9_]*\.[a-z][a-z0-9_.]*"\s*\()`)
})

// Sniff reports whether head begins a StableHLO text or MLIR bytecode (which
// Read refuses with advice), or a module of another MLIR dialect (likewise).
func Sniff(head []byte) bool {
	if bytes.HasPrefix(head, []byte(bytecodeMagic)) {
		return true
	}
	c := scanner{s: string(head)}
	c.peek()
	rest := c.s[c.pos:]
	if firstOp().MatchString(rest) || strings.HasPrefix(rest, "#loc") {
		return true
	}
	// Aliases before the module.
	return rest != "" && (rest[0] == '#' || rest[0] == '!') && (strings.Contains(rest, "\nmodule") || strings.Contains(rest, "stablehlo."))
}

// Read reads every module of an MLIR text: modules one after another or in
// the sections that lines "// -----" make, or functions without a module
// around them. b becomes part of the graphs' strings and must not be written
// again. name is for messages. Errors are *Error, or wrap ErrBytecode.
// The graphs satisfy opgraph.Graph.Check.
func Read(name string, b []byte) ([]*opgraph.Graph, error) {
	if bytes.HasPrefix(b, []byte(bytecodeMagic)) {
		return nil, &bytecodeError{name}
	}
	text := unsafe.String(unsafe.SliceData(b), len(b))
	lines := lineStarts(text)
	var graphs []*opgraph.Graph
	p := &parser{names: newNames(len(text)), infos: map[string]*opInfo{}}
	for start := 0; start < len(text); {
		end, next := section(text, start)
		p.scanner = scanner{file: name, s: text[:end], pos: start, lines: lines}
		p.alias, p.typeAlias = map[string]string{}, map[string]string{}
		g, ok := p.section()
		if !ok {
			if err := p.foreignText(start); err != nil {
				return nil, err
			}
			return nil, p.err
		}
		graphs = append(graphs, g...)
		start = next
	}
	if len(graphs) == 0 {
		return nil, &Error{File: name, Line: 1, Col: 1, Msg: "no module: the text is empty"}
	}
	return graphs, nil
}

type bytecodeError struct{ file string }

func (e *bytecodeError) Error() string { return e.file + ": " + errBytecode.Error() }

// Unwrap makes errors.Is(err, ErrBytecode) true.
func (e *bytecodeError) Unwrap() error { return errBytecode }

// section returns where the section that starts at start ends and where the
// next one begins.
func section(text string, start int) (end, next int) {
	for at := start; ; {
		n := strings.Index(text[at:], "// -----")
		if n < 0 {
			return len(text), len(text)
		}
		at += n
		line := strings.LastIndexByte(text[:at], '\n') + 1
		if strings.TrimSpace(text[line:at]) == "" {
			if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
				return at, at + n + 1
			}
			return at, len(text)
		}
		at += len("// -----")
	}
}

// section reads the modules of one section.
func (p *parser) section() ([]*opgraph.Graph, bool) {
	var bare []*node
	bareGraph := opgraph.NewGraph("module")
	type module struct {
		n   *node
		g   *opgraph.Graph
		ops int
	}
	var modules []module
	for p.more() {
		p.into(bareGraph)
		isModule := p.has("module") || p.has("builtin.module") || p.has(`"builtin.module"`)
		if isModule {
			p.into(opgraph.NewGraph("module"))
		}
		n, ok := p.topOp()
		switch {
		case !ok:
			return nil, false
		case n == nil:
		case n.name == "builtin.module":
			modules = append(modules, module{n, p.g, p.count})
		default:
			bare = append(bare, n)
		}
	}
	if p.err != nil {
		return nil, false
	}
	var graphs []*opgraph.Graph
	for _, m := range modules {
		if len(m.n.regions) != 1 {
			return nil, p.failAt(m.n.pos, "module with %d regions", len(m.n.regions))
		}
		m.g.Reserve(m.ops + m.ops/8)
		if m.n.symbol != "" {
			m.g.Name = m.g.Str(m.n.symbol)
		}
		for key, to := range map[string]*int64{"mhlo.num_replicas": &m.g.Replicas, "mhlo.num_partitions": &m.g.Partitions} {
			if a, has := m.n.attr(key); has {
				if v, _, ok := p.intList(a.val); ok && len(v) == 1 && v[0] >= 0 {
					*to = v[0]
				}
			}
		}
		frontend, _ := m.n.attr("mhlo.frontend_attributes")
		if !p.graph(m.g, m.n.regions[0].ops, m.n.pos, frontend.val) {
			return nil, false
		}
		graphs = append(graphs, m.g)
	}
	for _, n := range bare {
		if n.name == "func.func" && len(n.regions) > 0 {
			if !p.graph(bareGraph, bare, bare[0].pos, "") {
				return nil, false
			}
			return append(graphs, bareGraph), true
		}
	}
	if len(bare) > 0 && len(modules) == 0 {
		return nil, p.failAt(bare[0].pos, "%s outside a function", bare[0].name)
	}
	return graphs, true
}

// graph makes and checks the graph of one module with a dictionary of frontend
// attributes.
func (p *parser) graph(g *opgraph.Graph, ops []*node, pos int, frontend string) bool {
	if !p.knownDialects(ops) {
		return false
	}
	p.into(g)
	e := &emitter{parser: p, g: g}
	if !e.module(ops, pos, frontend) {
		return false
	}
	if err := g.Check(); err != nil {
		return p.graphErr(err, pos)
	}
	g.DeriveTripCounts()
	return true
}

// graphErr turns an error of the graph into one with a place.
func (p *parser) graphErr(err error, pos int) bool {
	var ge *opgraph.GraphError
	if errors.As(err, &ge) {
		line := 0
		switch {
		case ge.Op != opgraph.NoOp:
			line = int(p.g.Ops.TextLine[ge.Op])
		case ge.Comp != opgraph.NoComp:
			line = int(p.g.Comps.TextLine[ge.Comp])
		}
		if line > 0 {
			pos = p.lines[line-1]
			for pos < len(p.s) && isSpace(p.s[pos]) {
				pos++
			}
		}
	}
	return p.failAt(pos, "%v", err)
}
