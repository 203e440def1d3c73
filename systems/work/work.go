// Package work sums up what a module computes and moves, and holds it against
// the peaks of its machine. docs/figures.md defines the figures.
package work

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/ecs"
)

// Figures are the work of a module and how near it is to the machine's limits.
// What cannot be known is nil, with the reason in Absent.
type Figures struct {
	// FLOPs are 2·M·N·K of the products and convolutions of the program, as
	// instructions do them, weighted. A product of 32 bits that a Neuron profile
	// has as two passes counts twice, as in the profiler.
	FLOPs *uint64 `json:"flops"`
	// HelperFLOPs are those of transposes and sums by products with constants,
	// RecomputedFLOPs those of what the program computes a second time.
	HelperFLOPs     *uint64  `json:"helper_flops"`
	RecomputedFLOPs *uint64  `json:"recomputed_flops"`
	HBMRead         *uint64  `json:"hbm_read_bytes"`    // bytes that instructions read from device memory, weighted
	HBMWritten      *uint64  `json:"hbm_written_bytes"` // bytes that they write to it, weighted
	Intensity       *float64 `json:"intensity"`         // FLOPs a byte of HBM
	Ridge           *float64 `json:"ridge"`             // FLOPs a byte at which both peaks are reached

	Predicted *Rates    `json:"predicted"` // in the predicted latency
	Measured  *Rates    `json:"measured"`  // in the measured time
	Profiler  *Profiler `json:"profiler"`  // of the profile's own summary

	Peaks  *Peaks   `json:"peaks"` // what the cores in use can do at most
	Absent []Absent `json:"absent,omitempty"`
}

// Rates are the work of a module in a time.
type Rates struct {
	NS    uint64   `json:"ns"` // the time that the rates are in
	FLOPs *float64 `json:"flop_per_s"`
	// MFU is the time that the FLOPs take at the peak of their types, over the
	// latency. The peak of 16 bits is 2·128·128 a cycle of the PE array; 32 bits
	// take as many passes as mult_32bit of the opcode says; 8 bits are held
	// against the peak of 16.
	MFU *float64 `json:"mfu"`
	HFU *float64 `json:"hfu"` // the same of helpers and recomputation too
	// MFU16 and HFU16 hold all types against the peak at 16 bits, as the Neuron
	// profiler does.
	MFU16   *float64 `json:"mfu_16bit"`
	HFU16   *float64 `json:"hfu_16bit"`
	HBMRate *float64 `json:"hbm_bytes_per_s"` // bytes read and written over ns; of peaks, at most
	MBU     *float64 `json:"mbu"`             // HBM bytes over what its peak allows
}

// Peaks are the peak rates of the machine.
type Peaks struct {
	Cores int     `json:"cores"`      // whose peaks are added up
	FLOPs float64 `json:"flop_per_s"` // at 16 bits
	HBM   float64 `json:"hbm_bytes_per_s"`
	// where the peaks are from: the machine's description, or the profile where it was taken on this machine
	Source []string `json:"source"`
}

// Profiler is the summary of a profile, under our names.
type Profiler struct {
	NS         *uint64  `json:"ns"`                // time that the profile's summary has
	FLOPs      *uint64  `json:"flops"`             // transposes left out
	Helper     *uint64  `json:"helper_flops"`      // FLOPs of transposes in the profile's summary
	HBMRead    *uint64  `json:"hbm_read_bytes"`    // bytes read, in the profile's summary
	HBMWritten *uint64  `json:"hbm_written_bytes"` // bytes written, in the profile's summary
	Intensity  *float64 `json:"intensity"`
	MFU        *float64 `json:"mfu"` // against the 16-bit peak, whatever the types
	HFU        *float64 `json:"hfu"`
	MBU        *float64 `json:"mbu"`
}

// Absent says why a figure is not there.
type Absent struct {
	Figure string `json:"figure"` // name of the figure
	Reason string `json:"reason"`
}

