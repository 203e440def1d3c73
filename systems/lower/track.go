package lower

import (
	"cmp"
	"math/bits"
	"slices"

	"perfsim/components"
)

// What works in program order is a channel: an engine, a collective stream, a
// DMA queue with one kind of descriptors. Of several accesses on one channel
// the last stands for all. The DMA lane is no channel: its queues run in parallel with
// one another, and transfers whose descriptors software makes start later than
// those of hardware (systems/calibrated).
const (
	chPool = iota
	chACT
	chPE
	chDVE
	chSP
	chCall
	chCC  // the four streams
	chDMA = chCC + 4
	// numChannels bounds them: chDMA and two for each of the queues.
	numChannels = 32
)

// channelOf returns the channel that an instruction works on.
func channelOf(in *ins) uint8 {
	switch in.lane {
	case components.LanePool:
		return chPool
	case components.LaneActivation:
		return chACT
	case components.LanePE:
		return chPE
	case components.LaneDVE:
		return chDVE
	case components.LaneSP:
		return chSP
	case components.LaneDMA:
		q := chDMA + 2*uint8(in.queue)
		if in.flags&components.FlagSWDGE != 0 {
			q++
		}
		return min(q, numChannels-1)
	}
	if in.lane >= components.LaneCC0 && in.lane < components.LaneCC0+4 {
		return chCC + uint8(in.lane-components.LaneCC0)
	}
	return chCall
}

// access is one that still counts: bytes lo to hi of a memory (per partition
// on chip) that row wrote or read last.
type access struct {
	lo, hi int64
	row    uint32 // plus one
	next   int32  // plus one
	ch     uint8
	write  bool
	old    bool // of an earlier owner of the room: nobody reads what it wrote
	joined bool // stands for several
}

func (a *access) meets(lo, hi int64) bool { return a.lo < hi && a.hi > lo }

// tileState is a piece of a region with the accesses that count. Writers do not
// overlap one another.
type tileState struct {
	w, r int32 // lists, plus one
	hint int32 // the reader that was noted last, plus one
	top  int64 // no reader of the present owner reads at or behind it
	wtop int64 // no writer of the present owner writes at or behind it
	nw   int32 // writers, at most
}

// loopAccess is the last access of a channel to a region in a loop that is not
// written out.
type loopAccess struct {
	row   uint32 // plus one
	ch    uint8
	write bool
}

// mostAccesses bounds the list of readers or writers of one tile, and
// mostLeft those of a free piece of SBUF; beyond them what one channel did is
// joined. That gives edges too many, never too few, and is counted.
const (
	mostAccesses = 1024
	mostLeft     = 1 << 16
	manyLeft     = 2 << 10 // of what is left, so many are first cut to what still counts
	leftPiece    = 2 << 10 // bytes of SBUF in which what is left is joined
)

// accesses holds all accesses of a function.
type accesses struct {
	nodes  []access
	free   int32
	coarse int64    // waits for accesses that were joined for want of room
	sorted []access // scratch of outline
	open   []access // scratch of skyline
}

func (p *accesses) reset() { p.nodes, p.free = p.nodes[:0], 0 }

func (p *accesses) get(a access) int32 {
	if i := p.free; i != 0 {
		p.free = p.nodes[i-1].next
		p.nodes[i-1] = a
		return i
	}
	if len(p.nodes) == cap(p.nodes) {
		p.nodes = slices.Grow(p.nodes, max(len(p.nodes), 1<<10)) // doubled: append adds a quarter
	}
	p.nodes = append(p.nodes, a)
	return int32(len(p.nodes))
}

func (p *accesses) put(i int32) {
	p.nodes[i-1].next = p.free
	p.free = i
}

func (p *accesses) at(i int32) *access { return &p.nodes[i-1] }

