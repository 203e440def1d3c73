package components

// Opcode is the number of an instruction type. The first NumOpcodes are the
// compiler's own InstructionType ordinals; a module numbers the
// opcodes that are not among them from NumOpcodes on (see Module.Opcode).
type Opcode uint16

// The instruction types of the compiler.
const (
	OpcodeGeneric                   Opcode = 0
	OpcodeGenericCopy               Opcode = 1
	OpcodeGenericRelu               Opcode = 2
	OpcodeAbstractCopy              Opcode = 3
	OpcodeActivation                Opcode = 4
	OpcodeReadActivationAccumulator Opcode = 5
	OpcodeLoadActFuncSet            Opcode = 6
	OpcodeMatmultBase               Opcode = 7
	OpcodeMatmult                   Opcode = 8
	OpcodeMatmultSparse             Opcode = 9
	OpcodeMemset                    Opcode = 10
	OpcodeGetGlobalRankId           Opcode = 11
	OpcodeNoOp                      Opcode = 12
	OpcodeEventSemaphore            Opcode = 13
	OpcodeGroupResetSemaphores      Opcode = 14
	OpcodeAllEngineBarrier          Opcode = 15
	OpcodeDrain                     Opcode = 16
	OpcodeHalt                      Opcode = 17
	OpcodeDMA                       Opcode = 18
	OpcodeLoad                      Opcode = 19
	OpcodePool                      Opcode = 20
	OpcodeReciprocal                Opcode = 21
	OpcodeSave                      Opcode = 22
	OpcodeTensorCopy                Opcode = 23
	OpcodeTensorCopyDynamicSrc      Opcode = 24
	OpcodeTensorCopyDynamicDst      Opcode = 25
	OpcodeIndirectCopy              Opcode = 26
	OpcodeTensorReduce              Opcode = 27
	OpcodeTensorScalar              Opcode = 28
	OpcodeTensorScalarPtr           Opcode = 29
	OpcodeTensorScalarCache         Opcode = 30
	OpcodeTensorTensor              Opcode = 31
	OpcodeDMACopy                   Opcode = 32
	OpcodeGPSIMDSB2SB               Opcode = 33
	OpcodeBNStats                   Opcode = 34
	OpcodeBNStatsAggregate          Opcode = 35
	OpcodeBNGradients               Opcode = 36
	OpcodeBNBackprop                Opcode = 37
	OpcodeBNBackprop2               Opcode = 38
	OpcodeStreamShuffle             Opcode = 39
	OpcodeStreamTranspose           Opcode = 40
	OpcodeReadVarAddr               Opcode = 41
	OpcodeGenericIndirectLoad       Opcode = 42
	OpcodeIndirectLoad              Opcode = 43
	OpcodeGenericIndirectSave       Opcode = 44
	OpcodeIndirectSave              Opcode = 45
	OpcodeIndirectSaveAccumulate    Opcode = 46
	OpcodeCollective                Opcode = 47
	OpcodeCollectiveCompute         Opcode = 48
	OpcodeCollectiveSend            Opcode = 49
	OpcodeCollectiveRecv            Opcode = 50
	OpcodeSelect                    Opcode = 51
	OpcodeCopyPredicated            Opcode = 52
	OpcodeCustomOp                  Opcode = 53
	OpcodeBIRKernel                 Opcode = 54
	OpcodeNKIKernel                 Opcode = 55
	OpcodeNKIKLIRKernel             Opcode = 56
	OpcodeDevicePrint               Opcode = 57
	OpcodeGetRandState              Opcode = 58
	OpcodeSetRandState              Opcode = 59
	OpcodeRand                      Opcode = 60
	OpcodeIota                      Opcode = 61
	OpcodeTensorScalarAffineSelect  Opcode = 62
	OpcodeRangeSelect               Opcode = 63
	OpcodeGetSequenceBounds         Opcode = 64
	OpcodeDropout                   Opcode = 65
	OpcodeGetCurProcessingRankID    Opcode = 66
	OpcodeDMATrigger                Opcode = 67
	OpcodeDMADescriptor             Opcode = 68
	OpcodeDMADescriptorCopy         Opcode = 69
	OpcodeDMADescriptorCCE          Opcode = 70
	OpcodeDMADescriptorTranspose    Opcode = 71
	OpcodeDMADescriptorReplicate    Opcode = 72
	OpcodeRegisterAlu               Opcode = 73
	OpcodeRegisterMove              Opcode = 74
	OpcodeTensorLoad                Opcode = 75
	OpcodeTensorSave                Opcode = 76
	OpcodeTerminator                Opcode = 77
	OpcodeCompareAndBranch          Opcode = 78
	OpcodeUnconditionalBranch       Opcode = 79
	OpcodeBranchHint                Opcode = 80
	OpcodeReturn                    Opcode = 81
	OpcodeExit                      Opcode = 82
	OpcodeBreak                     Opcode = 83
	OpcodeCall                      Opcode = 84
	OpcodeSwitchQueueInstance       Opcode = 85
	OpcodeResetQueueInstance        Opcode = 86
	OpcodeCoreBarrier               Opcode = 87
	OpcodeMax                       Opcode = 88
	OpcodeMaxIndex                  Opcode = 89
	OpcodeMatchReplace              Opcode = 90
	OpcodeMaxIndexAndMatchReplace   Opcode = 91
	OpcodeGather                    Opcode = 92
	OpcodeInlineASMBytes            Opcode = 93
	OpcodeTensorCompletion          Opcode = 94
	OpcodeMatmultMx                 Opcode = 95
	OpcodeQuantizeMx                Opcode = 96
	OpcodeRand2                     Opcode = 97
	OpcodeRandSetState              Opcode = 98
	OpcodeRandGetState              Opcode = 99
	OpcodeRng                       Opcode = 100
	OpcodeActivationReadAccumulator Opcode = 101
	OpcodeDveReadAccumulator        Opcode = 102
	OpcodeExponential               Opcode = 103
	OpcodeNonzeroWithCount          Opcode = 104
	OpcodeLoop                      Opcode = 105
	OpcodeDynamicForLoop            Opcode = 106
	OpcodeDMABlock                  Opcode = 107
	OpcodeDoWhile                   Opcode = 108
	OpcodeTongaReduceMacroSymbolic  Opcode = 109
	NumOpcodes                      Opcode = 110
)

