package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perfsim/bench/modelrun"
	"perfsim/bench/models"
	"perfsim/bench/record"
	"perfsim/cmd/internal/units"
	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/io/xla/hlo"
	"perfsim/systems/floorplan"
)

// benchFlags are the options of the reference benchmark and ours.
type benchFlags struct {
	args modelrun.Args

	machine  string
	dump     string
	output   string
	results  string
	id       string
	sweep    []string
	repeats  int
	cost     string
	graph    inputFlags // of lowering
	loops    components.Loops
	options  string // flags of lowering that were given
	jobs     int
	json     bool
	epochs   bool
	epochSVG string
	quiet    bool
}

// predictionFlags are the flags of ours that change a prediction and are no
// property of the reference benchmark's records.
var predictionFlags = []string{"cost", "loops", "buffers", "default-trip-count", "max-instructions", "unroll", "no-compress", "no-group", "inline", "infinite-buffers"}

// dashes are the short options of more than one letter that the reference
// benchmark has and GNU flags do not.
var dashes = []struct{ short, long string }{{"-mb", "--microbatch"}, {"-mf", "--math_fidelity"}, {"-df", "--dataformat"}, {"-adf", "--acc_dataformat"},
	{"-opt", "--backend_opt_level"}, {"-di", "--dump_intermediate"}, {"-dit", "--dump_intermediate_tag"}, {"-dic", "--dump_intermediate_count"}}

// undash turns the short options of more than one letter into long ones.
func undash(args []string) []string {
	out := slices.Clone(args)
	for i, a := range out {
		if a == "--" {
			break
		}
		for _, d := range dashes {
			if rest, ok := strings.CutPrefix(a, d.short); ok && (rest == "" || rest[0] == '=') {
				out[i] = d.long + rest
			}
		}
	}
	return out
}

func newBenchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [flags]",
		Short: "Run the benchmark's models on descriptions of machines",
		Long: `bench builds a model, predicts how it runs on a device's description, and makes
the record that the reference benchmark makes of a run on the device. The
options are those of the reference benchmark, in its spellings (-mb, -mf, -df
and the others of more than one letter too).

-d tt stands for the machine grayskull, -d cuda for rtx3090, -d trn for trn2;
--machine names another description. What a prediction cannot know is null in
the record, which says why. With --save_output the record goes to results/.`,
		Example: `  perfsim bench --list
  perfsim bench -d tt -m mobilenetv2 -c 224 --task image_classification \
      -mb 64 -mf HiFi3 --loop_count 8 --save_output
  perfsim bench -m resnet -c resnet50 --machine trn2 -mb 64 --json
  perfsim bench -m bert -c base --sweep machine=grayskull,trn2 \
      --sweep microbatch=1,8,64
  perfsim bench -m vit -c base --dump hlo > vit.hlo
  perfsim bench compare results/perf_*.json`,
		DisableFlagParsing: true, // parsed below, after the spellings are settled
		RunE: func(c *cobra.Command, args []string) error {
			if err := c.Flags().Parse(undash(args)); err != nil {
				if errors.Is(err, pflag.ErrHelp) {
					return c.Help()
				}
				return usageError{err}
			}
			if help, err := c.Flags().GetBool("help"); err == nil && help {
				return c.Help()
			}
			if rest := c.Flags().Args(); len(rest) > 0 {
				return usagef("bench takes no argument %q", rest[0])
			}
			return f.run(c)
		},
	}
	f.add(c)
	c.AddCommand(newBenchCompare(), newBenchSchema(), newBenchSelf(), newBenchTable())
	return c
}

