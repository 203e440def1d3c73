package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/summary"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
)

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
		what := fmt.Sprintf("%s instead of %s (no order is faster than %s)", units.Nanos(b.After), units.Nanos(b.Before), units.Nanos(b.Bound))
		if b.Kept {
			what = fmt.Sprintf("no better order found than the input's, %s", units.Nanos(b.Before))
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
		sayf(tw, "latency\t%s%s\n", units.Nanos(latency), units.PhaseRange(r.Range))
	} else {
		sayf(tw, "latency\tnot known\n")
	}
	if r.Device != nil {
		sayf(tw, "device latency\t%s (launch %s)\n", units.Nanos(*r.Device), units.Nanos(*r.Launch))
	}
	printWork(tw, r.Work)
	printMemoryPeaks(tw, r.Memory)
	printHeadlines(tw, r.Notes)
	if r.BeforeAllocation > 0 {
		sayf(tw, "before allocation\t%s (finite buffers cost %s)\n", units.Nanos(r.BeforeAllocation), percent(latency-min(latency, r.BeforeAllocation), latency))
	}
	if r.LatencyB.Known() {
		sayf(tw, "without anti-dependencies\t%s (they cost %s, %s)\n", units.Nanos(uint64(r.LatencyB)), units.Nanos(uint64(r.AntiCost)), percent(uint64(r.AntiCost), latency))
	}
	if r.ErrorPercent != nil {
		sayf(tw, "measured\t%s (prediction %+.1f %%)\n", units.Nanos(*r.Measured), *r.ErrorPercent)
	}
	if r.Measured != nil && r.Machine == nil {
		sayf(tw, "measured\t%s\n", units.Nanos(*r.Measured))
	}
	if r.Recorded != nil {
		sayf(tw, "simulated, as recorded\t%s\n", units.Nanos(*r.Recorded))
	}
	return true, nil
}

// printTables prints the engines and blocks, and what is below them.
func (r runReport) printTables(out io.Writer, tw *textTable) error {
	fmt.Fprintln(out)
	if err := r.printEngines(tw); err != nil {
		return err
	}
	if len(r.Blocks) > 1 {
		fmt.Fprintln(out)
		if err := r.printBlocks(tw); err != nil {
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
	r.printArtifacts(out)
	sayf(out, "\n%.3f s (reading %.3f s), %s instructions/s\n", r.Seconds, r.ReadSeconds, strings.TrimSpace(humanize.SIWithDigits(r.Rate, 1, "")))
	for _, t := range r.Timings {
		if t.Seconds >= shortest {
			sayf(tw, "  %s\t%.3f s\t%.1f ns/instruction\t\n", t.System, t.Seconds, t.PerItem)
		}
	}
	return tw.Flush()
}

// printEngines prints a row for each of the busiest lanes.
func (r runReport) printEngines(tw *textTable) error {
	known := r.LatencyA.Known()
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
	text := units.Column(kept...)
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
	return tw.Flush()
}

// printBlocks prints a row for each of the first blocks.
func (r runReport) printBlocks(tw *textTable) error {
	fmt.Fprintln(tw, "BLOCK\tINSTRUCTIONS\tTRIPS\tRUNS\tLATENCY\tWITHOUT ANTI\t")
	shown := r.Blocks[:min(len(r.Blocks), mostBlocks)]
	var times []uint64
	for _, b := range shown {
		times = append(times, b.Latency.Or(0), b.LatencyB.Or(0))
	}
	text := units.Column(times...)
	for _, b := range shown {
		name := b.Function + "/" + b.Block
		if b.InLoop {
			name = "  loop " + b.Block
		}
		trips := humanize.Comma(int64(b.TripCount))
		if !b.TripKnown {
			trips = "unknown, 1 used"
		}
		sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", name, humanize.Comma(int64(b.Instructions)), trips, humanize.Comma(int64(b.Runs)), units.Optional(text, b.Latency), units.Optional(text, b.LatencyB))
	}
	if n := len(r.Blocks) - len(shown); n > 0 {
		sayf(tw, "… and %d more (--json lists them)\n", n)
	}
	return tw.Flush()
}

// printArtifacts lists the files that were written, each folder named once.
func (r runReport) printArtifacts(out io.Writer) {
	if len(r.Artifacts) == 0 {
		return
	}
	fmt.Fprintln(out)
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

// shortest is the least time of a system that is listed for people: a pass that
// met an unchanged module takes none. --json lists all.
const shortest = 1e-6

// mostMoved bounds the events listed for people; --json has them all.
const mostMoved = 20

// printReplay lists the events of a trace that start elsewhere than by the
// rules.
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
	return slices.ContainsFunc(r.Blocks, func(b summary.Block) bool { return b.InLoop })
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
