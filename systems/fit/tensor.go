package fit

import (
	"math"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
)

// matmul is a measured matmul with its load of weights.
type matmul struct {
	row, load  uint32
	hasLoad    bool // a load stands right before it
	cols       float64
	transposed bool
	kind       int // case of calibrated.LoadKinds
}

// matmuls returns the matmuls of core 0's PE in program order.
func (p *profile) matmuls(mach *machine.Machine) []matmul {
	nominal := cost.NewNominal(p.m, mach)
	var out []matmul
	for q, list := range p.order {
		if p.seq[q] != (seqKey{0, components.PE}) {
			continue
		}
		for k, i := range list {
			if nominal.PE(int(i)) != cost.PEStream {
				continue
			}
			x := matmul{row: i, transposed: p.m.Instr.Flags.At(int(i))&components.FlagTranspose != 0}
			x.cols, _ = nominal.Columns(int(i))
			if k > 0 && nominal.PE(int(list[k-1])) == cost.PELoad {
				x.load, x.hasLoad = list[k-1], true
				// A matmul's own text does not show a transpose; its weights' does.
				x.transposed = x.transposed || p.m.Instr.Flags.At(int(x.load))&components.FlagTranspose != 0
				x.kind = calibrated.LoadKindOf(p.m, x.load)
			}
			out = append(out, x)
		}
	}
	return out
}

// tensor collects what the PE shows. cycle is ns of the array's clock.
func (p *profile) tensor(s *samples, mach *machine.Machine) {
	cycle := 100 / float64(mach.Clock.PEArray)
	all := p.matmuls(mach)
	for k := range all {
		x := &all[k]
		i := x.row
		var next, prev *matmul
		if k+1 < len(all) {
			next = &all[k+1]
		}
		if k > 0 {
			prev = &all[k-1]
		}
		p.loads(s, x, prev, next)
		if next == nil || !next.hasLoad && p.at[next.row] != p.at[i]+1 {
			continue
		}
		gap := p.start[next.row] - p.start[i]
		busy := p.start[next.row] < p.end[i] && prev != nil && p.start[i] < p.end[prev.row]
		if _, waits := p.satisfied(next.row, 'S'); next.hasLoad && waits == 0 {
			_, waits = p.satisfied(next.load, 'S')
			busy = busy && waits == 0
		}
		dur := p.end[i] - p.start[i]
		if !busy {
			continue
		}
		switch {
		case p.full(p.start[i], p.start[next.row]):
			fixed := gap/cycle - x.cols
			if fixed > -4 && fixed < 40 {
				if x.transposed {
					s.add("pe.transpose_fixed_cycles", byMedian, fixed)
				} else {
					s.add("pe.matmul_fixed_cycles", byMedian, fixed)
				}
				if p.full(p.start[i], p.end[i]) {
					s.add("pe.fill_full", byMedian, dur-gap)
				}
			}
		case p.slow(p.start[i], p.end[i]):
			if r := x.cols * cycle / gap; r > 0.4 && r < 0.6 {
				s.add("governor.slow_rate", byMedian, r)
				s.add("pe.fill_slow", byMedian, dur-gap)
			}
		}
	}
	p.burst(s, all, cycle)
	p.governor(s, all, cycle)
}

// loads collects the delays and durations of weight loads.
func (p *profile) loads(s *samples, x, prev, next *matmul) {
	if !x.hasLoad {
		return
	}
	l := x.load
	clock := ""
	switch {
	case p.full(p.start[l], p.end[l]):
		clock = "full"
	case p.slow(p.start[l], p.end[l]):
		clock = "slow"
	default:
		return
	}
	name := calibrated.LoadKinds[x.kind] + "_" + clock + "_ns"
	idle := prev == nil || p.start[l] > p.end[prev.row]
	if !idle && p.start[l]-p.start[prev.row] < 8 {
		s.add("pe.load_after_stream_ns", byMedian, p.start[l]-p.start[prev.row])
		s.add("pe.load_"+name, byMedian, p.end[l]-p.start[l])
	}
	// The next load starts right behind the start of this matmul, which itself
	// shows an earlier start where it waits for its first weights. A load that
	// came after the array was free shows the whole delay.
	alone := idle
	if !idle {
		before := p.end[prev.row] - p.start[prev.row]
		alone = p.start[l]-p.start[prev.row] > before-100 && p.start[l]-p.start[prev.row] > 40
	}
	if alone && next != nil && next.hasLoad {
		if _, waits := p.satisfied(next.load, 'S'); waits == 0 && p.start[next.load] < p.end[x.row] {
			s.add("pe.first_load_"+name, byMedian, p.start[next.load]-p.start[l]-2)
		}
	}
}

