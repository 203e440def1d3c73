package systems

import (
	"context"
	"fmt"

	"perfsim/components"
	"perfsim/systems/cost"
	"perfsim/systems/explain"
	"perfsim/systems/lower"
	"perfsim/systems/occupancy"
	"perfsim/systems/summary"
	"perfsim/systems/work"
)

// SystemTime is the time of one system.
type SystemTime struct {
	System  string  `json:"system"`             // a system of the schedule
	Seconds float64 `json:"seconds"`            // time that perfsim itself took
	PerItem float64 `json:"ns_per_instruction"` // seconds over the instructions of the module, ns
}

// Report is the output of `run --json`.
type Report struct {
	Input  string `json:"input"`  // file that was read
	Module string `json:"module"` // name of the module
	Format string `json:"format"` // format of the input
	// Kind is "simulated", or "replayed" where the events are those of the input.
	Kind string `json:"kind"`
	// Machine is the machine that was simulated, null for a replay.
	Machine *string `json:"machine"`
	// Roofline is the machine that gave durations to rows of a replay without
	// one; nil where there are none.
	Roofline *string `json:"roofline_machine,omitempty"`
	Model    string  `json:"model"` // model that gave the costs: reference, calibrated, replay or mapping
	Loops    string  `json:"loops"` // once or trips: how often loop bodies are placed
	summary.Summary
	// Lowering says what became of the graph that was read, BeforeAllocation
	// is the latency with buffers that never end.
	Lowering         *lower.Report `json:"lowering,omitempty"`
	BeforeAllocation uint64        `json:"before_allocation_ns,omitempty"`
	Kernel           *KernelReport `json:"kernel,omitempty"` // of an NKI kernel
	// Work is null where nothing was predicted.
	Work *work.Figures `json:"work"`
	// Memory has the peaks of the memories; the caller fills it.
	Memory       []occupancy.Head `json:"memory"`
	ErrorPercent *float64         `json:"error_percent"` // predicted against measured
	// Replay compares the starts with those of a trace that was read.
	Replay *summary.Replay `json:"replay,omitempty"`
	// Rebuilt counts the dependencies that were rebuilt from access patterns,
	// by kind; absent where none were.
	Rebuilt   map[string]uint64 `json:"edges_rebuilt,omitempty"`
	Scheduled []Scheduled       `json:"scheduled,omitempty"` // what post_sched did
	Estimates []Estimate        `json:"estimates"`           // of every perf_sim pass
	Notes     []components.Note `json:"notes"`               // what was assumed or left out
	Artifacts []Artifact        `json:"artifacts"`           // files that were written
	// Cores is the module on the cores asked for against one; nil where none
	// were.
	Cores       *CoresPoint  `json:"cores,omitempty"`
	ReadSeconds float64      `json:"read_seconds"` // time that perfsim took to read the input
	Seconds     float64      `json:"seconds"`
	Rate        float64      `json:"instructions_per_second"` // instructions over the time that perfsim took
	Timings     []SystemTime `json:"timings,omitempty"`       // what every system took
}

// Scheduled is the effect of post_sched on a block, in ns of run A with loop
// bodies placed once.
type Scheduled struct {
	Function string `json:"function"`
	Block    string `json:"block"`
	Before   uint64 `json:"before_ns"`      // latency before, ns
	After    uint64 `json:"after_ns"`       // latency after, ns
	Bound    uint64 `json:"lower_bound_ns"` // no order is faster
	Kept     bool   `json:"kept"`           // the old order was no worse
}

// Artifact is a file that a run wrote.
type Artifact struct {
	Path string `json:"path"`  // path of the file
	Kind string `json:"kind"`  // what the file is
	Size int64  `json:"bytes"` // bytes of the file
}

