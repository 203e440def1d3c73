package cost

import (
	"context"
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
)

func load(t *testing.T, name string) *machine.Machine {
	t.Helper()
	m, err := machine.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Vectors of the published formulas (docs/model.md, section 3), worked out by hand.
func TestPublishedVectors(t *testing.T) {
	names := []string{"trn1", "trn2", "trn3"}
	memset := map[uint64][3]uint64{1: {45, 53, 42}, 64: {101, 118, 95}, 128: {158, 185, 148}, 512: {501, 585, 468}, 2048: {1873, 2185, 1748}}
	matmult := map[uint64][3]uint64{1: {142, 166, 166}, 64: {165, 193, 193}, 128: {188, 220, 220}, 512: {325, 380, 380}}
	dma := []struct {
		parts, nep uint64
		dtype      components.DType
		want       [3]uint64
	}{
		{128, 512, components.Float32, [3]uint64{963, 712, 496}},
		{128, 2048, components.BFloat16, [3]uint64{1927, 1424, 992}},
		{1, 4096, components.BFloat16, [3]uint64{481, 356, 248}},
		{4, 4096, components.BFloat16, [3]uint64{481, 356, 248}},
		{17, 64, components.Float32, [3]uint64{30, 22, 15}},
	}
	for k, name := range names {
		m := load(t, name)
		for n, want := range memset {
			c := m.Reference.Costs["Memset"]
			if got := affine(&c, uint64(m.Clock.DVE), n, components.BFloat16, 0); got != want[k] {
				t.Errorf("%s Memset(%d) = %d, want %d", name, n, got, want[k])
			}
		}
		for n, want := range matmult {
			c := m.Reference.Costs["Matmult"]
			if got := matmul(&c, uint64(m.Clock.PE), n, components.BFloat16); got != want[k] {
				t.Errorf("%s Matmult(%d) = %d, want %d", name, n, got, want[k])
			}
		}
		for _, c := range dma {
			if got := DMAExec(&m.Reference.DMA, c.parts, c.nep, uint64(c.dtype.Size()), 0); got != c.want[k] {
				t.Errorf("%s DMA %d×%d×%s = %d, want %d", name, c.parts, c.nep, c.dtype, got, c.want[k])
			}
		}
	}
}

// Next dispatch of an operation that starts at 0.
func TestNextDispatchVectors(t *testing.T) {
	mach := load(t, "trn2")
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	r := newReference(m, mach)
	for _, c := range []struct {
		dur   uint64
		lane  uint16
		flags components.Flags
		want  uint64
	}{
		{100, components.LaneDVE, 0, 100}, {101, components.LaneDVE, 0, 1},
		{1299, components.LaneDMA, 0, 1299}, {1300, components.LaneDMA, 0, 0}, {2263, components.LaneDMA, 0, 963},
		{500, components.LaneCC0, 0, 500}, {500, components.LaneSP, components.FlagTrigger, 500},
		{50, components.LaneDMA, 0, 50},
	} {
		if got := c.dur - r.window(c.dur, c.lane, c.flags); got != c.want {
			t.Errorf("next dispatch of %d ns on lane %d is %d, want %d", c.dur, c.lane, got, c.want)
		}
	}
}

// one makes a module of one instruction.
func one(op components.Opcode, e components.Engine, set func(in *components.Instructions)) *components.Module {
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(1)
	m.Instr.Opcode.Set(0, op)
	m.Instr.Engine.Set(0, e)
	m.Instr.Lane.Set(0, uint16(e))
	m.Instr.Parts.Set(0, 128)
	set(&m.Instr)
	return m
}

func TestComposition(t *testing.T) {
	for _, c := range []struct {
		name    string
		machine string
		m       *components.Module
		want    uint32
	}{
		// 1300 + 700 cycles at 1.2 GHz + 8·1024/23.
		{"DMACopy by hardware descriptors", "trn2", one(components.OpcodeDMACopy, components.SP, func(in *components.Instructions) {
			in.Lane.Set(0, components.LaneDMA)
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.BFloat16)
			in.Flags.Set(0, components.FlagHWDGE)
		}), 1300 + 583 + 356},
		// 1300 + 500 + 8·2048/17.
		{"DMACopy by software descriptors, trn1", "trn1", one(components.OpcodeDMACopy, components.Pool, func(in *components.Instructions) {
			in.Lane.Set(0, components.LaneDMA)
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.Float32)
			in.Flags.Set(0, components.FlagSWDGE)
		}), 1300 + 500 + 963},
		// One-byte path: 512·128/368 = 178.
		{"DMACopy of bytes", "trn2", one(components.OpcodeDMACopy, components.SP, func(in *components.Instructions) {
			in.Lane.Set(0, components.LaneDMA)
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.Uint8)
		}), 1300 + 178},
		// (2·512+50)·100/96 = 1118, one input in PSUM (512+50)·100/96 = 585.
		{"TensorTensor in SBUF", "trn2", one(components.OpcodeTensorTensor, components.DVE, func(in *components.Instructions) {
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.Float32)
			in.Flags.Set(0, components.FlagTwoInputs)
		}), 1118},
		{"TensorTensor with one input in PSUM", "trn2", one(components.OpcodeTensorTensor, components.DVE, func(in *components.Instructions) {
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.Float32)
			in.Flags.Set(0, components.FlagTwoInputs|components.FlagSrcPSUM)
		}), 585},
		// Small instructions cost the minimum initiation interval: 64 cycles.
		{"TensorCopy of one element", "trn2", one(components.OpcodeTensorCopy, components.DVE, func(in *components.Instructions) {
			in.Elems.Set(0, 1)
		}), 66},
		// (512+172)·100/120 = 570.
		{"Activation of 32-bit types", "trn3", one(components.OpcodeActivation, components.Activation, func(in *components.Instructions) {
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.Float32)
		}), 570},
		// (512/2+222)·100/120 = 398.
		{"Activation of 16-bit types at twice the rate", "trn3", one(components.OpcodeActivation, components.Activation, func(in *components.Instructions) {
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.BFloat16)
		}), 398},
		// 20·(5·4·256+1000)/120 = 1020.
		{"Matmult of 32-bit types", "trn2", one(components.OpcodeMatmult, components.PE, func(in *components.Instructions) {
			in.Elems.Set(0, 512)
			in.DType.Set(0, components.Float32)
		}), 1020},
		{"control flow costs nothing", "trn2", one(components.OpcodeReturn, components.All, func(*components.Instructions) {}), 0},
	} {
		w := &components.World{Module: c.m, Machine: load(t, c.machine), Config: components.Config{Model: Reference, Jobs: 1}}
		if err := Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if got := c.m.Instr.Latency.At(0); got != c.want {
			t.Errorf("%s: %d ns, want %d", c.name, got, c.want)
		}
	}
}

