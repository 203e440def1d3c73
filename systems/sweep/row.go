package sweep

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/whatif"
)

// caseRow is the result of a case. The figures have the names and values of `run
// --json`; those that lie in an object there have its name and an underscore
// before theirs. docs/sweep.md lists the columns.
type caseRow struct {
	// What was asked.
	Case         int64   `json:"case" parquet:"case"` // from 0 on
	ID           string  `json:"id" parquet:"id"`     // digest of the case: input, machine, options, engine
	Input        string  `json:"input" parquet:"input"`
	InputSHA256  string  `json:"input_sha256" parquet:"input_sha256"`            // digest of the input's bytes
	AskedMachine *string `json:"asked_machine" parquet:"asked_machine,optional"` // machine of the plan
	AskedModel   *string `json:"asked_model" parquet:"asked_model,optional"`     // model of the plan
	Options      *string `json:"options" parquet:"options,optional"`
	WhatIf       *string `json:"whatif" parquet:"whatif,optional"` // changes of the case
	Error        *string `json:"error" parquet:"error,optional"`

	Module  *string `json:"module" parquet:"module,optional"`
	Format  *string `json:"format" parquet:"format,optional"`
	Kind    *string `json:"kind" parquet:"kind,optional"` // simulated or replayed
	Machine *string `json:"machine" parquet:"machine,optional"`
	Model   *string `json:"model" parquet:"model,optional"`
	Loops   *string `json:"loops" parquet:"loops,optional"`

	Instructions *int64 `json:"instructions" parquet:"instructions,optional"` // instructions of the module, each once
	// end of the last event of run A, all blocks as often as their functions run
	Latency          *uint64  `json:"latency_ns" parquet:"latency_ns,optional"`
	LatencyB         *uint64  `json:"latency_no_antideps_ns" parquet:"latency_no_antideps_ns,optional"` // the same of run B
	AntiCost         *uint64  `json:"antidep_cost_ns" parquet:"antidep_cost_ns,optional"`
	NoRunB           *string  `json:"no_run_b" parquet:"no_run_b,optional"`
	RangeLow         *uint64  `json:"latency_range_low_ns" parquet:"latency_range_low_ns,optional"`   // low_ns of latency_range
	RangeHigh        *uint64  `json:"latency_range_high_ns" parquet:"latency_range_high_ns,optional"` // high_ns of latency_range
	Launch           *uint64  `json:"launch_ns" parquet:"launch_ns,optional"`
	Device           *uint64  `json:"device_latency_ns" parquet:"device_latency_ns,optional"`
	Measured         *uint64  `json:"measured_ns" parquet:"measured_ns,optional"` // measured_ns of run
	Recorded         *uint64  `json:"recorded_ns" parquet:"recorded_ns,optional"`
	ErrorPercent     *float64 `json:"error_percent" parquet:"error_percent,optional"`
	BeforeAllocation *uint64  `json:"before_allocation_ns" parquet:"before_allocation_ns,optional"`

	// Against the unchanged case.
	Change     *float64 `json:"change" parquet:"change,optional"`
	DoesNotFit *bool    `json:"does_not_fit" parquet:"does_not_fit,optional"` // memories that the case needs more of than there is
	Remarks    *string  `json:"whatif_notes" parquet:"whatif_notes,optional"` // what the changes assume

	Busiest     *string  `json:"busiest_engine" parquet:"busiest_engine,optional"`   // lane with most busy time
	BusyNS      *uint64  `json:"busiest_busy_ns" parquet:"busiest_busy_ns,optional"` // busy_ns of that lane
	Utilization *float64 `json:"busiest_utilization" parquet:"busiest_utilization,optional"`

	Ordered *uint64 `json:"edges_ordered" parquet:"edges_ordered,optional"` // dependencies of this kind as declared
	Flow    *uint64 `json:"edges_flow" parquet:"edges_flow,optional"`       // dependencies of this kind as declared
	Output  *uint64 `json:"edges_output" parquet:"edges_output,optional"`   // dependencies of this kind as declared
	Anti    *uint64 `json:"edges_anti" parquet:"edges_anti,optional"`       // dependencies of this kind as declared
	Invalid *uint64 `json:"edges_invalid" parquet:"edges_invalid,optional"` // dependencies of no known kind
	// dependencies of this kind as placed
	HonouredOrdered *uint64 `json:"edges_honoured_ordered" parquet:"edges_honoured_ordered,optional"`
	// dependencies of this kind as placed
	HonouredFlow *uint64 `json:"edges_honoured_flow" parquet:"edges_honoured_flow,optional"`
	// dependencies of this kind as placed
	HonouredOutput *uint64 `json:"edges_honoured_output" parquet:"edges_honoured_output,optional"`
	// dependencies of this kind as placed
	HonouredAnti *uint64 `json:"edges_honoured_anti" parquet:"edges_honoured_anti,optional"`
	// dependencies of this kind that were rebuilt
	RebuiltOrdered *uint64 `json:"edges_rebuilt_ordered" parquet:"edges_rebuilt_ordered,optional"`
	// dependencies of this kind that were rebuilt
	RebuiltFlow *uint64 `json:"edges_rebuilt_flow" parquet:"edges_rebuilt_flow,optional"`
	// dependencies of this kind that were rebuilt
	RebuiltOutput *uint64 `json:"edges_rebuilt_output" parquet:"edges_rebuilt_output,optional"`
	// dependencies of this kind that were rebuilt
	RebuiltAnti *uint64 `json:"edges_rebuilt_anti" parquet:"edges_rebuilt_anti,optional"`

	FLOPs           *uint64  `json:"work_flops" parquet:"work_flops,optional"`                         // flops of work
	HelperFLOPs     *uint64  `json:"work_helper_flops" parquet:"work_helper_flops,optional"`           // helper_flops of work
	RecomputedFLOPs *uint64  `json:"work_recomputed_flops" parquet:"work_recomputed_flops,optional"`   // recomputed_flops of work
	HBMRead         *uint64  `json:"work_hbm_read_bytes" parquet:"work_hbm_read_bytes,optional"`       // hbm_read_bytes of work
	HBMWritten      *uint64  `json:"work_hbm_written_bytes" parquet:"work_hbm_written_bytes,optional"` // hbm_written_bytes of work
	Intensity       *float64 `json:"work_intensity" parquet:"work_intensity,optional"`                 // intensity of work
	Ridge           *float64 `json:"work_ridge" parquet:"work_ridge,optional"`                         // ridge of work
	// flop_per_s of the prediction
	FLOPRate *float64 `json:"work_predicted_flop_per_s" parquet:"work_predicted_flop_per_s,optional"`
	MFU      *float64 `json:"work_predicted_mfu" parquet:"work_predicted_mfu,optional"` // mfu of the prediction
	HFU      *float64 `json:"work_predicted_hfu" parquet:"work_predicted_hfu,optional"` // hfu of the prediction
	// mfu_16bit of the prediction
	MFU16 *float64 `json:"work_predicted_mfu_16bit" parquet:"work_predicted_mfu_16bit,optional"`
	// hfu_16bit of the prediction
	HFU16 *float64 `json:"work_predicted_hfu_16bit" parquet:"work_predicted_hfu_16bit,optional"`
	// hbm_bytes_per_s of the prediction
	HBMRate     *float64 `json:"work_predicted_hbm_bytes_per_s" parquet:"work_predicted_hbm_bytes_per_s,optional"`
	MBU         *float64 `json:"work_predicted_mbu" parquet:"work_predicted_mbu,optional"` // mbu of the prediction
	KernelSpill *uint64  `json:"kernel_spill_bytes" parquet:"kernel_spill_bytes,optional"` // spill_bytes of the kernel

	Cautions *string `json:"cautions" parquet:"cautions,optional"` // notes that stand next to the latency
}

