package profile

import (
	"bytes"
	"errors"
	"fmt"

	"perfsim/components"
)

// Where the engines see the on-chip memories: 128 partitions of 256 KiB each
// for the SBUF (of which 192 to 256 KiB exist), and the PSUM behind them with
// the same stride (of which 16 KiB, eight banks of 2 KiB, exist). Read off the
// files: the PSUM starts at 128 × 256 KiB, and DMA patterns over SBUF
// partitions step by 256 KiB.
const (
	psumBase       = 0x2000000
	psumEnd        = 2 * psumBase
	partitionShift = 18
	partitionBytes = 1 << partitionShift
	partitionMask  = partitionBytes - 1
	numPartitions  = 128
	psumBankShift  = 11
	psumPartition  = 8 << psumBankShift
	// sbufWindow is where DMA engines see the SBUF: 0x802000000000 and up.
	sbufWindow      = 0x802
	sbufWindowShift = 36
)

// maxElems bounds the elements of one pattern per partition, far above any
// memory but far below what would overflow a duration; maxBytes those of one
// DMA.
const (
	maxElems = 1 << 31
	maxBytes = 1 << 48
)

// isSequencer reports whether an engine's sequencer does the operation.
func isSequencer(opcode []byte) bool {
	switch string(opcode) {
	case "EVENT_SEMAPHORE", "EVENT_SEMAPHORE_RANGE_CLEAR", "NOP", "DRAIN", "NOTIFY", "WRITE", "SET_ORDERING_MODE",
		"COMPARE_BRANCH", "BRANCH_HINT", "BRANCH_PREFETCH_HINT", "TENSOR_LOAD", "TENSOR_SAVE", "MOVE", "ALU_OP", "HALT":
		return true
	}
	return false
}

// isDMA reports whether the operation moves data with the DMA engines. They go
// to the DMA lane of their core, whichever engine issues them.
func isDMA(opcode []byte) bool {
	return bytes.HasPrefix(opcode, []byte("DMA_")) || bytes.HasPrefix(opcode, []byte("PSEUDO_DMA_"))
}

// isDataPath reports whether the operation is a known one of the engines' data
// paths.
func isDataPath(opcode []byte) bool {
	switch string(opcode) {
	case "MATMUL", "LDWEIGHTS", "ACTIVATE", "ACT_TABLE_LOAD", "COPY", "CAST", "TENSOR_REDUCE", "TENSOR_SCALAR", "TENSOR_SCALAR_PTR",
		"TENSOR_TENSOR", "TENSOR_TENSOR_SCAN", "SCALAR_TENSOR_TENSOR", "RECIPROCAL", "BN_STATS", "BN_AGGR", "MAX8", "IOTA",
		"AFFINE_SELECT", "SELECT", "MEMSET", "TRANSPOSE", "STREAM_TRANSPOSE", "SHUFFLE", "STREAM_SHUFFLE", "ITERATE", "GPSIMDSB2SB",
		"MATCH_REPLACE8", "FIND_INDEX8", "COPY_PREDICATED", "POOL", "RNG", "DROPOUT":
		return true
	}
	return false
}

// traffic is the number of bytes that an instruction reads and writes by the
// profile, in bytes (for engine instructions per partition).
type traffic struct {
	sbufRead, sbufWrite, psumRead, psumWrite, hbmRead, hbmWrite uint64
}

// shape has the properties of one instruction's operands that its cost depends
// on.
type shape struct {
	flags    components.Flags
	elems    uint32
	outElems uint32
	parts    uint16
	dtype    components.DType
	banks    uint16
	dmaBytes uint64
	dmaRow   uint32
	queueSem uint32 // semaphore the DMA raises plus one
}

// shaper turns operands into shapes and access pattern rows.
type shaper struct {
	ops  operands
	out  shape
	aps  []ap
	dims []dim
	ins  int // tensor inputs so far
	outs int
	err  error
}

