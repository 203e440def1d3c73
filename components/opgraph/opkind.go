package opgraph

import "sync"

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

// OpTrait is a property of an operator that does not depend on its operands.
type OpTrait uint16

// The traits.
const (
	// TraitFree costs nothing by itself: it names, groups or orders values.
	TraitFree OpTrait = 1 << iota
	// TraitCollective moves data between devices. The done half of a pair is not
	// one: it waits, the start half moves.
	TraitCollective
	// TraitMapped takes part in a pass over tiles, as elementwise operators do.
	TraitMapped
	// TraitMoves moves elements without computing: part of the pass of its fusion,
	// and a transfer of its own elsewhere.
	TraitMoves
	// TraitView is only an access pattern of its users in a pass.
	TraitView

	traitUnary       // elementwise: the result has the shape of the one operand
	traitBinary      // elementwise of two operands
	traitElementwise // the others
)

// opTable has a row for each opcode: its HLO word and its traits. How an
// elementwise operator is lowered stands in the table of systems/lower.
var opTable = [NumOpKinds]struct {
	word   string
	traits OpTrait
}{
	OpUnknown:                {"unknown", 0},
	OpAbs:                    {"abs", traitUnary},
	OpAcos:                   {"acos", traitUnary},
	OpAcosh:                  {"acosh", traitUnary},
	OpAdd:                    {"add", traitBinary},
	OpAddDependency:          {"add-dependency", TraitFree},
	OpAfterAll:               {"after-all", TraitFree},
	OpAllGather:              {"all-gather", TraitCollective},
	OpAllGatherDone:          {"all-gather-done", 0},
	OpAllGatherStart:         {"all-gather-start", TraitCollective},
	OpAllReduce:              {"all-reduce", TraitCollective},
	OpAllReduceDone:          {"all-reduce-done", 0},
	OpAllReduceStart:         {"all-reduce-start", TraitCollective},
	OpAllToAll:               {"all-to-all", TraitCollective},
	OpAnd:                    {"and", traitBinary},
	OpAsin:                   {"asin", traitUnary},
	OpAsinh:                  {"asinh", traitUnary},
	OpAsyncDone:              {"async-done", 0},
	OpAsyncStart:             {"async-start", 0},
	OpAsyncUpdate:            {"async-update", 0},
	OpAtan:                   {"atan", traitUnary},
	OpAtan2:                  {"atan2", traitBinary},
	OpAtanh:                  {"atanh", traitUnary},
	OpBatchNormGrad:          {"batch-norm-grad", 0},
	OpBatchNormInference:     {"batch-norm-inference", 0},
	OpBatchNormTraining:      {"batch-norm-training", 0},
	OpBitcast:                {"bitcast", TraitFree | TraitMoves | TraitView},
	OpBitcastConvert:         {"bitcast-convert", TraitMapped | TraitView},
	OpBroadcast:              {"broadcast", TraitMapped | TraitView},
	OpCall:                   {"call", 0},
	OpCbrt:                   {"cbrt", traitUnary},
	OpCeil:                   {"ceil", traitUnary},
	OpCholesky:               {"cholesky", 0},
	OpClamp:                  {"clamp", traitElementwise},
	OpClz:                    {"count-leading-zeros", traitUnary},
	OpCollectiveBroadcast:    {"collective-broadcast", TraitCollective},
	OpCollectivePermute:      {"collective-permute", TraitCollective},
	OpCollectivePermuteDone:  {"collective-permute-done", 0},
	OpCollectivePermuteStart: {"collective-permute-start", TraitCollective},
	OpCollectiveReduce:       {"collective-reduce", TraitCollective},
	OpCompare:                {"compare", traitBinary},
	OpComplex:                {"complex", traitBinary},
	OpConcatenate:            {"concatenate", TraitMoves},
	OpConditional:            {"conditional", 0},
	OpConstant:               {"constant", TraitFree},
	OpConvert:                {"convert", traitUnary},
	OpConvolution:            {"convolution", 0},
	OpCopy:                   {"copy", traitUnary},
	OpCopyDone:               {"copy-done", 0},
	OpCopyStart:              {"copy-start", 0},
	OpCos:                    {"cosine", traitUnary},
	OpCosh:                   {"cosh", traitUnary},
	OpCustomCall:             {"custom-call", 0},
	OpDivide:                 {"divide", traitBinary},
	OpDomain:                 {"domain", TraitFree},
	OpDot:                    {"dot", 0},
	OpDynamicReshape:         {"dynamic-reshape", TraitMoves | TraitView},
	OpDynamicSlice:           {"dynamic-slice", TraitMoves | TraitView},
	OpDynamicUpdateSlice:     {"dynamic-update-slice", 0},
	OpErf:                    {"erf", traitUnary},
	OpExp:                    {"exponential", traitUnary},
	OpExpm1:                  {"exponential-minus-one", traitUnary},
	OpFFT:                    {"fft", 0},
	OpFloor:                  {"floor", traitUnary},
	OpFusion:                 {"fusion", 0},
	OpGather:                 {"gather", 0},
	OpGetDimensionSize:       {"get-dimension-size", TraitFree},
	OpGetTupleElement:        {"get-tuple-element", TraitFree},
	OpImag:                   {"imag", traitUnary | TraitView},
	OpInfeed:                 {"infeed", 0},
	OpIota:                   {"iota", TraitMapped},
	OpIsFinite:               {"is-finite", traitUnary},
	OpLog:                    {"log", traitUnary},
	OpLog1p:                  {"log-plus-one", traitUnary},
	OpLogistic:               {"logistic", traitUnary},
	OpMap:                    {"map", traitElementwise},
	OpMaximum:                {"maximum", traitBinary},
	OpMinimum:                {"minimum", traitBinary},
	OpMulhi:                  {"mulhi", traitBinary},
	OpMultiply:               {"multiply", traitBinary},
	OpNegate:                 {"negate", traitUnary},
	OpNot:                    {"not", traitUnary},
	OpOptBarrier:             {"opt-barrier", TraitFree},
	OpOr:                     {"or", traitBinary},
	OpOutfeed:                {"outfeed", 0},
	OpPad:                    {"pad", TraitMoves},
	OpParameter:              {"parameter", TraitFree},
	OpPartitionId:            {"partition-id", TraitFree},
	OpPopcnt:                 {"popcnt", traitUnary},
	OpPower:                  {"power", traitBinary},
	OpRaggedAllToAll:         {"ragged-all-to-all", TraitCollective},
	OpRaggedDot:              {"ragged-dot", 0},
	OpReal:                   {"real", traitUnary | TraitView},
	OpRecv:                   {"recv", 0},
	OpRecvDone:               {"recv-done", 0},
	OpReduce:                 {"reduce", TraitMapped},
	OpReducePrecision:        {"reduce-precision", traitUnary},
	OpReduceScatter:          {"reduce-scatter", TraitCollective},
	OpReduceWindow:           {"reduce-window", 0},
	OpRemainder:              {"remainder", traitBinary},
	OpReplicaId:              {"replica-id", TraitFree},
	OpReshape:                {"reshape", TraitMoves | TraitView},
	OpReverse:                {"reverse", TraitMoves},
	OpRng:                    {"rng", TraitMapped},
	OpRngBitGenerator:        {"rng-bit-generator", 0},
	OpRngGetAndUpdateState:   {"rng-get-and-update-state", 0},
	OpRoundNearestAfz:        {"round-nearest-afz", traitUnary},
	OpRoundNearestEven:       {"round-nearest-even", traitUnary},
	OpRsqrt:                  {"rsqrt", traitUnary},
	OpScaledDot:              {"scaled-dot", 0},
	OpScan:                   {"scan", 0},
	OpScatter:                {"scatter", 0},
	OpSelect:                 {"select", traitElementwise},
	OpSelectAndScatter:       {"select-and-scatter", 0},
	OpSend:                   {"send", 0},
	OpSendDone:               {"send-done", 0},
	OpSetDimensionSize:       {"set-dimension-size", TraitMoves | TraitView},
	OpShiftLeft:              {"shift-left", traitBinary},
	OpShiftRightArithmetic:   {"shift-right-arithmetic", traitBinary},
	OpShiftRightLogical:      {"shift-right-logical", traitBinary},
	OpShuffle:                {"shuffle", 0},
	OpSign:                   {"sign", traitUnary},
	OpSin:                    {"sine", traitUnary},
	OpSinh:                   {"sinh", traitUnary},
	OpSlice:                  {"slice", TraitMoves | TraitView},
	OpSort:                   {"sort", 0},
	OpSqrt:                   {"sqrt", traitUnary},
	OpStochasticConvert:      {"stochastic-convert", traitBinary},
	OpSubtract:               {"subtract", traitBinary},
	OpTan:                    {"tan", traitUnary},
	OpTanh:                   {"tanh", traitUnary},
	OpTopK:                   {"topk", 0},
	OpTranspose:              {"transpose", TraitMoves},
	OpTriangularSolve:        {"triangular-solve", 0},
	OpTuple:                  {"tuple", TraitFree},
	OpWhile:                  {"while", 0},
	OpXor:                    {"xor", traitBinary},
}

