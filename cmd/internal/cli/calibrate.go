package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/io/tenstorrent/profilelog"
	"perfsim/systems"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
	calibrate "perfsim/systems/fit"
)

func newCalibrateCommand() *cobra.Command {
	var in inputFlags
	var o calibrateFlags
	var scale, ops string
	c := &cobra.Command{
		Use:   "calibrate [flags] PROFILE…",
		Short: "Fit a machine's constants to measured profiles",
		Long: `calibrate fits every constant of the calibrated model that the profiles identify
and lists it with the number of measurements, their spread and range; the rest
keep their value and are listed as such. With two or more profiles it predicts
each one with constants fitted to the others. -o writes the machine description
with the fitted constants.

For traces of the compiler's simulator (perf_sim) it fits the documented
model's costs instead: mult and base per opcode and element size, from
durations and elements per partition.

With --ops it fits a roofline (overhead, bytes and multiply-adds a ns of a core)
to each class of operators of a Tensix operator table (ops_perf_results*.csv)
and predicts each shape from the others.

With --scale-from it takes no profile: it writes the description of --machine
with the calibrated constants of another, scaled by documented clocks and rates.`,
		Example: `  perfsim calibrate *.profile.json.gz
  perfsim calibrate -o mine.yaml --machine trn2 run1.json run2.json
  perfsim calibrate --report accuracy.md *.profile.json.gz
  perfsim calibrate --ops ops_perf_results.csv
  perfsim calibrate --scale-from trn2 --machine trn3 -o trn3.yaml`,
		Args: func(c *cobra.Command, args []string) error {
			if scale != "" && len(args) > 0 {
				return fmt.Errorf("--scale-from takes no profiles")
			}
			if ops != "" && (scale != "" || len(args) > 0) {
				return fmt.Errorf("--ops takes no profiles and no --scale-from")
			}
			if scale == "" && ops == "" && len(args) == 0 {
				return fmt.Errorf("no profile is named")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.check(); err != nil {
				return err
			}
			if ops != "" {
				return calibrateOps(c, ops, o.asJSON)
			}
			if scale != "" {
				return scaleMachine(c, scale, in.settings.Machine, o.out)
			}
			p := newProgress(c.ErrOrStderr(), in.quiet)
			defer p.close()
			var modules []*components.Module
			for _, path := range args {
				l, err := in.load(c.Context(), c, path, p)
				if err != nil {
					return err
				}
				modules = append(modules, l.Module)
			}
			nameModules(modules, args)
			base, err := in.settings.MachineOf(modules[0])
			if err != nil {
				return err
			}
			if o.machine = in.settings.Machine; o.machine == "" {
				o.machine = base.Name
			}
			traces := 0
			for _, m := range modules {
				if m.Attribute(cost.DocumentedTrace) != "" {
					traces++
				}
			}
			switch traces {
			case 0:
				return calibrateProfiles(c, modules, base, &o, p)
			case len(modules):
				return calibrateTraces(c, modules, base, &o, p)
			}
			return usagef("%d of %d inputs are traces of the compiler's simulator: calibrate them apart from measured profiles", traces, len(modules))
		},
	}
	in.addReading(c)
	in.measuredOnly = true
	fl := c.Flags()
	in.addMachine(c, "machine whose description is fitted, by name or file; default: what the first input was made for, else trn2")
	fl.StringVarP(&o.out, "output", "o", "", "write the machine description with the fitted constants to this file")
	fl.StringVar(&o.report, "report", "", "write the accuracy report (Markdown: cross-validation, baselines, DMA, sensitivity, constants) to this file")
	fl.StringVar(&scale, "scale-from", "", "scale the calibrated constants of this machine to --machine instead of fitting")
	fl.StringVar(&ops, "ops", "", "fit rooflines to the operators of this table (ops_perf_results*.csv) instead")
	fl.BoolVar(&o.cross, "cross-validate", true, "predict each profile with constants fitted to the others")
	fl.BoolVar(&o.asJSON, "json", false, "print one JSON object")
	return c
}

// calibrateOps fits rooflines to a table of operators.
func calibrateOps(c *cobra.Command, path string, asJSON bool) error {
	t, err := profilelog.ReadOpsFile(path)
	if err != nil {
		return err
	}
	list, err := calibrate.FromOps(c.Context(), t)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if asJSON {
		return writeJSON(c.OutOrStdout(), struct {
			Classes []calibrate.OpRoofline `json:"classes"`
		}{list})
	}
	tw := newTable(c.OutOrStdout())
	fmt.Fprintln(tw, "CLASS\tROWS\tSHAPES\tOVERHEAD\tBYTES/NS\tMACS/NS\tHELD OUT\tWORST\tVENDOR'S IDEAL\t")
	percent := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.1f %%", *v)
	}
	rate := func(v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf("%.3g", v)
	}
	for _, r := range list {
		sayf(tw, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Class, r.Rows, r.Shapes, units.Nanos(uint64(r.Overhead+0.5)), rate(r.Bytes), rate(r.MACs),
			percent(r.HeldOut), percent(r.Worst), percent(r.Ideal))
	}
	return tw.Flush()
}

