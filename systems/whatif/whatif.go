// Package whatif predicts anew with something changed: a clock, a rate, the
// number of buffers, dependencies left out, any constant of the machine. It
// works on copies; the world it starts from stays as it is.
package whatif

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
	"perfsim/systems/antidep"
	"perfsim/systems/attribute"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// Point is the prediction with one combination of settings.
type Point struct {
	Settings []string              `json:"settings"`               // NAME=VALUE
	NS       uint64                `json:"latency_ns"`             // latency of run A with the settings
	NoAntiNS components.OptionalNS `json:"latency_no_antideps_ns"` // latency of run B with the settings
	Change   float64               `json:"change"`                 // against the base: -0.1 is 10 % less
	Bound    string                `json:"bound"`                  // class of most of the time on the critical path; of points that are printed
	// Memory is the content that the on-chip memories have to hold, where
	// buffers=N was asked for. Where that is more than there is, TooMuch is
	// set and Fitting is the prediction with as many copies as fit.
	Memory  []antidep.Need `json:"memory,omitempty"`
	TooMuch bool           `json:"does_not_fit,omitempty"`
	Fitting *Point         `json:"what_fits,omitempty"`
	Notes   []string       `json:"notes,omitempty"`
}

// Result is a base and what became of it.
type Result struct {
	Base   Point   `json:"base"`
	Points []Point `json:"points"` // predictions with settings
}

// Sweep predicts all points, several at a time. progress, where not nil, is
// called with how many are done.
func Sweep(ctx context.Context, w *components.World, engine scenario.Engine, points [][]Setting, progress func(done, total int64)) (*Result, error) {
	r := &Result{Points: make([]Point, len(points))}
	r.Base = Point{Settings: []string{}, NS: w.Latency(components.RunA), NoAntiNS: w.LatencyB()}
	base := NewBase(w, engine)
	base.takers = attribute.NewTakers(w.Module, base.rules)
	bound, err := attribute.Bound(ctx, w, base.rules, components.RunA, base.takers)
	if err != nil {
		return nil, err
	}
	r.Base.Bound = bound.String()
	var done atomic.Int64
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	worth := sync.OnceValues(func() (map[antidep.Buffer]int, error) { return worthOf(ctx, w, engine) })
	for k, settings := range points {
		g.Go(func() error {
			p, err := base.one(ctx, settings, how{bound: true})
			if err == nil && p.TooMuch {
				var f Point
				f, err = base.one(ctx, settings, how{bound: true, fit: worth})
				p.Fitting = &f
			}
			if err != nil {
				return err
			}
			r.Points[k] = p
			if n := done.Add(1); progress != nil {
				progress(n, int64(len(points)))
			}
			return nil
		})
	}
	return r, g.Wait()
}

// change is the relative difference of b to a.
func change(a, b uint64) float64 {
	if a == 0 {
		return 0
	}
	return float64(b)/float64(a) - 1
}

// how says how to predict a point.
type how struct {
	bound bool // find its bound
	// fit limits buffers=N to what fits; it returns the order in which buffers
	// get copies.
	fit func() (map[antidep.Buffer]int, error)
	// use, where not nil, is called with the changed world.
	use func(*components.World, Point) error
}

// one predicts one point.
func (b *Base) one(ctx context.Context, settings []Setting, h how) (Point, error) {
	p := &plan{base: b.w, w: b.pool.Get(), fit: h.fit}
	defer b.pool.Put(p.w)
	p.w.Config.Jobs = 1
	p.w.Config.Why = h.bound
	p.w.Machine = clone(b.w.Machine)
	out := Point{Settings: []string{}}
	for _, s := range settings {
		if err := p.apply(s); err != nil {
			return Point{}, err
		}
		out.Settings = append(out.Settings, s.Name+"="+s.Text)
	}
	if err := b.cost(ctx, p, settings); err != nil {
		return Point{}, err
	}
	if p.runB && h.use != nil {
		// Both runs of the changed world are those without anti-dependencies.
		p.runB = false
		p.edges = append(p.edges, without(components.ClassAnti))
	}
	for _, f := range p.edges {
		if err := f(ctx, p); err != nil {
			if ctx.Err() != nil {
				return Point{}, ctx.Err()
			}
			return Point{}, &SettingError{Setting: strings.Join(out.Settings, " "), Err: err}
		}
	}
	rules := place.RulesFor(p.w)
	for _, f := range p.rules {
		f(&rules)
	}
	if err := b.place(ctx, p, rules); err != nil {
		return Point{}, err
	}
	run := components.RunA
	if p.runB {
		run = components.RunB
	}
	out.NS, out.NoAntiNS, out.Notes = p.w.Latency(run), p.w.LatencyB(), p.notes
	out.Memory, out.TooMuch = p.needs, p.tooMuch
	out.Change = change(b.w.Latency(components.RunA), out.NS)
	if h.bound {
		class, err := attribute.Bound(ctx, p.w, rules, run, b.takers)
		if err != nil {
			return out, err
		}
		out.Bound = class.String()
	}
	if h.use != nil {
		return out, h.use(p.w, out)
	}
	return out, nil
}

