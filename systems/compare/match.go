package compare

import (
	"fmt"

	"perfsim/ecs"
)

// Ways to match the instructions of two modules.
const (
	MatchAuto  = "auto"  // by id where both have ids that fit, else by name, else by order
	MatchID    = "id"    // the input's own 64-bit ids
	MatchName  = "name"  // instruction names
	MatchOrder = "order" // the n-th of an opcode on an engine
)

// match pairs rows of a with rows of b and tells how; rows without a partner
// are left out.
func match(a, b *Side, how string) (pairs [][2]int, by string, err error) {
	if a.Module == b.Module && (how == "" || how == MatchAuto) {
		for i := range a.Start {
			if a.has(i) && b.has(i) {
				pairs = append(pairs, [2]int{i, i})
			}
		}
		return pairs, "same module", nil
	}
	switch how {
	case "", MatchAuto:
		if p := byID(a, b); enough(p, a, b) {
			return p, MatchID, nil
		}
		if p := byKey(a, b, nameKey(a), nameKey(b)); enough(p, a, b) {
			return p, MatchName, nil
		}
		return byKey(a, b, orderKey(a), orderKey(b)), MatchOrder, nil
	case MatchID:
		return byID(a, b), how, nil
	case MatchName:
		return byKey(a, b, nameKey(a), nameKey(b)), how, nil
	case MatchOrder:
		return byKey(a, b, orderKey(a), orderKey(b)), how, nil
	}
	return nil, "", fmt.Errorf("match %q is not %s, %s, %s or %s", how, MatchAuto, MatchID, MatchName, MatchOrder)
}

// enough tells whether a match covers most of the smaller side.
func enough(p [][2]int, a, b *Side) bool { return 2*len(p) > min(len(a.Start), len(b.Start)) }

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
