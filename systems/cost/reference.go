package cost

import (
	"perfsim/components"
	"perfsim/components/machine"
)

// reference costs instructions as the documented latency oracle does (docs/model.md,
// section 3): latency = read + execute, each a floor of cycles × 100 /
// clock, and an issue interval that leaves the lane one overlap window before
// the end (docs/model.md, section 4).
type reference struct {
	m     *components.Module
	ref   *machine.Reference
	clock machine.Clock
	costs []machine.Cost // by opcode

	collectives collectives
}

func newReference(m *components.Module, mach *machine.Machine) *reference {
	r := &reference{m: m, ref: &mach.Reference, clock: mach.Clock, collectives: findCollectives(m)}
	r.costs = make([]machine.Cost, m.NumOpcodes())
	for op := range r.costs {
		c, ok := mach.Reference.Costs[m.OpcodeName(components.Opcode(op))]
		if !ok {
			c = mach.Reference.Default
		}
		r.costs[op] = c
	}
	return r
}

func (r *reference) row(i int) (issue, latency uint64) {
	in := &r.m.Instr
	op := in.Opcode.At(i)
	cost := r.latency(i, &r.costs[op])
	return cost - r.window(cost, in.Lane.At(i), in.Flags.At(i)), cost
}

// window is how long before its end an operation of the given duration
// leaves its lane: docs/model.md, section 4.
func (r *reference) window(dur uint64, lane uint16, flags components.Flags) uint64 {
	if dur <= uint64(r.ref.OverlapCompute) || flags&components.FlagTrigger != 0 {
		return 0
	}
	switch l := lane % components.LanesPerCore; {
	case l == components.LaneDMA:
		if dur < uint64(r.ref.OverlapDMA) {
			return 0
		}
		return uint64(r.ref.OverlapDMA)
	case l >= components.LaneCC0:
		return 0
	}
	return uint64(r.ref.OverlapCompute)
}

// latency evaluates the cost formula of one instruction, in ns.
func (r *reference) latency(i int, c *machine.Cost) uint64 {
	in := &r.m.Instr
	flags := in.Flags.At(i)
	if flags&(components.FlagLoop) != 0 {
		return 0
	}
	n := uint64(in.Elems.At(i))
	dtype := in.DType.At(i)
	if !r.ref.CycleAccurate && (c.Form == "affine" || c.Form == "matmul" || c.Form == "fixed") {
		return uint64(r.ref.FixedCycles) * 100 / r.clockFor(i, c)
	}
	switch c.Form {
	case "fixed":
		return uint64(c.Base)
	case "affine":
		return affine(c, r.clockFor(i, c), n, dtype, flags)
	case "matmul":
		if out := uint64(in.OutElems.Get(i)); out > 0 {
			n = out // the free size of the moving tensor
		}
		return matmul(c, r.clockFor(i, c), n, dtype)
	case "dma":
		return r.dma(i)
	case "collective":
		bytes := in.DMABytes.Get(i)
		if bytes == 0 {
			bytes = n * uint64(in.Parts.At(i)) * uint64(dtype.Size())
		}
		return r.collective(i, c, bytes)
	}
	return 0
}

func (r *reference) clockFor(i int, c *machine.Cost) uint64 {
	if c.Clock != "" {
		return uint64(clockNamed(r.clock, c.Clock))
	}
	return uint64(clockOf(r.clock, r.m.Instr.Engine.At(i)))
}

// affine is floor(max(min, mult×N + base) × 100 / clock) ns for N elements
// per partition (docs/model.md, section 3).
func affine(c *machine.Cost, clock, n uint64, dtype components.DType, flags components.Flags) uint64 {
	a, b := flags&components.FlagSrcPSUM != 0, flags&components.FlagSrc2PSUM != 0
	mult, base := affineCoefficients(c, dtype.Size(), flags&components.FlagTwoInputs != 0 && a != b)
	// The conversion forbids one rounding for both operations, which machines
	// with such an instruction would do.
	cycles := float64(mult*float64(n)) + float64(base)
	cycles = max(cycles, float64(c.Min))
	return uint64(cycles * 100 / float64(clock))
}

