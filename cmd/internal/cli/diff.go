package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/compare"
)

// sideFlags say what a side of a comparison is.
type sideFlags struct {
	what, machine string
	model         components.Model
}

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

Two programs are matched by what their instructions do, not by their names: by
engine, opcode, function, shape, element type and scope, in order.

It prints the kernel's time and the whole, bytes of device memory, busy and
waiting time per engine, time per opcode, what was removed, added, moved,
changed in size, or became slower or faster, the distribution of the differences
of starts and durations, the largest of them with their reasons, and the first
instruction at which the timelines part by more than a threshold. The times of a
trace that a simulator wrote are simulated, as recorded, not measured; an input
without a machine is replayed. -o writes both sides as one trace of two
processes.`,
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
	fl.StringVar(&a.what, "a", systems.SideAuto, "what A is: measured, predicted, or auto")
	fl.StringVar(&b.what, "b", systems.SideAuto, "what B is: measured, predicted, or auto")
	fl.StringVar(&b.machine, "machine-b", "", "machine for B's prediction; default: that of --machine")
	completeMachine(c, "machine-b")
	fl.Var((*modelValue)(&b.model), "model-b", "model for B's prediction; default: that of --model")
	completeModel(c, "model-b")
	fl.StringVar(&opt.Match, "match", compare.MatchAuto, "match instructions by work (what they do, by engine and in order), id, name, order (n-th of an opcode on an engine), or auto: work where that matches half of them")
	fl.StringVar(&opt.Align, "align", compare.AlignKernel, "lay the sides over one another at the kernel's start, at the first event (start), or as they are (none)")
	fl.Float64Var(&opt.Threshold, "threshold", 0, "difference of starts in ns from which the timelines count as parted; default: 1 % of A's kernel time")
	fl.IntVar(&opt.Worst, "worst", 10, "how many of the largest differences to list")
	fl.StringVarP(&out, "output", "o", "", "write both timelines as one trace to this file (.gz compresses, - is standard output)")
	fl.BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

func checkSides(opt *compare.Options, a, b *sideFlags) error {
	for _, s := range []struct{ flag, v string }{{"a", a.what}, {"b", b.what}} {
		if err := systems.CheckSide(s.v); err != nil {
			return usagef("--%s %v", s.flag, err)
		}
	}
	if err := opt.Check(); err != nil {
		return usagef("--%v", err)
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
	side := func(f *inputFlags, l *systems.Loaded, what, path string) *systems.Side {
		r := systems.Request{Loaded: l, Settings: f.settings}
		r.Jobs, r.Stage = f.jobs, p.stage
		return &systems.Side{What: what, Name: path, Request: r}
	}
	first, second, err = systems.Sides(ctx, side(in, m, a.what, args[0]), side(&own, n, b.what, args[len(args)-1]), one,
		len(args) > 1 || b.machine != "" || b.model != components.NoModel)
	p.finish()
	return first, second, in.explainError(err)
}

// mostOpcodes bounds the rows printed for people; --json has them all.
const mostOpcodes = 12

func printDiff(out io.Writer, r *compare.Report) error {
	tw := newTable(out)
	sayf(out, "A  %s\nB  %s\n", r.NameA, r.NameB)
	sayf(out, "%s instructions matched (%s), %s only in A, %s only in B;\ntimes %s\n\n",
		humanize.Comma(int64(r.Matched)), r.By, humanize.Comma(int64(r.OnlyA)), humanize.Comma(int64(r.OnlyB)), alignText(r.Align))
	fmt.Fprintln(tw, "\tA\tB\tDIFFERENCE\t")
	times := []uint64{nonNegative(r.Kernel.A), nonNegative(r.Kernel.B), nonNegative(r.Whole.A), nonNegative(r.Whole.B)}
	for _, ph := range r.Phases {
		times = append(times, nonNegative(ph.A), nonNegative(ph.B))
	}
	text := units.Column(times...)
	line := func(name string, t compare.Two) {
		sayf(tw, "%s\t%s\t%s\t%s\t\n", name, text(nonNegative(t.A)), text(nonNegative(t.B)), signed(t))
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
	if err := printDiffFigures(out, &r.WorkA, &r.WorkB); err != nil {
		return err
	}
	if err := printDiffWork(out, r); err != nil {
		return err
	}
	if err := printDiffChanges(out, r); err != nil {
		return err
	}
	for _, e := range []struct {
		name string
		*compare.Errors
	}{{"starts", &r.Start}, {"durations", &r.Duration}} {
		sayf(out, "\n%s of matched instructions differ by %s (median),\n%s (90th percentile), %s (most):\n%.2f, %.2f and %.2f %% of the kernel\n",
			e.name, units.Nanos(uint64(e.P50)), units.Nanos(uint64(e.P90)), units.Nanos(uint64(e.Max)), e.P50Percent, e.P90Percent, e.MaxPercent)
		for _, x := range e.Worst {
			printDiffRow(out, &x)
		}
	}
	if r.Part == nil {
		_, err := sayf(out, "\nthe timelines never part by more than %s\n", units.Nanos(uint64(r.Limit)))
		return err
	}
	sayf(out, "\nthe timelines part by more than %s first at\n", units.Nanos(uint64(r.Limit)))
	printDiffRow(out, r.Part)
	return nil
}

// printDiffWork prints how long every engine works and waits on each side, and
// how long every opcode takes.
func printDiffWork(out io.Writer, r *compare.Report) error {
	tw := newTable(out)
	table := func(head string, list []compare.Named) {
		if len(list) == 0 {
			return
		}
		list = slices.Clone(list)
		slices.SortStableFunc(list, func(x, y compare.Named) int { return cmp.Compare(math.Abs(y.B-y.A), math.Abs(x.B-x.A)) })
		shown := list[:min(len(list), mostOpcodes)]
		var times []uint64
		for _, e := range shown {
			times = append(times, nonNegative(e.A), nonNegative(e.B))
		}
		text := units.Column(times...)
		fmt.Fprintln(out)
		fmt.Fprintln(tw, head)
		for _, e := range shown {
			sayf(tw, "%s\t%s\t%s\t%s\t%s\t\n", cut(e.Name, 28), humanize.Comma(int64(e.N)), text(nonNegative(e.A)), text(nonNegative(e.B)), signed(e.Two))
		}
		if n := len(list) - len(shown); n > 0 {
			sayf(tw, "… and %d more (--json lists them)\n", n)
		}
	}
	table("ENGINE\tN\tBUSY A\tBUSY B\tDIFFERENCE\t", r.Engines)
	if err := tw.Flush(); err != nil {
		return err
	}
	if len(r.Waits) > 0 {
		var times []uint64
		shown := r.Waits[:min(len(r.Waits), mostScopes)]
		for _, e := range shown {
			times = append(times, nonNegative(e.A), nonNegative(e.B))
		}
		text := units.Column(times...)
		fmt.Fprintln(out)
		fmt.Fprintln(tw, "ENGINE\tWAITS FOR\tWAITING A\tB\tDIFFERENCE\t")
		for _, e := range shown {
			why := "nothing the input has"
			if e.For != "" {
				why = e.For + " (" + e.Kind + ")"
			}
			sayf(tw, "%s\t%s\t%s\t%s\t%s\t\n", e.Engine, why, text(nonNegative(e.A)), text(nonNegative(e.B)), signed(e.Two))
		}
		if n := len(r.Waits) - len(shown); n > 0 {
			sayf(tw, "… and %d more (--json lists them)\n", n)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	table("ENGINE OPCODE\tN\tSUM A\tSUM B\tDIFFERENCE\t", r.Opcodes)
	return tw.Flush()
}

// printDiffRow prints one instruction: what differs and, below, why.
func printDiffRow(w io.Writer, x *compare.Row) {
	sayf(w, "  %+.0f ns  %s %s %s\n      at %.3f and %.3f µs for %.0f and %.0f ns:\n", x.Delta, x.Engine, x.Opcode, x.Name, x.StartA/1e3, x.StartB/1e3, x.DurA, x.DurB)
	at := 0
	for word := range strings.FieldsSeq(x.Reason) {
		n := utf8.RuneCountInString(word) + 1
		if at == 0 || at+n > 80 {
			if at > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprint(w, "     ")
			at = 5
		}
		fmt.Fprint(w, " ", word)
		at += n
	}
	fmt.Fprintln(w)
}

// printDiffChanges prints what became of the instructions, by scope first.
func printDiffChanges(out io.Writer, r *compare.Report) error {
	tw := newTable(out)
	if n := len(r.Scopes); n > 0 {
		fmt.Fprintln(out)
		fmt.Fprintln(tw, "SCOPE\tN A\tB\tTIME A\tB\tDIFFERENCE\t")
		for _, s := range r.Scopes[:min(n, mostScopes)] {
			sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", cut(cmp.Or(s.Scope, "(none)"), 24), humanize.Comma(int64(s.NA)), humanize.Comma(int64(s.NB)),
				units.Nanos(nonNegative(s.A)), units.Nanos(nonNegative(s.B)), plusMinus(s.B-s.A))
		}
		if n > mostScopes {
			sayf(tw, "… and %d more (--json lists them)\n", n-mostScopes)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if len(r.Changes) == 0 {
		return nil
	}
	sayf(out, "\n%-8s %5s  %9s  %9s  %10s  %s\n", "CHANGE", "N", "TIME A", "B", "DIFFERENCE", "WORK")
	for _, c := range r.Changes[:min(len(r.Changes), mostChanges)] {
		lines := []string{c.Engine + " " + c.Opcode, c.Shape, c.Scope}
		if c.ShapeB != "" && c.ShapeB != c.Shape {
			lines[1] = cmp.Or(c.Shape, "?") + " → " + c.ShapeB
		}
		sayf(out, "%-8s %5s  %9s  %9s  %10s", c.What, humanize.Comma(int64(c.N)), units.Nanos(nonNegative(c.A)), units.Nanos(nonNegative(c.B)), plusMinus(c.B-c.A))
		room := 0
		for n, text := range lines {
			text = cut(text, 80-changeIndent)
			switch w := utf8.RuneCountInString(text); {
			case text == "":
			case n == 0 || w+1 > room:
				if n > 0 {
					sayf(out, "\n%*s", changeIndent-2, "")
				}
				sayf(out, "  %s", text)
				room = 80 - changeIndent - w
			default:
				sayf(out, " %s", text)
				room -= w + 1
			}
		}
		fmt.Fprintln(out)
	}
	if n := len(r.Changes) - mostChanges; n > 0 {
		sayf(out, "… and %d more (--json lists them)\n", n)
	}
	return nil
}

// mostChanges bounds the changes printed for people; changeIndent is where
// their last column begins.
const (
	mostChanges  = 16
	changeIndent = 8 + 1 + 5 + 2 + 9 + 2 + 9 + 2 + 10 + 2
)

// mostScopes bounds the scopes printed for people; --json has them all.
const mostScopes = 12

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

// plusMinus writes a difference in ns.
func plusMinus(d float64) string {
	sign := "+"
	if d < 0 {
		sign = "-"
	}
	return sign + units.Nanos(uint64(math.Abs(d)+0.5))
}

// printDiffFigures prints what both sides compute and move, where both are
// known.
func printDiffFigures(out io.Writer, a, b *compare.Work) error {
	tw := newTable(out)
	headed := false
	row := func(name, x, y, d string) {
		if !headed {
			fmt.Fprintln(tw, "\nWORK\tA\tB\tDIFFERENCE\t")
			headed = true
		}
		sayf(tw, "%s\t%s\t%s\t%s\t\n", name, x, y, d)
	}
	amount := func(name string, x, y *uint64, text func(float64) string) {
		if x == nil || y == nil || *x == 0 && *y == 0 {
			return
		}
		sign, d := "+", float64(*y)-float64(*x)
		if d < 0 {
			sign = "-"
		}
		row(name, text(float64(*x)), text(float64(*y)), sign+text(math.Abs(d)))
	}
	part := func(name string, x, y *float64) {
		if x != nil && y != nil {
			row(name, fmt.Sprintf("%.2f %%", 100**x), fmt.Sprintf("%.2f %%", 100**y), fmt.Sprintf("%+.2f points", 100*(*y-*x)))
		}
	}
	flops := func(v float64) string { return humanize.SIWithDigits(v, 2, "FLOP") }
	bytes := func(v float64) string { return humanize.IBytes(uint64(v)) }
	amount("FLOPs", a.FLOPs, b.FLOPs, flops)
	amount("HBM read", a.HBMRead, b.HBMRead, bytes)
	amount("HBM written", a.HBMWritten, b.HBMWritten, bytes)
	part("MFU", a.MFU, b.MFU)
	if a.HFU != nil && a.MFU != nil && b.HFU != nil && b.MFU != nil && (*a.HFU != *a.MFU || *b.HFU != *b.MFU) {
		part("HFU", a.HFU, b.HFU)
	}
	part("MBU", a.MBU, b.MBU)
	return tw.Flush()
}

// signed writes the difference of two times.
func signed(t compare.Two) string {
	text := plusMinus(t.B - t.A)
	if t.A != 0 {
		text += fmt.Sprintf(" (%+.2f %%)", t.Percent)
	}
	return text
}
