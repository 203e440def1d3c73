package fit

import (
	"maps"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/cost"
)

// opSamples are the measurements of one case of a data-path operation.
type opSamples struct {
	intervalN, interval []float64 // elements and ns between two starts on a busy engine
	aloneN, alone       []float64 // elements and duration of an instruction that started on an idle engine
	spacingN, spacing   []float64 // elements and ns between two retirements on a busy engine
}

// data collects the data-path operations of all engines but the PE, by key in
// the description; operations that it lacks have their bare name.
func (p *profile) data(out map[string]*opSamples, mach *machine.Machine) {
	m := p.m
	nominal := cost.NewNominal(m, mach)
	keyOf := func(i uint32) string {
		if key := nominal.Key(int(i)); key != "" && !nominal.Usual(int(i)) {
			return key
		}
		return m.Instr.Engine.At(int(i)).String() + "." + cost.CalibratedOpName(m.OpcodeName(m.Instr.Opcode.At(int(i))))
	}
	for q, list := range p.order {
		e := p.seq[q].engine
		if !hasSequencer(e) || e == components.PE {
			continue
		}
		free := math.Inf(-1)
		for k, i := range list {
			if p.class(i) != "data" || !p.compiled(i) {
				continue
			}
			key := keyOf(i)
			o := out[key]
			if o == nil {
				o = &opSamples{}
				out[key] = o
			}
			if free < p.start[i] {
				o.aloneN = append(o.aloneN, float64(m.Instr.Elems.At(int(i))))
				o.alone = append(o.alone, p.end[i]-p.start[i])
			}
			if k > 0 && p.class(list[k-1]) == "data" && p.end[list[k-1]] > p.start[i] {
				h := list[k-1]
				if at, waits := p.satisfied(i, 'S'); waits == 0 || at+60 < p.start[i] {
					hk, n := keyOf(h), float64(m.Instr.Elems.At(int(h)))
					out[hk].intervalN, out[hk].interval = append(out[hk].intervalN, n), append(out[hk].interval, p.start[i]-p.start[h])
					o.spacingN = append(o.spacingN, float64(m.Instr.Elems.At(int(i))))
					o.spacing = append(o.spacing, p.end[i]-p.end[h])
				}
			}
			free = max(free, p.end[i])
		}
	}
}

// opFit is one operation's fitted cost in cycles and ns.
type opFit struct {
	per, base, latency, spacing float64
	n, nLatency                 int
	spreadNS, spreadLatency     float64
	bases, latencies            [2]float64 // least and most of the measurements
}

// fitOps turns measurements into entries of the description and returns their
// report. Operations that were not measured keep what they had.
func fitOps(all map[string]*opSamples, mach *machine.Machine) []Item {
	clock := map[string]float64{"Activation": float64(mach.Clock.Activation), "DVE": float64(mach.Clock.DVE), "Pool": float64(mach.Clock.Pool), "SP": float64(mach.Clock.SP)}
	cycle := func(name string) float64 {
		if c, ok := clock[engineOf(name)]; ok {
			return 100 / c
		}
		return 1
	}
	perElem := func(name string) float64 {
		if op, ok := mach.Calibrated.Ops[name]; ok {
			return op.PerElem
		}
		return 1
	}
	// The latency behind the issue interval, where only the sum is measured,
	// is the median of the engine's other operations.
	latency := map[string][]float64{}
	for name, o := range all {
		if len(o.interval) > 0 && len(o.alone) > 0 {
			if f, ok := fitOp(o, perElem(name), cycle(name), math.NaN()); ok {
				latency[engineOf(name)] = append(latency[engineOf(name)], f.latency)
			}
		}
	}
	var items []Item
	for _, name := range slices.Sorted(maps.Keys(all)) {
		op := mach.Calibrated.Ops[name]
		was := op
		f, ok := fitOp(all[name], perElem(name), cycle(name), median(slices.Clone(latency[engineOf(name)])))
		if !ok {
			continue
		}
		op.PerElem, op.Base, op.LatencyNs, op.SpacingBase = f.per, f.base, f.latency, f.spacing
		op.Mark, op.Samples, op.Spread = machine.MarkFitted, f.n, round(f.spreadNS)
		mach.Calibrated.Ops[name] = op
		items = append(items,
			Item{Name: "op." + name + ".base_cycles", Was: was.Base, Value: f.base, N: f.n, Spread: round(f.spreadNS / cycle(name)),
				Min: f.bases[0], Max: f.bases[1], How: "median"},
			Item{Name: "op." + name + ".latency_ns", Was: was.LatencyNs, Value: f.latency, N: f.nLatency, Spread: round(f.spreadLatency),
				Min: f.latencies[0], Max: f.latencies[1], How: "median"})
	}
	return items
}

func engineOf(name string) string {
	for i := range name {
		if name[i] == '.' {
			return name[:i]
		}
	}
	return name
}

// fitOp fits one operation: cycles per element where sizes differ by a factor
// of two or more and the given ones do not explain them, then the base from
// intervals and the latency from instructions on an idle engine. Where no
// interval was seen the base is the duration less latency lat.
func fitOp(o *opSamples, per, cycle, lat float64) (opFit, bool) {
	f := opFit{per: per}
	n, d := o.intervalN, o.interval
	if distinct(n) < 2 && distinct(o.aloneN) >= 2 {
		n, d = o.aloneN, o.alone
	}
	if lo, hi := bounds(n); hi >= 2*lo && hi > lo {
		if slope, _, ok := line(n, d); ok && math.Abs(slope/cycle-per) > 0.1*per && slope > 0 {
			f.per = round(slope / cycle)
		}
	}
	rest := func(n, d []float64) []float64 {
		out := make([]float64, len(n))
		for i := range n {
			out[i] = d[i]/cycle - f.per*n[i]
		}
		return out
	}
	base := rest(o.intervalN, o.interval)
	switch {
	case len(base) > 0:
		f.base = median(slices.Clone(base))
		f.n, f.spreadNS = len(base), mad(base, f.base)*cycle
		f.bases[0], f.bases[1] = bounds(base)
	case len(o.alone) > 0 && !math.IsNaN(lat):
		b := rest(o.aloneN, o.alone)
		f.base = median(slices.Clone(b)) - lat/cycle
		f.n, f.spreadNS = len(b), mad(b, f.base+lat/cycle)*cycle
		f.bases[0], f.bases[1] = bounds(b)
		f.bases[0], f.bases[1] = f.bases[0]-lat/cycle, f.bases[1]-lat/cycle
	default:
		return f, false
	}
	f.base = round(f.base)
	f.latency, f.latencies = lat, [2]float64{lat, lat}
	if len(o.alone) > 0 {
		var l []float64
		for i := range o.alone {
			l = append(l, o.alone[i]-(f.per*o.aloneN[i]+f.base)*cycle)
		}
		f.latency = median(l)
		f.nLatency, f.spreadLatency = len(l), mad(l, f.latency)
		f.latencies[0], f.latencies[1] = bounds(l)
	}
	if math.IsNaN(f.latency) || f.latency < 0 || f.base < 0 {
		return f, false
	}
	f.latency = round(f.latency)
	if len(o.spacing) >= 3 {
		if s := median(rest(o.spacingN, o.spacing)); s > f.base+2 {
			f.spacing = round(s)
		}
	}
	return f, true
}

func distinct(x []float64) int {
	y := slices.Clone(x)
	slices.Sort(y)
	return len(slices.Compact(y))
}

func bounds(x []float64) (lo, hi float64) {
	if len(x) == 0 {
		return 0, 0
	}
	return slices.Min(x), slices.Max(x)
}
