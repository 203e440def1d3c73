package components

import "perfsim/ecs"

// Edges are the dependencies between instructions.
type Edges struct {
	// Preds has the predecessors of every instruction that the placement
	// honours: both ends in one block, the producer earlier in program order
	// and placed. Classes are those of EdgeKind.Class. An edge's id is its
	// index in Preds.Words().
	Preds ecs.Relation

	// Other has the edges the placement of one block does not honour, with
	// the reason: kept so that nothing the input said is lost.
	Other OtherEdges

	// Declared counts the edges the input had, by kind, before equal pairs
	// were merged.
	Declared [NumEdgeKinds]uint64
}

// EdgeScope says why an edge is not part of the placement relation.
type EdgeScope uint8

// The scopes.
const (
	ScopeCarried EdgeScope = iota // loop-carried: to an earlier iteration
	ScopeRegion                   // the producer is in another block
	ScopeLoop                     // the producer is a loop, which has no event
	ScopeLater                    // the producer is later in program order, so it has no event yet
)

// OtherEdges is the table of edges outside the placement relation.
type OtherEdges struct {
	From     ecs.Column[uint32] // consumer
	To       ecs.Column[uint32] // producer
	Kind     ecs.Column[EdgeKind]
	Scope    ecs.Column[EdgeScope]
	Distance ecs.Column[int32] // iterations, of the innermost loop, for ScopeCarried
}

// Len returns the number of edges.
func (t *OtherEdges) Len() int { return t.From.Len() }

// Add appends an edge.
func (t *OtherEdges) Add(from, to InstrID, kind EdgeKind, scope EdgeScope, distance int32) {
	t.From.Append(uint32(from))
	t.To.Append(uint32(to))
	t.Kind.Append(kind)
	t.Scope.Append(scope)
	t.Distance.Append(distance)
}

func newEdges() Edges {
	return Edges{
		Preds: ecs.NewRelation("edges"),
		Other: OtherEdges{
			From: ecs.NewColumn[uint32]("edges.other.from"), To: ecs.NewColumn[uint32]("edges.other.to"),
			Kind: ecs.NewColumn[EdgeKind]("edges.other.kind"), Scope: ecs.NewColumn[EdgeScope]("edges.other.scope"),
			Distance: ecs.NewColumn[int32]("edges.other.distance"),
		},
	}
}

// Columns lists all columns.
func (e *Edges) Columns() []ecs.AnyColumn {
	return append(e.Preds.Columns(), &e.Other.From, &e.Other.To, &e.Other.Kind, &e.Other.Scope, &e.Other.Distance)
}

// Counts returns the number of placement edges by kind.
func (e *Edges) Counts() [NumEdgeKinds]uint64 {
	var n [NumEdgeKinds]uint64
	for c, count := range countClasses(e.Preds.Words()) {
		n[KindOfClass(uint8(c))] += count
	}
	return n
}

// countClasses counts words by class. The four counts share one register,
// sixteen bits each: counting in memory would make every word wait for the
// one before it.
func countClasses(words []uint32) [NumClasses]uint64 {
	var n [NumClasses]uint64
	for len(words) > 0 {
		part := words[:min(len(words), 1<<16-1)]
		words = words[len(part):]
		var sum uint64
		for _, w := range part {
			sum += 1 << (w >> ecs.ClassShift * 16 & 63)
		}
		for c := range n {
			n[c] += sum >> (c * 16) & (1<<16 - 1)
		}
	}
	return n
}
