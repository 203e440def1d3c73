package modelrun

// ignored lists the options that were given and have no effect on a simulated
// run on the device, each with the reason.
func (a *Args) ignored() [][2]string {
	var out [][2]string
	add := func(given bool, option, why string) {
		if given {
			out = append(out, [2]string{option, why})
		}
	}
	const values, images = "no values are computed", "images of the vendor's compiler are neither read nor written"
	const same = "levels 1 to 3 differ in commands of the host whose times are not published"
	level := a.Device == "tt" && (a.BackendOptLevel == 1 || a.BackendOptLevel == 2)
	add(level, "backend_opt_level", same)
	add(a.Device != "tt" && a.BackendOptLevel != 3, "backend_opt_level", "it is of the vendor's runtime for tt devices")
	add(a.Device != "tt" && a.AutoTranspose, "auto_transpose", "it is of placements on a grid of cores")
	add(a.Recompute, "recompute", "the graphs are of inference, which recomputes nothing")
	add(a.Env != "", "env", "the vendor's software did not run")
	add(a.LoadTTI != "", "load_tti", images)
	add(a.SaveTTI != "", "save_tti", images)
	add(a.ParallelTTI != "", "parallel_tti", images)
	add(a.ModelOutput, "model_output", values)
	return out
}
