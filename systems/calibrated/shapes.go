package calibrated

import (
	"perfsim/components"
	"perfsim/systems/cost"
)

// rowCost is the cost of a data-path instruction, in ns.
type rowCost struct {
	issue, latency, spacing float64
	usual                   bool // what operations usually take there
}

// product is what an instruction of the PE streams and loads.
type product struct {
	cycles float64 // of the columns of one pass
	share  float64 // of the array's rows
	passes int
	load   int // of LoadKinds
	transp bool
}

// shapes works out what instructions cost and what transfers move.
func (p *program) shapes() {
	p.shape = make([]uint32, len(p.kind))
	costs, products, transfers := newTable[rowCost](), newTable[product](), newTable[transfer]()
	memo := cost.NewMemo[uint32](len(p.kind))
	shape := func(i int) uint32 {
		switch k := p.kind[i]; {
		case k == kindData:
			return costs.row(p.rowCost(i))
		case k.transfers():
			t, _ := TransferOf(p.m, uint32(i))
			return transfers.row(p.c.DMA.of(t))
		}
		return products.row(p.product(i))
	}
	operands := p.m.Operands.Len() > 0
	for i, k := range p.kind {
		switch {
		case k.transfers() && operands: // which tell how it moves
			p.shape[i] = shape(i)
		case k == kindData, k == kindLoad, k == kindStream, k == kindMatmul, k.transfers():
			p.shape[i] = memo.Of(p.nominal, i, shape)
		}
	}
	p.costs, p.products, p.transfers = costs.rows, products.rows, transfers.rows
}

func (p *program) rowCost(i int) rowCost {
	c := rowCost{usual: p.nominal.Usual(i)}
	if op := p.nominal.Op(i); op != nil {
		c.issue, c.latency, c.spacing = p.nominal.Evaluate(op, i)
	} else {
		c.issue, c.latency = p.nominal.Rest(i)
	}
	return c
}

func (p *program) product(i int) product {
	x := product{share: Share(p.m, uint32(i)), load: LoadKindOf(p.m, uint32(i))}
	x.cycles, x.passes = p.nominal.Columns(i)
	x.transp = p.m.Instr.Flags.At(i)&components.FlagTranspose != 0
	return x
}

// table has values that differ.
type table[T comparable] struct {
	rows  []T
	known map[T]uint32
}

func newTable[T comparable]() *table[T] { return &table[T]{known: map[T]uint32{}} }

// row returns the row of a value.
func (t *table[T]) row(v T) uint32 {
	r, ok := t.known[v]
	if !ok {
		r = uint32(len(t.rows))
		t.rows, t.known[v] = append(t.rows, v), r
	}
	return r
}
