package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/lower"
	"perfsim/systems/whatif"
)

// inputFlags are the flags of commands that read a module.
type inputFlags struct {
	command  *cobra.Command // what runs, for what an error says to type
	format   string
	noVerify bool
	jobs     int
	quiet    bool

	// settings are the options that change a prediction; the flags of
	// addPrediction set them.
	settings           systems.Settings
	trips, dims        []string
	noCompress, noFuse bool
	graphFlags         []string // names of the flags that are about graphs
	kernelFlags        []string // names of the flags that are about kernels

	// measuredOnly is set by commands that have no use for operator graphs.
	measuredOnly bool
	// skipOperands is set by commands that print nothing about operands.
	skipOperands bool
	// passes are those that will predict what is read, nil for those of a
	// prediction.
	passes *systems.Options
}

// add adds the flags of commands that predict: the whole group of what
// changes a prediction, so that every command can ask for the same one.
func (f *inputFlags) add(c *cobra.Command) {
	f.addReading(c)
	f.addPrediction(c)
}

// addReading adds the flags of commands that read a module.
func (f *inputFlags) addReading(c *cobra.Command) {
	f.command = c
	c.Flags().StringVar(&f.format, "format", "", "format of the input instead of looking at what it holds")
	c.Flags().BoolVar(&f.noVerify, "no-verify", false, "do not check the checksums of a snapshot; the checks that keep a bad file from doing harm remain")
	f.addWorking(c)
}

// addWorking adds the flags of commands that work for a while.
func (f *inputFlags) addWorking(c *cobra.Command) {
	c.Flags().IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "goroutines that work; results do not depend on it")
	f.addQuiet(c)
}

// addQuiet adds the flag of commands that show progress.
func (f *inputFlags) addQuiet(c *cobra.Command) {
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress on the terminal")
}

// addMachine adds --machine alone, for commands that predict nothing.
func (f *inputFlags) addMachine(c *cobra.Command, doc string) {
	c.Flags().StringVar(&f.settings.Machine, "machine", "", doc)
	completeMachine(c, "machine")
}

// addPrediction adds every flag that changes a prediction.
func (f *inputFlags) addPrediction(c *cobra.Command) {
	s := &f.settings
	fl := c.Flags()
	fl.Var((*modelValue)(&s.Model), "model", "reference, calibrated or replay; default: calibrated for measured profiles, replay for traces, reference for the rest")
	fl.Var((*loopsValue)(&s.Loops), "loops", "once (a loop body counts once, as documented) or trips (as often as its trip count); default: what the input asks for, else once")
	f.addMachine(c, "machine by name (see 'perfsim machine list') or description file; default: what the input was made for, else trn2")
	completeModel(c, "model")
	completeWith(c, "loops", components.Once.String(), components.Trips.String())
	fl.BoolVar(&s.RebuildDeps, "rebuild-deps", false, "derive the dependencies of every function from access patterns, not only of those that came without any")

	before := map[string]bool{}
	fl.VisitAll(func(x *pflag.Flag) { before[x.Name] = true })
	f.addLowering(c)
	d := &s.Graph
	fl.StringArrayVar(&f.trips, "trip-count", nil, "graphs: NAME=N, trip count of the while (or while body) called NAME; may be repeated")
	fl.StringArrayVar(&f.dims, "dim", nil, "graphs: NAME.I=N, size of dimension I of parameter NAME where the module leaves it open ('?'); '?=N' for all; may be repeated")
	fl.Int64Var(&d.Cores, "cores", 0, "graphs: cores that share the module; one core's program is predicted, collectives included")
	fl.StringArrayVar(&d.Cuts, "cut", nil, "graphs: with --cores: NAME.I, cut dimension I of parameter NAME; may be repeated; default: the module's own shardings, else its batch")
	fl.BoolVar(&d.Operands, "operands", false, "graphs: keep access patterns and memory locations of every instruction; the prediction is the same")
	fl.BoolVar(&s.NoPreAlloc, "no-pre-alloc", false, "graphs: the first perf_sim pass simulates the allocated module too, instead of the one before allocation")
	fl.StringVar(&s.GraphModule, "module", "", "graphs: name of the module to take where the input has several, or #N for the one in place N")
	fl.VisitAll(func(x *pflag.Flag) {
		if !before[x.Name] {
			f.graphFlags = append(f.graphFlags, x.Name)
		}
	})
	f.addKernel(c)
}

