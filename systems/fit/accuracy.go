package fit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/calibrated"
	"perfsim/systems/compare"
	"perfsim/systems/cost"
	"perfsim/systems/place"
)

// Case is one way to predict, scored on every profile.
type Case struct {
	Name   string  `json:"name"`   // what was left out of the fit
	What   string  `json:"what"`   // how it was predicted
	Scores []Score `json:"scores"` // figures by profile
	Summary
}

// DMARow is the DMA part of the model alone for transfers of one kind: from
// measured triggers, in the order of time.
type DMARow struct {
	Kind      string  `json:"kind"`                // kind of transfer
	Bytes     float64 `json:"bytes"`               // bytes of a transfer
	Row       float64 `json:"row_bytes"`           // contiguous bytes of its rows
	N         int     `json:"transfers"`           // transfers of this kind
	Measured  float64 `json:"measured_median_ns"`  // median of the measured times
	Predicted float64 `json:"predicted_median_ns"` // median of the predicted times
	P50       float64 `json:"error_p50_ns"`        // absolute
	P90       float64 `json:"error_p90_ns"`        // 90th percentile of the absolute errors
	Percent   float64 `json:"error_p50_percent"`   // median error over the measured time
}

// Sensitivity is the change of predictions by ten per cent of a constant.
type Sensitivity struct {
	Name  string  `json:"name"` // constant of the machine
	Value float64 `json:"value"`
	// Up and Down are the change of the kernel time in per cent, the median
	// over profiles; Most the largest of any profile.
	Up   float64 `json:"plus_10_percent"`
	Down float64 `json:"minus_10_percent"`
	Most float64 `json:"most_percent"`
}

// Accuracy is the evidence of how well the model predicts.
type Accuracy struct {
	Fit         *Fit          `json:"fit"`           // to all profiles
	Cases       []Case        `json:"cases"`         // profiles left out in turn
	DMA         []DMARow      `json:"dma_alone"`     // transfers that run alone
	DMAAll      DMARow        `json:"dma_alone_all"` // all transfers
	Sensitivity []Sensitivity `json:"sensitivity"`   // what 10 % of a constant changes
	Profiles    []string      `json:"profiles"`
}

// Evaluate cross-validates the model over the profiles, each predicted by
// constants fitted to the others, with baselines and diagnoses.
func Evaluate(ctx context.Context, modules []*components.Module, base *machine.Machine, progress func(done, total int64)) (*Accuracy, error) {
	if len(modules) < 2 {
		return nil, fmt.Errorf("a cross-validation needs at least two profiles, not %d", len(modules))
	}
	fit, err := Run(ctx, modules, base)
	if err != nil {
		return nil, err
	}
	a := &Accuracy{Fit: fit}
	left := make([]*machine.Machine, len(modules))
	profiles := make([]*profile, len(modules))
	for k, m := range modules {
		a.Profiles = append(a.Profiles, m.Name)
		profiles[k] = newProfile(m)
		if left[k], err = without(ctx, modules, k, base); err != nil {
			return nil, err
		}
	}
	step, steps := int64(0), int64(len(cases())*len(modules))
	for _, c := range cases() {
		out := Case{Name: c.name, What: c.what}
		for k, m := range modules {
			s, err := c.predict(ctx, m, left[k], profiles[k])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			out.Scores = append(out.Scores, s)
			if step++; progress != nil {
				progress(step, steps)
			}
		}
		out.Summary = Summarize(out.Scores)
		a.Cases = append(a.Cases, out)
	}
	if err := a.dmaAlone(profiles, left); err != nil {
		return nil, err
	}
	return a, a.sensitivity(ctx, modules, fit.Machine, progress)
}

type predictor struct {
	name, what string
	predict    func(ctx context.Context, m *components.Module, mach *machine.Machine, p *profile) (Score, error)
}

