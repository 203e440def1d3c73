package coregrid

import (
	"testing"
)

// Half of Wormhole's destination registers hold 8 tiles of 16 bits or 4 of 32:
// blocks of 2 by 4 and 2 by 2 results, 6 operands for 8 products and 4 for 4.
// A tile of 16 bits takes 2048 / 64 = 32 cycles to read, a product of LoFi 16.
func TestAccumulatorsByHand(t *testing.T) {
	op := Op{Kind: "matmul", Batch: 1, M: 256, K: 1024, N: 256, MACs: 256 * 1024 * 256, In: 256 * 1024, Window: 256 * 1024, Out: 256 * 256}
	const products = 8 * 8 * 32
	for _, c := range []struct {
		accumulator, fidelity string
		want                  float64
	}{
		{"", "LoFi", products*0.75*32 + 1000},
		{"Fp16_b", "LoFi", products*0.75*32 + 1000},
		{"Fp32", "LoFi", products*1*32 + 1000},
		{"Fp32", "HiFi4", products*64 + 1000}, // the multiplier takes longer
	} {
		m, err := NewModel(load(t, "wormhole_b0"), "Fp16_b", c.accumulator, c.fidelity)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Cycles(&op, 1, 1); got != c.want {
			t.Errorf("%q at %s: %v cycles, want %v", c.accumulator, c.fidelity, got, c.want)
		}
	}
	if _, err := NewModel(load(t, "grayskull"), "Fp16_b", "Fp32", "LoFi"); err == nil {
		t.Error("Grayskull has no 32-bit sums")
	}
	half, err := NewModel(load(t, "rtx3090"), "Fp16", "Fp16", "")
	if err != nil || half.Passes != 0.5 {
		t.Errorf("16-bit sums take %v passes (%v), the whitepaper has 142 TFLOPS for 71", half.Passes, err)
	}
	if _, err := NewModel(load(t, "rtx3090"), "Fp16_b", "Fp16", ""); err == nil {
		t.Error("bfloat16 products have no 16-bit sums")
	}
}

// A rectangle of 1 by 3 fits a free column of 3 by 1 only turned.
func TestTurnedPlacement(t *testing.T) {
	o := occupancy{make([]uint64, 3), 2}
	if _, _, ok := o.place(3, 1); !ok {
		t.Fatal("3 by 1 has to fit")
	}
	if _, _, _, ok := o.turn(1, 3, false); ok {
		t.Error("1 by 3 fits no grid of 3 by 2")
	}
	row, col, turned, ok := o.turn(1, 3, true)
	if !ok || !turned || row != 0 || col != 1 {
		t.Errorf("placed %v at [%d, %d], turned %v", ok, row, col, turned)
	}
}