// overwrite takes bytes lo to hi out of a list.
func (p *accesses) overwrite(list *int32, lo, hi int64) {
	prev := int32(0)
	for i := *list; i != 0; {
		x := p.at(i)
		next := x.next
		switch {
		case !x.meets(lo, hi):
			prev = i
		case x.lo >= lo && x.hi <= hi:
			if prev == 0 {
				*list = next
			} else {
				p.at(prev).next = next
			}
			p.put(i)
		case x.lo < lo && x.hi > hi:
			right := *x
			right.lo = hi
			x.hi = lo
			j := p.get(right) // may move x
			p.at(i).next = j
			prev = j
		case x.lo < lo:
			x.hi = lo
			prev = i
		default:
			x.lo = hi
			prev = i
		}
		i = next
	}
}

// noteWrite says that row wrote bytes lo to hi, which lie in the tile. sparse
// says that the tile may hold accesses of earlier owners.
func (p *accesses) noteWrite(t *tileState, a access, sparse bool) {
	if i := t.w; i != 0 && t.r == 0 {
		if x := p.at(i); x.lo == a.lo && x.hi == a.hi { // nothing else meets it
			x.row, x.ch, x.old, x.joined = a.row, a.ch, false, false
			return
		}
	}
	if t.w != 0 && (a.lo < t.wtop || sparse) {
		p.overwrite(&t.w, a.lo, a.hi)
	}
	if t.r != 0 && (a.lo < t.top || sparse) {
		p.overwrite(&t.r, a.lo, a.hi)
		if t.r == 0 {
			t.top = 0
		}
	}
	t.hint = 0
	t.wtop = max(t.wtop, a.hi)
	if t.nw++; t.nw > mostAccesses {
		if t.nw = p.count(t.w); t.nw > mostAccesses/2 {
			p.join(&t.w)
			t.nw = p.count(t.w)
		}
	}
	a.write, a.next = true, t.w
	t.w = p.get(a)
}

func (p *accesses) count(list int32) (n int32) {
	for i := list; i != 0; i = p.at(i).next {
		n++
	}
	return n
}

// noteRead says that row read bytes lo to hi, which lie in the tile. Reads of
// a tile mostly come in the same order time and again: the one behind the last
// is looked at first.
func (p *accesses) noteRead(t *tileState, a access) {
	if t.hint != 0 {
		i := p.at(t.hint).next
		if i == 0 {
			i = t.r
		}
		if x := p.at(i); x.lo == a.lo && x.hi == a.hi && x.ch == a.ch && !x.old {
			x.row = a.row
			t.hint = i
			return
		}
	}
	if a.lo < t.top && p.readAgain(t, a) {
		return
	}
	t.top = max(t.top, a.hi)
	if t.hint == 0 {
		a.next = t.r
		t.r = p.get(a)
		t.hint = t.r
		return
	}
	a.next = p.at(t.hint).next
	i := p.get(a)
	p.at(t.hint).next = i
	t.hint = i
}

// readAgain looks for reads of the same channel that a holds, and takes their
// place; false where there is none.
func (p *accesses) readAgain(t *tileState, a access) bool {
	prev, n := int32(0), 0
	found := int32(0)
	for i := t.r; i != 0; {
		x := p.at(i)
		next := x.next
		switch n++; {
		case x.ch != a.ch || x.old || x.lo < a.lo || x.hi > a.hi:
			prev = i
		case found == 0:
			x.lo, x.hi, x.row, x.joined = a.lo, a.hi, a.row, false
			found, prev = i, i
		default: // a part of what is read now
			if prev == 0 {
				t.r = next
			} else {
				p.at(prev).next = next
			}
			p.put(i)
			t.hint = 0
		}
		i = next
	}
	if found != 0 {
		t.hint = found
		t.top = max(t.top, a.hi)
		return true
	}
	if n >= mostAccesses {
		p.join(&t.r)
		t.hint = 0
	}
	return false
}