func (f *benchFlags) add(c *cobra.Command) {
	a, fl := &f.args, c.Flags()
	fl.SortFlags = false
	fl.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "-", "_"))
	})
	fl.StringVarP(&a.Model, "model", "m", "", "model to run (see --list)")
	fl.StringVarP(&a.Config, "config", "c", "", "configuration of the model")
	fl.StringVar(&a.Task, "task", "na", "task: na (made-up data), image_classification, text_classification, …")
	fl.StringVarP(&a.Device, "device", "d", "tt", "tt, cuda or trn")
	fl.BoolVarP(&a.Training, "training", "t", false, "not supported: graphs are of inference")
	fl.StringVar(&a.DataFormat, "dataformat", "Fp16_b", "-df: Fp32, Fp16, Fp16_b, Bfp8, Bfp8_b, Bfp4 or Bfp4_b")
	fl.StringVar(&a.AccDataFormat, "acc_dataformat", "", "-adf: format in which products are added up; default: the machine's own")
	fl.StringVar(&a.MathFidelity, "math_fidelity", "HiFi3", "-mf: LoFi, HiFi2, HiFi3 or HiFi4; on Tensix cores")
	fl.IntVar(&a.BackendOptLevel, "backend_opt_level", 3, "-opt: 0 to 4; 0 caches no epochs, 4 loops on the device (-d tt)")
	fl.IntVar(&a.LoopCount, "loop_count", 1, "times to go through the data set")
	fl.IntVar(&a.Microbatch, "microbatch", 1, "-mb: samples of a batch; 0 takes the model's own")
	fl.IntVar(&a.NumTokens, "num_tokens", 1, "tokens a text model generates; without it the task's number")
	fl.IntVar(&a.Chips, "chips", 1, "chips that share the batches of the data set (data parallel)")
	fl.BoolVar(&a.Recompute, "recompute", false, "recorded as ignored")
	fl.StringVar(&a.Trace, "trace", "none", "none, light (operators) or verbose (what they waited for too): a Chrome trace of a batch into the results folder")
	fl.BoolVarP(&a.List, "list", "l", false, "list the models and configurations")
	fl.StringVarP(&a.Env, "env", "e", "", "recorded as ignored")
	fl.BoolVar(&a.SaveOutput, "save_output", false, "write the record to the results folder")
	fl.BoolVar(&a.AutoTranspose, "auto_transpose", false, "placement may turn operators by a quarter (-d tt)")
	fl.StringVar(&a.DumpIntermediate, "dump_intermediate", "", "-di: OP,OP,…: results of these operators leave the chip too, and are listed in intermed_TAG.log (-d tt)")
	fl.StringVar(&a.DumpTag, "dump_intermediate_tag", "", "-dit: TAG of the list")
	fl.IntVar(&a.DumpCount, "dump_intermediate_count", 1, "-dic: inputs that the list has")
	fl.StringVar(&a.LoadTTI, "load_tti", "", "recorded as ignored")
	fl.StringVar(&a.SaveTTI, "save_tti", "", "recorded as ignored")
	fl.BoolVar(&a.PerfAnalysis, "perf_analysis", false, "print the epochs of a grid, as --epochs does")
	fl.BoolVar(&a.ModelOutput, "model_output", false, "recorded as ignored: no values are computed")
	fl.StringVar(&a.ParallelTTI, "parallel_tti", "", "recorded as ignored")

	fl.StringVar(&f.machine, "machine", "", "machine by name or description file; default: what --device stands for")
	fl.StringVar(&f.cost, "cost", "reference", "cost model on machines with engines: reference or calibrated")
	fl.Var((*loopsValue)(&f.loops), "loops", "trips (as often as its trip count) or once, on machines with engines; default: trips")
	f.graph.addLowering(c)
	fl.StringVar(&f.dump, "dump", "", "hlo: write the model's graphs as HLO text instead of running it")
	fl.StringVarP(&f.output, "output", "o", "", "file for --dump; default standard output")
	fl.StringVar(&f.results, "results", "results", "folder for --save_output")
	fl.StringVar(&f.id, "id", "", "five letters of the record's file name; default: random")
	fl.StringArrayVar(&f.sweep, "sweep", nil, "NAME=V,V,…: run for every value of model, config, microbatch, machine, dataformat or math_fidelity; may be repeated")
	fl.IntVar(&f.repeats, "repeats", 1, "repeat building and simulating; the record has median and spread of the times")
	fl.IntVarP(&f.jobs, "jobs", "j", 2, "goroutines that work; results do not depend on it")
	fl.BoolVar(&f.json, "json", false, "print the records as JSON")
	fl.BoolVar(&f.epochs, "epochs", false, "print the epochs of a grid, operator by operator")
	fl.StringVar(&f.epochSVG, "epochs_svg", "", "draw the epochs of a grid into this SVG file")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress on the terminal")
}

