package components

import "perfsim/ecs"

// InstrID is a row of the instruction table. Rows are in program order: the
// order in which the placement walks, blocks of a loop right after the loop.
type InstrID uint32

// NoInstr stands for "no instruction".
const NoInstr InstrID = 1<<32 - 1

// Flags are properties of an instruction that the cost and placement rules
// ask for; readers set them once so that no system has to look at operands.
type Flags uint32

// The flags.
const (
	FlagTrigger     Flags = 1 << iota // DMATrigger: its consumers wait for its start only
	FlagCollective                    // CollectiveCompute: shares stream bandwidth, may be reflowed
	FlagBarrier                       // engine ALL: waits for the five data-path lanes
	FlagLoop                          // holds blocks of its own; not placed itself
	FlagLocal                         // a collective in its "local" form, which runs on the DMA lane
	FlagSWDGE                         // descriptors made by software (GpSimd)
	FlagHWDGE                         // descriptors made by the hardware descriptor generator
	FlagTranspose                     // a matmul that only transposes, or a transposing DMA
	FlagAccStart                      // a matmul that starts an accumulation group
	FlagAccStop                       // a matmul that ends an accumulation group
	FlagSrcPSUM                       // first input in PSUM
	FlagSrcDRAM                       // first input in device memory
	FlagTwoInputs                     // at least two tensor inputs
	FlagSrc2PSUM                      // second tensor input in PSUM
	FlagThreeInputs                   // at least three tensor inputs
	FlagDstPSUM                       // first output in PSUM
	FlagDstDRAM                       // first output in device memory
	FlagMixedTypes                    // input and output element types differ
	FlagStrided                       // an innermost step other than one element
	FlagUnknownOp                     // an opcode that is in no table; costed as the machine says
	FlagSpill                         // a spill store or reload put in by an allocator
	FlagSequencer                     // done by the engine's sequencer, not its data path
	FlagScan                          // tensor_tensor_scan
	FlagScalarTT                      // scalar_tensor_tensor
	FlagMeasured                      // has a measured start and duration
	FlagEstimated                     // stands for something the lowering can only estimate
	FlagZeroConst                     // a memset to zero
	FlagCrossPart                     // crosses partitions
	FlagStaticDMA                     // a transfer whose descriptors were made before the run
	FlagContinued                     // goes on with the work of the row before it on its lane: counts of work leave it out
	FlagTransfer                      // the transfer that the trigger in the row before starts, an event of the DMA lane and no instruction of the input
	FlagHelper                        // a product put in to sum over partitions: no FLOPs of the program
)

// Has reports whether all bits of g are set in f.
func (f Flags) Has(g Flags) bool { return f&g == g }

// Instructions is the instruction table. Columns marked optional are absent
// (length 0) where no reader filled them; Get then gives zero.
type Instructions struct {
	Opcode ecs.Column[Opcode]
	Engine ecs.Column[Engine]
	Lane   ecs.Column[uint16] // row of the lane table
	Flags  ecs.Column[Flags]

	// Elems is NEP, the largest number of elements per partition over all
	// access patterns of the instruction (docs/model.md, section 3); Parts the number of
	// partitions of the first input (of the output where there is none).
	Elems ecs.Column[uint32]
	Parts ecs.Column[uint16]
	DType ecs.Column[DType] // element type of the first tensor input, else of the output
	// OutElems is the elements per partition of the first output: for a
	// matmul the free size of the moving tensor. Optional.
	OutElems ecs.Column[uint32]
	// Banks holds the PSUM banks read (low byte, bit b for bank b) and
	// written (high byte).
	Banks ecs.Column[uint16]

	Name   ecs.Column[ecs.Symbol] // optional; symbol 0 is the implicit name "I-<row>"
	Source ecs.Column[ecs.Symbol] // optional; "file:line" of the kernel source
	HLO    ecs.Column[ecs.Symbol] // optional; name of the HLO instruction it came from
	// Scope is the path of the operator in the user's program, outermost part
	// first, parts separated by "/": op_name of HLO, the annotations, modules and
	// operators around a call of PyTorch. Optional; see Module.ScopeOf.
	Scope ecs.Column[ecs.Symbol]
	Func  ecs.Column[ecs.Symbol] // optional; activation function, ALU operation, reduction
	Text  ecs.Column[ecs.Symbol] // optional; operand text as the input had it
	Ref   ecs.Column[uint64]     // optional; the input's own 64-bit id
	PC    ecs.Column[uint32]     // optional; program counter on its engine
	// CompilerPC is the program counter in the compiler's own code plus one;
	// 0 for an instruction that the runtime put before or after it. Optional.
	CompilerPC ecs.Column[uint32]
	Queue      ecs.Column[uint16] // optional; row of the queue table plus one, 0 for none

	// MACs is the multiply-adds of a product in one execution; two FLOPs each.
	// Optional: filled by the lowering, else by FillMACs.
	MACs ecs.Column[uint32]

	// DMA geometry, optional: bytes moved and the bytes of one contiguous row
	// of the smaller side; a transfer of B bytes in rows of R has B/R
	// descriptors elements.
	DMABytes ecs.Column[uint64]
	DMARow   ecs.Column[uint32]

	// Work is how many arithmetic operations the row stands for; with DMABytes
	// and DType it gives the duration that the input of a trace does not have.
	// Optional.
	Work ecs.Column[uint64]

	// Issue is how long the instruction keeps its lane, Latency how long until
	// its result is visible, both in ns; filled by the cost system.
	Issue   ecs.Column[uint32]
	Latency ecs.Column[uint32]

	// Measured times in ns from the first event of the input, optional;
	// durations may be there without starts. No predicting system may read them.
	MeasuredStart ecs.Column[uint64]
	MeasuredDur   ecs.Column[uint32]
	// MeasuredWait is the profiler's own evt_wait_time as it stands, which
	// may lie before MeasuredStart. Optional.
	MeasuredWait ecs.Column[uint32]
}

