package machine

import (
	"math"
	"testing"
)

// The array of 128 by 128, its clock and the share of the memory against what
// is published of a core (sources: the descriptions).
func TestRooflines(t *testing.T) {
	for _, c := range []struct {
		name             string
		tflops, low      float64 // BF16, and how far the array may stay below
		hbm, within      float64 // bytes a ns: the chip's over its cores
		sbufMiB, hbmGiB  float64
		coresAStack, why string
	}{
		{"trn1", 190.0 / 2, 0.035, 820.0 / 2, 0.001, 24, 16, "1", "the guide's 2.8 GHz make 91.8"},
		{"trn2", 79, 0.006, 2900.0 / 8, 0.002, 28, 24, "2", "the chip's 667 are 83.4 a core, the guide's 2.4 GHz make 78.6"},
		{"trn3", 671.0 / 8, 0.065, 4900.0 / 8, 0.001, 32, 36, "2", "the guide's 2.4 GHz make 78.6"},
	} {
		m, err := Load(c.name)
		if err != nil {
			t.Fatal(err)
		}
		array := 2 * 128 * 128 * float64(m.Clock.PEArray) * 1e7 / 1e12
		if d := 1 - array/c.tflops; d < 0 || d > c.low {
			t.Errorf("%s: %.1f TFLOPS, published %.1f (%s)", c.name, array, c.tflops, c.why)
		}
		if r := m.Memory.HBMRate / c.hbm; math.Abs(r-1) > c.within {
			t.Errorf("%s: %v bytes a ns of memory, published %v", c.name, m.Memory.HBMRate, c.hbm)
		}
		if got := float64(m.Memory.Partitions) * float64(m.Memory.SBUFBytes) / (1 << 20); got != c.sbufMiB {
			t.Errorf("%s: %v MiB of SBUF, published %v", c.name, got, c.sbufMiB)
		}
		if got := float64(m.Memory.HBMBytes) / (1 << 30); got != c.hbmGiB {
			t.Errorf("%s: %v GiB of memory for %s cores, published %v", c.name, got, c.coresAStack, c.hbmGiB)
		}
	}
}
