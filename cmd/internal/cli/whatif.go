package cli

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/whatif"
)

// whatIfFlags are the flags of `perfsim whatif`.
type whatIfFlags struct {
	in   inputFlags
	plot string
	top  int

	asJSON, asCSV, elasticity, list bool
}

func newWhatIfCommand() *cobra.Command {
	var f whatIfFlags
	c := &cobra.Command{
		Use:   "whatif [flags] INPUT [ASSIGNMENT...]",
		Short: "Predict again with something changed and compare",
		Long: `whatif changes the machine, the costs or the dependencies and predicts again.
An assignment is NAME=VALUE; VALUE is a number, a factor (1.2x), a change
(-20%), a list (8,16,32) or a range (0.5x..2x in five steps, 8..64*2 by
factors, 1x..2x/0.1 in steps). Several assignments hold at once; with several
values every combination is tried. --list prints the names. --elasticity
prints by how many per cent the prediction changes where a parameter changes
by one per cent. -o draws the latency against the parameter (SVG).`,
		Example: `  perfsim whatif module.bir.json pe.clock=1.2x
  perfsim whatif module.bir.json dma.engines=8,16,32,64
  perfsim whatif module.bir.json pe.clock=0.5x..2x dma.rate=1x,2x -o plot.svg
  perfsim whatif module.bir.json drop=anti
  perfsim whatif module.bir.json drop=anti:buffer=k_tile buffers=2,3,4
  perfsim whatif module.bir.json latency.DVE=-20% pe.clock=0.8x..1.6x
  perfsim whatif module.hlo cores=1,2,4,8
  perfsim whatif --cut w1.1 --cut w2.0 module.hlo cores=4
  perfsim whatif --elasticity profile.json.gz`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if f.list {
				return listParameters(c.OutOrStdout(), f.asJSON)
			}
			if err := f.check(args); err != nil {
				return err
			}
			assigned, err := f.assignments(args[1:])
			if err != nil {
				return err
			}
			return f.run(c, args[0], assigned)
		},
	}
	f.in.add(c)
	f.in.keepOperands() // assignments may name buffers
	fl := c.Flags()
	fl.BoolVar(&f.asJSON, "json", false, "print JSON")
	fl.BoolVar(&f.asCSV, "csv", false, "print the points as CSV")
	fl.StringVarP(&f.plot, "output", "o", "", "draw the latency against the parameter into this SVG file, - for standard output")
	fl.BoolVar(&f.elasticity, "elasticity", false, "print which parameters matter most")
	fl.BoolVar(&f.list, "list", false, "list what can be assigned")
	fl.IntVar(&f.top, "top", 20, "parameters that --elasticity prints")
	return c
}

// check fails for arguments and flags that contradict each other.
func (f *whatIfFlags) check(args []string) error {
	if err := f.in.check(); err != nil {
		return err
	}
	switch {
	case len(args) == 0:
		return usagef("an input is missing")
	case len(args) == 1 && !f.elasticity:
		return usagef("nothing to change: an assignment such as pe.clock=1.2x is missing (--list prints the names), or --elasticity")
	case f.plot != "" && f.plot != "-" && !strings.HasSuffix(f.plot, ".svg") && !strings.HasSuffix(f.plot, ".svg.gz"):
		return usagef("-o %s: the picture is SVG: the name ends in .svg or .svg.gz, or is - (for the table use --csv or --json)", f.plot)
	case f.plot == "-" && (f.asJSON || f.asCSV):
		return usagef("-o - and --json or --csv both want standard output")
	}
	return nil
}

// assignments parses arguments; those that name buffers make the lowering keep
// operands.
func (f *whatIfFlags) assignments(args []string) ([]whatif.Assignment, error) {
	var out []whatif.Assignment
	for _, a := range args {
		x, err := whatif.Parse(a)
		if err != nil {
			return nil, usageError{err}
		}
		out = append(out, x)
		if x.Name == "buffers" || x.Name == "drop" {
			f.in.settings.Graph.Operands = true
		}
	}
	return out, nil
}

