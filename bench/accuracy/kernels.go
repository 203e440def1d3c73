package accuracy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/systems"
	"perfsim/systems/nki"
	"perfsim/systems/sched"
)

const classKernels = "NKI kernels"

// The quantities that kernels are measured in.
const (
	kernelTime    = "kernel time"
	deviceLatency = "device latency"
	profilerTotal = "profiler total"
)

// quantityOf returns the quantity that a table's description of its measurement
// names. The profiler's total of trn2 has the runtime's preamble in it
// (profiler_ns); other machines have no such profile, and their kernel time
// stands for it.
func quantityOf(how, machine string) string {
	how = strings.ToLower(how)
	switch {
	case machine == "trn2" && (strings.Contains(how, "total_time") || strings.Contains(how, "total time")):
		return profilerTotal
	case strings.Contains(how, "benchmark") || strings.Contains(how, "neuron-bench"):
		return deviceLatency
	}
	return kernelTime
}

// simulate predicts an input and fills an item with its latency and what its
// quantity adds to it.
func simulate(ctx context.Context, i *Item, r systems.Request) error {
	res, err := systems.Simulate(ctx, r)
	if err != nil {
		return err
	}
	s := res.Summary()
	latency, extra := float64(s.LatencyA), 0.0
	switch {
	case i.Quantity == deviceLatency && s.Launch != nil:
		extra = float64(*s.Launch)
	case i.Quantity == profilerTotal:
		extra, _ = res.World.Machine.Calibrated.Constant("profiler_ns")
	}
	lo, hi := latency, latency
	if s.Range != nil {
		lo, hi = float64(s.Range.Low), float64(s.Range.High)
	}
	i.set(latency+extra, lo+extra, hi+extra)
	for _, n := range res.Notes() {
		if n.Code == "buffers-overflow" || n.Code == components.NoteSpills || strings.HasPrefix(n.Code, "kernel-") {
			i.Note = strings.TrimPrefix(i.Note+"; "+n.Text, "; ")
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

// benchQuantity is the quantity in the table of benchmark kernels: of trn2 the
// benchmark's time, of trn1 the profiler's.
var benchQuantity = map[string]string{"trn2": deviceLatency, "trn1": kernelTime}

// benchJobs predicts benchmark kernels by name: NAME_*.py in a folder called
// kernels. Shapes come from the reference next to them.
func benchJobs(f *file, all []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		path := ""
		for _, p := range all {
			rest, ok := strings.CutPrefix(filepath.Base(p), row["kernel"]+"_")
			if ok && strings.HasSuffix(p, ".py") && filepath.Base(filepath.Dir(p)) == "kernels" && sizedName().MatchString(rest) {
				path = p
			}
		}
		for _, mach := range []string{"trn2", "trn1"} {
			ms := number(row[mach+"_ms"])
			if !(ms > 0) {
				continue
			}
			it := Item{Class: classKernels + " on " + mach, Name: row["kernel"], Machine: mach, Quantity: benchQuantity[mach], Measured: ms * 1e6,
				Source: fmt.Sprintf("%s, line %d", f.path, n+2)}
			out = append(out, sourceJob(it, opt, path, mach, format.KernelCall{}, false))
		}
	}
	return out, nil
}

// sizedName is a name that goes on with sizes: M4096_N2048_0.py.
var sizedName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:[A-Z]+\d+_)+\d+\.py$`) })

func sourceJob(it Item, opt *Options, path, mach string, call format.KernelCall, asWritten bool) job {
	switch {
	case path == "":
		it.Reason = "the source is in none of the folders"
	case !opt.Execute:
		it.Reason = errNotExecuted.Error()
	}
	return job{it, func(ctx context.Context, i *Item) error {
		err := simulate(ctx, i, kernelRequest(opt, path, mach, call, asWritten))
		if err != nil {
			return errors.New(strings.ReplaceAll(err.Error(), filepath.Dir(path)+string(filepath.Separator), ""))
		}
		return nil
	}}
}

// kernelJobs predicts the kernels of a table whose sources are ID/kernel.py.
func kernelJobs(f *file, all []string, opt *Options) ([]job, error) {
	var out []job
	for n, row := range f.rows {
		mach, _, _ := strings.Cut(row["machine"], ",")
		mach, _, _ = strings.Cut(strings.TrimSpace(mach), " ")
		mach, _, _ = strings.Cut(mach, ".")
		it := Item{Class: classKernels + " on " + mach, Name: row["id"], Machine: mach, Quantity: quantityOf(row["how"], mach), Measured: number(row["latency_us"]) * 1e3,
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
		if path != "" {
			args, err := arguments(row["args"])
			if err != nil {
				it.Reason = err.Error()
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			call.Args = append(args.tensors, accepts(string(source), function, args.settings)...)
		}
		if x := launched().FindStringSubmatch(row["machine"]); x != nil {
			call.Grid = x[1]
		}
		if knobs := blockSizes().FindStringSubmatch(row["function"]); knobs != nil {
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
	blockSizes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`TILES_IN_BLOCK_M,N,K=(\d+),(\d+),(\d+)`) })
	launched   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`launched \[([\d,]+)\]`) })
)
