package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long work may take to stop after the first signal: loops look
// at their context much more often, reads that wait for a terminal or a pipe
// may not return at all.
const grace = time.Second

// untilSignal returns a context that ends with SIGINT or SIGTERM. The second
// signal, or the end of the grace after the first, calls end, which must not
// return. stop gives the signals back.
func untilSignal(parent context.Context, end func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-done:
			return
		case <-signals:
		}
		cancel()
		select {
		case <-done:
			return
		case <-signals:
		case <-time.After(grace):
		}
		end()
	}()
	return ctx, func() { signal.Stop(signals); close(done) }
}
