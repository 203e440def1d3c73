package fit

import (
	"strings"

	"perfsim/components/machine"
)

// published are values of fitted constants that were known without our fits:
// what a cross-validation falls back to where the profiles it may use do not
// show a constant. Extras that are not here fall back to nothing.
var published = map[string]float64{
	"sync.SP.wake_ns": 16, "sync.SP.wake_control_ns": 16, "sync.Activation.wake_ns": 23, "sync.Activation.wake_control_ns": 23,
	"sync.Pool.wake_ns": 23, "sync.Pool.wake_control_ns": 23, "sync.DVE.wake_ns": 24, "sync.DVE.wake_control_ns": 24,
	"sync.PE.wake_ns": 41, "sync.PE.wake_control_ns": 28, "pe.wake_stream_ns": 41,
	"sync.PE.retire_ns": 15, "sync.Activation.retire_ns": 10, "sync.DVE.retire_ns": 12, "sync.Pool.retire_ns": 12, "sync.SP.retire_ns": 10,
	"seq.Activation.ACT_TABLE_LOAD_ns": 1283,
	"pe.matmul_fixed_cycles":           6, "pe.transpose_fixed_cycles": 6, "pe.fill_ns": 163,
	"pe.load_16bit_full_ns": 100, "pe.load_16bit_slow_ns": 148, "pe.load_32bit_transpose_full_ns": 140, "pe.load_32bit_transpose_slow_ns": 280,
	"pe.load_32bit_full_ns": 188, "pe.load_32bit_slow_ns": 376,
	"pe.first_load_16bit_full_ns": 53, "pe.first_load_16bit_slow_ns": 53, "pe.first_load_32bit_transpose_full_ns": 53,
	"pe.first_load_32bit_transpose_slow_ns": 107, "pe.first_load_32bit_full_ns": 107, "pe.first_load_32bit_slow_ns": 213,
	"governor.window_ns": 3413.3, "governor.threshold": 0.385, "governor.slow_rate": 0.5,
	"dma.trigger_SP_ns": 560, "dma.trigger_Activation_ns": 560, "dma.hw_start_write_ns": 1314, "dma.hw_start_read_ns": 1314,
	"dma.sw_start_write_ns": 757, "dma.sw_start_read_ns": 757, "dma.row_ns": 7.5, "dma.chunk_ns": 7.5, "dma.bytes_per_ns": 27.2,
	"dma.complete_ns": 400, "dma.sw_trigger_ns": 60, "start.SP_ns": 13300, "start.Activation_ns": 13300, "start.DVE_ns": 13300,
	"start.Pool_ns": 13300, "start.PE_ns": 13300,
}

// publishedOps are the operations of the same origin, by the longest part of
// their key that is here: the case, or the engine.
var publishedOps = map[string]machine.CalibratedOp{
	"Activation": {PerElem: 1, Base: 60, LatencyNs: 108}, "Activation.ACTIVATE": {PerElem: 1, Base: 222, LatencyNs: 108},
	"Activation.ACTIVATE psum": {PerElem: 1, Base: 172, LatencyNs: 108}, "DVE": {PerElem: 1, Base: 66, Min: 64, LatencyNs: 83},
	"DVE.TENSOR_SCALAR sbuf vector": {PerElem: 0.5, Base: 126, LatencyNs: 83}, "DVE.TENSOR_SCALAR psum vector": {PerElem: 1, Base: 126, LatencyNs: 83},
	"DVE.RECIPROCAL": {PerElem: 6, Base: 60, LatencyNs: 89}, "Pool": {PerElem: 1, Base: 150, LatencyNs: 83},
}

// Forget returns a copy of a machine without what was fitted: fitted
// constants have their published value or none at all.
func Forget(m *machine.Machine) *machine.Machine {
	c := clone(m)
	for _, name := range c.Calibrated.Names() {
		if c.Calibrated.Constants[name].Mark != machine.MarkFitted {
			continue
		}
		if _, pair, ok := gapName(name); ok && pair != "" {
			delete(c.Calibrated.Constants, name)
			continue
		}
		c.Calibrated.Constants[name] = machine.Constant{Value: published[name], Mark: machine.MarkDocumented}
	}
	for _, name := range c.Calibrated.OpNames() {
		if c.Calibrated.Ops[name].Mark != machine.MarkFitted {
			continue
		}
		op, ok := publishedOps[name]
		for key := name; !ok; op, ok = publishedOps[key] {
			at := max(strings.LastIndexByte(key, ' '), strings.IndexByte(key, '.'))
			if at < 0 {
				break
			}
			key = key[:at]
		}
		op.Mark = machine.MarkDocumented
		c.Calibrated.Ops[name] = op
	}
	return c
}
