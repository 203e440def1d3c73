package timeline

import "perfsim/components"

// DropCycles forgets the dependencies of one kind whose two rows depend on
// each other, so that no cycle has one of that kind, and returns how many
// there were.
func (b *Builder) DropCycles(kind components.EdgeKind) int {
	group := b.groups()
	n := 0
	for x, k := range b.Deps.kind {
		if k != kind || group[b.Deps.consumer[x]] != group[b.Deps.producer[x]] {
			b.Deps.consumer[n], b.Deps.producer[n], b.Deps.kind[n] = b.Deps.consumer[x], b.Deps.producer[x], k
			n++
		}
	}
	dropped := len(b.Deps.kind) - n
	b.Deps.consumer, b.Deps.producer, b.Deps.kind = b.Deps.consumer[:n], b.Deps.producer[:n], b.Deps.kind[:n]
	return dropped
}

// groups numbers the strongly connected components of the dependencies
// (Tarjan 1972), without recursion.
func (b *Builder) groups() []uint32 {
	n := len(b.Rows)
	off, edges := b.preds()
	group, index, low := make([]uint32, n), make([]uint32, n), make([]uint32, n) // index 0: not met
	next := append([]uint32(nil), off[:n]...)
	onStack := make([]bool, n)
	var stack, path []uint32
	var met, groups uint32
	for root := range n {
		if index[root] != 0 {
			continue
		}
		path = append(path, uint32(root))
		for len(path) > 0 {
			v := path[len(path)-1]
			if index[v] == 0 {
				met++
				index[v], low[v] = met, met
				stack, onStack[v] = append(stack, v), true
			}
			if next[v] < off[v+1] {
				w := b.Deps.producer[edges[next[v]]]
				switch {
				case index[w] == 0:
					path = append(path, w) // next[v] stays: v takes w's low when w is done
					continue
				case onStack[w]:
					low[v] = min(low[v], low[w])
				}
				next[v]++
				continue
			}
			path = path[:len(path)-1]
			if low[v] == index[v] {
				for {
					w := stack[len(stack)-1]
					stack, onStack[w] = stack[:len(stack)-1], false
					group[w] = groups
					if w == v {
						break
					}
				}
				groups++
			}
		}
	}
	return group
}
