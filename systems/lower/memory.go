package lower

import (
	"slices"

	"perfsim/components"
	"perfsim/components/opgraph"
	"perfsim/ecs"
)

// queue returns the row plus one of a DMA queue.
func (l *lowerer) queue(name string, engine components.Engine) uint16 {
	if q, ok := l.queues[name]; ok {
		return q
	}
	t := &l.e.m.Queues
	t.Name.Append(l.e.sym(name))
	t.Engine.Append(engine)
	t.Depth.Append(0)
	q := uint16(t.Len())
	l.queues[name] = q
	return q
}

// spillQueues are documented queue names; which transfer takes which is ours:
// parameters and results have queues of their own, the rest take turns.
func (l *lowerer) turn() uint16 {
	l.turnQueue++
	switch l.turnQueue % 4 {
	case 0:
		return l.queue("qSyncSpillReload0", components.SP)
	case 1:
		return l.queue("qScalarSpillReload0", components.Activation)
	case 2:
		return l.queue("qVectorSpillReload0", components.DVE)
	}
	return l.queue("qGpSimdSpillReload0", components.Pool)
}

// mostBytes bounds what a value of a graph takes in the tables of device
// memory: graphs may have shapes of more bytes than any machine, and tables
// have a largest address.
const mostBytes = 1 << 48

// The ordinals of TensorKind (docs/birjson.md) that lowering uses.
const (
	kindInput    = 0
	kindOutput   = 3
	kindInternal = 7
)

// location adds a row to the location table, for modules with operands.
func (f *fn) location(r *region, name string, parts int64) {
	if !f.l.opt.Operands {
		return
	}
	t := &f.l.e.m.Locations
	s := f.l.e.sym(name)
	t.Name.Append(s)
	t.Tensor.Append(s)
	t.Memory.Append(r.mem)
	t.Addr.Append(uint64(r.lo))
	t.Bytes.Append(uint64(r.bytes))
	t.Parts.Append(uint16(min(parts, 1<<16-1)))
	t.Base.Append(0)
	t.Bank.Append(-1)
	t.Alias.Append(0)
	kind := uint8(kindInternal)
	switch r.mem {
	case components.MemInput:
		kind = kindInput
	case components.MemOutput:
		kind = kindOutput
	}
	t.Kind.Append(kind)
	r.loc = uint32(t.Len())
}

// hbmRegion makes device memory for a value, in n tiles.
func (f *fn) hbmRegion(v *value, mem components.Memory, n int64, name string) *region {
	total := min(max(v.total, 1), mostBytes)
	n = min(max(n, total/hbmTile, 1), hbmTiles)
	r := &region{mem: mem, lo: f.dramNext, bytes: total, tileBytes: ceilDiv(total, n), refs: 1}
	r.tiles = make([]tileState, ceilDiv(total, r.tileBytes))
	f.dramNext = opgraph.AddSize(f.dramNext, total)
	if mem != components.MemInput || f.comp == f.l.g.Entry { // a function's parameters are its caller's values
		f.dramLive = opgraph.AddSize(f.dramLive, total)
		f.dramPeak = max(f.dramPeak, f.dramLive)
	}
	f.location(r, name, 1)
	return r
}

// hbmOf returns the device memory that holds a value, nil where none does.
func (f *fn) hbmOf(v int32) *region {
	x := &f.values[v]
	if x.hbm == nil && x.base >= 0 {
		return f.hbmOf(x.base)
	}
	return x.hbm
}

func (f *fn) valueName(v int32) string {
	x := &f.values[v]
	if x.def >= 0 {
		return f.l.g.OpText(f.flats[x.def].op) + "." + itoa(int(v))
	}
	return "v." + itoa(int(v))
}

// nextUse returns the next flat operator after the current one that reads v,
// or one past all where there is none.
func (f *fn) nextUse(v int32) int32 {
	u := f.values[v].users
	i, _ := slices.BinarySearch(u, f.cur+1)
	if i < len(u) {
		return u[i]
	}
	return int32(len(f.flats))
}

func (f *fn) usedLater(v int32) bool { return f.nextUse(v) < int32(len(f.flats)) }

// alloc returns room on chip, making it where it must.
func (f *fn) alloc(n int, tileBytes int64) *region {
	for {
		if r := f.sb.alloc(n, tileBytes); r != nil {
			f.location(r, "sb."+itoa(f.kern)+"."+itoa(f.l.e.m.Locations.Len()), f.l.arr.parts)
			return r
		}
		if !f.evict() {
			return nil
		}
	}
}

// evict takes the value with the farthest next use off the chip; false where
// there is none that the running kernel does not touch.
func (f *fn) evict() bool {
	best, far := int32(-1), int32(-1)
	f.resident = slices.DeleteFunc(f.resident, func(v int32) bool { return f.values[v].chip == nil })
	for _, v := range f.resident {
		if f.values[v].lastOn == f.kern {
			continue
		}
		if n := f.nextUse(v); n > far {
			best, far = v, n
		}
	}
	if best < 0 {
		return false
	}
	f.leave(best)
	return true
}

