package tracklayout

import (
	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/summary"
)

// profilerEngines are the engines under the names that the Neuron profiler's
// summary gives them.
var profilerEngines = []struct {
	name   string
	engine components.Engine
}{{"tensor", components.PE}, {"vector", components.DVE}, {"scalar", components.Activation}, {"gpsimd", components.Pool}, {"sync", components.SP}}

// metrics are the figures of the whole: ours, and those of the profiler's
// summary that are the same quantity, under its names and in its units
// (seconds; fields that end in _percent hold shares from 0 to 1). Every row
// counts as often as it executes. Figures of the profiler's are of the first
// process; the measured process, where there is one, adds its own with
// "measured_" in front.
func metrics(t *components.Timeline, busy []uint64) []components.Metric {
	w := t.World
	if busy == nil {
		s := summary.Make(w)
		busy = s.Busy(w.Module.Lanes.Len())
	}
	out := []components.Metric{
		{Name: "instructions", Value: float64(w.Module.Instr.Len())},
		{Name: "edges", Value: float64(w.Module.Edges.Preds.Len())},
		{Name: "latency_ns", Value: float64(w.Latency(components.RunA)), Unit: "ns"},
	}
	if b := w.LatencyB(); b.Known() {
		out = append(out, components.Metric{Name: "latency_no_antideps_ns", Value: float64(b), Unit: "ns"})
	}
	for l, ns := range busy {
		if ns > 0 {
			out = append(out, components.Metric{Name: "busy_ns." + w.Module.LaneName(uint16(l)), Value: float64(ns), Unit: "ns"})
		}
	}
	for p, proc := range t.Processes {
		switch {
		case p == 0:
			out = append(out, profiler(t, p, "", busy)...)
		case proc.Measured:
			out = append(out, profiler(t, p, "measured_", nil)...)
		}
	}
	return out
}

// profiler returns the figures of process p under the profiler's names, with a
// prefix. busy has the busy time of the lanes of a predicted process.
func profiler(t *components.Timeline, p int, prefix string, busy []uint64) []components.Metric {
	m := t.World.Module
	in := &m.Instr
	waits := m.WaitOpcodes()
	var count [components.NumEngines]float64
	var spans [components.NumEngines][]ecs.Interval
	var matmuls, read, written float64
	var first, last uint64 = ^uint64(0), 0
	t.Each(func(i components.InstrID) {
		if !t.Has(p, i) {
			return
		}
		e, op := in.Engine.At(int(i)), in.Opcode.At(int(i))
		start, end := t.Span(p, i)
		first, last = min(first, start), max(last, end)
		times := 1.0 // a measured row is one execution
		if busy != nil && t.Executions != nil {
			times = float64(t.Executions.At(i))
		}
		count[e] += times
		if op.IsMatmul() || m.OpcodeName(op) == "MATMUL" {
			matmuls += times
		}
		if !waits[op] {
			spans[e] = append(spans[e], ecs.Interval{start, end})
		}
		f := in.Flags.At(int(i))
		b := times * float64(in.DMABytes.Get(int(i)))
		if f&components.FlagSrcDRAM != 0 {
			read += b
		}
		if f&components.FlagDstDRAM != 0 {
			written += b
		}
	})
	total := float64(last - min(first, last))
	active := func(e components.Engine) float64 { return float64(ecs.UnionLength(spans[e])) }
	if busy != nil && len(t.Blocks) == len(m.TopBlocks()) {
		total = float64(t.World.Latency(components.RunA))
		active = func(e components.Engine) float64 {
			lanes, sum := 0, 0.0
			for l, ns := range busy {
				if ns > 0 && m.Lanes.Engine.At(l) == e {
					lanes++
					sum += float64(ns)
				}
			}
			if lanes > 1 && !repeats(t) {
				return float64(ecs.UnionLength(spans[e])) // two cores at a time are one engine's time
			}
			return min(sum, total)
		}
	}
	seconds := func(ns float64) float64 { return ns / 1e9 }
	share := func(ns float64) float64 {
		if total == 0 {
			return 0
		}
		return ns / total
	}
	out := []components.Metric{{Name: "total_time", Value: seconds(total), Unit: "s"}}
	for _, e := range profilerEngines {
		busy := active(e.engine)
		out = append(out, components.Metric{Name: e.name + "_engine_active_time", Value: seconds(busy), Unit: "s"},
			components.Metric{Name: e.name + "_engine_active_time_percent", Value: share(busy)},
			components.Metric{Name: e.name + "_engine_instruction_count", Value: count[e.engine]})
	}
	out = append(out, components.Metric{Name: "matmul_instruction_count", Value: matmuls})
	if in.DMABytes.Len() > 0 {
		out = append(out, components.Metric{Name: "hbm_read_bytes", Value: read, Unit: "bytes"}, components.Metric{Name: "hbm_write_bytes", Value: written, Unit: "bytes"})
	}
	for k := range out {
		out[k].Name = prefix + out[k].Name
	}
	return out
}

// repeats reports whether a row of the timeline executes more than once.
func repeats(t *components.Timeline) bool {
	for _, b := range t.Blocks {
		m := t.World.Module
		for i := m.Blocks.First.At(b); i < m.Blocks.End.At(b); i++ {
			if t.Executions.At(components.InstrID(i)) != 1 {
				return true
			}
		}
	}
	return false
}
