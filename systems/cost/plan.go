package cost

import (
	"math"
	"slices"
	"sync"

	"perfsim/components"
	"perfsim/components/machine"
)

// plan is the reference model with everything that does not depend on the
// row worked out beforehand: one formula for each opcode, engine, element
// size and PSUM mix. A test holds it equal to reference, which follows the
// documents line by line.
type plan struct {
	r *reference
	// of is where an opcode's formulas start; opcodes that share a cost share
	// them.
	of       []uint32
	formulas []formula
	windows  []window // by lane
	// class is the class of an element type's size, as formulaIndex has it.
	class [256]uint8

	mu       sync.Mutex
	defaults map[components.Opcode]int // rows by opcode that has no cost of its own
}

// formula is
//
//	max(floor((mult×(N >> shift)×tiles + base) × 100 / clock), least) + add
//
// with the shift in the lowest bit of kind. Tiles are 1 but for transfers,
// where they are (parts + tileAdd)×tile >> 32, and add is by the way their
// descriptors are made. A formula takes one cache line.
type formula struct {
	mult, base, clock float64
	least             int64 // floor(min × 100 / clock)
	kind, tileAdd     uint32
	tile              uint64
	add               [4]uint32 // ns, by the flags from dgeBit on
}

// The bits of a formula's kind; those from kindWhole on take the slow path.
const (
	kindShift   = 1 << iota // N counts half
	kindOut                 // N is the size of the moving tensor where there is one
	kindDMA                 // a transfer, whose N and parts are not 0
	kindWhole               // the product counts in whole cycles
	kindOther               // left to reference.latency
	kindDefault             // the cost of opcodes that have none
)

// window is how long before its end an operation leaves a lane, where it
// takes at least from ns, at most 2^62.
type window struct{ from, ns uint64 }

// The parts of a formula's index below the opcode.
const (
	sizeClasses     = 4 // element size: 2 bytes, 4 bytes, 1 byte, any other
	formulasPerCost = int(components.NumEngines) * sizeClasses * 2
)

func formulaIndex(engine components.Engine, size int, mixed int) uint32 {
	class := 3
	switch size {
	case 2:
		class = 0
	case 4:
		class = 1
	case 1:
		class = 2
	}
	return uint32((int(engine)*sizeClasses+class)*2 + mixed)
}

func newPlan(r *reference) *plan {
	p := &plan{r: r, of: make([]uint32, len(r.costs))}
	type key struct {
		cost   machine.Cost
		listed bool
	}
	at := map[key]uint32{}
	var distinct []key
	used := r.used()
	for op, c := range r.costs {
		if used != nil && !used[op] {
			continue
		}
		_, listed := r.ref.Costs[r.m.OpcodeName(components.Opcode(op))]
		k := key{c, listed}
		first, ok := at[k]
		if !ok {
			first = uint32(len(distinct) * formulasPerCost)
			at[k] = first
			distinct = append(distinct, k)
		}
		p.of[op] = first
	}
	p.formulas = make([]formula, len(distinct)*formulasPerCost)
	for n := range distinct {
		r.formulasOf(&distinct[n].cost, !distinct[n].listed, p.formulas[n*formulasPerCost:][:formulasPerCost])
	}
	for d := range p.class {
		p.class[d] = uint8(formulaIndex(0, components.DType(d).Size(), 0) / 2)
	}
	p.windows = make([]window, r.m.Lanes.Len())
	for l := range p.windows {
		p.windows[l] = r.windowOf(uint16(l))
	}
	return p
}

// fewRows is up to how many rows it is worth looking which opcodes there are:
// the formulas of all take as long as some thousands of rows.
const fewRows = 1 << 16

// used marks the opcodes that a module of few rows has; nil stands for all.
func (r *reference) used() []bool {
	if r.m.Instr.Len() > fewRows {
		return nil
	}
	used := make([]bool, len(r.costs))
	for _, op := range r.m.Instr.Opcode.Slice() {
		used[op] = true
	}
	return used
}

// windowOf is window with the lane known and the flags none.
func (r *reference) windowOf(lane uint16) window {
	compute, dma := uint64(r.ref.OverlapCompute), uint64(r.ref.OverlapDMA)
	switch l := lane % components.LanesPerCore; {
	case l == components.LaneDMA:
		return window{max(compute+1, dma), dma}
	case l >= components.LaneCC0:
		return window{1 << 62, 0}
	}
	return window{compute + 1, compute}
}

