package lower

import (
	"fmt"

	"perfsim/components/opgraph"
)

// mostElems is how many elements a dimension may have: more than any program,
// tests of compilers included, and few enough that the bytes of a row of it fit
// 64 bits on every partition. Sizes of whole values saturate.
const mostElems = 1 << 48

// checkSizes refuses graphs with dimensions beyond any program.
func checkSizes(g *opgraph.Graph) error {
	t := &g.Shapes
	for op := range opgraph.OpID(g.NumOps()) {
		leaves := []opgraph.ShapeID{g.Ops.Shape[op]}
		for len(leaves) > 0 {
			s := leaves[len(leaves)-1]
			leaves = leaves[:len(leaves)-1]
			if t.IsTuple(s) {
				leaves = append(leaves, t.Tuple(s)...)
				continue
			}
			for i, d := range t.Dims(s) {
				if d > mostElems {
					return fmt.Errorf("operator %s: dimension %d has %d elements, more than 2^48", g.OpText(op), i, d)
				}
			}
		}
	}
	return nil
}
