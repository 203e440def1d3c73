package nki

import (
	"fmt"

	"perfsim/components"
)

// The limits from which a prediction is one of a kind that was measured far
// off. They are chosen here, by the kernels that docs/nki.md names.
const (
	tinyRow      = 16  // bytes of a row of a transfer, below
	pieceBytes   = 512 // longest piece that counts as one descriptor
	repeats      = 4   // times that device memory is read over
	tinyElements = 16  // elements a partition of an instruction, at most
	limiting     = 0.5 // share of the latency in which a lane works, at least

	// The PE's clock goes to full rate where three eighths of the array work
	// (governor.threshold), and runs at half of it else: matmuls on a share of
	// the rows between these keep it at the rate that it has.
	undecidedFrom, undecidedTo = 0.375, 0.75
)

// Caution notes that a predicted kernel is of a kind whose predictions were
// off by about a factor of two. busy has the busy time of every lane, in ns.
func Caution(m *components.Module, busy []uint64, latency uint64) {
	in := &m.Instr
	limits := func(lane int) bool { return lane < len(busy) && float64(busy[lane]) >= limiting*float64(latency) }
	var tiny, pieces, read, distinct uint64
	dma := false
	seen := make([]bool, m.Locations.Len()+1)
	type work struct {
		n, elems uint64
	}
	lanes := make([]work, m.Lanes.Len())
	var columns, undecided uint64
	pe := false
	for i, op := range in.Opcode.Slice() {
		l := int(in.Lane.At(i))
		if !op.IsDMA() {
			w := &lanes[l]
			w.n, w.elems = w.n+1, w.elems+uint64(in.Elems.At(i))
			if op.IsMatmul() {
				pe = pe || limits(l)
				n := uint64(in.OutElems.Get(i)) * uint64(max(in.DType.At(i).Size(), 1))
				columns += n
				if share := float64(in.Parts.At(i)) / 128; share >= undecidedFrom && share < undecidedTo {
					undecided += n
				}
			}
			continue
		}
		dma = dma || limits(l)
		bytes, row := in.DMABytes.Get(i), max(uint64(in.DMARow.Get(i)), 1)
		n := bytes / min(row, pieceBytes)
		pieces += n
		if row < tinyRow {
			tiny += n
		}
		if in.Flags.At(i)&components.FlagSrcDRAM == 0 {
			continue
		}
		read += bytes
		lo, hi := m.Operands.Range(components.InstrID(i))
		for r := lo; r < hi; r++ {
			if at := m.Operands.Where.At(r); at > 0 && !seen[at] && m.Operands.Role.At(r) == components.RoleIn && m.Operands.Memory.At(r).InDRAM() {
				seen[at] = true
				distinct += m.Locations.Bytes.At(int(at) - 1)
			}
		}
	}
	if pe && 2*undecided >= columns {
		m.Note(components.NoteClockUndecided, fmt.Sprintf("the PE limits, and %.0f %% of its work is on so few rows that its clock stays at full or half rate, whichever it has: not known within a factor of two; "+
			"one kernel of this kind was measured at 0.9 times the prediction", 100*float64(undecided)/float64(columns)), 1)
	}
	if dma && 2*tiny >= pieces {
		m.Note(components.NoteTinyRows, fmt.Sprintf("%.0f %% of the DMA descriptors move less than %d bytes: kernels of this kind were measured at 0.79 to 1.12 times the prediction",
			100*float64(tiny)/float64(pieces), tinyRow), 1)
	}
	if dma && distinct > 0 && read >= repeats*distinct {
		m.Note(components.NoteRepeatedLoads, fmt.Sprintf("transfers limit, and device memory is read %.1f times over: a compiler may drop repeated loads or wait for each; "+
			"kernels of this kind were measured at 0.57 to 2.1 times the prediction", float64(read)/float64(distinct)), 1)
	}
	for l, w := range lanes {
		if w.n > 0 && limits(l) && w.elems <= tinyElements*w.n {
			m.Note(components.NoteTinyInstructions, fmt.Sprintf("%s limits with instructions of %.0f elements a partition, which are fixed cost only: two kernels of this kind were measured at 0.47 and 0.64 times the prediction",
				m.LaneName(uint16(l)), float64(w.elems)/float64(w.n)), 1)
		}
	}
}