// join makes of the accesses of each channel in a list one.
func (p *accesses) join(list *int32) {
	var first [2][2][numChannels]int32
	prev := int32(0)
	for i := *list; i != 0; {
		x := p.at(i)
		next := x.next
		f := &first[b2i(x.write)][b2i(x.old)][x.ch]
		if *f == 0 {
			*f, prev = i, i
		} else {
			y := p.at(*f)
			y.lo, y.hi, y.row, y.joined = min(y.lo, x.lo), max(y.hi, x.hi), max(y.row, x.row), true
			p.at(prev).next = next
			p.put(i)
		}
		i = next
	}
}

// outline leaves of a list, for every byte and channel, the last write and the
// last read: what is behind them in program order waits for no less.
func (p *accesses) outline(list *int32) (n int) {
	all := p.sorted[:0]
	for i := *list; i != 0; {
		x := p.at(i)
		next := x.next
		all = append(all, *x)
		p.put(i)
		i = next
	}
	p.sorted = all
	slices.SortFunc(all, func(a, b access) int {
		return cmp.Or(int(a.ch)-int(b.ch), int(b2i(a.write)-b2i(b.write)), cmp.Compare(a.lo, b.lo), cmp.Compare(b.row, a.row))
	})
	*list = 0
	for len(all) > 0 {
		k := 1
		for k < len(all) && all[k].ch == all[0].ch && all[k].write == all[0].write {
			k++
		}
		n += p.skyline(list, all[:k])
		all = all[k:]
	}
	return n
}

// skyline puts into a list what still counts of accesses of one kind and
// channel that are in the order of their first bytes. It goes over the bytes
// with a heap of the accesses that have begun, the last in program order on top.
func (p *accesses) skyline(list *int32, from []access) (n int) {
	open := p.open[:0]
	pos, last := int64(0), int32(0)
	for len(from) > 0 || len(open) > 0 {
		if len(open) == 0 {
			pos = from[0].lo
		}
		for len(from) > 0 && (from[0].lo <= pos || len(open) > 0 && from[0].lo < open[0].hi && from[0].row <= open[0].row) {
			open = pushRow(open, from[0])
			from = from[1:]
		}
		for len(open) > 0 && open[0].hi <= pos {
			open = popRow(open)
		}
		if len(open) == 0 {
			continue
		}
		x := open[0]
		if len(from) > 0 {
			x.hi = min(x.hi, from[0].lo)
		}
		x.lo, pos = pos, x.hi
		if last != 0 {
			if y := p.at(last); y.hi == x.lo && y.row == x.row {
				y.hi = x.hi
				y.joined = y.joined || x.joined
				continue
			}
		}
		x.next = *list
		last = p.get(x)
		*list = last
		n++
	}
	p.open = open
	return n
}

func pushRow(h []access, x access) []access {
	h = append(h, x)
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up].row >= h[i].row {
			break
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
	return h
}

