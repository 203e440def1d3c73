package ecs

import (
	"fmt"
	"hash/maphash"
	"math"
)

// Symbol is the handle of an interned string. Zero is the empty string.
type Symbol uint32

// Symbols interns strings in one byte arena. A handle costs four bytes and
// no pointer, so a hundred million of them are invisible to the garbage
// collector. Interning is not safe for concurrent use; reading is.
type Symbols struct {
	arena Column[uint8]
	ends  Column[uint32] // ends[s] is where symbol s ends in arena; it starts where s-1 ends
	// table is open addressing, built at the first Intern: a slot has the symbol
	// in its low half, 0 for empty, and the high half of the string's hash in the
	// other, so that strings are hardly ever compared in vain.
	table   []uint64
	entered int // strings in table; AddUnique does not enter them
	seed    maphash.Seed
}

// NewSymbols returns a table that holds only the empty string.
func NewSymbols() *Symbols {
	s := &Symbols{
		arena: NewColumn[uint8]("symbols.arena"),
		ends:  NewColumn[uint32]("symbols.ends"),
		seed:  maphash.MakeSeed(),
	}
	s.ends.Append(0)
	return s
}

// Len returns the number of symbols, the empty one included.
func (s *Symbols) Len() int { return s.ends.Len() }

// Size returns the bytes of all strings.
func (s *Symbols) Size() int { return s.arena.Len() }

// Reserve makes room for as many symbols and bytes of strings in all.
func (s *Symbols) Reserve(symbols, bytes int) {
	s.ends.Reserve(symbols)
	s.arena.Reserve(bytes)
}

// Columns lists what has to be saved.
func (s *Symbols) Columns() []AnyColumn { return []AnyColumn{&s.arena, &s.ends} }

// Check reports whether the columns, read from a file, form a table.
func (s *Symbols) Check() error {
	ends := s.ends.Slice()
	if len(ends) == 0 || ends[0] != 0 {
		return fmt.Errorf("symbols: the empty symbol is missing")
	}
	last := uint32(0)
	for i, e := range ends {
		if e < last || int64(e) > int64(s.arena.Len()) {
			return fmt.Errorf("symbols: symbol %d ends at %d, outside %d..%d", i, e, last, s.arena.Len())
		}
		last = e
	}
	s.table = nil
	return nil
}

// Bytes returns the string of sym without copying; it must not be changed.
// An unknown handle gives the empty string, so that symbols from a file need no
// check before they are used.
func (s *Symbols) Bytes(sym Symbol) []byte {
	ends := s.ends.Slice()
	if sym == 0 || int(sym) >= len(ends) {
		return nil
	}
	lo, hi := ends[sym-1], ends[sym]
	if lo > hi || int(hi) > s.arena.Len() {
		return nil // columns of a damaged file
	}
	return s.arena.Slice()[lo:hi:hi]
}

// String returns the string of sym.
func (s *Symbols) String(sym Symbol) string { return string(s.Bytes(sym)) }

// Intern returns the symbol of b, adding it where it is new. It panics only
// when the arena would pass 4 GiB, which readers prevent by their limits.
func (s *Symbols) Intern(b []byte) Symbol {
	if len(b) == 0 {
		return 0
	}
	if (s.entered+1)*4 > len(s.table)*3 {
		s.rehash()
	}
	hash := maphash.Bytes(s.seed, b)
	at, sym := s.find(b, hash)
	if sym == 0 {
		sym = s.add(b)
		s.table[at] = hash&highHalf | uint64(sym)
		s.entered++
	}
	return sym
}

const highHalf = 0xffffffff00000000

// find returns the symbol of b, which has the hash, or zero and the slot where
// it belongs.
func (s *Symbols) find(b []byte, hash uint64) (at uint64, sym Symbol) {
	mask := uint64(len(s.table) - 1)
	for at = hash & mask; ; at = (at + 1) & mask {
		slot := s.table[at]
		sym = Symbol(slot)
		if slot == 0 || (slot^hash)&highHalf == 0 && string(s.Bytes(sym)) == string(b) {
			return at, sym
		}
	}
}

// InternString is Intern for a string.
func (s *Symbols) InternString(str string) Symbol { return s.Intern([]byte(str)) }

// Find returns the symbol of b, or zero and false where it was never
// interned.
func (s *Symbols) Find(b []byte) (Symbol, bool) {
	if len(b) == 0 {
		return 0, true
	}
	if s.table == nil {
		s.rehash()
	}
	_, sym := s.find(b, maphash.Bytes(s.seed, b))
	return sym, sym != 0
}

// AddUnique appends b as a new symbol without looking whether it is there
// already and without entering it in the hash table, which would cost more
// than the name: readers use it for names that the format guarantees to be
// unique. Find may not find such a name, and an equal name interned later may
// get a symbol of its own.
func (s *Symbols) AddUnique(b []byte) Symbol {
	if len(b) == 0 {
		return 0
	}
	return s.add(b)
}

func (s *Symbols) add(b []byte) Symbol {
	if s.arena.Len()+len(b) > math.MaxUint32 {
		panic("ecs: more than 4 GiB of names")
	}
	s.arena.AppendSlice(b)
	s.ends.Append(uint32(s.arena.Len()))
	return Symbol(s.ends.Len() - 1)
}

func (s *Symbols) rehash() {
	size := 1024
	for size < (s.ends.Len()+1)*2 {
		size *= 2
	}
	s.table = make([]uint64, size)
	s.entered = s.ends.Len() - 1
	mask := uint64(size - 1)
	for sym := 1; sym < s.ends.Len(); sym++ {
		hash := maphash.Bytes(s.seed, s.Bytes(Symbol(sym)))
		at := hash & mask
		for s.table[at] != 0 {
			at = (at + 1) & mask
		}
		s.table[at] = hash&highHalf | uint64(sym)
	}
}
