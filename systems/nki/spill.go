package nki

import (
	"container/heap"
	"slices"

	"perfsim/components"
	"perfsim/components/nkirecord"
)

// aheadShare is the share of SBUF that leaves beyond the need at hand, so that
// what comes back need not wait for what leaves. Less of it makes transfers wait
// for one another, more of it moves more: at a tenth 755 MB of bmm_softmax are
// saved and 756 MB loaded again, where the profile of trn1 counts 754 and 757.
const aheadShare = 0.1

// spilling is the traffic of tiles that are kept outside of SBUF, in bytes of
// all partitions.
type spilling struct {
	saved, reloaded int64
}

// spill puts saves and reloads between rows, so that at no row more than limit
// bytes of a partition are in use on a core. It walks the rows in program order.
// Where a tile finds no room, others leave:
//
//   - the one whose next use is farthest away goes first;
//   - it is saved unless it was and has not changed since;
//   - one that holds nothing but what transfers loaded from tensors that the kernel
//     never writes, or a constant, is loaded or filled again and never saved.
//
// A tile that comes back is a tile of its own, with its own life and address.
func (x *expander) spill(cores []coreRows, limit int64) spilling {
	s := newSpiller(x, cores, limit)
	rows := x.rows
	refs := x.refs
	x.rows, x.refs = make([]row, 0, len(rows)+len(rows)/8), make([]ref, 0, len(refs)+len(refs)/8)
	for c := range cores {
		lo, hi := cores[c].lo, cores[c].hi
		cores[c].lo = len(x.rows)
		s.begin(cores[c].core)
		sync := cores[c].sync
		for i := lo; i < hi; i++ {
			for len(sync) > 0 && sync[0].row <= i {
				sync[0].row = len(x.rows)
				sync = sync[1:]
			}
			end := uint32(len(refs))
			if i+1 < len(rows) {
				end = rows[i+1].refs
			}
			s.row(int32(i), rows[i], refs[rows[i].refs:end])
		}
		for k := range sync {
			sync[k].row = len(x.rows)
		}
		cores[c].hi = len(x.rows)
	}
	for i := range x.tiles {
		x.tiles[i].first, x.tiles[i].last = -1, -1
	}
	for i := range x.rows {
		end := uint32(len(x.refs))
		if i+1 < len(x.rows) {
			end = x.rows[i+1].refs
		}
		for _, a := range x.refs[x.rows[i].refs:end] {
			x.live1(a.tile, int32(i))
		}
	}
	for _, c := range cores {
		for _, p := range c.sync {
			if p.form.Op == "SendRecv" {
				x.live1(p.send.tile, int32(p.row))
				x.live1(p.recv.tile, int32(p.row))
			}
		}
	}
	return s.moved
}

// roomForHoles is the shares of SBUF that are filled with tiles, tried in turn:
// what is left over makes up for holes between tiles of different sizes.
var roomForHoles = []float64{1, 0.92, 0.84, 0.75, 0.6}

// allocateSpilling spills until every tile finds an address. Where only loads do
// not fit, so that nothing would be saved, rows stay as they are: compilers load
// later instead (a blocked matmul of the vendor's tutorial, whose loads take 320
// of 192 KiB, is measured at the PE's speed), and the kernel is marked.
func (x *expander) allocateSpilling(cores []coreRows) usage {
	rows, refs, tiles := x.rows, x.refs, slices.Clone(x.tiles)
	before := cloneCores(cores)
	limit := x.opt.SBUF
	var reserved int64
	for i := range tiles {
		if t := &tiles[i]; t.fixed && t.mem == components.MemSBUF {
			reserved = max(reserved, t.addr+t.bytes)
		}
	}
	var u usage
	for _, share := range roomForHoles {
		x.rows, x.refs, x.tiles = rows, refs, slices.Clone(tiles)
		copy(cores, cloneCores(before))
		moved := x.spill(cores, int64(share*float64(limit-reserved)))
		u = x.allocate()
		u.moved = moved
		if moved.saved == 0 {
			x.rows, x.refs, x.tiles = rows, refs, slices.Clone(tiles)
			copy(cores, before)
			return x.allocate()
		}
		if u.spilled == 0 {
			break
		}
	}
	return u
}

func cloneCores(c []coreRows) []coreRows {
	out := slices.Clone(c)
	for i := range out {
		out[i].sync = slices.Clone(out[i].sync)
	}
	return out
}

// live1 extends the life of a tile to row i.
func (x *expander) live1(id uint32, i int32) {
	t := &x.tiles[id]
	if t.first < 0 {
		t.first = i
	}
	t.last = max(t.last, i)
}

// resident is the state of a tile for spilling.
type resident struct {
	uses   []int32 // rows, from the next one on
	now    uint32  // the tile that stands for it
	in     bool    // in SBUF
	used   int32   // last row that used it
	pinned bool    // never leaves
	clean  bool    // all writes so far were loads of what never changes
	saved  bool    // device memory has its contents
	slot   uint32  // in device memory, plus one
	loads  []loaded
}

