package modelrun

import (
	"slices"
	"strconv"
	"time"

	"perfsim/bench/record"
	"perfsim/io/format"
)

// Args are the reference benchmark's arguments, which its records repeat.
type Args struct {
	Model, Config, Task             string
	Device                          string
	Training                        bool
	DataFormat, AccDataFormat       string
	MathFidelity                    string
	BackendOptLevel, LoopCount      int
	Microbatch, NumTokens, Chips    int
	Recompute                       bool
	Trace, Env                      string
	List, SaveOutput, AutoTranspose bool
	DumpIntermediate, DumpTag       string
	DumpCount                       int
	LoadTTI, SaveTTI                string
	PerfAnalysis, ModelOutput       bool
	ParallelTTI                     string
	Date                            time.Time
}

// orNull sets a text property, or null where it is empty.
func orNull(r *record.Record, name, s string) {
	if s == "" {
		r.SetNull(name)
		return
	}
	r.SetText(name, s)
}

// Record makes the record of the outcome. What a simulation cannot know is
// null, with the reason.
func (o *Outcome) Record(a Args) (*record.Record, error) {
	r := &record.Record{}
	st := record.Stats{RunSeconds: o.RunSeconds, Samples: o.Samples, Tokens: o.Model.Tokens * o.Samples}
	if err := st.Set(r); err != nil {
		return nil, err
	}
	reasons := [][2]string{}
	null := func(name, why string) {
		r.SetNull(name)
		reasons = append(reasons, [2]string{name, why})
	}
	r.SetNumber("total_compilation_time", median(o.Compile))
	r.SetNumber("peak_host_mem_usage", o.PeakMB)
	null("evaluation_score", "no values are computed, so there is nothing to score")
	r.SetText("input_size", o.Model.InputSize)
	r.SetText("device_name", o.DeviceName)
	null("machine_name", "there is no device, so there is no host that has it")
	r.SetText("benchmark_date", a.Date.Format("Mon Jan _2 15:04:05 2006"))
	null("host_device", "there is no device, so there is no host that has it")
	if o.Device == "tt" {
		null("pybuda_hash", "the vendor's software did not run")
		null("pybuda_version_date", "the vendor's software did not run")
	} else {
		null("pytorch_version", "the framework did not run")
		r.SetText("pybuda_version_date", "N/A")
	}
	r.SetText("model", a.Model)
	orNull(r, "config", a.Config)
	orNull(r, "task", a.Task)
	r.SetText("device", a.Device)
	r.SetBool("training", a.Training)
	r.SetText("dataformat", a.DataFormat)
	if a.AccDataFormat != "" {
		r.SetText("acc_dataformat", a.AccDataFormat)
	}
	r.SetText("math_fidelity", a.MathFidelity)
	r.SetInt("backend_opt_level", int64(a.BackendOptLevel))
	r.SetInt("loop_count", int64(a.LoopCount))
	r.SetInt("microbatch", int64(o.Model.Batch))
	// The number that was used: without the option it is the task's, and two
	// runs that differ in it have to differ in their arguments.
	tokens := int64(a.NumTokens)
	if o.Model.Tokens > 0 {
		tokens = o.Model.Tokens
	}
	r.SetInt("num_tokens", tokens)
	r.SetInt("chips", int64(a.Chips))
	r.SetBool("recompute", a.Recompute)
	r.SetText("trace", a.Trace)
	r.SetBool("list", a.List)
	if a.Env != "" {
		r.SetText("env", a.Env)
	}
	r.SetBool("save_output", a.SaveOutput)
	r.SetBool("auto_transpose", a.AutoTranspose)
	orNull(r, "dump_intermediate", a.DumpIntermediate)
	orNull(r, "dump_intermediate_tag", a.DumpTag)
	r.SetInt("dump_intermediate_count", int64(a.DumpCount))
	orNull(r, "load_tti", a.LoadTTI)
	orNull(r, "save_tti", a.SaveTTI)
	if a.PerfAnalysis {
		r.SetBool("perf_analysis", true)
	}
	r.SetBool("model_output", a.ModelOutput)
	if a.ParallelTTI != "" {
		r.SetText("parallel_tti", a.ParallelTTI)
	}
	r.SetBool("simulated", true)
	r.SetText("machine", o.Machine)
	r.SetText("device_type", o.Machine)
	if o.Emulated != "" {
		r.SetText("emulated_dataformat", o.Emulated)
	}
	if o.Chosen != "" {
		r.SetText("prediction_options", o.Chosen)
	}
	if list := a.ignored(); len(list) > 0 {
		r.Set("ignored_options", object(list))
	}
	r.Set("null_reasons", object(reasons))
	r.Set("notes", array(append(slices.Clone(o.Ignores), o.Notes...)))
	r.Set("prediction", o.prediction())
	if len(o.Compile) > 1 {
		r.Set("repeats", `{"count": `+strconv.Itoa(len(o.Compile))+`, "total_compilation_time": `+spread(o.Compile)+
			`, "simulation_seconds": `+spread(o.Simulate)+`, "total_run_time": "the same in every repeat: the prediction has no chance in it"}`)
	}
	r.Order()
	return r, nil
}