// affineCoefficients are mult and base for elements of the given size; mixed
// says that one of two inputs is in PSUM and the other is not.
func affineCoefficients(c *machine.Cost, size int, mixed bool) (mult float64, base int) {
	mult, base = c.Mult, c.Base
	switch {
	case size == 2:
		if c.Mult16 > 0 {
			mult = c.Mult16
		}
		if c.Base16 > 0 {
			base = c.Base16
		}
	case size == 4:
		if c.Mult32 > 0 {
			mult = c.Mult32
		}
		if c.Base32 > 0 {
			base = c.Base32
		}
	}
	if c.MultPSUM > 0 && mixed {
		mult = c.MultPSUM
	}
	return mult, base
}

// matmul is 20·(5·(K>>1) + 5·base)/clock, the documented getLatencyMatmult
// with base 200: K/2 + 200 cycles. Types of four bytes multiply the part
// that depends on K by Mult32.
func matmul(c *machine.Cost, clock, k uint64, dtype components.DType) uint64 {
	cycles := k >> 1
	if dtype.Size() == 4 && c.Mult32 > 0 {
		cycles = uint64(float64(cycles) * c.Mult32)
	}
	return 20 * (5*cycles + 5*uint64(c.Base)) / clock
}

// dma is readInit + DGE overhead + execution of the documented DMACopy
// formula (docs/model.md, section 3). Where the instruction has no access patterns the
// bytes it moves are spread over all engines.
func (r *reference) dma(i int) uint64 {
	in := &r.m.Instr
	d := &r.ref.DMA
	flags := in.Flags.At(i)
	exec := DMAExec(d, uint64(in.Parts.At(i)), uint64(in.Elems.At(i)), uint64(in.DType.At(i).Size()), in.DMABytes.Get(i))
	if s := r.ref.HBMScale; s > 0 && s != 1 && flags&(components.FlagSrcDRAM|components.FlagDstDRAM) != 0 {
		exec = uint64(float64(exec) / s)
	}
	return uint64(d.ReadInit) + r.dgeOverhead(flags) + exec
}

// unusual reports whether a setting is on that the fast evaluation of many rows
// does not know.
func (r *reference) unusual() bool { return !r.ref.CycleAccurate || r.ref.HBMScale != 1 }

func (r *reference) dgeOverhead(flags components.Flags) uint64 {
	d := &r.ref.DMA
	cycles := d.DGENone
	switch {
	case flags&components.FlagSWDGE != 0:
		cycles = d.DGESW
	case flags&components.FlagHWDGE != 0:
		cycles = d.DGEHW
	}
	if d.DGEPlain {
		return uint64(cycles)
	}
	return uint64(cycles) * 100 / uint64(d.DGEClock)
}

// documentedEngines is over how many DMA engines the documented formula
// spreads a transfer.
const documentedEngines = 16

// DMAExec is the execution part of a DMA in ns: ((P+15)>>4)·(size·NEP)/div,
// or NEP·size·P/div8 for one-byte types. A transfer without access patterns
// (size·NEP·P of 0) takes bytes/div8.
func DMAExec(d *machine.DMACost, parts, nep, size, bytes uint64) uint64 {
	engines, all := spread(d)
	switch {
	case parts*nep*size == 0:
		return bytes / all
	case size == 1:
		return nep * parts / all
	}
	return (parts + engines - 1) / engines * (size * nep) / uint64(d.Div)
}

// spread is over how many engines a transfer goes and how many bytes a ns they
// move together.
func spread(d *machine.DMACost) (engines, all uint64) {
	engines, all = documentedEngines, uint64(d.Div8)
	if d.Engines > 0 {
		engines = uint64(d.Engines)
		all = max(all*engines/documentedEngines, 1)
	}
	return engines, all
}