// run predicts the input as it is and with what is assigned.
func (f *whatIfFlags) run(c *cobra.Command, input string, assigned []whatif.Assignment) error {
	if slices.ContainsFunc(assigned, func(a whatif.Assignment) bool { return a.Name == "cores" }) {
		if f.plot != "" || f.asCSV || f.elasticity {
			return usagef("cores makes a table, or with --json an object: it has no --csv, --elasticity and -o")
		}
		p := newProgress(c.ErrOrStderr(), f.in.quiet)
		defer p.close()
		return whatifCores(c, &f.in, input, assigned, p, f.asJSON)
	}
	points, err := whatif.Points(assigned)
	if err != nil {
		return usageError{err}
	}
	p := newProgress(c.ErrOrStderr(), f.in.quiet)
	defer p.close()
	res, err := f.in.predict(c.Context(), c, input, p)
	if err == nil {
		err = res.CheckTimes(input)
	}
	if err != nil {
		return err
	}
	if f.elasticity {
		return f.printElasticities(c, res, p)
	}
	return f.printPoints(c, res, points, assigned, p)
}

// progressOf returns a function that shows the number of predictions made.
func progressOf(p *progress) func(done, all int64) { return func(done, _ int64) { p.set(done) } }

// printElasticities prints and draws how the prediction follows each parameter.
func (f *whatIfFlags) printElasticities(c *cobra.Command, res *systems.Result, p *progress) error {
	p.start("parameters", -1, false)
	e, err := res.Elasticities(c.Context(), progressOf(p))
	p.close()
	if err != nil {
		return err
	}
	if f.plot != "" {
		title := "What matters: " + plotSubject(&res.World.World)
		if err := saveBytes(f.plot, c.OutOrStdout(), whatif.ElasticitySVG(title, e, f.top)); err != nil || f.plot == "-" {
			return err
		}
	}
	return printElasticities(c.OutOrStdout(), e, f.top, f.asJSON)
}

// printPoints prints and draws the predictions with what is assigned.
func (f *whatIfFlags) printPoints(c *cobra.Command, res *systems.Result, points [][]whatif.Setting, assigned []whatif.Assignment, p *progress) error {
	p.start("predictions", int64(len(points)), false)
	r, err := res.Sweep(c.Context(), points, progressOf(p))
	p.close()
	if err != nil {
		return f.in.explainError(err)
	}
	if f.plot != "" {
		if err := saveBytes(f.plot, c.OutOrStdout(), r.SVG("What if: "+plotSubject(&res.World.World), assigned)); err != nil || f.plot == "-" {
			return err
		}
	}
	switch {
	case f.asJSON:
		return writeJSON(c.OutOrStdout(), r)
	case f.asCSV:
		return sweepCSV(c.OutOrStdout(), r, assigned)
	}
	return printSweep(c.OutOrStdout(), r, assigned)
}

// plotSubject says what a picture is about.
func plotSubject(w *components.World) string {
	return fmt.Sprintf("%s on %s, %s model", cut(w.Module.Name, 60), w.Machine.Name, w.Config.Model)
}

func listParameters(out io.Writer, asJSON bool) error {
	if asJSON {
		return writeJSON(out, whatif.Parameters())
	}
	w := &wrapper{w: out}
	for _, p := range whatif.Parameters() {
		if _, err := sayf(w, "%s\n    %s\n", p.Name, p.Doc); err != nil {
			return err
		}
	}
	return nil
}

