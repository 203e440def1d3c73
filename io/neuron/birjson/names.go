package birjson

import (
	"errors"
	"hash/maphash"
	"math"

	"perfsim/ecs"
)

// nameTable finds a number by name. It holds numbers only; the caller keeps the
// names and gives the name of a number.
type nameTable struct {
	slots []uint32 // number plus one, 0 for empty
	used  int
	// nameOf gives a number's name.
	nameOf func(id uint32) []byte
}

// hashSeed makes hashes of one run comparable; results do not depend on it.
var hashSeed = maphash.MakeSeed() // written once, before main

func hashName(b []byte) uint64 { return maphash.Bytes(hashSeed, b) }

func (t *nameTable) reset() {
	clear(t.slots)
	t.used = 0
}

// find returns the number with the given name.
func (t *nameTable) find(name []byte, hash uint64) (uint32, bool) {
	if t.used == 0 {
		return 0, false
	}
	mask := uint64(len(t.slots) - 1)
	for h := hash & mask; ; h = (h + 1) & mask {
		id := t.slots[h]
		if id == 0 {
			return 0, false
		}
		if string(t.nameOf(id-1)) == string(name) {
			return id - 1, true
		}
	}
}

// add enters a number whose name is new.
func (t *nameTable) add(id uint32, hash uint64) {
	if (t.used+1)*4 > len(t.slots)*3 {
		t.grow()
	}
	t.put(id, hash)
	t.used++
}

func (t *nameTable) put(id uint32, hash uint64) {
	mask := uint64(len(t.slots) - 1)
	h := hash & mask
	for t.slots[h] != 0 {
		h = (h + 1) & mask
	}
	t.slots[h] = id + 1
}

func (t *nameTable) grow() {
	old := t.slots
	t.slots = make([]uint32, max(1024, 2*len(old)))
	for _, id := range old {
		if id != 0 {
			t.put(id-1, hashName(t.nameOf(id-1)))
		}
	}
}

// interner gives equal strings one symbol. It leaves the table that Symbols
// itself would build aside, because that one grows with every unique name.
type interner struct {
	syms  *ecs.Symbols
	known map[string]ecs.Symbol
	bytes uint64
	last  [8]ecs.Symbol
}

var errTooManyNames = errors.New("names and texts take more than 4 GiB")

func (in *interner) intern(b []byte) (ecs.Symbol, error) {
	if len(b) == 0 {
		return 0, nil
	}
	last := &in.last[(len(b)^int(b[len(b)-1]))&7]
	if string(in.syms.Bytes(*last)) == string(b) {
		return *last, nil
	}
	if sym, ok := in.known[string(b)]; ok {
		*last = sym
		return sym, nil
	}
	sym, err := in.unique(b)
	if err == nil {
		in.known[string(b)] = sym
	}
	return sym, err
}

// unique adds a name that the caller knows to be new.
func (in *interner) unique(b []byte) (ecs.Symbol, error) {
	if in.bytes += uint64(len(b)); in.bytes > math.MaxUint32-1<<20 {
		return 0, errTooManyNames
	}
	return in.syms.AddUnique(b), nil
}

// implicitRow returns n where name is "I-" and the decimal number n, as rows
// without a name are called.
func implicitRow(name []byte) (uint32, bool) {
	if len(name) < 3 || len(name) > 12 || name[0] != 'I' || name[1] != '-' {
		return 0, false
	}
	if name[2] == '0' && len(name) > 3 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range name[2:] {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if n >= ecs.MaxRows {
		return 0, false
	}
	return uint32(n), true
}
