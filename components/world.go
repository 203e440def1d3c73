package components

import (
	"perfsim/components/machine"
	"perfsim/ecs"
)

// World is everything one simulation reads and writes.
type World struct {
	Module  *Module
	Machine *machine.Machine
	Config  Config

	Events Events
	Blocks []BlockResult
	// Placement counts the placements made, so that what was derived from an
	// earlier one can be distinguished from what is current.
	Placement int
	// Range is the range of run A's latency over the starts of the PE clock's
	// windows, which a program does not determine, in ns; nil where nothing.
	Range *LatencyRange
	// Why has, by run, the cause of every start, where Config.Why asked for it
	// and the model records it; else nil.
	Why [2]*Attribution

	// NoRunB is why there is no run B, "" where there is one. Its events are then
	// those of run A.
	NoRunB string

	// Transfers are when the data of DMA transfers moves in run A, by row. Models
	// that time a transfer apart from what triggers it fill it; else it is nil
	// and the event of a transfer is the transfer.
	Transfers []Transfer

	// FullClock are the spans in which the clock of the PE gives full rate in run
	// A, in the order of blocks, cores and times; SlowClock is the share of the
	// rate outside them. Models without such a clock leave both zero, as blocks
	// whose loops repeat are left out.
	FullClock []ClockSpan
	SlowClock float64

	// Indexes over the rows, built by the index system: engine and opcode to
	// instructions, edge class to edges.
	ByLane, ByOpcode, ByClass *ecs.Index
}

// LatencyRange is the lowest and the highest latency over the starts of the
// PE clock's windows that were tried, in ns. The latency printed is the central
// one.
type LatencyRange struct {
	Low  uint64 `json:"low_ns"`  // lowest latency over the phases of the PE clock that were tried
	High uint64 `json:"high_ns"` // highest latency over these phases
}

// Launch is the time in ns that the runtime takes around a kernel launched
// alone, and whether the figure is known and the module is a kernel without
// the runtime's own instructions. Device latency is Launch plus the latency.
func (w *World) Launch() (uint64, bool) {
	if w.Config.Model != Calibrated { // grids of cores have no such machine
		return 0, false
	}
	v, ok := w.Machine.Calibrated.Constant("launch_ns")
	if !ok {
		return 0, false
	}
	for _, pc := range w.Module.Instr.CompilerPC.Slice() {
		if pc == 0 {
			return 0, false
		}
	}
	return uint64(v + 0.5), true
}

// Config is the configuration of a simulation.
type Config struct {
	// Model is the set of rules that gives instructions their times.
	Model Model
	// Jobs is how many goroutines may work, at least 1; results do not depend
	// on it.
	Jobs int
	// Loops is how often a loop body counts.
	Loops Loops
	// OnDependencies has the calibrated model run by dependencies where the input
	// has semaphores too, so that run B can leave anti-dependencies out.
	OnDependencies bool
	// Why asks models that have rules of their own to say what held every
	// instruction.
	Why bool
	// Costs replace what the model says about single rows; the calibrated
	// model, which times work by the state of the machine, has none.
	Costs []RowCost
	// Progress, where not nil, is called with the share done of the running system.
	Progress func(done, total int64)
}

// RowCost is the cost of one instruction as the caller gives it, in ns; nil
// leaves the model's.
type RowCost struct {
	Row            InstrID
	Issue, Latency *uint32
}

// Latency returns the predicted time of the whole module in ns, by run: the
// blocks of every function one after the other, as often as the function
// runs, loops counted as Config.Loops says.
func (w *World) Latency(r Run) uint64 {
	var total uint64
	for _, b := range w.Blocks {
		if w.Module.Blocks.Parent.At(b.Block) != 0 {
			continue
		}
		runs := w.Module.Functions.Runs.At(int(w.Module.Blocks.Function.At(b.Block)))
		total = ecs.AddSat(total, ecs.MulSat(runs, w.BlockLatency(b, r)))
	}
	return total
}

// Replayed reports whether the events are those of the input rather than a
// simulation on the machine.
func (w *World) Replayed() bool { return w.Config.Model == Replay }

// LatencyB returns Latency of run B, absent where there is none.
func (w *World) LatencyB() OptionalNS {
	if w.NoRunB != "" {
		return AbsentNS
	}
	return OptionalNS(w.Latency(RunB))
}

// BlockLatencyB returns BlockLatency of run B, absent where there is none.
func (w *World) BlockLatencyB(b BlockResult) OptionalNS {
	if w.NoRunB != "" {
		return AbsentNS
	}
	return OptionalNS(w.BlockLatency(b, RunB))
}

// BySemaphores reports whether the model follows the semaphores of the input:
// it then does not see single dependencies left out.
func (w *World) BySemaphores() bool {
	return w.Config.Model == Calibrated && w.Module.Syncs.Op.Len() > 0 && !w.Config.OnDependencies
}

// BlockLatency returns the latency of one block with loops counted as
// Config.Loops says.
func (w *World) BlockLatency(b BlockResult, r Run) uint64 {
	if w.Config.Loops == Trips {
		return b.LatencyTrips[r]
	}
	return b.Latency[r]
}

// Transfer is the data of one DMA transfer on its way, from the first byte to
// its completion, in ns from the start of its block.
type Transfer struct {
	Row        InstrID
	Begin, End uint64
}

// ClockSpan is a span of a core's clock, in ns from the start of the block.
type ClockSpan struct {
	Block      int // row of the block table
	Core       int // in the order of the lanes
	Start, End uint64
}
