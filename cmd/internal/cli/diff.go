package cli

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/compare"
	"perfsim/systems/tracklayout"
)

// sideFlags say what a side of a comparison is.
type sideFlags struct {
	what, machine string
	model         components.Model
}

const (
	sideAuto      = "auto"
	sideMeasured  = "measured"
	sidePredicted = "predicted"
)

func newDiffCommand() *cobra.Command {
	var in inputFlags
	var a, b sideFlags
	var opt compare.Options
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff [flags] A [B]",
		Short: "Compare a prediction with a measurement, or two of either",
		Long: `diff lays two timelines over one another: of one input its measurement (A) and
its prediction (B), or of two inputs what each holds: its measured times where
it has them, else its prediction. --a and --b choose; --machine-b and --model-b
predict B otherwise than A, so that two machines or models are compared on one
input.

It prints the kernel's time and the whole, busy time per engine, time per
opcode, the distribution of the differences of starts and durations, the largest
of them with their reasons, and the first instruction at which the timelines
part by more than a threshold. The times of a trace that a simulator wrote are
simulated, as recorded, not measured; an input without a machine is replayed.
-o writes both sides as one trace of two processes.`,
		Example: `  perfsim diff profile.json.gz
  perfsim diff --a predicted --b predicted --model-b reference profile.json.gz
  perfsim diff run1.profile.json run2.profile.json
  perfsim diff -o both.json profile.json.gz
  perfsim diff --machine trn2 --machine-b trn3 module.bir.json module.bir.json`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if err := checkSides(&opt, &a, &b); err != nil {
				return err
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			first, second, err := readSides(c, &in, args, &a, &b, p)
			if err != nil {
				return err
			}
			r := compare.Compare(first, second, opt)
			if r.Matched == 0 {
				return fmt.Errorf("no instruction of %s is one of %s (--match name or order may help)", r.NameA, r.NameB)
			}
			if out != "" {
				err := save(out, c.OutOrStdout(), func(w io.Writer) error { return r.WriteTrace(c.Context(), w, first, second) })
				if err != nil {
					return err
				}
			}
			p.close()
			switch {
			case out == "-":
				return nil
			case asJSON:
				return writeJSON(c.OutOrStdout(), r)
			}
			return printDiff(c.OutOrStdout(), r)
		},
	}
	in.add(c)
	fl := c.Flags()
	fl.StringVar(&a.what, "a", sideAuto, "what A is: measured, predicted, or auto")
	fl.StringVar(&b.what, "b", sideAuto, "what B is: measured, predicted, or auto")
	fl.StringVar(&b.machine, "machine-b", "", "machine for B's prediction; default: that of --machine")
	fl.Var((*modelValue)(&b.model), "model-b", "model for B's prediction; default: that of --model")
	fl.StringVar(&opt.Match, "match", compare.MatchAuto, "match instructions by id, name, order (n-th of an opcode on an engine) or auto")
	fl.StringVar(&opt.Align, "align", compare.AlignKernel, "lay the sides over one another at the kernel's start, at the first event (start), or as they are (none)")
	fl.Float64Var(&opt.Threshold, "threshold", 0, "difference of starts in ns from which the timelines count as parted; default: 1 % of A's kernel time")
	fl.IntVar(&opt.Worst, "worst", 10, "how many of the largest differences to list")
	fl.StringVarP(&out, "output", "o", "", "write both timelines as one trace to this file (.gz compresses, - is standard output)")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func checkSides(opt *compare.Options, a, b *sideFlags) error {
	for _, s := range []struct{ flag, v string }{{"a", a.what}, {"b", b.what}} {
		switch s.v {
		case sideAuto, sideMeasured, sidePredicted:
		default:
			return usagef("--%s %q is not measured, predicted or auto", s.flag, s.v)
		}
	}
	switch opt.Match {
	case compare.MatchAuto, compare.MatchID, compare.MatchName, compare.MatchOrder:
	default:
		return usagef("--match %q is not auto, id, name or order", opt.Match)
	}
	switch opt.Align {
	case compare.AlignKernel, compare.AlignStart, compare.AlignNone:
	default:
		return usagef("--align %q is not kernel, start or none", opt.Align)
	}
	if !(opt.Threshold >= 0) || math.IsInf(opt.Threshold, 0) {
		return usagef("--threshold %v is not a time", opt.Threshold)
	}
	if opt.Worst < 1 || opt.Worst > 100_000 {
		return usagef("--worst %d is not between 1 and 100000", opt.Worst)
	}
	return nil
}

