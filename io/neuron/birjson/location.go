package birjson

import (
	"fmt"

	"perfsim/components"
	"perfsim/io/internal/jsonscan"
)

// Bounds of addresses and sizes: far above any device, far below overflow.
const (
	maxBytes  = 1 << 50
	maxCount  = 1 << 40
	maxParts  = 1<<16 - 1
	maxBankID = 1<<15 - 1
)

// alloc is one parsed allocation: a logical tensor or a register.
type alloc struct {
	at   jsonscan.Place
	name span
	kind uint8
	locs rng
}

// location is one parsed placement.
type location struct {
	name  span
	mem   components.Memory
	addr  uint64
	bytes uint64
	parts uint16
	base  uint16
	bank  int16
}

// aliasPair says that location loc of the batch overlaps one called name.
type aliasPair struct {
	loc  uint32
	name span
	at   jsonscan.Place
}

// The names of TensorKind in the order of their ordinals (docs/birjson.md).
var tensorKinds = [...]string{"ExternalInput", "ExternalInputParameter", "Input", "ExternalOutput", "ExternalOutputParameter",
	"Output", "Const", "Internal", "Pointer", "InternalInterface"}

const kindInternal = 7

func tensorKind(name []byte) (uint8, bool) {
	for i, n := range tensorKinds {
		if n == string(name) {
			return uint8(i), true
		}
	}
	return kindInternal, false
}

// allocation parses one allocation.
func (w *worker) allocation(it *item, v jsonscan.Value) error {
	obj, err := object(v)
	if err != nil {
		return fmt.Errorf("an allocation is an object, not %s", v.Kind())
	}
	o := &w.b.out
	a := alloc{at: it.at, kind: kindInternal, locs: rng{lo: uint32(len(o.locs))}}
	name := text(obj.Get("name"))
	a.name = o.keep(name)
	fail := func(key string, err error) error {
		return fmt.Errorf("allocation %s: %s: %w", clip(string(name)), key, err)
	}
	if len(name) == 0 {
		return fmt.Errorf("an allocation has no name")
	}
	if k := text(obj.Get("kind")); k != nil {
		kind, ok := tensorKind(k)
		if !ok {
			w.note("unknown-tensor-kind", k)
		}
		a.kind = kind
	}
	places := obj.Get("memorylocations")
	switch skind := text(obj.Get("Skind")); {
	case string(skind) == "register":
		o.locs = append(o.locs, location{name: a.name, mem: components.MemRegister})
		a.name = span{}
	case string(skind) == "memory_location": // a placement on its own
		if err := w.placement(it, v); err != nil {
			return fail("memory_location", err)
		}
		a.name = span{}
	case places.Kind() <= jsonscan.Null:
		// A tensor that is not placed yet is known by its own name.
		o.locs = append(o.locs, location{name: a.name, mem: components.MemUnallocated})
	default:
		list, err := array(places)
		if err != nil {
			return fail("memorylocations", err)
		}
		for _, p := range list.All() {
			if err := w.placement(it, p); err != nil {
				return fail("memorylocations", err)
			}
		}
	}
	a.locs.hi = uint32(len(o.locs))
	o.allocs = append(o.allocs, a)
	return nil
}

