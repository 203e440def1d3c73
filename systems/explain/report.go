// Package explain makes the report of the causes of a prediction: what bounds
// it, the causes that cost most with their places and what each is worth at
// most, what every engine's time is, and what a person who knows the machine
// would look at first.
package explain

import (
	"context"
	"slices"

	"perfsim/components"
	"perfsim/systems/antidep"
	"perfsim/systems/attribute"
	"perfsim/systems/cost"
	"perfsim/systems/index"
	"perfsim/systems/place"
	"perfsim/systems/scenario"
)

// Share is a part of something, in ns and as a fraction of the whole.
type Share struct {
	Name  string  `json:"name"`  // class, cause, lane, opcode or kind
	NS    uint64  `json:"ns"`    // its time, ns
	Share float64 `json:"share"` // part of the latency
}

// Place is where something comes from.
type Place struct {
	Source      string `json:"source,omitempty"` // file:line, else HLO name
	Instruction string `json:"instruction"`      // an example, the longest
	Count       uint64 `json:"count"`            // of such instructions
}

// Cause is one of the things that make the makespan.
type Cause struct {
	Name  string  `json:"name"`    // what takes the time
	Kind  string  `json:"kind"`    // "work", "constraint" or "runtime"
	NS    uint64  `json:"path_ns"` // time on the critical path of run A
	Share float64 `json:"path_share"`
	// AtMost is the fall of the prediction if the work took no time or the
	// constraint did not exist: the difference of two predictions where Exact
	// is set, else an upper bound where Bounded is. Of other causes nothing
	// is known but their time on the path.
	AtMost  uint64  `json:"at_most_ns"`
	Gain    float64 `json:"at_most_share"` // at_most_ns over latency_ns
	Exact   bool    `json:"exact"`
	Bounded bool    `json:"bounded"`
	Place   Place   `json:"place"` // where most of it is
}

// Engine is the time of one lane.
type Engine struct {
	Lane         uint16  `json:"lane"`
	Name         string  `json:"name"`         // name of the lane
	Instructions uint64  `json:"instructions"` // instructions of the lane, weighted
	BusyNS       uint64  `json:"busy_ns"`      // as run has it; of a block or window issue, stretch and finish
	IssueNS      uint64  `json:"issue_ns"`
	StretchNS    uint64  `json:"stretch_ns"` // busy time beyond issue while instructions execute
	FinishNS     uint64  `json:"finish_ns"`  // busy time until results are there
	ControlNS    uint64  `json:"control_ns"` // the sequencer's own instructions, waits for semaphores included
	Idle         []Share `json:"idle"`       // by cause, longest first; shares of the makespan
	Busy         float64 `json:"busy"`       // share of the makespan
	PathNS       uint64  `json:"path_ns"`    // its time on the critical path of run A
	// WaitsFor is the lane whose instructions are waited for longest.
	WaitsFor   string `json:"waits_for,omitempty"`
	WaitsForNS uint64 `json:"waits_for_ns,omitempty"` // idle time that goes to the lane it waits for most
}

// Stall is a wait that repeats.
type Stall struct {
	Lane       string  `json:"lane"`
	Cause      string  `json:"cause"`
	Opcode     string  `json:"opcode"`
	Source     string  `json:"source,omitempty"`      // file:line of the instruction that waits
	Holder     string  `json:"holder,omitempty"`      // opcode
	HolderLane string  `json:"holder_lane,omitempty"` // lane of what holds it
	NS         uint64  `json:"ns"`                    // time of such waits, weighted
	Share      float64 `json:"share"`                 // part of the latency
	Count      uint64  `json:"count"`                 // number of such waits, weighted
	Longest    uint64  `json:"longest_ns"`            // longest one
	Example    string  `json:"example"`               // name of one of the instructions
}

// Line is a place in the user's program.
type Line struct {
	Source  string  `json:"source"`  // file:line in the user's program
	NS      uint64  `json:"path_ns"` // time of its steps of the critical path
	Share   float64 `json:"path_share"`
	Count   uint64  `json:"instructions"` // instructions of the line on the path
	Example string  `json:"example"`
}

// Pattern is work that repeats on the critical path.
type Pattern struct {
	Lane    string  `json:"lane"`
	Opcode  string  `json:"opcode"`
	Source  string  `json:"source,omitempty"` // file:line in the user's program
	Via     string  `json:"via"`              // what it releases
	NS      uint64  `json:"ns"`               // time of the steps, weighted
	Share   float64 `json:"share"`            // part of the latency
	Count   uint64  `json:"count"`            // number of steps, weighted
	Example string  `json:"example"`
}

