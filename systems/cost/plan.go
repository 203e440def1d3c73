package cost

import (
	"math"
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

// formula is floor(max(min, mult×(N >> shift) + base) × 100 / clock), with the
// shift in the lowest bit of kind; what else a kind has takes the slow path.
type formula struct {
	mult, base, min, clock float64
	kind                   uint32
}

// The bits of a formula's kind.
const (
	kindShift   = 1 << iota // N counts half
	kindOut                 // N is the size of the moving tensor where there is one
	kindWhole               // the product counts in whole cycles
	kindOther               // left to reference.latency
	kindDefault             // the cost of opcodes that have none
)

// window is how long before its end an operation leaves a lane, where it
// takes at least from ns, at most 2^62.
type window struct{ from, ns uint64 }

// The parts of a formula's index below the opcode.
const (
	sizeClasses     = 3 // element size: 2 bytes, 4 bytes, any other
	formulasPerCost = int(components.NumEngines) * sizeClasses * 2
)

func formulaIndex(engine components.Engine, size int, mixed int) uint32 {
	class := 2
	switch size {
	case 2:
		class = 0
	case 4:
		class = 1
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
	for op, c := range r.costs {
		_, listed := r.ref.Costs[r.m.OpcodeName(components.Opcode(op))]
		first, ok := at[key{c, listed}]
		if !ok {
			first = uint32(len(p.formulas))
			at[key{c, listed}] = first
			p.formulas = append(p.formulas, formulasOf(&c, r.clock, !listed, r.m.Instr.OutElems.Len() > 0)...)
		}
		p.of[op] = first
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

func formulasOf(c *machine.Cost, clock machine.Clock, isDefault, outElems bool) []formula {
	out := make([]formula, formulasPerCost)
	for e := range components.NumEngines {
		hz := float64(clockOf(clock, e))
		if c.Clock != "" {
			hz = float64(clockNamed(clock, c.Clock))
		}
		for _, size := range []int{1, 2, 4} {
			for mixed := range 2 {
				f := &out[formulaIndex(e, size, mixed)]
				f.clock = hz
				if isDefault {
					f.kind = kindDefault
				}
				switch c.Form {
				case "affine":
					mult, base := affineCoefficients(c, size, mixed == 1)
					f.mult, f.base, f.min = mult, float64(base), float64(c.Min)
				case "matmul":
					f.mult, f.base, f.kind = 1, float64(c.Base), f.kind|kindShift
					if outElems {
						f.kind |= kindOut
					}
					if size == 4 && c.Mult32 > 0 {
						f.mult, f.kind = c.Mult32, f.kind|kindWhole
					}
				case "fixed": // base ns, whatever the clock
					f.base, f.clock = float64(c.Base), 100
				case "none":
					f.clock = 100
				default:
					f.kind |= kindOther
				}
			}
		}
	}
	return out
}

// slowFlags keep a row from the fast path.
const slowFlags = components.FlagLoop | components.FlagTrigger

// fill writes issue and latency of rows lo to hi; it returns the first row
// that takes longer than a row can have, or hi.
func (p *plan) fill(lo, hi int, issue, latency []uint32) int {
	in := &p.r.m.Instr
	opcode, engine, lane := in.Opcode.View(lo, hi), in.Engine.View(lo, hi), in.Lane.View(lo, hi)
	flags, elems, dtype := in.Flags.View(lo, hi), in.Elems.View(lo, hi), in.DType.View(lo, hi)
	outElems := elems // a formula asks for it only where the column is there
	if in.OutElems.Len() > 0 {
		outElems = in.OutElems.View(lo, hi)
	}
	issue, latency = issue[lo:hi], latency[lo:hi]
	// Equal lengths spare the loop its bounds checks.
	n := len(opcode)
	engine, lane, flags, elems, outElems, dtype, issue, latency = engine[:n], lane[:n], flags[:n], elems[:n], outElems[:n], dtype[:n], issue[:n], latency[:n]
	var defaults map[components.Opcode]int
	defer func() { p.count(defaults) }()
	of, formulas, windows, class := p.of, p.formulas, p.windows, &p.class
	for i, op := range opcode {
		fl := flags[i]
		// One of two inputs in PSUM.
		mixed := uint32(fl>>twoInputsBit) & uint32(fl>>srcPSUMBit^fl>>src2PSUMBit) & 1
		f := &formulas[of[op]+(uint32(engine[i])*sizeClasses+uint32(class[dtype[i]]))*2+mixed]
		var t uint64
		if f.kind&^(kindShift|kindOut) == 0 && fl&slowFlags == 0 {
			// The size of the moving tensor where the formula and the row have one.
			e := elems[i]
			if out := outElems[i] & -(f.kind / kindOut); out != 0 {
				e = out
			}
			// The conversions forbid one rounding for several operations, which
			// machines with such an instruction would do.
			cycles := float64(f.mult*float64(e>>(f.kind&kindShift))) + f.base
			cycles = max(cycles, f.min)
			t = uint64(int64(float64(cycles*100) / f.clock)) // below 2^63 by the bounds on mult and base
		} else {
			if f.kind&kindDefault != 0 {
				if defaults == nil {
					defaults = map[components.Opcode]int{}
				}
				defaults[op]++
			}
			t = p.slow(lo+i, f)
		}
		w := &windows[lane[i]]
		if t > math.MaxUint32 {
			return lo + i
		}
		// All ones where t reaches from: a branch here would be a coin toss.
		long := uint64(int64(w.from-1-t) >> 63)
		if fl&components.FlagTrigger != 0 {
			long = 0
		}
		latency[i] = uint32(t)
		issue[i] = uint32(t - w.ns&long)
	}
	return hi
}

// slow is the latency of a row that the fast path leaves.
func (p *plan) slow(i int, f *formula) uint64 {
	in := &p.r.m.Instr
	if f.kind&kindOther != 0 || in.Flags.At(i)&components.FlagLoop != 0 {
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
	return uint64(float64(max(float64(cycles)+f.base, f.min)*100) / f.clock)
}

// count adds the rows with a default cost that one range has.
func (p *plan) count(defaults map[components.Opcode]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for op, n := range defaults {
		if p.defaults == nil {
			p.defaults = map[components.Opcode]int{}
		}
		p.defaults[op] += n
	}
}

// Bits of the flags that choose a formula.
const (
	twoInputsBit = 12
	srcPSUMBit   = 10
	src2PSUMBit  = 13
)

// The flags' own values hold the bits to what they are.
const (
	_ = -uint(components.FlagTwoInputs ^ 1<<twoInputsBit)
	_ = -uint(components.FlagSrcPSUM ^ 1<<srcPSUMBit)
	_ = -uint(components.FlagSrc2PSUM ^ 1<<src2PSUMBit)
)
