package cost

import (
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
)

// Nominal is the cost of data-path instructions in the calibrated model:
// what each takes alone, with the PE at full clock. The placement of that
// model (systems/calibrated) adds what depends on the state of the machine.
// Instructions of the other engines' sequencers and the DMA fall back to the
// reference formula.
type Nominal struct {
	m     *components.Module
	clock machine.Clock
	ops   [components.NumEngines][]*machine.CalibratedOp // by opcode, nil where there is none
	// usual tells which of them are made up of what the engine usually takes.
	usual [components.NumEngines][]bool
	pe    []PEKind
	cal   *machine.Calibrated
	rest  *reference

	colCycles, fixed, fillNs, fillCycles, loadNs float64
}

// PEKind tells what an opcode does on the PE.
type PEKind uint8

// The kinds.
const (
	PENone   PEKind = iota
	PELoad          // load the stationary tensor
	PEStream        // stream the moving tensor
	PEBoth          // the compiler's matmul: both
)

// calibratedName maps the compiler's instruction types to the hardware
// operations that profiles name.
var calibratedName = map[string]string{
	"Activation": "ACTIVATE", "TensorCopy": "COPY", "GenericCopy": "COPY", "AbstractCopy": "COPY", "TensorCopyDynamicSrc": "COPY_DYNAMIC",
	"TensorCopyDynamicDst": "COPY_DYNAMIC", "TensorReduce": "TENSOR_REDUCE", "TensorScalar": "TENSOR_SCALAR", "TensorScalarPtr": "TENSOR_SCALAR",
	"TENSOR_SCALAR_PTR": "TENSOR_SCALAR", "Reciprocal": "RECIPROCAL", "TensorTensor": "TENSOR_TENSOR", "Memset": "MEMSET", "BNStats": "BN_STATS",
	"BNStatsAggregate": "BN_AGGR", "Select": "SELECT", "CopyPredicated": "COPY_PREDICATED", "Max": "MAX8", "MaxIndex": "FIND_INDEX8",
	"MatchReplace": "MATCH_REPLACE8", "MaxIndexAndMatchReplace": "MATCH_REPLACE8", "StreamShuffle": "STREAM_SHUFFLE", "StreamTranspose": "STREAM_TRANSPOSE",
	"Dropout": "DROPOUT", "RangeSelect": "RANGE_SELECT", "Iota": "IOTA", "TensorScalarAffineSelect": "AFFINE_SELECT", "IndirectCopy": "LOCAL_GATHER",
}

// CalibratedOpName is the hardware operation that an opcode of the compiler
// stands for, the name itself where there is no other.
func CalibratedOpName(opcode string) string {
	if n, ok := calibratedName[opcode]; ok {
		return n
	}
	return opcode
}

// NewNominal prepares the costs of a module's opcodes.
func NewNominal(m *components.Module, mach *machine.Machine) *Nominal {
	c := &Nominal{m: m, clock: mach.Clock, cal: &mach.Calibrated, rest: newReference(m, mach)}
	n := m.NumOpcodes()
	c.pe = make([]PEKind, n)
	for op := range n {
		c.pe[op] = peKind(m.OpcodeName(components.Opcode(op)))
	}
	for e := range c.ops {
		engine := components.Engine(e).String()
		c.ops[e], c.usual[e] = make([]*machine.CalibratedOp, n), make([]bool, n)
		for op := range n {
			name := m.OpcodeName(components.Opcode(op))
			if k, ok := c.cal.Ops[engine+"."+CalibratedOpName(name)]; ok {
				c.ops[e][op] = &k
			} else if k, ok := usual(mach, engine, name); ok {
				c.ops[e][op], c.usual[e][op] = &k, true
			}
		}
	}
	get := func(name string) float64 { v, _ := c.cal.Constant(name); return v }
	c.colCycles, c.fixed = get("pe.column_cycles_32bit"), get("pe.matmul_fixed_cycles")
	c.fillNs, c.fillCycles, c.loadNs = get("pe.fill_ns"), get("pe.fill_cycles"), get("pe.load_16bit_full_ns")
	return c
}

