package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Options say how to compare.
type Options struct {
	Match string // how instructions are matched; "" for MatchAuto
	Align string // what is laid over one another; "" for AlignKernel
	// Threshold is the difference of two starts, in ns, from which the
	// timelines count as parted; 0 for one per cent of A's kernel time.
	Threshold float64
	Worst     int // rows listed, of those that differ; 0 for ten
}

// What is laid over one another.
const (
	AlignKernel = "kernel" // the start of the kernel's own work
	AlignStart  = "start"  // the first event
	AlignNone   = "none"   // the clocks as they are
)

// Check reports whether the options are possible, naming the one that is not.
func (o *Options) Check() error {
	switch o.Match {
	case MatchAuto, MatchWork, MatchID, MatchName, MatchOrder:
	default:
		return fmt.Errorf("match %q is not auto, work, id, name or order", o.Match)
	}
	switch o.Align {
	case AlignKernel, AlignStart, AlignNone:
	default:
		return fmt.Errorf("align %q is not kernel, start or none", o.Align)
	}
	if !(o.Threshold >= 0) || math.IsInf(o.Threshold, 0) {
		return fmt.Errorf("threshold %v is not a time", o.Threshold)
	}
	if o.Worst < 1 || o.Worst > 100_000 {
		return fmt.Errorf("worst %d is not between 1 and 100000", o.Worst)
	}
	return nil
}

// Two is one quantity on both sides, in ns.
type Two struct {
	A       float64 `json:"a_ns"`               // of A, ns
	B       float64 `json:"b_ns"`               // of B, ns
	Percent float64 `json:"difference_percent"` // of A; 0 where A is 0
}

func two(a, b float64) Two {
	t := Two{A: a, B: b}
	if a != 0 {
		t.Percent = 100 * (b - a) / a
	}
	return t
}

// Named is a quantity of one engine, opcode or phase.
type Named struct {
	Name string `json:"name"`         // lane, opcode, kind of wait or scope
	N    int    `json:"instructions"` // instructions in the sum
	Two
}

// Errors is the distribution of absolute differences over the matched
// instructions of the kernel.
type Errors struct {
	P50        float64 `json:"p50_ns"`      // median
	P90        float64 `json:"p90_ns"`      // 90th percentile
	Max        float64 `json:"max_ns"`      // largest
	P50Percent float64 `json:"p50_percent"` // of A's kernel time
	P90Percent float64 `json:"p90_percent"` // 90th percentile over the kernel's time in A
	MaxPercent float64 `json:"max_percent"` // largest over the kernel's time in A
	Worst      []Row   `json:"worst"`       // instructions with the largest differences
}

// Row is one instruction on both sides.
type Row struct {
	Name   string  `json:"name"`   // name of the instruction in A
	Engine string  `json:"engine"` // engine that issues it in A
	Opcode string  `json:"opcode"`
	StartA float64 `json:"start_a_ns"`    // from where the sides are aligned
	StartB float64 `json:"start_b_ns"`    // start in B, from the first event of the program
	DurA   float64 `json:"duration_a_ns"` // duration in A
	DurB   float64 `json:"duration_b_ns"` // duration in B
	Delta  float64 `json:"delta_ns"`      // of what is compared, B - A
	Reason string  `json:"reason"`
}

// Report is a comparison.
type Report struct {
	NameA   string `json:"a"`          // what A is
	NameB   string `json:"b"`          // what B is
	Matched int    `json:"matched"`    // instructions that both sides have
	By      string `json:"matched_by"` // what instructions were matched by: work, name or order
	OnlyA   int    `json:"only_in_a"`  // instructions that B has none for
	OnlyB   int    `json:"only_in_b"`  // instructions that A has none for
	Align   string `json:"aligned_at"` // event from which on the times of both sides count

	Whole  Two     `json:"whole"`  // first start to last end
	Kernel Two     `json:"kernel"` // the kernel's own work
	Phases []Named `json:"phases"` // times around the kernel
	WorkA  Work    `json:"a_work"` // work of A
	WorkB  Work    `json:"b_work"` // work of B

	Engines []Named `json:"engines"` // busy time by lane
	Waits   []Wait  `json:"waits"`   // the largest differences first
	Opcodes []Named `json:"opcodes"`

	// Changes are the differences of the instructions, the largest first.
	Changes []Change   `json:"changes"`
	Scopes  []ScopeSum `json:"scopes,omitempty"` // sums by scope, the largest difference first

	Start    Errors  `json:"start_errors"`    // absolute differences of the starts, B against A
	Duration Errors  `json:"duration_errors"` // absolute differences of the durations
	Limit    float64 `json:"threshold_ns"`    // difference of starts from which on the sides part
	// Part is the first instruction whose starts differ by more than the
	// threshold; nil where none does.
	Part *Row `json:"first_parting"`

	pairs          [][2]int
	offsetA, offsB float64
}

