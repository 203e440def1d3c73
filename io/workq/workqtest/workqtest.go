// Package workqtest holds every driver of package workq to the same promises:
// each task has exactly one result, whatever dies on the way.
package workqtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perfsim/io/workq"
)

// Rig is a driver with workers, set up for one test.
type Rig interface {
	// Run is workq.Queue.Run with workers that do the work. A second call does
	// what a restarted process does.
	Run(ctx context.Context, do workq.Do, tasks []workq.Task, take func([]workq.Result) error) error
	// Die ends the worker that calls it with the context of its task, as a kill
	// does: nothing is returned or reported. Another worker goes on. It does not
	// return.
	Die(ctx context.Context)
	// Stall lets the worker that calls it lose its right to the task, where the
	// driver has such a thing, and returns.
	Stall(ctx context.Context)
}

// New sets a driver up; room is how many tasks or results it holds at most.
type New func(t *testing.T, room int) Rig

// plenty is room for every test that is not about room.
const plenty = 1000

// Run runs the suite.
func Run(t *testing.T, make New) {
	t.Run("every task has one result", func(t *testing.T) { everyTask(t, make(t, plenty)) })
	t.Run("worker killed within a case", func(t *testing.T) { killed(t, make(t, plenty)) })
	t.Run("lease lost", func(t *testing.T) { leaseLost(t, make(t, plenty)) })
	t.Run("duplicate publish", func(t *testing.T) { duplicate(t, make(t, plenty)) })
	t.Run("poison case", func(t *testing.T) { poison(t, make(t, plenty)) })
	t.Run("queue full", func(t *testing.T) { full(t, make(t, 3)) })
	t.Run("restart half-way", func(t *testing.T) { restart(t, make(t, plenty)) })
	t.Run("results that cannot be kept", func(t *testing.T) { notKept(t, make(t, plenty)) })
}

func tasks(n int) []workq.Task {
	out := make([]workq.Task, n)
	for k := range out {
		out[k] = workq.Task{ID: fmt.Sprintf("t%03d", k), Group: k / 8, Body: fmt.Appendf(nil, "%d", k)}
	}
	return out
}

// answer is the right result of a task.
func answer(t workq.Task) []byte { return fmt.Appendf(nil, "<%s>", t.Body) }

func answers(_ context.Context, t workq.Task) ([]byte, error) { return answer(t), nil }

// keep collects results and finds those that come twice.
type keep struct {
	t    *testing.T
	mu   sync.Mutex
	have map[string]workq.Result
}

func newKeep(t *testing.T) *keep { return &keep{t: t, have: map[string]workq.Result{}} }

func (k *keep) take(list []workq.Result) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range list {
		if _, twice := k.have[r.ID]; twice {
			k.t.Errorf("%s has a second result", r.ID)
		}
		k.have[r.ID] = r
	}
	return nil
}

// check fails where a task lacks its answer; dead are those that must be dead.
func (k *keep) check(list []workq.Task, dead ...string) {
	k.t.Helper()
	isDead := map[string]bool{}
	for _, id := range dead {
		isDead[id] = true
	}
	ids := map[string]bool{}
	for _, task := range list {
		ids[task.ID] = true
		r, ok := k.have[task.ID]
		switch {
		case !ok:
			k.t.Errorf("%s has no result", task.ID)
		case isDead[task.ID]:
			if r.Dead != workq.GaveUp() || r.Body != nil {
				k.t.Errorf("%s: %q, body %q; want it given up", task.ID, r.Dead, r.Body)
			}
		case r.Dead != "" || string(r.Body) != string(answer(task)):
			k.t.Errorf("%s: %q, dead %q; want %q", task.ID, r.Body, r.Dead, answer(task))
		}
	}
	if len(k.have) != len(ids) {
		k.t.Errorf("%d results of %d tasks", len(k.have), len(ids))
	}
}

// limit is the time that a test may take.
func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func run(t *testing.T, r Rig, do workq.Do, list []workq.Task) *keep {
	t.Helper()
	k := newKeep(t)
	if err := r.Run(limit(t), do, list, k.take); err != nil {
		t.Fatal(err)
	}
	return k
}

