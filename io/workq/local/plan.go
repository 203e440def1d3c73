package local

import (
	"sync"

	"perfsim/io/workq"
)

// plan hands tasks out: a worker stays with its group, then takes one that
// nobody has, then helps where most is left.
type plan struct {
	mu     sync.Mutex
	groups [][]workq.Task
	fresh  int // groups from here on have no worker
}

func newPlan(tasks []workq.Task) *plan {
	p := &plan{}
	for from := 0; from < len(tasks); {
		to := from + 1
		for to < len(tasks) && tasks[to].Group == tasks[from].Group {
			to++
		}
		p.groups = append(p.groups, tasks[from:to])
		from = to
	}
	return p
}

// next returns the next task of a worker whose group is *group, -1 for none,
// and sets it to the task's.
func (p *plan) next(group *int) (t workq.Task, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := *group
	if g < 0 || len(p.groups[g]) == 0 {
		g = -1
		if p.fresh < len(p.groups) {
			g = p.fresh
			p.fresh++
		} else {
			for k, list := range p.groups {
				if len(list) > 0 && (g < 0 || len(list) > len(p.groups[g])) {
					g = k
				}
			}
		}
	}
	if g < 0 {
		return t, false
	}
	*group = g
	t, p.groups[g] = p.groups[g][0], p.groups[g][1:]
	return t, true
}