// some returns a pointer to v, which is no zero value.
func some[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// figures fills the row with what was predicted.
func (r *caseRow) figures(rep *systems.Report, p whatif.Point, changed bool) {
	count := int64(rep.Instructions)
	r.Module, r.Format, r.Kind, r.Machine, r.Model, r.Loops = &rep.Module, &rep.Format, &rep.Kind, rep.Machine, &rep.Model, &rep.Loops
	r.Instructions, r.Latency, r.NoRunB = &count, known(rep.LatencyA), some(rep.NoRunB)
	r.LatencyB, r.AntiCost = known(rep.LatencyB), known(rep.AntiCost)
	if x := rep.Range; x != nil {
		r.RangeLow, r.RangeHigh = &x.Low, &x.High
	}
	r.Launch, r.Device, r.Measured, r.Recorded, r.ErrorPercent = rep.Launch, rep.Device, rep.Measured, rep.Recorded, rep.ErrorPercent
	r.BeforeAllocation = some(rep.BeforeAllocation)
	if changed {
		r.Change = &p.Change
		if p.Memory != nil {
			r.DoesNotFit = &p.TooMuch
		}
		r.Remarks = some(strings.Join(p.Notes, "; "))
	}
	for k := range rep.Engines {
		if e := &rep.Engines[k]; r.Busiest == nil || e.BusyNS > *r.BusyNS {
			r.Busiest, r.BusyNS, r.Utilization = &e.Name, &e.BusyNS, &e.Utilization
		}
	}
	edge := func(in map[string]uint64, k components.EdgeKind) *uint64 {
		if n, ok := in[k.Key()]; ok {
			return &n
		}
		return nil
	}
	for _, x := range []struct {
		kind                      components.EdgeKind
		declared, placed, rebuilt **uint64
	}{{components.Ordered, &r.Ordered, &r.HonouredOrdered, &r.RebuiltOrdered}, {components.Flow, &r.Flow, &r.HonouredFlow, &r.RebuiltFlow},
		{components.Output, &r.Output, &r.HonouredOutput, &r.RebuiltOutput}, {components.Anti, &r.Anti, &r.HonouredAnti, &r.RebuiltAnti}} {
		*x.declared, *x.placed, *x.rebuilt = edge(rep.Edges, x.kind), edge(rep.Placed, x.kind), edge(rep.Rebuilt, x.kind)
	}
	r.Invalid = edge(rep.Edges, components.Invalid)
	if k := rep.Kernel; k != nil {
		r.KernelSpill = &k.SpilledData
	}
	if f := rep.Work; f != nil {
		r.FLOPs, r.HelperFLOPs, r.RecomputedFLOPs = f.FLOPs, f.HelperFLOPs, f.RecomputedFLOPs
		r.HBMRead, r.HBMWritten, r.Intensity, r.Ridge = f.HBMRead, f.HBMWritten, f.Intensity, f.Ridge
		if p := f.Predicted; p != nil {
			r.FLOPRate, r.MFU, r.HFU, r.MFU16, r.HFU16 = p.FLOPs, p.MFU, p.HFU, p.MFU16, p.HFU16
			r.HBMRate, r.MBU = p.HBMRate, p.MBU
		}
	}
	var cautions []string
	for _, n := range rep.Notes {
		if n.Headline() {
			cautions = append(cautions, n.Text)
		}
	}
	r.Cautions = some(strings.Join(cautions, "; "))
}

func known(t components.OptionalNS) *uint64 {
	if !t.Known() {
		return nil
	}
	v := uint64(t)
	return &v
}

// asked fills in what the case asks for.
func (r *caseRow) asked(p *Plan, c Case) {
	r.Case, r.ID = int64(c.Number), c.ID
	r.Input, r.InputSHA256 = p.Inputs[c.Input].Name, p.Inputs[c.Input].SHA256
	r.AskedMachine, r.AskedModel = some(p.Machines[c.Machine].Name), some(p.Models[c.Model])
	r.Options, r.WhatIf = some(p.Options[c.Options]), some(p.Changes[c.Changes])
}

// The record holds results without the names of files, which do not belong to
// the content: these stand for them.
const (
	inputMark   = "\x01input\x01"
	machineMark = "\x01machine\x01"
)

// texts lists the texts that may hold the name of a file.
func (r *caseRow) texts() []**string { return []**string{&r.Error, &r.Remarks, &r.Cautions, &r.Module} }

// mark replaces the paths of a case's files by the marks.
func (r *caseRow) mark(input, machine string) { r.replace(input, inputMark, machine, machineMark) }

// unmark puts the names of a case's files in.
func (r *caseRow) unmark(p *Plan, c Case) {
	file, _ := systems.InputFile(p.Inputs[c.Input].Name)
	r.replace(inputMark, file, machineMark, p.Machines[c.Machine].Name)
}

func (r *caseRow) replace(input, by, machine, byMachine string) {
	var pairs []string
	for _, x := range [][2]string{{input, by}, {machine, byMachine}} {
		if x[0] != "" {
			pairs = append(pairs, x[0], x[1])
		}
	}
	x := strings.NewReplacer(pairs...)
	for _, t := range r.texts() {
		if *t != nil {
			s := x.Replace(**t)
			*t = &s
		}
	}
}

// storedType is caseRow with omitempty on every field: what is absent takes no
// room in the record.
var storedType = sync.OnceValue(func() reflect.Type {
	t := reflect.TypeFor[caseRow]()
	fields := make([]reflect.StructField, t.NumField())
	for k := range fields {
		fields[k] = t.Field(k)
		fields[k].Tag = reflect.StructTag(`json:"` + fields[k].Tag.Get("json") + `,omitempty"`)
	}
	return reflect.StructOf(fields)
})

// encode writes a row for the record.
func (r *caseRow) encode() ([]byte, error) {
	return json.Marshal(reflect.ValueOf(*r).Convert(storedType()).Interface())
}
