// Package countertrack makes the counters of a timeline: how busy every engine
// is, how much of the on-chip memories is in use, and how many bytes the DMA
// moves, over time.
package countertrack

import (
	"context"
	"math"
	"slices"

	"perfsim/components"
)

// Samples is into how many equal pieces the time is cut. More would tell no
// eye anything and cost memory.
const Samples = 1024

// Add appends the counters of process p of the timeline to its series.
func Add(ctx context.Context, t *components.Timeline, p int) error {
	end := t.End()
	if end == 0 {
		return nil
	}
	c := &counters{t: t, p: p, end: end, width: max(1, (end+Samples-1)/Samples)}
	c.n = int((end + c.width - 1) / c.width)
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
	return nil
}

type counters struct {
	t     *components.Timeline
	p     int
	end   uint64
	width uint64 // of a sample, ns
	n     int    // samples
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

// utilization is the share of every sample in which a lane has work. What a
// sequencer does by itself is no work.
func (c *counters) utilization() {
	m := c.t.World.Module
	for l, rows := range c.t.Lanes(c.p) {
		sum := make([]float64, c.n)
		var until uint64
		for _, i := range rows {
			if m.Instr.Flags.At(int(i))&components.FlagSequencer != 0 {
				continue
			}
			s, e := c.t.Span(c.p, i)
			if s = max(s, until); e > s {
				c.spread(sum, s, e, float64(e-s))
				until = e
			}
		}
		c.add("busy "+m.LaneName(uint16(l)), "%", func(k int) float64 {
			return round(100 * sum[k] / float64(min(c.width, c.end-uint64(k)*c.width)))
		})
	}
}

// round keeps six digits behind the point: sums in another order would
// differ in the last bits.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// transfers is the bytes per ns that DMA instructions move, each spread over
// its duration.
func (c *counters) transfers() {
	m := c.t.World.Module
	if m.Instr.DMABytes.Len() == 0 {
		return
	}
	read, write := make([]float64, c.n), make([]float64, c.n)
	c.t.Each(func(i components.InstrID) {
		b := m.Instr.DMABytes.At(int(i))
		if b == 0 || !c.t.Has(c.p, i) {
			return
		}
		s, e := c.t.Span(c.p, i)
		if w := c.t.Why; w != nil && w.Visible.Len() > 0 && !c.t.Processes[c.p].Measured && c.t.Processes[c.p].Run == w.Run {
			at, _ := c.t.World.Events.Span(m, i, w.Run)
			e = s + max(e-s, w.Visible.At(int(i))-at)
		}
		f := m.Instr.Flags.At(int(i))
		if f&components.FlagSrcDRAM != 0 {
			c.spread(read, s, e, float64(b))
		}
		if f&components.FlagDstDRAM != 0 {
			c.spread(write, s, e, float64(b))
		}
	})
	c.add("device memory read", "B/ns", func(k int) float64 { return round(read[k] / float64(c.width)) })
	c.add("device memory written", "B/ns", func(k int) float64 { return round(write[k] / float64(c.width)) })
}

// live counts how many of a fixed number of cells hold something that is
// still needed: from the start of a write to the end of the last access
// before the next write.
type live struct {
	c     *counters
	birth []uint64 // plus one; 0 for a cell that was never written
	last  []uint64
	diff  []int // by sample: cells that begin less those that end to be live
}

func (c *counters) newLive(cells int) *live {
	return &live{c: c, birth: make([]uint64, cells), last: make([]uint64, cells), diff: make([]int, c.n+1)}
}

func (l *live) access(cell int, write bool, start, end uint64) {
	if write && (l.birth[cell] == 0 || start >= l.last[cell]) {
		l.close(cell)
		l.birth[cell], l.last[cell] = start+1, end
		return
	}
	if l.birth[cell] == 0 { // read before any write: it was there from the start
		l.birth[cell] = 1
	}
	l.last[cell] = max(l.last[cell], end)
}

// close counts a cell's life in every sample that it touches.
func (l *live) close(cell int) {
	if l.birth[cell] == 0 {
		return
	}
	from, to := l.birth[cell]-1, max(l.last[cell], l.birth[cell])
	l.diff[min(int(from/l.c.width), l.c.n)]++
	l.diff[min(int((to-1)/l.c.width)+1, l.c.n)]--
}

// counts returns the live cells by sample.
func (l *live) counts() []int {
	for cell := range l.birth {
		l.close(cell)
	}
	out := make([]int, l.c.n)
	now := 0
	for k := range out {
		now += l.diff[k]
		out[k] = now
	}
	return out
}

// ordered returns the instructions of the process in the order of starts.
func (c *counters) ordered() []components.InstrID {
	var out []components.InstrID
	c.t.Each(func(i components.InstrID) {
		if c.t.Has(c.p, i) {
			out = append(out, i)
		}
	})
	slices.SortStableFunc(out, func(a, b components.InstrID) int {
		x, _ := c.t.Span(c.p, a)
		y, _ := c.t.Span(c.p, b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return out
}

const banks = 8

// psum counts the PSUM banks in use, over all cores.
func (c *counters) psum() {
	m := c.t.World.Module
	coreOf, cores := denseCores(m)
	l := c.newLive(cores * banks)
	any := false
	for _, i := range c.ordered() {
		mask := m.Instr.Banks.At(int(i))
		if mask == 0 {
			continue
		}
		any = true
		s, e := c.t.Span(c.p, i)
		core := coreOf[m.Instr.Lane.At(int(i))]
		for b := range banks {
			switch {
			case mask>>(banks+b)&1 != 0:
				l.access(core*banks+b, mask>>b&1 == 0 && !accumulates(m, i), s, e)
			case mask>>b&1 != 0:
				l.access(core*banks+b, false, s, e)
			}
		}
	}
	if !any {
		return
	}
	counts := l.counts()
	c.add("PSUM banks in use", "banks", func(k int) float64 { return float64(counts[k]) })
}

// accumulates tells whether a matmul adds to what its bank holds.
func accumulates(m *components.Module, i components.InstrID) bool {
	return m.Instr.Engine.At(int(i)) == components.PE && m.Instr.Flags.At(int(i))&components.FlagAccStart == 0
}

// granule is the size of a cell of SBUF, in bytes per partition; what an
// instruction touches counts in whole cells.
const granule = 64

// maxGranules bounds what addresses out of any memory could ask for, maxCells
// what many cores could: the SBUF of 256 cores of trn3 has a million cells.
const (
	maxGranules = 1 << 16
	maxCells    = 1 << 20
)

// denseCores numbers the cores that have lanes, in the order of the lanes: the
// numbers of an input may be any.
func denseCores(m *components.Module) (byLane []int, cores int) {
	number := map[uint16]int{}
	for _, core := range m.Lanes.Core.Slice() {
		n, ok := number[core]
		if !ok {
			n = len(number)
			number[core] = n
		}
		byLane = append(byLane, n)
	}
	return byLane, len(number)
}

// sbuf counts the bytes per partition of SBUF in use, over all cores.
func (c *counters) sbuf() {
	m := c.t.World.Module
	if m.Operands.Len() == 0 {
		return
	}
	coreOf, cores := denseCores(m)
	top := uint64(0)
	for r := range m.Operands.Len() {
		if m.Operands.Memory.At(r) == components.MemSBUF && m.Operands.NumDims.At(r) > 0 {
			_, hi := m.Operands.At(r).Span()
			top = max(top, hi)
		}
	}
	cells := int(min((top+granule-1)/granule, maxGranules))
	if cells == 0 || cores*cells > maxCells {
		return
	}
	l := c.newLive(cores * cells)
	for _, i := range c.ordered() {
		lo, hi := m.Operands.Range(i)
		s, e := c.t.Span(c.p, i)
		core := coreOf[m.Instr.Lane.At(int(i))]
		for _, write := range []bool{false, true} { // an instruction reads before it writes
			for r := lo; r < hi; r++ {
				if m.Operands.Memory.At(r) != components.MemSBUF || m.Operands.NumDims.At(r) == 0 || (m.Operands.Role.At(r) == components.RoleOut) != write {
					continue
				}
				from, to := m.Operands.At(r).Span()
				for g := from / granule; g < (to+granule-1)/granule && int(g) < cells; g++ {
					l.access(core*cells+int(g), write, s, e)
				}
			}
		}
	}
	counts := l.counts()
	c.add("SBUF in use", "bytes per partition", func(k int) float64 { return float64(counts[k] * granule) })
}
