package fit

import (
	"fmt"
	"strings"

	"perfsim/components/machine"
)

// Scale gives machine to the calibrated constants of from, scaled by what is
// documented of both:
//
//   - cycles stay cycles; times of an engine's sequencer and data path go with
//     the ratio of the engine's clocks, those of the PE with that of the array,
//     the governor's window with that of the base (Activation) clock;
//   - the rate of a DMA engine is the documented one: published counters of trn1
//     sustain 263 bytes a ns of 16 engines, where a ratio to the rate fitted on
//     trn2 would allow 322; latencies of the memory and of descriptor
//     generation stay;
//   - machines before trn2 have no documented clock governor: theirs is off;
//   - their DVE takes one element a cycle, as documented, and two cycles for an
//     element of two tensors in SBUF (one where both are 16-bit): the fast modes
//     came with trn2.
//
// Everything scaled is marked so; what this project chose stays marked as
// chosen, and what is documented and does not change as documented.
func Scale(from, to *machine.Machine) *machine.Machine {
	c := clone(to)
	c.Calibrated.Scaled = fmt.Sprintf("from %s by documented clocks and rates", from.Name)
	c.Calibrated.Ops = map[string]machine.CalibratedOp{}
	c.Calibrated.Constants = map[string]machine.Constant{}
	clock := func(m *machine.Machine, engine string) float64 {
		switch engine {
		case "PE":
			return float64(m.Clock.PEArray)
		case "Activation":
			return float64(m.Clock.Activation)
		case "Pool":
			return float64(m.Clock.Pool)
		case "DVE":
			return float64(m.Clock.DVE)
		}
		return float64(m.Clock.SP)
	}
	ratio := func(engine string) float64 { return clock(from, engine) / clock(to, engine) }
	for _, name := range from.Calibrated.OpNames() {
		op := from.Calibrated.Ops[name]
		was := op
		r := ratio(engineOf(name))
		op.LatencyNs = round(op.LatencyNs * r)
		if to.Arch < 30 && from.Arch >= 30 {
			withoutFastModes(name, &op)
		}
		if op.Mark == machine.MarkFitted || op.Mark == machine.MarkLaw || op.Mark == machine.MarkDocumented && op != was {
			op.Mark, op.Samples, op.Spread = machine.MarkScaled, 0, 0
		}
		if own, ok := to.Calibrated.Ops[name]; ok && own.Mark == machine.MarkOurs && op.Mark == machine.MarkScaled {
			op = own // chosen for this machine, with a reason among its assumptions
		}
		c.Calibrated.Ops[name] = op
	}
	for _, name := range from.Calibrated.Names() {
		k := from.Calibrated.Constants[name]
		part := strings.Split(name, ".")
		ns := strings.HasSuffix(name, "_ns") && !strings.HasSuffix(name, "bytes_per_ns")
		switch {
		case part[0] == "seq" && ns, part[0] == "sync" && ns:
			k.Value *= ratio(part[1])
		case part[0] == "pe" && ns:
			k.Value *= ratio("PE")
		case name == "governor.window_ns":
			k.Value *= ratio("Activation")
		case name == "governor.slow_rate" && to.Arch < 30:
			k.Value = 1
		case strings.HasPrefix(name, "dma.trigger_SP"), strings.HasPrefix(name, "dma.trigger_Activation"):
			k.Value *= ratio("Activation")
		case name == "dma.bytes_per_ns":
			k = machine.Constant{Value: to.Memory.DMARate, Mark: machine.MarkDocumented}
		}
		k.Value = round(k.Value)
		switch {
		case name == "dma.bytes_per_ns":
		case k.Mark == machine.MarkFitted, k.Mark == machine.MarkLaw, k.Mark == machine.MarkDocumented && k.Value != round(from.Calibrated.Constants[name].Value):
			k = machine.Constant{Value: k.Value, Mark: machine.MarkScaled}
		}
		c.Calibrated.Constants[name] = k
	}
	return c
}

// withoutFastModes gives an operation of the DVE the cycles per element that
// NeuronCore-v2 documents.
func withoutFastModes(key string, op *machine.CalibratedOp) {
	c, err := machine.ParseOpCase(key)
	if err != nil || c.Engine != "DVE" || op.PerElem == 0 {
		return
	}
	least := 1.0
	switch c.Opcode {
	case "TENSOR_TENSOR", "COPY_PREDICATED", "SCALAR_TENSOR_TENSOR":
		if !c.PSUM && !(c.In == 16 && c.Out == 16 && !c.Strided) {
			least = 2
		}
	case "MEMSET":
		return // measured at less on trn2, where nothing is read
	}
	if op.PerElem < least {
		op.PerElem, op.Mark, op.Samples, op.Spread = least, machine.MarkDocumented, 0, 0
	}
}
