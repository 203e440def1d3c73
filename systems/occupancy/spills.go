package occupancy

import (
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/summary"
)

// spills sums up the transfers of values that had to make room, by executions;
// nil where there are none.
func spills(w *components.World) *Spills {
	m := w.Module
	var s Spills
	var busy []uint64
	var runs *components.Executions
	for i, f := range m.Instr.Flags.Slice() {
		if f&components.FlagSpill == 0 {
			continue
		}
		if busy == nil {
			busy, runs = summary.RowBusy(w), components.NewExecutions(m, w.Config.Loops)
		}
		n := runs.At(components.InstrID(i))
		bytes := ecs.MulSat(m.Instr.DMABytes.Get(i), n)
		if f&components.FlagDstDRAM != 0 {
			s.StoredBytes = ecs.AddSat(s.StoredBytes, bytes)
		} else {
			s.ReloadedBytes = ecs.AddSat(s.ReloadedBytes, bytes)
		}
		if f&components.FlagTransfer == 0 {
			s.Transfers = ecs.AddSat(s.Transfers, n)
		}
		s.BusyNS = ecs.AddSat(s.BusyNS, busy[i])
	}
	if busy == nil {
		return nil
	}
	return &s
}
