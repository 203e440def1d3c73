package goal

import "perfsim/ecs"

// numbered finds the symbols of labels that are a stem and a number, as l17,
// by the number: near labels lie near in memory, which a hash table undoes.
// Other labels are interned.
type numbered struct {
	stem    []byte // of the first such label of the file
	symbols []ecs.Symbol
	limit   int64 // bounds the numbers, so that the table is no larger than the file
}

// slot returns where the symbol of a label is kept, nil where it is interned.
// A slot may have the symbol of another rank.
func (n *numbered) slot(label []byte) *ecs.Symbol {
	at := len(label)
	for at > 0 && '0' <= label[at-1] && label[at-1] <= '9' {
		at--
	}
	if at == 0 || at == len(label) || label[at] == '0' && at+1 < len(label) {
		return nil
	}
	if n.stem == nil {
		n.stem = append(n.stem, label[:at]...)
	}
	if string(n.stem) != string(label[:at]) {
		return nil
	}
	i, ok := digits(label[at:])
	if !ok || i >= n.limit {
		return nil
	}
	for int64(len(n.symbols)) <= i {
		n.symbols = append(n.symbols, make([]ecs.Symbol, i+1-int64(len(n.symbols)))...)
	}
	return &n.symbols[i]
}
