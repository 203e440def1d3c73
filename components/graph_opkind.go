package components

// OpKind is the opcode of an operator: the opcodes of HLO, onto which the
// operations of StableHLO are mapped.
type OpKind uint8

// The opcodes. OpUnknown is an opcode word this list does not have; the word
// is kept as AttrOpcode, so that the operator is reported by name.
const (
	OpUnknown OpKind = iota
	OpAbs
	OpAcos
	OpAcosh
	OpAdd
	OpAddDependency
	OpAfterAll
	OpAllGather
	OpAllGatherDone
	OpAllGatherStart
	OpAllReduce
	OpAllReduceDone
	OpAllReduceStart
	OpAllToAll
	OpAnd
	OpAsin
	OpAsinh
	OpAsyncDone
	OpAsyncStart
	OpAsyncUpdate
	OpAtan
	OpAtan2
	OpAtanh
	OpBatchNormGrad
	OpBatchNormInference
	OpBatchNormTraining
	OpBitcast
	OpBitcastConvert
	OpBroadcast
	OpCall
	OpCbrt
	OpCeil
	OpCholesky
	OpClamp
	OpClz
	OpCollectiveBroadcast
	OpCollectivePermute
	OpCollectivePermuteDone
	OpCollectivePermuteStart
	OpCollectiveReduce
	OpCompare
	OpComplex
	OpConcatenate
	OpConditional
	OpConstant
	OpConvert
	OpConvolution
	OpCopy
	OpCopyDone
	OpCopyStart
	OpCos
	OpCosh
	OpCustomCall
	OpDivide
	OpDomain
	OpDot
	OpDynamicReshape
	OpDynamicSlice
	OpDynamicUpdateSlice
	OpErf
	OpExp
	OpExpm1
	OpFFT
	OpFloor
	OpFusion
	OpGather
	OpGetDimensionSize
	OpGetTupleElement
	OpImag
	OpInfeed
	OpIota
	OpIsFinite
	OpLog
	OpLog1p
	OpLogistic
	OpMap
	OpMaximum
	OpMinimum
	OpMulhi
	OpMultiply
	OpNegate
	OpNot
	OpOptBarrier
	OpOr
	OpOutfeed
	OpPad
	OpParameter
	OpPartitionId
	OpPopcnt
	OpPower
	OpRaggedAllToAll
	OpRaggedDot
	OpReal
	OpRecv
	OpRecvDone
	OpReduce
	OpReducePrecision
	OpReduceScatter
	OpReduceWindow
	OpRemainder
	OpReplicaId
	OpReshape
	OpReverse
	OpRng
	OpRngBitGenerator
	OpRngGetAndUpdateState
	OpRoundNearestAfz
	OpRoundNearestEven
	OpRsqrt
	OpScaledDot
	OpScan
	OpScatter
	OpSelect
	OpSelectAndScatter
	OpSend
	OpSendDone
	OpSetDimensionSize
	OpShiftLeft
	OpShiftRightArithmetic
	OpShiftRightLogical
	OpShuffle
	OpSign
	OpSin
	OpSinh
	OpSlice
	OpSort
	OpSqrt
	OpStochasticConvert
	OpSubtract
	OpTan
	OpTanh
	OpTopK
	OpTranspose
	OpTriangularSolve
	OpTuple
	OpWhile
	OpXor
	NumOpKinds
)