func newInstructions() Instructions {
	return Instructions{
		Opcode: ecs.NewColumn[Opcode]("instr.opcode"), Engine: ecs.NewColumn[Engine]("instr.engine"),
		Lane: ecs.NewColumn[uint16]("instr.lane"), Flags: ecs.NewColumn[Flags]("instr.flags"),
		Elems: ecs.NewColumn[uint32]("instr.elems"), Parts: ecs.NewColumn[uint16]("instr.parts"),
		DType: ecs.NewColumn[DType]("instr.dtype"), OutElems: ecs.NewColumn[uint32]("instr.out_elems"),
		Banks: ecs.NewColumn[uint16]("instr.banks"),
		Name:  ecs.NewColumn[ecs.Symbol]("instr.name"), Source: ecs.NewColumn[ecs.Symbol]("instr.source"),
		HLO: ecs.NewColumn[ecs.Symbol]("instr.hlo"), Scope: ecs.NewColumn[ecs.Symbol]("instr.scope"), Func: ecs.NewColumn[ecs.Symbol]("instr.func"),
		Text: ecs.NewColumn[ecs.Symbol]("instr.text"), Ref: ecs.NewColumn[uint64]("instr.ref"),
		PC: ecs.NewColumn[uint32]("instr.pc"), CompilerPC: ecs.NewColumn[uint32]("instr.compiler_pc"), Queue: ecs.NewColumn[uint16]("instr.queue"),
		MACs:     ecs.NewColumn[uint32]("instr.macs"),
		DMABytes: ecs.NewColumn[uint64]("instr.dma_bytes"), DMARow: ecs.NewColumn[uint32]("instr.dma_row"), Work: ecs.NewColumn[uint64]("instr.work"),
		Issue: ecs.NewColumn[uint32]("instr.issue"), Latency: ecs.NewColumn[uint32]("instr.latency"),
		MeasuredStart: ecs.NewColumn[uint64]("instr.measured_start"), MeasuredDur: ecs.NewColumn[uint32]("instr.measured_dur"),
		MeasuredWait: ecs.NewColumn[uint32]("instr.measured_wait"),
	}
}

// Len returns the number of instructions.
func (t *Instructions) Len() int { return t.Opcode.Len() }

// required lists the columns that every row of a finished module has.
func (t *Instructions) required() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Opcode, &t.Engine, &t.Lane, &t.Flags, &t.Elems, &t.Parts, &t.DType, &t.Banks}
}

// optional lists the columns that may be absent.
func (t *Instructions) optional() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.OutElems, &t.Name, &t.Source, &t.HLO, &t.Scope, &t.Func, &t.Text, &t.Ref, &t.PC, &t.CompilerPC, &t.Queue,
		&t.MACs, &t.DMABytes, &t.DMARow, &t.Work, &t.Issue, &t.Latency, &t.MeasuredStart, &t.MeasuredDur, &t.MeasuredWait}
}

// Columns lists all columns of the table.
func (t *Instructions) Columns() []ecs.AnyColumn { return append(t.required(), t.optional()...) }

// Grow adds n rows of zeroes to every required column and to every optional
// column that is present, and returns the first new row.
func (t *Instructions) Grow(n int) InstrID {
	first := t.Len()
	for _, c := range t.required() {
		c.SetLen(first + n)
	}
	for _, c := range t.optional() {
		if first > 0 && c.Len() == first {
			c.SetLen(first + n)
		}
	}
	return InstrID(first)
}
