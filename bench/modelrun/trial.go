// Package modelrun runs one benchmark: it builds a model for a device, predicts
// how long a batch takes on the device's description, and makes the record of
// it.
package modelrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"perfsim/bench/models"
	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/components/machine/grid"
	"perfsim/components/opgraph"
	"perfsim/systems"
	"perfsim/systems/coregrid"
	"perfsim/systems/lower"
)

// Options say what is run.
type Options struct {
	Model, Config, Task string
	Machine             string // a name or file of either kind of description
	Microbatch          int    // 0: the model's own
	Tokens              int64  // 0: the task's
	Format, Fidelity    string
	// Accumulator is the format in which products are added up, "" for the
	// machine's own.
	Accumulator string
	// Uncached makes a grid take an epoch's programs from the host every time
	// (level 0 of the vendor's runtime); DeviceLoops lets it go through the
	// batches without the host (level 4).
	Uncached, DeviceLoops bool
	// Transpose lets placement turn operators by a quarter.
	Transpose bool
	// Keep leaves the placed runs in the outcome.
	Keep bool
	// Intermediates names operators whose results leave the chip for every
	// input, as those of the graph do; on grids.
	Intermediates []string
	LoopCount     int
	Chips         int // that share the batches, at least 1; 0 is 1
	Repeats       int
	Jobs          int
	Lower         lower.Options
	Loops         components.Loops // LoopsUnset counts trips
	Chosen        string           // options of the prediction that were given, for the record
	// Cost is the cost model on machines with engines.
	Cost components.Model
	// Progress, where not nil, is called with the stage and the share done of it.
	Progress func(stage string, done, total int64)
}

// Phase is the result of one graph of the model.
type Phase struct {
	Name         string `json:"name"` // phase of the run
	Runs         int64  `json:"runs"`
	NS           uint64 `json:"ns"`           // of one run
	Operators    int    `json:"operators"`    // operators of the phase
	Instructions int    `json:"instructions"` // instructions of the phase
	Executed     int64  `json:"executed"`     // loops counted by their trips
	// Epochs are the cores in use, epoch by epoch; only on grids.
	Epochs      []int   `json:"epochs,omitempty"`
	Utilization float64 `json:"utilization,omitempty"`

	Plan *coregrid.Plan `json:"-"`
	// World is the placed run of the phase; nil unless Options.Keep.
	World *components.World `json:"-"`
	// Dumped are the operators whose results leave the chip on request.
	Dumped []coregrid.Op `json:"-"`
}

// Outcome is a finished trial.
type Outcome struct {
	Model   *models.Model
	Machine string
	Device  string // tt, cuda or trn
	Chosen  string // options of the prediction that were given
	// ElementBytes is the size of an element in memory, 0 where it differs.
	ElementBytes float64
	Emulated     string // format in the place of one that the device does not have; "" for none
	DeviceName   string
	Params       int64
	MACs         int64 // of one sample
	Phases       []Phase
	BatchNS      float64 // of one batch of the microbatch's samples, on the device
	HostNS       float64 // of a batch: time of the host, 0 where the machine has no model of it
	HostOpNS     float64 // of HostNS: for operators, without moving data
	Batches      int64   // in the data set
	Samples      int64   // in all loops
	RunSeconds   float64
	Compile      []float64 // s of building and lowering or placing, by repeat
	Simulate     []float64 // s of the simulation, by repeat
	PeakMB       float64
	Ignores      []string // what the description leaves out
	Notes        []string
}

// Instructions sums over the phases.
func (o *Outcome) Instructions() int {
	n := 0
	for _, p := range o.Phases {
		n += p.Instructions
	}
	return n
}

// DeviceRate is the predicted rate of the device alone, in samples a second.
func (o *Outcome) DeviceRate() float64 { return float64(o.Model.Batch) * 1e9 / o.BatchNS }

// SamplesPerSecond is the predicted end-to-end rate: device and host.
func (o *Outcome) SamplesPerSecond() float64 { return float64(o.Samples) / o.RunSeconds }

// target is a device description of either kind.
type target struct {
	grid  *grid.Machine
	core  *machine.Machine
	model coregrid.Model
	elem  opgraph.ElemType
}

// Device returns the reference benchmark's name of the device that a machine
// description stands for: tt, cuda, or trn for machines it does not have.
func Device(name string) (string, error) {
	t, err := find(name)
	if err != nil {
		return "", err
	}
	if t.grid != nil {
		return t.grid.Device, nil
	}
	return "trn", nil
}

// DefaultMachine is the description a device stands for.
func DefaultMachine(device string) (string, error) {
	switch device {
	case "tt":
		return "grayskull", nil
	case "cuda":
		return "rtx3090", nil
	case "trn":
		return "trn2", nil
	case "cpu":
		return "", errors.New("there is no description of a CPU; devices are tt, cuda and trn")
	}
	return "", fmt.Errorf("device %q is not tt, cuda, cpu or trn", device)
}