// Buffer is the cost of one buffer's anti-dependencies.
type Buffer struct {
	Name    string  `json:"name"`             // buffer: tensor, or memory and address range
	Tensor  string  `json:"tensor,omitempty"` // tensor that lies there
	Memory  string  `json:"memory,omitempty"` // memory it lies in
	Lo      uint64  `json:"lo"`               // first byte of a partition
	Hi      uint64  `json:"hi"`               // byte behind the last
	Bytes   uint64  `json:"bytes"`            // per partition on the chip
	Edges   int     `json:"edges"`
	Binding int     `json:"binding"`
	OnPath  int     `json:"on_critical_path"` // binding dependencies on the critical path
	CostNS  uint64  `json:"cost_ns"`          // latency less that without the buffer's anti-dependencies
	Share   float64 `json:"cost_share"`       // cost_ns over latency_ns
	Exact   bool    `json:"exact"`
	Bounded bool    `json:"bounded"`          // CostNS is an upper bound where not exact
	Extra   int     `json:"extra_buffers"`    // copies of the buffer that end the waits
	Writer  string  `json:"writer,omitempty"` // instruction that waits longest
	Reader  string  `json:"reader,omitempty"` // instruction that it waits for
	WaitNS  uint64  `json:"longest_wait_ns"`  // longest wait for the buffer
}

// Block compares the runs of a block.
type Block struct {
	Function string                `json:"function"`
	Block    string                `json:"block"`
	Runs     uint64                `json:"runs"`                   // how often it runs
	A        uint64                `json:"latency_ns"`             // latency of the block in run A, one execution
	B        components.OptionalNS `json:"latency_no_antideps_ns"` // latency of the block in run B, one execution
	Bound    string                `json:"bound"`                  // class of most of its time on the critical path
}

// Report is everything; a caller prints as much as asked for.
type Report struct {
	SpanNS     uint64                `json:"latency_ns"`             // of what is looked at: the whole prediction, or a block or window of it
	NoAntiNS   components.OptionalNS `json:"latency_no_antideps_ns"` // latency of run B of the same part
	MeasuredNS *uint64               `json:"measured_ns"`            // from the first measured event's start to the last one's end
	Window     string                `json:"window,omitempty"`       // part of the time that is looked at

	// Bound is the class of most of the time on the critical path: compute,
	// memory, communication, latency or runtime.
	Bound      string    `json:"bound"`
	BoundShare float64   `json:"bound_share"`   // part of the latency that this class has
	Classes    []Share   `json:"classes"`       // time on the critical path by class
	Causes     []Cause   `json:"causes"`        // what is worth most first
	Engines    []Engine  `json:"engines"`       // lanes: busy time, idle time by cause
	Stalls     []Stall   `json:"stalls"`        // waits by cause and by what held them, longest first
	Lines      []Line    `json:"lines"`         // time on the critical path by source line
	Path       PathShape `json:"critical_path"` // shape of the critical path
	Patterns   []Pattern `json:"patterns"`      // steps of the critical path by lane and opcode
	Opcodes    []Share   `json:"opcodes"`       // of the critical path
	Kinds      []Share   `json:"kinds"`         // of the critical path, by what releases the next step
	Buffers    []Buffer  `json:"antideps"`      // buffers whose reuse holds instructions
	Lints      []Lint    `json:"lints"`         // advice, what is worth most first
	Blocks     []Block   `json:"blocks"`        // blocks, largest first
}

// PathShape says how long the critical path is in steps, and what of it
// belongs to no instruction.
type PathShape struct {
	Steps    uint64  `json:"steps"`     // instructions on the path
	LeadNS   uint64  `json:"lead_ns"`   // time before its first instruction
	TailNS   uint64  `json:"tail_ns"`   // time behind its last
	DelaysNS uint64  `json:"delays_ns"` // of the model, between steps
	Delays   float64 `json:"delays"`    // delays of the model between steps
}

// Options say what to look at and how much to work out.
type Options struct {
	// Top bounds the rows of each list; 0 stands for 5.
	Top int
	// Block restricts to one top-level block where not negative, Window to a
	// part of the time of the blocks.
	Block  int
	Window *attribute.Window
	// Buffers is how many buffers get an exact cost; 0 stands for Top, and
	// negative leaves anti-dependencies per buffer out.
	Buffers int
	// Busy is the busy time of run A by lane in ns, for reports on the whole.
	Busy []uint64
	// Progress is called with the steps done.
	Progress func(done, total int64)
}

// Analysis is a placed world with its attribution: what a report and the
// questions behind it are made of.
type Analysis struct {
	World  *components.World
	Engine scenario.Engine
	Rules  place.Rules
	Why    *components.Attribution // of run A
	Paths  []*attribute.Path
	opt    Options
	count  attribute.Options
}

// Analyse attributes a placed world.
func Analyse(ctx context.Context, w *components.World, engine scenario.Engine, o Options) (*Analysis, error) {
	if o.Top <= 0 {
		o.Top = 5
	}
	if o.Buffers == 0 {
		o.Buffers = o.Top
	}
	x := &Analysis{World: w, Engine: engine, Rules: place.RulesFor(w), opt: o,
		count: attribute.Options{Trips: w.Config.Loops == components.Trips, Window: o.Window, Block: o.Block}}
	var err error
	if x.Why, err = attribute.Bind(ctx, w, x.Rules, components.RunA); err != nil {
		return nil, err
	}
	x.Paths, err = attribute.CriticalPath(ctx, w, x.Rules, x.Why, x.count)
	return x, err
}

