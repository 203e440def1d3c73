package systems

import (
	"context"
	"slices"
	"sync"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/emit"
	"perfsim/systems/nki"
	"perfsim/systems/summary"
	"perfsim/systems/transfer"
	"perfsim/systems/whatif"
)

// Session holds a predicted module of which changes are asked. What the
// changes share is done once: reading, lowering, rebuilding of dependencies,
// and the prediction as it is. A change is given costs again only where it
// changes the machine, and only the blocks that it touches are placed again.
// Several goroutines may ask at the same time.
type Session struct {
	res  *Result
	base *whatif.Base
}

// Hold predicts a request and keeps the module. Where r.Loaded is set and
// prepared, several sessions may share it.
func Hold(ctx context.Context, r Request) (*Session, error) {
	res, err := Simulate(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Session{res, whatif.NewBase(&res.World.World, engine())}, nil
}

// Change predicts the module with settings applied and calls use with the
// prediction, which is valid during the call: the next change takes its
// memory. The point lacks what bounds it. Without settings the prediction is
// that of the module as it is.
func (s *Session) Change(ctx context.Context, settings []whatif.Setting, use func(*Result, whatif.Point) error) error {
	if len(settings) == 0 {
		w := &s.res.World.World
		return use(s.res, whatif.Point{Settings: []string{}, NS: w.Latency(components.RunA), NoAntiNS: w.LatencyB()})
	}
	return s.base.Predict(ctx, settings, func(changed *components.World, p whatif.Point) error {
		r := &Result{World: newWorld(changed.Module), Input: s.res.Input, Lowering: s.res.Lowering}
		w := r.World
		w.World, w.Rebuilt = *changed, s.res.World.Rebuilt
		if err := beyond(w); err != nil {
			return err
		}
		w.Summary, w.placed = summary.Make(&w.World), true
		remarks(w)
		w.estimate(atEnd())
		return use(r, p)
	})
}

// WithPreAllocation picks the passes of a prediction that leaves nothing
// behind, and the one that predicts a graph before buffers are allocated.
func WithPreAllocation() *Options {
	return &Options{Only: []string{"build_fdeps", "anti_dependency_analyzer", "perf_sim@88", "perf_sim_at_end"}}
}

// WriteTraces writes the traces of the prediction into the folder dir, with
// the names that perf_sim_at_end gives them. A failure leaves nothing.
func (r *Result) WriteTraces(ctx context.Context, dir string) error {
	out := emit.Output{Dir: dir}
	defer out.Abort()
	if err := emit.Traces(ctx, &r.World.World, &out, emit.FamilyAtEnd); err != nil {
		return err
	}
	return emit.Commit(&out)
}

// Serves reports whether the loaded module can be predicted on the machine of
// this name: graphs and kernels were lowered for one machine.
func (l *Loaded) Serves(machine string) bool {
	return l.Lowering == nil && l.Module.Format != nki.Format || machine == l.settings.Machine
}

// atEnd is the pass whose estimates a changed prediction stands for.
func atEnd() Pass {
	list := pipeline()
	return list[slices.IndexFunc(list, func(p Pass) bool { return p.Name == "perf_sim_at_end" })]
}

// ownCosts returns a copy of a module that a prediction may write to: its notes
// and its costs are its own.
func ownCosts(m *components.Module) *components.Module {
	c := *m
	c.Notes, c.Attributes = slices.Clone(m.Notes), slices.Clip(m.Attributes)
	c.Instr.Issue = ecs.NewColumn[uint32](m.Instr.Issue.Name())
	c.Instr.Latency = ecs.NewColumn[uint32](m.Instr.Latency.Name())
	return &c
}

// Prepare readies l for many predictions, several at a time, with other
// machines and models too. Dependencies that the input lacks are rebuilt, or
// all where the settings say so, and transfers get rows of their own. Simulate
// then writes to columns of its own and leaves the tables as they are.
func (l *Loaded) Prepare(ctx context.Context, jobs int) error {
	if l.prepared {
		return nil
	}
	if err := l.rebuild(ctx, jobs); err != nil {
		return err
	}
	l.Module.Symbols.Find([]byte("x")) // makes the index of names
	var err error
	if l.expanded, err = transfer.Expand(l.Module); err != nil {
		return err
	}
	if early := l.preAlloc; early != nil {
		var mu sync.Mutex
		var made *components.Module
		l.preAlloc = func(ctx context.Context) (*components.Module, error) {
			mu.Lock()
			defer mu.Unlock()
			if made == nil {
				m, err := early(ctx)
				if err != nil {
					return nil, err
				}
				if made, err = transfer.Expand(m); err != nil {
					return nil, err
				}
			}
			return ownCosts(made), nil
		}
	}
	l.prepared = true
	return nil
}

// Bytes returns the memory that a prepared module takes.
func (l *Loaded) Bytes() int64 {
	n := l.Module.Bytes()
	if l.expanded != nil && l.expanded != l.Module {
		n += l.expanded.Bytes()
	}
	if l.preAlloc != nil { // about as large
		n *= 2
	}
	return n
}

// rebuild derives the dependencies that the settings ask for or the input
// lacks, and keeps what was done.
func (l *Loaded) rebuild(ctx context.Context, jobs int) error {
	if l.settings.RebuildDeps {
		if err := l.canRebuild(); err != nil {
			return err
		}
	}
	w := newWorld(l.Module)
	w.RebuildDeps = l.settings.RebuildDeps
	w.Config = components.Config{Jobs: max(jobs, 1)}
	order, err := order(Options{Only: predicting.Only[:2]})
	if err != nil {
		return err
	}
	_, err = order.Run(ctx, w, nil)
	l.rebuilt = w.Rebuilt
	return err
}
