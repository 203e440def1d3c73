package coregrid

import (
	"math"

	"perfsim/components/machine/grid"
)

// Model turns operators into times on a machine in one data format and math
// fidelity.
type Model struct {
	Mach   *grid.Machine
	Format string
	Passes float64 // of the multiplier, by format and fidelity
	Bytes  float64 // of an element
	// Results is how many tiles of results a core adds up at a time, 0 where the
	// machine does not say.
	Results int64
	// Transpose lets placement exchange rows and columns of a rectangle that
	// does not fit otherwise.
	Transpose bool
	// Reload is the factor on the time that an epoch's programs take.
	Reload float64
}

// NewModel checks data format, accumulator (empty: the machine's own) and
// fidelity against the machine.
func NewModel(m *grid.Machine, format, accumulator, fidelity string) (Model, error) {
	p, err := m.Passes(format, fidelity)
	if err != nil {
		return Model{}, err
	}
	a, err := m.Accumulate(accumulator, format)
	if a.Passes > 0 {
		p *= a.Passes
	}
	return Model{Mach: m, Format: format, Passes: p, Bytes: m.Formats[format].Bytes, Results: a.Tiles, Reload: 1}, err
}

// operandTiles returns how many tiles of operands a core reads for a tile
// product, where n of the rows by cols tiles of a result are its own: a block
// of h by w results takes h + w operands for h·w products, and the
// accumulators bound h·w.
func (m Model) operandTiles(n, rows, cols int64) float64 {
	if m.Results == 0 {
		return 0
	}
	best, n := 2.0, min(n, m.Results)
	for h := int64(1); h <= min(n, rows); h++ {
		w := min(n/h, cols)
		best = min(best, float64(h+w)/float64(h*w))
	}
	return best
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// tiles are the sizes of an operator in tiles: blocks of independent
// products, rows, inner and columns.
type tiles struct{ blocks, m, k, n int64 }

// tilesOf rounds an operator's product up to tiles. Groups narrower than a
// tile share one.
func (m Model) tilesOf(o *Op) tiles {
	t := m.Mach.Matrix.Tile
	z := tiles{max(o.Batch, 1), ceil(max(o.M, 1), t), ceil(max(o.K, 1), t), ceil(max(o.N, 1), t)}
	if o.Kind == "depthwise" && m.Mach.Matrix.DenseGroups { // zeros between the groups
		z.blocks, z.k, z.n = 1, ceil(o.K*o.Batch, t), ceil(o.N*o.Batch, t)
	} else if o.Kind == "depthwise" {
		pack := max(t/max(o.N, 1), 1)
		z.blocks = ceil(o.Batch, pack)
		z.k = ceil(o.K*pack, t) // every tap is a block of its own diagonal
		z.n = ceil(o.N*pack, t)
	}
	return z
}

// Cycles returns how long the operator takes for one input on r by c cores,
// in cycles.
func (m Model) Cycles(o *Op, r, c int) float64 {
	t := m.Mach.Matrix.Tile
	cores := float64(r * c)
	var product, reads float64
	in := float64(o.Window+o.In-min(o.In, o.Window)) * m.Bytes / float64(r)
	if o.MACs > 0 {
		z := m.tilesOf(o)
		rows, cols := ceil(z.blocks*z.m, int64(r)), ceil(z.n, int64(c))
		if z.blocks > 1 { // blocks are spread over all cores
			rows, cols = ceil(z.blocks*z.m*z.n, int64(r*c)), 1
			in = float64(o.Window) * m.Bytes / cores
		}
		products := float64(rows * cols * z.k)
		reads = products * m.operandTiles(rows*cols, z.m, z.n) * float64(t*t) * m.Bytes
		if o.Window > o.In { // the windows of a tile of rows, all taps and inputs, once for all columns
			spread := min(int64(r*c), z.blocks*z.m)
			products += m.Mach.Matrix.WindowTiles * float64(ceil(z.blocks*z.m, spread)*z.k)
		}
		product = products * float64(t*t*t) / m.Mach.Matrix.MACs * m.Passes
	} else {
		in = float64(o.Window) * m.Bytes / cores
	}
	face := float64(t * t)
	vector := math.Ceil(float64(o.Vector)/face/cores) * face / m.Mach.VectorLanes
	vector += math.Ceil(float64(o.Transcendental)/face/cores) * face / m.Mach.TranscendentalLanes
	out := float64(o.Out) * m.Bytes / cores
	move := max(in, reads, out) / m.Mach.Memory.L1Rate
	return max(product+vector, move) + m.Mach.Overheads.Operator
}

// limits returns how many rows and columns of cores the operator can use.
func (m Model) limits(o *Op) (rows, cols int) {
	t := m.Mach.Matrix.Tile
	if o.MACs == 0 {
		n := ceil(max(o.Out, o.Window), t*t)
		return int(min(n, int64(m.Mach.Rows))), int(min(n, int64(m.Mach.Cols)))
	}
	z := m.tilesOf(o)
	if z.blocks > 1 {
		n := z.blocks * z.m * z.n
		return int(min(n, int64(m.Mach.Rows))), int(min(n, int64(m.Mach.Cols)))
	}
	return int(min(z.m, int64(m.Mach.Rows))), int(min(z.n, int64(m.Mach.Cols)))
}

// resident reports whether the weights stay in the cores' memory from input to
// input: half of it is for them, the rest for what streams through.
func (m Model) resident(o *Op, c int) bool {
	room := float64(m.Mach.Memory.L1Bytes-m.Mach.Memory.L1Reserved) / 2
	return float64(o.Weights)*m.Bytes/float64(c) <= room
}

// ns turns cycles into ns.
func (m Model) ns(cycles float64) float64 { return cycles * 1000 / m.Mach.ClockMHz }
