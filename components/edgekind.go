package components

import "strings"

// EdgeKind is the type of a dependency edge (docs/model.md, section 1): Flow is
// read-after-write, Anti write-after-read, Output write-after-write, Ordered
// a pure order.
type EdgeKind uint8

// The edge kinds with the compiler's ordinals. Where an ordered pair of
// instructions has several, the largest is kept (docs/model.md, section 1).
const (
	Invalid EdgeKind = iota
	Ordered
	Anti
	Output
	Flow
	NumEdgeKinds
)

var edgeKindNames = [NumEdgeKinds]string{"Invalid", "Ordered", "Anti", "Output", "Flow"}

// String returns the name used in files.
func (k EdgeKind) String() string {
	if k < NumEdgeKinds {
		return edgeKindNames[k]
	}
	return "Invalid"
}

// Key returns the name as a key of our own JSON: "flow", "anti".
func (k EdgeKind) Key() string { return strings.ToLower(k.String()) }

// ParseEdgeKind returns the kind with the given name, either the BIR
// spelling (Flow) or the profiler's (FLOW_DEPENDENCE).
func ParseEdgeKind(name string) (EdgeKind, bool) {
	switch name {
	case "Flow", "FLOW_DEPENDENCE", "FLOW":
		return Flow, true
	case "Anti", "ANTI_DEPENDENCE", "ANTI":
		return Anti, true
	case "Output", "OUTPUT_DEPENDENCE", "OUTPUT":
		return Output, true
	case "Ordered", "ORDERED":
		return Ordered, true
	case "Invalid", "INVALID":
		return Invalid, true
	}
	return Invalid, false
}

// The classes of the edge relation. Their order is the order of a row's
// edges: run B, which leaves anti-dependencies out, takes a prefix.
const (
	ClassFlow uint8 = iota
	ClassOutput
	ClassOrdered
	ClassAnti
	NumClasses
)

var classOfKind = [NumEdgeKinds]uint8{Invalid: ClassOrdered, Ordered: ClassOrdered, Anti: ClassAnti, Output: ClassOutput, Flow: ClassFlow}
var kindOfClass = [NumClasses]EdgeKind{ClassFlow: Flow, ClassOutput: Output, ClassOrdered: Ordered, ClassAnti: Anti}

// Class returns the relation class that stores edges of kind k.
func (k EdgeKind) Class() uint8 { return classOfKind[k] }

// KindOfClass returns the kind that class c stores.
func KindOfClass(c uint8) EdgeKind { return kindOfClass[c] }

// StrongerClass is the merge rule of edges between one pair: the larger kind
// wins.
func StrongerClass(a, b uint8) bool { return kindOfClass[a] > kindOfClass[b] }
