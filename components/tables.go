package components

import "perfsim/ecs"

// Locations is the table of memory locations: where tensors are placed.
type Locations struct {
	Name   ecs.Column[ecs.Symbol]
	Tensor ecs.Column[ecs.Symbol] // name of the logical tensor (the location set)
	Memory ecs.Column[Memory]
	Addr   ecs.Column[uint64] // bytes: per partition for SBUF and PSUM, linear for DRAM
	Bytes  ecs.Column[uint64] // bytes per partition (SBUF, PSUM) or in all (DRAM)
	Parts  ecs.Column[uint16]
	Base   ecs.Column[uint16] // first partition
	Bank   ecs.Column[int16]  // PSUM bank
	Alias  ecs.Column[uint32] // alias set, 0 for none; locations of one set overlap
	Kind   ecs.Column[uint8]  // TensorKind ordinal
}

// Blocks is the table of basic blocks: rows First to End of the instruction
// table (End excluded), the blocks of inner loops included.
type Blocks struct {
	Name     ecs.Column[ecs.Symbol]
	Function ecs.Column[uint32]
	Parent   ecs.Column[uint32] // instruction row of the loop it belongs to plus one, 0 for a top-level block
	First    ecs.Column[uint32]
	End      ecs.Column[uint32]
	// Trip is how often the block runs for each run of the block around it;
	// 1 for a top-level block, 0 where the count is not known.
	Trip ecs.Column[uint64]
}

// Functions is the table of functions; the blocks of function f are rows
// FirstBlock to EndBlock, in program order.
type Functions struct {
	Name       ecs.Column[ecs.Symbol]
	FirstBlock ecs.Column[uint32]
	EndBlock   ecs.Column[uint32]
	// Runs is how often the function runs in one run of the module ("modular
	// flow runs"): from its call sites times the trip counts around them.
	Runs ecs.Column[uint64]
}

// LaneKind says what a lane stands for.
type LaneKind uint8

// The lane kinds.
const (
	LaneEngine LaneKind = iota
	LaneDMAQueue
	LaneStream   // a collective stream
	LaneThread   // a thread or stream of a foreign trace
	LaneOperator // an operator of a netlist
)

// Lanes is the table of timelines: a machine's engines, or a trace's
// streams, or a netlist's operators.
type Lanes struct {
	Name   ecs.Column[ecs.Symbol]
	Engine ecs.Column[Engine]
	Kind   ecs.Column[LaneKind]
	Core   ecs.Column[uint16]
}

// Queues is the table of DMA queues.
type Queues struct {
	Name   ecs.Column[ecs.Symbol]
	Engine ecs.Column[Engine] // the engine that triggers it
	Depth  ecs.Column[uint32] // entries its ring holds, 0 for unbounded or unknown
}

// SyncOp is the operation of an instruction on a semaphore.
type SyncOp uint8

// The semaphore operations. Waits come first.
const (
	WaitGE SyncOp = iota // wait until value >= operand
	WaitEQ               // wait until value == operand
	SetInc               // add when complete
	SetDec               // subtract when complete
	SetTo                // set when complete
)

// IsWait reports whether the operation blocks.
func (o SyncOp) IsWait() bool { return o <= WaitEQ }

// Syncs is the table of semaphore operations; those of instruction i are
// rows Offsets[i] to Offsets[i+1] (none where Offsets is empty).
type Syncs struct {
	Offsets ecs.Column[uint32]
	Op      ecs.Column[SyncOp]
	Space   ecs.Column[uint8] // 'S' semaphore, 'E' event, '$' a local one of the runtime; the reader says
	ID      ecs.Column[uint32]
	Value   ecs.Column[int64]
	Owner   ecs.Column[ecs.Symbol] // engine or queue in parentheses behind the semaphore
}

// Packets is the table of measured DMA packets. Like the measured columns of
// the instructions it serves comparison and fitting only.
type Packets struct {
	Start  ecs.Column[uint64] // ns
	Dur    ecs.Column[uint32] // ns
	Engine ecs.Column[uint16]
	Queue  ecs.Column[uint16] // row of the queue table plus one
	Bytes  ecs.Column[uint32] // transfer size
	Read   ecs.Column[uint32]
	Write  ecs.Column[uint32]
	Sem    ecs.Column[int32] // semaphore raised, -1 for none
	Ref    ecs.Column[uint64]
}