// check finds wrong values before any work.
func (f *benchFlags) check(c *cobra.Command) error {
	a := &f.args
	for _, o := range []struct {
		flag, v string
		in      []string
	}{
		{"dataformat", a.DataFormat, dataFormats}, {"math_fidelity", a.MathFidelity, fidelities}, {"trace", a.Trace, []string{"none", "light", "verbose"}},
		{"cost", f.cost, []string{"reference", "calibrated"}}, {"dump", f.dump, []string{"", "hlo"}}, {"acc_dataformat", a.AccDataFormat, append([]string{""}, dataFormats...)},
	} {
		if !slices.Contains(o.in, o.v) {
			return usagef("--%s %q is none of %s", o.flag, o.v, strings.TrimPrefix(strings.Join(o.in, ", "), ", "))
		}
	}
	switch {
	case a.Model == "" && !f.sweeps("model"):
		return usagef("--model is missing; --list shows what there is")
	case a.Training:
		return usagef("--training is not supported: the graphs are of inference")
	case a.Chips < 1 || a.Chips > 4096:
		return usagef("--chips %d is not between 1 and 4096", a.Chips)
	case a.BackendOptLevel < 0 || a.BackendOptLevel > 4:
		return usagef("--backend_opt_level %d is not between 0 and 4", a.BackendOptLevel)
	case a.LoopCount < 1:
		return usagef("--loop_count %d is not at least 1", a.LoopCount)
	case a.Microbatch < 0:
		return usagef("--microbatch %d is negative", a.Microbatch)
	case a.NumTokens < 1:
		return usagef("--num_tokens %d is not at least 1", a.NumTokens)
	case f.repeats < 1 || f.repeats > 10_000:
		return usagef("--repeats %d is not between 1 and 10000", f.repeats)
	case f.jobs < 1:
		return usagef("--jobs %d is not at least 1", f.jobs)
	case a.DumpCount < 0:
		return usagef("--dump_intermediate_count %d is negative", a.DumpCount)
	case a.DumpIntermediate == "" && (a.DumpTag != "" || a.DumpCount != 1):
		return usagef("--dump_intermediate_tag and --dump_intermediate_count are of --dump_intermediate, which is missing")
	case strings.ContainsAny(a.DumpTag, "/\\"):
		return usagef("--dump_intermediate_tag %q is part of a file name and has no slash", a.DumpTag)
	case a.LoadTTI != "" && a.SaveTTI != "":
		return usagef("only one of --load_tti and --save_tti")
	}
	if err := f.settleMachine(c); err != nil {
		return err
	}
	if a.PerfAnalysis {
		if a.Device != "tt" {
			return usagef("--perf_analysis is of grids; machine %s has no epochs", f.machine)
		}
		f.epochs = true
	}
	return nil
}

var (
	dataFormats = []string{"Fp32", "Fp16", "Fp16_b", "Bfp8", "Bfp8_b", "Bfp4", "Bfp4_b"}
	fidelities  = []string{"LoFi", "HiFi2", "HiFi3", "HiFi4"}
)

