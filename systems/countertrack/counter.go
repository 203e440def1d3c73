// Package countertrack makes the counters of a timeline: how busy every engine
// is, how much of the on-chip memories is in use, and how many bytes the DMA
// moves, over time. No counter exceeds the machine's capacity; docs/figures.md
// defines them.
package countertrack

import (
	"context"
	"fmt"
	"math"
	"slices"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/occupancy"
)

// samples is the number of equal time bins; more are not visible in a viewer
// and cost memory.
const samples = 1024

// Add appends the counters of process p of the timeline to its series.
func Add(ctx context.Context, t *components.Timeline, p int) error {
	end := t.End()
	if end == 0 {
		return nil
	}
	c := &counters{t: t, p: p, end: end, width: max(1, (end+samples-1)/samples)}
	c.byLane, c.names = occupancy.Cores(t.World.Module)
	c.n = int((end + c.width - 1) / c.width)
	c.loops = findLoops(t, p)
	c.utilization()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.transfers()
	c.psum()
	if err := ctx.Err(); err != nil {
		return err
	}
	c.sbuf()
	c.clock()
	return nil
}

// clock is the clock of every PE that has one that changes, in GHz: the highest
// in each sample.
func (c *counters) clock() {
	w := c.t.World
	if w.SlowClock <= 0 || c.t.Processes[c.p].Measured || c.t.Processes[c.p].Run != components.RunA || c.memory() == (machine.Memory{}) {
		return
	}
	full := float64(w.Machine.Clock.PEArray) / 100
	for core := range c.cores() {
		value := make([]float64, c.n)
		any := false
		for k := range value {
			value[k] = round(full * w.SlowClock)
		}
		for _, s := range w.FullClock {
			b := slices.Index(c.t.Blocks, s.Block)
			if s.Core != core || b < 0 {
				continue
			}
			any = true
			off := c.t.Offset[b]
			for k := int((s.Start + off) / c.width); k < c.n && uint64(k)*c.width < s.End+off; k++ {
				value[k] = round(full)
			}
		}
		if any {
			c.add(c.of(core, "PE clock"), "GHz", func(k int) float64 { return value[k] })
		}
	}
}

type counters struct {
	t     *components.Timeline
	p     int
	end   uint64
	width uint64 // of a sample, ns
	n     int    // samples

	loops  []loop
	byLane []int    // core of a lane, numbered densely
	names  []uint16 // the input's numbers of the cores
}

// add appends a series of one value a sample, values that repeat left out.
func (c *counters) add(name, unit string, value func(k int) float64) {
	s := components.Series{Name: name, Unit: unit, Process: c.p}
	last := math.NaN()
	any := false
	for k := range c.n {
		v := value(k)
		any = any || v != 0
		if v == last {
			continue
		}
		s.Time = append(s.Time, uint64(k)*c.width)
		s.Value = append(s.Value, v)
		last = v
	}
	if any {
		if last != 0 {
			s.Time = append(s.Time, c.end)
			s.Value = append(s.Value, 0)
		}
		c.t.Series = append(c.t.Series, s)
	}
}

// spread adds amount to the samples between from and to, in proportion.
func (c *counters) spread(sum []float64, from, to uint64, amount float64) {
	if to <= from {
		return
	}
	rate := amount / float64(to-from)
	for k := int(from / c.width); k < c.n && uint64(k)*c.width < to; k++ {
		lo, hi := max(from, uint64(k)*c.width), min(to, uint64(k+1)*c.width)
		sum[k] += rate * float64(hi-lo)
	}
}

// utilization is the share of every sample in which a lane is busy: executes an
// instruction that is no wait for a semaphore.
func (c *counters) utilization() {
	m := c.t.World.Module
	waits := m.WaitOpcodes()
	for l, rows := range c.t.Lanes(c.p) {
		sum := make([]float64, c.n)
		var until uint64
		for _, i := range rows {
			if waits[m.Instr.Opcode.At(int(i))] {
				continue
			}
			s, e := c.t.Span(c.p, i)
			if s = max(s, until); e > s {
				c.spread(sum, s, e, float64(e-s))
				c.earlier(i, c.once(i, float64(e-s)), func(from, to uint64, ns float64) { c.spread(sum, from, to, ns) })
				until = e
			}
		}
		c.add("busy "+m.LaneName(uint16(l)), "%", func(k int) float64 {
			return round(min(100, 100*sum[k]/float64(min(c.width, c.end-uint64(k)*c.width))))
		})
	}
}

// round keeps six digits behind the point: sums in another order would
// differ in the last bits.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// core returns the dense number of the core of an instruction's lane.
func (c *counters) core(i components.InstrID) int {
	return c.byLane[c.t.World.Module.Instr.Lane.At(int(i))]
}

// cores returns how many cores the lanes have.
func (c *counters) cores() int { return len(c.names) }

// memory returns the sizes and rates of the machine, zeros where none was
// simulated.
func (c *counters) memory() machine.Memory {
	if c.t.World.Machine == nil {
		return machine.Memory{}
	}
	return c.t.World.Machine.Memory
}

// of names a counter of one core: the first has no prefix, as its lanes have.
func (c *counters) of(core int, name string) string {
	if c.names[core] == 0 {
		return name
	}
	return fmt.Sprintf("nc%d.%s", c.names[core], name)
}

