package antidep

import (
	"cmp"
	"slices"

	"perfsim/components"
)

// Room works out how many copies of its buffers a module has room for on chip.
// Every buffer holds its bytes from the first row of program order that touches
// it to the last, as an allocator sees it; what several hold at the same
// addresses counts once. A buffer that is made outside a loop and used in it
// lives to the loop's end. That an allocator packs without gaps, and that every
// partition is held, are ours.
type Room struct {
	buffers []Buffer
	at      []int // by buffer: row of mems, -1 where it is not on chip
	lo, hi  []int // steps of that memory during which the buffer lives
	bytes   []uint64
	most    []int // copies that the program can have in use
	mems    []memory
}

// memory is one on-chip memory of one core.
type memory struct {
	kind components.Memory
	core uint16
	rows []components.InstrID // where a step begins
	used []uint64             // bytes per partition in use during each step
}

// Need is the content that one memory has to hold.
type Need struct {
	Memory string             `json:"memory"` // the memory: SBUF or PSUM
	Core   uint16             `json:"core"`
	Bytes  uint64             `json:"bytes_per_partition"`        // at the fullest point of the program
	Has    uint64             `json:"memory_bytes_per_partition"` // bytes that the memory has in each partition
	At     components.InstrID `json:"row"`                        // of the fullest point
}

// memoryName is the usual name of an on-chip memory.
func memoryName(m components.Memory) string {
	if m == components.MemSBUF {
		return "SBUF"
	}
	return m.String()
}

// life is where a buffer is in rows and addresses.
type life struct {
	first, last components.InstrID
	lo, hi      uint64
}

// NewRoom measures the buffers of a table and everything else on chip.
func NewRoom(m *components.Module, t *Table) *Room {
	lives, keys := livesOf(m)
	r := &Room{buffers: t.Buffers, at: make([]int, len(t.Buffers)), lo: make([]int, len(t.Buffers)), hi: make([]int, len(t.Buffers)),
		bytes: make([]uint64, len(t.Buffers)), most: versionsOf(m, t)}
	type place struct {
		kind components.Memory
		core uint16
	}
	byPlace := map[place][]life{}
	var places []place
	for _, k := range keys {
		p := place{k.Memory, k.Core}
		if _, ok := byPlace[p]; !ok {
			places = append(places, p)
		}
		byPlace[p] = append(byPlace[p], *lives[k])
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.core, b.core)) })
	row := map[place]int{}
	for k, p := range places {
		row[p] = k
		r.mems = append(r.mems, inUse(p.kind, p.core, byPlace[p]))
	}
	for b, buf := range t.Buffers {
		r.at[b] = -1
		l := lives[buf]
		if l == nil {
			continue
		}
		k := row[place{buf.Memory, buf.Core}]
		mem := &r.mems[k]
		r.at[b], r.bytes[b] = k, buf.Bytes(m)
		r.lo[b], _ = slices.BinarySearch(mem.rows, l.first)
		r.hi[b], _ = slices.BinarySearch(mem.rows, l.last+1)
	}
	return r
}

// livesOf returns where every on-chip buffer lives; keys are in program order.
func livesOf(m *components.Module) (map[Buffer]*life, []Buffer) {
	lives := map[Buffer]*life{}
	var keys []Buffer
	for i := range m.Instr.Len() {
		lo, hi := m.Operands.Range(components.InstrID(i))
		for o := lo; o < hi; o++ {
			if mem := m.Operands.Memory.At(o); mem != components.MemSBUF && mem != components.MemPSUM {
				continue
			}
			p := m.Operands.At(o)
			b := bufferOf(m, components.InstrID(i), p)
			from, to := p.Span()
			l := lives[b]
			if l == nil {
				l = &life{first: components.InstrID(i), lo: from, hi: to}
				lives[b] = l
				keys = append(keys, b)
			}
			l.last, l.lo, l.hi = components.InstrID(i), min(l.lo, from), max(l.hi, to)
		}
	}
	// What comes from outside a loop is there until the loop has ended.
	var loops []int
	for b := range m.Blocks.Len() {
		if m.Blocks.Parent.At(b) > 0 {
			loops = append(loops, b)
		}
	}
	for _, k := range keys {
		l := lives[k]
		for _, b := range loops {
			first, end := m.Blocks.First.At(b), m.Blocks.End.At(b)
			if uint32(l.first) < first && first <= uint32(l.last) && uint32(l.last) < end {
				l.last = components.InstrID(end - 1)
			}
		}
	}
	return lives, keys
}

