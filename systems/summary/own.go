package summary

import (
	"perfsim/components"
	"perfsim/ecs"
)

// RowBusy returns, by row, what all executions of the row add to the busy time
// of its lane in run A, in ns: the duration of one, less what earlier rows of
// the lane cover, times the executions. Waits for semaphores and loops add
// nothing. The rows of a lane add up to its BusyNS exactly: where iterations of
// a loop overlap, the rows of the block share the time in proportion.
func RowBusy(w *components.World) []uint64 {
	m := w.Module
	out := make([]uint64, m.Instr.Len())
	waits := m.WaitOpcodes()
	times := components.NewExecutions(m, w.Config.Loops)
	lanes := m.Lanes.Len()
	transfers := w.Transfers
	for _, b := range m.TopBlocks() {
		until, rows := make([]uint64, lanes), make([]uint64, lanes)
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			l := m.Instr.Lane.At(int(i))
			if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 || waits[m.Instr.Opcode.At(int(i))] {
				continue
			}
			start, end := w.Events.Span(m, components.InstrID(i), components.RunA)
			if w.Transfers != nil && m.Lanes.Engine.At(int(l)) == components.DMA {
				for len(transfers) > 0 && uint32(transfers[0].Row) < i {
					transfers = transfers[1:]
				}
				if len(transfers) == 0 || uint32(transfers[0].Row) != i {
					continue
				}
				l, start, end = dmaLane(l), transfers[0].Begin, transfers[0].End
			}
			if start = max(start, until[l]); end > start {
				out[i] = ecs.MulSat(end-start, times.At(components.InstrID(i)))
				rows[l] = ecs.AddSat(rows[l], out[i])
				until[l] = end
			}
		}
		share(w, b, out, rows, busyOfBlock(w, waits, b).times(m.Functions.Runs.At(int(m.Blocks.Function.At(b)))))
	}
	return out
}

// share scales the rows of top block b so that those of every lane, which add
// up to rows, add up to busy.
func share(w *components.World, b int, out, rows, busy []uint64) {
	m := w.Module
	same := true
	for l := range rows {
		same = same && (rows[l] == busy[l] || rows[l] == 0)
	}
	if same {
		return
	}
	before := make([]uint64, len(rows)) // by lane: the sum of the rows so far, unscaled
	for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
		if out[i] == 0 {
			continue
		}
		l := m.Instr.Lane.At(int(i))
		if w.Transfers != nil && m.Lanes.Engine.At(int(l)) == components.DMA {
			l = dmaLane(l)
		}
		from := ecs.MulDiv(busy[l], before[l], rows[l])
		before[l] = ecs.AddSat(before[l], out[i])
		out[i] = ecs.MulDiv(busy[l], before[l], rows[l]) - from
	}
}
