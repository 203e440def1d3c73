package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/emit"
	"perfsim/systems/sched"
)

func newRunCommand() *cobra.Command {
	var in inputFlags
	var rec recordFlags
	var out string
	var packageOnly bool
	var style traceFlags
	var huge streamFlags
	var metrics string
	var policy, severity int
	var r systems.Request
	var asJSON, timings, verbose bool
	passes := systems.Options{EnablePerfSim: true}
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
of the inputs. An input that fails is reported, the others run all the same,
and the exit status is 1.

A snapshot that does not fit in memory is placed in a stream: its rows pass
through a window. The figures are the same; nothing is written.`,
		Example: `  perfsim run examples/tiled_matmul.bir.json
  perfsim run -o out --machine trn3 module.bir.json
  perfsim run --json profile.json.gz | jq .latency_ns
  perfsim run -o out *.bir.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if policy < 0 || policy > 3 {
				return usagef("--policy %d is not between 0 and 3", policy)
			}
			if err := style.check(out); err != nil {
				return err
			}
			if r.DumpSched && (out == "" || policy == 0) {
				return usagef("--dump-postsched-trace writes the traces of a new order: it needs -o DIR and --policy 1, 2 or 3")
			}
			if severity != 20 && !verbose {
				return usagef("--log-severity is about the lines that -v prints: add -v")
			}
			layout, err := layoutNamed("metrics-layout", metrics)
			if err != nil {
				return err
			}
			if out == "" && metrics != "nested" {
				return usagef("--metrics-layout is about the metric store's file: -o DIR writes it")
			}
			if packageOnly && out == "" {
				return usagef("--package-only needs a folder: -o DIR")
			}
			if err := huge.check(c, &in, args); err != nil {
				return err
			}
			if len(passes.DumpAfter) > 0 && out == "" {
				return usagef("--dump-after needs a folder: -o DIR")
			}
			in.skipOperands = out == "" && rec.device == "" && rec.print == ""
			if err := rec.refuseSeveral(args); err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			if err := rec.begin(p); err != nil {
				return err
			}
			if verbose {
				r.Log = func(line string) {
					if severityOf(line) >= severity {
						fmt.Fprintln(c.ErrOrStderr(), line)
					}
				}
			}
			r.Pipeline, r.Policy = &passes, sched.Policy(policy)
			r.Out = emit.Output{Dir: out, PackageOnly: packageOnly, Layout: layout, Style: style.style()}
			if out != "" && len(args) > 1 {
				r.Out.Group = emit.NewGroup(r.Out)
				defer r.Out.Group.Abort()
			}
			one := func(input string) (*systems.Report, error) {
				if rep, err := huge.run(c, &in, input, r, timings, p); rep != nil || err != nil {
					return rep, err
				}
				l, err := in.load(c.Context(), c, input, p)
				if err != nil {
					return nil, err
				}
				r := r
				if g := r.Out.Group; g != nil {
					l.Module.Name = g.Name(l.Module.Name)
				}
				res, err := in.simulate(c.Context(), l, r, p)
				if err != nil {
					return nil, err
				}
				if err := rec.finish(c.Context(), &res.World.World, c.ErrOrStderr()); err != nil {
					return nil, err
				}
				res.Input = input
				rep, err := res.RunReport(c.Context())
				if err != nil {
					return nil, err
				}
				if n := in.settings.Graph.Cores; n > 0 {
					list, err := in.scaleCores(c, input, []int64{n}, p)
					if err != nil {
						return nil, err
					}
					rep.Cores = &list[0]
				}
				if timings {
					rep.Timings = res.SystemTimes()
				}
				return rep, nil
			}
			if len(args) > 1 {
				return runSeveral(c, args, one, r, p, asJSON)
			}
			rep, err := one(args[0])
			if err != nil {
				return err
			}
			p.close()
			if asJSON {
				return writeJSON(c.OutOrStdout(), rep)
			}
			return runReport{rep}.print(c.OutOrStdout())
		},
	}
	in.add(c)
	rec.add(c)
	style.add(c)
	huge.add(c)
	c.Flags().StringVarP(&out, "output", "o", "", "folder for traces, metrics and file.perf-sim")
	c.Flags().BoolVar(&packageOnly, "package-only", false, "with -o: stream the perf_sim traces straight into file.perf-sim and write no trace files")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of the summary, an array for several inputs")
	fl := c.Flags()
	fl.BoolVar(&timings, "timings", false, "print how long each system took")
	fl.BoolVarP(&verbose, "verbose", "v", false, "print the documented log lines of the passes on stderr")
	fl.StringVar(&metrics, "metrics-layout", "nested", "with -o: layout of global_metric_store.json: nested (documented), flat, or lossless (every entry with type, name and aggregation)")
	completeWith(c, "metrics-layout", "nested", "flat", "lossless")
	fl.IntVar(&severity, "log-severity", 20, "with -v: the least severity of the lines that are printed; 20 is information, 40 errors")
	fl.BoolVar(&passes.EnablePerfSim, "enable-perf-sim", true, "run the perf_sim passes (88 and 99); perf_sim_at_end needs no flag")
	fl.IntVar(&policy, "policy", 0, "order of the instructions that post_sched makes: 0 keeps the input's, 1 loads first, 2 greedy, 3 time-aware")
	fl.BoolVar(&r.DumpSched, "dump-postsched-trace", false, "with -o and --policy: write the traces of post_sched, ps_trace.*")
	fl.StringSliceVar(&passes.Only, "pass", nil, "replace the pipeline by these passes (see 'perfsim passes')")
	fl.StringSliceVar(&passes.Skip, "skip-pass", nil, "leave these passes out")
	fl.StringSliceVar(&passes.DumpAfter, "dump-after", nil, "with -o: write the tables after this system, as --timings names it")
	fl.StringVar(&passes.Start, "start-pass", "", "drop every pass before this one")
	return c
}

