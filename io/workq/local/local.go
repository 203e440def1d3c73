// Package local runs tasks on the cores of this machine.
package local

import (
	"context"
	"fmt"
	"sync"
	"time"

	"perfsim/io/workq"
)

// Queue is a queue of this process.
type Queue struct {
	// Jobs is how many tasks run at a time; below 1 is 1.
	Jobs int
	Do   workq.Do
	// Room is how many results wait for take; 0 takes a default.
	Room int
}

// flushEvery is the longest that a result waits for take while others come, and
// defaultRoom how many wait at most.
const (
	flushEvery  = 250 * time.Millisecond
	defaultRoom = 1024
)

// Run implements workq.Queue.
func (q *Queue) Run(parent context.Context, tasks []workq.Task, take func([]workq.Result) error) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	room := q.Room
	if room < 1 {
		room = defaultRoom
	}
	results := make(chan workq.Result, room)
	var wg sync.WaitGroup
	p := newPlan(workq.Once(tasks))
	for range max(q.Jobs, 1) {
		wg.Go(func() {
			group := -1
			for {
				t, ok := p.next(&group)
				if !ok {
					return
				}
				r, ok := q.deliver(ctx, t)
				if !ok {
					return
				}
				select {
				case results <- r:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	go func() { wg.Wait(); close(results) }()
	err := collect(results, room, take)
	cancel()
	for range results { // until the workers have ended
	}
	if err != nil {
		return err
	}
	return parent.Err()
}

// collect calls take with what comes, until no more does.
func collect(results <-chan workq.Result, most int, take func([]workq.Result) error) error {
	var batch []workq.Result
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		flush, end := false, false
		select {
		case r, ok := <-results:
			if end = !ok; ok {
				batch = append(batch, r)
			}
			flush = end || len(batch) >= most
		case <-tick.C:
			flush = true
		}
		if flush && len(batch) > 0 {
			if err := take(batch); err != nil {
				return err
			}
			batch = nil
		}
		if end {
			return nil
		}
	}
}

// deliver gives a task to the work until that finishes it; ok is false when
// the context ends.
func (q *Queue) deliver(ctx context.Context, t workq.Task) (r workq.Result, ok bool) {
	for range workq.Deliveries {
		body, err := q.attempt(ctx, t)
		if err == nil {
			return workq.Result{ID: t.ID, Body: body}, true
		}
		if ctx.Err() != nil {
			return r, false
		}
	}
	return workq.Result{ID: t.ID, Dead: workq.GaveUp()}, true
}

// attempt is one call of Do; a panic of it is an error.
func (q *Queue) attempt(ctx context.Context, t workq.Task) (body []byte, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("task %s: %v", t.ID, x)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return q.Do(ctx, t)
}