// loaded is one load into a tile, to be made again.
type loaded struct {
	row  row
	refs []ref
}

type spiller struct {
	x       *expander
	limit   int64
	free    int64
	ahead   int64      // what leaves beyond the need
	tiles   []resident // by tile before spilling
	written []bool     // tiles in device memory that the kernel writes
	queue   victims
	moved   spilling
}

func newSpiller(x *expander, cores []coreRows, limit int64) *spiller {
	s := &spiller{x: x, limit: limit, ahead: int64(float64(limit) * aheadShare), tiles: make([]resident, len(x.tiles)), written: make([]bool, len(x.tiles))}
	for i := range s.tiles {
		s.tiles[i] = resident{now: uint32(i), used: -1, clean: true, pinned: x.tiles[i].fixed}
	}
	for _, c := range cores {
		for _, p := range c.sync { // other cores know these by their addresses
			if p.form.Op == "SendRecv" {
				s.tiles[p.send.tile].pinned, s.tiles[p.recv.tile].pinned = true, true
				s.limit -= s.size(p.send.tile) + s.size(p.recv.tile)
			}
		}
	}
	for i := range x.rows {
		end := uint32(len(x.refs))
		if i+1 < len(x.rows) {
			end = x.rows[i+1].refs
		}
		for _, a := range x.refs[x.rows[i].refs:end] {
			if x.tiles[a.tile].mem == components.MemSBUF {
				r := &s.tiles[a.tile]
				if n := len(r.uses); n == 0 || r.uses[n-1] != int32(i) {
					r.uses = append(r.uses, int32(i))
				}
			} else if a.role == components.RoleOut {
				s.written[a.tile] = true
			}
		}
	}
	return s
}

// begin starts a core's program with an empty SBUF.
func (s *spiller) begin(core int) {
	s.free = s.limit
	s.queue = s.queue[:0]
	s.x.core = uint8(core)
}

// size is the number of bytes of a tile in a partition.
func (s *spiller) size(id uint32) int64 {
	return max((s.x.tiles[id].bytes+sbufAlign-1)/sbufAlign, 1) * sbufAlign
}

// row copies row i with what has to come before it.
func (s *spiller) row(i int32, r row, refs []ref) {
	x := s.x
	for k := range refs { // none of these may leave
		if id := refs[k].tile; x.tiles[id].mem == components.MemSBUF {
			s.tiles[id].used = i
		}
	}
	for k := range refs {
		id := refs[k].tile
		if x.tiles[id].mem != components.MemSBUF {
			continue
		}
		t := &s.tiles[id]
		if t.pinned || t.in {
			continue
		}
		whole := !s.reads(id, refs) && s.covers(id, refs)
		s.makeRoom(i, r.form, s.size(id))
		t.in = true
		s.free -= s.size(id)
		if t.saved || len(t.loads) > 0 && t.clean {
			t.now = x.add(x.copyOf(id))
			if !whole {
				s.reload(id, r.form)
			}
		}
	}
	out := make([]ref, len(refs))
	copy(out, refs)
	for k := range out {
		if x.tiles[out[k].tile].mem == components.MemSBUF {
			out[k].tile = s.tiles[out[k].tile].now
		}
	}
	x.append(r, out)
	for k := range refs {
		id := refs[k].tile
		if x.tiles[id].mem != components.MemSBUF {
			continue
		}
		t := &s.tiles[id]
		if refs[k].role == components.RoleOut {
			s.wrote(id, r, refs)
		}
		for len(t.uses) > 0 && t.uses[0] <= i {
			t.uses = t.uses[1:]
		}
		switch {
		case t.pinned || !t.in:
		case len(t.uses) == 0:
			t.in = false
			s.free += s.size(id)
		default:
			heap.Push(&s.queue, victim{key: s.key(t), tile: id})
		}
	}
}

// reads reports whether a row reads a tile.
func (s *spiller) reads(id uint32, refs []ref) bool {
	for k := range refs {
		if refs[k].tile == id && refs[k].role != components.RoleOut {
			return true
		}
	}
	return false
}

// covers reports whether a row writes all of a tile.
func (s *spiller) covers(id uint32, refs []ref) bool {
	t := &s.x.tiles[id]
	for k := range refs {
		p := refs[k].pat
		if refs[k].tile == id && refs[k].role == components.RoleOut && int64(p.Parts)*p.Elems()*int64(p.DType.Size()) >= int64(t.parts)*t.bytes {
			return true
		}
	}
	return false
}

// wrote keeps what a row did to the contents of a tile.
func (s *spiller) wrote(id uint32, r row, refs []ref) {
	t := &s.tiles[id]
	t.saved = false
	constant := r.op == components.OpcodeDMACopy && len(refs) == 2 || r.op == components.OpcodeMemset && len(refs) == 1
	for k := range refs {
		a := &refs[k]
		constant = constant && !a.pat.Dynamic && (a.role == components.RoleOut || s.x.tiles[a.tile].mem.InDRAM() && !s.written[a.tile])
	}
	if !constant {
		t.clean, t.loads = false, nil
		return
	}
	if s.covers(id, refs) {
		t.clean, t.loads = true, nil
	}
	if t.clean {
		t.loads = append(t.loads, loaded{r, refs})
	}
}