// usual makes the entry of an opcode that has none on an engine: the machine's
// "ENGINE.default", which is what the operations that were measured there have
// in common, with the documented cycles per element where the opcode is
// documented. Documented operations of a fixed number of cycles keep that
// number. There is none for what the data path does not execute.
func usual(mach *machine.Machine, engine, opcode string) (machine.CalibratedOp, bool) {
	k, ok := mach.Calibrated.Ops[engine+".default"]
	if !ok || strings.HasPrefix(opcode, "DMA_") {
		return k, false
	}
	switch c, listed := mach.Reference.Costs[opcode]; {
	case !listed:
	case c.Form != "affine":
		return k, false
	case c.Mult == 0:
		k.PerElem, k.Base, k.BasePSUM, k.Min = 0, float64(c.Base), 0, max(k.Min, float64(c.Min))
	default:
		k.PerElem, k.PerElemPSUM, k.Min = c.Mult, c.MultPSUM, max(k.Min, float64(c.Min))
	}
	return k, true
}

// Usual tells whether instruction i has no entry of its own and takes what its
// engine usually does.
func (c *Nominal) Usual(i int) bool {
	e := c.m.Instr.Engine.At(i)
	return e < components.NumEngines && c.usual[e][c.m.Instr.Opcode.At(i)]
}

func peKind(opcode string) PEKind {
	switch opcode {
	case "LDWEIGHTS":
		return PELoad
	case "MATMUL":
		return PEStream
	case "Matmult", "MatmultBase", "MatmultSparse", "MatmultMx":
		return PEBoth
	}
	return PENone
}

// PE returns what instruction i does on the PE.
func (c *Nominal) PE(i int) PEKind { return c.pe[c.m.Instr.Opcode.At(i)] }

// Op returns the cost entry of instruction i, nil where its engine and opcode
// have none.
func (c *Nominal) Op(i int) *machine.CalibratedOp {
	e := c.m.Instr.Engine.At(i)
	if e >= components.NumEngines {
		return nil
	}
	return c.ops[e][c.m.Instr.Opcode.At(i)]
}

const anyPSUM = components.FlagSrcPSUM | components.FlagSrc2PSUM | components.FlagDstPSUM

// Evaluate returns the issue interval, the time to the visible result and the
// least distance of results, in ns, of an operation k of instruction i.
func (c *Nominal) Evaluate(k *machine.CalibratedOp, i int) (issue, latency, spacing float64) {
	in := &c.m.Instr
	flags := in.Flags.At(i)
	n := float64(in.Elems.At(i))
	per, base, lat := k.PerElem, k.Base, k.LatencyNs
	switch {
	case flags&anyPSUM != 0:
		per, base, lat = or(k.PerElemPSUM, per), or(k.BasePSUM, base), or(k.LatencyPSUM, lat)
	case in.DType.At(i).Size() == 2 && flags&(components.FlagMixedTypes|components.FlagStrided) == 0:
		per = or(k.PerElem16, per)
	}
	cycle := 100 / float64(clockOf(c.clock, in.Engine.At(i)))
	issue = max(per*n+base, k.Min) * cycle
	if k.SpacingBase > 0 {
		spacing = (per*n + k.SpacingBase) * cycle
	}
	return issue, issue + lat, spacing
}

func or(v, otherwise float64) float64 {
	if v != 0 {
		return v
	}
	return otherwise
}

// Columns returns the columns that a matmul streams in one pass, in PE
// cycles, and how many passes it takes: one, or two for 32-bit operands that
// are not merely transposed.
func (c *Nominal) Columns(i int) (cycles float64, passes int) {
	in := &c.m.Instr
	n := float64(in.OutElems.Get(i))
	if n == 0 {
		n = float64(in.Elems.At(i))
	}
	if d := in.DType.At(i); d.Size() == 4 && d != components.Float32R {
		n *= c.colCycles
		if in.Flags.At(i)&components.FlagTranspose == 0 && c.PE(i) == PEBoth {
			return n, 2
		}
	}
	return n, 1
}

// row is the nominal cost in whole ns.
func (c *Nominal) row(i int) (issue, latency uint64) {
	if kind := c.PE(i); kind != PENone {
		cycle := 100 / float64(c.clock.PEArray)
		cycles, passes := c.Columns(i)
		is := (cycles + c.fixed) * cycle * float64(passes)
		lat := is + c.fillNs + c.fillCycles*cycle
		switch kind {
		case PELoad:
			is, lat = c.loadNs, c.loadNs
		case PEBoth:
			lat += c.loadNs
		}
		return uint64(is + 0.5), uint64(lat + 0.5)
	}
	k := c.Op(i)
	if k == nil {
		return c.rest.row(i)
	}
	is, lat, _ := c.Evaluate(k, i)
	return uint64(is + 0.5), uint64(lat + 0.5)
}

// Rest is the reference cost of instruction i, in ns: what has no calibrated
// one takes.
func (c *Nominal) Rest(i int) (issue, latency float64) {
	is, lat := c.rest.row(i)
	return float64(is), float64(lat)
}
