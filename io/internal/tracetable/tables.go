// Package tracetable turns a timeline into the tables that the Parquet and
// CSV exporters share. Column names follow those of Perfetto's trace
// processor (slice, flow, thread, counter) and, in the second set, those of
// the Neuron profiler's files, so that queries written for them carry over.
package tracetable

import (
	"strconv"
	"strings"

	"perfsim/components"
)

// schemaVersion changes when a column changes its name, type or meaning. A
// new column does not change it.
const schemaVersion = "2"

// Slice is one event. Columns marked optional are null where the value is not
// known; those that are no pointers are not known where they are zero.
type Slice struct {
	ID         int64   `parquet:"id,delta" doc:"number of the event; process above bit 40, instruction row below"`
	TS         int64   `parquet:"ts,delta" unit:"ns" doc:"start; blocks follow one another"`
	Dur        int64   `parquet:"dur" unit:"ns" doc:"as drawn: to its end or to the start of the next on its lane"`
	EndTS      int64   `parquet:"end_ts" unit:"ns" doc:"ts + dur"`
	LatencyNS  int64   `parquet:"latency_ns" unit:"ns" doc:"to when its result is there"`
	IssueNS    *int64  `parquet:"issue_ns,optional" unit:"ns" doc:"how long it keeps its lane, as costed; null for measured events"`
	BusyNS     float64 `parquet:"busy_ns" unit:"ns" doc:"what one execution adds to the busy time of its lane, the mean of its executions; waits for semaphores add nothing"`
	Executions int64   `parquet:"executions" doc:"weight: runs of the function times trips of the loops around it; sums over slices multiply by it"`
	TrackID    int32   `parquet:"track_id" doc:"row of track"`
	TID        int32   `parquet:"tid" doc:"thread: the lane plus one"`
	PID        int32   `parquet:"pid" doc:"process: 0 predicted; see track"`
	Engine     string  `parquet:"engine,dict" doc:"lane by name"`
	Name       string  `parquet:"name" doc:"name of the instruction"`
	Category   string  `parquet:"category,dict" doc:"compute, dma, collective or control"`
	Opcode     string  `parquet:"opcode,dict"`
	Depth      int32   `parquet:"depth" doc:"0: events of a lane do not nest"`
	ParentID   *int64  `parquet:"parent_id,optional" doc:"null"`
	Core       int32   `parquet:"core"`
	Row        int64   `parquet:"row,delta" doc:"row of the instruction, in program order"`
	Function   string  `parquet:"function,optional,dict"`
	Block      string  `parquet:"block,optional,dict" doc:"top-level block"`
	Source     string  `parquet:"source,optional,dict" doc:"file:line"`
	HLOName    string  `parquet:"hlo_name,optional,dict" doc:"name of the HLO instruction it comes from"`
	Scope      string  `parquet:"scope,optional,dict" doc:"path of the operator in the program, outermost part first, parts separated by /"`
	Operator   string  `parquet:"operator,optional,dict" doc:"HLO or framework operator it comes from, else the last part of scope"`
	Kernel     string  `parquet:"kernel,optional,dict" doc:"function; of the streams of a device trace the kernel that was launched"`
	DType      string  `parquet:"dtype,optional,dict" doc:"element type of the first input"`
	Elements   int64   `parquet:"elements,optional" doc:"per partition"`
	Partitions int32   `parquet:"partitions,optional" doc:"of the first input"`
	Bytes      *int64  `parquet:"bytes,optional" unit:"bytes" doc:"that a DMA moves"`
	Queue      string  `parquet:"queue,optional,dict" doc:"DMA queue"`
	Operands   string  `parquet:"operands,optional" doc:"as the input had them"`
	WaitNS     int64   `parquet:"wait_ns" unit:"ns" doc:"how long the lane was idle before"`
	Cause      string  `parquet:"cause,optional,dict" doc:"what held it; run A only"`
	HeldBy     *int64  `parquet:"held_by,optional" doc:"id of the event that held it"`
	SlackNS    *int64  `parquet:"slack_ns,optional" unit:"ns" doc:"how much it could slip"`
	IsCritical *bool   `parquet:"is_critical,optional" doc:"on the critical path; run A only"`
}

// Dependency is one edge.
type Dependency struct {
	ID             int64  `parquet:"id,delta" doc:"number of the edge"`
	SliceOut       int64  `parquet:"slice_out" doc:"id of the producer's event"`
	SliceIn        int64  `parquet:"slice_in,delta" doc:"id of the consumer's event"`
	DependencyType string `parquet:"dependency_type,dict" doc:"raw, war, waw or order"`
	Kind           string `parquet:"kind,dict" doc:"FLOW_DEPENDENCE, ANTI_DEPENDENCE, OUTPUT_DEPENDENCE or ORDERED"`
	GapNS          int64  `parquet:"gap_ns" unit:"ns" doc:"from when the producer let go to the consumer's start; negative: not honoured"`
	IsBinding      bool   `parquet:"is_binding" doc:"it held the consumer"`
	IsCritical     bool   `parquet:"is_critical" doc:"a hop of the critical path"`
}

