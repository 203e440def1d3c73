package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"time"
)

// selfTrace is a log of what perfsim itself did, in wall time.
type selfTrace struct {
	began time.Time
	spans []selfSpan
	open  string // the work of now, "" for none
	since time.Time
}

// selfSpan is a complete event of the Chrome trace format; times are in µs.
type selfSpan struct {
	Name string  `json:"name"`
	Ph   string  `json:"ph"`
	Ts   float64 `json:"ts"`
	Dur  float64 `json:"dur"`
	Pid  int     `json:"pid"`
	Tid  int     `json:"tid"`
}

func newSelfTrace() *selfTrace { return &selfTrace{began: time.Now()} }

// enter ends the work of now and begins the next; "" only ends.
func (t *selfTrace) enter(name string) {
	now := time.Now()
	if t.open != "" {
		t.add(t.open, t.since, now)
	}
	t.open, t.since = name, now
}

func (t *selfTrace) add(name string, from, to time.Time) {
	t.spans = append(t.spans, selfSpan{name, "X", micros(from.Sub(t.began)), micros(to.Sub(from)), 1, 1})
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// write ends the trace, with the command as the span around all others.
func (t *selfTrace) write(out io.Writer, command string) error {
	t.enter("")
	t.add(command, t.began, time.Now())
	w := bufio.NewWriter(out)
	err := json.NewEncoder(w).Encode(map[string]any{"traceEvents": t.spans, "displayTimeUnit": "ns"})
	if err != nil {
		return err
	}
	return w.Flush()
}