// leave takes a value off the chip; it is stored where it is read again and
// nobody else has it.
func (f *fn) leave(v int32) {
	x := &f.values[v]
	if f.hbmOf(v) == nil && (x.out || f.nextUse(v) < int32(len(f.flats)) || slices.Contains(x.users, f.cur)) {
		before := f.stores
		f.saveValue(v, components.FlagSpill)
		f.spills = opgraph.AddSize(f.spills, f.stores-before)
	}
	f.sb.release(x.chip)
	x.chip = nil
}

// saveValue stores a whole value from chip to device memory.
func (f *fn) saveValue(v int32, flags components.Flags) {
	f.l.e.drain()
	x := &f.values[v]
	mem := components.MemDRAM
	if x.out && f.comp == f.l.g.Entry {
		mem = components.MemOutput
	}
	n := max(min(ceilDiv(x.total, copyBytes), int64(len(x.chip.tiles))), 1)
	x.hbm = f.hbmRegion(x, mem, n, f.valueName(v))
	for i := range n {
		lo, hi := mulDiv(i, x.total, n), mulDiv(i+1, x.total, n)
		f.store(v, x.chip, i*int64(len(x.chip.tiles))/n, (i+1)*int64(len(x.chip.tiles))/n, part{r: x.hbm, lo: lo, hi: hi}, hi-lo, x.parts, ceilDiv(x.free, n), flags)
	}
}

// ensureHBM makes sure that a value is in device memory and returns it.
func (f *fn) ensureHBM(v int32) *region {
	if r := f.hbmOf(v); r != nil {
		return r
	}
	x := &f.values[v]
	if x.chip == nil { // a constant, or a value nobody computed
		x.hbm = f.hbmRegion(x, components.MemInput, 1, f.valueName(v))
		x.hbm.quiet = f.fixed(v)
		return x.hbm
	}
	f.saveValue(v, 0)
	return x.hbm
}

// load emits the transfer of a part of a value, which has bytes of it, to tile
// t of a region.
func (f *fn) load(v int32, from part, to *region, t int, bytes, parts, elems int64) {
	x := &f.values[v]
	elems *= x.words()
	e := &f.l.e
	f.inMem(components.RoleIn, from, bytes, x.dtype)
	f.writes(to, t, 0, elems, parts, x.dtype)
	q := uint16(0)
	if from.r.mem == components.MemInput {
		q = f.l.queue("qSyncPIOParam0", components.SP)
	} else {
		q = f.l.turn()
	}
	e.add(ins{op: components.OpcodeDMACopy, eng: components.DMA, lane: components.LaneDMA, flags: components.FlagSrcDRAM, elems: elems, parts: parts,
		dtype: x.dtype, bytes: bytes, rowLen: elems * int64(x.dtype.Size()), queue: q})
	f.loads = opgraph.AddSize(f.loads, opgraph.MulSize(bytes, e.mult))
	if x.param >= 0 {
		f.loaded[v] = opgraph.AddSize(f.loaded[v], opgraph.MulSize(bytes, e.mult))
	}
}

// store emits the transfer of tiles t0 to t1 of a region to a part of a
// value's device memory.
func (f *fn) store(v int32, from *region, t0, t1 int64, to part, bytes, parts, elems int64, flags components.Flags) {
	x := &f.values[v]
	elems *= x.words()
	e := &f.l.e
	f.reads(from, int(t0), int(max(t1, t0+1)), 0, elems, parts, x.dtype)
	f.inMem(components.RoleOut, to, bytes, x.dtype)
	q := uint16(0)
	if to.r.mem == components.MemOutput {
		q = f.l.queue("qSyncIO0", components.SP)
	} else {
		q = f.l.turn()
	}
	e.add(ins{op: components.OpcodeDMACopy, eng: components.DMA, lane: components.LaneDMA, flags: components.FlagDstDRAM | flags, elems: elems, parts: parts,
		dtype: x.dtype, bytes: bytes, rowLen: elems * int64(x.dtype.Size()), queue: q})
	f.stores = opgraph.AddSize(f.stores, opgraph.MulSize(bytes, e.mult))
}

// keep tries to give a value room on chip: it must fit in its share of SBUF
// and have a use after the current operator.
func (f *fn) keep(v int32, n int, tile int64) *region {
	x := &f.values[v]
	most := f.l.arr.budget / shareOfSBUF
	if f.readNext(v) { // the kernel's values on chip and this one leave a third
		most = max(most, min(f.l.arr.budget*9/16, f.l.arr.budget*2/3-f.inUse()))
	}
	if int64(n)*tile > most || !f.usedLater(v) {
		return nil
	}
	r := f.alloc(n, tile)
	if r == nil {
		return nil
	}
	x.chip, x.lastOn = r, f.kern
	f.resident = append(f.resident, v)
	return r
}

