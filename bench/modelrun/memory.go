package modelrun

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// memoryWatch looks at this process's memory while a trial runs.
type memoryWatch struct {
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once
	start uint64
	peak  uint64
}

func watchMemory() *memoryWatch {
	w := &memoryWatch{quit: make(chan struct{}), done: make(chan struct{}), start: resident()}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			w.peak = max(w.peak, resident())
			select {
			case <-tick.C:
			case <-w.quit:
				w.peak = max(w.peak, resident())
				return
			}
		}
	}()
	return w
}

// stop ends watching and returns the growth at its peak in MB of 1,000,000
// bytes.
func (w *memoryWatch) stop() float64 {
	w.once.Do(func() { close(w.quit) })
	<-w.done
	if w.peak < w.start {
		return 0
	}
	return float64(w.peak-w.start) / 1e6
}

// resident returns the bytes of memory the process has, from the system where
// it says so, else the bytes that the runtime holds.
func resident() uint64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			if pages, err := strconv.ParseUint(f[1], 10, 64); err == nil {
				return pages * uint64(os.Getpagesize())
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}