// Compare compares two timelines. An unknown Options.Match falls
// back to MatchAuto.
func Compare(a, b *Side, opt Options) *Report {
	r := &Report{NameA: a.Name, NameB: b.Name, Align: cmp.Or(opt.Align, AlignKernel)}
	x, by, err := match(a, b, opt.Match)
	if err != nil {
		x, by, _ = match(a, b, MatchAuto)
	}
	pairs := x.pairs()
	r.pairs, r.By, r.Matched = pairs, by, len(pairs)
	r.OnlyA, r.OnlyB = a.count()-len(pairs), b.count()-len(pairs)

	all := func(int) bool { return true }
	kernelA, kernelB := func(i int) bool { return Kernel(a.Module, i) }, func(i int) bool { return Kernel(b.Module, i) }
	aLo, aHi, _ := a.span(all)
	bLo, bHi, _ := b.span(all)
	r.Whole = two(aHi-aLo, bHi-bLo)
	kaLo, kaHi, okA := a.span(kernelA)
	kbLo, kbHi, okB := b.span(kernelB)
	if !okA || !okB {
		kaLo, kaHi, kbLo, kbHi = aLo, aHi, bLo, bHi
	}
	r.Kernel = two(kaHi-kaLo, kbHi-kbLo)
	if a.Latency > 0 && b.Latency > 0 {
		// Loops and runs of functions count.
		r.Whole = two(float64(a.Latency), float64(b.Latency))
	}
	switch r.Align {
	case AlignStart:
		r.offsetA, r.offsB = aLo, bLo
	case AlignNone:
	default:
		r.Align = AlignKernel
		r.offsetA, r.offsB = kaLo, kbLo
	}
	r.phases(aLo, kaLo, kaHi, aHi, bLo, kbLo, kbHi, bHi)
	r.WorkA, r.WorkB = workOf(a), workOf(b)
	r.engines(a, b)
	r.opcodes(a, b)
	r.waits(a, b)
	r.changes(a, b, x)
	r.errors(a, b, opt)
	return r
}

func (s *Side) count() int {
	n := 0
	for i := range s.Start {
		if s.has(i) {
			n++
		}
	}
	return n
}

// phases are the runtime's preamble, the kernel and what follows it.
func (r *Report) phases(aLo, kaLo, kaHi, aHi, bLo, kbLo, kbHi, bHi float64) {
	for _, p := range []struct {
		name string
		a, b float64
	}{{"before the kernel", kaLo - aLo, kbLo - bLo}, {"kernel", kaHi - kaLo, kbHi - kbLo}, {"after the kernel", aHi - kaHi, bHi - kbHi}} {
		r.Phases = append(r.Phases, Named{Name: p.name, Two: two(p.a, p.b)})
	}
}

// engines compares the busy time of the lanes.
func (r *Report) engines(a, b *Side) {
	sums := func(s *Side) (map[string]float64, map[string]int) {
		t, n := map[string]float64{}, map[string]int{}
		m := s.Module
		for i := range s.Start {
			if s.has(i) {
				n[m.LaneName(m.Instr.Lane.At(i))]++
			}
		}
		for l, ns := range s.Busy {
			if name := m.LaneName(uint16(l)); ns > 0 || n[name] > 0 {
				t[name] += float64(ns)
			}
		}
		return t, n
	}
	ta, n := sums(a)
	tb, _ := sums(b)
	for _, name := range sortedKeys(ta, tb) {
		r.Engines = append(r.Engines, Named{Name: name, N: n[name], Two: two(ta[name], tb[name])})
	}
}

// KernelBusy is the length in ns of the union of the intervals of the kernel's
// own instructions, by the engine that issues them: what the fit is judged by.
func KernelBusy(s *Side) map[string]float64 {
	rows := map[string][]int{}
	for i := range s.Start {
		if s.has(i) && Kernel(s.Module, i) {
			e := engine(s.Module, i)
			rows[e] = append(rows[e], i)
		}
	}
	total := map[string]float64{}
	for e, list := range rows {
		slices.SortFunc(list, func(x, y int) int { return cmp.Or(cmp.Compare(s.Start[x], s.Start[y]), cmp.Compare(x, y)) })
		until := math.Inf(-1)
		for _, i := range list {
			lo := max(s.Start[i], until)
			if s.End[i] > lo {
				total[e] += s.End[i] - lo
				until = s.End[i]
			}
		}
	}
	return total
}

