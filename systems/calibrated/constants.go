package calibrated

import (
	"fmt"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
)

// engines are those with a sequencer, in the order of their constants.
var engines = []components.Engine{components.Pool, components.Activation, components.PE, components.DVE, components.SP}

// Constants are the constants of the model, all times in ns. The name of a
// constant in a machine description is in its comment; * stands for the name
// of an engine.
type Constants struct {
	Engine [components.NumEngines]EngineConstants
	PE     PEConstants
	Gov    GovernorConstants
	DMA    DMAConstants
}

// EngineConstants are those of one engine's sequencer.
type EngineConstants struct {
	Gap         float64 // seq.*.gap_ns: end of one control instruction to the start of the next
	Dispatch    float64 // seq.*.dispatch_ns: a data-path instruction keeps the sequencer
	Chain       float64 // seq.*.chain_ns: least duration of a barrier step of the runtime
	Wake        float64 // sync.*.wake_ns: semaphore change to the start of a data-path instruction
	WakeControl float64 // sync.*.wake_control_ns: to the start of a control instruction or trigger
	Hop         float64 // sync.*.hop_ns: to the end of a barrier step that waited for it
	Retire      float64 // sync.*.retire_ns: end of a data-path instruction to its semaphore's change
	Drain       float64 // sync.*.drain_ns: last retirement to the end of a DRAIN that waits for it
	Start       float64 // start.*_ns: first instruction of the runtime's preamble
	LoadWide    float64 // seq.*.TENSOR_LOAD.wide_ns: loading more than one register
	TriggerHW   float64 // dma.trigger_*_ns: a hardware-DGE trigger keeps the sequencer
}

// PEConstants are those of the tensor engine.
type PEConstants struct {
	Fixed       float64 // pe.matmul_fixed_cycles: per matmul on top of its columns
	FillNs      float64 // pe.fill_ns: end of streaming to retirement, the part that keeps time
	FillCycles  float64 // pe.fill_cycles: the part that runs on the governed clock
	WakeStream  float64 // pe.wake_stream_ns: semaphore change to a matmul that waits itself
	FixedT      float64 // pe.transpose_fixed_cycles: the same for a transpose
	AfterStream float64 // pe.load_after_stream_ns: start of a matmul to that of the next load
	Burst       float64 // pe.burst_cycles: streamed at full rate after idling on the slow clock
	// FirstLoad is how long after a load its matmul starts where nothing hides
	// it, by operand (16-bit, 32-bit transposed, 32-bit) and clock (full, slow):
	// pe.first_load_{16bit,32bit_transpose,32bit}_{full,slow}_ns.
	FirstLoad [3][2]float64
	// Load is the duration a load shows: pe.load_*_ns, as above.
	Load [3][2]float64
}

// GovernorConstants are those of the PE's clock governor.
type GovernorConstants struct {
	Window    float64 // governor.window_ns
	Threshold float64 // governor.threshold: use of a window, in cycles of the full clock, that gives full rate in the next
	Slow      float64 // governor.slow_rate: share of the full rate
	Phases    float64 // governor.phases: phases tried for short modules
	Short     float64 // governor.short_windows: modules shorter than this are short
}

