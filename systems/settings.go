package systems

import (
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/machine/grid"
	"perfsim/io/format"
	"perfsim/systems/cost"
	"perfsim/systems/lower"
	"perfsim/systems/nki"
)

// Settings are all choices of a person that change a prediction. The zero
// value leaves them to the input and to the documented defaults.
type Settings struct {
	// Model is the set of rules; NoModel takes what the input's attribute
	// perfsim.model says, else calibrated for measured profiles, replay for
	// traces and reference for the rest.
	Model components.Model
	// Loops is how often a loop body counts; LoopsUnset takes what the input's
	// attribute perfsim.loops says, else Once.
	Loops components.Loops
	// Machine is a machine's name or description file; "" takes the machine
	// that the input was made for, else trn2.
	Machine string
	// RebuildDeps derives the dependencies of all functions from access
	// patterns, not only those of functions that came without any.
	RebuildDeps bool
	// Graph says how operator graphs are lowered. Where it is the zero value,
	// lower.DefaultOptions holds.
	Graph lower.Options
	// GraphModule names the module to take where an input has several graphs,
	// or is #N for the one in place N.
	GraphModule string
	// Kernel says how a kernel source is called, and Lowering how its record
	// becomes a module. Where Lowering is the zero value, nki.DefaultOptions holds.
	Kernel   format.KernelCall
	Lowering nki.Options
	// NoPreAlloc has the first perf_sim pass place the allocated module of a
	// graph instead of the one before allocation.
	NoPreAlloc bool
}

// RequestError is an error of a request rather than of its input.
type RequestError struct{ Err error }

func (e RequestError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e RequestError) Unwrap() error { return e.Err }

func requestf(format string, args ...any) error { return RequestError{fmt.Errorf(format, args...)} }

// needsOperands reports whether a prediction of a module that was first read
// from the given format, and has the given attributes, reads its operands.
func (s *Settings) needsOperands(format string, attributes []components.Attribute) bool {
	return s.RebuildDeps || s.Model == components.Calibrated || s.Model == components.NoModel && format == "neuronprofile" ||
		slices.ContainsFunc(attributes, func(a components.Attribute) bool {
			return a.Key == components.AttributeNoDependencies || a.Key == modelAttribute && s.Model == components.NoModel
		})
}

// MachineOf returns the machine to predict module m on.
func (s *Settings) MachineOf(m *components.Module) (*machine.Machine, error) {
	if s.Machine != "" {
		return LoadMachine(s.Machine)
	}
	if m.Arch != "" {
		mach, err := machine.Embedded(m.Arch)
		if err == nil {
			return mach, nil
		}
		return nil, fmt.Errorf("the input is for %q: %w; --machine names another", m.Arch, err)
	}
	return machine.Load(defaultMachine)
}

// defaultMachine is the machine of inputs that name none.
const defaultMachine = "trn2"

// LoadMachine loads a machine that runs engine instructions, by name or file.
// Grids of cores do not: models run on them through the bench command.
func LoadMachine(name string) (*machine.Machine, error) {
	if slices.Contains(grid.Names(), name) {
		return nil, fmt.Errorf("%s is a grid of cores and has no engine instructions; 'perfsim bench --machine %s' runs models on it", name, name)
	}
	return machine.Load(name)
}

// usualModel returns the model of a module for which none was chosen: replay
// for a trace, calibrated for a measured profile, reference for the rest.
func usualModel(m *components.Module) components.Model {
	switch {
	case m.Format == "neuronprofile":
		return components.Calibrated
	case cost.ReplaysByDefault(m):
		return components.Replay
	}
	return components.Reference
}

// configOf returns the configuration for module m on machine mach.
func (s *Settings) configOf(m *components.Module, mach *machine.Machine, jobs int) (components.Config, error) {
	c := components.Config{Model: s.Model, Jobs: max(jobs, 1), Loops: s.Loops}
	if c.Model == components.NoModel {
		var err error
		if c.Model, err = components.ParseModel(m.Attribute(modelAttribute)); err != nil {
			return c, fmt.Errorf("the module's attribute %s: %w", modelAttribute, err)
		}
	}
	if c.Model == components.NoModel {
		c.Model = usualModel(m)
		if c.Model == components.Calibrated && len(mach.Calibrated.Ops) == 0 {
			c.Model = components.Reference
		}
	}
	if c.Loops == components.LoopsUnset {
		var err error
		if c.Loops, err = components.ParseLoops(m.Attribute(loopsAttribute)); err != nil {
			return c, fmt.Errorf("the module's attribute %s: %w", loopsAttribute, err)
		}
	}
	if c.Loops == components.LoopsUnset {
		c.Loops = components.Once
	}
	return c, nil
}

// The module attributes that choose the loop mode and the model.
const (
	loopsAttribute = "perfsim.loops"
	modelAttribute = "perfsim.model"
)
