package systems

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/io/format"
	"perfsim/io/formats"
	kernels "perfsim/io/neuron/nki"
	"perfsim/systems/deps"
	"perfsim/systems/lower"
)

// Reading says where a module comes from. Exactly one of Path, Source and
// Module is set.
type Reading struct {
	// Path is a file, or "-" for Stdin.
	Path  string
	Stdin io.Reader
	// Source is an opened input; the caller closes it.
	Source *format.Source
	// Module is a module in memory. Rebuilding its dependencies changes it.
	Module *components.Module

	// Format is the name of an importer; "" goes by what the input holds.
	Format string
	// NoVerify leaves out the checksums of snapshots.
	NoVerify bool
	// Executes, where not nil, is called before a kernel source is executed.
	Executes func(path string)
	// NoExecute refuses kernel sources, which are executed to be read.
	NoExecute bool
	// NoGraphs refuses operator graphs, which have no measured times.
	NoGraphs bool
	// SkipOperands leaves the operands of snapshots on disk where the
	// prediction does not read them.
	SkipOperands bool

	// Jobs is how many goroutines may work; below 1 is 1.
	Jobs int
	// Stage, where not nil, is called as a piece of work begins: its name, its
	// size (0 or less where it is not known) and whether the size is in bytes.
	// It returns what is called with the share done, or nil.
	Stage func(name string, total int64, bytes bool) func(done int64)

	// Passes are those that will predict the module, nil for those of a
	// prediction. Where one of them simulates a graph before allocation, that is
	// done while the graph is loaded: the allocated module takes the memory of the
	// one before, and they are never there at the same time.
	Passes *Options
}

// stage begins a piece of work and returns a function that is never nil.
func (r *Reading) stage(name string, total int64, bytes bool) func(done int64) {
	if r.Stage != nil {
		if set := r.Stage(name, total, bytes); set != nil {
			return set
		}
	}
	return func(int64) {}
}

// Loaded is a module that was read, and lowered where it was a graph.
type Loaded struct {
	Module *components.Module
	// Input is the input's name for messages.
	Input string
	// Lowering says what became of the graph that was read; nil for others.
	Lowering *lower.Report

	path     string // files next to it count; "" where there is nothing
	lowered  bool   // the module was made from a graph or a kernel for a machine
	settings Settings
	preAlloc func(context.Context) (*components.Module, error)
	early    *early // of preAlloc, where that is done

	// Of a prepared module, see Prepare: what was rebuilt, and the module with
	// rows for transfers, which the reference model places.
	prepared bool
	rebuilt  deps.Report
	expanded *components.Module
}

// Lowered reports whether the module was made from a graph or a kernel, for
// the machine and with the options of the settings.
func (l *Loaded) Lowered() bool { return l.lowered }

// ChoiceError is the error of an input that has several graphs of which none
// was chosen, or none of the name asked for.
type ChoiceError struct {
	Input string
	Want  string // the name asked for
	Names []string
	Ops   []int // operators, by graph
}

func (e *ChoiceError) Error() string {
	if e.Want != "" {
		return fmt.Sprintf("%s has no module called %q but %d modules", e.Input, e.Want, len(e.Names))
	}
	return fmt.Sprintf("%s has %d modules; choose one by its name or place", e.Input, len(e.Names))
}

