package systems

import (
	"os"
	"path/filepath"
	"testing"

	"perfsim/components"
)

// TestScaleCores: the latency on N cores is one core's over N, what
// collectives add and what is lost of the work.
func TestScaleCores(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mlp.hlo")
	text := `HloModule mlp
ENTRY e {
  x = f32[1024,512]{1,0} parameter(0)
  w1 = f32[512,2048]{1,0} parameter(1)
  w2 = f32[2048,512]{1,0} parameter(2)
  h = f32[1024,2048]{1,0} dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT y = f32[1024,512]{1,0} dot(h, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r := Request{Reading: Reading{Path: path, Jobs: 1}, Settings: Settings{Machine: "trn2", Model: components.Reference}}
	for _, cuts := range [][]string{nil, {"w1.1", "w2.0"}} {
		r.Settings.Graph.Buffers, r.Settings.Graph.DefaultTrip, r.Settings.Graph.MaxInstructions = 2, 1, 1_000_000
		r.Settings.Graph.Unroll, r.Settings.Graph.Compress, r.Settings.Graph.Inline, r.Settings.Graph.Group = 16, true, 256, true
		r.Settings.Graph.Cuts = cuts
		list, err := ScaleCores(t.Context(), r, []int64{1, 2, 4})
		if err != nil {
			t.Fatal(err)
		}
		if one := list[0]; one.NS != one.OneNS || one.Speedup != 1 || one.CollectivesNS != 0 || one.Derived {
			t.Errorf("one core: %+v", one)
		}
		for _, p := range list[1:] {
			if got := int64(p.OneNS/uint64(p.Cores)) + int64(p.CollectivesNS) + p.WorkNS; got != int64(p.NS) || p.OneNS != list[0].NS {
				t.Errorf("%d cores: parts add up to %d, %+v", p.Cores, got, p)
			}
			if joined := p.CollectivesNS > 0; joined != (cuts != nil) {
				t.Errorf("%d cores, cut %v: collectives take %d ns", p.Cores, cuts, p.CollectivesNS)
			}
			if p.Speedup <= 1 || p.NS >= list[0].NS {
				t.Errorf("%+v is no faster than one core", p)
			}
		}
	}
}