func everyTask(t *testing.T, r Rig) {
	list := tasks(100)
	run(t, r, answers, list).check(list)
	run(t, r, answers, nil).check(nil)
}

func killed(t *testing.T, r Rig) {
	var died [3]atomic.Bool
	list := tasks(60)
	run(t, r, func(ctx context.Context, task workq.Task) ([]byte, error) {
		for n := range died {
			if task.ID == list[10*n+5].ID && died[n].CompareAndSwap(false, true) {
				r.Die(ctx)
			}
		}
		return answer(task), nil
	}, list).check(list)
	for n := range died {
		if !died[n].Load() {
			t.Errorf("worker %d did not die", n)
		}
	}
}

func leaseLost(t *testing.T, r Rig) {
	var stalled atomic.Bool
	list := tasks(30)
	run(t, r, func(ctx context.Context, task workq.Task) ([]byte, error) {
		if task.ID == list[7].ID && stalled.CompareAndSwap(false, true) {
			r.Stall(ctx)
		}
		return answer(task), nil
	}, list).check(list)
	if !stalled.Load() {
		t.Error("no worker stalled")
	}
}

func duplicate(t *testing.T, r Rig) {
	list := tasks(20)
	twice := append(append([]workq.Task{}, list...), list...)
	run(t, r, answers, twice).check(list)
	// What was worked on before is worked on again when it is asked for.
	run(t, r, answers, list[:5]).check(list[:5])
}

func poison(t *testing.T, r Rig) {
	var attempts atomic.Int32
	list := tasks(30)
	run(t, r, func(ctx context.Context, task workq.Task) ([]byte, error) {
		switch task.ID {
		case list[3].ID:
			attempts.Add(1)
			r.Die(ctx)
		case list[4].ID:
			return nil, errors.New("not finished")
		}
		return answer(task), nil
	}, list).check(list, list[3].ID, list[4].ID)
	if n := attempts.Load(); n > workq.Deliveries || n < 1 {
		t.Errorf("the poison was tried %d times, at most %d are due", n, workq.Deliveries)
	}
}

func full(t *testing.T, r Rig) {
	list := tasks(50)
	var slow atomic.Int32
	k := newKeep(t)
	err := r.Run(limit(t), func(ctx context.Context, task workq.Task) ([]byte, error) {
		if slow.Add(1) < 5 {
			time.Sleep(50 * time.Millisecond)
		}
		return answer(task), nil
	}, list, func(batch []workq.Result) error {
		time.Sleep(5 * time.Millisecond)
		return k.take(batch)
	})
	if err != nil {
		t.Fatal(err)
	}
	k.check(list)
}

func restart(t *testing.T, r Rig) {
	list := tasks(80)
	ctx, stop := context.WithCancel(limit(t))
	k := newKeep(t)
	err := r.Run(ctx, func(ctx context.Context, task workq.Task) ([]byte, error) {
		time.Sleep(time.Millisecond)
		return answer(task), nil
	}, list, func(batch []workq.Result) error {
		err := k.take(batch)
		if len(k.have) >= 1 {
			stop()
		}
		return err
	})
	if err == nil && len(k.have) < len(list) {
		t.Fatal("stopped half-way without an error")
	}
	var missing []workq.Task
	for _, task := range list {
		if _, ok := k.have[task.ID]; !ok {
			missing = append(missing, task)
		}
	}
	// What the first run left behind must not disturb the second.
	second := newKeep(t)
	if err := r.Run(limit(t), answers, missing, second.take); err != nil {
		t.Fatal(err)
	}
	second.check(missing)
}

func notKept(t *testing.T, r Rig) {
	full := errors.New("disk full")
	list := tasks(20)
	if err := r.Run(limit(t), answers, list, func([]workq.Result) error { return full }); !errors.Is(err, full) {
		t.Fatalf("error %v, want that of the caller", err)
	}
	run(t, r, answers, list).check(list)
}
