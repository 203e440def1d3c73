package stablehlo

import (
	"strings"

	"perfsim/components/opgraph"
)

// opInfo is what the name of an operation tells.
type opInfo struct {
	name    string // "stablehlo.add", "func.func", "builtin.module"
	dialect string // "stablehlo"
	op      string // "add"
	kind    opgraph.OpKind
	known   bool // the operation has an HLO twin, kind
	foreign bool // it is of a dialect that is not read
	tally   tally
}

// shortNames are names that MLIR prints without their dialect.
var shortNames = map[string]string{"module": "builtin.module", "func": "func.func", "return": "func.return", "call": "func.call"}

// info returns what a name tells.
func (p *parser) info(name string) *opInfo {
	i, ok := p.infos[name]
	if !ok {
		i = &opInfo{name: name, foreign: foreign(name), tally: tallyOf(name)}
		i.dialect, _, _ = strings.Cut(name, ".")
		i.op = name[strings.LastIndexByte(name, '.')+1:]
		i.kind, i.known = opKind(name)
		p.infos[name] = i
	}
	return i
}