// opKindName maps an opcode to its HLO word.
var opKindName = [NumOpKinds]string{
	OpUnknown:                "unknown",
	OpAbs:                    "abs",
	OpAcos:                   "acos",
	OpAcosh:                  "acosh",
	OpAdd:                    "add",
	OpAddDependency:          "add-dependency",
	OpAfterAll:               "after-all",
	OpAllGather:              "all-gather",
	OpAllGatherDone:          "all-gather-done",
	OpAllGatherStart:         "all-gather-start",
	OpAllReduce:              "all-reduce",
	OpAllReduceDone:          "all-reduce-done",
	OpAllReduceStart:         "all-reduce-start",
	OpAllToAll:               "all-to-all",
	OpAnd:                    "and",
	OpAsin:                   "asin",
	OpAsinh:                  "asinh",
	OpAsyncDone:              "async-done",
	OpAsyncStart:             "async-start",
	OpAsyncUpdate:            "async-update",
	OpAtan:                   "atan",
	OpAtan2:                  "atan2",
	OpAtanh:                  "atanh",
	OpBatchNormGrad:          "batch-norm-grad",
	OpBatchNormInference:     "batch-norm-inference",
	OpBatchNormTraining:      "batch-norm-training",
	OpBitcast:                "bitcast",
	OpBitcastConvert:         "bitcast-convert",
	OpBroadcast:              "broadcast",
	OpCall:                   "call",
	OpCbrt:                   "cbrt",
	OpCeil:                   "ceil",
	OpCholesky:               "cholesky",
	OpClamp:                  "clamp",
	OpClz:                    "count-leading-zeros",
	OpCollectiveBroadcast:    "collective-broadcast",
	OpCollectivePermute:      "collective-permute",
	OpCollectivePermuteDone:  "collective-permute-done",
	OpCollectivePermuteStart: "collective-permute-start",
	OpCollectiveReduce:       "collective-reduce",
	OpCompare:                "compare",
	OpComplex:                "complex",
	OpConcatenate:            "concatenate",
	OpConditional:            "conditional",
	OpConstant:               "constant",
	OpConvert:                "convert",
	OpConvolution:            "convolution",
	OpCopy:                   "copy",
	OpCopyDone:               "copy-done",
	OpCopyStart:              "copy-start",
	OpCos:                    "cosine",
	OpCosh:                   "cosh",
	OpCustomCall:             "custom-call",
	OpDivide:                 "divide",
	OpDomain:                 "domain",
	OpDot:                    "dot",
	OpDynamicReshape:         "dynamic-reshape",
	OpDynamicSlice:           "dynamic-slice",
	OpDynamicUpdateSlice:     "dynamic-update-slice",
	OpErf:                    "erf",
	OpExp:                    "exponential",
	OpExpm1:                  "exponential-minus-one",
	OpFFT:                    "fft",
	OpFloor:                  "floor",
	OpFusion:                 "fusion",
	OpGather:                 "gather",
	OpGetDimensionSize:       "get-dimension-size",
	OpGetTupleElement:        "get-tuple-element",
	OpImag:                   "imag",
	OpInfeed:                 "infeed",
	OpIota:                   "iota",
	OpIsFinite:               "is-finite",
	OpLog:                    "log",
	OpLog1p:                  "log-plus-one",
	OpLogistic:               "logistic",
	OpMap:                    "map",
	OpMaximum:                "maximum",
	OpMinimum:                "minimum",
	OpMulhi:                  "mulhi",
	OpMultiply:               "multiply",
	OpNegate:                 "negate",
	OpNot:                    "not",
	OpOptBarrier:             "opt-barrier",
	OpOr:                     "or",
	OpOutfeed:                "outfeed",
	OpPad:                    "pad",
	OpParameter:              "parameter",
	OpPartitionId:            "partition-id",
	OpPopcnt:                 "popcnt",
	OpPower:                  "power",
	OpRaggedAllToAll:         "ragged-all-to-all",
	OpRaggedDot:              "ragged-dot",
	OpReal:                   "real",
	OpRecv:                   "recv",
	OpRecvDone:               "recv-done",
	OpReduce:                 "reduce",
	OpReducePrecision:        "reduce-precision",
	OpReduceScatter:          "reduce-scatter",
	OpReduceWindow:           "reduce-window",
	OpRemainder:              "remainder",
	OpReplicaId:              "replica-id",
	OpReshape:                "reshape",
	OpReverse:                "reverse",
	OpRng:                    "rng",
	OpRngBitGenerator:        "rng-bit-generator",
	OpRngGetAndUpdateState:   "rng-get-and-update-state",
	OpRoundNearestAfz:        "round-nearest-afz",
	OpRoundNearestEven:       "round-nearest-even",
	OpRsqrt:                  "rsqrt",
	OpScaledDot:              "scaled-dot",
	OpScan:                   "scan",
	OpScatter:                "scatter",
	OpSelect:                 "select",
	OpSelectAndScatter:       "select-and-scatter",
	OpSend:                   "send",
	OpSendDone:               "send-done",
	OpSetDimensionSize:       "set-dimension-size",
	OpShiftLeft:              "shift-left",
	OpShiftRightArithmetic:   "shift-right-arithmetic",
	OpShiftRightLogical:      "shift-right-logical",
	OpShuffle:                "shuffle",
	OpSign:                   "sign",
	OpSin:                    "sine",
	OpSinh:                   "sinh",
	OpSlice:                  "slice",
	OpSort:                   "sort",
	OpSqrt:                   "sqrt",
	OpStochasticConvert:      "stochastic-convert",
	OpSubtract:               "subtract",
	OpTan:                    "tan",
	OpTanh:                   "tanh",
	OpTopK:                   "topk",
	OpTranspose:              "transpose",
	OpTriangularSolve:        "triangular-solve",
	OpTuple:                  "tuple",
	OpWhile:                  "while",
	OpXor:                    "xor",
}

// String returns the HLO word of the opcode.
func (k OpKind) String() string {
	if k < NumOpKinds {
		return opKindName[k]
	}
	return "invalid"
}