// addLowering adds the flags of how graphs become instructions.
func (f *inputFlags) addLowering(c *cobra.Command) {
	f.settings.Graph = lower.DefaultOptions()
	d := &f.settings.Graph
	fl := c.Flags()
	fl.IntVar(&d.Buffers, "buffers", d.Buffers, "graphs: tiles of a streamed value that are on chip at once; 2 is double buffering")
	fl.Int64Var(&d.DefaultTrip, "default-trip-count", d.DefaultTrip, "graphs: trip count of whiles for which neither the input nor --trip-count has one")
	fl.IntVar(&d.MaxInstructions, "max-instructions", d.MaxInstructions, "graphs: most engine instructions a module may have")
	fl.IntVar(&d.Unroll, "unroll", d.Unroll, "graphs: tile loops of up to N iterations are written out")
	fl.BoolVar(&f.noCompress, "no-compress", false, "graphs: write out all tile loops instead of keeping long ones as loops")
	fl.BoolVar(&f.noFuse, "no-group", false, "graphs: every elementwise operator that is in no fusion makes a pass of its own")
	fl.IntVar(&d.Inline, "inline", d.Inline, "graphs: calls of up to N operators are laid out at the call; 0 makes every call a function")
	fl.BoolVar(&d.Infinite, "infinite-buffers", false, "graphs: no buffer is used again and nothing is spilled, as before allocation")
}

// modelValue is a flag that names a model, loopsValue one that names a loop
// mode.
type (
	modelValue components.Model
	loopsValue components.Loops
)

func (v *modelValue) Type() string { return "string" }
func (v *modelValue) String() string {
	if *v == 0 {
		return ""
	}
	return components.Model(*v).String()
}

func (v *modelValue) Set(s string) error {
	m, err := components.ParseModel(s)
	*v = modelValue(m)
	return err
}

func (v *loopsValue) Type() string { return "string" }
func (v *loopsValue) String() string {
	if *v == 0 {
		return ""
	}
	return components.Loops(*v).String()
}

func (v *loopsValue) Set(s string) error {
	l, err := components.ParseLoops(s)
	*v = loopsValue(l)
	return err
}

// keepOperands makes keeping the operands of lowered graphs the default:
// buffers are distinguished by them.
func (f *inputFlags) keepOperands() {
	f.settings.Graph.Operands = true
	f.command.Flags().Lookup("operands").DefValue = "true"
}

// check finds wrong values before any work and takes over those that are not
// settings as they stand.
func (f *inputFlags) check() error {
	if f.jobs < 1 {
		return usagef("--jobs %d is not at least 1", f.jobs)
	}
	if len(f.graphFlags) == 0 {
		return nil
	}
	g := &f.settings.Graph
	g.Compress, g.Group = !f.noCompress, !f.noFuse
	var err error
	if g.Trips, err = namedNumbers("trip-count", f.trips); err != nil {
		return err
	}
	if g.Dims, err = namedNumbers("dim", f.dims); err != nil {
		return err
	}
	switch {
	case g.Buffers < 1 || g.Buffers > lower.MostBuffers:
		return usagef("--buffers %d is not between 1 and %d", g.Buffers, lower.MostBuffers)
	case g.Cores < 0 || g.Cores > lower.MostCores:
		return usagef("--cores %d is not between 1 and %d", g.Cores, lower.MostCores)
	case g.DefaultTrip < 0:
		return usagef("--default-trip-count %d is not at least 0", g.DefaultTrip)
	case g.MaxInstructions < 1:
		return usagef("--max-instructions %d is not at least 1", g.MaxInstructions)
	case g.Unroll < 1:
		return usagef("--unroll %d is not at least 1", g.Unroll)
	case g.Inline < 0:
		return usagef("--inline %d is not at least 0", g.Inline)
	}
	return nil
}