// settleMachine makes device and machine agree.
func (f *benchFlags) settleMachine(c *cobra.Command) error {
	if f.machine == "" {
		m, err := modelrun.DefaultMachine(f.args.Device)
		if err != nil {
			return usageError{err}
		}
		f.machine = m
	}
	if f.sweeps("machine") { // each value brings its device
		return nil
	}
	d, err := modelrun.Device(f.machine)
	if err != nil {
		return optionError(err)
	}
	if c.Flags().Changed("device") && d != f.args.Device {
		return usagef("--device %s and --machine %s, which is a %s, do not agree", f.args.Device, f.machine, d)
	}
	f.args.Device = d
	// What the machine has no use for is refused rather than passed over.
	switch {
	case d != "tt" && (f.epochs || f.epochSVG != ""):
		return usagef("--epochs and --epochs_svg are of grids; machine %s has no epochs", f.machine)
	case d != "tt" && f.args.DumpIntermediate != "":
		return usagef("--dump_intermediate is of grids (-d tt), as in the reference; machine %s has no epochs", f.machine)
	case d != "trn" && c.Flags().Changed("cost"):
		return usagef("--cost is of machines with engines (trn1, trn2, trn3), not of %s", f.machine)
	}
	for _, name := range predictionFlags {
		x := c.Flags().Lookup(name)
		if !x.Changed {
			continue
		}
		if d != "trn" {
			return usagef("--%s is of machines with engines (trn1, trn2, trn3), not of %s", x.Name, f.machine)
		}
		f.options = strings.TrimSpace(f.options + " " + x.Name + "=" + x.Value.String())
	}
	f.graph.jobs, f.graph.graphFlags = f.jobs, predictionFlags
	if err := f.graph.check(); err != nil {
		return err
	}
	return nil
}

func (f *benchFlags) sweeps(name string) bool {
	return slices.ContainsFunc(f.sweep, func(s string) bool { return strings.HasPrefix(s, name+"=") })
}

func (f *benchFlags) run(c *cobra.Command) error {
	out := c.OutOrStdout()
	if f.args.List {
		_, err := io.WriteString(out, models.List())
		return err
	}
	if err := f.check(c); err != nil {
		return err
	}
	if f.dump != "" {
		return f.dumpHLO(c)
	}
	runs, err := f.expand()
	if err != nil {
		return err
	}
	p := newProgress(c.ErrOrStderr(), f.quiet)
	defer p.close()
	var records []*record.Record
	for _, r := range runs {
		o, rec, err := r.one(c, p)
		if err != nil {
			if len(runs) > 1 {
				err = fmt.Errorf("%s %s on %s: %w", r.args.Model, r.args.Config, r.machine, err)
			}
			return err
		}
		p.close()
		records = append(records, rec)
		if !f.json && len(runs) == 1 {
			if err := r.print(out, o, rec); err != nil {
				return err
			}
		}
		written, err := r.files(c.Context(), o, rec)
		for _, path := range written {
			sayf(c.ErrOrStderr(), "wrote %s\n", path)
		}
		if err != nil {
			return err
		}
	}
	if f.json {
		_, err := out.Write(record.Append(nil, records))
		return err
	}
	if len(runs) > 1 {
		return printBenchSweep(out, records)
	}
	return nil
}

// one runs one trial.
func (f *benchFlags) one(c *cobra.Command, p *progress) (*modelrun.Outcome, *record.Record, error) {
	_, config, err := models.Find(f.args.Model, f.args.Config)
	if err != nil {
		return nil, nil, usageError{err}
	}
	cost, err := components.ParseModel(f.cost)
	if err != nil {
		return nil, nil, usageError{err}
	}
	opt := modelrun.Options{Model: f.args.Model, Config: config, Task: f.args.Task, Machine: f.machine, Microbatch: f.args.Microbatch,
		Format: f.args.DataFormat, Fidelity: f.args.MathFidelity, LoopCount: f.args.LoopCount, Chips: f.args.Chips, Repeats: f.repeats, Jobs: f.jobs,
		Lower: f.graph.settings.Graph, Cost: cost, Loops: f.loops, Chosen: f.options,
		Accumulator: f.args.AccDataFormat, Transpose: f.args.AutoTranspose, Keep: f.args.Trace != "none",
		Uncached: f.args.BackendOptLevel == 0, DeviceLoops: f.args.BackendOptLevel == 4}
	if f.args.DumpIntermediate != "" {
		opt.Intermediates = strings.Split(f.args.DumpIntermediate, ",")
	}
	if c.Flags().Changed("num_tokens") {
		opt.Tokens = int64(f.args.NumTokens)
	}
	stage := ""
	opt.Progress = func(s string, done, total int64) {
		if s != stage {
			p.start(s, total, false)
			stage = s
		}
		p.set(done)
	}
	o, err := modelrun.Run(c.Context(), opt)
	p.finish()
	if err != nil {
		return nil, nil, optionError(err)
	}
	a := f.args
	if a.Date, err = recordDate(); err != nil {
		return nil, nil, err
	}
	rec, err := o.Record(a)
	return o, rec, err
}

