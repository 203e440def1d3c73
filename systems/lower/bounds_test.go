package lower

import (
	"context"
	"strings"
	"testing"

	"perfsim/components/machine"
	"perfsim/io/xla/hlo"
)

// A value beyond any memory is refused by name: its sizes in bytes would
// overflow. An empty dimension beside it makes it no smaller.
func TestSizesBeyondMemory(t *testing.T) {
	for shape, want := range map[string]string{
		"f32[7,9223372036854775807]": "p: dimension 1 has 9223372036854775807 elements, more than 2^48",
		"f32[0,9223372036854775807]": "p: dimension 1 has 9223372036854775807 elements, more than 2^48",
	} {
		gs, err := hlo.ReadText("t.hlo", []byte("HloModule m\n\nENTRY e {\n  p = "+shape+" parameter(0)\n  ROOT n = "+shape+" negate(p)\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		g := gs[0]
		m, err := machine.Load("trn2")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Lower(context.Background(), g, m, DefaultOptions()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", shape, err, want)
		}
	}
}
