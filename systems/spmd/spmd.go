// Package spmd gives one device's share of a module whose shapes are those of
// all devices: shardings are followed through the graph, shapes become local
// and the collectives that a partitioner inserts for them are added.
//
// The rules are those of XLA's partitioner for the common cases. A contracted
// or reduced dimension that is cut gives partial sums and an all-reduce, or a
// reduce-scatter where the result is wanted cut; an operand that is needed
// whole is gathered; cuts that change dimension are an all-to-all; a value that
// each device has whole is sliced at no cost. An operator without a rule is
// done whole by every device. Halo exchanges are not modelled: spatial
// dimensions of windows are gathered.
package spmd

import (
	"fmt"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// Partition returns one device's share of g, and a note about it; g itself
// and no note where it is not a module of all devices. Where the shardings
// cannot be followed the graph is returned whole and the note says so.
func Partition(g *opgraph.Graph) (*opgraph.Graph, *components.Note) {
	if !pending(g) {
		return g, nil
	}
	p, err := newPlan(g)
	if p.ax.devices <= 1 {
		return g, nil
	}
	if err == nil {
		e := &emitter{planner: p, r: opgraph.NewRewriter(g), counts: map[opgraph.OpKind]int{}, whole: map[string]int{}}
		e.to = e.r.To
		to := e.graph()
		if err = to.Check(); err == nil {
			return to, &components.Note{Code: components.NotePartitioned, Text: e.note(p.ax.devices), Count: 1}
		}
	}
	return g, &components.Note{Code: components.NoteAllDevices, Count: 1,
		Text: fmt.Sprintf("all %d devices' work on one core: the module is not partitioned (%v)", p.ax.devices, err)}
}
