package components

// DType is an element type, with the compiler's ordinals.
type DType uint8

// The element types.
const (
	Uint8 DType = iota
	Int8
	Float4E2M1x4
	Float8E3
	Float8E4
	Float8E4M3FN
	Float8E8M0
	Float8E5
	Float8E4M3x4
	Float8E5M2x4
	Uint16
	Int16
	BFloat16
	Float16
	Uint32
	Int32
	Float32
	Float32R
	Uint64
	Int64
	NumDTypes
	NoDType DType = 255
)

var dtypeNames = [NumDTypes]string{
	"uint8", "int8", "float4_e2m1fn_x4", "float8e3", "float8e4", "float8_e4m3fn", "float8_e8m0fnu",
	"float8e5", "float8_e4m3fn_x4", "float8_e5m2_x4", "uint16", "int16", "bfloat16", "float16",
	"uint32", "int32", "float32", "float32r", "uint64", "int64",
}

var dtypeBytes = [NumDTypes]uint8{1, 1, 2, 1, 1, 1, 1, 1, 4, 4, 2, 2, 2, 2, 4, 4, 4, 4, 8, 8}

// shortDTypes are the spellings of the profiler and of other tools.
var shortDTypes = map[string]DType{
	"fp32": Float32, "f32": Float32, "fp32r": Float32R, "tf32": Float32R, "bf16": BFloat16, "fp16": Float16, "f16": Float16,
	"fp8e3": Float8E3, "fp8e4": Float8E4, "fp8_e4": Float8E4, "fp8e5": Float8E5, "fp8_e5": Float8E5, "fp8": Float8E4,
	"u8": Uint8, "s8": Int8, "i8": Int8, "u16": Uint16, "s16": Int16, "i16": Int16, "u32": Uint32, "s32": Int32, "i32": Int32,
	"u64": Uint64, "s64": Int64, "i64": Int64, "int": Int32,
}

// String returns the name used in BIR JSON; "" where there is none.
func (d DType) String() string {
	if d < NumDTypes {
		return dtypeNames[d]
	}
	return ""
}

// Size returns the bytes of one element, 0 where the type is unknown.
func (d DType) Size() int {
	if d < NumDTypes {
		return int(dtypeBytes[d])
	}
	return 0
}

// ParseDType returns the type with the given BIR or profiler name.
func ParseDType(name string) (DType, bool) {
	for d, n := range dtypeNames {
		if name == n {
			return DType(d), true
		}
	}
	d, ok := shortDTypes[name]
	if !ok {
		return NoDType, false
	}
	return d, true
}

// Memory is where an operand lives: the compiler's MemoryType flags, which both spellings of the format reduce to.
type Memory uint8

// The memory types.
const (
	MemUnallocated Memory = 1
	MemInput       Memory = 2 // an input of the module, in device memory
	MemOutput      Memory = 4 // an output of the module, in device memory
	MemDRAM        Memory = 8
	MemSBUF        Memory = 16
	MemPSUM        Memory = 32
	MemRNG         Memory = 64
	MemRegister    Memory = 128
)

var memoryNames = []struct {
	m Memory
	n string
}{
	{MemUnallocated, "Unallocated"}, {MemInput, "Input"}, {MemOutput, "Output"}, {MemDRAM, "DRAM"},
	{MemSBUF, "SB"}, {MemPSUM, "PSUM"}, {MemRNG, "RNGSTATE"}, {MemRegister, "REG"},
}

// String returns the name used in BIR JSON.
func (m Memory) String() string {
	for _, x := range memoryNames {
		if x.m == m {
			return x.n
		}
	}
	return "Unallocated"
}

// ParseMemory returns the memory type with the given name.
func ParseMemory(name string) (Memory, bool) {
	for _, x := range memoryNames {
		if x.n == name {
			return x.m, true
		}
	}
	return MemUnallocated, false
}

// InDRAM reports whether the memory is device memory rather than on-chip.
func (m Memory) InDRAM() bool { return m&(MemInput|MemOutput|MemDRAM) != 0 }
