package antidep

import (
	"slices"

	"perfsim/components"
	"perfsim/ecs"
)

// A version of a buffer is its content from one writer: it lives from the
// writer's start to the end of the last reader that the next writer waits for.
// In run B, where nobody waits, versions of one buffer overlap; as many as do
// at once are as many buffers as that run needs.

// extraBuffers fills Extra.
func extraBuffers(w *components.World, t *Table, r *Report) {
	versions := make([][]version, len(t.Buffers))
	tops := w.Module.TopBlocks()
	block := 0
	eachVersion(w.Module, t, func(buffer uint32, writer components.InstrID, readers []uint32) {
		if t.Buffers[buffer] == None {
			return
		}
		for block+1 < len(tops) && w.Module.Blocks.First.At(tops[block+1]) <= uint32(writer) {
			block++
		}
		birth, _ := w.Events.Span(w.Module, writer, components.RunB)
		var death uint64
		first := birth
		for _, p := range readers {
			s, e := w.Events.Span(w.Module, components.InstrID(p), components.RunB)
			death = max(death, e)
			first = min(first, s)
		}
		list := versions[buffer]
		if n := len(list); n == 0 || list[n-1].block != block {
			// The version before the first writer that waits: there when its
			// readers start.
			list = append(list, version{birth: first, block: block})
		}
		list[len(list)-1].death = death
		versions[buffer] = append(list, version{birth: birth, death: birth + 1, block: block})
	})
	for k, list := range versions {
		r.Buffers[k].Extra = max(atOnce(list)-1, 0)
	}
}

type version struct {
	birth, death uint64
	block        int
}

// atOnce returns how many versions live at once at most; blocks run one after
// the other.
func atOnce(list []version) int {
	most := 0
	for lo := 0; lo < len(list); {
		hi := lo
		for hi < len(list) && list[hi].block == list[lo].block {
			hi++
		}
		type change struct {
			at uint64
			by int
		}
		var changes []change
		for _, v := range list[lo:hi] {
			if v.death > v.birth {
				changes = append(changes, change{v.birth, 1}, change{v.death, -1})
			}
		}
		slices.SortFunc(changes, func(a, b change) int {
			if a.at != b.at {
				if a.at < b.at {
					return -1
				}
				return 1
			}
			return a.by - b.by // one ends as another begins: the memory is free
		})
		now := 0
		for _, c := range changes {
			now += c.by
			most = max(most, now)
		}
		lo = hi
	}
	return most
}

// eachVersion calls f with every writer that waits for readers of a buffer,
// in program order; readers are the instructions it waits for. The slice is
// reused.
func eachVersion(m *components.Module, t *Table, f func(buffer uint32, writer components.InstrID, readers []uint32)) {
	off, words := m.Edges.Preds.Offsets(), m.Edges.Preds.Words()
	i := 0
	var readers []uint32
	var order []int // the edges of one instruction, buffer by buffer
	for lo := 0; lo < len(t.Edges); {
		for off[i+1] <= t.Edges[lo] {
			i++
		}
		hi := lo
		for hi < len(t.Edges) && t.Edges[hi] < off[i+1] {
			hi++
		}
		order = order[:0]
		for k := lo; k < hi; k++ {
			order = append(order, k)
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(t.Of[a]) - int(t.Of[b]) })
		for k := 0; k < len(order); {
			buffer := t.Of[order[k]]
			readers = readers[:0]
			for ; k < len(order) && t.Of[order[k]] == buffer; k++ {
				readers = append(readers, words[t.Edges[order[k]]]&ecs.TargetMask)
			}
			f(buffer, components.InstrID(i), readers)
		}
		lo = hi
	}
}