// cases lists the model, diagnoses in which a part is taken from the
// measurement, and baselines.
func cases() []predictor {
	with := func(opt calibrated.Options) func(context.Context, *components.Module, *machine.Machine, *profile) (Score, error) {
		return func(ctx context.Context, m *components.Module, mach *machine.Machine, _ *profile) (Score, error) {
			return Judge(ctx, m, mach, opt)
		}
	}
	aligned := func(set func(opt *calibrated.Options, p *profile, shift float64)) func(context.Context, *components.Module, *machine.Machine, *profile) (Score, error) {
		return func(ctx context.Context, m *components.Module, mach *machine.Machine, p *profile) (Score, error) {
			shift, err := p.shift(ctx, mach)
			if err != nil {
				return Score{}, err
			}
			var opt calibrated.Options
			set(&opt, p, shift)
			return Judge(ctx, m, mach, opt)
		}
	}
	return []predictor{
		{"calibrated", "the model; nothing measured is used", with(calibrated.Options{Phase: MedianPhase})},
		{"diagnosis: phase", "the moment at which the PE clock's windows start is taken from the trace", aligned(func(o *calibrated.Options, p *profile, shift float64) {
			if len(p.windows) > 0 {
				o.Phase = math.Mod(p.windows[0].Start-shift, nominalWindow)
			}
		})},
		{"diagnosis: clock", "the PE clock's windows are taken from the trace", aligned(func(o *calibrated.Options, p *profile, shift float64) {
			o.Shift, o.Windows = shift, [][]calibrated.Window{p.windows, nil}
		})},
		{"diagnosis: DMA only", "DMA completions are taken from the trace, nothing else", aligned(func(o *calibrated.Options, p *profile, shift float64) {
			o.Shift, o.Complete, o.Phase = shift, p.completions(), MedianPhase
		})},
		{"diagnosis: DMA", "DMA completions are taken from the trace, the clock's phase too", aligned(func(o *calibrated.Options, p *profile, shift float64) {
			o.Shift, o.Complete = shift, p.completions()
			if len(p.windows) > 0 {
				o.Phase = math.Mod(p.windows[0].Start, nominalWindow)
			}
		})},
		{"diagnosis: both", "DMA completions and the clock's windows are taken from the trace", aligned(func(o *calibrated.Options, p *profile, shift float64) {
			o.Shift, o.Complete, o.Windows = shift, p.completions(), [][]calibrated.Window{p.windows, nil}
		})},
		{"no governor", "the PE always at full clock", with(calibrated.Options{NoGovernor: true})},
		{"no synchronisation", "semaphores ignored", with(calibrated.Options{NoSync: true, Phase: MedianPhase})},
		{"documented costs", "max(64, N) cycles per instruction, no latencies, with semaphores and DMA", with(calibrated.Options{Documented: true})},
		{"documented costs alone", "max(64, N) cycles per instruction, no latencies, semaphores ignored", with(calibrated.Options{Documented: true, NoSync: true})},
		{"reference", "the documented simulator of the compiler", reference},
	}
}

const nominalWindow = 4096 * 100.0 / 120

// shift is the time to add to the model's times so that the kernel starts when
// the measured one does, in ns.
func (p *profile) shift(ctx context.Context, mach *machine.Machine) (float64, error) {
	pr, err := calibrated.Predict(ctx, p.m, mach, calibrated.Options{})
	if err != nil {
		return 0, err
	}
	a, b := math.Inf(1), math.Inf(1)
	for i := range p.m.Instr.Len() {
		if compare.Kernel(p.m, i) {
			a, b = min(a, p.start[i]), min(b, pr.Start[i])
		}
	}
	return a - b, nil
}

// completions are the measured completions by row.
func (p *profile) completions() []float64 {
	c := make([]float64, p.m.Instr.Len())
	for i := range c {
		c[i] = math.NaN()
	}
	for k := range p.transfers {
		c[p.transfers[k].row] = p.transfers[k].complete
	}
	return c
}

// reference places with the documented model.
func reference(ctx context.Context, m *components.Module, mach *machine.Machine, _ *profile) (Score, error) {
	c := *m
	c.Notes = nil
	w := &components.World{Module: &c, Machine: mach, Config: components.Config{Model: cost.Reference, Jobs: 1, Loops: components.Once}, Events: components.NewEvents()}
	// The columns written must not be the module's.
	c.Instr.Issue.Drop()
	c.Instr.Latency.Drop()
	if err := cost.Fill(ctx, w); err != nil {
		return Score{}, err
	}
	if err := place.Run(ctx, w); err != nil {
		return Score{}, err
	}
	return judge(m, compare.Predicted(w, "reference", components.RunA, nil)), nil
}

// dmaAlone predicts every transfer from its measured trigger.
func (a *Accuracy) dmaAlone(profiles []*profile, left []*machine.Machine) error {
	type key struct {
		kind       string
		bytes, row float64
	}
	meas, pred := map[key][]float64{}, map[key][]float64{}
	for k, p := range profiles {
		c, err := calibrated.Load(left[k])
		if err != nil {
			return err
		}
		var list []calibrated.Trigger
		for i := range p.transfers {
			list = append(list, calibrated.Trigger{Row: p.transfers[i].row, At: p.transfers[i].trigger})
		}
		for i, done := range calibrated.Transfers(p.m, c, list) {
			t := &p.transfers[i]
			if math.IsNaN(t.complete) {
				continue
			}
			kind := "hardware"
			if t.soft {
				kind = "software"
			}
			if t.shape.Read {
				kind += " read"
			} else {
				kind += " write"
			}
			if t.shape.From != t.shape.To {
				kind += ", converting"
			}
			n := key{kind, t.shape.Bytes, t.shape.Row}
			meas[n] = append(meas[n], t.complete-t.trigger)
			pred[n] = append(pred[n], done-t.trigger)
		}
	}
	row := func(kind string, bytes, piece float64, m, p []float64) DMARow {
		var abs, rel []float64
		for i := range m {
			abs = append(abs, math.Abs(p[i]-m[i]))
			rel = append(rel, 100*math.Abs(p[i]-m[i])/m[i])
		}
		return DMARow{kind, bytes, piece, len(m), median(slices.Clone(m)), median(slices.Clone(p)), median(slices.Clone(abs)), quantile(abs, 0.9), median(rel)}
	}
	keys := slices.SortedFunc(maps.Keys(meas), func(x, y key) int {
		return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.bytes, y.bytes), cmp.Compare(x.row, y.row))
	})
	var allM, allP []float64
	for _, k := range keys {
		a.DMA = append(a.DMA, row(k.kind, k.bytes, k.row, meas[k], pred[k]))
		allM, allP = append(allM, meas[k]...), append(allP, pred[k]...)
	}
	if len(allM) > 0 {
		a.DMAAll = row("all", 0, 0, allM, allP)
	}
	return nil
}

