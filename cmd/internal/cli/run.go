package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/io/format"
	"perfsim/systems"
	"perfsim/systems/cost"
	"perfsim/systems/emit"
	"perfsim/systems/lower"
	"perfsim/systems/sched"
	"perfsim/systems/summary"
)

func newRunCommand() *cobra.Command {
	var in inputFlags
	var rec recordFlags
	var out string
	var packageOnly bool
	var style traceFlags
	var asJSON, timings, verbose bool
	passes := systems.Options{EnablePerfSim: true}
	c := &cobra.Command{
		Use:   "run [flags] INPUT",
		Short: "Simulate a module and write its traces, metrics and package",
		Long: `run places every instruction of INPUT on the engines of a machine, once with
anti-dependencies and once without, and prints the latency and what bounds it.
INPUT is recognised by what it holds; gzip and zstd are unwrapped; - is
standard input. With -o DIR it writes a trace per block and run, the metric
store and the package file.perf-sim.`,
		Example: `  perfsim run examples/tiled_matmul.bir.json
  perfsim run -o out --machine trn3 module.bir.json
  perfsim run --json profile.json.gz | jq .latency_ns`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if in.policy < 0 || in.policy > 3 {
				return usagef("--policy %d is not between 0 and 3", in.policy)
			}
			if err := style.check(out); err != nil {
				return err
			}
			if packageOnly && out == "" {
				return usagef("--package-only needs a folder: -o DIR")
			}
			if out == "" {
				// The calibrated model reads them, the others only write them.
				in.skipOperands = func(format string) bool {
					return in.model != "calibrated" && (in.model != "" || format != "neuronprofile")
				}
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			if err := rec.begin(p); err != nil {
				return err
			}
			began := time.Now()
			m, err := in.load(c.Context(), c, args[0], p)
			if err != nil {
				return err
			}
			read := time.Since(began)
			log := func(string) {}
			if verbose {
				log = func(line string) { fmt.Fprintln(c.ErrOrStderr(), line) }
			}
			in.path = args[0]
			w, times, err := simulate(c.Context(), &in, m, passes, emit.Output{Dir: out, PackageOnly: packageOnly, Style: style.style()}, log, p)
			if err != nil {
				return err
			}
			if err := rec.finish(c.Context(), &w.World, c.ErrOrStderr()); err != nil {
				return err
			}
			p.close()
			rep := newRunReport(args[0], w, read, time.Since(began))
			rep.Lowering, rep.BeforeAllocation = in.lowering.report, w.BeforeAllocation()
			if timings {
				rep.Timings = times
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), rep)
			}
			return rep.print(c.OutOrStdout())
		},
	}
	in.add(c)
	rec.add(c)
	style.add(c)
	c.Flags().StringVarP(&out, "output", "o", "", "folder for traces, metrics and file.perf-sim")
	c.Flags().BoolVar(&packageOnly, "package-only", false, "with -o: stream the perf_sim traces straight into file.perf-sim and write no trace files")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of the summary")
	fl := c.Flags()
	fl.BoolVar(&timings, "timings", false, "tell how long each system took")
	fl.BoolVarP(&verbose, "verbose", "v", false, "print the documented log lines of the passes on stderr")
	fl.BoolVar(&passes.EnablePerfSim, "enable-perf-sim", true, "run the perf_sim passes (88 and 99); perf_sim_at_end needs no flag")
	fl.BoolVar(&in.rebuildDeps, "rebuild-deps", false, "add the dependencies that access patterns imply to every function, not only to those that came without any")
	fl.IntVar(&in.policy, "policy", 0, "order of the instructions that post_sched makes: 0 keeps the input's, 1 loads first, 2 greedy, 3 time-aware")
	fl.BoolVar(&in.dumpSched, "dump-postsched-trace", false, "with -o and --policy: write the traces of post_sched, ps_trace.*")
	fl.StringSliceVar(&passes.Only, "pass", nil, "replace the pipeline by these passes (see 'perfsim passes')")
	fl.StringSliceVar(&passes.Skip, "skip-pass", nil, "leave these passes out")
	fl.StringVar(&passes.Start, "start-pass", "", "drop every pass before this one")
	return c
}