// DMAConstants are those of descriptor generation and the DMA engines.
type DMAConstants struct {
	ManyRows        float64 // dma.many_rows: descriptors beyond which generation takes longer
	TriggerMany     float64 // dma.trigger_many_ns: added to a trigger with many rows
	StaticTrigger   float64 // dma.static_trigger_ns: a trigger of descriptors made before the run keeps its sequencer
	Scatter         float64 // dma.scatter_ns: least time of a row where the rows of a transfer are apart in device memory
	Transpose       float64 // dma.transpose_share: rate of transposes, as a share of that of copies
	TransposeOnChip float64 // dma.transpose_onchip_share: the same from SBUF to SBUF
	IndirectHold    float64 // dma.indirect_hold_share: share of generation and data for which a transfer by index holds back the next
	Element         float64 // dma.element_ns: an element that moves by itself
	Conflict        float64 // dma.conflict_ns: more per 128 rows where they are a multiple of 1 MiB apart
	TriggerFirst    float64 // dma.trigger_first_ns: added to an engine's first trigger
	Interval        float64 // dma.trigger_interval_ns: least distance of the ends of two triggers of a queue
	StartWrite      float64 // dma.hw_start_write_ns: trigger to first packet, writing device memory
	StartRead       float64 // dma.hw_start_read_ns: reading it
	StartMany       float64 // dma.hw_start_many_ns: added with many rows
	SWGenerate      float64 // dma.sw_generate_ns: software generation before the trigger shows
	SWInterval      float64 // dma.sw_interval_ns: least distance of two software triggers
	SWDispatch      float64 // dma.sw_dispatch_ns: a software trigger keeps its sequencer
	SWTrigger       float64 // dma.sw_trigger_ns: duration shown
	SWTriggerStep   float64 // dma.sw_trigger_step_ns: added for each software transfer in flight
	SWFlight        float64 // dma.sw_flight_ns: how long one counts as in flight
	SWStartWrite    float64 // dma.sw_start_write_ns
	SWStartRead     float64 // dma.sw_start_read_ns
	SWReadRow       float64 // dma.sw_read_row_bytes: rows a software transfer gathers when reading device memory
	Skew            float64 // dma.skew_ns: first descriptor to that of the last engine
	Row             float64 // dma.row_ns: per row of a hardware transfer
	Chunk           float64 // dma.chunk_ns: per contiguous piece of a software transfer that writes device memory
	Cast            float64 // dma.cast_ns: more per piece where types are converted
	Rate            float64 // dma.bytes_per_ns: of one engine
	End             float64 // dma.end_ns: the write that ends a transfer on an engine
	Complete        float64 // dma.complete_ns: last engine's end to the semaphore's last change
	ReadRestart     float64 // dma.read_restart_ns: a queue starts to read again
	ReadBatched     float64 // dma.read_batched_ns: a read that was queued with the one before it
	ReadSmall       float64 // dma.read_small_ns: a read of short rows
	SmallRow        float64 // dma.small_row_bytes
	Batch           float64 // dma.batch_ns: reads that arrive within this are queued together
	Backlog         float64 // dma.backlog_ns: behind more work than this a read's latency is hidden
	Turnaround      float64 // dma.turnaround_ns: a read behind a write in progress
	WriteIdle       float64 // dma.write_idle_share: of the streaming time, added to a write
	WriteQueued     float64 // dma.write_queued_share: the same for a write right behind another
	QueueDepth      float64 // dma.queue_depth: transfers waiting in a queue beyond which its trigger waits
	QueueLag        float64 // dma.queue_lag_ns: the start of a write to its queue having room
	ReadLead        float64 // dma.read_lead_ns: a read leaves its queue so much before the writes ahead of it end; 0 for at once
	Engines         float64 // machine's memory.dma_engines
}

