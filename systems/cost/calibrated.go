package cost

import (
	"perfsim/components"
	"perfsim/components/machine"
)

// calibrated costs instructions with a separate issue interval and latency
// per opcode, fitted to measured profiles. Opcodes without a fit fall back to
// the reference formula, which then is both.
type calibrated struct {
	m     *components.Module
	clock machine.Clock
	ops   []machine.CalibratedOp
	known []bool
	rest  *reference
}

func newCalibrated(m *components.Module, mach *machine.Machine) *calibrated {
	c := &calibrated{m: m, clock: mach.Clock, rest: newReference(m, mach)}
	c.ops = make([]machine.CalibratedOp, m.NumOpcodes())
	c.known = make([]bool, m.NumOpcodes())
	for op := range c.ops {
		c.ops[op], c.known[op] = mach.Calibrated.Ops[m.OpcodeName(components.Opcode(op))]
	}
	return c
}

func (c *calibrated) row(i int) (issue, latency uint64) {
	in := &c.m.Instr
	op := in.Opcode.At(i)
	if !c.known[op] {
		return c.rest.row(i)
	}
	k := &c.ops[op]
	n := float64(in.Elems.At(i))
	clock := float64(clockOf(c.clock, in.Engine.At(i)))
	if in.Engine.At(i) == components.PE {
		if out := in.OutElems.Get(i); out > 0 {
			n = float64(out)
		}
		clock = float64(c.clock.PEArray)
	}
	cycles := max(k.IssuePerElem*n+k.IssueBase, k.IssueMin)
	issue = uint64(cycles*100/clock + 0.5)
	return issue, issue + uint64(k.LatencyNs+0.5)
}
