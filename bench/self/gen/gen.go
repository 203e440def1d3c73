// Package gen makes synthetic modules of any size from a seed, straight into
// the tables of a module: for benchmarks, for tests and for trying perfsim
// without a compiler. The same options give the same module on any number of
// cores.
package gen

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// Options say what a module looks like.
type Options struct {
	Seed         uint64
	Instructions int

	// FanIn is the mean number of dependencies of an instruction; they vary
	// evenly from 0 to twice that.
	FanIn float64
	// Locality is the mean distance, in instructions, of a near producer.
	Locality float64
	// Far is the share of dependencies whose producer lies anywhere before in
	// the block.
	Far float64
	// Anti, Output and Ordered are shares of the dependencies; the rest is Flow.
	Anti, Output, Ordered float64

	// Mix has a weight for each kind of instruction.
	Mix Mix
	// PSUM is the share of Activation and DVE instructions that read a PSUM
	// bank; matmuls always write one.
	PSUM float64

	Blocks int // top-level blocks, at least 1
	Loops  int // static loops in each block
	// Body is the number of instructions of a loop's body, Trips its trip
	// count.
	Body  int
	Trips uint64
	// Nested puts a loop inside every loop.
	Nested bool

	// Operands gives the instructions access patterns over Buffers buffers in
	// SBUF and the eight PSUM banks. Dependencies are not drawn then: they
	// follow from the accesses and have to be rebuilt.
	Operands bool
	Buffers  int

	// Jobs is how many goroutines fill the tables.
	Jobs int
}

// Mix has a weight for each kind of instruction.
type Mix struct{ PE, Activation, DVE, Pool, DMA, Collective float64 }

// Default returns options for n instructions that look like a compiled
// transformer layer: about three near dependencies each, a fifth of them
// anti-dependencies, half of the work on the tensor engine.
func Default(n int) Options {
	return Options{
		Seed: 1, Instructions: n, FanIn: 3, Locality: 24, Far: 0.02, Anti: 0.2, Output: 0.05, Ordered: 0.02,
		Mix: Mix{PE: 0.40, Activation: 0.15, DVE: 0.22, Pool: 0.05, DMA: 0.18}, PSUM: 0.5,
		Blocks: 1, Body: 64, Trips: 16, Buffers: 256, Jobs: 1,
	}
}

// chunk is how many rows are filled at a time.
const chunk = 1 << 16

// Module makes the module. It fails on options that make no sense and when
// ctx ends.
func Module(ctx context.Context, opt Options) (*components.Module, error) {
	g, err := newGenerator(&opt)
	if err != nil {
		return nil, err
	}
	m, n := g.m, uint32(opt.Instructions)
	m.Instr.Grow(int(n))
	if opt.Operands {
		if err := g.parallel(ctx, 0, n, g.fill); err != nil {
			return nil, err
		}
		m.Edges.Preds.Columns()[0].(*ecs.Column[uint32]).Resize(int(n) + 1)
		g.operands()
	} else {
		if err := g.edges(ctx, 0, n); err != nil {
			return nil, err
		}
	}
	g.loopRows(0, n)
	if err := m.CheckJobs(ctx, opt.Jobs); err != nil {
		return nil, fmt.Errorf("generated module: %w", err)
	}
	return m, nil
}

// newGenerator returns a generator of a module with all tables but instructions
// and edges.
func newGenerator(opt *Options) (*generator, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	m := components.NewModule("generated", "gen")
	m.Arch = "gen3"
	m.AddCoreLanes(0)
	g := &generator{opt: *opt, m: m}
	g.layout()
	g.shares()
	return g, nil
}