// Make sums up a placed world.
func Make(w *components.World) *Figures {
	s := NewSum(w)
	runs := components.NewExecutions(w.Module, w.Config.Loops)
	s.Rows(w.Module, w.Module.Instr.Len(), runs)
	return s.Figures(w)
}

// Figures returns the figures of the rows summed up; w has the tables of the
// whole module and the latency.
func (s *Sum) Figures(w *components.World) *Figures {
	f := &Figures{}
	s.why = s.seen.why(w.Replayed())
	peaks, why := peaksOf(w, s.lanes)
	f.Peaks = peaks
	if why != "" {
		f.absent("peaks", why)
	}
	flops := s.why == ""
	if flops {
		f.FLOPs, f.HelperFLOPs, f.RecomputedFLOPs = &s.flops, &s.helper, &s.again
	} else {
		f.absent("flops", s.why)
	}
	bytes := s.bytes
	if bytes {
		f.HBMRead, f.HBMWritten = &s.read, &s.written
	} else {
		f.absent("hbm_bytes", "no transfer of the input says what it moves from or to device memory")
	}
	moved := ecs.AddSat(s.read, s.written)
	if flops && bytes && moved > 0 {
		f.Intensity = new(float64(s.flops) / float64(moved))
	}
	if peaks != nil && peaks.HBM > 0 {
		f.Ridge = new(peaks.FLOPs / peaks.HBM)
	}
	rates := func(ns uint64) *Rates {
		if ns == 0 {
			return nil
		}
		r := &Rates{NS: ns}
		t := float64(ns)
		if flops {
			r.FLOPs = new(float64(s.flops) / t * 1e9)
			if peaks != nil && peaks.FLOPs > 0 {
				r.MFU = new(s.ideal / (peaks.FLOPs / 1e9) / t)
				r.HFU = new((s.ideal + s.idealMore) / (peaks.FLOPs / 1e9) / t)
				r.MFU16 = new(float64(s.flops) / (peaks.FLOPs / 1e9) / t)
				r.HFU16 = new((float64(s.flops) + float64(s.helper) + float64(s.again)) / (peaks.FLOPs / 1e9) / t)
			}
		}
		if bytes {
			r.HBMRate = new(float64(moved) / t * 1e9)
			if peaks != nil && peaks.HBM > 0 {
				r.MBU = new(float64(moved) / (peaks.HBM / 1e9) / t)
			}
		}
		return r
	}
	f.Predicted = rates(w.Latency(components.RunA))
	f.Profiler = profiler(w.Module)
	if span, ok := w.Module.MeasuredSpan(); ok && !w.Replayed() {
		f.Measured = rates(span)
	}
	return f
}

func (f *Figures) absent(figure, reason string) {
	f.Absent = append(f.Absent, Absent{figure, reason})
}

// Reason returns why a figure is absent, "" where it is not.
func (f *Figures) Reason(figure string) string {
	for _, a := range f.Absent {
		if a.Figure == figure {
			return a.Reason
		}
	}
	return ""
}

// Sum is the sum over rows, by executions.
type Sum struct {
	row   *Rows
	lanes []bool // that have instructions
	seen  evidence

	flops, helper, again uint64
	// ideal and idealMore are FLOPs in FLOPs of the 16-bit peak: those of the
	// program, and the others.
	ideal, idealMore float64
	read, written    uint64
	bytes            bool
	why              string // no FLOPs
}

// NewSum returns the sum of no rows of w so far.
func NewSum(w *components.World) *Sum {
	return &Sum{row: NewRows(w), lanes: make([]bool, w.Module.Lanes.Len())}
}