// versionsOf returns how many copies of every buffer can be in use: one for
// every version in a block. A loop's body counts once, as it is placed.
func versionsOf(m *components.Module, t *Table) []int {
	most := make([]int, len(t.Buffers))
	for k := range most {
		most[k] = 1
	}
	tops := m.TopBlocks()
	now, in := make([]int, len(t.Buffers)), make([]int, len(t.Buffers))
	block := 0
	eachVersion(m, t, func(buffer uint32, writer components.InstrID, _ []uint32) {
		for block+1 < len(tops) && m.Blocks.First.At(tops[block+1]) <= uint32(writer) {
			block++
		}
		if in[buffer] != block {
			in[buffer], now[buffer] = block, 0
		}
		now[buffer]++
		most[buffer] = max(most[buffer], now[buffer]+1)
	})
	return most
}

// inUse sweeps over the rows of the program: the bytes that any buffer holds.
func inUse(kind components.Memory, core uint16, lives []life) memory {
	out := memory{kind: kind, core: core}
	var cuts []uint64
	for _, l := range lives {
		out.rows = append(out.rows, l.first, l.last+1)
		cuts = append(cuts, l.lo, l.hi)
	}
	slices.Sort(out.rows)
	out.rows = slices.Compact(out.rows)
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	order := func(by func(l life) components.InstrID) []int {
		list := make([]int, len(lives))
		for k := range list {
			list[k] = k
		}
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(by(lives[a]), by(lives[b])) })
		return list
	}
	starts, ends := order(func(l life) components.InstrID { return l.first }), order(func(l life) components.InstrID { return l.last })
	c := cover{cuts: cuts, count: make([]int32, 4*len(cuts)), length: make([]uint64, 4*len(cuts))}
	out.used = make([]uint64, len(out.rows))
	for k, row := range out.rows {
		for len(ends) > 0 && lives[ends[0]].last < row {
			c.add(lives[ends[0]], -1)
			ends = ends[1:]
		}
		for len(starts) > 0 && lives[starts[0]].first <= row {
			c.add(lives[starts[0]], 1)
			starts = starts[1:]
		}
		out.used[k] = c.length[1]
	}
	return out
}

// cover is a tree over the pieces between cuts that keeps how many bytes are
// covered.
type cover struct {
	cuts   []uint64
	count  []int32
	length []uint64
}

func (c *cover) add(l life, by int32) {
	a, _ := slices.BinarySearch(c.cuts, l.lo)
	b, _ := slices.BinarySearch(c.cuts, l.hi)
	if a < b {
		c.walk(1, 0, len(c.cuts)-1, a, b, by)
	}
}

func (c *cover) walk(node, lo, hi, a, b int, by int32) {
	if b <= lo || hi <= a {
		return
	}
	if a <= lo && hi <= b {
		c.count[node] += by
	} else {
		mid := (lo + hi) / 2
		c.walk(2*node, lo, mid, a, b, by)
		c.walk(2*node+1, mid, hi, a, b, by)
	}
	switch {
	case c.count[node] > 0:
		c.length[node] = c.cuts[hi] - c.cuts[lo]
	case hi-lo > 1:
		c.length[node] = c.length[2*node] + c.length[2*node+1]
	default:
		c.length[node] = 0
	}
}

