package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
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
var chains = [opgraph.NumOpKinds][]step{
	opgraph.OpExp:                  {act("exp")},
	opgraph.OpExpm1:                {act("exp"), scalar("subtract")},
	opgraph.OpLog:                  {act("ln")},
	opgraph.OpLog1p:                {act("ln")}, // the bias of the activation adds the one
	opgraph.OpTanh:                 {act("tanh")},
	opgraph.OpLogistic:             {act("sigmoid")},
	opgraph.OpRsqrt:                {act("rsqrt")},
	opgraph.OpSqrt:                 {act("sqrt")},
	opgraph.OpErf:                  {act("erf")},
	opgraph.OpSin:                  {act("sin")},
	opgraph.OpCos:                  {act("sin")}, // the bias of the activation shifts by π/2
	opgraph.OpTan:                  {act("sin"), act("sin"), reciprocal, tensor("mult")},
	opgraph.OpCbrt:                 {act("ln"), act("exp")},
	opgraph.OpSinh:                 {act("exp"), reciprocal, tensor("add"), scalar("mult")},
	opgraph.OpCosh:                 {act("exp"), reciprocal, tensor("add"), scalar("mult")},
	opgraph.OpAsin:                 {act("arctan"), scalar("add")},
	opgraph.OpAcos:                 {act("arctan"), scalar("add")},
	opgraph.OpAtan:                 {act("arctan"), scalar("add")},
	opgraph.OpAtan2:                {reciprocal, tensor("mult"), act("arctan"), scalar("add")},
	opgraph.OpAsinh:                {act("square"), scalar("add"), act("sqrt"), act("ln")},
	opgraph.OpAcosh:                {act("square"), scalar("add"), act("sqrt"), act("ln")},
	opgraph.OpAtanh:                {act("square"), scalar("add"), act("sqrt"), act("ln")},
	opgraph.OpPower:                {act("ln"), pair("mult"), act("exp")},
	opgraph.OpDivide:               {reciprocal, tensor("mult")}, // by a scalar: one pass
	opgraph.OpRemainder:            {pair("mod")},
	opgraph.OpAdd:                  {pair("add")},
	opgraph.OpSubtract:             {pair("subtract")},
	opgraph.OpMultiply:             {pair("mult")},
	opgraph.OpMulhi:                {tensor("mult"), scalar("logical_shift_right")},
	opgraph.OpMaximum:              {pair("max")},
	opgraph.OpMinimum:              {pair("min")},
	opgraph.OpAnd:                  {pair("bitwise_and")},
	opgraph.OpOr:                   {pair("bitwise_or")},
	opgraph.OpXor:                  {pair("bitwise_xor")},
	opgraph.OpShiftLeft:            {pair("logical_shift_left")},
	opgraph.OpShiftRightLogical:    {pair("logical_shift_right")},
	opgraph.OpShiftRightArithmetic: {pair("arith_shift_right")},
	opgraph.OpCompare:              {pair("compare")},
	opgraph.OpComplex:              {tensor("copy")},
	opgraph.OpStochasticConvert:    {tensor("copy")},
	opgraph.OpSelect:               {on(components.OpcodeSelect, onDVE, "select")},
	opgraph.OpClamp:                {scalar("max_min")}, // two operators cost what one costs
	opgraph.OpAbs:                  {scalar("abs_max")},
	opgraph.OpNegate:               {scalar("mult")},
	opgraph.OpNot:                  {scalar("mult")},
	opgraph.OpSign:                 {act("sign")},
	opgraph.OpIsFinite:             {scalar("is_equal")},
	opgraph.OpCeil:                 {round, tensor("subtract")},
	opgraph.OpFloor:                {round, tensor("subtract")},
	opgraph.OpRoundNearestAfz:      {round, tensor("subtract")},
	opgraph.OpRoundNearestEven:     {round, tensor("subtract")},
	opgraph.OpClz:                  {scalar("logical_shift_right"), scalar("bitwise_and"), scalar("add"), scalar("logical_shift_right"), scalar("add")},
	opgraph.OpPopcnt:               {scalar("logical_shift_right"), scalar("bitwise_and"), scalar("add"), scalar("logical_shift_right"), scalar("add")},
	opgraph.OpReducePrecision:      {scalar("bitwise_and")},
	opgraph.OpIota:                 {on(components.OpcodeIota, onPool, "iota")},
	opgraph.OpRng:                  {on(components.OpcodeRng, onPool, "rng")},
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
func stepsOf(kind opgraph.OpKind, scalarArg bool, value float64, known bool) []step {
	chain := chains[kind]
	switch {
	case chain == nil:
		return []step{on(components.OpcodeTensorCopy, onAny, "copy")}
	case kind == opgraph.OpPower && known && powers[value] != nil:
		chain = powers[value]
	case kind == opgraph.OpDivide && scalarArg:
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
func mappable(k opgraph.OpKind) bool { return k.IsElementwise() || k.Is(opgraph.TraitMapped) }
