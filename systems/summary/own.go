package summary

import "perfsim/components"

// Own returns, by row, the time that the row adds to the busy time of its lane
// in run A, in ns: its duration but for what earlier rows of the lane cover.
// Waits for semaphores and loops add nothing. Where loop bodies count once,
// the own times of a lane times their executions add up to its busy time;
// where trips count, up to what successive iterations cover twice.
func Own(w *components.World) []uint32 {
	m := w.Module
	own := make([]uint32, m.Instr.Len())
	waits := m.WaitOpcodes()
	for _, b := range m.TopBlocks() {
		until := make([]uint64, m.Lanes.Len())
		next := 0
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			l := m.Instr.Lane.At(int(i))
			if m.Instr.Flags.At(int(i))&components.FlagLoop != 0 || waits[m.Instr.Opcode.At(int(i))] {
				continue
			}
			start, end := w.Events.Span(m, components.InstrID(i), components.RunA)
			if w.Transfers != nil {
				for next < len(w.Transfers) && uint32(w.Transfers[next].Row) < i {
					next++
				}
				if m.Lanes.Engine.At(int(l)) == components.DMA {
					if next == len(w.Transfers) || uint32(w.Transfers[next].Row) != i {
						continue
					}
					start, end = w.Transfers[next].Begin, w.Transfers[next].End
				}
			}
			if start = max(start, until[l]); end > start {
				own[i] = uint32(min(end-start, 1<<32-1))
				until[l] = end
			}
		}
	}
	return own
}
