// Package serve answers predictions over HTTP and over JSON lines: for tuners
// and agents that ask many questions about few modules. It parses requests,
// holds modules and calls systems; nothing here computes.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sync/semaphore"

	"perfsim/components/machine"
	"perfsim/io/format"
)

// Options are the limits and permissions of a server.
type Options struct {
	Version string
	// Token, where not "", must be sent as a bearer token with every request.
	Token string
	// Roots are the folders below which requests may name files.
	Roots []string
	// AllowPython has kernel sources executed.
	AllowPython bool
	// Machine is the machine of requests that name none and whose module names
	// none; it may be a description file.
	Machine string

	Jobs         int           // requests that are worked on at the same time
	Queue        int           // requests that may wait for that
	Connections  int           // open connections
	Timeout      time.Duration // of one request, and of sending its body
	MaxBody      int64         // bytes of a body, a line or a file
	MaxUnwrapped int64         // bytes that these may decompress to
	Held         int64         // bytes of modules that are held

	// Log takes what goes wrong in the server itself; may be nil.
	Log func(line string)
}

// DefaultOptions returns the limits that the command starts from.
func DefaultOptions() Options {
	return Options{Jobs: 1, Queue: 256, Connections: 512, Timeout: time.Minute, MaxBody: 64 << 20, MaxUnwrapped: 1 << 30, Held: 512 << 20}
}

// Server answers requests. Its methods may be called at the same time.
type Server struct {
	opt      Options
	held     *held
	metrics  *metrics
	slots    chan struct{}
	waiting  chan struct{}
	bodies   *semaphore.Weighted
	machines sync.Map // *machine.Machine by name

	mu    sync.Mutex
	round context.Context // ends when memory is short
	end   context.CancelCauseFunc
}

// bodiesAtOnce is how many bodies of the largest size may be in memory at the
// same time, whatever their number.
const bodiesAtOnce = 4

// New returns a server. It fails where a root is no folder or the machine is
// not known.
func New(opt Options) (*Server, error) {
	for _, r := range opt.Roots {
		if st, err := os.Stat(r); err != nil {
			return nil, err
		} else if !st.IsDir() {
			return nil, fmt.Errorf("%s is not a folder", r)
		}
	}
	s := &Server{opt: opt, slots: make(chan struct{}, max(opt.Jobs, 1)), waiting: make(chan struct{}, max(opt.Queue, 0)+max(opt.Jobs, 1)),
		bodies: semaphore.NewWeighted(bodiesAtOnce * opt.MaxBody)}
	s.held = newHeld(opt.Held)
	s.metrics = newMetrics(s)
	s.round, s.end = context.WithCancelCause(context.Background())
	if opt.Machine != "" {
		m, err := machine.Load(opt.Machine)
		if err != nil {
			return nil, err
		}
		s.machines.Store(opt.Machine, m)
	}
	return s, nil
}

// Serve answers HTTP requests on l until ctx ends, then lets those that run
// come to their end for up to a second.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go s.watch(ctx)
	srv := &http.Server{
		Handler: s.handler(l.Addr().Network() == "unix"), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(netutil.LimitListener(l, max(s.opt.Connections, 1))) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		last, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := srv.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil
	}
}

// memoryInterval is how often the watch looks at the memory in use.
const memoryInterval = 100 * time.Millisecond

// watch drops the held modules when the memory limit of ctx is reached, and
// where that does not help ends the requests that run.
func (s *Server) watch(ctx context.Context) {
	t := time.NewTicker(memoryInterval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if format.Reserve(ctx, 0, "serving") == nil {
			continue
		}
		s.held.clear()
		debug.FreeOSMemory()
		err := format.Reserve(ctx, 0, "serving")
		if err == nil {
			continue
		}
		s.mu.Lock()
		s.end(&failure{status: http.StatusServiceUnavailable, err: err})
		s.round, s.end = context.WithCancelCause(context.Background())
		s.mu.Unlock()
		debug.FreeOSMemory()
	}
}

// within returns a context for one request: it ends with parent, when the
// time of a request is over and when memory is short.
func (s *Server) within(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	s.mu.Lock()
	round := s.round
	s.mu.Unlock()
	stop := context.AfterFunc(round, func() { cancel(context.Cause(round)) })
	timer := time.AfterFunc(s.opt.Timeout, func() {
		cancel(&failure{status: http.StatusGatewayTimeout, err: fmt.Errorf("the request took longer than %v", s.opt.Timeout)})
	})
	return ctx, func() { timer.Stop(); stop(); cancel(nil) }
}

// log passes a line on.
func (s *Server) log(format string, args ...any) {
	if s.opt.Log != nil {
		s.opt.Log(fmt.Sprintf(format, args...))
	}
}