// sensitivityPhases are how many phases of the governor a change is averaged
// over, so that a single window that flips does not decide.
const sensitivityPhases = 4

// operations are the keys of the costs that the modules' instructions have.
func operations(modules []*components.Module, mach *machine.Machine) map[string]bool {
	used := map[string]bool{}
	for _, m := range modules {
		nominal := cost.NewNominal(m, mach)
		for i := range m.Instr.Len() {
			used[nominal.Key(i)] = true
		}
	}
	return used
}

// sensitivity changes every constant and operation by ten per cent.
func (a *Accuracy) sensitivity(ctx context.Context, modules []*components.Module, mach *machine.Machine, progress func(done, total int64)) error {
	total := func(m *components.Module, mach *machine.Machine) (float64, error) {
		sum := 0.0
		phases := make([]float64, sensitivityPhases)
		for k := range phases {
			phases[k] = nominalWindow * float64(k) / sensitivityPhases
		}
		err := calibrated.PredictPhases(ctx, m, mach, phases, func(p *calibrated.Prediction) {
			lo, hi := math.Inf(1), math.Inf(-1)
			for i := range m.Instr.Len() {
				if compare.Kernel(m, i) {
					lo, hi = min(lo, p.Start[i]), max(hi, p.Start[i]+float64(p.Dur[i]))
				}
			}
			sum += hi - lo
		})
		return sum / sensitivityPhases, err
	}
	base := make([]float64, len(modules))
	for k, m := range modules {
		t, err := total(m, mach)
		if err != nil {
			return err
		}
		base[k] = t
	}
	type change struct {
		name  string
		value float64
		apply func(c *machine.Machine, by float64)
	}
	var changes []change
	for _, n := range mach.Calibrated.Names() {
		v := mach.Calibrated.Constants[n]
		if n == "governor.phases" || n == "governor.short_windows" {
			continue
		}
		changes = append(changes, change{n, v.Value, func(c *machine.Machine, by float64) {
			k := c.Calibrated.Constants[n]
			k.Value *= by
			c.Calibrated.Constants[n] = k
		}})
	}
	used := operations(modules, mach)
	for _, n := range mach.Calibrated.OpNames() {
		if !used[n] {
			continue
		}
		op := mach.Calibrated.Ops[n]
		changes = append(changes, change{"op." + n + " issue interval", op.Base, func(c *machine.Machine, by float64) {
			o := c.Calibrated.Ops[n]
			for _, f := range []*float64{&o.PerElem, &o.Base, &o.Block, &o.Min, &o.SpacingBase} {
				*f *= by
			}
			c.Calibrated.Ops[n] = o
		}}, change{"op." + n + " latency", op.LatencyNs, func(c *machine.Machine, by float64) {
			o := c.Calibrated.Ops[n]
			o.LatencyNs *= by
			c.Calibrated.Ops[n] = o
		}})
	}
	for n, ch := range changes {
		var moved [2][]float64
		most := 0.0
		for d, by := range []float64{1.1, 0.9} {
			c := clone(mach)
			ch.apply(c, by)
			for k, m := range modules {
				t, err := total(m, c)
				if err != nil {
					return err
				}
				x := 100 * (t - base[k]) / base[k]
				moved[d] = append(moved[d], x)
				if math.Abs(x) > math.Abs(most) {
					most = x
				}
			}
		}
		if most != 0 {
			a.Sensitivity = append(a.Sensitivity, Sensitivity{ch.name, ch.value, median(moved[0]), median(moved[1]), most})
		}
		if progress != nil {
			progress(int64(n+1), int64(len(changes)))
		}
	}
	slices.SortStableFunc(a.Sensitivity, func(x, y Sensitivity) int {
		return cmp.Or(cmp.Compare(max(math.Abs(y.Up), math.Abs(y.Down)), max(math.Abs(x.Up), math.Abs(x.Down))), cmp.Compare(math.Abs(y.Most), math.Abs(x.Most)))
	})
	return nil
}
