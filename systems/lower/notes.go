package lower

import (
	"fmt"
	"slices"
	"strings"

	"perfsim/components"
	"perfsim/components/opgraph"
)

// nameOf returns what an operator is called in accounts: its opcode, the word
// of an opcode that is not known, the target of a custom-call.
func (l *lowerer) nameOf(op opgraph.OpID) string {
	g := l.g
	switch k := g.Ops.Kind[op]; k {
	case opgraph.OpUnknown:
		if word := g.AttrStr(op, opgraph.AttrOpcode); word != "" {
			return word
		}
		return k.String()
	case opgraph.OpCustomCall:
		if target := g.AttrStr(op, opgraph.AttrCustomCallTarget); target != "" {
			return target
		}
		return k.String()
	default:
		return k.String()
	}
}

// notes writes the remarks on the lowering into the module.
func (l *lowerer) notes() {
	m, r := l.e.m, &l.rep
	if text, n := r.estimated(); n > 0 {
		m.Note(components.NoteEstimated, text, n)
	}
	if err := r.Conserved(); err != nil {
		m.Note("not-conserved", err.Error(), 1)
	} else {
		m.Note("conserved", fmt.Sprintf("lowered and graph agree: %d FLOPs, %d bytes of parameters, %d of outputs, %d of collectives; all %d operators accounted for",
			r.FLOPs, r.ParameterBytes, r.OutputBytes, r.CollectiveBytes, r.Ops), 1)
	}
	for _, a := range r.Accounts {
		if a.Treatment == Estimated.String() {
			m.Note("estimated", fmt.Sprintf("unsupported operator %s, estimated as %s", a.Opcode, a.How), int(a.Count))
		}
	}
	l.tripNotes()
	if r.TileLoops > 0 {
		m.Note("tile-loops", "long tile loops are kept as loops with trip counts (--no-compress writes them out)", r.TileLoops)
	}
	if r.Coarse > 0 {
		m.Note("coarse-dependencies", "waits on merged accesses: extra edges, never missing ones", int(r.Coarse))
	}
}

// mostEstimated bounds the names in the headline; the notes have them all.
const mostEstimated = 4

// estimated returns the headline about operators without a lowering rule, the
// most frequent first, and their number.
func (r *Report) estimated() (text string, n int) {
	var list []Account
	for _, a := range r.Accounts {
		if a.Treatment != Estimated.String() {
			continue
		}
		n += int(a.Count)
		if i := slices.IndexFunc(list, func(b Account) bool { return a.Opcode == b.Opcode }); i >= 0 {
			list[i].Count += a.Count
		} else {
			list = append(list, a)
		}
	}
	slices.SortStableFunc(list, func(a, b Account) int { return int(b.Count - a.Count) })
	var names []string
	for i, a := range list {
		if i == mostEstimated && len(list) > i+1 {
			names = append(names, "…")
			break
		}
		if name := a.Opcode; a.Count > 1 {
			names = append(names, fmt.Sprintf("%s ×%d", name, a.Count))
		} else {
			names = append(names, name)
		}
	}
	noun := "operators"
	if n == 1 {
		noun = "operator"
	}
	return fmt.Sprintf("%d %s estimated: %s", n, noun, strings.Join(names, ", ")), n
}
