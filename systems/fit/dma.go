package fit

import (
	"maps"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/systems/calibrated"
)

// dmaRates collects what single packets show: cost per row and rate.
type dmaRates struct {
	bytes, interval []float64 // of rows on a busy engine
}

// dmaTiming collects what triggers and idle DMA engines show.
func (p *profile) dmaTiming(s *samples, d *calibrated.DMAConstants, rates *dmaRates) {
	last := map[uint16]*transfer{}
	softAt := []float64{}
	for k := range p.transfers {
		t := &p.transfers[k]
		i := t.row
		e := p.m.Instr.Engine.At(int(i)).String()
		dur := p.end[i] - t.trigger
		prev := last[t.queue]
		last[t.queue] = t
		many := t.shape.Rows() > d.ManyRows
		if t.soft {
			at, waits := p.satisfied(i, 'S')
			if waits > 0 && (prev == nil || t.trigger-prev.trigger > 3000) {
				// The sequencer may have come later than the semaphore.
				if h, ok := p.before(i); !ok || p.end[h] < at {
					s.add("dma.sw_generate", byMedian, t.trigger-at)
				}
			}
			n := 0
			for _, x := range softAt {
				if x > t.trigger-d.SWFlight {
					n++
				}
			}
			softAt = append(softAt, t.trigger)
			if n == 0 {
				s.add("dma.sw_trigger_ns", byMedian, dur)
			} else {
				s.add("dma.sw_step", byMedian, dur) // less the first, divided later
				s.add("dma.sw_steps", byMedian, float64(n))
			}
			if prev != nil && t.trigger-prev.trigger < 900 {
				s.add("dma.sw_interval_ns", byMedian, t.trigger-prev.trigger)
			}
		} else {
			p.queueRoom(s, k, dur)
			back := prev != nil && t.trigger-p.end[prev.row] < 80
			switch {
			case prev == nil:
				if !many {
					s.add("dma.first."+e, byMedian, dur)
				}
			case back:
				if dur < 700 && !many {
					s.add("dma.trigger_interval_ns", byMedian, p.end[i]-p.end[prev.row])
				}
			case many:
				s.add("dma.many."+e, byMedian, dur)
			case dur < 600:
				s.add("dma.trigger_"+e+"_ns", byMedian, dur)
			}
		}
		if len(t.data) == 0 {
			continue
		}
		if t.previous < t.first-150 { // the engines were idle
			name := "dma.hw_start_"
			if t.soft {
				name = "dma.sw_start_"
			}
			dir := "write_ns"
			if t.shape.Read {
				dir = "read_ns"
			}
			switch {
			case many && !t.soft:
				s.add("dma.many_start."+dir, byMedian, t.first-t.trigger)
			default:
				s.add(name+dir, byMedian, t.first-t.trigger)
			}
			if !t.shape.Read {
				s.add("dma.skew_ns", byMedian, t.spread)
			}
		}
		s.add("dma.complete_ns", byMedian, t.complete-t.last)
		p.packetsOf(s, t, rates)
	}
}

// queueRoom collects from a hardware trigger that had to wait for room in its
// queue what made room: the transfer before the last of the queue left it.
func (p *profile) queueRoom(s *samples, k int, dur float64) {
	t := &p.transfers[k]
	if dur < waited || len(t.data) == 0 {
		return
	}
	behind, seen := -1, 0
	for h := k - 1; h >= 0 && behind < 0; h-- {
		if p.transfers[h].queue == t.queue {
			if seen++; seen == 2 {
				behind = h
			}
		}
	}
	if behind < 0 {
		return
	}
	o := &p.transfers[behind]
	if !o.shape.Read {
		s.add("dma.queue_lag_ns", byMedian, p.end[t.row]-o.first-o.spread)
		return
	}
	for h := behind - 1; h >= 0; h-- {
		if w := &p.transfers[h]; !w.shape.Read && len(w.data) > 0 {
			if lead := w.last - p.end[t.row]; lead > 0 {
				s.add("dma.read_lead_ns", byMedian, lead)
			}
			return
		}
	}
}

// waited is the duration, in ns, from which a hardware trigger has waited for
// room: more than any other, back to back or with many rows, takes.
const waited = 750

// packetsOf collects the distances of packets on busy engines, and from
// software transfers on idle engines what a piece costs.
func (p *profile) packetsOf(s *samples, t *transfer, rates *dmaRates) {
	idle := t.previous < t.first-150
	for _, e := range slices.Sorted(maps.Keys(t.data)) {
		xs := t.data[e]
		if t.soft && !t.shape.Read {
			if n := len(xs) - 1; idle && n > 0 {
				source := t.shape.Row * t.shape.From / t.shape.To
				pieces := 0.0
				for _, x := range xs[:n] {
					pieces += max(1, float64(x.bytes)/t.shape.Row)
				}
				name := "dma.piece"
				if t.shape.From != t.shape.To {
					name = "dma.cast_piece"
				}
				s.add(name, byMedian, (xs[n].start-xs[0].start)/pieces)
				s.add(name+"_bytes", byMedian, source)
			}
			continue
		}
		for k := 1; k+1 < len(xs); k++ { // the first may wait for the memory
			if math.Abs(xs[k+1].start-xs[k].end) <= 6 && xs[k].bytes != endPacket {
				rates.bytes = append(rates.bytes, float64(xs[k].bytes))
				rates.interval = append(rates.interval, xs[k+1].start-xs[k].start)
			}
		}
	}
}