// ParseOpKind returns the opcode with an HLO word. Sugar such as
// "dot-start" is not an opcode; the text reader expands it.
func ParseOpKind(word string) (OpKind, bool) {
	switch word {
	case "abs":
		return OpAbs, true
	case "acos":
		return OpAcos, true
	case "acosh":
		return OpAcosh, true
	case "add":
		return OpAdd, true
	case "add-dependency":
		return OpAddDependency, true
	case "after-all":
		return OpAfterAll, true
	case "all-gather":
		return OpAllGather, true
	case "all-gather-done":
		return OpAllGatherDone, true
	case "all-gather-start":
		return OpAllGatherStart, true
	case "all-reduce":
		return OpAllReduce, true
	case "all-reduce-done":
		return OpAllReduceDone, true
	case "all-reduce-start":
		return OpAllReduceStart, true
	case "all-to-all":
		return OpAllToAll, true
	case "and":
		return OpAnd, true
	case "asin":
		return OpAsin, true
	case "asinh":
		return OpAsinh, true
	case "async-done":
		return OpAsyncDone, true
	case "async-start":
		return OpAsyncStart, true
	case "async-update":
		return OpAsyncUpdate, true
	case "atan":
		return OpAtan, true
	case "atan2":
		return OpAtan2, true
	case "atanh":
		return OpAtanh, true
	case "batch-norm-grad":
		return OpBatchNormGrad, true
	case "batch-norm-inference":
		return OpBatchNormInference, true
	case "batch-norm-training":
		return OpBatchNormTraining, true
	case "bitcast":
		return OpBitcast, true
	case "bitcast-convert":
		return OpBitcastConvert, true
	case "broadcast":
		return OpBroadcast, true
	case "call":
		return OpCall, true
	case "cbrt":
		return OpCbrt, true
	case "ceil":
		return OpCeil, true
	case "cholesky":
		return OpCholesky, true
	case "clamp":
		return OpClamp, true
	case "count-leading-zeros":
		return OpClz, true
	case "collective-broadcast":
		return OpCollectiveBroadcast, true
	case "collective-permute":
		return OpCollectivePermute, true
	case "collective-permute-done":
		return OpCollectivePermuteDone, true
	case "collective-permute-start":
		return OpCollectivePermuteStart, true
	case "collective-reduce":
		return OpCollectiveReduce, true
	case "compare":
		return OpCompare, true
	case "complex":
		return OpComplex, true
	case "concatenate":
		return OpConcatenate, true
	case "conditional":
		return OpConditional, true
	case "constant":
		return OpConstant, true
	case "convert":
		return OpConvert, true
	case "convolution":
		return OpConvolution, true
	case "copy":
		return OpCopy, true
	case "copy-done":
		return OpCopyDone, true
	case "copy-start":
		return OpCopyStart, true
	case "cosine":
		return OpCos, true
	case "cosh":
		return OpCosh, true
	case "custom-call":
		return OpCustomCall, true
	case "divide":
		return OpDivide, true
	case "domain":
		return OpDomain, true
	case "dot":
		return OpDot, true
	case "dynamic-reshape":
		return OpDynamicReshape, true
	case "dynamic-slice":
		return OpDynamicSlice, true
	case "dynamic-update-slice":
		return OpDynamicUpdateSlice, true
	case "erf":
		return OpErf, true
	case "exponential":
		return OpExp, true
	case "exponential-minus-one":
		return OpExpm1, true
	case "fft":
		return OpFFT, true
	case "floor":
		return OpFloor, true
	case "fusion":
		return OpFusion, true
	case "gather":
		return OpGather, true
	case "get-dimension-size":
		return OpGetDimensionSize, true
	case "get-tuple-element":
		return OpGetTupleElement, true
	case "imag":
		return OpImag, true
	case "infeed":
		return OpInfeed, true
	case "iota":
		return OpIota, true
	case "is-finite":
		return OpIsFinite, true
	case "log":
		return OpLog, true
	case "log-plus-one":
		return OpLog1p, true
	case "logistic":
		return OpLogistic, true
	case "map":
		return OpMap, true
	case "maximum":
		return OpMaximum, true
	case "minimum":
		return OpMinimum, true
	case "mulhi":
		return OpMulhi, true
	case "multiply":
		return OpMultiply, true
	case "negate":
		return OpNegate, true
	case "not":
		return OpNot, true
	case "opt-barrier":
		return OpOptBarrier, true
	case "or":
		return OpOr, true
	case "outfeed":
		return OpOutfeed, true
	case "pad":
		return OpPad, true
	case "parameter":
		return OpParameter, true
	case "partition-id":
		return OpPartitionId, true
	case "popcnt":
		return OpPopcnt, true
	case "power":
		return OpPower, true
	case "ragged-all-to-all":
		return OpRaggedAllToAll, true
	case "ragged-dot":
		return OpRaggedDot, true
	case "real":
		return OpReal, true
	case "recv":
		return OpRecv, true
	case "recv-done":
		return OpRecvDone, true
	case "reduce":
		return OpReduce, true
	case "reduce-precision":
		return OpReducePrecision, true
	case "reduce-scatter":
		return OpReduceScatter, true
	case "reduce-window":
		return OpReduceWindow, true
	case "remainder":
		return OpRemainder, true
	case "replica-id":
		return OpReplicaId, true
	case "reshape":
		return OpReshape, true
	case "reverse":
		return OpReverse, true
	case "rng":
		return OpRng, true
	case "rng-bit-generator":
		return OpRngBitGenerator, true
	case "rng-get-and-update-state":
		return OpRngGetAndUpdateState, true
	case "round-nearest-afz":
		return OpRoundNearestAfz, true
	case "round-nearest-even":
		return OpRoundNearestEven, true
	case "rsqrt":
		return OpRsqrt, true
	case "scaled-dot":
		return OpScaledDot, true
	case "scan":
		return OpScan, true
	case "scatter":
		return OpScatter, true
	case "select":
		return OpSelect, true
	case "select-and-scatter":
		return OpSelectAndScatter, true
	case "send":
		return OpSend, true
	case "send-done":
		return OpSendDone, true
	case "set-dimension-size":
		return OpSetDimensionSize, true
	case "shift-left":
		return OpShiftLeft, true
	case "shift-right-arithmetic":
		return OpShiftRightArithmetic, true
	case "shift-right-logical":
		return OpShiftRightLogical, true
	case "shuffle":
		return OpShuffle, true
	case "sign":
		return OpSign, true
	case "sine":
		return OpSin, true
	case "sinh":
		return OpSinh, true
	case "slice":
		return OpSlice, true
	case "sort":
		return OpSort, true
	case "sqrt":
		return OpSqrt, true
	case "stochastic-convert":
		return OpStochasticConvert, true
	case "subtract":
		return OpSubtract, true
	case "tan":
		return OpTan, true
	case "tanh":
		return OpTanh, true
	case "topk":
		return OpTopK, true
	case "transpose":
		return OpTranspose, true
	case "triangular-solve":
		return OpTriangularSolve, true
	case "tuple":
		return OpTuple, true
	case "while":
		return OpWhile, true
	case "xor":
		return OpXor, true
	}
	return OpUnknown, false
}

