package systems

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/io/neuron/metricstore"
	"perfsim/io/psim"
	"perfsim/systems/emit"
)

// System is one step of a pass.
type System = ecs.System[World]

type condition = ecs.Condition[World]

// Pass is one registration in the pipeline.
type Pass struct {
	Ordinal int    // position in the documented default pipeline
	Name    string // registrations may share a name
	Doc     string
	// Flagged passes run only with --enable-perf-sim, as documented.
	Flagged bool
	// Make is the factory: it returns the systems of the pass. last says that
	// no later pass of the same name will run.
	Make func(p Pass, last bool) []System
}

// Options pick passes, with the meaning of the documented driver flags.
type Options struct {
	// EnablePerfSim runs the flagged passes.
	EnablePerfSim bool
	// Only replaces the pipeline: passes of these names, in this order (a name
	// stands for its first registration that was not named yet). It overrides
	// flags. In all three a name may be followed by @ and the ordinal of one
	// registration, as in perf_sim@88.
	Only []string
	// Skip subtracts all passes of these names.
	Skip []string
	// Start drops every pass before the first of that name.
	Start string
	// DumpAfter names systems, as Order names them, after which the tables of
	// the module are written to the output folder as a snapshot.
	DumpAfter []string
}

// Passes returns the default pipeline.
func Passes() []Pass { return pipeline() }

// order returns the systems of the passes that opt picks, in the order in
// which they run, each named ordinal.pass/system.
func order(opt Options) (ecs.Schedule[World], error) {
	passes, err := pick(opt)
	if err != nil {
		return ecs.Schedule[World]{}, err
	}
	s := ecs.Schedule[World]{Given: given, Reasons: reasons()}
	have := slices.Clone(given)
	for i, p := range passes {
		last := !slices.ContainsFunc(passes[i+1:], func(q Pass) bool { return q.Name == p.Name })
		for _, sys := range p.Make(p, last) {
			for _, c := range sys.Reads {
				if !slices.Contains(have, c) {
					return s, missing(p, c, passes[i:])
				}
			}
			have = append(have, sys.Writes...)
			sys.Name = fmt.Sprintf("%d.%s/%s", p.Ordinal, p.Name, sys.Name)
			s.Systems = append(s.Systems, checked(sys))
		}
	}
	if err := addDumps(&s, opt.DumpAfter); err != nil {
		return s, err
	}
	return s, s.Check()
}

// addDumps inserts a system behind each of the named ones that writes the
// tables as they are then.
func addDumps(s *ecs.Schedule[World], names []string) error {
	for _, name := range names {
		i := slices.IndexFunc(s.Systems, func(sys System) bool { return sys.Name == name })
		if i < 0 {
			var known []string
			for _, sys := range s.Systems {
				known = append(known, sys.Name)
			}
			return fmt.Errorf("no system that runs is called %q (%s)", name, strings.Join(known, ", "))
		}
		file := "after-" + strings.ReplaceAll(name, "/", "-") + psim.Exporter.Suffix
		s.Systems = slices.Insert(s.Systems, i+1, System{Name: name + "/dump", Reads: given,
			Run: func(ctx context.Context, w *World) error { return emit.Tables(ctx, &w.World, &w.Out, file) }})
	}
	return nil
}

// missing says what has to run before pass p, which needs component c; later
// are the passes that do run, from p on.
func missing(p Pass, c ecs.Component, later []Pass) error {
	var makers []string
	for _, q := range pipeline() {
		writes := slices.ContainsFunc(q.Make(q, true), func(sys System) bool { return slices.Contains(sys.Writes, c) })
		if writes && q.Name != p.Name && q.Ordinal != p.Ordinal && !slices.Contains(makers, q.Name) {
			makers = append(makers, q.Name)
		}
	}
	what := string(c)
	if c == "files.traces" {
		what = "traces"
	}
	if len(makers) == 0 {
		return fmt.Errorf("pass %s needs %s, which no pass makes", p.Name, what)
	}
	// The simulation at the end needs no flag and is the usual one.
	example := makers[len(makers)-1]
	if slices.Contains(makers, "perf_sim_at_end") {
		example = "perf_sim_at_end"
	}
	if slices.ContainsFunc(later, func(q Pass) bool { return slices.Contains(makers, q.Name) }) {
		return fmt.Errorf("pass %s needs %s, which only passes behind it make: name %s before it (--pass %s,%s)", p.Name, what, example, example, p.Name)
	}
	return fmt.Errorf("pass %s needs %s, which %s make: run one of them before it (--pass %s,%s)", p.Name, what, strings.Join(makers, ", "), example, p.Name)
}

