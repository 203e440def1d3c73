// Package variant makes changed copies of a world and predicts them: what
// the questions "what if" and "what does this cost" are answered by. A copy
// shares with the original everything that it does not change.
package variant

import (
	"context"
	"slices"

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
	m.Notes = slices.Clip(m.Notes)
	c.Module = &m
	c.Events = components.NewEvents()
	c.Blocks = nil
	c.ByLane, c.ByOpcode, c.ByClass = nil, nil, nil
	c.Config.Progress = nil
	return &c
}

// OwnCosts gives the copy columns of its own for issue intervals and
// latencies, with the values of the original where keep is set.
func OwnCosts(c *components.World, keep bool) {
	in := &c.Module.Instr
	issue, latency := in.Issue.Slice(), in.Latency.Slice()
	in.Issue = ecs.NewColumn[uint32](in.Issue.Name())
	in.Latency = ecs.NewColumn[uint32](in.Latency.Name())
	if keep {
		copy(in.Issue.Scratch(len(issue)), issue)
		copy(in.Latency.Scratch(len(latency)), latency)
	}
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
