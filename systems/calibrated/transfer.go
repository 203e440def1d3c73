package calibrated

import (
	"math"

	"perfsim/components"
)

// dmaEngines is the state of one core's DMA engines, seen as one server: a
// transfer is spread over all of them and ends with the slowest.
type dmaEngines struct {
	free      float64
	lastWrite bool
	writeEnd  float64   // end of the last write
	batch     []float64 // by queue: arrival of the first read of its batch
	short     []float64 // by queue: end of its last read of short rows
}

// Transfer is the movement of a DMA instruction by its operands.
type Transfer struct {
	Bytes  float64
	Row    float64 // bytes of one contiguous piece of the more scattered side
	Read   bool    // reads device memory, as opposed to writing it
	Soft   bool    // descriptors made by software
	Static bool    // descriptors made before the run
	// Scattered says that the rows are apart in device memory, Conflict that
	// they are a multiple of 1 MiB apart.
	Scattered, Conflict bool
	From, To            float64 // element sizes; different where types are converted
	Element             float64 // bytes of an element
	// Transposed says that the DMA engines transpose elements of two bytes,
	// OnChip that no side is in device memory.
	Transposed, OnChip bool
}

// TransferOf returns what instruction i moves, and whether it is a DMA.
func TransferOf(m *components.Module, i uint32) (Transfer, bool) {
	in := &m.Instr
	name := m.OpcodeName(in.Opcode.At(int(i)))
	k, _, ok := transferKind(m, int(i), kindOf(name))
	if !ok {
		return Transfer{}, false
	}
	size := float64(max(in.DType.At(int(i)).Size(), 1))
	t := Transfer{Bytes: float64(in.DMABytes.Get(int(i))), Row: float64(in.DMARow.Get(int(i))), From: 1, To: 1, Element: size}
	if t.Bytes == 0 {
		t.Bytes = float64(in.Elems.At(int(i))) * float64(max(in.Parts.At(int(i)), 1)) * size
	}
	if t.Row == 0 {
		t.Row = float64(in.Elems.At(int(i))) * size
	}
	t.Row = max(1, min(t.Row, t.Bytes))
	flags := in.Flags.At(int(i))
	t.Read = flags&components.FlagDstDRAM == 0
	t.OnChip = t.Read && flags&components.FlagSrcDRAM == 0
	t.Soft, t.Static = k == kindSW, k == kindStatic
	if flags&components.FlagTranspose != 0 {
		t.transposes(size)
	}
	if t.Rows() >= 2 && !t.Transposed {
		t.Scattered, t.Conflict = scattered(m, i, t.Row)
	}
	if flags&components.FlagMixedTypes != 0 {
		lo, hi := m.Operands.Range(components.InstrID(i))
		for r := lo; r < hi; r++ {
			size := float64(max(m.Operands.DType.At(r).Size(), 1))
			switch {
			case m.Operands.Role.At(r) == components.RoleOut:
				t.To = size
			case t.From == 1: // the first input; others hold addresses
				t.From = size
			}
		}
	}
	return t, true
}

// transposes makes t a transpose of elements of two bytes, which the DMA
// engines do at a share of the rate of copies. That of other elements is a copy
// of scattered rows.
func (t *Transfer) transposes(size float64) {
	if size != 2 {
		return
	}
	t.Transposed, t.Row = true, t.Bytes
}

// transferKind returns how the descriptors of DMA instruction i are made and
// whose sequencer triggers it; ok is false for what is no DMA. Software
// descriptors are made on the GpSimd; those made before the run are triggered
// by the instruction's own engine, SP where it has none; everything else goes through the
// hardware generators, which SP and Activation command.
func transferKind(m *components.Module, i int, op opKind) (k kind, e components.Engine, ok bool) {
	in := &m.Instr
	flags := in.Flags.At(i)
	e = in.Engine.At(i)
	onDMA := in.Lane.At(i)%components.LanesPerCore == components.LaneDMA
	if flags&(components.FlagLoop|components.FlagBarrier) != 0 || flags&components.FlagCollective != 0 && flags&components.FlagLocal == 0 ||
		!(op == opDMA || onDMA && op == opData || flags&components.FlagCollective != 0) {
		return 0, 0, false
	}
	switch {
	case flags&components.FlagStaticDMA != 0:
		return kindStatic, sequencer(e), true
	case flags&components.FlagSWDGE != 0:
		return kindSW, components.Pool, true
	case e == components.Activation:
		return kindHW, e, true
	case e == components.Pool && flags&components.FlagHWDGE == 0:
		return kindSW, e, true
	}
	return kindHW, components.SP, true
}