func (o *Options) check() error {
	bad := func(what string, v float64) error { return fmt.Errorf("%s is %v, not between 0 and 1", what, v) }
	for _, s := range []struct {
		what string
		v    float64
	}{{"the far share", o.Far}, {"the share of anti-dependencies", o.Anti}, {"the share of output dependencies", o.Output},
		{"the share of ordered dependencies", o.Ordered}, {"the share of all these", o.Anti + o.Output + o.Ordered}, {"the PSUM share", o.PSUM}} {
		if !(s.v >= 0 && s.v <= 1) {
			return bad(s.what, s.v)
		}
	}
	weights := []float64{o.Mix.PE, o.Mix.Activation, o.Mix.DVE, o.Mix.Pool, o.Mix.DMA, o.Mix.Collective}
	sum := 0.0
	for _, w := range weights {
		if !(w >= 0) || w > 1e9 {
			return fmt.Errorf("a weight of the mix is %v", w)
		}
		sum += w
	}
	if !(o.Locality >= 1) {
		o.Locality = 1
	}
	o.Jobs = max(o.Jobs, 1)
	o.Blocks = max(o.Blocks, 1)
	perLoop := 0
	if o.Loops > 0 {
		perLoop = o.Body + 1
		if o.Nested {
			perLoop++
		}
	}
	switch {
	case o.Instructions < 1 || o.Instructions >= ecs.MaxRows:
		return fmt.Errorf("%d instructions: from 1 to %d are possible", o.Instructions, ecs.MaxRows-1)
	case sum == 0:
		return fmt.Errorf("the mix has no weights")
	case !(o.FanIn >= 0 && o.FanIn <= maxFan/2):
		return fmt.Errorf("a mean of %v dependencies: from 0 to %d are possible", o.FanIn, maxFan/2)
	case o.Loops < 0 || o.Loops > 0 && (o.Body < 1 || o.Trips < 1):
		return fmt.Errorf("%d loops of %d instructions, %d times", o.Loops, o.Body, o.Trips)
	case o.Instructions/o.Blocks < o.Loops*perLoop+1 || o.Loops > o.Instructions || perLoop > o.Instructions:
		return fmt.Errorf("%d instructions do not fill %d blocks with %d loops of %d instructions each", o.Instructions, o.Blocks, o.Loops, perLoop)
	case o.Operands && o.Buffers < 1:
		return fmt.Errorf("%d buffers", o.Buffers)
	}
	return nil
}

// maxFan bounds the dependencies of one instruction.
const maxFan = 64

// segment is a run of rows of one block, with no loop in it: dependencies
// stay within it.
type segment struct{ lo, hi uint32 }

type generator struct {
	opt      Options
	m        *components.Module // its rows: all, or those of a window
	declared [components.NumEdgeKinds]uint64
	segments []segment
	loops    []uint32

	kinds [6]uint64 // thresholds of the mix, of 2^64
	class [3]uint64 // thresholds of Anti, Output, Ordered
	far   uint64
	psum  uint64
	span  uint64 // twice the mean step between near producers, of 2^16
	fan   uint64
}

// layout makes functions and blocks: every block has its loops evenly spread.
func (g *generator) layout() {
	m, o := g.m, &g.opt
	m.Functions.Add(m.Symbols.InternString("sg0000"), 0)
	for b := range o.Blocks {
		lo := uint32(uint64(o.Instructions) * uint64(b) / uint64(o.Blocks))
		hi := uint32(uint64(o.Instructions) * uint64(b+1) / uint64(o.Blocks))
		name := fmt.Sprintf("Block%d", b+1)
		top := m.Blocks.Add(m.Symbols.InternString(name), 0, 0, components.InstrID(lo), 1)
		m.Blocks.End.Set(top, hi)
		at := lo
		size := uint32(o.Body + 1)
		if o.Nested {
			size++
		}
		for l := range o.Loops {
			// What is left besides loops is spread around them.
			plain := hi - lo - uint32(o.Loops)*size
			start := lo + uint32(l)*size + uint32(uint64(plain)*uint64(l+1)/uint64(o.Loops+1))
			g.segment(at, start)
			g.loop(name, start, start+size, l)
			at = start + size
		}
		g.segment(at, hi)
	}
	m.Functions.EndBlock.Set(0, uint32(m.Blocks.Len()))
}

func (g *generator) loop(name string, row, end uint32, l int) {
	m := g.m
	body := func(row uint32, suffix string) {
		g.loops = append(g.loops, row)
		b := m.Blocks.Add(m.Symbols.InternString(fmt.Sprintf("%s_LoopBody_%d%s", name, l+1, suffix)), 0, row+1, components.InstrID(row+1), g.opt.Trips)
		m.Blocks.End.Set(b, end)
	}
	body(row, "")
	if g.opt.Nested {
		body(row+1, "_inner")
		row++
	}
	g.segment(row+1, end)
}

