package lower

import (
	"slices"

	"perfsim/components"
)

// step is one engine instruction that an elementwise operator takes.
type step struct {
	op  components.Opcode
	eng components.Engine // Unassigned: Activation or DVE, whichever has less to do
	fn  string
	// either is an operation of two tensors that takes a scalar constant too.
	either bool
}

var (
	onACT  = components.Activation
	onDVE  = components.DVE
	onPool = components.Pool
	onAny  = components.Unassigned
)

func on(op components.Opcode, e components.Engine, fn string) step {
	return step{op: op, eng: e, fn: fn}
}
func act(fn string) step    { return on(components.OpcodeActivation, onACT, fn) }
func tensor(fn string) step { return on(components.OpcodeTensorTensor, onDVE, fn) }
func scalar(fn string) step { return on(components.OpcodeTensorScalar, onDVE, fn) }
func pair(fn string) step {
	return step{op: components.OpcodeTensorTensor, eng: onDVE, fn: fn, either: true}
}

var (
	reciprocal = on(components.OpcodeReciprocal, onDVE, "reciprocal")
	round      = on(components.OpcodeTensorCopy, onDVE, "round")
)

// chains has the instructions of each elementwise operator. The chains for
// functions without an instruction of their own are ours.
var chains = [components.NumOpKinds][]step{
	components.OpExp:                  {act("exp")},
	components.OpExpm1:                {act("exp"), scalar("subtract")},
	components.OpLog:                  {act("ln")},
	components.OpLog1p:                {act("ln")}, // the bias of the activation adds the one
	components.OpTanh:                 {act("tanh")},
	components.OpLogistic:             {act("sigmoid")},
	components.OpRsqrt:                {act("rsqrt")},
	components.OpSqrt:                 {act("sqrt")},
	components.OpErf:                  {act("erf")},
	components.OpSin:                  {act("sin")},
	components.OpCos:                  {act("sin")}, // the bias of the activation shifts by π/2
	components.OpTan:                  {act("sin"), act("sin"), reciprocal, tensor("mult")},
	components.OpCbrt:                 {act("ln"), act("exp")},
	components.OpSinh:                 {act("exp"), reciprocal, tensor("add"), scalar("mult")},
	components.OpCosh:                 {act("exp"), reciprocal, tensor("add"), scalar("mult")},
	components.OpAsin:                 {act("arctan"), scalar("add")},
	components.OpAcos:                 {act("arctan"), scalar("add")},
	components.OpAtan:                 {act("arctan"), scalar("add")},
	components.OpAtan2:                {reciprocal, tensor("mult"), act("arctan"), scalar("add")},
	components.OpAsinh:                {act("square"), scalar("add"), act("sqrt"), act("ln")},
	components.OpAcosh:                {act("square"), scalar("add"), act("sqrt"), act("ln")},
	components.OpAtanh:                {act("square"), scalar("add"), act("sqrt"), act("ln")},
	components.OpPower:                {act("ln"), pair("mult"), act("exp")},
	components.OpDivide:               {reciprocal, tensor("mult")}, // by a scalar: one pass
	components.OpRemainder:            {pair("mod")},
	components.OpAdd:                  {pair("add")},
	components.OpSubtract:             {pair("subtract")},
	components.OpMultiply:             {pair("mult")},
	components.OpMulhi:                {tensor("mult"), scalar("logical_shift_right")},
	components.OpMaximum:              {pair("max")},
	components.OpMinimum:              {pair("min")},
	components.OpAnd:                  {pair("bitwise_and")},
	components.OpOr:                   {pair("bitwise_or")},
	components.OpXor:                  {pair("bitwise_xor")},
	components.OpShiftLeft:            {pair("logical_shift_left")},
	components.OpShiftRightLogical:    {pair("logical_shift_right")},
	components.OpShiftRightArithmetic: {pair("arith_shift_right")},
	components.OpCompare:              {pair("compare")},
	components.OpComplex:              {tensor("copy")},
	components.OpStochasticConvert:    {tensor("copy")},
	components.OpSelect:               {on(components.OpcodeSelect, onDVE, "select")},
	components.OpClamp:                {scalar("max_min")}, // two operators cost what one costs
	components.OpAbs:                  {scalar("abs_max")},
	components.OpNegate:               {scalar("mult")},
	components.OpNot:                  {scalar("mult")},
	components.OpSign:                 {act("sign")},
	components.OpIsFinite:             {scalar("is_equal")},
	components.OpCeil:                 {round, tensor("subtract")},
	components.OpFloor:                {round, tensor("subtract")},
	components.OpRoundNearestAfz:      {round, tensor("subtract")},
	components.OpRoundNearestEven:     {round, tensor("subtract")},
	components.OpClz:                  {scalar("logical_shift_right"), scalar("bitwise_and"), scalar("add"), scalar("logical_shift_right"), scalar("add")},
	components.OpPopcnt:               {scalar("logical_shift_right"), scalar("bitwise_and"), scalar("add"), scalar("logical_shift_right"), scalar("add")},
	components.OpReducePrecision:      {scalar("bitwise_and")},
	components.OpIota:                 {on(components.OpcodeIota, onPool, "iota")},
	components.OpRng:                  {on(components.OpcodeRng, onPool, "rng")},
}

// powers are the exponents with chains of their own.
var powers = map[float64][]step{
	2:    {act("square")},
	0.5:  {act("sqrt")},
	-0.5: {act("rsqrt")},
	-1:   {reciprocal},
	3:    {act("square"), tensor("mult")},
}

// stepsOf returns the instructions of an elementwise operator, a copy where
// none is listed. scalarArg is true where one of two operands is a scalar
// constant, value is that, where it is known.
func stepsOf(kind components.OpKind, scalarArg bool, value float64, known bool) []step {
	chain := chains[kind]
	switch {
	case chain == nil:
		return []step{on(components.OpcodeTensorCopy, onAny, "copy")}
	case kind == components.OpPower && known && powers[value] != nil:
		chain = powers[value]
	case kind == components.OpDivide && scalarArg:
		return []step{scalar("divide")}
	}
	out := slices.Clone(chain)
	for i := range out {
		if out[i].either && scalarArg {
			out[i].op = components.OpcodeTensorScalar
		}
		out[i].either = false
	}
	return out
}

// mappable reports whether an operator is part of a pass over tiles.
func mappable(k components.OpKind) bool { return k.IsElementwise() || k.Is(components.TraitMapped) }