// burst collects how much of a matmul runs at full rate when the array was
// idle on the slow clock: 16-bit weights leave all of it to the matmul.
func (p *profile) burst(s *samples, all []matmul, cycle float64) {
	for k := 1; k+1 < len(all); k++ {
		x, next := &all[k], &all[k+1]
		if !x.hasLoad || x.kind != 0 || !p.slow(p.start[x.row], p.end[next.row]) || p.start[x.load] < p.end[all[k-1].row]+200 {
			continue
		}
		if gap := p.start[next.row] - p.start[x.row]; gap < 2*x.cols*cycle {
			s.add("pe.burst_cycles", byMedian, (2*x.cols*cycle-gap)/cycle)
		}
	}
}

// governor collects the window length and, from the use of every window and
// the rate of the next, the threshold: the middle between the largest use
// that did not give full rate and the smallest that did.
func (p *profile) governor(s *samples, all []matmul, cycle float64) {
	if len(p.windows) == 0 {
		return
	}
	const nominal = 4096 * 100.0 / 120 // documented: 4096 base cycles
	t := &p.m.Windows
	for i := range t.Dur.Len() {
		d := float64(t.Dur.At(i))
		if n := math.Round(d / nominal); t.Core.At(i) == 0 && i+1 < t.Dur.Len() && n >= 1 && math.Abs(d-n*nominal) < 20 {
			s.add("governor.window_ns", byMedian, d/n)
		}
	}
	base := p.windows[0].Start
	if len(all) == 0 {
		return
	}
	first := math.Floor((p.start[all[0].row] - base) / nominal)
	last := math.Floor((p.end[all[len(all)-1].row] - base) / nominal)
	use := make([]float64, int(last-first)+2)
	for k, x := range all {
		a := p.start[x.row]
		rate := 1.0
		if !p.full(a, a+1) {
			rate = 0.5
		}
		b := a + x.cols*cycle/rate
		if k+1 < len(all) {
			b = min(b, p.start[all[k+1].row])
		}
		// A first matmul shows a start before its weights are there.
		if x.hasLoad && (k == 0 || p.start[x.load] > p.end[all[k-1].row]) {
			shift := p.end[x.row] - a - (b - a) - 165
			a, b = a+max(0, min(shift, 200)), b+max(0, min(shift, 200))
		}
		share := calibrated.Share(p.m, x.row)
		for w := range use {
			lo := base + (first+float64(w))*nominal
			if o := min(b, lo+nominal) - max(a, lo); o > 0 {
				use[w] += o * rate * share / nominal
			}
		}
	}
	for w, u := range use {
		edge := base + (first+float64(w)+1)*nominal
		if edge+50 > p.spanEnd() || u == 0 {
			continue
		}
		if p.full(edge+10, edge+20) {
			s.add("governor.use_full", byMin, u)
		} else {
			s.add("governor.use_slow", byMin, -u)
		}
	}
}

func (p *profile) spanEnd() float64 {
	end := 0.0
	for _, e := range p.end {
		end = max(end, e)
	}
	return end
}

// finishTensor turns the auxiliary measurements into constants.
func finishTensor(s *samples, mach *machine.Machine) {
	cycle := 100 / float64(mach.Clock.PEArray)
	full, slow := s.values["pe.fill_full"], s.values["pe.fill_slow"]
	delete(s.values, "pe.fill_full")
	delete(s.values, "pe.fill_slow")
	if len(full) > 0 && len(slow) > 0 {
		rate := 0.5
		if r := s.values["governor.slow_rate"]; len(r) > 0 {
			rate = median(append([]float64(nil), r...))
		}
		f, l := median(append([]float64(nil), full...)), median(append([]float64(nil), slow...))
		c := (l - f) / (1/rate - 1) / cycle
		for range min(len(full), len(slow)) {
			s.add("pe.fill_cycles", byMedian, c)
		}
		for _, v := range full {
			s.add("pe.fill_ns", byMedian, v-c*cycle)
		}
	}
	up, down := s.values["governor.use_full"], s.values["governor.use_slow"]
	delete(s.values, "governor.use_full")
	delete(s.values, "governor.use_slow")
	if len(up) > 0 && len(down) > 0 {
		lo, hi := -estimate(byMin, down), estimate(byMin, up)
		if lo < hi {
			t := thresholdBetween(lo, hi)
			s.add("governor.threshold", byMedian, t)
			s.how["governor.threshold"] = byMedian
			s.bounds["governor.threshold"] = [2]float64{lo, hi}
			s.n["governor.threshold"] = len(up) + len(down)
		}
	}
}

// thresholdBetween is the governor's threshold when uses up to lo did not
// reach it and those from hi on did: 3/8 of the array, which 110 windows of ten
// profiles agree with, unless these measurements exclude it.
func thresholdBetween(lo, hi float64) float64 {
	const law = 3.0 / 8
	if lo < law && law <= hi {
		return law
	}
	return (lo + hi) / 2
}
