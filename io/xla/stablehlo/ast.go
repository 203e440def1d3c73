package stablehlo

import "perfsim/components"

// node is one operation as it is written.
type node struct {
	name     string // "stablehlo.add", "func.func", "builtin.module"
	pos      int
	result   string // name of the result without '%', "" when there is none
	results  int    // number of results, the N of "%0:N"
	operands []ref
	inits    []string // names of the block arguments of a pretty while
	attrs    []attr
	words    []string // bare words of the pretty form, such as LT
	lists    []string // bracketed lists of the pretty form, such as [0:1, 0:7]
	symbol   string   // "@name"
	dense    string   // the value of a constant
	in, out  []components.ShapeID
	regions  []*region
	loc      string

	// What lowering into the graph adds.
	captures [][]ref // by region: values from outside; one list for a while
	comps    []components.CompID
}

// ref is a use of a value: "%0" or "%0#1".
type ref struct {
	name string
	i    int
	pos  int
}

type attr struct {
	key, val string
	pos      int
}

// region is a region of one block.
type region struct {
	args []arg
	ops  []*node
	pos  int
	free []ref // values used but not defined inside, in order of use
	done bool  // free is filled in
}

type arg struct {
	name  string
	shape components.ShapeID
	attrs string
	pos   int
}

// attr returns the text of the first attribute with one of the names.
func (n *node) attr(keys ...string) (attr, bool) {
	for _, k := range keys {
		for _, a := range n.attrs {
			if a.key == k {
				return a, true
			}
		}
	}
	return attr{}, false
}

func (n *node) has(key string) bool {
	_, ok := n.attr(key)
	return ok
}