func find(name string) (target, error) {
	g, err := grid.Load(name)
	if err == nil {
		return target{grid: g}, nil
	}
	m, err2 := machine.Load(name)
	if err2 == nil {
		return target{core: m}, nil
	}
	if errors.Is(err, grid.ErrUnknown) {
		if _, e := os.Stat(name); errors.Is(e, fs.ErrNotExist) && !strings.ContainsAny(name, "/.") {
			return target{}, wrong("machine %q is neither known nor a file; there are %s", name, strings.Join(append(grid.Names(), machine.Names()...), ", "))
		}
		return target{}, err2
	}
	return target{}, fmt.Errorf("%w; as a machine with engines: %w", err, err2)
}

var elems = map[string]opgraph.ElemType{"Fp32": opgraph.ElemF32, "Fp16": opgraph.ElemF16, "Fp16_b": opgraph.ElemBF16}

// wrong is the error of an option's value.
func wrong(format string, args ...any) error {
	return &models.OptionError{Err: fmt.Errorf(format, args...)}
}

func (t *target) settle(o *Options) (err error) {
	if t.grid != nil {
		t.elem = opgraph.ElemBF16
		if t.model, err = coregrid.NewModel(t.grid, o.Format, o.Accumulator, o.Fidelity); err != nil {
			return &models.OptionError{Err: err}
		}
		t.model.Transpose = o.Transpose
		if o.Uncached && t.grid.Style == grid.Dataflow {
			t.model.Reload = t.grid.Memory.DRAMRate() / t.grid.Memory.HostRate
		}
		return nil
	}
	if o.Accumulator != "" && o.Accumulator != "Fp32" {
		return wrong("machine %s accumulates in Fp32, not in %s", t.core.Name, o.Accumulator)
	}
	e, ok := elems[o.Format]
	if !ok {
		return wrong("machine %s has no data format %q; it has Fp32, Fp16 and Fp16_b", t.core.Name, o.Format)
	}
	t.elem = e
	return nil
}

// Run runs a trial.
func Run(ctx context.Context, opt Options) (*Outcome, error) {
	if opt.LoopCount < 1 || opt.LoopCount > math.MaxInt32 {
		return nil, fmt.Errorf("the loop count %d is not at least 1", opt.LoopCount)
	}
	if opt.Progress == nil {
		opt.Progress = func(string, int64, int64) {}
	}
	t, err := find(opt.Machine)
	if err != nil {
		return nil, err
	}
	if err := t.settle(&opt); err != nil {
		return nil, err
	}
	out := &Outcome{Chosen: opt.Chosen}
	watch := watchMemory()
	defer watch.stop()
	for range max(opt.Repeats, 1) {
		if err := out.once(ctx, opt, &t); err != nil {
			return nil, err
		}
	}
	out.PeakMB = watch.stop()
	out.Batches = 1 // a made-up data set is one batch
	if n := out.Model.Samples; n > 0 {
		if out.Batches = n / int64(out.Model.Batch); out.Batches == 0 {
			return nil, wrong("the data set of task %s has %d samples, fewer than the microbatch %d", opt.Task, n, out.Model.Batch)
		}
	}
	runs := out.Batches * int64(opt.LoopCount)
	out.Samples = runs * int64(out.Model.Batch)
	// Data parallel: a chip takes a batch at a time, as do the others meanwhile;
	// each has a host of its own.
	chips := int64(max(opt.Chips, 1))
	each := float64((runs + chips - 1) / chips)
	out.RunSeconds = (out.BatchNS + out.HostNS) * each / 1e9
	if t.grid != nil && t.grid.Style == grid.Dataflow {
		if opt.Uncached {
			out.Notes = append(out.Notes, fmt.Sprintf("The runtime caches no epochs (level 0): programs cross the host's link every time, which takes %.3g times as long.", t.model.Reload))
		}
		if opt.DeviceLoops {
			out.RunSeconds -= out.HostOpNS * (each - 1) / 1e9
			out.Notes = append(out.Notes, "The device loops by itself (level 4): the host's time for operators is spent once, not for every batch.")
		}
	}
	if chips > 1 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d chips share the batches of the data set, with a host each; nothing is sent between them.", chips))
		if runs < chips {
			out.Notes = append(out.Notes, fmt.Sprintf("There are %d batches: %d chips have nothing to do.", runs, chips-runs))
		}
	}
	return out, nil
}