// Load reads a module as the settings ask for it.
func Load(ctx context.Context, r *Reading, s Settings) (*Loaded, error) {
	if r.Module != nil {
		return &Loaded{Module: r.Module, Input: r.Module.Name, settings: s}, nil
	}
	src := r.Source
	path, function, source := kernelPath(r.Path, r.Format)
	if src == nil {
		var err error
		if src, err = format.Open(ctx, path, r.Stdin); err != nil {
			return nil, err
		}
		defer src.Close()
	}
	name := r.Format
	if name == "" && source {
		name = kernels.SourceImporter.Name
	}
	imp, err := formats.Find(src, name)
	if err != nil {
		return nil, err
	}
	src.OnProgress(r.stage("reading", src.Size, true))
	l := &Loaded{Input: src.Name, settings: s}
	if src.Name != "standard input" {
		l.path = src.Name
	}
	opt := format.Options{Jobs: max(r.Jobs, 1), NoVerify: r.NoVerify}
	if imp.Graph != nil {
		if r.NoGraphs {
			return nil, fmt.Errorf("%s: a graph (%s) has no measured times; measured profiles and traces of the compiler's simulator have", src.Name, imp.Name)
		}
		graphs, err := imp.Graph(ctx, src, opt)
		if err != nil {
			return nil, err
		}
		l.lowered = true
		return l, l.lower(ctx, r, graphs, imp.Name)
	}
	if imp.Record != nil {
		if r.NoGraphs {
			return nil, fmt.Errorf("%s: a kernel (%s) has no measured times", src.Name, imp.Name)
		}
		if r.NoExecute && imp.Name == kernels.SourceImporter.Name {
			return nil, requestf("%s: a kernel source is executed to be read, which is not allowed here", src.Name)
		}
		opt.Kernel = s.Kernel
		opt.Kernel.Execute = source
		opt.Kernel.Executes = r.Executes
		opt.Kernel.Function = cmp.Or(function, s.Kernel.Function)
		l.lowered = true
		return l, l.lowerKernel(ctx, r, src, imp, opt)
	}
	if r.SkipOperands {
		opt.SkipOperands = func(format string, attributes []components.Attribute) bool {
			return !s.needsOperands(format, attributes)
		}
	}
	if l.Module, err = imp.Module(ctx, src, opt); err != nil {
		return nil, err
	}
	l.Module.FillMACs()
	return l, nil
}

// lower turns the graph that the settings choose into engine instructions.
func (l *Loaded) lower(ctx context.Context, r *Reading, graphs []*opgraph.Graph, formatName string) error {
	g, err := l.pick(graphs)
	if err != nil {
		return err
	}
	opt := l.settings.Graph
	if opt.Buffers == 0 {
		opt = lower.DefaultOptions()
	}
	opt.Operands = opt.Operands || l.settings.RebuildDeps // dependencies follow from access patterns
	name := l.settings.Machine
	if name == "" {
		name = defaultMachine
	}
	mach, err := LoadMachine(name)
	if err != nil {
		return err
	}
	g.DeriveTripCounts()
	set := r.stage("lowering", int64(g.NumOps()), false)
	opt.Progress = func(done, _ int64) { set(done) }
	if !opt.Infinite && !l.settings.NoPreAlloc {
		before := opt
		before.Infinite, before.Operands, before.Progress = true, false, nil
		l.preAlloc = func(ctx context.Context) (*components.Module, error) {
			res, err := lower.Lower(ctx, g, mach, before)
			if err != nil {
				return nil, err
			}
			return res.Module, nil
		}
		if r.Passes != nil && predictsBefore(*r.Passes) { // the pass tells errors
			if m, err := l.preAlloc(ctx); err == nil {
				l.early = l.settings.before(ctx, m, mach, formatName, r.Jobs)
				opt.Reuse = m
			}
		}
	}
	res, err := lower.Lower(ctx, g, mach, opt)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Input, err)
	}
	res.Module.Format = formatName
	l.Module, l.Lowering = res.Module, &res.Report
	return nil
}

// pick returns the graph to lower: the one with the name asked for, or in the
// place asked for, since modules of one file may all have one name.
func (l *Loaded) pick(graphs []*opgraph.Graph) (*opgraph.Graph, error) {
	if len(graphs) == 0 {
		return nil, fmt.Errorf("%s has no modules", l.Input)
	}
	e := &ChoiceError{Input: l.Input, Want: l.settings.GraphModule}
	for i, g := range graphs {
		name := g.Text(g.Name)
		if e.Want == name && name != "" || e.Want == "#"+strconv.Itoa(i+1) || e.Want == "" && len(graphs) == 1 {
			return g, nil
		}
		e.Names, e.Ops = append(e.Names, name), append(e.Ops, g.NumOps())
	}
	return nil, RequestError{e}
}

// First returns what chooses the first graph: its name, or its place where
// the name is empty or another's too.
func (e *ChoiceError) First() string {
	if first := e.Names[0]; first != "" && !slices.Contains(e.Names[1:], first) {
		return first
	}
	return "#1"
}