// ap is an access pattern as the operand table wants it; its dimensions are
// dims[lo:hi], slow to fast, the partition dimension first.
type ap struct {
	role   components.OperandRole
	kind   components.OperandKind
	dtype  components.DType
	memory components.Memory
	table  int32 // DMA: index of the runtime's address table plus one
	addr   uint64
	base   uint16
	lo, hi uint32
}

type dim struct {
	step  int64
	count uint64
}

// measure fills s.out and appends to s.aps and s.dims from s.ops.
func (s *shaper) measure(opcode []byte, transpose bool, use traffic) error {
	s.out = shape{dtype: components.NoDType}
	s.ins, s.outs, s.err = 0, 0, nil
	switch {
	case isDMA(opcode):
		s.dma(opcode, use)
	case string(opcode) == "MATMUL" || string(opcode) == "LDWEIGHTS":
		s.pe(string(opcode) == "MATMUL", transpose)
	default:
		s.engine()
	}
	switch {
	case isSequencer(opcode):
		s.out.flags |= components.FlagSequencer
	case !isDMA(opcode) && !isDataPath(opcode):
		s.out.flags |= components.FlagUnknownOp
	}
	return s.err
}

// engine handles the instructions of DVE, ACT, Pool and SP.
func (s *shaper) engine() {
	parts := uint64(0)
	if c, ok := s.ops.Uint("channels"); ok && c <= numPartitions {
		parts = c
	}
	for i := range s.ops.Patterns {
		p := &s.ops.Patterns[i]
		if !p.HasAddress {
			continue
		}
		s.add(p, roleOf(p.Key), p.DType, parts)
	}
	// A pointer among the immediates reads one fp32 value in each partition.
	if src, ok := s.ops.Field("imm_src"); ok {
		imm, _ := s.ops.Field("imm")
		for {
			var kind, value []byte
			var more bool
			kind, src, more = bytes.Cut(src, comma)
			value, imm, _ = bytes.Cut(imm, comma)
			if a, ok := number(value); ok && string(kind) == "PTR" {
				s.add(&pattern{DType: components.Float32, HasAddress: true, Address: a}, components.RoleIn, components.Float32, parts)
			}
			if !more {
				break
			}
		}
	}
	// Registers: TENSOR_LOAD fills those named in data.
	if data, ok := s.ops.Field("data"); ok {
		s.registers(data)
	}
}

var comma = []byte(",")

func (s *shaper) registers(list []byte) {
	for more := true; more; {
		var item []byte
		item, list, more = bytes.Cut(list, comma)
		if !bytes.HasPrefix(item, []byte("$R[")) || !bytes.HasSuffix(item, []byte("]")) {
			continue
		}
		if n, ok := number(item[3 : len(item)-1]); ok {
			at := uint32(len(s.dims))
			s.aps = append(s.aps, ap{role: components.RoleOut, kind: components.OperandRegister, dtype: components.Uint32,
				memory: components.MemRegister, addr: n, lo: at, hi: at})
		}
	}
}

// pe handles MATMUL (moving tensor through the array) and LDWEIGHTS
// (stationary tensor into it). Rows of the array are the partitions of the
// input, columns those of the output. The text gives no type for the output:
// the PE adds up in fp32 and a transpose passes its input on.
func (s *shaper) pe(matmul, transpose bool) {
	if transpose {
		s.out.flags |= components.FlagTranspose
	} else if mode, _ := s.ops.Field("transpose_mode"); string(mode) == "ENABLED" {
		s.out.flags |= components.FlagTranspose
		transpose = true
	}
	in := components.NoDType
	for i := range s.ops.Patterns {
		p := &s.ops.Patterns[i]
		if !p.HasAddress {
			continue
		}
		role, dtype, parts := roleOf(p.Key), p.DType, uint64(s.ops.Rows)
		if role == components.RoleIn && in == components.NoDType {
			in = dtype
		}
		if role == components.RoleOut {
			parts = uint64(s.ops.Cols)
			if dtype == components.NoDType {
				dtype = components.Float32
				if transpose && in != components.NoDType {
					dtype = in
				}
			}
		}
		s.add(p, role, dtype, parts)
	}
	if acc, ok := s.ops.Uint("acc_flags"); ok && matmul {
		if acc&1 != 0 {
			s.out.flags |= components.FlagAccStart
		}
		if acc&2 != 0 {
			s.out.flags |= components.FlagAccStop
		}
	}
}

