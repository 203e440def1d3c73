// Package scenario makes changed copies of a world and predicts them: what
// the questions "what if" and "what does this cost" are answered by. A copy
// shares with the original everything that it does not change.
package scenario

import (
	"context"
	"slices"
	"sync"

	"perfsim/components"
	"perfsim/ecs"
)

// Engine is the prediction: the cost and the place system of the pipeline.
type Engine struct {
	Cost, Place func(ctx context.Context, w *components.World) error
}

// Fork returns a copy of w with events and results of its own. Issue
// intervals and latencies are the original's; a caller that changes them or
// has them filled anew calls OwnCosts first. The module's tables must not be
// changed in place; replace them.
func Fork(w *components.World) *components.World {
	c := *w
	m := *w.Module
	m.Notes = slices.Clone(m.Notes) // Note counts in place
	c.Module = &m
	c.Events = components.NewEvents()
	c.Blocks, c.Transfers, c.FullClock = nil, nil, nil
	c.Why = [2]*components.Attribution{}
	c.ByLane, c.ByOpcode, c.ByClass = nil, nil, nil
	c.Config.Progress = nil
	return &c
}

// Pool hands out copies of one world whose columns are used again: the first
// touch of fresh memory costs more than what is done in it.
type Pool struct {
	base *components.World
	mu   sync.Mutex
	free []*kept
	out  map[*components.World]*kept
}

// kept are the columns of a copy.
type kept struct {
	events         components.Events
	issue, latency ecs.Column[uint32]
}

// NewPool returns an empty pool of copies of w.
func NewPool(w *components.World) *Pool {
	return &Pool{base: w, out: map[*components.World]*kept{}}
}

// Get returns a copy as Fork does.
func (p *Pool) Get() *components.World {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &kept{events: components.NewEvents(), issue: ecs.NewColumn[uint32](p.base.Module.Instr.Issue.Name()), latency: ecs.NewColumn[uint32](p.base.Module.Instr.Latency.Name())}
	if n := len(p.free); n > 0 {
		k = p.free[n-1]
		p.free = p.free[:n-1]
	}
	c := Fork(p.base)
	c.Events = k.events
	p.out[c] = k
	return c
}

// OwnCosts is OwnCosts with columns of the pool.
func (p *Pool) OwnCosts(c *components.World, keep bool) {
	p.mu.Lock()
	k := p.out[c]
	p.mu.Unlock()
	in := &c.Module.Instr
	issue, latency := in.Issue.Slice(), in.Latency.Slice()
	in.Issue, in.Latency = k.issue, k.latency
	copyCosts(in, issue, latency, keep)
}

// Put takes a copy back; nobody may use it or its columns any more.
func (p *Pool) Put(c *components.World) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.out[c]
	delete(p.out, c)
	k.events = c.Events
	if in := &c.Module.Instr; in.Issue.Len() > 0 && &in.Issue.Slice()[0] != &p.base.Module.Instr.Issue.Slice()[0] {
		k.issue, k.latency = in.Issue, in.Latency
	}
	p.free = append(p.free, k)
}

func copyCosts(in *components.Instructions, issue, latency []uint32, keep bool) {
	in.Issue.Reset()
	in.Latency.Reset()
	if keep {
		copy(in.Issue.Scratch(len(issue)), issue)
		copy(in.Latency.Scratch(len(latency)), latency)
	}
}

// OwnCosts gives the copy columns of its own for issue intervals and
// latencies, with the values of the original where keep is set.
func OwnCosts(c *components.World, keep bool) {
	in := &c.Module.Instr
	issue, latency := in.Issue.Slice(), in.Latency.Slice()
	in.Issue = ecs.NewColumn[uint32](in.Issue.Name())
	in.Latency = ecs.NewColumn[uint32](in.Latency.Name())
	copyCosts(in, issue, latency, keep)
}

// Without gives the copy a dependency relation that lacks the edges for which
// drop is true; e is the edge's id and word its relation word.
func Without(c *components.World, drop func(consumer uint32, e int, word uint32) bool) {
	m := c.Module
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	rel := ecs.NewRelation("edges")
	rel.Reserve(max(len(off)-1, 0), len(words))
	var row []uint32
	for i := range max(len(off)-1, 0) {
		row = row[:0]
		for e := int(off[i]); e < int(off[i+1]); e++ {
			if !drop(uint32(i), e, words[e]) {
				row = append(row, words[e])
			}
		}
		rel.AppendRow(row)
	}
	m.Edges.Preds = rel
}