// inUse returns the bytes per partition of the values that the running kernel
// has on chip.
func (f *fn) inUse() (bytes int64) {
	for _, v := range f.resident {
		if x := &f.values[v]; x.chip != nil && x.lastOn == f.kern {
			bytes += x.chip.bytes
		}
	}
	return bytes
}

// readNext reports whether the next operator that does anything is the only one
// that reads a value.
func (f *fn) readNext(v int32) bool {
	next := f.cur + 1
	for int(next) < len(f.flats) && (f.flats[next].gone || f.flats[next].kind.Is(opgraph.TraitView)) {
		next++
	}
	u := f.values[v].users
	return len(u) == 1 && u[0] == next && !f.values[v].out
}

// fixed reports whether nobody updates a value in place.
func (f *fn) fixed(v int32) bool {
	for _, u := range f.values[v].users {
		switch f.flats[u].kind {
		case opgraph.OpDynamicUpdateSlice, opgraph.OpScatter, opgraph.OpWhile:
			return false
		}
	}
	return true
}

// inPlace reports whether what takes the place of v may overwrite it: nobody
// reads it or a slice of it later.
func (f *fn) inPlace(v int32) bool {
	if f.usedLater(v) || f.values[v].base >= 0 {
		return false
	}
	for _, s := range f.values[v].slices {
		if f.readLater(s) {
			return false
		}
	}
	return true
}

// readLater reports whether a value or a slice of it is read later.
func (f *fn) readLater(v int32) bool {
	return f.usedLater(v) || f.values[v].out || slices.ContainsFunc(f.values[v].slices, f.readLater)
}

// needsHBM reports whether a value must be in device memory anyway.
func (f *fn) needsHBM(v int32) bool {
	x := &f.values[v]
	if x.out {
		return true
	}
	for _, u := range x.users {
		if !f.readsChip(u) {
			return true
		}
	}
	return false
}

// readsChip reports whether a flat operator reads its operands from SBUF where
// they are there.
func (f *fn) readsChip(u int32) bool {
	k := f.flats[u].kind
	return mappable(k) || k == opgraph.OpDot || k == opgraph.OpRaggedDot || k == opgraph.OpScaledDot || k == opgraph.OpConvolution && !f.isDepthwise(u)
}

// forget takes values off the chip that nobody reads any more.
func (f *fn) forget(args []ref) {
	for _, a := range args {
		f.forgetValue(a.v)
	}
}

func (f *fn) forgetValue(v int32) {
	x := &f.values[v]
	if x.chip != nil && !f.usedLater(v) {
		if x.out && f.hbmOf(v) == nil {
			f.saveValue(v, 0)
		}
		f.sb.release(x.chip)
		x.chip = nil
	}
	if !x.dead && !x.out && x.param < 0 && !f.usedLater(v) {
		x.dead = true
		f.letGo(f.hbmOf(v))
	}
	if x.turned >= 0 && !f.usedLater(v) {
		t := x.turned
		x.turned = -1
		f.dropTurned(t)
	}
}

func (f *fn) dropTurned(t int32) {
	y := &f.values[t]
	if y.chip != nil {
		f.sb.release(y.chip)
		y.chip = nil
	}
	f.letGo(y.hbm)
}

// letGo says that one value less holds a piece of device memory.
func (f *fn) letGo(r *region) {
	if r == nil || r.mem == components.MemInput {
		return
	}
	if r.refs--; r.refs == 0 {
		f.dramLive -= min(r.bytes, f.dramLive)
	}
}

// shared says that one value more holds a piece of device memory.
func shared(r *region) *region {
	if r != nil {
		r.refs++
	}
	return r
}

// name sets the operator, source line and scope of the next instructions. A
// fusion without a scope or line of its own has those of its root.
func (f *fn) name(op opgraph.OpID) {
	e, g := &f.l.e, f.l.g
	e.hlo = e.sym(g.OpText(op))
	e.src, e.scope = 0, 0
	inner := op
	if c := g.Called(op, opgraph.RoleCalls); c != opgraph.NoComp && g.Comps.Root[c] != opgraph.NoOp {
		inner = g.Comps.Root[c]
	}
	for _, x := range [...]opgraph.OpID{op, inner} {
		if file, line := g.Source(x); e.src == 0 && file != "" {
			e.src = f.l.source(file, line)
		}
		if path := g.Ops.OpName[x]; e.scope == 0 && path != 0 {
			e.scope = f.l.scope(path)
		}
	}
}

// scope returns the path of an op_name without the attributes that JAX writes
// in brackets behind a part.
func (l *lowerer) scope(path opgraph.StrID) ecs.Symbol {
	s, ok := l.scopes[path]
	if !ok {
		s = l.e.sym(components.CleanScope(l.g.Text(path)))
		l.scopes[path] = s
	}
	return s
}

func (l *lowerer) source(file string, line int) ecs.Symbol {
	return l.e.sym(file + ":" + itoa(line))
}