// fields lists every scalar constant with its name in the description.
func (c *Constants) fields() []field {
	var out []field
	add := func(name string, p *float64) { out = append(out, field{name, p}) }
	for _, e := range engines {
		k := &c.Engine[e]
		n := e.String()
		add("seq."+n+".gap_ns", &k.Gap)
		add("seq."+n+".dispatch_ns", &k.Dispatch)
		add("seq."+n+".chain_ns", &k.Chain)
		add("sync."+n+".wake_ns", &k.Wake)
		add("sync."+n+".wake_control_ns", &k.WakeControl)
		add("sync."+n+".hop_ns", &k.Hop)
		add("sync."+n+".retire_ns", &k.Retire)
		add("sync."+n+".drain_ns", &k.Drain)
		add("start."+n+"_ns", &k.Start)
		add("seq."+n+".TENSOR_LOAD.wide_ns", &k.LoadWide)
		if e == components.SP || e == components.Activation {
			add("dma.trigger_"+n+"_ns", &k.TriggerHW)
		}
	}
	p, g, d := &c.PE, &c.Gov, &c.DMA
	for k, operand := range LoadKinds {
		for r, clock := range clocks {
			add("pe.first_load_"+operand+"_"+clock+"_ns", &p.FirstLoad[k][r])
			add("pe.load_"+operand+"_"+clock+"_ns", &p.Load[k][r])
		}
	}
	for _, f := range []field{
		{"pe.matmul_fixed_cycles", &p.Fixed}, {"pe.fill_ns", &p.FillNs}, {"pe.fill_cycles", &p.FillCycles}, {"pe.wake_stream_ns", &p.WakeStream},
		{"pe.transpose_fixed_cycles", &p.FixedT}, {"pe.load_after_stream_ns", &p.AfterStream}, {"pe.burst_cycles", &p.Burst},
		{"governor.window_ns", &g.Window}, {"governor.threshold", &g.Threshold}, {"governor.slow_rate", &g.Slow},
		{"governor.phases", &g.Phases}, {"governor.short_windows", &g.Short},
		{"dma.many_rows", &d.ManyRows}, {"dma.trigger_many_ns", &d.TriggerMany}, {"dma.trigger_first_ns", &d.TriggerFirst},
		{"dma.static_trigger_ns", &d.StaticTrigger}, {"dma.scatter_ns", &d.Scatter}, {"dma.conflict_ns", &d.Conflict},
		{"dma.element_ns", &d.Element},
		{"dma.transpose_share", &d.Transpose}, {"dma.transpose_onchip_share", &d.TransposeOnChip}, {"dma.indirect_hold_share", &d.IndirectHold},
		{"dma.trigger_interval_ns", &d.Interval}, {"dma.hw_start_write_ns", &d.StartWrite}, {"dma.hw_start_read_ns", &d.StartRead},
		{"dma.hw_start_many_ns", &d.StartMany}, {"dma.sw_generate_ns", &d.SWGenerate}, {"dma.sw_interval_ns", &d.SWInterval},
		{"dma.sw_dispatch_ns", &d.SWDispatch}, {"dma.sw_trigger_ns", &d.SWTrigger}, {"dma.sw_trigger_step_ns", &d.SWTriggerStep},
		{"dma.sw_flight_ns", &d.SWFlight}, {"dma.sw_start_write_ns", &d.SWStartWrite}, {"dma.sw_start_read_ns", &d.SWStartRead},
		{"dma.sw_read_row_bytes", &d.SWReadRow}, {"dma.skew_ns", &d.Skew}, {"dma.row_ns", &d.Row}, {"dma.chunk_ns", &d.Chunk},
		{"dma.cast_ns", &d.Cast}, {"dma.bytes_per_ns", &d.Rate}, {"dma.end_ns", &d.End}, {"dma.complete_ns", &d.Complete},
		{"dma.read_restart_ns", &d.ReadRestart}, {"dma.read_batched_ns", &d.ReadBatched}, {"dma.read_small_ns", &d.ReadSmall},
		{"dma.small_row_bytes", &d.SmallRow}, {"dma.batch_ns", &d.Batch}, {"dma.backlog_ns", &d.Backlog}, {"dma.turnaround_ns", &d.Turnaround},
		{"dma.write_idle_share", &d.WriteIdle}, {"dma.write_queued_share", &d.WriteQueued},
		{"dma.queue_depth", &d.QueueDepth}, {"dma.queue_lag_ns", &d.QueueLag}, {"dma.read_lead_ns", &d.ReadLead},
	} {
		add(f.name, f.value)
	}
	return out
}

// LoadKinds and Clocks name the cases of weight loads.
var (
	LoadKinds = [3]string{"16bit", "32bit_transpose", "32bit"}
	clocks    = [2]string{"full", "slow"}
)

type field struct {
	name  string
	value *float64
}

// Load reads the constants of a machine. It fails where one is missing,
// naming all that are.
func Load(mach *machine.Machine) (*Constants, error) {
	c := &Constants{}
	var missing []string
	for _, f := range c.fields() {
		v, ok := mach.Calibrated.Constant(f.name)
		if !ok {
			missing = append(missing, f.name)
			continue
		}
		*f.value = v
	}
	if len(mach.Calibrated.Constants) == 0 {
		return nil, fmt.Errorf("machine %s has no calibrated model", mach.Name)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("machine %s: calibrated.constants lacks %s", mach.Name, strings.Join(missing, ", "))
	}
	for _, v := range []field{{"governor.window_ns", &c.Gov.Window}, {"governor.slow_rate", &c.Gov.Slow}, {"dma.bytes_per_ns", &c.DMA.Rate}} {
		if *v.value <= 0 {
			return nil, fmt.Errorf("machine %s: calibrated.constants.%s must be more than 0", mach.Name, v.name)
		}
	}
	c.DMA.Engines = float64(max(mach.Memory.DMAEngines, 1))
	return c, nil
}
