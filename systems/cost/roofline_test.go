package cost

import (
	"testing"

	"perfsim/components"
	"perfsim/components/machine"
)

// trn2: an array of 128 x 128 at 2.4 GHz does 78643.2 operations a ns, a
// quarter on operands of 4 bytes; its memory gives HBMRate bytes a ns.
func TestRoofline(t *testing.T) {
	m, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		work, bytes uint64
		d           components.DType
		want        uint64
	}{
		{137_438_953_472, 1, components.BFloat16, 1_747_627}, // 1747626.67
		{137_438_953_472, 1, components.NoDType, 1_747_627},
		{137_438_953_472, 1, components.Float32, 6_990_507},
		{1, uint64(1e6 * m.Memory.HBMRate), components.BFloat16, 1_000_000},
		{1, 1, components.BFloat16, 1},
		{1 << 63, 1, components.BFloat16, 1<<32 - 1},
	} {
		if got := roofline(m, c.work, c.bytes, c.d); got != c.want {
			t.Errorf("%d operations over %d bytes of %v: %d ns, want %d", c.work, c.bytes, c.d, got, c.want)
		}
	}
}