// Causes returns the causes of Report alone.
func (x *Analysis) Causes(ctx context.Context) ([]Cause, error) {
	r := Report{Causes: []Cause{}}
	err := x.causes(ctx, &r, attribute.Report(x.World.Module, x.Paths), nil)
	return r.Causes, err
}

func (x *Analysis) tell(done int64) {
	if x.opt.Progress != nil {
		x.opt.Progress(done, 5)
	}
}

// Report makes the report.
func (x *Analysis) Report(ctx context.Context) (*Report, error) {
	w, m := x.World, x.World.Module
	x.tell(1)
	lanes, err := attribute.Lanes(ctx, w, x.Rules, x.Why, x.count)
	if err != nil {
		return nil, err
	}
	x.tell(2)
	path := attribute.Report(m, x.Paths)
	r := &Report{SpanNS: path.Span, NoAntiNS: w.LatencyB()}
	if span, ok := m.MeasuredSpan(); ok && m.Attribute(cost.DocumentedTrace) == "" {
		r.MeasuredNS = &span
	}
	if x.count.Block >= 0 {
		r.NoAntiNS = w.BlockLatencyB(w.Blocks[x.count.Block])
		r.MeasuredNS = nil
	}
	r.classes(path)
	r.path(m, path, x.opt.Top)
	r.engines(m, lanes, path, x.opt.Top)
	if x.opt.Busy != nil && x.count.Window == nil && x.count.Block < 0 {
		for k := range r.Engines {
			e := &r.Engines[k]
			e.BusyNS = x.opt.Busy[e.Lane]
			e.Busy = share(e.BusyNS, lanes.Span)
		}
	}
	x.tell(3)
	r.Lints = x.lints(r, path)
	var others []*trial
	for _, l := range r.Lints {
		if l.less != nil {
			others = append(others, l.less)
		}
	}
	if err := x.causes(ctx, r, path, others); err != nil {
		return nil, err
	}
	x.tell(4)
	if err := x.buffers(ctx, r); err != nil {
		return nil, err
	}
	r.blocks(x)
	if err := x.worths(ctx, r.Lints); err != nil {
		return nil, err
	}
	x.tell(5)
	return r, nil
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// buffers adds what the buffers' anti-dependencies cost.
func (x *Analysis) buffers(ctx context.Context, r *Report) error {
	w, m := x.World, x.World.Module
	if x.opt.Buffers < 0 || w.Latency(components.RunA) <= w.Latency(components.RunB) && !slices.Contains(x.Why.Cause.Slice(), components.CauseAnti) {
		return nil
	}
	table, err := antidep.Buffers(ctx, m, index.AntiEdges(w), w.Config.Jobs)
	if err != nil {
		return err
	}
	paths := x.Paths
	if x.count.Trips || x.count.Window != nil {
		once := x.count
		once.Trips, once.Window = false, nil
		if paths, err = attribute.CriticalPath(ctx, w, x.Rules, x.Why, once); err != nil {
			return err
		}
	}
	top := x.opt.Buffers
	if x.semaphores() {
		top = 0
	}
	rep, err := antidep.Make(ctx, w, x.Engine, table, x.Why, paths, antidep.Options{Top: top, Trips: x.count.Trips})
	if err != nil {
		return err
	}
	for _, c := range rep.Buffers {
		b := Buffer{Name: c.Buffer.Name(m), Tensor: c.Buffer.Tensor(m), Lo: c.Buffer.Lo, Hi: c.Buffer.Hi, Bytes: c.Buffer.Bytes(m), Edges: c.Edges,
			Binding: c.Binding, OnPath: c.OnPath, CostNS: c.Cost, Share: share(c.Cost, rep.A), Exact: c.Exact, Bounded: c.Bounded, Extra: c.Extra, WaitNS: c.Wait}
		if c.Buffer != antidep.None {
			b.Memory = c.Buffer.Memory.String()
		}
		if c.Writer != components.NoInstr {
			b.Writer, b.Reader = m.InstrName(c.Writer), m.InstrName(c.Reader)
		}
		r.Buffers = append(r.Buffers, b)
	}
	return nil
}

// timesWork reports whether the model times work by itself, from the machine
// and the moment at which it runs, not from the costs of the instructions.
func (x *Analysis) timesWork() bool { return x.World.Config.Model == components.Calibrated }

// semaphores reports whether the model follows the semaphores of the input: it
// does not see single dependencies left out.
func (x *Analysis) semaphores() bool { return x.World.BySemaphores() }

// blocks lists the top-level blocks where there are several.
func (r *Report) blocks(x *Analysis) {
	m := x.World.Module
	if len(x.Paths) < 2 {
		return
	}
	for _, p := range x.Paths {
		f := int(m.Blocks.Function.At(p.Block))
		res := x.World.Blocks[p.Block]
		one := attribute.Report(m, []*attribute.Path{p})
		c, _ := one.Bound()
		r.Blocks = append(r.Blocks, Block{Function: m.FunctionName(f), Block: m.BlockName(p.Block), Runs: p.Times,
			A: x.World.BlockLatency(res, components.RunA), B: x.World.BlockLatencyB(res), Bound: c.String()})
	}
}