// optionError marks what the command line asked for and a model does not have:
// a task, a number of tokens.
func optionError(err error) error {
	if bad := (*models.OptionError)(nil); errors.As(err, &bad) {
		return usageError{err}
	}
	return err
}

// recordDate is now, or what SOURCE_DATE_EPOCH says, so that records can be
// made again to the byte.
func recordDate() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		return time.Now(), nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not a number of seconds", s)
	}
	return time.Unix(n, 0).UTC(), nil
}

// expand lists the runs of a sweep: every combination, the last option
// fastest.
func (f *benchFlags) expand() ([]benchFlags, error) {
	runs := []benchFlags{*f}
	for _, s := range f.sweep {
		name, list, ok := strings.Cut(s, "=")
		if !ok || list == "" {
			return nil, usagef("--sweep %q is not NAME=V,V,…", s)
		}
		var next []benchFlags
		for _, r := range runs {
			for _, v := range strings.Split(list, ",") {
				if err := r.set(name, v); err != nil {
					return nil, err
				}
				next = append(next, r)
			}
		}
		if runs = next; len(runs) > 100_000 {
			return nil, usagef("--sweep asks for more than 100000 runs")
		}
	}
	return runs, nil
}

func (f *benchFlags) set(name, v string) error {
	switch name {
	case "model":
		f.args.Model = v
	case "config":
		f.args.Config = v
	case "microbatch":
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return usagef("--sweep microbatch: %q is not a number of samples", v)
		}
		f.args.Microbatch = n
	case "machine":
		d, err := modelrun.Device(v)
		if err != nil {
			return optionError(err)
		}
		f.machine, f.args.Device = v, d
	case "dataformat":
		if !slices.Contains(dataFormats, v) {
			return usagef("--sweep dataformat: %q is none of %s", v, strings.Join(dataFormats, ", "))
		}
		f.args.DataFormat = v
	case "math_fidelity":
		if !slices.Contains(fidelities, v) {
			return usagef("--sweep math_fidelity: %q is none of %s", v, strings.Join(fidelities, ", "))
		}
		f.args.MathFidelity = v
	default:
		return usagef("--sweep of %q: there are model, config, microbatch, machine, dataformat and math_fidelity", name)
	}
	return nil
}

// dumpHLO writes the graphs of the model.
func (f *benchFlags) dumpHLO(c *cobra.Command) error {
	elem := opgraph.ElemBF16
	switch f.args.DataFormat {
	case "Fp32":
		elem = opgraph.ElemF32
	case "Fp16":
		elem = opgraph.ElemF16
	}
	opt := models.Options{Batch: f.args.Microbatch, Elem: elem, Task: f.args.Task}
	if c.Flags().Changed("num_tokens") {
		opt.Tokens = int64(f.args.NumTokens)
	}
	if _, _, err := models.Find(f.args.Model, f.args.Config); err != nil {
		return usageError{err}
	}
	m, err := models.Build(f.args.Model, f.args.Config, opt)
	if err != nil {
		return optionError(err)
	}
	var text []byte
	for i, p := range m.Phases {
		if i > 0 {
			text = append(text, '\n')
		}
		text = hlo.AppendText(text, p.Graph)
	}
	return saveBytes(cmp.Or(f.output, "-"), c.OutOrStdout(), text)
}

const stars = "*****************************************************\n"

