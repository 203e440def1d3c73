package cost

import (
	"math"
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
	// ops are the cases of an operation, by engine and by opcode: three lots of
	// opcodes, for an instruction as its opcode says, for a scan and for
	// scalar_tensor_tensor, which share an opcode with others.
	ops  [components.NumEngines][]operation
	pe   []PEKind
	cal  *machine.Calibrated
	rest *reference

	colCycles, fixed, fillNs, fillCycles, loadNs float64
}

// operation is the description of an opcode on an engine.
type operation struct {
	cases []opCase
	fn    bool // a case asks for the function
	// vectors says that a case asks for operands of one value a partition.
	vectors bool
	usual   bool // made up of what the engine usually takes
	// pointer marks an opcode whose second operand has one value a partition
	// where the module has no operands.
	pointer bool
}

type opCase struct {
	key  string
	when machine.OpCase
	cost machine.CalibratedOp
}

// PEKind is the kind of an opcode on the PE.
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
	"TENSOR_SCALAR_PTR": "TENSOR_SCALAR", "CAST": "COPY", "Reciprocal": "RECIPROCAL", "TensorTensor": "TENSOR_TENSOR", "Memset": "MEMSET", "BNStats": "BN_STATS",
	"BNStatsAggregate": "BN_AGGR", "Select": "SELECT", "CopyPredicated": "COPY_PREDICATED", "Max": "MAX8", "MaxIndex": "FIND_INDEX8",
	"MatchReplace": "MATCH_REPLACE8", "MaxIndexAndMatchReplace": "MATCH_REPLACE8", "StreamShuffle": "STREAM_SHUFFLE", "StreamTranspose": "STREAM_TRANSPOSE",
	"Dropout": "DROPOUT", "RangeSelect": "RANGE_SELECT", "Iota": "IOTA", "TensorScalarAffineSelect": "AFFINE_SELECT", "IndirectCopy": "LOCAL_GATHER",
	"ReadActivationAccumulator": "READ_ACCUMULATOR", "ActivationReadAccumulator": "READ_ACCUMULATOR", "DveReadAccumulator": "READ_ACCUMULATOR",
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
	byName := map[string][]opCase{}
	for _, key := range c.cal.OpNames() {
		when, err := machine.ParseOpCase(key)
		if err != nil {
			continue // machine.Check refuses these
		}
		name := when.Engine + "." + when.Opcode
		byName[name] = append(byName[name], opCase{key, when, c.cal.Ops[key]})
	}
	for e := range c.ops {
		engine := components.Engine(e).String()
		c.ops[e] = make([]operation, variants*n)
		for op := range n {
			name := m.OpcodeName(components.Opcode(op))
			for v := range variants {
				o := &c.ops[e][v*n+op]
				hardware := CalibratedOpName(name)
				if v > 0 {
					hardware = variantNames[v]
				}
				o.cases = byName[engine+"."+hardware]
				o.pointer = v == 0 && (name == "TensorScalarPtr" || name == "TENSOR_SCALAR_PTR")
				if len(o.cases) == 0 {
					if k, ok := usual(mach, engine, name); ok {
						o.cases, o.usual = []opCase{{engine + ".default", machine.OpCase{}, k}}, true
					}
				}
				for k := range o.cases {
					o.fn = o.fn || o.cases[k].when.Fn != ""
					o.vectors = o.vectors || o.cases[k].when.Vectors > 0
				}
			}
		}
	}
	get := func(name string) float64 { v, _ := c.cal.Constant(name); return v }
	c.colCycles, c.fixed = get("pe.column_cycles_32bit"), get("pe.matmul_fixed_cycles")
	c.fillNs, c.fillCycles, c.loadNs = get("pe.fill_ns"), get("pe.fill_cycles"), get("pe.load_16bit_full_ns")
	return c
}

// usual makes the entry of an opcode that has none on an engine: the machine's
// "ENGINE.default", which has what the operations that were measured there have
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
		k.PerElem, k.Base, k.Min = 0, float64(c.Base), max(k.Min, float64(c.Min))
	default:
		k.PerElem, k.Min = c.Mult, max(k.Min, float64(c.Min))
	}
	return k, true
}

