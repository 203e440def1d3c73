package tracklayout

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"perfsim/components"
	"perfsim/components/datadir"
	"perfsim/components/machine"
	"perfsim/io/format"
	"perfsim/io/neuron/profile"
	"perfsim/systems/calibrated"
	"perfsim/systems/cost"
)

var ctx = context.Background()

// The figures of the measured process are those of the profiler's own
// summary.
func TestFiguresAreTheProfilers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(datadir.Path(t, "neuron-profiles"), "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal("no profiles", err)
	}
	mach, err := machine.Load("trn2")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		src, err := format.Open(ctx, path, nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := profile.Importer.Module(ctx, src, format.Options{Jobs: 1})
		src.Close()
		if err != nil {
			t.Fatal(err)
		}
		w := &components.World{Module: m, Machine: mach, Config: components.Config{Model: cost.Calibrated, Jobs: 1, Loops: components.Once, Why: true}, Events: components.NewEvents()}
		if err := cost.Fill(ctx, w); err != nil {
			t.Fatal(err)
		}
		if err := calibrated.Run(ctx, w); err != nil {
			t.Fatal(err)
		}
		tl, err := Make(ctx, w, Options{Block: -1, Measured: true, RunB: true, Why: true, Counters: true})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, x := range tl.Metrics {
			got[x.Name] = x.Value
		}
		want := profilerSummary(t, path)
		name := filepath.Base(path)
		compared := 0
		for _, k := range []string{"tensor_engine_active_time", "vector_engine_active_time", "scalar_engine_active_time", "gpsimd_engine_active_time",
			"sync_engine_active_time", "total_time", "hbm_read_bytes", "tensor_engine_instruction_count", "vector_engine_instruction_count", "sync_engine_instruction_count", "hbm_write_bytes", "matmul_instruction_count"} {
			w, ok := want[k]
			if !ok {
				continue
			}
			compared++
			tolerance := 0.01
			// A profile may hold one instruction twice.
			if strings.HasSuffix(k, "_count") && math.Abs(got["measured_"+k]-w) <= 1 {
				continue
			}
			if d := math.Abs(got["measured_"+k]-w) / w; d > tolerance {
				t.Errorf("%s: %s is %v, the profiler says %v (%.1f %%)", name, k, got["measured_"+k], w, 100*d)
			}
		}
		if compared < 7 {
			t.Errorf("%s: only %d figures compared", name, compared)
		}
		if len(tl.Series) < 6 {
			t.Errorf("%s: %d counters", name, len(tl.Series))
		}
		for _, s := range tl.Series {
			for k, v := range s.Value {
				if v < 0 || s.Unit == "%" && v > 100.0001 || s.Name == "PSUM banks in use" && v > 16 || k > 0 && s.Time[k] <= s.Time[k-1] {
					t.Errorf("%s: %s is %v at %d", name, s.Name, v, s.Time[k])
				}
			}
		}
	}
}

func profilerSummary(t *testing.T, path string) map[string]float64 {
	t.Helper()
	src, err := format.Open(ctx, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	b, err := io.ReadAll(src)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Summary []map[string]any `json:"summary"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for k, v := range doc.Summary[0] {
		if f, ok := v.(float64); ok {
			out[k] = f
		}
	}
	return out
}