// Windows is the table of measured clock windows of the PE: rate K/N of the
// full clock from Start for Dur ns.
type Windows struct {
	Start ecs.Column[uint64]
	Dur   ecs.Column[uint64]
	K     ecs.Column[uint16]
	N     ecs.Column[uint16]
	Core  ecs.Column[uint16]
}

// SemUpdates is the table of measured semaphore changes.
type SemUpdates struct {
	Time  ecs.Column[uint64] // ns
	ID    ecs.Column[uint32]
	Value ecs.Column[int64]
	Core  ecs.Column[uint16]
}

func newLocations() Locations {
	return Locations{ecs.NewColumn[ecs.Symbol]("locations.name"), ecs.NewColumn[ecs.Symbol]("locations.tensor"),
		ecs.NewColumn[Memory]("locations.memory"), ecs.NewColumn[uint64]("locations.addr"), ecs.NewColumn[uint64]("locations.bytes"),
		ecs.NewColumn[uint16]("locations.parts"), ecs.NewColumn[uint16]("locations.base"), ecs.NewColumn[int16]("locations.bank"),
		ecs.NewColumn[uint32]("locations.alias"), ecs.NewColumn[uint8]("locations.kind")}
}

func newBlocks() Blocks {
	return Blocks{ecs.NewColumn[ecs.Symbol]("blocks.name"), ecs.NewColumn[uint32]("blocks.function"),
		ecs.NewColumn[uint32]("blocks.parent"), ecs.NewColumn[uint32]("blocks.first"), ecs.NewColumn[uint32]("blocks.end"),
		ecs.NewColumn[uint64]("blocks.trip")}
}

func newFunctions() Functions {
	return Functions{ecs.NewColumn[ecs.Symbol]("functions.name"), ecs.NewColumn[uint32]("functions.first_block"),
		ecs.NewColumn[uint32]("functions.end_block"), ecs.NewColumn[uint64]("functions.runs")}
}

func newLanes() Lanes {
	return Lanes{ecs.NewColumn[ecs.Symbol]("lanes.name"), ecs.NewColumn[Engine]("lanes.engine"),
		ecs.NewColumn[LaneKind]("lanes.kind"), ecs.NewColumn[uint16]("lanes.core")}
}

func newQueues() Queues {
	return Queues{ecs.NewColumn[ecs.Symbol]("queues.name"), ecs.NewColumn[Engine]("queues.engine"), ecs.NewColumn[uint32]("queues.depth")}
}

func newSyncs() Syncs {
	return Syncs{ecs.NewColumn[uint32]("syncs.offsets"), ecs.NewColumn[SyncOp]("syncs.op"), ecs.NewColumn[uint8]("syncs.space"),
		ecs.NewColumn[uint32]("syncs.id"), ecs.NewColumn[int64]("syncs.value"), ecs.NewColumn[ecs.Symbol]("syncs.owner")}
}

func newPackets() Packets {
	return Packets{ecs.NewColumn[uint64]("packets.start"), ecs.NewColumn[uint32]("packets.dur"), ecs.NewColumn[uint16]("packets.engine"),
		ecs.NewColumn[uint16]("packets.queue"), ecs.NewColumn[uint32]("packets.bytes"), ecs.NewColumn[uint32]("packets.read"),
		ecs.NewColumn[uint32]("packets.write"), ecs.NewColumn[int32]("packets.sem"), ecs.NewColumn[uint64]("packets.ref")}
}

func newWindows() Windows {
	return Windows{ecs.NewColumn[uint64]("windows.start"), ecs.NewColumn[uint64]("windows.dur"), ecs.NewColumn[uint16]("windows.k"),
		ecs.NewColumn[uint16]("windows.n"), ecs.NewColumn[uint16]("windows.core")}
}

