package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"perfsim/io/format"
)

// memoryLimit watches what the process takes and ends the work with a clear
// error before the machine has to swap.
type memoryLimit struct {
	bytes  uint64 // 0 for none
	given  bool   // by --memory-limit rather than by the memory of the machine
	cancel context.CancelCauseFunc
	stop   chan struct{}
	end    func(error)
	ctx    context.Context // the command's; its cause says why it ended
}

// memoryError is the error of work that needs more than the limit.
type memoryError struct{ text string }

func (e memoryError) Error() string { return e.text }

// addMemoryLimit gives root the flag --memory-limit, which holds for all
// commands. The function returned is called with what the command returned:
// it ends the watch and turns a cancellation by it into its reason.
//
// end ends the process with an error; it is called where work goes on taking
// memory after it was cancelled.
func addMemoryLimit(root *cobra.Command, end func(error)) func(error) error {
	var text string
	l := &memoryLimit{end: end}
	root.PersistentFlags().StringVar(&text, "memory-limit", "auto", "most memory to take, such as 8GiB; auto is nine tenths of what is available, none takes what there is")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		var err error
		if l.bytes, l.given, err = parseMemory(text, availableMemory); err != nil {
			return usageError{err}
		}
		if l.bytes == 0 {
			return nil
		}
		ctx, cancel := context.WithCancelCause(c.Context())
		l.ctx, l.cancel, l.stop = ctx, cancel, make(chan struct{})
		c.SetContext(format.WithReserve(ctx, l.reserve))
		debug.SetMemoryLimit(int64(min(l.bytes/10*9, math.MaxInt64)))
		if c.Name() != "serve" { // which ends requests, not itself
			go l.watch(ctx, l.stop)
		}
		return nil
	}
	return func(err error) error {
		if l.cancel == nil {
			return err
		}
		close(l.stop)
		var m memoryError
		if err != nil && errors.As(context.Cause(l.ctx), &m) {
			return m
		}
		return err
	}
}

// parseMemory reads the value of --memory-limit: bytes, 0 for none.
func parseMemory(text string, available func() uint64) (n uint64, given bool, err error) {
	switch text {
	case "none":
		return 0, true, nil
	case "auto":
		return available() / 10 * 9, false, nil
	}
	n, err = humanize.ParseBytes(text)
	if err != nil || n == 0 {
		return 0, false, fmt.Errorf("--memory-limit %q is not a size such as 8GiB, auto or none", text)
	}
	return n, true, nil
}

// The watch looks as often as fresh memory, which comes at about 1 GB/s, could
// take half of what is left.
const (
	memoryInterval = 50 * time.Millisecond // while much is left
	memoryShortest = 2 * time.Millisecond
	memoryRate     = 2 << 30 // bytes a second
)

// watch cancels the work where it has taken nearly all of the limit, and ends the
// process where the work goes on and next to nothing is left: between two looks
// up to 16 MiB come, so much is kept free. A limit that nobody gave has a second instead: the machine may have more by
// then.
func (l *memoryLimit) watch(ctx context.Context, stop chan struct{}) {
	spare := min(l.bytes/16, 16<<20)
	soft, hard := l.bytes-l.bytes/16-spare, l.bytes-spare
	var cancelled time.Time
	var err memoryError
	for t := time.NewTimer(0); ; {
		select {
		case <-stop:
			t.Stop()
			return
		case <-t.C:
		}
		used := memoryUsed()
		switch {
		case cancelled.IsZero() && ctx.Err() != nil: // interrupted
			return
		case cancelled.IsZero() && used > soft:
			err = memoryError{fmt.Sprintf("the work takes more memory than %s: %s are in use", l.name(), humanize.IBytes(used))}
			l.cancel(err)
			cancelled = time.Now()
		case !cancelled.IsZero() && (used > hard && l.given || time.Since(cancelled) > grace):
			l.end(err)
		}
		left := uint64(0)
		if used < hard {
			left = hard - used
		}
		t.Reset(min(max(time.Duration(left)*time.Second/memoryRate, memoryShortest), memoryInterval))
	}
}

// name is the limit as messages call it.
func (l *memoryLimit) name() string {
	if l.given {
		return "--memory-limit " + humanize.IBytes(l.bytes)
	}
	return humanize.IBytes(l.bytes) + ", nine tenths of what was available (--memory-limit sets another bound)"
}

// reserve fails where work that takes bytes more would pass the limit, before
// it is begun.
func (l *memoryLimit) reserve(bytes uint64, work string) error {
	if used := memoryUsed(); used > l.bytes || bytes > l.bytes-used {
		return memoryError{fmt.Sprintf("%s takes %s of memory beside the %s in use, more than %s", work, humanize.IBytes(bytes), humanize.IBytes(used), l.name())}
	}
	return nil
}

// mostMapped is how much of the mapped files counts as memory in use: the
// program itself does, large inputs that are mapped can be taken away.
const mostMapped = 64 << 20

// memoryUsed is the memory that the process holds.
func memoryUsed() uint64 {
	if b, err := os.ReadFile("/proc/self/statm"); err == nil { // pages: size, resident, shared
		var size, resident, shared uint64
		if n, _ := fmt.Sscan(string(b), &size, &resident, &shared); n == 3 && resident >= shared {
			page := uint64(os.Getpagesize())
			return (resident-shared)*page + min(shared*page, mostMapped)
		}
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// availableMemory is the memory that can be taken without swapping, within the
// bound of the control group where there is one; a very large number where the
// system does not say.
func availableMemory() uint64 {
	n := uint64(math.MaxUint64)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		if v, ok := kilobytes(b, "MemAvailable:"); ok {
			n = v
		}
	}
	if b, err := os.ReadFile("/sys/fs/cgroup/memory.max"); err == nil {
		if v, err := strconv.ParseUint(string(bytes.TrimSpace(b)), 10, 64); err == nil {
			n = min(n, v)
		}
	}
	return n
}

// kilobytes finds a line "KEY 123 kB" and returns its bytes.
func kilobytes(b []byte, key string) (uint64, bool) {
	s := bufio.NewScanner(bytes.NewReader(b))
	for s.Scan() {
		if rest, ok := strings.CutPrefix(s.Text(), key); ok {
			f := strings.Fields(rest)
			if len(f) == 0 {
				return 0, false
			}
			n, err := strconv.ParseUint(f[0], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