func (g *generator) segment(lo, hi uint32) {
	if lo < hi {
		g.segments = append(g.segments, segment{lo, hi})
	}
}

// of64 is the share x of 2^64.
func of64(x float64) uint64 {
	if x >= 1 {
		return 1<<64 - 1
	}
	return uint64(x * (1 << 64))
}

// shares turns shares and weights into thresholds for a random word.
func (g *generator) shares() {
	o := &g.opt
	mix := []float64{o.Mix.PE, o.Mix.Activation, o.Mix.DVE, o.Mix.Pool, o.Mix.DMA, o.Mix.Collective}
	sum := 0.0
	for _, w := range mix {
		sum += w
	}
	at := 0.0
	for i, w := range mix {
		at += w
		g.kinds[i] = of64(at / sum)
	}
	last := len(mix) - 1
	for mix[last] == 0 {
		last--
	}
	for i := last; i < len(mix); i++ {
		g.kinds[i] = 1<<64 - 1 // rounding must not reach a kind of no weight
	}
	g.class = [3]uint64{of64(o.Anti), of64(o.Anti + o.Output), of64(o.Anti + o.Output + o.Ordered)}
	g.far = of64(o.Far)
	g.psum = of64(o.PSUM)
	g.fan = uint64(2 * o.FanIn * (1 << 32))
	// Near producers lie at growing distances. With the mean step s those of a
	// row with d of them are s·(d+1)/2 away in the mean, and over all rows, d
	// even between 0 and 2F, s·(E[d²]/F+1)/2 with E[d²] = 4F²/3 + 1/12.
	f := max(o.FanIn, 0.5)
	step := max(2*o.Locality/(4*f/3+1/(12*f)+1), 1)
	g.span = uint64(2*step*(1<<16)) - 1<<16
}

// random is a small generator (wyrand) whose state is a row: what a row looks
// like depends on nothing but the seed and its number.
type random uint64

func (g *generator) row(i uint32) random {
	// Spread rows over the state space, so that sequences of neighbours do
	// not overlap: each takes a few hundred steps of the constant below at
	// most, rows are 2^32 apart times an odd number.
	hi, lo := bits.Mul64(uint64(i)+1, 0x9e3779b97f4a7c15)
	return random(hi ^ lo ^ g.opt.Seed*0xd1342543de82ef95)
}

func (r *random) next() uint64 {
	*r += 0xa0761d6478bd642f
	hi, lo := bits.Mul64(uint64(*r), uint64(*r)^0xe7037ed1a0b428db)
	return hi ^ lo
}

// below returns a number below n.
func (r *random) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// parallel calls f for chunks of rows lo to hi.
func (g *generator) parallel(ctx context.Context, lo, hi uint32, f func(lo, hi uint32)) error {
	eg, ctx := ecs.NewGroup(ctx, g.opt.Jobs)
	for at := lo; at < hi; at += min(chunk, hi-at) {
		eg.Go(func() error {
			f(at, min(at+chunk, hi))
			return ctx.Err()
		})
	}
	return eg.Wait()
}

// edges fills all columns and the dependencies of rows lo to hi, which the module
// holds. How many a row has is known from its first random word, so that rows can
// be filled in any order.
func (g *generator) edges(ctx context.Context, lo, hi uint32) error {
	columns := g.m.Edges.Preds.Columns()
	offsets := columns[0].(*ecs.Column[uint32])
	words := columns[1].(*ecs.Column[uint32])
	first := lo
	off := offsets.Resize(int(hi-lo) + 1)
	clear(off)
	if err := g.parallel(ctx, lo, hi, func(lo, hi uint32) {
		g.degrees(lo, hi, func(i, degree uint32) { off[i-first+1] = degree })
	}); err != nil {
		return err
	}
	sum := uint64(0)
	for i, d := range off {
		sum += uint64(d)
		off[i] = uint32(sum)
	}
	if err := fewEnough(sum); err != nil {
		return err
	}
	w := words.Resize(int(sum))
	total := make([][components.NumClasses]uint64, (hi-lo+chunk-1)/chunk)
	if err := g.parallel(ctx, lo, hi, func(lo, hi uint32) {
		g.fill(lo, hi)
		count := &total[(lo-first)/chunk]
		g.bySegment(lo, hi, func(s segment, lo, hi uint32) {
			for i := lo; i < hi; i++ {
				g.producers(i, i-s.lo, w[off[i-first]:off[i-first+1]], count)
			}
		})
	}); err != nil {
		return err
	}
	for _, c := range total {
		for class, k := range c {
			g.declared[components.KindOfClass(uint8(class))] += k
		}
	}
	g.m.Edges.Declared = g.declared
	return nil
}

