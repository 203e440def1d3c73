package fit

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs/proptest"
)

// traced makes a module whose durations follow mult×N + base cycles of the
// engine's clock (in units of 10 MHz), rounded down to ns.
func traced(t testing.TB, opcode string, e components.Engine, dtype components.DType, clock int, mult, base float64, sizes []uint32) *components.Module {
	m := components.NewModule("trace", "test")
	lanes := m.AddCoreLanes(0)
	n := len(sizes)
	m.Instr.Grow(n)
	m.Instr.OutElems.Resize(n)
	m.Instr.MeasuredStart.Resize(n)
	m.Instr.MeasuredDur.Resize(n)
	at := uint64(0)
	for i, elems := range sizes {
		m.Instr.Opcode.Set(i, m.Opcode(opcode))
		m.Instr.Engine.Set(i, e)
		m.Instr.Lane.Set(i, lanes+uint16(e))
		m.Instr.Elems.Set(i, elems)
		m.Instr.OutElems.Set(i, elems)
		m.Instr.DType.Set(i, dtype)
		d := uint64((mult*float64(elems) + base) * 100 / float64(clock))
		m.Instr.MeasuredStart.Set(i, at)
		m.Instr.MeasuredDur.Set(i, uint32(d))
		at += d
	}
	f := m.Functions.Add(m.Symbols.InternString("f"), 0)
	b := m.Blocks.Add(m.Symbols.InternString("b"), uint32(f), 0, 0, 1)
	m.Blocks.End.Set(b, uint32(n))
	m.Functions.EndBlock.Set(f, 1)
	if err := m.Link(&components.EdgeSet{}); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFromTraces makes durations from a known cost and asks for it back.
func TestFromTraces(t *testing.T) {
	base := load(t, "trn2")
	proptest.Check(t, func(r *rapid.T) {
		mult := float64(rapid.IntRange(1, 32).Draw(r, "quarters")) / 4
		start := float64(rapid.IntRange(0, 400).Draw(r, "base"))
		sizes := rapid.SliceOfN(rapid.Uint32Range(64, 4096), 8, 40).Draw(r, "sizes")
		if distinct64(sizes) < 4 {
			r.Skip("too few sizes")
		}
		e := rapid.SampledFrom([]components.Engine{components.DVE, components.Activation, components.Pool}).Draw(r, "engine")
		clock := engineClock(base, e)
		m := traced(t, "TensorTensor", e, components.Float32, clock, mult, start, sizes)
		rows, mach, err := FromTraces(ctx, []*components.Module{m}, base)
		if err != nil || len(rows) != 1 {
			r.Fatalf("%v, %v", rows, err)
		}
		a := rows[0]
		// A duration is up to 1 ns too small, so the slope between the
		// smallest and the largest size is exact to 1 ns over their distance.
		slack := 2 * float64(clock) / 100 / float64(slices.Max(sizes)-slices.Min(sizes))
		if math.Abs(a.Mult-mult) > max(slack, 1e-4) || a.Samples != len(sizes) || a.Worst > 3 {
			r.Fatalf("%v×N + %v cycles became %+v", mult, start, a)
		}
		if k := mach.Reference.Costs["TensorTensor"]; k.Form != "affine" || k.Mult32 != a.Mult || float64(k.Base32) != a.Base {
			r.Fatalf("the machine has %+v, the fit %+v", k, a)
		}
		if base.Reference.Costs["TensorTensor"].Mult32 == a.Mult && a.Mult != 0 && base.Reference.Costs["TensorTensor"].Mark == "FITTED" {
			r.Fatal("the machine given was changed")
		}
	})
}

func distinct64(x []uint32) int {
	seen := map[uint32]bool{}
	for _, v := range x {
		seen[v] = true
	}
	return len(seen)
}

// TestFromTracesOneSize keeps the documented slope where one size only was
// seen, and takes the rest for the base.
func TestFromTracesOneSize(t *testing.T) {
	base := load(t, "trn2")
	want := max(base.Reference.Costs["Iota"].Mult, 0)
	m := traced(t, "Iota", components.Pool, components.Float32, engineClock(base, components.Pool), want, 77, []uint32{512, 512, 512})
	rows, _, err := FromTraces(ctx, []*components.Module{m}, base)
	if err != nil || len(rows) != 1 || rows[0].Sizes != 1 || math.Abs(rows[0].Mult-want) > 1e-4 || math.Abs(rows[0].Base-77) > 1 {
		t.Errorf("%+v, %v", rows, err)
	}
	empty := traced(t, "Iota", components.Pool, components.Float32, 140, 1, 0, []uint32{0})
	if _, _, err := FromTraces(ctx, []*components.Module{empty}, base); err == nil || !strings.Contains(err.Error(), "no instruction") {
		t.Errorf("%v", err)
	}
}
