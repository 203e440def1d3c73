package models

import "fmt"

// unlisted are models that the reference benchmark does not have but others have
// published measurements of: DistilBERT (Sanh et al., arXiv:1910.01108, base,
// 128 positions) and VGG-16 (Simonyan and Zisserman, arXiv:1409.1556,
// configuration D, 224×224 images). Build makes them; lists leave them out.
func unlisted() []Family {
	return []Family{
		{"distilbert", []string{"base"}, func(b *building) error {
			b.settle(1)
			b.InputSize = "128"
			return b.phase("forward", 1, func(n *net) []val { return bert(n, 6, 768, 128) })
		}},
		{"vgg16", []string{"224"}, func(b *building) error {
			b.settle(1)
			b.InputSize = "3x224x224"
			return b.phase("forward", 1, func(n *net) []val { return []val{vgg16(n)} })
		}},
	}
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