// placement parses one memory location.
func (w *worker) placement(it *item, v jsonscan.Value) error {
	obj, err := object(v)
	if err != nil {
		return fmt.Errorf("a memory location is an object, not %s", v.Kind())
	}
	o := &w.b.out
	l := location{mem: components.MemUnallocated}
	name := text(obj.Get("name"))
	if len(name) == 0 {
		return fmt.Errorf("a memory location has no name")
	}
	l.name = o.keep(name)
	fail := func(key string, err error) error { return fmt.Errorf("%s: %s: %w", clip(string(name)), key, err) }
	if t := obj.Get("type"); t.Kind() != jsonscan.Absent {
		switch t.Kind() {
		case jsonscan.String:
			mem, ok := components.ParseMemory(string(text(t)))
			if !ok {
				w.note("unknown-memory-type", text(t))
			}
			l.mem = mem
		default:
			bits, err := number(t, 0, 255)
			if err != nil {
				return fail("type", err)
			}
			if bits == 0 || bits&(bits-1) != 0 {
				return fail("type", fmt.Errorf("%d is not one memory type", bits))
			}
			l.mem = components.Memory(bits)
		}
	}
	ints := func(key string, lo, hi int64) int64 {
		x := obj.Get(key)
		if err != nil || x.Kind() <= jsonscan.Null {
			return 0
		}
		var n int64
		if n, err = number(x, lo, hi); err != nil {
			err = fail(key, err)
		}
		return n
	}
	l.addr = uint64(ints("addr", 0, maxBytes))
	l.bank = int16(ints("bank", -1, maxBankID))
	l.base = uint16(ints("base", 0, maxParts))
	if err != nil {
		return err
	}
	if d := obj.Get("dims"); d.Kind() > jsonscan.Null {
		dims, err := array(d)
		if err != nil {
			return fail("dims", err)
		}
		size := int64(1)
		for i, x := range dims.All() {
			n, err := number(x, 0, maxBytes)
			if err != nil {
				return fail("dims", err)
			}
			if i == 0 && !l.mem.InDRAM() {
				if n > maxParts {
					return fail("dims", fmt.Errorf("%d partitions", n))
				}
				l.parts = uint16(n)
				continue
			}
			if n > 0 && size > maxBytes/n {
				return fail("dims", fmt.Errorf("larger than %d bytes", int64(maxBytes)))
			}
			size *= n
		}
		if dims.Len() > 0 {
			l.bytes = uint64(size)
		}
		if l.mem.InDRAM() {
			l.parts = 1
		}
	}
	if al := obj.Get("alias"); al.Kind() == jsonscan.Array {
		for _, x := range al.All() {
			// [set, location, kind] or the older [location, kind].
			n := x.Len()
			if n < 2 || n > 3 || text(x.At(n-2)) == nil {
				return fail("alias", fmt.Errorf("expected [set, location, kind] or [location, kind]"))
			}
			o.alias = append(o.alias, aliasPair{uint32(len(o.locs)), o.keep(text(x.At(n - 2))), it.at})
		}
	}
	o.locs = append(o.locs, l)
	return nil
}

// locationView is the parsers' view of the locations of a function. It does not
// change once it is made.
type locationView struct {
	first  uint32 // row of the first location in the module's table
	names  nameTable
	sets   nameTable // by name of the tensor: its first location
	mem    []components.Memory
	addr   []uint64
	bytes  []uint64
	base   []uint16
	bank   []int16
	tensor [][]byte
	own    [][]byte // names of the locations
}

// find returns the index of a location by its name, else by its tensor's.
func (v *locationView) find(name, set []byte) (int, bool) {
	if v == nil {
		return 0, false
	}
	if len(name) > 0 {
		if id, ok := v.names.find(name, hashName(name)); ok {
			return int(id), true
		}
	}
	if len(set) > 0 {
		if id, ok := v.sets.find(set, hashName(set)); ok {
			return int(id), true
		}
	}
	return 0, false
}

// start returns where location i begins, in bytes: PSUM addresses count from
// bank 0. An address that lies in the location's bank already is one of them;
// any other is relative to the bank.
func (v *locationView) start(i int) uint64 {
	return startOf(v.mem[i], v.addr[i], v.bank[i])
}

func startOf(mem components.Memory, addr uint64, bank int16) uint64 {
	if mem == components.MemPSUM && bank > 0 && addr/bankBytes != uint64(bank) {
		return addr + uint64(bank)*bankBytes
	}
	return addr
}

// locate sets where the pattern o, offset elements into a location, starts
// (docs/birjson.md).
func locate(o *components.AccessPattern, mem components.Memory, start, bytes uint64, base uint16, offset int64) error {
	size := int64(max(o.DType.Size(), 1))
	o.Memory = mem
	at := int64(start)
	part := int64(base)
	pitch := int64(bytes) / size // elements of one partition
	if (mem == components.MemSBUF || mem == components.MemPSUM) && pitch > 0 {
		p := offset / pitch
		rest := offset % pitch
		if rest < 0 {
			rest += pitch
			p--
		}
		part += p
		at += rest * size
	} else {
		at += offset * size
	}
	if at < 0 || part < 0 || part > maxParts {
		return fmt.Errorf("offset %d leaves the memory", offset)
	}
	o.Address = uint64(at)
	o.Base = uint16(part)
	return nil
}

// offsetOf is the inverse of locate: the offset that gives o's address and
// partition, and whether there is one.
func offsetOf(o *components.AccessPattern, mem components.Memory, start, bytes uint64, base uint16) (int64, bool) {
	size := int64(max(o.DType.Size(), 1))
	rest := int64(o.Address) - int64(start)
	if o.Memory != mem || rest%size != 0 {
		return 0, false
	}
	offset := rest / size
	pitch := int64(bytes) / size
	if (mem == components.MemSBUF || mem == components.MemPSUM) && pitch > 0 {
		offset += (int64(o.Base) - int64(base)) * pitch
	}
	again := *o
	err := locate(&again, mem, start, bytes, base, offset)
	return offset, err == nil && again.Address == o.Address && again.Base == o.Base
}
