package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/io/resulttable"
	"perfsim/io/workq"
	"perfsim/io/workq/local"
	"perfsim/io/workq/shard"
	"perfsim/systems"
	"perfsim/systems/sweep"
)

// sweepFlags are the flags of sweep; those that extend lists of the
// specification add to them.
type sweepFlags struct {
	spec   sweep.Spec
	shard  string
	resume bool
	retry  bool
	dryRun bool
	jobs   int
	quiet  bool
	json   bool
	queue  queueFlags
}

func newSweepCommand() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep [flags] [SPEC.yaml]",
		Short: "Predict many cases: inputs × machines × models × options × changes",
		Long: `sweep predicts the product of inputs, machines, models, options and what-if
changes, and writes a table with a row a case. The unchanged case is always
among them. SPEC.yaml has the lists inputs, manifest, machines, models, options,
whatif, output and files; flags add to them.

Results go to the file OUTPUT.record as they come. A sweep that was stopped or
killed goes on where it was when it is started again, and one that is complete
does nothing. A case is known by its content: the input's bytes and name, the
machine description, options, change and the version of perfsim. A case that
fails is a row with its error.

--shard I/N predicts one part of N and writes OUTPUT.I-of-N.part; 'perfsim sweep
merge' makes the table of all parts. auto/N takes I from JOB_COMPLETION_INDEX or
SLURM_ARRAY_TASK_ID. --serve and --queue hand cases to workers on other
machines (perfsim worker).`,
		Example: `  perfsim sweep --input 'modules/*.bir.json' --machine trn1 \
      --machine trn2 -o results.csv
  perfsim sweep --input module.bir.json --whatif 'pe.clock=0.5x..2x/0.01' \
      -o results.parquet
  perfsim sweep --input k.hlo --option buffers=2 --option buffers=3 \
      --whatif 'dma.rate=1x,2x pe.clock=1x,2x' -o r.jsonl
  perfsim sweep sweep.yaml --shard 2/8`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fl := c.Flags()
	fl.StringArrayVar(&f.spec.Inputs, "input", nil, "input, or a pattern of inputs in quotes; may be repeated")
	fl.StringVar(&f.spec.Manifest, "manifest", "", "file with inputs and patterns, one a line")
	fl.StringArrayVar(&f.spec.Machines, "machine", nil, "machine by name or description file; may be repeated; default: what the input was made for, else trn2")
	fl.StringArrayVar(&f.spec.Models, "model", nil, "reference, calibrated or replay; may be repeated; default: as run")
	fl.StringArrayVar(&f.spec.Options, "option", nil, "flags of run that change a prediction, NAME=VALUE with spaces between; may be repeated, each one choice")
	fl.StringArrayVar(&f.spec.WhatIf, "whatif", nil, "change as of whatif, NAME=VALUE,… with spaces between; may be repeated")
	fl.StringVarP(&f.spec.Output, "output", "o", "", "table to write: .csv, .jsonl or .parquet")
	fl.StringVar(&f.spec.Files, "files", "", "folder in which every case gets a folder, named by its id, with report.json and its traces")
	fl.StringVar(&f.shard, "shard", "", "predict part I of N alone: I/N, auto/N, or auto in a Slurm array")
	fl.BoolVar(&f.resume, "resume", true, "go on with the results of an earlier start; --resume=false begins anew")
	fl.BoolVar(&f.retry, "retry-failed", false, "predict cases again whose result is an error")
	fl.BoolVar(&f.dryRun, "dry-run", false, "count the cases and predict none")
	fl.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "cases at a time; results do not depend on it")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	fl.BoolVar(&f.json, "json", false, "print what was done as JSON")
	f.queue.add(c)
	c.AddCommand(newSweepMergeCommand())
	return c
}

// read reads the specification and adds the flags to it; paths in the
// specification are from its folder on.
func (f *sweepFlags) read(args []string) (spec *sweep.Spec, dir string, err error) {
	if len(args) == 0 {
		s := f.spec
		return &s, "", nil
	}
	file, err := os.Open(args[0])
	if err != nil {
		return nil, "", err
	}
	defer file.Close()
	if spec, err = sweep.Read(args[0], file); err != nil {
		return nil, "", err
	}
	dir = filepath.Dir(args[0])
	here := func(path string) (string, error) { // of flags: from the working folder on
		if dir == "." || path == "" {
			return path, nil
		}
		return filepath.Abs(path)
	}
	for _, p := range f.spec.Inputs {
		if p, err = here(p); err != nil {
			return nil, "", err
		}
		spec.Inputs = append(spec.Inputs, p)
	}
	if f.spec.Manifest != "" {
		if spec.Manifest, err = here(f.spec.Manifest); err != nil {
			return nil, "", err
		}
	}
	spec.Machines, spec.Models = append(spec.Machines, f.spec.Machines...), append(spec.Models, f.spec.Models...)
	spec.Options, spec.WhatIf = append(spec.Options, f.spec.Options...), append(spec.WhatIf, f.spec.WhatIf...)
	for _, x := range []struct{ of, flag *string }{{&spec.Output, &f.spec.Output}, {&spec.Files, &f.spec.Files}} {
		switch {
		case *x.flag != "":
			*x.of = *x.flag
		case *x.of != "" && !filepath.IsAbs(*x.of):
			*x.of = filepath.Join(dir, *x.of)
		}
	}
	return spec, dir, nil
}

