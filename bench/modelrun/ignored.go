package modelrun

// ignored lists the options that were given and have no effect on a simulated
// run, each with the reason.
func (a *Args) ignored() [][2]string {
	var out [][2]string
	add := func(given bool, option, why string) {
		if given {
			out = append(out, [2]string{option, why})
		}
	}
	const values = "no values are computed"
	add(a.AccDataFormat != "", "acc_dataformat", "the descriptions have one rate whatever the format of the accumulator")
	add(a.BackendOptLevel != 3, "backend_opt_level", "what a level of the vendor's compiler does is not published")
	add(a.Recompute, "recompute", "the graphs are of inference, which recomputes nothing")
	add(a.Trace != "none", "trace", "the vendor's runtime did not run; 'perfsim run -o DIR' writes traces of a module")
	add(a.Env != "", "env", "the vendor's software did not run")
	add(a.AutoTranspose, "auto_transpose", "placement does not turn operators")
	add(a.DumpIntermediate != "", "dump_intermediate", values)
	add(a.DumpTag != "", "dump_intermediate_tag", values)
	add(a.DumpCount != 1, "dump_intermediate_count", values)
	add(a.LoadTTI != "", "load_tti", "images of the vendor's compiler are not read")
	add(a.SaveTTI != "", "save_tti", "images of the vendor's compiler are not written")
	add(a.ParallelTTI != "", "parallel_tti", "images of the vendor's compiler are not written")
	add(a.ModelOutput, "model_output", values)
	return out
}
