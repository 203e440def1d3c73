package accuracy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/systems"
	"perfsim/systems/nki"
	"perfsim/systems/sched"
)

const classKernels = "NKI kernels"

// simulate predicts an input and fills an item with its latency, or with its
// device latency.
func simulate(ctx context.Context, i *Item, device bool, r systems.Request) error {
	res, err := systems.Simulate(ctx, r)
	if err != nil {
		return err
	}
	s := res.Summary()
	latency, extra := float64(s.LatencyA), 0.0
	if device && s.Launch != nil {
		extra = float64(*s.Launch)
	}
	lo, hi := latency, latency
	if s.Range != nil {
		lo, hi = float64(s.Range.Low), float64(s.Range.High)
	}
	i.set(latency+extra, lo+extra, hi+extra)
	for _, n := range res.Notes() {
		if n.Code == "buffers-overflow" || strings.Contains(n.Code, "spill") {
			i.Note = n.Text
		}
	}
	return nil
}

var errNotExecuted = errors.New("a kernel source is executed with python3 to be recorded: --execute allows it")

// kernelRequest is a kernel source that is called with arguments.
func kernelRequest(opt *Options, path, machine string, call format.KernelCall, asWritten bool) systems.Request {
	r := systems.Request{Reading: systems.Reading{Path: path, Jobs: max(opt.Jobs, 1)}}
	r.Machine, r.Kernel, r.Model = machine, call, components.Calibrated
	r.Lowering = nki.DefaultOptions()
	if asWritten {
		r.Lowering.Policy = sched.Keep
	}
	return r
}

// benchJobs predicts benchmark kernels by name: NAME_*.py in a folder called
// kernels. Shapes come from the reference beside them.
func benchJobs(f *file, all []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		path := ""
		for _, p := range all {
			rest, ok := strings.CutPrefix(filepath.Base(p), row["kernel"]+"_")
			if ok && strings.HasSuffix(p, ".py") && filepath.Base(filepath.Dir(p)) == "kernels" && sizedName.MatchString(rest) {
				path = p
			}
		}
		for _, mach := range []string{"trn2", "trn1"} {
			ms := number(row[mach+"_ms"])
			if !(ms > 0) {
				continue
			}
			it := Item{Class: classKernels + " on " + mach, Name: row["kernel"], Machine: mach, Quantity: "kernel time", Measured: ms * 1e6,
				Source: fmt.Sprintf("%s, line %d", f.path, n+2)}
			out = append(out, sourceJob(it, opt, path, mach, format.KernelCall{}, false))
		}
	}
	return out, nil
}

// sizedName is a name that goes on with sizes: M4096_N2048_0.py.
var sizedName = regexp.MustCompile(`^(?:[A-Z]+\d+_)+\d+\.py$`)

func sourceJob(it Item, opt *Options, path, mach string, call format.KernelCall, asWritten bool) job {
	switch {
	case path == "":
		it.Reason = "the source is in none of the folders"
	case !opt.Execute:
		it.Reason = errNotExecuted.Error()
	}
	return job{it, func(ctx context.Context, i *Item) error {
		return simulate(ctx, i, false, kernelRequest(opt, path, mach, call, asWritten))
	}}
}

// kernelJobs predicts the kernels of a table whose sources are ID/kernel.py.
func kernelJobs(f *file, all []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		mach, _, _ := strings.Cut(row["machine"], ",")
		mach, _, _ = strings.Cut(strings.TrimSpace(mach), " ")
		mach, _, _ = strings.Cut(mach, ".")
		it := Item{Class: classKernels + " on " + mach, Name: row["id"], Machine: mach, Quantity: "kernel time", Measured: number(row["latency_us"]) * 1e3,
			Source: fmt.Sprintf("%s, line %d", f.path, n+2), Origin: strings.Trim(row["repo"]+" "+row["commit"]+", "+row["licence"], " ,")}
		at := slices.IndexFunc(all, func(p string) bool {
			return filepath.Base(p) == "kernel.py" && filepath.Base(filepath.Dir(p)) == row["id"]
		})
		path := ""
		if at >= 0 {
			path = all[at]
		}
		function, _, _ := strings.Cut(row["function"], " ")
		call := format.KernelCall{Function: function}
		var err error
		if call.Args, err = arguments(row["args"]); err != nil && path != "" {
			it.Reason = err.Error()
		}
		if knobs := blockSizes.FindStringSubmatch(row["function"]); knobs != nil {
			for k, name := range []string{"TILES_IN_BLOCK_M", "TILES_IN_BLOCK_N", "TILES_IN_BLOCK_K"} {
				call.Args = append(call.Args, name+"="+knobs[k+1])
			}
		}
		written := strings.Contains(row["notes"], "scheduler off") || strings.Contains(row["notes"], "scheduler disabled")
		out = append(out, sourceJob(it, opt, path, mach, call, written))
	}
	return out, nil
}

var (
	blockSizes = regexp.MustCompile(`TILES_IN_BLOCK_M,N,K=(\d+),(\d+),(\d+)`)
	argument   = regexp.MustCompile(`^([A-Za-z_][\w]*(?:,[A-Za-z_]\w*)*)\s*\[([\d,]+)\]\s*(fp32|f32|bf16|fp16|int32)?`)
)

// arguments reads shapes such as "lhsT[2048,2048] bf16, rhs[2048,2048] bf16".
// A type that is said once holds for those before it too.
func arguments(text string) ([]string, error) {
	text, _, _ = strings.Cut(text, "->")
	type arg struct{ shape, dtype string }
	var list []arg
	rest := strings.TrimSpace(text)
	for rest != "" {
		x := argument.FindStringSubmatch(rest)
		if x == nil {
			break
		}
		for range strings.Split(x[1], ",") {
			list = append(list, arg{x[2], x[3]})
		}
		rest = strings.TrimLeft(rest[len(x[0]):], ", ")
	}
	if len(list) == 0 || rest != "" && !strings.HasPrefix(rest, "for ") && !strings.HasPrefix(rest, ";") {
		return nil, fmt.Errorf("the arguments %q cannot be read as shapes and types", text)
	}
	out := make([]string, len(list))
	dtype := ""
	for k := len(list) - 1; k >= 0; k-- {
		if list[k].dtype != "" {
			dtype = list[k].dtype
		}
		if dtype == "" {
			return nil, fmt.Errorf("the arguments %q have no element type", text)
		}
		out[k] = strings.Replace(dtype, "fp", "f", 1) + "[" + list[k].shape + "]"
	}
	return out, nil
}
