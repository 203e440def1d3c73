package stablehlo

import (
	"fmt"
	"slices"
	"strings"
)

// readDialects are the dialects whose operations become operators. An
// operation of them that has no HLO opcode is kept by name, as an operator of
// unknown opcode.
var readDialects = []string{"stablehlo", "mhlo", "chlo", "vhlo", "sdy"}

// frameDialects hold functions, modules and control flow: they say nothing about
// what a module computes.
var frameDialects = []string{"func", "builtin", "cf"}

// dialectCount counts operations by dialect, in order of first use.
type dialectCount struct {
	read    int
	foreign int
	names   []string // of foreign dialects
	first   string   // the first foreign operation
	pos     int
}

func (d *dialectCount) add(name string, pos int) {
	dialect, op, ok := strings.Cut(name, ".")
	switch {
	case !ok || op == "constant" || op == "return" || slices.Contains(frameDialects, dialect):
	case slices.Contains(readDialects, dialect):
		d.read++
	default:
		if d.foreign++; d.foreign == 1 {
			d.first, d.pos = name, pos
		}
		if !slices.Contains(d.names, dialect) {
			d.names = append(d.names, dialect)
		}
	}
}

// refused tells whether the module is of another dialect: more of its
// operations are foreign than are read. A few foreign operations among
// StableHLO are kept by name and estimated.
func (d *dialectCount) refused() bool { return d.foreign > d.read }

func (d *dialectCount) message() string {
	const most = 4
	list := strings.Join(d.names[:min(len(d.names), most)], ", ")
	if len(d.names) > most {
		list += ", …"
	}
	noun := "dialect"
	if len(d.names) > 1 {
		noun = "dialects"
	}
	return fmt.Sprintf("%s: this module is of the MLIR %s %s, which is not read; export it as StableHLO (stablehlo, mhlo and chlo are read)", clip(d.first), noun, list)
}

// knownDialects fails where the operations of a module, regions included, are
// mostly of dialects that are not read.
func (p *parser) knownDialects(ops []*node) bool {
	var d dialectCount
	d.nodes(ops)
	if d.refused() {
		return p.failAt(d.pos, "%s", d.message())
	}
	return true
}

func (d *dialectCount) nodes(ops []*node) {
	for _, n := range ops {
		d.add(n.name, n.pos)
		for _, r := range n.regions {
			d.nodes(r.ops)
		}
	}
}

// foreignText explains a text that did not parse: where most of its
// operations are of another dialect, that is the error, not the syntax.
func (p *parser) foreignText(start int) error {
	var d dialectCount
	c := scanner{file: p.file, s: p.s, pos: start, lines: p.lines}
	for at := start; at < len(p.s); {
		end := len(p.s)
		if n := strings.IndexByte(p.s[at:], '\n'); n >= 0 {
			end = at + n
		}
		line := p.s[at:end]
		i := len(line) - len(strings.TrimLeft(line, " \t\r"))
		if strings.HasPrefix(line[i:], "%") { // results
			if n := strings.Index(line, " = "); n >= 0 {
				i = n + len(" = ")
			}
		}
		i += len(line[i:]) - len(strings.TrimLeft(line[i:], " \""))
		j := i
		for j < len(line) && isWord(line[j]) {
			j++
		}
		if j > i && isLetter(line[i]) {
			d.add(line[i:j], at+i)
		}
		at = end + 1
	}
	if !d.refused() {
		return nil
	}
	c.failAt(d.pos, "%s", d.message())
	return c.err
}
