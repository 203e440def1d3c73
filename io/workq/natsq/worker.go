//go:build nats

package natsq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"perfsim/io/workq"
)

// Worker works on the tasks of any publisher of its version.
type Worker struct {
	Engine string
	Lease  time.Duration
	// Jobs is how many tasks run at a time; below 1 is 1.
	Jobs int
	// Open returns what does the tasks of a publisher. It is called once for
	// each, with what the publisher gave to Offer.
	Open func(ctx context.Context, sweep string, files *Files) (workq.Do, error)
	// Idle, where above 0, ends the worker after so long without a task.
	Idle time.Duration

	silent atomic.Bool // does not say that it is at work: for tests

	mu    sync.Mutex
	open  map[string]*opened
	heard time.Time
}

type opened struct {
	once sync.Once
	do   workq.Do
	err  error
}

// Run works until the context ends.
func (w *Worker) Run(parent context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	w.open, w.heard = map[string]*opened{}, time.Now()
	files := &Files{js: js}
	var wg sync.WaitGroup
	for range max(w.Jobs, 1) {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := w.fetch(ctx, js, files); err != nil {
					wait(ctx, pause) // the server is away, or has no stream yet
				}
				if w.idle() || refused(nc) != nil {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(parent.Err(), refused(nc))
}

// idle reports whether there was no task for long enough to end.
func (w *Worker) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Idle > 0 && time.Since(w.heard) > w.Idle
}

// fetch takes tasks, one at a time, and works on them: every delivery is an
// attempt then, and what a kill makes others do once more is little.
func (w *Worker) fetch(ctx context.Context, js jetstream.JetStream, files *Files) error {
	call, cancel := context.WithTimeout(ctx, callTime)
	c, err := js.Consumer(call, taskStream, workersOf(w.Engine, w.Lease).Durable)
	cancel()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		got, err := c.Fetch(1, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			return err
		}
		m, ok := <-got.Messages()
		if !ok {
			return got.Error()
		}
		w.mu.Lock()
		w.heard = time.Now()
		w.mu.Unlock()
		if err := w.work(ctx, js, files, m); err != nil {
			return err
		}
	}
	return nil
}

// work does a task and keeps the right to it meanwhile.
func (w *Worker) work(ctx context.Context, js jetstream.JetStream, files *Files, m jetstream.Msg) error {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() {
		tick := time.NewTicker(max(w.Lease/3, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if !w.silent.Load() {
					m.InProgress() // where it is lost, the next one comes in time
				}
			}
		}
	})
	r, ok := w.one(ctx, files, m)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !ok {
		return m.Nak()
	}
	if err := send(ctx, js, m.Subject(), r); err != nil {
		return err
	}
	return m.Ack() // where it is lost, the task comes again and its result is there
}

// one does a task; ok is false where it was not finished.
func (w *Worker) one(ctx context.Context, files *Files, m jetstream.Msg) (r workq.Result, ok bool) {
	r.ID = last(m.Subject())
	meta, err := m.Metadata()
	if err != nil {
		return r, false
	}
	if meta.NumDelivered > workq.Deliveries {
		r.Dead = workq.GaveUp()
		return r, true
	}
	parts := strings.Split(m.Subject(), ".")
	sweep := parts[len(parts)-2]
	do, err := w.do(ctx, sweep, files)
	if err != nil {
		return r, false
	}
	r.Body, err = attempt(ctx, do, workq.Task{ID: r.ID, Body: m.Data()})
	return r, err == nil
}

// attempt is one call of do; a panic of it is an error.
func attempt(ctx context.Context, do workq.Do, t workq.Task) (body []byte, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("task %s: %v", t.ID, x)
		}
	}()
	return do(ctx, t)
}

// mostOpen is how many publishers a worker serves without opening one anew.
const mostOpen = 2

// do returns what does the tasks of a publisher.
func (w *Worker) do(ctx context.Context, sweep string, files *Files) (workq.Do, error) {
	w.mu.Lock()
	o := w.open[sweep]
	if o == nil {
		if len(w.open) >= mostOpen {
			clear(w.open)
		}
		o = &opened{}
		w.open[sweep] = o
	}
	w.mu.Unlock()
	o.once.Do(func() { o.do, o.err = w.Open(ctx, sweep, files) })
	if o.err != nil {
		w.mu.Lock()
		if w.open[sweep] == o {
			delete(w.open, sweep) // what is missing may come
		}
		w.mu.Unlock()
	}
	return o.do, o.err
}

// errNoRoom is the error of a result for which there was no room in time.
var errNoRoom = errors.New("the stream of results stays full")

// send puts a result where the publisher finds it, and waits while there is no
// room or no server.
func send(ctx context.Context, js jetstream.JetStream, task string, r workq.Result) error {
	parts := strings.Split(task, ".")
	msg := nats.NewMsg(resultSubject(parts[len(parts)-2], r.ID))
	msg.Data = r.Body
	if r.Dead != "" {
		msg.Header.Set(deadHeader, r.Dead)
	}
	for until := time.Now().Add(patience); time.Now().Before(until); {
		call, cancel := context.WithTimeout(ctx, callTime)
		_, err := js.PublishMsg(call, msg)
		cancel()
		if err == nil || isThere(err) {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		wait(ctx, pause)
	}
	return errNoRoom
}
