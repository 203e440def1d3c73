package serve

import (
	"cmp"
	"context"
	"math"
	"net/http"

	"perfsim/components"
	"perfsim/systems"
	"perfsim/systems/attribute"
	"perfsim/systems/compare"
	"perfsim/systems/explain"
	"perfsim/systems/whatif"
)

// answering answers one call.
type answering func(s *Server, ctx context.Context, q *request) (any, error)

// calls lists what can be asked.
func calls() map[string]answering {
	return map[string]answering{"predict": (*Server).predict, "explain": (*Server).explain, "whatif": (*Server).whatif, "diff": (*Server).diff}
}

// passes are those of the command run.
var passes = systems.Options{EnablePerfSim: true}

// prediction is the answer to predict: the report of `run --json`, and why.
type prediction struct {
	*systems.Report
	// ModuleID names the module in later requests.
	ModuleID string `json:"module_id"`
	// Causes are the parts of the latency, the largest worth first.
	Causes []explain.Cause `json:"causes"`
}

// defaultCauses is how many causes a prediction has where the request does not
// say.
const defaultCauses = 3

// mostRows bounds the rows of lists that requests ask for.
const mostRows = 10_000

func (s *Server) predict(ctx context.Context, q *request) (any, error) {
	causes := defaultCauses
	if q.Causes != nil {
		causes = *q.Causes
	}
	if causes < 0 || causes > mostRows {
		return nil, failf(http.StatusBadRequest, "causes %d is not between 0 and %d", causes, mostRows)
	}
	res, id, err := s.simulate(ctx, q, systems.Request{Pipeline: &passes, Why: causes > 0}, false)
	if err != nil {
		return nil, err
	}
	rep, err := res.RunReport(ctx)
	if err != nil {
		return nil, err
	}
	out := &prediction{Report: rep, ModuleID: id, Causes: []explain.Cause{}}
	s.metrics.predicted(out.Instructions)
	if causes > 0 && res.CheckTimes("") == nil {
		x, err := res.Explain(ctx, explain.Options{Top: causes, Block: -1, Buffers: -1})
		if err != nil {
			return nil, err
		}
		if out.Causes, err = x.Causes(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// simulate predicts the module of a request; r says what beyond its settings.
func (s *Server) simulate(ctx context.Context, q *request, r systems.Request, operands bool) (*systems.Result, string, error) {
	set, err := s.settings(q, operands)
	if err != nil {
		return nil, "", err
	}
	l, id, err := s.load(ctx, q, input{id: q.ModuleID, path: q.Path, name: q.Name, body: q.body, what: "module_id"}, set)
	if err != nil {
		return nil, "", err
	}
	if r, err = s.request(l, set, r); err != nil {
		return nil, "", err
	}
	r.Changes = q.Changes
	res, err := systems.Simulate(ctx, r)
	if err != nil {
		return nil, "", err
	}
	res.Input = cmp.Or(q.Name, q.Path, l.Input)
	return res, id, nil
}

// timed predicts the module of a request, with its operands, and fails where
// there are no times to explain.
func (s *Server) timed(ctx context.Context, q *request) (*systems.Result, string, error) {
	res, id, err := s.simulate(ctx, q, systems.Request{Why: true}, true)
	if err == nil {
		err = res.CheckTimes(res.Input)
	}
	return res, id, err
}

// request completes a request about a loaded module.
func (s *Server) request(l *systems.Loaded, set systems.Settings, r systems.Request) (systems.Request, error) {
	var err error
	r.On, err = s.machine(set.Machine, l.Module)
	r.Loaded, r.Settings = l, set
	r.Jobs = 1
	return r, err
}

// explanation is the answer to explain: the report of `explain --json`.
type explanation struct {
	*systems.Explained
	ModuleID string `json:"module_id"`
}

func (s *Server) explain(ctx context.Context, q *request) (any, error) {
	if q.Top < 0 || q.Top > mostRows {
		return nil, failf(http.StatusBadRequest, "top %d is not between 0 and %d", q.Top, mostRows)
	}
	opt := explain.Options{Top: cmp.Or(q.Top, 5)}
	if q.FromNS != nil || q.ToNS != nil {
		w := attribute.Window{To: math.MaxInt64}
		if q.FromNS != nil {
			w.From = uint64(max(*q.FromNS, 0))
		}
		if q.ToNS != nil {
			w.To = uint64(max(*q.ToNS, 0))
		}
		if w.To <= w.From {
			return nil, failf(http.StatusBadRequest, "to_ns is not after from_ns")
		}
		opt.Window = &w
	}
	res, id, err := s.timed(ctx, q)
	if err != nil {
		return nil, err
	}
	if opt.Block, err = explain.FindBlock(res.World.Module, q.Block); err != nil {
		return nil, failf(http.StatusBadRequest, "%w", err)
	}
	x, err := res.Explain(ctx, opt)
	if err != nil {
		return nil, err
	}
	r, err := x.Report(ctx)
	if err != nil {
		return nil, err
	}
	memory, err := res.MemoryPeaks(ctx)
	return &explanation{res.Explained(r, memory), id}, err
}

// variation is the answer to whatif: the report of `whatif --json`.
type variation struct {
	*whatif.Result
	ModuleID string `json:"module_id"`
	// Elasticities are there in place of points where they were asked for.
	Elasticities []whatif.Elasticity `json:"elasticities,omitempty"`
}

func (s *Server) whatif(ctx context.Context, q *request) (any, error) {
	var assigned []whatif.Assignment
	for _, a := range q.Set {
		x, err := whatif.Parse(a)
		if err != nil {
			return nil, failf(http.StatusBadRequest, "set: %w", err)
		}
		assigned = append(assigned, x)
	}
	if (len(assigned) == 0) != q.Elasticity {
		return nil, failf(http.StatusBadRequest, "whatif takes assignments (set=pe.clock=1.2x) or elasticity=true")
	}
	points, err := whatif.Points(assigned)
	if err != nil {
		return nil, failf(http.StatusBadRequest, "set: %w", err)
	}
	res, id, err := s.timed(ctx, q)
	if err != nil {
		return nil, err
	}
	if !q.Elasticity {
		r, err := res.Sweep(ctx, points, nil)
		return &variation{Result: r, ModuleID: id}, err
	}
	list, err := res.Elasticities(ctx, nil)
	if err != nil {
		return nil, err
	}
	if q.Top > 0 {
		list = list[:min(q.Top, len(list))]
	}
	base := whatif.Point{Settings: []string{}, NS: res.World.Latency(components.RunA), NoAntiNS: res.World.LatencyB()}
	return &variation{Result: &whatif.Result{Base: base, Points: []whatif.Point{}}, ModuleID: id, Elasticities: list}, nil
}

// comparison is the answer to diff: the report of `diff --json`.
type comparison struct {
	*compare.Report
	ModuleIDA string `json:"module_id_a"` // id under which A is held
	ModuleIDB string `json:"module_id_b"` // id under which B is held
}

func (s *Server) diff(ctx context.Context, q *request) (any, error) {
	if len(q.Changes) > 0 {
		return nil, failf(http.StatusBadRequest, "diff takes no changes")
	}
	opt := compare.Options{Match: cmp.Or(q.Match, compare.MatchAuto), Align: cmp.Or(q.Align, compare.AlignKernel), Worst: 10}
	if q.Threshold != nil {
		opt.Threshold = *q.Threshold
	}
	if q.Worst != nil {
		opt.Worst = *q.Worst
	}
	if err := opt.Check(); err != nil {
		return nil, failf(http.StatusBadRequest, "%w", err)
	}
	whatA, whatB := cmp.Or(q.A, systems.SideAuto), cmp.Or(q.B, systems.SideAuto)
	for _, w := range []string{whatA, whatB} {
		if err := systems.CheckSide(w); err != nil {
			return nil, failf(http.StatusBadRequest, "side %w", err)
		}
	}
	a := input{id: q.ModuleID, path: q.Path, name: q.Name, body: q.body, what: "module_id"}
	b, one := a, q.ModuleIDB == "" && q.PathB == ""
	if !one {
		b = input{id: q.ModuleIDB, path: q.PathB, what: "module_id_b"}
	}
	qb := *q
	qb.Machine, qb.Model = cmp.Or(q.MachineB, q.Machine), cmp.Or(q.ModelB, q.Model)
	first, idA, err := s.side(ctx, q, a, whatA)
	if err != nil {
		return nil, err
	}
	second, idB, err := s.side(ctx, &qb, b, whatB)
	if err != nil {
		return nil, err
	}
	left, right, err := systems.Sides(ctx, first, second, one, !one || q.MachineB != "" || q.ModelB != "")
	if err != nil {
		return nil, err
	}
	r := compare.Compare(left, right, opt)
	if r.Matched == 0 {
		return nil, failf(http.StatusUnprocessableEntity, "no instruction of %s is one of %s (match by name or order may help)", r.NameA, r.NameB)
	}
	return &comparison{r, idA, idB}, nil
}

// side makes one side of a comparison.
func (s *Server) side(ctx context.Context, q *request, in input, what string) (*systems.Side, string, error) {
	set, err := s.settings(q, false)
	if err != nil {
		return nil, "", err
	}
	l, id, err := s.load(ctx, q, in, set)
	if err != nil {
		return nil, "", err
	}
	r, err := s.request(l, set, systems.Request{})
	return &systems.Side{What: what, Name: cmp.Or(in.name, in.path, l.Input), Request: r}, id, err
}