// simulate runs all systems over a module.
func simulate(ctx context.Context, in *inputFlags, m *components.Module, passes systems.Options, out emit.Output, log func(string), p *progress) (*systems.World, []systemTime, error) {
	w := systems.NewWorld(m)
	var err error
	if w.Machine, err = in.machineFor(m); err != nil {
		return nil, nil, err
	}
	if w.Config, err = in.configure(m, w.Machine); err != nil {
		return nil, nil, err
	}
	w.Config.Progress = func(done, _ int64) { p.set(done) }
	w.Out = out
	if err := mergeTensorizer(w, in.path); err != nil {
		return nil, nil, err
	}
	// Issue intervals, latencies and the times of both runs, 24 bytes a row.
	if err := format.Reserve(ctx, uint64(m.Instr.Len())*24, "simulating "+countOf(m.Instr.Len(), "instruction")); err != nil {
		return nil, nil, err
	}
	w.Log = log
	w.PreAlloc = in.lowering.preAlloc
	w.RebuildDeps = in.rebuildDeps
	w.Policy, w.DumpSched = sched.Policy(in.policy), in.dumpSched
	order, err := systems.Order(passes)
	if err != nil {
		return nil, nil, usageError{err}
	}
	defer w.Out.Abort()
	times, err := order.Run(ctx, w, func(_ int, name string) { p.start(name, int64(m.Instr.Len()), false) })
	if err != nil {
		return nil, nil, err
	}
	if err := emit.Commit(&w.Out); err != nil {
		return nil, nil, err
	}
	var list []systemTime
	for _, t := range times {
		ns := float64(t.Wall.Nanoseconds()) / float64(max(m.Instr.Len(), 1))
		list = append(list, systemTime{t.System, t.Wall.Seconds(), ns})
	}
	return w, list, nil
}

type systemTime struct {
	System  string  `json:"system"`
	Seconds float64 `json:"seconds"`
	PerItem float64 `json:"ns_per_instruction"`
}

// runReport is what `run --json` prints.
type runReport struct {
	Input   string `json:"input"`
	Module  string `json:"module"`
	Format  string `json:"format"`
	Machine string `json:"machine"`
	Model   string `json:"model"`
	Loops   string `json:"loops"`
	summary.Summary
	// Lowering tells what became of the graph that was read, BeforeAllocation
	// the latency with buffers that never end.
	Lowering         *lower.Report `json:"lowering,omitempty"`
	BeforeAllocation uint64        `json:"before_allocation_ns,omitempty"`
	ErrorPercent     *float64      `json:"error_percent"` // predicted against measured
	// Replay compares the starts with those of a trace that was read.
	Replay *summary.Replay `json:"replay,omitempty"`
	// Rebuilt counts the dependencies that were rebuilt from access patterns,
	// by kind; absent where none were.
	Rebuilt     map[string]uint64  `json:"edges_rebuilt,omitempty"`
	Scheduled   []scheduled        `json:"scheduled,omitempty"` // what post_sched did
	Estimates   []systems.Estimate `json:"estimates"`           // of every perf_sim pass
	Notes       []components.Note  `json:"notes"`
	Artifacts   []artifact         `json:"artifacts"`
	ReadSeconds float64            `json:"read_seconds"`
	Seconds     float64            `json:"seconds"`
	Rate        float64            `json:"instructions_per_second"`
	Timings     []systemTime       `json:"timings,omitempty"`
}

// scheduled is what post_sched did to a block, in ns of run A with loop
// bodies placed once.
type scheduled struct {
	Function string `json:"function"`
	Block    string `json:"block"`
	Before   uint64 `json:"before_ns"`
	After    uint64 `json:"after_ns"`
	Bound    uint64 `json:"lower_bound_ns"` // no order is faster
	Kept     bool   `json:"kept"`           // the old order was no worse
}

