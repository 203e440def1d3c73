package local

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"perfsim/io/workq"
	"perfsim/io/workq/workqtest"
)

type rig struct{ room int }

func (r rig) Run(ctx context.Context, do workq.Do, tasks []workq.Task, take func([]workq.Result) error) error {
	return (&Queue{Jobs: 4, Do: do, Room: r.room}).Run(ctx, tasks, take)
}

// A goroutine cannot be killed; it panics.
func (rig) Die(context.Context) { panic("killed") }

// The local queue has no leases.
func (rig) Stall(context.Context) {}

func TestConformance(t *testing.T) {
	t.Parallel()
	workqtest.Run(t, func(_ *testing.T, room int) workqtest.Rig { return rig{room} })
}

// Workers take groups of their own first and help each other at the end.
func TestPlan(t *testing.T) {
	t.Parallel()
	var tasks []workq.Task
	for _, g := range []int{0, 0, 0, 0, 1, 1, 2} {
		tasks = append(tasks, workq.Task{Group: g})
	}
	p := newPlan(tasks)
	a, b := -1, -1
	for _, step := range []struct {
		who  *int
		want int
	}{{&a, 0}, {&b, 1}, {&b, 1}, {&b, 2}, {&b, 0}, {&a, 0}, {&a, 0}} {
		if task, ok := p.next(step.who); !ok || task.Group != step.want || *step.who != step.want {
			t.Fatalf("group %d, %v; want %d", task.Group, ok, step.want)
		}
	}
	if _, ok := p.next(&a); ok {
		t.Error("a task is left")
	}
}

// At most Jobs tasks run at a time, and the end waits for them.
func TestJobs(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int32
	var mu sync.Mutex
	err := (&Queue{Jobs: 3, Do: func(context.Context, workq.Task) ([]byte, error) {
		n := running.Add(1)
		mu.Lock()
		most.Store(max(most.Load(), n))
		mu.Unlock()
		running.Add(-1)
		return nil, errors.New("again")
	}}).Run(context.Background(), []workq.Task{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}}, func([]workq.Result) error { return nil })
	if err != nil || running.Load() != 0 || most.Load() > 3 {
		t.Errorf("error %v, %d running at the end, %d at most; want none and 3", err, running.Load(), most.Load())
	}
}