// Copies returns n copies of every buffer, or as many as the program can have
// in use.
func (r *Room) Copies(n int) []int {
	out := make([]int, len(r.buffers))
	for b := range out {
		out[b] = min(n, r.most[b])
	}
	return out
}

// Need returns the bytes that every on-chip memory has to hold with so many
// copies of every buffer.
func (r *Room) Need(copies []int, size func(components.Memory) uint64) []Need {
	more := make([][]uint64, len(r.mems)) // by step, differences
	for k := range more {
		more[k] = make([]uint64, len(r.mems[k].rows)+1)
	}
	for b, n := range copies {
		if k := r.at[b]; k >= 0 && n > 1 {
			v := uint64(n-1) * r.bytes[b]
			more[k][r.lo[b]] += v
			more[k][r.hi[b]] -= v // wraps, as the sum does back
		}
	}
	var out []Need
	for k := range r.mems {
		m := &r.mems[k]
		need := Need{Memory: memoryName(m.kind), Core: m.core, Has: size(m.kind)}
		var sum uint64
		for s := range m.rows {
			sum += more[k][s]
			if v := m.used[s] + sum; v > need.Bytes {
				need.Bytes, need.At = v, m.rows[s]
			}
		}
		out = append(out, need)
	}
	return out
}

// Fit gives copies to the buffers as long as they fit: a second one to each in
// the given order, then a third, up to n. Buffers that are not on chip get n.
func (r *Room) Fit(n int, order []uint32, size func(components.Memory) uint64) []int {
	trees := make([]peaks, len(r.mems))
	for k := range r.mems {
		trees[k] = newPeaks(r.mems[k].used)
	}
	out := make([]int, len(r.buffers))
	for b := range out {
		out[b] = 1
		if r.at[b] < 0 {
			out[b] = min(n, r.most[b])
		}
	}
	for copies := 2; copies <= n; copies++ {
		given := false
		for _, b := range order {
			k := r.at[b]
			if k < 0 || out[b] != copies-1 || copies > r.most[b] {
				continue
			}
			t, has := &trees[k], size(r.mems[k].kind)
			if top := t.most(1, 0, t.n, r.lo[b], r.hi[b]); top+r.bytes[b] > has {
				continue
			}
			t.add(1, 0, t.n, r.lo[b], r.hi[b], r.bytes[b])
			out[b], given = copies, true
		}
		if !given {
			break
		}
	}
	return out
}

// peaks is a tree over steps that adds to ranges and gives their maximum.
type peaks struct {
	n         int
	plus, top []uint64 // top holds without plus of the nodes above
}

func newPeaks(used []uint64) peaks {
	t := peaks{n: len(used), plus: make([]uint64, 4*len(used)), top: make([]uint64, 4*len(used))}
	var fill func(node, lo, hi int)
	fill = func(node, lo, hi int) {
		if hi-lo == 1 {
			t.top[node] = used[lo]
			return
		}
		mid := (lo + hi) / 2
		fill(2*node, lo, mid)
		fill(2*node+1, mid, hi)
		t.top[node] = max(t.top[2*node], t.top[2*node+1])
	}
	if t.n > 0 {
		fill(1, 0, t.n)
	}
	return t
}

func (t *peaks) add(node, lo, hi, a, b int, v uint64) {
	switch mid := (lo + hi) / 2; {
	case b <= lo || hi <= a:
	case a <= lo && hi <= b:
		t.plus[node] += v
		t.top[node] += v
	default:
		t.add(2*node, lo, mid, a, b, v)
		t.add(2*node+1, mid, hi, a, b, v)
		t.top[node] = max(t.top[2*node], t.top[2*node+1]) + t.plus[node]
	}
}

func (t *peaks) most(node, lo, hi, a, b int) uint64 {
	mid := (lo + hi) / 2
	switch {
	case b <= lo || hi <= a:
		return 0
	case a <= lo && hi <= b:
		return t.top[node]
	}
	return max(t.most(2*node, lo, mid, a, b), t.most(2*node+1, mid, hi, a, b)) + t.plus[node]
}
