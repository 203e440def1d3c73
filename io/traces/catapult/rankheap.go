package catapult

import (
	"container/heap"
	"slices"
)

// rankHeap yields the item of lowest rank.
type rankHeap struct {
	rank  []int
	items []int
}

func (h *rankHeap) Len() int           { return len(h.items) }
func (h *rankHeap) Less(i, j int) bool { return h.rank[h.items[i]] < h.rank[h.items[j]] }
func (h *rankHeap) Swap(i, j int)      { h.items[i], h.items[j] = h.items[j], h.items[i] }

// Push and Pop serve container/heap; use push and pop.
func (h *rankHeap) Push(x any) { h.items = append(h.items, x.(int)) }

// Pop removes the last item.
func (h *rankHeap) Pop() any {
	x := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return x
}

func (h *rankHeap) push(i int) { heap.Push(h, i) }
func (h *rankHeap) pop() int   { return heap.Pop(h).(int) }

// sorted returns a stably sorted copy.
func sorted(order []int, less func(a, b int) bool) []int {
	out := slices.Clone(order)
	slices.SortStableFunc(out, func(a, b int) int {
		switch {
		case less(a, b):
			return -1
		case less(b, a):
			return 1
		}
		return 0
	})
	return out
}
