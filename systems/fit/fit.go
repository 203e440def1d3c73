package fit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/calibrated"
)

// Fit is a machine fitted to profiles, with how well each constant is known.
type Fit struct {
	Machine *machine.Machine `json:"-"`
	// Items are the fitted constants, sorted by name.
	Items []Item `json:"constants"`
	// Kept are the names of the constants that the profiles do not identify:
	// they keep the value the machine had.
	Kept []string `json:"kept"`
	// Profiles are the names of the modules fitted to.
	Profiles []string `json:"profiles"`
}

// errNoMeasurement is returned for modules without measured times.
var errNoMeasurement = errors.New("the input has no measured times to fit to")

// Run fits the calibrated model of base to measured profiles and returns a
// copy of base with the constants that the profiles identify replaced.
func Run(ctx context.Context, modules []*components.Module, base *machine.Machine) (*Fit, error) {
	if _, err := calibrated.Load(base); err != nil {
		return nil, err
	}
	profiles := make([]*profile, 0, len(modules))
	f := &Fit{Machine: clone(base)}
	for _, m := range modules {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !m.HasMeasurement() {
			return nil, fmt.Errorf("%s: %w", m.Name, errNoMeasurement)
		}
		profiles = append(profiles, newProfile(m))
		f.Profiles = append(f.Profiles, m.Name)
	}
	if err := f.fit(ctx, profiles); err != nil {
		return nil, err
	}
	return f, nil
}

// clone copies a machine so that its calibrated constants can be changed.
func clone(m *machine.Machine) *machine.Machine {
	c := *m
	c.Calibrated.Ops = maps.Clone(m.Calibrated.Ops)
	c.Calibrated.Constants = maps.Clone(m.Calibrated.Constants)
	c.Calibrated.Scaled = ""
	return &c
}

func (f *Fit) fit(ctx context.Context, profiles []*profile) error {
	mach := f.Machine
	cal := &mach.Calibrated
	constants, err := calibrated.Load(mach)
	if err != nil {
		return err
	}

	// What measurements show directly.
	s := newSamples()
	ops := map[string]*opSamples{}
	var rates dmaRates
	for _, p := range profiles {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.control(s)
		p.data(ops, mach)
		p.tensor(s, mach)
		p.dmaTiming(s, &constants.DMA, &rates)
	}
	s.dropCommonGaps()
	finishTensor(s, mach)
	wake, _ := cal.Constant("sync.Pool.wake_ns")
	if v := s.values["sync.Pool.wake_control_ns"]; len(v) > 0 {
		wake = median(slices.Clone(v))
	}
	finishTiming(s, &rates, wake)
	dropStale(s, cal)
	f.Items = append(fitOps(ops, mach), s.apply(cal)...)

	// What is left of the transfers once the data's movement is known.
	if constants, err = calibrated.Load(mach); err != nil {
		return err
	}
	s = newSamples()
	for _, p := range profiles {
		p.dmaDelays(s, &constants.DMA)
	}
	f.Items = append(f.Items, s.apply(cal)...)
	slices.SortFunc(f.Items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })

	fitted := map[string]bool{}
	for _, it := range f.Items {
		fitted[it.Name] = true
	}
	for _, n := range cal.Names() {
		if !fitted[n] {
			f.Kept = append(f.Kept, n)
		}
	}
	for _, n := range cal.OpNames() {
		if !fitted["op."+n+".base_cycles"] {
			f.Kept = append(f.Kept, "op."+n)
		}
	}
	return nil
}

// dropStale removes special gaps that an earlier fit found and this one did
// not: the measured gap is their engine's general one.
func dropStale(s *samples, cal *machine.Calibrated) {
	for _, name := range cal.Names() {
		engine, pair, ok := gapName(name)
		if !ok || pair == "" || cal.Constants[name].Mark != machine.MarkFitted {
			continue
		}
		if len(s.values[name]) == 0 && len(s.values["seq."+engine+".gap_ns"]) > 0 {
			delete(cal.Constants, name)
		}
	}
}

// Leave predicts each profile with constants fitted to the others. The scores
// are in the order of the modules.
func Leave(ctx context.Context, modules []*components.Module, base *machine.Machine, opt calibrated.Options) ([]Score, error) {
	if len(modules) < 2 {
		return nil, fmt.Errorf("leaving one profile out needs at least two, not %d", len(modules))
	}
	var out []Score
	for k, m := range modules {
		mach, err := without(ctx, modules, k, base)
		if err != nil {
			return nil, err
		}
		s, err := Judge(ctx, m, mach, opt)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// without is base fitted to all modules but the k-th. What base was fitted to
// before is forgotten first, so that nothing of the k-th remains.
func without(ctx context.Context, modules []*components.Module, k int, base *machine.Machine) (*machine.Machine, error) {
	f, err := Run(ctx, slices.Delete(slices.Clone(modules), k, k+1), Forget(base))
	if err != nil {
		return nil, err
	}
	return f.Machine, nil
}

// MedianPhase asks the model for the median over the governor's phases.
var MedianPhase = math.NaN()
