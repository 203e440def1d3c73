package cli

import (
	"encoding/json"
	"math"
	"path/filepath"
	"testing"
)

// The busy time of every engine and of DMA, from the measured times of a
// profile, is within 1 % of the summary that the profiler itself wrote.
func TestBusyOfProfilesIsTheProfilers(t *testing.T) {
	t.Parallel()
	profiles, err := filepath.Glob(filepath.Join(sharedData, "neuron-profiles", "*.profile.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if len(profiles) == 0 {
		t.Skip("../shared/data is absent")
	}
	for _, path := range profiles {
		var got struct {
			Active []struct {
				Engine   string  `json:"engine"`
				Measured float64 `json:"measured_busy_ns"`
				Profiler float64 `json:"profiler_active_ns"` // 0 where null
			} `json:"measured_active"`
		}
		if err := json.Unmarshal([]byte(perfsim(t, "run", "--json", path)), &got); err != nil {
			t.Fatal(path, err)
		}
		compared := map[string]bool{}
		for _, e := range got.Active {
			if e.Profiler == 0 {
				continue
			}
			compared[e.Engine] = true
			if d := e.Measured/e.Profiler - 1; math.Abs(d) > 0.01 {
				t.Errorf("%s: %s is busy %.0f ns, the profiler has %.0f (%+.2f %%)", filepath.Base(path), e.Engine, e.Measured, e.Profiler, 100*d)
			}
		}
		for _, e := range []string{"PE", "DVE", "Activation", "Pool", "SP", "DMA"} {
			if !compared[e] {
				t.Errorf("%s: no figure of the profiler for %s", filepath.Base(path), e)
			}
		}
	}
}
