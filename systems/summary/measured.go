package summary

import (
	"cmp"
	"slices"
	"strconv"

	"perfsim/components"
	"perfsim/ecs"
)

// dmaLane returns the lane of the DMA engines of the core of a lane.
func dmaLane(lane uint16) uint16 {
	return lane/components.LanesPerCore*components.LanesPerCore + components.LaneDMA
}

// transfersBusy sets the busy time of DMA lanes in top block b where the model
// times the transfers apart from the instructions that trigger them.
func transfersBusy(w *components.World, b int, busy []uint64) {
	if w.Transfers == nil {
		return
	}
	m := w.Module
	list := make([][]ecs.Interval, len(busy))
	first, _ := slices.BinarySearchFunc(w.Transfers, m.Blocks.First.At(b), func(t components.Transfer, row uint32) int {
		return cmp.Compare(uint32(t.Row), row)
	})
	for _, t := range w.Transfers[first:] {
		if uint32(t.Row) >= m.Blocks.End.At(b) {
			break
		}
		l := dmaLane(m.Instr.Lane.At(int(t.Row)))
		list[l] = append(list[l], ecs.Interval{t.Begin, t.End})
	}
	for l := range busy {
		if m.Lanes.Engine.At(l) == components.DMA {
			busy[l] = ecs.UnionLength(list[l])
		}
	}
}

// MeasuredBusy is the union of the measured intervals of every lane, waits for
// semaphores left out, or nil where there are none. A DMA lane of a profile
// that lists the packets is busy while one is in flight; a profile lists those
// of the first core that has DMA.
func MeasuredBusy(m *components.Module) []uint64 {
	if !m.HasMeasurement() {
		return nil
	}
	if m.Packets.Start.Len() == 0 {
		if out, ok := unionInOrder(m); ok {
			return out
		}
	}
	rows := make([][]ecs.Interval, m.Lanes.Len())
	each(m, func(i int, x ecs.Interval) { l := m.Instr.Lane.At(i); rows[l] = append(rows[l], x) })
	if m.Packets.Start.Len() > 0 && len(rows) > int(components.LaneDMA) {
		rows[components.LaneDMA] = packets(m)
	}
	out := make([]uint64, len(rows))
	for l, r := range rows {
		out[l] = ecs.UnionLength(r)
	}
	return out
}

// unionInOrder is the union of the measured intervals by lane where those of
// each lane come in the order of their starts; ok is false where they do not.
func unionInOrder(m *components.Module) (out []uint64, ok bool) {
	waits := m.WaitOpcodes()
	lanes := m.Lanes.Len()
	start, dur, op := m.Instr.MeasuredStart.Slice(), m.Instr.MeasuredDur.Slice(), m.Instr.Opcode.Slice()
	out = make([]uint64, lanes)
	last, until := make([]uint64, lanes), make([]uint64, lanes)
	for i, l := range m.Instr.Lane.Slice() {
		if waits[op[i]] {
			continue
		}
		at := start[i]
		if at < last[l] {
			return nil, false
		}
		last[l] = at
		lo, hi := max(at, until[l]), at+uint64(dur[i])
		if hi > lo {
			out[l] += hi - lo
			until[l] = hi
		}
	}
	return out, true
}

// each calls f with the measured intervals of all rows that are no waits.
func each(m *components.Module, f func(i int, x ecs.Interval)) {
	waits := m.WaitOpcodes()
	start, dur := m.Instr.MeasuredStart.Slice(), m.Instr.MeasuredDur.Slice()
	for i, op := range m.Instr.Opcode.Slice() {
		if !waits[op] {
			f(i, ecs.Interval{start[i], start[i] + uint64(dur[i])})
		}
	}
}

func packets(m *components.Module) []ecs.Interval {
	list := make([]ecs.Interval, m.Packets.Start.Len())
	for k := range list {
		at := m.Packets.Start.At(k)
		list[k] = ecs.Interval{at, at + uint64(m.Packets.Dur.At(k))}
	}
	return list
}

// profilerEngines are the engines under the names that the Neuron profiler's
// summary gives their active times.
var profilerEngines = []struct {
	engine components.Engine
	figure string
}{{components.PE, "tensor_engine_active_time"}, {components.DVE, "vector_engine_active_time"}, {components.Activation, "scalar_engine_active_time"},
	{components.Pool, "gpsimd_engine_active_time"}, {components.SP, "sync_engine_active_time"}, {components.DMA, "dma_active_time"}}

// active lists the engines of a measured profile; nil for other inputs.
func active(m *components.Module) []Active {
	if m.Format != "neuronprofile" || !m.HasMeasurement() {
		return nil
	}
	var of [components.NumEngines][]ecs.Interval
	each(m, func(i int, x ecs.Interval) { e := m.Instr.Engine.At(i); of[e] = append(of[e], x) })
	if m.Packets.Start.Len() > 0 {
		of[components.DMA] = packets(m)
	}
	var out []Active
	for _, p := range profilerEngines {
		a := Active{Engine: p.engine.String(), MeasuredNS: ecs.UnionLength(of[p.engine])}
		if v, err := strconv.ParseFloat(m.Attribute("summary."+p.figure), 64); err == nil && v >= 0 && v < 1e9 {
			ns := uint64(v*1e9 + 0.5)
			a.ProfilerNS = &ns
		}
		out = append(out, a)
	}
	return out
}