func newSemUpdates() SemUpdates {
	return SemUpdates{ecs.NewColumn[uint64]("sem_updates.time"), ecs.NewColumn[uint32]("sem_updates.id"),
		ecs.NewColumn[int64]("sem_updates.value"), ecs.NewColumn[uint16]("sem_updates.core")}
}

// Columns lists all columns of the table.
func (t *Locations) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Name, &t.Tensor, &t.Memory, &t.Addr, &t.Bytes, &t.Parts, &t.Base, &t.Bank, &t.Alias, &t.Kind}
}

// Columns lists all columns of the table.
func (t *Blocks) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Name, &t.Function, &t.Parent, &t.First, &t.End, &t.Trip}
}

// Columns lists all columns of the table.
func (t *Functions) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Name, &t.FirstBlock, &t.EndBlock, &t.Runs}
}

// Columns lists all columns of the table.
func (t *Lanes) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Name, &t.Engine, &t.Kind, &t.Core}
}

// Columns lists all columns of the table.
func (t *Queues) Columns() []ecs.AnyColumn { return []ecs.AnyColumn{&t.Name, &t.Engine, &t.Depth} }

// Columns lists all columns of the table.
func (t *Syncs) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Offsets, &t.Op, &t.Space, &t.ID, &t.Value, &t.Owner}
}

// Columns lists all columns of the table.
func (t *Packets) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Start, &t.Dur, &t.Engine, &t.Queue, &t.Bytes, &t.Read, &t.Write, &t.Sem, &t.Ref}
}

// Columns lists all columns of the table.
func (t *Windows) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Start, &t.Dur, &t.K, &t.N, &t.Core}
}

// Columns lists all columns of the table.
func (t *SemUpdates) Columns() []ecs.AnyColumn {
	return []ecs.AnyColumn{&t.Time, &t.ID, &t.Value, &t.Core}
}

// Len returns the number of blocks.
func (t *Blocks) Len() int { return t.Name.Len() }

// Len returns the number of functions.
func (t *Functions) Len() int { return t.Name.Len() }

// Len returns the number of lanes.
func (t *Lanes) Len() int { return t.Name.Len() }

// Len returns the number of locations.
func (t *Locations) Len() int { return t.Name.Len() }

// Len returns the number of queues.
func (t *Queues) Len() int { return t.Name.Len() }

// Add appends a block and returns its row; First and End are set later.
func (t *Blocks) Add(name ecs.Symbol, function uint32, parent uint32, first InstrID, trip uint64) int {
	t.Name.Append(name)
	t.Function.Append(function)
	t.Parent.Append(parent)
	t.First.Append(uint32(first))
	t.End.Append(uint32(first))
	t.Trip.Append(trip)
	return t.Len() - 1
}

// Add appends a function and returns its row; EndBlock is set later.
func (t *Functions) Add(name ecs.Symbol, firstBlock int) int {
	t.Name.Append(name)
	t.FirstBlock.Append(uint32(firstBlock))
	t.EndBlock.Append(uint32(firstBlock))
	t.Runs.Append(1)
	return t.Len() - 1
}

// Add appends a lane and returns its row.
func (t *Lanes) Add(name ecs.Symbol, engine Engine, kind LaneKind, core uint16) uint16 {
	t.Name.Append(name)
	t.Engine.Append(engine)
	t.Kind.Append(kind)
	t.Core.Append(core)
	return uint16(t.Len() - 1)
}

// Add appends a semaphore operation to the row being filled; see EndRow.
func (t *Syncs) Add(op SyncOp, space uint8, id uint32, value int64, owner ecs.Symbol) {
	t.Op.Append(op)
	t.Space.Append(space)
	t.ID.Append(id)
	t.Value.Append(value)
	t.Owner.Append(owner)
}

// EndRow closes the operations of the next instruction in program order.
func (t *Syncs) EndRow() {
	if t.Offsets.Len() == 0 {
		t.Offsets.Append(0)
	}
	t.Offsets.Append(uint32(t.Op.Len()))
}

// Range returns the rows of instruction i.
func (t *Syncs) Range(i InstrID) (lo, hi int) {
	off := t.Offsets.Slice()
	if int(i)+1 >= len(off) {
		return 0, 0
	}
	return int(off[i]), int(off[i+1])
}
