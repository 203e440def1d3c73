package coregrid

import (
	"context"
	"fmt"
	"math"
	"slices"

	"perfsim/components/machine/grid"
)

// Placed is an operator on its rectangle of cores.
type Placed struct {
	Op             int     // row of the operators
	Row, Col, R, C int     // the first core, and the operator's own grid
	NS             float64 // for one input
	Transposed     bool    // rows and columns are exchanged against the operator's own grid
	Streamed       bool    // its weights do not stay in the cores: they are read for every input
}

// Epoch is the content of the grid at one time.
type Epoch struct {
	Ops   []Placed
	Cores int
	// Bottleneck is the ns from one input to the next in the steady state;
	// BoundBy says what sets it: an operator's name, or "memory".
	Bottleneck float64
	BoundBy    string
	// Prologue is the ns before the first input: programs and weights, and the
	// gaps between the operators' starts.
	Prologue float64
	// Read and Write are the bytes of one input that cross the memory.
	Read, Write float64
	WeightBytes float64 // loaded once
	Fill        float64 // ns of one input through all operators
}

// Plan is a placement of a graph for a number of inputs a batch.
type Plan struct {
	Model  Model
	Ops    []Op
	Inputs int
	Epochs []Epoch
}

// shape is a choice of rectangle for an operator.
type shape struct {
	r, c int
	ns   float64
}

// shapes lists the rectangles of an operator that are worth having: no other
// has as few cores and is as fast. Fewest cores first.
func (m Model) shapes(o *Op) []shape {
	rows, cols := m.limits(o)
	var all []shape
	for r := 1; r <= max(rows, 1); r++ {
		for c := 1; c <= max(cols, 1); c++ {
			all = append(all, shape{r, c, m.ns(m.Cycles(o, r, c))})
		}
	}
	slices.SortStableFunc(all, func(a, b shape) int {
		if n := a.r*a.c - b.r*b.c; n != 0 {
			return n
		}
		if a.ns != b.ns {
			return int(math.Copysign(1, a.ns-b.ns))
		}
		return a.r - b.r // flat rectangles pack better
	})
	// Weights that can stay in the cores do: shapes that would have to read them
	// for every input are left out.
	if resident := slices.DeleteFunc(slices.Clone(all), func(s shape) bool { return !m.resident(o, s.c) }); len(resident) > 0 {
		all = resident
	}
	var out []shape
	for _, s := range all {
		if len(out) == 0 || s.ns < out[len(out)-1].ns*0.999 {
			out = append(out, s)
		}
	}
	return out
}

// pick returns the smallest shape not slower than limit, or the fastest.
func pick(s []shape, limit float64) shape {
	for _, x := range s {
		if x.ns <= limit {
			return x
		}
	}
	return s[len(s)-1]
}

// occupancy is the cores of a grid in use: one word a row.
type occupancy struct {
	rows []uint64
	cols int
}

// place puts a rectangle on the first free spot, top to bottom, left to
// right; ok is false where there is none.
func (o *occupancy) place(r, c int) (row, col int, ok bool) {
	mask := uint64(1)<<c - 1
	for row := 0; row+r <= len(o.rows); row++ {
		var used uint64
		for _, w := range o.rows[row : row+r] {
			used |= w
		}
		for col := 0; col+c <= o.cols; col++ {
			if used>>col&mask == 0 {
				for i := row; i < row+r; i++ {
					o.rows[i] |= mask << col
				}
				return row, col, true
			}
		}
	}
	return 0, 0, false
}

// turn is place, and tries the rectangle with rows and columns exchanged where
// turned is allowed and it does not fit as it is.
func (o *occupancy) turn(r, c int, allowed bool) (row, col int, turned, ok bool) {
	if row, col, ok = o.place(r, c); ok || !allowed || r == c {
		return row, col, false, ok
	}
	row, col, ok = o.place(c, r)
	return row, col, ok, ok
}

func (o *occupancy) clear() { clear(o.rows) }

// balancer searches for a plan.
type balancer struct {
	m      Model
	ops    []Op
	shapes [][]shape
	inputs int
	occ    occupancy
	// readers are who reads an operator: the last, for what crosses epochs.
	last []int
}

// Balance places the operators for a batch of inputs. Operators go to epochs
// in program order. For a limit on the time of one input, each takes the
// fewest cores that keep it, and an epoch is full when the next does not fit;
// of a ladder of limits the plan with the shortest batch is taken, and each
// of its epochs is then made as fast as its cores allow.
func Balance(ctx context.Context, m Model, ops []Op, inputs int) (*Plan, error) {
	if m.Mach.Style != grid.Dataflow {
		return nil, fmt.Errorf("machine %s runs kernels: it has no placement", m.Mach.Name)
	}
	if m.Mach.Cols > 63 {
		return nil, fmt.Errorf("machine %s: more than 63 columns of cores", m.Mach.Name)
	}
	b := &balancer{m: m, ops: ops, inputs: inputs, shapes: make([][]shape, len(ops)), last: make([]int, len(ops)),
		occ: occupancy{make([]uint64, m.Mach.Rows), m.Mach.Cols}}
	least, most := math.Inf(1), 0.0
	for i := range ops {
		b.shapes[i] = m.shapes(&ops[i])
		s := b.shapes[i]
		least, most = min(least, s[len(s)-1].ns), max(most, s[0].ns)
		for _, e := range ops[i].Inputs {
			b.last[e.From] = max(b.last[e.From], i)
		}
	}
	const steps = 96
	var best [][2]int
	bestTime, bestLimit := math.Inf(1), 0.0
	for k := range steps + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		limit := least * math.Pow(most/least, float64(k)/steps)
		cuts := b.cut(limit)
		if t := b.total(cuts, limit); t < bestTime {
			best, bestTime, bestLimit = cuts, t, limit
		}
	}
	p := &Plan{Model: m, Ops: ops, Inputs: inputs}
	for _, c := range best {
		p.Epochs = append(p.Epochs, b.tighten(c, bestLimit))
	}
	return p, nil
}