type calibrateFlags struct {
	out, report   string
	cross, asJSON bool
	machine       string // where the description is read from
}

// nameModules gives modules of the same name the names of their files, so that
// tables distinguish them.
func nameModules(modules []*components.Module, paths []string) {
	for i, m := range modules {
		m.Name = systems.ShortName(paths[i])
	}
}

// calibrationReport is the output of `calibrate --json` for profiles.
type calibrationReport struct {
	Machine  string              `json:"machine"`
	Fit      *calibrate.Fit      `json:"fit"`
	LeaveOut []calibrate.Score   `json:"cross_validation,omitempty"`         // predictions of profiles left out of the fit
	Summary  *calibrate.Summary  `json:"cross_validation_summary,omitempty"` // their errors
	Accuracy *calibrate.Accuracy `json:"accuracy,omitempty"`                 // errors by profile and constant
}

func calibrateProfiles(c *cobra.Command, modules []*components.Module, base *machine.Machine, o *calibrateFlags, p *progress) error {
	ctx := c.Context()
	fit, err := calibrate.Run(ctx, modules, base)
	if err != nil {
		return err
	}
	r := calibrationReport{Machine: base.Name, Fit: fit}
	if o.cross && len(modules) > 1 {
		r.LeaveOut, err = calibrate.Leave(ctx, modules, base, calibrated.Options{Phase: calibrate.MedianPhase})
		if err != nil {
			return err
		}
		s := calibrate.Summarize(r.LeaveOut)
		r.Summary = &s
	}
	if o.report != "" {
		p.start("evaluating", 0, false)
		if r.Accuracy, err = calibrate.Evaluate(ctx, modules, base, func(done, _ int64) { p.set(done) }); err != nil {
			return err
		}
		p.finish()
		if err := save(o.report, c.OutOrStdout(), r.Accuracy.Write); err != nil {
			return err
		}
	}
	if o.out != "" {
		text, err := machine.Text(o.machine)
		if err == nil {
			text, err = calibrate.Splice(text, fit.Machine)
		}
		if err == nil {
			err = save(o.out, c.OutOrStdout(), writeAll(text))
		}
		if err != nil {
			return err
		}
	}
	p.close()
	if o.asJSON {
		return writeJSON(c.OutOrStdout(), r)
	}
	return r.print(c.OutOrStdout())
}