var opcodeNames = [NumOpcodes]string{
	"Generic", "GenericCopy", "GenericRelu", "AbstractCopy", "Activation", "ReadActivationAccumulator",
	"LoadActFuncSet", "MatmultBase", "Matmult", "MatmultSparse", "Memset", "GetGlobalRankId", "NoOp",
	"EventSemaphore", "GroupResetSemaphores", "AllEngineBarrier", "Drain", "Halt", "DMA", "Load", "Pool",
	"Reciprocal", "Save", "TensorCopy", "TensorCopyDynamicSrc", "TensorCopyDynamicDst", "IndirectCopy",
	"TensorReduce", "TensorScalar", "TensorScalarPtr", "TensorScalarCache", "TensorTensor", "DMACopy",
	"GPSIMDSB2SB", "BNStats", "BNStatsAggregate", "BNGradients", "BNBackprop", "BNBackprop2", "StreamShuffle",
	"StreamTranspose", "ReadVarAddr", "GenericIndirectLoad", "IndirectLoad", "GenericIndirectSave",
	"IndirectSave", "IndirectSaveAccumulate", "Collective", "CollectiveCompute", "CollectiveSend",
	"CollectiveRecv", "Select", "CopyPredicated", "CustomOp", "BIRKernel", "NKIKernel", "NKIKLIRKernel",
	"DevicePrint", "GetRandState", "SetRandState", "Rand", "Iota", "TensorScalarAffineSelect", "RangeSelect",
	"GetSequenceBounds", "Dropout", "GetCurProcessingRankID", "DMATrigger", "DMADescriptor",
	"DMADescriptorCopy", "DMADescriptorCCE", "DMADescriptorTranspose", "DMADescriptorReplicate", "RegisterAlu",
	"RegisterMove", "TensorLoad", "TensorSave", "Terminator", "CompareAndBranch", "UnconditionalBranch",
	"BranchHint", "Return", "Exit", "Break", "Call", "SwitchQueueInstance", "ResetQueueInstance", "CoreBarrier",
	"Max", "MaxIndex", "MatchReplace", "MaxIndexAndMatchReplace", "Gather", "InlineASMBytes",
	"TensorCompletion", "MatmultMx", "QuantizeMx", "Rand2", "RandSetState", "RandGetState", "Rng",
	"ActivationReadAccumulator", "DveReadAccumulator", "Exponential", "NonzeroWithCount", "Loop",
	"DynamicForLoop", "DMABlock", "DoWhile", "TongaReduceMacroSymbolic",
}

// OpcodeName returns the JSON name of a compiler instruction type, "" for a
// number beyond them.
func OpcodeName(op Opcode) string {
	if op < NumOpcodes {
		return opcodeNames[op]
	}
	return ""
}

// IsDMA tells whether the opcode is one of the nine that the simulator routes
// to the DMA timeline (docs/model.md, section 2), or the abstract DMA.
func (op Opcode) IsDMA() bool {
	switch op {
	case OpcodeDMA, OpcodeLoad, OpcodeSave, OpcodeDMACopy, OpcodeReadVarAddr, OpcodeGenericIndirectLoad, OpcodeIndirectLoad,
		OpcodeGenericIndirectSave, OpcodeIndirectSave, OpcodeIndirectSaveAccumulate:
		return true
	}
	return false
}

// IsCollective tells whether the opcode runs on a collective stream.
func (op Opcode) IsCollective() bool {
	return op >= OpcodeCollective && op <= OpcodeCollectiveRecv
}

// IsMatmul tells whether the opcode belongs to the matmul family.
func (op Opcode) IsMatmul() bool {
	switch op {
	case OpcodeMatmultBase, OpcodeMatmult, OpcodeMatmultSparse, OpcodeMatmultMx:
		return true
	}
	return false
}

// IsControl tells whether the opcode is control flow, which the compiler
// places on engine ALL and does not cost.
func (op Opcode) IsControl() bool { return op >= OpcodeTerminator && op <= OpcodeReturn }

// IsLoop tells whether the instruction holds blocks of its own.
func (op Opcode) IsLoop() bool {
	return op == OpcodeLoop || op == OpcodeDynamicForLoop || op == OpcodeDoWhile
}