func (f *sweepFlags) run(c *cobra.Command, args []string) error {
	if f.jobs < 1 {
		return usagef("--jobs %d is not at least 1", f.jobs)
	}
	spec, dir, err := f.read(args)
	if err != nil {
		return err
	}
	part := shard.Shard{I: 1, N: 1}
	if f.shard != "" {
		if part, err = shard.Parse(f.shard, os.Getenv); err != nil {
			return usagef("--shard %w", err)
		}
	}
	if err := f.queue.check(c, f.shard != "", spec); err != nil {
		return err
	}
	if spec.Output == "" && !f.dryRun {
		return usagef("the table has no name: -o results.csv, .jsonl or .parquet (or output: in the specification)")
	}
	if spec.Output != "" {
		if _, err := resulttable.FormatOf(spec.Output); err != nil {
			return usageError{err}
		}
	}
	engine, err := engineVersion()
	if err != nil {
		return err
	}
	plan, err := sweep.NewPlan(c.Context(), spec, dir, engine, resolveOptions)
	if err != nil {
		return sweepError(err)
	}
	for _, in := range plan.Inputs {
		if err := refuseInputs(c, in.Name); err != nil {
			return err
		}
	}
	from, to := part.Range(plan.Len())
	if f.dryRun {
		_, err := sayf(c.OutOrStdout(), "%s: %s × %s × %s × %s × %s\n", countOf(to-from, "case"), countOf(len(plan.Inputs), "input"),
			countOf(len(plan.Machines), "machine"), countOf(len(plan.Models), "model"), countOf(len(plan.Options), "choice of options"), countOf(len(plan.Changes), "change"))
		return err
	}
	name := spec.Output
	if f.shard != "" {
		name = fmt.Sprintf("%s.%d-of-%d", name, part.I, part.N)
	}
	return f.predict(c, plan, spec, name, from, to)
}

// predict works on the cases from to to and writes their table, or the part
// that they are.
func (f *sweepFlags) predict(c *cobra.Command, plan *sweep.Plan, spec *sweep.Spec, name string, from, to int) (err error) {
	record := name + ".record"
	if !f.resume {
		if err := os.Remove(record); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	r, err := sweep.OpenRecord(record)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var q workq.Queue
	if f.queue.used() {
		var end func(done bool)
		if q, end, err = f.queue.open(c, plan, record); err != nil {
			return err
		}
		defer func() { end(err == nil) }()
	} else {
		e, err := sweep.NewEvaluator(plan, resolveOptions, nil, f.jobs, spec.Files)
		if err != nil {
			return err
		}
		q = &local.Queue{Jobs: f.jobs, Do: e.Do}
	}
	// Predictions leave much garbage and little that lives.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	p := newSweepProgress(c.ErrOrStderr(), f.quiet)
	counts, err := plan.Run(c.Context(), q, r, sweep.Range{From: from, To: to, Retry: f.retry, Files: spec.Files}, p.told)
	p.close()
	if err != nil {
		if c.Context().Err() != nil && !f.quiet {
			sayf(c.ErrOrStderr(), "stopped: %s of %s have results; the same command goes on\n", humanize.Comma(int64(counts.Before+counts.Predicted)), countOf(counts.Cases, "case"))
		}
		return err
	}
	written := true
	if f.shard != "" {
		name += ".part"
		err = plan.WritePart(r, from, to, name)
	} else {
		written, err = plan.WriteTable(r, name)
	}
	if err != nil {
		return err
	}
	return f.report(c.OutOrStdout(), counts, p, name, written)
}

// report says what was done.
func (f *sweepFlags) report(out io.Writer, n sweep.Counts, p *sweepProgress, name string, written bool) error {
	if f.json {
		return writeJSON(out, struct {
			sweep.Counts
			Seconds float64 `json:"seconds"`
			Rate    float64 `json:"cases_per_second"` // cases over the time of the sweep
			Output  string  `json:"output"`
			Written bool    `json:"written"` // file that was written
		}{n, p.seconds(), p.rate(n.Predicted), name, written})
	}
	text := countOf(n.Cases, "case") + ": "
	if n.Predicted == 0 {
		text += "all had results before"
	} else {
		text += humanize.Comma(int64(n.Predicted)) + " predicted"
		if n.Before > 0 {
			text += ", " + humanize.Comma(int64(n.Before)) + " had results before"
		}
		text += fmt.Sprintf(", %.1f s, %s cases/s", p.seconds(), rateText(p.rate(n.Predicted)))
	}
	if n.Failed > 0 {
		text += fmt.Sprintf("\n%s failed (column error)", humanize.Comma(int64(n.Failed)))
	}
	wrote := "wrote "
	if !written {
		wrote = "unchanged: "
	}
	fmt.Fprintln(out, text)
	_, err := sayf(out, "%s%s\n", wrote, name)
	return err
}

func newSweepMergeCommand() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "merge [flags] PART...",
		Short: "Make the table of a sweep of the parts that --shard wrote",
		Long: `merge reads the parts of one sweep, in any order, checks that they are of one
sweep and that every case is in exactly one of them, and writes the table that
the sweep writes without --shard: the same bytes.`,
		Example: `  perfsim sweep merge -o results.csv results.csv.*.part`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if output == "" {
				return usagef("the table has no name: -o results.csv, .jsonl or .parquet")
			}
			if _, err := resulttable.FormatOf(output); err != nil {
				return usageError{err}
			}
			for _, a := range args {
				if err := refuseInputs(c, a); err != nil {
					return err
				}
			}
			rows, err := sweep.Merge(args, output)
			if err != nil {
				return err
			}
			_, err = sayf(c.OutOrStdout(), "%s of %s\nwrote %s\n", countOf(rows, "case"), countOf(len(args), "part"), output)
			return err
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "", "table to write: .csv, .jsonl or .parquet")
	return c
}

// sweepError makes errors about what was asked for errors of the command line.
func sweepError(err error) error {
	if request, ok := errors.AsType[systems.RequestError](err); ok {
		return usageError{request}
	}
	return err
}