// namedNumbers reads the values NAME=N of a flag.
func namedNumbers(flag string, list []string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, t := range list {
		name, text, ok := strings.Cut(t, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		if !ok || name == "" || err != nil || n < 0 {
			return nil, usagef("--%s %q is not NAME=N with N at least 0", flag, t)
		}
		out[name] = n
	}
	return out, nil
}

// reading returns where the module at path comes from.
func (f *inputFlags) reading(c *cobra.Command, path string, p *progress) systems.Reading {
	return systems.Reading{Path: path, Stdin: c.InOrStdin(), Format: f.format, NoVerify: f.noVerify, NoGraphs: f.measuredOnly,
		SkipOperands: f.skipOperands, Jobs: f.jobs, Stage: p.stage, Passes: f.passes}
}

// load reads the module at path.
func (f *inputFlags) load(ctx context.Context, c *cobra.Command, path string, p *progress) (*systems.Loaded, error) {
	if err := refuseInputs(c, path); err != nil {
		return nil, err
	}
	r := f.reading(c, path, p)
	r.Executes = f.sayExecutes(c)
	l, err := systems.Load(ctx, &r, f.settings)
	p.finish()
	if err != nil {
		return nil, f.explainError(err)
	}
	return l, f.refuseGraphFlags(l)
}

// refuseGraphFlags fails where flags about graphs were given and the input is
// none.
func (f *inputFlags) refuseGraphFlags(l *systems.Loaded) error {
	if l.Lowering != nil {
		return nil
	}
	if err := f.refuseKernelFlags(l); err != nil {
		return err
	}
	for _, name := range f.graphFlags {
		if f.command.Flags().Changed(name) {
			return usagef("--%s is for operator graphs (HLO, StableHLO), and %s is none (%s)", name, l.Input, l.Module.Format)
		}
	}
	return nil
}

// predict reads the module at path and predicts it with its reasons: what
// explain, whatif, query, export and view start from.
func (f *inputFlags) predict(ctx context.Context, c *cobra.Command, path string, p *progress) (*systems.Result, error) {
	l, err := f.load(ctx, c, path, p)
	if err != nil {
		return nil, err
	}
	return f.simulate(ctx, l, systems.Request{Why: true}, p)
}

// simulate predicts a loaded module; r says what beyond the settings.
func (f *inputFlags) simulate(ctx context.Context, l *systems.Loaded, r systems.Request, p *progress) (*systems.Result, error) {
	r.Loaded, r.Settings = l, f.settings
	r.Jobs, r.Stage = f.jobs, p.stage
	res, err := systems.Simulate(ctx, r)
	p.finish()
	return res, f.explainError(err)
}

// explainError makes errors of the request errors of the command line, with
// what to type.
func (f *inputFlags) explainError(err error) error {
	var choice *systems.ChoiceError
	if errors.As(err, &choice) {
		return f.chooseText(choice)
	}
	var setting *whatif.SettingError
	if errors.As(err, &setting) {
		return usageError{withNames(err)}
	}
	var request systems.RequestError
	if errors.As(err, &request) {
		return usageError{err}
	}
	return err
}

// withNames puts the names that exist behind an error about an unknown one.
func withNames(err error) error {
	var unknown interface{ KnownNames() []string }
	if !errors.As(err, &unknown) || len(unknown.KnownNames()) == 0 {
		return err
	}
	const width = 78
	text, line := "", "the names are:"
	for _, name := range unknown.KnownNames() {
		if utf8.RuneCountInString(line)+1+utf8.RuneCountInString(name) > width {
			text, line = text+"\n"+line, " "
		}
		line += " " + name
	}
	return fmt.Errorf("%w%s\n%s", err, text, line)
}

// chooseText lists the modules of an input of which one has to be chosen.
func (f *inputFlags) chooseText(e *systems.ChoiceError) error {
	const most = 10
	var list []string
	for i, name := range e.Names[:min(len(e.Names), most)] {
		list = append(list, fmt.Sprintf("#%d %s, %s", i+1, cut(name, 80), countOf(e.Ops[i], "operator")))
	}
	if n := len(e.Names) - most; n > 0 {
		list = append(list, fmt.Sprintf("and %s more", humanize.Comma(int64(n))))
	}
	return usagef("%v:\n  %s\nThe first is taken by\n  %s", e, strings.Join(list, "\n  "), f.commandWith("module", e.First()))
}

// commandWith is the current command line with a flag added or changed.
func (f *inputFlags) commandWith(flag, value string) string {
	if f.command == nil {
		return "--" + flag + " " + shellWord(value)
	}
	words := []string{f.command.CommandPath()}
	f.command.Flags().Visit(func(x *pflag.Flag) {
		switch {
		case x.Name == flag:
		case x.Value.Type() == "bool" && x.Value.String() == "true":
			words = append(words, "--"+x.Name)
		default:
			if list, ok := x.Value.(pflag.SliceValue); ok {
				for _, v := range list.GetSlice() {
					words = append(words, "--"+x.Name, shellWord(v))
				}
				return
			}
			words = append(words, "--"+x.Name+"="+shellWord(x.Value.String()))
		}
	})
	words = append(words, "--"+flag, shellWord(value))
	for _, a := range f.command.Flags().Args() {
		words = append(words, shellWord(a))
	}
	return strings.Join(words, " ")
}

// shellWord quotes a word that a shell would take apart.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=,+@%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
