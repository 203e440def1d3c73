package models

import (
	"fmt"

	"perfsim/components"
)

// Measured returns the graph of a model that the reference benchmark does not
// have but others have published measurements of: distilbert (Sanh et al.,
// arXiv:1910.01108, base) with sequences of size positions, or vgg16 (Simonyan
// and Zisserman, arXiv:1409.1556, configuration D) for 224×224 images.
func Measured(name string, size int64, o Options) (*components.Graph, error) {
	if o.Elem == 0 {
		o.Elem = components.ElemBF16
	}
	n := newNet(name, o)
	switch name {
	case "distilbert":
		return n.emit(bert(n, 6, 768, size)...)
	case "bert":
		return n.emit(bert(n, 12, 768, size)...)
	case "vgg16":
		return n.emit(vgg16(n))
	}
	return nil, fmt.Errorf("there is no model %q, there are bert, distilbert and vgg16", name)
}

// vgg16 is thirteen 3×3 convolutions in five stages and three linear layers.
func vgg16(n *net) val {
	x := n.image(224)
	for s, stage := range []struct {
		convs int
		out   int64
	}{{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}} {
		for i := range stage.convs {
			x = n.conv(fmt.Sprintf("stage%d/conv%d", s+1, i+1), x, convOf{out: stage.out, k: 3, pad: 1, bias: true, act: relu})
		}
		x = n.pool(x, true, 2, 2, 0, false)
	}
	x = n.reshape(x, n.batch, 512*7*7)
	x = n.activate(n.linear("fc1", x, 4096, true), relu)
	x = n.activate(n.linear("fc2", x, 4096, true), relu)
	return n.linear("fc3", x, 1000, true)
}
