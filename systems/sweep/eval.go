package sweep

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/io/workq"
	"perfsim/systems"
	"perfsim/systems/whatif"
)

// Choice is a resolved choice of options.
type Choice struct {
	Reading  systems.Reading
	Settings systems.Settings
	// Check fails where options do not apply to what was read; may be nil.
	Check func(*systems.Loaded) error
}

// Resolver reads options, each NAME=VALUE.
type Resolver func(options []string) (Choice, error)

// Place says where the files of a plan lie, where that is not as the plan
// names them. A path must end in the name that the user gave the file.
type Place interface {
	Input(ctx context.Context, in Input) (path string, err error)
	Machine(m Machine) (path string, err error)
}

// Evaluator predicts cases of a plan. What cases share is done once. Several
// goroutines may use it.
type Evaluator struct {
	plan    *Plan
	resolve Resolver
	place   Place
	jobs    int
	files   string
	buffers bool // a change names buffers

	loaded   cache[*systems.Loaded]
	sessions cache[*systems.Session]
}

// NewEvaluator returns an evaluator for jobs goroutines. place may be nil.
// Where files is not "" it is a folder in which every case gets a folder with
// its report and its traces.
func NewEvaluator(p *Plan, resolve Resolver, place Place, jobs int, files string) (*Evaluator, error) {
	if p.settings == nil {
		if err := p.changes(p.Changes[1:]); err != nil {
			return nil, err
		}
	}
	e := &Evaluator{plan: p, resolve: resolve, place: place, jobs: max(jobs, 1), files: files}
	// One more than work at a time, so that who helps another worker does not
	// drop what a third needs.
	e.loaded.room, e.sessions.room = e.jobs+1, e.jobs+1
	e.buffers = slices.ContainsFunc(p.settings, func(list []whatif.Setting) bool {
		return slices.ContainsFunc(list, func(s whatif.Setting) bool { return s.Name == "buffers" || s.Name == "drop" })
	})
	return e, nil
}

// Do works on a task whose body is the number of a case; the result is a row
// for the record. A case that fails is a row with its error.
func (e *Evaluator) Do(ctx context.Context, t workq.Task) ([]byte, error) {
	n, err := strconv.Atoi(string(t.Body))
	if err != nil || n < 0 || n >= e.plan.Len() {
		return nil, fmt.Errorf("task %.40q is no case of the sweep", t.Body)
	}
	var row caseRow
	c := e.plan.Case(n)
	in := paths{input: e.plan.Inputs[c.Input].Name, machine: e.plan.Machines[c.Machine].Name}
	if err = e.locate(ctx, c, &in); err == nil {
		err = e.predict(ctx, c, in, &row)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		text := err.Error()
		row = caseRow{Error: &text}
	}
	file, _ := systems.InputFile(in.input)
	machine := ""
	if e.plan.Machines[c.Machine].Text != "" {
		machine = in.machine
	}
	row.mark(file, machine)
	return row.encode()
}

// paths are the names under which the files of a case are read.
type paths struct{ input, machine string }

func (e *Evaluator) locate(ctx context.Context, c Case, in *paths) (err error) {
	if e.place == nil {
		return nil
	}
	if in.input, err = e.place.Input(ctx, e.plan.Inputs[c.Input]); err != nil {
		return err
	}
	if m := e.plan.Machines[c.Machine]; m.Text != "" {
		in.machine, err = e.place.Machine(m)
	}
	return err
}

// predict fills the row of a case. A panic is an error of the case, so that one
// input does not end the sweep.
func (e *Evaluator) predict(ctx context.Context, c Case, in paths, row *caseRow) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("internal error: %v", x)
		}
	}()
	s, err := e.session(ctx, c, in)
	if err != nil {
		return err
	}
	settings := e.plan.settings[c.Changes]
	return s.Change(ctx, settings, func(r *systems.Result, p whatif.Point) error {
		rep := r.Report()
		row.figures(rep, p, len(settings) > 0)
		if e.files == "" {
			return nil
		}
		rep.Input = e.plan.Inputs[c.Input].Name
		if rep.Memory, err = r.MemoryPeaks(ctx); err != nil {
			return err
		}
		return writeFiles(ctx, e.files, c, r, rep)
	})
}

// session returns the module of a case on its machine, predicted as it is.
func (e *Evaluator) session(ctx context.Context, c Case, in paths) (*systems.Session, error) {
	key := fmt.Sprint(c.Input, c.Machine, c.Model, c.Options)
	return e.sessions.get(ctx, key, func() (*systems.Session, error) {
		choice, err := e.choice(c, in)
		if err != nil {
			return nil, err
		}
		l, err := e.load(ctx, c, in, &choice)
		if err != nil {
			return nil, err
		}
		r := systems.Request{Reading: choice.Reading, Settings: choice.Settings, Loaded: l}
		if l.Lowering != nil { // a graph: its latency before allocation too
			r.Pipeline = systems.WithPreAllocation()
		}
		return systems.Hold(ctx, r)
	})
}

// choice returns the reading and the settings of a case.
func (e *Evaluator) choice(c Case, in paths) (Choice, error) {
	choice, err := e.resolve(words(e.plan.Options[c.Options]))
	if err != nil {
		return choice, err
	}
	choice.Reading.Path, choice.Reading.Jobs = in.input, e.jobs
	choice.Settings.Machine = in.machine
	if e.buffers {
		choice.Settings.Graph.Operands = true
	}
	choice.Settings.Model, err = components.ParseModel(e.plan.Models[c.Model])
	return choice, err
}

// load reads the input of a case with its dependencies rebuilt. Where reading
// depends on the machine, as for graphs and kernels, every machine has its own.
func (e *Evaluator) load(ctx context.Context, c Case, in paths, choice *Choice) (*systems.Loaded, error) {
	read := func() (*systems.Loaded, error) {
		l, err := systems.Load(ctx, &choice.Reading, choice.Settings)
		if err == nil && choice.Check != nil {
			err = choice.Check(l)
		}
		if err == nil {
			err = l.Prepare(ctx, e.jobs)
		}
		return l, err
	}
	l, err := e.loaded.get(ctx, fmt.Sprint(c.Input, c.Options), read)
	if err != nil || l.Serves(in.machine) {
		return l, err
	}
	return read()
}