// severityOf is the severity of a documented log line: 40 for errors, 20 for
// the rest. 20 is the documented simulator's default.
func severityOf(line string) int {
	if strings.HasPrefix(line, "Failed to ") || strings.HasPrefix(line, "Directory does not exist") {
		return 40
	}
	return 20
}

// runReport prints the report of a run for people.
type runReport struct{ *systems.Report }

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
	const width = 10
	n := int(min(max(share, 0), 1)*width + 0.5)
	return strings.Repeat("█", n) + strings.Repeat("·", width-n)
}

// rangeText is what the PE clock's phase leaves open of a latency.
func rangeText(r *components.LatencyRange) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf(" (%s to %s over PE clock phases)", nanos(r.Low), nanos(r.High))
}

// mostBlocks bounds the rows printed for people; --json has them all.
const mostBlocks = 12

func (r runReport) print(out io.Writer) error {
	facts := newFacts(out)
	if predicted, err := r.printHead(facts); err != nil || !predicted {
		return cmp.Or(err, facts.Flush())
	}
	if err := facts.Flush(); err != nil {
		return err
	}
	return r.printTables(out, newTable(out))
}

// printHead prints the facts above the tables, and whether there are tables.
func (r runReport) printHead(tw io.Writer) (predicted bool, err error) {
	functions := map[string]bool{}
	top := 0
	for _, b := range r.Blocks {
		functions[b.Function] = true
		if !b.InLoop {
			top++
		}
	}
	predicted = len(r.Estimates) > 0
	if predicted {
		sayf(tw, "module\t%s (%s), %s, %s\n", r.Module, r.Format, countOf(len(functions), "function"), countOf(top, "block"))
	} else {
		sayf(tw, "module\t%s (%s)\n", r.Module, r.Format)
	}
	if r.Machine != nil {
		sayf(tw, "machine\t%s, %s model\n", *r.Machine, r.Model)
	} else {
		sayf(tw, "replayed\tthe durations and dependencies of the input; no machine was simulated\n")
	}
	if r.Roofline != nil {
		sayf(tw, "durations\twhere the input has none, of %s (--machine)\n", *r.Roofline)
	}
	if predicted {
		sayf(tw, "instructions\t%s\n", humanize.Comma(int64(r.Instructions)))
		sayf(tw, "edges\t%s\n", r.edgeText())
	}
	for n, b := range r.Scheduled {
		if n == mostBlocks {
			break
		}
		what := fmt.Sprintf("%s instead of %s (no order is faster than %s)", nanos(b.After), nanos(b.Before), nanos(b.Bound))
		if b.Kept {
			what = fmt.Sprintf("no better order found than the input's, %s", nanos(b.Before))
		}
		sayf(tw, "scheduled\t%s/%s: %s\n", b.Function, b.Block, what)
	}
	if r.Rebuilt != nil {
		sayf(tw, "rebuilt\tflow %s, anti %s, output %s, from access patterns\n", humanize.Comma(int64(r.Rebuilt["flow"])),
			humanize.Comma(int64(r.Rebuilt["anti"])), humanize.Comma(int64(r.Rebuilt["output"])))
	}
	if !predicted {
		sayf(tw, "latency\tnot predicted: none of the passes that ran is perf_sim or perf_sim_at_end; add one (--pass …,perf_sim_at_end)\n")
		return false, nil
	}
	latency, known := r.LatencyA.Or(0), r.LatencyA.Known()
	if known {
		sayf(tw, "latency\t%s%s\n", nanos(latency), rangeText(r.Range))
	} else {
		sayf(tw, "latency\tnot known\n")
	}
	if r.Device != nil {
		sayf(tw, "device latency\t%s (launch %s)\n", nanos(*r.Device), nanos(*r.Launch))
	}
	printWork(tw, r.Work)
	printMemoryPeaks(tw, r.Memory)
	printHeadlines(tw, r.Notes)
	if r.BeforeAllocation > 0 {
		sayf(tw, "before allocation\t%s (finite buffers cost %s)\n", nanos(r.BeforeAllocation), percent(latency-min(latency, r.BeforeAllocation), latency))
	}
	if r.LatencyB.Known() {
		sayf(tw, "without anti-dependencies\t%s (they cost %s, %s)\n", nanos(uint64(r.LatencyB)), nanos(uint64(r.AntiCost)), percent(uint64(r.AntiCost), latency))
	}
	if r.ErrorPercent != nil {
		sayf(tw, "measured\t%s (prediction %+.1f %%)\n", nanos(*r.Measured), *r.ErrorPercent)
	}
	if r.Measured != nil && r.Machine == nil {
		sayf(tw, "measured\t%s\n", nanos(*r.Measured))
	}
	if r.Recorded != nil {
		sayf(tw, "simulated, as recorded\t%s\n", nanos(*r.Recorded))
	}
	return true, nil
}