// Rows adds the first n rows of m, the world's module or a window of it. runs
// is by rows of the whole module.
func (s *Sum) Rows(m *components.Module, n int, runs *components.Executions) {
	s.row.m = m
	s.seen.look(m, n)
	for _, l := range m.Instr.Lane.View(0, n) {
		s.lanes[l] = true
	}
	macs, bytes := m.Instr.MACs.Slice(), m.Instr.DMABytes.Slice()
	if len(macs) == 0 && len(bytes) == 0 {
		return
	}
	for i := range n {
		if (len(macs) == 0 || macs[i] == 0) && (len(bytes) == 0 || bytes[i] == 0) {
			continue
		}
		x := s.row.At(components.InstrID(i))
		s.bytes = s.bytes || x.Read > 0 || x.Written > 0
		n := runs.At(components.InstrID(uint32(i) + m.Base))
		flops := ecs.MulSat(x.FLOPs, n)
		switch {
		case x.Helper:
			s.helper = ecs.AddSat(s.helper, flops)
			s.idealMore += x.Ideal * float64(n)
		case x.Again:
			s.again = ecs.AddSat(s.again, flops)
			s.idealMore += x.Ideal * float64(n)
		default:
			s.flops = ecs.AddSat(s.flops, flops)
			s.ideal += x.Ideal * float64(n)
		}
		s.read = ecs.AddSat(s.read, ecs.MulSat(x.Read, n))
		s.written = ecs.AddSat(s.written, ecs.MulSat(x.Written, n))
	}
}

// Row is the work of one execution of a row.
type Row struct {
	FLOPs         uint64
	Ideal         float64 // FLOPs in FLOPs of the 16-bit peak
	Read, Written uint64  // bytes of HBM
	Helper, Again bool    // of FLOPs: a transpose or sum put in; a second computation
}

// Rows finds the work of rows.
type Rows struct {
	m      *components.Module
	passes []float64 // of 32-bit types, by opcode
	again  map[ecs.Symbol]bool
}

// NewRows returns the work of the rows of a world.
func NewRows(w *components.World) *Rows {
	m := w.Module
	r := &Rows{m: m, again: map[ecs.Symbol]bool{}, passes: make([]float64, m.NumOpcodes())}
	for op := range r.passes {
		r.passes[op] = 1
		if w.Machine == nil {
			continue
		}
		if c, ok := w.Machine.Reference.Costs[m.OpcodeName(components.Opcode(op))]; ok && c.Form == "matmul" && c.Mult32 > 0 {
			r.passes[op] = c.Mult32
		}
	}
	return r
}

// evidence shows whether a module has FLOPs.
type evidence struct {
	macs, product, core bool // a column MACs, a product, an instruction of a core
	sized               bool // operators of a trace with sizes
}

// look looks at the first n rows of m.
func (e *evidence) look(m *components.Module, n int) {
	e.macs = e.macs || m.Instr.MACs.Len() > 0
	e.sized = e.sized || m.Instr.Work.Len() > 0
	if e.macs || e.product {
		return
	}
	products := m.Products()
	for i, op := range m.Instr.Opcode.View(0, n) {
		if products[op] {
			e.product = true
			return
		}
		e.core = e.core || op < components.NumOpcodes && m.Instr.DType.At(i) != components.NoDType
	}
}

// why says why a module has no FLOPs, "" where it has; one that has instructions
// of a core and no products has none, known to be 0.
func (e *evidence) why(replayed bool) string {
	switch {
	case e.macs:
		return ""
	case e.product:
		return "the input has no sizes of its products"
	case e.sized:
		return "the sizes of the trace's operators give durations only"
	case !e.core || replayed:
		return "the input is a trace without sizes of operators"
	}
	return ""
}

// At returns the work of one execution of row i.
func (r *Rows) At(i components.InstrID) (x Row) {
	in := &r.m.Instr
	f := in.Flags.At(int(i))
	if n := in.DMABytes.Get(int(i)); n > 0 {
		if f&components.FlagSrcDRAM != 0 {
			x.Read = n
		}
		if f&components.FlagDstDRAM != 0 {
			x.Written = n
		}
	}
	n := in.MACs.Get(int(i))
	if n == 0 {
		return x
	}
	x.FLOPs = 2 * uint64(n)
	x.Ideal = float64(x.FLOPs)
	if in.DType.At(int(i)).Size() == 4 {
		x.Ideal *= r.passes[in.Opcode.At(int(i))]
	}
	x.Helper = f&(components.FlagTranspose|components.FlagHelper) != 0
	x.Again = !x.Helper && r.recomputed(in.Scope.Get(int(i)))
	return x
}

