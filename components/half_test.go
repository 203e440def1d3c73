package components

import (
	"math"
	"testing"
)

func TestHalfFloat(t *testing.T) {
	for h, want := range map[uint16]float64{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 5.960464477539063e-08, 0x0400: 6.103515625e-05,
		0x3555: 0.333251953125, 0xfc00: math.Inf(-1)} { // RFC 8949 appendix A has most of them
		if got := HalfFloat(h); got != want {
			t.Errorf("half %#04x is %g, not %g", h, got, want)
		}
	}
	if !math.IsNaN(HalfFloat(0x7e00)) {
		t.Error("0x7e00 is a number")
	}
}