// once builds and simulates; repeats overwrite all but the times.
func (o *Outcome) once(ctx context.Context, opt Options, t *target) error {
	mo := models.Options{Batch: opt.Microbatch, Elem: t.elem, Task: opt.Task, Tokens: opt.Tokens}
	began := time.Now()
	opt.Progress("building", 0, 0)
	m, err := models.Build(opt.Model, opt.Config, mo)
	if err != nil {
		return err
	}
	o.Model, o.Params, o.MACs = m, m.Params(), m.MACs()
	o.Phases, o.BatchNS, o.HostNS, o.HostOpNS = nil, 0, 0, 0
	var compile, simulate time.Duration
	compile = time.Since(began)
	phases := m.Phases
	if t.grid != nil && t.grid.Style == grid.Dataflow && m.Batch > 1 { // inputs stream: the graph is of one sample
		mo.Batch = 1
		one, err := models.Build(opt.Model, opt.Config, mo)
		if err != nil {
			return err
		}
		phases = nil
		for i, p := range m.Phases {
			if !p.Fold {
				p = one.Phases[i]
			}
			phases = append(phases, p)
		}
	}
	for _, p := range phases {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		var run func() (*components.World, error)
		ph := Phase{Name: p.Name, Runs: p.Runs}
		if t.grid != nil {
			run, err = o.onGrid(ctx, opt, t, &p, &ph)
		} else {
			run, err = o.onEngines(ctx, opt, t, &p, &ph)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		compile += time.Since(began)
		began = time.Now()
		w, err := run()
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		ph.NS, ph.Instructions = w.Latency(components.RunA), w.Module.Instr.Len()
		if opt.Keep {
			ph.World = w
		}
		if ph.Executed == 0 { // no loops
			ph.Executed = int64(ph.Instructions)
		}
		simulate += time.Since(began)
		o.BatchNS += float64(ph.NS) * float64(p.Runs)
		o.Phases = append(o.Phases, ph)
	}
	for _, name := range opt.Intermediates {
		if !slices.ContainsFunc(o.Phases, func(ph Phase) bool {
			return slices.ContainsFunc(ph.Dumped, func(x coregrid.Op) bool { return x.Name == name })
		}) {
			return wrong("model %s has no operator %q; 'perfsim bench --epochs' lists them", opt.Model, name)
		}
	}
	o.Compile = append(o.Compile, compile.Seconds())
	o.Simulate = append(o.Simulate, simulate.Seconds())
	return nil
}

// onGrid places a phase on a machine of many cores.
func (o *Outcome) onGrid(ctx context.Context, opt Options, t *target, p *models.Phase, ph *Phase) (func() (*components.World, error), error) {
	g := t.grid
	o.Machine, o.Device, o.DeviceName, o.Ignores = g.Name, g.Device, g.DeviceName, g.Ignores
	o.ElementBytes = t.model.Bytes
	o.Emulated = g.Formats[t.model.Format].Emulated
	ops, err := coregrid.Work(p.Graph, p.WeightSet())
	if err != nil {
		return nil, err
	}
	ph.Operators = len(ops)
	dump(ops, opt.Intermediates, ph)
	if g.Style == grid.Kernels {
		return func() (*components.World, error) {
			return placed(coregrid.SimulateKernels(ctx, t.model, ops, p.Name))
		}, nil
	}
	inputs := o.Model.Batch
	if p.Fold {
		inputs = 1
	}
	plan, err := coregrid.Balance(ctx, t.model, ops, inputs)
	if err != nil {
		return nil, err
	}
	ph.Plan, ph.Epochs, ph.Utilization = plan, plan.CoresUsed(), plan.Utilization()
	host, operators := t.model.HostNS(ops, inputs)
	o.HostNS += host * float64(p.Runs)
	o.HostOpNS += operators * float64(p.Runs)
	return func() (*components.World, error) { return placed(plan.Simulate(ctx, p.Name)) }, nil
}

func placed(r *coregrid.Result, err error) (*components.World, error) {
	if err != nil {
		return nil, err
	}
	return r.World, nil
}

// dump marks the operators of a phase whose results leave the chip.
func dump(ops []coregrid.Op, names []string, ph *Phase) {
	for i := range ops {
		if slices.Contains(names, ops[i].Name) {
			ops[i].Result = true
			ph.Dumped = append(ph.Dumped, ops[i])
		}
	}
}

// onEngines lowers a phase to the instructions of a core with engines.
func (o *Outcome) onEngines(ctx context.Context, opt Options, t *target, p *models.Phase, ph *Phase) (func() (*components.World, error), error) {
	m := t.core
	o.Machine, o.Device, o.DeviceName, o.Ignores = m.Name, "trn", m.Title, m.Ignores
	ph.Operators = p.Graph.NumOps()
	lo := opt.Lower
	lo.Progress = func(done, total int64) { opt.Progress("lowering "+p.Name, done, total) }
	res, err := lower.Lower(ctx, p.Graph, m, lo)
	if err != nil {
		return nil, err
	}
	if err := res.Report.Conserved(); err != nil {
		return nil, fmt.Errorf("lowering lost work: %w", err)
	}
	ph.Executed = res.Report.Executed
	loops := opt.Loops
	if loops == components.LoopsUnset {
		loops = components.Trips
	}
	return func() (*components.World, error) {
		n := res.Module.Instr.Len()
		opt.Progress("simulating "+p.Name, 0, int64(n))
		r, err := systems.Simulate(ctx, systems.Request{Reading: systems.Reading{Module: res.Module, Jobs: opt.Jobs}, On: m,
			Settings: systems.Settings{Model: opt.Cost, Loops: loops}})
		if err != nil {
			return nil, err
		}
		return &r.World.World, nil
	}, nil
}
