package serve

import (
	"strings"
	"testing"
	"time"
)

// TestMetrics counts requests and reads them in the format of Prometheus:
// buckets are cumulative, the bounds double from 100 µs.
func TestMetrics(t *testing.T) {
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.metrics.done("predict", 200, 150*time.Microsecond)
	s.metrics.done("predict", 200, time.Hour)
	s.metrics.done("predict", 400, 0)
	s.metrics.predicted(12)
	s.metrics.panicked()
	var b strings.Builder
	s.metrics.write(&b)
	for _, want := range []string{
		`perfsim_requests_total{call="predict",status="200"} 2`,
		`perfsim_requests_total{call="predict",status="400"} 1`,
		`perfsim_request_seconds_bucket{call="predict",le="0.0001"} 1`,
		`perfsim_request_seconds_bucket{call="predict",le="0.0002"} 2`,
		`perfsim_request_seconds_bucket{call="predict",le="13.1072"} 2`,
		`perfsim_request_seconds_bucket{call="predict",le="+Inf"} 3`,
		`perfsim_request_seconds_sum{call="predict"} 3600.00015`,
		`perfsim_request_seconds_count{call="predict"} 3`,
		"# TYPE perfsim_predicted_instructions_total counter",
		"perfsim_predicted_instructions_total 12",
		"perfsim_panics_total 1",
		"perfsim_held_modules 0",
	} {
		if !strings.Contains(b.String(), "\n"+want+"\n") {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