// rematerialised is the part of a JAX path below which everything is computed
// a second time.
const rematerialised = "rematted_computation"

func (r *Rows) recomputed(scope ecs.Symbol) bool {
	if scope == 0 {
		return false
	}
	is, ok := r.again[scope]
	if !ok {
		is = slices.Contains(strings.Split(r.m.Symbols.String(scope), "/"), rematerialised)
		r.again[scope] = is
	}
	return is
}

// array is the rows and columns of the PE array.
const array = 128

// peaksOf returns the peaks of the cores in use: those of the machine, or of the
// profile where the machine is the one that it was taken on. lanes are those in
// use.
func peaksOf(w *components.World, lanes []bool) (*Peaks, string) {
	m, mach := w.Module, w.Machine
	if mach == nil || w.Replayed() {
		return nil, "no machine was simulated"
	}
	p := &Peaks{Cores: cores(m, lanes)}
	one := 2 * array * array * float64(mach.Clock.PEArray) * 1e7
	hbm := mach.Memory.HBMRate * 1e9
	p.Source = []string{fmt.Sprintf("%s: %d by %d cells at %.1f GHz, %g GB/s of HBM a core", mach.Name, array, array, float64(mach.Clock.PEArray)/100, mach.Memory.HBMRate)}
	p.FLOPs, p.HBM = one*float64(p.Cores), hbm*float64(p.Cores)
	metadata := func(a components.Attribute) bool { return strings.HasPrefix(a.Key, "metadata.") }
	if !slices.ContainsFunc(m.Attributes, metadata) {
		return p, ""
	}
	if of, err := machine.Embedded(m.Arch); err != nil || of.Name != mach.Name {
		return p, ""
	}
	number := func(key string) float64 {
		v, err := strconv.ParseFloat(m.Attribute("metadata."+key), 64)
		if err != nil || !(v > 0) {
			return 0
		}
		return v
	}
	if n := number("num_physical_cores"); n >= 1 && n <= 1<<10 {
		p.Cores = int(n)
		p.FLOPs, p.HBM = one*n, hbm*n
		p.Source = append(p.Source, fmt.Sprintf("the profile: a logical core of %d", p.Cores))
	}
	if v := number("hbm_ddr_bandwidth"); v > 0 {
		p.HBM = v
		p.Source = append(p.Source, fmt.Sprintf("the profile: %g GB/s of HBM", v/1e9))
	}
	return p, ""
}

// cores returns how many cores have instructions on the lanes in use.
func cores(m *components.Module, used []bool) int {
	seen := map[uint16]bool{}
	for l, u := range used {
		if u {
			seen[m.Lanes.Core.At(l)] = true
		}
	}
	return max(len(seen), 1)
}

// profiler reads the summary of a Neuron profile; nil where there is none.
func profiler(m *components.Module) *Profiler {
	number := func(key string) *float64 {
		v, err := strconv.ParseFloat(m.Attribute("summary."+key), 64)
		if err != nil || !(v >= 0) {
			return nil
		}
		return &v
	}
	whole := func(key string, scale float64) *uint64 {
		v := number(key)
		if v == nil || *v*scale >= 1<<63 {
			return nil
		}
		return new(uint64(*v*scale + 0.5))
	}
	p := &Profiler{NS: whole("total_time", 1e9), Helper: whole("transpose_flops", 1), HBMRead: whole("hbm_read_bytes", 1), HBMWritten: whole("hbm_write_bytes", 1),
		Intensity: number("mm_arithmetic_intensity"), MFU: number("mfu_estimated_percent"), HFU: number("hfu_estimated_percent"), MBU: number("mbu_estimated_percent")}
	if all := whole("hardware_flops", 1); all != nil && p.Helper != nil {
		p.FLOPs = new(*all - min(*all, *p.Helper))
	}
	if *p == (Profiler{}) {
		return nil
	}
	return p
}