// IsElementwise reports whether each element of the result depends on the
// elements at the same place of the operands only (scalars of select and
// clamp are broadcast).
func (k OpKind) IsElementwise() bool {
	return k.unary() || k.binary() || k == OpSelect || k == OpClamp || k == OpMap
}

// IsFree reports whether the operator costs nothing by itself: it names,
// groups or orders values.
func (k OpKind) IsFree() bool {
	switch k {
	case OpParameter, OpConstant, OpTuple, OpGetTupleElement, OpBitcast, OpAfterAll,
		OpAddDependency, OpOptBarrier, OpPartitionId, OpReplicaId, OpDomain, OpGetDimensionSize:
		return true
	}
	return false
}

// IsCollective reports whether the operator moves data between devices. The
// done half of a pair is not one: it waits, the start half moves.
func (k OpKind) IsCollective() bool {
	switch k {
	case OpAllGather, OpAllGatherStart, OpAllReduce, OpAllReduceStart, OpAllToAll,
		OpCollectiveBroadcast, OpCollectivePermute, OpCollectivePermuteStart,
		OpCollectiveReduce, OpRaggedAllToAll, OpReduceScatter:
		return true
	}
	return false
}

// unary reports whether the result has the shape of the one operand.
func (k OpKind) unary() bool {
	switch k {
	case OpAbs, OpAcos, OpAcosh, OpAsin, OpAsinh, OpAtan, OpAtanh, OpCbrt, OpCeil, OpClz, OpConvert,
		OpCopy, OpCos, OpCosh, OpErf, OpExp, OpExpm1, OpFloor, OpImag, OpIsFinite, OpLog, OpLog1p,
		OpLogistic, OpNegate, OpNot, OpPopcnt, OpReal, OpReducePrecision, OpRoundNearestAfz,
		OpRoundNearestEven, OpRsqrt, OpSign, OpSin, OpSinh, OpSqrt, OpTan, OpTanh:
		return true
	}
	return false
}

func (k OpKind) binary() bool {
	switch k {
	case OpAdd, OpAnd, OpAtan2, OpCompare, OpComplex, OpDivide, OpMaximum, OpMinimum, OpMulhi, OpMultiply, OpOr, OpPower,
		OpRemainder, OpShiftLeft, OpShiftRightArithmetic, OpShiftRightLogical, OpStochasticConvert,
		OpSubtract, OpXor:
		return true
	}
	return false
}