// degrees calls f with how many dependencies each of rows lo to hi has that is
// no loop.
func (g *generator) degrees(lo, hi uint32, f func(i, degree uint32)) {
	g.bySegment(lo, hi, func(s segment, lo, hi uint32) {
		for i := lo; i < hi; i++ {
			r := g.row(i)
			f(i, g.degree(&r, i-s.lo))
		}
	})
}

func fewEnough(edges uint64) error {
	if edges > 1<<32-1 {
		return fmt.Errorf("%d dependencies are more than 2^32", edges)
	}
	return nil
}

// bySegment calls f for the parts of rows lo to hi that lie in one segment.
func (g *generator) bySegment(lo, hi uint32, f func(s segment, lo, hi uint32)) {
	i, ok := slices.BinarySearchFunc(g.segments, lo, func(s segment, row uint32) int {
		switch {
		case s.hi <= row:
			return -1
		case s.lo > row:
			return 1
		}
		return 0
	})
	_ = ok // a row between segments (a loop) gives the next one
	for ; i < len(g.segments) && g.segments[i].lo < hi; i++ {
		s := g.segments[i]
		f(s, max(s.lo, lo), min(s.hi, hi))
	}
}

// degree draws how many dependencies a row has; before is how many rows of
// its segment come before it.
func (g *generator) degree(r *random, before uint32) uint32 {
	hi, _ := bits.Mul64(r.next(), g.fan)
	return min(uint32((hi+1<<31)>>32), before)
}

// producers draws the dependencies of row i, which has before rows of its
// segment before it.
func (g *generator) producers(i, before uint32, words []uint32, count *[components.NumClasses]uint64) {
	if len(words) == 0 {
		return
	}
	r := g.row(i)
	r.next() // degree has used it
	near := uint64(0)
	for k := range words {
		x := r.next()
		class := components.ClassFlow
		switch {
		case x < g.class[0]:
			class = components.ClassAnti
		case x < g.class[1]:
			class = components.ClassOutput
		case x < g.class[2]:
			class = components.ClassOrdered
		}
		x = r.next()
		var dist uint64
		if x < g.far {
			dist = 1 + r.below(uint64(before))
		} else {
			hi, _ := bits.Mul64(r.next(), g.span)
			near += 1 + (hi+1<<15)>>16
			dist = min(near, uint64(before))
		}
		// Distances must differ: take the next one that is free.
		for again := true; again; {
			again = false
			for _, w := range words[:k] {
				if uint64(i-w&ecs.TargetMask) == dist {
					again = true
					if dist++; dist > uint64(before) {
						dist = 1
					}
					break
				}
			}
		}
		words[k] = ecs.Word(class, i-uint32(dist))
		count[class]++
	}
	insertionSort(words)
}

// insertionSort sorts a few words.
func insertionSort(w []uint32) {
	for i := 1; i < len(w); i++ {
		for j := i; j > 0 && w[j] < w[j-1]; j-- {
			w[j], w[j-1] = w[j-1], w[j]
		}
	}
}

// loopRows turns those of rows lo to hi that hold loops into that.
func (g *generator) loopRows(lo, hi uint32) {
	t := &g.m.Instr
	for _, l := range g.loops {
		if l < lo || l >= hi {
			continue
		}
		i := int(l - g.m.Base)
		t.Opcode.Set(i, components.OpcodeLoop)
		t.Engine.Set(i, components.All)
		t.Lane.Set(i, components.LaneBarrier)
		t.Flags.Set(i, components.FlagLoop|components.FlagBarrier)
		t.Elems.Set(i, 0)
		t.Parts.Set(i, 0)
		t.DType.Set(i, components.NoDType)
		t.Banks.Set(i, 0)
	}
}