// finishTiming turns auxiliary measurements into constants.
func finishTiming(s *samples, rates *dmaRates, wakePool float64) {
	take := func(name string) []float64 {
		v := s.values[name]
		delete(s.values, name)
		return v
	}
	med := func(v []float64) float64 { return median(append([]float64(nil), v...)) }
	for _, v := range take("dma.sw_generate") {
		s.add("dma.sw_generate_ns", byMedian, v-wakePool)
	}
	first := med(s.values["dma.sw_trigger_ns"])
	steps := take("dma.sw_steps")
	for k, v := range take("dma.sw_step") {
		s.add("dma.sw_trigger_step_ns", byMedian, (v-first)/steps[k])
	}
	for _, e := range []components.Engine{components.SP, components.Activation} {
		usual := med(s.values["dma.trigger_"+e.String()+"_ns"])
		for _, v := range take("dma.first." + e.String()) {
			s.add("dma.trigger_first_ns", byMedian, v-usual)
		}
		for _, v := range take("dma.many." + e.String()) {
			s.add("dma.trigger_many_ns", byMedian, v-usual)
		}
	}
	for _, dir := range []string{"write_ns", "read_ns"} {
		usual := med(s.values["dma.hw_start_"+dir])
		for _, v := range take("dma.many_start." + dir) {
			if dir == "write_ns" { // reads wait for the memory as well
				s.add("dma.hw_start_many_ns", byMedian, v-usual)
			}
		}
	}
	slope, base, ok := line(rates.bytes, rates.interval)
	rate := 27.2
	if ok && slope > 0 && base > 0 {
		rate = 1 / slope
		s.add("dma.bytes_per_ns", byMedian, rate)
		s.add("dma.row_ns", byMedian, base)
	}
	pieceBytes := take("dma.piece_bytes")
	for k, v := range take("dma.piece") {
		s.add("dma.chunk_ns", byMedian, v-pieceBytes[k]/rate)
	}
	chunk := med(s.values["dma.chunk_ns"])
	if math.IsNaN(chunk) {
		chunk = base
	}
	castBytes := take("dma.cast_piece_bytes")
	for k, v := range take("dma.cast_piece") {
		s.add("dma.cast_ns", byMedian, max(0, v-chunk-castBytes[k]/rate))
	}
}

// dmaDelays collects what holds transfers up beyond the movement of their
// data, given the constants fitted so far.
func (p *profile) dmaDelays(s *samples, d *calibrated.DMAConstants) {
	type last struct {
		write       bool
		begin, ends float64 // of the transfer before, without delays, and measured
		stream      float64
	}
	var before last
	before.ends = math.Inf(-1)
	batch := map[uint16]float64{}
	for k := range p.transfers {
		t := &p.transfers[k]
		if len(t.data) == 0 {
			continue
		}
		x := t.shape
		stream := d.Stream(x)
		arrive := t.trigger + d.Start(x)
		begin := max(arrive+d.Skew, before.ends)
		delay := t.last - begin - stream
		backlog := before.ends - arrive
		if !x.Read {
			// A write that reads overtake shows their time as its own.
			if !p.overlapped(t) {
				if backlog > 0 && before.write {
					s.add("dma.write_queued_share", byHuber, delay/stream)
				} else if backlog <= 0 {
					s.add("dma.write_idle_share", byHuber, delay/stream)
				}
			}
		} else {
			h, ok := batch[t.queue]
			same := ok && arrive <= h+d.Batch
			if !same {
				batch[t.queue] = arrive
			}
			switch {
			case d.Small(x):
				if !p.shared(t) {
					s.add("dma.read_small_ns", byHuber, delay)
				}
			case backlog > 0 && before.write:
				s.add("dma.turnaround_ns", byHuber, t.last-before.begin-before.stream-stream)
			case same || backlog > d.Backlog:
				s.add("dma.read_batched_ns", byHuber, delay)
			default:
				s.add("dma.read_restart_ns", byHuber, delay)
			}
		}
		if !(d.Small(x) && t.last < before.ends) {
			before = last{!x.Read, begin, max(before.ends, t.last), stream}
		}
	}
}

// shared reports whether another transfer moved data while t did.
func (p *profile) shared(t *transfer) bool {
	for k := range p.transfers {
		o := &p.transfers[k]
		if o.row != t.row && len(o.data) > 0 && o.first < t.last && o.last > t.first {
			return true
		}
	}
	return false
}

// overlapped reports whether another transfer moved data in the opposite
// direction while t did.
func (p *profile) overlapped(t *transfer) bool {
	for k := range p.transfers {
		o := &p.transfers[k]
		if o.shape.Read != t.shape.Read && len(o.data) > 0 && o.first < t.last && o.last > t.first {
			return true
		}
	}
	return false
}
