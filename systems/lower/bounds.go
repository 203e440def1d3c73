package lower

import (
	"fmt"

	"perfsim/components/opgraph"
)

// What a value may be at most: far beyond any memory, and small enough that
// sizes in bytes of tiles, rows and partitions fit 64 bits.
const (
	mostElems = 1 << 40 // elements of a dimension
	mostSize  = 1 << 50 // of a value
)

// checkSizes refuses graphs with values beyond any memory.
func checkSizes(g *opgraph.Graph) error {
	t := &g.Shapes
	for op := range opgraph.OpID(g.NumOps()) {
		s := g.Ops.Shape[op]
		leaves := []opgraph.ShapeID{s}
		for len(leaves) > 0 {
			s := leaves[len(leaves)-1]
			leaves = leaves[:len(leaves)-1]
			if t.IsTuple(s) {
				leaves = append(leaves, t.Tuple(s)...)
				continue
			}
			for i, d := range t.Dims(s) {
				if d > mostElems {
					return fmt.Errorf("operator %s: dimension %d has %d elements, more than 2^40", g.OpText(op), i, d)
				}
			}
		}
		if b := t.Bytes(s); b > mostSize {
			return fmt.Errorf("operator %s: a value of %d bytes, more than 2^50", g.OpText(op), b)
		}
	}
	return nil
}