// transfers is the bytes per ns that DMA instructions move, by core. The bytes
// of a transfer are spread over the time in which its data moves: the end of
// its duration, as long as it keeps its lane, because the beginning is the
// preparation of descriptors, which overlaps with the transfer before. A
// simulated core moves no more than the device memory of the machine does:
// what the rules of a model move faster is drawn later.
func (c *counters) transfers() {
	m := c.t.World.Module
	if m.Instr.DMABytes.Len() == 0 {
		return
	}
	measured := c.t.Processes[c.p].Measured
	cores := c.cores()
	read, write := make([][]float64, cores), make([][]float64, cores)
	c.t.Each(func(i components.InstrID) {
		b := m.Instr.DMABytes.At(int(i))
		if b == 0 || !c.t.Has(c.p, i) {
			return
		}
		s, e := c.t.Span(c.p, i)
		switch w := c.t.Why; {
		case measured:
		case w != nil && w.Visible.Len() > 0 && c.t.Processes[c.p].Run == w.Run:
			at, _ := c.t.World.Events.Span(m, i, w.Run)
			e = s + max(e-s, w.Visible.At(int(i))-min(at, w.Visible.At(int(i))))
		default:
			if keeps := uint64(m.Instr.Issue.Get(int(i))); keeps > 0 {
				s = max(s, e-min(e, keeps))
			}
		}
		f, core := m.Instr.Flags.At(int(i)), c.core(i)
		if read[core] == nil {
			read[core], write[core] = make([]float64, c.n), make([]float64, c.n)
		}
		moves := func(s, e uint64, bytes float64) {
			if f&components.FlagSrcDRAM != 0 {
				c.spread(read[core], s, e, bytes)
			}
			if f&components.FlagDstDRAM != 0 {
				c.spread(write[core], s, e, bytes)
			}
		}
		moves(s, e, float64(b))
		c.earlier(i, float64(b), moves)
	})
	for k := range cores {
		if read[k] == nil {
			continue
		}
		if rate := c.memory().HBMRate; !measured && rate > 0 {
			level(read[k], write[k], rate*float64(c.width))
		}
		c.add(c.of(k, "HBM read"), "B/ns", func(n int) float64 { return round(read[k][n] / float64(c.width)) })
		c.add(c.of(k, "HBM written"), "B/ns", func(n int) float64 { return round(write[k][n] / float64(c.width)) })
	}
}

// level moves what is read and written in a sample beyond most bytes to the
// next, and what is left at the end to earlier ones that have room.
func level(read, write []float64, most float64) {
	step := func(k int, r, w float64) (float64, float64) {
		r, w = r+read[k], w+write[k]
		keep := 1.0
		if r+w > most {
			keep = most / (r + w)
		}
		read[k], write[k] = r*keep, w*keep
		return r - read[k], w - write[k]
	}
	var r, w float64
	for k := range read {
		r, w = step(k, r, w)
	}
	for k := len(read) - 1; k >= 0 && r+w > 0; k-- {
		r, w = step(k, r, w)
	}
}

// live counts the cells that are live when a sample begins.
type live struct {
	c    *counters
	diff []int // by sample: cells that begin less those that end to be live
	// begins and ends are the changes themselves, where loops need them.
	begins, ends []change
}

// count enters a cell's life in every sample that begins in it.
func (l *live) count(from, to uint64) {
	if f, t := l.sample(from), l.sample(to); f < t {
		l.diff[f]++
		l.diff[t]--
	}
	if len(l.c.loops) > 0 && from < to {
		l.begins, l.ends = another(l.begins, from, 1), another(l.ends, to, -1)
	}
}

// another adds a change, to the last one where that is of the same time.
func another(list []change, at uint64, by int) []change {
	if n := len(list) - 1; n >= 0 && list[n].at == at {
		list[n].by += by
		return list
	}
	return append(list, change{at, by})
}

// sample returns the first sample that begins at t or later.
func (l *live) sample(t uint64) int {
	return int(min((t+l.c.width-1)/l.c.width, uint64(l.c.n)))
}

// occupied adds a counter of the live cells of every core that has some; walk
// calls its argument with the lives of cells.
func (c *counters) occupied(name, unit string, scale int, walk func(occupancy.Done)) {
	lives := make([]*live, c.cores())
	walk(func(core, _ int, from, to uint64, _ components.InstrID) {
		if lives[core] == nil {
			lives[core] = &live{c: c, diff: make([]int, c.n+1)}
		}
		lives[core].count(from, to)
	})
	for core, l := range lives {
		if l == nil {
			continue
		}
		now, counts := 0, make([]int, c.n)
		for k := range counts {
			now += l.diff[k]
			counts[k] = now
		}
		c.fillLoops(counts, append(l.begins, l.ends...))
		c.add(c.of(core, name), unit, func(k int) float64 { return float64(counts[k] * scale) })
	}
}

// psum counts the PSUM banks in use, by core.
func (c *counters) psum() {
	c.occupied("PSUM banks in use", "banks", 1, func(done occupancy.Done) { occupancy.PSUM(c.t, c.p, done) })
}

// sbuf counts the bytes per partition of SBUF in use, by core. Addresses beyond
// the machine's SBUF are no part of it.
func (c *counters) sbuf() {
	size := uint64(max(c.memory().SBUFBytes, 0))
	c.occupied("SBUF in use", "bytes per partition", occupancy.CellBytes, func(done occupancy.Done) {
		if beyond, _ := occupancy.SBUF(c.t, c.p, size, done); beyond > 0 && size > 0 && c.p == 0 {
			c.t.World.Module.Note("beyond-sbuf", fmt.Sprintf("access patterns reach beyond the %d bytes per partition of SBUF on %s; the counter of SBUF leaves those out", size, c.t.World.Machine.Name), beyond)
		}
	})
}