func roleOf(key []byte) components.OperandRole {
	if bytes.HasPrefix(key, []byte("dst")) || bytes.HasPrefix(key, []byte("out")) {
		return components.RoleOut
	}
	return components.RoleIn
}

// add appends the pattern p of an engine instruction and updates the shape.
// parts is the number of partitions it covers, 0 where the text does not say.
func (s *shaper) add(p *pattern, role components.OperandRole, dtype components.DType, parts uint64) {
	a := ap{role: role, dtype: dtype, lo: uint32(len(s.dims))}
	switch {
	case p.Address < psumBase:
		a.memory = components.MemSBUF
		a.base, a.addr = uint16(p.Address>>partitionShift), p.Address&partitionMask
	case p.Address < psumEnd:
		a.memory = components.MemPSUM
		a.base, a.addr = uint16((p.Address-psumBase)>>partitionShift), p.Address&partitionMask
	default:
		a.memory, a.addr = components.MemDRAM, p.Address
	}
	if parts == 0 {
		parts = 1
	}
	if parts > numPartitions {
		s.fail("%s covers %d partitions of %d", p.Key, parts, numPartitions)
		return
	}
	s.dims = append(s.dims, dim{1, parts})
	elems := s.reverse(p.Key, p.Steps, p.Counts)
	a.hi = uint32(len(s.dims))
	s.aps = append(s.aps, a)
	s.note(a, role, elems, parts, len(p.Steps) > 0)
}

// reverse appends the dimensions of a pattern, slow to fast and without those
// of one element, and returns the number of elements.
func (s *shaper) reverse(key []byte, steps []int64, counts []uint64) uint64 {
	elems := uint64(1)
	first := len(s.dims)
	for i := len(steps) - 1; i >= 0; i-- {
		if counts[i] == 1 {
			continue
		}
		if counts[i] > maxElems || elems*counts[i] > maxElems {
			s.fail("%s has more than %d elements in a partition", key, maxElems)
			return 0
		}
		elems *= counts[i]
		if steps[i] > maxBytes || steps[i] < -maxBytes {
			s.fail("%s steps by %d elements", key, steps[i])
			return 0
		}
		s.dims = append(s.dims, dim{steps[i], counts[i]})
	}
	if len(s.dims) == first {
		s.dims = append(s.dims, dim{1, 1})
	} else if last := s.dims[len(s.dims)-1].step; last != 1 && last != -1 {
		s.out.flags |= components.FlagStrided
	}
	return elems
}

