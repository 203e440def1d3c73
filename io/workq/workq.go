// Package workq says what a queue of work is: tasks go in, every task comes
// out with one result. Drivers are packages below; workqtest holds all of them
// to one set of tests. A queue carries work and is never the record: a caller
// keeps results and asks again for those that are missing.
package workq

import (
	"context"
	"fmt"
)

// Task is a piece of work.
type Task struct {
	// ID names the work by its content: tasks of one ID are the same work.
	ID string
	// Group names what tasks share. A driver gives the tasks of a group, which
	// follow one another, to as few workers as keeps all of them busy.
	Group int
	Body  []byte
}

// Result is the result of a task.
type Result struct {
	ID   string
	Body []byte
	// Dead says why no worker finished the task; Body is nil then.
	Dead string
}

// Do does the work of a task. A failure of the work itself is a body that says
// so; an error means that the work was not finished and has to be given to a
// worker again. Several goroutines call it.
type Do func(ctx context.Context, t Task) ([]byte, error)

// Queue runs tasks.
type Queue interface {
	// Run gives the tasks to workers and calls take with results, each ID once,
	// in any order and from one goroutine. What take returns without an error
	// counts as kept. Run returns when every task has its result, with the
	// context's error where that ends first.
	Run(ctx context.Context, tasks []Task, take func([]Result) error) error
}

// Deliveries is how often a task is given to a worker before it counts as
// dead.
const Deliveries = 5

// GaveUp is the reason of a task that was given to workers Deliveries times.
func GaveUp() string { return fmt.Sprintf("no worker finished it in %d attempts", Deliveries) }

// Once returns the tasks without those whose ID came before.
func Once(tasks []Task) []Task {
	seen := make(map[string]bool, len(tasks))
	out := make([]Task, 0, len(tasks))
	for _, t := range tasks {
		if !seen[t.ID] {
			seen[t.ID] = true
			out = append(out, t)
		}
	}
	return out
}
