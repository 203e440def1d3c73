package overlap

import (
	"testing"

	"pgregory.net/rapid"

	"perfsim/components"
	"perfsim/ecs/proptest"
)

func sbuf(addr uint64, base uint16, steps []int64, counts []uint64) components.AccessPattern {
	return components.AccessPattern{Kind: components.OperandPhysical, Memory: components.MemSBUF, DType: components.BFloat16, Address: addr,
		Base: base, Steps: steps, Counts: counts}
}

func TestOf(t *testing.T) {
	m := components.NewModule("m", "test")
	for range 3 {
		m.Locations.Name.Append(0)
		m.Locations.Alias.Append(0)
	}
	m.Locations.Alias.Set(1, 7)
	m.Locations.Alias.Set(2, 7)
	tile := sbuf(1024, 0, []int64{1, 1}, []uint64{128, 512})
	dram := func(where uint32) components.AccessPattern {
		d := tile
		d.Memory, d.Where = components.MemDRAM, where
		return d
	}
	psum := tile
	psum.Memory = components.MemPSUM
	immediate := components.AccessPattern{Kind: components.OperandImmediate}
	for _, c := range []struct {
		name string
		a, b components.AccessPattern
		want Answer
	}{
		{"itself", tile, tile, Yes},
		{"another memory", tile, psum, No},
		{"behind it", tile, sbuf(2048, 0, []int64{1, 1}, []uint64{128, 512}), No},
		{"last element", tile, sbuf(2046, 0, []int64{1, 1}, []uint64{128, 1}), Yes},
		{"other partitions", sbuf(0, 0, []int64{1, 1}, []uint64{64, 8}), sbuf(0, 64, []int64{1, 1}, []uint64{64, 8}), No},
		{"even and odd elements", sbuf(0, 0, []int64{1, 2}, []uint64{128, 8}), sbuf(2, 0, []int64{1, 2}, []uint64{128, 8}), No},
		{"even and every element", sbuf(0, 0, []int64{1, 2}, []uint64{128, 8}), sbuf(2, 0, []int64{1, 1}, []uint64{128, 8}), Yes},
		{"a hole between elements that are touched twice", sbuf(0, 0, []int64{1, 0, 2}, []uint64{1, 2, 2}), sbuf(2, 0, []int64{1, 1}, []uint64{1, 1}), No},
		{"steps backwards", sbuf(8, 0, []int64{1, -1}, []uint64{1, 4}), sbuf(4, 0, []int64{1, 1}, []uint64{1, 1}), Yes},
		{"one tensor", dram(1), dram(1), Yes},
		{"two tensors", dram(1), dram(2), No},
		{"two aliases", dram(2), dram(3), Yes},
		{"tensor and bare address", dram(1), dram(0), Unknown},
		{"immediate", tile, immediate, Unknown},
	} {
		if got := Of(m, c.a, c.b); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if got := Of(m, c.b, c.a); got != c.want {
			t.Errorf("%s, the other way round: %d, want %d", c.name, got, c.want)
		}
	}
}

// Against a map of bytes.
func TestOfEqualsBytes(t *testing.T) {
	m := components.NewModule("m", "test")
	pattern := rapid.Custom(func(t *rapid.T) components.AccessPattern {
		o := sbuf(uint64(rapid.IntRange(64, 127).Draw(t, "addr")), uint16(rapid.IntRange(0, 3).Draw(t, "base")), []int64{1}, []uint64{uint64(rapid.IntRange(1, 3).Draw(t, "parts"))})
		o.DType = rapid.SampledFrom([]components.DType{components.Uint8, components.BFloat16, components.Float32}).Draw(t, "dtype")
		for range rapid.IntRange(1, 3).Draw(t, "dims") {
			o.Steps = append(o.Steps, int64(rapid.IntRange(-4, 4).Draw(t, "step")))
			o.Counts = append(o.Counts, uint64(rapid.IntRange(1, 4).Draw(t, "count")))
		}
		return o
	})
	proptest.Check(t, func(t *rapid.T) {
		a, b := pattern.Draw(t, "a"), pattern.Draw(t, "b")
		touched := map[[2]int64]bool{}
		each := func(o components.AccessPattern, f func(part, at int64)) {
			for p := range o.Counts[0] {
				for _, s := range starts(o) {
					for k := range int64(o.DType.Size()) {
						f(int64(o.Base)+int64(p), s+k)
					}
				}
			}
		}
		each(a, func(p, at int64) { touched[[2]int64{p, at}] = true })
		want := No
		each(b, func(p, at int64) {
			if touched[[2]int64{p, at}] {
				want = Yes
			}
		})
		if got := Of(m, a, b); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}