// note updates the shape for one operand; tensor distinguishes a tensor from a
// scalar read through a pointer.
func (s *shaper) note(a ap, role components.OperandRole, elems, parts uint64, tensor bool) {
	o := &s.out
	o.elems = max(o.elems, uint32(min(elems, maxElems)))
	if a.memory == components.MemPSUM {
		mask := s.bankMask(a)
		if role == components.RoleOut {
			mask <<= 8
		}
		o.banks |= mask
	}
	if role == components.RoleOut {
		s.outs++
		if s.outs > 1 {
			return
		}
		o.outElems = uint32(min(elems, maxElems))
		switch {
		case a.memory == components.MemPSUM:
			o.flags |= components.FlagDstPSUM
		case a.memory.InDRAM():
			o.flags |= components.FlagDstDRAM
		}
		if s.ins == 0 {
			o.parts, o.dtype = uint16(parts), a.dtype
		} else if a.dtype != components.NoDType && o.dtype != components.NoDType && a.dtype != o.dtype {
			o.flags |= components.FlagMixedTypes
		}
		return
	}
	if !tensor {
		return
	}
	s.ins++
	switch s.ins {
	case 1:
		if s.outs > 0 && a.dtype != components.NoDType && o.dtype != components.NoDType && a.dtype != o.dtype {
			o.flags |= components.FlagMixedTypes
		}
		o.parts, o.dtype = uint16(parts), a.dtype
		switch {
		case a.memory == components.MemPSUM:
			o.flags |= components.FlagSrcPSUM
		case a.memory.InDRAM():
			o.flags |= components.FlagSrcDRAM
		}
	case 2:
		o.flags |= components.FlagTwoInputs
		if a.memory == components.MemPSUM {
			o.flags |= components.FlagSrc2PSUM
		}
	case 3:
		o.flags |= components.FlagThreeInputs
	}
}

// bankMask returns the PSUM banks that a touches, bit b for bank b.
func (s *shaper) bankMask(a ap) uint16 {
	size := int64(max(a.dtype.Size(), 1))
	lo, hi := int64(a.addr), int64(a.addr)+size
	for _, d := range s.dims[a.lo+1 : a.hi] {
		if d.count == 0 {
			return 0
		}
		// At most 2^31 elements of steps up to 2^48: clamp before multiplying.
		reach := d.step
		if reach > psumPartition || reach < -psumPartition {
			reach = max(min(reach, psumPartition), -psumPartition)
		}
		reach *= int64(d.count-1) * size
		if reach < 0 {
			lo += reach
		} else {
			hi += reach
		}
	}
	first := max(lo, 0) >> psumBankShift
	last := min((hi-1)>>psumBankShift, 7)
	var mask uint16
	for b := first; b <= last; b++ {
		mask |= 1 << b
	}
	return mask
}

func (s *shaper) fail(format string, args ...any) {
	if s.err == nil {
		s.err = errors.New(cut(fmt.Sprintf(format, args...), maxComplaint))
	}
}

// dma handles the instructions that start the DMA engines. The text has, for
// each side, the bytes of one contiguous element, steps in bytes and counts
// of elements, and an address or an entry of the runtime's address table.
func (s *shaper) dma(opcode []byte, use traffic) {
	o := &s.out
	in := s.dmaType("in_dtype")
	out := s.dmaType("out_dtype")
	if in != components.NoDType && out != components.NoDType && in != out {
		o.flags |= components.FlagMixedTypes
	}
	if bytes.Contains(opcode, []byte("TRANSPOSE")) {
		o.flags |= components.FlagTranspose
	}
	srcBytes, srcRow := s.side("src", components.RoleIn, in, use.hbmRead, use.sbufRead, use.psumRead)
	dstBytes, dstRow := s.side("dst", components.RoleOut, out, use.hbmWrite, use.sbufWrite, use.psumWrite)
	// Where the DMA converts types, it moves the bytes that it writes: the
	// profile's own packets have that size.
	if o.dmaBytes = dstBytes; dstBytes == 0 {
		o.dmaBytes = srcBytes
	}
	if o.dmaBytes == 0 { // a form of text we do not know
		o.dmaBytes = max(use.hbmWrite, use.sbufWrite, use.psumWrite, use.hbmRead, use.sbufRead, use.psumRead)
	}
	switch {
	case srcRow == 0:
		o.dmaRow = dstRow
	case dstRow == 0:
		o.dmaRow = srcRow
	default:
		o.dmaRow = min(srcRow, dstRow)
	}
	if sem, ok := s.ops.Uint("semaphore"); ok && sem < 1<<32-1 {
		o.queueSem = uint32(sem) + 1
	}
}

