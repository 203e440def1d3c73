package serve

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

// metrics are the figures of /metrics, in the text format of Prometheus. Its
// client library is not used: what it sets up when a program starts takes a
// third of the time of a small prediction.
type metrics struct {
	server *Server
	began  time.Time

	mu           sync.Mutex
	requests     map[answered]int
	seconds      map[string]*histogram // by call
	instructions int64
	panics       int
}

// answered is what requests are counted by.
type answered struct {
	call   string
	status int
}

// histogram counts times by bounds that double from 100 µs.
type histogram struct {
	below [18]int
	count int
	sum   float64
}

const firstBound = 100e-6 // seconds

func newMetrics(s *Server) *metrics {
	return &metrics{server: s, began: time.Now(), requests: map[answered]int{}, seconds: map[string]*histogram{}}
}

// done counts a request.
func (m *metrics) done(call string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[answered{call, status}]++
	h := m.seconds[call]
	if h == nil {
		h = &histogram{}
		m.seconds[call] = h
	}
	h.count++
	h.sum += took.Seconds()
	bound := firstBound
	for i := range h.below {
		if took.Seconds() <= bound {
			h.below[i]++
		}
		bound *= 2
	}
}

// predicted counts the instructions of a module that was predicted.
func (m *metrics) predicted(instructions int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.instructions += int64(instructions)
}

// panicked counts a request that ended in an error of the server.
func (m *metrics) panicked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.panics++
}

func (m *metrics) handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		b := bufio.NewWriter(w)
		m.write(b)
		b.Flush() // a client that has left
	})
}

func (m *metrics) write(w io.Writer) {
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	one := func(name, kind, help string, value any) {
		head(name, kind, help)
		fmt.Fprintf(w, "%s %v\n", name, value)
	}
	m.mu.Lock()
	head("perfsim_requests_total", "counter", "Requests answered, by call and HTTP status.")
	for _, k := range slices.SortedFunc(maps.Keys(m.requests), func(a, b answered) int {
		return cmp.Or(cmp.Compare(a.call, b.call), cmp.Compare(a.status, b.status))
	}) {
		fmt.Fprintf(w, "perfsim_requests_total{call=%q,status=\"%d\"} %d\n", k.call, k.status, m.requests[k])
	}
	head("perfsim_request_seconds", "histogram", "Time of a request from its parsed parameters to its answer, waiting included.")
	for _, call := range slices.Sorted(maps.Keys(m.seconds)) {
		m.seconds[call].write(w, call)
	}
	one("perfsim_predicted_instructions_total", "counter", "Instructions of the modules that predict answered.", m.instructions)
	one("perfsim_panics_total", "counter", "Requests that ended in an error of the server.", m.panics)
	m.mu.Unlock()

	s := m.server
	modules, bytes, dropped := s.held.count()
	one("perfsim_working_requests", "gauge", "Requests that are worked on.", len(s.slots))
	one("perfsim_waiting_requests", "gauge", "Requests that wait for a place.", max(len(s.waiting)-len(s.slots), 0))
	one("perfsim_held_modules", "gauge", "Modules held for later requests.", modules)
	one("perfsim_held_bytes", "gauge", "Memory of the held modules.", bytes)
	one("perfsim_dropped_modules_total", "counter", "Held modules that made room for others.", dropped)

	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	one("go_goroutines", "gauge", "Goroutines that exist.", runtime.NumGoroutine())
	one("go_memstats_heap_inuse_bytes", "gauge", "Heap in use.", mem.HeapInuse)
	one("go_memstats_sys_bytes", "gauge", "Memory taken from the system.", mem.Sys)
	one("go_gc_cycles_total", "counter", "Collections of the heap that ended.", mem.NumGC)
	one("process_start_time_seconds", "gauge", "Start of the server since 1970.", float64(m.began.UnixMilli())/1e3)
}

func (h *histogram) write(w io.Writer, call string) {
	bound := firstBound
	for _, n := range h.below {
		fmt.Fprintf(w, "perfsim_request_seconds_bucket{call=%q,le=%q} %d\n", call, strconv.FormatFloat(bound, 'g', -1, 64), n)
		bound *= 2
	}
	fmt.Fprintf(w, "perfsim_request_seconds_bucket{call=%q,le=\"+Inf\"} %d\n", call, h.count)
	fmt.Fprintf(w, "perfsim_request_seconds_sum{call=%q} %v\nperfsim_request_seconds_count{call=%q} %d\n", call, h.sum, call, h.count)
}