// scattered reports whether the rows of transfer i, of row bytes each, are apart
// in device memory: what lies in one piece there, in whatever order, is shorter
// than two rows. conflict says that the next piece is a multiple of 1 MiB away,
// where rows meet in the memory's banks.
func scattered(m *components.Module, i uint32, row float64) (apart, conflict bool) {
	t := &m.Operands
	lo, hi := t.Range(components.InstrID(i))
	for r := lo; r < hi; r++ {
		if !t.Memory.At(r).InDRAM() || t.Kind.At(r) > components.OperandRegisterAP {
			continue
		}
		o := t.At(r)
		run := uint64(1)
		for grown := true; grown; {
			grown = false
			for d, n := range o.Counts {
				if n > 1 && n < 1<<32 && run < 1<<32 && uint64(max(o.Steps[d], -o.Steps[d])) == run {
					run *= n
					grown = true
				}
			}
		}
		size := uint64(max(t.DType.At(r).Size(), 1))
		if float64(run)*float64(size) >= 2*row {
			continue
		}
		apart = true
		next := uint64(0) // the smallest step beyond the piece
		for d, n := range o.Counts {
			if step := uint64(max(o.Steps[d], -o.Steps[d])); n > 1 && step > run && (next == 0 || step < next) {
				next = step
			}
		}
		conflict = conflict || next > 0 && next < 1<<40 && next*size%(1<<20) == 0
	}
	return apart, conflict
}

// Rows is how many pieces the transfer has.
func (t Transfer) Rows() float64 { return max(1, t.Bytes/t.Row) }

// transfer is a Transfer in the terms of the model.
type transfer struct {
	Transfer
	stream float64 // ns on each engine
	start  float64 // ns from a trigger to the first packet
	many   bool    // more rows than the generator takes at once
	small  bool    // a read of short rows
}

// transferOf returns the transfer of instruction i.
func (p *program) transferOf(i uint32) *transfer { return &p.transfers[p.shape[i]] }

func (d *DMAConstants) of(t Transfer) transfer {
	return transfer{Transfer: t, stream: d.Stream(t), start: d.Start(t), many: t.Rows() > d.ManyRows, small: d.Small(t)}
}

// Small reports whether the transfer reads short rows.
func (d *DMAConstants) Small(t Transfer) bool { return t.Read && d.piece(t) < d.SmallRow }

// piece is the bytes of one packet.
func (d *DMAConstants) piece(t Transfer) float64 {
	if t.Soft && t.Read && t.From == t.To {
		return min(max(t.Row, d.SWReadRow), t.Bytes)
	}
	return t.Row
}

// Stream is how long each engine moves data for a transfer, in ns, where
// nothing holds it up.
func (d *DMAConstants) Stream(t Transfer) float64 {
	if t.Transposed {
		share := d.Transpose
		if t.OnChip {
			share = d.TransposeOnChip
		}
		return t.Bytes / d.Rate / share / d.Engines
	}
	piece := d.piece(t)
	rows := max(1, t.Bytes/piece)
	per := d.Row + piece/d.Rate
	switch elements := max(1, piece/max(1, t.Element)); {
	case t.Scattered: // short rows go element by element where that is quicker
		per = max(per, min(d.Scatter, d.Element*elements))
	case elements == 1 && rows > 1 && t.OnChip: // packets of profiles: 7.9 ns and their bytes
		per = d.Chunk + piece/d.Rate
	case elements == 1 && rows > 1:
		per = max(per, d.Element)
	}
	switch {
	case t.Soft && t.From != t.To:
		per = d.Chunk + d.Cast + piece*t.From/t.To/d.Rate
	case t.Soft && !t.Read:
		per = d.Chunk + piece/d.Rate
	}
	stream := rows * per / d.Engines
	if t.Conflict && piece > t.Element {
		stream += d.Conflict * math.Ceil(rows/conflictRows)
	}
	return stream
}

// conflictRows is how many rows, one a partition, meet in the memory's banks at
// once: transfers of 64 and of 128 rows lose the same time.
const conflictRows = 128

// Start is the time from a trigger to the first packet.
func (d *DMAConstants) Start(t Transfer) float64 {
	switch {
	case (t.Soft || t.Static) && t.Read:
		return d.SWStartRead
	case t.Soft || t.Static:
		return d.SWStartWrite
	}
	at := d.StartWrite
	if t.Read {
		at = d.StartRead
	}
	if t.Rows() > d.ManyRows {
		at += d.StartMany
	}
	return at
}

// serve places a transfer triggered at t on the DMA engines and returns when
// its data starts to move and when its semaphore has its final value.
func (e *dmaEngines) serve(d *DMAConstants, t float64, x *transfer, queue int) (begin, complete float64) {
	arrive := t + x.start
	backlog := e.free - arrive
	extra := 0.0
	switch {
	case x.Static: // descriptors and data stream without a break
	case !x.Read && backlog > 0 && e.lastWrite:
		extra = d.WriteQueued * x.stream
	case !x.Read:
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
	if x.small && !x.Static { // short rows leave gaps that other queues fill, not their own
		for len(e.short) <= queue {
			e.short = append(e.short, 0)
		}
		begin = max(begin, e.short[queue])
	}
	end := begin + x.stream + extra + d.End
	e.free = end
	if x.small && !x.Static {
		e.free, e.short[queue] = begin+x.stream, end
	}
	if e.lastWrite = !x.Read; e.lastWrite {
		e.writeEnd = end
	}
	return begin, end + d.Complete
}
