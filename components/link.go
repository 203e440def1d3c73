package components

import (
	"fmt"

	"perfsim/ecs"
)

// EdgeSet collects the dependencies of a module in any order, as a reader
// meets them; Link sorts them into the module's tables.
type EdgeSet struct {
	in       ecs.Builder
	carried  []carriedEdge
	declared [NumEdgeKinds]uint64
}

type carriedEdge struct {
	from, to InstrID
	kind     EdgeKind
	distance int32
}

// Add records that instruction from depends on instruction to.
func (s *EdgeSet) Add(from, to InstrID, kind EdgeKind) {
	s.declared[kind]++
	s.in.Add(uint32(from), uint32(to), kind.Class())
}

// Take adds many edges at once: edge i is of instruction from[i] and has the
// producer and the class in words[i] (ecs.Word). The set owns both from then
// on. declared has how many there are of each kind.
func (s *EdgeSet) Take(from, words []uint32, declared [NumEdgeKinds]uint64) {
	for k, n := range declared {
		s.declared[k] += n
	}
	s.in.Take(from, words)
}

// AddCarried records that from depends on what to did distance iterations
// earlier.
func (s *EdgeSet) AddCarried(from, to InstrID, kind EdgeKind, distance int32) {
	s.declared[kind]++
	s.carried = append(s.carried, carriedEdge{from, to, kind, distance})
}

// Len returns the number of edges recorded, the loop-carried ones excluded.
func (s *EdgeSet) Len() int { return s.in.Len() }

// Reserve makes room for n edges.
func (s *EdgeSet) Reserve(n int) { s.in.Reserve(n) }

// Link merges equal edges and sorts them into m.Edges: what the placement
// honours, and the rest with the reason (docs/model.md, section 1: a producer in another
// block, a loop, or one that has no event yet is skipped). It fails on a
// cycle, naming the instructions on it. Instructions and blocks must be
// complete; the set is empty afterwards.
func (m *Module) Link(s *EdgeSet) error {
	n := m.Instr.Len()
	m.Edges.Declared = s.declared
	all := &m.Edges.Preds
	s.in.Build(all, n, StrongerClass)
	region := m.regions()
	flags := m.Instr.Flags.Slice()

	forward := false
	for i := range n {
		for _, w := range all.Row(i) {
			to := int(w & ecs.TargetMask)
			if to == i {
				return fmt.Errorf("instruction %s depends on itself", m.InstrName(InstrID(i)))
			}
			forward = forward || to > i
		}
	}
	if forward {
		if cycle := findCycle(all, n); cycle != nil {
			return &CycleError{cycle, m.cycleText(cycle)}
		}
	}

	later := 0
	all.Filter(func(i int, w uint32) bool {
		to := int(w & ecs.TargetMask)
		scope := ScopeLater
		switch {
		case flags[i]&FlagLoop != 0 || flags[to]&FlagLoop != 0:
			scope = ScopeLoop
		case region != nil && region[i] != region[to]:
			scope = ScopeRegion
		case to > i:
			later++
		default:
			return true
		}
		m.Edges.Other.Add(InstrID(i), InstrID(to), kindOfClass[w>>ecs.ClassShift], scope, 0)
		return false
	})
	for _, c := range s.carried {
		m.Edges.Other.Add(c.from, c.to, c.kind, ScopeCarried, c.distance)
	}
	if later > 0 {
		m.Note("later-producer", "dependencies on instructions later in program order: such a producer has no event yet, so placement skips them, as documented", later)
	}
	*s = EdgeSet{}
	return nil
}

// CycleError names instructions that depend on one another in a cycle.
type CycleError struct {
	Rows []uint32 // each depends on the next, the last on the first
	text string
}

// Error names the instructions, at most eight.
func (e *CycleError) Error() string { return "dependency cycle: " + e.text }

// regions returns the innermost block of every instruction, or nil where
// there is one block only.
func (m *Module) regions() []uint32 {
	if m.Blocks.Len() <= 1 {
		return nil
	}
	region := make([]uint32, m.Instr.Len())
	// Blocks are in program order and those of a loop follow the block around
	// it: a stack of open blocks meets every row once, whatever the depth.
	var open []uint32
	at := uint32(0)
	fill := func(to uint32) {
		for len(open) > 0 && at < to {
			b := open[len(open)-1]
			for end := min(m.Blocks.End.At(int(b)), to); at < end; at++ {
				region[at] = b
			}
			if at < to {
				open = open[:len(open)-1]
			}
		}
		at = max(at, to)
	}
	for b := range m.Blocks.Len() {
		fill(m.Blocks.First.At(b))
		open = append(open, uint32(b))
	}
	fill(uint32(len(region)))
	return region
}

// findCycle returns instructions that form a cycle, or nil.
func findCycle(r *ecs.Relation, n int) []uint32 {
	const (
		fresh = iota
		open
		done
	)
	state := make([]uint8, n)
	next := make([]uint32, n) // edge to try next
	var path []uint32
	for root := range n {
		if state[root] != fresh {
			continue
		}
		path = append(path[:0], uint32(root))
		state[root] = open
		for len(path) > 0 {
			at := path[len(path)-1]
			row := r.Row(int(at))
			if int(next[at]) == len(row) {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			to := row[next[at]] & ecs.TargetMask
			next[at]++
			switch state[to] {
			case fresh:
				state[to] = open
				path = append(path, to)
			case open:
				for i, p := range path {
					if p == to {
						return path[i:]
					}
				}
			}
		}
	}
	return nil
}

// cycleText names the instructions on a cycle, at most eight of them.
func (m *Module) cycleText(cycle []uint32) string {
	const most = 8
	text := ""
	for i, c := range cycle {
		if i == most {
			return text + fmt.Sprintf("… (%d instructions)", len(cycle))
		}
		text += m.InstrName(InstrID(c)) + " -> "
	}
	return text + m.InstrName(InstrID(cycle[0]))
}