// makeRoom lets tiles leave until n bytes are free.
func (s *spiller) makeRoom(i, form int32, n int64) {
	if s.free >= n {
		return
	}
	n = min(n+s.ahead, s.limit)
	var kept []victim
	for s.free < n && len(s.queue) > 0 {
		v := heap.Pop(&s.queue).(victim)
		t := &s.tiles[v.tile]
		if !t.in || len(t.uses) == 0 || v.key != s.key(t) {
			continue // it was used since
		}
		if t.used == i {
			kept = append(kept, v)
			continue
		}
		t.in = false
		s.free += s.size(v.tile)
		if !t.clean && !t.saved {
			s.save(v.tile, form)
		}
	}
	for _, v := range kept {
		heap.Push(&s.queue, v)
	}
}

// key orders tiles by what is lost when they leave; the largest leaves first.
func (s *spiller) key(t *resident) int64 { return int64(t.uses[0]) }

// save stores a tile in device memory.
func (s *spiller) save(id uint32, form int32) {
	x, t := s.x, &s.tiles[id]
	o := x.tiles[id]
	if t.slot == 0 {
		t.slot = x.add(tile{tensor: -1, mem: components.MemDRAM, bytes: o.bytes * int64(o.parts), parts: 1, dtype: o.dtype}) + 1
	}
	t.saved = true
	s.moved.saved += o.bytes * int64(o.parts)
	on, off := x.wholeOf(id)
	x.append(x.transferRow(form, true), []ref{{tile: t.slot - 1, role: components.RoleOut, pat: off}, {tile: t.now, role: components.RoleIn, pat: on}})
}

// reload brings a tile back.
func (s *spiller) reload(id uint32, form int32) {
	x, t := s.x, &s.tiles[id]
	o := x.tiles[id]
	if !t.saved {
		for _, l := range t.loads {
			if l.row.op != components.OpcodeMemset {
				s.moved.reloaded += o.bytes * int64(o.parts) / int64(len(t.loads))
				l.row.flags |= components.FlagSpill
			}
			refs := make([]ref, len(l.refs))
			copy(refs, l.refs)
			for k := range refs {
				if refs[k].tile == id {
					refs[k].tile = t.now
				}
			}
			l.row.form = form
			x.append(l.row, refs)
		}
		return
	}
	s.moved.reloaded += o.bytes * int64(o.parts)
	on, off := x.wholeOf(id)
	x.append(x.transferRow(form, false), []ref{{tile: t.now, role: components.RoleOut, pat: on}, {tile: t.slot - 1, role: components.RoleIn, pat: off}})
}

// wholeOf returns the patterns of a whole tile, in SBUF and in device memory.
func (x *expander) wholeOf(id uint32) (on, off *nkirecord.Pattern) {
	t := &x.tiles[id]
	n := int(t.bytes) / max(t.dtype.Size(), 1)
	return x.flat(t.dtype, int(t.parts), n), &nkirecord.Pattern{DType: t.dtype, Parts: int(t.parts), Step: 1, Dims: [][2]int64{{int64(n), int64(t.parts)}, {1, int64(n)}}}
}

// transferRow is a save or reload, on the queues of the kernel's own transfers.
func (x *expander) transferRow(form int32, store bool) row {
	r := x.load(form)
	switch {
	case x.opt.DynamicDMA && store:
		r.engine, r.queue, r.flags = components.Activation, queueActivation, components.FlagHWDGE
	case x.opt.DynamicDMA:
		r.engine, r.queue, r.flags = components.SP, queueDynamic, components.FlagHWDGE
	case store:
		r.engine, r.queue = components.Pool, queueStore
	}
	r.flags |= components.FlagSpill
	return r
}

// copyOf is a tile with the shape of another and a life of its own.
func (x *expander) copyOf(id uint32) tile {
	t := x.tiles[id]
	t.first, t.last, t.addr = -1, -1, 0
	return t
}

// append adds a finished row.
func (x *expander) append(r row, refs []ref) {
	r.refs, r.core = uint32(len(x.refs)), x.core
	x.refs = append(x.refs, refs...)
	x.rows = append(x.rows, r)
}

// victim is a tile that may leave; the entry is stale once its key changed.
type victim struct {
	key  int64
	tile uint32
}

// victims is a heap, the largest key first, of equal ones the lower tile.
type victims []victim

func (v victims) Len() int { return len(v) }
func (v victims) Less(i, j int) bool {
	return v[i].key > v[j].key || v[i].key == v[j].key && v[i].tile < v[j].tile
}
func (v victims) Swap(i, j int) { v[i], v[j] = v[j], v[i] }
func (v *victims) Push(e any)   { *v = append(*v, e.(victim)) }
func (v *victims) Pop() any {
	o := *v
	e := o[len(o)-1]
	*v = o[:len(o)-1]
	return e
}
