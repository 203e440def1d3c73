package work_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"perfsim/systems"
)

// The figures of the Neuron profiles are within 1 % of the profiler's own.
func TestProfilers(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../shared/data/neuron-profiles/*.profile.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Skip("../shared/data is absent")
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			res, err := systems.Simulate(context.Background(), systems.Request{Reading: systems.Reading{Path: path}})
			if err != nil {
				t.Fatal(err)
			}
			f := res.Work()
			p := f.Profiler
			if p == nil || f.Measured == nil {
				t.Fatal("no summary or no measurement")
			}
			if *f.FLOPs != *p.FLOPs || *f.HelperFLOPs != *p.Helper {
				t.Errorf("FLOPs %d and %d, the profiler's %d and %d", *f.FLOPs, *f.HelperFLOPs, *p.FLOPs, *p.Helper)
			}
			if *f.HBMRead != *p.HBMRead || *f.HBMWritten != *p.HBMWritten {
				t.Errorf("read %d, written %d, the profiler's %d and %d", *f.HBMRead, *f.HBMWritten, *p.HBMRead, *p.HBMWritten)
			}
			for _, x := range []struct {
				name      string
				got, want *float64
			}{{"MFU", f.Measured.MFU16, p.MFU}, {"HFU", f.Measured.HFU16, p.HFU}, {"MBU", f.Measured.MBU, p.MBU}, {"intensity", f.Intensity, p.Intensity}} {
				if d := *x.got / *x.want - 1; d > 0.01 || d < -0.01 {
					t.Errorf("%s %v, the profiler's %v (%+.2f %%)", x.name, *x.got, *x.want, 100*d)
				}
			}
		})
	}
}

// The FLOPs and bytes of a lowered graph are those that the lowering counts:
// products on the PE and element by element, transposes and sums over
// partitions, in loops and in functions that run several times.
func TestLowered(t *testing.T) {
	t.Parallel()
	const text = `HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  s = (s32[], f32[2048,2048], f32[2048]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[2048,2048] get-tuple-element(s), index=1
  v = f32[2048] get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  y = f32[2048,2048] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  r = f32[2048] reduce(y, zero), dimensions={0}, to_apply=sum
  p = f32[2048,2048] dot(v, r), lhs_contracting_dims={}, rhs_contracting_dims={}
  q = f32[2048,2048] add(y, p)
  ROOT t = (s32[], f32[2048,2048], f32[2048]) tuple(n, q, r)
}

condition {
  s = (s32[], f32[2048,2048], f32[2048]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  five = s32[] constant(5)
  ROOT lt = pred[] compare(i, five), direction=LT
}

ENTRY main {
  x = f32[2048,2048] parameter(0)
  v = f32[2048] parameter(1)
  z = s32[] constant(0)
  s = (s32[], f32[2048,2048], f32[2048]) tuple(z, x, v)
  ROOT w = (s32[], f32[2048,2048], f32[2048]) while(s), condition=condition, body=body
}
`
	path := filepath.Join(t.TempDir(), "m.hlo")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := systems.Simulate(context.Background(), systems.Request{Reading: systems.Reading{Path: path}})
	if err != nil {
		t.Fatal(err)
	}
	f, l := res.Work(), res.Lowering
	// Five products of 2048³ and five outer products of 2048².
	if want := uint64(5 * 2 * (2048*2048*2048 + 2048*2048)); *f.FLOPs != want || uint64(l.FLOPs) != want {
		t.Errorf("FLOPs %d, lowered %d, by hand %d", *f.FLOPs, l.FLOPs, want)
	}
	if *f.HelperFLOPs != uint64(l.HelperFLOPs) || l.HelperFLOPs == 0 {
		t.Errorf("FLOPs of transposes and sums %d, lowered %d", *f.HelperFLOPs, l.HelperFLOPs)
	}
	if got, want := *f.HBMRead+*f.HBMWritten, uint64(l.LoadBytes+l.StoreBytes+2*l.CopyBytes); got != want {
		t.Errorf("HBM bytes %d, lowered %d", got, want)
	}
}
