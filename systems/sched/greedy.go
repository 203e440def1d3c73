package sched

import (
	"perfsim/components"
	"perfsim/ecs"
)

// depthLimit caps the height, as documented.
const depthLimit = 999

// drainOrder are the engines in the order in which the greedy scheduler takes
// one instruction of each.
var drainOrder = [...]components.Engine{components.Pool, components.Activation, components.DVE, components.PE, components.DMA}

// greedy is the list scheduler of policies 1 and 2: each step takes the best
// unit by height, then the loads that are ready, then a matmul with its group,
// then one instruction of each engine. Policy 1 takes the loads first.
func greedy(g *graph, loadsFirst bool) []uint32 {
	g.heights(func(int32) uint64 { return 1 }, depthLimit)
	better := func(a, b int32) bool {
		x, y := &g.units[a], &g.units[b]
		if x.height != y.height {
			return x.height > y.height
		}
		return a < b
	}
	in := &g.m.Instr
	// Every unit waits in three heaps; those that were taken are passed over.
	all := ecs.Heap[int32]{Less: better}
	loads := ecs.Heap[int32]{Less: better}
	var engines [components.NumEngines]ecs.Heap[int32]
	for e := range engines {
		engines[e].Less = better
	}
	taken := make([]bool, len(g.units))
	engineOf := func(u int32) components.Engine {
		first := int(g.of(u)[0])
		if in.Opcode.At(first).IsDMA() {
			return components.DMA
		}
		return in.Engine.At(first)
	}
	enter := func(u int32) {
		all.Push(u)
		if g.units[u].load {
			loads.Push(u)
		}
		engines[engineOf(u)].Push(u)
	}
	for u := range g.units {
		if g.units[u].left == 0 {
			enter(int32(u))
		}
	}
	var out []uint32
	emit := func(u int32) {
		taken[u] = true
		out = append(out, g.of(u)...)
		for _, v := range g.after(u) {
			if g.units[v].left--; g.units[v].left == 0 {
				enter(v)
			}
		}
	}
	// take emits the best of h, if there is one.
	take := func(h *ecs.Heap[int32]) bool {
		for h.Len() > 0 {
			if u := h.Pop(); !taken[u] {
				emit(u)
				return true
			}
		}
		return false
	}
	for len(out) < len(g.members) {
		if loadsFirst {
			for take(&loads) {
			}
		}
		take(&all)
		for take(&loads) {
		}
		take(&engines[components.PE])
		for _, e := range drainOrder {
			take(&engines[e])
		}
	}
	return out
}