func (r *calibrationReport) print(w io.Writer) error {
	tw := newTable(w)
	sayf(w, "%d constants of %s fitted to %s\n\n", len(r.Fit.Items), r.Machine, countOf(len(r.Fit.Profiles), "profile"))
	fmt.Fprintln(tw, "CONSTANT\tWAS\tFITTED\tCHANGE\tN\tSPREAD\t")
	// A reader looks for the largest change.
	items := slices.Clone(r.Fit.Items)
	slices.SortStableFunc(items, func(a, b calibrate.Item) int { return cmp.Compare(changed(b), changed(a)) })
	for _, it := range items[:min(len(items), mostConstants)] {
		change := "new"
		if it.Was != 0 {
			change = fmt.Sprintf("%+.1f %%", 100*(it.Value/it.Was-1))
		}
		sayf(tw, "%s\t%.6g\t%.6g\t%s\t%d\t%.4g\t\n", it.Name, it.Was, it.Value, change, it.N, it.Spread)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if n := len(items) - mostConstants; n > 0 {
		sayf(w, "… and %d more that changed less (--report FILE, --json)\n", n)
	}
	sayf(w, "\n%s not identified by these profiles and kept (--json lists them)\n", countOf(len(r.Fit.Kept), "constant"))
	if r.Summary == nil {
		return nil
	}
	fmt.Fprintln(w, "\npredicted with constants fitted to the other profiles:")
	fmt.Fprintln(tw, "PROFILE\tKERNEL\tPREDICTED\tERROR\tWHOLE\tSTARTS P50\tP90\tMOST\t")
	var times []uint64
	for _, s := range r.LeaveOut {
		times = append(times, uint64(s.KernelNS), uint64(s.Predicted))
	}
	text := units.Column(times...)
	for _, s := range r.LeaveOut {
		sayf(tw, "%s\t%s\t%s\t%+.2f %%\t%+.2f %%\t%.2f %%\t%.2f %%\t%.2f %%\t\n", s.Profile, text(uint64(s.KernelNS)), text(uint64(s.Predicted)), s.KernelErr, s.Whole, s.StartP50, s.StartP90, s.StartMax)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	s := r.Summary
	_, err := sayf(w, "\nkernel time: median error %.2f %%, worst %.2f %%\nbusy time per engine: median error %.2f %%\nstarts: 90th percentile of errors %.2f %% (median of the profiles)\n",
		s.KernelMedian, s.KernelWorst, s.BusyMedian, s.StartP90)
	return err
}

// mostConstants bounds the constants printed for people.
const mostConstants = 15

// changed is the relative change of a constant by the fit.
func changed(it calibrate.Item) float64 {
	return math.Abs(it.Value-it.Was) / max(math.Abs(it.Was), math.Abs(it.Value), 1e-9)
}

func calibrateTraces(c *cobra.Command, modules []*components.Module, base *machine.Machine, o *calibrateFlags, p *progress) error {
	rows, mach, err := calibrate.FromTraces(c.Context(), modules, base)
	if err != nil {
		return err
	}
	if o.out != "" {
		text, err := mach.Marshal()
		if err == nil {
			err = save(o.out, c.OutOrStdout(), writeAll(text))
		}
		if err != nil {
			return err
		}
	}
	p.close()
	if o.asJSON {
		return writeJSON(c.OutOrStdout(), struct {
			Machine string             `json:"machine"`
			Costs   []calibrate.Affine `json:"costs"` // fitted costs
		}{base.Name, rows})
	}
	tw := newTable(c.OutOrStdout())
	fmt.Fprintln(tw, "OPCODE\tENGINE\tBYTES/ELEMENT\tMULT\tBASE\tN\tSIZES\tRESIDUAL\tWORST\t")
	for _, a := range rows {
		sayf(tw, "%s\t%s\t%d\t%.4g\t%.0f\t%d\t%d\t%.1f ns\t%.0f ns\t\n", a.Opcode, a.Engine, a.ElemSize, a.Mult, a.Base, a.Samples, a.Sizes, a.Residual, a.Worst)
	}
	return tw.Flush()
}

func writeAll(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

func scaleMachine(c *cobra.Command, from, to, out string) error {
	if to == "" {
		return usagef("--scale-from needs --machine, the machine to scale to")
	}
	a, err := machine.Load(from)
	if err != nil {
		return err
	}
	b, err := machine.Load(to)
	if err != nil {
		return err
	}
	text, err := machine.Text(to)
	if err != nil {
		return err
	}
	if text, err = calibrate.Splice(text, calibrate.Scale(a, b)); err != nil {
		return err
	}
	if out == "" {
		out = "-"
	}
	return save(out, c.OutOrStdout(), writeAll(text))
}
