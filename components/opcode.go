package components

// Opcode is the number of an instruction type. The first NumOpcodes are the
// compiler's own InstructionType ordinals; a module numbers the
// opcodes that are not among them from NumOpcodes on (see Module.Opcode).
type Opcode uint16

// The instruction types that the program tells apart, by the compiler's
// ordinals; opcodeNames has all of them.
const (
	OpcodeGeneric                   Opcode = 0
	OpcodeActivation                Opcode = 4
	OpcodeReadActivationAccumulator Opcode = 5
	OpcodeMatmultBase               Opcode = 7
	OpcodeMatmult                   Opcode = 8
	OpcodeMatmultSparse             Opcode = 9
	OpcodeMemset                    Opcode = 10
	OpcodeNoOp                      Opcode = 12
	OpcodeAllEngineBarrier          Opcode = 15
	OpcodeDrain                     Opcode = 16
	OpcodeDMA                       Opcode = 18
	OpcodeLoad                      Opcode = 19
	OpcodePool                      Opcode = 20
	OpcodeReciprocal                Opcode = 21
	OpcodeSave                      Opcode = 22
	OpcodeTensorCopy                Opcode = 23
	OpcodeTensorReduce              Opcode = 27
	OpcodeTensorScalar              Opcode = 28
	OpcodeTensorScalarPtr           Opcode = 29
	OpcodeTensorTensor              Opcode = 31
	OpcodeDMACopy                   Opcode = 32
	OpcodeBNStats                   Opcode = 34
	OpcodeBNStatsAggregate          Opcode = 35
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
	OpcodeSetRandState              Opcode = 59
	OpcodeIota                      Opcode = 61
	OpcodeDMATrigger                Opcode = 67
	OpcodeDMADescriptor             Opcode = 68
	OpcodeDMADescriptorCopy         Opcode = 69
	OpcodeDMADescriptorTranspose    Opcode = 71
	OpcodeDMADescriptorReplicate    Opcode = 72
	OpcodeRegisterAlu               Opcode = 73
	OpcodeRegisterMove              Opcode = 74
	OpcodeTensorLoad                Opcode = 75
	OpcodeTerminator                Opcode = 77
	OpcodeReturn                    Opcode = 81
	OpcodeCall                      Opcode = 84
	OpcodeMax                       Opcode = 88
	OpcodeMaxIndex                  Opcode = 89
	OpcodeMatchReplace              Opcode = 90
	OpcodeInlineASMBytes            Opcode = 93
	OpcodeMatmultMx                 Opcode = 95
	OpcodeRng                       Opcode = 100
	OpcodeActivationReadAccumulator Opcode = 101
	OpcodeDveReadAccumulator        Opcode = 102
	OpcodeExponential               Opcode = 103
	OpcodeLoop                      Opcode = 105
	OpcodeDynamicForLoop            Opcode = 106
	OpcodeDoWhile                   Opcode = 108
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

// IsDMA reports whether the opcode is one of the nine that the simulator routes
// to the DMA timeline (docs/model.md, section 2), or the abstract DMA.
func (op Opcode) IsDMA() bool {
	switch op {
	case OpcodeDMA, OpcodeLoad, OpcodeSave, OpcodeDMACopy, OpcodeReadVarAddr, OpcodeGenericIndirectLoad, OpcodeIndirectLoad,
		OpcodeGenericIndirectSave, OpcodeIndirectSave, OpcodeIndirectSaveAccumulate:
		return true
	}
	return false
}

// IsCollective reports whether the opcode runs on a collective stream.
func (op Opcode) IsCollective() bool {
	return op >= OpcodeCollective && op <= OpcodeCollectiveRecv
}

// IsMatmul reports whether the opcode belongs to the matmul family.
func (op Opcode) IsMatmul() bool {
	switch op {
	case OpcodeMatmultBase, OpcodeMatmult, OpcodeMatmultSparse, OpcodeMatmultMx:
		return true
	}
	return false
}

// IsControl reports whether the opcode is control flow, which the compiler
// places on engine ALL and does not cost.
func (op Opcode) IsControl() bool { return op >= OpcodeTerminator && op <= OpcodeReturn }

// IsLoop reports whether the instruction holds blocks of its own.
func (op Opcode) IsLoop() bool {
	return op == OpcodeLoop || op == OpcodeDynamicForLoop || op == OpcodeDoWhile
}