// clone copies a machine with the lists and maps that settings change.
func clone(m *machine.Machine) *machine.Machine {
	c := *m
	c.Reference.Queues = slices.Clone(m.Reference.Queues)
	c.Calibrated.Ops = maps.Clone(m.Calibrated.Ops)
	c.Calibrated.Constants = maps.Clone(m.Calibrated.Constants)
	return &c
}

// rescale multiplies the costs that latency.X and issue.X name.
func (p *plan) rescale() {
	in := &p.w.Module.Instr
	issue, latency := in.Issue.Slice(), in.Latency.Slice()
	engine, opcode, lane := in.Engine.Slice(), in.Opcode.Slice(), in.Lane.Slice()
	lanes := p.w.Module.Lanes.Engine.Slice()
	times := func(v uint32, f float64) uint32 {
		return uint32(min(math.Round(float64(v)*f), math.MaxUint32))
	}
	for _, x := range p.scale {
		for i := range issue {
			switch {
			case x.lanes != nil:
				if !x.lanes[lane[i]] {
					continue
				}
			case !x.byEngine && opcode[i] != x.opcode:
				continue
			// Work on the DMA lane counts for the DMA, not for the engine
			// that triggers it.
			case x.byEngine && lanes[lane[i]] == components.DMA && x.engine != components.DMA:
				continue
			case x.byEngine && lanes[lane[i]] != components.DMA && engine[i] != x.engine:
				continue
			}
			// What takes time keeps 1 ns of it: rules look at whether there is any.
			latency[i] = max(times(latency[i], x.result), min(latency[i], 1))
			issue[i] = times(issue[i], x.issue)
		}
	}
}

// Elasticity is how much a parameter matters: a change of the parameter by
// one per cent changes the prediction by so many per cent.
type Elasticity struct {
	Name  string  `json:"name"`       // parameter
	Value float64 `json:"elasticity"` // relative change of the latency over that of the parameter
	// Low and High are the predictions with the parameter 5 % lower and higher.
	Low  uint64 `json:"low_ns"`
	High uint64 `json:"high_ns"`
}

// nudge is by how much a parameter is moved to see what it does.
const nudge = 0.05

// Elasticities tries every parameter that may matter under the world's model,
// and returns those that do, the one that matters most first.
func Elasticities(ctx context.Context, w *components.World, engine scenario.Engine, progress func(done, total int64)) ([]Elasticity, error) {
	names := candidates(w)
	list := make([]Elasticity, len(names))
	var done atomic.Int64
	g, ctx := ecs.NewGroup(ctx, w.Config.Jobs)
	ns, base := w.Latency(components.RunA), NewBase(w, engine)
	for k, name := range names {
		g.Go(func() error {
			e := Elasticity{Name: name}
			for _, x := range []struct {
				f  float64
				to *uint64
			}{{1 - nudge, &e.Low}, {1 + nudge, &e.High}} {
				p, err := base.one(ctx, []Setting{{Name: name, Text: trim(x.f) + "x", Factor: true, Number: true, Value: x.f}}, how{})
				if err != nil {
					return err
				}
				*x.to = p.NS
			}
			if ns > 0 {
				e.Value = (float64(e.High) - float64(e.Low)) / (2 * nudge) / float64(ns)
			}
			list[k] = e
			if n := done.Add(1); progress != nil {
				progress(n, int64(len(names)))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e Elasticity) bool { return e.Low == ns && e.High == ns })
	slices.SortStableFunc(list, func(a, b Elasticity) int { return cmp.Compare(math.Abs(b.Value), math.Abs(a.Value)) })
	return list, nil
}
