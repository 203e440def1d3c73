package calibrated

import (
	"perfsim/components"
)

// dmaEngines is the state of one core's DMA engines, seen as one server: a
// transfer is spread over all of them and ends with the slowest.
type dmaEngines struct {
	free      float64
	lastWrite bool
	batch     []float64 // by queue: arrival of the first read of its batch
}

// transfer is what a DMA instruction moves.
type transfer struct {
	stream float64 // ns on each engine
	many   bool    // more rows than the generator takes at once
	read   bool    // reads device memory
	small  bool    // a read of short rows
}

// measure returns the transfer of instruction i.
func (p *program) measure(i uint32) transfer {
	in, d := &p.m.Instr, &p.c.DMA
	bytes := float64(in.DMABytes.Get(int(i)))
	if bytes == 0 {
		bytes = float64(in.Elems.At(int(i))) * float64(in.Parts.At(int(i))) * float64(max(in.DType.At(int(i)).Size(), 1))
	}
	row := float64(in.DMARow.Get(int(i)))
	if row == 0 {
		row = float64(in.Elems.At(int(i))) * float64(max(in.DType.At(int(i)).Size(), 1))
	}
	row = max(1, min(row, bytes))
	rows := max(1, bytes/row)
	flags := in.Flags.At(int(i))
	t := transfer{many: rows > d.ManyRows, read: flags&components.FlagDstDRAM == 0}
	soft := p.kind[i] == kindSW
	switch {
	case soft && flags&components.FlagMixedTypes != 0:
		from, to := p.dmaTypes(i)
		t.stream = rows * (d.Chunk + d.Cast + row*from/to/d.Rate)
	case soft && t.read:
		row = min(max(row, d.SWReadRow), bytes)
		t.stream = bytes / row * (d.Row + row/d.Rate)
	case soft:
		t.stream = rows * (d.Chunk + row/d.Rate)
	default:
		t.stream = rows * (d.Row + row/d.Rate)
	}
	t.stream /= d.Engines
	t.small = t.read && row < d.SmallRow
	return t
}

// dmaTypes returns the element sizes of a converting transfer's two sides.
func (p *program) dmaTypes(i uint32) (from, to float64) {
	from, to = 1, 1
	lo, hi := p.m.Operands.Range(components.InstrID(i))
	for r := lo; r < hi; r++ {
		size := float64(max(p.m.Operands.DType.At(r).Size(), 1))
		if p.m.Operands.Role.At(r) == components.RoleOut {
			to = size
		} else {
			from = size
		}
	}
	return from, to
}

// start is the time from a trigger to the first packet.
func (d *DMAConstants) start(t transfer, soft bool) float64 {
	switch {
	case soft && t.read:
		return d.SWStartRead
	case soft:
		return d.SWStartWrite
	}
	at := d.StartWrite
	if t.read {
		at = d.StartRead
	}
	if t.many {
		at += d.StartMany
	}
	return at
}

// serve places a transfer triggered at t on the DMA engines and returns when
// its data starts to move and when its semaphore has its final value.
func (e *dmaEngines) serve(d *DMAConstants, t float64, x transfer, soft bool, queue int) (begin, complete float64) {
	arrive := t + d.start(x, soft)
	backlog := e.free - arrive
	extra := 0.0
	switch {
	case !x.read && backlog > 0 && e.lastWrite:
		extra = d.WriteQueued * x.stream
	case !x.read:
		extra = d.WriteIdle * x.stream
	default:
		for len(e.batch) <= queue {
			e.batch = append(e.batch, -1e18)
		}
		same := arrive <= e.batch[queue]+d.Batch
		if !same {
			e.batch[queue] = arrive
		}
		switch {
		case x.small:
			extra = d.ReadSmall
		case backlog > 0 && e.lastWrite:
			extra = d.Turnaround
		case same || backlog > d.Backlog:
			extra = d.ReadBatched
		default:
			extra = d.ReadRestart
		}
	}
	begin = max(arrive+d.Skew, e.free)
	end := begin + x.stream + extra + d.End
	e.free = end
	if x.small { // short rows leave gaps that other queues fill
		e.free = begin + x.stream
	}
	e.lastWrite = !x.read
	return begin, end + d.Complete
}
