package whatif

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/systems/attribute"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// Base is a placed world from which changes start. It keeps what they share:
// the memory of copies, the costs that a change leaves as they are and the
// events of the blocks that it does not touch. Several goroutines may use it;
// the world must not change meanwhile.
type Base struct {
	w      *components.World
	engine scenario.Engine
	pool   *scenario.Pool
	rules  place.Rules
	// takers are those of the base, which a change of costs leaves as they are;
	// nil until a constraint that binds is asked for.
	takers *attribute.Takers
}

// NewBase returns a base over a placed world.
func NewBase(w *components.World, engine scenario.Engine) *Base {
	return &Base{w: w, engine: engine, pool: scenario.NewPool(w), rules: place.RulesFor(w)}
}

// Predict predicts the base with settings applied, and calls use with the
// changed world before its memory serves the next change. The point lacks what
// bounds it.
func (b *Base) Predict(ctx context.Context, settings []Setting, use func(*components.World, Point) error) error {
	_, err := b.one(ctx, settings, how{use: use})
	return err
}

// apart names the parameters that change no machine.
func apart(s Setting, model components.Model) bool {
	switch head, _, _ := strings.Cut(s.Name, "."); head {
	case "drop", "buffers", "rule":
		return true
	case "latency", "issue":
		return model != components.Calibrated
	}
	return false
}

// cost gives the copy its costs: the base's where no setting changes the
// machine and costs leave no notes, else those of the changed machine; then
// what the settings scale.
func (b *Base) cost(ctx context.Context, p *plan, settings []Setting) error {
	same := !slices.ContainsFunc(settings, func(s Setting) bool { return !apart(s, b.w.Config.Model) }) &&
		!slices.ContainsFunc(b.w.Module.Notes, components.Note.OfCosts)
	p.w.Module.Notes = slices.DeleteFunc(p.w.Module.Notes, components.Note.OfPrediction) // made anew
	switch {
	case !same:
		b.pool.OwnCosts(p.w, false)
		if err := b.engine.Cost(ctx, p.w); err != nil {
			return err
		}
	case len(p.scale) > 0:
		b.pool.OwnCosts(p.w, true)
	}
	p.rescale()
	return nil
}

// place places the copy: with the rules of the configured model only the
// blocks whose costs, dependencies or rules differ from the base's.
func (b *Base) place(ctx context.Context, p *plan, rules place.Rules) error {
	if b.w.Config.Model == components.Calibrated {
		return b.engine.Place(ctx, p.w)
	}
	old, in := &b.w.Module.Instr, &p.w.Module.Instr
	same := len(p.edges) == 0 && reflect.DeepEqual(rules, b.rules) &&
		slices.Equal(p.w.Module.Queues.Depth.Slice(), b.w.Module.Queues.Depth.Slice())
	return place.Again(ctx, p.w, rules, b.w, func(first, end int) bool {
		return !same || !slices.Equal(in.Issue.View(first, end), old.Issue.View(first, end)) ||
			!slices.Equal(in.Latency.View(first, end), old.Latency.View(first, end))
	})
}