// opcodes compares the summed durations by lane and opcode, weighted; waits
// are left out.
func (r *Report) opcodes(a, b *Side) {
	sum := func(s *Side) (map[string]float64, map[string]int) {
		t, n := map[string]float64{}, map[string]int{}
		waits := s.Module.WaitOpcodes()
		for i := range s.Start {
			if s.has(i) && !waits[s.Module.Instr.Opcode.At(i)] {
				k := s.Module.LaneName(s.Module.Instr.Lane.At(i)) + " " + opcode(s, i)
				t[k] += (s.End[i] - s.Start[i]) * s.weight(i)
				n[k]++
			}
		}
		return t, n
	}
	ta, n := sum(a)
	tb, _ := sum(b)
	for _, name := range sortedKeys(ta, tb) {
		r.Opcodes = append(r.Opcodes, Named{Name: name, N: n[name], Two: two(ta[name], tb[name])})
	}
}

func sortedKeys[T any](a, b map[string]T) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

// errors fills the distributions, the worst rows and the first parting.
func (r *Report) errors(a, b *Side, opt Options) {
	worst := cmp.Or(opt.Worst, 10)
	r.Limit = opt.Threshold
	if r.Limit <= 0 {
		r.Limit = r.Kernel.A / 100
	}
	type diff struct {
		pair       int
		start, dur float64
	}
	var all []diff
	part := -1
	for k, p := range r.pairs {
		if !Kernel(a.Module, p[0]) {
			continue
		}
		d := diff{k, (b.Start[p[1]] - r.offsB) - (a.Start[p[0]] - r.offsetA), (b.End[p[1]] - b.Start[p[1]]) - (a.End[p[0]] - a.Start[p[0]])}
		all = append(all, d)
		if math.Abs(d.start) > r.Limit && (part < 0 || a.Start[p[0]] < a.Start[r.pairs[part][0]]) {
			part = k
		}
	}
	why := newReasons(a, b, r)
	list := func(value func(d diff) float64) Errors {
		slices.SortStableFunc(all, func(x, y diff) int { return cmp.Compare(math.Abs(value(x)), math.Abs(value(y))) })
		at := func(q float64) float64 {
			if len(all) == 0 {
				return 0
			}
			return math.Abs(value(all[min(len(all)-1, int(q*float64(len(all))))]))
		}
		e := Errors{P50: at(0.5), P90: at(0.9), Max: at(1)}
		if r.Kernel.A > 0 {
			e.P50Percent, e.P90Percent, e.MaxPercent = 100*e.P50/r.Kernel.A, 100*e.P90/r.Kernel.A, 100*e.Max/r.Kernel.A
		}
		return e
	}
	r.Start = list(func(d diff) float64 { return d.start })
	for k := len(all) - 1; k >= max(0, len(all)-worst) && all[k].start != 0; k-- {
		r.Start.Worst = append(r.Start.Worst, r.row(a, b, all[k].pair, all[k].start, why.start(all[k].pair)))
	}
	r.Duration = list(func(d diff) float64 { return d.dur })
	for k := len(all) - 1; k >= max(0, len(all)-worst) && all[k].dur != 0; k-- {
		r.Duration.Worst = append(r.Duration.Worst, r.row(a, b, all[k].pair, all[k].dur, why.duration(all[k].pair)))
	}
	if part >= 0 {
		p := r.pairs[part]
		row := r.row(a, b, part, (b.Start[p[1]]-r.offsB)-(a.Start[p[0]]-r.offsetA), why.start(part))
		r.Part = &row
	}
}

func (r *Report) row(a, b *Side, pair int, delta float64, reason string) Row {
	i, j := r.pairs[pair][0], r.pairs[pair][1]
	return Row{Name: a.instr(i), Engine: engine(a.Module, i), Opcode: opcode(a, i),
		StartA: a.Start[i] - r.offsetA, StartB: b.Start[j] - r.offsB, DurA: a.End[i] - a.Start[i], DurB: b.End[j] - b.Start[j], Delta: delta, Reason: reason}
}

func appendUint(b []byte, v uint64) []byte { return strconv.AppendUint(b, v, 10) }