func (s *shaper) dmaType(key string) components.DType {
	if v, ok := s.ops.Field(key); ok {
		return dtypeOf(v)
	}
	return components.NoDType
}

// side adds the operand of one side of a DMA and returns the bytes it covers
// and those of one contiguous row. Without a type, elements are bytes.
func (s *shaper) side(name string, role components.OperandRole, dtype components.DType, hbm, sbuf, psum uint64) (total uint64, row uint32) {
	size, ok := s.ops.Uint(name + "_elem_size")
	p := s.ops.Pattern(name + "_pattern")
	if !ok || p == nil {
		return 0, 0
	}
	if size == 0 || size > maxElems {
		s.fail("%s_elem_size is %d", name, size)
		return 0, 0
	}
	total = size
	contiguous := size
	merging := true
	for i, c := range p.Counts {
		if c == 0 || c > maxBytes/total {
			s.fail("%s_pattern covers %d × %d bytes: none, or more than %d", name, total, c, uint64(maxBytes))
			return 0, 0
		}
		if step := p.Steps[i]; step > maxBytes || step < -maxBytes {
			s.fail("%s_pattern steps by %d bytes", name, step)
			return 0, 0
		}
		total *= c
		if c == 1 {
			continue
		}
		if merging = merging && p.Steps[i] == int64(contiguous); merging {
			contiguous *= c
		}
	}

	a := ap{role: role, dtype: dtype, lo: uint32(len(s.dims))}
	unit := uint64(1)
	if dtype == components.NoDType || size%uint64(dtype.Size()) != 0 {
		a.dtype = components.Uint8
	} else {
		unit = uint64(dtype.Size())
	}
	addr, hasAddr := s.ops.Uint(name + "_addr_imm")
	if table, ok := s.ops.Uint(name + "_table_index"); ok && table < 1<<16 {
		a.table = int32(table) + 1
		addr, _ = s.ops.Uint(name + "_table_offset_imm")
		hasAddr = false
	}
	onChip := hasAddr && addr>>sbufWindowShift == sbufWindow
	switch {
	case hbm > 0:
		onChip = false
	case sbuf > 0 || psum > 0:
		onChip = true
	}
	a.memory, a.addr = components.MemDRAM, addr
	if onChip {
		a.memory = components.MemSBUF
		within := addr & (1<<sbufWindowShift - 1)
		if psum > 0 && sbuf == 0 || within >= psumBase && within < psumEnd {
			a.memory = components.MemPSUM
		}
		a.base, a.addr = uint16(within>>partitionShift&(numPartitions-1)), within&partitionMask
	}

	// The dimension that steps over partitions comes first, then the others
	// slow to fast, then the contiguous element.
	part := -1
	if onChip {
		for i, step := range p.Steps {
			if step != 0 && step%partitionBytes == 0 && p.Counts[i] > 1 {
				part = i
			}
		}
	}
	parts := uint64(1)
	if onChip {
		step := int64(1)
		if part >= 0 {
			step, parts = p.Steps[part]/partitionBytes, p.Counts[part]
		}
		if parts > numPartitions {
			s.fail("%s_pattern covers %d partitions of %d", name, parts, numPartitions)
			return 0, 0
		}
		s.dims = append(s.dims, dim{step, parts})
	}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if i == part || p.Counts[i] == 1 {
			continue
		}
		s.dims = append(s.dims, dim{p.Steps[i] / int64(unit), p.Counts[i]})
		if !onChip && len(s.dims) == int(a.lo)+1 {
			parts = p.Counts[i]
		}
	}
	s.dims = append(s.dims, dim{1, size / unit})
	a.hi = uint32(len(s.dims))
	s.aps = append(s.aps, a)
	elems := total / unit
	if onChip {
		elems /= parts
	} else if int(a.hi-a.lo) > 1 {
		elems /= parts
	}
	s.note(a, role, elems, min(parts, 1<<16-1), true)
	return total, uint32(min(contiguous, 1<<32-1))
}