// Usual reports whether instruction i has no entry of its own and takes what
// its engine usually does.
func (c *Nominal) Usual(i int) bool {
	o := c.operation(i)
	return o != nil && o.usual
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

// The lots of Nominal.ops.
const (
	variantPlain = iota
	variantScan
	variantScalarTT
	variants
)

var variantNames = [variants]string{variantScan: "TENSOR_TENSOR_SCAN", variantScalarTT: "SCALAR_TENSOR_TENSOR"}

func (c *Nominal) operation(i int) *operation {
	in := &c.m.Instr
	e := in.Engine.At(i)
	if e >= components.NumEngines {
		return nil
	}
	v := variantPlain
	switch flags := in.Flags.At(i); {
	case flags&components.FlagScan != 0:
		v = variantScan
	case flags&components.FlagScalarTT != 0:
		v = variantScalarTT
	}
	return &c.ops[e][v*len(c.pe)+int(in.Opcode.At(i))]
}

// Op returns the cost of instruction i, nil where its engine and opcode have
// none.
func (c *Nominal) Op(i int) *machine.CalibratedOp {
	if x := c.find(i); x != nil {
		return &x.cost
	}
	return nil
}

// Key returns the key of that cost in the description, empty where there is
// none.
func (c *Nominal) Key(i int) string {
	if x := c.find(i); x != nil {
		return x.key
	}
	return ""
}

// find returns the case that says most about instruction i.
func (c *Nominal) find(i int) *opCase {
	o := c.operation(i)
	if o == nil || len(o.cases) == 0 {
		return nil
	}
	if len(o.cases) == 1 && o.cases[0].when.Plain() {
		return &o.cases[0]
	}
	u := c.use(i, o)
	best, most := -1, -1
	for k := range o.cases {
		if n, ok := o.cases[k].when.Match(&u); ok && n > most {
			best, most = k, n
		}
	}
	if best < 0 {
		return nil
	}
	return &o.cases[best]
}

const anyPSUM = components.FlagSrcPSUM | components.FlagSrc2PSUM | components.FlagDstPSUM

// use returns the properties of instruction i that a case may depend on.
func (c *Nominal) use(i int, o *operation) machine.OpUse {
	in := &c.m.Instr
	flags := in.Flags.At(i)
	bits := 8 * in.DType.At(i).Size()
	u := machine.OpUse{In: bits, Out: bits, PSUM: flags&anyPSUM != 0, Strided: flags&components.FlagStrided != 0}
	if o.pointer {
		u.Vectors = 1
	}
	if o.fn {
		u.Fn = strings.ToLower(c.m.Symbols.String(in.Func.Get(i)))
	}
	if !o.vectors && flags&operandFlags == 0 {
		return u
	}
	t := &c.m.Operands
	lo, hi := t.Range(components.InstrID(i))
	if lo == hi && flags&components.FlagMixedTypes != 0 { // the other type is not said
		u.Out = 0
	}
	inputs, vectors, most := 0, 0, uint64(0)
	for r := lo; r < hi; r++ {
		if t.Kind.At(r) > components.OperandRegisterAP || t.NumDims.At(r) == 0 {
			continue
		}
		first := int(t.Dims.At(r))
		last := first + int(t.NumDims.At(r)) - 1
		n := uint64(1)
		for d := first + 1; d <= last; d++ {
			n *= t.Count.At(d)
		}
		if step := t.Step.At(last); last > first && t.Count.At(last) > 1 && (step >= 16 || step <= -16) {
			u.Stride16 = true
		}
		size := 8 * t.DType.At(r).Size()
		switch t.Role.At(r) {
		case components.RoleOut:
			u.Out = size
		case components.RoleIn:
			inputs++
			if n <= 1 {
				vectors++
			}
			if n > most {
				most, u.In = n, size
			}
		}
	}
	// Where all inputs have one element a partition, one of them is the tensor.
	u.Vectors = max(u.Vectors, min(vectors, inputs-1))
	return u
}

// Evaluate returns the issue interval, the time to the visible result and the
// least distance of results, in ns, of an operation k of instruction i.
func (c *Nominal) Evaluate(k *machine.CalibratedOp, i int) (issue, latency, spacing float64) {
	in := &c.m.Instr
	n := float64(in.Elems.At(i))
	cycle := 100 / float64(clockOf(c.clock, in.Engine.At(i)))
	cycles := max(k.PerElem*n+k.Base, k.Min)
	if k.Block > 0 {
		if blocks := math.Ceil(n/32) * math.Ceil(float64(in.Parts.At(i))/32); blocks > 1 {
			cycles = k.Block * blocks
		}
	}
	issue = cycles * cycle
	if k.SpacingBase > 0 {
		spacing = (k.PerElem*n + k.SpacingBase) * cycle
	}
	return issue, issue + k.LatencyNs, spacing
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

// remembered is row, for about n rows, with a memo of its own.
func (c *Nominal) remembered(n int) func(i int) (issue, latency uint64) {
	memo := NewMemo[[2]uint64](n)
	row := func(i int) [2]uint64 {
		issue, latency := c.row(i)
		return [2]uint64{issue, latency}
	}
	return func(i int) (issue, latency uint64) {
		x := memo.Of(c, i, row)
		return x[0], x[1]
	}
}

// Rest is the reference cost of instruction i, in ns: what has no calibrated
// one takes.
func (c *Nominal) Rest(i int) (issue, latency float64) {
	is, lat := c.rest.row(i)
	return float64(is), float64(lat)
}