// readSides reads one or two inputs and makes the timelines of both sides.
func readSides(c *cobra.Command, in *inputFlags, args []string, a, b *sideFlags, p *progress) (first, second *compare.Side, err error) {
	ctx := c.Context()
	m, err := in.load(ctx, c, args[0], p)
	if err != nil {
		return nil, nil, err
	}
	own := *in
	if b.machine != "" {
		own.settings.Machine = b.machine
	}
	if b.model != components.NoModel {
		own.settings.Model = b.model
	}
	n := m
	one := len(args) == 1 || args[1] == args[0]
	// A graph is lowered for its machine.
	if !one || m.Lowering != nil && b.machine != "" {
		if n, err = own.load(ctx, c, args[len(args)-1], p); err != nil {
			return nil, nil, err
		}
	}
	measuredA := a.what == sideMeasured || a.what == sideAuto && m.Module.HasMeasurement()
	measuredB := b.what == sideMeasured || b.what == sideAuto && n.Module.HasMeasurement() && !one
	if one && a.what == sideAuto && b.what == sideMeasured {
		measuredA = false
	}
	if len(args) == 1 && !measuredA && !measuredB && b.machine == "" && b.model == components.NoModel {
		return nil, nil, fmt.Errorf("%s has no measured times to compare the prediction with; name a second input, or another machine or model for B (--machine-b, --model-b)", args[0])
	}
	names := [2]string{shortName(args[0]), shortName(args[len(args)-1])}
	if first, err = makeSide(ctx, in, m, measuredA, names[0], p); err != nil {
		return nil, nil, err
	}
	second, err = makeSide(ctx, &own, n, measuredB, names[1], p)
	return first, second, err
}

// makeSide makes one timeline.
func makeSide(ctx context.Context, in *inputFlags, l *systems.Loaded, measured bool, name string, p *progress) (*compare.Side, error) {
	if measured {
		if !l.Module.HasMeasurement() {
			return nil, fmt.Errorf("%s has no measured times", name)
		}
		s := compare.Measured(l.Module)
		s.Name = name + ", " + tracklayout.MeasuredName(l.Module)
		return s, nil
	}
	r, err := in.simulate(ctx, l, systems.Request{}, p)
	if err != nil {
		return nil, err
	}
	if r.World.Replayed() {
		return r.Side(name + ", " + tracklayout.ReplayedRun), nil
	}
	return r.Side(fmt.Sprintf("%s, predicted (%s, %s)", name, r.World.Machine.Name, r.World.Config.Model)), nil
}

// mostOpcodes bounds the rows printed for people; --json has them all.
const mostOpcodes = 24