// printSweep prints the points; where one parameter varies the latencies are
// drawn too.
func printSweep(out io.Writer, r *whatif.Result, assigned []whatif.Assignment) error {
	tw := newTable(out)
	times := []uint64{r.Base.NS, r.Base.NoAntiNS.Or(0)}
	longest := r.Base.NS
	for _, p := range r.Points {
		longest = max(longest, p.NS)
		times = append(times, p.NS, p.NoAntiNS.Or(0))
		if p.Fitting != nil {
			longest = max(longest, p.Fitting.NS)
			times = append(times, p.Fitting.NS, p.Fitting.NoAntiNS.Or(0))
		}
	}
	text := units.Column(times...)
	// A long list of settings has no bar behind it.
	long := slices.ContainsFunc(r.Points, func(p whatif.Point) bool { return len(strings.Join(p.Settings, " ")) > 26 })
	room := 36
	if slices.ContainsFunc(r.Points, func(p whatif.Point) bool { return p.TooMuch }) {
		room = 24 // the remark that it does not fit
	}
	row := func(name string, p whatif.Point, change, remark string) {
		if long {
			// Each setting of a long list has a row.
			settings := strings.Fields(name)
			for len(settings) > 1 && len(name) > room && !strings.HasPrefix(name, " ") {
				sayf(tw, "%s\t\t\t\t\t\t\n", settings[0])
				settings = settings[1:]
				name = strings.Join(settings, " ")
			}
			sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t\n", name, text(p.NS), change, units.Optional(text, p.NoAntiNS), p.Bound, remark)
			return
		}
		sayf(tw, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, bar(float64(p.NS)/float64(max(longest, 1))), text(p.NS), change, units.Optional(text, p.NoAntiNS), p.Bound, remark)
	}
	if long {
		fmt.Fprintln(tw, "WHAT IF\tLATENCY\tCHANGE\tWITHOUT ANTI\tBOUND\t\t")
	} else {
		fmt.Fprintln(tw, "WHAT IF\tLATENCY\t\tCHANGE\tWITHOUT ANTI\tBOUND\t\t")
	}
	row("as it is", r.Base, "", "")
	for _, p := range r.Points {
		remark := ""
		if p.TooMuch {
			remark = "does not fit"
		}
		row(strings.Join(p.Settings, " "), p, changeText(p.Change), remark)
		if p.Fitting != nil {
			row("  what fits of it", *p.Fitting, changeText(p.Fitting.Change), "")
		}
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	var notes []string
	note := func(list []string) {
		for _, n := range list {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
	}
	for _, p := range r.Points {
		note(p.Notes)
		if p.Fitting != nil {
			note(p.Fitting.Notes)
		}
	}
	for _, n := range notes {
		if _, err := io.WriteString(out, noteText(n, 1)); err != nil {
			return err
		}
	}
	if len(r.Points) > 2 {
		best, of := r.Points[0], ""
		for k, p := range r.Points {
			what := ""
			if p.Fitting != nil {
				p, what = *p.Fitting, "what fits of "
			}
			if k == 0 || p.NS < best.NS {
				best, of = p, what
			}
		}
		sayf(out, "\nleast: %s with %s%s\n", units.Nanos(best.NS), of, strings.Join(best.Settings, " "))
	}
	return nil
}

func changeText(v float64) string { return fmt.Sprintf("%+.1f %%", 100*v) }

// sweepCSV prints one row per point, a column per parameter.
func sweepCSV(out io.Writer, r *whatif.Result, assigned []whatif.Assignment) error {
	w := csv.NewWriter(out)
	var head []string
	for _, a := range assigned {
		head = append(head, a.Name)
	}
	head = append(head, "latency_ns", "latency_no_antideps_ns", "change", "bound")
	room := slices.ContainsFunc(assigned, func(a whatif.Assignment) bool { return a.Name == "buffers" })
	if room {
		head = append(head, "fits", "fitting_latency_ns", "fitting_change")
	}
	if err := w.Write(head); err != nil {
		return err
	}
	for _, p := range r.Points {
		var row []string
		for _, s := range p.Settings {
			_, v, _ := strings.Cut(s, "=")
			row = append(row, v)
		}
		row = append(row, strconv.FormatUint(p.NS, 10), units.Optional(func(v uint64) string { return strconv.FormatUint(v, 10) }, p.NoAntiNS), strconv.FormatFloat(p.Change, 'f', 6, 64), p.Bound)
		if room {
			f := p
			if p.Fitting != nil {
				f = *p.Fitting
			}
			row = append(row, strconv.FormatBool(!p.TooMuch), strconv.FormatUint(f.NS, 10), strconv.FormatFloat(f.Change, 'f', 6, 64))
		}
		if err := w.Write(row); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func printElasticities(out io.Writer, list []whatif.Elasticity, top int, asJSON bool) error {
	if asJSON {
		if list == nil {
			list = []whatif.Elasticity{}
		}
		return writeJSON(out, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "No parameter moves the prediction.")
		return err
	}
	tw := newTable(out)
	fmt.Fprintln(tw, "PARAMETER\tELASTICITY\t5 % LOWER\t5 % HIGHER\t")
	var times []uint64
	for _, e := range list[:min(len(list), max(top, 0))] {
		times = append(times, e.Low, e.High)
	}
	text := units.Column(times...)
	for k, e := range list {
		if k == top {
			sayf(tw, "… and %d more (--top N, --json)\n", len(list)-k)
			break
		}
		sayf(tw, "%s\t%+.3f\t%s\t%s\t\n", e.Name, e.Value, text(e.Low), text(e.High))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\nElasticity -0.5: the latency falls by 0.5 % when the parameter grows by 1 %.")
	return err
}
