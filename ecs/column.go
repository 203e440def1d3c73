package ecs

import (
	"fmt"
	"unsafe"
)

// Fixed is the set of element types a column may hold: fixed size, no
// pointers, so that a column can be saved as its bytes and mapped back.
type Fixed interface {
	~uint8 | ~uint16 | ~uint32 | ~uint64 | ~int8 | ~int16 | ~int32 | ~int64 | ~float64 |
		~[2]uint32 | ~[2]uint64 | ~[8]uint32
}

// Column is one named component of a table: row i of the table has its
// value at index i. An optional column has length zero while it is absent.
type Column[T Fixed] struct {
	name string
	data []T
}

// NewColumn returns an empty column with the name under which it is listed,
// measured and saved.
func NewColumn[T Fixed](name string) Column[T] { return Column[T]{name: name} }

// Name returns the name given to NewColumn.
func (c *Column[T]) Name() string { return c.name }

// Len returns the number of rows.
func (c *Column[T]) Len() int { return len(c.data) }

// Slice returns the rows themselves. Writing through it writes the column;
// it is valid until the column grows. Hot loops use it: a plain slice costs
// two thirds of At.
func (c *Column[T]) Slice() []T { return c.data }

// View returns rows lo to hi (hi excluded) with capacity cut, so that an
// append to the view cannot reach the rows behind it.
func (c *Column[T]) View(lo, hi int) []T { return c.data[lo:hi:hi] }

// At returns row i.
func (c *Column[T]) At(i int) T { return c.data[i] }

// Get returns row i, or the zero value where the column is absent.
func (c *Column[T]) Get(i int) T {
	if i >= len(c.data) {
		var zero T
		return zero
	}
	return c.data[i]
}

// Set writes row i.
func (c *Column[T]) Set(i int, v T) { c.data[i] = v }

// Append adds one row.
func (c *Column[T]) Append(v T) { c.data = append(c.data, v) }

// AppendSlice adds rows.
func (c *Column[T]) AppendSlice(v []T) { c.data = append(c.data, v...) }

// Resize sets the number of rows to n and returns them; rows that were not
// there before hold the zero value. Capacity is kept and reused, because the
// first touch of fresh memory costs more than the work done in it.
func (c *Column[T]) Resize(n int) []T {
	if n <= cap(c.data) {
		old := len(c.data)
		c.data = c.data[:n]
		if n > old {
			clear(c.data[old:])
		}
		return c.data
	}
	fresh := fresh[T](n)
	copy(fresh, c.data)
	c.data = fresh
	return c.data
}

// SetLen is Resize for callers that do not know the type of the elements.
func (c *Column[T]) SetLen(n int) { c.Resize(n) }

// fresh returns n rows of zeroes in memory of their own.
func fresh[T Fixed](n int) []T {
	s := make([]T, n)
	adviseHuge(unsafe.Pointer(unsafe.SliceData(s)), uintptr(n)*unsafe.Sizeof(*new(T)))
	return s
}

// Scratch is Resize for a column that is about to be overwritten whole: rows
// kept from an earlier use are not cleared.
func (c *Column[T]) Scratch(n int) []T {
	if n <= cap(c.data) {
		c.data = c.data[:n]
		return c.data
	}
	c.data = fresh[T](n)
	return c.data
}

// Populate has the system put memory behind the rows, from the first to the
// last, until stop is closed: on a second core while the first fills them,
// because the first touch of fresh memory costs more than what is written.
func (c *Column[T]) Populate(stop <-chan struct{}) {
	const step = 16 << 20
	for b := c.Raw(); len(b) > 0; b = b[min(step, len(b)):] {
		select {
		case <-stop:
			return
		default:
			populate(b[:min(step, len(b))])
		}
	}
}

// Reserve makes room for n rows in all without changing the length.
func (c *Column[T]) Reserve(n int) {
	if n > cap(c.data) {
		fresh := fresh[T](n)[:len(c.data)]
		copy(fresh, c.data)
		c.data = fresh
	}
}

// Reset drops all rows and keeps the capacity.
func (c *Column[T]) Reset() { c.data = c.data[:0] }

// Drop makes the column absent and gives its memory back.
func (c *Column[T]) Drop() { c.data = nil }

// Adopt makes the column use rows that somebody else owns, such as a mapped
// file. The caller keeps them alive and unchanged in place for as long as
// the column is used.
func (c *Column[T]) Adopt(rows []T) { c.data = rows }

// ElemSize returns the bytes of one row.
func (c *Column[T]) ElemSize() int { return int(unsafe.Sizeof(*new(T))) }

// Bytes returns the bytes the rows occupy.
func (c *Column[T]) Bytes() int64 { return int64(len(c.data)) * int64(c.ElemSize()) }

// Raw returns the rows as bytes in memory order (little-endian on every
// platform we build for; the snapshot format checks).
func (c *Column[T]) Raw() []byte {
	if len(c.data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(c.data))), c.Bytes())
}

// AdoptRaw makes the column use the bytes b as its rows without copying. It
// fails where b is not a whole number of rows or is not aligned for T.
func (c *Column[T]) AdoptRaw(b []byte) error {
	size := c.ElemSize()
	if len(b)%size != 0 {
		return fmt.Errorf("column %s: %d bytes are not a whole number of %d-byte rows", c.name, len(b), size)
	}
	if len(b) == 0 {
		c.data = nil
		return nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if uintptr(p)%unsafe.Alignof(*new(T)) != 0 {
		return fmt.Errorf("column %s: bytes are not aligned for %d-byte rows", c.name, size)
	}
	c.data = unsafe.Slice((*T)(p), len(b)/size)
	return nil
}

// AnyColumn is a column seen without its element type: what listing,
// growing, measuring and saving need.
type AnyColumn interface {
	Name() string
	Len() int
	ElemSize() int
	Bytes() int64
	Raw() []byte
	AdoptRaw([]byte) error
	SetLen(n int)
	Reset()
	Drop()
}