// formulasOf fills out with the formulas of cost c by engine, element size and
// PSUM mix, in the order of formulaIndex.
func (r *reference) formulasOf(c *machine.Cost, isDefault bool, out []formula) {
	clock := r.clock
	for e := range components.NumEngines {
		hz := float64(clockOf(clock, e))
		if c.Clock != "" {
			hz = float64(clockNamed(clock, c.Clock))
		}
		for _, size := range []int{0, 1, 2, 4} {
			for mixed := range 2 {
				f := &out[formulaIndex(e, size, mixed)]
				f.clock, f.tileAdd, f.tile = hz, oneTile, oneTile
				if isDefault {
					f.kind = kindDefault
				}
				switch c.Form {
				case "affine":
					mult, base := affineCoefficients(c, size, mixed == 1)
					f.mult, f.base = mult, float64(base)
					f.least = int64(float64(c.Min) * 100 / hz)
				case "matmul":
					f.mult, f.base, f.kind = 1, float64(c.Base), f.kind|kindShift
					if r.m.Instr.OutElems.Len() > 0 {
						f.kind |= kindOut
					}
					if size == 4 && c.Mult32 > 0 {
						f.mult = c.Mult32
						if f.mult != math.Trunc(f.mult) {
							f.kind |= kindWhole
						}
					}
				case "fixed": // base ns, whatever the clock
					f.base, f.clock = float64(c.Base), 100
				case "none":
					f.clock = 100
				case "dma":
					if !r.transfer(f, size) {
						f.kind |= kindOther
					}
				default:
					f.kind |= kindOther
				}
			}
		}
	}
}

// oneTile makes any number of parts, which has sixteen bits, one tile:
// (parts + oneTile)×oneTile >> 32 is 1.
const oneTile = 1 << 16

// transfer makes f the documented cost of a transfer of elements of the given
// size and reports whether it can.
//
// The documents divide integers. The quotient of floating-point numbers, as
// every formula has it, has the same whole part: dividend and divisor are exact
// up to 2^53, and a quotient that is not whole is further below the next whole
// number than what rounding adds. The dividend is 100 times too large there, as
// the divisor is; where that is beyond 2^53, the divisor being at most
// mostDiv, the row takes longer than a row can, and the documents' formula
// says how long.
func (r *reference) transfer(f *formula, size int) bool {
	d := &r.ref.DMA
	engines, all := spread(d)
	var div uint64
	switch size {
	case 1:
		f.tileAdd, f.tile, div = 0, 1<<32, all
	case 2, 4:
		// Rounded up, the reciprocal is right for all parts there can be.
		f.tileAdd, f.tile, div = uint32(engines-1), (1<<32+engines-1)/engines, uint64(d.Div)
	}
	const mostDiv, mostEngines = 20_000, 1 << 12
	if div == 0 || div > mostDiv || engines > mostEngines || d.Div < 0 {
		return false
	}
	for n := range f.add {
		t := uint64(d.ReadInit) + r.dgeOverhead(components.Flags(n)<<dgeBit)
		if t > math.MaxUint32 {
			return false
		}
		f.add[n] = uint32(t)
	}
	f.mult, f.clock, f.kind = float64(size), float64(100*div), f.kind|kindDMA
	return true
}

// slowFlags keep a row from the fast path.
const slowFlags = components.FlagLoop | components.FlagTrigger

// fill writes issue and latency of rows lo to hi; it returns the first row
// that takes longer than a row can have, or hi.
func (p *plan) fill(lo, hi int, issue, latency []uint32) int {
	var s some
	for lo < hi {
		end := min(lo+len(s.of), hi)
		p.choose(lo, end, &s)
		p.evaluate(lo, end, &s)
		unlisted := p.rest(lo, &s)
		cut := end - lo
		if p.leave(lo, end, &s, issue, latency) {
			cut = slices.IndexFunc(s.time[:cut], func(t uint64) bool { return t > math.MaxUint32 })
		}
		if unlisted {
			p.count(lo, cut, &s)
		}
		if lo+cut < end {
			return lo + cut
		}
		lo = end
	}
	return hi
}

// some has the values that are worked out for some rows at a time: several short
// loops, which keep what they need in registers, instead of a long one, which
// does not.
type some struct {
	of   [256]uint32 // formula
	time [256]uint64 // ns
	slow [256]uint8  // rows that the formulas do not do
	n    int         // how many
}

// choose finds the formulas of rows lo to hi.
func (p *plan) choose(lo, hi int, s *some) {
	in := &p.r.m.Instr
	opcode, engine, dtype, flags := in.Opcode.View(lo, hi), in.Engine.View(lo, hi), in.DType.View(lo, hi), in.Flags.View(lo, hi)
	// Equal lengths spare the loops their bounds checks.
	out := s.of[:len(opcode)]
	engine, dtype, flags = engine[:len(out)], dtype[:len(out)], flags[:len(out)]
	of, class := p.of, &p.class
	for i, op := range opcode {
		fl := flags[i]
		// One of two inputs in PSUM.
		mixed := uint32(fl>>twoInputsBit) & uint32(fl>>srcPSUMBit^fl>>src2PSUMBit) & 1
		out[i] = of[op] + (uint32(engine[i])*sizeClasses+uint32(class[dtype[i]]))*2 + mixed
	}
}