// Track is one lane of one process.
type Track struct {
	TrackID     int32  `parquet:"track_id"`
	UTID        int32  `parquet:"utid" doc:"equals track_id"`
	TID         int32  `parquet:"tid"`
	ThreadName  string `parquet:"thread_name,dict"`
	SortIndex   int32  `parquet:"sort_index"`
	PID         int32  `parquet:"pid"`
	ProcessName string `parquet:"process_name,dict"`
	Kind        string `parquet:"kind,dict" doc:"engine, dma, cc, thread or operator"`
	Engine      string `parquet:"engine,dict" doc:"kind of engine"`
	Core        int32  `parquet:"core"`
	SliceCount  int64  `parquet:"slice_count"`
}

// Counter is one value of a counter.
type Counter struct {
	TS    int64   `parquet:"ts,delta" unit:"ns" doc:"the value holds from then on"`
	PID   int32   `parquet:"pid"`
	Name  string  `parquet:"name,dict"`
	Unit  string  `parquet:"unit,dict"`
	Value float64 `parquet:"value"`
}

// Metric is one figure of the whole.
type Metric struct {
	Name  string  `parquet:"name"`
	Value float64 `parquet:"value"`
	Unit  string  `parquet:"unit,optional,dict"`
}

// Field describes one column of one table.
type Field struct {
	Table       string `parquet:"table_name,dict"`
	Name        string `parquet:"field_name"`
	Type        string `parquet:"field_type,dict"`
	Unit        string `parquet:"field_unit,optional,dict"`
	Description string `parquet:"field_description,optional"`
	Required    bool   `parquet:"required"`
}

// Warning is a remark of a reader or system.
type Warning struct {
	Category string `parquet:"category,dict"`
	Message  string `parquet:"message"`
	Count    int64  `parquet:"count"`
}

// Instruction is Slice under the names of the Neuron profiler's Instruction
// table, predicted process only.
type Instruction struct {
	ID         int64  `parquet:"id,delta"`
	StartTS    int64  `parquet:"start_ts,delta" unit:"ns"`
	EndTS      int64  `parquet:"end_ts" unit:"ns" doc:"when its result is there"`
	DurationNS int64  `parquet:"duration_ns" unit:"ns"`
	Engine     string `parquet:"engine,dict" doc:"Tensor, Vector, Scalar, GpSimd, Sync, DMA"`
	Track      string `parquet:"timeline_track,dict" doc:"lane by name"`
	CoreIdx    int32  `parquet:"pcore_idx"`
	Opcode     string `parquet:"opcode,dict"`
	Operands   string `parquet:"operands,optional"`
	PC         *int64 `parquet:"pc,optional"`
	CompilerPC *int64 `parquet:"compiler_pc,optional"`
	BirName    string `parquet:"bir_instruction_name"`
	RawBirID   *int64 `parquet:"raw_bir_id,optional"`
	HLOName    string `parquet:"hlo_name,optional,dict"`
	Source     string `parquet:"nki_source_location,optional,dict"`
	EvtWaitNS  int64  `parquet:"evt_wait_time_ns" unit:"ns" doc:"how long the lane was idle before"`
	Executions int64  `parquet:"executions" doc:"weight: runs of the function times trips of the loops around it"`
}

// Flow is Dependency under the names of the Neuron profiler's Flow table.
type Flow struct {
	OutID          int64  `parquet:"out_id" doc:"id of the producer"`
	InID           int64  `parquet:"in_id,delta" doc:"id of the consumer"`
	OutTable       string `parquet:"out_table,dict"`
	InTable        string `parquet:"in_table,dict"`
	DependencyType string `parquet:"dependency_type,dict"`
	GapTime        int64  `parquet:"gap_time" unit:"ns"`
}

// Metadata is one remark about the file.
type Metadata struct {
	Key   string `parquet:"key"`
	Value string `parquet:"value"`
}

// typeOf are the short names of edge kinds.
var typeOf = map[components.EdgeKind]string{components.Flow: "raw", components.Anti: "war", components.Output: "waw", components.Ordered: "order"}

// profilerKind are the profiler's names of edge kinds.
var profilerKind = map[components.EdgeKind]string{components.Flow: "FLOW_DEPENDENCE", components.Anti: "ANTI_DEPENDENCE",
	components.Output: "OUTPUT_DEPENDENCE", components.Ordered: "ORDERED"}

// profilerEngine are the profiler's names of engines.
var profilerEngine = map[components.Engine]string{components.PE: "Tensor", components.DVE: "Vector", components.Activation: "Scalar",
	components.Pool: "GpSimd", components.SP: "Sync", components.DMA: "DMA"}

// About is the metadata of a file.
func About(t *components.Timeline, version string) []Metadata {
	w := t.World
	clock, mach := "simulated", w.Machine.Name
	if w.Replayed() {
		clock, mach = "replayed", ""
	}
	var names []string
	for _, p := range t.Processes {
		names = append(names, p.Name)
	}
	return []Metadata{{"schema_version", schemaVersion}, {"tool", "perfsim"}, {"tool_version", version}, {"time_unit", "ns"},
		{"clock", clock}, {"is_simulation", strconv.FormatBool(!w.Replayed())}, {"module", w.Module.Name}, {"format", w.Module.Format}, {"machine", mach},
		{"model", w.Config.Model.String()}, {"loops", w.Config.Loops.String()}, {"processes", strings.Join(names, ", ")}}
}
