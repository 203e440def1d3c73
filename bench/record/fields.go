// Package record holds the benchmark's result records: the fields of the
// reference benchmark in its order, their JSON form and schema, the formulas,
// reading records of real devices and ours, and comparing them.
package record

// kind is the JSON type of a field.
type kind string

// The kinds.
const (
	Number  kind = "number"
	integer kind = "integer"
	String  kind = "string"
	boolean kind = "boolean"
)

// field is one property of a record.
type field struct {
	Name string
	Kind kind
	// Null allows null: the value is not known, or an option was not given.
	Null bool
	// Optional properties may be missing.
	Optional bool
	Doc      string
}

// fields returns the properties of the reference benchmark in the order in
// which it writes them: statistics, then arguments.
func fields() []field {
	return []field{
		{"total_run_time", Number, true, false, "s, from the first input to the last output"},
		{"total_compilation_time", Number, true, false, "s; of a simulated record: building and lowering here"},
		{"peak_host_mem_usage", Number, true, false, "MB of 1,000,000 bytes; of a simulated record: of this process, over the whole run"},
		{"total_samples", integer, false, false, "loop_count x microbatch x batches of the data set"},
		{"samples_per_sec", Number, false, false, "total_samples / total_run_time"},
		{"tokens_per_sec", Number, true, false, "tokens generated in all loops / total_run_time; 0.0 for models that generate none"},
		{"inference_time_ms", Number, true, false, "total_run_time x 1000 / total_samples"},
		{"evaluation_score", Number, true, false, "score of the task's metric; null of a simulated record"},
		{"input_size", String, true, false, "shape of one sample without the batch, or NA"},
		{"device_name", String, true, false, ""},
		{"machine_name", String, true, false, "host name; null of a simulated record"},
		{"benchmark_date", String, true, false, "end of the run, local time"},
		{"host_device", String, true, false, "CPU of the host; null of a simulated record"},
		{"pybuda_hash", String, true, true, "device tt only"},
		{"pybuda_version_date", String, true, false, ""},
		{"pytorch_version", String, true, true, "devices other than tt"},
		{"model", String, false, false, ""},
		{"config", String, true, false, ""},
		{"task", String, true, false, ""},
		{"device", String, false, false, "tt, cuda or cpu"},
		{"training", boolean, false, false, ""},
		{"dataformat", String, false, false, ""},
		{"acc_dataformat", String, true, true, ""},
		{"math_fidelity", String, false, false, ""},
		{"backend_opt_level", integer, false, false, ""},
		{"loop_count", integer, false, false, ""},
		{"microbatch", integer, false, false, ""},
		{"num_tokens", integer, false, false, ""},
		{"chips", integer, false, false, ""},
		{"recompute", boolean, false, false, ""},
		{"trace", String, false, false, "none, light or verbose"},
		{"list", boolean, false, false, ""},
		{"env", String, true, true, ""},
		{"save_output", boolean, false, false, ""},
		{"auto_transpose", boolean, false, false, ""},
		{"dump_intermediate", String, true, false, ""},
		{"dump_intermediate_tag", String, true, false, ""},
		{"dump_intermediate_count", integer, false, false, ""},
		{"load_tti", String, true, false, ""},
		{"save_tti", String, true, false, ""},
		{"perf_analysis", boolean, true, true, ""},
		{"model_output", boolean, false, false, ""},
		{"parallel_tti", String, true, true, ""},
	}
}

// marks are the properties that this program adds to a simulated record.
func marks() []field {
	return []field{
		{"simulated", boolean, false, true, "true: predicted, not measured"},
		{"machine", String, false, true, "description the prediction is for"},
		{"device_type", String, false, true, "kind of device: the name of its description"},
		{"emulated_dataformat", String, false, true, "format that the device takes in the place of dataformat, which it does not have"},
		{"prediction_options", String, false, true, "options of the prediction that were given: cost model, loops, lowering"},
		{"ignored_options", "object", false, true, "options that were given and have no effect on a simulation, with the reason"},
		{"null_reasons", "object", false, true, "why a property is null, by its name"},
		{"notes", "array", false, true, "what the prediction leaves out"},
		{"prediction", "object", false, true, "counts behind the prediction"},
		{"repeats", "object", false, true, "median, least and largest of what differs between repeats"},
	}
}
