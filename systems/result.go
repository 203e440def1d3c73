package systems

import (
	"context"
	"sync"
	"time"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/antidep"
	"perfsim/systems/attribute"
	"perfsim/systems/compare"
	"perfsim/systems/explain"
	"perfsim/systems/lower"
	"perfsim/systems/occupancy"
	"perfsim/systems/place"
	"perfsim/systems/query"
	"perfsim/systems/scenario"
	"perfsim/systems/summary"
	"perfsim/systems/tracklayout"
	"perfsim/systems/whatif"
	"perfsim/systems/work"
)

// Result is a predicted module. What a caller asks for beyond the times of
// the events is worked out once, when it is first asked for. A result is valid
// until its module is simulated again.
type Result struct {
	World *World
	// Input is the input's name for messages.
	Input string
	// Lowering says what became of the graph that was read; nil for others.
	Lowering *lower.Report
	// Timings has what every system took.
	Timings []Timing
	// ReadTime is the time of reading and lowering, Time that of
	// everything.
	ReadTime, Time time.Duration

	work *work.Figures // of a stream, whose rows are gone
	// What analyses write; made says which of it is there.
	mu     sync.Mutex
	made   map[ecs.Component]bool
	why    [2]*components.Attribution
	slack  []uint64
	paths  []*attribute.Path
	stalls *antidep.Report
}

// Summary returns the figures that people read first.
func (r *Result) Summary() *summary.Summary { return &r.World.Summary }

// Rules returns the rules by which the module was placed.
func (r *Result) Rules() place.Rules { return place.RulesFor(&r.World.World) }

// Engine returns the prediction for changed copies of the world.
func (r *Result) Engine() scenario.Engine { return engine() }

// reasoned returns the world with the reasons of a model that gives them as it
// places; where the request did not ask for them it places once more.
func (r *Result) reasoned(ctx context.Context) (*components.World, error) {
	w := &r.World.World
	if w.Config.Model != components.Calibrated || w.Why[components.RunA] != nil {
		return w, nil
	}
	c := scenario.Fork(w)
	c.Config.Why = true
	if err := engine().Place(ctx, c); err != nil {
		return nil, err
	}
	w.Why = c.Why
	return w, nil
}

// placed is reasoned for callers that hold no lock.
func (r *Result) placed(ctx context.Context) (*components.World, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reasoned(ctx)
}

// Work sums up what the module computes and moves.
func (r *Result) Work() *work.Figures {
	if r.work != nil {
		return r.work
	}
	return work.Make(&r.World.World)
}

// Memory finds what the module holds in device memory, SBUF and PSUM.
func (r *Result) Memory(ctx context.Context) (*occupancy.Report, error) {
	return occupancy.Make(ctx, &r.World.World)
}

// mostFollowed is how many instructions a summary follows through the memories;
// longer modules take the memory command.
const mostFollowed = 300_000

// MemoryPeaks returns the peaks of the memories for a summary: those of Memory
// where the module has access patterns, upper bounds of graphs that were lowered
// without.
func (r *Result) MemoryPeaks(ctx context.Context) ([]occupancy.Head, error) {
	m := r.World.Module
	why := ""
	switch {
	case m.Operands.Len() == 0:
		why = "the input has no access patterns"
	case m.Instr.Len() > mostFollowed:
		why = "for so many instructions: see the memory command"
	default:
		rep, err := r.Memory(ctx)
		if err != nil {
			return nil, err
		}
		return rep.Heads(), nil
	}
	if l := r.Lowering; l != nil {
		mem := r.World.Machine.Memory
		head := func(name string, peak, size int64) occupancy.Head {
			return occupancy.Head{Name: name, Peak: uint64(max(peak, 0)), Size: uint64(max(size, 0)), AtMost: true, Fits: peak <= size}
		}
		return []occupancy.Head{head("HBM", l.DRAMBytes, mem.HBMBytes), head("SBUF", l.SBUFPeak, int64(mem.SBUFBytes))}, nil
	}
	return []occupancy.Head{{Name: "HBM", Absent: why}, {Name: "SBUF", Absent: why}, {Name: "PSUM", Absent: why}}, nil
}

// Explain attributes the prediction: causes, critical path, lanes, lints.
func (r *Result) Explain(ctx context.Context, o explain.Options) (*explain.Analysis, error) {
	w, err := r.placed(ctx)
	if err != nil {
		return nil, err
	}
	o.Busy = r.World.Summary.Busy(w.Module.Lanes.Len())
	return explain.Analyse(ctx, w, engine(), o)
}

// Query answers an expression over instructions or dependencies.
func (r *Result) Query(ctx context.Context, q *query.Query) (*query.Result, error) {
	w, err := r.placed(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := r.Index(ctx); err != nil {
		return nil, err
	}
	return q.Run(ctx, w)
}

// Timeline lays the prediction out for exporters, with counters and figures.
func (r *Result) Timeline(ctx context.Context, o tracklayout.Options) (*components.Timeline, error) {
	w, err := r.placed(ctx)
	if err != nil {
		return nil, err
	}
	o.Busy = r.World.Summary.Busy(w.Module.Lanes.Len())
	return tracklayout.Make(ctx, w, o)
}

// Sweep predicts every point of changed settings.
func (r *Result) Sweep(ctx context.Context, points [][]whatif.Setting, progress func(done, total int64)) (*whatif.Result, error) {
	return whatif.Sweep(ctx, &r.World.World, engine(), points, progress)
}

// Elasticities returns by how much the prediction moves with each parameter.
func (r *Result) Elasticities(ctx context.Context, progress func(done, total int64)) ([]whatif.Elasticity, error) {
	return whatif.Elasticities(ctx, &r.World.World, engine(), progress)
}

// Side returns run A as a side of a comparison.
func (r *Result) Side(name string) *compare.Side {
	w := &r.World.World
	s := compare.Predicted(w, name, components.RunA, r.World.Summary.Busy(w.Module.Lanes.Len()))
	s.Work = r.Work()
	s.Rates = s.Work.Predicted
	return s
}

// measuredSide returns the measured times of the module as a side of a
// comparison, against the machine of the settings.
func (l *Loaded) measuredSide(name string, set *Settings) (*compare.Side, error) {
	w := &newWorld(l.Module).World
	var err error
	if w.Machine, err = set.MachineOf(l.Module); err != nil {
		return nil, err
	}
	if w.Config, err = set.configOf(l.Module, w.Machine, 1); err != nil {
		return nil, err
	}
	s := compare.Measured(l.Module)
	s.Name, s.Work = name, work.Make(w)
	s.Rates = s.Work.Measured
	return s, nil
}
