package stablehlo

import (
	"fmt"
	"slices"
	"strings"
)

// readDialects are the dialects whose operations become operators. An
// operation of them that has no HLO opcode is kept by name, as an operator of
// unknown opcode.
var readDialects = []string{"stablehlo", "mhlo", "chlo", "sdy"}

// frameDialects hold functions and modules, or arithmetic that all dialects
// use: they do not show the dialect of a module.
var frameDialects = []string{"func", "builtin", "arith", "math"}

// controlDialects hold loops and branches around other operations. Estimating
// one as a copy of its operands would lose what it repeats.
var controlDialects = []string{"scf", "cf", "affine"}

// foreign reports whether name is an operation of a dialect that is not read.
func foreign(name string) bool {
	dialect, _, ok := strings.Cut(name, ".")
	return ok && !slices.Contains(frameDialects, dialect) && !slices.Contains(readDialects, dialect)
}

// dialectCount counts operations by dialect, in order of first use.
type dialectCount struct {
	read    int
	foreign int
	names   []string // of foreign dialects
	first   string   // the first foreign operation
	pos     int
	control string // the first of controlDialects
	at      int
}

// tally is how dialectCount counts an operation.
type tally uint8

const (
	neutral   tally = iota // says nothing of what the module is written in
	ofRead                 // of a dialect that is read
	ofForeign              // of another
	ofControl              // of another, that holds control flow
)

func tallyOf(name string) tally {
	dialect, op, ok := strings.Cut(name, ".")
	switch {
	case slices.Contains(controlDialects, dialect):
		return ofControl
	case !ok || op == "constant" || op == "return" || slices.Contains(frameDialects, dialect):
		return neutral
	case slices.Contains(readDialects, dialect):
		return ofRead
	}
	return ofForeign
}

func (d *dialectCount) add(n *opInfo, pos int) {
	switch n.tally {
	case neutral:
		return
	case ofRead:
		d.read++
		return
	case ofControl:
		if d.control == "" {
			d.control, d.at = n.name, pos
		}
		if _, op, ok := strings.Cut(n.name, "."); !ok || op == "constant" || op == "return" {
			return
		}
	}
	if d.foreign++; d.foreign == 1 {
		d.first, d.pos = n.name, pos
	}
	if !slices.Contains(d.names, n.dialect) {
		d.names = append(d.names, n.dialect)
	}
}

// refused reports whether the module is of another dialect: more of its
// operations are foreign than are read. A few foreign operations among
// StableHLO are kept by name and estimated.
func (d *dialectCount) refused() bool { return d.foreign > d.read }

func (d *dialectCount) message() string {
	if !slices.ContainsFunc(d.names, func(s string) bool { return !slices.Contains(controlDialects, s) }) {
		return notRead(d.first)
	}
	const most = 4
	list := strings.Join(d.names[:min(len(d.names), most)], ", ")
	if len(d.names) > most {
		list += ", …"
	}
	if slices.Contains(d.names, "vhlo") {
		return fmt.Sprintf("%s: this is VHLO, the versioned form of StableHLO, which is not read; make StableHLO of it first: stablehlo-opt --vhlo-to-version=target=current --vhlo-legalize-to-stablehlo FILE", clip(d.first))
	}
	noun, verb := "dialect", "is"
	if len(d.names) > 1 {
		noun, verb = "dialects", "are"
	}
	return fmt.Sprintf("%s: this module is of the MLIR %s, which %s not read; export it as StableHLO (stablehlo, mhlo and chlo are read)", clip(d.first), noun+" "+list, verb)
}

// notRead says that one operation of a foreign dialect is not read.
func notRead(name string) string {
	dialect, _, _ := strings.Cut(name, ".")
	if slices.Contains(controlDialects, dialect) {
		return fmt.Sprintf("%s: control flow of the MLIR dialect %s is not read; export it as StableHLO (stablehlo.while, case and if are read)", clip(name), dialect)
	}
	return fmt.Sprintf("%s: the MLIR dialect %s is not read; export it as StableHLO", clip(name), dialect)
}

// knownDialects fails where the operations of a module, regions included, are
// mostly of dialects that are not read.
func (p *parser) knownDialects(ops []*node) bool {
	var d dialectCount
	d.nodes(ops)
	switch {
	case d.refused():
		return p.failAt(d.pos, "%s", d.message())
	case d.control != "":
		return p.failAt(d.at, "%s", notRead(d.control))
	}
	return true
}

func (d *dialectCount) nodes(ops []*node) {
	for _, n := range ops {
		d.add(n.opInfo, n.pos)
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
			d.add(p.info(line[i:j]), at+i)
		}
		at = end + 1
	}
	if !d.refused() {
		return nil
	}
	c.failAt(d.pos, "%s", d.message())
	return c.err
}