// opOfWord maps HLO words to opcodes.
var opOfWord = sync.OnceValue(func() map[string]OpKind {
	m := make(map[string]OpKind, NumOpKinds)
	for k := OpUnknown + 1; k < NumOpKinds; k++ {
		m[opTable[k].word] = k
	}
	return m
})

// String returns the HLO word of the opcode.
func (k OpKind) String() string {
	if k < NumOpKinds {
		return opTable[k].word
	}
	return "invalid"
}

// ParseOpKind returns the opcode with an HLO word. Sugar such as
// "dot-start" is not an opcode; the text reader expands it.
func ParseOpKind(word string) (OpKind, bool) {
	k, ok := opOfWord()[word]
	return k, ok
}

// Is reports whether the operator has one of the traits.
func (k OpKind) Is(t OpTrait) bool { return k < NumOpKinds && opTable[k].traits&t != 0 }

// IsElementwise reports whether each element of the result depends on the
// elements at the same place of the operands only (scalars of select and
// clamp are broadcast).
func (k OpKind) IsElementwise() bool { return k.Is(traitUnary | traitBinary | traitElementwise) }

// IsFree reports whether the operator has the trait TraitFree.
func (k OpKind) IsFree() bool { return k.Is(TraitFree) }

// IsCollective reports whether the operator has the trait TraitCollective.
func (k OpKind) IsCollective() bool { return k.Is(TraitCollective) }
