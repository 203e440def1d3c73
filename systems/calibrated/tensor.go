package calibrated

import (
	"math"

	"perfsim/components"
)

// tensor is the state of one core's PE.
type tensor struct {
	free   float64 // when the array may start the next matmul
	last   float64 // start of the last matmul
	loaded float64 // when the weights of the last load may be used
	transp bool    // the last load was for a transpose
	burst  float64 // cycles that may still be streamed at full rate on the slow clock, halved
	burstT float64 // when burst was right
	gov    governor
	// Rows, plus one, of the last matmul and the last load.
	lastBy, loadedBy uint32
}

// governor is the clock of the PE: after every window it gives full rate or
// the slow one for the next, by the use of the array in the window.
type governor struct {
	c     *GovernorConstants
	phase float64
	off   bool
	fixed []Window // windows at full rate, given instead of predicted

	window int64 // number of the window known
	known  bool
	full   bool
	use    float64 // ns at full rate streamed in that window
	until  float64 // end of that window
	safe   float64 // times before this are not behind it, whatever is rounded

	keep bool     // the windows at full rate in kept
	kept []Window // in time order, windows that touch joined
}

// at returns whether t is at full rate and when that may change. Times never
// go back behind a window that is over.
func (g *governor) at(t float64) (full bool, until float64) {
	switch {
	case g.known && t < g.safe:
		return g.full, g.until
	case g.off:
		return true, math.Inf(1)
	case g.fixed != nil:
		for _, w := range g.fixed {
			if t < w.Start {
				return false, w.Start
			}
			if t < w.End {
				return true, w.End
			}
		}
		return false, math.Inf(1)
	}
	k := g.number(t)
	if !g.known {
		g.window, g.known = k, true
	}
	if g.window < k {
		g.full = g.use >= g.c.Threshold*g.c.Window
		g.use = 0
		if g.window+1 < k { // windows without any use
			g.full = false
		}
		g.window = k
		if g.keep && g.full {
			g.record(Window{g.phase + float64(k)*g.c.Window, g.phase + float64(k+1)*g.c.Window})
		}
	}
	g.until = g.phase + float64(g.window+1)*g.c.Window
	if g.safe = g.until - 1e-6*g.c.Window; g.window > 1e8 { // where times are coarse
		g.safe = math.Inf(-1)
	}
	return g.full, g.until
}

// record appends a window at full rate.
func (g *governor) record(w Window) {
	if n := len(g.kept); n > 0 && w.Start <= g.kept[n-1].End+1e-6 {
		g.kept[n-1].End = w.End
		return
	}
	g.kept = append(g.kept, w)
}

func (g *governor) number(t float64) int64 { return int64(math.Floor((t-g.phase)/g.c.Window + 1e-9)) }

// streamed records ns at full rate spent streaming, with a share of the
// array's rows in use.
func (g *governor) streamed(ns, share float64) { g.use += ns * share }

// Share is the share of the array's rows that matmul i uses. The governor
// counts rows: a matmul of 64 rows uses the array half.
func Share(m *components.Module, i uint32) float64 {
	const rows = 128
	if p := m.Instr.Parts.At(int(i)); p > 0 && p < rows {
		return float64(p) / rows
	}
	return 1
}

// stream returns when cycles columns that start at t are through, at the
// rates of the windows they fall into.
func (s *sim) stream(pe *tensor, t, cycles, share float64) float64 {
	cycle, slow := s.p.cycle, s.p.c.Gov.Slow
	most := s.p.c.PE.Burst * (1 - slow)
	pe.burst = min(most, pe.burst+max(0, t-pe.burstT)/cycle*(1-slow))
	for left := cycles; left > 1e-9; {
		full, until := pe.gov.at(t)
		room := until - t
		var take, dt float64
		switch {
		case full:
			take = min(left, room/cycle)
			dt = take * cycle
			pe.burst = most
		case pe.burst > 1e-9:
			take = min(left, pe.burst/(1-slow), room/cycle)
			dt = take * cycle
			pe.burst -= take * (1 - slow)
		default:
			take = min(left, room/cycle*slow)
			dt = take * cycle / slow
		}
		pe.gov.streamed(take*cycle, share)
		if take <= 1e-9 { // at the end of a window
			t = until
			continue
		}
		t += dt
		left -= take
	}
	pe.burstT = t
	return t
}

// LoadKindOf is the case of LoadKinds that a weight load is.
func LoadKindOf(m *components.Module, i uint32) int {
	in := &m.Instr
	switch {
	case in.DType.At(int(i)).Size() <= 2 || in.DType.At(int(i)) == components.Float32R:
		return 0
	case in.Flags.At(int(i))&components.FlagTranspose != 0:
		return 1
	}
	return 2
}

// load places a load of weights that its sequencer hands over at ready; it
// returns start and end.
func (s *sim) load(pe *tensor, i uint32, ready float64) (start, end float64) {
	x := &s.p.products[s.p.shape[i]]
	k := x.load
	start = max(ready, pe.last+s.p.c.PE.AfterStream)
	full, _ := pe.gov.at(start)
	r := 1
	if full {
		r = 0
	}
	pe.loaded = start + s.p.c.PE.FirstLoad[k][r]
	pe.transp = x.transp
	if k > 0 && !full && start >= pe.free { // the load itself used the burst up
		pe.burst, pe.burstT = 0, pe.loaded
	}
	return start, start + s.p.c.PE.Load[k][r]
}

// matmul places a matmul; it returns start and retirement.
func (s *sim) matmul(pe *tensor, i uint32, ready float64) (start, end float64) {
	c := &s.p.c.PE
	x := &s.p.products[s.p.shape[i]]
	start = max(ready, pe.free, pe.loaded)
	full, _ := pe.gov.at(start)
	end = s.stream(pe, start, x.cycles, x.share)
	if full {
		fixed := c.Fixed
		if pe.transp {
			fixed = c.FixedT
		}
		end += fixed * s.p.cycle
	}
	pe.last, pe.free = start, end
	full, _ = pe.gov.at(end)
	fill := c.FillCycles * s.p.cycle
	if !full {
		fill /= s.p.c.Gov.Slow
	}
	return start, end + c.FillNs + fill
}
