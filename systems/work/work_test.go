package work_test

import (
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
	"perfsim/systems/work"
)

// A module of two matmuls and a load by hand: 128·128·512 multiply-adds in
// bf16, run three times, a transpose of 128·128·128 in fp32, and 1 MiB read
// once, in 100 µs of trn2. At 16 bits the array does 2·128·128·2.4 FLOPs a ns;
// a Matmult of 32 bits takes four passes.
func TestFigures(t *testing.T) {
	t.Parallel()
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(3)
	m.Instr.MACs.Resize(3)
	m.Instr.DMABytes.Resize(3)
	f := m.Functions.Add(0, 0)
	m.Functions.Runs.Set(f, 1)
	m.Blocks.Add(0, uint32(f), 0, 0, 1)
	m.Blocks.End.Set(0, 3)
	m.Functions.EndBlock.Set(f, 1)
	for i, x := range []struct {
		op    components.Opcode
		flags components.Flags
		dtype components.DType
		macs  uint32
		bytes uint64
	}{
		{components.OpcodeMatmult, 0, components.BFloat16, 128 * 128 * 512, 0},
		{components.OpcodeMatmult, components.FlagTranspose, components.Float32, 128 * 128 * 128, 0},
		{components.OpcodeDMACopy, components.FlagSrcDRAM, components.BFloat16, 0, 1 << 20},
	} {
		m.Instr.Opcode.Set(i, x.op)
		m.Instr.Lane.Set(i, components.LanePE)
		m.Instr.Flags.Set(i, x.flags)
		m.Instr.DType.Set(i, x.dtype)
		m.Instr.MACs.Set(i, x.macs)
		m.Instr.DMABytes.Set(i, x.bytes)
	}
	w := &components.World{Module: m, Machine: mach, Events: components.NewEvents(), Blocks: []components.BlockResult{{Latency: [2]uint64{100_000, 100_000}}},
		Config: components.Config{Model: components.Reference}}
	got := work.Make(w)
	const flops, helper, peak = 2 * 128 * 128 * 512, 2 * 128 * 128 * 128, 2 * 128 * 128 * 2.4
	if *got.FLOPs != flops || *got.HelperFLOPs != helper || *got.RecomputedFLOPs != 0 {
		t.Errorf("FLOPs %d, helpers %d, recomputed %d", *got.FLOPs, *got.HelperFLOPs, *got.RecomputedFLOPs)
	}
	near := func(name string, got *float64, want float64) {
		t.Helper()
		if got == nil || *got < want*(1-1e-9) || *got > want*(1+1e-9) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("MFU", got.Predicted.MFU, flops/peak/100_000)
	near("HFU", got.Predicted.HFU, (flops+4*helper)/peak/100_000)
	near("MFU at 16 bits", got.Predicted.MFU16, flops/peak/100_000)
	near("HFU at 16 bits", got.Predicted.HFU16, (flops+helper)/peak/100_000)
	near("MBU", got.Predicted.MBU, (1<<20)/363.0/100_000)
	near("intensity", got.Intensity, flops/float64(1<<20))
	near("ridge", got.Ridge, peak/363)
	if got.Measured != nil || got.Profiler != nil {
		t.Error("measured figures without a measurement")
	}

	// What a checkpoint computes again is no FLOPs of the program.
	m.Instr.Scope.Resize(3)
	m.Instr.Scope.Set(0, m.Symbols.InternString("jit(f)/checkpoint/rematted_computation/dot_general"))
	got = work.Make(w)
	if *got.FLOPs != 0 || *got.RecomputedFLOPs != flops {
		t.Errorf("FLOPs %d, recomputed %d", *got.FLOPs, *got.RecomputedFLOPs)
	}

	// Without sizes nothing is known, and the reason is given.
	m.Instr.MACs.Drop()
	got = work.Make(w)
	if got.FLOPs != nil || got.Predicted.MFU != nil || got.Reason("flops") == "" {
		t.Error("FLOPs of matmuls whose sizes are not known")
	}
}
