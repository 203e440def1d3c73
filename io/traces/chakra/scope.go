package chakra

import (
	"slices"

	"perfsim/components"
)

// mostCalls bounds the callers in a scope.
const mostCalls = 64

// scopes names the operators and annotations around every node of a host
// trace, from the outermost to the node itself. Threads and process are none.
func (g *graph) scopes(hosts []hostNode) {
	byID := make(map[uint64]int, len(hosts))
	for k := range hosts {
		byID[hosts[k].id] = k
	}
	sym := g.b.M.Symbols
	var parts []string
	for k := range hosts {
		parts = parts[:0]
		for at, ok := k, true; ok && len(parts) < mostCalls; {
			h := &hosts[at]
			if n := &g.nodes[h.node]; n.opcode != "thread" {
				parts = append(parts, sym.String(n.name))
			}
			if h.parent == h.id {
				break
			}
			at, ok = byID[h.parent]
		}
		slices.Reverse(parts)
		if len(parts) > 0 {
			g.nodes[hosts[k].node].scope = sym.InternString(components.JoinScope(parts...))
		}
	}
}