// evaluate fills the times of rows lo to hi and lists those it leaves.
func (p *plan) evaluate(lo, hi int, s *some) {
	in := &p.r.m.Instr
	elems, parts, flags := in.Elems.View(lo, hi), in.Parts.View(lo, hi), in.Flags.View(lo, hi)
	outElems := elems // a formula asks for it only where the column is there
	if in.OutElems.Len() > 0 {
		outElems = in.OutElems.View(lo, hi)
	}
	of := s.of[:len(elems)]
	time := s.time[:len(of)]
	elems, outElems, parts, flags = elems[:len(of)], outElems[:len(of)], parts[:len(of)], flags[:len(of)]
	formulas := p.formulas
	left := 0
	for i := range of {
		f := &formulas[of[i]]
		// The size of the moving tensor where the formula and the row have one.
		e := elems[i]
		if out := outElems[i] & -(f.kind >> 1 & 1); out != 0 {
			e = out
		}
		work := uint64(e>>(f.kind&kindShift)) * ((uint64(parts[i]) + uint64(f.tileAdd)) * f.tile >> 32)
		if f.kind >= kindWhole || flags[i]&slowFlags != 0 || work == 0 && f.kind&kindDMA != 0 {
			s.slow[left&255] = uint8(i)
			left++
			continue
		}
		// The conversions forbid one rounding for several operations, which
		// machines with such an instruction would do. The time is below 2^63 by
		// the bounds on mult and base.
		cycles := float64(f.mult*float64(int64(work))) + f.base
		t := max(int64(float64(cycles*100)/f.clock), f.least)
		time[i] = uint64(t) + uint64(f.add[flags[i]>>dgeBit&3])
	}
	s.n = left
}

// rest fills the times of the rows that evaluate left, and reports whether some
// of them have opcodes without a cost.
func (p *plan) rest(lo int, s *some) (unlisted bool) {
	for _, i := range s.slow[:s.n] {
		f := &p.formulas[s.of[i]]
		s.time[i] = p.slow(lo+int(i), f)
		unlisted = unlisted || f.kind&kindDefault != 0
	}
	return unlisted
}

// leave writes how long rows lo to hi take and keep their lanes, and reports
// whether one takes longer than a row can have.
func (p *plan) leave(lo, hi int, s *some, issue, latency []uint32) (long bool) {
	in := &p.r.m.Instr
	lane, flags := in.Lane.View(lo, hi), in.Flags.View(lo, hi)
	issue, latency = issue[lo:hi], latency[lo:hi]
	time := s.time[:len(lane)]
	flags, issue, latency = flags[:len(time)], issue[:len(time)], latency[:len(time)]
	windows := p.windows
	all := uint64(0)
	for i, t := range time {
		all |= t
		w := &windows[lane[i]]
		// All ones where t reaches from: a branch here would be a coin toss.
		reaches := uint64(int64(w.from-1-t) >> 63)
		if flags[i]&components.FlagTrigger != 0 {
			reaches = 0
		}
		latency[i] = uint32(t)
		issue[i] = uint32(t - w.ns&reaches)
	}
	return all > math.MaxUint32
}

// slow is the latency of a row that the fast path leaves.
func (p *plan) slow(i int, f *formula) uint64 {
	in := &p.r.m.Instr
	if f.kind&(kindOther|kindDMA) != 0 || in.Flags.At(i)&components.FlagLoop != 0 {
		return p.r.latency(i, &p.r.costs[in.Opcode.At(i)])
	}
	e := in.Elems.At(i)
	if f.kind&kindOut != 0 && in.OutElems.At(i) > 0 {
		e = in.OutElems.At(i)
	}
	cycles := f.mult * float64(e>>(f.kind&kindShift))
	if f.kind&kindWhole != 0 {
		cycles = float64(uint64(cycles))
	}
	return uint64(max(int64(float64((float64(cycles)+f.base)*100)/f.clock), f.least))
}

// count adds the rows with a default cost among those of s that rest has, up to
// row cut and with it.
func (p *plan) count(lo, cut int, s *some) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.defaults == nil {
		p.defaults = map[components.Opcode]int{}
	}
	for _, i := range s.slow[:s.n] {
		if p.formulas[s.of[i]].kind&kindDefault != 0 && int(i) <= cut {
			p.defaults[p.r.m.Instr.Opcode.At(lo+int(i))]++
		}
	}
}

// Bits of the flags that choose a formula, or what a transfer adds.
const (
	dgeBit       = 5 // descriptors made by software, then by hardware
	twoInputsBit = 12
	srcPSUMBit   = 10
	src2PSUMBit  = 13
)

// The flags' own values hold the bits to what they are.
const (
	_ = -uint((components.FlagSWDGE | components.FlagHWDGE) ^ 3<<dgeBit)
	_ = -uint(components.FlagTwoInputs ^ 1<<twoInputsBit)
	_ = -uint(components.FlagSrcPSUM ^ 1<<srcPSUMBit)
	_ = -uint(components.FlagSrc2PSUM ^ 1<<src2PSUMBit)
)
