//go:build nats

package natsq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"perfsim/io/workq"
)

// Options say how a queue works.
type Options struct {
	// Engine is the version of what works: workers of another one do not get
	// the tasks.
	Engine string
	// Sweep names the publisher, the same when it starts anew.
	Sweep string
	// Lease is how long a worker that says nothing keeps a task.
	Lease time.Duration
	// Room is how many tasks are queued at most; 0 takes a default.
	Room int
	// Replicas is how many servers of a cluster keep the streams; 0 is 1.
	Replicas int
}

// Queue publishes tasks and takes results.
type Queue struct {
	nc  *nats.Conn
	js  jetstream.JetStream
	opt Options
}

// forgotten is after how long what no publisher asks for any more is dropped.
const forgotten = 7 * 24 * time.Hour

// defaultRoom is how many tasks are queued at most.
const defaultRoom = 100_000

// Open makes the streams where they are not there yet.
func Open(ctx context.Context, nc *nats.Conn, opt Options) (*Queue, error) {
	if opt.Room < 1 {
		opt.Room = defaultRoom
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	q := &Queue{nc, js, opt}
	for _, s := range []jetstream.StreamConfig{
		{Name: taskStream, Description: "cases to predict", Subjects: []string{"perfsim.task.*.*.*"}},
		{Name: resultStream, Description: "results that nobody has taken yet", Subjects: []string{"perfsim.result.*.*"}},
	} {
		s.Retention, s.Storage, s.Discard = jetstream.WorkQueuePolicy, jetstream.FileStorage, jetstream.DiscardNew
		s.MaxMsgsPerSubject, s.DiscardNewPerSubject, s.MaxMsgs = 1, true, int64(opt.Room)
		s.Replicas, s.MaxAge = max(opt.Replicas, 1), forgotten
		s.Duplicates = time.Second // no message has an id: subjects identify duplicates
		if err := retry(ctx, callTime, func(ctx context.Context) error {
			if err := refused(nc); err != nil {
				return permanent{err}
			}
			_, err := js.CreateOrUpdateStream(ctx, s)
			return err
		}); err != nil {
			return nil, fmt.Errorf("stream %s: %w", s.Name, err)
		}
	}
	err = retry(ctx, callTime, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateConsumer(ctx, taskStream, workersOf(opt.Engine, opt.Lease))
		return err
	})
	return q, err
}

// workersOf is the consumer that all workers of one version share.
func workersOf(engine string, lease time.Duration) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{Durable: "workers-" + token(engine), FilterSubject: taskSubject(engine, "*", "*"),
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxDeliver: -1, MaxAckPending: 20_000}
}

// patience is how long a call to a server that does not answer is repeated, and
// callTime how long one may take.
const (
	patience = 2 * time.Minute
	callTime = 5 * time.Second
	pause    = 200 * time.Millisecond
)

// permanent is an error that a repetition does not mend.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// retry repeats a call while the server is away or not ready; one may take
// limit.
func retry(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	until := time.Now().Add(patience)
	for {
		one, cancel := context.WithTimeout(ctx, limit)
		err := call(one)
		cancel()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		api, _ := errors.AsType[*jetstream.APIError](err)
		if p, ok := errors.AsType[permanent](err); ok {
			return p.error
		}
		if api != nil && api.Code == 400 || time.Now().After(until) {
			return err
		}
		wait(ctx, pause)
	}
}

// wait sleeps, at most until the context ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// quiet is after how long without a result Run looks whether the queue still
// has what it was given.
const quiet = 3 * time.Second