type artifact struct {
	Path string `json:"path"`
	Kind string `json:"kind"`
	Size int64  `json:"bytes"`
}

// runNotes are the notes of a run: of the module, of the model, and whether
// anything was predicted.
func runNotes(w *systems.World) []components.Note {
	notes := slices.Clone(w.Module.Notes)
	if len(w.Estimates) == 0 {
		notes = append(notes, components.Note{Code: "not-predicted", Count: 1,
			Text: "nothing was predicted: none of the passes that ran is perf_sim or perf_sim_at_end"})
	}
	return append(notes, modelNotes(&w.World)...)
}

// modelNotes has a note where the documented rules leave transfers out: the
// prediction would look like a mistake without it.
func modelNotes(w *components.World) []components.Note {
	if w.Config.Model != cost.Reference {
		return nil
	}
	n := 0
	for _, f := range w.Module.Instr.Flags.Slice() {
		n += int(f & components.FlagTrigger / components.FlagTrigger)
	}
	if n == 0 {
		return nil
	}
	return []components.Note{{Code: "trigger-start", Count: n,
		Text: "DMA triggers: as documented, consumers wait for the trigger's start, not for the transfer; --model calibrated waits for the data"}}
}

func newRunReport(input string, w *systems.World, read, total time.Duration) *runReport {
	r := &runReport{Input: input, Module: w.Module.Name, Format: w.Module.Format, Machine: w.Machine.Name, Model: w.Config.Model,
		Loops: w.Config.Loops, Summary: w.Summary, Notes: runNotes(w), Estimates: w.Estimates, ReadSeconds: read.Seconds(), Seconds: total.Seconds(),
		Artifacts: []artifact{}}
	if r.Notes == nil {
		r.Notes = []components.Note{}
	}
	r.Rate = float64(r.Instructions) / total.Seconds()
	if r.Measured != nil && *r.Measured > 0 {
		e := 100 * (float64(r.LatencyA) - float64(*r.Measured)) / float64(*r.Measured)
		r.ErrorPercent = &e
	}
	if cost.ReplaysByDefault(w.Module) && w.Module.HasMeasurement() {
		replay := summary.CompareStarts(&w.World)
		r.Replay = &replay
	}
	for _, b := range w.Scheduled {
		r.Scheduled = append(r.Scheduled, scheduled{w.Module.FunctionName(int(w.Module.Blocks.Function.At(b.Block))), w.Module.BlockName(b.Block),
			b.Before, b.After, b.Bound(), b.Kept})
	}
	if w.Rebuilt.Functions > 0 {
		r.Rebuilt = map[string]uint64{}
		for k := components.Ordered; k < components.NumEdgeKinds; k++ {
			r.Rebuilt[k.String()] = w.Rebuilt.Edges[k]
		}
	}
	for _, a := range w.Out.Artifacts {
		r.Artifacts = append(r.Artifacts, artifact{a.Path, a.Kind, a.Size})
	}
	return r
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func percent(part, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// bar draws a share between 0 and 1.
func bar(share float64) string {
	const width = 20
	n := int(min(max(share, 0), 1)*width + 0.5)
	return strings.Repeat("█", n) + strings.Repeat("·", width-n)
}

// mostBlocks bounds the rows printed for people; --json has them all.
const mostBlocks = 12

func (r *runReport) print(out io.Writer) error {
	tw := newTable(out)
	functions := map[string]bool{}
	top := 0
	for _, b := range r.Blocks {
		functions[b.Function] = true
		if !b.InLoop {
			top++
		}
	}
	predicted := len(r.Estimates) > 0
	if predicted {
		fmt.Fprintf(tw, "module\t%s (%s), %s, %s\n", r.Module, r.Format, countOf(len(functions), "function"), countOf(top, "block"))
	} else {
		fmt.Fprintf(tw, "module\t%s (%s)\n", r.Module, r.Format)
	}
	fmt.Fprintf(tw, "machine\t%s, %s model\n", r.Machine, r.Model)
	if predicted {
		fmt.Fprintf(tw, "instructions\t%s\n", humanize.Comma(int64(r.Instructions)))
		fmt.Fprintf(tw, "edges\t%s\n", r.edgeText())
	}
	for n, b := range r.Scheduled {
		if n == mostBlocks {
			break
		}
		what := fmt.Sprintf("%s instead of %s (no order is faster than %s)", nanos(b.After), nanos(b.Before), nanos(b.Bound))
		if b.Kept {
			what = fmt.Sprintf("no better order found than the input's, %s", nanos(b.Before))
		}
		fmt.Fprintf(tw, "scheduled\t%s/%s: %s\n", b.Function, b.Block, what)
	}
	if r.Rebuilt != nil {
		fmt.Fprintf(tw, "rebuilt\tflow %s, anti %s, output %s, from access patterns\n", humanize.Comma(int64(r.Rebuilt["Flow"])),
			humanize.Comma(int64(r.Rebuilt["Anti"])), humanize.Comma(int64(r.Rebuilt["Output"])))
	}
	if !predicted {
		fmt.Fprintf(tw, "latency\tnot predicted: none of the passes that ran is perf_sim or perf_sim_at_end; add one (--pass …,perf_sim_at_end)\n")
		return tw.Flush()
	}
	fmt.Fprintf(tw, "latency\t%s\n", nanos(r.LatencyA))
	printHeadlines(tw, r.Notes)
	if r.BeforeAllocation > 0 {
		fmt.Fprintf(tw, "before allocation\t%s (finite buffers cost %s)\n", nanos(r.BeforeAllocation), percent(r.LatencyA-min(r.LatencyA, r.BeforeAllocation), r.LatencyA))
	}
	fmt.Fprintf(tw, "without anti-dependencies\t%s (they cost %s, %s)\n", nanos(r.LatencyB), nanos(r.AntiCost), percent(r.AntiCost, r.LatencyA))
	if r.ErrorPercent != nil {
		fmt.Fprintf(tw, "measured\t%s (prediction %+.1f %%)\n", nanos(*r.Measured), *r.ErrorPercent)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	fmt.Fprintln(tw, "ENGINE\tINSTRUCTIONS\tBUSY\tUTILIZATION\t")
	var busy []uint64
	for _, e := range r.Engines {
		busy = append(busy, e.BusyNS)
	}
	shown := busiest(busy, mostLanes)
	kept := make([]uint64, 0, len(shown))
	for _, k := range shown {
		kept = append(kept, busy[k])
	}
	text := timeColumn(kept...)
	for _, k := range shown {
		e := &r.Engines[k]
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s %5.1f %%\t\n", e.Name, humanize.Comma(int64(e.Instructions)), text(e.BusyNS), bar(e.Utilization), 100*e.Utilization)
	}
	if n := len(r.Engines) - len(shown); n > 0 {
		fmt.Fprintf(tw, "… and %s with less work (--json lists them)\n", countOf(n, "lane"))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(r.Blocks) > 1 {
		fmt.Fprintln(out)
		fmt.Fprintln(tw, "BLOCK\tINSTRUCTIONS\tTRIPS\tRUNS\tLATENCY\tWITHOUT ANTI\t")
		var times []uint64
		for n, b := range r.Blocks {
			if n < mostBlocks {
				times = append(times, b.Latency, b.LatencyB)
			}
		}
		text := timeColumn(times...)
		for n, b := range r.Blocks {
			if n == mostBlocks {
				fmt.Fprintf(tw, "… and %d more (--json lists them)\n", len(r.Blocks)-n)
				break
			}
			name := b.Function + "/" + b.Block
			if b.InLoop {
				name = "  loop " + b.Block
			}
			trips := humanize.Comma(int64(b.TripCount))
			if !b.TripKnown {
				trips = "unknown, 1 used"
			}
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", name, humanize.Comma(int64(b.Instructions)), trips, humanize.Comma(int64(b.Runs)), text(b.Latency), text(b.LatencyB))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if r.hasLoops() {
		how := "loop bodies count once, as the documented simulator does; --loops trips multiplies"
		if r.Loops == "trips" {
			how = "loop bodies count as often as their trip counts say"
		}
		fmt.Fprintf(out, "\nloops: %s\n", how)
	}
	if err := r.printReplay(out, tw); err != nil {
		return err
	}
	if notes := plainNotes(r.Notes); len(notes) > 0 {
		fmt.Fprintln(out)
		for _, n := range notes {
			fmt.Fprintf(out, "note: %s (%s)\n", n.Text, humanize.Comma(int64(n.Count)))
		}
	}
	if len(r.Artifacts) > 0 {
		fmt.Fprintln(out)
		for n, a := range r.Artifacts {
			if n == mostBlocks && len(r.Artifacts) > n+4 {
				fmt.Fprintf(tw, "… and %d more files\n", len(r.Artifacts)-n)
				break
			}
			fmt.Fprintf(tw, "wrote\t%s\t%s\t\n", a.Path, humanize.IBytes(uint64(a.Size)))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%.3f s (reading %.3f s), %s instructions/s\n", r.Seconds, r.ReadSeconds, strings.TrimSpace(humanize.SIWithDigits(r.Rate, 1, "")))
	for _, t := range r.Timings {
		if t.Seconds >= shortest {
			fmt.Fprintf(tw, "  %s\t%.3f s\t%.1f ns/instruction\t\n", t.System, t.Seconds, t.PerItem)
		}
	}
	return tw.Flush()
}

// shortest is the least time of a system that is listed for people: a pass that
// met an unchanged module takes none. --json lists all.
const shortest = 1e-6

// mostMoved bounds the events listed for people; --json has them all.
const mostMoved = 20

// printReplay tells which events of a trace that was read do not start where
// the rules put them.
func (r *runReport) printReplay(out io.Writer, tw *tabwriter.Writer) error {
	if r.Replay == nil {
		return nil
	}
	fmt.Fprintf(out, "\nreplaced from durations and edges: %s of %s start as in the trace\n",
		humanize.Comma(int64(r.Replay.Same)), humanize.Comma(int64(r.Replay.Events)))
	if len(r.Replay.Moved) == 0 {
		return nil
	}
	fmt.Fprintln(tw, "EVENT\tLANE\tIN THE TRACE\tHERE\t")
	for n, e := range r.Replay.Moved {
		if n == mostMoved {
			fmt.Fprintf(tw, "… and %s more (--json lists them)\n", humanize.Comma(int64(len(r.Replay.Moved)-n)))
			break
		}
		fmt.Fprintf(tw, "%s\t%s\t%d ns\t%d ns\t\n", e.Name, e.Lane, e.InputNS, e.HereNS)
	}
	return tw.Flush()
}

func (r *runReport) hasLoops() bool {
	for _, b := range r.Blocks {
		if b.InLoop {
			return true
		}
	}
	return false
}

// edgeText lists the edges by kind; where merging made them fewer both
// numbers are told.
func (r *runReport) edgeText() string {
	var parts []string
	for _, k := range []components.EdgeKind{components.Flow, components.Anti, components.Output, components.Ordered} {
		n, p := r.Edges[k.String()], r.Placed[k.String()]
		s := fmt.Sprintf("%s %s", strings.ToLower(k.String()), humanize.Comma(int64(n)))
		if p != n {
			s += fmt.Sprintf(" (%s honoured)", humanize.Comma(int64(p)))
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

func countOf(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return humanize.Comma(int64(n)) + " " + noun + "s"
}