// cut splits the operators into epochs for a limit: ranges of rows.
func (b *balancer) cut(limit float64) [][2]int {
	var cuts [][2]int
	from := 0
	b.occ.clear()
	for i := range b.ops {
		s := pick(b.shapes[i], limit)
		if _, _, _, ok := b.occ.turn(s.r, s.c, b.m.Transpose); ok {
			continue
		}
		cuts = append(cuts, [2]int{from, i})
		from = i
		b.occ.clear()
		b.occ.place(s.r, s.c) // alone it fits: limits() is the grid
	}
	return append(cuts, [2]int{from, len(b.ops)})
}

// total estimates the ns of a batch.
func (b *balancer) total(cuts [][2]int, limit float64) float64 {
	t := 0.0
	for _, c := range cuts {
		e := b.epoch(c, limit)
		t += e.Prologue + e.Fill + float64(b.inputs-1)*e.Bottleneck
	}
	return t
}

// epoch places one range for a limit. Its cores are 0 where it does not fit.
func (b *balancer) epoch(c [2]int, limit float64) Epoch {
	var e Epoch
	b.occ.clear()
	mem := b.m.Mach.Memory
	finish := make([]float64, c[1]-c[0])
	for i := c[0]; i < c[1]; i++ {
		o := &b.ops[i]
		s := pick(b.shapes[i], limit)
		row, col, turned, ok := b.occ.turn(s.r, s.c, b.m.Transpose)
		if !ok {
			return Epoch{}
		}
		p := Placed{Op: i, Row: row, Col: col, R: s.r, C: s.c, NS: s.ns, Transposed: turned, Streamed: !b.m.resident(o, s.c)}
		e.Ops = append(e.Ops, p)
		e.Cores += s.r * s.c
		if s.ns > e.Bottleneck {
			e.Bottleneck, e.BoundBy = s.ns, o.Name
		}
		w := float64(o.Weights) * b.m.Bytes
		if p.Streamed {
			e.Read += w
		} else {
			e.WeightBytes += w
		}
		e.Read += float64(o.Feeds) * b.m.Bytes
		start := 0.0
		for _, x := range o.Inputs {
			if x.From < c[0] {
				e.Read += float64(x.Elems) * b.m.Bytes
			} else {
				start = max(start, finish[x.From-c[0]])
			}
		}
		finish[i-c[0]] = start + s.ns
		e.Fill = max(e.Fill, finish[i-c[0]])
		if o.Result || b.last[i] >= c[1] {
			e.Write += float64(o.Out) * b.m.Bytes
		}
	}
	if t := (e.Read + e.Write) / mem.DRAMRate(); t > e.Bottleneck {
		e.Bottleneck, e.BoundBy = t, "memory"
	}
	e.Fill += (e.Read + e.Write) / mem.DRAMRate()
	e.Prologue = b.m.Mach.Overheads.Epoch*b.m.Reload + e.WeightBytes/mem.DRAMRate() + b.m.Mach.Overheads.Gap*float64(dispatched(b.ops[c[0]:c[1]]))
	return e
}

// dispatched is how many programs the operators are: one each, and one that
// lays out the windows of a convolution or pooling.
func dispatched(ops []Op) int {
	n := len(ops)
	for i := range ops {
		if ops[i].Window > ops[i].In {
			n++
		}
	}
	return n
}

// HostNS is the time that the host takes for a batch in addition to the device's own,
// in ns: all of it (for every operator, and for moving inputs and results),
// and what of it is for operators.
func (m Model) HostNS(ops []Op, inputs int) (all, operators float64) {
	var elems int64
	for i := range ops {
		elems += ops[i].Feeds
		if ops[i].Result {
			elems += ops[i].Out
		}
	}
	over := m.Mach.Overheads
	if over.Host == 0 {
		return 0, 0
	}
	operators = over.Host * float64(dispatched(ops))
	return operators + float64(elems)*m.Bytes*float64(inputs)/m.Mach.Memory.HostRate, operators
}

// tighten makes an epoch as fast as its cores allow: the smallest limit of
// those its operators' shapes offer that still fits.
func (b *balancer) tighten(c [2]int, limit float64) Epoch {
	var times []float64
	for i := c[0]; i < c[1]; i++ {
		for _, s := range b.shapes[i] {
			if s.ns < limit {
				times = append(times, s.ns)
			}
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	best := b.epoch(c, limit)
	cost := func(e Epoch) float64 { return e.Fill + float64(b.inputs-1)*e.Bottleneck }
	lo, hi := 0, len(times) // times[hi] and above fit
	for lo < hi {
		mid := (lo + hi) / 2
		e := b.epoch(c, times[mid])
		if e.Cores == 0 {
			lo = mid + 1
			continue
		}
		if cost(e) < cost(best) {
			best = e
		}
		hi = mid
	}
	return best
}

// CoresUsed lists the cores of each epoch, as the reference's epoch table
// does.
func (p *Plan) CoresUsed() []int {
	var out []int
	for _, e := range p.Epochs {
		out = append(out, e.Cores)
	}
	return out
}

// Utilization is the mean share of the grid's cores that have an operator.
func (p *Plan) Utilization() float64 {
	n := 0
	for _, e := range p.Epochs {
		n += e.Cores
	}
	return float64(n) / float64(len(p.Epochs)*p.Model.Mach.Cores())
}