// Run implements workq.Queue; workers elsewhere do the work.
func (q *Queue) Run(parent context.Context, tasks []workq.Task, take func([]workq.Result) error) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	missing := map[string]workq.Task{}
	tasks = workq.Once(tasks)
	for _, t := range tasks {
		missing[t.ID] = t
	}
	if len(missing) == 0 {
		return parent.Err()
	}
	filter := resultSubject(q.opt.Sweep, "*")
	var results jetstream.Consumer
	if err := retry(ctx, callTime, func(ctx context.Context) (err error) {
		results, err = q.js.CreateOrUpdateConsumer(ctx, resultStream, jetstream.ConsumerConfig{Durable: "sweep-" + q.opt.Sweep, FilterSubject: filter,
			AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.opt.Lease, MaxAckPending: 20_000, InactiveThreshold: forgotten})
		return err
	}); err != nil {
		return fmt.Errorf("consumer of results: %w", err)
	}
	published := make(chan error, 1)
	publish := func(list []workq.Task) { published <- q.publish(ctx, list) }
	publishing := true
	go publish(tasks)
	defer func() {
		cancel()
		if publishing {
			<-published
		}
	}()
	heard := time.Now()
	for len(missing) > 0 {
		select {
		case err := <-published:
			publishing = false
			if err != nil {
				return err
			}
		default:
		}
		list, messages, err := fetchResults(ctx, results)
		if parent.Err() != nil {
			return parent.Err()
		}
		if err != nil {
			if err := refused(q.nc); err != nil {
				return err
			}
			wait(ctx, pause) // the server is away
			continue
		}
		fresh := list[:0]
		for _, r := range list {
			if _, ok := missing[r.ID]; ok {
				delete(missing, r.ID)
				fresh = append(fresh, r)
			}
		}
		if len(fresh) > 0 {
			if err := take(fresh); err != nil {
				return err
			}
		}
		for _, m := range messages { // kept now; what is delivered again is known
			m.Ack()
		}
		if len(messages) > 0 {
			heard = time.Now()
		} else if !publishing && time.Since(heard) > quiet {
			heard = time.Now()
			if left := q.lost(ctx, missing); len(left) > 0 {
				publishing = true
				go publish(left)
			}
		}
	}
	return parent.Err()
}

// fetchResults takes what results there are, waiting a moment for the first.
func fetchResults(ctx context.Context, c jetstream.Consumer) (list []workq.Result, messages []jetstream.Msg, err error) {
	const most, moment = 512, 250 * time.Millisecond
	batch, err := c.FetchNoWait(most)
	if err == nil {
		for m := range batch.Messages() {
			messages = append(messages, m)
		}
		err = batch.Error()
	}
	if err == nil && len(messages) == 0 {
		wait(ctx, moment/4)
	}
	for _, m := range messages {
		r := workq.Result{ID: last(m.Subject()), Dead: m.Headers().Get(deadHeader)}
		if r.Dead == "" {
			r.Body = m.Data()
		}
		list = append(list, r)
	}
	return list, messages, err
}

// window is how many messages are on their way to the server at a time.
const window = 256

// publish puts tasks into the queue, in their order, and waits where it is full.
func (q *Queue) publish(ctx context.Context, tasks []workq.Task) error {
	for len(tasks) > 0 {
		n := min(len(tasks), window)
		futures := make([]jetstream.PubAckFuture, n)
		for k, t := range tasks[:n] {
			f, err := q.js.PublishAsync(taskSubject(q.opt.Engine, q.opt.Sweep, t.ID), t.Body)
			if err == nil {
				futures[k] = f
			}
		}
		again := make([]workq.Task, 0, len(tasks))
		for k, f := range futures {
			if err := settled(ctx, f); err != nil && !isThere(err) {
				again = append(again, tasks[k])
			}
		}
		if ctx.Err() != nil {
			return nil // who cancelled knows
		}
		if len(again) > 0 {
			wait(ctx, pause)
		}
		tasks = append(again, tasks[n:]...)
	}
	return nil
}

// errUnknown is the error of a message of which nobody knows whether it came.
var errUnknown = errors.New("no answer")

// settled waits for the answer to a message.
func settled(ctx context.Context, f jetstream.PubAckFuture) error {
	if f == nil {
		return errUnknown
	}
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	case <-time.After(callTime):
		return errUnknown
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lost returns the tasks that lack a result and that the queue no longer has,
// or has and hands to nobody.
func (q *Queue) lost(ctx context.Context, missing map[string]workq.Task) (out []workq.Task) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stream, err := q.js.Stream(ctx, taskStream)
	if err != nil {
		return nil
	}
	results, err := q.js.Stream(ctx, resultStream)
	if err != nil {
		return nil
	}
	at := taskSubject(q.opt.Engine, q.opt.Sweep, "*")
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(at))
	if err != nil {
		return nil
	}
	done, err := results.Info(ctx, jetstream.WithSubjectFilter(resultSubject(q.opt.Sweep, "*")))
	if err != nil {
		return nil
	}
	if len(info.State.Subjects) > 0 {
		c, err := stream.Consumer(ctx, workersOf(q.opt.Engine, q.opt.Lease).Durable)
		if err == nil && c.CachedInfo().NumPending == 0 && c.CachedInfo().NumAckPending == 0 {
			// Messages that the server has and gives to nobody.
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(at)); err == nil {
				info.State.Subjects = nil
			}
		}
	}
	for id, t := range missing {
		_, queued := info.State.Subjects[taskSubject(q.opt.Engine, q.opt.Sweep, id)]
		_, finished := done.State.Subjects[resultSubject(q.opt.Sweep, id)]
		if !queued && !finished {
			out = append(out, t)
		}
	}
	return out
}
