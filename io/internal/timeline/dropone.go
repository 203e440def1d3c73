package timeline

import "perfsim/components"

// DropOne forgets one dependency of a kind that closes a cycle: of those along
// it the one whose producer stands furthest behind its consumer. A dependency of
// order that another one repeats does not count; one of data goes with all that
// join its two rows. It returns the two rows; ok
// reports whether there was one.
func (b *Builder) DropOne(c *CycleError, kind components.EdgeKind) (consumer, producer int, ok bool) {
	next := make(map[uint32]uint32, len(c.Rows))
	for i, r := range c.Rows {
		next[uint32(r)] = uint32(c.Rows[(i+1)%len(c.Rows)])
	}
	d := &b.Deps
	best := -1
	ahead := func(x int) int64 { return int64(d.producer[x]) - int64(d.consumer[x]) }
	hard := map[[2]uint32]bool{} // pairs that another kind joins too
	for x, k := range d.kind {
		if p, ok := next[d.consumer[x]]; ok && p == d.producer[x] && k != kind && kind == components.Ordered {
			hard[[2]uint32{d.consumer[x], p}] = true
		}
	}
	for x, k := range d.kind {
		if p, ok := next[d.consumer[x]]; ok && k == kind && p == d.producer[x] && !hard[[2]uint32{d.consumer[x], p}] && (best < 0 || ahead(x) > ahead(best)) {
			best = x
		}
	}
	if best < 0 {
		return 0, 0, false
	}
	from, to := d.consumer[best], d.producer[best]
	n := 0
	for x := range d.kind {
		if d.consumer[x] == from && d.producer[x] == to && (d.kind[x] == kind || kind != components.Ordered) {
			continue
		}
		d.consumer[n], d.producer[n], d.kind[n] = d.consumer[x], d.producer[x], d.kind[x]
		n++
	}
	d.consumer, d.producer, d.kind = d.consumer[:n], d.producer[:n], d.kind[:n]
	return int(from), int(to), true
}