func popRow(h []access) []access {
	n := len(h) - 1
	h[0] = h[n]
	h = h[:n]
	for i := 0; ; {
		k := 2*i + 1
		if k+1 < n && h[k+1].row > h[k].row {
			k++
		}
		if k >= n || h[k].row <= h[i].row {
			return h
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
}

// joinNear makes one of the accesses of each channel that begin in the same
// leftPiece bytes.
func (p *accesses) joinNear(list *int32) {
	type key struct {
		at    int64
		ch    uint8
		write bool
	}
	first := map[key]int32{}
	prev := int32(0)
	for i := *list; i != 0; {
		x := p.at(i)
		next := x.next
		k := key{x.lo / leftPiece, x.ch, x.write}
		if f := first[k]; f == 0 {
			first[k], prev = i, i
		} else {
			y := p.at(f)
			if y.lo != x.lo || y.hi != x.hi {
				y.joined = true
			}
			y.lo, y.hi, y.row = min(y.lo, x.lo), max(y.hi, x.hi), max(y.row, x.row)
			p.at(prev).next = next
			p.put(i)
		}
		i = next
	}
}

// inherit puts an access of an earlier owner, which lies in the tile, into it.
func (p *accesses) inherit(t *tileState, a access) {
	list := &t.r
	if a.write {
		list = &t.w
	}
	const look = 8 // at so many for one that says as much
	n := 0
	for i := *list; i != 0 && n < look; i = p.at(i).next {
		x := p.at(i)
		if n++; x.ch != a.ch {
			continue
		}
		if x.lo <= a.lo && x.hi >= a.hi && x.row >= a.row {
			return
		}
		if x.lo >= a.lo && x.hi <= a.hi && x.row <= a.row {
			x.lo, x.hi, x.row = a.lo, a.hi, a.row
			return
		}
	}
	a.old, a.next = true, *list
	*list = p.get(a)
}

// candidates are the rows that the instruction being made must come after, by
// whether the placement honours an edge to them, class and channel: the last
// one, plus one. What is honoured is kept apart, as an edge that is not must
// not take the place of one that is.
type candidates struct {
	row  [2 * components.NumClasses][numChannels]uint32
	mask [2 * components.NumClasses]uint32
	any  uint32 // of mask, those that are not zero
}

// want says that the instruction being made comes after row-1, of channel ch.
func (e *emitter) want(row uint32, ch, class uint8) {
	h := class
	if row <= e.safe && !e.honours(row-1) {
		h += components.NumClasses
	}
	c := &e.cand
	if x := &c.row[h][ch%numChannels]; *x < row {
		*x = row
		c.mask[h] |= 1 << ch
		c.any |= 1 << h
	}
}

// honours reports whether the placement honours an edge to row p: it is in the
// innermost open block and in no closed loop of it.
func (e *emitter) honours(p uint32) bool {
	b := &e.open[len(e.open)-1]
	return p >= e.safe || p >= b.first && !b.inLoop(p)
}

// settled keeps safe: edges to rows from there on are honoured.
func (e *emitter) settled() {
	b := &e.open[len(e.open)-1]
	e.safe = b.first
	if n := len(b.closed); n > 0 {
		e.safe = b.closed[n-1][1]
	}
}

// settle makes edges of the candidates.
func (e *emitter) settle() {
	c := &e.cand
	for ; c.any != 0; c.any &= c.any - 1 {
		h := bits.TrailingZeros32(c.any)
		for m := c.mask[h]; m != 0; m &= m - 1 {
			x := &c.row[h][bits.TrailingZeros32(m)]
			e.after(*x-1, uint8(h)%components.NumClasses)
			*x = 0
		}
		c.mask[h] = 0
	}
}

// depend finds what the instruction being made must come after because of
// one of its accesses.
func (e *emitter) depend(u *use, ch uint8, inLoop bool) {
	r := u.r
	if u.more || r.quiet && !u.write {
		return
	}
	lo, hi := u.lo, u.hi
	if !u.write && u.each && u.t1 == u.t0+1 { // one tile that one instruction wrote
		if i := r.tiles[u.t0].w; i != 0 {
			if y := e.acc.at(i); y.lo <= lo && y.hi >= hi && !y.old {
				e.want(y.row, y.ch, components.ClassFlow)
				return
			}
		}
	}
	oldest, gap, end := ^uint32(0), false, int64(0)
	for t := u.t0; t < u.t1; t++ {
		x := &r.tiles[t]
		a, b := r.clip(t, lo, hi)
		covered := int64(0)
		i := x.w
		if u.write && !u.each && a >= x.wtop {
			i = 0
		}
		for i != 0 {
			y := e.acc.at(i)
			i = y.next
			if !y.meets(a, b) {
				continue
			}
			if u.write {
				e.want(y.row, y.ch, components.ClassOutput)
				e.acc.coarse += b2i(y.joined)
			} else if !y.old {
				e.want(y.row, y.ch, components.ClassFlow)
				e.acc.coarse += b2i(y.joined)
				covered += min(y.hi, b) - max(y.lo, a)
				end = max(end, min(y.hi, b))
			}
			oldest = min(oldest, y.row)
		}
		gap = gap || covered < b-a
		if covered < b-a && end < b {
			end = 0
		}
		if u.write && (u.each || a < x.top) {
			for i := x.r; i != 0; {
				y := e.acc.at(i)
				i = y.next
				if y.meets(a, b) {
					e.want(y.row, y.ch, components.ClassAnti)
					e.acc.coarse += b2i(y.joined)
				}
			}
		}
		if u.each {
			lo, hi = lo+r.tileBytes, hi+r.tileBytes
		}
	}
	if len(r.loops) > 0 {
		e.dependLoops(u, gap, end == 0, oldest)
	}
	if inLoop && r.mem.InDRAM() {
		e.dependAhead(u, ch)
	}
}

// dependLoops: what iterations that are not written out have done. They wrote
// the bytes that no row has written; before the region was handed on, any.
// The placement honours no edge to such an iteration; what stands in for it is
// the one behind it in memory that is written out again.
func (e *emitter) dependLoops(u *use, gap, open bool, oldest uint32) {
	r := u.r
	for _, l := range r.loops {
		class := components.ClassFlow
		switch {
		case u.write && l.row > r.epoch:
			continue
		case u.write && l.write:
			class = components.ClassOutput
		case u.write:
			class = components.ClassAnti
		case !l.write || !gap && (oldest > r.epoch || l.row <= r.epoch):
			continue
		}
		if !e.honours(l.row - 1) {
			e.want(l.row, l.ch, class)
		}
	}
	if u.write || !gap || !open {
		return
	}
	hi := u.hi
	if u.each {
		hi += int64(u.t1-u.t0-1) * r.tileBytes
	}
	for t := u.t1 - 1; t < len(r.tiles); t++ {
		next := int32(0)
		for i := r.tiles[t].w; i != 0; i = e.acc.at(i).next {
			if x := e.acc.at(i); !x.old && x.lo >= hi && (next == 0 || x.lo < e.acc.at(next).lo) {
				next = i
			}
		}
		if next != 0 {
			if x := e.acc.at(next); e.honours(x.row - 1) {
				e.want(x.row, x.ch, components.ClassFlow)
				return
			}
		}
	}
	if r.lastW != 0 {
		e.want(r.lastW, r.lastCh, components.ClassFlow)
	}
}

// dependAhead: what the iterations of the open loop that are not written out
// will touch in device memory is any part of the region. The first access of a
// channel stands for the others of it.
func (e *emitter) dependAhead(u *use, ch uint8) {
	r := u.r
	if first := e.open[len(e.open)-1].first; r.ahead != first {
		r.ahead, r.aheadBy = first, [2]uint32{}
	}
	if m := &r.aheadBy[b2i(u.write)]; *m&(1<<ch) != 0 {
		return
	} else {
		*m |= 1 << ch
	}
	for t := range r.tiles {
		x := &r.tiles[t]
		for i := x.w; i != 0; {
			y := e.acc.at(i)
			i = y.next
			switch {
			case e.honours(y.row - 1):
			case !u.write:
				e.want(y.row, y.ch, components.ClassFlow)
			case y.row <= r.epoch:
				e.want(y.row, y.ch, components.ClassOutput)
			}
		}
		if !u.write || r.epoch == 0 {
			continue
		}
		for i := x.r; i != 0; {
			y := e.acc.at(i)
			i = y.next
			if y.row <= r.epoch && !e.honours(y.row-1) {
				e.want(y.row, y.ch, components.ClassAnti)
			}
		}
	}
}

// note enters an access of the instruction at row-1.
func (e *emitter) note(u *use, row uint32, ch uint8, inLoop bool) {
	r := u.r
	if r.quiet && !u.write {
		return
	}
	lo, hi := u.lo, u.hi
	for t := u.t0; t < u.t1; t++ {
		a, b := r.clip(t, lo, hi)
		if x := (access{lo: a, hi: b, row: row, ch: ch}); u.write {
			e.acc.noteWrite(&r.tiles[t], x, u.each)
		} else {
			e.acc.noteRead(&r.tiles[t], x)
		}
		if u.each {
			lo, hi = lo+r.tileBytes, hi+r.tileBytes
		}
	}
	if u.write {
		r.lastW, r.lastCh = row, ch
	}
	if !inLoop {
		return
	}
	for i := range r.loops {
		if l := &r.loops[i]; l.ch == ch && l.write == u.write {
			l.row = row
			return
		}
	}
	r.loops = append(r.loops, loopAccess{row, ch, u.write})
}

// region is a piece of SBUF, PSUM or device memory in equal tiles.
type region struct {
	mem       components.Memory
	lo, bytes int64 // per partition on chip, linear in device memory
	tileBytes int64
	tiles     []tileState
	lastW     uint32 // last writer of any tile, plus one
	lastCh    uint8
	// loops are accesses in loops whose iterations are not all written out.
	loops []loopAccess
	// epoch is the row, plus one, before which the region held another value:
	// what comes later overwrites in place.
	epoch   uint32
	ahead   uint32    // first row of the loop of aheadBy
	aheadBy [2]uint32 // channels whose reads and writes in that loop have looked ahead
	quiet   bool      // nobody ever writes it: accesses are not kept
	loc     uint32    // row of the location table plus one
	refs    int       // values that hold this device memory
}

// clip returns what bytes lo to hi have in tile t.
func (r *region) clip(t int, lo, hi int64) (int64, int64) {
	at := r.lo + int64(t)*r.tileBytes
	return max(lo, at), min(hi, at+r.tileBytes)
}

// span returns the tiles that hold part lo to hi of total.
func (r *region) span(lo, hi, total int64) (t0, t1 int) {
	n := int64(len(r.tiles))
	if total <= 0 || n == 1 {
		return 0, len(r.tiles)
	}
	t0 = int(min(mulDiv(lo, n, total), n-1))
	t1 = int(min(mulDiv(hi, n, total)+1, n))
	if t1-1 > t0 && mulDiv(hi, n, total)*total == hi*n { // hi lies on a border
		t1--
	}
	return t0, max(t1, t0+1)
}

// have returns how many bytes of tile t from its start on are written.
func (p *accesses) have(r *region, t int) int64 {
	hi := r.lo + int64(t)*r.tileBytes
	end := hi
	for i := r.tiles[t].w; i != 0; {
		x := p.at(i)
		i = x.next
		if !x.old {
			hi = max(hi, x.hi)
		}
	}
	return hi - end
}

// reaches reports whether the last writer of a tile, which the present owner
// made, wrote up to hi or further.
func (p *accesses) reaches(t *tileState, hi int64) bool {
	if t.w == 0 {
		return false
	}
	x := p.at(t.w)
	return x.hi >= hi && !x.old
}

// use is one access of the instruction being made: bytes lo to hi, of each of
// tiles t0 to t1 where each is set (then lo and hi are those of the first),
// else all in all.
type use struct {
	r      *region
	t0, t1 int
	lo, hi int64
	each   bool
	write  bool
	more   bool
}

// use adds an access, field by field: a copy of one made elsewhere would wait
// for its own stores.
func (e *emitter) use(r *region, t0, t1 int, lo, hi int64, write bool) *use {
	n := len(e.uses)
	if n == cap(e.uses) {
		e.uses = slices.Grow(e.uses, 16)
	}
	e.uses = e.uses[:n+1]
	u := &e.uses[n]
	u.r, u.t0, u.t1, u.lo, u.hi = r, t0, t1, lo, hi
	u.each, u.write, u.more = false, write, false
	return u
}