func object(pairs [][2]string) string {
	b := []byte{'{'}
	for i, p := range pairs {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = format.AppendJSONString(b, p[0])
		b = append(b, ": "...)
		b = format.AppendJSONString(b, p[1])
	}
	return string(append(b, '}'))
}

func array(items []string) string {
	b := []byte{'['}
	for i, s := range items {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = format.AppendJSONString(b, s)
	}
	return string(append(b, ']'))
}

// prediction is the counts behind the figures.
func (o *Outcome) prediction() string {
	b := append([]byte(nil), `{"parameters": `...)
	b = strconv.AppendInt(b, o.Params, 10)
	b = append(b, `, "macs_per_sample": `...)
	b = strconv.AppendInt(b, o.MACs, 10)
	b = append(b, `, "batch_ns": `...)
	b = strconv.AppendFloat(b, o.BatchNS, 'f', -1, 64)
	b = append(b, `, "host_ns": `...)
	b = strconv.AppendFloat(b, o.HostNS, 'f', -1, 64)
	b = append(b, `, "device_samples_per_sec": `...)
	b = strconv.AppendFloat(b, o.DeviceRate(), 'g', 6, 64)
	b = append(b, `, "batches": `...)
	b = strconv.AppendInt(b, o.Batches, 10)
	b = append(b, `, "simulation_seconds": `...)
	b = strconv.AppendFloat(b, median(o.Simulate), 'g', -1, 64)
	b = append(b, `, "phases": [`...)
	for i, p := range o.Phases {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, `{"name": `...)
		b = format.AppendJSONString(b, p.Name)
		b = append(b, `, "runs": `...)
		b = strconv.AppendInt(b, p.Runs, 10)
		b = append(b, `, "ns": `...)
		b = strconv.AppendUint(b, p.NS, 10)
		b = append(b, `, "operators": `...)
		b = strconv.AppendInt(b, int64(p.Operators), 10)
		b = append(b, `, "instructions": `...)
		b = strconv.AppendInt(b, int64(p.Instructions), 10)
		b = append(b, `, "executed": `...)
		b = strconv.AppendInt(b, p.Executed, 10)
		if p.Epochs != nil {
			b = append(b, `, "epoch_cores": [`...)
			for k, c := range p.Epochs {
				if k > 0 {
					b = append(b, ", "...)
				}
				b = strconv.AppendInt(b, int64(c), 10)
			}
			b = append(b, `], "utilization": `...)
			b = strconv.AppendFloat(b, p.Utilization, 'g', 6, 64)
		}
		b = append(b, '}')
	}
	return string(append(b, "]}"...))
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func spread(x []float64) string {
	f := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	return `{"median": ` + f(median(x)) + `, "least": ` + f(slices.Min(x)) + `, "most": ` + f(slices.Max(x)) + `}`
}
