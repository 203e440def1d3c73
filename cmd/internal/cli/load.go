package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/machine/grid"
	"perfsim/io/format"
	"perfsim/io/formats"
	"perfsim/systems/cost"
)

// inputFlags are the flags of every command that reads a module and puts it
// on a machine.
type inputFlags struct {
	path    string         // of the input, where what lies beside it counts
	command *cobra.Command // what runs, for what an error tells to type
	format  string
	machine string
	model   string
	loops   string
	jobs    int
	quiet   bool
	// noVerify leaves out the checksums of snapshots.
	noVerify bool
	// skipOperands tells whether the command can do without the operands of a
	// module that was first read from the given format; nil for no.
	skipOperands func(format string) bool
	// measuredOnly is set by commands that have no use for operator graphs.
	measuredOnly bool
	lowering     lowerFlags
	// rebuildDeps is set by commands that run the dependency passes.
	rebuildDeps bool
	// policy and dumpSched are set by commands that run post_sched.
	policy    int
	dumpSched bool
}

func (f *inputFlags) add(c *cobra.Command) {
	fl := c.Flags()
	f.addReading(c)
	f.addGraph(c)
	fl.StringVar(&f.model, "model", "", "reference, calibrated or replay; default: calibrated for measured profiles, replay for traces, reference for the rest")
	fl.StringVar(&f.loops, "loops", "", "once (a loop body counts once, as documented) or trips (as often as its trip count); default: what the input asks for, else once")
}

// addReading adds the flags of commands that read a module.
func (f *inputFlags) addReading(c *cobra.Command) {
	c.Flags().StringVar(&f.format, "format", "", "format of the input instead of looking at what it holds")
	c.Flags().BoolVar(&f.noVerify, "no-verify", false, "do not check the checksums of a snapshot; what keeps a bad file from doing harm is checked all the same")
	f.addWorking(c)
}

// addGraph adds the flags of commands that read graphs too, which are lowered
// for a machine.
func (f *inputFlags) addGraph(c *cobra.Command) {
	c.Flags().StringVar(&f.machine, "machine", "", "machine by name (see 'perfsim machine list') or description file; default: what the input was made for, else trn2")
	f.lowering.add(c)
}

// addWorking adds the flags of commands that work for a while.
func (f *inputFlags) addWorking(c *cobra.Command) {
	c.Flags().IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "goroutines that work; results do not depend on it")
	c.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "no progress on the terminal")
}

// check finds wrong values before any work.
func (f *inputFlags) check() error {
	switch f.model {
	case "", "reference", "calibrated", "replay":
	default:
		return usagef("--model %q is not reference, calibrated or replay", f.model)
	}
	switch f.loops {
	case "", "once", "trips":
	default:
		return usagef("--loops %q is not once or trips", f.loops)
	}
	if f.jobs < 1 {
		return usagef("--jobs %d is not at least 1", f.jobs)
	}
	return nil
}

// load reads the module at path.
func (f *inputFlags) load(ctx context.Context, c *cobra.Command, path string, p *progress) (*components.Module, error) {
	f.command = c
	src, err := format.Open(ctx, path, c.InOrStdin())
	if err != nil {
		return nil, err
	}
	defer src.Close()
	imp, err := formats.Find(src, f.format)
	if err != nil {
		return nil, err
	}
	p.start("reading", src.Size, true)
	src.OnProgress(p.set)
	if imp.Graph != nil && f.measuredOnly {
		return nil, fmt.Errorf("%s: a graph (%s) has no measured times; measured profiles and traces of the compiler's simulator have", src.Name, imp.Name)
	}
	if imp.Graph != nil {
		graphs, err := imp.Graph(ctx, src, format.Options{Jobs: f.jobs})
		p.finish()
		if err != nil {
			return nil, err
		}
		return f.lower(ctx, graphs, src.Name, imp.Name, p)
	}
	m, err := imp.Module(ctx, src, format.Options{Jobs: f.jobs, NoVerify: f.noVerify, SkipOperands: f.skipOperands})
	p.finish()
	return m, err
}

// machineFor returns the machine to simulate on.
func (f *inputFlags) machineFor(m *components.Module) (*machine.Machine, error) {
	if f.machine != "" {
		return loadMachine(f.machine)
	}
	if m.Arch != "" {
		mach, err := machine.Load(m.Arch)
		if err == nil {
			return mach, nil
		}
		return nil, fmt.Errorf("the input is for %q: %w; --machine names another", m.Arch, err)
	}
	return machine.Load("trn2")
}

// loadMachine loads a machine that runs engine instructions. Grids of cores
// do not: their models run by way of the bench command.
func loadMachine(name string) (*machine.Machine, error) {
	if slices.Contains(grid.Names(), name) {
		return nil, fmt.Errorf("%s is a grid of cores and has no engine instructions; 'perfsim bench --machine %s' runs models on it", name, name)
	}
	return machine.Load(name)
}

// configure returns the world's configuration for a module.
func (f *inputFlags) configure(m *components.Module, mach *machine.Machine) (components.Config, error) {
	c := components.Config{Model: f.model, Jobs: f.jobs, Loops: f.loops}
	if c.Model == "" {
		c.Model = "reference"
		if cost.ReplaysByDefault(m) {
			c.Model = "replay"
		}
		if m.Format == "neuronprofile" && len(mach.Calibrated.Ops) > 0 {
			c.Model = "calibrated"
		}
	}
	if c.Loops == "" {
		c.Loops = m.Attribute("perfsim.loops")
	}
	if c.Loops == "" {
		c.Loops = "once"
	}
	if c.Loops != "once" && c.Loops != "trips" {
		return c, errors.New("the module's attribute perfsim.loops is neither once nor trips")
	}
	return c, nil
}