// printTables prints the engines and blocks, and what is below them.
func (r runReport) printTables(out io.Writer, tw *textTable) error {
	known := r.LatencyA.Known()
	fmt.Fprintln(out)
	if known {
		fmt.Fprintln(tw, "ENGINE\tINSTRUCTIONS\tBUSY\tUTILIZATION\t")
	} else {
		fmt.Fprintln(tw, "ENGINE\tINSTRUCTIONS\t")
	}
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
		if !known {
			sayf(tw, "%s\t%s\t\n", e.Name, humanize.Comma(int64(e.Instructions)))
			continue
		}
		sayf(tw, "%s\t%s\t%s\t%s %5.1f %%\t\n", e.Name, humanize.Comma(int64(e.Instructions)), text(e.BusyNS), bar(e.Utilization), 100*e.Utilization)
	}
	if n := len(r.Engines) - len(shown); n > 0 {
		sayf(tw, "… and %s with less work (--json lists them)\n", countOf(n, "lane"))
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
				times = append(times, b.Latency.Or(0), b.LatencyB.Or(0))
			}
		}
		text := timeColumn(times...)
		for n, b := range r.Blocks {
			if n == mostBlocks {
				sayf(tw, "… and %d more (--json lists them)\n", len(r.Blocks)-n)
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
			sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", name, humanize.Comma(int64(b.Instructions)), trips, humanize.Comma(int64(b.Runs)), optionalText(text, b.Latency), optionalText(text, b.LatencyB))
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
		io.WriteString(out, "\n"+wrapLine("loops: "+how))
	}
	if r.Cores != nil {
		fmt.Fprintln(out)
		if err := printCores(out, []systems.CoresPoint{*r.Cores}); err != nil {
			return err
		}
	}
	if err := r.printReplay(out, tw); err != nil {
		return err
	}
	if notes := plainNotes(r.Notes); len(notes) > 0 {
		fmt.Fprintln(out)
		for _, n := range notes {
			io.WriteString(out, noteText(n.Text, n.Count))
		}
	}
	if len(r.Artifacts) > 0 {
		fmt.Fprintln(out)
		// Names are long and paths longer: the folder is told once.
		folder := ""
		for n, a := range r.Artifacts {
			if n == mostBlocks && len(r.Artifacts) > n+4 {
				sayf(out, "… and %d more files\n", len(r.Artifacts)-n)
				break
			}
			dir, name := filepath.Split(a.Path)
			if dir != folder {
				sayf(out, "wrote to %s\n", dir)
				folder = dir
			}
			sayf(out, "%10s  %s\n", humanize.IBytes(uint64(a.Size)), name)
		}
		if r.hasTraces() {
			fmt.Fprint(out, "times in these traces are ns, which viewers label µs (export has true units)\n")
		}
	}
	sayf(out, "\n%.3f s (reading %.3f s), %s instructions/s\n", r.Seconds, r.ReadSeconds, strings.TrimSpace(humanize.SIWithDigits(r.Rate, 1, "")))
	for _, t := range r.Timings {
		if t.Seconds >= shortest {
			sayf(tw, "  %s\t%.3f s\t%.1f ns/instruction\t\n", t.System, t.Seconds, t.PerItem)
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
func (r runReport) printReplay(out io.Writer, tw *textTable) error {
	if r.Replay == nil {
		return nil
	}
	sayf(out, "\nreplaced from durations and edges: %s of %s start as in the trace\n",
		humanize.Comma(int64(r.Replay.Same)), humanize.Comma(int64(r.Replay.Events)))
	if len(r.Replay.Moved) == 0 {
		return nil
	}
	fmt.Fprintln(tw, "EVENT\tLANE\tIN THE TRACE\tHERE\t")
	for n, e := range r.Replay.Moved {
		if n == mostMoved {
			sayf(tw, "… and %s more (--json lists them)\n", humanize.Comma(int64(len(r.Replay.Moved)-n)))
			break
		}
		sayf(tw, "%s\t%s\t%d ns\t%d ns\t\n", e.Name, e.Lane, e.InputNS, e.HereNS)
	}
	return tw.Flush()
}

// hasTraces reports whether traces of the documented form were written.
func (r runReport) hasTraces() bool {
	return slices.ContainsFunc(r.Artifacts, func(a systems.Artifact) bool { return a.Kind == "trace" })
}

func (r runReport) hasLoops() bool {
	for _, b := range r.Blocks {
		if b.InLoop {
			return true
		}
	}
	return false
}

// edgeText lists the edges by kind; where merging made them fewer both
// numbers are printed.
func (r runReport) edgeText() string {
	var parts []string
	for _, k := range []components.EdgeKind{components.Flow, components.Anti, components.Output, components.Ordered} {
		n, p := r.Edges[k.Key()], r.Placed[k.Key()]
		s := fmt.Sprintf("%s %s", k.Key(), humanize.Comma(int64(n)))
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
