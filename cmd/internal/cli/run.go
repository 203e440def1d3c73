package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/emit"
	"perfsim/systems/sched"
)

// runFlags are the flags of `perfsim run`.
type runFlags struct {
	in       inputFlags
	rec      recordFlags
	style    traceFlags
	huge     streamFlags
	passes   systems.Options
	out      string
	layout   string // of the metric store
	policy   int
	severity int

	packageOnly, dumpSched, asJSON, timings, verbose bool
}

func newRunCommand() *cobra.Command {
	f := runFlags{passes: systems.Options{EnablePerfSim: true}}
	c := &cobra.Command{
		Use:   "run [flags] INPUT...",
		Short: "Simulate modules and write their traces, metrics and packages",
		Long: `run places every instruction of INPUT on the engines of a machine, once with
anti-dependencies and once without, and prints the latency and what bounds it.
INPUT is recognised by what it holds; gzip and zstd are unwrapped; - is
standard input. With -o DIR it writes a trace per block and run, the metric
store and the package file.perf-sim.

Several inputs make a table with a row an input, or with --json an array. Their
traces, metrics and tables go to DIR together, and file.perf-sim has the traces
of all; the name of a module that is taken gets -2, -3 and so on, in the order
of the inputs. An input that fails is reported, the others still run,
and the exit status is 1.

A snapshot that does not fit in memory is placed in a stream: its rows pass
through a window. The figures are the same; nothing is written.`,
		Example: `  perfsim run examples/tiled_matmul.bir.json
  perfsim run -o out --machine trn3 module.bir.json
  perfsim run --json profile.json.gz | jq .latency_ns
  perfsim run -o out *.bir.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c, args); err != nil {
				return err
			}
			return f.run(c, args)
		},
	}
	f.in.add(c)
	f.rec.add(c)
	f.style.add(c)
	f.huge.add(c)
	fl := c.Flags()
	fl.StringVarP(&f.out, "output", "o", "", "folder for traces, metrics and file.perf-sim")
	fl.BoolVar(&f.packageOnly, "package-only", false, "with -o: stream the perf_sim traces straight into file.perf-sim and write no trace files")
	fl.BoolVar(&f.asJSON, "json", false, "print one JSON object instead of the summary, an array for several inputs")
	fl.BoolVar(&f.timings, "timings", false, "print how long each system took")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print the documented log lines of the passes on stderr")
	fl.StringVar(&f.layout, "metrics-layout", "nested", "with -o: layout of global_metric_store.json: nested (documented), flat, or lossless (every entry with type, name and aggregation)")
	completeWith(c, "metrics-layout", "nested", "flat", "lossless")
	fl.IntVar(&f.severity, "log-severity", 20, "with -v: the least severity of the lines that are printed; 20 is information, 40 errors")
	fl.BoolVar(&f.passes.EnablePerfSim, "enable-perf-sim", true, "run the perf_sim passes (88 and 99); perf_sim_at_end needs no flag")
	fl.IntVar(&f.policy, "policy", 0, "order of the instructions that post_sched makes: 0 keeps the input's, 1 loads first, 2 greedy, 3 time-aware")
	fl.BoolVar(&f.dumpSched, "dump-postsched-trace", false, "with -o and --policy: write the traces of post_sched, ps_trace.*")
	fl.StringSliceVar(&f.passes.Only, "pass", nil, "replace the pipeline by these passes (see 'perfsim passes')")
	fl.StringSliceVar(&f.passes.Skip, "skip-pass", nil, "leave these passes out")
	fl.StringSliceVar(&f.passes.DumpAfter, "dump-after", nil, "with -o: write the tables after this system, as --timings names it")
	fl.StringVar(&f.passes.Start, "start-pass", "", "drop every pass before this one")
	return c
}

// check fails for flags that contradict each other.
func (f *runFlags) check(c *cobra.Command, args []string) error {
	if err := f.in.check(); err != nil {
		return err
	}
	if f.policy < 0 || f.policy > 3 {
		return usagef("--policy %d is not between 0 and 3", f.policy)
	}
	if err := f.style.check(f.out); err != nil {
		return err
	}
	if f.severity != 20 && !f.verbose {
		return usagef("--log-severity is about the lines that -v prints: add -v")
	}
	if _, err := layoutNamed("metrics-layout", f.layout); err != nil {
		return err
	}
	switch {
	case f.dumpSched && (f.out == "" || f.policy == 0):
		return usagef("--dump-postsched-trace writes the traces of a new order: it needs -o DIR and --policy 1, 2 or 3")
	case f.out != "":
	case f.layout != "nested":
		return usagef("--metrics-layout is about the metric store's file: -o DIR writes it")
	case f.packageOnly:
		return usagef("--package-only needs a folder: -o DIR")
	case len(f.passes.DumpAfter) > 0:
		return usagef("--dump-after needs a folder: -o DIR")
	}
	if err := f.huge.check(c, &f.in, args); err != nil {
		return err
	}
	return f.rec.refuseSeveral(args)
}

// run simulates the inputs and prints their reports.
func (f *runFlags) run(c *cobra.Command, args []string) error {
	f.in.skipOperands = f.out == "" && f.rec.device == "" && f.rec.print == ""
	p := newProgress(c.ErrOrStderr(), f.in.quiet)
	defer p.close()
	if err := f.rec.begin(p); err != nil {
		return err
	}
	r, err := f.request(c.ErrOrStderr())
	if err != nil {
		return err
	}
	if f.out != "" && len(args) > 1 {
		r.Out.Group = emit.NewGroup(r.Out)
		defer r.Out.Group.Abort()
	}
	one := func(input string) (*systems.Report, error) { return f.report(c, input, r, p) }
	if len(args) > 1 {
		return runSeveral(c, args, one, r, p, f.asJSON)
	}
	rep, err := one(args[0])
	if err != nil {
		return err
	}
	p.close()
	if f.asJSON {
		return writeJSON(c.OutOrStdout(), rep)
	}
	return runReport{rep}.print(c.OutOrStdout())
}

// request returns what the flags ask for, without an input; log lines go to
// messages.
func (f *runFlags) request(messages io.Writer) (systems.Request, error) {
	layout, err := layoutNamed("metrics-layout", f.layout)
	r := systems.Request{Pipeline: &f.passes, Policy: sched.Policy(f.policy), DumpSched: f.dumpSched,
		Out: emit.Output{Dir: f.out, PackageOnly: f.packageOnly, Layout: layout, Style: f.style.style()}}
	if f.verbose {
		r.Log = func(line string) {
			if severityOf(line) >= f.severity {
				fmt.Fprintln(messages, line)
			}
		}
	}
	return r, err
}

// report simulates one input, in a stream where it does not fit in memory.
func (f *runFlags) report(c *cobra.Command, input string, r systems.Request, p *progress) (*systems.Report, error) {
	if rep, err := f.huge.run(c, &f.in, input, r, f.timings, p); rep != nil || err != nil {
		return rep, err
	}
	f.in.passes = r.Pipeline
	l, err := f.in.load(c.Context(), c, input, p)
	if err != nil {
		return nil, err
	}
	if g := r.Out.Group; g != nil {
		l.Module.Name = g.Name(l.Module.Name)
	}
	var told strings.Builder
	r.Record = func(w *components.World, out *emit.Output) error { return f.rec.finish(c.Context(), w, out, &told) }
	res, err := f.in.simulate(c.Context(), l, r, p)
	if err != nil {
		return nil, err
	}
	io.WriteString(c.ErrOrStderr(), told.String())
	res.Input = input
	rep, err := res.RunReport(c.Context())
	if err != nil {
		return nil, err
	}
	if n := f.in.settings.Graph.Cores; n > 0 {
		list, err := f.in.scaleCores(c, input, []int64{n}, p)
		if err != nil {
			return nil, err
		}
		rep.Cores = &list[0]
	}
	if f.timings {
		rep.Timings = res.SystemTimes()
	}
	return rep, nil
}

// severityOf is the severity of a documented log line: 40 for errors, 20 for
// the rest. 20 is the documented simulator's default.
func severityOf(line string) int {
	if strings.HasPrefix(line, "Failed to ") || strings.HasPrefix(line, "Directory does not exist") {
		return 40
	}
	return 20
}