// print prints what the reference benchmark prints, and what is ours.
func (f *benchFlags) print(out io.Writer, o *modelrun.Outcome, rec *record.Record) error {
	num := func(name string) float64 { x, _ := rec.Number(name); return x }
	var b strings.Builder
	b.WriteString(stars)
	sayf(&b, " Device: %s (simulated: %s)\n", o.DeviceName, o.Machine)
	sayf(&b, " Total compilation time (s): %.4f\n", num("total_compilation_time"))
	sayf(&b, " Peak host memory usage (MB): %.2f\n", num("peak_host_mem_usage"))
	sayf(&b, " Total runtime (s) for %d inputs: %.4f\n", o.Samples, o.RunSeconds)
	if t := num("tokens_per_sec"); t > 0 {
		sayf(&b, " Tokens/sec: %.2f\n", t)
	} else {
		sayf(&b, " Samples/sec: %.2f\n", num("samples_per_sec"))
	}
	sayf(&b, " Inference time (ms): %.4g\n", num("inference_time_ms"))
	sayf(&b, " Batch size: %d\n", o.Model.Batch)
	b.WriteString(stars)
	sayf(&b, " parameters %s, multiply-accumulates a sample %s\n", humanize.Comma(int64(o.Params)), humanize.Comma(int64(o.MACs)))
	if o.HostNS > 0 {
		sayf(&b, " device alone: %.2f samples/s; the host adds %s to a batch of %s\n", o.DeviceRate(), units.Nanos(uint64(o.HostNS)), units.Nanos(uint64(o.BatchNS)))
	}
	for i := range o.Phases {
		p := &o.Phases[i]
		sayf(&b, " %s: %s a run, %s a batch, %s, %s\n", p.Name, units.Nanos(p.NS), countOf(int(p.Runs), "run"), countOf(p.Operators, "operator"), countOf(p.Instructions, "instruction"))
		if p.Plan == nil {
			continue
		}
		var list []string
		for _, n := range p.Epochs {
			list = append(list, strconv.Itoa(n))
		}
		sayf(&b, "   %s of %d cores: %s; mean utilization %.1f %%\n", countOf(len(p.Epochs), "epoch"), p.Plan.Model.Mach.Cores(), strings.Join(list, " "), 100*p.Utilization)
		if f.epochs {
			b.WriteString(epochText(p))
			b.WriteString("   the vendor's compiler sizes grids and closes epochs by rules that are not\n   published; this placement is ours\n")
		}
	}
	for _, n := range o.Ignores {
		sayf(&b, " not in the description: %s\n", n)
	}
	if f.epochSVG != "" {
		if o.Phases[0].Plan == nil {
			return usagef("--epochs_svg: machine %s has no epochs", o.Machine)
		}
		plan := o.Phases[0].Plan
		if err := saveBytes(f.epochSVG, out, floorplan.Analyze(plan.Netlist(f.args.Model, f.args.MathFidelity), plan.Grid()).SVG(0)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(&wrapper{w: out}, b.String())
	return err
}

// epochText lists the operators of every epoch with their rectangles, and the
// core map that `perfsim netlist` draws.
func epochText(p *modelrun.Phase) string {
	var b strings.Builder
	rep := floorplan.Analyze(p.Plan.Netlist(p.Name, ""), p.Plan.Grid())
	for i := range p.Plan.Epochs {
		e := &p.Plan.Epochs[i]
		sayf(&b, "   epoch %d: %d cores, %s from input to input,\n     bound by %s; %s to load, %s through\n", i, e.Cores,
			units.Nanos(uint64(e.Bottleneck)), e.BoundBy, units.Nanos(uint64(e.Prologue)), units.Nanos(uint64(e.Fill)))
		for k := range e.Ops {
			x := &e.Ops[k]
			o := &p.Plan.Ops[x.Op]
			sayf(&b, "   %-11s grid_loc [%d, %d] grid_size [%d, %d]%s %9s  %s\n", o.Kind, x.Row, x.Col, x.R, x.C, turned(x.Transposed), units.Nanos(uint64(x.NS)), o.Name)
		}
		for c := range rep.Epochs[i].Chips {
			b.WriteString(rep.Epochs[i].Chips[c].Text(rep.Grid))
		}
	}
	return b.String()
}

func turned(is bool) string {
	if is {
		return " grid_transpose"
	}
	return ""
}
