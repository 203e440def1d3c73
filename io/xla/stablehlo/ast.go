package stablehlo

import (
	"perfsim/components/opgraph"
)

// node is one operation as it is written.
type node struct {
	*opInfo
	*rare
	pos      int
	result   nameID // first name of the results, 0 when there is none
	results  int32  // number of results, the N of "%0:N", summed over names
	operands []ref
	attrs    []attr
	in, out  []opgraph.ShapeID
	loc      string
}

// rare is what most operations have nothing of. It is read through the node and
// written through own.
type rare struct {
	names    []resultName // where the results have several names: "%a, %b:2 ="
	inits    []nameID     // names of the block arguments of a pretty while
	words    []string     // bare words of the pretty form, such as LT
	lists    []string     // bracketed lists of the pretty form, such as [0:1, 0:7]
	symbol   string       // "@name"
	dense    string       // the value of a constant
	outAttrs []string     // of a function: the attributes of each result, "" for none
	regions  []*region

	// What lowering into the graph adds.
	captures [][]ref // by region: values from outside; one list for a while
	comps    []opgraph.CompID
}

// nothing is the rare part of a node that has none. It is never written.
var nothing rare

// own returns the rare part of n to be written.
func (n *node) own() *rare {
	if n.rare == &nothing {
		n.rare = &rare{}
	}
	return n.rare
}

// ref is a use of a value: "%0" or "%0#1".
type ref struct {
	name nameID
	i    int32
	pos  int32
}

// resultName is one name of an operation's results and the values it covers.
type resultName struct {
	name         nameID
	first, count int
}

// resultNames returns the names of the results in order.
func (n *node) resultNames() []resultName {
	if n.names == nil && n.result != 0 {
		return []resultName{{n.result, 0, int(n.results)}}
	}
	return n.names
}

// resultIndex returns which result value i of a name is.
func (n *node) resultIndex(name nameID, i int) int {
	for _, r := range n.names {
		if r.name == name {
			return r.first + i
		}
	}
	return i
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
	name  nameID
	shape opgraph.ShapeID
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
