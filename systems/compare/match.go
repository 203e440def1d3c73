package compare

import (
	"fmt"
	"slices"

	"perfsim/components"
	"perfsim/ecs"
	"perfsim/systems/cost"
)

// Ways to match the instructions of two modules.
const (
	// MatchAuto is MatchWork where that matches half of the smaller side, else
	// what matches most. A trace that the compiler's simulator wrote is matched
	// by id, name and order first.
	MatchAuto  = "auto"
	MatchWork  = "work"  // what the instructions do, by engine and in order
	MatchID    = "id"    // the input's own 64-bit ids
	MatchName  = "name"  // instruction names
	MatchOrder = "order" // the n-th of an opcode on an engine
)

// sameRows reports whether two modules share their instructions, as copies of
// one module do.
func sameRows(a, b *components.Module) bool {
	x, y := a.Instr.Opcode.Slice(), b.Instr.Opcode.Slice()
	return a == b || len(x) == len(y) && len(x) > 0 && &x[0] == &y[0]
}

// match finds which rows of a and b are the same work and says how.
func match(a, b *Side, how string) (x *matching, by string, err error) {
	if sameRows(a.Module, b.Module) && (how == "" || how == MatchAuto) {
		var pairs [][2]int
		for i := range a.Start {
			if a.has(i) && b.has(i) {
				pairs = append(pairs, [2]int{i, i})
			}
		}
		return matchingOf(a, pairs), "same module", nil
	}
	ways := map[string]func() *matching{
		MatchWork:  func() *matching { return byWork(a, b) },
		MatchID:    func() *matching { return matchingOf(a, byID(a, b)) },
		MatchName:  func() *matching { return matchingOf(a, byName(a, b)) },
		MatchOrder: func() *matching { return matchingOf(a, byKey(a, b, orderKey(a), orderKey(b))) },
	}
	if f := ways[how]; f != nil {
		return f(), how, nil
	}
	if how != "" && how != MatchAuto {
		return nil, "", fmt.Errorf("match %q is not %s, %s, %s, %s or %s", how, MatchAuto, MatchWork, MatchID, MatchName, MatchOrder)
	}
	best := -1
	order := []string{MatchWork, MatchID, MatchName, MatchOrder}
	if simulated(a) || simulated(b) {
		order = []string{MatchID, MatchName, MatchOrder, MatchWork}
	}
	for _, way := range order {
		y := ways[way]()
		n := len(y.pairs())
		if n > best {
			x, by, best = y, way, n
		}
		if 2*n > min(a.count(), b.count()) {
			return y, way, nil
		}
	}
	return x, by, nil
}

// simulated reports whether a side is a trace that the compiler's simulator
// wrote: it has the ids of the compiler, and not what instructions work on.
func simulated(s *Side) bool { return s.Module.Attribute(cost.DocumentedTrace) != "" }

// matchingOf is a matching by something other than work.
func matchingOf(a *Side, pairs [][2]int) *matching {
	n := len(a.Start)
	x := &matching{to: slices.Repeat([]int{-1}, n), moved: make([]bool, n), change: make([]bool, n)}
	for _, p := range pairs {
		x.to[p[0]] = p[1]
	}
	return x
}

func byID(a, b *Side) [][2]int {
	ra, rb := a.Module.Instr.Ref.Slice(), b.Module.Instr.Ref.Slice()
	if len(ra) == 0 || len(rb) == 0 {
		return nil
	}
	at := make(map[uint64]int, len(rb))
	for i, id := range rb {
		if b.has(i) {
			at[id] = i
		}
	}
	var out [][2]int
	for i, id := range ra {
		// Profilers number anew in every run: an id that names another opcode is
		// another instruction.
		if j, ok := at[id]; ok && a.has(i) && opcode(a, i) == opcode(b, j) {
			out = append(out, [2]int{i, j})
			delete(at, id)
		}
	}
	return out
}

// byName matches by names. Where the sides have opcodes in common a name stands
// for the same work only with the same opcode: compilers use names again.
func byName(a, b *Side) [][2]int {
	words := map[string]bool{}
	for i := range a.Start {
		words[opcode(a, i)] = true
	}
	shared := false
	for j := range b.Start {
		shared = shared || words[opcode(b, j)]
	}
	pairs := byKey(a, b, nameKey(a), nameKey(b))
	if !shared {
		return pairs
	}
	return slices.DeleteFunc(pairs, func(p [2]int) bool { return opcode(a, p[0]) != opcode(b, p[1]) })
}

func opcode(s *Side, i int) string { return s.Module.OpcodeName(s.Module.Instr.Opcode.At(i)) }

// nameKey gives instructions with names of their own their name.
func nameKey(s *Side) func(i int) string {
	names := s.Module.Instr.Name.Slice()
	return func(i int) string {
		if len(names) == 0 || names[i] == ecs.Symbol(0) {
			return ""
		}
		return s.Module.Symbols.String(names[i])
	}
}

// orderKey numbers the instructions of each opcode on each engine.
func orderKey(s *Side) func(i int) string {
	keys := make([]string, len(s.Start))
	seen := map[string]uint64{}
	for i := range s.Start {
		k := engine(s.Module, i) + "\x00" + opcode(s, i)
		seen[k]++
		keys[i] = string(appendUint(append([]byte(k), 0), seen[k]))
	}
	return func(i int) string { return keys[i] }
}

func byKey(a, b *Side, ka, kb func(i int) string) [][2]int {
	at := make(map[string]int, len(b.Start))
	for i := range b.Start {
		if k := kb(i); k != "" && b.has(i) {
			if _, ok := at[k]; !ok {
				at[k] = i
			}
		}
	}
	var out [][2]int
	for i := range a.Start {
		k := ka(i)
		if k == "" || !a.has(i) {
			continue
		}
		if j, ok := at[k]; ok {
			out = append(out, [2]int{i, j})
			delete(at, k)
		}
	}
	return out
}
