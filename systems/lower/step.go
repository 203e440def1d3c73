package lower

import "perfsim/components"

// step is one engine instruction that an elementwise operator takes.
type step struct {
	op  components.Opcode
	eng components.Engine // Unassigned: Activation or DVE, whichever has less to do
	fn  string
}

var (
	onACT  = components.Activation
	onDVE  = components.DVE
	onPool = components.Pool
	onAny  = components.Unassigned
)

func act(fn string) step    { return step{components.OpcodeActivation, onACT, fn} }
func tensor(fn string) step { return step{components.OpcodeTensorTensor, onDVE, fn} }
func scalar(fn string) step { return step{components.OpcodeTensorScalar, onDVE, fn} }

// stepsOf returns the instructions of an elementwise operator. scalarArg
// tells that one of two operands is a scalar constant, exp is its value where
// it is known. The chains for functions without an instruction of their own
// are ours.
func stepsOf(kind components.OpKind, scalarArg bool, value float64, known bool) []step {
	pair := func(fn string) []step {
		if scalarArg {
			return []step{scalar(fn)}
		}
		return []step{tensor(fn)}
	}
	switch kind {
	case components.OpExp:
		return []step{act("exp")}
	case components.OpExpm1:
		return []step{act("exp"), scalar("subtract")}
	case components.OpLog:
		return []step{act("ln")}
	case components.OpLog1p:
		return []step{act("ln")} // the bias of the activation adds the one
	case components.OpTanh:
		return []step{act("tanh")}
	case components.OpLogistic:
		return []step{act("sigmoid")}
	case components.OpRsqrt:
		return []step{act("rsqrt")}
	case components.OpSqrt:
		return []step{act("sqrt")}
	case components.OpErf:
		return []step{act("erf")}
	case components.OpSin:
		return []step{act("sin")}
	case components.OpCos:
		return []step{act("sin")} // the bias of the activation shifts by π/2
	case components.OpTan:
		return []step{act("sin"), act("sin"), {components.OpcodeReciprocal, onDVE, "reciprocal"}, tensor("mult")}
	case components.OpCbrt:
		return []step{act("ln"), act("exp")}
	case components.OpSinh, components.OpCosh:
		return []step{act("exp"), {components.OpcodeReciprocal, onDVE, "reciprocal"}, tensor("add"), scalar("mult")}
	case components.OpAsin, components.OpAcos, components.OpAtan:
		return []step{act("arctan"), scalar("add")}
	case components.OpAtan2:
		return []step{{components.OpcodeReciprocal, onDVE, "reciprocal"}, tensor("mult"), act("arctan"), scalar("add")}
	case components.OpAsinh, components.OpAcosh, components.OpAtanh:
		return []step{act("square"), scalar("add"), act("sqrt"), act("ln")}
	case components.OpPower:
		switch {
		case known && value == 2:
			return []step{act("square")}
		case known && value == 0.5:
			return []step{act("sqrt")}
		case known && value == -0.5:
			return []step{act("rsqrt")}
		case known && value == -1:
			return []step{{components.OpcodeReciprocal, onDVE, "reciprocal"}}
		case known && value == 3:
			return []step{act("square"), tensor("mult")}
		}
		return append(append([]step{act("ln")}, pair("mult")...), act("exp"))
	case components.OpDivide:
		if scalarArg {
			return []step{scalar("divide")}
		}
		return []step{{components.OpcodeReciprocal, onDVE, "reciprocal"}, tensor("mult")}
	case components.OpRemainder:
		return pair("mod")
	case components.OpAdd:
		return pair("add")
	case components.OpSubtract:
		return pair("subtract")
	case components.OpMultiply:
		return pair("mult")
	case components.OpMulhi:
		return []step{tensor("mult"), scalar("logical_shift_right")}
	case components.OpMaximum:
		return pair("max")
	case components.OpMinimum:
		return pair("min")
	case components.OpAnd:
		return pair("bitwise_and")
	case components.OpOr:
		return pair("bitwise_or")
	case components.OpXor:
		return pair("bitwise_xor")
	case components.OpShiftLeft:
		return pair("logical_shift_left")
	case components.OpShiftRightLogical:
		return pair("logical_shift_right")
	case components.OpShiftRightArithmetic:
		return pair("arith_shift_right")
	case components.OpCompare:
		return pair("compare")
	case components.OpComplex, components.OpStochasticConvert:
		return []step{tensor("copy")}
	case components.OpSelect:
		return []step{{components.OpcodeSelect, onDVE, "select"}}
	case components.OpClamp:
		return []step{scalar("max_min")} // two operators cost what one costs
	case components.OpAbs:
		return []step{scalar("abs_max")}
	case components.OpNegate, components.OpNot:
		return []step{scalar("mult")}
	case components.OpSign:
		return []step{act("sign")}
	case components.OpIsFinite:
		return []step{scalar("is_equal")}
	case components.OpCeil, components.OpFloor, components.OpRoundNearestAfz, components.OpRoundNearestEven:
		return []step{{components.OpcodeTensorCopy, onDVE, "round"}, tensor("subtract")}
	case components.OpClz, components.OpPopcnt:
		return []step{scalar("logical_shift_right"), scalar("bitwise_and"), scalar("add"), scalar("logical_shift_right"), scalar("add")}
	case components.OpReducePrecision:
		return []step{scalar("bitwise_and")}
	case components.OpIota:
		return []step{{components.OpcodeIota, onPool, "iota"}}
	case components.OpRng:
		return []step{{components.OpcodeRng, onPool, "rng"}}
	}
	return []step{{components.OpcodeTensorCopy, onAny, "copy"}}
}

// mappable tells whether an operator is part of a pass over tiles.
func mappable(k components.OpKind) bool {
	if k.IsElementwise() {
		return true
	}
	switch k {
	case components.OpBroadcast, components.OpIota, components.OpReduce, components.OpBitcastConvert, components.OpRng:
		return true
	}
	return false
}

// moves tells whether an operator moves elements without computing: part of
// the pass of its fusion, and a transfer of its own elsewhere.
func moves(k components.OpKind) bool {
	switch k {
	case components.OpSlice, components.OpDynamicSlice, components.OpPad, components.OpConcatenate, components.OpTranspose, components.OpReverse,
		components.OpReshape, components.OpBitcast, components.OpDynamicReshape, components.OpSetDimensionSize:
		return true
	}
	return false
}

// view tells whether an operator of a pass is only an access pattern of its
// users.
func view(k components.OpKind) bool {
	switch k {
	case components.OpBroadcast, components.OpBitcastConvert, components.OpSlice, components.OpDynamicSlice, components.OpReshape, components.OpBitcast,
		components.OpDynamicReshape, components.OpSetDimensionSize, components.OpReal, components.OpImag:
		return true
	}
	return false
}
