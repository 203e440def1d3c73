package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are what /metrics shows.
type metrics struct {
	registry     *prometheus.Registry
	requests     *prometheus.CounterVec
	seconds      *prometheus.HistogramVec
	instructions prometheus.Counter
	panics       prometheus.Counter
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "perfsim_requests_total", Help: "Requests answered, by call and HTTP status."}, []string{"call", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "perfsim_request_seconds", Help: "Time of a request from its parsed parameters to its answer, waiting included.",
			Buckets: prometheus.ExponentialBuckets(100e-6, 2, 18)}, []string{"call"}),
		instructions: prometheus.NewCounter(prometheus.CounterOpts{Name: "perfsim_predicted_instructions_total", Help: "Instructions of the modules that predict answered."}),
		panics:       prometheus.NewCounter(prometheus.CounterOpts{Name: "perfsim_panics_total", Help: "Requests that ended in an error of the server."}),
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	m.registry.MustRegister(m.requests, m.seconds, m.instructions, m.panics,
		gauge("perfsim_working_requests", "Requests that are worked on.", func() float64 { return float64(len(s.slots)) }),
		gauge("perfsim_waiting_requests", "Requests that wait for a place.", func() float64 { return float64(max(len(s.waiting)-len(s.slots), 0)) }),
		gauge("perfsim_held_modules", "Modules held for later requests.", func() float64 { n, _, _ := s.held.count(); return float64(n) }),
		gauge("perfsim_held_bytes", "Memory of the held modules.", func() float64 { _, n, _ := s.held.count(); return float64(n) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "perfsim_dropped_modules_total", Help: "Held modules that made room for others."},
			func() float64 { _, _, n := s.held.count(); return float64(n) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// done counts a request.
func (m *metrics) done(call string, status int, took time.Duration) {
	m.requests.WithLabelValues(call, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(call).Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
