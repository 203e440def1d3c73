package page

import (
	"strings"

	"perfsim/cmd/internal/web"
	"perfsim/components"
	"perfsim/systems/tracklayout"
	"perfsim/systems/work"
)

// counterSamples is the number of equal time bins of a rate; more are not
// visible.
const counterSamples = 1024

// counters returns the memory in use and the rates over time, and why there are
// none.
func (v *viewer) counters() (out []web.Counter, reason string) {
	t, err := v.p.res.Timeline(v.p.ctx, tracklayout.Options{Block: v.block, Counters: true})
	if err != nil {
		return nil, err.Error()
	}
	mem := v.w.Machine.Memory
	for _, s := range t.Series {
		c := web.Counter{Name: s.Name, Unit: s.Unit, Time: s.Time, Value: s.Value}
		switch {
		case strings.HasPrefix(s.Name, "busy "):
			continue
		case strings.HasSuffix(s.Name, "SBUF in use"):
			c.Most = float64(mem.SBUFBytes)
		case strings.HasSuffix(s.Name, "PSUM banks in use"):
			c.Most = float64(mem.PSUMBanks)
		case strings.HasSuffix(s.Name, "PE clock"):
			c.Most = float64(v.w.Machine.Clock.PEArray) / 100
		default:
			c.Most = mem.HBMRate
		}
		out = append(out, c)
	}
	if c, any := v.flopRate(); any {
		out = append(out, c)
	}
	if len(out) == 0 {
		reason = "none: no instruction says what it computes or moves"
	}
	return out, reason
}

// rate sums an amount up over time.
type rate struct {
	v     *viewer
	width float64 // ns
	sum   []float64
	// early is, by loop and lane, the amount of one iteration.
	early []map[uint16]float64
}

func (v *viewer) newRate() *rate {
	span := max(v.w.Blocks[v.block].Extent(components.RunA), 1)
	return &rate{v: v, width: float64(span) / counterSamples, sum: make([]float64, counterSamples), early: make([]map[uint16]float64, len(v.loops))}
}

// spread adds amount evenly between two times.
func (r *rate) spread(from, to uint64, amount float64) {
	a, b := float64(from)/r.width, float64(to)/r.width
	if b <= a {
		b = a + 1e-9
	}
	for k := int(a); k < len(r.sum) && float64(k) < b; k++ {
		r.sum[k] += amount * (min(b, float64(k+1)) - max(a, float64(k))) / (b - a)
	}
}

// add adds the amount of one execution of instruction i, inside the loops in
// open: its event shows the last one, those before belong to earlier
// iterations.
func (r *rate) add(i uint32, open []int, amount float64) {
	start, end := r.v.w.Events.Span(r.v.m, components.InstrID(i), components.RunA)
	r.spread(start, end, amount)
	lane := r.v.m.Instr.Lane.At(int(i))
	for k := len(open) - 1; k >= 0; k-- {
		if r.early[open[k]] == nil {
			r.early[open[k]] = map[uint16]float64{}
		}
		r.early[open[k]][lane] += amount
		amount *= float64(r.v.loops[open[k]].repeat.Trips)
	}
}

// counter returns the amount per ns, times factor, as a counter. What would
// exceed most is moved to the samples behind, what is left at the end to
// earlier ones that have room, as in package countertrack.
func (r *rate) counter(name, unit string, factor, most float64) (web.Counter, bool) {
	for n, lanes := range r.early {
		l := &r.v.loops[n]
		for _, lane := range l.repeat.Lanes { // in the order of the lanes: sums of floats depend on it
			if amount := lanes[lane.Lane]; amount > 0 {
				r.spread(lane.Start[components.RunA], max(l.info.Start, lane.Start[components.RunA]+1), amount*float64(l.repeat.Trips-1))
			}
		}
	}
	c := web.Counter{Name: name, Unit: unit, Most: most}
	carry := 0.0
	level := func(k int) {
		if r.sum[k], carry = r.sum[k]+carry, 0; most > 0 && r.sum[k] > most {
			r.sum[k], carry = most, r.sum[k]-most
		}
	}
	for k := range r.sum {
		r.sum[k] *= factor / r.width
		level(k)
	}
	for k := len(r.sum) - 1; k >= 0 && carry > 0; k-- {
		level(k)
	}
	any := false
	for k, v := range r.sum {
		any = any || v > 0
		if k == 0 || v != c.Value[len(c.Value)-1] {
			c.Time, c.Value = append(c.Time, uint64(float64(k)*r.width)), append(c.Value, v)
		}
	}
	return c, any
}

// flopRate returns the FLOPs over time.
func (v *viewer) flopRate() (web.Counter, bool) {
	rows := work.NewRows(v.w)
	flops := v.newRate()
	var open []int
	next := 0
	for i := v.first; i < v.end; i++ {
		for len(open) > 0 && v.loops[open[len(open)-1]].repeat.End <= i {
			open = open[:len(open)-1]
		}
		for ; next < len(v.loops) && v.loops[next].repeat.First <= i; next++ {
			open = append(open, next)
		}
		if v.loop(i) {
			continue
		}
		if x := rows.At(components.InstrID(i)); x.FLOPs > 0 && !x.Helper {
			flops.add(i, open, float64(x.FLOPs))
		}
	}
	peak := 0.0
	if p := work.Make(v.w).Peaks; p != nil {
		peak = p.FLOPs / 1e12
	}
	return flops.counter("FLOP rate", "TFLOP/s", 1e-3, peak)
}
