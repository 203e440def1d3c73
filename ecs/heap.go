package ecs

// Heap is a binary heap: the least item of Less is on top. Where Less orders
// items totally, the order in which they leave does not depend on the order in
// which they came.
type Heap[T any] struct {
	Items []T // the top is first
	Less  func(a, b T) bool
}

// Len returns the number of items.
func (h *Heap[T]) Len() int { return len(h.Items) }

// Push adds an item.
func (h *Heap[T]) Push(x T) {
	h.Items = append(h.Items, x)
	h.up(len(h.Items) - 1)
}

// Top returns the least item of a heap that is not empty.
func (h *Heap[T]) Top() T { return h.Items[0] }

// Pop takes the least item out.
func (h *Heap[T]) Pop() T {
	x := h.Items[0]
	h.Delete(0)
	return x
}

// Replace puts x in the place of the least item.
func (h *Heap[T]) Replace(x T) {
	h.Items[0] = x
	h.down(0)
}

// Delete takes the item at index i of Items out.
func (h *Heap[T]) Delete(i int) {
	n := len(h.Items) - 1
	h.Items[i] = h.Items[n]
	h.Items = h.Items[:n]
	if i < n {
		h.down(i)
		h.up(i)
	}
}

func (h *Heap[T]) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h.Less(h.Items[i], h.Items[p]) {
			return
		}
		h.Items[i], h.Items[p] = h.Items[p], h.Items[i]
		i = p
	}
}

func (h *Heap[T]) down(i int) {
	for n := len(h.Items); ; {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && h.Less(h.Items[c+1], h.Items[c]) {
			c++
		}
		if !h.Less(h.Items[c], h.Items[i]) {
			return
		}
		h.Items[i], h.Items[c] = h.Items[c], h.Items[i]
		i = c
	}
}
