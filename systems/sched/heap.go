package sched

// heap is a binary heap of units; less orders them totally.
type heap struct {
	items []int32
	less  func(a, b int32) bool
}

func (h *heap) len() int { return len(h.items) }

func (h *heap) push(x int32) {
	h.items = append(h.items, x)
	h.up(len(h.items) - 1)
}

func (h *heap) top() int32 { return h.items[0] }

func (h *heap) pop() int32 {
	x := h.items[0]
	h.delete(0)
	return x
}

// delete takes the item at index i of items out.
func (h *heap) delete(i int) {
	n := len(h.items) - 1
	h.items[i] = h.items[n]
	h.items = h.items[:n]
	if i < n {
		h.down(i)
		h.up(i)
	}
}

func (h *heap) up(i int) {
	for i > 0 {
		p := (i - 1) / 2
		if !h.less(h.items[i], h.items[p]) {
			return
		}
		h.items[i], h.items[p] = h.items[p], h.items[i]
		i = p
	}
}

func (h *heap) down(i int) {
	for n := len(h.items); ; {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && h.less(h.items[c+1], h.items[c]) {
			c++
		}
		if !h.less(h.items[c], h.items[i]) {
			return
		}
		h.items[i], h.items[c] = h.items[c], h.items[i]
		i = c
	}
}