// Report makes the report of a run, without the systems' times.
func (r *Result) Report() *Report {
	w := r.World
	m := w.Module
	out := &Report{Input: r.Input, Module: m.Name, Format: m.Format, Kind: r.Kind(), Machine: r.MachineName(), Model: w.Config.Model.String(),
		Loops: w.Config.Loops.String(), Summary: w.Summary, Lowering: r.Lowering, BeforeAllocation: w.BeforeAllocation(),
		Notes: r.Notes(), Estimates: w.Estimates, ReadSeconds: r.ReadTime.Seconds(), Seconds: r.Time.Seconds(), Artifacts: []Artifact{}}
	out.Kernel = kernelReport(w)
	if len(w.Estimates) > 0 {
		out.Work = r.Work()
	}
	if w.Replayed() && (m.HasNote(components.NoteRoofline) || m.HasNote(components.NoteEstimatedTransfers)) {
		out.Roofline = &w.Machine.Name
	}
	out.Rate = float64(out.Instructions) / r.Time.Seconds()
	if out.Measured != nil && *out.Measured > 0 && !w.Replayed() {
		e := 100 * (float64(out.LatencyA) - float64(*out.Measured)) / float64(*out.Measured)
		out.ErrorPercent = &e
	}
	if cost.ReplaysByDefault(m) && m.HasMeasurement() {
		replay := summary.CompareStarts(&w.World)
		out.Replay = &replay
	}
	for _, b := range w.Scheduled {
		out.Scheduled = append(out.Scheduled, Scheduled{m.FunctionName(int(m.Blocks.Function.At(b.Block))), m.BlockName(b.Block),
			b.Before, b.After, b.Bound(), b.Kept})
	}
	if w.Rebuilt.Functions > 0 {
		out.Rebuilt = map[string]uint64{}
		for k := components.Ordered; k < components.NumEdgeKinds; k++ {
			out.Rebuilt[k.Key()] = w.Rebuilt.Edges[k]
		}
	}
	for _, a := range w.Out.Artifacts {
		out.Artifacts = append(out.Artifacts, Artifact{a.Path, a.Kind, a.Size})
	}
	return out
}

// Subject says what was explained.
type Subject struct {
	Input        string  `json:"input"`
	Module       string  `json:"module"`
	Format       string  `json:"format"`
	Kind         string  `json:"kind"` // simulated or replayed
	Machine      *string `json:"machine"`
	Model        string  `json:"model"`
	Loops        string  `json:"loops"`
	Instructions int     `json:"instructions"` // instructions of the module, each once
}

// RunReport is Report with the peaks of the memories, which take longer.
func (r *Result) RunReport(ctx context.Context) (*Report, error) {
	rep := r.Report()
	if rep.Work == nil {
		return rep, nil
	}
	var err error
	rep.Memory, err = r.MemoryPeaks(ctx)
	return rep, err
}

// Explained is the output of `explain --json`.
type Explained struct {
	Subject
	*explain.Report
	LatencyRange *components.LatencyRange `json:"latency_range,omitempty"`
	Work         *work.Figures            `json:"work"`
	Memory       []occupancy.Head         `json:"memory"` // peaks of the memories
	Notes        []components.Note        `json:"notes"`
}

// Subject says what the result is about.
func (r *Result) Subject() Subject {
	w := r.World
	return Subject{Input: r.Input, Module: w.Module.Name, Format: w.Module.Format, Kind: r.Kind(), Machine: r.MachineName(),
		Model: w.Config.Model.String(), Loops: w.Config.Loops.String(), Instructions: w.Module.NumInstructions()}
}

// Explained makes the report of an explanation, with the memory that
// MemoryPeaks returns.
func (r *Result) Explained(x *explain.Report, memory []occupancy.Head) *Explained {
	return &Explained{Subject: r.Subject(), Report: x, LatencyRange: r.World.Range, Work: r.Work(), Memory: memory, Notes: r.Notes()}
}

// CheckTimes fails where the module of the given name has no predicted times,
// with the reason.
func (r *Result) CheckTimes(name string) error {
	for _, n := range r.Notes() {
		if n.Code == components.NoteNoLatency {
			return fmt.Errorf("%s: %s; run prints it", name, n.Text)
		}
	}
	return nil
}

// Kind returns "simulated", or "replayed" where the events are those of the
// input.
func (r *Result) Kind() string {
	if r.World.Replayed() {
		return "replayed"
	}
	return "simulated"
}

// MachineName returns the name of the machine that was simulated, nil for a
// replay.
func (r *Result) MachineName() *string {
	if r.World.Replayed() {
		return nil
	}
	return &r.World.Machine.Name
}

// SystemTimes returns what every system took.
func (r *Result) SystemTimes() []SystemTime {
	n := float64(max(r.World.Module.Instr.Len(), r.World.Summary.Instructions, 1))
	var list []SystemTime
	for _, t := range r.Timings {
		list = append(list, SystemTime{t.System, t.Wall.Seconds(), float64(t.Wall.Nanoseconds()) / n})
	}
	return list
}

// Notes returns remarks for a reader of the prediction: the notes of the
// module, of the model, and whether anything was predicted. It is never nil.
func (r *Result) Notes() []components.Note {
	w := r.World
	notes := append([]components.Note{}, w.Module.Notes...)
	if len(w.Estimates) == 0 {
		notes = append(notes, components.Note{Code: "not-predicted", Count: 1,
			Text: "nothing was predicted: none of the passes that ran is perf_sim or perf_sim_at_end"})
	}
	return notes
}