// is reports whether name, with or without an ordinal, means pass p.
func (p *Pass) is(name string) bool {
	return name == p.Name || name == p.Name+"@"+strconv.Itoa(p.Ordinal)
}

// pick returns the passes to run.
func pick(opt Options) ([]Pass, error) {
	all := pipeline()
	for _, name := range slices.Concat(opt.Only, opt.Skip, []string{opt.Start}) {
		if name != "" && !slices.ContainsFunc(all, func(p Pass) bool { return p.is(name) }) {
			return nil, fmt.Errorf("no pass is called %q (%s)", name, strings.Join(passNames(all), ", "))
		}
	}
	if len(opt.Only) > 0 {
		var out []Pass
		used := make([]bool, len(all))
		for _, name := range opt.Only {
			i := slices.IndexFunc(all, func(p Pass) bool { return p.is(name) })
			for j := i; j < len(all); j++ {
				if all[j].is(name) && !used[j] {
					i = j
					break
				}
			}
			used[i] = true
			out = append(out, all[i])
		}
		return out, nil
	}
	if opt.Start != "" {
		all = all[slices.IndexFunc(all, func(p Pass) bool { return p.is(opt.Start) }):]
	}
	return slices.DeleteFunc(all, func(p Pass) bool {
		return slices.ContainsFunc(opt.Skip, p.is) || p.Flagged && !opt.EnablePerfSim
	}), nil
}

// passNames lists the names of passes; one that is registered more than once
// stands there with its ordinals too.
func passNames(all []Pass) []string {
	var names []string
	for i, p := range all {
		same := func(q Pass) bool { return q.Name == p.Name }
		if !slices.Contains(names, p.Name) {
			names = append(names, p.Name)
		}
		if slices.ContainsFunc(all[:i], same) || slices.ContainsFunc(all[i+1:], same) {
			names = append(names, p.Name+"@"+strconv.Itoa(p.Ordinal))
		}
	}
	return names
}

// Estimate is the result of one perf_sim pass. All are kept, though the metric
// store, as documented, keeps only the last.
type Estimate struct {
	Ordinal  int    `json:"ordinal"` // number of the pass in the pipeline
	Pass     string `json:"pass"`    // name of the pass
	Function string `json:"function"`
	Block    string `json:"block"`
	Runs     uint64 `json:"function_runs"` // "modular flow runs": call sites times trip counts around them, ours
	// Latency is absent where no row has a duration.
	Latency components.OptionalNS `json:"latency_ns"`
	// LatencyB is absent where there is no run B.
	LatencyB components.OptionalNS `json:"latency_no_antideps_ns"`
}

// moduleLatency is the type under which the store has the predicted time of
// the whole module in ns, in addition to the documented metric 42, whose last block
// wins. The name is ours.
const moduleLatency = "perfsim::ModuleEstLatency"

// estimate records the result of pass p: the documented log lines and metric
// 42, the estimate of every block in turn under one key, so that the last
// block of the last pass wins, and in addition the module's total.
func (w *World) estimate(p Pass) {
	for _, b := range w.Summary.Blocks {
		if b.InLoop {
			continue
		}
		w.Estimates = append(w.Estimates, Estimate{p.Ordinal, p.Name, b.Function, b.Block, b.Runs, b.Latency, b.LatencyB})
		if !b.Latency.Known() {
			continue
		}
		latency := uint64(b.Latency)
		if w.Log != nil {
			value := b.Runs * latency
			w.Log(strconv.FormatUint(latency, 10) + ": Estimated latency (ns), for BasicBlock " + b.Block)
			w.Log("Time-aware simulation time: " + strconv.FormatUint(value, 10))
			if b.LatencyB.Known() {
				w.Log(strconv.FormatUint(uint64(b.LatencyB), 10) + ": Estimated latency without anti-dependencies (ns), for BasicBlock " + b.Block)
			}
		}
		w.Metrics.Add(metricstore.PostSchedEstLatency, w.Module.Name, metricstore.Uint64(b.Runs*latency), metricstore.Custom)
	}
	if !w.Summary.LatencyA.Known() {
		return
	}
	w.Metrics.Set(metricstore.Key{Type: moduleLatency, Name: w.Module.Name, Aggregation: metricstore.Custom}, metricstore.Uint64(w.Latency(components.RunA)))
}