func printDiff(out io.Writer, r *compare.Report) error {
	tw := newTable(out)
	fmt.Fprintf(out, "A  %s\nB  %s\n", r.NameA, r.NameB)
	fmt.Fprintf(out, "%s instructions matched (%s), %s only in A, %s only in B; times %s\n\n",
		humanize.Comma(int64(r.Matched)), r.By, humanize.Comma(int64(r.OnlyA)), humanize.Comma(int64(r.OnlyB)), alignText(r.Align))
	fmt.Fprintln(tw, "\tA\tB\tDIFFERENCE\t")
	times := []uint64{nonNegative(r.Kernel.A), nonNegative(r.Kernel.B), nonNegative(r.Whole.A), nonNegative(r.Whole.B)}
	for _, ph := range r.Phases {
		times = append(times, nonNegative(ph.A), nonNegative(ph.B))
	}
	text := timeColumn(times...)
	line := func(name string, t compare.Two) {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t\n", name, text(nonNegative(t.A)), text(nonNegative(t.B)), signed(t))
	}
	line("kernel", r.Kernel)
	line("whole", r.Whole)
	for _, ph := range r.Phases {
		if ph.Name != "kernel" {
			line(ph.Name, ph.Two)
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if err := printDiffWork(out, r); err != nil {
		return err
	}
	for _, e := range []struct {
		name string
		*compare.Errors
	}{{"starts", &r.Start}, {"durations", &r.Duration}} {
		fmt.Fprintf(out, "\n%s differ by %s (median, %.2f %% of the kernel), %s (90th percentile, %.2f %%), %s (most, %.2f %%)\n",
			e.name, nanos(uint64(e.P50)), e.P50Percent, nanos(uint64(e.P90)), e.P90Percent, nanos(uint64(e.Max)), e.MaxPercent)
		if len(e.Worst) == 0 {
			continue
		}
		fmt.Fprintln(tw, "B-A\tINSTRUCTION\tENGINE OPCODE\tSTART A\tSTART B\tDURATION A\tB\tWHY\t")
		for _, x := range e.Worst {
			printDiffRow(tw, &x)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if r.Part == nil {
		_, err := fmt.Fprintf(out, "\nthe timelines never part by more than %s\n", nanos(uint64(r.Limit)))
		return err
	}
	fmt.Fprintf(out, "\nthe timelines part by more than %s first at\n", nanos(uint64(r.Limit)))
	printDiffRow(tw, r.Part)
	return tw.Flush()
}

// printDiffWork prints how long every engine and opcode works on each side;
// nothing where no kernel instruction was matched.
func printDiffWork(out io.Writer, r *compare.Report) error {
	tw := newTable(out)
	table := func(head string, list []compare.Named) {
		if len(list) == 0 {
			return
		}
		shown := list[:min(len(list), mostOpcodes)]
		var times []uint64
		for _, e := range shown {
			times = append(times, nonNegative(e.A), nonNegative(e.B))
		}
		text := timeColumn(times...)
		fmt.Fprintln(out)
		fmt.Fprintln(tw, head)
		for _, e := range shown {
			fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t\n", e.Name, humanize.Comma(int64(e.N)), text(nonNegative(e.A)), text(nonNegative(e.B)), signed(e.Two))
		}
		if n := len(list) - len(shown); n > 0 {
			fmt.Fprintf(tw, "… and %d more (--json lists them)\n", n)
		}
	}
	table("ENGINE\tINSTRUCTIONS\tBUSY A\tBUSY B\tDIFFERENCE\t", r.Engines)
	if err := tw.Flush(); err != nil {
		return err
	}
	table("ENGINE OPCODE\tINSTRUCTIONS\tSUM A\tSUM B\tDIFFERENCE\t", r.Opcodes)
	return tw.Flush()
}

func printDiffRow(w io.Writer, x *compare.Row) {
	fmt.Fprintf(w, "%+.0f ns\t%s\t%s %s\t%.3f µs\t%.3f µs\t%.0f ns\t%.0f ns\t%s\t\n", x.Delta, x.Name, x.Engine, x.Opcode, x.StartA/1e3, x.StartB/1e3, x.DurA, x.DurB, x.Reason)
}

func alignText(align string) string {
	switch align {
	case compare.AlignStart:
		return "counted from the first event"
	case compare.AlignNone:
		return "as each side has them"
	}
	return "counted from the kernel's start"
}

func nonNegative(v float64) uint64 { return uint64(max(0, v) + 0.5) }

// signed writes the difference of two times.
func signed(t compare.Two) string {
	d := t.B - t.A
	sign := "+"
	if d < 0 {
		sign = "-"
	}
	text := sign + nanos(uint64(math.Abs(d)+0.5))
	if t.A != 0 {
		text += fmt.Sprintf(" (%+.2f %%)", t.Percent)
	}
	return text
}
