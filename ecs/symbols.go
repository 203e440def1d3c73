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
	table []uint32       // open addressing, symbol or 0 for empty; built at the first Intern
	seed  maphash.Seed
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

// Columns lists what has to be saved.
func (s *Symbols) Columns() []AnyColumn { return []AnyColumn{&s.arena, &s.ends} }

// Check tells whether the columns, read from a file, form a table.
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
	if (s.ends.Len()+1)*4 > len(s.table)*3 {
		s.rehash()
	}
	mask := uint64(len(s.table) - 1)
	for h := maphash.Bytes(s.seed, b) & mask; ; h = (h + 1) & mask {
		sym := s.table[h]
		if sym == 0 {
			sym = uint32(s.add(b))
			s.table[h] = sym
			return Symbol(sym)
		}
		if string(s.Bytes(Symbol(sym))) == string(b) {
			return Symbol(sym)
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
	mask := uint64(len(s.table) - 1)
	for h := maphash.Bytes(s.seed, b) & mask; ; h = (h + 1) & mask {
		sym := s.table[h]
		if sym == 0 {
			return 0, false
		}
		if string(s.Bytes(Symbol(sym))) == string(b) {
			return Symbol(sym), true
		}
	}
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
	s.table = make([]uint32, size)
	mask := uint64(size - 1)
	for sym := 1; sym < s.ends.Len(); sym++ {
		h := maphash.Bytes(s.seed, s.Bytes(Symbol(sym))) & mask
		for s.table[h] != 0 {
			h = (h + 1) & mask
		}
		s.table[h] = uint32(sym)
	}
}