func TestAbsurdCostIsAnError(t *testing.T) {
	m := one(components.OpcodeIota, components.Pool, func(in *components.Instructions) { in.Elems.Set(0, 1<<32-1) })
	mach := load(t, "trn2")
	c := mach.Reference.Costs["Iota"]
	c.Mult = 1000
	mach.Reference.Costs["Iota"] = c
	w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: Reference, Jobs: 1}}
	if err := Fill(context.Background(), w); err == nil {
		t.Error("a cost beyond 32 bits was taken")
	}
}

// The arguments of the documented simulator's constructor: a fixed number of
// cycles in place of the formulas, and a scale of the rate to device memory.
func TestConstructorArguments(t *testing.T) {
	mach := *load(t, "trn2")
	m := components.NewModule("m", "test")
	m.AddCoreLanes(0)
	m.Instr.Grow(3)
	for i, op := range []components.Opcode{components.OpcodeTensorScalar, components.OpcodeDMACopy, components.OpcodeDMACopy} {
		m.Instr.Opcode.Set(i, op)
		m.Instr.Elems.Set(i, 512)
		m.Instr.Parts.Set(i, 128)
		m.Instr.DType.Set(i, components.BFloat16)
	}
	m.Instr.Engine.Set(0, components.DVE)
	m.Instr.Lane.Set(0, components.LaneDVE)
	m.Instr.Lane.Set(1, components.LaneDMA)
	m.Instr.Lane.Set(2, components.LaneDMA)
	m.Instr.Flags.Set(1, components.FlagSrcDRAM)
	for _, c := range []struct {
		accurate bool
		cycles   uint32
		scale    float64
		want     [3]uint32
	}{
		{true, 500, 1, [3]uint32{(512 + 50) * 100 / 96, 1300 + 8*1024/23, 1300 + 8*1024/23}},
		{true, 900, 1, [3]uint32{(512 + 50) * 100 / 96, 1300 + 8*1024/23, 1300 + 8*1024/23}},
		{false, 500, 1, [3]uint32{500 * 100 / 96, 1300 + 8*1024/23, 1300 + 8*1024/23}},
		{false, 900, 0.5, [3]uint32{900 * 100 / 96, 1300 + 2*(8*1024/23), 1300 + 8*1024/23}},
	} {
		mach.Reference.CycleAccurate, mach.Reference.FixedCycles, mach.Reference.HBMScale = c.accurate, c.cycles, c.scale
		w := &components.World{Module: m, Machine: &mach, Config: components.Config{Model: Reference, Jobs: 1}}
		if err := Fill(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if got := [3]uint32(m.Instr.Latency.Slice()); got != c.want {
			t.Errorf("cycle accurate %v, %d cycles, scale %v: %v, want %v", c.accurate, c.cycles, c.scale, got, c.want)
		}
	}
}
